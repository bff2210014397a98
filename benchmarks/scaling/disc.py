"""A raw file that is larger than the memory allowed: readings beside `dd`, and a fit under RLIMIT_AS."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp
from typing import Any

import numpy as np

from hardthresh.designs import RowBlocks, Serial, from_file
from scaling.formats import pull
from scaling.rows import drop_cache, measured

D, CHUNK, K = 2000, 4096, 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the task."""
    parser.add_argument("--gb", type=float, default=4.0, help="size of the file, of rows of 2000 singles")
    parser.add_argument("--limit-mb", type=int, default=1500, help="address space of the fit")
    parser.add_argument("--loss", default="squared,logistic", help="losses of the fits")
    parser.add_argument("--fit-in", type=Path, help=argparse.SUPPRESS)  # the process under the limit


def planted() -> tuple[np.ndarray, np.ndarray]:
    """Return the planted features and their coefficients."""
    rng = np.random.default_rng(20)
    support = np.sort(rng.choice(D, K, replace=False))
    return support, rng.choice([-1.0, 1.0], K) * (0.3 + rng.random(K))


def write(folder: Path, n: int) -> None:
    """Write X, with correlated neighbours, and the targets of two losses."""
    support, coefficients = planted()
    targets = {"squared": np.empty(n), "logistic": np.empty(n)}
    with (folder / "X.f32").open("wb", buffering=0) as file:
        for start in range(0, n, CHUNK):
            rng = np.random.default_rng((20, start))
            rows = min(CHUNK, n - start)
            X = rng.standard_normal((rows, D), dtype=np.float32)
            X[:, 1:] += 0.5 * X[:, :-1]
            file.write(X.data)
            linear = X[:, support] @ coefficients
            targets["squared"][start : start + rows] = linear + rng.standard_normal(rows)
            targets["logistic"][start : start + rows] = linear + rng.logistic(size=rows) > 0
    for name, y in targets.items():
        np.save(folder / f"{name}.npy", y)


def table(folder: Path, loss: str) -> RowBlocks:
    """Return the table of the file."""
    return from_file(folder / "X.f32", folder / f"{loss}.npy", n_columns=D)


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of the task."""
    if options.fit_in is not None:
        yield from fits(options)
        return
    n = int(options.gb * 1e9) // (4 * D)
    folder = Path(mkdtemp(prefix="hardthresh-disc-", dir=options.folder))
    try:
        write(folder, n)
        file = folder / "X.f32"
        size = file.stat().st_size
        for repetition in range(2):  # before and after, as others may use the disc too
            if which("dd") is not None:
                drop_cache(file)
                yield measured("disc", "dd iflag=direct", lambda: _dd(file, "iflag=direct"), size)
                drop_cache(file)
                yield measured("disc", "dd", lambda: _dd(file), size)
            engine = Serial(table(folder, "squared"))
            for number in (1, 2):
                drop_cache(file)
                case = f"reading {number}, {'after' if repetition else 'before'}"
                yield measured("disc", case, lambda: _read(engine), size)  # noqa: B023 - runs at once
        yield from _fits_elsewhere(options, folder)
    finally:
        rmtree(folder)


def _dd(path: Path, *flags: str) -> dict[str, Any]:
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=32M", *flags], check=True, stderr=subprocess.DEVNULL)
    return {}


def _read(engine: Serial) -> dict[str, Any]:
    engine.sweep(pull)
    return {"readings": engine.readings}


def _fits_elsewhere(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the fits, each in a process of its own with little address space."""
    script = Path(__file__).parents[1] / "scale.py"
    # Dask leaves MALLOC_TRIM_THRESHOLD_ to the processes started after its workers: two to three times the CPU time
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    for loss in options.loss.split(","):
        drop_cache(folder / "X.f32")
        command = [sys.executable, str(script), "--task", "disc", "--fit-in", str(folder), "--loss", loss]
        run = subprocess.run(
            [*command, "--limit-mb", str(options.limit_mb)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        found = [json.loads(line) for line in run.stdout.splitlines()]
        if run.returncode:
            yield {"task": "disc", "case": f"fit, {loss}", "failed": run.stderr.splitlines()[-1:]}
        yield from (row for row in found if row["task"] == "disc")


def fits(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of a fit, its predictions and its score, in this process."""
    import hardthresh as ht

    models = {"squared": ht.SparseLinearRegression, "logistic": ht.SparseLogisticRegression}
    limit = options.limit_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    support, coefficients = planted()
    blocks = table(options.fit_in, options.loss)
    model = models[options.loss](n_nonzero_coefs=K, alpha=0.0)  # without a ridge, for the error of the coefficients

    def fit() -> dict[str, Any]:
        model.fit(blocks)
        coef = np.ravel(model.coef_)
        return {
            "limit_mb": options.limit_mb,
            "support_exact": bool(np.array_equal(np.flatnonzero(coef), support)),
            "coefficient_error": float(np.abs(coef[support] - coefficients).max()),
            "readings": float(model.history_["readings"][-1]),
        }

    yield measured("disc", f"fit, {options.loss}", fit, blocks.nbytes)
    yield measured("disc", f"score, {options.loss}", lambda: {"score": float(model.score(blocks))}, blocks.nbytes)
    yield measured("disc", f"predict, {options.loss}", lambda: {"rows": len(model.predict(blocks))}, blocks.nbytes)
