"""The pseudo-likelihood of a Gaussian graphical model, a function of the precision matrix."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import all_finite, as_floating, namespace, symmetric_part, times_transpose, where_true
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, BaseObjective, Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .inputs import checked_ridge, mean_weights


def _examples() -> list[GraphicalModel]:
    """Return small problems for the conformance tests: 30 examples of 4 columns."""
    X = np.random.default_rng(0).standard_normal((30, 4)) @ np.array(
        [[1.0, 0.5, 0.0, 0.0], [0.0, 1.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )
    return [GraphicalModel(X), GraphicalModel(X, l2=0.1)]


@register("objective", "graphical_model", _examples)
class GraphicalModel(BaseObjective):
    r"""The negative pseudo-log-likelihood of a precision matrix, up to constants.

    .. math:: F(W) = \sum_{i=1}^p \Bigl( -\log w_{ii} + \frac{w_i^\top S w_i}{w_{ii}} \Bigr)
                     + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad S = \sum_t \omega_t x_t x_t^\top, \quad \omega_t = \frac{s_t}{\sum_t s_t}

    with the rows :math:`w_i` of a symmetric W. F is convex, a mean over the examples, and infinite if a diagonal entry
    is not positive.

    Parameters
    ----------
    X : array, shape (n, p)
        One example in each row. Columns are neither centred nor scaled: do so first.
    sample_weight : array, shape (n,), optional
        s >= 0; an example of weight 0 is ignored.
    l2 : float
        Ridge :math:`\lambda \ge 0` on all entries; the paper's :math:`\lambda_2` is :math:`\lambda / 2`.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, an X that is not a matrix, columns that are zero in every example, negative weights or
        ridge.

    Notes
    -----
    The gradient is that on symmetric matrices, :math:`(G + G^\top)/2` for the partial derivatives G. Cost: `value`
    takes one data pass (X times W), `evaluate` and `curvature` two. With n > p the examples are replaced by the
    triangular factor of S, which does not change F; those of a mini-batch (`rows`) are not, because the factorisation
    would cost more than the few products. Solvers start at the minimum over diagonal matrices, :math:`w_{ii} =
    1/S_{ii}`.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic IHT*, equations 48 and 49, where X must be n
    x p and the norm Frobenius's; Besag (1975).

    Examples
    --------
    >>> import numpy as np
    >>> f = GraphicalModel(np.array([[1.0, 1.0], [1.0, -1.0]]))
    >>> f.evaluate(2 * np.eye(2)).gradient.round(6)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    def __init__(self, X: Any, *, sample_weight: Any = None, l2: float = 0.0) -> None:
        X = as_floating(X, name="X")
        if X.ndim != 2 or 0 in X.shape:
            raise InvalidInputError(f"X must be a matrix with examples as rows, got shape {tuple(X.shape)}")
        if not all_finite(X):
            raise InvalidInputError("X contains NaN or infinity; remove or impute these entries first")
        self.X, self.weights = X, mean_weights(sample_weight, X[:, 0], X.shape[0])
        self.l2 = float(checked_ridge(float(l2), X[:, 0]))
        self.shape = (X.shape[1], X.shape[1])
        self._meter: Meter | None = None
        self._share = 1.0  # of the data that a product with them reads
        self._check_columns()
        self._factor = _triangle(self._weighted_rows())

    def _check_columns(self) -> None:
        """Raise `InvalidInputError` for columns of zeros, and if the squares of mean squares leave the range."""
        xp = namespace(self.X)
        with np.errstate(over="ignore", under="ignore"):
            squares = xp.sum(self._weighted_rows() ** 2, axis=0)
        limits = xp.finfo(self.X.dtype)
        least, most = float(limits.smallest_normal) ** 0.5, float(limits.max) ** 0.5
        outside = ~((squares > least) & (squares < most))
        if bool(xp.any(outside)):
            j = int(where_true(outside)[0])
            if not bool(xp.any((self.weights > 0) & (self.X[:, j] != 0))):
                raise InvalidInputError(f"{numbered('column', j)} of X is zero in every example; leave it out")
            how = "large" if float(squares[j]) > 1.0 else "small"
            raise InvalidInputError(
                f"the entries of {numbered('column', j)} of X are too {how} for {self.X.dtype}; rescale it"
            )

    def _weighted_rows(self) -> Array:
        """Return a factor R of S = R'R that costs nothing: the examples times the roots of their weights."""
        return self.X * namespace(self.X).sqrt(self.weights)[:, None]

    def _with(self, **changes: Any) -> GraphicalModel:
        other = GraphicalModel.__new__(GraphicalModel)
        vars(other).update(vars(self), **changes)
        return other

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Symmetric: runs are refused on sets that hold other matrices."""
        return Traits(symmetric=True, n_rows=int(self.X.shape[0]))

    def rows(self, indices: Array) -> GraphicalModel:
        """Return the model of some examples: drawn at random, an unbiased estimate of this one.

        Raises
        ------
        InvalidInputError
            If no rows are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row, got none")
        xp = namespace(self.X)
        share = self.X.shape[0] / indices.shape[0]
        some = self._with(
            X=xp.take(self.X, indices, axis=0),
            weights=share * xp.take(self.weights, indices, axis=0),
            _share=self._share / share,
        )
        some._factor = some._weighted_rows()
        return some

    def metered(self, meter: Meter) -> GraphicalModel:
        """Return the same model, adding its data passes to a meter."""
        return self._with(_meter=meter)

    def zeros(self) -> Array:
        """Return W = 0, where F is infinite."""
        xp = namespace(self.X)
        return xp.zeros(self.shape, dtype=self.X.dtype, device=device(self.X))

    def null_point(self) -> Array:
        """Return the minimiser among diagonal matrices (of F without the ridge)."""
        xp = namespace(self.X)
        return xp.eye(self.shape[0], dtype=self.X.dtype, device=device(self.X)) / xp.sum(
            self._factor * self._factor, axis=0
        )

    def predict(self, W: Array) -> Array:
        """Return R W', whose squared columns sum to the quadratic forms."""
        self._count(1.0)
        return times_transpose(self._factor, W)

    def value(self, W: Array, prediction: Array | None = None) -> float:
        """Return F(W)."""
        xp = namespace(W)
        diagonal = xp.linalg.diagonal(W)
        if not bool(xp.all(diagonal > 0)):
            return inf
        Z = self.predict(W) if prediction is None else prediction
        value = float(xp.sum(xp.sum(Z * Z, axis=0) / diagonal - xp.log(diagonal)))
        return value + 0.5 * self.l2 * float(xp.sum(W * W)) if self.l2 else value

    def evaluate(self, W: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and symmetric gradient at W; infinite, with a gradient of NaN, outside the domain."""
        xp = namespace(W)
        diagonal = xp.linalg.diagonal(W)
        if not bool(xp.all(diagonal > 0)):
            return Evaluation(W, inf, W + xp.nan)
        Z = self.predict(W) if prediction is None else prediction
        forms = xp.sum(Z * Z, axis=0)
        gradient = self._symmetric_product(Z * (2.0 / diagonal), -1.0 / diagonal - forms / diagonal**2)
        return Evaluation(W, self.value(W, Z), gradient + self.l2 * W if self.l2 else gradient, Z)

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding: 16 units of the terms, which cancel."""
        xp = namespace(at.point)
        diagonal = xp.linalg.diagonal(at.point)
        Z = self.predict(at.point) if at.prediction is None else at.prediction
        total = float(xp.sum(xp.sum(Z * Z, axis=0) / diagonal + xp.abs(xp.log(diagonal))))
        return UNITS * float(xp.finfo(diagonal.dtype).eps) * (total + 0.5 * self.l2 * float(xp.sum(at.point**2)))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian among symmetric matrices at an evaluated point times a symmetric direction."""
        xp = namespace(direction)
        a, da = xp.linalg.diagonal(at.point), xp.linalg.diagonal(direction)
        Z = self.predict(at.point) if at.prediction is None else at.prediction
        turn = self.predict(direction) - Z * (da / a)
        diagonal = (da - 2.0 * xp.sum(Z * turn, axis=0)) / a**2
        image = self._symmetric_product(turn * (2.0 / a), diagonal)
        return image + self.l2 * direction if self.l2 else image

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return what `curvature` along a symmetric direction amounts to, for half of its cost."""
        xp = namespace(direction)
        a, da = xp.linalg.diagonal(at.point), xp.linalg.diagonal(direction)
        Z = self.predict(at.point) if at.prediction is None else at.prediction
        turn = self.predict(direction) - Z * (da / a)
        along = float(xp.sum(2.0 * xp.sum(turn * turn, axis=0) / a + (da / a) ** 2))
        return along + self.l2 * float(xp.sum(direction * direction))

    def _symmetric_product(self, Z: Array, diagonal: Array) -> Array:
        """Return the symmetric part of Z'R, with something added to its diagonal."""
        self._count(1.0)
        return symmetric_part(Z.T @ self._factor, diagonal)

    def _count(self, passes: float) -> None:
        if self._meter is not None:
            self._meter.add(passes * self._share)


def _triangle(R: Array) -> Array:
    """Return the triangular factor of R'R, where that has fewer rows than R, else R itself."""
    return namespace(R).linalg.qr(R, mode="reduced")[1] if R.shape[0] > R.shape[1] else R
