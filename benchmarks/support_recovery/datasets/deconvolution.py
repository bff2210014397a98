"""Spikes that are seen through a filter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchopt import BaseDataset
from scipy.linalg import convolution_matrix

SNR = 10.0  # as in benchmark_sparse_support_recovery: the energy of the signal over that of the noise
SAMPLES = 21  # of the filter, a sinc function whose zeros are WIDTH samples apart; n = d + SAMPLES - 1
WIDTH = 4


class Dataset(BaseDataset):
    """d unknowns, k of them not zero and of size 1 or more; neighbouring columns are shifted copies of one filter."""

    name = "deconvolution"
    parameters = {"n, d, k": [(120, 100, 5), (120, 100, 8)], "seed": list(range(3000, 3010))}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        rng = np.random.default_rng(self.seed)
        X = convolution_matrix(np.sinc((np.arange(SAMPLES) - SAMPLES // 2) / WIDTH), self.d)
        w, spikes = np.zeros(self.d), rng.standard_normal(self.k)
        w[rng.choice(self.d, self.k, replace=False)] = spikes + np.sign(spikes)
        f, noise = X @ w, rng.standard_normal(self.n)
        return {"X": X, "y": f + noise * math.sqrt((f @ f) / (SNR * (noise @ noise))), "w_true": w}
