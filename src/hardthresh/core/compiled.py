"""The compiled kernel, where the installation has one: the only module that imports it.

What the kernel computes, NumPy code computes too. A function that can use either asks `kernel` at each call.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

PURE_VARIABLE = "HARDTHRESH_PURE"
"""The environment variable that keeps the kernel out, unless it is empty or 0. It is read once in a process."""


def kernel() -> ModuleType | None:
    """Return the compiled kernel, or None if the NumPy code has to run."""
    found = _find()
    return found if isinstance(found, ModuleType) else None


def describe_kernel() -> str:
    """Return a few words on whether the compiled kernel runs: with which instructions, or why not."""
    found = _find()
    return found if isinstance(found, str) else f"compiled, {found.instruction_set()}"


@cache
def _find() -> ModuleType | str:
    """Return the kernel, or why there is none."""
    if (setting := os.environ.get(PURE_VARIABLE, "")) not in ("", "0"):
        return f"NumPy, because {PURE_VARIABLE}={setting}"
    try:
        return import_module("hardthresh._kernel")
    except ModuleNotFoundError:
        return "NumPy, because this installation was built without a C compiler"
    except ImportError as error:  # such as a library of another platform
        return f"NumPy, because the compiled kernel cannot be loaded: {error}"
