"""Tables of Dask, and the engine on a cluster: the same bits as in one process, and what is said when something fails.

Checks 4, 6, 7 and 15 of scale.md.
"""

import gc
import os
import pickle
import signal
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from hardthresh import (
    SparseHuberRegression,
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseQuantileRegression,
    StabilitySelection,
    minimize,
)
from hardthresh.constraints import Sparsity
from hardthresh.core import CapabilityError, HardThreshError, InvalidInputError, MissingDependencyError
from hardthresh.core.errors import DataLostError
from hardthresh.designs import (
    DaskEngine,
    Serial,
    engine_of,
    from_arrays,
    from_dask,
    from_file,
    from_npz_shards,
    logged_readings,
)
from hardthresh.designs import dask as dask_engine
from hardthresh.designs.blocks import BlockAround, as_rows
from hardthresh.designs.cluster import kernel_name
from hardthresh.designs.engine import FOLD, NUMBER
from hardthresh.designs.scratch import KeptRows
from hardthresh.objectives import blocked_model
from hardthresh.solvers import IHT
from levels import at, at_most, in_turn, only_at, turn
from patience import PATIENCE

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'hardthresh[dask]'")
da = pytest.importorskip("dask.array")

N, D, CHUNK = 1200, 12, 60
pytestmark = pytest.mark.filterwarnings(  # killed workers leave sockets
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)
POINT = np.linspace(-1, 1, D)


def table(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((N, D)).astype(dtype), rng.standard_normal(N), rng.random(N), rng.standard_normal(N)


def products(X, y, weight, offset, point):
    residual = weight * (X @ point.astype(X.dtype) + offset - y)
    return np.array([residual @ residual]), (residual.astype(X.dtype) @ X).astype(np.float64)


def gram(X, y, weight, offset):
    return ((X.T @ X).astype(np.float64),)


def first_columns(X, y, weight, offset, m):
    return X[:, :m], y, weight, offset


def both(X, y, weight, offset, point, m):
    return products(X, y, weight, offset, point), first_columns(X, y, weight, offset, m)


def bits(sums):
    return [part.tobytes() for part in sums]


def run_everything(engine, seen=lambda: None):
    """The bits of every kind of sweep over the table, and over what was kept."""
    found = [bits(engine.sweep(products, POINT)), bits(engine.sweep(gram, columns=np.array([1, 5, 7])))]
    seen()
    with engine.keep(first_columns, 5) as kept:
        found.append(bits(engine.sweep(products, POINT[:5], on=kept)))
    sums, kept = engine.both(both, POINT, 7)
    seen()
    with kept:
        found += [bits(sums), bits(engine.sweep(gram, on=kept))]
    rows = engine.rows([0, (3, np.array([1, 4]))])
    return [*found, bits([rows.X, rows.y, rows.weight, rows.offset])]


# ----------------------------------------------------------------------------------------------- tables, in one process


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bool])
def test_an_array_of_dask_is_the_array_in_blocks(dtype):
    X, y, weight, offset = table()
    X = (10 * X).astype(dtype)
    ours = from_dask(da.from_array(X, chunks=(CHUNK, D)), da.from_array(y, chunks=700), weight, offset)
    theirs = from_arrays(X, y, weight, offset, rows=CHUNK)
    assert (ours.shape, ours.dtype, len(ours)) == (theirs.shape, theirs.dtype, len(theirs))
    assert run_everything(Serial(ours)) == run_everything(Serial(theirs))


def unknown(x):
    """An array of Dask that does not know how long its chunks are."""
    keep = da.from_array(np.arange(x.shape[0]) % 5 > 0, chunks=x.chunks[0])
    return x[keep]


@pytest.mark.parametrize("where", ["dask", "memory"])
def test_unknown_chunk_sizes_are_welcome(where):
    X, y, weight, offset = table()
    lazy = [unknown(da.from_array(x, chunks=(CHUNK, *x.shape[1:]))) for x in (X, y, weight, offset)]
    kept = np.arange(N) % 5 > 0
    rest = lazy[1:] if where == "dask" else [x[kept] for x in (y, weight, offset)]
    ours = from_dask(lazy[0], *rest)
    assert (ours.n_rows is None) == (where == "dask")
    rows = CHUNK * 4 // 5
    theirs = from_arrays(X[kept], y[kept], weight[kept], offset[kept], rows=rows)
    assert run_everything(Serial(ours)) == run_everything(Serial(theirs))


def test_empty_chunks_add_nothing():
    X = table()[0]
    lazy = da.from_array(X, chunks=(CHUNK, D))
    some = from_dask(lazy[da.from_array(np.arange(N) >= 8 * CHUNK, chunks=CHUNK)])  # the first eight are empty
    assert len(some) == N // CHUNK
    theirs = from_arrays(X[8 * CHUNK :], rows=CHUNK)
    assert bits(Serial(some).sweep(gram)) == bits(Serial(theirs).sweep(gram))
    with pytest.raises(InvalidInputError, match="X has no rows"):
        Serial(from_dask(lazy[:0])).sweep(gram)


def shares(X, y, weight, offset, fold):
    return (np.array([X[fold == number].sum(dtype=np.float64) for number in range(3)]),)


@dataclass(frozen=True, eq=False)
class Doubled(BlockAround):
    """A block with other targets, as estimators make them of labels."""

    def load(self):
        rows = as_rows(self.block.load())
        return replace(rows, y=2 * rows.y)


def doubled(engine):
    return engine.on_blocks(replace(engine.blocks, blocks=tuple(Doubled(block) for block in engine.blocks)))


def test_a_column_of_folds_comes_with_the_rows():
    X, fold = table()[0], np.arange(N) % 3
    blocks = from_dask(da.from_array(X, chunks=(CHUNK, D)), fold=da.from_array(fold, chunks=100))
    theirs = from_arrays(X, fold=fold, rows=CHUNK)
    assert bits(Serial(blocks).sweep(shares, FOLD)) == bits(Serial(theirs).sweep(shares, FOLD))


def test_several_outputs_and_sparse_chunks():
    X, y, _, _ = table()
    lazy = da.from_array(X, chunks=(CHUNK, D)).map_blocks(lambda part: sp.csr_array(part))
    both_of = np.column_stack([y, -y])
    ours = from_dask(lazy, da.from_array(both_of, chunks=(CHUNK, 1)))
    data = ours.read(3)
    assert sp.issparse(data.X)
    assert ours.largest == 0  # nobody knows
    assert_array_equal(data.X.toarray(), X[3 * CHUNK : 4 * CHUNK])
    assert_array_equal(data.y, both_of[3 * CHUNK : 4 * CHUNK])


WRONG = {
    "column chunks": (lambda x: x.rechunk((CHUNK, 4)), None, r"X is cut into 3 column chunks.*X.rechunk\(\{1: -1\}\)"),
    "one dimension": (
        lambda x: x[:, 0],
        None,
        "must be a Dask array of 2 dimensions or a data frame of Dask, got Array of 1",
    ),
    "delayed": (
        lambda x: dask.delayed(x),
        None,
        "got Delayed; of delayed objects dask.array.from_delayed makes an array",
    ),
    "complex": (lambda x: x.astype(complex), None, "X must be numeric, got dtype 'complex128'"),
    "in memory": (lambda x: np.eye(3), None, "X must be a Dask array or data frame, got ndarray"),
    "short y": (lambda x: x, lambda: np.zeros(10), r"X has 1,200 rows, y has shape \(10,\): one entry for each row"),
    "short lazy y": (
        lambda x: x,
        lambda: da.zeros(10),
        r"X has 1,200 rows, y has shape \(10,\): one entry for each row",
    ),
    "scalar y": (lambda x: x, lambda: 3.0, r"y has shape \(\)"),
    "chunks of unknown lengths": (
        lambda x: x,
        lambda: unknown(da.zeros(N, chunks=300)),
        r"X has 20 chunks of rows and y has 4, not all of known lengths; .*compute_chunk_sizes\(\)",
    ),
}


@pytest.mark.parametrize(("make_X", "make_y", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_blocks_is_refused(make_X, make_y, message):
    X = make_X(da.zeros((N, D), chunks=(CHUNK, D)))
    with pytest.raises(InvalidInputError, match=message):
        from_dask(X, None if make_y is None else make_y())


def test_chunks_of_other_lengths_are_found_when_they_are_read():
    """A row of section 9: y of another length in a block."""
    X = unknown(da.zeros((N, D), chunks=(100, D)))
    y = da.zeros(N, chunks=100)
    y = y[da.from_array(np.arange(N) % 2 == 0, chunks=100)]
    with pytest.raises(InvalidInputError, match="block 0 has 80 rows of X and 50 of y; rechunk y to the chunks of X"):
        Serial(from_dask(X, y)).sweep(gram)


def frame(**columns):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    return dd.from_pandas(pd.DataFrame(columns), npartitions=3, sort=False)


def test_a_data_frame_keeps_its_names_and_its_types_become_one():
    pd = pytest.importorskip("pandas")
    single = np.arange(10, dtype=np.float32)
    X = frame(a=single, b=-single)
    ours = from_dask(X, frame(y=single)["y"])
    assert (ours.feature_names, ours.dtype, ours.n_rows) == (("a", "b"), np.float32, None)
    rows = Serial(ours).rows(range(len(ours)))
    assert_array_equal(rows.X, np.column_stack([single, -single]))
    assert_array_equal(rows.y, single)
    assert_array_equal(
        Serial(from_dask(X.to_dask_array(), frame(y=single)["y"].to_dask_array())).rows(range(3)).y, single
    )
    mixed = from_dask(frame(a=single, n=pd.array([1, 2, None] * 3 + [4], dtype="Int64"), t=single > 3))
    assert mixed.dtype == np.float64
    assert_array_equal(np.isnan(Serial(mixed).rows(range(3)).X).sum(axis=0), [0, 3, 0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of twelve small files, of which Dask reads several at once where few columns are wanted."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'hardthresh[parquet]'")
    path, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(5)
    for part in range(12):
        rows = pd.DataFrame(rng.standard_normal((40 + part, 8)), columns=[f"c{j}" for j in range(8)])
        rows["price"] = rows["c1"] - 2 * rows["c4"] + 0.1 * rng.standard_normal(len(rows))
        rows.assign(area=rng.uniform(1, 2, len(rows))).to_parquet(path / f"{part:02}.parquet")
    return path


PARTS = {
    "as in the guide": lambda X, y, area, again: (X, y, area),
    "persisted target": lambda X, y, area, again: (X, y.persist(), area),
    "arrays in memory": lambda X, y, area, again: (X, y.compute().to_numpy(), area.compute().to_numpy()),
    "one array in memory": lambda X, y, area, again: (X, y, area.compute().to_numpy()),
    "read twice": lambda X, y, area, again: (X, again["price"], again["area"]),
    "X an array": lambda X, y, area, again: (X.to_dask_array(), y, area),
    "few columns": lambda X, y, area, again: (X[["c1", "c4"]], y, area),
}


@at_most(1)
@in_turn("name,table,on", [*PARTS], ["files", "persisted"], ["here", "cluster"])
def test_columns_of_many_small_files_stay_together(folder, name, table, on, request):
    """The recipe of the guide: Dask reads a different number of files at once for X than for y, and for weights."""
    if on == "cluster":
        request.getfixturevalue("client")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    persisted, parts = table == "persisted", PARTS[name]
    table, again = dd.read_parquet(folder), dd.read_parquet(folder)
    here = table.compute()
    table = table.persist() if persisted else table
    given = parts(table.drop(columns=["price", "area"]), table["price"], table["area"], again)
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(given[0], given[1], sample_weight=given[2])
    if name == "as in the guide":
        assert from_dask(*given).n_rows is None  # nothing is read to find where X and y are cut
    names = ["c1", "c4"]
    expected = SparseLinearRegression(n_nonzero_coefs=2).fit(here[names], here["price"], sample_weight=here["area"])
    assert_allclose(model.coef_[model.support_], expected.coef_, rtol=1e-9)


def test_what_persist_loses_is_said(folder):
    """Dask 2026.8 keeps some partitions of such a frame and names all, so that it cannot compute it either."""
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    table = dd.read_parquet(folder)
    X = table.drop(columns=["price", "area"]).persist()
    if {*X.__dask_keys__()} <= dict(X.__dask_graph__()).keys():
        pytest.skip("this version of Dask persists all partitions")
    with pytest.raises(InvalidInputError, match=r"names more partitions than it has.*table = table\.persist"):
        from_dask(X, table["price"])


@pytest.mark.parametrize("values", [list("abcabcabca"), np.arange(10).astype("M8[D]")], ids=["text", "dates"])
def test_columns_that_are_no_numbers_are_refused_by_name(values):
    with pytest.raises(InvalidInputError, match=r"column 'city' of X is of type .*, and only numbers.*: encode it"):
        from_dask(frame(a=np.arange(10.0), city=values))


UNLIKE = {
    "renamed": (lambda part: part.rename(columns={"b": "z"}), "block 1 has no column 'b', which the data frame should"),
    "without y": (lambda part: part.drop(columns="y"), "block 1 has no column 'y', which the data frame should have"),
    "one more": (lambda part: part.assign(more=1.0), "block 1 has the column 'more', .*: all .* need the same columns"),
    "texts": (lambda part: part.assign(b="wet"), "column 'b' of X is of type .* in block 1, .*: encode it"),
    "digits": (lambda part: part.assign(b="3"), "column 'b' of X is of type .* in block 1"),
    "dates": (lambda part: part.assign(b=np.datetime64("2026-01-01", "ns")), "column 'b' of X is of type datetime64"),
    "y of texts": (lambda part: part.assign(y="wet"), "^y is of type .* in block 1, and only numbers"),
}


def unlike(change, n_rows=60):
    """The partitions of a frame, of which the second is another than Dask is told."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    rng = np.random.default_rng(3)
    parts = [pd.DataFrame(rng.standard_normal((n_rows, 4)), columns=list("abcy")) for _ in range(3)]
    given = [parts[0], change(parts[1]), parts[2]]
    lazy = [dask.delayed(lambda part: part, pure=False)(part) for part in given]
    return dd.from_delayed(lazy, meta=parts[0].iloc[:0], verify_meta=False), parts


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message"), UNLIKE.values(), ids=UNLIKE)
@pytest.mark.parametrize("on", ["here", "cluster"])
def test_a_partition_of_other_columns_is_named(on, change, message, request):
    """Rows of section 9, as for the files of a Parquet folder; what pandas says names neither partition nor remedy."""
    if on == "cluster":
        request.getfixturevalue("client")
    table, _ = unlike(change)
    given = (table[["a", "b", "c"]], table["y"]) if "more" not in message else (table, None)
    engine = engine_of(from_dask(*given))
    with pytest.raises(InvalidInputError, match=message):
        engine.sweep(squares)


def squares(X, y, weight, offset):
    return (X.T @ X,)


@pytest.mark.parametrize(
    "change",
    [lambda part: part[["y", "c", "b", "a"]], lambda part: part.assign(b=part["b"].astype(object))],
    ids=["order", "objects"],
)
def test_partitions_are_matched_by_the_names_of_their_columns(change):
    table, parts = unlike(change)
    rows = Serial(from_dask(table)).rows([1])
    assert_array_equal(rows.X, parts[1].to_numpy())


def test_a_key_error_of_the_user_is_left_alone():
    """Only one that names a column of the table is about a column."""
    table, _ = unlike(lambda part: part)
    table = table.map_partitions(lambda part: {}["nowhere"], meta=table._meta)
    with pytest.raises(KeyError, match="nowhere"):
        Serial(from_dask(table)).rows([1])


def test_without_a_client_blocks_are_read_here(monkeypatch):
    X, y, weight, offset = table()
    blocks = from_dask(da.from_array(X, chunks=(CHUNK, D)), y, weight, offset)
    assert isinstance(engine_of(blocks), Serial)
    assert isinstance(engine_of(from_arrays(X)), Serial)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert isinstance(engine_of(blocks), Serial)
    with pytest.raises(MissingDependencyError, match=r"pip install .hardthresh\[dask\].; without one, Serial"):
        DaskEngine(blocks)


# ------------------------------------------------------------------------------------------------------------ a cluster


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine, with 400 MB each.

    They are forked from a process that has imported what they need, so that one that is killed is soon replaced. A
    worker that happens to be dead again when the cluster looks for it, 15 seconds after it was lost, would be given up
    for good: the cluster does not look within a test.
    """
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.comm.timeouts.connect": f"{PATIENCE}s",
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    with dask.config.set(settings):
        context = distributed.utils.get_mp_context()  # whose own list has all that Dask can use
        context.set_forkserver_preload(["distributed", "hardthresh.designs.worker", "hardthresh.objectives.readings"])
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=":0",
            processes=True,
            memory_limit="400MB",
            silence_logs=50,
        ) as found:
            yield found


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as found:
        found.wait_for_workers(2, timeout=PATIENCE)
        yield found


@pytest.fixture(autouse=True)
def kept_on_workers(monkeypatch):
    """Leave kept rows on the workers, however small they are."""
    monkeypatch.setattr(dask_engine, "_LARGEST_HERE", 0)


@pytest.fixture
def kept_here(monkeypatch, kept_on_workers):
    """Let small kept rows come to the client, as they do."""
    monkeypatch.setattr(dask_engine, "_LARGEST_HERE", 1 << 20)


def kill_another(cluster, killed):
    """Kill a worker that is none of some that were killed before, which the cluster may still count."""

    def others():
        return [worker.pid for worker in cluster.workers.values() if worker.pid not in (None, *killed)]

    until(others)
    killed.append(others()[-1])
    os.kill(killed[-1], signal.SIGKILL)


def blocks_of(kind, folder):
    """The table of `table` in blocks of 60 rows, as each kind of table gives it to workers."""
    X, y, weight, offset = table()
    if kind == "memory":
        return from_arrays(X, y, weight, offset, rows=CHUNK)
    if kind == "files":
        for first in range(0, N, CHUNK):
            rows = slice(first, first + CHUNK)
            parts = {"X": X[rows], "y": y[rows], "sample_weight": weight[rows], "offset": offset[rows]}
            np.savez(folder / f"{first:06}.npz", **parts)
        return from_npz_shards(folder)
    lazy = [da.from_array(x, chunks=(CHUNK, *x.shape[1:])) for x in (X, y, weight, offset)]
    if kind == "F order":
        lazy[0] = lazy[0].map_blocks(np.asfortranarray)
    if kind == "misaligned":
        lazy[0] = lazy[0].map_blocks(misaligned)
    if kind == "scattered":
        lazy[0] = lazy[0].map_blocks(scattered)
    if kind == "persisted":
        lazy = [x.persist() for x in lazy]
    if kind == "rechunked":
        lazy[0] = da.from_array(X, chunks=(333, 5)).rechunk((CHUNK, -1))
    return from_dask(lazy[0], y, *lazy[2:]) if kind == "y in memory" else from_dask(*lazy)


def misaligned(part):
    raw = bytearray(part.nbytes + 1)
    found = np.frombuffer(raw, dtype=part.dtype, count=part.size, offset=1).reshape(part.shape)
    found[...] = part
    assert not found.flags.aligned
    return found


def scattered(part):
    wide = np.zeros((part.shape[0], 2 * part.shape[1]), dtype=part.dtype)
    wide[:, ::2] = part
    return wide[:, ::2]


# ------------------------------------------------------------------------------------------------------- bits (check 4)

EXPECTED = {}


def expected():
    """The bits of one process, once."""
    if not EXPECTED:
        X, y, weight, offset = table()
        EXPECTED["serial"] = run_everything(Serial(from_arrays(X, y, weight, offset, rows=CHUNK)))
    return EXPECTED["serial"]


KINDS = ["lazy", "persisted", "files", "memory", "y in memory", "F order", "misaligned", "scattered", "rechunked"]


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", at("pairs", [8, 1]))
def test_estimated_parameters_on_a_cluster_have_the_bits_of_one_process(client, kept_here, leaf_size):
    """Check 4 of scale.md for the scale of the noise: quantiles and residuals of rows on workers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 30))
    y = X[:, 1] - X[:, 4] + rng.standard_t(2, size=900)
    model = SparseHuberRegression(n_nonzero_coefs=2)
    here = clone(model).fit(from_arrays(X, y, rows=75))
    lazy = (da.from_array(x, chunks=(75, *x.shape[1:])) for x in (X, y))
    there = clone(model).fit(DaskEngine(from_dask(*lazy), leaf_size=leaf_size))
    assert there.noise_scale_.hex() == here.noise_scale_.hex()
    assert there.coef_.tobytes() == here.coef_.tobytes()


@only_at("pairs")
@pytest.mark.parametrize("kind", turn(KINDS, "cluster"))
def test_a_cluster_has_the_bits_of_one_process(client, tmp_path, kind):
    engine = DaskEngine(blocks_of(kind, tmp_path))
    assert run_everything(engine) == expected()
    assert engine.readings == 4


FOLD_BITS = ("coef_", "grid_scores_", "selection_frequency_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("classes", "column"),
    [(False, False), *at("pairs", [(True, True), (False, True), (True, False)])],
    ids=lambda there: "yes" if there else "no",
)
def test_folds_on_a_cluster_have_the_bits_of_one_process(client, classes, column):
    """Check 4 of scale.md for cross-validation: drawn folds, and a column of folds, which kept rows have too."""
    rng = np.random.default_rng(0)
    X, fold = rng.standard_normal((900, 8)), rng.integers(3, size=900) if column else None
    u = X[:, 1] - X[:, 4] + rng.standard_normal(900)
    y = (u > 0).astype(float) if classes else u
    model = (SparseLogisticRegressionCV if classes else SparseLinearRegressionCV)(n_nonzero_coefs=[0, 1, 2, 3])
    here = clone(model).fit(from_arrays(X, y, fold=fold, rows=300))
    lazy = (da.from_array(x, chunks=(300, *x.shape[1:])) for x in (X, y))
    there = clone(model).fit(DaskEngine(from_dask(*lazy, fold=fold)))
    assert here.best_n_nonzero_coefs_ >= 2
    for name in FOLD_BITS:
        assert_array_equal(getattr(there, name), getattr(here, name))


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", at("pairs", [8, 1]))
@pytest.mark.parametrize("classes", [True, *at("pairs", [False])], ids=lambda there: "yes" if there else "no")
def test_halves_on_a_cluster_have_the_bits_of_one_process(client, classes, leaf_size):
    """Check 4 of scale.md for stability selection."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 300))
    u = X[:, 1] - X[:, 4] + rng.standard_normal(900)
    y = (u > 0).astype(float) if classes else u
    model = SparseLogisticRegression if classes else SparseLinearRegression
    selector = StabilitySelection(model(n_nonzero_coefs=4), n_pairs=4)
    here = clone(selector).fit(from_arrays(X, y, rows=75))
    lazy = (da.from_array(x, chunks=(75, *x.shape[1:])) for x in (X, y))
    there = clone(selector).fit(DaskEngine(from_dask(*lazy), leaf_size=leaf_size))
    assert_array_equal(there.inclusion_frequencies_, here.inclusion_frequencies_)
    assert np.count_nonzero(here.inclusion_frequencies_ % 1) > 0
    assert there.estimator_.coef_.tobytes() == here.estimator_.coef_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", at("pairs", [8, 1]))
def test_intervals_of_a_split_on_a_cluster_have_the_bits_of_one_process(client, leaf_size):
    """Check 4 of scale.md for ``inference(kind="split")``."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 12))
    y, weight = np.where(X[:, 1] - X[:, 4] + rng.logistic(size=900) > 0, "ill", "well"), rng.integers(0, 3, 900) * 1.0
    model = SparseLogisticRegression(n_nonzero_coefs=3, class_weight="balanced")
    here = model.inference(from_arrays(X, y, weight, rows=75), kind="split")
    lazy = (da.from_array(x, chunks=(75, *x.shape[1:])) for x in (X, y, weight))
    there = model.inference(DaskEngine(from_dask(*lazy), leaf_size=leaf_size), kind="split")
    assert repr(there.to_dict()) == repr(here.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("kind", at("pairs", ["lazy", "persisted", "files", "memory"]))
def test_blocks_may_be_changed_where_they_are(client, tmp_path, kind):
    X, y, weight, offset = table()
    theirs = run_everything(Serial(from_arrays(X, 2 * y, weight, offset, rows=CHUNK)))
    engine = DaskEngine(blocks_of(kind, tmp_path))
    engine.sweep(gram)
    assert run_everything(doubled(engine)) == theirs
    assert run_everything(engine) == expected()


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", at("pairs", [1, 8, 64]))
def test_leaves_of_any_size_have_the_same_bits(client, leaf_size):
    assert run_everything(DaskEngine(blocks_of("lazy", None), leaf_size=leaf_size)) == expected()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", at("pairs", [1, 4]))
def test_any_number_of_workers_has_the_same_bits(cluster, client, n_workers):
    cluster.scale(n_workers)
    try:
        client.wait_for_workers(n_workers, timeout=PATIENCE)
        assert run_everything(DaskEngine(blocks_of("lazy", None))) == expected()
    finally:
        cluster.scale(2)
        client.wait_for_workers(2, timeout=PATIENCE)


@only_at("pairs")
@pytest.mark.parametrize("kind", ["lazy", *at("pairs", ["F order", "misaligned"])])
def test_kept_rows_that_are_small_come_to_the_client(cluster, client, kept_here, kind):
    """They are sent once, and have the same bits there; sweeps over them have no tasks."""
    engine = DaskEngine(blocks_of(kind, None), leaf_size=8)
    assert run_everything(engine) == expected()
    with engine.keep(first_columns, 5) as kept:
        before = engine.tasks
        assert bits(engine.sweep(products, POINT[:5], on=kept)) == expected()[2]
        assert engine.tasks == before
        until(lambda: not any("hardthresh-kept" in str(key) for key in ours(cluster)))
    with pytest.raises(InvalidInputError, match="released"):
        engine.sweep(gram, on=kept)


@only_at("pairs")
def test_kept_rows_that_are_large_stay_on_the_workers(client, monkeypatch):
    engine, size = DaskEngine(blocks_of("lazy", None)), N * (5 * 4 + 3 * 8)
    for most, here in ((size - 1, False), (size, True)):
        monkeypatch.setattr(dask_engine, "_LARGEST_HERE", most)
        with engine.keep(first_columns, 5) as kept:
            assert isinstance(kept, KeptRows) == here


@pytest.mark.slow
def test_blocks_without_rows_are_kept_as_such(client, kept_here):
    X = table()[0]
    some = from_dask(da.from_array(X, chunks=(CHUNK, D))[da.from_array(np.arange(N) >= 8 * CHUNK, chunks=CHUNK)])
    found = []
    for engine in (DaskEngine(some), Serial(some)):
        with engine.keep(first_columns, 5) as kept:
            found.append(bits(engine.sweep(gram, on=kept)))
    assert found[0] == found[1]


def when_told(task, folder, *data):
    """Return what a task returns, after a test has seen that it is at work, and has let it go on."""
    Path(folder, "at work").touch()
    until(Path(folder, "go on").exists)
    return task(*data)


@only_at("pairs")
@pytest.mark.parametrize("kind", ["lazy", *at("pairs", ["persisted"])])
def test_a_killed_worker_changes_no_bit_and_is_not_mentioned(cluster, client, recwarn, kind):
    """A worker is killed in the second reading, and another one in the third: what they kept is made again."""
    engine = DaskEngine(blocks_of(kind, None))
    killed = []
    assert run_everything(engine, seen=partial(kill_another, cluster, killed)) == expected()
    assert len(set(killed)) == 2
    assert not recwarn


# ------------------------------------------------------------------------------------------------------ work and memory


def ours(cluster):
    """Keys on the scheduler that the engine has made."""
    return [key for key in cluster.scheduler.tasks if "hardthresh-" in str(key)]


@pytest.mark.slow
def test_a_reading_has_few_tasks(client):
    """Check 7: at most 1.2 for each leaf, and 16."""
    engine = DaskEngine(from_dask(da.zeros((128 * 4, 3), chunks=(4, 3))), leaf_size=8)
    engine.sweep(gram)
    assert engine.tasks == 1 + 16 + 2 + 1 <= 1.2 * 16 + 16


def halted(X, y, weight, offset, number, folder):
    """Return the sums of a block, of the last one after a test has let it go on."""
    if number == N // CHUNK - 1:
        until(Path(folder, "go on").exists)
    return (X.sum(axis=0, dtype=np.float64),)


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", [1, *at("pairs", [8])])
def test_a_reading_tells_of_each_leaf_that_is_done(client, tmp_path, leaf_size):
    """Before the others are: so the rate and the time that is left are known within a reading."""
    engine = DaskEngine(blocks_of("lazy", None), leaf_size=leaf_size)
    last = N // CHUNK % leaf_size or leaf_size
    with logged_readings() as log:

        def let_go():
            try:
                until(lambda: log.nbytes == (N - last * CHUNK) * D * 4)
            finally:
                Path(tmp_path, "go on").touch()

        thread = threading.Thread(target=let_go)
        thread.start()
        sums = engine.sweep(halted, NUMBER, str(tmp_path))
        thread.join()
        assert (log.readings, log.nbytes) == (1, N * D * 4)
        engine.sweep(gram, columns=np.array([1, 5, 7]))  # with what is not heard of before it ends
        assert (log.readings, log.nbytes) == (2, N * (D + 3) * 4)
    assert_array_equal(sums[0], table()[0].sum(axis=0, dtype=np.float64))


@pytest.mark.slow
def test_leaves_suit_the_workers():
    tiny = from_dask(da.zeros((6400, 3), chunks=(4, 3)))
    large = from_dask(da.zeros((6400 * 4096, 300), chunks=(4096, 300), dtype=np.float32))  # 5 MB each: 8 are too many
    files = from_arrays(np.zeros((6400, 3)), rows=4)
    assert [dask_engine._leaf_size(files, threads) for threads in (1, 2, 25, 50, 51, 400, 0)] == [
        64,
        64,
        8,
        8,
        1,
        1,
        64,
    ]
    sparse = from_dask(da.zeros((6400, 3), chunks=(4, 3)).map_blocks(sp.csr_array))  # of unknown size
    assert [dask_engine._leaf_size(blocks, 2) for blocks in (tiny, large, sparse)] == [64, 1, 1]
    assert sparse.rows_in(1000, 400) == 10  # once a reading has found chunks of 4 rows and 400 bytes


@pytest.mark.slow
def test_nothing_is_left_on_the_workers(cluster, client):
    engine = DaskEngine(blocks_of("y in memory", None))
    with engine.keep(first_columns, 5) as kept:
        engine.sweep(gram, on=kept)
        client.run(lambda: None)
        assert any("hardthresh-kept" in str(key) for key in ours(cluster))
    with pytest.raises(ZeroDivisionError):
        engine.both(fails)
    del engine, kept
    until(lambda: gc.collect() >= 0 and not ours(cluster))  # the traceback is a cycle that has the engine


@only_at("pairs")
def test_an_interrupt_leaves_nothing_on_the_workers(cluster, client, tmp_path):
    """Section 9: Ctrl-C in the middle of a reading."""
    engine = DaskEngine(blocks_of("lazy", None), leaf_size=1)

    def interrupt():
        until(Path(tmp_path, "at work").exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a run in the background has not
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.both(partial(when_told, both, str(tmp_path)), POINT, 5)
    finally:
        signal.signal(signal.SIGINT, usual)
        Path(tmp_path, "go on").touch()
        thread.join()
    until(lambda: gc.collect() >= 0 and not any("hardthresh-leaf" in str(key) for key in ours(cluster)))
    assert bits(engine.sweep(products, POINT)) == expected()[0]
    assert engine.readings == 1


def fails(X, y, weight, offset):
    raise ZeroDivisionError


def until(done):
    """Wait for what others do in their own time."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


class Counted(np.ndarray):
    """An array that counts its bytes in the process where it arrives."""

    arrived = 0

    def __reduce__(self):
        return arrive, leave(self)


def leave(array):
    return {"shape": array.shape}, [array.tobytes()]


def arrive(header, frames):
    array = np.frombuffer(b"".join(frames)).reshape(header["shape"])
    Counted.arrived += array.nbytes
    return array.view(Counted)


try:
    from distributed.protocol import register_serialization

    register_serialization(Counted, leave, arrive)
except ImportError:
    """The tests that need it skip."""


@only_at("pairs")
def test_x_never_reaches_the_client(client):
    """Check 6: but the rows that are asked for."""
    X = da.ones((N, D), chunks=(CHUNK, D)).map_blocks(lambda part: part.view(Counted))
    engine = DaskEngine(from_dask(X, np.ones(N), np.ones(N), np.ones(N)), leaf_size=1)
    Counted.arrived = 0
    engine.sweep(products, POINT)
    with engine.keep(first_columns, 5) as kept:
        engine.sweep(gram, on=kept)
    assert Counted.arrived == 0
    engine.rows([4])
    assert Counted.arrived == CHUNK * D * 8


def drawn(block_id):
    """A chunk of 300 columns that is made where it is wanted."""
    rng = np.random.default_rng(block_id[0])
    X = rng.standard_normal((500, 300), dtype=np.float32)
    return np.concatenate([X[:, [3, 50]].sum(axis=1)[:, None] + rng.standard_normal((500, 1)), X], axis=1)


@only_at("pairs")
def test_memory_of_the_client_does_not_grow_with_the_rows(client):
    """Check 6 of scale.md: least squares, whose sums and pilot are all that comes."""
    peaks = []
    for n_chunks in (8, 8, 16):  # the first one imports
        whole = da.map_blocks(drawn, dtype=np.float64, chunks=((500,) * n_chunks, (301,)))
        tracemalloc.start()
        model = clone(FITS["squared"]).fit(whole[:, 1:], whole[:, 0])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert {3, 50} <= {*model.support_.tolist()}
    assert peaks[2] <= 1.1 * peaks[1]


# -------------------------------------------------------------------------------------------------- failures (check 15)


def kills(X, y, weight, offset, number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return (X.sum(axis=0, dtype=np.float64),)


@pytest.fixture
def impatient(cluster, monkeypatch):
    """The cluster, giving a task up after two lost workers instead of four.

    Workers get no task before they have time for it: it would be blamed for the end of a worker too.
    """
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 1)
    monkeypatch.setattr(cluster.scheduler, "WORKER_SATURATION", 1.0)


@only_at("pairs")
def test_a_block_that_kills_its_workers_is_named(impatient, client):
    engine = DaskEngine(from_arrays(np.ones((90, 100)), rows=10), leaf_size=1)
    message = r"block 3 \(0 MB\) killed 2 workers, most likely for memory: use smaller chunks, or workers with more"
    with pytest.raises(HardThreshError, match=message) as raised:
        engine.sweep(kills, NUMBER)
    assert type(raised.value.__cause__).__name__ == "KilledWorker"
    client.wait_for_workers(2, timeout=PATIENCE)
    assert engine.sweep(gram)[0].shape == (100, 100)  # the engine can go on


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(
    ("model", "beside", "n"), [(SparseLinearRegression, "file", 20_000), (SparseLogisticRegression, "memory", 4000)]
)
def test_arrays_of_this_process_are_sent_once(client, model, beside, n, tmp_path, monkeypatch):
    """Not in each reading: neither targets beside a file that workers read, nor a table in memory."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 300)).astype(np.float32)
    y = X[:, [3, 50]] @ [1.0, -1.0] + rng.standard_normal(n)
    y = y > 0 if model is SparseLogisticRegression else y
    weight = rng.random(n)
    np.save(tmp_path / "X.npy", X)
    blocks = from_arrays(X, rows=1024) if beside == "memory" else from_file(tmp_path / "X.npy", rows=1024)
    sent, submitted = [], dask_engine.submitted

    def noted(client, graph, *rest):
        own = {key: value for key, value in graph.items() if not hasattr(value, "client")}  # futures are there already
        sent.append(len(pickle.dumps(own)))
        return submitted(client, graph, *rest)

    monkeypatch.setattr(dask_engine, "submitted", noted)
    found = model(n_nonzero_coefs=2).fit(DaskEngine(blocks, client), y, sample_weight=weight)
    others = 40_000 * found.history_["readings"][-1] + 2_000 * len(sent)  # the tasks and what they are about
    once = y.nbytes + weight.nbytes + (X.nbytes if beside == "memory" else 0)
    assert once < sum(sent) < once + others
    assert len(sent) >= 4
    here = model(n_nonzero_coefs=2).fit(Serial(blocks), y, sample_weight=weight)
    assert found.coef_.tobytes() == here.coef_.tobytes()


@pytest.mark.slow
def test_tasks_are_named_by_their_blocks(client):
    """Also those that make chunks; what all chunks need is nobody's."""
    X = da.ones((100, 3), chunks=(10, 3))
    blocks = from_dask(X / X.sum())
    engine = DaskEngine(blocks, leaf_size=8)
    assert engine._called(str(blocks[3].keys[0])) == "block 3 (0 MB)"
    assert engine._called("('hardthresh-leaf-00ff', 1)") == "one of the blocks 8 to 9 (0 MB)"
    shared = [str(key) for key in blocks[0].graph.tasks if all(block.needs(str(key)) for block in blocks)]
    assert shared
    assert {engine._called(key) for key in shared} == {"a task that many blocks depend on"}


def fails_at_first(X, y, weight, offset, number, folder):
    if number == 3:
        tried = Path(folder, f"tried{len(os.listdir(folder))}")
        tried.touch()
        if tried.name != "tried2":
            raise OSError("the network is down")
    return (X.sum(axis=0, dtype=np.float64),)


@pytest.mark.slow
def test_a_task_that_fails_is_tried_again(client, tmp_path):
    engine = DaskEngine(from_arrays(np.ones((400, 3)), rows=10), leaf_size=1)
    assert_array_equal(engine.sweep(fails_at_first, NUMBER, str(tmp_path))[0], [400, 400, 400])
    with pytest.raises(ZeroDivisionError):
        engine.sweep(fails)


@pytest.fixture
def small_cluster():
    """A cluster of one worker, in threads of this process, for which the engine and the client wait a second.

    They do once they are connected: a busy machine may take longer for that.
    """
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    connect = "distributed.comm.timeouts.connect"
    with (
        dask.config.set({connect: f"{PATIENCE}s"}),
        distributed.LocalCluster(
            n_workers=1, host="127.0.0.1", dashboard_address=":0", processes=False, protocol="tcp", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        dask.config.set({connect: "1s"}),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(client, "_timeout", 1.0)
        yield cluster, client


@pytest.mark.slow
@pytest.mark.parametrize("what", ["workers", "scheduler"])
def test_when_the_cluster_is_gone_the_state_of_the_run_is_not(small_cluster, what):
    cluster, client = small_cluster
    engine = DaskEngine(blocks_of("lazy", None), client)
    engine.sweep(gram)
    if what == "workers":
        cluster.scale(0)
        until(lambda: not client.nthreads())
    else:
        cluster.close()
    with pytest.raises(DataLostError, match=r"the Dask cluster is gone after reading 1: the state so far"):
        engine.sweep(gram)


@only_at("pairs")
def test_data_that_differ_between_readings_are_noticed(client):
    def noise(part):
        return part + np.random.default_rng().random(part.shape)

    X = da.zeros((N, D), chunks=(CHUNK, D))
    for lazy, y in ((X.map_blocks(noise), None), (X, da.zeros(N, chunks=CHUNK).map_blocks(noise))):
        engine = DaskEngine(from_dask(lazy, y))
        engine.sweep(gram, columns=np.arange(3))
        engine.sweep(gram) if y is None else None
        with pytest.raises(InvalidInputError, match="the data differ from reading to reading; persist X or seed what"):
            engine.keep(first_columns, 3)
        if y is None:
            persisted = DaskEngine(from_dask(lazy.persist()))
            assert bits(persisted.sweep(gram)) == bits(persisted.sweep(gram))


@pytest.mark.slow
def test_chunks_that_are_too_large_are_warned_of(client):
    X = da.zeros((200_000, 100), chunks=(150_000, 100))  # 120 MB, on workers of 400 MB
    with pytest.warns(UserWarning, match=r"a block takes 120 MB, more than .* \(400 MB\); .* 125,000 rows, "):
        DaskEngine(from_dask(X))


def other_kernel(kernel):
    from hardthresh.designs import worker

    worker.kernel_name = lambda: kernel


@pytest.mark.slow
def test_workers_with_different_kernels_are_warned_of_once(client):
    engine = DaskEngine(blocks_of("lazy", None), leaf_size=1)
    for worker, kernel in zip(client.scheduler_info()["workers"], ("Haswell", "SkylakeX"), strict=True):
        client.run(other_kernel, kernel, workers=[worker])
    try:
        with pytest.warns(
            UserWarning, match=r"workers use different BLAS kernels \(Haswell, SkylakeX\): results agree"
        ):
            engine.sweep(gram)
        engine.sweep(gram)  # silently: warnings are errors
    finally:
        client.run(other_kernel, kernel_name())  # that of this machine


@pytest.mark.slow
def test_a_client_is_needed(client):
    with pytest.raises(InvalidInputError, match=r"a leaf has 1, 8, 64, ... blocks, got 5"):
        DaskEngine(blocks_of("lazy", None), leaf_size=5).sweep(gram)
    assert isinstance(engine_of(blocks_of("lazy", None)), DaskEngine)
    assert isinstance(engine_of(from_arrays(np.eye(3))), Serial)
    client.close()
    with pytest.raises(InvalidInputError, match=r"there is no Dask client: make one first, as distributed.Client\(\)"):
        DaskEngine(blocks_of("lazy", None))


# ---------------------------------------------------------------------------------------------- models (checks 4 and 6)

ROWS = 3000


def problem(loss):
    """A lazy table of 300 columns, 4 of which matter, and its targets; also as NumPy."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, 300)).astype(np.float32)
    X[:, 1:] += 0.5 * X[:, :-1]
    u = X[:, [3, 50, 90, 200]] @ np.array([1.0, -1.0, 0.5, 0.7])
    y = u + rng.standard_normal(ROWS)
    if loss == "logistic":
        y = np.where(u + rng.logistic(size=ROWS) > 0, "yes", "no")
    return da.from_array(X, chunks=(500, 300)), y, X


FITS = {"squared": SparseLinearRegression(n_nonzero_coefs=4), "logistic": SparseLogisticRegression(n_nonzero_coefs=4)}
SERIAL = {}


def serial_fit(loss):
    """The fit in this process."""
    if loss not in SERIAL:
        lazy, y, _ = problem(loss)
        SERIAL[loss] = clone(FITS[loss]).fit(Serial(from_dask(lazy, y)))
    return SERIAL[loss]


def model_bits(model):
    return model.coef_.tobytes(), np.asarray(model.intercept_).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("loss", FITS)
def test_without_a_client_a_fit_reads_the_blocks_here(loss):
    lazy, y, X = problem(loss)
    model = clone(FITS[loss]).fit(lazy, y)
    assert model_bits(model) == model_bits(serial_fit(loss))
    assert_array_equal(model.support_, [3, 50, 90, 200])
    assert_array_equal(clone(model).fit(X, y).support_, model.support_)
    assert model.score(lazy, y) == pytest.approx(model.score(X, y), abs=1e-5)
    assert model.predict(lazy).dtype == model.predict(X).dtype
    score = model.predict if loss == "squared" else model.decision_function
    assert_allclose(score(lazy).compute(), score(X), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("loss", "most"), [("squared", 0), ("logistic", 0), ("logistic", 1 << 28)])
def test_a_fit_on_a_cluster_has_the_bits_of_one_process(client, monkeypatch, loss, most):
    """Kept rows are on the workers, or have come to the client."""
    monkeypatch.setattr(dask_engine, "_LARGEST_HERE", most)
    lazy, y, _ = problem(loss)
    model = clone(FITS[loss]).fit(lazy, y)
    assert model_bits(model) == model_bits(serial_fit(loss))
    assert model.history_["readings"][-1] <= 4
    assert model.score(lazy, y) == serial_fit(loss).score(Serial(from_dask(lazy, y)))


@pytest.mark.slow
@pytest.mark.parametrize("loss", at("pairs", [*FITS]))
@pytest.mark.parametrize("kind", ["persisted", "unknown", "leaf 8"])
def test_a_fit_has_the_same_bits_however_the_table_comes(client, loss, kind):
    lazy, y, _ = problem(loss)
    if kind == "persisted":
        lazy = lazy.persist()
    if kind == "unknown":
        every = da.ones(ROWS, chunks=500) > 0
        lazy, y = lazy[every], da.from_array(y, chunks=500)[every]
    table = DaskEngine(from_dask(lazy, y), leaf_size=8) if kind == "leaf 8" else lazy
    model = clone(FITS[loss]).fit(table, None if kind == "leaf 8" else y)
    assert model_bits(model) == model_bits(serial_fit(loss))


@only_at("pairs")
@pytest.mark.parametrize("loss", ["logistic", *at("pairs", ["squared"])])
def test_a_fit_survives_two_killed_workers(cluster, client, loss):
    """Killed before the first reading is over its kept rows, and again: what they kept is made again."""
    lazy, y, _ = problem(loss)
    kills = []
    model = clone(FITS[loss]).fit(Killing(DaskEngine(from_dask(lazy, y)), cluster, kills))
    assert len(set(kills)) == 2
    assert model_bits(model) == model_bits(serial_fit(loss))


class Killing:
    """An engine whose first two sweeps each kill a worker first."""

    def __init__(self, engine, cluster, kills):
        self.engine, self.cluster, self.kills = engine, cluster, kills
        self.keep, self.both, self.rows = engine.keep, engine.both, engine.rows

    blocks = property(lambda self: self.engine.blocks)
    readings = property(lambda self: self.engine.readings)

    def on_blocks(self, blocks):
        return Killing(self.engine.on_blocks(blocks), self.cluster, self.kills)

    def sweep(self, *args, **kwargs):
        if len(self.kills) < 2:
            kill_another(self.cluster, self.kills)
        return self.engine.sweep(*args, **kwargs)


@pytest.mark.slow
def test_a_data_frame_is_fitted_by_name(client):
    _, y, X = problem("squared")
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    table = pd.DataFrame(X[:, :60], columns=[f"c{j}" for j in range(60)]).assign(y=y)
    frame = dd.from_pandas(table, npartitions=5)
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(frame.drop(columns="y"), frame["y"])
    assert [*model.get_feature_names_out()] == ["c3", "c50"]
    assert model.score(frame.drop(columns="y"), frame["y"]) == pytest.approx(
        model.score(table.drop(columns="y"), y), abs=1e-5
    )


@pytest.mark.slow
def test_a_model_without_blocks_says_so(client):
    lazy, y, _ = problem("squared")
    with pytest.raises(CapabilityError, match="is not fitted to tables in blocks"):
        SparseQuantileRegression().fit(lazy, y)


@only_at("pairs")
def test_the_state_of_a_run_is_in_the_error(small_cluster):
    """Section 9: minimize goes on from it with the data elsewhere, to the same answer."""
    cluster, client = small_cluster
    lazy, y, _ = problem("squared")
    table = from_dask(lazy, y)
    engine, constraint = DaskEngine(table, client), Sparsity(4, free=(300,))
    expected = minimize(blocked_model(Serial(table)), constraint, IHT())

    def stop(state):
        if state.iteration == 2:
            cluster.scale(0)

    with pytest.raises(DataLostError, match="the Dask cluster is gone after reading") as raised:
        minimize(blocked_model(engine), constraint, IHT(), callback=stop)
    state = pickle.loads(pickle.dumps(raised.value.state))
    assert state.iteration >= 2
    result = minimize(blocked_model(Serial(table)), constraint, IHT(), state=state)
    assert result.w.tobytes() == expected.w.tobytes()
