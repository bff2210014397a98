"""What follows from simulated studies, in words: how many examples, and whether to do such a study at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from hardthresh.core.errors import plural
from hardthresh.core.numbers import number, percent

from .intervals import Interval
from .sizes import PlannedSize
from .terms import Terms

HOPELESS = 0.95
"""An error, relative to that without attributes, above which predictions are hardly better than none; arbitrary."""

Recommendation = Literal["adaptive", "complete", "either", "neither"]
"""What to do: an adaptive study, complete rows for the same money, whichever of both is easier, or neither yet."""


def advice(
    terms: Terms,
    sizes: Sequence[PlannedSize],
    wanted: float,
    needed: int | None,
    allowed: int | None,
    constant: Sequence[str],
) -> tuple[tuple[str, ...], Recommendation]:
    """Return what follows from simulated studies, in words, and what to do."""
    enough = _allows_enough(sizes, wanted, needed, allowed)
    decisive = _decisive(sizes, needed, allowed, enough)
    said = [_how_many(terms, sizes, wanted, needed, allowed, enough)]
    if constant:
        said.append(f"Leave out what does not vary: {', '.join(constant)}.")
    if decisive.best > HOPELESS:
        said.append(
            f"Do not do this study: even the best model has {percent(decisive.best)} of the error without attributes. "
            "Look for attributes that say more."
        )
        return tuple(said), "neither"
    if _poor(decisive.error, decisive.all_found, wanted) and _poor(
        decisive.complete_error, decisive.complete_all_found, wanted
    ):
        return (*said, f"{_beside_complete(decisive)} {_not_yet(terms, decisive, allowed)}"), "neither"
    if blocks(terms) == 1:
        whole = (
            "Do not do an adaptive study: the budget for one example buys all attributes. Measure each example "
            f"completely, and fit {_estimator(terms)} to the table."
        )
        return (*said, whole), "complete"
    recommendation, reason = _compared(terms, sizes, decisive, wanted)
    return (*said, f"{_beside_complete(decisive)} {reason}"), recommendation


def blocks(terms: Terms) -> int:
    """Return on how many examples all attributes can be observed once, within the budget for one example."""
    return int(terms.cost_model.partition(np.empty(0, dtype=np.intp)).max()) + 1


def smallest(
    sizes: Sequence[PlannedSize], wanted: float, found: Callable[[PlannedSize], Interval]
) -> PlannedSize | None:
    """Return the smallest size from which on a share of studies is at least the wanted one; None if there is none."""
    enough = None
    for size in reversed(sizes):
        if found(size).value < wanted:
            break
        enough = size
    return enough


def _allows_enough(sizes: Sequence[PlannedSize], wanted: float, needed: int | None, allowed: int | None) -> bool | None:
    """Return whether the terms allow enough examples; None if the sizes that were simulated do not show it."""
    if allowed is None or (needed is not None and needed <= allowed):
        return True
    too_few = max((size.examples for size in sizes if size.all_found.value < wanted), default=0)
    return False if allowed <= too_few else None


def _decisive(
    sizes: Sequence[PlannedSize], needed: int | None, allowed: int | None, enough: bool | None
) -> PlannedSize:
    """Return the size whose money is to be spent: that which is needed, or else the largest that the terms allow."""
    if needed is not None and enough is not False:
        return next(size for size in sizes if size.examples == needed)
    return next((size for size in reversed(sizes) if allowed is None or size.examples <= allowed), sizes[0])


def _how_many(
    terms: Terms,
    sizes: Sequence[PlannedSize],
    wanted: float,
    needed: int | None,
    allowed: int | None,
    enough: bool | None,
) -> str:
    """Return how many examples are needed, and whether the terms allow them."""
    said = f"{percent(wanted)} of the studies find all right columns"
    if needed is None:
        largest = sizes[-1]
        found = f"{largest.all_found} did with {largest.examples:,} examples"
        said = f"No simulated number of examples was enough so that {said}: {found}."
        if largest.found.value > largest.all_found.value:
            said += f" On average {percent(largest.found.value)} of the right columns were found."
    else:
        size = next(size for size in sizes if size.examples == needed)
        said = (
            f"{needed:,} examples are needed so that {said}: {size.all_found} of those simulated did. They cost "
            f"{terms.money(round(size.cost))} (median)."
        )
        if size is sizes[0]:
            said = f"{said} Fewer may do: no smaller study was simulated."
    if terms.examples is None:
        chosen = "the number that you choose" if needed is None or enough is False else f"{needed}"
        said += f" Set examples in the terms to {chosen}: the study explores accordingly."
    if allowed is None:
        return said
    if enough:
        return f"{said} The terms allow about {allowed:,}."
    if enough is None:
        return (
            f"{said} The terms allow about {allowed:,} examples. This number was not simulated: plan with it to know "
            "whether they are enough."
        )
    failed = next(size for size in sizes if size.examples >= allowed and size.all_found.value < wanted)
    if failed.examples == allowed:
        reason = f", with which {failed.all_found} of the studies find all right columns"
    else:
        reason = f", and {failed.examples:,} were not enough"
    return f"{said} The terms allow about {allowed:,} examples{reason}: they allow too few."


def _poor(error: float, all_found: Interval, wanted: float) -> bool:
    """Return whether models predict hardly better than without attributes, and too few have all right columns."""
    return error > HOPELESS and all_found.value < wanted


def _beside_complete(size: PlannedSize) -> str:
    """Return what the same money buys in complete rows."""
    return (
        f"For the money of {size.examples:,} examples, {size.complete_rows:,} can be measured completely. Their error "
        f"is {percent(size.complete_error)} of that without attributes, instead of {percent(size.error)}, and "
        f"{size.complete_all_found} of these tables show all right columns, instead of {size.all_found}."
    )


def _not_yet(terms: Terms, size: PlannedSize, allowed: int | None) -> str:
    """Return that neither an adaptive study nor complete rows are worth the money, and what may help."""
    more = "more examples"
    if allowed is not None:
        more += f", of which the terms allow about {allowed:,}" if allowed > size.examples else " than the terms allow"
    helps = [more]
    if (parts := blocks(terms)) > 1:
        money, attributes = terms.money(terms.budget_per_example), plural(len(terms.attributes), "attribute")
        helps = [
            "fewer attributes",
            more,
            f"more money for one example: {money} buys the {attributes} in {parts} parts",
        ]
    return (
        "Do neither yet: both predict hardly better than without attributes, or worse, and too rarely show all right "
        f"columns. What may help: {'; '.join(helps)}."
    )


def _compared(
    terms: Terms, sizes: Sequence[PlannedSize], size: PlannedSize, wanted: float
) -> tuple[Recommendation, str]:
    """Return which is the better use of the money of one size, in words too."""
    complete = smallest(sizes, wanted, lambda size: size.complete_all_found)
    found = size.all_found.value >= wanted
    if complete is None or complete.examples > size.examples:
        complete = None
        better = not found and size.advantage.high < 0
    else:
        better = not (found and complete is size)
    if better:
        said = ""
        if complete is not None:
            said = (
                f"{complete.complete_rows:,} complete rows for {terms.money(round(complete.cost))} are enough for "
                f"{percent(wanted)}. "
            )
        return "complete", (
            f"{said}If an example may be measured completely, do not do an adaptive study: measure such rows, and fit "
            f"{_estimator(terms)}. An adaptive study is for when one example must not cost more than "
            f"{terms.money(terms.budget_per_example)}."
        )
    if size.advantage.low > 0 and size.all_found.value >= size.complete_all_found.value:
        return "adaptive", "The adaptive study is the better use of the money."
    return "either", "Neither is clearly better: complete rows are simpler, and can answer other questions, too."


def _estimator(terms: Terms) -> str:
    return "SparseLogisticRegression" if terms.is_class else "SparseLinearRegression"


def table_of_sizes(sizes: Sequence[PlannedSize], terms: Terms) -> list[str]:
    """Return the lines of a table of the simulated sizes."""
    what = "log loss" if terms.is_class else "squared error"
    head = ("examples", "cost", "90 %", "error", "90 %", "best", "all found", "found", "complete", "error", "all found")
    rows: list[tuple[str, ...]] = [head]
    for size in sizes:
        shares = (size.error, size.error_high, size.best)
        rows.append(
            (
                f"{size.examples:,}",
                number(size.cost),
                number(size.cost_high),
                *map(percent, shares),
                str(size.all_found),
                percent(size.found.value),
                f"{size.complete_rows:,}",
                percent(size.complete_error),
                str(size.complete_all_found),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    unit = f" in {terms.currency}" if terms.currency else ""
    return [
        *lines,
        "",
        f"cost{unit} and error: median, and what 90 % of the studies stay below. Error: mean {what} on new examples,",
        "relative to that without attributes; best: that of the best model. Found: of the right columns, with 95 %",
        "intervals. Complete: the rows that the same money buys completely, with the error of a sparse model of them.",
    ]
