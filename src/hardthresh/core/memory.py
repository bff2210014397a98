"""How much memory this process may still use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_ARENA_MAX = -8
"""M_ARENA_MAX of the GNU C library, from its header malloc.h."""
_UNKNOWN = 1 << 31
"""Bytes taken as free where the system does not say: arbitrary, 2 GiB, a small machine of today."""


def free_memory() -> int:
    """Return the bytes that this process may still use: what the machine, its container and its limits leave.

    Returns
    -------
    int
        The smallest of what Linux calls available, what the control group allows, and what ``RLIMIT_AS`` leaves of the
        address space. Other systems say less, and 2 GiB are taken as free where they say nothing.

    Examples
    --------
    >>> free_memory() > 0
    True
    """
    return max(0, min(_limits(), default=_UNKNOWN))


def _limits() -> Iterator[int]:
    """Yield what each limit that is known leaves."""
    yield from _of_machine()
    for group in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")):  # versions 2 and 1
        most = _number(group / "memory.max", group / "memory.limit_in_bytes")
        used = _number(group / "memory.current", group / "memory.usage_in_bytes")
        if most is not None and used is not None and most < 1 << 60:  # version 1 writes a huge number for no limit
            yield most - used
    limit = address_space()
    if limit is not None:
        yield limit - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def address_space() -> int | None:
    """Return the bytes of address space that ``RLIMIT_AS`` gives this process, None without a limit or off Linux."""
    try:
        import resource  # Windows has none

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError):
        return None
    return limit if limit != resource.RLIM_INFINITY and Path("/proc/self/statm").exists() else None


def spare_address_space() -> None:
    """Let the threads of this process share one pool of memory, where its address space is limited.

    The GNU C library reserves 64 MiB of it for each thread that allocates memory: half of 1500 MB for the threads that
    read and work on blocks. Without a limit that costs nothing, and nothing is changed.
    """
    _ask_allocator("mallopt", _ARENA_MAX, 1)


def return_free_memory() -> None:
    """Return to the system what this process has freed, where its address space is limited.

    The GNU C library keeps up to two blocks, and what lies between other data. A reading uses that again, because new
    pages from the system for each block double its CPU time; so it is returned after readings.
    """
    _ask_allocator("malloc_trim", 0)


def _ask_allocator(function: str, *args: int) -> None:
    """Call a function of the GNU C library, if there is one and the address space is limited."""
    if address_space() is None:
        return
    try:
        ctypes.CDLL(None)[function](*args)
    except (AttributeError, OSError):  # another C library, which has no such pools
        return


def memory_for_blocks() -> str:
    """Return the end of a message of a fit to a table in blocks that needs more memory: what to do."""
    limit = address_space()
    more = "" if limit is None else f", or allow more than {limit / 1e6:,.0f} MB of address space (ulimit -v)"
    return f"write smaller row groups or chunks{more}"


def _of_machine() -> Iterator[int]:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield 1024 * int(line.split()[1])
                return
    except OSError:
        pass
    try:
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, macOS not this name
        return


def _number(*paths: Path) -> int | None:
    """Return the number in the first file that has one."""
    for path in paths:
        try:
            return int(path.read_text())
        except (OSError, ValueError):  # "max": no limit
            continue
    return None
