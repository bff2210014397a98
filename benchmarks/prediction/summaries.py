"""Tables of results: how often an entrant is the best sparse one, or hardly worse, and where it loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from runner.tables import Table, figure

from .halves import HALVES, REPORTING
from .instance import LOGISTIC, SQUARED
from .results import Outcome, Results
from .simulation import CORRELATIONS, RATIOS, SETTINGS, TYPES


@dataclass(frozen=True, slots=True)
class Standing:
    """An entrant beside the best of the sparse peers on one instance.

    Attributes
    ----------
    rival : str
        The sparse peer with the lowest mean loss, or relative risk.
    excess : float
        The mean loss less that of the rival.
    paired_error : float
        The standard error of this difference over repetitions, in which both had the same data.
    rival_error : float
        The standard error of the mean loss of the rival alone.
    """

    outcome: Outcome
    rival: str
    excess: float
    paired_error: float
    rival_error: float

    @property
    def best(self) -> bool:
        """Whether no sparse peer has a lower mean."""
        return self.excess <= 0

    @property
    def close(self) -> bool:
        """Whether the entrant is best, or above the rival by at most the standard error of the difference."""
        return self.excess <= self.paired_error

    @property
    def close_to_mean(self) -> bool:
        """The same with the standard error of the rival's mean."""
        return self.excess <= self.rival_error


def standing(outcome: Outcome, entrant: str, peers: list[str]) -> Standing:
    """Return how an entrant compares with the best of some peers."""
    rivals = [name for name in peers if name in outcome.measures and name != entrant]
    rival = min(rivals, key=outcome.mean)
    own, best = outcome.values(entrant), outcome.values(rival)
    return Standing(outcome, rival, float(own.mean() - best.mean()), standard_error(own - best), standard_error(best))


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean of independent values; 0 for a single one."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def standings(results: Results, entrant: str) -> list[Standing]:
    """Return the standings of an entrant, of a peer too: beside the other sparse peers."""
    peers = [name for name in results.sparse if name not in results.ours]
    return [
        standing(outcome, entrant, peers)
        for outcome in results.outcomes
        if entrant in outcome.measures and any(name in outcome.measures for name in peers if name != entrant)
    ]


LASSO = {SQUARED: "lasso", LOGISTIC: "l1 logistic"}
"""The entrants whose number of features is the measure for the others."""


OTHERS = {"r2": "R2", "auc": "AUC", "accuracy": "accuracy"}
"""Measures of real sets beside the loss, and their titles."""


def overview(results: Results, title: str) -> Table:
    """Return a line for each entrant: how often it is best or close, its mean loss, features and time."""
    others = {name: label for name, label in OTHERS.items() if name in _measures(results)}
    body = []
    for entrant in results.entrants:
        there = [outcome for outcome in results.outcomes if entrant in outcome.measures]
        beside = standings(results, entrant) if entrant in results.sparse else []
        losses = [outcome.mean(entrant) for outcome in there]
        body.append(
            (
                entrant,
                str(len(there)),
                *(_share([getattr(each, name) for each in beside]) for name in ("best", "close", "close_to_mean")),
                f"{np.mean(losses):.3f}",
                f"{np.median(losses):.3f}",
                *(f"{np.median([outcome.mean(entrant, name) for outcome in there]):.3f}" for name in others),
                f"{np.mean([outcome.mean(entrant, 'features') for outcome in there]):.1f}",
                figure(features_beside_lasso(there, entrant), ".2f"),
                f"{np.median([outcome.mean(entrant, 'seconds') for outcome in there]):.3g}",
            )
        )
    loss = f"mean {'loss' if others else 'risk'}"
    shares = ("best", "close", "other SE")
    return Table(
        title, ("", "number", *shares, loss, "median", *others.values(), "features", "/ lasso's", "CPU s"), body, NOTE
    )


def _measures(results: Results) -> set[str]:
    return {name for outcome in results.outcomes for found in outcome.measures.values() for name in found}


NOTE = """best: no other sparse package has a lower mean. close: best, or above the best sparse package by at most one
standard error of the paired difference over repetitions; other SE: of the best one's mean. features / lasso's: mean
number over that of the lasso, or of l1 logistic. R2, AUC, accuracy and CPU s: medians over instances."""


def features_beside_lasso(outcomes: list[Outcome], entrant: str) -> float | None:
    """Return the mean number of features over that of the lasso, where both took part; None if the lasso has none."""
    both = [each for each in outcomes if LASSO[each.loss] in each.measures]
    theirs = sum(each.mean(LASSO[each.loss], "features") for each in both)
    return sum(each.mean(entrant, "features") for each in both) / theirs if theirs else None


GROUPS = {
    "setting": list(SETTINGS),
    "beta": [f"beta{kind}" for kind in TYPES],
    "rho": [f"rho{rho:g}" for rho in CORRELATIONS],
    "snr": [f"snr{snr:g}" for snr in RATIOS],
}
"""The parts of the title of a simulated cell, in the order in which they are there, with their values."""


def by_group(results: Results, title: str, group: str) -> Table:
    """Return the mean loss of each entrant for each setting, ratio, correlation or kind of coefficients."""
    found = {part: [each for each in results.outcomes if part in each.title.split()] for part in GROUPS[group]}
    found = {part: outcomes for part, outcomes in found.items() if outcomes}
    body = []
    for entrant in results.entrants:
        groups = ([each.mean(entrant) for each in part if entrant in each.measures] for part in found.values())
        body.append((entrant, *(figure(np.mean(means) if means else None, ".3f") for means in groups)))
    return Table(title, ("", *found), body)


def losing(results: Results, entrant: str, title: str) -> Table:
    """Return the instances where an entrant is not close to the best sparse package, the worst first."""
    lost = [each for each in standings(results, entrant) if not each.close]
    lost.sort(key=lambda each: each.excess, reverse=True)
    body = [
        (
            each.outcome.title,
            f"{each.outcome.mean(entrant):.3f}",
            f"{each.outcome.mean(each.rival):.3f}",
            f"{each.excess:.3f}",
            f"{each.paired_error:.3f}",
            f"{each.outcome.mean(entrant, 'features'):.1f}",
            f"{each.outcome.mean(each.rival, 'features'):.1f}",
            each.rival,
        )
        for each in lost
    ]
    return Table(title, ("", entrant, "best", "excess", "SE", "features", "its", "best package"), body)


def by_instance(results: Results, title: str) -> Table:
    """Return the mean loss and the number of features of every entrant on every instance."""
    names = results.entrants
    body = [
        (
            outcome.title,
            *(
                f"{outcome.mean(name):.3f} ({outcome.mean(name, 'features'):.0f})" if name in outcome.measures else ""
                for name in names
            ),
        )
        for outcome in results.outcomes
    ]
    return Table(title, ("mean loss (features)", *names), body)


@dataclass(frozen=True, slots=True)
class Caution:
    """What an entrant does where there is nothing to find.

    Attributes
    ----------
    fits, empty, worse : int
        The number of fits, of models without a feature, and of the others whose held-out loss is above that of no
        feature by more than the standard error of the difference over held-out rows. (Models without a feature may
        differ from the mean in their intercept, which liblinear penalises.)
    features, loss : float
        Means.
    """

    fits: int
    empty: int
    worse: int
    features: float
    loss: float


def caution(results: Results, entrant: str) -> Caution:
    """Return what an entrant does with the targets of `nothing`."""
    there = [outcome for outcome in results.outcomes if entrant in outcome.measures]
    measures = ("features", "excess", "excess_error", "loss")
    features, excess, error, loss = (
        np.concatenate([each.values(entrant, name) for each in there]) for name in measures
    )
    worse = (features > 0) & (excess > error)
    return Caution(features.size, int((features == 0).sum()), int(worse.sum()), features.mean(), loss.mean())


def nothing_found(results: Results, title: str) -> Table:
    """Return how often each entrant chooses no feature where there is nothing, and how often its loss shows it."""
    body = []
    for entrant in results.entrants:
        found = caution(results, entrant)
        counts = (str(found.fits), str(found.empty), str(found.worse))
        body.append((entrant, *counts, f"{found.features:.1f}", f"{found.loss:.3f}"))
    return Table(title, ("", "fits", "empty", "worse than none", "features", "mean loss"), body, NOTHING_NOTE)


NOTHING_NOTE = (
    "worse than none: with features, and held-out loss above that of none by more than the standard error over rows."
)


def goals(by_task: dict[str, Results], entrant: str, half: str) -> Table:
    """Return the goals of prediction, and what an entrant reaches in one half of the instances."""
    lines = []
    for task, what in (("real", "real sets"), ("simulated", "simulated cells")):
        if task in by_task:
            part = by_task[task].of(half=half)
            close = np.mean([each.close for each in standings(part, entrant)])
            title = f"{what}: best, or within one standard error of the best sparse package"
            lines.append((title, "at least 80 %", f"{close:.0%}", close >= 0.8))
            ratio = features_beside_lasso(part.outcomes, entrant)
            title, reached = f"{what}: features, of those of the lasso", ratio is not None and ratio <= 0.5
            lines.append((title, "at most half", figure(ratio, ".0%"), reached))
    if "simulated" in by_task:
        own, *anchors = _mean_risks(by_task["simulated"].of(half=half), (entrant, *ANCHORS))
        title = "mean relative risk, and the least of lasso and relaxed lasso"
        lines.append((title, f"{min(anchors):.3f}", f"{own:.3f}", own <= min(anchors)))
    if "nothing" in by_task:
        found = caution(by_task["nothing"].of(half=half), entrant)
        empty, worse = (f"{count} of {found.fits}" for count in (found.empty, found.worse))
        title, reached = "nothing to find: models without a feature", found.empty >= 0.95 * found.fits
        lines.append((title, "at least 95 %", empty, reached))
        title = "nothing to find: worse than no feature by a standard error"
        lines.append((title, "none", worse, found.worse == 0))
    rows = [(what, goal, measured, "yes" if reached else "no") for what, goal, measured, reached in lines]
    return Table(f"Goals, {half} half: {entrant}", ("", "goal", "measured", "reached"), rows)


def _mean_risks(results: Results, entrants: tuple[str, ...]) -> list[float]:
    """Return mean relative risks, of instances that all these entrants have finished."""
    both = [each for each in results.outcomes if all(name in each.measures for name in entrants)]
    return [float(np.mean([each.mean(name) for each in both])) if both else np.nan for name in entrants]


ANCHORS = ("lasso", "relaxed lasso")


def for_page(by_task: dict[str, Results]) -> dict[str, Table]:
    """Return the tables of the page on prediction by name: of the reporting half, and the goals of both halves."""
    entrant = by_task["simulated"].ours[0]
    found = {f"goals_{half}": goals(by_task, entrant, half) for half in HALVES}
    parts = {
        "simulated": by_task["simulated"],
        "regressions": by_task["real"].of(loss=SQUARED),
        "classes": by_task["real"].of(loss=LOGISTIC),
    }
    for name, results in parts.items():
        part = results.of(half=REPORTING)
        found[name] = overview(part, name)
        found[f"{name}_lost"] = losing(part, entrant, name)
    found["settings"] = by_group(parts["simulated"].of(half=REPORTING), "settings", "setting")
    found["nothing"] = nothing_found(by_task["nothing"].of(half=REPORTING), "nothing")
    return found


def _share(holds: list[bool]) -> str:
    return f"{np.mean(holds):.0%}" if holds else ""
