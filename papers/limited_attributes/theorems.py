"""Theorems 4.1, 4.3 and 4.4 and Corollaries 4.2 and 4.5: runs beside their bounds, how they scale, and plans.

The runs with all attributes are those of the remark on full information in Section 4.1.

The attributes are independent, plus or minus 1, so that the constants of the theorems are known: both are 2, and no
attribute exceeds 1. The excess risk is |w - θ*|^2. The batches and the budget of the runs are far below those that the
theorems ask for, so that the bounds need not hold.

Quick has three data sets, full five.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, legend, new_figure, remark

from hardthresh.diagnostics import LimitedPlan, limited_guarantee, limited_plan
from hardthresh.limited import ArraySource, Exploitation, Exploration, Geometric, Hybrid
from hardthresh.limited.learner import Algorithm, Learner

from ._common import mean, slope

D, SPARE, S, ACTIVE, NOISE, STEP = 60, 14, 6, 3, 0.5, 0.2
LARGE, UPDATES, ROUNDS = 400, 20, 4  # batch of the runs beside the bounds, updates, rounds of Hybrid
BATCHES = [50, 100, 200, LARGE]
DIMENSIONS = [60, 120, 240, 480]
SPARES = [7, 14, 28]  # s' - s, at the second of the dimensions
ACTIVES = [3, 6, 12, 24]  # s*, with all attributes of the third of the dimensions, and twice as many coefficients
RISK = 0.05  # the probability that a bound does not hold
EXAMPLES = 48_000  # of the runs over d and over s' - s
SETTLED = 5  # updates at the end whose mean is the floor; arbitrary: the floor is reached after about 8
TARGET = 0.1  # of the excess at the start, in the plans
EXPLOIT_STEPS = 5
SETTING: dict[str, Any] = {"d": D, "n_observed": S + SPARE, "k": S, "k_star": ACTIVE, "step": STEP, "noise": NOISE}
RATES = {
    "exploration": limited_guarantee(2.0, 2.0, batch=LARGE, updates=1, excess=1.0, **SETTING).rate,
    "exploitation": 1.0 - 0.25 * 2.0 * STEP * (1.0 - 2.0 * STEP),  # of the proof of Theorem 4.3, with L = mu = 2
}
"""The factor of the excess risk per update, with the constants of the proofs."""


@dataclass(frozen=True)
class Setting:
    """One run: the algorithm, the attributes, the noise, and how many of the non-zeros of the start are wrong."""

    algorithm: Algorithm[Any]
    examples: int
    d: int = D
    spare: int = SPARE
    noise: float = NOISE
    wrong: int | None = None
    active: int = ACTIVE
    s: int = S


def exploration(d: int, spare: int, active: int = ACTIVE) -> Setting:
    """Return `UPDATES` explorations of equal batches, with `EXAMPLES` examples in all, and s = 2 s*."""
    s = S // ACTIVE * active
    algorithm = Exploration(STEP, EXAMPLES // (ceil(d / spare) * UPDATES), s, UPDATES)
    return Setting(algorithm, EXAMPLES, d, spare, active=active, s=s)


def with_all(d: int, active: int = ACTIVE) -> Setting:
    """Return the same with all attributes observed, where the gradient is put together of two blocks."""
    return exploration(d, d - S // ACTIVE * active, active)


def hybrid(examples: int, d: int = D, rounds: int | None = None) -> Setting:
    """Return Hybrid with batches that double from round to round."""
    algorithm = Hybrid(
        STEP, Geometric(30, 2), Geometric(200, 2), 3, EXPLOIT_STEPS, n_nonzero_coefs=S, max_rounds=rounds
    )
    return Setting(algorithm, examples, d)


PARTS: dict[str, Callable[[int], Setting]] = {
    "batch": lambda B: Setting(Exploration(STEP, B, S, UPDATES), ceil(D / SPARE) * B * UPDATES),
    "no noise": lambda B: Setting(Exploration(STEP, B, S, UPDATES), ceil(D / SPARE) * B * UPDATES, noise=0.0),
    "right support": lambda B: Setting(Exploitation(STEP, B, UPDATES), B * UPDATES, noise=0.0, wrong=0),
    "wrong support": lambda B: Setting(Exploitation(STEP, B, UPDATES), B * UPDATES, noise=0.0, wrong=1),
    "rounds": lambda K: hybrid((3 * 30 * ceil(D / SPARE) + EXPLOIT_STEPS * 200) * 2**K, rounds=K),
    "exploration over d": lambda d: exploration(d, SPARE),
    "hybrid over d": lambda d: hybrid(EXAMPLES, d),
    "exploration over s' - s": lambda spare: exploration(DIMENSIONS[1], spare),
    "all over d": with_all,
    "all over s*": lambda active: with_all(DIMENSIONS[2], active),
}
VALUES: dict[str, list[int]] = {
    "batch": BATCHES,
    "no noise": [LARGE],
    "right support": [LARGE],
    "wrong support": [LARGE],
    "rounds": [ROUNDS],
    "exploration over d": DIMENSIONS,
    "hybrid over d": DIMENSIONS,
    "exploration over s' - s": SPARES,
    "all over d": DIMENSIONS,
    "all over s*": ACTIVES,
}


def run(part: str, value: int, seed: int) -> dict[str, Any]:
    """Return the excess risk at the start and after each update, and after each round of Hybrid."""
    setting = PARTS[part](value)
    rng = np.random.default_rng((seed, [*PARTS].index(part), value))
    X = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (setting.examples, setting.d))
    truth, w0 = np.zeros(setting.d), None
    truth[rng.choice(setting.d, setting.active, replace=False)] = 1.0
    y = X @ truth + setting.noise * rng.standard_normal(setting.examples)
    if setting.wrong is not None:
        w0 = np.zeros(setting.d)
        w0[np.flatnonzero(truth)[setting.wrong :]] = 0.5
        w0[np.flatnonzero(truth == 0)[: S - ACTIVE + setting.wrong]] = 0.5
    source = ArraySource(X, y, n_observed=setting.s + setting.spare, shuffle=False)
    learner = Learner.for_source(setting.algorithm, source, w0)
    excess, rounds = [], []
    for state in learner.iterate(source):
        excess.append(float(np.sum((state.w - truth) ** 2)))
        rounds.append(getattr(state, "round", 1))
    ends = [e for e, before, now in zip(excess[1:], rounds[:-1], rounds[1:], strict=True) if now > before]
    return {"excess": excess, "ends": [*ends, excess[-1]], "most": source.meter.max_per_example}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set and run."""
    return [
        Cell(f"seed={which} {part} {value}", run, {"part": part, "value": value, "seed": which})
        for which in data_seeds(seed, 5 if full else 3)
        for part, values in VALUES.items()
        for value in values
    ]


def example(part: str, value: int, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    rounds = {"rounds": ROUNDS, "hybrid over d": ROUNDS + 1}.get(part)  # the examples suffice for five
    length = rounds * (3 + EXPLOIT_STEPS) if rounds else UPDATES
    curve = [3.0 * (value / LARGE) ** 0.1 * 0.5**t for t in range(length + 1)]
    ends = {"rounds": ROUNDS, "hybrid over d": ROUNDS + 2}.get(part, 1)  # and for the start of a sixth round
    return {"excess": curve, "ends": curve[-ends:], "most": 20}


def curves(rows: list[Row], part: str, value: int) -> np.ndarray:
    """Return the excess of some runs, one row each."""
    return np.array([row["excess"] for row in pick(rows, part=part, value=value)])


def floor(rows: list[Row], part: str, value: int) -> float:
    """Return the mean excess of the last updates."""
    return mean([mean(row["excess"][-SETTLED:]) for row in pick(rows, part=part, value=value)])


def bound(batch: int, start: float) -> list[float]:
    """Return the bound of Theorem 4.1 after each update."""
    return [
        limited_guarantee(2.0, 2.0, batch=batch, updates=t, excess=start, **SETTING).excess
        for t in range(1, UPDATES + 1)
    ]


def plan() -> LimitedPlan:
    """Return what the theorems plan for the same problem, with its budget and step."""
    return limited_plan(2.0, 2.0, excess=float(ACTIVE), target=TARGET * ACTIVE, smallest=1.0, **SETTING)


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return the largest ratios of runs to bounds, exponents, and ratios of plans to runs."""
    silent, right, wrong = (curves(rows, part, LARGE) for part in ("no noise", "right support", "wrong support"))
    ends = np.array([row["ends"] for row in pick(rows, part="rounds")])
    t, rounds = np.arange(1, UPDATES + 1), np.arange(1, ends.shape[1] + 1)
    noisy = {B: curves(rows, "batch", B) for B in BATCHES}
    largest = {B: noisy[B][:, 1:] / bound(B, noisy[B][0, 0]) for B in BATCHES}
    used = mean([first_below(curve, TARGET) for curve in noisy[LARGE]])
    over_d = [floor(rows, "exploration over d", d) for d in DIMENSIONS]
    all_over_d = [floor(rows, "all over d", d) for d in DIMENSIONS]
    all_over_active = [floor(rows, "all over s*", active) for active in ACTIVES]
    saved = [ceil(d / SPARE) / 2 for d in DIMENSIONS]  # with all attributes there are two blocks
    fewer = [limited / full / blocks for limited, full, blocks in zip(over_d, all_over_d, saved, strict=True)]
    minimax = ACTIVE * NOISE**2 / (EXAMPLES / (2 * UPDATES))  # of the examples of a block
    hybrid_over_d = [mean(curves(rows, "hybrid over d", d)[:, -1]) for d in DIMENSIONS]
    planned = plan()
    return {
        "4.1: largest excess / bound": mean(np.max([np.max(largest[B], axis=1) for B in BATCHES], axis=0)),
        "4.1: largest excess / linear": float(np.max(silent[:, 1:] / silent[:, :1] / RATES["exploration"] ** t)),
        "4.1: late / early rate": mean([float(np.log(c[10] / c[20]) / np.log(c[0] / c[10])) for c in silent]),
        "4.2: exponent of the batch": slope(BATCHES, [floor(rows, "batch", B) for B in BATCHES]),
        "4.2: exponent of d": slope(DIMENSIONS, np.array(over_d) / np.log(DIMENSIONS)),
        "4.2: exponent of s' - s": slope(SPARES, [floor(rows, "exploration over s' - s", v) for v in SPARES]),
        "4.2, all: fewer attributes / all, over the blocks": float(np.exp(np.mean(np.log(fewer)))),
        "4.2, all: exponent of d": slope(DIMENSIONS, np.array(all_over_d) / np.log(DIMENSIONS)),
        "4.2, all: exponent of s*": slope(ACTIVES, all_over_active),
        "4.2, all: excess / minimax, over log(d / δ)": all_over_d[-1] / minimax / float(np.log(DIMENSIONS[-1] / RISK)),
        "4.3: right support, excess / bound": float(np.max(right[:, 1:] / right[:, :1] / RATES["exploitation"] ** t)),
        "4.3: wrong support, excess / bound": float(np.max(wrong[:, 1:] / wrong[:, :1] * RATES["exploitation"])),
        "4.4: largest excess / bound": float(np.max(ends / (2.0 * ACTIVE * max(RATES.values()) ** rounds))),
        "4.5: exponent of d": slope(DIMENSIONS, hybrid_over_d),
        "4.5: Exploration / Hybrid": over_d[-1] / hybrid_over_d[-1],
        "planned / used: updates": planned.updates / used,
        "planned / used: examples": planned.exploration_examples / (used * ceil(D / SPARE) * LARGE),
    }


def first_below(excess: Sequence[float], share: float) -> float:
    """Return after how many updates the excess is at most a share of that at the start; infinity if it never is."""
    below = np.flatnonzero(np.asarray(excess) <= share * excess[0])
    return float(below[0]) if below.size else inf


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the runs of Exploration beside its bound, the floors over d, and the rounds of Hybrid beside their bound."""
    figure, panels = new_figure(
        1,
        3,
        "The bounds hold, far above the runs; the excess of Exploration grows with d, unless it sees all attributes",
    )
    start = float(ACTIVE)
    for line, B in enumerate((BATCHES[0], LARGE)):
        style = {"color": LINES[line]["color"], "linewidth": 1.6}
        panels[0].plot(np.mean(curves(rows, "batch", B), axis=0), label=f"Exploration, batch {B}", **style)
        panels[0].plot(range(1, UPDATES + 1), bound(B, start), "--", label=f"Theorem 4.1, batch {B}", **style)
    shown = {
        "Exploration": [floor(rows, "exploration over d", d) for d in DIMENSIONS],
        "Hybrid": [mean(curves(rows, "hybrid over d", d)[:, -1]) for d in DIMENSIONS],
        "Exploration, all attributes": [floor(rows, "all over d", d) for d in DIMENSIONS],
    }
    for line, (name, values) in enumerate(shown.items()):
        panels[1].plot(DIMENSIONS, values, label=name, linewidth=1.6, **LINES[line])
    ends = np.mean([row["ends"] for row in pick(rows, part="rounds")], axis=0)
    rounds = np.arange(1, len(ends) + 1)
    panels[2].plot(rounds, ends, label="Hybrid", linewidth=1.6, **LINES[0])
    panels[2].plot(rounds, 2.0 * start * max(RATES.values()) ** rounds, label="Theorem 4.4", linewidth=1.6, **LINES[1])
    panels[1].set_xscale("log")
    panels[1].set_xticks(DIMENSIONS, [str(d) for d in DIMENSIONS])
    panels[1].minorticks_off()
    panels[2].set_xticks(rounds)
    for panel in panels:
        panel.set_yscale("log")
    panels[1].set_ylim(1e-5, 0.1)
    label(panels[0], "Theorem 4.1", "updates", "excess risk")
    label(panels[1], f"{EXAMPLES:,} examples", "attributes, d", "excess risk at the end")
    label(panels[2], "Theorem 4.4", "rounds", "excess risk")
    for panel in panels:
        legend(panel)
    remark(figure, f"means of {len({row['seed'] for row in rows})} data sets")
    return {"theorems": figure}


ITEM = Item("Theorems 4.1 to 4.4 and their corollaries: bounds, exponents and plans", cells, summarise, draw, example)
