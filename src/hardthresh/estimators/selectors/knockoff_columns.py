"""The columns of a table that have knockoffs, and the sampling of the knockoffs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.selection import KnockoffPlan

_CONSTANT = 1e-10
"""A column whose standard deviation is a smaller share of its largest entry is constant: ten of its sixteen digits are
the same in all rows."""


@dataclass(frozen=True, slots=True)
class KnockoffColumns:
    """Columns of a table with a plan of their knockoffs.

    Attributes
    ----------
    X : array, shape (n, d)
        The table, in double precision.
    weights : array, shape (n,)
        The weights of the rows, with the mean 1.
    mean : array, shape (d,)
        What is subtracted from each column: its mean; for fixed knockoffs of a model without an intercept nothing.
    varying : array of int
        The columns that vary.
    tested : array of int
        Those with a knockoff.
    name : callable
        How a message calls a column.
    """

    X: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    varying: np.ndarray
    tested: np.ndarray
    name: Callable[[int], str]

    @classmethod
    def of(
        cls, X: np.ndarray, weights: np.ndarray | None, always: tuple[int, ...], name: Callable[[int], str]
    ) -> KnockoffColumns:
        """Return the columns of a table, of which those that vary and are not always included get a knockoff."""
        X = np.asarray(X, dtype=np.float64)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        weights = weights / weights.mean()
        mean = weights @ X / len(X)
        deviation = np.sqrt(weights @ (X - mean) ** 2 / len(X))
        varying = np.flatnonzero(deviation > _CONSTANT * np.abs(X).max(axis=0))
        return cls(X, weights, mean, varying, np.setdiff1d(varying, always), name)

    def gaussian(self, covariance: Any) -> Callable[[np.random.Generator], np.ndarray]:
        """Return a function that draws normal knockoffs, for a covariance of all columns or a way to estimate it."""
        X, mean = self.X[:, self.varying], self.mean[self.varying]
        if not isinstance(covariance, np.ndarray):
            scale = np.sqrt(self.weights @ (X - mean) ** 2 / len(X))
            rows = np.sqrt(self.weights)[:, None] * (X - mean) / scale
            S = _estimated(covariance, rows) * np.outer(scale, scale)
        elif covariance.shape != (self.X.shape[1], self.X.shape[1]) or not np.allclose(covariance, covariance.T):
            d = self.X.shape[1]
            raise InvalidInputError(f"covariance has shape {covariance.shape}; a symmetric {(d, d)} array is needed")
        else:
            S = covariance[np.ix_(self.varying, self.varying)]
        plan = self._plan(S, 'give covariance="ledoit_wolf", which is always regular, or leave the column out')
        return lambda rng: plan.gaussian(X, mean, rng)

    def fixed(self, *, intercept: bool) -> Callable[[np.random.Generator], np.ndarray]:
        """Return a function that draws fixed knockoffs, of a model with or without an intercept."""
        there = self.weights > 0
        root = np.sqrt(self.weights[there])[:, None]
        mean = self.mean if intercept else np.zeros_like(self.mean)
        rows = root * (self.X[there] - mean)[:, self.varying]
        needed = self.varying.size + self.tested.size + intercept
        if len(rows) < needed:
            raise InvalidInputError(
                f'kind="fixed" needs two rows for each column, here {needed:,} rows; there are {len(rows):,}: use '
                'kind="gaussian", or fewer columns'
            )
        plan = self._plan(rows.T @ rows, 'leave it out, or use kind="gaussian"')

        def draw(rng: np.random.Generator) -> np.ndarray:
            copies = self.X[:, self.tested]
            copies[there] = mean[self.tested] + plan.fixed(rows, rng, root[:, 0] if intercept else None) / root
            return copies

        return draw

    def _plan(self, second_moments: np.ndarray, advice: str) -> KnockoffPlan:
        places = np.searchsorted(self.varying, self.tested)
        try:
            return KnockoffPlan.of(second_moments, places, lambda j: self.name(int(self.varying[j])))
        except InvalidInputError as error:
            raise InvalidInputError(f"{error}; {advice}") from error


def _estimated(covariance: Any, rows: np.ndarray) -> np.ndarray:
    """Return an estimate of the covariance of standardised columns, from their rows times the roots of the weights."""
    if isinstance(covariance, str):
        if covariance == "empirical":
            return np.asarray(rows.T @ rows / len(rows))
        return shrunk_covariance(rows)
    estimate = clone(covariance).fit(rows).covariance_ if hasattr(covariance, "fit") else covariance(rows)
    S, d = np.asarray(estimate, dtype=np.float64), rows.shape[1]
    if S.shape != (d, d) or not np.isfinite(S).all():
        raise InvalidInputError(
            f"covariance={format_value(covariance)} gave shape {S.shape}; finite numbers of shape {(d, d)} are needed, "
            "for the columns that vary"
        )
    return (S + S.T) / 2.0


def shrunk_covariance(rows: np.ndarray) -> np.ndarray:
    """Return the covariance of centred rows, shrunk towards a multiple of the identity.

    Parameters
    ----------
    rows : array, shape (n, d)
        Centred.

    Returns
    -------
    array, shape (d, d)
        That of scikit-learn's ``LedoitWolf``, which reads the rows twice more: the sum of the squares' products over
        all pairs of columns is that of the squared lengths of the rows.

    References
    ----------
    Ledoit and Wolf (2004), *A well-conditioned estimator for large-dimensional covariance matrices*, Journal of
    Multivariate Analysis 88.
    """
    n, d = rows.shape
    S = rows.T @ rows / n
    lengths, squares, mean = np.sum(rows**2, axis=1), float(np.sum(S**2)), float(np.trace(S)) / d
    error = (float(np.sum(lengths**2)) / n - squares) / n
    distance = squares - d * mean**2
    share = min(error / distance, 1.0) if error > 0 and distance > 0 else 0.0
    return np.asarray((1.0 - share) * S + share * mean * np.eye(d))
