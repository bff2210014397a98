"""What should come out, and whether it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hardthresh.core.errors import InvalidInputError

MODES = ("quick", "full", "both")
FIELDS = {"key", "what", "expected", "low", "high", "equals", "within", "mode", "seed"}

Numbers = Mapping[str, float | Sequence[float]]
"""What an item's summary says: a number, or the numbers of one row of a table; inf for what was not reached."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One row of ``expected.toml``.

    Parameters
    ----------
    key : str
        Of the number, or the numbers, in the item's summary.
    what : str
        The same in words.
    expected : str
        What the paper or the specification says.
    bounds : list of (low, high)
        What we accept, for each of the numbers.
    mode : {"quick", "full", "both"}
        When the row is checked.
    seed : int, optional
        The row is about the data sets of this ``--seed`` only.
    """

    key: str
    what: str
    expected: str
    bounds: list[tuple[float, float]]
    mode: str = "both"
    seed: int | None = None

    def applies(self, full: bool, seed: int) -> bool:
        """Return whether the row is about such a run."""
        return self.mode in ("both", "full" if full else "quick") and self.seed in (None, seed)

    def judge(self, numbers: Numbers) -> dict[str, Any]:
        """Return the row of the answer; numbers that the item does not have are not ok."""
        got = [float(number) for number in _list(numbers.get(self.key, []))]
        ok = len(got) == len(self.bounds) and all(  # False for NaN
            low <= number <= high for number, (low, high) in zip(got, self.bounds, strict=True)
        )
        return {"key": self.key, "what": self.what, "expected": self.expected, "got": got, "ok": ok}


def expectations(rows: Any) -> list[Expectation]:
    """Return the rows on one item.

    ``low``, ``high`` and ``equals`` are numbers or lists of numbers; ``equals`` and ``within`` stand for both bounds.

    Raises
    ------
    InvalidInputError
        If a row has a field that we do not know, or no bound at all: it could not fail.
    """
    found = []
    for row in rows:
        if unknown := {*row} - FIELDS:
            raise InvalidInputError(f"expected.toml: the row {row.get('key')!r} has an unknown field {min(unknown)!r}")
        if not row.keys() & {"low", "high", "equals"} or row.get("mode", "both") not in MODES:
            raise InvalidInputError(f"expected.toml: the row {row['key']!r} has no bound, or a mode not in {MODES}")
        given = [_list(row[name]) for name in ("low", "high", "equals") if name in row]
        length = max(map(len, given))
        low, high = (_spread(row.get(name, side), length) for name, side in (("low", -inf), ("high", inf)))
        if "equals" in row:
            pairs = [*zip(_spread(row["equals"], length), _spread(row.get("within", 0), length), strict=True)]
            low, high = [centre - within for centre, within in pairs], [centre + within for centre, within in pairs]
        found.append(
            Expectation(
                key=row["key"],
                what=row.get("what", row["key"]),
                expected=str(row["expected"]),
                bounds=[*zip(low, high, strict=True)],
                mode=row.get("mode", "both"),
                seed=row.get("seed"),
            )
        )
    return found


def _list(value: Any) -> list[float]:
    return list(value) if isinstance(value, Sequence) else [value]


def _spread(value: Any, length: int) -> list[float]:
    numbers = _list(value)
    return numbers * length if len(numbers) == 1 else numbers
