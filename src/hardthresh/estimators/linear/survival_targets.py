"""Times, events and strata as users give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError

_FORMS = "(time, event) columns, a structured array or frame with one column of truths, or times that are all observed"


@dataclass(frozen=True, slots=True)
class SurvivalTargets:
    """Censored times.

    Attributes
    ----------
    time : array-like, shape (n,)
        The times, as they were given.
    event : array, shape (n,), or None
        1 where the time is that of an event, 0 where it is censored; None: all are events.
    strata : array, shape (n,), or None
        The number of the stratum of each row.
    labels : array
        The labels of the strata, by number.
    """

    time: Any
    event: np.ndarray | None = None
    strata: np.ndarray | None = None
    labels: np.ndarray | None = None

    @classmethod
    def of(cls, y: Any, strata: Any = None) -> SurvivalTargets:
        """Return the targets that y and strata are.

        Raises
        ------
        InvalidInputError
            For events that are not 0 or 1, columns whose order is doubtful, and strata of another length.
        """
        if isinstance(y, SurvivalTargets):
            return y
        time, event, third = _columns(y)
        if event is not None and not np.isin(event, (0, 1)).all():
            wrong = event[~np.isin(event, (0, 1))][0]
            raise InvalidInputError(f"events must be 0 or 1, found {wrong}; y is {_FORMS}")
        given = third if strata is None else _plain(strata)
        if given is None:
            return cls(time, None if event is None else event.astype(float))
        if given.shape != (rows := _plain(time).shape[:1]):
            raise InvalidInputError(f"strata has shape {given.shape}; {rows} is needed, one label for each row of y")
        labels, numbers = np.unique(given, return_inverse=True)
        return cls(time, None if event is None else event.astype(float), numbers, labels)

    def rows(self, time: np.ndarray) -> np.ndarray:
        """Return checked times with their events, and their strata if there are some: shape (n, 2) or (n, 3)."""
        event = np.ones(time.size) if self.event is None else self.event
        return np.column_stack([time, event] if self.strata is None else [time, event, self.strata])


def _columns(y: Any) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """Return times, events and strata, None where they are not given."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names:
        return _of_fields({name: np.asarray(y[name]) for name in names})
    if hasattr(y, "columns") and not hasattr(y, "todense"):
        frame = {str(name): np.asarray(y[name]) for name in y.columns}
        if len(frame) in (2, 3):
            truths = [name for name, column in frame.items() if column.dtype.kind == "b"]
            return _of_fields(frame) if truths else _of_matrix(np.column_stack([*frame.values()]))
        return y, None, None
    plain = np.empty(0) if y is None else _plain(y)
    return _of_matrix(plain) if plain.ndim == 2 and plain.shape[1] in (2, 3) else (y, None, None)


def _of_fields(fields: dict[str, np.ndarray]) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return times and events of two fields, of which the one with truths has the events."""
    truths = [name for name, column in fields.items() if column.dtype.kind == "b"]
    if len(fields) != 2 or len(truths) != 1:
        raise InvalidInputError(
            f"y has the fields {', '.join(fields)}; one of truths, the events, and one of times are needed"
        )
    (time,) = (column for name, column in fields.items() if name not in truths)
    return time, fields[truths[0]], None


def _of_matrix(y: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return times and events of columns in this order, and the strata of a third one."""
    are_events = [bool(np.isin(y[:, j], (0, 1)).all()) for j in (0, 1)]
    if are_events[0] and not are_events[1]:
        raise InvalidInputError("the first column of y is 0 or 1 everywhere; give (time, event), in this order")
    return y[:, 0], y[:, 1], y[:, 2] if y.shape[1] == 3 else None


def _plain(x: Any) -> np.ndarray:
    plain: np.ndarray = np.asarray(to_numpy(x) if is_array_api_obj(x) else x)
    return plain
