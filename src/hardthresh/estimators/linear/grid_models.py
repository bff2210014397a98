"""The fits of a grid of models in each fold, and on all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.schema import stored
from hardthresh.selection import FoldPath
from hardthresh.selection.averaging import Expendable, kept_by_variance
from hardthresh.selection.grid import GridScores

from ..base import numpy_dtype
from ..table import Table
from .prediction import PredictionModel
from .problem import Problem, features_of


@stored("part/averaged_model")
@dataclass(frozen=True, slots=True)
class AveragedModel:
    """One of the models of an average, on the scale of the data.

    Attributes
    ----------
    n_nonzero : int
        The number of features, or of groups, that it was allowed.
    alpha : float
        Its ridge.
    weight : float
        Its weight in the average.
    support : array of int
        Its features, increasing.
    coef : array, shape (n_support,) or (n_outputs, n_support)
        Their coefficients.
    intercept : float or array
        The intercept, or one for each component of the linear predictor.
    """

    n_nonzero: int
    alpha: float
    weight: float
    support: np.ndarray
    coef: np.ndarray
    intercept: float | np.ndarray


def check_model(model: AveragedModel, n_features: int) -> None:
    """Check that a model, which may come from a damaged file, is one of some number of features.

    Raises
    ------
    InvalidInputError
        If not.
    """
    support = np.asarray(model.support)
    coef, intercept = np.asarray(model.coef), np.asarray(model.intercept)
    sound = (
        support.ndim == 1
        and coef.ndim in (1, 2)
        and coef.shape[-1:] == support.shape
        and intercept.ndim <= 1
        and (support.size == 0 or support.dtype.kind in "iu")
        and np.all((support >= 0) & (support < n_features))
        and np.all(np.diff(support) > 0)
        and np.all(np.isfinite(coef))
        and np.all(np.isfinite(intercept))
        and np.all(np.isfinite((model.alpha, model.weight)))
    )
    if not sound:
        raise InvalidInputError(
            f"the model with {format_value(model.n_nonzero)} non-zeros does not have a finite coefficient for each of "
            f"some of {n_features} features"
        )


@dataclass(frozen=True, slots=True)
class Units:
    """What k counts.

    Attributes
    ----------
    of_feature : array of int, shape (n_features,)
        The number of each feature's group; its own number without groups.
    always : array of bool, shape (n_features,)
        The features that are always included, and not counted.
    """

    of_feature: np.ndarray
    always: np.ndarray

    def count(self, features: np.ndarray) -> int:
        """Return how many units some features belong to."""
        return int(np.unique(self.of_feature[features[~self.always[features]]]).size)


@dataclass(frozen=True, slots=True)
class FoldFits:
    """The fits of one fold's training rows, on the scale of the data.

    Attributes
    ----------
    prediction : PredictionModel
        How their predictions are scored.
    columns : array of int
        The features that any of the fits uses, increasing.
    coefs : array, shape (n_sizes, n_ridges, n_columns) or (n_sizes, n_ridges, n_outputs, n_columns)
        Their coefficients.
    intercepts : array, shape (n_sizes, n_ridges) or (n_sizes, n_ridges, n_components)
        The intercepts.
    unconverged : list of str
        Why fits did not converge.
    """

    prediction: PredictionModel
    columns: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    unconverged: list[str]

    @classmethod
    def of(cls, path: FoldPath, problem: Problem, prediction: PredictionModel, unconverged: list[str]) -> FoldFits:
        """Return the fits of a path of points, on the scale of the data."""
        fits = problem.on_scale_of_data(path.columns, path.coefs, path.intercepts)
        return cls(prediction, path.columns, *fits, unconverged)

    def joined(self, other: FoldFits, order: np.ndarray) -> FoldFits:
        """Return these fits and those of other sizes with the same ridges, in an order of all sizes."""
        columns = np.union1d(self.columns, other.columns)
        return FoldFits(
            self.prediction,
            columns,
            np.concatenate([self._coefs_of(columns), other._coefs_of(columns)])[order],
            np.concatenate([self.intercepts, other.intercepts])[order],
            [*self.unconverged, *other.unconverged],
        )

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and the intercepts of all fits, one after the other."""
        sizes, ridges = self.coefs.shape[:2]
        flat = (fits.reshape(sizes * ridges, *fits.shape[2:]) for fits in (self.coefs, self.intercepts))
        return next(flat), next(flat)

    def replaced(self, place: tuple[int, int], coef: np.ndarray, intercept: np.ndarray) -> FoldFits:
        """Return these fits with another one, with coefficients of all features, at a place."""
        columns = np.union1d(self.columns, np.flatnonzero(features_of(coef)))
        coefs, intercepts = self._coefs_of(columns), self.intercepts.copy()
        coefs[place] = coef[..., columns]
        intercepts[place] = intercept
        return replace(self, columns=columns, coefs=coefs, intercepts=intercepts)

    def average(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of `columns` and the intercept of an average, with weights of all fits."""
        components = (1,) * (self.intercepts.ndim - 2)
        intercept = np.sum(weights.reshape(*weights.shape, *components) * self.intercepts, axis=(0, 1))
        return np.tensordot(weights, self.coefs, 2), np.asarray(intercept)

    def thinned_average(
        self, weights: np.ndarray, table: Table, units: Units, expendable: Expendable
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an average without the features that its predictions for some rows hardly need.

        The mean of its predictions stays as it is. Variances of several outputs are added up.

        Parameters
        ----------
        weights : array, shape (n_sizes, n_ridges)
            The weights of the fits.
        table : Table
            The rows.
        units : Units
            Which features go or stay together, and which stay.
        expendable : Expendable
            How much they may lose.

        Returns
        -------
        coef : array, shape (n_columns,) or (n_outputs, n_columns)
            The coefficients of `columns`.
        intercept : array, shape () or (n_components,)
            The intercept.
        """
        coef, intercept = self.average(weights)
        used = np.flatnonzero(features_of(coef) & ~units.always[self.columns])
        if used.size == 0:
            return coef, intercept
        mean, covariance = table.column_moments(self.columns[used])
        labels, unit = np.unique(units.of_feature[self.columns[used]], return_inverse=True)
        member = np.eye(labels.size)[unit]
        contributions = coef[..., used, None] * member
        shared = np.swapaxes(contributions, -1, -2) @ covariance @ contributions
        kept = kept_by_variance(shared.reshape(-1, labels.size, labels.size).sum(axis=0), expendable)
        gone = used[~np.isin(unit, kept)]
        lost = coef[..., gone] @ mean[np.searchsorted(used, gone)]
        coef[..., gone] = 0.0
        return coef, intercept + self._components(lost)

    def predict(self, table: Table, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Return the linear predictors of some rows, offset included.

        Parameters
        ----------
        table : Table
            The rows.
        coefs : array, shape (n_fits, n_columns) or (n_fits, n_outputs, n_columns)
            Coefficients of `columns`.
        intercepts : array, shape (n_fits,) or (n_fits, n_components)
            Their intercepts.

        Returns
        -------
        array, shape (n_rows, n_fits) or (n_rows, n_fits, n_components)
        """
        rows = coefs.reshape(math.prod(coefs.shape[:-1]), self.columns.size)
        some = table.to_backend(rows.T.astype(numpy_dtype(table.X)))
        products = to_numpy(table.matrix(table.to_backend(self.columns)) @ some)
        u: np.ndarray = self._components(products.reshape(len(products), *coefs.shape[:-1])) + intercepts
        return u if table.offset is None else u + self._components(to_numpy(table.offset)[:, None])

    def every(self, coef: np.ndarray, intercept: np.ndarray, table: Table) -> tuple[Any, Any]:
        """Return coefficients of `columns` as those of all features, in the library and on the device of a table."""
        full = np.zeros((*coef.shape[:-1], table.X.shape[1]), dtype=numpy_dtype(table.X))
        full[..., self.columns] = coef
        return table.to_backend(full), table.to_backend(np.asarray(intercept, dtype=full.dtype))

    def _components(self, products: np.ndarray) -> np.ndarray:
        """Return products of coefficients, to be added to intercepts, of which there may be more than outputs."""
        return products[..., None] if self.intercepts.ndim == self.coefs.ndim else products

    def _coefs_of(self, columns: np.ndarray) -> np.ndarray:
        """Return the coefficients of more columns, as a copy."""
        coefs = np.zeros((*self.coefs.shape[:-1], columns.size))
        coefs[..., np.searchsorted(columns, self.columns)] = self.coefs
        return coefs


@dataclass(frozen=True, slots=True)
class Search:
    """The fits of a grid of models and their held-out scores.

    Attributes
    ----------
    sizes : array of int, shape (n_sizes,)
        The numbers of features or groups: 0, and the candidates.
    ridges : array, shape (n_ridges,)
        The ridges, increasing.
    folds : list of FoldFits
        The fits of each fold.
    everywhere : FoldFits
        The fits of all rows.
    scores : array, shape (n_sizes, n_ridges, n_folds)
        Higher is better.
    """

    sizes: np.ndarray
    ridges: np.ndarray
    folds: list[FoldFits]
    everywhere: FoldFits
    scores: np.ndarray

    def joined(self, other: Search) -> Search:
        """Return the grid of the sizes of two, with the same ridges."""
        sizes = np.concatenate([self.sizes, other.sizes])
        order = np.argsort(sizes)
        return Search(
            sizes[order],
            self.ridges,
            [fits.joined(others, order) for fits, others in zip(self.folds, other.folds, strict=True)],
            self.everywhere.joined(other.everywhere, order),
            np.concatenate([self.scores, other.scores])[order],
        )

    def grid(self, candidates: np.ndarray) -> GridScores:
        """Return the scores of the candidates."""
        return GridScores(candidates, self.ridges, self.scores[np.searchsorted(self.sizes, candidates)])

    def place(self, size: int, ridge: int) -> tuple[int, int]:
        """Return the place of the model with a size and the ridge at a place."""
        return int(np.searchsorted(self.sizes, size)), ridge
