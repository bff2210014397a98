"""What follows from simulated studies, in words: how many examples, and whether to do such a study at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hardthresh.core.numbers import number, percent

from .intervals import Interval
from .sizes import PlannedSize
from .terms import Terms

HOPELESS = 0.95
"""The error of the best model, relative to that without attributes, above which a study is not worth it; arbitrary."""


def advice(
    terms: Terms,
    sizes: Sequence[PlannedSize],
    wanted: float,
    needed: int | None,
    allowed: int | None,
    constant: Sequence[str],
) -> tuple[tuple[str, ...], bool]:
    """Return what follows from simulated studies, and whether complete rows are the better use of the money."""
    said = [_how_many(terms, sizes, wanted, needed, allowed)]
    decisive = next((size for size in sizes if size.examples == needed), sizes[-1])
    if constant:
        said.append(f"Leave out what does not vary: {', '.join(constant)}.")
    if decisive.best > HOPELESS:
        said.append(
            f"Do not do this study: even the best model has {percent(decisive.best)} of the error without attributes. "
            "Look for attributes that say more."
        )
    if terms.cost_model.within_budget(terms.cost_model.cost(np.arange(len(terms.columns)))):
        said.append(
            "Do not do an adaptive study: the budget for one example buys all attributes. Measure each example "
            f"completely, and fit {_estimator(terms)} to the table."
        )
        return tuple(said), True
    enough = smallest(sizes, wanted, lambda size: size.complete_all_found)
    better = enough is not None and (needed is None or enough.cost < decisive.cost)
    if enough is None and needed is None:
        better = decisive.advantage.high < 0
    said.append(_beside_complete(terms, decisive, enough, better, wanted))
    return tuple(said), better


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


def _how_many(
    terms: Terms, sizes: Sequence[PlannedSize], wanted: float, needed: int | None, allowed: int | None
) -> str:
    """Return how many examples are needed, and whether the terms allow them."""
    said = f"{percent(wanted)} of the studies find all right columns"
    largest = sizes[-1]
    if needed is None:
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
        said += f" Set examples = {needed or largest.examples} in the terms: the study explores accordingly."
    if allowed is None:
        return said
    if needed is None or needed > allowed:
        there = next((size for size in sizes if size.examples == allowed), None)
        chance = "" if there is None else f", with which {there.all_found} of the studies find all right columns"
        return f"{said} The terms allow about {allowed:,} examples{chance}: they allow too few."
    return f"{said} The terms allow about {allowed:,}."


def _beside_complete(terms: Terms, size: PlannedSize, enough: PlannedSize | None, better: bool, wanted: float) -> str:
    """Return what the same money buys in complete rows, and which is better."""
    said = (
        f"For the money of {size.examples:,} examples, {size.complete_rows:,} can be measured completely. Their error "
        f"is {percent(size.complete_error)} of that without attributes, instead of {percent(size.error)}, and "
        f"{size.complete_all_found} of these tables show all right columns, instead of {size.all_found}."
    )
    if better:
        if enough is not None:
            said += (
                f" {enough.complete_rows:,} complete rows for {terms.money(round(enough.cost))} are enough for "
                f"{percent(wanted)}."
            )
        return (
            f"{said} If an example may be measured completely, do not do an adaptive study: measure such rows, and fit "
            f"{_estimator(terms)}. An adaptive study is for when one example must not cost more than "
            f"{terms.money(terms.budget_per_example)}."
        )
    if size.advantage.low > 0 and size.all_found.value >= size.complete_all_found.value:
        return f"{said} The adaptive study is the better use of the money."
    return f"{said} Neither is clearly better: complete rows are simpler, and can answer other questions, too."


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
