"""What users read about an estimator: descriptions that several classes share, and names in Python's own errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import cleandoc, isfunction, unwrap
from types import FunctionType
from typing import Any, TypeVar

from .callbacks import fit_method

T = TypeVar("T", bound=type)

_SHARED = {
    "parameters": """
    alpha : float, optional
        Ridge >= 0 on the mean loss, alpha / 2 times the squared norm of the standardised coefficients. Default 0 for
        least squares and 0.01 for logistic regression.
    always_include : sequence of int or str, optional
        Columns, by index or by name, that are in every model, not counted and not penalised.
    positive : bool
        Whether coefficients must be >= 0.
    fit_intercept : bool
        Whether to fit an intercept; it is neither counted nor penalised.
    standardize : bool
        Whether to scale columns to unit variance for the fit; coefficients come back on the scale of the data, and
        sparse data stay sparse.
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1.""",
    "warm": """
    warm_start : bool
        Whether to start from the last fit's coefficients.""",
    "seed": """
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.""",
    "budget": """
    n_nonzero_coefs : int, optional
        How many features the model may use, 0 <= k <= n_features, besides those of `always_include`; default 10 % of
        the features, at least 1.
    groups : sequence of n_features labels, or dict or pandas Series from column to label, optional
        What group each column is in, by any hashable label and in any order; features are then chosen by whole groups.
        The labels of columns of `always_include` are ignored. Not together with `positive` or `n_nonzero_coefs`.
    n_nonzero_groups : int, optional
        How many groups the model may use, 0 <= k <= number of groups; default 10 % of the groups, at least 1. Groups
        are compared by the energy of their coefficients on standardised columns, whatever their sizes.""",
    "cv_parameters": """
    n_nonzero_coefs : iterable of int, or int, optional
        The numbers of features to compare; a single number K means 1 .. K. Default 1 .. 30.
    groups : sequence of n_features labels, or dict or pandas Series from column to label, optional
        What group each column is in, by any hashable label and in any order; features are then chosen by whole groups.
        The labels of columns of `always_include` are ignored. Not together with `positive` or `n_nonzero_coefs`.
    n_nonzero_groups : iterable of int, or int, optional
        With `groups`, the numbers of groups to compare, in the place of `n_nonzero_coefs`.
    cv : int, splitter or iterable of (train, test) indices
        The folds, as everywhere in scikit-learn; stratified for classifiers.
    scoring : str or callable, optional
        A scikit-learn scorer. Default: minus the mean squared error, or minus the log-loss.
    rule : {"best", "one_standard_error"}
        Take the number with the best mean score, or the smallest one within a standard error of it.
    n_jobs : int, optional
        How many folds to fit at a time.""",
    "cv_attributes": """
    candidates_ : array of int, shape (n_candidates,)
        The numbers compared, increasing.
    scores_ : array, shape (n_candidates, n_folds)
        Held-out scores; higher is better. `mean_scores_` and `standard_errors_` summarise them, and `scorer_name_`
        names them.
    one_standard_error_ : int
        The smallest number within one standard error of the best.
    selection_frequency_ : array, shape (n_features,)
        The share of folds whose model of the chosen size has the feature.
    coefs_path_ : array, shape (n_candidates, n_features)
        The coefficients of every candidate on all data, found as in the folds; those of the chosen number are the
        model's.""",
    "largest_rank": """
    rank : int, optional
        The largest rank of the coefficient matrix, 0 <= rank <= min(n_features, n_outputs); default a tenth of that,
        rounded up.""",
    "low_rank_parameters": """
    alpha : float or None
        Ridge >= 0 on the mean loss, alpha / 2 times the squared norm of the standardised coefficients. Default 0, no
        ridge; None says the same, as in the other estimators, where it is each one's own default.
    fit_intercept : bool
        Whether to fit an intercept for each output; it is not penalised.
    standardize : bool
        Whether to scale columns to unit variance for the fit; coefficients come back on the scale of the data. It
        matters where there is a ridge, or where several matrices fit equally well; outputs are never scaled.
    solver : str or Solver
        "auto", the closed form; or the name of a registered solver, or a solver object, for
        `hardthresh.minimize`, which holds the whole matrix of coefficients.
    tol : float
        Relative tolerance > 0 of such a solver.
    max_iter : int
        Its limit of iterations, >= 1.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the closed form draws none.
    verbose : bool
        Whether to show a progress line.""",
    "low_rank_attributes": """
    U_ : array, shape (n_features, r)
        Orthonormal directions of the features, on the scale of the data and whatever its units: the matrix W is
        ``U_ @ diag(singular_values_) @ V_.T``. Like all arrays here, float32 after a fit to float32, else float64.
    V_ : array, shape (n_outputs, r)
        Orthonormal directions of the outputs; the entry of largest size in each is positive.
    singular_values_ : array, shape (r,)
        Decreasing, > 0.
    intercept_ : array, shape (n_outputs,), or float
        The intercepts; a float after a fit to one-dimensional targets.
    coef_ : array, shape (n_outputs, n_features) or (n_features,)
        The coefficients, computed when asked for.
    rank_ : int
        The rank r attained, at most `rank`.
    n_iter_, converged_, stop_reason_, objective_ :
        Iterations, 1 for the closed form; whether and why the solver stopped; the minimised objective.
    history_ : History
        What happened along the way, as in the linear estimators: ``history_["value"][t]`` is the objective after t
        iterations. The closed form has two values, that of no coefficients and the minimum, and no other column.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.""",
    "low_rank_cv_parameters": """
    cv : int, splitter or iterable of (train, test) indices
        The folds, as everywhere in scikit-learn.
    scoring : str or callable, optional
        A scikit-learn scorer. Default: minus the mean squared error over rows and outputs.
    rule : {"best", "one_standard_error"}
        Take the rank with the best mean score, or the smallest one within a standard error of it.
    n_jobs : int, optional
        How many folds to fit at a time.""",
}


def documented(cls: T) -> T:
    """Class decorator: put the shared descriptions where the docstring says ``{name}`` on a line of its own."""
    text = cleandoc(cls.__doc__ or "")
    for name, description in _SHARED.items():
        text = text.replace("{" + name + "}", cleandoc(description))
    cls.__doc__ = text
    return cls


def names_methods(base: type) -> Callable[[T], T]:
    """Class decorator: copy the public methods of a private base class under the name of the decorated class.

    Python's errors about arguments name the class that defines a method: without a copy, a misspelt parameter of
    `SparseLinearRegression` would be one of a class that its users have never seen.
    """

    def add(cls: T) -> T:
        for name, method in vars(base).items():
            if isfunction(method) and name not in vars(cls) and (name == "__init__" or not name.startswith("_")):
                function = unwrap(method)
                copy = _copied(function, f"{cls.__qualname__}.{name}")
                setattr(cls, name, copy if method is function else fit_method(copy))
        return cls

    return add


def _copied(function: Any, qualname: str) -> Callable[..., Any]:
    """Return a copy of a function under another qualified name."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    update_wrapper(copy, function)
    del copy.__wrapped__  # type: ignore[attr-defined]
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, qualname
    return copy
