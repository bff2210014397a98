"""The chosen columns of a study: since when they are chosen, and whether they look needed."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from scipy.stats import t

from hardthresh.core.numbers import number, percent
from hardthresh.core.typing import Array

from .intervals import holm
from .models import PER_COEFFICIENT, least_squares, standardized, varied
from .records import Learned

NEEDED = 0.05
"""The level, for all chosen columns together, at which one looks needed: the convention."""


@dataclass(frozen=True, slots=True)
class ChosenColumn:
    """A column that the model uses, or used lately.

    Attributes
    ----------
    name : str
        Its name.
    now : bool
        Whether the present model uses it.
    share : float
        In which share of the latest batches it was chosen.
    p : float
        The p-value that its coefficient is 0, on the examples since the choice last changed, adjusted by Holm's method;
        NaN where there are too few of them, or too few that differ from the most frequent value.
    """

    name: str
    now: bool
    share: float
    p: float

    @property
    def looks_needed(self) -> bool:
        """Whether the examples since the choice say that its coefficient is not 0."""
        return self.p <= NEEDED

    def __str__(self) -> str:
        if not self.now:
            return f"{self.name}: no longer chosen, in {percent(self.share)} of the latest batches"
        if self.p != self.p:
            said = "too few examples since the choice changed to say whether it is needed"
        else:
            said = f"{'looks needed' if self.looks_needed else 'may not be needed'}, p = {number(self.p)}"
        return f"{self.name}: in {percent(self.share)} of the latest batches; {said}"

    def to_dict(self) -> dict[str, Any]:
        """Return names and values, for JSON."""
        p = None if self.p != self.p else self.p
        return {"name": self.name, "now": self.now, "share": self.share, "p": p, "looks_needed": self.looks_needed}


def unchanged_since(learned: Learned) -> int:
    """Return after how many examples the present choice of attributes was made; 0 where it never changed."""
    for batch in range(len(learned.chosen) - 1, 0, -1):
        if not np.array_equal(learned.chosen[batch], learned.chosen[batch - 1]):
            return int(np.count_nonzero(learned.batch <= batch))
    return 0


def chosen_columns(learned: Learned, first: int, since: int) -> tuple[ChosenColumn, ...]:
    """Return the columns chosen now, in order, and those chosen in some batch from the example `first` on."""
    if not learned.chosen or not len(learned.target):  # all examples may have been withdrawn
        return ()
    batches = learned.chosen[int(learned.batch[first]) :]
    share = np.bincount(np.concatenate(batches).astype(np.intp), minlength=len(learned.columns)) / len(batches)
    now = learned.chosen[-1]
    p = _without_effect(learned.values[since:, now], learned.target[since:])
    before = [j for j in np.argsort(-share, kind="stable") if share[j] and j not in now]
    columns = [(int(j), True, float(value)) for j, value in zip(now, p, strict=True)]
    columns += [(int(j), False, nan) for j in before]
    return tuple(ChosenColumn(learned.columns[j], is_now, float(share[j]), value) for j, is_now, value in columns)


def _without_effect(x: Array, y: Array) -> Array:
    """Return for each column the p-value that its coefficient is 0, adjusted by Holm's method; NaN where it is unknown.

    By linear regression, for classes too, with standard errors that hold without equal variances.
    """
    n, size = x.shape[0], x.shape[1] + 1
    p = np.full(size - 1, nan)
    if n < PER_COEFFICIENT * size:
        return p
    centre, scale = standardized(x)
    model = least_squares((x - centre) / scale, y)
    tested = np.flatnonzero(varied(x))
    error = np.sqrt(np.diag(model.covariance))[1 + tested]
    p[tested] = holm(2 * t.sf(np.abs(model.coef[1 + tested]) / error, n - size))
    return p
