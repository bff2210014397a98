"""Numbers of the first data sets (seed 0), as the paper or the specification has them, in ``digits.toml``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isnan
from typing import Any

from threadpoolctl import threadpool_info

from hardthresh.core.errors import InvalidInputError

MODES = ("quick", "full", "both")
TEXTS = ("key", "expected", "what", "mode", "kernel", "reason")
NUMBERS = ("low", "high", "equals", "within", "relative")
WIDE = 10.0
"""Positive bounds that are wider apart than this factor need a reason: they give the order of magnitude only."""

Numbers = Mapping[str, float | Sequence[float]]
"""What an item's summary says: a number, or the numbers of one row of a table.

inf is what was not reached. NaN is a failure of the experiment, and never ok.
"""


@dataclass(frozen=True, slots=True)
class Digits:
    """One row of ``digits.toml``.

    Parameters
    ----------
    key : str
        Of the number, or the numbers, in the item's summary.
    what : str
        The same in words.
    expected : str
        What the paper or the specification says.
    bounds : tuple of (low, high)
        What we accept, for each of the numbers.
    mode : {"quick", "full", "both"}
        When the row is checked.
    kernel : str, optional
        The row is about runs with this kernel of OpenBLAS only, because rounding decides the number.
    reason : str, optional
        Why the bounds are wide.
    """

    key: str
    what: str
    expected: str
    bounds: tuple[tuple[float, float], ...]
    mode: str = "both"
    kernel: str | None = None
    reason: str = ""

    def applies(self, full: bool, seed: int) -> bool:
        """Return whether the row is about such a run, on this machine."""
        right_size = self.mode in ("both", "full" if full else "quick")
        return seed == 0 and right_size and self.kernel in (None, blas_kernel())

    def judge(self, numbers: Numbers) -> dict[str, Any]:
        """Return the row of the answer; numbers that the item does not have are not ok, and NaN never is."""
        got = numbers_of(self.key, numbers)
        ok = len(got) == len(self.bounds) and all(  # False for NaN
            low <= number <= high for number, (low, high) in zip(got, self.bounds, strict=True)
        )
        return {"key": self.key, "what": self.what, "expected": self.expected, "got": got, "ok": ok}


def numbers_of(key: str, numbers: Numbers) -> list[float]:
    """Return the numbers under a key as a list; there are none where the key is missing."""
    value = numbers.get(key, [])
    return [float(number) for number in (value if isinstance(value, Sequence) else [value])]


@cache
def blas_kernel() -> str | None:
    """Return the kernel of OpenBLAS in use, such as "Haswell" or "SkylakeX"; None with another library."""
    kernels = {info.get("architecture") for info in threadpool_info() if info["internal_api"] == "openblas"}
    return kernels.pop() if len(kernels) == 1 else None


def digits(rows: Any, place: str = "digits.toml") -> list[Digits]:
    """Return the rows of ``digits.toml`` on one item; `place` is where they are, for messages.

    ``low``, ``high`` and ``equals`` are numbers or lists of numbers. ``equals`` stands for both bounds, with a distance
    ``within``, or ``relative``: a share of the number itself. A single number holds for the whole list.

    Raises
    ------
    InvalidInputError
        If these are no rows, or one lacks its key or what was expected, has a field that we do not know, lists of
        different lengths, a number that no result could fail (one without a finite bound), or bounds that are wide
        without a reason; or if two rows have the same key, mode and kernel.
    """
    if not isinstance(rows, list):
        raise InvalidInputError(f"{place}: rows are written [[item]], got {rows!r}")
    found = [_digits(row, place) for row in rows]
    named = ((f"{row.key!r} with mode {row.mode!r}", (row.key, row.mode, row.kernel)) for row in found)
    refuse_repeated(named, place)
    return found


def refuse_repeated(rows: Iterable[tuple[str, Hashable]], place: str) -> None:
    """Refuse rows, given as names and what has to differ, of which two are the same: one would hide the other.

    Raises
    ------
    InvalidInputError
        If two are the same.
    """
    seen: set[Hashable] = set()
    for name, key in rows:
        if key in seen:
            raise InvalidInputError(f"{place}: there are two rows {name}; remove one, or give them keys that differ")
        seen.add(key)


def _digits(row: Mapping[str, Any], place: str) -> Digits:
    """Return one row, or refuse it."""
    try:
        _check_fields(row)
        bounds = _bounds({name: _numbers(name, row[name]) for name in NUMBERS if name in row})
        for low, high in bounds:
            if 0 < WIDE * low < high < inf and "reason" not in row:
                raise ValueError(f"bounds from {low:g} to {high:g} and no reason")
    except ValueError as error:
        raise InvalidInputError(f"{place}: the row {row.get('key', 'without a key')!r} has {error}") from None
    return Digits(
        key=row["key"],
        what=row.get("what", row["key"]),
        expected=row["expected"],
        bounds=tuple(bounds),
        mode=row.get("mode", "both"),
        kernel=row.get("kernel"),
        reason=row.get("reason", ""),
    )


def _check_fields(row: Mapping[str, Any]) -> None:
    if unknown := row.keys() - {*TEXTS, *NUMBERS}:
        raise ValueError(f"an unknown field {min(unknown)!r}")
    for name in ("key", "expected"):
        if name not in row:
            raise ValueError(f"no {name!r}")
    for name in TEXTS:
        if name in row and not (isinstance(row[name], str) and row[name]):
            raise ValueError(f"{name} = {row[name]!r}, which is no text")
    if row.get("mode", "both") not in MODES:
        raise ValueError(f"mode = {row['mode']!r}; it must be one of {', '.join(MODES)}")


def _numbers(name: str, value: Any) -> list[float]:
    numbers = list(value) if isinstance(value, list) else [value]
    for number in numbers:
        if not isinstance(number, int | float) or isinstance(number, bool) or isnan(number):
            raise ValueError(f"{name} = {value!r}; it must be a number or a list of numbers")
        if name in ("within", "relative") and not 0 <= number < inf:
            raise ValueError(f"{name} = {value!r}; it must be finite and at least 0")
    if not numbers:
        raise ValueError(f"{name} = [], which is about nothing")
    return numbers


def _bounds(given: Mapping[str, list[float]]) -> list[tuple[float, float]]:
    lengths = {name: len(numbers) for name, numbers in given.items() if len(numbers) > 1}
    if len({*lengths.values()}) > 1:
        raise ValueError("lists of different lengths: " + ", ".join(f"{n} of {name}" for name, n in lengths.items()))
    length = max(lengths.values(), default=1)
    spread = {name: numbers * length if len(numbers) == 1 else numbers for name, numbers in given.items()}
    if "equals" in given:
        if len(given) > 2 or given.keys() & {"low", "high"}:
            raise ValueError("more bounds than equals, which goes with within or with relative, and with nothing else")
        within, relative = (spread.get(name, [0.0] * length) for name in ("within", "relative"))
        pairs = []
        for centre, absolute, share in zip(spread["equals"], within, relative, strict=True):
            margin = 0.0 if abs(centre) == inf else absolute + share * abs(centre)  # one of them is 0
            pairs.append((centre - margin, centre + margin))
        return pairs
    if given.keys() & {"within", "relative"}:
        raise ValueError("a margin without equals")
    if not given:
        raise ValueError("no bound: it needs low, high or equals")
    pairs = [*zip(spread.get("low", [-inf] * length), spread.get("high", [inf] * length), strict=True)]
    for low, high in pairs:
        if low > high:
            raise ValueError(f"a lower bound {low:g} above its upper bound {high:g}")
        if low == -inf and high == inf:
            raise ValueError("a number without a bound, which nothing could fail")
    return pairs
