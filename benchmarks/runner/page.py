"""The tables of README.md, written from the results so that no figure is typed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hardthresh.core.files import write_file

from . import files, summaries, tables
from .tasks import tasks

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write() -> str:
    """Put the tables of all results between the two marks of README.md and return its name."""
    path = files.ROOT / "README.md"
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    sections = [_section(result) for result in sorted(files.RESULTS.glob("*.json"))]
    write_file(path, "\n\n".join([before + BEGIN, *sections, END + after]).encode())
    return path.name


def _section(path: Path) -> str:
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    parts = [
        f"### {path.stem.split('_', 1)[1].replace('_', ' ').capitalize()}",
        tables.sentence(report["machine"]) + ".",
    ]
    if "startup" in report:
        parts += [tables.imports(report["startup"]["imports"]).markdown()]
        parts += [tables.first_fits(report["startup"]["first_fits"]).markdown()]
    if "completion" in report:
        parts += [tables.completion(report["completion"]).markdown()]
    if "goals" in report:
        found = report["goals"]
        seeds = f"{found['seeds'][0]} to {found['seeds'][-1]}"
        parts += [f"Seeds {seeds}; {report['machine']['build']} build; load {found['load_after']:.1f} at the end."]
        parts += [tables.Table(**table).markdown() for table in found["tables"]]
    for name, task in tasks().items():
        rows = [row for row in report["rows"] if row["task"] == name]
        parts += [table.markdown() for table in summaries.of(name, task.title, rows)] if rows else []
    return "\n\n".join(parts)
