"""Import of the optional packages that read files."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hardthresh.core.errors import MissingDependencyError

DECODERS = 4
"""Threads that decode: Parquet and Zarr take 1 to 2 CPU seconds for a GB, which a disc delivers in one second."""


def import_reader(module: str, what: str, extra: str) -> Any:
    """Return a module of an optional package, which is imported only now.

    Parameters
    ----------
    module : str
        Its name.
    what : str
        What it reads.
    extra : str
        The extra of hardthresh that installs the package.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"reading {what} needs {package}, which is not installed; run 'pip install hardthresh[{extra}]'."
        ) from error
