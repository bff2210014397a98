"""Numbers that stay on the device until they are needed, and then come to the host together.

On a GPU the host waits at every ``float(x)`` of an array until the device has caught up. `scalar` takes its place: for
NumPy it is that conversion, for other libraries it returns a `LazyScalar`, with which arithmetic continues. The first
number that a branch or a record asks for brings over, in one transfer, all numbers that are still in use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from math import ceil, floor, prod, trunc
from numbers import Real
from threading import local
from typing import Any
from weakref import WeakSet

import numpy as np
from array_api_compat import device, is_array_api_strict_namespace

from .typing import Array, library

_DEEPEST = 64
"""Operations one after the other before a lazy number is computed, on its device if not all of it is on the host: a sum
that is carried on would else keep all its terms. Arbitrary: far more than one decision needs."""


def to_host(x: Array) -> np.ndarray:
    """Return an array of any library as NumPy, from whatever device: the host waits for it."""
    if is_array_api_strict_namespace(library(x)):  # whose devices are only names
        return np.asarray(x.to_device(library(x).Device("CPU_DEVICE")))
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    elif hasattr(x, "get"):
        return np.asarray(x.get())
    return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)


def to_host_together(*arrays: Array) -> tuple[np.ndarray, ...]:
    """Return arrays of one library and device as NumPy, each of its own dtype, brought over in one transfer.

    Parameters
    ----------
    *arrays : array
        Of numbers that double precision holds. The numbers that wait on their device come with them.

    Returns
    -------
    tuple of ndarray
        The arrays themselves if they are NumPy's.
    """
    if isinstance(arrays[0], np.ndarray):
        return arrays
    xp, waiting = library(arrays[0]), _on_device_of(arrays[0])
    double = [xp.astype(x, xp.float64, copy=False) for x in (*arrays, *(x.array for x in waiting))]
    flat = [x if x.ndim == 1 else xp.reshape(x, (-1,)) for x in double]
    numbers, found, first = to_host(xp.concat(flat)), [], 0
    for x in arrays:
        dtype = next(name for name in ("float64", "float32", "int64", "int32", "bool") if x.dtype == getattr(xp, name))
        found.append(numbers[first : first + prod(x.shape)].reshape(tuple(x.shape)).astype(dtype))
        first += prod(x.shape)
    _arrive(waiting, numbers[first:])
    return tuple(found)


class _OnDevice:
    """A number in an array without dimensions, and its value once it has come to the host."""

    __slots__ = ("__weakref__", "array", "value")

    def __init__(self, array: Array) -> None:
        self.array: Array = array
        self.value: Any = None
        _WAITING.numbers.add(self)


class _Waiting(local):
    """The numbers of a thread that are still on a device, as long as something refers to them."""

    def __init__(self) -> None:
        self.numbers: WeakSet[_OnDevice] = WeakSet()


_WAITING = _Waiting()


def _bring(needed: list[_OnDevice]) -> None:
    """Bring numbers to the host, and all others of the thread that wait on the same device, in one transfer."""
    xp = library(needed[0].array)
    some = sorted(_on_device_of(needed[0].array, needed), key=_dtype)
    alike = [xp.stack([leaf.array for leaf in leaves]) for _, leaves in groupby(some, _dtype)]  # converted together
    _arrive(some, to_host(xp.concat([xp.astype(numbers, xp.float64, copy=False) for numbers in alike])))
    if rest := [leaf for leaf in needed if leaf.value is None]:
        _bring(rest)


def _dtype(leaf: _OnDevice) -> str:
    return str(leaf.array.dtype)


def _on_device_of(like: Array, needed: Iterable[_OnDevice] = ()) -> list[_OnDevice]:
    """Return the numbers of the thread, and those that are needed, that wait on the device of an array."""
    xp, where, waiting = library(like), device(like), {*needed, *_WAITING.numbers}
    return [leaf for leaf in waiting if library(leaf.array) is xp and device(leaf.array) == where]


def _arrive(leaves: list[_OnDevice], numbers: np.ndarray) -> None:
    """Give numbers their values, which are on the host now."""
    for leaf, value in zip(leaves, numbers.tolist(), strict=True):
        leaf.value = bool(value) if library(leaf.array).isdtype(leaf.array.dtype, "bool") else value
        leaf.array = None
        _WAITING.numbers.discard(leaf)


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of a lazy number for an operation with another number, or with an array."""

    def method(self: LazyScalar, other: Any) -> Any:
        if isinstance(other, (Real, np.bool_)):
            return LazyScalar(operation, self, other)
        return operation(self.alike(other), other)

    return method


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method for an operation whose first operand is the other number, or an array."""

    def method(self: LazyScalar, other: Any) -> Any:
        if isinstance(other, (Real, np.bool_)):
            return LazyScalar(operation, other, self)
        return operation(other, self.alike(other))

    return method


def _unary(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the method of a lazy number for an operation of its own."""
    return lambda self: LazyScalar(operation, self)


class LazyScalar:
    """A number that is computed from arrays on a device, and used like a float.

    Arithmetic and comparisons give further lazy numbers, those with arrays give arrays, and the host does not wait. It
    does wait where the number is converted: by ``float``, ``bool``, ``if``, ``min`` or a function of `math`.

    Parameters
    ----------
    operation : callable or None
        What computes the number from the operands; None if the operand is an array without dimensions that holds it.
    operands : tuple
        Numbers.
    """

    __slots__ = ("_array", "_depth", "_leaf", "_operands", "_operation", "_value")

    __array_priority__ = 1000.0  # above those of NumPy and CuPy, which leave operations with it to it

    def __init__(self, operation: Callable[..., Any] | None, *operands: Any) -> None:
        self._operation, self._value, self._array = operation, None, None
        self._leaf: _OnDevice | None = None
        self._operands: tuple[Any, ...] = ()
        self._depth = 0
        if operation is None:
            self._leaf = _OnDevice(operands[0])
            return
        self._operands = tuple(_now(x) for x in operands)
        self._depth = 1 + max((x._depth for x in self._operands if isinstance(x, LazyScalar)), default=0)
        if self._depth > _DEEPEST:
            self._settle()

    def get(self) -> Any:
        """Return the number as one of Python, once it is on the host."""
        if self._value is None:
            unknown = self._below(lambda x: x._value is not None)
            if missing := _missing(unknown):
                _bring(missing)
            for x in unknown:
                if x._operation is None:
                    assert x._leaf is not None
                    x._know(x._leaf.value)
                else:
                    x._know(x._operation(*(_now(operand) for operand in x._operands)))
        return self._value

    def alike(self, x: Array) -> Any:
        """Return the number as a factor or a term for an array, without waiting for it if that is on its device."""
        if isinstance(x, np.ndarray) or at_hand(self):
            return self.get()
        there = self.on_device()
        return there if isinstance(there, (float, int)) else library(x).astype(there, x.dtype)

    def on_device(self) -> Any:
        """Return the number as an array in double precision, in which Python computes too; or as it is, if known."""
        for x in self._below(lambda x: x._array is not None or _now(x) is not x):
            if x._operation is None:
                assert x._leaf is not None
                array, xp = x._leaf.array, library(x._leaf.array)
                x._array = array if xp.isdtype(array.dtype, "bool") else xp.astype(array, xp.float64, copy=False)
                continue
            there = x._operation(*(_there(operand) for operand in x._operands))
            if isinstance(there, (float, int)):
                x._know(there)
            else:
                x._array = there
        return _there(self)

    def missing(self) -> list[_OnDevice]:
        """Return the numbers it is computed from that are not on the host yet."""
        return _missing(self._below(lambda x: x._value is not None))

    def _below(self, settled: Callable[[LazyScalar], bool]) -> list[LazyScalar]:
        """Return the number and those that it is computed from, down to settled ones; operands come first."""
        found: list[LazyScalar] = []
        seen, rest = set(), [self]
        while rest:
            x = rest.pop()
            if id(x) not in seen and not settled(x):
                seen.add(id(x))
                found.append(x)
                rest += [operand for operand in x._operands if isinstance(operand, LazyScalar)]
        return sorted(found, key=lambda x: x._depth)

    def _know(self, value: Any) -> None:
        """Keep the value, and no longer what it is computed from."""
        self._value, self._depth = value, 0
        self._leaf, self._array, self._operands = None, None, ()

    def _settle(self) -> None:
        """Compute the number now, on the host if all that it needs is there, so that its operands are let go."""
        with suppress(ArithmeticError):  # of a number that is perhaps not asked for
            there = self.get() if at_hand(self) else self.on_device()
            if self._value is None:
                self._operation, self._operands, self._depth = None, (), 0
                self._leaf = _OnDevice(there)

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __neg__, __abs__ = _unary(operator.neg), _unary(operator.abs)

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.get(), digits)

    def __trunc__(self) -> Any:
        return trunc(self.get())

    def __floor__(self) -> Any:
        return floor(self.get())

    def __ceil__(self) -> Any:
        return ceil(self.get())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __hash__(self) -> int:
        return hash(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get(), spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.get(), dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        value = self.get()
        return type(value), (value,)


Real.register(LazyScalar)


def scalar(x: Any) -> Any:
    """Return an array without dimensions as a number: of NumPy as one of Python, else as one that is lazy.

    Parameters
    ----------
    x : array of shape (), or a number
        Of reals or booleans.

    Returns
    -------
    float, int, bool or LazyScalar

    Examples
    --------
    >>> import numpy as np
    >>> scalar(np.sum(np.ones(3)))
    3.0
    """
    kind = type(x)  # a fit of a small table asks hundreds of times, and almost always for one of these
    if kind is np.float64:
        return float(x)
    if kind is np.bool_:
        return bool(x)
    if kind is np.int64:
        return int(x)
    if kind is float or kind is int:
        return x
    if isinstance(x, (np.generic, np.ndarray)):
        return x.item()
    if isinstance(x, Real):
        return x
    if is_array_api_strict_namespace(library(x)):  # on the host, and it refuses numbers that are not Python's own
        return to_host(x).item()
    return LazyScalar(None, x)


def inner(a: Array, b: Array) -> Any:
    """Return the sum of the products of the entries of two arrays of one shape, as `scalar` does."""
    if type(a) is np.ndarray:
        return float(np.add.reduce(a * b, axis=None))  # what np.sum calls in the end
    if a.ndim == 1 and a.shape == b.shape and a.dtype == b.dtype:
        return scalar(a @ b)  # one operation of the device instead of two
    return scalar(library(a).sum(a * b))


def at_hand(x: Any) -> bool:
    """Return whether a number is on the host, so that nothing waits for it."""
    return type(x) is not LazyScalar or not x.missing()


def _now(x: Any) -> Any:
    """Return an operand as the number that it is, or as it is while that is not on the host."""
    if not isinstance(x, LazyScalar):
        return x
    known = x._value if x._leaf is None else x._leaf.value
    return x if known is None else known


def _there(x: Any) -> Any:
    """Return an operand as the array that has been computed on its device, or as the number that it is."""
    now = _now(x)
    return now._array if isinstance(now, LazyScalar) else now


def _missing(numbers: Iterable[LazyScalar]) -> list[_OnDevice]:
    """Return those of some numbers that wait on their device."""
    return [x._leaf for x in numbers if x._leaf is not None and x._leaf.value is None]
