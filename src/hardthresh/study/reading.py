"""The tables of a TOML file as parts of the terms of a study, or the entry that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args
from unicodedata import normalize

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import is_real
from hardthresh.limited.learner import LARGEST

from .attributes import MISSING, Attribute, Kind

LONGEST_HOLD = 1e6
"""Hours that a question is held at most before another person may have it: a century; 2.4e10 hours would overflow."""
LONGEST_NAME = 100
"""Characters of the name of an attribute, of a person, or a unit; arbitrary: it must fit on a line of a phone."""


def similar_name(name: Any, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to another one, without regard to case; None if none is."""
    folded = {one.casefold(): one for one in known}
    close = get_close_matches(str(name).casefold(), folded, n=1)
    return folded[close[0]] if close else None


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: a similar one that is known, if there is one."""
    similar = similar_name(name, known)
    return "" if similar is None else f"; did you mean {similar!r}?"


def same_subject(one: str, other: str) -> bool:
    """Return whether two texts name the same example: they may differ by capital letters."""
    return one.casefold() == other.casefold()


def check_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for name in table:
        if name not in known:
            raise InvalidInputError(f"{where} cannot have {name!r}{suggestion(name, known)}")


def named_tables(what: str, value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return named tables of the TOML file."""
    if not (isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values())):
        raise InvalidInputError(f"{what} must be tables, such as [{what}.age]")
    return list(value.items())


def text_of(name: str, value: Any) -> str:
    if not (isinstance(value, str) and value.isprintable() and len(value) <= 1000):
        raise InvalidInputError(
            f"{name} must be a printable text of at most 1000 characters, got {format_value(value)}"
        )
    return value


def checked_name(what: str, value: Any) -> str:
    """Return the name of an attribute, level, unit, panel, person or subject, in Unicode's normal form C."""
    name = normalize("NFC", value.strip()) if isinstance(value, str) else value
    if not (isinstance(name, str) and name and name.isprintable() and len(name) <= LONGEST_NAME):
        raise InvalidInputError(f"{what} must have 1 to {LONGEST_NAME} printable characters, got {format_value(value)}")
    return name


def checked_names(what: str, value: Any) -> set[str]:
    """Return names that are given as one text or as several; they need not be known."""
    names = [value] if isinstance(value, str) else [*value] if isinstance(value, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"{what} must be a name or a list of names, got {format_value(value)}")
    return set(names)


def check_distinct(what: str, names: Iterable[str]) -> None:
    """Raise InvalidInputError if people could take one of some names for another."""
    known: dict[str, str] = {}
    for name in names:
        folded = normalize("NFKC", name).casefold()
        if folded in known:
            raise InvalidInputError(f"{known[folded]!r} and {name!r} look alike: rename {what}")
        known[folded] = name


def _checked_attribute_name(what: str, value: Any) -> str:
    """Return the name of an attribute or of the target, which can be written in NAME=VALUE and in NAME,..."""
    name = checked_name(what, value)
    if "=" in name or "," in name or value != value.strip():
        raise InvalidInputError(f"{what} has no '=', no comma and no blanks at its ends, got {format_value(value)}")
    return name


def _limits(name: str, value: Any) -> tuple[float, float]:
    if not (isinstance(value, list) and len(value) == 2):
        raise InvalidInputError(f"{name} must be a list of two numbers, got {format_value(value)}")
    low, high = (checked_number(name, end, least=-LARGEST, most=LARGEST) for end in value)
    if not low < high:
        raise InvalidInputError(f"{name} must increase, got {format_value(value)}")
    return low, high


def _levels(name: str, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and len(value) >= 2):
        raise InvalidInputError(f"{name} must be a list of at least two texts, got {format_value(value)}")
    levels = tuple(checked_name(f"a level of {name}", level) for level in value)
    folded = {level.casefold() for level in levels}
    if len(folded) < len(levels) or MISSING in folded:
        raise InvalidInputError(f"{name} must differ from each other and from {MISSING!r}, got {format_value(value)}")
    return levels


def read_panel(name: str, entry: Mapping[str, Any]) -> tuple[str, float]:
    """Return the name and the price of a panel from its table in the TOML file."""
    name = checked_name("the name of a panel", name)
    check_keys(f"panel {name!r}", entry, ["price"])
    return name, _price(f"the price of panel {name!r}", entry.get("price"))


def _price(what: str, value: Any) -> float:
    if is_real(value) and value == 0:
        raise InvalidInputError(
            f"{what} must be more than 0, got {format_value(value)}: give what is free a very small price, such as "
            "0.01, or put it into the panel that it always comes with"
        )
    return checked_number(what, value, above=0.0)


def read_attribute(name: str, entry: Mapping[str, Any]) -> Attribute:
    """Return an attribute from its table in the TOML file."""
    name = _checked_attribute_name("the name of an attribute", name)
    where = f"attribute {name!r}"
    check_keys(where, entry, ["kind", "unit", "units", "range", "possible", "levels", "panel", "price", "help"])
    kind = entry.get("kind", "number")
    if kind not in get_args(Kind):
        kinds = ", ".join(get_args(Kind))
        raise InvalidInputError(f"the kind of {where} must be one of {kinds}; got {format_value(kind)}")
    if (kind in ("ordered", "category")) != ("levels" in entry):
        raise InvalidInputError(f"{where} must have levels if it is ordered or a category, and only then")
    if kind not in ("number", "integer"):
        check_keys(f"{where}, which is not a number,", entry, ["kind", "levels", "panel", "price", "help"])
    if "panel" in entry and "price" in entry:
        raise InvalidInputError(f"{where} is bought in a panel, which has the price: leave its own price out")
    units = entry.get("units", {})
    if not isinstance(units, dict):
        raise InvalidInputError(f"the units of {where} must be a table, such as {{ 'mg/dl' = 88.42 }}")
    if entry.get("unit") in units:
        raise InvalidInputError(f"{where} has the unit {entry['unit']!r} among its other units: leave it out there")
    if units and not entry.get("unit"):
        raise InvalidInputError(f"{where} has other units: give its own unit too")
    limits = {name: _limits(f"the {name} of {where}", entry[name]) for name in ("range", "possible") if name in entry}
    if len(limits) == 2:
        (low, high), (least, most) = limits["range"], limits["possible"]
        if low < least or high > most:
            raise InvalidInputError(f"the range of {where} must lie within what is possible")
    return Attribute(
        name=name,
        kind=kind,
        unit=_unit(where, entry.get("unit", "")),
        units={
            _unit(where, unit): checked_number(f"unit {unit!r} of {where}", factor, above=0.0)
            for unit, factor in units.items()
        },
        levels=_levels(f"the levels of {where}", entry["levels"]) if "levels" in entry else (),
        panel=checked_name(f"the panel of {where}", entry["panel"]) if "panel" in entry else "",
        price=_price(f"the price of {where}", entry.get("price", 1.0)),
        help=text_of(f"the help of {where}", entry.get("help", "")),
        **limits,
    )


def _unit(where: str, unit: Any) -> str:
    if not unit and isinstance(unit, str):
        return unit
    name = checked_name(f"a unit of {where}", unit)
    if name[0] in "0123456789+-.":
        raise InvalidInputError(f"a unit of {where} must not begin like a number, got {name!r}")
    return name


def read_target(entry: Any) -> Attribute:
    """Return the target from its table in the TOML file."""
    if not isinstance(entry, dict):
        raise InvalidInputError("target must be a table: [target], with a name")
    check_keys("the target", entry, ["name", "kind", "unit", "units", "range", "possible", "levels", "help"])
    if "name" not in entry:
        raise InvalidInputError("the target needs a name")
    name = _checked_attribute_name("the name of the target", entry["name"])
    rest = {key: value for key, value in entry.items() if key not in ("name", "kind", "levels")}
    kind = entry.get("kind", "number")
    if kind not in ("number", "class"):
        raise InvalidInputError(f"the kind of the target must be number or class, got {format_value(kind)}")
    if kind == "number":
        if "levels" in entry:
            raise InvalidInputError("the target has levels: its kind must be class")
        return read_attribute(name, rest)
    levels = _levels("the levels of the target", entry.get("levels", ["no", "yes"]))
    if len(levels) != 2:
        raise InvalidInputError(f"the target must have two levels, got {format_value(list(levels))}")
    check_keys("the target, which is a class,", rest, ["help"])
    return Attribute(name, "yes/no", levels=levels, help=text_of("the help of the target", rest.get("help", "")))
