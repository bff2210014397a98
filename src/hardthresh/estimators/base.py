"""The base class of the estimators: settings of a run, its solver and seed; and validated weights and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any, ClassVar, Protocol

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from hardthresh.arrays import all_finite, as_floating, double, to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.checking import seed_of as seed_of
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value, numbered, warn
from hardthresh.core.objective import Objective
from hardthresh.core.registry import lookup, registered
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.core.typing import Array
from hardthresh.core.typing import is_integer as is_integer
from hardthresh.core.typing import is_real as is_real
from hardthresh.solvers import choose_solver, minimize

from .callbacks import CallbackSupportMixin
from .table import Table
from .tensors import check_readable

_FAR = 1e6
"""A mean of so many deviations is warned of: six of the sixteen digits are lost in a product and again in a square."""


SAVES_MEMORY = (
    "float32 takes half as much, a memory map of float32 or float64, as from numpy.load(path, mmap_mode='r'), is not "
    "copied, and what is needed besides grows with the number of rows"
)
"""The end of that message for models that take dense tables."""


class Solvable(Protocol):
    """A problem for a solver: an objective and a constraint."""

    @property
    def objective(self) -> Objective:
        """The objective."""

    @property
    def constraint(self) -> Constraint:
        """The constraint."""


class Scaled(Protocol):
    """Columns that are centred and scaled."""

    @property
    def mean(self) -> Array:
        """The mean of each column."""

    @property
    def inverse_scale(self) -> Array:
        """The factor of each column; 0 for a constant one."""


class ThresholdingEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators that minimise an objective over a constraint. See the concrete classes."""

    _default_alpha: ClassVar[float] = 0.0
    _useless: ClassVar[str] = "cannot be chosen"
    """The end of the warning about constant columns."""
    _saves_memory: ClassVar[str] = "float32 takes half as much"
    """The end of the message about too little memory."""
    _names_in_messages: Sequence[str] | None = None
    """The names of the columns in messages, if X is a matrix without names."""

    alpha: float | None
    solver: str | Solver
    tol: float
    max_iter: int
    random_state: Any
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _check_settings(self) -> None:
        """Check the settings that all estimators share."""
        alpha = getattr(self, "alpha", None)  # the estimators that compare ridges have `alphas`
        if not (alpha is None or (is_real(alpha) and 0 <= alpha < np.inf)):
            raise InvalidInputError(f"alpha must be None or a finite number >= 0, got {format_value(alpha)}")
        if not (is_real(self.tol) and self.tol > 0):
            raise InvalidInputError(f"tol must be > 0, got {format_value(self.tol)}")
        if not (is_integer(self.max_iter) and self.max_iter >= 1):
            raise InvalidInputError(f"max_iter must be an integer >= 1, got {format_value(self.max_iter)}")
        for name in ("fit_intercept", "standardize", "positive", "warm_start"):
            if not isinstance(getattr(self, name, False), bool | np.bool_):
                raise InvalidInputError(f"{name} must be True or False, got {format_value(getattr(self, name))}")

    def _check_tiny_columns(self, columns: Scaled, table: Table) -> None:
        """Check that the squares of no column underflow, and that no coefficient can overflow.

        A variance that underflows, computed in double precision, has no digits. Targets that are a multiple of one
        column of unit variance have coefficients of their own size; those of several correlated columns may be larger.
        """
        inverse_scale, dtype = double(columns.inverse_scale), numpy_dtype(table.X)
        constant = np.flatnonzero(inverse_scale == 0)
        tiny = [*constant[table.are_tiny(constant)], *np.flatnonzero(inverse_scale > _SMALLEST_DEVIATION**-1)]
        if tiny:
            raise InvalidInputError(
                f"the entries of {self._feature_name(min(tiny))} are so small that their squares underflow; rescale it"
            )
        limit = 1e-3 * float(np.finfo(dtype).max)
        largest = max(1.0, table.largest_target())
        j = int(np.argmax(inverse_scale))
        if float(inverse_scale[j]) * largest > limit:
            raise InvalidInputError(
                f"the entries of {self._feature_name(j)} are so small that its coefficient may leave the range of "
                f"{np.dtype(dtype)}; rescale it, or y"
            )

    def _warn_useless_columns(self, columns: Scaled, X: Any) -> None:
        """Warn of columns that are constant, or too far from zero for a sparse matrix."""
        inverse_scale = to_numpy(columns.inverse_scale)
        constant = np.flatnonzero(inverse_scale == 0)
        if constant.size:
            carry = "carries" if constant.size == 1 else "carry"
            warn(f"{self._listed(constant, 'constant')} {carry} no information and {self._useless}")
        far = np.flatnonzero(np.abs(to_numpy(columns.mean)) * inverse_scale > _FAR)
        if far.size and issparse(X):
            warn(
                f"{self._listed(far, 'sparse')} {'has a mean' if far.size == 1 else 'have means'} a million times "
                f"{'its deviation' if far.size == 1 else 'their deviations'}, which costs digits "
                "because sparse columns are not centred; subtract a constant from them first, or pass dense data",
            )

    def _listed(self, columns: np.ndarray, kind: str) -> str:
        plural, names = "" if columns.size == 1 else "s", self._column_names()
        shown = [str(j) if names is None else format_value(names[j]) for j in columns[:5]]
        some = ", ".join([*shown, "..."] if columns.size > 5 else shown)
        what = some if names is not None else f"feature{plural} {some}, counted from 0"
        return f"{columns.size} {kind} column{plural} ({what})"

    def _feature_name(self, j: int) -> str:
        """Return the name of a feature in messages."""
        names = self._column_names()
        return numbered("feature", j) if names is None else str(names[j])

    def _column_names(self) -> Sequence[str] | None:
        """Return the names of the columns in messages; None if they have none."""
        names: Sequence[str] | None = getattr(self, "feature_names_in_", self._names_in_messages)
        return names

    def _checked_budget(self, name: str, value: Any, most: int, what: str, otherwise: str = "None") -> int:
        """Return a validated number of features, groups, directions or edges.

        The message calls the limit `what`, and `otherwise` what else the setting may be.
        """
        public = {entry.cls.__name__ for entry in registered("estimator").values()}
        names = [cls.__name__ for cls in type(self).__mro__]
        choosing = next((f"{own}CV" for own in names if f"{own}CV" in public), None)
        if choosing is not None and choosing not in names and isinstance(value, Iterable):
            raise InvalidInputError(
                f"{name} must be an integer or {otherwise}, got {format_value(value)}; {choosing} chooses it by "
                "cross-validation"
            )
        return checked_integer(name, value, 0, most, what)

    def _ridge(self) -> float:
        return self._default_alpha if self.alpha is None else float(self.alpha)

    def _solver(self, problem: Solvable) -> Solver:
        if isinstance(self.solver, Solver):
            return self.solver
        if self.solver == "auto":
            return choose_solver(problem.objective, problem.constraint, tol=self.tol)
        if not isinstance(self.solver, str):
            raise InvalidInputError(f'solver must be "auto", a name or a Solver, got {format_value(self.solver)}')
        solver = lookup("solver", self.solver)
        settings = signature(solver).parameters
        asked = [name for name, setting in settings.items() if setting.default is setting.empty]
        if asked:
            raise InvalidInputError(
                f"solver={format_value(self.solver)} needs settings of its own ({', '.join(asked)}); give the solver "
                f"itself, as {solver.__name__}({asked[0]}=...)"
            )
        named: Solver = solver(tol=self.tol) if "tol" in settings else solver()
        return named

    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _solve(self, problem: Solvable, w0: Any, seed: int, **options: Any) -> Result:
        result = minimize(
            problem.objective,
            problem.constraint,
            self._solver(problem),
            w0,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed,
            **options,
        )
        if result.status is Status.INTERRUPTED:  # the best iterate is not the model that was asked for
            raise KeyboardInterrupt
        return result


_SMALLEST_DEVIATION = float(np.finfo(np.float64).tiny) ** 0.5  # smaller ones have squares that underflow


def per_row(x: Any, X: Any, name: str, outputs: tuple[int, ...] = ()) -> np.ndarray | None:
    """Return one number per row, or one for each of its outputs, in the precision of X; a single one stands for all."""
    return None if x is None else in_precision(_finite_rows(x, X, name, outputs), X, name)


def row_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Return validated weights of the rows of X, in its precision; only their ratios need be in its range."""
    if sample_weight is None:
        return None
    weights = _finite_rows(sample_weight, X, "sample_weight")
    if np.any(weights < 0) or not np.any(weights > 0):
        found = (
            f"a negative weight: {_first(weights < 0, weights, 'sample_weight')}" if np.any(weights) else "only zeros"
        )
        raise InvalidInputError(f"sample_weight must be non-negative with a positive entry, found {found}")
    largest, limits = np.max(weights), np.finfo(numpy_dtype(X))
    return in_precision(weights if limits.tiny <= largest <= limits.max else weights / largest, X, "sample_weight")


def in_precision(x: np.ndarray, X: Any, name: str) -> np.ndarray:
    """Return finite numbers in the precision of X, if its range has them."""
    return np.asarray(as_floating(as_numbers(x, name), np.empty(0, dtype=numpy_dtype(X)), name))


def as_numbers(x: np.ndarray, name: str) -> np.ndarray:
    """Return an array of numbers, which may be given as text."""
    if x.dtype.kind in "fiub":
        return x
    if x.dtype.kind in "mM":
        what, such = ("dates", "days since the first one") if x.dtype.kind == "M" else ("durations", "days")
        raise InvalidInputError(f"{name} holds {what}; turn them into numbers, such as {such}")
    try:
        return x.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{name}: {error}; numbers are needed") from error


def _finite_rows(x: Any, X: Any, name: str, outputs: tuple[int, ...] = ()) -> np.ndarray:
    """Return one finite number per row, or one for each of its outputs, in the precision in which it was given."""
    check_readable(x, name)
    rows: np.ndarray = np.asarray(to_numpy(x) if is_array_api_obj(x) else x)
    if rows.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be numeric, got dtype {rows.dtype}")
    shape = (X.shape[0], *outputs)
    rows = np.full(shape, rows) if rows.ndim == 0 else rows
    if rows.shape != shape:
        each = "one number per row of X" + " and output" * len(outputs)
        raise InvalidInputError(f"{name} has shape {rows.shape}; {shape} is needed, {each}")
    if not np.all(np.isfinite(rows)):
        raise InvalidInputError(f"{name} contains NaN or infinity: {_first(~np.isfinite(rows), rows, name)}")
    return rows


def _first(wrong: np.ndarray, rows: np.ndarray, name: str) -> str:
    """Return the first wrong one of some numbers, as in a message."""
    place = np.unravel_index(np.argmax(wrong), wrong.shape)
    return f"{name}[{', '.join(str(int(i)) for i in place)}] is {format_value(rows[place])}"


def known_finite(X: Any) -> bool:
    """Return whether X is known to be finite, so that scikit-learn need not check it on one thread."""
    return isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64) and all_finite(X)


def numpy_dtype(X: Any) -> type[np.float32] | type[np.float64]:
    """Return NumPy's dtype of the precision of X."""
    is_single = X.dtype == np.float32 if isinstance(X.dtype, np.dtype) else "float32" in str(X.dtype)
    return np.float32 if is_single else np.float64
