"""The 12 logistic instances of the performance study."""

from __future__ import annotations

from typing import Any

from benchmark_utils import spec
from benchmark_utils.bases import BaseDataset

SIZES = ((500, 1000, 10), (5000, 2000, 50), (1000, 5000, 20), (2000, 20000, 40))


class Dataset(BaseDataset):
    """AR(1) columns of correlation rho, k planted coefficients, a linear predictor of standard deviation `scale`."""

    name = "logistic"
    parameters = {  # noqa: RUF012
        "n, d, k": list(SIZES),
        "rho": [0, 0.5, 0.9],
        "scale": [3.0],
        "seed": [0],
        "intercept": [False],
    }
    test_config = {"n": 150, "d": 100, "k": 3}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.n}x{self.d} k{self.k} rho{self.rho:g} scale{self.scale:g}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        X, y, truth = spec.logistic(self.n, self.d, self.k, self.rho, self.scale, self.seed)
        return {"X": X, "y": y, "loss": "logistic", "k": self.k, "truth": truth, "intercept": self.intercept}
