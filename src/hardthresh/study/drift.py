"""Whether early and late examples differ: in their attributes, their target, or the relation between these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, nan, sqrt
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, f, ncf, ncx2, norm, ttest_ind

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import plural
from hardthresh.core.numbers import number, percent
from hardthresh.core.typing import Array

from .chosen import unchanged_since
from .intervals import holm
from .models import PER_COEFFICIENT, standardized, varied
from .progress import first_losses
from .records import Learned
from .two_samples import FEW_VALUES, likelihood_ratio, two_samples, wald

FEWEST_OF_HALF = 20
"""Examples of each half that a test needs; arbitrary: with fewer, next to nothing is found."""
EVENTS_PER_COEFFICIENT = 10
"""Examples of the rarer class in each half, for each coefficient. With 10 the likelihood ratio test rejects 5 to 6 % of
equal models at the level of 5 %, with 5 it rejects 7 to 9 %, and with 2.5 16 to 18 % (400 draws of 3 and 7 columns)."""
TEN_LOOKS = 0.31
"""The share of studies without drift in which some of ten looks reports it, at the level of 5 % for each look: 83 of
264 studies of 600 examples (``benchmarks/study.py --only looks``); the last look does in 15."""
POWER = 0.8  # with which a change is said to be found: the convention of sample size calculations

Kind = Literal["attribute", "target", "relation", "errors"]


@dataclass(frozen=True, slots=True)
class DriftTest:
    """A test of whether early and late examples differ.

    Attributes
    ----------
    kind : {"attribute", "target", "relation", "errors"}
        What is compared.
    name : str
        The column, or what is compared in words.
    early, late : int
        The number of examples on both sides.
    early_mean, late_mean : float
        The means on both sides: of the column, of the target (also for the relation), or of the errors.
    p : float
        The p-value of this test alone.
    adjusted : float
        The p-value adjusted by Holm's method for all tests.
    detectable : float
        The smallest change that would have been found with a probability of at least 80 %; NaN where it is not known.
        Of a column of numbers the shift in standard deviations; of the relation the excess error of the early model on
        late examples: the share that is added to the squared error, or nats that are added to the log loss.
    """

    kind: Kind
    name: str
    early: int
    late: int
    early_mean: float
    late_mean: float
    p: float
    adjusted: float = nan
    detectable: float = nan

    def __str__(self) -> str:
        sizes = f"{self.early} early and {self.late} late examples"
        values = f"adjusted p = {number(self.adjusted)}"
        if self.kind == "relation":
            return f"the relation of the chosen attributes and the target, on {sizes}: {values}"
        return f"{self.name}: mean {number(self.early_mean)}, then {number(self.late_mean)}, on {sizes}: {values}"

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, None for NaN."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if value != value else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Drift:
    """The tests of drift in a study; ``print`` it to read it.

    Attributes
    ----------
    tests : tuple of DriftTest
        All tests that there were enough examples for.
    untested : tuple of str
        What could not be tested.
    level : float
        The probability that some test reports drift where there is none, at one look.
    is_class : bool
        Whether the target is one of two classes.
    """

    tests: tuple[DriftTest, ...]
    untested: tuple[str, ...]
    level: float
    is_class: bool = False

    @property
    def found(self) -> tuple[DriftTest, ...]:
        """The tests that report drift, the smallest p-value first."""
        return tuple(sorted((test for test in self.tests if test.adjusted <= self.level), key=lambda test: test.p))

    def __str__(self) -> str:
        if not self.tests:
            return "There are too few examples to test for drift."
        if self.found:
            lines = [self.heading, *(f"  {test}" for test in self.found), self.consequence]
        else:
            lines = [self.heading, *self._detectable()]
        if self.untested:
            lines.append(f"Too few examples to test: {', '.join(self.untested)}.")
        return "\n".join(lines)

    @property
    def heading(self) -> str:
        """Whether drift was found, and in how many tests at which level."""
        how = (
            f"{plural(len(self.tests), 'test')} of early against late examples, with {percent(self.level)} for all of "
            "them at one look"
        )
        return f"Drift found, in {how}:" if self.found else f"No drift found, in {how}."

    @property
    def consequence(self) -> str:
        """What follows where drift was found."""
        return (
            "The model weighs all examples alike. Look for a reason, such as another device, unit, place or season. "
            f"If you look often, it may be chance: in {percent(TEN_LOOKS)} of simulated studies without drift, "
            "some of ten looks reported it at a level of 5 %."
        )

    def _detectable(self) -> list[str]:
        """Return which changes would have been found."""
        shifts = [test.detectable for test in self.tests if test.kind in ("attribute", "target")]
        known = [shift for shift in shifts if shift == shift]
        relation = [
            test.detectable for test in self.tests if test.kind == "relation" and test.detectable == test.detectable
        ]
        lines = (
            [f"These would have been found with a probability of {percent(POWER)} or more:"]
            if known or relation
            else []
        )
        if known:
            span = number(min(known)) + (f" to {number(max(known))}" if len(known) > 1 else "")
            lines.append(f"  a shift of a number by {span} standard deviations, by how often it was observed;")
        if relation:
            added = (
                f"{number(relation[0])} nats to the log loss"
                if self.is_class
                else f"{percent(relation[0])} to the squared error"
            )
            lines.append(f"  a change of the relation that adds {added} of an early model on late examples.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON."""
        return {
            "level": self.level,
            "tests": [test.to_dict() for test in self.tests],
            "found": [test.name for test in self.found],
            "untested": list(self.untested),
        }


def drift(learned: Learned, *, level: float = 0.05) -> Drift:
    """Return tests of whether the early examples of a study differ from the late ones.

    Each half of the examples is compared with the other one:

    - every *attribute* that was observed often enough in both, and the *target*: by the Kolmogorov-Smirnov test, or, if
      there are at most ten values, by Fisher's exact test (two values) or Pearson's;
    - the *relation* of the chosen attributes and the target, from the examples since the choice last changed: whether
      one linear model fits both halves of these, by a Wald test with the covariances HC3, or for classes one logistic
      model, by the likelihood ratio; without columns in which fewer than ten examples of a half differ from the most
      frequent value;
    - the *errors* of the predictions before learning: whether those of the second half are larger than those of the
      quarter before it, by Welch's t test.

    Parameters
    ----------
    learned : Learned
        What the study has learned from.
    level : float
        The probability of reporting drift where there is none, above 0 and below 1, for all tests together (Holm) at
        one look.

    Returns
    -------
    Drift

    Raises
    ------
    InvalidInputError
        For a `level` out of range.

    See Also
    --------
    progress : The error of the latest predictions.

    Notes
    -----
    The choice of attributes depends on earlier answers. A model compared on the examples that chose it would seem to
    get worse, even without drift; therefore the relation is tested on later examples alone, and if it changes so much
    that other attributes are chosen, only the errors show it. Missing values do no harm as long as the reason stays the
    same. The errors of the linear model may have any distribution and any variances. These assumptions are heuristic:
    values are independent of the choice of when to observe them, the logistic model of classes is right, and errors do
    not grow without drift. The level holds at one look: of 264 simulated
    studies without drift, 6 % reported it at the last of ten looks, and 31 % at one look or more.
    ``benchmarks/study.py`` measures level and power. The detectable changes hold for normal values, errors of equal
    variance and the level divided by the number of tests. Cost: O(d n log n) operations.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import AdaptiveHybrid, CostModel
    >>> from hardthresh.study import drift
    >>> from hardthresh.study.simulation import simulate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 6))
    >>> X[300:, 4] += 1.0  # another device
    >>> y = X[:, 1] - X[:, 5] + 0.5 * rng.standard_normal(600)
    >>> learned, _ = simulate(AdaptiveHybrid(2), CostModel.of(6, 4), X, y, length=600)
    >>> [test.name for test in drift(learned).found]
    ['4']
    """
    level = checked_number("level", level, above=0.0, below=1.0)
    n = len(learned.target)
    late = np.arange(n) >= n / 2
    tests: list[DriftTest] = []
    untested: list[str] = []
    columns = [("attribute", name, learned.values[:, j]) for j, name in enumerate(learned.columns)]
    for kind, name, values in [*columns, ("target", "the target", learned.target)]:
        known = np.isfinite(values)
        sides = values[known & ~late], values[known & late]
        if min(map(len, sides)) < FEWEST_OF_HALF:
            untested.append(name)
        elif np.ptp(values[known]) > 0:  # what does not vary has not changed
            tests.append(_test(kind, name, sides, two_samples(*sides)))
    rows, compared = _compared(learned)
    relation = _relation(learned, rows, compared)
    for part in (relation, _errors(learned)):
        (untested if isinstance(part, str) else tests).append(part)  # type: ignore[arg-type]
    if isinstance(relation, DriftTest):
        untested += [f"the coefficient of {learned.columns[j]}" for j in learned.chosen[-1] if j not in compared]
    single = level / max(1, len(tests))
    adjusted = holm(np.array([test.p for test in tests])).tolist()
    return Drift(
        tests=tuple(
            replace(test, adjusted=p, detectable=_detectable(test, learned, single, compared.size + 1))
            for test, p in zip(tests, adjusted, strict=True)
        ),
        untested=tuple(untested),
        level=level,
        is_class=learned.is_class,
    )


def _test(kind: Any, name: str, sides: tuple[Array, Array], p: float) -> DriftTest:
    early, late = sides
    return DriftTest(kind, name, len(early), len(late), float(np.mean(early)), float(np.mean(late)), float(p))


def _compared(learned: Learned) -> tuple[slice, Array]:
    """Return the examples since the choice last changed, and the chosen columns that vary enough in both halves."""
    rows = slice(unchanged_since(learned), None)
    chosen = learned.chosen[-1] if learned.chosen else np.empty(0, dtype=np.intp)
    x = learned.values[rows, chosen]
    middle = len(x) // 2
    return rows, chosen[varied(x[:middle]) & varied(x[middle:])]


def _relation(learned: Learned, rows: slice, columns: Array) -> DriftTest | str:
    name, size = "the relation", columns.size + 1
    x, y = learned.values[rows, columns], learned.target[rows]
    middle = len(y) // 2
    if not columns.size or middle < max(FEWEST_OF_HALF, PER_COEFFICIENT * size):
        return name
    centre, scale = standardized(x)
    x = (x - centre) / scale
    sides = y[:middle], y[middle:]
    halves = x[:middle], sides[0], x[middle:], sides[1]
    if not learned.is_class:
        return _test("relation", name, sides, wald(*halves))
    rarer = min(np.sum(side == label) for side in sides for label in (0, 1))
    return _test("relation", name, sides, likelihood_ratio(*halves)) if rarer >= EVENTS_PER_COEFFICIENT * size else name


def _errors(learned: Learned) -> DriftTest | str:
    name, losses, _ = first_losses(learned)
    n = len(losses)
    with_model = [batch for batch, support in enumerate(learned.chosen) if support.size]
    first = np.searchsorted(learned.batch, with_model[0], side="right") if with_model else n
    early, late = losses[max(int(first), n // 4) : n // 2], losses[n // 2 :]
    if min(len(early), len(late)) < FEWEST_OF_HALF:
        return "the errors"
    p = 1.0 if np.ptp(losses) == 0 else ttest_ind(late, early, equal_var=False, alternative="greater").pvalue
    return _test("errors", f"the {name} of predictions", (early, late), p)


def _detectable(test: DriftTest, learned: Learned, level: float, size: int) -> float:
    """Return the smallest change that a test at a level finds with the probability `POWER`, or more; else NaN.

    The `size` is the number of coefficients of the relation.
    """
    inverse = 1 / test.early + 1 / test.late
    if test.kind == "relation" and learned.is_class:
        return _solved(lambda x: float(ncx2.sf(chi2.isf(level, size), size, 2 * x / inverse)) - POWER)
    if test.kind == "relation":
        # HC3 multiplies variances by 1 / (1 - leverage), on average 1 / (1 - (size + 2) / n) for n normal examples;
        # with this the power was 79 to 81 % for 2 to 8 coefficients and halves of 20 to 200 (3,000 draws of each)
        inverse = sum(1 / (n - size - 2) for n in (test.early, test.late))
        freedom = test.early + test.late - 2 * size
        return _solved(lambda x: float(ncf.sf(f.isf(level, size, freedom), size, freedom, x / inverse)) - POWER)
    column = learned.target if test.kind == "target" else None
    if test.kind == "attribute":
        column = learned.values[:, learned.columns.index(test.name)]
    if column is None or len(np.unique(column[np.isfinite(column)])) <= FEW_VALUES:
        return nan
    critical = sqrt(-0.5 * log(level / 2) * inverse)  # of the statistic, asymptotically

    def spare(shift: float) -> float:
        # the statistic is at least the difference half-way between both means, which is nearly normal
        below = float(norm.cdf(shift / 2))
        return 2 * below - 1 - float(norm.isf(1 - POWER)) * sqrt(below * (1 - below) * inverse) - critical

    return _solved(spare)


def _solved(increasing: Callable[[float], float]) -> float:
    """Return where an increasing function is 0; NaN if it is not between 0 and 100, which is no drift but a failure."""
    low, high = 1e-9, 100.0
    return float(brentq(increasing, low, high)) if increasing(low) < 0 < increasing(high) else nan
