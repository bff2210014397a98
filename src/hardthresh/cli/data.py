"""The data that a command reads from a file of any format, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from hardthresh.core.errors import InvalidInputError, numbered, plural
from hardthresh.core.numbers import is_number

OUTPUT = "target number"
"""How the role of the second target, and of those after it, begins."""
IMPUTES = "--impute of fit, compare and stability"
"""What fills in missing numbers, and gives missing categories a level of their own."""
Matrix: TypeAlias = Any
"""A dense NumPy matrix or a `scipy.sparse.csr_array`, of float32 or float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The columns that a command reads from a file.

    Attributes
    ----------
    target, weight, offset, exposure, time, event, strata : str or None
        Columns, or arrays of an npz file, or npy files, with a role of their own. A time and whether the event happened
        then are a target.
    outputs : sequence of str
        The same for further targets of a model of several outputs.
    fold : str or None
        The same for the folds of a cross-validation, of tables in blocks.
    id : str or None
        The same for the identifiers of rows, which are not a feature.
    learn : bool
        Whether there must be a target.
    drop : sequence of str
        Feature columns to leave out before any check.
    only : sequence of str or None
        The only feature columns to read, in this order; the others may hold anything. For files with names.
    codes : mapping from str to str
        What numbers stand for in some of these columns, for messages.
    categorical : sequence of str
        Feature columns of categories, which may be text. For files with names.
    may_be_missing : bool
        Whether numbers of features may be missing; they are NaN then.
    x_key : str or None
        The array of an npz file with the matrix; for a sparse one, the prefix of ``_data``, ``_indices``, ...
    sql : str or None
        The query of a database whose rows are the table.
    phenotypes : Path or Server or None
        The table of the samples of a .bed file, where all other columns are.
    covariates : sequence of str
        Its columns that come before the variants.
    means : mapping from str to float, or None
        What missing genotypes of variants count as; None: the mean of the variant in the file.
    """

    target: str | None = None
    weight: str | None = None
    offset: str | None = None
    exposure: str | None = None
    time: str | None = None
    event: str | None = None
    strata: str | None = None
    outputs: Sequence[str] = ()
    fold: str | None = None
    id: str | None = None
    learn: bool = True
    drop: Sequence[str] = ()
    only: Sequence[str] | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    categorical: Sequence[str] = ()
    may_be_missing: bool = False
    x_key: str | None = None
    sql: str | None = None
    phenotypes: Any = None
    covariates: Sequence[str] = ()
    means: Mapping[str, float] | None = None

    @property
    def roles(self) -> dict[str, str]:
        """The names that were given, by role."""
        roles = ("target", "weight", "offset", "exposure", "time", "event", "strata", "fold", "id")
        named = {role: name for role in roles if (name := getattr(self, role)) is not None}
        return named | {f"{OUTPUT} {number}": name for number, name in enumerate(self.outputs, 2)}

    @property
    def has_target(self) -> bool:
        """Whether it names what to predict."""
        return self.target is not None or self.time is not None


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A table of numbers, and of categories.

    Attributes
    ----------
    source : str
        The file.
    X : Matrix of shape (n, d)
        One row per example; a polars data frame if there are columns of categories.
    names : tuple of str, length d, or None
        The names of the columns, if the file has them.
    target, weight, offset, strata : ndarray of shape (n,) or None
        The columns that were asked for; only the target and the strata may hold texts. A target of shape (n, 2) holds
        times, and 1 where the event happened then; or of several outputs a column for each. The offset of an exposure
        is its logarithm.
    ids : sequence of str, length n, or None
        Identifiers of the rows, as written in the file.
    target_name, offset_name, strata_name, id_name : str
        Names of the target, of the offset or the exposure, of the strata, and of the ids.
    outputs : tuple of str
        The names of several targets; empty for one.
    exposed : bool
        Whether the offset is the logarithm of an exposure.
    order : tuple of str
        The classes of the target from low to high, if they have an order.
    missing : int
        The number of missing values that were filled in, or became a level of their own.
    remarks : tuple of str
        Notes for the user about how the file was interpreted.
    ragged : bool
        Whether the number of columns is only that of the last non-zero, as in a libsvm file.
    """

    source: str
    X: Matrix
    names: tuple[str, ...] | None = None
    target: np.ndarray | None = None
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    strata: np.ndarray | None = None
    ids: Sequence[str] | None = None
    target_name: str = "y"
    offset_name: str = ""
    strata_name: str = ""
    id_name: str = ""
    outputs: tuple[str, ...] = ()
    exposed: bool = False
    order: tuple[str, ...] = ()
    missing: int = 0
    remarks: tuple[str, ...] = ()
    ragged: bool = False

    def with_roles(self, values: Mapping[str, Any], names: Mapping[str, str]) -> Data:
        """Return the data with the columns that have a role of their own, by role, and what they are called."""
        ids, offset, target = values.get("id"), values.get("offset"), values.get("target")
        if "exposure" in values:
            offset = _log_exposure(values["exposure"], self.source, names["exposure"])
        if "time" in values:
            target = np.column_stack((values["time"], _happened(values["event"], self.source, names["event"])))
        further = {names[role]: part for role, part in values.items() if role.startswith(OUTPUT)}
        if further and target is not None:
            target = np.column_stack((target, *further.values()))
        return replace(
            self,
            outputs=(names["target"], *further) if further else (),
            target=target,
            weight=values.get("weight"),
            offset=offset,
            strata=values.get("strata"),
            ids=None if ids is None else [str(value) for value in ids],
            target_name=", ".join((names.get("target", names.get("time", self.target_name)), *further)),
            offset_name=names.get("offset", names.get("exposure", self.offset_name)),
            strata_name=names.get("strata", self.strata_name),
            exposed="exposure" in values,
            id_name=names.get("id", self.id_name),
        )

    def position(self, name: str) -> int:
        """Return the position of a column, by its name or, in a file without names, by its number from 0."""
        d = self.X.shape[1]
        if self.names is not None:
            if name in self.names:
                return self.names.index(name)
            raise InvalidInputError(f"{self.source} has no column {name!r}; {suggestion(name, self.names)}")
        if name.isdecimal() and int(name) < d:
            return int(name)
        raise InvalidInputError(f"{self.source} has no column {name!r}; it has no names, and numbers from 0 to {d - 1}")

    def chosen(self, columns: Sequence[int] | np.ndarray) -> Data:
        """Return the data with only some feature columns."""
        names = None if self.names is None else tuple(self.names[j] for j in columns)
        return replace(self, X=self.X[:, columns], names=names)


def _log_exposure(exposure: np.ndarray, source: str, name: str) -> np.ndarray:
    """Return the logarithm of an exposure after checking that it is positive."""
    wrong = np.flatnonzero(exposure <= 0)
    if wrong.size:
        raise InvalidInputError(
            f"the exposure {name!r} of {source} must be positive, but is {exposure[wrong[0]]} in row {wrong[0] + 1}"
        )
    return np.log(np.asarray(exposure, dtype=np.float64))


def _happened(event: np.ndarray, source: str, name: str) -> np.ndarray:
    """Return 1 where an event happened and 0 where it was not observed."""
    wrong = np.flatnonzero((event != 0) & (event != 1))
    if wrong.size:
        raise InvalidInputError(
            f"the event {name!r} of {source} must be 1 where it happened and 0 where it was not observed, but is "
            f"{event[wrong[0]]} in row {wrong[0] + 1}"
        )
    return np.asarray(event, dtype=np.float64)


def check(data: Data, *, may_be_narrow: bool = False, may_be_missing: bool = False) -> Data:
    """Return the data after checking that they have rows and (unless `may_be_narrow`) columns, and are finite.

    Missing values stay if they may be there.

    Raises
    ------
    InvalidInputError
        The message counts the missing values and gives the place of the first.
    """
    n, d = data.X.shape
    if n == 0 or (d == 0 and not may_be_narrow):
        raise InvalidInputError(f"{data.source} has no {'rows' if n == 0 else 'feature columns'}")
    if hasattr(data.X, "columns"):
        return data  # whose numbers were checked when they were read
    sparse = not isinstance(data.X, np.ndarray)
    finite = np.isfinite(data.X.data if sparse else data.X)
    if may_be_missing and not sparse:
        finite |= np.isnan(data.X)
    if finite.all():
        return data
    if sparse:
        entries = data.X.tocoo()
        rows, columns, values = (part[~finite] for part in (entries.row, entries.col, entries.data))
    else:
        rows, columns = np.nonzero(~finite)
        values = data.X[rows, columns]
    missing, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    kinds = [plural(count, kind) for count, kind in ((missing, "missing value"), (infinite, "infinite value")) if count]
    first = numbered("column", columns[0]) if data.names is None else f"column {data.names[columns[0]]!r}"
    raise InvalidInputError(
        f"{data.source} has {' and '.join(kinds)} in {plural(len(np.unique(columns)), 'column')}, the first in "
        f"{first}, row {rows[0] + 1}{' (counted from 1)' if data.names is None else ''}; {_remedy(missing, infinite)}"
    )


def _remedy(missing: int, infinite: int) -> str:
    """Return what to do about missing and infinite values, of which only the missing ones are filled in."""
    if not infinite:
        return f"impute ({IMPUTES}) or remove these first"
    if not missing:
        return "--impute fills in missing values only, so correct or remove these first"
    return f"impute the missing ones ({IMPUTES}), and correct or remove the infinite ones first"


def check_role(values: np.ndarray, source: str, role: str, name: str) -> np.ndarray:
    """Return the column of a role after checking that it is finite and, if it must be, numeric.

    Raises
    ------
    InvalidInputError
        The message counts the missing values and gives the place of the first.
    """
    if role == "id":
        return values
    if values.dtype.kind == "U" and role not in ("target", "strata"):
        raise InvalidInputError(_about_text(values, source, role, name))
    if values.dtype.kind not in "fiubU":
        raise InvalidInputError(f"the {role} {name!r} of {source} must hold numbers, but has dtype {values.dtype}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        refuse_missing(~np.isfinite(values), source, role, name)
    return values


def _about_text(values: np.ndarray, source: str, role: str, name: str) -> str:
    """Return the message about a column of text whose role needs numbers."""
    if role == "event":
        return (
            f"the event {name!r} of {source} must be 1 where it happened and 0 where it was not observed, but "
            f"{text_in(values)}; recode it as 1 and 0"
        )
    if role.startswith(OUTPUT):
        return several_with_text(values, name)
    return f"the {role} {name!r} of {source} must hold numbers, but {text_in(values)}; recode it as numbers"


def several_with_text(values: np.ndarray, name: str) -> str:
    """Return the message about a target of text beside others."""
    return f"several targets must all be numbers, but in {name!r} {text_in(values)}; fit classes alone"


def text_in(values: np.ndarray) -> str:
    """Return the first of some texts that is not a number, with its row, as in a message.

    Examples
    --------
    >>> text_in(np.array(["1", "dead"]))
    "row 2 holds the text 'dead'"
    """
    texts = [str(value) for value in values.tolist()]
    row = next((row for row, text in enumerate(texts) if not is_number(text)), 0)
    return f"row {row + 1} holds the text {texts[row]!r}"


def refuse_missing(missing: np.ndarray, source: str, role: str, name: str) -> None:
    """Raise an error about the rows in which the column of a role has no value."""
    rows = np.flatnonzero(missing)
    raise InvalidInputError(
        f"the {role} {name!r} of {source} is missing or infinite in {plural(len(rows), 'row')}, the first is row "
        f"{rows[0] + 1}; remove these rows"
    )


def refuse_lacking(source: str, lacking: Sequence[str], known: Iterable[str]) -> None:
    """Raise an error about columns that a model needs and a file does not have."""
    raise InvalidInputError(
        f"{source} lacks {plural(len(lacking), 'column')} that the model needs: {listed(lacking)}; "
        f"{suggestion(lacking[0], known)}"
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests names close to a wrong one."""
    known = [str(one) for one in known]
    folded = {one.casefold(): one for one in known}
    close = [repr(folded[match]) for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are: {listed(known)}" if known else "there are none"


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return some names, and how many more there are."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
