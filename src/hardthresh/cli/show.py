"""``hardthresh show``: print a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")]) -> None:
    """Show a saved model with its cross-validation and certificate, or a saved stability or knockoff selection."""
    from hardthresh.storage import load, load_notes

    from .display import print_model
    from .imputing import described
    from .stability import print_selection
    from .terminal import Terminal

    fitted = described(load(model))
    console = Terminal()
    if hasattr(fitted, "learning_curve_"):
        names = ", ".join(map(str, fitted.required_features_))
        console.print(f"{fitted!r}\nneeds {names or 'nothing'}\n{fitted.stop_reason_}", markup=False)
    elif hasattr(fitted, "pair_frequencies_"):
        print_selection(console, fitted)
    elif hasattr(fitted, "e_values_"):
        console.print(fitted.statement(), markup=False)
    elif hasattr(fitted, "coef_"):
        print_model(console, fitted, load_notes(model))
    else:
        console.print(repr(fitted), markup=False)
