"""Memory of a fit besides the data: a modest share of them, whatever the weights, the folds and the storage."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from hardthresh import (
    LowRankRegression,
    LowRankRegressionCV,
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
)
from hardthresh.core import HardThreshError
from hardthresh.designs import dense
from hardthresh.estimators.linear import grid_search
from levels import at_most, in_turn

N, D = 50_000, 60
SHARE = 0.7
"""Of the data: copies of an eighth of the columns, about fifteen vectors of a number per row (four for each fold where
the loss is not squared, and four for predictions of held-out rows), and blocks of rows."""

ESTIMATORS = {
    "linear": SparseLinearRegression(n_nonzero_coefs=3),
    "linear, no ridge": SparseLinearRegression(n_nonzero_coefs=3, standardize=False, fit_intercept=False),
    "logistic": SparseLogisticRegression(n_nonzero_coefs=3),
    "logistic, no ridge": SparseLogisticRegression(n_nonzero_coefs=3, alpha=0.0),
    "linear CV": SparseLinearRegressionCV(n_nonzero_coefs=[1, 3], cv=3),
    "linear CV, shuffled": SparseLinearRegressionCV(n_nonzero_coefs=[1, 3], cv=KFold(3, shuffle=True, random_state=0)),
    "logistic CV": SparseLogisticRegressionCV(n_nonzero_coefs=[3, 4], cv=2),
}


@pytest.fixture(autouse=True)
def tables_are_large(monkeypatch):
    """Make a table of a few megabytes large, which else would be copied or scored in one piece for speed."""
    monkeypatch.setattr(dense, "_LARGEST_COPY", 1 << 16)
    monkeypatch.setattr(grid_search, "_ENTRIES", 1 << 16)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A table in a file, and its targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    path = tmp_path_factory.mktemp("memory") / "X.npy"
    np.save(path, X)
    return path, 3 * X[:, 0] - 2 * X[:, 1] + X[:, 2] + 2 * rng.standard_normal(N)


def extra_memory(model, X, y, **fit_params):
    """Return the peak of what a fit allocates as a share of the data."""
    target = y > 0 if "Logistic" in type(model).__name__ else y
    tracemalloc.start()
    try:
        model.fit(X, target, **fit_params)
        return tracemalloc.get_traced_memory()[1] / X.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@at_most(2)
@in_turn("name,kind", list(ESTIMATORS), ["C", "F", "float32"])
def test_a_fit_needs_a_modest_share_of_the_data_besides_them(name, kind, stored):
    X = np.load(stored[0])
    X = X.astype(np.float32) if kind == "float32" else np.asarray(X, order=kind)
    assert extra_memory(ESTIMATORS[name], X, stored[1]) < (2 * SHARE if kind == "float32" else SHARE)


@at_most(2)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_of_zero_copy_no_memory_map(name, stored):
    X = np.load(stored[0], mmap_mode="r")
    weight = np.ones(N)
    weight[::10] = 0.0
    assert extra_memory(ESTIMATORS[name], X, stored[1], sample_weight=weight) < SHARE


@pytest.mark.slow
@pytest.mark.parametrize("model", [LowRankRegression(rank=1), LowRankRegressionCV(rank=[1, 2], cv=2)])
def test_weights_and_folds_copy_no_memory_map_for_a_matrix_of_targets(model, stored):
    X, y = np.load(stored[0], mmap_mode="r"), stored[1]
    weight = np.arange(N) % 10 > 0
    assert extra_memory(model, X, np.stack([y, -y], axis=1), sample_weight=weight) < 2 * SHARE


@pytest.mark.parametrize("model", [*ESTIMATORS.values(), LowRankRegression(), LowRankRegressionCV()])
def test_a_table_that_does_not_fit_says_what_to_do(model):
    X = np.broadcast_to(np.int8(1), (1 << 24, 1 << 24))  # 2 PiB as float64
    folds = hasattr(model, "n_jobs")
    with pytest.raises(MemoryError, match=r"float32.*mmap_mode" + folds * ".*n_jobs=1 in place of 2") as caught:
        (clone(model).set_params(n_jobs=2) if folds else model).fit(X, np.zeros(3))
    assert isinstance(caught.value, HardThreshError)
