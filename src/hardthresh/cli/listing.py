"""``hardthresh list``: the losses, constraints, step rules, solvers and estimators."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardthresh.core.registry import Kind


@dataclass(frozen=True, slots=True)
class Listed:
    """One kind of registered class.

    Attributes
    ----------
    rooms : tuple of str
        The modules of the classes.
    title : str
        Heading of the list.
    use : str
        Example of use.
    named : bool
        Whether users pass the name, and not the class.
    """

    rooms: tuple[str, ...]
    title: str
    use: str
    named: bool = False


KINDS: dict[Kind, Listed] = {
    "loss": Listed(("losses",), "Losses", 'LinearModel(X, y, loss="logistic")', named=True),
    "constraint": Listed(("constraints",), "Constraints", "hardthresh.constraints.Sparsity(10)"),
    "step": Listed(("steps",), "Step rules", "IHT(step=hardthresh.steps.SparsePolyak(0.1))"),
    "solver": Listed(("solvers",), "Solvers", 'SparseLinearRegression(solver="pursuit")', named=True),
    "algorithm": Listed(("limited",), "Algorithms for paid attributes", "hardthresh.limited.AdaptiveHybrid(5)"),
    "estimator": Listed(
        ("estimators", "limited.estimators"), "Estimators", "hardthresh.SparseLinearRegression(n_nonzero_coefs=10)"
    ),
    "selector": Listed(
        ("estimators",), "Selectors with an estimator", "hardthresh.Knockoffs(SparseLinearRegression())"
    ),
}


def list_registered() -> None:
    """List the losses, constraints, step rules, solvers and estimators with their names in code."""
    from rich.table import Table
    from rich.text import Text

    from hardthresh.core.registry import registered

    from .terminal import Terminal

    console = Terminal()
    for kind, listed in KINDS.items():
        public = {name for room in listed.rooms for name in import_module(f"hardthresh.{room}").__all__}
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column()
        for name, entry in registered(kind).items():
            if entry.cls.__name__ not in public:
                continue  # of another room that registers classes of this kind, such as baselines
            word, sentence = _entry(name, entry.cls, listed.named)
            grid.add_row(f"  {word}", Text(sentence, style="dim"))
        console.print(Text.assemble((f"{listed.title}: ", "bold"), listed.use))
        console.print(grid)
        console.print()


def _entry(name: str, cls: type, named: bool) -> tuple[str, str]:
    """Return the name of a class in code, and its summary."""
    sentence = (cls.__doc__ or "").strip().partition("\n")[0].partition(":math:")[0].rstrip(" .,").replace("`", "")
    if not named:
        return cls.__name__, sentence
    needed = [setting for setting, value in signature(cls).parameters.items() if value.default is value.empty]
    if needed:  # no name stands for it
        return f"{cls.__name__}({needed[0]}=...)", sentence
    return name, f"{cls.__name__}: {sentence}"
