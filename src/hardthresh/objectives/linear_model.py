"""A design, a loss and targets: the objective of every generalised linear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import as_double, as_floating, double, gather, move, namespace, scatter, to_numpy, where_true
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.registry import lookup, register, registered
from hardthresh.core.typing import Array
from hardthresh.losses import Loss

from .base import (
    MeanOverRows,
    check_squares,
    checked_design,
    checked_ridge,
    checked_targets,
    loss_rounding,
    mean_weights,
    total_weight,
)
from .recession import has_no_recession, recession_direction

_MANY = 1 << 23  # entries of all the gradients computed by one product


def _examples() -> list[LinearModel]:
    """Return small models for the conformance tests: 30 examples, 12 columns, and every registered loss."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    weights = rng.integers(0, 3, 30).astype(float)
    models = [
        LinearModel(X, y),
        LinearModel(X, y, sample_weight=weights, offset=rng.standard_normal(30), l2=0.1),
        LinearModel(X, (y > 0).astype(float), loss="logistic", l2=rng.uniform(0, 1, 12)),
    ]
    u = 0.3 * (X[:, 3] - X[:, 8])
    others = [entry.cls() for name, entry in registered("loss").items() if name not in ("squared", "logistic")]
    return models + [LinearModel(X, loss.example_target(u, rng), loss=loss, l2=0.1) for loss in others]


@register("objective", "linear_model", _examples)
class LinearModel(MeanOverRows):
    r"""The mean loss of a linear predictor.

    .. math:: f(w) = \sum_i \omega_i \, \ell(y_i, x_i^\top w + o_i) + \tfrac{1}{2} \sum_j \lambda_j w_j^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(w) = \|Xw - y\|^2 / (2n)`, and for ``loss="logistic"`` the mean log-loss.

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, d), or Design
        Data, one example per row. float32 is computed in float32.
    y : array, shape (n,)
        Targets in the domain of the loss; computed, like all arrays here, in the precision of X.
    loss : str or Loss
        "squared", "logistic", "poisson", or an instance.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero; weight 2 is the same as a row given twice, weight 0 as a row left out.
    offset : array, shape (n,), optional
        o, a known part of the prediction; finite.
    l2 : float or array, shape (d,)
        Ridge :math:`\lambda \ge 0` on the mean loss; an array sets it coordinate by coordinate (0 for an intercept).

    Raises
    ------
    InvalidInputError
        For NaN or infinity, lengths that do not match, negative weights or ridge, targets outside the loss's domain.

    Notes
    -----
    f is convex where the loss is, and bounded below by `lower_bound`.

    Cost of `evaluate`: one data pass, plus s/d of a pass for the prediction at a w with s of d entries non-zero.
    `curvature` costs the same; a model of some `columns` or `rows` costs their share. On an operator every product is a
    whole pass; see `hardthresh.designs.OperatorDesign`.

    References
    ----------
    P. McCullagh and J. A. Nelder (1989), *Generalized Linear Models*, Chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> f = LinearModel(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0]))
    >>> f.evaluate(np.zeros(2)).gradient
    array([-0.5, -2. ])
    """

    _by_row = ("y", "offset")

    n_examples: float
    """How many examples the weights stand for: their sum."""

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Loss = "squared",
        *,
        sample_weight: Any = None,
        offset: Any = None,
        l2: Any = 0.0,
    ) -> None:
        self.design = checked_design(X)
        n, d = self.design.shape
        like = self.design.zeros(1)
        self.loss: Loss = lookup("loss", loss)() if isinstance(loss, str) else loss
        self.y = checked_targets(y, like, n, "y")
        self.loss.check_targets(self.y)
        self.weights = mean_weights(sample_weight, like, n)
        self.n_examples = float(n) if sample_weight is None else total_weight(as_floating(sample_weight, like))
        self.offset = None if offset is None else checked_targets(offset, like, n, "offset")
        if self.offset is not None:
            check_squares(self.offset, "offset")
        self.l2 = checked_ridge(l2, like, d)
        self.lower_bound = self.loss.lower_bound
        if not self.design.has_columns:
            self.columns = None  # type: ignore[assignment, method-assign]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of w, (d,)."""
        return (self.design.shape[1],)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic if the loss is."""
        return Traits(quadratic=self.loss.quadratic, n_rows=self.design.shape[0])

    def attains_bound(self) -> bool:
        """Return whether every loss has a finite minimiser, or every coordinate a ridge; else `recession` may tell."""
        xp = namespace(self.l2)
        return bool(xp.all(self.l2 > 0)) or not bool(xp.any(self.weights * self.loss.recession(self.y) != 0))

    def zeros(self) -> Array:
        """Return w = 0."""
        return self.design.zeros(self.design.shape[1])

    def predict(self, w: Array) -> Array:
        """Return Xw + offset, shape (n,)."""
        u = self.design.predict(w)
        return u if self.offset is None else u + self.offset

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w); `prediction`, if the caller has it, saves computing it again."""
        u = self.predict(w) if prediction is None else prediction
        return self._mean(self.loss.value(self.y, u), w)

    def _mean(self, losses: Array, w: Array) -> float:
        """Return the mean of losses, plus the ridge at w."""
        xp = namespace(w)
        return float(xp.sum(self.weights * losses)) + 0.5 * float(xp.sum(self.l2 * w * w))

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at w; `prediction`, if the caller has it, saves computing it again."""
        u = self.predict(w) if prediction is None else prediction
        losses, slopes = self.loss.value_and_gradient(self.y, u)
        gradient = self.design.pullback(self.weights * slopes) + self.l2 * w
        return Evaluation(w, self._mean(losses, w), gradient, u)

    def evaluate_many(self, points: Sequence[Array]) -> list[Evaluation]:
        """Return value and gradient at several points: with one product for all of them, counted as a pass each."""
        if len(points) < 2:
            return [self.evaluate(w) for w in points]
        xp = namespace(*points)
        evaluations = []
        size = max(1, _MANY // self.design.shape[1])
        for start in range(0, len(points), size):
            some = points[start : start + size]
            predictions = [self.predict(w) for w in some]
            losses, slopes = zip(*(self.loss.value_and_gradient(self.y, u) for u in predictions), strict=True)
            pulled = self.design.pullback(xp.stack([self.weights * slope for slope in slopes], axis=1))
            for i, (w, u) in enumerate(zip(some, predictions, strict=True)):
                evaluations.append(Evaluation(w, self._mean(losses[i], w), pulled[:, i] + self.l2 * w, u))
        return evaluations

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding.

        See `loss_rounding`; the ridge is a sum of squares, which rounds like its terms.
        """
        ridge = 0.5 * float(namespace(at.point).sum(self.l2 * at.point * at.point))
        return loss_rounding(self.weights, self.loss, self.y, at.prediction, ridge)

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return it at an evaluated point, without the ridge, up to a constant of the data; `n_examples` is n."""
        mean = float(namespace(self.y).sum(self.weights * self.loss.value(self.y, at.prediction)))
        return self.loss.minus_twice_log_likelihood(mean, self.n_examples)

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        bend = self.weights * self.loss.curvature(self.y, at.prediction)
        return self.design.pullback(bend * self.design.predict(direction)) + self.l2 * direction

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction: s/d of a data pass for a direction with s of d entries non-zero."""
        xp = namespace(direction)
        image = self.design.predict(direction)
        bend = self.weights * self.loss.curvature(self.y, at.prediction)
        return float(xp.sum(bend * image * image)) + float(xp.sum(self.l2 * direction * direction))

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian at an evaluated point, shape (d,): one data pass.

        Raises
        ------
        InvalidInputError
            If the squares of a column leave the range of its dtype.
        """
        bend = self.weights * self.loss.curvature(self.y, at.prediction)
        squares = self.design.pullback_squares(bend)
        self._check_squares(squares, bend)
        return squares + self.l2

    def _check_squares(self, squares: Array, bend: Array) -> None:
        """Refuse columns whose squares overflow, or vanish where the column does not."""
        xp = namespace(squares)
        outside = ~xp.isfinite(squares)
        if not bool(xp.any(outside)) and not bool(xp.all(squares > 0)):
            zero = where_true(squares == 0)
            tilt = bend * xp.linspace(1.0, 2.0, bend.shape[0], dtype=bend.dtype, device=device(bend))
            outside = scatter(xp.abs(self.design.columns(zero).pullback(tilt)), zero, squares.shape[0]) > 0
        if bool(xp.any(outside)):
            j = int(xp.argmax(xp.astype(outside, xp.int8)))
            how = "overflow" if bool(xp.isinf(squares[j])) or bool(xp.isnan(squares[j])) else "underflow"
            raise InvalidInputError(f"the squares of {numbered('column', j)} of X {how} {squares.dtype}; rescale it")

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian at an evaluated point as a (d, d) matrix; for models of few columns."""
        gram = self.design.gram(self.weights * self.loss.curvature(self.y, at.prediction))
        ridge = namespace(gram).eye(gram.shape[0], dtype=gram.dtype, device=device(gram)) * self.l2
        return gram + ridge

    def recession(self, at: Evaluation, indices: Array) -> Array | None:
        r"""Return a move of some coordinates along which f falls for ever, or None.

        If there is one, f has no minimiser on these coordinates: its infimum is at infinity. The move is so long that
        only rounding is left to be gained.

        Parameters
        ----------
        at : Evaluation
            A point that is to be a minimiser on the coordinates.
        indices : array of int
            The coordinates, increasing; those with a ridge stay where they are.

        Returns
        -------
        array, shape (d,), or None

        Notes
        -----
        Where the gradient is small, the slopes of the losses show that there is none (`has_no_recession`); else a
        linear program decides.
        """
        unbound = indices if self.l2.ndim == 0 else indices[gather(self.l2, indices) == 0]
        signs = to_numpy(self.weights * self.loss.recession(self.y))
        ridged = self.l2.ndim == 0 and bool(self.l2 > 0)
        if ridged or unbound.shape[0] == 0 or not signs.any():
            return None
        columns = self.design.columns(unbound)
        u = self.predict(at.point) if at.prediction is None else at.prediction
        if has_no_recession(columns, self.weights * self.loss.gradient(self.y, u), gather(at.gradient, unbound)):
            return None
        X, counted = double(columns.dense()), to_numpy(self.weights) > 0
        rows = slice(None) if counted.all() else counted
        v = recession_direction(X[rows], np.sign(double(signs[rows])))
        if v is None:
            return None
        like = at.point
        return scatter(namespace(like).astype(move(v, like), like.dtype), unbound, like.shape[0])

    def cross_hessian(self, at: Evaluation, other: LinearModel) -> Array:
        """Return the block of the Hessian between this model's columns and those of another, which are none of them."""
        return self.design.gram(self.weights * self.loss.curvature(self.y, at.prediction), other.design)

    def double(self) -> LinearModel:
        """Return the same model in double precision: its numbers count as exact; see `Design.double`."""
        if self.y.dtype == namespace(self.y).float64:
            return self
        return self._with(
            self.design.double(),
            y=as_double(self.y),
            weights=as_double(self.weights),
            offset=None if self.offset is None else as_double(self.offset),
            l2=as_double(self.l2),
        )

    def columns(self, indices: Array) -> LinearModel:
        """Return the model of some columns, by increasing index."""
        l2 = gather(self.l2, indices) if self.l2.ndim else self.l2
        return self._with(self.design.columns(indices), l2=l2)
