"""Times, events and strata as users give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.utils import _safe_indexing

from hardthresh.arrays import to_numpy
from hardthresh.constraints.labels import is_missing
from hardthresh.core.errors import InvalidInputError, format_value, numbered, plural, warn

from ..frames import frame_of

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
        The label of the stratum of each row.
    """

    time: Any
    event: np.ndarray | None = None
    strata: np.ndarray | None = None

    @classmethod
    def of(cls, y: Any, strata: Any = None) -> SurvivalTargets:
        """Return the targets that y and strata are; their values are not examined yet.

        Raises
        ------
        InvalidInputError
            For too many columns, columns whose order is doubtful, and strata of another length.
        """
        if isinstance(y, SurvivalTargets):
            return y
        time, event, third = _columns(y)
        shape = _plain(time).shape
        if len(shape) == 2 and shape[1] != 1:
            raise InvalidInputError(f"y has {plural(shape[1], 'column')}; it is {_FORMS}")
        given = third if strata is None else _plain(strata)
        if given is not None and given.shape != shape[:1]:
            needed = f"{shape[:1]} is needed, one label for each row of y"
            raise InvalidInputError(f"strata has shape {given.shape}; {needed}")
        return cls(time, event, given)

    def take(self, rows: np.ndarray) -> SurvivalTargets:
        """Return the targets of some rows."""
        event, strata = (None if part is None else part[rows] for part in (self.event, self.strata))
        return SurvivalTargets(_safe_indexing(self.time, rows), event, strata)

    def rows(self, time: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, SurvivalCodes]:
        """Return checked times with their events, and their strata if there are some; and what their numbers mean.

        Parameters
        ----------
        time : array, shape (n,)
            The checked times.
        counted : array of bool, shape (n,)
            The rows of positive weight. What others hold is not examined: they are censored, in any stratum.

        Returns
        -------
        rows : array, shape (n, 2) or (n, 3)
            Strata are numbers.
        codes : SurvivalCodes
            The labels of the strata.

        Raises
        ------
        InvalidInputError
            For events that are not 0 or 1, and missing strata.
        """
        event = np.ones(time.size)
        if self.event is not None:
            wrong = np.flatnonzero(counted & ~np.isin(self.event, (0, 1)))
            if wrong.size:
                raise InvalidInputError(
                    f"events must be 0 or 1, found {self.event[wrong[0]]} in row {wrong[0]}; y is {_FORMS}"
                )
            event = np.where(counted, self.event, 0).astype(float)
        if self.strata is None:
            return np.column_stack([time, event]), SurvivalCodes(None)
        missing = np.array([is_missing(label) for label in self.strata.tolist()], dtype=bool)
        if (missing & counted).any():
            row = int(np.flatnonzero(missing & counted)[0])
            raise InvalidInputError(
                f"the stratum of row {row} is missing; leave the row out, or give such rows a label of their own"
            )
        labels, numbers = np.unique(self.strata[~missing], return_inverse=True)
        number = np.zeros(time.size)
        number[~missing] = numbers
        return np.column_stack([time, event, number]), SurvivalCodes(np.array(labels.tolist()))


def stratified(y: Any, strata: Any) -> Any:
    """Return y with strata; y itself where there are none."""
    return y if strata is None else SurvivalTargets.of(y, strata)


@dataclass(frozen=True, slots=True, eq=False)
class SurvivalCodes:
    """What the numbers in rows of times, events and strata stand for.

    Attributes
    ----------
    strata : array or None
        The labels of the strata, by number; None if there are none.
    times : array or None
        The distinct times, by rank; None if rows have the times themselves.
    """

    strata: np.ndarray | None
    times: np.ndarray | None = None

    def ranked(self, y: np.ndarray) -> tuple[np.ndarray, SurvivalCodes]:
        """Return rows with the rank of each time in its place, which single precision has too, and their codes."""
        times, rank = np.unique(y[:, 0], return_inverse=True)
        return np.column_stack([rank, y[:, 1:]]), SurvivalCodes(self.strata, times)

    def timed(self, y: np.ndarray) -> np.ndarray:
        """Return rows with times instead of their ranks."""
        return y if self.times is None else np.column_stack([self.times[y[:, 0].astype(np.int64)], y[:, 1:]])

    def labelled(self, y: np.ndarray) -> np.ndarray:
        """Return rows with times, and labels of strata: of objects if these are no numbers."""
        rows = self.timed(y)
        if self.strata is None:
            return rows
        labels = self.strata[rows[:, 2].astype(np.int64)]
        parts = [rows[:, :2], labels[:, None]]
        numeric = labels.dtype.kind in "fiub"
        return np.concatenate(parts if numeric else [part.astype(object) for part in parts], axis=1)


def warn_of_early_times(time: np.ndarray, counted: np.ndarray) -> None:
    """Warn of times that are not positive, in rows of positive weight.

    The likelihood depends on the order of times alone, so they can be fitted; but a time since the start of an
    observation is positive, and a first date that is after the last one is a mistake.
    """
    early = np.flatnonzero(counted & (time <= 0))
    if early.size:
        row = int(early[0])
        have = "has a time that is" if early.size == 1 else "have times that are"
        warn(
            f"{plural(early.size, 'row')} {have} not positive, the first {time[row]:.6g} in {numbered('row', row)}; "
            "times are counted from the start of the observation, so this is most often a mistake in the data: "
            "correct or leave out these rows"
        )


def check_comparable(y: np.ndarray, counted: np.ndarray, codes: SurvivalCodes) -> None:
    """Check that an event has another row at risk at its time, in its stratum: all that a partial likelihood compares.

    Parameters
    ----------
    y : array, shape (n, 2) or (n, 3)
        Times, events and perhaps the numbers of strata.
    counted : array of bool, shape (n,)
        The rows of positive weight.
    codes : SurvivalCodes
        The labels of the strata.

    Raises
    ------
    InvalidInputError
        If there are several rows, and events, but none has.
    """
    time, happened = y[counted, 0], y[counted, 1] > 0
    stratum = np.zeros(time.size) if codes.strata is None else y[counted, 2]
    order = np.lexsort((time, stratum))
    followed = stratum[order][1:] == stratum[order][:-1]
    tied = followed & (time[order][1:] == time[order][:-1])
    compared = np.append(followed, False) | np.append(False, tied)
    if time.size < 2 or not happened.any() or compared[happened[order]].any():
        return
    if codes.strata is None:
        raise InvalidInputError(
            "no event has another row at risk at its time, so there is nothing to compare it with; in the second "
            "column of y, 1 is an event and 0 a censored time"
        )
    raise InvalidInputError(
        f"no event has another row at risk in its stratum, so there is nothing to compare it with; strata has "
        f"{plural(np.unique(stratum).size, 'label')} in {time.size:,} rows, such as "
        f"{format_value(codes.strata[int(stratum[0])])}: are they those of strata?"
    )


def _columns(y: Any) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """Return times, events and strata, None where they are not given."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names:
        return _of_fields({name: np.asarray(y[name]) for name in names})
    frame = frame_of(y, "y")
    if frame is not None:
        columns = {str(column.name): column.to_numpy() for column in frame.iter_columns()}
        if len(columns) in (2, 3):
            truths = [name for name, column in columns.items() if column.dtype.kind == "b"]
            return _of_fields(columns) if truths else _of_matrix(np.column_stack([*columns.values()]))
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
