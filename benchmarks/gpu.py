"""Measure which share of a device's memory bandwidth fits reach. See README.md beside this file.

    python benchmarks/gpu.py --device cuda --n 400000 --d 10000 --json FILE   # 16 and 32 GB on a GPU: all of check 13
    python benchmarks/gpu.py --device cpu --n 20000 --d 1000                  # a rehearsal without one, not judged

Prints one JSON line for each measurement, in float32 and float64: the copy that sets the scale, X'r, fits, mini-batches
of StochasticIHT, and how far answers are from those that NumPy finds. On a GPU lines have their goal, and whether it
is met.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported

GOALS = {"X'r": 0.7, "fit": 0.7, "minibatch": 0.5}  # shares of the copy bandwidth on a GPU: scale.md, section 7
SAME = 1e-5  # of f, relative to NumPy's: check 13 of scale.md
_COPIED = 1 << 30  # entries of the copy at most, 4 GB of float32: more than any cache


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return the settings of a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--n", type=int, default=20000, help="rows")
    parser.add_argument("--d", type=int, default=1000, help="columns")
    parser.add_argument("--k", type=int, default=20, help="non-zeros")
    parser.add_argument("--dtype", default="float32,float64", help="one or more, separated by commas")
    parser.add_argument("--batch", type=int, default=65536, help="rows of a mini-batch")
    parser.add_argument("--repeats", type=int, default=5, help="of each measurement; the fastest counts")
    parser.add_argument("--json", type=Path, help="append the lines to this file")
    settings = parser.parse_args(given)
    settings.dtype = settings.dtype.split(",")
    if unknown := {*settings.dtype} - {"float32", "float64"}:
        parser.error(f"unknown dtype {unknown.pop()!r}: float32 and float64 are measured")
    return settings


class Clock:
    """The time that a device takes: the best of some repeats, each from an idle device to an idle device."""

    def __init__(self, device: str, repeats: int) -> None:
        import torch

        self._wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        self._repeats = repeats

    def __call__(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """Return the seconds that some work takes, and what it returns."""
        seconds = []
        for _ in range(self._repeats):
            self._wait()
            began = perf_counter()
            result = work()
            self._wait()
            seconds.append(perf_counter() - began)
        return min(seconds), result


def measurements(args: argparse.Namespace, precision: str) -> Iterator[dict[str, Any]]:
    """Yield what was measured: seconds, bytes read, and their share of the bandwidth of a copy."""
    import torch

    import hardthresh as ht
    from hardthresh.constraints import Sparsity
    from hardthresh.objectives import LinearModel
    from hardthresh.solvers import IHT, AcceleratedIHT, FixedBatch, HardThresholdingPursuit, StochasticIHT, WorkingSet

    torch.backends.cuda.matmul.allow_tf32 = False
    dtype, clock = getattr(torch, precision), Clock(args.device, args.repeats)
    random = torch.Generator(device=args.device).manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=random, device=args.device, dtype=dtype)

    X, w = normal(args.n, args.d), torch.zeros(args.d, device=args.device, dtype=dtype)
    w[torch.randperm(args.d, generator=random, device=args.device)[: args.k]] = 1.0
    y = X @ w + normal(args.n)
    size = X.numel() * X.element_size()

    source = X.reshape(-1)[:_COPIED]
    seconds, _ = clock(partial(torch.empty_like(source).copy_, source))
    bandwidth = 2 * source.numel() * source.element_size() / seconds  # read and written
    yield {"what": "copy", "s": seconds, "GB_per_s": bandwidth / 1e9}

    r = normal(args.n)
    seconds, _ = clock(lambda: X.T @ r)
    yield {"what": "X'r", "s": seconds, "GB_per_s": size / seconds / 1e9, "share": size / seconds / bandwidth}
    f = LinearModel(X, y)
    for solver in (IHT(), AcceleratedIHT(), HardThresholdingPursuit(), WorkingSet()):
        seconds, run = clock(lambda solver=solver: ht.minimize(f, Sparsity(args.k), solver, max_iter=60))
        found = {int(j) for j in run.support} == {int(j) for j in torch.nonzero(w)[:, 0]}
        read = run.passes * size
        yield {
            "what": "fit",
            "solver": type(solver).__name__,
            "s": seconds,
            "iterations": run.n_iter,
            "passes": run.passes,
            "s_per_iteration": seconds / max(1, run.n_iter),
            "share": read / seconds / bandwidth,
            "found": found,
        }
    batch, iterations = min(args.batch, args.n), 10
    solver = StochasticIHT(step=0.3, batch=FixedBatch(batch))
    seconds, run = clock(lambda: ht.minimize(f, Sparsity(args.k), solver, max_iter=iterations, tol=0.0))
    read = run.passes * size
    yield {
        "what": "minibatch",
        "solver": "StochasticIHT",
        "rows": batch,
        "s": seconds,
        "iterations": run.n_iter,
        "passes": run.passes,
        "share": read / seconds / bandwidth,
    }


def comparisons(args: argparse.Namespace, precision: str) -> Iterator[dict[str, Any]]:
    """Yield how far f is, where runs on the device end, from where the same runs in NumPy do."""
    import numpy as np
    import torch

    import hardthresh as ht
    from hardthresh.constraints import Sparsity
    from hardthresh.objectives import LinearModel
    from hardthresh.solvers import HardThresholdingPursuit, WorkingSet

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 500))
    u = X[:, :10] @ np.ones(10) + rng.standard_normal(2000)
    X = X.astype(precision)
    for loss, y in {"squared": u.astype(precision), "logistic": (u > 0).astype(precision)}.items():
        here = LinearModel(X, y, loss=loss, l2=0.01)
        there = LinearModel(torch.asarray(X, device=args.device), torch.asarray(y, device=args.device), loss, l2=0.01)
        for solver in (HardThresholdingPursuit(), WorkingSet()):
            expected, found = (ht.minimize(f, Sparsity(10), solver) for f in (here, there))
            yield {
                "what": "difference from NumPy",
                "solver": type(solver).__name__,
                "loss": loss,
                "relative": abs(float(found.value) - expected.value) / expected.value,
                "found": {int(j) for j in found.support} == {int(j) for j in expected.support},
            }


def judged(line: dict[str, Any]) -> dict[str, Any]:
    """Return the goal of a measurement on a GPU, and whether it is met."""
    if "relative" in line:
        return {"goal": SAME, "met": line["relative"] <= SAME and line["found"]}
    return {"goal": GOALS[line["what"]], "met": line["share"] >= GOALS[line["what"]]} if line["what"] in GOALS else {}


def main(given: list[str] | None = None) -> None:
    """Print the measurements as lines of JSON; on a GPU with the goal of each."""
    args = arguments(given)
    try:
        import torch
    except ImportError:
        sys.exit("benchmarks/gpu.py needs torch: pip install torch")
    gpu = args.device.startswith("cuda")
    if gpu and not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device here; --device cpu rehearses the measurements without one")
    head = {
        "device": torch.cuda.get_device_name(args.device) if gpu else "cpu: no GPU was used",
        "torch": torch.__version__,
        "n": args.n,
        "d": args.d,
        "k": args.k,
    }
    for precision in args.dtype:
        size = {"dtype": precision, "GB": args.n * args.d * (4 if precision == "float32" else 8) / 1e9}
        for line in chain(measurements(args, precision), comparisons(args, precision)):
            text = json.dumps(head | size | line | (judged(line) if gpu else {}))
            print(text, flush=True)
            if args.json is not None:
                with args.json.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")


if __name__ == "__main__":
    main()
