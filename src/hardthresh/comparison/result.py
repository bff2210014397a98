"""The result of a comparison: losses, features and seconds of each entrant in each outer fold."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from math import isnan
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh import __version__
from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.frames import pandas_for_frames
from hardthresh.core.numbers import percent
from hardthresh.core.printed import PrintedTable
from hardthresh.core.progress import format_duration
from hardthresh.estimators.words import label

from .entrants import OURS
from .entries import Entry, Round
from .targets import Target
from .verdict import LEVEL, Difference, Verdict, difference, holm, verdict, with_error

if TYPE_CHECKING:
    import pandas

STABLE = ((0.8, "nearly the same"), (0.5, "mostly the same"), (0.25, "partly the same"), (0.0, "mostly different"))
"""Words for the mean share of the features of two folds that both have; arbitrary limits."""


@dataclass(frozen=True, eq=False, repr=False)
class MethodComparison:
    """The result of `compare`: methods on the same folds; ``print`` shows a table and the conclusion.

    Attributes
    ----------
    target : Target
        The target: its ``loss``, a description of the loss (``measure``), and the ``classes``.
    n_features : int
        The number of columns of the table.
    names : tuple of str
        The names of the columns.
    n_categorical : int
        The number of categorical columns.
    folds, repeats, inner_folds : int
        The numbers of outer folds, repetitions and inner folds that were requested.
    rounds : tuple of Round
        The outer folds that are complete.
    entries : tuple of Entry
        The results of the entrants; ``comparison["lasso"]`` is that of one.
    left_out : tuple of (str, str)
        Entrants that were not run, and why.
    interrupted : bool
        Whether the user ended it early.
    random_state : int
        The seed of the folds.
    time_limit : float or None
        Seconds after which an entrant was stopped.
    impute : bool
        Whether missing numbers were imputed.
    """

    target: Target
    n_features: int
    names: tuple[str, ...]
    n_categorical: int
    folds: int
    repeats: int
    inner_folds: int
    rounds: tuple[Round, ...]
    entries: tuple[Entry, ...]
    left_out: tuple[tuple[str, str], ...]
    interrupted: bool
    random_state: int
    time_limit: float | None
    impute: bool

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        names = ", ".join(entry.name for entry in self.entries)
        raise InvalidInputError(f"no entrant {format_value(name)} took part; there are {names}")

    @property
    def ranked(self) -> list[Entry]:
        """The entrants that have a loss, by increasing relative loss."""
        return sorted((entry for entry in self.entries if entry.rounds), key=lambda entry: entry.relative_loss)

    @property
    def reference(self) -> Entry | None:
        """Our method, if it has a loss in every fold, otherwise the best entrant that does; None without any."""
        sound = [entry for entry in self.ranked if self.in_every_fold(entry)]
        return next((entry for entry in sound if entry.name == OURS), sound[0] if sound else None)

    def in_every_fold(self, entry: Entry) -> bool:
        """Return whether an entrant has a loss in every outer fold, so that it may be recommended."""
        return len(entry.rounds) == len(self.rounds)

    def difference(self, name: str, reference: str | None = None) -> Difference:
        """Return the difference of the relative losses of two entrants in the same folds.

        Its p-value is corrected by Holm's method for all comparisons of the same kind: of ours with each other entrant;
        of each entrant with no features; or of two others, which nobody names before the losses are known, of each
        entrant with each.

        Parameters
        ----------
        name : str
            The entrant.
        reference : str, optional
            The other one. Default: the model without features.

        Raises
        ------
        InvalidInputError
            For a name that did not take part.
        """
        own = self._uncorrected(name, reference)
        pairs: list[tuple[str, str | None]]
        if reference is None:
            pairs = [(entry.name, None) for entry in self.entries]
        elif OURS in (name, reference):
            pairs = [(entry.name, OURS) for entry in self.entries if entry.name != OURS]
        else:
            pairs = [*combinations((entry.name for entry in self.entries), 2)]
        together = [self._uncorrected(*pair).p_value for pair in pairs]
        return replace(own, p_value=holm(own.p_value, together))

    def _uncorrected(self, name: str, reference: str | None) -> Difference:
        """Return a difference without regard to others."""
        first = self._by_round(name)
        second = dict.fromkeys(first, 1.0) if reference is None else self._by_round(reference)
        common = sorted(first.keys() & second.keys())
        return difference(np.array([first[place] - second[place] for place in common]), self.folds)

    def _by_round(self, name: str) -> dict[int, float]:
        entry = self[name]
        return dict(zip(entry.rounds, entry.relative_losses, strict=True))

    @cached_property
    def verdict(self) -> Verdict:
        """What follows from the comparison, in words."""
        return verdict(self)

    # words ----------------------------------------------------------------------------------------------------------

    def title(self) -> str:
        """Return what was compared, in one line."""
        n = plural(len(self.target.y), "row")
        what = f"{plural(len(self.target.classes), 'class')}" if self.target.classes else _KINDS[self.target.loss]
        return f"{plural(len(self.entries), 'method')} compared on {n} and {plural(self.n_features, 'feature')}: {what}"

    def how(self) -> str:
        """Return how losses were measured, in one sentence."""
        done = len(self.rounds)
        folds = f"{self.folds} outer folds" + (f", drawn {self.repeats} times" if self.repeats > 1 else "")
        partly = f" ({done} of {self.folds * self.repeats} were done)" if self.interrupted else ""
        return (
            f"Held-out {self.target.measure} over that of predicting {self.target.null}, so that 1 is no better than "
            f"no features; {folds}{partly}, {self.inner_folds} inner ones."
        )

    def correction(self) -> str:
        """Return from when on a difference counts as more than noise, in one sentence; nothing for one entrant."""
        reference = self.reference
        others = len(self.ranked) - 1
        if reference is None or others < 1:
            return ""
        count = f"the {plural(others, 'comparison')} with {OURS}"
        if reference.name != OURS:
            count = f"the {plural(others * (others + 1) // 2, 'comparison')} of two methods"
        return (
            f"Differences beyond the noise are significant at the {percent(LEVEL)} level, with Holm's correction for "
            f"{count}; so are those from no features, for {plural(others + 1, 'method')}."
        )

    @property
    def header(self) -> list[str]:
        """The titles of the columns of the table."""
        accuracy = ["accuracy"] if self.target.classes else []
        against = "" if self.reference is None else f"less that of {self.reference.name}"
        return ["method", "held-out loss", against, *accuracy, "features", "same features", "time per fit"]

    def rows(self) -> list[list[str]]:
        """Return the cells of the table: an entrant a row, the lowest loss first, and then those that failed."""
        found = []
        for entry in [*self.ranked, *(entry for entry in self.entries if not entry.rounds)]:
            if not entry.rounds:
                word = "stopped" if entry.stopped else "failed"
                found.append([entry.name, word, *[""] * (len(self.header) - 3), _median_time(entry)])
                continue
            accuracy = [percent(float(np.mean(entry.accuracies)))] if self.target.classes else []
            stable = "" if entry.stability is None else percent(entry.stability)
            found.append(
                [
                    entry.name,
                    with_error(entry.relative_loss, self.difference(entry.name).error),
                    self.against(entry),
                    *accuracy,
                    _features(entry),
                    stable,
                    _median_time(entry),
                ]
            )
        return found

    def against(self, entry: Entry) -> str:
        """Return the difference of an entrant from the reference, and the word for it."""
        if self.reference is None or entry.name == self.reference.name:
            return ""
        found = self.difference(entry.name, self.reference.name)
        if isnan(found.p_value):
            return f"{found} in one fold"
        word = {1: "worse", -1: "better", 0: "within noise"}[found.sign]
        return f"{found} {word}"

    def remarks(self) -> list[str]:
        """Return remarks about entrants: failures, time limits, and entrants that were not run."""
        found = []
        total = len(self.rounds)
        for entry in self.entries:
            done = len(entry.rounds)
            if entry.failures:
                found.append(f"{entry.name} failed in {_of(len(entry.failures), total)}: {entry.failures[0][1]}")
            if entry.stopped and done < total:
                found.append(f"{entry.name} was stopped by the time limit after {_of(done, total)}.")
            if entry.unconverged:
                found.append(f"{entry.name} warned that it did not converge in {_of(entry.unconverged, done)}.")
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out:
            by_reason.setdefault(reason, []).append(name)
        found += [f"Left out: {', '.join(names)}: {reason}." for reason, names in by_reason.items()]
        return found

    def table(self) -> PrintedTable:
        """Return the table as it is printed."""
        notes = ["", *self.verdict.sentences, *([""] if self.remarks() else []), *self.remarks()]
        above = [self.title(), self.how(), *filter(None, [self.correction()])]
        return PrintedTable(above, self.header, self.rows(), notes, left=("method",))

    def __str__(self) -> str:
        return self.table().to_text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table().to_html()

    # data -----------------------------------------------------------------------------------------------------------

    def versions(self) -> list[tuple[str, str]]:
        """Return the packages that computed something, with their versions."""
        found = {"hardthresh": __version__, "scikit-learn": version("scikit-learn"), "numpy": version("numpy")}
        found |= {entry.package: entry.edition for entry in self.entries if entry.package}
        return [*found.items(), ("Python", platform.python_version())]

    def to_dict(self) -> dict[str, Any]:
        """Return all results as a dict of numbers, strings and lists, which `json` can write."""
        return {
            "title": self.title(),
            "loss": self.target.loss,
            "measure": self.target.measure,
            "n": len(self.target.y),
            "d": self.n_features,
            "classes": [label(str(name)) for name in self.target.classes],
            "folds": self.folds,
            "repeats": self.repeats,
            "inner_folds": self.inner_folds,
            "random_state": self.random_state,
            "time_limit": self.time_limit,
            "impute": self.impute,
            "interrupted": self.interrupted,
            "versions": dict(self.versions()),
            "null_losses": [each.null_loss for each in self.rounds],
            "verdict": {
                "kind": self.verdict.kind,
                "recommended": self.verdict.recommended,
                "sentences": list(self.verdict.sentences),
            },
            "left_out": dict(self.left_out),
            "entrants": [self._record(entry) for entry in self.entries],
        }

    def _record(self, entry: Entry) -> dict[str, Any]:
        found = self._facts(entry)
        names = [None if used is None else [self.names[j] for j in used.tolist()] for used in entry.features]
        return found | {
            "settings": entry.settings,
            "folds": list(entry.rounds),
            "losses": list(entry.losses),
            "relative_losses": list(entry.relative_losses),
            "features": names,
            "seconds": list(entry.seconds),
            "failures": [list(pair) for pair in entry.failures],
            "stopped": entry.stopped,
            "unconverged": entry.unconverged,
        }

    def _facts(self, entry: Entry) -> dict[str, Any]:
        mean = float(np.mean(entry.losses)) if entry.rounds else None
        found: dict[str, Any] = {"method": entry.name, "package": entry.package, "version": entry.edition}
        found |= {"relative_loss": entry.relative_loss if entry.rounds else None, "loss": mean}
        reference = self.reference
        against = None
        if entry.rounds and reference is not None and entry.name != reference.name:
            against = self.difference(entry.name, reference.name)
        found |= {"difference": against and _known(against.mean), "standard_error": against and _known(against.error)}
        found |= {"p_value": against and _known(against.p_value)}
        found |= {"within_noise": None if against is None else against.sign == 0}
        if self.target.classes:
            found["accuracy"] = float(np.mean(entry.accuracies)) if entry.accuracies else None
        counts = entry.counts
        found |= {"median_features": float(median(counts)) if counts else None, "uses_all": entry.uses_all}
        found |= {"stability": entry.stability, "median_seconds": median(entry.seconds) if entry.seconds else None}
        return found

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas data frame with one row for each entrant, by increasing loss.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        return pandas_for_frames().DataFrame(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return the numbers of the table: a mapping for each entrant, by increasing loss."""
        return [self._facts(entry) for entry in [*self.ranked, *(each for each in self.entries if not each.rounds)]]


_KINDS = {
    "squared": "numbers",
    "poisson": "counts",
    "gamma": "positive amounts",
    "cox": "times to an event",
}


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def stability_words(share: float) -> str:
    """Return a word for a mean share of features that two folds have in common."""
    return next(words for limit, words in STABLE if share >= limit)


def _features(entry: Entry) -> str:
    """Return the median number of features, with the least and the largest."""
    if entry.uses_all:
        return "uses all"
    counts = entry.counts
    few, many = min(counts), max(counts)
    return f"{median(counts):g}" + (f" ({few}–{many})" if few < many else "")


def _median_time(entry: Entry) -> str:
    return format_duration(median(entry.seconds)) if entry.seconds else ""


def _of(count: int, total: int) -> str:
    return f"{count} of {plural(total, 'outer fold')}"
