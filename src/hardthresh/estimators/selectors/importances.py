"""Importances of columns and their knockoffs for an estimator."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeAlias
from warnings import catch_warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lars, LinearRegression, OrthogonalMatchingPursuit, Ridge

from hardthresh.arrays import double
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, plural, warn
from hardthresh.losses import Squared
from hardthresh.solvers import FullBatch

from ..linear.model import SparseLinearModel

Importances: TypeAlias = Callable[..., np.ndarray]
"""Takes an estimator that is not fitted, X, y and the other parameters of `fit`, and returns a number >= 0 for each
column of X, which must not depend on the order of the columns."""
_OF_PRODUCTS = (LinearRegression, Ridge, ElasticNet, Lars, OrthogonalMatchingPursuit)
"""What scikit-learn has for least squares without folds; Lasso is an ElasticNet, and LassoLars a Lars."""


def by_path(model: SparseLinearModel, X: np.ndarray, y: Any, *, least: int, **params: Any) -> np.ndarray:
    """Return at how many numbers of features a model chooses each column.

    The numbers are 1, 2, ..., K with K twice the number of features of the model, or `least` if that is larger. Ties
    are broken by the sizes of the standardised coefficients at K.

    Parameters
    ----------
    model : SparseLinearModel
        Not fitted. If it chooses its number of features, by a criterion or by cross-validation, it chooses here, and
        the ridge too.
    X : array, shape (n, p)
        Columns and knockoffs.
    y : array
        Targets.
    least : int
        The smallest K.
    **params :
        Other parameters of the fit.

    Returns
    -------
    array, shape (p,)
    """
    signature(model.fit).bind(X, y, **params)  # which refuses what the model does not take
    counts, coef, unfinished = model._path_counts(X, y, least, params)
    if unfinished:
        warn(f"{unfinished} fits for the statistics of knockoffs did not converge", ConvergenceWarning)
    sizes = _lengths(coef)
    return np.asarray(counts + sizes / (2.0 * (sizes.max() or 1.0)))


def by_coefficients(model: Any, X: np.ndarray, y: Any, **params: Any) -> np.ndarray:
    """Return the sizes of the standardised coefficients of a model; of several outputs, their lengths.

    Parameters
    ----------
    model : estimator
        Not fitted; once it is, it has ``coef_``.
    X : array, shape (n, p)
        Columns and knockoffs.
    y : array
        Targets.
    **params :
        Other parameters of the fit.

    Returns
    -------
    array, shape (p,)
    """
    with catch_warnings(action="ignore", category=NothingFoundWarning):
        model.fit(X, y, **params)
    if not hasattr(model, "coef_"):
        raise InvalidInputError(
            f'statistic="coef" needs an estimator with coef_, which {type(model).__name__} has not; give a function '
            "that returns the importance of each column"
        )
    weights = params.get("sample_weight")
    centred = X - np.average(X, axis=0, weights=weights)
    return _lengths(model.coef_) * np.sqrt(np.average(centred**2, axis=0, weights=weights))


def check_sees_products(model: Any) -> None:
    """Check that the importances of an estimator depend on X and y through X'X, X'y and y'y alone.

    Raises
    ------
    InvalidInputError
        For other losses than the squared one, for folds, for solvers that draw batches of rows, and for estimators
        that are not known to do so.
    """
    name = type(model).__name__
    if "cv" in model.get_params(deep=False) and getattr(model, "criterion", "cv") == "cv":
        raise InvalidInputError(
            'kind="fixed" needs an estimator that sees the rows through their products alone, which those of folds '
            f'are not: give {name} another criterion, or an estimator without folds, or use kind="gaussian"'
        )
    if not isinstance(getattr(getattr(model, "solver", None), "batch", FullBatch()), FullBatch):
        raise InvalidInputError(
            'kind="fixed" needs an estimator that sees the rows through their products alone, and the solver of '
            f'{name} draws batches of them: use solver="auto", or kind="gaussian"'
        )
    if isinstance(model, SparseLinearModel):
        if model._loss_type is not Squared:
            raise InvalidInputError(
                f'kind="fixed" is for least squares, and {name} has another loss; use kind="gaussian"'
            )
    elif not isinstance(model, _OF_PRODUCTS):
        known = ", ".join(kind.__name__ for kind in _OF_PRODUCTS)
        raise InvalidInputError(
            f'kind="fixed" is for least squares, and {name} is not known to see the rows through their products alone, '
            f'as {known} do; use kind="gaussian", or a function for statistic if you know that it does'
        )


def _lengths(coef: Any) -> np.ndarray:
    """Return the length of the coefficients of each column, one or several."""
    return np.asarray(np.linalg.norm(np.atleast_2d(double(coef)), axis=0))


def checked_importances(importances: Any, p: int) -> np.ndarray:
    """Return the numbers that a function of the user returned.

    Raises
    ------
    InvalidInputError
        If they are not one finite number for each column.
    """
    numbers = np.asarray(importances)
    if numbers.shape != (p,) or numbers.dtype.kind not in "fiub" or not np.isfinite(numbers).all():
        what = f"shape {numbers.shape}" if numbers.shape != (p,) else "NaN, infinity or no numbers"
        raise InvalidInputError(
            f"statistic returned {what}; it must return a finite number for each of {plural(p, 'column')}"
        )
    return numbers.astype(np.float64)
