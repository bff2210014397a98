"""Options that several commands have in common, which are written once."""

from __future__ import annotations

from collections.abc import Callable, Container
from inspect import Parameter, signature
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


def with_options_of(other: Callable[..., Any], *, without: Container[str] = ()) -> Callable[[Command], Command]:
    """Decorate a command that ends in ``**options``: these are the options of another command, besides its own.

    Parameters
    ----------
    other : callable
        The command that has them.
    without : container of str
        The parameters of that command that this one does not take.

    Examples
    --------
    >>> def fit(data: str, k: int = 1, seed: int = 0): ...
    >>> @with_options_of(fit, without={"seed"})
    ... def check(data: str, *, pairs: int = 5, **options: int): ...
    >>> list(signature(check).parameters)
    ['data', 'k', 'pairs']
    """

    def decorate(command: Command) -> Command:
        own = signature(command, eval_str=True)
        parameters = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        theirs = [
            each.replace(kind=Parameter.KEYWORD_ONLY)
            for name, each in signature(other, eval_str=True).parameters.items()
            if name not in own.parameters and name not in without
        ]
        first = [each for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
        every = [*first, *theirs, *parameters[len(first) :]]
        command.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in every}
        return command

    return decorate
