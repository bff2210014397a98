"""The refits of a fold: the fits of budgets and ridges on given supports of few columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .fold_path import FoldPath
from .model import union
from .refits import ColumnsToRefit
from .support_grid import different_refits, unconverged_refit


@dataclass(frozen=True, slots=True, eq=False)
class FoldRefits:
    """The fits of all budgets, each with all ridges, on the training rows of a fold.

    Attributes
    ----------
    columns, coefs, intercepts :
        As those of a `FoldPath`.
    ridge_terms : array, shape (n_budgets, n_ridges)
        What their ridges add to f.
    failed : array of bool, shape (n_budgets, n_ridges)
        Which have not converged; of equal ones the first.
    """

    columns: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    ridge_terms: np.ndarray
    failed: np.ndarray

    def on(self, columns: np.ndarray) -> np.ndarray:
        """Return the coefficients of some columns, those of the fits among them."""
        coefs = np.zeros((*self.intercepts.shape, columns.size))
        coefs[:, :, columns.searchsorted(self.columns)] = self.coefs
        return coefs

    def joined(self, other: FoldRefits, axis: int) -> FoldRefits:
        """Return these fits followed by those of further budgets (axis 0) or ridges (1)."""
        columns = union(self.columns, other.columns)
        return FoldRefits(
            columns,
            np.concatenate([self.on(columns), other.on(columns)], axis=axis),
            *(
                np.concatenate(parts, axis=axis)
                for parts in (
                    (self.intercepts, other.intercepts),
                    (self.ridge_terms, other.ridge_terms),
                    (self.failed, other.failed),
                )
            ),
        )

    def replaced(self, where: np.ndarray, other: FoldRefits) -> FoldRefits:
        """Return these fits with some of the others in their places."""
        columns = union(self.columns, other.columns)
        return FoldRefits(
            columns,
            np.where(where[:, :, None], other.on(columns), self.on(columns)),
            np.where(where, other.intercepts, self.intercepts),
            np.where(where, other.ridge_terms, self.ridge_terms),
            np.where(where, other.failed, self.failed),
        )

    def path(self, budgets: list[int], ridges: np.ndarray) -> FoldPath:
        """Return the path of these fits, of the columns that any of them uses."""
        used = self.coefs.any(axis=(0, 1))
        unconverged = [unconverged_refit(budgets[i], float(ridges[j])) for i, j in np.argwhere(self.failed)]
        return FoldPath(self.columns[used], self.coefs[:, :, used], self.intercepts, unconverged)


@dataclass(frozen=True, slots=True, eq=False)
class FewColumns:
    """Some columns of a fold, centred and scaled, with a column of ones if there is an intercept.

    Attributes
    ----------
    columns : array of int
        Which columns of the data.
    mean, scale : array, shape (n_columns,)
        What is subtracted from each, and what it is divided by.
    bounds : array, shape (2, n_columns), or None
        The bounds of the coefficients of these columns, and of that of ones.
    intercept : bool
        Whether there is one.
    model : ColumnsToRefit
        The loss on these columns.
    """

    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    bounds: np.ndarray | None
    intercept: bool
    model: ColumnsToRefit

    def fits(self, chosen: np.ndarray, ridges: np.ndarray) -> FoldRefits:
        """Return the fits on supports, shape (n_budgets, n_ridges, n_columns)."""
        n_budgets, n_ridges, n_columns = chosen.shape
        if self.intercept:
            chosen = np.concatenate([chosen, np.ones((n_budgets, n_ridges, 1), dtype=bool)], axis=2)
        refit_of, refits, starts = different_refits(chosen, ridges)
        wanted, ridge_of = chosen.reshape(n_budgets * n_ridges, -1)[refits], ridges[refits % n_ridges]
        coefs, converged = self.model.refits(wanted, ridge_of, starts, self.bounds)
        failed = np.zeros(n_budgets * n_ridges, dtype=bool)
        failed[refits[~converged]] = True
        slopes = (coefs[:, :n_columns] / self.scale)[refit_of]
        levels = coefs[:, n_columns:].sum(axis=1)[refit_of]
        ridge_terms = (0.5 * ridge_of * ((coefs * coefs) @ self.model.penalties))[refit_of]
        return FoldRefits(
            self.columns, slopes, levels - slopes @ self.mean, ridge_terms, failed.reshape(n_budgets, n_ridges)
        )
