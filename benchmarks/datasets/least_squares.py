"""The 25 least-squares instances of the performance study."""

from __future__ import annotations

from typing import Any

from benchmark_utils import spec
from benchmark_utils.bases import BaseDataset

SIZES = ((500, 1000, 10), (1000, 5000, 50), (5000, 2000, 50), (300, 50000, 20), (2000, 20000, 100))
DESIGNS = ((0, 10), (0, 1), (0.5, 10), (0.9, 10), (0.9, 1))


class Dataset(BaseDataset):
    """AR(1) columns of correlation rho, k planted coefficients, a signal-to-noise ratio.

    y is centred: `intercept` is for comparisons with estimators, which fit one.
    """

    name = "least_squares"
    parameters = {  # noqa: RUF012
        "n, d, k": list(SIZES),
        "rho, snr": list(DESIGNS),
        "seed": [0],
        "intercept": [False],
    }
    test_config = {"n": 100, "d": 200, "k": 5}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.n}x{self.d} k{self.k} rho{self.rho:g} snr{self.snr:g}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        X, y, truth = spec.least_squares(self.n, self.d, self.k, self.rho, self.snr, self.seed)
        return {"X": X, "y": y, "loss": "squared", "k": self.k, "truth": truth, "intercept": self.intercept}
