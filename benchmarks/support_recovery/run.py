"""Run this benchmark by benchopt, and print a table of the models that are as large as the truth.

    pip install 'hardthresh[field]'
    python benchmarks/support_recovery/run.py --csv benchmarks/results/support_recovery.csv      # five minutes
    python benchmarks/support_recovery/run.py -d "deconvolution[seed=3000]" -s omp -s hardthresh

Other arguments are those of ``benchopt run``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
COLUMNS = {
    "instance": "",
    "solver": "",
    "n_nnz": ".1f",
    "f1score": ".3f",
    "error_w": ".3f",
    "value": ".4g",
    "ms": ".1f",
}
"""What is shown of each solver on each instance, with the format of the mean over the draws."""


def measured(arguments: list[str]) -> pd.DataFrame:
    """Return what benchopt has measured: a row for each instance, solver and size."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.parquet"
        command = [sys.executable, "-m", "benchopt", "run", str(FOLDER), "--no-plot", "--no-cache"]
        subprocess.run([*command, "--output", str(file), *arguments], check=True, stdout=sys.stderr)
        return pd.read_parquet(file)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over the draws of an instance, and the median time, where the budget is the size of the truth."""
    table = pd.DataFrame(
        {
            "instance": [_instance(row) for row in rows.to_dict("records")],
            "solver": rows["solver_name"],
            "ms": 1000 * rows["time"],
            **{name: rows[f"objective_{name}"] for name in ("n_nnz", "f1score", "error_w", "value")},
        }
    )
    true_size = np.floor(rows["stop_val"] * rows["p_dataset_d"]) == rows["p_dataset_k"]
    groups = table[true_size].groupby(["instance", "solver"], sort=True)
    means = groups[["n_nnz", "f1score", "error_w", "value"]].mean()
    return means.assign(ms=groups["ms"].median(), draws=groups.size()).reset_index()


def _instance(row: dict[str, Any]) -> str:
    """Return the name of an instance, without the seed of its draw."""
    family, n, d, k = row["dataset_name"].partition("[")[0], *(row[f"p_dataset_{name}"] for name in "ndk")
    rho = row.get("p_dataset_rho", np.nan)
    return f"{family} {n:.0f} x {d:.0f}, k = {k:.0f}" + ("" if np.isnan(rho) else f", rho = {rho:g}")


def markdown(table: pd.DataFrame) -> str:
    """Return the table in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|" + "--:|" * (len(COLUMNS) - 2)]
    for row in table.to_dict("records"):
        lines.append(f"| {' | '.join(format(row[name], form) for name, form in COLUMNS.items())} |")
    return "\n".join(lines)


def main() -> None:
    """Run, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", help="a file for the table")
    settings, arguments = parser.parse_known_args()
    table = summary(measured(arguments))
    print(markdown(table))
    if settings.csv:
        table.round(6).to_csv(settings.csv, index=False)


if __name__ == "__main__":
    main()
