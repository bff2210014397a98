"""Votes of the iterations on the index set: the weighted permutations of *Probabilistic IHT*, Section 3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from array_api_compat import device

from hardthresh.arrays import gather, namespace, scatter, to_numpy, top_k, where_true
from hardthresh.core.checking import checked_number
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

_FORGOTTEN = 1e-12  # arbitrary: negligible beside the tau that a returning set gains


class Vote(ABC):
    """A rule that combines the index sets of all iterations so far into one."""

    @abstractmethod
    def cast(self, chosen: Array, v: Array, memory: Any) -> tuple[Array, Any]:
        """Return the index set to use and the new memory.

        `chosen` are the increasing coordinates of the newest set, which thresholding the point `v` gave.
        """


@stored("vote/sets")
@dataclass(frozen=True, slots=True)
class SetVote(Vote):
    r"""Use the index set with the largest weight, :math:`\omega \leftarrow (1 - \tau) \omega`, plus tau for the newest.

    The weights of all sets sum to 1; those below 1e-12 are discarded. The update is ours, because the paper does not
    define the weights. For tau >= 1/2 the newest set always wins.

    Parameters
    ----------
    tau : float
        In (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> vote, v, memory = SetVote(0.3), np.arange(4.0), None
    >>> for chosen in ([0, 1], [0, 1], [2, 3]):
    ...     elected, memory = vote.cast(np.array(chosen), v, memory)
    >>> elected
    array([0, 1])
    """

    tau: float = 0.3

    def __post_init__(self) -> None:
        _check_tau(self.tau)

    def cast(self, chosen: Array, v: Array, memory: Any) -> tuple[Array, Any]:
        newest = tuple(int(j) for j in to_numpy(chosen))
        weights = {known: (1.0 - self.tau) * weight for known, weight in (memory or {newest: 1.0}).items()}
        weights[newest] = weights.get(newest, 0.0) + self.tau
        winner = max(weights, key=lambda known: (weights[known], known == newest))
        xp = namespace(chosen)
        elected = xp.asarray(winner, dtype=chosen.dtype, device=device(chosen))
        return elected, {known: weight for known, weight in weights.items() if weight > _FORGOTTEN}


@stored("vote/coordinates")
@dataclass(frozen=True, slots=True)
class CoordinateVote(Vote):
    r"""Use the coordinates with the largest scores, :math:`s \leftarrow (1 - \tau) s + \tau 1_I`.

    Among equal scores the larger :math:`|v_j|` wins, v being the point that is thresholded now, so that the order of
    the coordinates does not matter.

    Parameters
    ----------
    tau : float
        In (0, 1]. Measured: 0.1 raises the F1 score of the support with small batches of fixed size, and only there.

    Examples
    --------
    >>> import numpy as np
    >>> vote, v, memory = CoordinateVote(0.3), np.arange(4.0), None
    >>> for chosen in ([0, 1], [0, 1], [1, 3]):
    ...     elected, memory = vote.cast(np.array(chosen), v, memory)
    >>> elected
    array([0, 1])
    """

    tau: float = 0.1

    def __post_init__(self) -> None:
        _check_tau(self.tau)

    def cast(self, chosen: Array, v: Array, memory: Any) -> tuple[Array, Any]:
        xp, k = namespace(chosen), chosen.shape[0]
        ballot = scatter(xp.ones(k, device=device(chosen)), chosen, v.shape[0])
        scores = ballot if memory is None else (1.0 - self.tau) * memory + self.tau * ballot
        if k == 0:
            return chosen, scores
        least = xp.min(gather(scores, top_k(scores, k)))
        above, equal = where_true(scores > least), where_true(scores == least)
        rest = top_k(xp.abs(gather(v, equal)), k - above.shape[0])
        return xp.sort(xp.concat([above, gather(equal, rest)])), scores


def _check_tau(tau: float) -> None:
    checked_number("tau", tau, above=0.0, most=1.0)
