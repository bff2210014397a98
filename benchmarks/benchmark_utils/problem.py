"""A problem as every solver gets it, and as it travels to another process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

RIDGE = 1e-6
"""Of every logistic objective and of its refit, so that separable classes have finite coefficients."""

LARGEST_BY_DEFAULT = 30
"""The largest number of columns that our estimators compare at first by default."""

SMALL_SAMPLE_RIDGE = 1e-3
"""The same where samples are small and nearly separable: without it all objectives there would be almost 0."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Choose columns of X for y.

    `question` is "fixed" (the best `k` columns), "path" (the number of columns by EBIC, among 1 to `largest`), "cv"
    (the same by 5-fold cross-validation) or "defaults" (the same among 0 to 30 for packages that have no default of
    their own). `loss` is "squared", "logistic", "multi_task" (y has a column for each output) or "multinomial" (y has
    the numbers of classes); `ridge` belongs to those of classes.
    `intercept` says whether the model has one: where X and y are centred, none is needed.
    """

    X: Any
    y: Any
    loss: str
    k: int
    question: str = "fixed"
    intercept: bool = False
    largest: int = 50
    ridge: float = RIDGE

    @property
    def is_sparse(self) -> bool:
        """Whether X is stored sparsely."""
        return scipy.sparse.issparse(self.X)

    @property
    def budgets(self) -> range:
        """The numbers of columns to choose among."""
        return range(LARGEST_BY_DEFAULT + 1) if self.question == "defaults" else range(1, self.largest + 1)

    def varied(self, *, x: float = 1.0, y: float = 1.0, dtype: str = "float64") -> Problem:
        """Return the same problem in other units, or in another precision."""
        X, target = (self.X * x).astype(dtype), (self.y * y).astype(dtype)
        return replace(self, X=X if self.is_sparse else np.asfortranarray(X), y=target, ridge=self.ridge * x * x)

    def save(self, folder: Path) -> None:
        """Write the problem to a folder, so that processes with another NumPy can read it."""
        if self.is_sparse:
            scipy.sparse.save_npz(folder / "X.npz", scipy.sparse.csc_matrix(self.X), compressed=False)
        else:
            np.save(folder / "X.npy", self.X)
        np.save(folder / "y.npy", self.y)
        settings = {name: getattr(self, name) for name in ("loss", "k", "question", "intercept", "largest", "ridge")}
        (folder / "problem.json").write_text(json.dumps(settings), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Problem:
        """Return the problem of a folder."""
        sparse = folder / "X.npz"
        X = scipy.sparse.load_npz(sparse) if sparse.exists() else np.load(folder / "X.npy")
        settings = json.loads((folder / "problem.json").read_text(encoding="utf-8"))
        return cls(X=X, y=np.load(folder / "y.npy"), **settings)
