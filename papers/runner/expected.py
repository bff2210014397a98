"""What should come out, and whether it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from hardthresh.core.errors import InvalidInputError

MODES = ("quick", "full", "both")
FIELDS = {"key", "what", "expected", "low", "high", "equals", "within", "mode", "seed"}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One row of ``expected.toml``.

    Parameters
    ----------
    key : str
        Of the number in the item's summary.
    what : str
        The number in words.
    expected : str
        What the paper or the specification says.
    low, high : float
        What we accept.
    mode : {"quick", "full", "both"}
        When the row is checked.
    seed : int, optional
        The row is about the data sets of this ``--seed`` only.
    """

    key: str
    what: str
    expected: str
    low: float
    high: float
    mode: str = "both"
    seed: int | None = None

    def applies(self, full: bool, seed: int) -> bool:
        """Return whether the row is about such a run."""
        return self.mode in ("both", "full" if full else "quick") and self.seed in (None, seed)

    def judge(self, numbers: Mapping[str, float]) -> dict[str, Any]:
        """Return the row of the answer; a number that the item does not have is not ok."""
        got = numbers.get(self.key)
        ok = got is not None and self.low <= got <= self.high  # False for NaN
        return {"key": self.key, "what": self.what, "expected": self.expected, "got": got, "ok": ok}


def expectations(rows: Any) -> list[Expectation]:
    """Return the rows on one item; ``equals`` and ``within`` stand for ``low`` and ``high``.

    Raises
    ------
    InvalidInputError
        If a row has a field that we do not know, or no bound at all: it could not fail.
    """
    found = []
    for row in rows:
        if unknown := {*row} - FIELDS:
            raise InvalidInputError(f"expected.toml: the row {row.get('key')!r} has an unknown field {min(unknown)!r}")
        within = row.get("within", 0)
        low = row["equals"] - within if "equals" in row else row.get("low", -inf)
        high = row["equals"] + within if "equals" in row else row.get("high", inf)
        if not (isfinite(low) or isfinite(high)) or row.get("mode", "both") not in MODES:
            raise InvalidInputError(f"expected.toml: the row {row['key']!r} has no bound, or a mode not in {MODES}")
        found.append(
            Expectation(
                key=row["key"],
                what=row.get("what", row["key"]),
                expected=str(row["expected"]),
                low=low,
                high=high,
                mode=row.get("mode", "both"),
                seed=row.get("seed"),
            )
        )
    return found
