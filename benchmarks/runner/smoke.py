"""The gate: everything runs, and what does not depend on the machine did not get worse. No timing is judged."""

from __future__ import annotations

import json
from typing import Any

from hardthresh.core.files import write_file

from . import files

EXPECTED = files.ROOT / "expected.json"
MORE_PASSES = 1.02  # another BLAS rounds differently; a change that costs anything costs more than this
WORSE_OBJECTIVE = 1 + 1e-6


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is compared: the passes and the objective of everything of ours, by instance."""
    found: dict[str, Any] = {}
    for row in rows:
        if row["solver"].startswith("hardthresh"):
            found.setdefault(row["instance"], {})[row["solver"]] = {
                key: row.get(key) for key in ("passes", "value", "failed") if key in row
            }
    return found


def write(rows: list[dict[str, Any]]) -> None:
    """Accept the figures."""
    write_file(EXPECTED, (json.dumps(figures(rows), indent=2) + "\n").encode())


def complaints(rows: list[dict[str, Any]]) -> list[str]:
    """Return one line for everything that fails, is missing, or is worse than expected."""
    found, lines = figures(rows), []
    for instance, solvers in json.loads(EXPECTED.read_text(encoding="utf-8")).items():
        for solver, before in solvers.items():
            now = found.get(instance, {}).get(solver, {})
            where = f"{instance}, {solver}"
            if "value" not in now:
                lines.append(f"{where}: {now.get('failed', 'no result')}")
                continue
            if now["passes"] > MORE_PASSES * before["passes"]:
                lines.append(f"{where}: {now['passes']:.3f} data passes, expected {before['passes']:.3f}")
            if now["value"] > WORSE_OBJECTIVE * before["value"]:
                lines.append(f"{where}: objective {now['value']:.9g}, expected {before['value']:.9g}")
    return lines
