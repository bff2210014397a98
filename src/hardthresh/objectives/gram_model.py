"""Least squares from the products of the columns, without passes over the data."""

from __future__ import annotations

from math import log
from typing import Any, Self

import numpy as np

from hardthresh.arrays import all_finite, double
from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.losses import Squared

from .inputs import checked_ridge
from .shared import OneNumberPerRow, ScreenedExactly


def _examples() -> list[GramModel]:
    """Return a small model for the conformance tests: 30 rows of 12 columns, and a ridge on some."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    return [GramModel(X.T @ X / 30, X.T @ y / 30, float(y @ y) / 30, n=30, l2=np.linspace(0.0, 0.2, 12))]


@register("objective", "gram_model", _examples)
class GramModel(OneNumberPerRow, ScreenedExactly):
    r"""Least squares from sufficient statistics, which one pass over a table of any length computes.

    .. math:: f(w) = \tfrac{1}{2} w^\top G w - c^\top w + \tfrac{1}{2} s + \tfrac{1}{2} \sum_j \lambda_j w_j^2,
              \qquad G = \frac{1}{n} X^\top X, \quad c = \frac{1}{n} X^\top y, \quad s = \frac{1}{n} y^\top y

    which is :math:`\|Xw - y\|^2 / (2n)` plus the ridge. For weighted rows these means are weighted. For an intercept,
    append a column of ones to X, and declare its coordinate free in the constraint.

    Parameters
    ----------
    gram : array, shape (d, d)
        G, symmetric positive semidefinite.
    cross : array, shape (d,)
        c.
    square : float
        s, at least the largest decrease :math:`c^\top G^+ c`.
    n : int
        The number of rows, for information criteria.
    l2 : float or array, shape (d,)
        The ridge, >= 0.

    Raises
    ------
    InvalidInputError
        For shapes that do not go together, a matrix that is not symmetric or has a negative diagonal, and numbers that
        are not finite or out of range.

    Notes
    -----
    Statistics in single precision are converted to float64, and so are parameters and gradients: the condition number
    of G is that of X squared, and the cost does not depend on n. Digits that were lost when G was summed stay lost, so
    sum it in double precision.

    Cost: `evaluate` takes O(d s) operations for s non-zeros, and no data pass. Values are differences of numbers of the
    size of `square`, and have their rounding errors: centre targets and columns to reduce these.

    References
    ----------
    Sufficient statistics as the state of a fit: A. J. Miller (1992), Algorithm AS 274: least squares routines to
    supplement those of Gentleman, *Applied Statistics* 41, 458-478.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import GramModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20))
    >>> y = X[:, [3, 8]] @ [1.0, -2.0] + 0.1 * rng.standard_normal(1000)
    >>> f = GramModel(X.T @ X / 1000, X.T @ y / 1000, y @ y / 1000, n=1000)
    >>> minimize(f, Sparsity(2)).w[[3, 8]].round(2)
    array([ 1., -2.])
    """

    lower_bound = 0.0
    loss = Squared()
    convex = True

    def __init__(self, gram: Any, cross: Any, square: float, *, n: int = 1, l2: Any = 0.0) -> None:
        G, c = (np.asarray(part, dtype=np.float64) for part in (gram, cross))
        if c.ndim != 1 or c.size == 0 or G.shape != (c.size, c.size):
            raise InvalidInputError(f"gram has shape {G.shape} and cross {c.shape}; (d, d) and (d,) are needed")
        if not (all_finite(G) and all_finite(c)):
            raise InvalidInputError("gram and cross must be finite; these contain NaN or infinity")
        diagonal = G.diagonal()
        size = np.sqrt(np.abs(diagonal))
        limit = 1e-6 * np.outer(size, size)  # single precision has seven digits
        if not ((diagonal >= 0).all() and (np.abs(G - G.T) <= limit).all()):
            raise InvalidInputError("gram must be symmetric, with a diagonal >= 0; X.T @ X / n is")
        square = checked_number("square", square, least=0.0)
        ridge = np.full(c.size, double(checked_ridge(l2, c, c.size)))
        self._hold(G, c, square, ridge, float(checked_number("n", n, above=0.0)), None)

    def _hold(
        self,
        gram: np.ndarray,
        cross: np.ndarray,
        square: float,
        ridge: np.ndarray,
        n_examples: float,
        part: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        self._gram, self._cross, self._square, self._l2 = gram, cross, float(square), ridge
        self.n_examples = n_examples
        self._part = part  # of a model of some columns: the matrix of all, and which of its columns these are

    @classmethod
    def of(cls, gram: np.ndarray, cross: np.ndarray, square: float, ridge: np.ndarray, n: float) -> Self:
        """Return the model of statistics that are known to be sound, unchecked."""
        model = cls.__new__(cls)
        model._hold(gram, cross, square, ridge, n, None)
        return model

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of w, (d,)."""
        return tuple(self._cross.shape)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic, a mean over n examples."""
        return Traits(quadratic=True, n_rows=max(1, round(self.n_examples)))

    def value(self, w: np.ndarray, prediction: Any = None) -> float:
        """Return f(w)."""
        return self._value(w, self._times(w))

    def evaluate(self, w: np.ndarray, prediction: Any = None) -> Evaluation:
        """Return value and gradient at w."""
        image = self._times(w)
        return Evaluation(w, self._value(w, image), image - self._cross + self._l2 * w)

    def _times(self, w: np.ndarray) -> np.ndarray:
        """Return G w, from the columns of the non-zeros."""
        chosen = np.flatnonzero(w)
        image: np.ndarray = self._gram[:, chosen] @ np.asarray(w[chosen], dtype=np.float64)
        return image

    def _value(self, w: np.ndarray, image: np.ndarray) -> float:
        ridge = float(self._l2 @ (w * w)) if self._l2.any() else 0.0
        return float(0.5 * (w @ image) - self._cross @ w + 0.5 * self._square) + 0.5 * ridge

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding: 16 units of the sums it comes from."""
        size = np.abs(at.point)
        terms = float(size @ np.abs(self._times(at.point)) + np.abs(self._cross) @ size) + self._square
        return UNITS * float(np.finfo(np.float64).eps) * (terms + 0.5 * float(self._l2 @ (size * size)))

    def curvature(self, at: Evaluation, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian times a direction."""
        image: np.ndarray = self._times(direction) + self._l2 * direction
        return image

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return G plus the ridge."""
        return self._gram + np.diag(self._l2)

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return its diagonal."""
        diagonal: np.ndarray = self._gram.diagonal() + self._l2
        return diagonal

    def cross_hessian(self, at: Evaluation, other: GramModel) -> np.ndarray:
        """Return the block of G between the columns of this model and those of another part of the same."""
        assert self._part is not None  # both were made by `columns`
        assert other._part is not None
        (gram, rows), (wider, columns) = self._part, other._part
        # One may have been asked for later, of more columns: those that were there before have the same places.
        crossed: np.ndarray = max(gram, wider, key=len)[np.ix_(rows, columns)]
        return crossed

    def columns(self, indices: np.ndarray) -> Self:
        """Return the model of some columns, by increasing index."""
        gram, own = (self._gram, np.arange(self._cross.size)) if self._part is None else self._part
        chosen = own[indices]
        model = type(self).__new__(type(self))
        model._hold(
            gram[np.ix_(chosen, chosen)],
            self._cross[indices],
            self._square,
            self._l2[indices],
            self.n_examples,
            (gram, chosen),
        )
        return model

    def recession(self, at: Evaluation, indices: np.ndarray) -> None:
        """Return None: a quadratic that is bounded below has a minimiser."""

    def double(self) -> Self:
        """Return the model, which is in double precision."""
        return self

    def with_ridge(self, l2: Any) -> Self:
        """Return the same model with another ridge: a number, or an array of shape (d,).

        Raises
        ------
        InvalidInputError
            For a ridge that is negative or not finite, or of another shape.
        """
        ridge = np.full(self._cross.size, double(checked_ridge(l2, self._cross, self._cross.size)))
        return self.of(self._gram, self._cross, self._square, ridge, self.n_examples)

    def with_examples(self, count: float) -> Self:
        """Return the same objective with another number of examples, which changes information criteria but not f."""
        return self.of(self._gram, self._cross, self._square, self._l2, float(count))

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood of normal noise with the best variance, without the ridge."""
        mean = at.value - 0.5 * float(self._l2 @ (at.point * at.point))
        return self.n_examples * log(2.0 * mean) if mean > 0.0 else -np.inf

    def row_ridge(self) -> np.ndarray:
        """Return the ridge of each coordinate, shape (d,)."""
        return self._l2

    def mean_dispersion(self, at: Evaluation) -> float:
        """Return the mean square of the residuals at a point."""
        w = np.asarray(at.point, dtype=np.float64)
        return 2.0 * (at.value - 0.5 * float(self._l2 @ (w * w)))

    def metered(self, meter: Meter) -> Self:
        """Return the same objective: it makes no data passes."""
        return self
