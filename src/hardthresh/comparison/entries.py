"""The results of each entrant in each outer fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .entrants import Entrant


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """An outer fold.

    Attributes
    ----------
    number : int
        Its number, from 0.
    repeat : int
        How many times folds had been drawn before.
    train, test : array of int
        The training rows and those held out.
    null_loss : float
        The mean held-out loss of the model without features.
    """

    number: int
    repeat: int
    train: np.ndarray
    test: np.ndarray
    null_loss: float


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The results of one entrant (a compared method) in the outer folds.

    Attributes
    ----------
    name, package, edition, settings : str
        The name of the method, its package with the version, and a description of its settings.
    sparse : bool
        Whether the method chooses features; others use all columns.
    width : int
        The number of columns of the table.
    rounds : tuple of int
        The outer folds in which the method has a loss, counted from 0.
    losses, relative_losses : tuple of float
        The mean held-out loss in each of these folds, and its ratio to the loss of the model without features.
    features : tuple of array of int, or None
        The columns that the model of each fold uses; None for all.
    seconds : tuple of float
        The seconds of each fit, including inner folds and failed fits.
    accuracies : tuple of float
        The accuracy in each fold; empty for targets that are not classes.
    unconverged : int
        The number of folds with a warning about convergence.
    failures : tuple of (int, str)
        The folds in which the fit failed, and why.
    stopped : bool
        Whether the time limit stopped the method.
    """

    name: str
    package: str
    edition: str
    settings: str
    sparse: bool
    width: int
    rounds: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()
    relative_losses: tuple[float, ...] = ()
    features: tuple[np.ndarray | None, ...] = ()
    seconds: tuple[float, ...] = ()
    accuracies: tuple[float, ...] = ()
    unconverged: int = 0
    failures: tuple[tuple[int, str], ...] = ()
    stopped: bool = False

    @classmethod
    def start(cls, entrant: Entrant, loss: str, width: int) -> Entry:
        """Return the entry of an entrant before the first fold."""
        settings = entrant.fits[loss][1]
        return cls(entrant.name, entrant.package, entrant.edition or "", settings, entrant.sparse, width)

    def done(
        self,
        number: int,
        seconds: float,
        loss: float,
        null_loss: float,
        used: np.ndarray | None,
        accuracy: float | None,
        *,
        unconverged: bool,
    ) -> Entry:
        """Return the entry after one more fold."""
        return replace(
            self,
            rounds=(*self.rounds, number),
            losses=(*self.losses, loss),
            relative_losses=(*self.relative_losses, loss / null_loss),
            features=(*self.features, used),
            seconds=(*self.seconds, seconds),
            accuracies=self.accuracies if accuracy is None else (*self.accuracies, accuracy),
            unconverged=self.unconverged + unconverged,
        )

    def failed(self, number: int, seconds: float, reason: str) -> Entry:
        """Return the entry after a fold in which the fit failed."""
        why = " ".join(reason.split())[:200]
        return replace(self, failures=(*self.failures, (number, why)), seconds=(*self.seconds, seconds))

    @property
    def relative_loss(self) -> float:
        """The mean of the relative losses; NaN without any fold."""
        return float(np.mean(self.relative_losses)) if self.rounds else float("nan")

    @property
    def uses_all(self) -> bool:
        """Whether the method uses all features."""
        return not self.sparse or any(used is None for used in self.features)

    @property
    def counts(self) -> list[int]:
        """The number of features in each fold."""
        return [self.width if used is None else len(used) for used in self.features]

    @property
    def stability(self) -> float | None:
        """The mean Jaccard index of the features of pairs of folds; None without any pair."""
        if self.uses_all:
            return None
        sets = [{*used.tolist()} for used in self.features if used is not None]
        shares = [len(a & b) / len(a | b) for a, b in combinations(sets, 2) if a | b]
        return float(np.mean(shares)) if shares else None

    @property
    def frequencies(self) -> dict[int, float]:
        """For each chosen column, the share of folds that choose it, by decreasing share."""
        found: dict[int, int] = {}
        for used in self.features:
            for column in () if used is None else used.tolist():
                found[column] = found.get(column, 0) + 1
        return {
            column: count / len(self.rounds) for column, count in sorted(found.items(), key=lambda x: (-x[1], x[0]))
        }
