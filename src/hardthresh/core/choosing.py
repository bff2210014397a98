"""What depends on a number that may still be on a device: choices between numbers or arrays, and work done ahead.

All is plain Python where numbers are on the host, and on a device what the host would have decided without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial, wraps
from itertools import chain, islice
from math import frexp, inf
from typing import Any, ParamSpec, TypeVar, cast

from .lazy import LazyScalar, at_hand
from .typing import Array, is_numpy, library

P = ParamSpec("P")
T = TypeVar("T")


def ahead(items: Iterable[T], like: Array, number: int) -> Iterator[T]:
    """Yield items as they come from an iterable; on a device, after the next ones have been started on too.

    The host waits where it looks at the numbers of an item. So the work on the next items runs meanwhile, and their
    numbers come over with the first ones.

    Parameters
    ----------
    items : iterable
        What is worked on, one after the other.
    like : array
        Of the library that the work is done in.
    number : int
        How many items are worked on together there.
    """
    return iter(items) if is_numpy(like) else _together(iter(items), number)


def _together(rest: Iterator[T], number: int) -> Iterator[T]:
    """Yield items in order, so many taken at once."""
    while some := [*islice(rest, number)]:
        yield from some


def in_step(runs: Iterable[Generator[None, None, T]], like: Array) -> Iterator[T]:
    """Yield what generators return, each as it is asked for; on a device all continue together.

    They yield before the host looks at a number. So all are at that place when it does, and it waits once for all.

    Parameters
    ----------
    runs : iterable of generators
        What is worked on.
    like : array
        Of the library that the work is done in.
    """
    if is_numpy(like):
        yield from map(ended, runs)
        return
    going = dict(enumerate(runs))
    results: dict[int, Callable[[], T]] = {}
    first = 0
    while going:
        for number, run in [*going.items()]:
            try:
                next(run)
            except StopIteration as end:
                results[number] = partial(_returned, end.value)
            except Exception as error:  # of a run that may not be asked for
                results[number] = partial(_raised, error)
            if number in results:
                del going[number]
        while first in results:
            yield results.pop(first)()
            first += 1


def _returned(value: T) -> T:
    return value


def _raised(error: Exception) -> Any:
    raise error


def ended(run: Generator[None, None, T]) -> T:
    """Return what a generator returns."""
    try:
        while True:
            next(run)
    except StopIteration as end:
        result: T = end.value
        return result


def to_the_end(work: Callable[P, Generator[None, None, T]]) -> Callable[P, T]:
    """Return the function that runs a generator to its end, and returns what that returns."""

    @wraps(work)
    def whole(*args: P.args, **settings: P.kwargs) -> T:
        return ended(work(*args, **settings))

    return whole


def begun(items: Iterable[T], like: Array) -> Iterator[T]:
    """Yield items as they come from an iterable; on a device the work on the first one starts now.

    Then what the host has to know to continue, and the numbers of the first item, come over together.

    Parameters
    ----------
    items : iterable
        What is worked on, one after the other.
    like : array
        Of the library that the work is done in.
    """
    rest = iter(items)
    return rest if is_numpy(like) else chain([*islice(rest, 1)], rest)


def choose(condition: Any, then: T, otherwise: T) -> T:
    """Return ``then if condition else otherwise``, which is lazy if the condition is.

    Parameters
    ----------
    condition : bool or LazyScalar
        What decides.
    then, otherwise : float, int or LazyScalar
        The numbers. A quotient that only a condition allows is that of `ratio_if`.

    Returns
    -------
    float or LazyScalar
    """
    if type(condition) is not LazyScalar:
        return then if condition else otherwise
    return cast(T, LazyScalar(_choose, condition, then, otherwise))


def ratio_if(condition: Any, a: float, b: float, otherwise: float = 0.0) -> float:
    """Return a / b, or another number where a condition does not hold: there b may be zero."""
    if type(condition) is not LazyScalar:
        return a / b if condition else otherwise
    return cast(float, LazyScalar(_ratio_if, condition, a, b, otherwise))


def larger(a: float, b: float) -> float:
    """Return ``max(a, b)``, which is lazy if one of the numbers is."""
    greater: Any = b > a
    if type(greater) is not LazyScalar:
        return b if greater else a
    return cast(float, LazyScalar(_choose, greater, b, a))


def corrected(x: Any, correction: Callable[[], float]) -> float:
    """Return a number, or where it has overflowed or is NaN a correction, which is made on the host only."""
    if type(x) is not LazyScalar:
        return x if x < inf else correction()

    def once_here(value: Any) -> Any:
        return correction() if isinstance(value, float) and not value < inf else value

    return cast(float, LazyScalar(once_here, x))


def power_above(x: Any) -> Any:
    """Return a power of two that is at least a finite positive number, and at most four times it."""
    return _power_above(float(x)) if isinstance(x, int | float) else LazyScalar(_power_above, x)


def _power_above(x: Any) -> Any:
    """Return a power of two on the host, or as an array."""
    if isinstance(x, float):
        return 2.0 ** frexp(x)[1]
    xp = library(x)
    return 2.0 ** (xp.floor(xp.log2(x)) + 1.0)


def choose_array(condition: Any, then: Array, otherwise: Array) -> Array:
    """Return one of two arrays of one shape, on their device if the condition is not on the host yet."""
    if type(condition) is not LazyScalar or at_hand(condition):
        return then if condition else otherwise
    return library(then).where(condition.on_device(), then, otherwise)


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return one of two numbers on the host, or an array of it on the device of the condition."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    like = _zero_like(condition)
    return library(condition).where(condition, like + then, like + otherwise)


def _ratio_if(condition: Any, a: Any, b: Any, otherwise: Any) -> Any:
    """Return a / b or another number, on the host or as an array on the device of the condition."""
    if isinstance(condition, bool):
        return a / b if condition else otherwise
    like = _zero_like(condition)
    return library(condition).where(condition, (like + a) / b, like + otherwise)


def _zero_like(x: Array) -> Array:
    """Return zero, an array without dimensions in double precision on the device of an array."""
    return library(x).zeros_like(x, dtype=library(x).float64)
