"""What requests say: JSON of instruments and forms of pages, read with care."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from hardthresh.core.errors import format_value
from hardthresh.core.repeats import without_repeats

from .refusals import UNPROCESSABLE, Refused

LARGEST_NUMBER = 2**63 - 1  # that SQLite can store
MOST_FIELDS = 10_000  # of a form: more than fit into the longest body
_DECIMAL_COMMA = re.compile(r"([+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,})))(\s.*|)")


def _invalid(message: str) -> Refused:
    return Refused(UNPROCESSABLE, "InvalidInputError", message)


def address_of(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client else ""


async def json_of(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "NotJSON", f"the body must be application/json, not {kind[:100]!r}")
    return parse_json(await request.body())


def parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object; unlike Python, without NaN, names that occur twice, and letters that cannot be stored."""
    try:
        text = body.decode("utf-8")
        found = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=without_repeats)
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:  # of UTF-8 too, and of integers with thousands of digits
        raise _invalid(f"the body is not JSON that can be read: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise _invalid(f"the body must be a JSON object, such as {{}}; got {format_value(found)}")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


class Fields:
    """The fields of a JSON object, each of which is read once with its type; `finish` raises for those left over.

    Parameters
    ----------
    given : mapping
        The object.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = dict(given)
        self._known: list[str] = []

    def _take(self, name: str, default: Any) -> Any:
        self._known.append(name)
        found = self._left.pop(name, default)
        if found is REQUIRED:
            raise _invalid(f"{name} is missing")
        return found

    def text(self, name: str, default: Any = None) -> Any:
        """Return a text."""
        found = self._take(name, REQUIRED if default is REQUIRED else default)
        if found is not default and not isinstance(found, str):
            raise _invalid(f"{name} must be a text; got {format_value(found)}")
        return found

    def integer(self, name: str, default: Any = None) -> int:
        """Return an integer that SQLite can store."""
        found = self._take(name, REQUIRED if default is None else default)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= LARGEST_NUMBER:
            raise _invalid(f"{name} must be a whole number, at least 0; got {format_value(found)}")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, by default none."""
        found = self._take(name, [])
        if not (isinstance(found, list) and all(isinstance(text, str) for text in found)):
            raise _invalid(f"{name} must be a list of texts; got {format_value(found)}")
        return tuple(found)

    def values(self, name: str) -> dict[str, Any]:
        """Return a mapping from names to numbers, texts, true, false or null."""
        found = self._take(name, REQUIRED)
        if not isinstance(found, dict):
            raise _invalid(f"{name} must be an object, such as {{'age': 61}}; got {format_value(found)}")
        for key, value in found.items():
            if not (value is None or isinstance(value, (bool, int, float, str))):
                raise _invalid(f"{name}: the value of {key[:100]!r} must be a number, a text or null")
        return found

    def finish(self) -> None:
        """Raise if there are fields that nobody asked for: a mistyped name must not be overlooked."""
        for name in self._left:
            raise _invalid(f"there is no field {format_value(name)}; the fields are {', '.join(self._known)}")


REQUIRED: Any = object()


async def form_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form of our pages, each with its values."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "NotAForm", "this page takes what its form sends, and nothing else")
    try:
        pairs = parse_qsl(
            (await request.body()).decode("ascii"),
            keep_blank_values=True,
            max_num_fields=MOST_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise _invalid("the form cannot be read; open the page again") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def with_decimal_point(typed: str) -> str:
    """Return a typed number with a point where it has a decimal comma, the only one on the keyboards of some phones.

    What may be a thousand, such as "1,200", stays as it is, and the study refuses it.

    Examples
    --------
    >>> with_decimal_point("1,25 mg/dl"), with_decimal_point("0,125"), with_decimal_point("1,200")
    ('1.25 mg/dl', '0.125', '1,200')
    """
    found = _DECIMAL_COMMA.fullmatch(typed.strip())
    return f"{found[1].replace(',', '.')}{found[2]}" if found else typed
