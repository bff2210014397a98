"""Functions of one's own: the problems of skscope's gallery, by `objectives.Function` and by skscope.

    python -m venv VENV; VENV/bin/pip install skscope==0.1.8 jax scikit-learn scipy array-api-compat narwhals joblib
    PYTHONPATH=src VENV/bin/python benchmarks/functions.py                       # the development half
    PYTHONPATH=src VENV/bin/python benchmarks/functions.py --half reporting --seeds 0,1,2 --json FILE

Both libraries get the same function, compiled by JAX in double precision, with the same start, and their defaults. The
times are those of a first call, which compiles, and of a second one, which does not: wall times on one thread, and,
less disturbed by other jobs, times of the processor, on which JAX compiles with several threads. The instances are
those of the folder `gallery`; which half each belongs to was chosen before any was solved. Settings are chosen on
the development half with seed 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, __file__.rsplit("/", 1)[0])

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from gallery import GALLERY, Entry, Instance  # noqa: E402
from skscope import ScopeSolver  # noqa: E402

from hardthresh.constraints import GroupSparsity, Sparsity  # noqa: E402
from hardthresh.objectives import Function  # noqa: E402
from hardthresh.solvers import minimize  # noqa: E402

TIE = 1e-6
"""Relative difference of values that counts as equal: what L-BFGS leaves at its default tolerance."""


def with_hardthresh(problem: Instance, autodiff: bool = True) -> Callable[[], np.ndarray]:
    """Return a call that solves a problem by `minimize` and returns the point."""
    d = problem.dimension
    if problem.group > 1:
        constraint: Any = GroupSparsity(np.arange(d) // problem.group, problem.k, free=problem.free)
    else:
        constraint = Sparsity(problem.k, free=problem.free, lower=0.0 if problem.positive else None)
    if autodiff:
        f = Function.from_jax(problem.fn, d)
    else:
        compiled = jax.jit(jax.value_and_grad(problem.fn))

        def both(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = compiled(w)
            return float(value), np.asarray(slope)

        f = Function(both, d, True)
    return lambda: minimize(f, constraint, w0=problem.start).w


def with_skscope(problem: Instance) -> Callable[[], np.ndarray]:
    """Return a call that solves a problem by `ScopeSolver` and returns the point."""
    d, size = problem.dimension, problem.group
    fn = (lambda w: problem.fn(abs(w))) if problem.positive else problem.fn  # as its layer NonNegative does
    # it ends the process where a function is infinite: outside of the domain it gets a large number
    compiled = jax.jit(lambda w: jnp.nan_to_num(fn(w), nan=1e10, posinf=1e10))
    slope = jax.jit(lambda w: jnp.nan_to_num(jax.grad(fn)(w)))
    free = np.unique(np.array(problem.free, dtype=int) // size)

    def solve() -> np.ndarray:
        solver = ScopeSolver(d, problem.k + free.size, preselect=free, group=np.arange(d) // size if size > 1 else None)
        start = None if problem.start is None else problem.start.copy()
        # functions, because it asks for the code of what it is given
        w = np.asarray(solver.solve(lambda w: compiled(w), gradient=lambda w: slope(w), init_params=start))
        return np.abs(w) if problem.positive else w

    return solve


def timed(solve: Callable[[], np.ndarray], fn: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the value that a library reaches, and the seconds of its first and second call."""
    seconds = dict.fromkeys(("first", "first_cpu", "second", "second_cpu"), np.nan)
    try:
        for call in ("first", "second"):
            began, worked = perf_counter(), process_time()
            w = solve()
            seconds[call], seconds[f"{call}_cpu"] = perf_counter() - began, process_time() - worked
    except Exception as error:  # what a library raises is a result of the contest
        return {"value": np.inf, **seconds, "error": f"{type(error).__name__}: {error}"[:200]}
    return {"value": float(fn(w)), **seconds, "used": int(np.count_nonzero(w))}


def contest(entry: Entry, seed: int, gradients: bool) -> dict[str, Any]:
    """Return the results of all libraries on one instance."""
    problem = entry.make(np.random.default_rng((seed, crc32(entry.name.encode()))))
    fn = jax.jit(problem.fn)
    rivals = {"hardthresh": with_hardthresh(problem), "skscope": with_skscope(problem)}
    if gradients:
        rivals["gradients alone"] = with_hardthresh(problem, autodiff=False)
    found = {name: timed(solve, fn) for name, solve in rivals.items()}
    facts = {"name": entry.name, "half": entry.half, "seed": seed, "d": problem.dimension, "k": problem.k}
    return facts | {"group": problem.group} | found


def main() -> None:
    """Run the instances that the options choose, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["development", "reporting", "both"], default="development")
    parser.add_argument("--only", default="", help="instances with this in their name")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--gradients", action="store_true", help="also without second derivatives")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = [e for e in GALLERY if options.half in (e.half, "both") and options.only.lower() in e.name.lower()]
    results = []
    with threadpool_limits(1):
        for entry in entries:
            for seed in map(int, options.seeds.split(",")):
                results.append(contest(entry, seed, options.gradients))
                print(row(results[-1]), flush=True)
    print(summary(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


def row(result: dict[str, Any]) -> str:
    """Return the line of a result: values, and seconds with and without compilation."""
    ours, theirs = result["hardthresh"], result["skscope"]
    parts = [f"| {result['name']} | {result['d']} | {result['k']} | {ours['value']:.8g} | {theirs['value']:.8g}"]
    if "gradients alone" in result:
        parts.append(f"{result['gradients alone']['value']:.8g} ({result['gradients alone']['second']:.2f})")
    for name in ("first", "second"):
        parts.append(f"{ours[name]:.2f} / {theirs[name]:.2f}")
    errors = [rival["error"] for rival in result.values() if isinstance(rival, dict) and "error" in rival]
    return " | ".join(parts) + " | " + "".join(errors)


def summary(results: list[dict[str, Any]]) -> str:
    """Return how often ours is as low, lower, and faster."""

    def gap(result: dict[str, Any]) -> float:
        ours, theirs = result["hardthresh"]["value"], result["skscope"]["value"]
        return (ours - theirs) / max(abs(ours), abs(theirs), 1e-12)

    low, lower = sum(gap(r) <= TIE for r in results), sum(gap(r) < -TIE for r in results)
    faster = {
        name: sum(r["hardthresh"][name] < r["skscope"][name] for r in results)
        for name in ("first", "first_cpu", "second", "second_cpu")
    }
    return f"{len(results)} runs: not above skscope {low}, below it {lower}, faster {faster}"


if __name__ == "__main__":
    main()
