"""Choosing the index set by a vote over iterations: the weighted permutations of *Probabilistic IHT*, Section 3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from array_api_compat import device

from hardthresh.arrays import namespace, scatter, to_numpy, top_k
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array


class Vote(ABC):
    """A rule that turns the index sets of the iterations into the one that is used."""

    @abstractmethod
    def cast(self, chosen: Array, size: int, memory: Any) -> tuple[Array, Any]:
        """Return the index set to use and the new memory, after a new set of increasing coordinates out of `size`."""


@dataclass(frozen=True, slots=True)
class SetVote(Vote):
    r"""The set with the largest weight; each new one gains :math:`\omega \leftarrow (1 - \tau) \omega + \tau`.

    The weights of all sets sum to 1; those below 1e-12 are forgotten. The update is ours: the paper speaks of weights
    and gives none. For tau >= 1/2 the newest set always wins.

    Parameters
    ----------
    tau : float
        In (0, 1].
    """

    tau: float = 0.3

    def __post_init__(self) -> None:
        _check_tau(self.tau)

    def cast(self, chosen: Array, size: int, memory: Any) -> tuple[Array, Any]:
        newest = tuple(int(j) for j in to_numpy(chosen))
        weights = {known: (1.0 - self.tau) * weight for known, weight in (memory or {newest: 1.0}).items()}
        weights[newest] = weights.get(newest, 0.0) + self.tau
        winner = max(weights, key=lambda known: (weights[known], known == newest))
        xp = namespace(chosen)
        elected = xp.asarray(winner, dtype=chosen.dtype, device=device(chosen))
        return elected, {known: w for known, w in weights.items() if w > 1e-12}


@dataclass(frozen=True, slots=True)
class CoordinateVote(Vote):
    r"""The coordinates with the largest scores, :math:`s \leftarrow (1 - \tau) s + \tau 1_I`.

    Parameters
    ----------
    tau : float
        In (0, 1]; .1 pays with tiny fixed batches, and only there.
    """

    tau: float = 0.1

    def __post_init__(self) -> None:
        _check_tau(self.tau)

    def cast(self, chosen: Array, size: int, memory: Any) -> tuple[Array, Any]:
        ballot = scatter(namespace(chosen).ones(chosen.shape[0], device=device(chosen)), chosen, size)
        scores = ballot if memory is None else (1.0 - self.tau) * memory + self.tau * ballot
        return top_k(scores, chosen.shape[0]), scores


def _check_tau(tau: float) -> None:
    if not 0 < tau <= 1:
        raise InvalidInputError(f"tau must be in (0, 1], got {tau!r}")
