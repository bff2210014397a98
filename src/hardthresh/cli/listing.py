"""``hardthresh list``: what there is to combine."""

from __future__ import annotations

from importlib import import_module
from typing import Any

KINDS = {
    "loss": ("losses", "Losses"),
    "constraint": ("constraints", "Constraints"),
    "step": ("steps", "Step rules"),
    "solver": ("solvers", "Solvers"),
    "observation": ("solvers", "Solvers that buy attributes"),
    "estimator": ("estimators", "Estimators"),
}


def list_registered() -> None:
    """List the losses, constraints, step rules, solvers and estimators."""
    from rich.table import Table
    from rich.text import Text

    from .terminal import Terminal

    registry: Any = import_module("hardthresh.core.registry")
    grid = Table.grid(padding=(0, 2))
    for wraps in (False, False, True):
        grid.add_column(no_wrap=not wraps)
    for number, (kind, (room, title)) in enumerate(KINDS.items()):
        import_module(f"hardthresh.{room}")
        if number:
            grid.add_row()
        grid.add_row(Text(title, style="bold"))
        for name, entry in registry.registered(kind).items():
            sentence = (entry.cls.__doc__ or "").strip().partition("\n")[0].partition(":math:")[0].rstrip(" .,")
            grid.add_row(f"  {name}", entry.cls.__name__, Text(sentence, style="dim"))
    Terminal().print(grid)
