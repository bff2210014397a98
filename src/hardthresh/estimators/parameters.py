"""Parameters that an estimator adds to the inherited ones; and methods that depend on settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from inspect import Parameter, signature
from types import MethodType
from typing import Any, TypeVar

from hardthresh.core.checking import Function

T = TypeVar("T", bound=type)


def own_parameters(*, without: Sequence[str] = (), **defaults: Any) -> Callable[[T], T]:
    """Class decorator: add keyword parameters to those of the parent's `__init__`, first in the signature.

    scikit-learn reads the parameters of an estimator from that signature, and `__init__` does nothing but keep them, so
    that a list of all of them in every class would say nothing new. The class has to annotate what it adds. Parameters
    of the parent that are named in `without` are left out; the class has them as attributes with a fixed value.

    Examples
    --------
    >>> from inspect import signature
    >>> class Model:
    ...     def __init__(self, *, alpha=0.0):
    ...         self.alpha = alpha
    >>> @own_parameters(power=1.5)
    ... class PowerModel(Model):
    ...     pass
    >>> signature(PowerModel)
    <Signature (*, power=1.5, alpha=0.0)>
    >>> PowerModel(alpha=1.0).power
    1.5

    >>> @own_parameters(without=["alpha"])
    ... class PlainModel(Model):
    ...     alpha = 0.0
    >>> signature(PlainModel), PlainModel().alpha
    (<Signature ()>, 0.0)
    """

    def add(cls: T) -> T:
        inherited: Callable[..., None] = cls.__init__  # type: ignore[misc]
        first, *others = (p for name, p in signature(inherited).parameters.items() if name not in without)
        own = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
        known = {parameter.name for parameter in others} | defaults.keys()

        def __init__(self: Any, **settings: Any) -> None:
            for name in settings.keys() - known:
                raise TypeError(f"{__init__.__qualname__}() got an unexpected keyword argument {name!r}")
            inherited(self, **{name: value for name, value in settings.items() if name not in defaults})
            for name in without:
                vars(self).pop(name, None)  # the class has it
            for name, default in defaults.items():
                setattr(self, name, settings.get(name, default))

        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        __init__.__signature__ = signature(inherited).replace(parameters=[first, *own, *others])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return add


class _MethodOfSome:
    """A method of some models; for others, reading it raises an error that says why, as `hasattr` expects."""

    def __init__(self, method: Callable[..., Any], reason: Callable[[Any], str]) -> None:
        self.method, self.reason = method, reason
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self.method
        if reason := self.reason(model):
            raise AttributeError(f"{type(model).__name__} has no {self.method.__name__}: {reason}")
        return MethodType(self.method, model)


def exists_unless(reason: Callable[[Any], str]) -> Callable[[Function], Function]:
    """Decorate a method that some models do not have.

    `reason` takes a model, and returns why it has no such method, and what to do; nothing if it has.

    Examples
    --------
    >>> class Model:
    ...     fitted = False
    ...
    ...     @exists_unless(lambda model: "" if model.fitted else "it is not fitted")
    ...     def explain(self):
    ...         return 1
    >>> hasattr(Model(), "explain"), hasattr(Model, "explain")
    (False, True)
    """
    return lambda method: _MethodOfSome(method, reason)  # type: ignore[return-value]
