"""How low objectives are: the default against everybody else, after one and the same refit, and against the optimum."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

import numpy as np
from benchmark_utils import enumeration, refit, spec
from benchmark_utils.problem import Problem

import hardthresh
from hardthresh.core.files import write_file
from hardthresh.datasets import DatasetError

from . import files
from .tables import Table
from .tasks import Instance

Row = dict[str, Any]

TIE = 1 + 1e-9
SIZES = (
    (100, 200, 8),
    (150, 3000, 12),
    (200, 1000, 10),
    (300, 600, 25),
    (500, 1000, 10),
    (500, 2000, 20),
    (1000, 5000, 50),
)
LOGISTIC_SIZES = ((100, 200, 8), (150, 3000, 12), (300, 600, 25), (500, 1000, 10))
CORRELATIONS = (0.5, 0.9, 0.95, 0.99)
SIGNALS = (0.5, 1.0, 3.0, 10.0)
BLOCKS = 0.3  # share of instances with blocks of columns, not AR(1)

TINY = (60, 22, 4)
"""n, d, k of the instances whose optimum is found by enumeration."""

TINY_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97)
TINY_SIGNALS = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Entrant:
    """A solver file with its parameters; `edition` tells apart answers that may differ, None for those never kept."""

    label: str
    stem: str
    parameters: dict[str, Any]
    edition: str | None = None

    @property
    def key(self) -> str:
        """The name under which an answer is kept."""
        return f"{self.label} {self.edition}"

    def solve(self, problem: Problem) -> Any:
        """Return the columns, or None if it does not take such problems."""
        solver = files.load("solver", self.stem).get_instance(**self.parameters)
        if solver.refusal(problem) is not None:
            return None
        answer = solver.solve(problem)
        return np.asarray(answer[0] if isinstance(answer, tuple) else answer, dtype=np.intp)


PACKAGES = ("abess", "scikit-learn OMP")
"""The peers in "not above the best peer"; restarted pursuit is ours, and counts for the best of all only."""


def entrants() -> tuple[Entrant, ...]:
    """Return who takes part and is here, the default first."""
    package = sorted(Path(hardthresh.__file__).parent.rglob("*.py"))
    edition = f"{crc32(b''.join(file.read_bytes() for file in package)):08x}"
    ours = (
        Entrant("default", "hardthresh", {"solver": "default"}),
        Entrant("thorough", "hardthresh", {"solver": "thorough"}),
        Entrant("restarts", "hardthresh", {"solver": "restarts"}, edition),
    )
    packages = {"abess": "abess", "scikit-learn OMP": "sklearn_omp"}
    solvers = {label: files.load("solver", stem) for label, stem in packages.items()}
    return ours + tuple(Entrant(label, packages[label], {}, version(s.distribution)) for label, s in solvers.items())


class Cache:
    """Answers of those whose code does not change with ours, one file for each instance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def solve(self, entrant: Entrant, problem: Problem, title: str) -> Any:
        """Return the columns, kept or computed."""
        if entrant.edition is None:
            return entrant.solve(problem)
        edge = np.ascontiguousarray(problem.X[:1]), np.ascontiguousarray(problem.X[:, :1]), problem.y
        mark = f"{problem.X.shape} {problem.k} {problem.ridge:g} {crc32(b''.join(part.tobytes() for part in edge)):08x}"
        path = self.folder / f"{title.replace(' ', '_')}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if kept.get("data") != mark:
            kept = {"data": mark}
        if entrant.key not in kept:
            answer = entrant.solve(problem)
            kept[entrant.key] = None if answer is None else answer.tolist()
            write_file(path, json.dumps(kept).encode())
        return kept[entrant.key]


def simulated(seeds: Iterable[int]) -> Iterator[tuple[str, Instance]]:
    """Yield 28 regressions and 16 classifications for each seed; signal and design are drawn from it."""
    for seed in seeds:
        for loss, sizes in (("squared", SIZES), ("logistic", LOGISTIC_SIZES)):
            rng = np.random.default_rng((seed, loss == "logistic"))
            for n, d, k in sizes:
                for rho in CORRELATIONS:
                    design = "blocks" if rng.random() < BLOCKS else "ar1"
                    snr = float(rng.choice(SIGNALS))
                    settings = {"n": n, "d": d, "k": k, "design": design, "rho": rho, "snr": snr, "loss": loss}
                    yield "simulated", Instance("fixed", "correlated", {**settings, "seed": seed})


def real() -> Iterator[tuple[str, Instance]]:
    """Yield 30 regressions and 24 classifications with real tables."""
    grid = files.load("dataset", "small_table").parameters
    for name, loss in grid["set, loss"]:
        for k in grid["k"]:
            yield "real", Instance("fixed", "small_table", {"set": name, "loss": loss, "k": k})


def compare(instances: Iterable[tuple[str, Instance]], cache: Cache) -> list[Row]:
    """Return a row for each instance: everybody's objective, and the CPU time of what was computed now."""
    rows = []
    everybody = entrants()
    for family, instance in instances:
        title = instance.title + (f" seed{instance.parameters['seed']}" if "seed" in instance.parameters else "")
        try:
            data = instance.dataset().get_data()
        except DatasetError as error:
            print(f"{title}: not measured: {error}")
            continue
        data.pop("truth", None)
        problem = Problem(**data)
        row: Row = {"family": family, "loss": problem.loss, "instance": title, "value": {}, "cpu": {}}
        for entrant in everybody:
            start = time.process_time()
            with warnings.catch_warnings(action="ignore"):  # a peer that does not converge is judged by its answer
                support = cache.solve(entrant, problem, title)
            if support is not None:
                row["cpu"][entrant.label] = time.process_time() - start
                row["value"][entrant.label] = refit.objective(problem, support)
        rows.append(row)
        _progress(len(rows), title)
    return rows


def compare_with_optimum(seeds: Iterable[int]) -> list[Row]:
    """Return a row for each of 45 tiny instances for each seed: the optimum and what ours and the packages found."""
    rows = []
    everybody = [entrant for entrant in entrants() if entrant.label != "restarts"]
    n, d, k = TINY
    for seed in seeds:
        for i, (rho, snr) in enumerate((rho, snr) for rho in TINY_CORRELATIONS for snr in TINY_SIGNALS):
            design = "blocks" if i % 5 in (1, 3) else "ar1"
            X, y, _ = spec.correlated(n, d, k, design, rho, snr, "squared", seed, block=5)
            problem = Problem(X, y, "squared", k)
            values = {e.label: refit.objective(problem, e.solve(problem)) for e in everybody}
            values["optimum"] = refit.objective(problem, enumeration.best_subset(X, y, k))
            title = f"{n}x{d} k{k} {design} rho{rho:g} snr{snr:g} seed{seed}"
            rows.append({"instance": title, "value": values})
    _progress(len(rows), "optimum")
    return rows


def excess(row: Row, label: str = "default") -> float:
    """Return by which share an objective is above the best of all, 0 for a tie."""
    best = min(row["value"].values())
    value = row["value"][label]
    return 0.0 if value <= best * TIE else value / best - 1.0


def not_above(row: Row, label: str = "default") -> bool:
    """Return whether no other package has a lower objective."""
    return row["value"][label] <= TIE * min(row["value"][name] for name in PACKAGES if name in row["value"])


def share(rows: list[Row], holds: Any) -> float | None:
    """Return the share of rows for which something holds, None without rows."""
    return sum(map(holds, rows)) / len(rows) if rows else None


def summary(rows: list[Row]) -> list[Table]:
    """Return how often ours are the best of all, by family and loss, and the instances where they are worst."""
    header = ("", "best of all", "not above a package", "not above restarts", "median", "p90", "worst", "CPU ms")
    body = []
    for family, loss in sorted({(row["family"], row["loss"]) for row in rows}, reverse=True):
        group = [row for row in rows if (row["family"], row["loss"]) == (family, loss)]
        for label in ("default", "thorough", "restarts", *PACKAGES):
            there = [row for row in group if label in row["value"]]
            if not there:
                continue
            above = np.array([excess(row, label) for row in there])
            body.append(
                (
                    f"{family} {loss}: {label}",
                    f"{(above == 0).sum()} of {len(there)}",
                    f"{sum(not_above(row, label) for row in there)}",
                    f"{sum(row['value'][label] <= TIE * row['value']['restarts'] for row in there)}",
                    *(f"{100 * figure:.2f} %" for figure in (np.median(above), np.quantile(above, 0.9), above.max())),
                    f"{1e3 * median(row['cpu'][label] for row in there):.1f}"
                    if label in ("default", "thorough")
                    else "",
                )
            )
    note = "Median, 90th percentile and maximum of the excess over the best of all; CPU ms: the median of single runs."
    return [Table("Objectives after one refit", header, body, note), _worst(rows)]


def optimum_summary(rows: list[Row]) -> Table:
    """Return how often everybody found the optimum."""
    body = []
    for label in (name for name in rows[0]["value"] if name != "optimum"):
        above = [row["value"][label] / row["value"]["optimum"] - 1.0 for row in rows]
        found = sum(share <= TIE - 1 for share in above)
        body.append((label, f"{found} of {len(rows)}", f"{found / len(rows):.1%}", f"{100 * max(above):.2f} %"))
    return Table("The optimum of all subsets", ("", "found", "share", "worst excess"), body)


def _worst(rows: list[Row], count: int = 12) -> Table:
    worst = sorted(rows, key=excess, reverse=True)[:count]
    body = [
        (
            f"{row['family']} {row['instance']}",
            f"{100 * excess(row):.2f} %",
            f"{100 * excess(row, 'thorough'):.2f} %",
            f"{row['value']['default']:.6g}",
            f"{min(row['value'].values()):.6g}",
            min(row["value"], key=row["value"].__getitem__),
        )
        for row in worst
        if excess(row) > 0
    ]
    header = ("the worst of the default", "excess", "thorough", "objective", "best", "of")
    return Table(f"The {count} worst instances", header, body)


def _progress(count: int, title: str) -> None:
    if os.isatty(2):
        print(f"\r{count}: {title:<70}", end="", file=sys.stderr, flush=True)
