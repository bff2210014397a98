"""Load data sets, simulate data, and read tables in blocks."""
# pyright: strict, reportMissingTypeStubs=false

from typing import Any, assert_type

import numpy as np

import hardthresh as ht
from hardthresh import datasets
from hardthresh.datasets import Dataset
from hardthresh.designs import RowBlocks


def a_loader_returns_a_data_set_or_a_pair() -> None:
    assert_type(datasets.load_colon(), Dataset)
    assert_type(datasets.load_colon().data, Any)
    X, y = datasets.load_colon(return_X_y=True)
    assert_type(X, Any)
    assert_type(y, Any)


def a_simulator_returns_arrays() -> None:
    data = datasets.make_sparse_regression(20, 5, 2, model="poisson", seed=0)
    assert_type(data.support.size, int)
    assert_type(data.noise_variance, float | None)
    print(np.linalg.norm(data.coef), data.X.shape, data.y.mean())


def tables_in_blocks_are_fitted() -> None:
    data = datasets.make_sparse_regression(40, 5, 2, seed=0)
    blocks = ht.from_arrays(data.X, data.y, rows=20)
    assert_type(blocks, RowBlocks)
    assert_type(ht.SparseLinearRegression(n_nonzero_coefs=2).fit(blocks), ht.SparseLinearRegression)
