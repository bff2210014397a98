"""Autoregressive columns with normal coefficients at random places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchopt import BaseDataset
from benchopt.datasets import make_correlated_data

SNR = 10.0  # as in benchmark_sparse_support_recovery: the variance of the signal over that of the noise


class Dataset(BaseDataset):
    """n rows of d columns, of which k have a coefficient; neighbouring columns have correlation rho."""

    name = "simulated"
    parameters = {  # noqa: RUF012
        "n, d, k, rho": [(100, 300, 6, 0.5), (100, 300, 6, 0.9), (500, 1000, 33, 0.5), (500, 1000, 33, 0.9)],
        "seed": list(range(3000, 3010)),
    }
    test_parameters = {"n, d, k, rho": [(50, 30, 2, 0.5)], "seed": [0]}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        rng = np.random.RandomState(self.seed)
        w = np.zeros(self.d)
        w[rng.choice(self.d, self.k, replace=False)] = rng.standard_normal(self.k)
        X, y, w = make_correlated_data(self.n, self.d, rho=self.rho, snr=math.sqrt(SNR), w_true=w, random_state=rng)
        return {"X": X, "y": y, "w_true": w}
