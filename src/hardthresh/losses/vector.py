"""The contract of losses of several predictions: one example has a row of them, and one loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import device

from hardthresh.arrays import double, namespace, to_numpy
from hardthresh.core.lazy import inner
from hardthresh.core.typing import Array

from .base import Loss
from .contract import BaseLoss
from .contrasts import BlockContrasts, Contrasts
from .mean import MeanOverExamples


class VectorLoss(BaseLoss):
    """A loss of the q predictions of an example, with the inverse link and the domain of the targets of its model.

    Subclasses are frozen dataclasses. Predictions u, gradients and directions v have shape (n, q); targets y have shape
    (n, q), or (n,) if an example has one target for all its predictions. The second derivatives of each example form a
    block of shape (q, q).

    See Also
    --------
    Loss : Losses of one prediction.
    MultiTask : The sum of a pointwise loss over the outputs.
    """

    lower_bound: ClassVar[float] = 0.0
    """A number that the loss never falls below, whatever the targets; where there is one for each output, of each."""

    one_target: ClassVar[bool] = False
    """Whether an example has one target, such as a class; else it has one for each prediction."""

    @abstractmethod
    def n_outputs(self, y: Array) -> int:
        """Return q, the number of predictions of an example."""

    @abstractmethod
    def value(self, y: Array, u: Array) -> Array:
        """Return the loss of each example, shape (n,)."""

    @abstractmethod
    def gradient(self, y: Array, u: Array) -> Array:
        """Return the derivative in the predictions, shape (n, q)."""

    @abstractmethod
    def curvature(self, y: Array, u: Array, v: Array) -> Array:
        """Return the block of each example times its row of a direction v, shape (n, q)."""

    @abstractmethod
    def blocks(self, y: Array, u: Array) -> Array:
        """Return the second derivatives of each example, shape (n, q, q)."""

    @abstractmethod
    def mean_block(self, y: Array, u: Array, weights: Array) -> Array:
        """Return the weighted sum of the blocks, shape (q, q), without forming these."""

    @abstractmethod
    def mean(self, u: Array) -> Array:
        """Return the expected targets of predictions, or the probabilities of the classes: shape (n, q)."""

    @abstractmethod
    def each_output(self, y: Array, u: Array) -> list[tuple[Loss, Array, Array]]:
        """Return a pointwise loss, the targets and the predictions of each output, or of each class against the others.

        Predictions of a class are its log-odds.
        """

    def prepare(self, y: Array, weights: Array) -> VectorMean:
        """Return the weighted mean of the losses of some targets, as a function of the predictions."""
        return VectorMean(self, y, weights)

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Return `value` and `gradient`, bitwise identical; losses that share an exponential override this method."""
        return self.value(y, u), self.gradient(y, u)

    def centre(self, w: Array) -> Array:
        """Return coefficients of the same predictions' losses and least norm, shape (..., q): `w` itself by default.

        Where adding a number to all predictions of an example changes nothing, the mean over the outputs is taken off.
        """
        return w

    def axes(self, q: int) -> np.ndarray:
        """Return an orthonormal basis of the directions of q predictions that can change a loss, shape (q, m)."""
        size, vectors = np.linalg.eigh(self.centre(np.eye(q)))
        return np.asarray(vectors[:, size > 0.5])  # a projection has the eigenvalues 0 and 1

    def attains(self, y: Array, weights: Array) -> bool:
        """Return whether each example of positive weight has predictions that are finite and minimise its loss."""
        return True

    def recession(self, y: Array) -> tuple[Array, Array] | None:
        r"""Return in which directions of their predictions losses fall indefinitely; None if each has a minimiser.

        Returns
        -------
        functionals : array, shape (n, r, q)
            For each example r linear functions :math:`a_1, ..., a_r` of its predictions.
        signs : array, shape (n, r)
            Along predictions v its loss never rises if :math:`s_j a_j^\top v \ge 0` for all j, and
            :math:`a_j^\top v = 0` where :math:`s_j = 0`; it falls indefinitely if one of them is positive besides. The
            gradient of the loss is a combination of these functions, each less its sign times a number >= 0.
        """
        return None


class VectorMean(MeanOverExamples):
    """The weighted mean of a loss of several predictions."""

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        """Where an example has a target for each output, the sum of their bounds."""
        return float(self.loss.lower_bound * (1 if self.y.ndim == 1 else self.y.shape[1]))

    def inner_hessian(self, u: Array) -> Blocks:
        return Blocks(self, u)

    def contrasts(self) -> Contrasts:
        cone = self.loss.recession(self.y)
        if cone is None:
            return super().contrasts()
        functionals, signs = (double(part) for part in cone)
        counted = np.repeat(to_numpy(self.weights) > 0, signs.shape[1])
        return BlockContrasts(np.sign(signs).reshape(-1), counted, functionals, self.loss.axes(functionals.shape[2]))


@dataclass(frozen=True, slots=True)
class Blocks:
    """The second derivatives of a mean in the predictions: a block for each example.

    Attributes
    ----------
    mean_loss : VectorMean
        The mean.
    u : array, shape (n, q)
        The predictions.
    """

    mean_loss: VectorMean
    u: Array

    def times(self, v: Array) -> Array:
        """Return the blocks times the rows of v, weighted: shape (n, q)."""
        mean = self.mean_loss
        return mean.weights[:, None] * mean.loss.curvature(mean.y, self.u, v)

    def along(self, v: Array) -> float:
        """Return the sum of v' block v over the examples."""
        along: float = inner(self.times(v), v)
        return along


def coefficient_hessian(blocks: Array, gram: Callable[[Array], Array]) -> Array:
    """Return the second derivatives in coefficients, row by row, from those in the predictions: shape (s m, t m).

    Parameters
    ----------
    blocks : array, shape (n, m, m)
        A weighted symmetric block for each example.
    gram : callable
        X' diag(c) Z for numbers c of both signs, shape (n,): an array of shape (s, t).

    Notes
    -----
    Cost: a product for each pair of predictions, m (m + 1) / 2 of them.
    """
    m = blocks.shape[1]
    pairs = [(a, b) for a in range(m) for b in range(a, m)]
    parts = [gram(blocks[:, a, b]) for a, b in pairs]
    (s, t), xp = parts[0].shape, namespace(parts[0])
    hessian = xp.empty((s, m, t, m), dtype=parts[0].dtype, device=device(parts[0]))
    for (a, b), part in zip(pairs, parts, strict=True):
        hessian[:, a, :, b] = part
        hessian[:, b, :, a] = part
    return xp.reshape(hessian, (s * m, t * m))
