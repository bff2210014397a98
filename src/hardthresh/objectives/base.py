"""What objectives that are a weighted mean over the rows of a design share: checked inputs, mini-batches, the meter."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from array_api_compat import device

from hardthresh.arrays import all_finite, as_floating, namespace
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, BaseObjective
from hardthresh.core.typing import Array, is_integer
from hardthresh.designs import Design, as_design
from hardthresh.losses import Loss


class MeanOverRows(BaseObjective):
    """Base of the objectives that are a weighted mean over the rows of a design. See the concrete classes."""

    design: Design
    weights: Array
    """What each row counts in the mean, shape (n,): their sum is 1 but for a mini-batch."""

    _by_row: ClassVar[tuple[str, ...]]
    """The attributes that have one entry for each row, besides the weights; None is allowed."""

    def rows(self, indices: Array) -> Self:
        """Return the model of some examples: drawn at random, an unbiased estimate of this one.

        The mean is taken over all n rows as if the m given ones stood for them: weights are multiplied by n / m.

        Raises
        ------
        InvalidInputError
            If no rows are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row, got none")
        xp = namespace(self.weights)
        given = {name: getattr(self, name) for name in ("weights", *self._by_row)}
        some = {name: None if x is None else xp.take(x, indices, axis=0) for name, x in given.items()}
        some["weights"] = some["weights"] * (self.design.shape[0] / indices.shape[0])
        return self._with(self.design.rows(indices), **some)

    def metered(self, meter: Meter) -> Self:
        """Return the same model, adding its data passes to a meter."""
        return self._with(self.design.metered(meter))

    def _with(self, design: Design, **changes: Any) -> Self:
        """Return a model that differs in some parts, which are known to fit."""
        model = type(self).__new__(type(self))
        vars(model).update(vars(self), design=design, **changes)
        return model


def checked_design(X: Any) -> Design:
    """Return the design of some data with at least one row and one column."""
    design = as_design(X)
    if 0 in design.shape:
        raise InvalidInputError(f"X has shape {design.shape}; at least one example and one column are needed")
    return design


def checked_targets(y: Any, like: Array, n: int, name: str, *, matrix: bool = False) -> Array:
    """Return one finite number for each of n rows, or, for a matrix, one row of numbers."""
    y = as_floating(y, like, name)
    if matrix and (y.ndim != 2 or y.shape[0] != n or y.shape[1] == 0):
        raise InvalidInputError(f"{name} has shape {tuple(y.shape)}; ({n}, q) is needed, one row per row of X")
    if not matrix and tuple(y.shape) != (n,):
        raise InvalidInputError(f"{name} has shape {tuple(y.shape)}; ({n},) is needed, one number per row of X")
    if not all_finite(y):
        raise InvalidInputError(f"{name} contains NaN or infinity; remove or impute these entries first")
    return y


def check_squares(x: Array, name: str) -> None:
    """Refuse numbers, one for each row, a sum of whose squares overflows."""
    xp = namespace(x)
    largest = float(xp.max(xp.abs(x)))
    if not largest < float(xp.finfo(x.dtype).max) ** 0.5 / x.shape[0]:
        raise InvalidInputError(
            f"the squares of {name} leave the range of {x.dtype} (the largest is {largest:.3g}); rescale it"
        )


def mean_weights(sample_weight: Any, like: Array, n: int) -> Array:
    """Return what each of n rows counts in the mean: weights whose sum is 1 but for the rounding of each."""
    xp = namespace(like)
    if sample_weight is None:
        return xp.full((n,), 1.0 / n, dtype=like.dtype, device=device(like))
    weights = checked_targets(sample_weight, like, n, "sample_weight")
    if bool(xp.any(weights < 0)) or not bool(xp.any(weights > 0)):
        raise InvalidInputError(
            "sample_weight must be non-negative with a positive entry; negative or all-zero weights given"
        )
    double = xp.astype(weights, xp.float64)
    double = double / xp.max(double)  # the sum of large ones may overflow
    return xp.astype(double / xp.sum(double), like.dtype)


def loss_rounding(weights: Array, loss: Loss, y: Array, u: Array, ridge: float) -> float:
    r"""Return how much of a mean loss plus a ridge may be rounding.

    .. math:: 16 \, \epsilon \Bigl( r + \sum_i \omega_i \bigl( |\ell(y_i, u_i)| + |\ell'(y_i, u_i) u_i| \bigr) \Bigr)

    To first order, that is what rounding of the predictions u does to the losses, and that of the losses to the mean.
    For a matrix of predictions, one row for each weight, the losses of a row are added up.
    """
    xp = namespace(u)
    losses, slopes = loss.value_and_gradient(y, u)
    terms = xp.abs(losses) + xp.abs(slopes * u)
    total = float(xp.sum(weights * (terms if terms.ndim == 1 else xp.sum(terms, axis=1))))
    return UNITS * float(xp.finfo(u.dtype).eps) * (total + ridge)


def checked_ridge(l2: Any, like: Array, d: int | None = None) -> Array:
    """Return a ridge: one finite number >= 0, or, where d is given, one for each of d coordinates."""
    xp = namespace(like)
    l2 = xp.asarray(l2, dtype=like.dtype, device=device(like))
    if tuple(l2.shape) not in ((), (d,)):
        needed = "a number" if d is None else f"a number or ({d},)"
        raise InvalidInputError(f"l2 has shape {tuple(l2.shape)}; {needed} is needed")
    if not bool(xp.all(l2 >= 0)) or not all_finite(l2):
        raise InvalidInputError("l2 must be finite and >= 0 everywhere")
    return l2


def total_weight(weights: Array) -> float:
    """Return the sum of non-negative weights, infinite if that overflows."""
    xp = namespace(weights)
    largest = float(xp.max(weights))
    return largest * float(xp.sum(xp.astype(weights, xp.float64) / largest))


def matrix_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the two sides of a matrix, checked."""
    sides: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else ()
    if len(sides) != 2 or not all(is_integer(side) and side >= 1 for side in sides):
        raise InvalidInputError(f"shape must be two integers (p, q), each >= 1, got {format_value(shape)}")
    return int(sides[0]), int(sides[1])
