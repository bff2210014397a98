"""Import of the optional packages that draw charts and fill the report's template."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hardthresh.core.errors import MissingDependencyError


def import_optional(module: str, what_needs: str, *, extra: str) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        Name of the module.
    what_needs : str
        Subject and verb of the error message, such as ``"charts need"``.
    extra : str
        The extra of hardthresh that installs the package.

    Raises
    ------
    MissingDependencyError
        If the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{what_needs} {package}, which is not installed; run 'pip install hardthresh[{extra}]'."
        ) from error
