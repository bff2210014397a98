"""A plan: what a study will cost, and what it will find, by simulating it before the first example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, log10, sqrt
from textwrap import fill
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number, percent
from hardthresh.core.typing import is_integer
from hardthresh.diagnostics.limited import LimitedPlan, limited_plan

from .advice import Recommendation, advice, blocks, smallest, table_of_sizes
from .population import Guess, OldTable, Population, most_columns
from .sizes import PlannedSize, Simulation
from .terms import Terms

_FIRST = 25  # examples for each block of attributes in the smallest study of a plan; arbitrary, as the next has twice
_LEAST = 50  # or so many
_DOUBLINGS = 7  # of the number of examples, at most: the largest study has 3,200 for each block
_BISECTIONS = 2  # of the number of examples that are needed, which is then known up to 2^(1/4), or 19 %
_WIDTH = 112  # letters of a line, as the table has
_SURE = 0.95  # a share of studies beyond which larger ones are of no interest


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan for a study; ``print`` it to read it.

    Attributes
    ----------
    terms : Terms
        The terms of the study.
    sizes : tuple of PlannedSize
        What was simulated, by the number of examples.
    repeats : int
        The simulated studies of each size.
    wanted : float
        The share of studies that should find all right columns.
    needed_examples : int or None
        The smallest simulated number of examples from which on so many do; None if none did.
    allowed_examples : int or None
        What ``examples`` and ``total_budget`` of the terms allow; None without either.
    recommendation : {"adaptive", "complete", "either", "neither"}
        The better use of the money: an adaptive study; complete rows, provided that an example may be measured
        completely; either, where none is clearly better; or neither, where both predict hardly better than without
        attributes.
    advice : tuple of str
        What follows from all that, in words.
    assumptions : tuple of str
        What was assumed, in words.
    theorem : LimitedPlan or None
        What Theorem 4.4 asks for, where prices are equal and the target is a number; None else.
    """

    terms: Terms = field(repr=False)
    sizes: tuple[PlannedSize, ...]
    repeats: int
    wanted: float
    needed_examples: int | None
    allowed_examples: int | None
    recommendation: Recommendation
    advice: tuple[str, ...]
    assumptions: tuple[str, ...]
    theorem: LimitedPlan | None = None

    def __str__(self) -> str:
        title = f"Plan of {self.terms.title!r}" if self.terms.title else "Plan of a study"
        lines = [f"{title}, by {self.repeats} simulated studies of each size", "", "Assumed:"]
        lines += [_filled(assumption, initial_indent="- ", subsequent_indent="  ") for assumption in self.assumptions]
        lines += ["", *table_of_sizes(self.sizes, self.terms)]
        for paragraph in self.advice if self.theorem is None else (*self.advice, _theorem_in_words(self.theorem)):
            lines += ["", _filled(paragraph)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON."""
        return {
            "title": self.terms.title,
            "currency": self.terms.currency,
            "repeats": self.repeats,
            "wanted": self.wanted,
            "needed_examples": self.needed_examples,
            "allowed_examples": self.allowed_examples,
            "recommendation": self.recommendation,
            "advice": list(self.advice),
            "assumptions": list(self.assumptions),
            "sizes": [size.to_dict() for size in self.sizes],
            "theorem_examples": _finite_examples(self.theorem),
        }


def plan(
    terms: Terms,
    *,
    examples: int | Sequence[int] | None = None,
    needed: int | Sequence[str] | None = None,
    r2: float | None = None,
    auc: float | None = None,
    share: float | None = None,
    correlation: float | None = None,
    table: Any = None,
    wanted: float = 0.8,
    repeats: int = 50,
    seed: int = 0,
) -> Plan:
    """Return what studies with these terms cost and find, by simulating them with the learner that a study has.

    Every simulated study has its own examples, by a guess of the signal or from an old table. It is planned for its
    number of examples: the real one has to have the same ``examples`` in its terms.

    Parameters
    ----------
    terms : Terms
        The terms of the study.
    examples : int or sequence of int, optional
        The numbers of examples to simulate. Default: doubled until nearly all studies find all right columns, and then
        bisected; and what the terms allow.
    needed : int or sequence of str, optional
        The guess of how many columns have an effect, at most ``n_nonzero_coefs`` and as many as a prediction may buy
        together (default), or the names of the attributes that have one.
    r2 : float, optional
        The guess of the share of the variance of a number that the best model explains, above 0 and at most 1. Default:
        0.5.
    auc : float, optional
        The guess of the area under the ROC curve of the best model for two classes, above 0.5 and below 1. Default:
        0.8.
    share : float, optional
        The guess of the share of the second class, above 0 and below 1. Default: 0.5.
    correlation : float, optional
        The guess of the correlation of any two attributes, at least 0 and below 1. Default: 0.1.
    table : data frame, optional
        Rows of an earlier study or a register, with the names and levels of the terms, in the place of a guess. Only
        rows with a value of every attribute and of the target are used, at least 50; those of an adaptive study are
        hardly ever complete.
    wanted : float
        The share of studies that should find all right columns, above 0 and below 1.
    repeats : int
        The number of simulated studies of each size, at least 2.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInputError
        For numbers out of their ranges, guesses that do not apply to the target or a table, and tables that the terms
        do not fit.

    See Also
    --------
    hardthresh.diagnostics.limited_plan : What the theorem asks for.

    Notes
    -----
    By a guess, numbers are standard normal, levels are equally frequent, effects are equal in standard deviations and
    have random signs, and errors are normal. An old table is resampled: what its rows share by chance counts as real,
    the more the smaller it is. For the same money, `SparseLinearRegression` or `SparseLogisticRegression` is fitted to
    complete rows, with at most one coefficient for every four rows. No guarantee but that of a simulation: the plan is
    as good as its guess. Cost: 0.1 to 0.2 ms for each example of each simulated study, a minute
    for a plan.

    Examples
    --------
    >>> from hardthresh.study import Terms, plan
    >>> names = "abcdefghijkl"
    >>> terms = Terms.parse(
    ...     "n_nonzero_coefs = 2\\nbudget_per_example = 6\\n[target]\\nname = 'y'\\n"
    ...     + "".join(f"[attributes.{name}]\\n" for name in names)
    ... )
    >>> found = plan(terms, examples=[100, 800], r2=0.6, repeats=5)
    >>> [size.cost <= 6 * size.examples for size in found.sizes], found.sizes[1].all_found.value
    ([True, True], 1.0)
    >>> print(found.advice[0])
    800 examples are needed so that 80 % of the studies find all right columns: 100 % (57 % to 100 %) of those ...
    """
    checked_number("wanted", wanted, above=0.0, below=1.0)
    checked_integer("repeats", repeats, least=2)
    checked_integer("seed", seed, least=0)
    guess = {"needed": needed, "r2": r2, "auc": auc, "share": share, "correlation": correlation}
    population = _population(terms, table, {name: value for name, value in guess.items() if value is not None})
    simulation = Simulation(terms, population, repeats, seed)
    given = None if examples is None else _checked_sizes(examples)
    sizes = {n: simulation.size(n) for n in given} if given else _search(simulation, wanted)
    allowed = _allowed(terms, _ordered(sizes))
    if not given and allowed is not None and allowed < max(sizes) and allowed not in sizes:
        sizes[allowed] = simulation.size(allowed)
    ordered = _ordered(sizes)
    needed_examples = _needed(ordered, wanted)
    theorem = _theorem(terms, population) if isinstance(population, Guess) else None
    said, recommendation = advice(terms, ordered, wanted, needed_examples, allowed, population.constant)
    return Plan(
        terms=terms,
        sizes=ordered,
        repeats=repeats,
        wanted=wanted,
        needed_examples=needed_examples,
        allowed_examples=allowed,
        recommendation=recommendation,
        advice=said,
        assumptions=population.assumptions,
        theorem=theorem,
    )


def _population(terms: Terms, table: Any, guess: dict[str, Any]) -> Population:
    """Return what examples are drawn from: an old table, or a guess."""
    if table is not None:
        if guess:
            raise InvalidInputError(
                f"a table takes the place of a guess: give a table or a guess ({', '.join(guess)}), not both"
            )
        return OldTable.of(terms, table)
    for name in ("r2",) if terms.is_class else ("auc", "share"):
        if name in guess:
            kinds = ("a number", "one of two classes")
            raise InvalidInputError(
                f"{name} is a guess for a target that is {kinds[not terms.is_class]}, and {terms.target.name} is "
                f"{kinds[terms.is_class]}: give {'auc and share' if terms.is_class else 'r2'} instead"
            )
    return Guess(**{"terms": terms, "needed": most_columns(terms), **guess})


def _search(simulation: Simulation, wanted: float) -> dict[int, PlannedSize]:
    """Return sizes that double until nearly all studies find what is right, with what is needed between them."""
    n = _two_digits(max(_LEAST, _FIRST * blocks(simulation.terms)))
    sizes = {n: simulation.size(n)}
    for _ in range(_DOUBLINGS):
        if sizes[n].all_found.value >= max(_SURE, wanted):
            break
        n *= 2
        sizes[n] = simulation.size(n)
    for _ in range(_BISECTIONS):
        above = _needed(_ordered(sizes), wanted)
        below = max((n for n in sizes if above is not None and n < above), default=None)
        if above is None or below is None:
            break
        middle = _two_digits(sqrt(above * below))
        if middle in sizes:
            break
        sizes[middle] = simulation.size(middle)
    return sizes


def _checked_sizes(examples: int | Sequence[int]) -> list[int]:
    numbers = [examples] if is_integer(examples) else list(examples)  # type: ignore[arg-type]
    if not numbers:
        raise InvalidInputError("examples is empty: give the numbers of examples to simulate, or leave it out")
    return sorted({checked_integer("examples", n, least=2) for n in numbers})


def _needed(sizes: tuple[PlannedSize, ...], wanted: float) -> int | None:
    """Return the smallest number of examples from which on enough studies found all right columns."""
    enough = smallest(sizes, wanted, lambda size: size.all_found)
    return None if enough is None else enough.examples


def _allowed(terms: Terms, sizes: tuple[PlannedSize, ...]) -> int | None:
    """Return how many examples the terms allow, at the median cost of studies, between which it is interpolated."""
    limits = [] if terms.examples is None else [terms.examples]
    if terms.total_budget is not None:
        costs, examples = [0.0, *(size.cost for size in sizes)], [0, *(size.examples for size in sizes)]
        larger = max(1.0, terms.total_budget / costs[-1])  # than the largest study
        limits.append(int(larger * np.interp(terms.total_budget, costs, examples)))
    return max(2, min(limits)) if limits else None


def _ordered(sizes: dict[int, PlannedSize]) -> tuple[PlannedSize, ...]:
    return tuple(sizes[n] for n in sorted(sizes))


def _two_digits(x: float) -> int:
    """Return a number of examples, rounded to two digits."""
    return int(round(x, 1 - int(log10(x))))


def _theorem(terms: Terms, guess: Guess) -> LimitedPlan | None:
    """Return what the theorem asks for, in units of the variance of the target, for an excess of a tenth of R²."""
    cost_model, s, d = terms.cost_model, terms.n_nonzero_coefs, len(terms.columns)
    if terms.is_class or not cost_model.uniform or not s < cost_model.n_observed:
        return None
    needed = guess.needed if isinstance(guess.needed, int) else len(terms.columns_at(guess.needed))
    smoothness = 2 * (1 + (min(2 * s, d) - 1) * guess.correlation)  # of equal correlations, on 2 s columns
    return limited_plan(
        smoothness,
        2 * (1 - guess.correlation),
        d=d,
        k=s,
        k_star=min(needed, s),
        n_observed=cost_model.n_observed,
        excess=guess.r2,
        noise=sqrt(1 - guess.r2),
        target=0.1 * guess.r2,
    )


def _filled(text: str, **indents: str) -> str:
    """Return a text in lines, which do not begin with a per cent sign."""
    return fill(text.replace(" %", "\N{NO-BREAK SPACE}%"), _WIDTH, **indents).replace("\N{NO-BREAK SPACE}", " ")  # type: ignore[arg-type]


def _finite_examples(theorem: LimitedPlan | None) -> float | None:
    return theorem.examples if theorem is not None and isfinite(theorem.examples) else None


def _theorem_in_words(theorem: LimitedPlan) -> str:
    """Return what the theorem asks for."""
    if not isfinite(theorem.examples):
        return f"Theorem 4.4 promises nothing for these terms: {'; '.join(theorem.failures)}."
    reservations = f", and its conditions fail: {'; '.join(theorem.failures)}" if theorem.failures else ""
    return (
        f"Theorem 4.4 asks for {number(theorem.examples)} examples to lower the excess error to {percent(0.1)} of its "
        f"start, for attributes of at most 1 in size{reservations}. So many are sufficient; far fewer are necessary."
    )
