"""``hardthresh study``: attributes that people buy day by day, under a budget, in one file."""

from __future__ import annotations

from collections.abc import Callable

import typer

from ..terminal import write_stdout
from .answers import correct, tell
from .planning import plan
from .predict import predict
from .questions import ask, give_back, skip, withdraw
from .results import close, export, report, verify
from .serving import serve
from .status import status
from .terms import example, new

study = typer.Typer(name="study", rich_markup_mode="rich")


@study.callback(invoke_without_command=True)
def commands(ctx: typer.Context) -> None:
    """Run a study that buys measurements: ask what to measure, tell the values, for months and with several people.

    Begin with: study example, study plan, study new. Then, for each example: study ask, study tell.
    """
    if ctx.invoked_subcommand is None:
        write_stdout(f"{ctx.get_help()}\n")


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(example, plan, new, ask, tell, skip, give_back, correct, withdraw),
    *(status, predict, export, report, close, verify, serve),
)
for command in _COMMANDS:
    study.command()(command)
