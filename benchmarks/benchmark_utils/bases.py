"""The base classes of benchopt where it is installed, and the little of them that our own runner needs where not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

__all__ = ["BaseDataset", "BaseObjective", "BaseSolver", "grid"]


def grid(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the combinations of a benchopt grid, in which ``"a, b": [(1, 2)]`` couples two parameters."""
    for values in product(*parameters.values()):
        combination: dict[str, Any] = {}
        for names, value in zip(parameters, values, strict=True):
            coupled = [name.strip() for name in names.split(",")]
            combination.update(zip(coupled, value, strict=True) if len(coupled) > 1 else [(names, value)])
        yield combination


class _Parametrized:
    """An object with the parameters of its class as attributes."""

    parameters: dict[str, Any] = {}  # noqa: RUF012 - benchopt's way to declare them

    @classmethod
    def get_instance(cls, **parameters: Any) -> Any:
        """Return an object with the first of every parameter that is not given."""
        made = cls()
        for name, value in {**next(grid(cls.parameters)), **parameters}.items():
            setattr(made, name, value)
        return made


try:
    from benchopt import BaseDataset, BaseObjective, BaseSolver
except ImportError:
    BaseDataset = BaseObjective = BaseSolver = _Parametrized
