"""The files of the benchmark: where they are, and the class in each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
ENVIRONMENTS = ROOT.parent / ".bench-envs"


def load(kind: str, stem: str) -> Any:
    """Return the class `Solver` or `Dataset` of a file, which may need a package that is not here."""
    name = f"benchmark_{kind}s_{stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / f"{kind}s" / f"{stem}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return getattr(sys.modules[name], kind.capitalize())


def solvers() -> list[str]:
    """Return the stems of the solver files, ours first."""
    return sorted((path.stem for path in (ROOT / "solvers").glob("*.py")), key=lambda stem: ("hard" not in stem, stem))
