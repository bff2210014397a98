"""Three outputs, or three classes, whose coefficients are in the same columns."""

from __future__ import annotations

from typing import Any

from benchmark_utils import spec
from benchmark_utils.bases import BaseDataset


class Dataset(BaseDataset):
    """AR(1) columns of correlation rho, and k planted columns that matter for all outputs."""

    name = "several outputs"
    parameters = {  # noqa: RUF012
        "n, d, k": [(500, 1000, 10)],
        "rho": [0.5, 0.9],
        "loss": ["multi_task", "multinomial"],
        "seed": [1, 2, 3, 4, 5],
    }
    test_config = {"n": 150, "d": 60, "k": 3}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.loss} {self.n}x{self.d} k{self.k} rho{self.rho:g}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        X, y, truth = spec.several_outputs(self.n, self.d, self.k, self.rho, self.loss, self.seed)
        return {"X": X, "y": y, "loss": self.loss, "k": self.k, "truth": truth, "intercept": True}
