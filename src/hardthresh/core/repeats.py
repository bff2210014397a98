"""Names that must not occur twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def first_repeat(names: Iterable[str]) -> str | None:
    """Return the first name that was there before; None if all differ.

    Examples
    --------
    >>> first_repeat(["age", "sex", "age"])
    'age'
    """
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, as the `object_pairs_hook` of `json.loads`.

    Raises
    ------
    ValueError
        If a name is given twice, of which Python would keep the last one.
    """
    repeated = first_repeat(name for name, _ in pairs)
    if repeated is not None:
        raise ValueError(f"{repeated[:100]!r} is given twice")
    return dict(pairs)
