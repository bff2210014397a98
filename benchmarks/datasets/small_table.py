"""Small real tables, most with many more columns than rows, from the folder HARDTHRESH_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_utils.bases import BaseDataset
from benchmark_utils.problem import SMALL_SAMPLE_RIDGE

from hardthresh.datasets import DatasetError

MEASURED = {
    "bloodbrain": "y",
    "communities_crime": "y",
    "ctslice_fragment": "y",
    "riboflavin": "y",
    "tecator": "Y[1]",  # fat
    "wheat_genotypes": "Y[0]",  # yield in the first environment
}
"""The sets with a measured target, and the name of its array, with the column of those that have several."""

CLASSES = {
    "colon_alon": "y",
    "golub_leukemia": "y",
    "golub_leukemia_3051": "y",
    "gravier_breast": "y",
    "musk1": "y",
    "nki272": "y",
    "prostate_6033": "y",
    "prostate_singh": "y",
    "vandevijver295": "y",
}
"""The same with two classes, which are fitted with both losses."""

CLASSES_ONLY = {"arcene": "y", "vantveer2002": "y", "vantveer_9pathways": "metastases"}
"""The same, fitted with the logistic loss only, so that the classes do not outweigh the measured targets."""

TARGETS = {**MEASURED, **CLASSES, **CLASSES_ONLY}
SETS = [
    *((name, "squared") for name in (*MEASURED, *CLASSES)),
    *((name, "logistic") for name in (*CLASSES, *CLASSES_ONLY)),
]


class Dataset(BaseDataset):
    """Standardised, without constant columns. Logistic models have an intercept; other targets are centred."""

    name = "small_table"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {"set, loss": SETS, "k": [5, 20], "intercept": [False]}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.loss} {self.set} k{self.k}"

    def get_data(self) -> dict[str, Any]:
        """Read and prepare the set."""
        name, _, column = TARGETS[self.set].partition("[")
        X, y = (np.asarray(values, dtype=np.float64) for values in _arrays(self.set, "X", name))
        y = y[:, int(column[:-1])] if column else y
        spread = X.std(axis=0)
        X = np.asfortranarray(((X - X.mean(axis=0))[:, spread > 0]) / spread[spread > 0])
        if self.loss == "logistic":
            labels = (y > y.min()).astype(np.float64)
            return {
                "X": X,
                "y": labels,
                "loss": "logistic",
                "k": self.k,
                "intercept": True,
                "ridge": SMALL_SAMPLE_RIDGE,
            }
        return {"X": X, "y": y - y.mean(), "loss": "squared", "k": self.k, "intercept": self.intercept}


def _arrays(name: str, *keys: str) -> list[Any]:
    path = Path(os.environ.get("HARDTHRESH_DATA", "")) / f"{name}.npz"
    if not path.is_file():
        raise DatasetError(f"there is no file {path.name} in the folder HARDTHRESH_DATA")
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[key] for key in keys]
