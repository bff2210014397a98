"""Base class of the guarantees, records that print as a table, and checks of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from math import ceil, inf, log, log1p
from typing import Any, ClassVar, TypeVar

import numpy as np

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import is_integer, is_real

Function = TypeVar("Function", bound=Callable[..., Any])
G = TypeVar("G", bound="type[Guarantee]")

_SHOWN = 4  # entries of a sequence in a table; more only make its column wider


class Guarantee:
    """The constants of a theorem; ``print`` shows them as a table, and `beside` compares them with a run.

    Attributes
    ----------
    title : str
        The theorem that the numbers are from.
    assumptions : str
        Conditions of the theorem that cannot be checked from data.
    failures : tuple of str
        Conditions of the theorem that the numbers do not satisfy; empty if there are none.
    """

    __slots__ = ()
    title: ClassVar[str]
    assumptions: ClassVar[str]
    failures: tuple[str, ...]

    @property
    def applies(self) -> bool:
        """Whether the numbers satisfy all conditions of the theorem that can be checked."""
        return not self.failures

    def beside(self, **used: Any) -> str:
        """Return the table with another column for the numbers of a run.

        Parameters
        ----------
        **used : number or str
            The values of the run, by the names of the attributes.

        Returns
        -------
        str

        Raises
        ------
        InvalidInputError
            For a name that is not in the table.
        """
        meanings = _meanings(type(self))
        unknown = [name for name in used if name not in meanings]
        if unknown:
            raise InvalidInputError(f"the table has no row {unknown[0]!r}; it has {', '.join(meanings)}")
        rows = [
            (name.replace("_", " "), _formatted(getattr(self, name)), _formatted(used.get(name)), meaning)
            for name, meaning in meanings.items()
            if getattr(self, name) is not None or name in used
        ]
        if used:
            rows.insert(0, ("", "theory", "run", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[2] = widths[2] or -2  # no column, nor the blanks behind it
        lines = [
            f"  {name:{widths[0]}}  {theory:{widths[1]}}  {run.ljust(widths[2] + 2)}{meaning}".rstrip()
            for name, theory, run, meaning in rows
        ]
        verdict = [f"  The theorem does not apply: {failure}." for failure in self.failures]
        return "\n".join([self.title, *lines, *verdict, f"  Assumptions that cannot be checked: {self.assumptions}."])

    def __str__(self) -> str:
        return self.beside()


def meaning(text: str) -> Mapping[str, str]:
    """Return the metadata of a field that is in the table: its meaning."""
    return {"meaning": text}


def _meanings(record: Any) -> dict[str, str]:
    """Return the meanings of the fields of the table."""
    return {item.name: item.metadata["meaning"] for item in fields(record) if item.metadata}


def with_attributes_section(record: G) -> G:
    """Decorate a record: its docstring gets the section of its attributes, in the words of its table."""
    rows = {**_meanings(record), "failures": "conditions of the theorem that the numbers do not satisfy"}
    kinds = {item.name: _in_words(str(item.type)) for item in fields(record)}  # type: ignore[arg-type]
    section = [f"    {name} : {kinds[name]}\n        {text[0].upper()}{text[1:]}." for name, text in rows.items()]
    record.__doc__ = "\n".join([f"{record.__doc__}\n", "    Attributes", "    ----------", *section, "    "])
    return record


def _in_words(annotation: str) -> str:
    """Return a type as numpydoc writes it: tuple of float, float or None."""
    return annotation.replace(" | ", " or ").replace("tuple[", "tuple of ").split(",")[0]


def checked_constants(
    smoothness: Any, strong_convexity: Any, names: tuple[str, str] = ("smoothness", "strong_convexity")
) -> tuple[float, float]:
    """Return L and mu as floats; raise InvalidInputError unless 0 < mu <= L."""
    L = checked_number(names[0], smoothness, above=0.0)
    return L, checked_number(names[1], strong_convexity, above=0.0, most=L)


def refuses_overflow(function: Function) -> Function:
    """Decorate a function of numbers: where one overflows, or a divisor underflows, it raises InvalidInputError."""

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return function(*args, **kwargs)
        except ArithmeticError as error:
            raise InvalidInputError(
                f"{function.__name__}: some of the numbers are too large or too small for floating point; give them in "
                "other units"
            ) from error

    return checked  # type: ignore[return-value]


def steps_until(small: float, decay: float) -> float:
    """Return the least integer t >= 0 with (1 - decay)^t <= small; inf where there is none."""
    if small >= 1.0:
        return 0
    if small <= 0.0 or decay <= 0.0:
        return inf
    return 1 if decay >= 1.0 else ceil(log(small) / log1p(-decay))


def _formatted(value: Any) -> str:
    """Return a value for the table: integers in full, other numbers to four digits, of a sequence some."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, tuple):
        cells = [_formatted(item) for item in value]
        return f"({', '.join(cells if len(cells) <= _SHOWN else [*cells[: _SHOWN - 1], '...', cells[-1]])})"
    if is_integer(value) and abs(value) < 10**9:
        return f"{value:,}"
    return f"{value:.4g}" if is_real(value) else str(value)
