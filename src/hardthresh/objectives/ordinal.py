"""Ordered classes: a design, thresholds and the class of each example."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hardthresh.arrays import as_double, gather, move, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import Design, ThresholdDesign
from hardthresh.losses import JointLoss, Ordinal
from hardthresh.losses.ordinal import OrdinalMean

from .composite import Composite, as_loss
from .inputs import Targets, checked_design, checked_ridge
from .linear_model import LinearModel


def _examples() -> list[OrdinalModel]:
    """Return small models for the conformance tests: 30 examples, 10 columns, and two thresholds."""
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((30, 10)), rng.integers(0, 3, 30).astype(float)
    y = Ordinal().example_target(X[:, 3] - X[:, 8], rng)
    return [
        OrdinalModel(X, y, l2=0.1),
        OrdinalModel(X, y, sample_weight=weights, offset=0.1 * rng.standard_normal(30), l2=rng.uniform(0.1, 1.0, 10)),
    ]


@register("objective", "ordinal", _examples)
class OrdinalModel(LinearModel):
    r"""The mean log-loss of ordered classes, with proportional odds.

    .. math:: f(w, t) = -\sum_i \omega_i \log\bigl(P(y_i \le c) - P(y_i \le c - 1)\bigr)_{c = y_i}
              + \tfrac{1}{2} \sum_j \lambda_j w_j^2,
              \qquad P(y_i \le c) = \frac{1}{1 + e^{-(t_c - x_i^\top w - o_i)}}

    Parameters
    ----------
    X : array or scipy.sparse array, shape (n, d), or Design
        Data, one example per row. float32 data are computed in float32, except for the losses.
    y : array, shape (n,)
        The numbers 0, 1, ..., C - 1 of the classes, each of which must have an example of positive weight.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero; :math:`\omega = s / \sum_i s_i`.
    offset : array, shape (n,), optional
        o, a known part of the linear predictor; finite.
    l2 : float or array, shape (d,) or (d + C - 1,)
        Ridge :math:`\lambda \ge 0` on the mean loss. Thresholds have a ridge only in an array of length d + C - 1.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, lengths that do not match, negative weights or ridge, targets that are not class numbers,
        and a class without weight.

    See Also
    --------
    hardthresh.losses.Ordinal : The loss.

    Notes
    -----
    Points are (w, t), shape (d + C - 1,). Declare the thresholds, d, ..., d + C - 2, as free coordinates of the
    constraint. f is convex, and infinite if the thresholds are not increasing. `null_point` has w = 0 and the
    thresholds that predict the share of each class.

    Cost of `evaluate`: one data pass, plus s/d of a pass for the prediction at a w with s of d entries non-zero.

    References
    ----------
    P. McCullagh (1980), *Regression models for ordinal data*.

    Examples
    --------
    >>> import numpy as np
    >>> f = OrdinalModel(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 1.0, 2.0]), l2=0.1)
    >>> f.null_point().round(6)
    array([0.      , 0.      , 1.098612])
    >>> round(f.value(f.null_point()), 6)
    1.039721
    """

    mean_loss: OrdinalMean

    def __init__(self, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None, l2: Any = 0.0) -> None:
        design = checked_design(X)
        (n, d), like = design.shape, design.zeros(1)
        targets, loss = Targets.of(y, sample_weight, offset, like, n), Ordinal()
        loss.check_targets(targets.y)
        count = loss.count(targets.y)
        xp, size = namespace(like), d + count - 1
        if targets.offset is not None:
            stacked = -xp.concat([targets.offset, targets.offset])
            targets = Targets(targets.y, targets.weights, targets.n_examples, stacked)
        ridge = np.asarray(to_numpy(l2) if hasattr(l2, "shape") else l2, dtype=float)
        if ridge.shape in ((), (d,)):
            ridge = np.concatenate([np.broadcast_to(ridge, d), np.zeros(count - 1)])
        thresholds = ThresholdDesign.of(design, to_numpy(targets.y).astype(np.int64), count)
        Composite.__init__(self, thresholds, targets, loss, checked_ridge(move(ridge, like), like, size))
        start = np.zeros(size)
        start[d:] = self.mean_loss.thresholds()
        self._null = xp.astype(move(start, like), like.dtype)
        self.rows = None  # type: ignore[assignment, method-assign]
        if not design.has_columns:
            self.columns = None  # type: ignore[assignment, method-assign]

    @property
    def data(self) -> Design:
        """The design of the columns, without thresholds."""
        assert isinstance(self.design, ThresholdDesign)
        return self.design.data

    @property
    def n_thresholds(self) -> int:
        """The number of thresholds, one less than that of classes."""
        return int(self.loss.count(self.y)) - 1

    def null_point(self) -> Array:
        """Return w = 0 with the thresholds that predict the share of each class."""
        return namespace(self._null).asarray(self._null, copy=True)

    def columns(self, indices: Array) -> Self:
        """Return the model of some coordinates, by increasing index; omitted thresholds are 0."""
        return super().columns(indices)._with(_null=gather(self._null, indices))

    def double(self) -> Self:
        """Return the same model in double precision."""
        double = super().double()
        return double if double is self else double._with(_null=as_double(self._null))

    def _read_loss(self, loss: Any) -> Ordinal:
        read = as_loss(loss, JointLoss)
        if not isinstance(read, Ordinal):
            raise InvalidInputError(f"OrdinalModel has the Ordinal loss, not {type(read).__name__}; use LinearModel")
        classes = Ordinal().count(self.y)
        if read.count(self.y) != classes:
            raise InvalidInputError(
                f"y has {classes} classes, and the loss {read.n_classes}: each class needs an example of positive "
                "weight, which its thresholds depend on; number the classes that there are 0, 1, 2, ..."
            )
        return read
