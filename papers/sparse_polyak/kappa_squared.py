"""Is s >= kappa^2 s* needed? (An open question; the page is docs/theory/kappa_squared.rst.)

Theorem 1 asks for s >= (240 kappa)^2 s*. Here f is the noise-free quadratic with the covariance of an autoregressive
process, the limit of least squares for many rows, so that kappa is known. Which budgets reach f <= f(w*) from 0? And
from a point at which hard thresholding is trapped by construction? Quick and full are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import INK, LINES, label, legend, new_figure, remark

from ._slopes import slope
from ._small import Floats, Quadratics, Step, are_solved, fixed, hard_thresholds, sparse_polyak

D, S_STAR, COUNT = 100, 5, 10
OMEGAS = [0.5, 0.7, 0.8, 0.9, 0.95]
ARRANGED = ("random", "near")
"""The coefficients: normal at random places, or of one sign at places with gaps of 1 to 5."""
BUDGETS = [5, 6, 8, 10, 15]
"""s, from s* to 3 s*."""
SOLVED = 1e-3
"""A problem is solved when this share of f(0) - f(w*) is left."""
RULES = ("SP5", "SP1", "fixed")
OFTEN = 0.9
"""A budget suffices if this share of the problems is solved."""

CONDITIONS = [4.0, 8.0, 16.0, 32.0]
TRAP_S_STAR, MARGIN, TRAPPED = 2, 0.5, 100
"""s* of the traps; the gap at a trap as a share of f(0) - f(w*); iterations after which a run has not got away."""


def autoregressive(omega: float) -> Floats:
    """Return the covariance omega^|i - j| of d features."""
    index = np.arange(D)
    return omega ** np.abs(index[:, None] - index)


def condition(omega: float) -> float:
    """Return the condition number of the covariance."""
    values = np.linalg.eigvalsh(autoregressive(omega))
    return float(values[-1] / values[0])


def rules(s: int, smoothness: float) -> dict[str, Step]:
    """Return the rules that are compared; the target of Sparse Polyak is f(w*) = 0."""
    return {
        "SP5": sparse_polyak(s, 5.0),
        "SP1": sparse_polyak(s, 1.0),
        "fixed": fixed(2.0 / (3.0 * smoothness)),
    }


def coefficients(arranged: str, rng: np.random.Generator) -> Floats:
    """Draw the coefficients of some problems."""
    truth = np.zeros((COUNT, D))
    for row in truth:
        if arranged == "random":
            row[rng.choice(D, S_STAR, replace=False)] = rng.standard_normal(S_STAR)
        else:
            gaps = rng.integers(1, 6, S_STAR)
            row[rng.integers(0, D - gaps.sum()) + np.cumsum(gaps)] = rng.uniform(0.5, 1.5, S_STAR)
    return truth


def run(omega: float, arranged: str, rule: str, seed: int) -> dict[str, Any]:
    """Return for each budget which of some problems are solved from 0."""
    rng = np.random.default_rng((seed, round(100 * omega), ARRANGED.index(arranged)))
    hessian = autoregressive(omega)
    smoothness = float(np.linalg.eigvalsh(hessian)[-1])
    # the fixed step shrinks the gap by exp(-4/3 / kappa): to 1e-3 in 5.2 kappa
    limit = max(1000, round(8 * condition(omega)))
    problems = Quadratics(hessian[None], coefficients(arranged, rng))
    return {"solved": [are_solved(problems, s, rules(s, smoothness)[rule], limit, SOLVED) for s in BUDGETS]}


@dataclass(frozen=True, slots=True)
class Trap:
    """A separable quadratic, sum_i h_i (w_i - m_i)^2 / 2, with a point that short steps do not leave.

    Attributes
    ----------
    curvature, minimiser : array of shape (d,)
        h and m.
    point, better : array of shape (d,)
        The point, with s non-zeros, and a vector w* with s* non-zeros and a lower value.
    s : int
        The budget.
    """

    curvature: Floats
    minimiser: Floats
    point: Floats
    better: Floats
    s: int

    def value(self, w: Floats) -> float:
        """Return f."""
        return float(0.5 * np.sum(self.curvature * (w - self.minimiser) ** 2))

    def reached(self, start: Floats, step: Step) -> bool:
        """Return whether hard thresholding from a point comes down to f(w*), up to `SOLVED` of f(0) - f(w*)."""
        w, goal = start, self.value(self.better)
        enough = goal + SOLVED * (self.value(np.zeros_like(start)) - goal)
        for _ in range(TRAPPED + 1):
            value = self.value(w)
            if value <= enough:
                return True
            gradient = self.curvature * (w - self.minimiser)
            length = step(np.array([value - goal]), gradient[None])[0]
            w = hard_thresholds((w - length * gradient)[None], self.s)[0]
        return False


def build_trap(kappa: float, outside: float, gradient: float, noise: bool, rng: np.random.Generator) -> Trap:
    """Return a trap with L = 1 and mu = 1 / kappa.

    The s entries of the point are between 1 and 1.05 and minimise f on their coordinates, with curvature mu. On s*
    other coordinates, with curvature `outside`, the gradient is -`gradient`, and w* minimises f there. The budget s is
    such that f(w*) is below the point by `MARGIN` of f(0) - f(w*). With noise, s more coordinates have that gradient,
    and curvature L, so that they are of less use. One more coordinate has curvature L and the minimiser 0.
    """
    mu = 1.0 / kappa
    most = (1.0 - MARGIN) * gradient**2 * TRAP_S_STAR / (mu * outside)  # of the squared norm of the point
    held = rng.uniform(1.0, 1.05, int(most))
    held = held[np.cumsum(held**2) <= most]
    s, others = held.size, held.size if noise else 0
    parts = [held, np.full(TRAP_S_STAR, gradient / outside), np.full(others, gradient), np.zeros(1)]
    curvatures = [np.full(s, mu), np.full(TRAP_S_STAR, outside), np.ones(others + 1)]
    order = rng.permutation(s + TRAP_S_STAR + others + 1)
    minimiser, part = np.concatenate(parts)[order], np.repeat(range(4), [len(one) for one in parts])[order]
    point, better = np.where(part == 0, minimiser, 0.0), np.where(part == 1, minimiser, 0.0)
    return Trap(np.concatenate(curvatures)[order], minimiser, point, better, s)


TRAPS: dict[str, Callable[[float], tuple[float, float, bool]]] = {
    "fixed": lambda kappa: (1.0 / kappa, 0.98 * 1.5, False),
    "SP1": lambda kappa: (1.0, 0.98 * 2.0 / MARGIN, False),
    "SP5": lambda kappa: (1.0, 0.98 * 10.0 / MARGIN, False),
    "noise": lambda kappa: (1.0 / kappa, 2.0 * 1.5, True),
}
"""The curvature outside, the gradient and whether there is noise, by what the trap is for.

The entries of the point are at least 1, so that it is left where step times gradient is above 1: the fixed step
2 / (3 L) needs a gradient of 1.5. Where only the s* coordinates, of curvature h, have a gradient, the step of Sparse
Polyak is `MARGIN` / (2 c h). 0.98 is within the traps.
"""


def spring(kappa: float, trap: str, seed: int) -> dict[str, Any]:
    """Return the budget of a trap as a multiple of s*, and which rules reach f(w*) from its point, and from 0."""
    built = build_trap(kappa, *TRAPS[trap](kappa), np.random.default_rng((seed, round(kappa))))
    steps = rules(built.s, 1.0)
    return {
        "budget": built.s / TRAP_S_STAR,
        "left": {rule: [built.reached(built.point, step)] for rule, step in steps.items()},
        "from 0": {rule: [built.reached(np.zeros_like(built.point), step)] for rule, step in steps.items()},
    }


def example(**arguments: Any) -> dict[str, Any]:
    """Return what `run` or `spring` could have returned, at once."""
    if "trap" in arguments:
        kept = {rule: [rule != arguments["trap"]] for rule in RULES}
        return {"budget": arguments["kappa"] ** 2, "left": kept, "from 0": {rule: [True] for rule in RULES}}
    return {"solved": [[s > 6, True] for s in BUDGETS]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each correlation and rule, and for each trap."""
    designs = [
        {"omega": omega, "arranged": arranged, "rule": rule, "seed": seed}
        for omega in OMEGAS
        for arranged in ARRANGED
        for rule in RULES
    ]
    traps = [{"kappa": kappa, "trap": trap, "seed": seed} for kappa in CONDITIONS for trap in TRAPS]
    return [Cell("omega={omega} {arranged} {rule} seed={seed}".format(**one), run, one) for one in designs] + [
        Cell("kappa={kappa:g} trap {trap} seed={seed}".format(**one), spring, one) for one in traps
    ]


def on_designs(rows: list[Row]) -> list[Row]:
    """Return the cells on autoregressive designs."""
    return [row for row in rows if "omega" in row]


def traps(rows: list[Row], trap: str) -> list[Row]:
    """Return the cells of one trap, by condition number."""
    return pick([row for row in rows if "trap" in row], trap=trap)


def shares(rows: list[Row], rule: str, omega: float) -> list[float]:
    """Return the share of the problems of one correlation that a rule solves, for each budget."""
    found = pick(on_designs(rows), rule=rule, omega=omega)
    return [float(np.mean([row["solved"][i] for row in found])) for i in range(len(BUDGETS))]


def needed(rows: list[Row], rule: str, omega: float) -> float:
    """Return the smallest s / s* from which on every budget suffices; inf if the largest does not."""
    enough = inf
    for s, share in zip(reversed(BUDGETS), reversed(shares(rows, rule, omega)), strict=True):
        if share < OFTEN:
            break
        enough = s / S_STAR
    return enough


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the needed budgets, and where the traps hold."""
    numbers: dict[str, list[float]] = {}
    for rule in RULES:
        numbers[f"AR(1) {rule}: largest s / s* needed"] = [max(needed(rows, rule, omega) for omega in OMEGAS)]
        numbers[f"AR(1) {rule}: solved with s = s* at the largest kappa"] = [shares(rows, rule, OMEGAS[-1])[0]]
        held = [0.0 if row["left"][rule][0] else row["budget"] for row in traps(rows, rule)]
        numbers[f"trap of {rule}: slope"] = [slope(CONDITIONS, held) if all(held) else inf]
        noisy = [row["left"][rule] for row in traps(rows, "noise")]
        numbers[f"noise: traps left by {rule}"] = [float(np.mean(noisy))]
        from_zero = [row["from 0"][rule] for trap in TRAPS for row in traps(rows, trap)]
        numbers[f"traps: reached from 0 by {rule}"] = [float(np.mean(from_zero))]
    own = traps(rows, "fixed")
    least = min(0.0 if row["left"]["fixed"][0] else row["budget"] / row["kappa"] ** 2 for row in own)
    numbers["trap of fixed: least s / (kappa^2 s*)"] = [least]
    numbers["trap of fixed: least kappa left by SP5"] = [
        min((row["kappa"] for row in own if row["left"]["SP5"][0]), default=inf)
    ]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the share of solved problems over the budget, and the budgets that are needed or trapped over kappa."""
    title = "On AR(1) designs twice s* is enough; traps hold up to κ² s* (fixed step) or a multiple of κ s* (SP)"
    figure, panels = new_figure(1, 3, title, height=4.2)
    multiples = [s / S_STAR for s in BUDGETS]
    for panel, rule, name in zip(panels, ("SP5", "fixed"), ("Sparse Polyak, c = 5", "fixed step 2/(3L)"), strict=False):
        for line, omega in enumerate(OMEGAS):
            text = f"ω = {omega:g}, κ = {condition(omega):,.0f}"
            panel.plot(multiples, shares(rows, rule, omega), label=text, linewidth=1.6, markersize=5, **LINES[line])
        panel.set_ylim(-0.05, 1.05)
        label(panel, f"AR(1), {name}", "s / s*", "share of problems solved")
        legend(panel, loc="lower right")
    last = panels[-1]
    for line, trap in enumerate(("fixed", "SP1", "SP5")):
        budgets = [row["budget"] for row in traps(rows, trap)]
        text = {"fixed": "fixed step", "SP1": "Sparse Polyak, c = 1", "SP5": "Sparse Polyak, c = 5"}[trap]
        last.plot(CONDITIONS, budgets, label=f"trap for the {text}" if line == 0 else f"trap for {text}", **LINES[line])
    last.plot(CONDITIONS, np.square(CONDITIONS), color=INK, linewidth=0.8, label="κ²")
    last.set_xscale("log", base=2)
    last.set_yscale("log")
    label(last, "traps by construction", "κ", "s / s*")
    legend(last)
    remark(figure, f"AR(1): d = {D}, s* = {S_STAR}, {2 * COUNT} problems without noise; solved: f ≤ {SOLVED:g} f(0)")
    return {"kappa_squared": figure}


ITEM = Item("Open question: is s >= kappa^2 s* needed?", cells, summarise, draw, example)
