"""Sparse matrices like those of words in documents."""

from __future__ import annotations

from typing import Any

from benchmark_utils import spec
from benchmark_utils.bases import BaseDataset


class Dataset(BaseDataset):
    """Zipf column frequencies, k planted coefficients; the large instance of the performance study comes first."""

    name = "sparse_text"
    parameters = {  # noqa: RUF012
        "n, d, density, k": [(20000, 100000, 0.001, 100), (2000, 10000, 0.01, 30)],
        "loss, signal": [("squared", 10.0), ("logistic", 3.0)],
        "seed": [0],
    }
    test_config = {"n": 2000, "d": 300, "density": 0.05, "k": 4}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"csc {self.n}x{self.d} density{self.density:g} k{self.k} {self.loss}"

    def get_data(self) -> dict[str, Any]:
        """Draw the instance."""
        X, y, truth = spec.sparse_text(self.n, self.d, self.density, self.k, self.loss, self.signal, self.seed)
        return {"X": X, "y": y, "loss": self.loss, "k": self.k, "truth": truth}
