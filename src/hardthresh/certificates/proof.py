"""The result of a proof that a set of features is the best of its size."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.errors import plural
from hardthresh.core.gap import PROVED
from hardthresh.core.numbers import number, percent
from hardthresh.core.progress import format_duration
from hardthresh.core.schema import Fields, stored
from hardthresh.core.state import State
from hardthresh.solvers.branch_and_bound import BranchAndBound

from .fingerprint import ProblemFingerprint
from .gap import WEAK


def _without_fingerprint(fields: Fields) -> Fields:
    """Return the fields of a proof in version 2: of those of before it is not known what problem they are about."""
    return fields | {"problem": None}


@stored(
    "certificate/proof",
    upgrades=[_without_fingerprint, lambda fields: fields | {"same_features": False}],
)
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Proof:
    """The result of a search for a proof that a model is the best of its size; ``print`` shows it as text.

    Attributes
    ----------
    value : float
        The objective of the model.
    upper_bound : float
        The lowest objective that is known: that of the model, or of a better set that was found.
    lower_bound : float or None
        A lower bound of the objective over all sets of this size; None if no bound is known.
    gap : float or None
        The relative gap between `lower_bound` and `upper_bound` (`hardthresh.certificates.relative_gap`); None without
        a bound.
    proved : bool
        Whether the set of `upper_bound` is proved to be the best, to at least 1e-6 relative or to the rounding of the
        objective; `status` states the accuracy.
    n_nodes : int
        The number of nodes of the search tree whose bound was computed: 1 if only the bound of all sets was computed, 0
        if none.
    seconds : float
        Wall time, over all runs.
    history : dict from str to array
        The bounds over time: "seconds", "n_nodes", "lower_bound" and "upper_bound", for `hardthresh.report.plot_gap`.
    reason : str
        Why the search ended, or why there was no search.
    features : tuple of str
        The features or groups of a better set; empty if none was found. If only the coefficients are better, these are
        the features of the model, and `same_features` is True.
    coef, intercept : array or float, or None
        The coefficients of the better set and the intercept, with the shapes of those of the model.
    subject : str
        What the proof is about, if not the model whose method was called.
    state : State or None
        The state from which the search can be continued.
    problem : ProblemFingerprint or None
        The fingerprint of data and settings, to check whether the search can be continued with given data; None without
        a search.
    same_features : bool
        Whether `features` are those of the model, with other coefficients.
    """

    value: float
    upper_bound: float
    lower_bound: float | None
    gap: float | None
    proved: bool
    n_nodes: int
    seconds: float
    history: dict[str, np.ndarray]
    reason: str
    features: tuple[str, ...] = ()
    coef: Any = None
    intercept: Any = None
    subject: str = ""
    state: State | None = None
    problem: ProblemFingerprint | None = None
    same_features: bool = False

    @property
    def status(self) -> str:
        """A short summary: "proved to 1e-9 relative", "gap 3 %", "nothing proved" or "no bound"."""
        if self.proved:
            gap = self.gap if self.gap is not None and self.gap <= PROVED else 0.0
            return f"proved to {_rounded_up(max(gap, BranchAndBound().tol))} relative"
        if self.gap is None:
            return "no bound"
        return "nothing proved" if self.gap >= WEAK else f"gap {percent(self.gap)}"

    @property
    def found_better(self) -> bool:
        """Whether coefficients with a lower objective than those of the model were found, usually on another set."""
        return bool(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return the proof, without the state of the search, as a dict that `json` can write."""
        return {
            "status": self.status,
            **{name: getattr(self, name) for name in ("value", "upper_bound", "lower_bound", "gap", "proved")},
            **{name: getattr(self, name) for name in ("n_nodes", "seconds", "reason")},
            "about": self.subject or "the model",
            "better_features": list(self.features),
            "same_features": self.same_features,
            "better_coef": None if self.coef is None else double(self.coef).tolist(),
            "better_intercept": None if self.intercept is None else float(self.intercept),
            "history": {name: column.tolist() for name, column in self.history.items()},
        }

    def __str__(self) -> str:
        lines = [f"About {self.subject}."] if self.subject else []
        return "\n".join([*lines, self._of_bounds(), *self._of_better(), *self._of_search()])

    def __repr__(self) -> str:
        return str(self)

    def _of_bounds(self) -> str:
        best, lower = number(self.upper_bound), None if self.lower_bound is None else number(self.lower_bound)
        one = "this model"
        if self.found_better:
            one = "the same set with other coefficients" if self.same_features else "the better set below"
        if self.proved:
            return f"{self.status.capitalize()}: no set of this size has an objective below {best}, that of {one}."
        if self.gap is None:
            return "Nothing is proved, because no lower bound is known."
        if self.gap >= WEAK:
            return (
                f"Nothing is proved: the lower bound, {lower}, is {percent(self.gap)} below {best}, the objective of "
                f"{one}. That is a weakness of the bound, and says nothing against the model."
            )
        return (
            f"Not proved: no set of this size has an objective below {lower}, and {one} has {best} "
            f"(gap {percent(self.gap)})."
        )

    def _of_better(self) -> list[str]:
        if not self.found_better:
            return []
        if self.same_features:
            return [
                "The better one is the same set, with other coefficients: the model is not fitted to these rows "
                "and weights. Give those of the fit, or fit it to these.",
                f"Its objective is {number(self.upper_bound)}, and that of the model {number(self.value)}.",
                "Its coefficients are coef and intercept of this proof.",
            ]
        return [
            f"A better set was found: {', '.join(self.features)}.",
            f"Its objective is {number(self.upper_bound)}, and that of the model {number(self.value)}.",
            'Its coefficients are coef and intercept of this proof; a fit with solver="exact" finds it, too.',
        ]

    def _of_search(self) -> list[str]:
        if self.state is None:
            return [] if self.proved else [f"{self.reason}."]
        more = "" if getattr(self.state, "settled", "") else " This proof can be resumed."
        return [f"{plural(self.n_nodes, 'node')} in {format_duration(self.seconds)}; {self.reason}.{more}"]


def _rounded_up(gap: float) -> str:
    """Return a small number with one digit, which is no less."""
    power = floor(log10(gap) + 1e-9)
    return f"{ceil(gap / 10.0**power - 1e-6)}e{power}"
