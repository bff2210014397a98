"""Failures of a Dask cluster, as errors of this library."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from hardthresh.core.errors import DataLostError, HardThreshError, InvalidInputError, MissingDependencyError, plural
from hardthresh.core.threads import blas_libraries

_RETRIES = 3
"""Of a task that raises an error, such as one that reads a file over a network."""
_LEAVES = "hardthresh-leaves"
"""The topic of events about leaves: one for all readings, since a scheduler remembers each topic."""
_READINGS: WeakKeyDictionary[Any, dict[str, Callable[[int, int], None]]] = WeakKeyDictionary()
"""What counts the leaves of each reading of a client, which has one handler for a topic."""
_REGISTERED = Lock()
_PATIENCE = 1.0
"""Seconds between two looks whether there are workers; arbitrary."""


def current_client() -> Any:
    """Return the Dask client that was made last in this process; None if there is none, or no package distributed."""
    try:
        from distributed import default_client

        client = default_client()
        return client if client.status == "running" else None
    except (ImportError, ValueError):
        return None


def patience() -> float:
    """Return the seconds that Dask tries to connect for."""
    from dask import config
    from dask.utils import parse_timedelta

    return float(parse_timedelta(config.get("distributed.comm.timeouts.connect")))


def require_distributed() -> Any:
    """Return the package distributed.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError(
            'a cluster needs distributed: run pip install "hardthresh[dask]"; without one, Serial reads the blocks here'
        ) from error
    return distributed


def required_client() -> Any:
    """Return the Dask client that was made last in this process.

    Raises
    ------
    MissingDependencyError
        Without the package distributed.
    InvalidInputError
        If there is no client.
    """
    require_distributed()
    client = current_client()
    if client is None:
        raise InvalidInputError(
            "there is no Dask client: make one first, as distributed.Client() of this machine or "
            'distributed.Client("tcp://address:8786") of a cluster; without one, Serial reads the blocks here'
        )
    return client


def submitted(client: Any, graph: dict[Hashable, Any], keys: Sequence[Hashable], reading: int) -> list[Any]:
    """Return a future for each of some keys of a graph; tasks that fail are tried again.

    The warning about a large graph is left out: it asks to scatter data, which are lost with the worker that has them.

    Raises
    ------
    DataLostError
        If the client has lost its scheduler, after so many readings.
    """
    if client.status != "running":
        raise _lost(reading)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        return [*client.get(graph, [*keys], sync=False, retries=_RETRIES)]


def results(
    client: Any,
    futures: Sequence[Any],
    blocks_of: Callable[[str], str],
    reading: int,
    refuse: Callable[[KeyError, str], None],
) -> list[Any]:
    """Return the results of some futures, and release them, also if this fails or is interrupted.

    Parameters
    ----------
    client : distributed.Client
        Theirs.
    futures : sequence of Future
        All results are fetched.
    blocks_of : callable
        Says in words which blocks the task with a key, as text, reads.
    reading : int
        How many readings were completed, for messages.
    refuse : callable
        Called with a `KeyError` that a task raised, and which blocks it reads, to raise an error that says more.

    Raises
    ------
    HardThreshError
        If a task killed worker after worker.
    DataLostError
        If there have been no workers, or no scheduler, for ``distributed.comm.timeouts.connect``.
    Exception
        What a task raised.
    """
    from distributed import CancelledError, KilledWorker

    try:
        _wait(client, futures, reading)
        return [future.result() for future in futures]
    except KilledWorker as error:
        raise HardThreshError(
            f"{blocks_of(str(error.task))} killed {plural(error.allowed_failures + 1, 'worker')}, most likely for "
            "memory: use smaller chunks, or workers with more memory"
        ) from error
    except CancelledError as error:
        raise _lost(reading) from error
    except KeyError as error:
        refuse(error, blocks_of(_blamed(client, futures)))
        raise
    finally:
        release(futures)


def _blamed(client: Any, futures: Sequence[Any]) -> str:
    """Return the key of the task because of which futures have failed, as text."""
    failed = [future.key for future in futures if future.status == "error"]
    key = client.sync(client.scheduler.get_error_cause, keys=failed)
    return str(tuple(key) if isinstance(key, list) else key)  # in what is sent, tuples are lists


def _wait(client: Any, futures: Sequence[Any], reading: int) -> None:
    """Wait until all futures have ended; not indefinitely, if there are no workers."""
    from distributed import TimeoutError as StillRunning
    from distributed import wait

    limit = patience()
    seen = monotonic()
    while True:
        try:
            with client.as_current():  # else the futures are waited for by the client that was made last
                wait(futures, timeout=_PATIENCE)
            return
        except StillRunning:
            if _has_workers(client):
                seen = monotonic()
            elif monotonic() - seen > limit:
                raise _lost(reading) from None


def _has_workers(client: Any) -> bool:
    try:
        return client.status == "running" and bool(client.nthreads())
    except OSError:  # the scheduler does not answer
        return False


def _lost(reading: int) -> DataLostError:
    return DataLostError(
        f"the Dask cluster is gone after reading {reading}: the state so far is in error.state; pass it as state= to "
        "hardthresh.minimize, with an engine on a new cluster, to go on"
    )


def report_leaf(reading: str, first: int, nbytes: int) -> None:
    """Tell the client, from a worker, that a leaf of a reading is done: its first block, and the bytes of its rows."""
    from distributed import get_worker

    get_worker().log_event(_LEAVES, (reading, first, nbytes))


@contextmanager
def reported_leaves(
    client: Any, count: Callable[[int], None], number: int
) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Count the leaves of a reading as workers report them; yields the name of the reading, and what ends the count.

    Parameters
    ----------
    client : distributed.Client
        Of the workers.
    count : callable
        Called once for each leaf with its bytes, in the thread of the client.
    number : int
        How many leaves there are.

    Yields
    ------
    str
        For `report_leaf`.
    callable
        Called with the bytes of the whole reading when it has ended: counts the leaves that were not heard of yet.
    """
    reading, heard, lock = uuid4().hex, dict[int, int](), Lock()

    def hear(first: int, nbytes: int) -> None:
        with lock:
            if first not in heard and len(heard) < number:  # some leaves are computed twice
                heard[first] = nbytes
                count(nbytes)

    def end(nbytes: int) -> None:
        with lock:
            rest = nbytes - sum(heard.values())
            for _ in range(len(heard), number):
                count(rest)
                rest = 0
            heard.update((-place, 0) for place in range(1, number + 1))  # what comes later is not counted

    with _REGISTERED:
        counted = _READINGS.setdefault(client, {})
        if not counted:
            client.subscribe_topic(_LEAVES, partial(_dispatch, counted))
        counted[reading] = hear
    try:
        yield reading, end
    finally:
        with _REGISTERED:
            del counted[reading]
            if not counted and client.status == "running":
                client.unsubscribe_topic(_LEAVES)


def _dispatch(counted: dict[str, Callable[[int, int], None]], event: Any) -> None:
    """Tell the reading of a leaf that it is done; those that have ended hear nothing."""
    reading, first, nbytes = event[1]
    hear = counted.get(reading)
    if hear is not None:
        hear(first, nbytes)


def release(futures: Sequence[Any]) -> None:
    """Stop computing some futures, and free the memory of those that are there.

    Nobody else wants them, so that the scheduler forgets what they alone depend on. `Client.cancel` does the same, but
    ends the connection (2026.8) if a worker was lost in the same moment.
    """
    for future in futures:
        future.release()


def kernel_name() -> str:
    """Return the kind of processor that the BLAS libraries of this process compute for, such as SkylakeX."""
    found = [library.info() for library in blas_libraries()]
    return "/".join(sorted({one.get("architecture") or f"{one['internal_api']} {one['version']}" for one in found}))
