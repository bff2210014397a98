"""The base of objectives whose predictions are linear in the point: a linear map, a loss and targets."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Self

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.lazy import inner
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, BaseObjective, Evaluation, Traits
from hardthresh.core.registry import lookup
from hardthresh.core.typing import Array
from hardthresh.designs import LinearMap
from hardthresh.losses import JointLoss, Loss, VectorLoss
from hardthresh.losses.mean import MeanLoss

from .inputs import Targets


class Composite(BaseObjective):
    r"""The mean loss of predictions that are linear in the point, plus a ridge.

    .. math:: f(w) = \sum_i \omega_i \, \ell(y_i, (Aw)_i + o_i) + \tfrac{1}{2} \sum_j \lambda_j w_j^2

    A linear model, measurements and entries of a matrix differ in the map A alone. `MultiOutputModel` has several
    predictions for an example, a row of them, and a `VectorLoss`.

    Parameters
    ----------
    design : LinearMap
        A.
    targets : Targets
        y, :math:`\omega` and o.
    loss : str, Loss, VectorLoss or JointLoss
        The name of a registered pointwise loss, or an instance.
    l2 : float or array
        :math:`\lambda`: one number for all coordinates of a matrix, or an array that goes with the point.

    Raises
    ------
    InvalidInputError
        For targets outside the domain of the loss.
    """

    design: LinearMap
    targets: Targets
    loss: Any
    l2: Any
    mean_loss: MeanLoss
    """The mean of the loss over the examples, as a function of their predictions."""

    def __init__(self, design: LinearMap, targets: Targets, loss: Any, l2: float | Array) -> None:
        self.design, self.targets, self.l2 = design, targets, l2
        self._ridged = bool(l2) if isinstance(l2, float) else bool(namespace(l2).any(l2 != 0))
        self.loss = self._read_loss(loss)
        self.loss.check_targets(self.y)
        self.mean_loss = self.loss.prepare(self.y, self.weights)

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        """A number that f never falls below."""
        return self.mean_loss.lower_bound

    @property
    def y(self) -> Array:
        """The targets, shape (n,) or (n, q)."""
        return self.targets.y

    @property
    def weights(self) -> Array:
        """The weight of each example in the mean, shape (n,): their sum is 1 but for a mini-batch."""
        return self.targets.weights

    @property
    def offset(self) -> Array | None:
        """A known part of the predictions, in the shape of the targets."""
        return self.targets.offset

    @property
    def total_weight(self) -> float:
        """The number of examples that the weights stand for: their sum, as it was given."""
        return self.targets.n_examples

    @property
    def share(self) -> float:
        """The share of the examples, by weight, that information criteria count."""
        return self.mean_loss.share

    @property
    def n_examples(self) -> float:
        """The number of examples (the sum of the sample weights) that criteria count."""
        return self.total_weight * self.share

    @property
    def n_targets(self) -> float:
        """That number times the number of outputs."""
        return self.n_examples * self._n_outputs

    @property
    def _n_outputs(self) -> int:
        return 1 if self.y.ndim == 1 else int(self.y.shape[1])

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic if the loss is; where a few rows cost as much as all, a reading is expensive."""
        return _traits(self.loss.quadratic, int(self.y.shape[0]), "rows" in self.design.lacks)

    @property
    def convex(self) -> bool:
        """Whether f is known to be convex: where the loss is."""
        return bool(self.loss.convex)

    def attains_bound(self) -> bool:
        """Return whether every loss has a finite minimiser, or every coordinate a ridge."""
        ridged = self.l2 > 0.0 if isinstance(self.l2, float) else bool(namespace(self.l2).all(self.l2 > 0))
        return ridged or bool(self.loss.attains(self.y, self.weights))

    def predict(self, w: Array) -> Array:
        """Return A w + offset, in the shape of the targets."""
        u = self.design.predict(w)
        return u if self.offset is None else u + self.offset

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w); `prediction`, if the caller has it, saves computing it again."""
        u = self.predict(w) if prediction is None else prediction
        return self.mean_loss.value(u) + 0.5 * self._ridge(w)

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at w; `prediction`, if the caller has it, saves computing it again."""
        u = self.predict(w) if prediction is None else prediction
        mean, slopes = self.mean_loss.value_and_slopes(u)
        return Evaluation(w, mean + 0.5 * self._ridge(w), self._pull(slopes, w), u)

    def rounding(self, at: Evaluation) -> float:
        r"""Return how much of the value at an evaluated point may be rounding.

        .. math:: 16 \, \epsilon \Bigl( r + \sum_i \omega_i \bigl( |\ell(y_i, u_i)| + |\ell'(y_i, u_i) u_i| \bigr)
                  \Bigr)

        To first order, that is what rounding of the predictions u does to the losses, and that of the losses to the
        mean. The ridge r is a sum of squares, which rounds like its terms.
        """
        u: Array = at.prediction
        eps = float(namespace(u).finfo(u.dtype).eps)
        return UNITS * eps * (self.mean_loss.terms(u) + 0.5 * self._ridge(at.point))

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood of the targets, without the ridge, up to a constant of the data."""
        u = self.predict(at.point) if at.prediction is None else at.prediction
        return float(self.loss.minus_twice_log_likelihood(self.y, u, self.weights, self.n_targets))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        return self._pull(self._inner_hessian(at).times(self.design.predict(direction)), direction)

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction, at half the cost of the product."""
        along: float = self._inner_hessian(at).along(self.design.predict(direction)) + self._ridge(direction)
        return along

    def rows(self, indices: Array) -> Self:
        """Return the objective of some examples: drawn at random, an unbiased estimate of this one.

        The mean is taken over all n examples as if the m given ones stood for them: weights are multiplied by n / m.

        Raises
        ------
        InvalidInputError
            If no examples are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row (an example), got none")
        some = self.targets.take(indices)
        weights = some.weights * (self.y.shape[0] / indices.shape[0])
        return self._with(design=self.design.rows(indices), targets=replace(some, weights=weights))

    def with_examples(self, count: float) -> Self:
        """Return the same objective with weights that stand for `count` examples: f is the same, criteria are not."""
        return self._with(targets=replace(self.targets, n_examples=float(count)))

    def with_loss(self, loss: str | Loss | VectorLoss) -> Self:
        """Return the same objective with another loss.

        Raises
        ------
        InvalidInputError
            If a target is outside its domain.
        """
        read = self._read_loss(loss)
        if read == self.loss:
            return self
        read.check_targets(self.y)
        return self._with(loss=read)

    def metered(self, meter: Meter) -> Self:
        """Return the same objective, adding its data passes to a meter."""
        return self._with(design=self.design.metered(meter))

    def _with(self, **changes: Any) -> Self:
        """Return an objective that differs in some parts, which are known to fit."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), **changes)
        if "targets" in changes or "loss" in changes:
            other.mean_loss = other.loss.prepare(other.y, other.weights)
        return other

    def _read_loss(self, loss: Any) -> Any:
        """Return the loss that a name or an instance stands for."""
        return as_loss(loss)

    def _inner_hessian(self, at: Evaluation) -> Any:
        """Return the Hessian of the mean loss in the predictions, at an evaluated point."""
        return self.mean_loss.inner_hessian(at.prediction)

    def _pull(self, values: Array, w: Array) -> Array:
        """Return A' times values, plus the ridge times a point: without one, not the zeros or factors of that."""
        pulled = self.design.pullback(values)
        return pulled + self.l2 * w if self._ridged else pulled

    def _ridge(self, w: Array) -> float:
        """Return the sum of the squares of a point, times the ridge."""
        if not self._ridged:
            return 0.0
        if isinstance(self.l2, float):
            squares: float = self.l2 * inner(w, w)
        else:
            squares = inner(self.l2 * w, w)
        return squares


@lru_cache
def _traits(quadratic: bool, n_rows: int, reading_is_dear: bool) -> Traits:
    """Return traits, which solvers ask for many times in each iteration."""
    return Traits(quadratic=quadratic, n_rows=n_rows, reading_is_dear=reading_is_dear)


def as_loss(loss: Any, *kinds: type) -> Any:
    """Return a loss that may be given by its name: a pointwise one, or one of other kinds that are named.

    Raises
    ------
    InvalidInputError
        For an unknown name, a class, another object, or a loss of another kind.
    """
    if isinstance(loss, str):
        loss = lookup("loss", loss)()
    accepted = (Loss, *kinds)
    if isinstance(loss, type) and issubclass(loss, (*accepted, VectorLoss, JointLoss)):
        raise InvalidInputError(f"loss must be an instance, not a class: write {loss.__name__}()")
    if isinstance(loss, accepted):
        return loss
    if isinstance(loss, VectorLoss):
        raise InvalidInputError(
            f"the {type(loss).__name__} loss has several predictions for an example; use MultiOutputModel"
        )
    if isinstance(loss, JointLoss):
        raise InvalidInputError(f"the {type(loss).__name__} loss is no sum over examples; use LinearModel")
    raise InvalidInputError(f"loss must be a Loss, or the name of one such as 'poisson'; got {format_value(loss)}")
