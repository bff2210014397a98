"""What a paper claims, as inequalities that are checked on the data sets of every seed, in ``claims.toml``.

The numbers of ten seeds, in ``spread.toml``, say how far a number moves from data set to data set. The number of any
other seed has to be within their range, `widened`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any, Literal, get_args

from hardthresh.core.errors import InvalidInputError

from .digits import WIDE, Numbers, numbers_of, refuse_repeated

SEEDS = 10
"""The number of seeds, 0 to 9, whose numbers are kept."""

TEXTS = ("key", "claim", "source", "verdict", "reason")
REQUIRED = ("key", "claim", "source", "verdict")
SHARE = 0.01
"""The least margin of a number that is no count, as a share of it: what rounding and other kernels may change."""

Verdict = Literal["holds", "varies", "contradicted"]
"""Whether a claim is true on all of the ten seeds, on some, or on none."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of ``claims.toml``.

    Parameters
    ----------
    key : str
        Of one number in the item's summary.
    claim : str
        The claim in words.
    source : str
        The figure, theorem or section of the paper that makes it, or "ours".
    low, high : float
        The claim as an inequality.
    verdict : {"holds", "varies", "contradicted"}
        Whether it is true on all of the ten seeds, on some, or on none.
    reason : str
        Why it is not true on all of them, or why the numbers are spread so much.
    count : bool
        Whether the number is a count, which may differ by 1 from those of the ten seeds.
    spread : sequence of float
        The numbers of the ten seeds; empty if they were not measured.
    """

    key: str
    claim: str
    source: str
    low: float
    high: float
    verdict: Verdict
    reason: str = ""
    count: bool = False
    spread: Sequence[float] = ()

    @property
    def what(self) -> str:
        """The claim and where it is made."""
        return f"{self.claim} ({self.source})"

    @property
    def expected(self) -> str:
        """The inequality, the verdict, and the interval in which we accept the number of any seed."""
        if not self.spread:
            return f"{self.inequality}: not measured"
        low, high = self.accepted
        return f"{self.inequality}: {self.verdict}; here {low:.3g} to {high:.3g}"

    @property
    def inequality(self) -> str:
        """The claim in numbers."""
        if self.low == -inf:
            return f"at most {self.high:g}"
        return f"at least {self.low:g}" if self.high == inf else f"{self.low:g} to {self.high:g}"

    @property
    def accepted(self) -> tuple[float, float]:
        """The range of the ten numbers, `widened`, and cut by the claim if it holds."""
        low, high = widened(self.spread, self.count)
        return (max(low, self.low), min(high, self.high)) if self.verdict == "holds" else (low, high)

    def is_true(self, number: float) -> bool:
        """Return whether the claim is true of the number of one seed."""
        return self.low <= number <= self.high

    def judge(self, numbers: Numbers) -> dict[str, Any]:
        """Return the row of the answer.

        It is ok if the number is in `accepted`, and the claim is not true of it if its verdict is "contradicted".
        """
        got = numbers_of(self.key, numbers)
        ok = len(got) == 1 and bool(self.spread) and self._agrees(got[0])
        return {"key": self.key, "what": self.what, "expected": self.expected, "got": got, "ok": ok}

    def _agrees(self, number: float) -> bool:
        low, high = self.accepted
        return low <= number <= high and not (self.verdict == "contradicted" and self.is_true(number))


@dataclass(frozen=True, slots=True)
class ClaimAtFullSize:
    """A claim in a run of full size.

    The spread is that of quick runs. Hence the inequality alone decides whether a claim that holds or is contradicted
    does so at full size too; a number whose claim varies has to be within the range of the quick runs, `widened`.
    """

    claim: Claim

    @property
    def key(self) -> str:
        """The key of the claim."""
        return self.claim.key

    @property
    def what(self) -> str:
        """The claim in words."""
        return self.claim.what

    @property
    def reason(self) -> str:
        """The reason of the claim."""
        return self.claim.reason

    def judge(self, numbers: Numbers) -> dict[str, Any]:
        """Return the row of the answer."""
        claim, got = self.claim, numbers_of(self.key, numbers)
        expected = f"{claim.inequality}: {claim.verdict}"
        if claim.verdict == "varies":
            low, high = claim.accepted
            expected += f"; here {low:.3g} to {high:.3g}"
            ok = len(got) == 1 and low <= got[0] <= high
        else:
            ok = len(got) == 1 and not isnan(got[0]) and claim.is_true(got[0]) == (claim.verdict == "holds")
        return {"key": self.key, "what": self.what, "expected": expected, "got": got, "ok": ok}


def widened(numbers: Sequence[float], count: bool = False) -> tuple[float, float]:
    """Return the range of some numbers, widened by its own length on either side.

    The length is the ratio of the ends if all numbers are positive and finite, and at least 1.01; else their
    difference, and at least 1 % of the larger one. The interval of a count reaches to either side by at least 1. An
    infinite number, "not reached", makes the interval infinite.

    The range of ten normal numbers is 3.1 standard deviations long on average, so that the interval reaches 4.6 of them
    to either side of its centre. Simulated, a new number is outside with probability 0.2 % (normal, lognormal), 0.3 to
    0.8 % (counts), and up to 3 % (skewed shares, or a few outliers), because ten numbers may lie closely by chance.
    """
    finite = [number for number in numbers if abs(number) < inf]
    if not finite:
        return min(numbers), max(numbers)
    low, high = least, greatest = min(finite), max(finite)
    if least > 0:
        ratio = max(greatest / least, 1.0 + SHARE)
        low, high = least / ratio, greatest * ratio
    else:
        margin = max(greatest - least, SHARE * max(abs(least), abs(greatest)))
        low, high = least - margin, greatest + margin
    if count:
        low, high = min(low, least - 1.0), max(high, greatest + 1.0)
    return (-inf if -inf in numbers else low), (inf if inf in numbers else high)


def claims(rows: Any, spread: Mapping[str, Sequence[float]], place: str = "claims.toml") -> list[Claim]:
    """Return the claims about one item.

    Parameters
    ----------
    rows : list of dict
        From ``claims.toml``.
    spread : mapping of keys to sequences of float
        From ``spread.toml``.
    place : str
        Where the rows are, for messages.

    Raises
    ------
    InvalidInputError
        If a row lacks a field, has one that we do not know or no finite bound, if its verdict is not that of the
        numbers, if it needs a reason and has none, or if two rows have the same key
        and the same verdict.
    """
    if not isinstance(rows, list):
        raise InvalidInputError(f"{place}: rows are written [[item]], got {rows!r}")
    found = [_claim(row, spread, place) for row in rows]
    # of two inequalities about one number, one may hold and a stricter one not
    named = ((f"{claim.key!r} with verdict {claim.verdict!r}", (claim.key, claim.verdict)) for claim in found)
    refuse_repeated(named, place)
    return found


def _claim(row: Mapping[str, Any], spread: Mapping[str, Sequence[float]], place: str) -> Claim:
    try:
        if unknown := row.keys() - {*TEXTS, "low", "high", "count"}:
            raise ValueError(f"an unknown field {min(unknown)!r}")
        if missing := [name for name in REQUIRED if name not in row]:
            raise ValueError(f"no {missing[0]!r}")
        for name in TEXTS:
            if name in row and not (isinstance(row[name], str) and row[name]):
                raise ValueError(f"{name} = {row[name]!r}, which is no text")
        if row["verdict"] not in get_args(Verdict):
            raise ValueError(f"verdict = {row['verdict']!r}; it must be one of {', '.join(get_args(Verdict))}")
        low, high = _bound(row, "low", -inf), _bound(row, "high", inf)
        if low > high:
            raise ValueError(f"a lower bound {low:g} above its upper bound {high:g}")
        if low == -inf and high == inf:
            raise ValueError("no bound: it needs low or high")
        if not isinstance(row.get("count", False), bool):
            raise ValueError(f"count = {row['count']!r}; it must be true or false")
        claim = Claim(
            **{name: row[name] for name in (*TEXTS, "count") if name in row},
            low=low,
            high=high,
            spread=tuple(map(float, spread.get(row["key"], ()))),
        )
        _check_spread(claim)
    except ValueError as error:
        raise InvalidInputError(f"{place}: the row {row.get('key', 'without a key')!r} has {error}") from None
    return claim


def _bound(row: Mapping[str, Any], name: str, default: float) -> float:
    value = row.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or isnan(value):
        raise ValueError(f"{name} = {value!r}; it must be a number")
    return float(value)


def _check_spread(claim: Claim) -> None:
    """Refuse a claim whose verdict is not that of its ten numbers, or that needs a reason."""
    if not claim.spread:
        return
    if len(claim.spread) < SEEDS:
        raise ValueError(f"the numbers of {len(claim.spread)} seeds in spread.toml; it needs {SEEDS}")
    if any(map(isnan, claim.spread)):
        raise ValueError("a number that is not a number in spread.toml")
    true = sum(map(claim.is_true, claim.spread))
    right = "holds" if true == len(claim.spread) else "varies" if true else "contradicted"
    if claim.verdict != right:
        raise ValueError(
            f"the verdict {claim.verdict!r}, but it is true on {true} of {len(claim.spread)} seeds: {right!r}"
        )
    low, high = claim.accepted
    wide = 0 < WIDE * low < high < inf
    if not claim.reason and (wide or claim.verdict != "holds"):
        why = f"bounds from {low:.3g} to {high:.3g}" if wide else f"the verdict {claim.verdict!r}"
        raise ValueError(f"{why} and no reason")


def spread_of(rows: Sequence[Claim], numbers: Sequence[Numbers]) -> dict[str, list[float]]:
    """Return the numbers of each claim over the summaries of several seeds, under its key."""
    return {claim.key: [number for one in numbers for number in numbers_of(claim.key, one)] for claim in rows}


def write_spread(spread: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the text of ``spread.toml``: for each item, the numbers of ten seeds under the keys of its claims."""
    lines = ["# Written by `hardthresh reproduce ITEM --seeds 10 --keep-spread`: the numbers of the seeds 0 to 9."]
    for item, claims_of_item in spread.items():
        lines += ["", f"[{item}]"]
        lines += [f"{_quoted(key)} = [{', '.join(map(_written, row))}]" for key, row in claims_of_item.items()]
    return "\n".join(lines) + "\n"


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(number: float) -> str:
    return str(int(number)) if isfinite(number) and number == int(number) else repr(number)
