"""Problems of the kind that `benchmark_sparse_support_recovery` poses, written anew from their descriptions.

That benchmark (https://github.com/TheoGuyard/benchmark_sparse_support_recovery, Guyard) asks how much of a planted
support is found: in random columns with evenly spaced coefficients of size 1, columns of norm 1 and a signal-to-noise
ratio of 10, and in deconvolution, as of Bourguignon, Ninin, Carfantan and Mongeau (2016, *Exact sparse approximation
problems via mixed-integer programming*), where neighbouring columns are shifted copies of one pulse.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchmark_utils.bases import BaseDataset

SNR = 10.0
PULSE = 21  # samples of the pulse, as in Bourguignon et al.: 100 unknowns, 120 observations


class Dataset(BaseDataset):
    """`kind` is "random" (n, d, k and the AR(1) correlation rho of the columns) or "pulses" (only k and rho 0)."""

    name = "recovery"
    parameters = {  # noqa: RUF012
        "kind, n, d, k, rho": [
            *(("random", n, d, 5, rho) for n, d in ((100, 300), (300, 100)) for rho in (0.0, 0.5, 0.9)),
            *(("pulses", 120, 100, k, 0.0) for k in (5, 7, 9)),
        ],
        "seed": [0],
    }

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.kind} {self.n}x{self.d} k{self.k} rho{self.rho:g}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance. y is not centred, and the model has no intercept, as in the original."""
        rng = np.random.default_rng(self.seed)
        if self.kind == "pulses":
            X, truth = _pulses(self.n, self.d), np.sort(rng.choice(self.d, self.k, replace=False))
            sizes = rng.standard_normal(self.k)
            beta = sizes + np.sign(sizes)
        else:
            X, truth = _random(rng, self.n, self.d, self.rho), np.linspace(0, self.d - 1, self.k).round().astype(int)
            beta = rng.choice([-1.0, 1.0], self.k)
        f, noise = X[:, truth] @ beta, rng.standard_normal(self.n)
        y = f + noise * math.sqrt((f @ f) / (SNR * (noise @ noise)))
        return {"X": X, "y": y, "loss": "squared", "k": self.k, "truth": truth}


def _random(rng: Any, n: int, d: int, rho: float) -> Any:
    X = np.asfortranarray(rng.standard_normal((n, d)))
    for j in range(1, d if rho else 0):
        X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho * rho) * X[:, j]
    return X / np.linalg.norm(X, axis=0)


def _pulses(n: int, d: int) -> Any:
    """Return the shifts of an oscillating pulse under a Hann window."""
    t = np.arange(PULSE) - PULSE // 2
    pulse = np.cos(2 * np.pi * t / 8) * np.cos(np.pi * t / (PULSE + 1)) ** 2
    X = np.zeros((n, d), order="F")
    for j in range(d):
        X[j : j + PULSE, j] = pulse
    return X / np.linalg.norm(X, axis=0)
