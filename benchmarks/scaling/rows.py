"""What is measured of each piece of work: a row of JSON."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

PACKAGES = ("numpy", "scipy", "pyarrow", "h5py", "zarr", "dask", "distributed")


def machine(tasks: Sequence[str]) -> dict[str, Any]:
    """Return the row that describes the machine that runs some tasks."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    model = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ":").partition(":")[2]
    memory = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0 0").split()[1]
    return {
        "task": "machine",
        "measures": [*tasks],
        "processor": model.strip() or platform.processor(),
        "processors": os.cpu_count(),
        "memory_gb": round(int(memory) / 1e6, 1),
        "python": platform.python_version(),
        "versions": found,
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def memory_mb() -> dict[str, float]:
    """Return anonymous, largest resident and largest virtual memory of this process in MB."""
    kinds = {"RssAnon": "anonymous_mb", "VmHWM": "peak_resident_mb", "VmPeak": "peak_virtual_mb"}
    lines = (line.split() for line in _lines("/proc/self/status"))
    return {
        kinds[name[:-1]]: round(int(size) / 1024, 1) for name, size, *_ in filter(_two, lines) if name[:-1] in kinds
    }


def _two(words: list[str]) -> bool:
    return len(words) >= 2 and words[1].isdigit()


def measured(task: str, case: str, work: Callable[[], dict[str, Any]], size: float | None = None) -> dict[str, Any]:
    """Return the row of a piece of work: wall and CPU time, load before and after, memory, and what it returns itself.

    Parameters
    ----------
    task, case : str
        What is measured.
    work : callable
        Does it, and returns more entries of the row.
    size : float, optional
        Bytes that it goes through, for the rates in GB/s of wall time and of CPU time.
    """
    before, wall, cpu = os.getloadavg()[0], perf_counter(), cpu_seconds()
    found = work()
    wall, cpu = perf_counter() - wall, cpu_seconds() - cpu
    row = {"task": task, "case": case, "wall_s": round(wall, 3), "cpu_s": round(cpu, 3)}
    if size is not None:
        row |= {"gb": round(size / 1e9, 3), "gb_per_s": round(size / wall / 1e9, 3), "gb_per_cpu_s": _rate(size, cpu)}
    return row | memory_mb() | found | {"load": [round(before, 1), round(os.getloadavg()[0], 1)]}


def _rate(size: float, cpu: float) -> float:
    return round(size / max(cpu, 1e-9) / 1e9, 3)


def say(row: dict[str, Any], path: Path | None) -> None:
    """Print a row, and append it to a file."""
    line = json.dumps(row)
    print(line, flush=True)
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def drop_cache(path: Path) -> None:
    """Take what the system remembers of a file, or of the files of a folder, from its cache."""
    if not hasattr(os, "posix_fadvise"):
        print("this system keeps its cache: what follows is read from memory", file=sys.stderr)
        return
    for file in [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]:
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def disc_size(path: Path) -> int:
    """Return the bytes of a file or folder on the disc."""
    return sum(each.stat().st_size for each in ([path] if path.is_file() else path.rglob("*")) if each.is_file())
