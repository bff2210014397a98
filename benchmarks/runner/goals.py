"""The table of the goals of speed and quality: what was reached before, what is asked for, and what is measured now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmark_utils.bases import grid

from hardthresh.datasets import DatasetError

from . import contest, quality
from .files import load
from .tables import Table, milliseconds
from .tasks import DEFAULTS, Instance, defaults, defaults_on_tables
from .workers import Crew

Row = dict[str, Any]

DESIGNS = ((0, 10), (0, 1), (0.5, 5), (0.9, 10), (0.9, 1))
"""rho and SNR of regressions."""

CLASS_DESIGNS = (0, 0.5, 0.9)
"""rho of classifications."""

FIXED = {
    (500, 1000, 10): False,
    (1000, 5000, 50): False,
    (5000, 2000, 50): False,
    (300, 50000, 20): True,
    (2000, 20000, 100): True,
}
"""n, d, k of the regressions with a given k, and whether they are left out where time is short."""

OURS, ESTIMATOR, PEER = "hardthresh", "hardthresh estimator", "abess"

LOSSES = ("squared", "logistic")

ELSEWHERE = ("adelie", "L0Learn")
"""Peers that need an environment of their own, or have no distribution: README.md says how, and why not."""


@dataclass(frozen=True, slots=True)
class Race:
    """Instances on which one of ours is timed beside a peer, None for ours alone.

    `slow` ones are left out where time is short. `seconds` are spent on every solver and instance.
    """

    name: str
    ours: str
    peer: str | None
    instances: tuple[Instance, ...]
    slow: bool = False
    seconds: float = 1.0


@dataclass(slots=True)
class Findings:
    """What has been measured: times by race, objectives, optima."""

    times: dict[str, list[Row]] = field(default_factory=dict)
    objectives: list[Row] = field(default_factory=list)
    optima: list[Row] = field(default_factory=list)

    def ratio(
        self, race: str, average: Callable[[Iterable[float]], float] = median, clock: str = "ratio"
    ) -> float | None:
        """Return a median, or another statistic, of the time of the peer over that of ours.

        `clock` is "ratio", of CPU time, or "user_ratio", without what the system does for a process.
        """
        ratios = [row[clock] for row in self.times.get(race, ()) if clock in row]
        return average(ratios) if ratios else None

    def passes(self) -> float | None:
        """Return the median of the time of a fit in products X'r."""
        figures = [row["passes"] for row in self.times.get("passes", ()) if "passes" in row]
        return median(figures) if figures else None

    def best(self, family: str) -> float | None:
        """Return how often the default is the best of all."""
        rows = [row for row in self.objectives if row["family"] == family]
        return quality.share(rows, lambda row: quality.excess(row) == 0.0)

    def not_above(self, family: str, loss: str) -> float | None:
        """Return how often no package has a lower objective than the default."""
        rows = [row for row in self.objectives if (row["family"], row["loss"]) == (family, loss)]
        return quality.share(rows, quality.not_above)

    def optimum(self) -> float | None:
        """Return how often the default finds the optimum."""
        return quality.share(self.optima, lambda row: row["value"]["default"] <= quality.TIE * row["value"]["optimum"])


@dataclass(frozen=True, slots=True)
class Goal:
    """A line of the table: figures of the past, goals for them, and where they are in the findings."""

    title: str
    now: tuple[float | None, ...]
    goal: tuple[float | None, ...]
    measured: Callable[[Findings], tuple[float | None, ...]]
    form: str = ".2g"
    less_is_better: bool = False

    def line(self, findings: Findings) -> tuple[str, ...]:
        """Return the cells of the table."""
        measured = self.measured(findings)
        if all(figure is None for figure in measured):
            return self.title, self._text(self.now), self._text(self.goal), "", ""
        pairs = [pair for pair in zip(measured, self.goal, strict=True) if None not in pair]
        verdicts = [self._reached(*pair) for pair in pairs]
        verdict = "yes" if all(verdicts) else f"{sum(verdicts)} of {len(verdicts)}" if any(verdicts) else "no"
        verdict = verdict if verdicts else ""
        return self.title, self._text(self.now), self._text(self.goal), self._text(measured), verdict

    def _reached(self, measured: float, goal: float) -> bool:
        return measured <= goal if self.less_is_better else measured >= goal

    def _text(self, figures: tuple[float | None, ...]) -> str:
        return "; ".join("-" if figure is None else format(figure, self.form) for figure in figures)


GOALS = (
    Goal(
        "fixed k, abess / ours: median; min from 500x1000 up",
        (4.4, 2.2),
        (8, 4),
        lambda found: (found.ratio("fixed"), found.ratio("fixed", min)),
    ),
    Goal(
        "the same in user time",
        (None, None),
        (None, None),
        lambda found: (found.ratio("fixed", clock="user_ratio"), found.ratio("fixed", min, "user_ratio")),
    ),
    Goal(
        "100x200, abess / ours: minimize; estimator",
        (0.3, 0.2),
        (3, 1),
        lambda found: (found.ratio("100x200"), found.ratio("100x200 estimator")),
    ),
    Goal(
        "real small tables, abess / ours: median; min",
        (1.1, 0.12),
        (3, 1),
        lambda found: (found.ratio("real"), found.ratio("real", min)),
    ),
    Goal(
        "default is the best of all: real; simulated",
        (0.26, 0.49),
        (0.9, 0.95),
        lambda found: (found.best("real"), found.best("simulated")),
        form=".0%",
    ),
    *(
        Goal(
            f"not above the best peer, {family}: least squares; logistic",
            now,
            (1, 0.99),
            lambda found, family=family: tuple(found.not_above(family, loss) for loss in ("squared", "logistic")),
            form=".1%",
        )
        for family, now in (("simulated", (280 / 285, 132 / 142)), ("real", (33 / 38, 29 / 31)))
    ),
    Goal("optimum found by brute force", (0.945,), (0.99,), lambda found: (found.optimum(),), form=".1%"),
    *(
        Goal(
            f"{title}, abess / ours: 200x500; 1000x5000; 2000x20000",
            now,
            goal,
            lambda found, race=race: tuple(
                found.ratio(f"{race} {size}") for size in ("200x500", "1000x5000", "2000x20000")
            ),
        )
        for title, race, now, goal in (
            ("path + EBIC", "path", (0.09, 1.1, 3.9), (1.5, 5, 8)),
            ("5-fold CV", "cv", (0.86, 5.5, 18), (4, 15, 30)),
        )
    ),
    *(
        Goal(
            f"CV with all defaults, {where}, abess / ours, squared: median; least; logistic: median; least",
            (None,) * 4,
            (5, 1) * 2,
            lambda found, where=where: tuple(
                found.ratio(f"defaults {where} {loss}", average) for loss in LOSSES for average in (median, min)
            ),
        )
        for where in ("simulated", "real")
    ),
    Goal(
        "CV with all defaults, one ridge / all ridges: squared; logistic",
        (None, None),
        (0.5, 0.5),
        lambda found: tuple(found.ratio(f"one ridge {loss}") for loss in LOSSES),
    ),
    Goal(
        "logistic, abess / ours: 100x200; 500x1000; 1000x5000",
        (0.2, 2, 6),
        (1, 4, 10),
        lambda found: tuple(found.ratio(f"logistic {size}") for size in ("100x200", "500x1000", "1000x5000")),
    ),
    Goal("sparse 20000x100000, celer's path / ours", (8.8,), (12,), lambda found: (found.ratio("sparse"),)),
    Goal(
        "passes of time per fit at 5000x40000",
        (10.4,),
        (6,),
        lambda found: (found.passes(),),
        ".1f",
        less_is_better=True,
    ),
    Goal(
        "scikit-learn's OMP / ours, 200x500: 5-fold CV; path",
        (0.1, None),
        (1, 1),
        lambda found: (found.ratio("OMP cv"), found.ratio("OMP path")),
    ),
    *(
        Goal(f"{peer} / ours, 1000x5000", (None,), (None,), lambda found, peer=peer: (found.ratio(peer),))
        for peer in ELSEWHERE
    ),
)


def races(seeds: tuple[int, ...]) -> list[Race]:
    """Return all races; designs and seeds take turns, so that their number is that of the longer list."""
    tables = tuple(Instance("fixed", "small_table", c) for c in grid(load("dataset", "small_table").parameters))
    text = {"n": 20000, "d": 100000, "density": 0.001, "k": 100, "loss": "squared", "signal": 10.0}
    texts = tuple(Instance("fixed", "sparse_text", {**text, "seed": seed}) for seed in seeds[:3])
    small, short = (100, 200, 5), (200, 500, 10)
    cv = {"question": "cv", "intercept": True}
    found = [
        Race("100x200", OURS, PEER, _regressions(small, seeds), seconds=0.2),
        Race("100x200 estimator", ESTIMATOR, PEER, _regressions(small, seeds, intercept=True), seconds=0.2),
        Race("real", OURS, PEER, tables, seconds=0.2),
        Race("OMP path", OURS, "scikit-learn OMP", _regressions(short, seeds, question="path")),
        Race("OMP cv", ESTIMATOR, "scikit-learn OMP", _regressions(short, seeds, **cv)),
        Race("sparse", OURS, "celer", texts, slow=True, seconds=3.0),
        Race("passes", OURS, None, _regressions((5000, 40000, 50), seeds[:1])[2:3], slow=True, seconds=5.0),
    ]
    found += [Race(peer, OURS, peer, _regressions((1000, 5000, 50), seeds)[:3], slow=True) for peer in ELSEWHERE]
    for size, slow in FIXED.items():
        found.append(Race("fixed", OURS, PEER, _regressions(size, seeds), slow))
    for size in ((100, 200, 5), (500, 1000, 10), (1000, 5000, 20)):
        found.append(Race(f"logistic {size[0]}x{size[1]}", OURS, PEER, _classifications(size, seeds), seconds=0.5))
    for size in (short, (1000, 5000, 20), (2000, 20000, 30)):
        slow, most = size[0] == 2000, 3 if size[0] == 2000 else None
        name = f"{size[0]}x{size[1]}"
        paths, folds = _regressions(size, seeds, question="path")[:most], _regressions(size, seeds, **cv)[:most]
        found.append(Race(f"path {name}", OURS, PEER, paths, slow, seconds=2.0))
        found.append(Race(f"cv {name}", ESTIMATOR, PEER, folds, slow, seconds=2.0))
    for loss in LOSSES:
        for size in DEFAULTS:
            slow, name = size[0] * size[1] > 1e6, f"defaults simulated {loss}"
            found.append(Race(name, ESTIMATOR, PEER, defaults(loss, size, seeds), slow, seconds=0.5))
            if not slow:
                found.append(
                    Race(f"one ridge {loss}", ESTIMATOR, f"{ESTIMATOR} one ridge", defaults(loss, size, seeds))
                )
        found.append(Race(f"defaults real {loss}", ESTIMATOR, PEER, defaults_on_tables(loss), seconds=0.5))
    return found


def run(races: list[Race], crew: Crew, *, limit: float, only: str = "") -> dict[str, list[Row]]:
    """Run the races with `only` in their name, and return the row of every instance.

    On each instance there are rounds in which ours and the peer run once. A run longer than `limit` seconds is ended.
    Every race starts in a new process: what a package that copies X waits for memory depends on what its process freed
    before, as the C library keeps freed memory up to the largest size seen. For abess at 500x1000 that is 4 or 13 ms.
    """
    found: dict[str, list[Row]] = {}
    for race in races:
        for worker in crew.workers:
            worker.close()
        for instance in race.instances if only in race.name else ():
            row = _hold(race, instance, crew, limit)
            found.setdefault(race.name, []).append(row)
            print(_line(race, row), flush=True)
    return found


def table(findings: Findings) -> Table:
    """Return the goals and what is measured."""
    header = ("", "before", "goal", "measured", "reached")
    reasons = {f"{race}: {row['failed']}" for race, rows in findings.times.items() for row in rows if "failed" in row}
    return Table("Goals", header, [goal.line(findings) for goal in GOALS], "\n".join(sorted(reasons)))


def slowest(findings: Findings, count: int = 12) -> Table:
    """Return the instances with the lowest ratios, relative to the median of their race."""
    rows = [
        (row["ratio"] / findings.ratio(race), race, row)
        for race, measured in findings.times.items()
        for row in measured
        if "ratio" in row
    ]
    body = [
        (f"{race}: {row['instance']}", milliseconds(row["ours"]), milliseconds(row["peer"]), f"{row['ratio']:.2f}")
        for _, race, row in sorted(rows, key=lambda entry: entry[0])[:count]
    ]
    return Table("The slowest for their race", ("", "ours, CPU ms", "peer", "ratio"), body)


def _hold(race: Race, instance: Instance, crew: Crew, limit: float) -> Row:
    title = instance.title + (f" seed{instance.parameters['seed']}" if "seed" in instance.parameters else "")
    row: Row = {"instance": title}
    names = [name for name in (race.ours, race.peer) if name is not None]
    if missing := [name for name in names if name not in crew.entrants]:
        return {**row, "failed": f"{missing[0]} is not here"}
    entrants = [crew.entrants[name] for name in names]
    try:
        rows = contest.hold(instance.dataset(), instance.question, entrants, seconds=race.seconds, limit=limit)
    except DatasetError as error:
        return {**row, "failed": str(error)}
    for one in rows:
        if "failed" in one:
            return {**row, "failed": f"{one['solver']}: {one['failed']}"}
    row |= {"ours": rows[0]["cpu"], "passes": rows[0]["cpu"] / rows[0]["pass"], "rounds": rows[0]["rounds"]}
    if race.peer is not None:
        ours, peer = (max(one["cpu"] - one["system"], 1e-6) for one in rows)
        row |= {"peer": rows[1]["cpu"], "ratio": rows[1]["cpu"] / rows[0]["cpu"], "user_ratio": peer / ours}
        row["objectives"] = [rows[0]["value"], rows[1]["value"]]
    return row


def _line(race: Race, row: Row) -> str:
    if "failed" in row:
        return f"{race.name}: {row['instance']}: {row['failed']}"
    if race.peer is None:
        return f"{race.name}: {row['instance']}: {milliseconds(row['ours'])} ms, {row['passes']:.1f} passes"
    times = f"{milliseconds(row['ours'])} ms, {race.peer} {milliseconds(row['peer'])} ms, ratio {row['ratio']:.2f}"
    times += f" (user {row['user_ratio']:.2f})"
    ours, peer = row["objectives"]
    return f"{race.name}: {row['instance']}: {times}, objectives {ours:.5g} and {peer:.5g}"


def _regressions(
    size: tuple[int, int, int], seeds: tuple[int, ...], *, question: str = "fixed", intercept: bool = False
) -> tuple[Instance, ...]:
    n, d, k = size
    return tuple(
        Instance(
            question,
            "least_squares",
            {"n": n, "d": d, "k": k, "rho": rho, "snr": snr, "seed": seed, "intercept": intercept},
        )
        for (rho, snr), seed in _in_turn(DESIGNS, seeds)
    )


def _classifications(size: tuple[int, int, int], seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    n, d, k = size
    return tuple(
        Instance("fixed", "logistic", {"n": n, "d": d, "k": k, "rho": rho, "scale": 3.0, "seed": seed})
        for rho, seed in _in_turn(CLASS_DESIGNS, seeds)
    )


def _in_turn(designs: tuple[Any, ...], seeds: tuple[int, ...]) -> list[tuple[Any, int]]:
    count = max(len(designs), len(seeds))
    return [(designs[i % len(designs)], seeds[i % len(seeds)]) for i in range(count)]
