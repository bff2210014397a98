"""A Dask cluster of this machine: the price of a task, scaling, lost workers, spilling, and others on the same rows."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np

from hardthresh import SparseLinearRegression, SparseLogisticRegression
from hardthresh.designs import DaskEngine, from_arrays, from_dask
from hardthresh.losses import Squared
from hardthresh.objectives.block_rows import Point
from hardthresh.objectives.readings import look
from scaling.rows import measured, memory_mb

D, K = 400, 15
"""Columns, and those that are planted."""
REPETITIONS = 5
_LARGE = 8
"""How many times as large the chunks are with which workers are compared: check 8 of the design asks for 256 MB."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the task."""
    parser.add_argument("--workers", default="1,2,4", help="sizes of the cluster, a thread for each worker")
    parser.add_argument("--cluster-gb", type=float, default=1.0, help="size of the table, of rows of 400 singles")
    parser.add_argument("--chunk-mb", type=float, default=32.0, help="size of its chunks")
    parser.add_argument("--anchor-rows", type=int, default=100_000, help="rows of 100 columns for other packages")


def made(start: int, rows: int, d: int, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with correlated neighbours and their targets, the same on every machine."""
    rng, truth = np.random.default_rng((3, start)), np.random.default_rng(3)
    X = rng.standard_normal((rows, d), dtype=np.float32)
    X[:, 1:] += 0.5 * X[:, :-1]
    support = np.sort(truth.choice(d, K, replace=False))
    u = X[:, support] @ (truth.choice([-1.0, 1.0], K) * (0.3 + truth.random(K))).astype(np.float32)
    return X, u + rng.standard_normal(rows) if loss == "squared" else (u + rng.logistic(size=rows) > 0).astype(float)


def lazy(n: int, d: int, chunk: int, loss: str = "squared") -> tuple[Any, Any]:
    """Return a table and its targets as arrays of Dask."""
    import dask.array as da
    from dask import delayed

    starts = range(0, n, chunk)
    parts = [delayed(made)(start, min(chunk, n - start), d, loss) for start in starts]
    lengths = [min(chunk, n - start) for start in starts]
    X = [da.from_delayed(part[0], (rows, d), np.float32) for part, rows in zip(parts, lengths, strict=True)]
    y = [da.from_delayed(part[1], (rows,), np.float64) for part, rows in zip(parts, lengths, strict=True)]
    return da.concatenate(X), da.concatenate(y)


@contextmanager
def cluster(n_workers: int, **settings: Any) -> Iterator[tuple[Any, Any]]:
    """A cluster of this machine and a client, silent about the workers that are killed."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options = {"host": "127.0.0.1", "dashboard_address": ":0", "silence_logs": 50} | settings
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, **options) as found, Client(found) as client:
        yield found, client


def digest(*arrays: Any) -> str:
    """Return a short digest of the bits of some arrays."""
    return sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in arrays)).hexdigest()[:12]


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of the task."""
    sizes = [int(each) for each in options.workers.split(",")]
    yield from prices(max(sizes))
    chunk = max(1024, int(options.chunk_mb * 1e6) // (4 * D))
    n = int(options.cluster_gb * 1e9) // (4 * D)
    for loss in ("squared", "logistic"):
        small = 40 * chunk if n > 40 * chunk else n
        yield measured("dask", f"fit, {loss}, serial", lambda: _fit(*lazy(small, D, chunk, loss), loss))  # noqa: B023
        for n_workers in sizes:
            for kills in (0, 2) if n_workers == max(sizes) > 1 else (0,):
                yield from killed(small, chunk, loss, n_workers, kills)
    for n_workers in sizes:
        yield from scaled(n, _LARGE * chunk, n_workers)
    yield from spilled(n, chunk)
    yield from anchors(options.anchor_rows, min(2, max(sizes)))


def _fit(X: Any, y: Any, loss: str) -> dict[str, Any]:
    model = (SparseLinearRegression if loss == "squared" else SparseLogisticRegression)(n_nonzero_coefs=K)
    model.fit(X, y)
    support = np.flatnonzero(np.ravel(model.coef_))
    planted = np.sort(np.random.default_rng(3).choice(X.shape[1], K, replace=False))
    return {
        "bits": digest(model.coef_, model.intercept_),
        "readings": float(model.history_["readings"][-1]),
        "recall": float(np.isin(planted, support).mean()),
    }


def nothing(X: Any, y: Any, weight: Any, offset: Any) -> tuple[np.ndarray]:
    """A task that costs nothing but its place in the scheduler."""
    return (np.zeros(200),)


def prices(n_workers: int) -> Iterator[dict[str, Any]]:
    """Yield the price of a reading of many tiny blocks."""
    with cluster(n_workers) as (_, client):
        for count in (64, 512, 2048):
            engine = DaskEngine(from_arrays(np.zeros((2 * count, 4)), rows=2), client, leaf_size=8)
            engine.sweep(nothing)
            yield measured("dask", f"reading of {count} tiny blocks", lambda: _repeated(engine, nothing)) | {  # noqa: B023
                "workers": n_workers
            }


def _repeated(engine: DaskEngine, task: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return the least time of some readings, their tasks and the digest of the sums."""
    times, tasks = [], engine.tasks
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        sums = engine.sweep(task, *args)
        times.append(time.perf_counter() - start)
    tasks = (engine.tasks - tasks) // REPETITIONS
    each = round(1e3 * min(times) / tasks, 2)
    return {"best_s": round(min(times), 3), "tasks": tasks, "ms_per_task": each, "bits": digest(*sums)}


def killed(n: int, chunk: int, loss: str, n_workers: int, kills: int) -> Iterator[dict[str, Any]]:
    """Yield the fit of a lazy table, during which workers are killed."""
    with cluster(n_workers) as (found, _):

        def kill() -> None:
            for number in range(kills):
                time.sleep(1.5)
                os.kill([*found.workers.values()][number].pid, signal.SIGKILL)

        def fit() -> dict[str, Any]:
            threading.Thread(target=kill, daemon=True).start()
            return _fit(*lazy(n, D, chunk, loss), loss) | {"workers": n_workers, "killed": kills}

        yield measured("dask", f"fit, {loss}, {n_workers} workers, {kills} killed", fit)


def scaled(n: int, chunk: int, n_workers: int) -> Iterator[dict[str, Any]]:
    """Yield a look and a fit of a table in the memory of the workers."""
    from distributed import wait

    with cluster(n_workers) as (_, client):
        X, y = client.persist([*lazy(n, D, chunk)])
        wait([X, y])
        engine = DaskEngine(from_dask(X, y), client)
        point = Point(np.arange(K), np.zeros(K), np.linspace(-1, 1, K), 0.0)
        before = memory_mb()["anonymous_mb"]
        used = _of_workers(client)
        row = measured("dask", f"look, {n_workers} workers", lambda: _repeated(engine, look, [point], Squared()))
        each = round((_of_workers(client) - used) / REPETITIONS, 3)
        yield row | {"workers": n_workers, "gb": round(n * D * 4e-9, 2), "workers_cpu_s": each}
        used = _of_workers(client)
        row = measured("dask", f"fit in memory, {n_workers} workers", lambda: _fit(X, y, "squared"))
        grown = round(memory_mb()["anonymous_mb"] - before, 1)
        yield row | {"workers_cpu_s": round(_of_workers(client) - used, 2), "client_grew_mb": grown}


def _of_workers(client: Any) -> float:
    return float(sum(client.run(time.process_time).values()))


def spilled(n: int, chunk: int) -> Iterator[dict[str, Any]]:
    """Yield looks at a table that the workers can hold, and at the same one when they cannot."""
    from distributed import wait

    point = Point(np.arange(K), np.zeros(K), np.linspace(-1, 1, K), 0.0)
    most = 4e-6 * n * D
    for megabytes in (4 * most, 0.45 * most):
        with cluster(2, memory_limit=f"{megabytes:.0f}MB") as (_, client):
            X, y = client.persist([*lazy(n, D, min(chunk, n // 64))])
            wait([X, y])
            engine = DaskEngine(from_dask(X, y), client)
            case = f"look, 2 workers of {megabytes:.0f} MB"
            yield measured("dask", case, lambda: _repeated(engine, look, [point], Squared()))  # noqa: B023


def anchors(n: int, n_workers: int) -> Iterator[dict[str, Any]]:
    """Yield logistic fits of the same rows in the memory of the workers, by this package and by others, if here."""
    from distributed import wait

    with cluster(n_workers) as (_, client):
        X, y = client.persist([*lazy(n, 100, 5000, "logistic")])
        wait([X, y])

        def lbfgs() -> dict[str, Any]:
            from dask_ml.linear_model import LogisticRegression

            model = LogisticRegression(solver="lbfgs", max_iter=50).fit(X, y)
            return {"non_zeros": int(np.count_nonzero(np.abs(model.coef_) > 1e-8))}

        def trees() -> dict[str, Any]:
            from xgboost import dask as trees_of

            settings = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1}
            found = trees_of.train(client, settings, trees_of.DaskDMatrix(client, X, y), num_boost_round=20)
            return {"used": len(found["booster"].get_score())}

        ours = {"hardthresh": lambda: _fit(X, y, "logistic")}
        for name, fit in (ours | {"xgboost.dask, 20 trees": trees, "dask-ml, lbfgs": lbfgs}).items():
            used = _of_workers(client)
            try:
                row = measured("dask", f"{name}, {n} x 100", fit)
            except Exception as error:  # a package that is not here, or does not work with this version of Dask
                row = {"task": "dask", "case": name, "failed": f"{type(error).__name__}: {error}"[:200]}
            yield row | {"workers_cpu_s": round(_of_workers(client) - used, 2)}
