"""The supports that fit nearly as well as that of a model, as a result that prints as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hardthresh.core.errors import plural
from hardthresh.core.frames import pandas_for_frames
from hardthresh.core.numbers import number, percent, signed_percent
from hardthresh.core.printed import PrintedTable

if TYPE_CHECKING:
    import pandas

_LISTED = 30
"""Most features that are printed: a screen."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A support whose refitted objective is close to that of a model.

    Attributes
    ----------
    numbers : tuple of int
        The numbers of its features or groups.
    names : tuple of str
        The names of its features or groups.
    value : float
        The minimum of the objective on this support.
    excess : float
        The relative increase of `value` over the value of the model; negative for a decrease.
    removed, added : tuple of str
        The names that are only in the model, and those that are only in this support; both are empty for the support of
        the model.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    value: float
    excess: float
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Alternatives:
    """Supports that fit nearly as well as that of a model; ``print`` shows how they differ.

    Attributes
    ----------
    supports : tuple of Alternative
        The supports, including that of the model, by increasing value.
    value : float
        The value of the objective at the model.
    tolerance : float
        The largest `excess` of a support.
    unit : {"feature", "group"}
        Whether features or groups are exchanged.
    more : bool
        Whether more supports were found than are listed. Those with the lowest values are listed, and the model is
        always listed, if necessary instead of the last one.
    exact : bool
        Whether all exchanges of each examined support were compared exactly. Otherwise a quadratic model ranked them,
        and the best ones were refitted.
    examined : int
        The number of supports whose exchanges were compared.
    complete : bool
        Whether it is proved that no other support is within the tolerance or, if `more` is True, that no other support
        is better than those listed (apart from the model). Exchanges alone prove nothing.
    reason : str
        Why a requested proof is missing, or why the exchanges ended early; otherwise empty.
    subject : str
        What the supports are compared with, if not the model whose method was called.
    """

    supports: tuple[Alternative, ...]
    value: float
    tolerance: float
    unit: str
    more: bool
    exact: bool
    examined: int
    complete: bool = False
    reason: str = ""
    subject: str = ""

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of the supports that contain each feature or group, by decreasing share."""
        counts: dict[str, int] = {}
        for support in self.supports:
            for name in support.names:
                counts[name] = counts.get(name, 0) + 1
        order = sorted(counts, key=lambda name: -counts[name])
        return {name: counts[name] / len(self.supports) for name in order}

    @property
    def own(self) -> tuple[str, ...]:
        """The features or groups of the model."""
        return next(support.names for support in self.supports if not support.added and not support.removed)

    @property
    def substitutes(self) -> Mapping[str, tuple[tuple[str, float], ...]]:
        """For each feature of the model, its single substitutes with their `excess`, by increasing excess."""
        found: dict[str, list[tuple[str, float]]] = {name: [] for name in self.own}
        for support in self.supports:
            if len(support.added) == len(support.removed) == 1:
                found[support.removed[0]].append((support.added[0], support.excess))
        return {name: tuple(pairs) for name, pairs in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the supports as a dict of numbers, strings and lists, which `json` can write.

        If ``complete`` is True, it is proved that there is no other support or, if ``more`` is also True, that no other
        support is better than those listed (apart from the model).
        """
        return {
            "value": self.value,
            "tolerance": self.tolerance,
            "unit": self.unit,
            "more": self.more,
            "exact": self.exact,
            "complete": self.complete,
            "reason": self.reason,
            "about": self.subject or "the model",
            "shares": dict(self.shares),
            "substitutes": {name: [list(pair) for pair in pairs] for name, pairs in self.substitutes.items()},
            "supports": [
                {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(support).items()}
                for support in self.supports
            ],
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each support, by increasing value, as a pandas data frame.

        Columns with lists contain its features, and the features that differ from the model.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        pandas = pandas_for_frames()
        records = self.to_dict()["supports"]
        names = ["names", "removed", "added", "value", "excess"]
        return pandas.DataFrame([{name: record[name] for name in names} for record in records], columns=names)

    def __str__(self) -> str:
        return self._printed().to_text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._printed().to_html()

    def _printed(self) -> PrintedTable:
        own, shares, substitutes = self.own, self.shares, self.substitutes
        header = [self.unit, "in the model", "in sets", "alone replaced by (rise)"]
        rows = []
        for name in list(shares)[:_LISTED]:
            pairs = substitutes.get(name, ())
            words = f"{pairs[0][0]} ({signed_percent(pairs[0][1])})" if pairs else "none"
            if len(pairs) > 1:
                words += f" and {len(pairs) - 1} more"
            alone = words if name in own else ""
            rows.append([name, "yes" if name in own else "", percent(shares[name]), alone])
        left_out = len(shares) - len(rows)
        notes = [f"{plural(left_out, f'more {self.unit}')} in fewer of them."] if left_out > 0 else []
        notes += [self._how()] if own else []
        return PrintedTable(self._sentences(), header, rows, notes, left=(header[0], header[3]))

    def _sentences(self) -> list[str]:
        count, size, within = len(self.supports), len(self.own), f"{100 * self.tolerance:.3g} %"
        others = f"{plural(count, 'set')} of {plural(size, self.unit)}"
        if not size:
            first = f"The model has no {self.unit}, and there is no other empty set."
        elif count == 1 and self.more:
            are = "are" if self.complete else "were found"
            first = (
                f"Other sets of {plural(size, self.unit)} {are} within {within} of the model's objective, "
                f"{number(self.value)}, but only one set was asked for: the model's."
            )
        elif count == 1:
            fits = "fits" if self.complete else "was found to fit"
            first = f"No other set of {plural(size, self.unit)} {fits} within {within} of the model."
        else:
            best = self.which if self.more else "all that are" if self.complete else "all that were"
            found = "" if self.complete else "found "
            first = f"{others}, {best} {found}within {within} of the model's objective, {number(self.value)}."
        better = [support for support in self.supports if support.excess < 0]
        lines = [f"About {self.subject}.", first] if self.subject else [first]
        if not better or not self._is_better(better[0]):
            return lines
        exchange = f"{', '.join(better[0].added)} for {', '.join(better[0].removed)}"
        return [
            first,
            f"The best of them is better than the model by {-better[0].excess:.2g} of its value: {exchange}.",
        ]

    def _is_better(self, support: Alternative) -> bool:
        """Return whether a support is better than the model by more than its rounding."""
        return -support.excess > 1e-8

    @property
    def which(self) -> str:
        """Which ones of more sets are listed: the model, if it is the last one, may have the place of a better one."""
        return "the model's and the best of those" if self._model_is_last else "the best of those"

    @property
    def proved(self) -> str:
        """What is proved where the sets are `complete`, as a sentence without its full stop."""
        if self.more and len(self.supports) == 1:
            return "there are others within the tolerance"
        which = "within the tolerance"
        if self.more:
            which = "better than those before the model" if self._model_is_last else "better than these"
        return f"no other set of {plural(len(self.own), self.unit)} is {which}"

    @property
    def _model_is_last(self) -> bool:
        return not self.supports[-1].added

    def _how(self) -> str:
        if self.complete:
            return f"Proved by branch and bound, up to rounding: {self.proved}."
        how = f"Found by exchanges of single {self.unit}s from the model"
        how += ("" if self.exact else ", ranked by a quadratic model") + ": there may be others"
        return f"{how}. No proof that there are none: {self.reason}." if self.reason else f"{how}."
