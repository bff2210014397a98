"""The conclusion from a comparison: significant differences, and the recommended method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, nan
from statistics import median
from typing import Protocol

import numpy as np
from scipy import stats

from hardthresh.core.errors import plural
from hardthresh.core.numbers import mean_and_error, number

from .entries import Entry
from .targets import Target

LEVEL = 0.05
"""The probability that any of the differences tested together is called more than noise by chance; by convention."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two relative losses in the same outer folds.

    Attributes
    ----------
    mean : float
        The mean difference; NaN without a common fold.
    error : float
        The standard error of the mean difference, corrected for the overlap of training rows; NaN with fewer than two
        folds.
    p_value : float
        The probability of a difference at least as large if there were none, by Student's t distribution with one
        degree of freedom less than there are folds; NaN with fewer than two folds. `MethodComparison.difference`
        corrects it for all comparisons of the same family.
    """

    mean: float
    error: float
    p_value: float

    @property
    def sign(self) -> int:
        """1 or -1 if the difference is significant at the level 5 %, otherwise 0."""
        return int(np.sign(self.mean)) if self.p_value <= LEVEL else 0

    def __str__(self) -> str:
        text = with_error(self.mean, self.error)
        return text if self.mean < 0 or text.startswith("not") else f"+{text}"


def with_error(mean: float, error: float) -> str:
    """Return a mean with its standard error; without it where it is not known, as that of one fold."""
    return number(mean) if isnan(error) else mean_and_error(mean, error)


def difference(values: np.ndarray, folds: int) -> Difference:
    r"""Return the mean of differences between folds, and its standard error.

    .. math:: \text{error}^2 = s^2 \Bigl(\frac1J + \frac1{\text{folds} - 1}\Bigr)

    for J differences with variance s^2: the second term is the ratio of held-out to training rows (Nadeau and Bengio,
    2003), without which the error would go to 0 as folds are drawn again and again.

    Parameters
    ----------
    values : array, shape (J,)
        The difference in each outer fold.
    folds : int
        The number of folds of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> print(difference(np.array([0.1, 0.2, 0.3, 0.2]), 5))
    +0.200 ± 0.058
    """
    if values.size < 2:
        return Difference(float(values[0]) if values.size else nan, nan, nan)
    mean = float(values.mean())
    error = float(values.std(ddof=1) * np.sqrt(1.0 / values.size + 1.0 / (folds - 1)))
    if error == 0.0:  # equal in all folds
        return Difference(mean, error, float(mean == 0.0))
    return Difference(mean, error, float(2.0 * stats.t.sf(abs(mean) / error, values.size - 1)))


def holm(p_value: float, together: Iterable[float]) -> float:
    r"""Return a p-value, corrected for all that are tested together with it (Holm, 1979).

    .. math:: \tilde p_{(i)} = \min\bigl(1, \max_{j \le i} \, (m - j + 1) \, p_{(j)}\bigr)

    for the m sorted p-values: at a level alpha, the probability that any true hypothesis is rejected is at most alpha,
    however the tests depend on each other.

    Parameters
    ----------
    p_value : float
        One of them.
    together : iterable of float
        All of them; those that are NaN are not counted.

    Examples
    --------
    >>> [holm(p, [0.01, 0.02, 0.04]) for p in (0.01, 0.02, 0.04)]
    [0.03, 0.04, 0.04]
    """
    ordered = sorted(p for p in together if not isnan(p))
    if isnan(p_value):
        return nan
    return min(1.0, max((len(ordered) - j) * p for j, p in enumerate(ordered) if p <= p_value))


class Compared(Protocol):
    """What a verdict is about: `MethodComparison`, which has it."""

    @property
    def target(self) -> Target:
        """What is predicted."""
        ...

    @property
    def ranked(self) -> list[Entry]:
        """The entrants that have a loss, the lowest relative loss first."""
        ...

    @property
    def reference(self) -> Entry | None:
        """The entrant that others are compared with."""
        ...

    def in_every_fold(self, entry: Entry) -> bool:
        """Return whether an entrant has a loss in every outer fold."""
        ...

    def difference(self, name: str, reference: str | None = None) -> Difference:
        """Return by how much the relative loss of an entrant is larger than that of another, or of no features."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion from a comparison.

    Attributes
    ----------
    kind : {"nothing predicts", "lost", "won", "undecided", "no comparison"}
        Whether any method predicts better than the model without features; and if so, whether our method is
        significantly worse than another one ("lost"), better than all others ("won"), or neither ("undecided"). If our
        method has no loss in some fold, the entrant with the lowest loss replaces it, see `MethodComparison.reference`.
    recommended : str or None
        The method to use; None if no method predicts better than the model without features.
    sentences : tuple of str
        The verdict in words, the most important sentence first.
    """

    kind: str
    recommended: str | None
    sentences: tuple[str, ...]


def verdict(found: Compared) -> Verdict:
    """Return what follows from a comparison."""
    sound = [entry for entry in found.ranked if found.in_every_fold(entry)]
    reference = found.reference
    if reference is None:
        return Verdict("no comparison", None, ("No method could be fitted to every fold; the reasons are below.",))
    useful = [entry for entry in sound if found.difference(entry.name).sign < 0]
    if not useful:
        return _nothing(found, sound[0])
    if len(sound) == 1:
        own = found.difference(reference.name)
        sentence = (
            f"{reference.name} predicts better than no features ({own}); there is no other method to compare with."
        )
        return Verdict("no comparison", reference.name, (sentence,))
    others = [entry for entry in sound if entry.name != reference.name]
    better = [entry for entry in others if found.difference(entry.name, reference.name).sign < 0]
    worse = [entry for entry in others if found.difference(entry.name, reference.name).sign > 0]
    same = [entry for entry in others if entry not in better and entry not in worse]
    if better and not any(entry in useful for entry in better):
        return _contradictory(found, reference, better[0], useful[0])
    if better:
        return _lost(found, reference, better, useful)
    return _not_lost(found, reference, same, worse, useful)


def _nothing(found: Compared, best: Entry) -> Verdict:
    own = found.difference(best.name)
    return Verdict(
        "nothing predicts",
        None,
        (
            f"No method predicts better than {found.target.null}, beyond the noise: the lowest loss is that of "
            f"{best.name}, {mean_and_error(best.relative_loss, own.error)}, where 1 is no features.",
            f"Use none of these models for predictions; predict {found.target.null}. More rows, or other features, may "
            "change that.",
        ),
    )


def _contradictory(found: Compared, ours: Entry, better: Entry, useful: Entry) -> Verdict:
    """Return the verdict where those that predict better than ours do not predict better than no features."""
    return Verdict(
        "undecided",
        useful.name,
        (
            f"{better.name} predicts better than {ours.name}, beyond the noise, but not better than "
            f"{found.target.null}; {useful.name} does.",
            f"Use {useful.name}: {_counted(useful)}. More rows may decide between them.",
        ),
    )


def _lost(found: Compared, ours: Entry, better: list[Entry], useful: list[Entry]) -> Verdict:
    best = next(entry for entry in better if entry in useful)
    own = found.difference(best.name, ours.name)
    sentences = [
        f"{ours.name} loses here: {best.name} predicts better, by {mean_and_error(-own.mean, own.error)} of the loss "
        f"without features, which is more than the noise ({_losses(best, ours)})."
    ]
    if len(better) > 1:
        names = _listed([entry.name for entry in better if entry is not best])
        sentences.append(f"Better than {ours.name}, too, beyond the noise: {names}.")
    if best.uses_all:
        sentences.append(
            f"Use {best.name} if only predictions count. It uses all {plural(best.width, 'feature')}"
            + (", and finds what is not linear." if best.name == "forest" else ".")
        )
        sparse = [entry for entry in useful if not entry.uses_all]
        if sparse:
            choice = _fewest_within_noise(found, sparse)
            sentences.append(f"If the model must have few features, use {choice.name}: {_counted(choice)}.")
    else:
        sentences.append(f"Use {best.name}: {_counted(best)}, where {ours.name} has {_counted(ours)}.")
    return Verdict("lost", best.name, tuple(sentences))


def _not_lost(found: Compared, ours: Entry, same: list[Entry], worse: list[Entry], useful: list[Entry]) -> Verdict:
    sentences = []
    if worse:
        sentences.append(
            f"{ours.name} predicts better than {_listed([entry.name for entry in worse])}, beyond the noise."
        )
    if same:
        names = _listed([ours.name, *(entry.name for entry in same)])
        sentences.append(
            f"The folds do not decide between {names}: the {_differences(same)} within the noise, "
            "which does not prove that they are equal."
        )
    good = [entry for entry in (ours, *same) if entry in useful] or useful
    sparse = [entry for entry in good if not entry.uses_all]
    choice = _fewest(sparse) if sparse else min(good, key=lambda entry: entry.relative_loss)
    if ours in sparse and median(ours.counts) == median(choice.counts):
        choice = ours
    if choice is ours:
        fewest = "no method with as low a loss uses fewer features" if same else "it has the lowest loss"
        sentences.append(f"Use {ours.name}: {_counted(ours)}, and {fewest}.")
    elif choice.uses_all:
        sentences.append(
            f"Use {choice.name}: no method with few features predicts better than {found.target.null}, beyond the "
            "noise."
        )
    elif ours not in good:
        sentences.append(
            f"Use {choice.name}: {_counted(choice)}. It predicts better than {found.target.null}, beyond the noise, "
            f"and {ours.name} does not."
        )
    else:
        sentences.append(
            f"Use {choice.name}, if few features count: {_counted(choice)}, where {ours.name} has {_counted(ours)}, "
            "with no difference in loss beyond the noise."
        )
    return Verdict("won" if choice is ours and not same else "undecided", choice.name, tuple(sentences))


def _fewest_within_noise(found: Compared, sparse: list[Entry]) -> Entry:
    """Return of the sparse entrants that the folds cannot tell from the best of them that with the fewest features."""
    best = sparse[0]
    return _fewest([each for each in sparse if each is best or found.difference(each.name, best.name).sign == 0])


def _fewest(entries: list[Entry]) -> Entry:
    return min(entries, key=lambda entry: (median(entry.counts), entry.relative_loss))


def _counted(entry: Entry) -> str:
    count = median(entry.counts)
    return f"{count:g} {'feature' if count == 1 else 'features'} in the median fold"


def _losses(first: Entry, second: Entry) -> str:
    return f"{first.relative_loss:.3f} against {second.relative_loss:.3f}"


def _differences(entries: list[Entry]) -> str:
    return "difference is" if len(entries) == 1 else "differences are"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
