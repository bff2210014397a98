"""How long a trial step is, and what confirms it: the published clip and test, and the variants of both, by name."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple

from hardthresh.core.constraint import Projection
from hardthresh.core.support import Support


class Trial(NamedTuple):
    """A trial point, where it came from, how the gradient divides, and the decrease that the linear model promises."""

    projection: Projection
    index_set: Support
    step: float
    whole: float
    inside: float
    promise: float


@dataclass(frozen=True, slots=True)
class Clip:
    """By which norm the step on the index set is clipped.

    Attributes
    ----------
    inside : bool
        By that of the gradient on the index set, instead of that of the whole.
    when_kept : bool
        But only where no entry of the point is dropped.
    """

    inside: bool
    when_kept: bool = False


CLIPS = {"full": Clip(inside=False), "restricted": Clip(inside=True), "stable": Clip(inside=True, when_kept=True)}


@dataclass(frozen=True, slots=True)
class Ratio:
    r"""What the decrease is compared with, and which gradient is compared with :math:`\eta_2 \delta`.

    Attributes
    ----------
    whole : bool
        The norm is that of the whole gradient, instead of its part on the index set.
    modelled : bool
        The decrease is compared with that of the linear model, instead of norm times :math:`\delta`.
    strict : bool
        Equality does not pass.
    floor : float
        To first order, and clipped by the full norm, no small step passes once the share of the gradient on the index
        set is below :math:`\eta_1` to this power.
    """

    whole: bool = False
    modelled: bool = False
    strict: bool = False
    floor: float = 1.0

    def confirms(
        self, trial: Trial, delta: float, decrease: float, rounding: float, eta1: float, eta2: float
    ) -> tuple[bool, float]:
        """Return whether a trial is accepted, and its ratio; a decrease within rounding confirms nothing."""
        size = trial.whole if self.whole else trial.inside
        promised = trial.promise if self.modelled else size * delta
        ratio = decrease / promised if promised > 0.0 and isfinite(decrease) else -inf
        passes = ratio > eta1 and size > eta2 * delta if self.strict else ratio >= eta1 and size >= eta2 * delta
        return passes and decrease > rounding, ratio

    def hopeless(self, trial: Trial, eta1: float) -> bool:
        """Return whether, to first order and clipped by the full norm, no smaller step can pass."""
        return bool(trial.inside < eta1**self.floor * trial.whole)


RATIOS = {
    "paper": Ratio(),
    "full": Ratio(whole=True, strict=True, floor=0.5),
    "model": Ratio(modelled=True, floor=inf),
}
