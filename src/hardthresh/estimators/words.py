"""Sentences about a fitted model that summaries, the command line and the report share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan

from hardthresh.core.errors import plural
from hardthresh.core.numbers import mean_and_error, number, percent

from .choice_facts import HELD_OUT, CrossValidation, Score
from .facts import Facts, Feature

_MISSING = "–"
_NAMED = 5
"""Features, at most, that are named in a sentence."""
IN_HALVES = "In halves: the share of half-samples of the rows whose fit chooses the feature."
"""The note on that column of tables."""


def headline(facts: Facts, target: str | None = None) -> str:
    """Return what was chosen for which target, in one line.

    Parameters
    ----------
    facts : Facts
        The model.
    target : str, optional
        The name of the target.
    """
    requested = _requested(facts)
    if all_requested(facts):
        return f"Every feature is in the model on request, to predict {_what(facts, target)}"
    if facts.cross_validation is not None and not facts.cross_validation.found:
        than = f"the {requested} on request alone" if requested else "none"
        return f"No number of {facts.unit}s predicts better than {than}"
    more = f", with {requested} more on request" if requested else ""
    count = f"{columns(facts.features) - requested:,} of {facts.n_features:,} features"
    return f"{count} chosen to predict {_what(facts, target)}{more}"


def _requested(facts: Facts) -> int:
    return columns(feature for feature in facts.features if feature.requested)


def columns(features: Iterable[Feature]) -> int:
    """Return the number of columns of the table that some features are, or are levels of."""
    return len(by_column(features))


def by_column(features: Iterable[Feature]) -> list[Feature]:
    """Return one feature for each column of the table: the levels of one have its name, and the largest share of folds.

    A fold whose rows lack a level chooses the others.
    """
    found: dict[tuple[bool, int], Feature] = {}
    for feature in features:
        level = feature.level_of is not None
        key = level, feature.index if feature.level_of is None else feature.level_of
        whole = replace(feature, name=feature.column) if level else feature
        if key not in found or (whole.share or 0.0) > (found[key].share or 0.0):
            found[key] = whole
    return list(found.values())


def all_requested(facts: Facts) -> bool:
    """Return whether every feature is in the model on request, so that none is left to choose."""
    return _requested(facts) == facts.n_features


def _what(facts: Facts, target: str | None) -> str:
    return f"{target or 'the target'}{_values(facts)}"


def _values(facts: Facts) -> str:
    """Return the classes or the number of outputs, after a colon."""
    names = [label(name) for name in facts.classes]
    if len(names) == 2:
        return f": {names[1]} against {names[0]}"
    if names and not facts.outputs:
        return f": {' < '.join(facts.classes)}"
    if 2 < len(names) <= 6:
        return f": {', '.join(names[:-1])} or {names[-1]}"
    return f": one of {len(names)} classes" if names else f": {len(facts.outputs)} outputs" if facts.outputs else ""


def label(name: str) -> str:
    """Return a class so that a number is recognised as one."""
    return f"class {name}" if name.isnumeric() else name


def directions(facts: Facts) -> str:
    """Return what the side of a bar of a coefficient means."""
    if facts.outputs:
        what = "classes" if facts.classes else "outputs"
        return f"The length of the vector of a feature's coefficients for all {what}; the table has each of them."
    right, left = "raises the prediction", "lowers it"
    if len(facts.classes) == 2:
        right, left = f"speaks for {facts.classes[-1]}", f"speaks for {facts.classes[0]}"
    elif facts.classes:
        right, left = "speaks for higher classes", "for lower ones"
    return f"To the right: {right}. To the left: {left}."


def chosen_by(facts: Facts) -> str:
    """Return what chose the number of features, as the end of a sentence about it."""
    searched = " (searched, not all tried)" * facts.searched
    if facts.cross_validation is not None:
        return f"cross-validation chose{searched}"
    heuristic = " (heuristic: the loss has no likelihood)" * facts.ranks_only
    return f"was chosen by {facts.criterion}{heuristic}{searched}" if facts.criterion else "was given"


def held_out(facts: Facts) -> str:
    """Return how well the model predicts held-out rows, or that this was not measured."""
    cv = facts.cross_validation
    if cv is None:
        return "Not validated: how well it predicts new rows was not measured"
    if not cv.found:
        return nothing_found(facts)
    if cv.held_out:
        name, value, without = score_cells(cv.held_out[0])
        return f"Held-out rows: {name} {value}, without features {without}; optimistic, because they chose k too"
    return f"Held-out rows: {cv.measure} {score_at(cv, cv.chosen)}; optimistic, because they chose k too"


def qualifications(facts: Facts) -> list[str]:
    """Return what a reader of the headline must know besides: the models averaged, and features that are not stable."""
    cv = facts.cross_validation
    if cv is None or not cv.found:
        return []
    return [part for part in (average(cv, facts.left_out), _instability(facts)) if part]


def average(cv: CrossValidation, left_out: Sequence[str] = ()) -> str:
    """Return of which models an estimator is the average; nothing if it is a single model."""
    if not cv.models:
        return ""
    sizes, unit = [model.k for model in cv.models], f"{cv.unit}s"
    few, many = min(sizes), max(sizes)
    without = ""
    if left_out:
        more = len(left_out) - _NAMED
        names = [*left_out[:_NAMED], *([f"{more} more"] if more > 0 else [])]
        without = f", without {_listed(names)}, which its predictions hardly need"
    return f"the average of {len(sizes)} models with {f'{few} to {many}' if few < many else few} {unit}{without}"


def _listed(names: Sequence[str]) -> str:
    """Return names with "and" before the last."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def average_may_lose(cv: CrossValidation) -> str:
    """Return that an average may score worse than the best single model; nothing if it is a single model."""
    if not cv.models:
        return ""
    return "On one data set the average may score worse than the best single model, which was chosen for its score."


def negative_weight(cv: CrossValidation) -> str:
    """Return why weights of the averaged models exceed 100 % together; nothing if none of them is negative."""
    if all(model.weight >= 0 for model in cv.models):
        return ""
    unit = f"{cv.unit}s"
    return (
        f"The weights of the models with {unit} are together more than 100 %; that of the model without {unit} is "
        "negative, so that the sum of all is 100 %."
    )


def _instability(facts: Facts) -> str:
    """Return how many features the folds seldom choose; nothing if they choose most of them."""
    chosen = by_column(feature for feature in facts.features if not feature.requested)
    shares = [feature.share for feature in chosen if feature.share is not None]
    none, seldom = shares.count(0.0), sum(share < 0.5 for share in shares)
    if not seldom:
        return ""
    many = none or seldom
    verb = "is" if many == 1 else "are"
    return f"{many} of {len(shares)} {verb} in {'no fold' if none else 'fewer than half of the folds'}"


def nothing_found(facts: Facts) -> str:
    """Return the scores by which no number of features is better than none; nothing if one is."""
    cv = facts.cross_validation
    if cv is None or cv.found:
        return ""
    if all_requested(facts):
        return f"No other feature could be chosen. The held-out {cv.measure} is {score_at(cv, cv.chosen)}."
    row = cv.best_with_features
    best = ", the best number," if len(cv.k) > 1 else ""
    scores = f"With {plural(int(cv.k[row]), cv.unit)}{best} the held-out {cv.measure} is {score_at(cv, row)}"
    if cv.null is not None and cv.null_error is not None:
        without = "with only those on request" if _requested(facts) else "without any"
        scores += f"; {without} it is {mean_and_error(cv.null, cv.null_error)}"
    scores += permutation_test(cv)
    if any(not feature.requested for feature in facts.features):
        return f"{scores}. The model has {cv.unit}s nevertheless, because 0 was not compared."
    left = "only the features on request" if facts.features else "no features: it predicts the same for every row"
    return f"{scores}. The model has {left}."


def permutation_test(cv: CrossValidation) -> str:
    """Return the p-value of the permutation test in parentheses, after a space; nothing if it was not computed."""
    return "" if cv.p_value is None else f" (permutation test: p = {number(cv.p_value)})"


def score_at(cv: CrossValidation, row: int) -> str:
    """Return the mean score of a candidate with its standard error."""
    return mean_and_error(float(cv.mean[row]), float(cv.error[row]))


def ridges(cv: CrossValidation) -> str:
    """Return which ridges the curve, the chosen model and averaged models have; nothing if none were compared."""
    if cv.ridge is None or not cv.found:
        return ""
    if len(cv.ridges) == 1:
        return f"The ridge is {number(cv.ridge)}."
    of = f"of {len(cv.ridges)} from {number(cv.ridges[0])} to {number(cv.ridges[-1])}"
    chosen = "best single model" if cv.models else "chosen k"
    sentence = f"The ridge of each k is its best {of}; that of the {chosen} is {number(cv.ridge)}"
    if not cv.models:
        return f"{sentence}."
    least, most = (number(end(model.ridge for model in cv.models)) for end in (min, max))
    used = f"ridges of {least} to {most}" if least != most else f"the ridge {least}"
    return f"{sentence}; the averaged models have {used}."


def extended(cv: CrossValidation) -> str:
    """Return that the range of k was extended; nothing if it was not."""
    return f"The range of k was extended to {cv.k[-1]}, because the best was near its end." if cv.extended else ""


def score_cells(score: Score) -> tuple[str, str, str]:
    """Return the name of a score, its value, and that without features; a dash where one is not defined."""
    if score.without is None:
        best = 1 if score.key == "calibration_slope" else 0
        return f"{score.name} (best is {best})", _cell(score.key, score.value), _MISSING
    return score.name, _cell(score.key, score.value), _cell(score.key, score.without)


def fit_score(name: str, value: float) -> str:
    """Return a score on the rows of the fit with its name."""
    return f"{HELD_OUT.get(name, name.replace('_', ' '))} {_cell(name, value)}"


def _cell(key: str, value: float) -> str:
    if isnan(value):
        return _MISSING
    return percent(value) if key == "accuracy" else number(value)
