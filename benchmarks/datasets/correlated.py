"""The instances on which objectives are compared: correlated columns, weak to strong signals, both losses."""

from __future__ import annotations

from typing import Any

from benchmark_utils import spec
from benchmark_utils.bases import BaseDataset
from benchmark_utils.problem import SMALL_SAMPLE_RIDGE


class Dataset(BaseDataset):
    """AR(1) or block-correlated columns, k planted coefficients; `snr` is explained at `spec.correlated`."""

    name = "correlated"
    parameters = {  # noqa: RUF012
        "n, d, k": [(100, 200, 8), (150, 3000, 12), (300, 600, 25), (500, 1000, 10)],
        "design, rho": [("ar1", 0.5), ("ar1", 0.95), ("blocks", 0.9)],
        "snr": [1.0],
        "loss": ["squared", "logistic"],
        "seed": [0],
    }
    test_config = {"n": 100, "d": 50, "k": 3}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.loss} {self.n}x{self.d} k{self.k} {self.design} rho{self.rho:g} snr{self.snr:g}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        X, y, truth = spec.correlated(self.n, self.d, self.k, self.design, self.rho, self.snr, self.loss, self.seed)
        return {"X": X, "y": y, "loss": self.loss, "k": self.k, "truth": truth, "ridge": SMALL_SAMPLE_RIDGE}
