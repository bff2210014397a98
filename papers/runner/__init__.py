"""Runs the experiments of the papers: cells that are kept, numbers that are checked, figures that are drawn.

``hardthresh reproduce`` imports this package from the folder ``papers``, which then bears the name `papers`, whatever
it is called on disk. An experiment is a script ``papers/<paper>/<item>.py`` with an `Item` called ``ITEM``; a script
whose name begins with an underscore is a helper.
"""

from __future__ import annotations

from .claims import SEEDS, spread_of
from .experiment import Cell, Item, Row, data_seeds, pick
from .library import Library
from .run import check_folders, failed, rows_about, run
from .show import print_list, print_rows, print_spread, print_summary, progress

__all__ = [
    "SEEDS",
    "Cell",
    "Item",
    "Library",
    "Row",
    "check_folders",
    "data_seeds",
    "failed",
    "pick",
    "print_list",
    "print_rows",
    "print_spread",
    "print_summary",
    "progress",
    "rows_about",
    "run",
    "spread_of",
]
