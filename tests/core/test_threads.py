"""BLAS on one thread while the library works, and pieces on as many threads as it had."""

import contextlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from threading import Barrier, Event, current_thread

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.arrays import all_finite, gram_product, pieces, product
from hardthresh.constraints import Sparsity
from hardthresh.core import threads
from hardthresh.core.threads import in_pieces, serial_blas, thread_count
from hardthresh.designs import as_design
from hardthresh.objectives import LinearModel
from levels import only_at
from patience import PATIENCE


def blas_threads():
    return [library.get_num_threads() for library in threads.blas_libraries()]


@pytest.fixture(autouse=True)
def three_threads():
    """BLAS with three threads, whatever the environment says."""
    before = blas_threads()
    for library in threads.blas_libraries():
        threads._limit(library, 3)
    yield
    for library, number in zip(threads.blas_libraries(), before, strict=True):
        threads._limit(library, number)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "_PIECE", 1e-9)


def test_the_limit_ends_where_the_context_does():
    assert set(blas_threads()) == {3}
    with serial_blas():
        assert set(blas_threads()) == {1}
        with pytest.raises(ZeroDivisionError), serial_blas():
            raise ZeroDivisionError
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


def test_the_limit_ends_when_the_last_of_several_threads_leaves():
    inside, leave = Barrier(3), Event()

    def work(last):
        with serial_blas():
            inside.wait(PATIENCE)
            if last:
                leave.wait(PATIENCE)
                assert set(blas_threads()) == {1}

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(work, last) for last in (False, True)]
        with serial_blas():
            inside.wait(PATIENCE)
        runs[0].result(PATIENCE)
        assert set(blas_threads()) == {1}
        leave.set()
        runs[1].result(PATIENCE)
    assert set(blas_threads()) == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # by JAX, which other tests may have started
def test_a_forked_child_is_not_limited_by_what_its_parent_was_doing():
    with serial_blas(), get_context("fork").Pool(1) as pool:
        assert pool.apply(blas_threads) == [3] * len(blas_threads())
        assert pool.apply(sum_in_pieces) == 45


def sum_in_pieces():
    return sum(in_pieces(lambda i: i, range(10)))


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # by JAX, which other tests may have started
def test_a_child_forked_while_another_thread_leaves_is_not_limited(monkeypatch):
    """The lock is held, and the threads are not restored yet, when the process forks."""
    limit, forked = threads._limit, []

    def slow(library, number):
        if number == 3 and not forked:
            forked.append(True)
            with get_context("fork").Pool(1) as pool:
                assert pool.apply(blas_threads) == [3] * len(blas_threads())
        limit(library, number)

    monkeypatch.setattr(threads, "_limit", slow)
    with serial_blas():
        pass
    assert forked


@pytest.mark.parametrize("at", range(4))
def test_what_an_interrupt_leaves_behind_is_restored_by_the_next_exit(at, monkeypatch):
    limit, calls = threads._limit, []

    def interrupted(library, number):
        calls.append(number)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        limit(library, number)

    monkeypatch.setattr(threads, "_limit", interrupted)
    with pytest.raises(KeyboardInterrupt), serial_blas():
        pass
    with serial_blas():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


def test_signals_at_any_time_do_not_leave_blas_on_one_thread():
    def handler(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for delay in np.linspace(1e-5, 3e-4, 300):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, delay)
                while True:
                    with serial_blas():
                        pass
        with serial_blas():
            assert set(blas_threads()) == {1}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(blas_threads()) == {3}


AFTER_MAIN = """
import threading, time
import numpy as np
from hardthresh.core import threads
threads._processors = lambda: 2
def work():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    print(sum(threads.in_pieces(lambda i: i, range(10))))
threads.in_pieces(lambda i: i, range(10))
threading.Thread(target=work).start()
"""


@only_at("pairs")
def test_pieces_are_worked_on_after_the_main_thread_has_ended():
    run = subprocess.run([sys.executable, "-c", AFTER_MAIN], capture_output=True, text=True)
    assert run.stdout == "45\n", run.stderr


def test_blas_has_one_thread_while_a_solver_runs():
    X = np.random.default_rng(0).standard_normal((20, 5))
    f, seen = LinearModel(X, X[:, 0]), []
    ht.minimize(f, Sparsity(1), callback=lambda state: seen.extend(blas_threads()))
    assert set(seen) == {1}
    for _, _ in zip(ht.iterate(f, Sparsity(1)), range(3), strict=False):
        assert set(blas_threads()) == {3}  # the caller's own work between two iterations


def test_blas_has_one_thread_while_an_estimator_is_fitted(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "hardthresh.estimators.linear.choosing.build_problem",
        lambda *args, build=ht.estimators.linear.choosing.build_problem, **named: (
            seen.extend(blas_threads()) or build(*args, **named)
        ),
    )
    X = np.random.default_rng(0).standard_normal((20, 5))
    ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, X[:, 0])
    assert set(seen) == {1}
    assert set(blas_threads()) == {3}


def test_threads_are_counted_as_blas_has_them_outside(monkeypatch):
    monkeypatch.setattr(threads, "_processors", lambda: 8)
    assert thread_count() == 3
    with serial_blas():
        assert thread_count() == 3
    monkeypatch.setattr(threads, "_processors", lambda: 2)
    assert thread_count() == 2


def test_pieces_come_in_their_order_from_several_threads(monkeypatch):
    monkeypatch.setattr(threads, "_processors", lambda: 8)
    meet = Barrier(3)

    def work(i):
        if i < 3:
            meet.wait(PATIENCE)  # so no thread does two of these
        return i, current_thread().name

    found = in_pieces(work, range(20))
    assert [i for i, _ in found] == list(range(20))
    assert len({name for _, name in found[:3]}) == 3


def test_an_error_in_a_piece_is_raised_and_ends_the_work(monkeypatch):
    monkeypatch.setattr(threads, "_processors", lambda: 8)
    meet, done = Barrier(3), []

    def work(i):
        if i < 3:
            meet.wait(PATIENCE)
        if current_thread().name.startswith("hardthresh"):
            raise OverflowError(i)
        done.append(i)

    with pytest.raises(OverflowError):
        in_pieces(work, range(100))
    assert set(blas_threads()) == {3}


def test_pieces_ignore_the_floating_point_errors_that_their_caller_ignores(monkeypatch, recwarn):
    monkeypatch.setattr(threads, "_processors", lambda: 8)
    with np.errstate(over="ignore"):
        in_pieces(lambda i: np.full(1000, 1e200) * 1e200, range(50))
    assert not recwarn.list


SHAPES = [(400, 30), (30, 400), (64, 64), (200, 1), (1, 200)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "neither"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_in_pieces_do_not_depend_on_the_number_of_threads(shape, order, dtype, small_pieces, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal(shape).astype(dtype), order=order if order in "CF" else "C")
    X = np.repeat(X, 2, axis=1)[:, ::2] if order == "neither" else X
    tol = 1e-4 if dtype == np.float32 else 1e-12
    right, wide = (rng.standard_normal(size).astype(dtype) for size in (shape[1], (shape[1], 7)))
    left, high = (rng.standard_normal(size).astype(dtype) for size in (shape[0], (shape[0], 7)))
    weights = np.full(shape[0], 1 / shape[0])
    found = []
    for number in (1, 2, 4):
        monkeypatch.setattr(threads, "thread_count", lambda number=number: number)
        found.append(
            [
                product(X, right), product(X, wide), product(X.T, left), product(X.T, high), gram_product(X),
                *as_design(X).moments(weights), as_design(X).pullback_squares(left),
            ]
        )  # fmt: skip
        assert all_finite(X)
    expected = [X @ right, X @ wide, X.T @ left, X.T @ high, X.T @ X, X.mean(0), X.std(0), X.T**2 @ left]
    for got, want in zip(found[0], expected, strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol * np.sqrt(X.size))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("place", [(0, 0), (-1, -1)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_found_in_every_piece(place, bad, small_pieces):
    X = np.ones((50, 40))
    assert all_finite(X)
    X[place] = bad
    assert not all_finite(X)


FITS = """
import numpy as np, hardthresh as ht
from hardthresh.core import threads
threads._processors = lambda: 4
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 3000)); y = X[:, :5].sum(1) + rng.standard_normal(1500)
models = [
    ht.SparseLinearRegression(n_nonzero_coefs=5).fit(X, y),
    ht.SparseLogisticRegression(n_nonzero_coefs=5).fit(X, y > 0),
    ht.SparseLinearRegressionCV(n_nonzero_coefs=range(8), cv=3).fit(X[:, :300], y),
    ht.LowRankRegression(rank=2).fit(X[:, :200], X[:, 200:210]),
    ht.SparseGaussianGraphicalModel(n_edges=20).fit(X[:, :40]),
]
fitted = lambda m: getattr(m, "precision_", None) if hasattr(m, "precision_") else m.coef_
print("".join(fitted(model).tobytes().hex() for model in models))
"""


@only_at("pairs")
def test_fits_have_the_same_bits_with_any_number_of_threads():
    found = set()
    for number in "124":
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), number)
        run = subprocess.run([sys.executable, "-c", FITS], env=os.environ | one, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        found.add(run.stdout)
    assert len(found) == 1


def test_pieces_are_complete_where_no_more_threads_can_be_started(monkeypatch):
    """A pool keeps the work that it has no thread for, and one of its threads may take it: it is waited for."""
    begun, go_on = Event(), Event()

    class Full(ThreadPoolExecutor):
        def submit(self, *call):
            super().submit(*call)
            raise RuntimeError("can't start new thread")

    def work(number):
        if current_thread() is not caller:
            begun.set()
            go_on.wait(PATIENCE)
        else:
            begun.wait(PATIENCE)
            go_on.set()
        return number

    caller = current_thread()
    with Full(1) as pool:
        monkeypatch.setattr(threads._process, "pool", pool)
        assert in_pieces(work, range(8)) == list(range(8))


SPARING = """
import resource
from pathlib import Path
from threading import Barrier, Thread
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from hardthresh.core.memory import spare_address_space
if {spared}:
    spare_address_space()
before = int(Path("/proc/self/statm").read_text().split()[0])
def allocate():
    data = bytearray(100_000)
    barrier.wait()
    barrier.wait()
barrier = Barrier(9)
threads = [Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
barrier.wait()
print(int(Path("/proc/self/statm").read_text().split()[0]) - before)
barrier.wait()
"""


@only_at("pairs")
def test_threads_share_a_pool_of_memory_where_the_address_space_is_limited():
    """The GNU C library reserves 64 MiB for each thread, besides its stack."""
    skip_other_c_libraries()
    taken = {
        spared: int(subprocess.run([sys.executable, "-c", SPARING.format(spared=spared)], **CAPTURED).stdout)
        for spared in (True, False)
    }
    assert (taken[False] - taken[True]) * os.sysconf("SC_PAGE_SIZE") >= 7 * (64 << 20)


RETURNING = """
import resource
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from hardthresh.core.memory import return_free_memory
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
data = [bytearray(100_000) for _ in range(1000)]
del data[:-1]
before = pages()
if {returned}:
    return_free_memory()
print(before - pages())
"""


@only_at("pairs")
def test_free_memory_below_data_is_returned_where_the_address_space_is_limited():
    """The GNU C library keeps it, up to the last data that are alive."""
    skip_other_c_libraries()
    returned, kept = (
        int(subprocess.run([sys.executable, "-c", RETURNING.format(returned=each)], **CAPTURED).stdout)
        for each in (True, False)
    )
    assert returned * os.sysconf("SC_PAGE_SIZE") >= 90_000_000
    assert kept == 0


def skip_other_c_libraries():
    if not hasattr(os, "confstr") or "glibc" not in str(os.confstr("CS_GNU_LIBC_VERSION")):
        pytest.skip("this is not the GNU C library")


CAPTURED = {"capture_output": True, "text": True, "check": True}
