"""Compare fits with 1, 2 and 4 BLAS threads, on an idle and on a busy machine. See README.md beside this file.

    python benchmarks/threads.py                      # a quarter of an hour
    python benchmarks/threads.py --only 2000x20000 --busy 0,4 --rounds 5

The settings are fitted in turn, so that all of them run beside the same load. Ratios are medians over rounds of the
time of a setting relative to that of the first one in the same round.
"""

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep

TABLES = ("50x100", "500x1000", "1500x1200", "1000x5000", "2000x20000", "200000x50")
MODELS = ("linear", "logistic", "linear CV", "low rank")
LARGEST = {"linear CV": 5_000_000, "low rank": 2_000_000}  # entries; larger tables take minutes
SECONDS = 15.0  # for the rounds of a table
PAUSE = 0.05  # seconds before a fit: BLAS threads spin that long after a call


def serve(model: str, table: str) -> None:
    """Fit one model for each line of input, and print its wall and CPU time in seconds."""
    import warnings

    import numpy as np

    import hardthresh as ht

    warnings.simplefilter("ignore")
    n, d = map(int, table.split("x"))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    w = np.zeros(d)
    w[rng.permutation(d)[:10]] = rng.choice([-2.0, 2.0], 10)
    y = X @ w + 2.0 * rng.standard_normal(n)
    estimator, target = {
        "linear": (ht.SparseLinearRegression(n_nonzero_coefs=10), y),
        "logistic": (ht.SparseLogisticRegression(n_nonzero_coefs=10), y > 0),
        "linear CV": (ht.SparseLinearRegressionCV(), y),
        "low rank": (ht.LowRankRegression(rank=2), y[:, None] + X[:, :5]),
    }[model]
    estimator.fit(X, target)
    print("ready", flush=True)
    for _ in sys.stdin:
        sleep(PAUSE)
        wall, cpu = perf_counter(), process_time()
        estimator.fit(X, target)
        print(perf_counter() - wall, process_time() - cpu, flush=True)


def ask(worker: subprocess.Popen) -> list[float]:
    """Have a worker do one fit; return wall and CPU seconds."""
    worker.stdin.write("fit\n")
    worker.stdin.flush()
    return [float(number) for number in worker.stdout.readline().split()]


@contextlib.contextmanager
def workers(model: str, table: str, settings: list[int]) -> Iterator[dict[int, subprocess.Popen]]:
    """Processes with some numbers of threads, ready to fit."""
    started = {
        threads: subprocess.Popen(
            [sys.executable, __file__, "--serve", model, table],
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for threads in settings
    }
    try:
        for worker in started.values():
            assert worker.stdout.readline() == "ready\n"
        yield started
    finally:
        for worker in started.values():
            worker.kill()
            worker.wait()


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """CPU-bound processes that run beside the fits."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def measure(
    model: str, table: str, settings: list[int], others: list[int], most: int
) -> Iterator[tuple[int, float, list[tuple[float, float]], int]]:
    """Yield, for each number of busy processes: this number, ms of the first setting, ratios of the others, rounds."""
    with workers(model, table, settings) as crew:
        for number in others:
            with busy(number):
                first = [ask(worker) for worker in crew.values()]
                rounds = max(5, min(most, int(SECONDS / sum(wall for wall, _ in first))))
                runs = []
                for turn in range(rounds):
                    order = settings[turn % len(settings) :] + settings[: turn % len(settings)]
                    runs.append({threads: ask(crew[threads]) for threads in order})
            ratios = [
                tuple(median(run[threads][i] / run[settings[0]][i] for run in runs) for i in (0, 1))
                for threads in settings[1:]
            ]
            yield number, 1e3 * median(run[settings[0]][0] for run in runs), ratios, rounds


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def page(rows: list[tuple[str, ...]]) -> str:
    """Return a table of the user guide."""
    lines = [".. Written by benchmarks/threads.py; do not edit.", "", ".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'-' if i else '* -'} {cell}".replace("   - ", "     - ") for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=numbers, default=[1, 2, 4], help="of BLAS; the first is compared with")
    parser.add_argument("--busy", type=numbers, default=[0, os.cpu_count()], help="busy processes beside the fits")
    parser.add_argument("--rounds", type=int, default=25, help="fits of each setting at most")
    parser.add_argument("--only", default="", help="tables and models with this in their name")
    parser.add_argument("--page", help="write the last setting's table for the user guide into this file")
    options = parser.parse_args()
    first, *more = options.threads
    head = ["model", "table", "busy", f"{first}: ms", *(f"{threads}: wall, CPU" for threads in more), "rounds"]
    print("| " + " | ".join(head) + " |\n|---|---|" + "--:|" * (len(head) - 2))
    states = ["idle" if number == 0 else "busy" for number in options.busy]
    rows = [("model", "table", "one thread, ms", *(f"{more[-1]} threads, {state}" for state in states))]
    for table in TABLES:
        n, d = map(int, table.split("x"))
        for model in MODELS:
            if options.only not in f"{model} {table}" or n * d > LARGEST.get(model, n * d):
                continue
            found = []
            for number, ms, ratios, rounds in measure(model, table, options.threads, options.busy, options.rounds):
                cells = [model, table, str(number), f"{ms:.1f}", *(f"{w:.2f}, {c:.2f}" for w, c in ratios), str(rounds)]
                print("| " + " | ".join(cells) + " |", flush=True)
                found.append((ms, ratios[-1][0]))
            rows.append((model, f"{n} x {d}", f"{found[0][0]:.1f}", *(f"{ratio:.2f}" for _, ratio in found)))
    if options.page:
        Path(options.page).write_text(page(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
