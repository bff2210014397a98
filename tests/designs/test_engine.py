"""Sums over blocks have the same bits on every engine, and what is kept is read like the table itself."""

import pickle
import threading
import warnings
import weakref
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh.core import InvalidInputError, OutOfMemoryError
from hardthresh.designs import RowBlocks, Rows, Serial, Threads, from_arrays, from_npz_shards, scratch
from hardthresh.designs import local as engines
from hardthresh.designs.blocks import Block, as_rows, block_rows
from hardthresh.designs.engine import NUMBER, both_of_leaf, keep_leaf, leaves, sum_leaf
from hardthresh.designs.formats.stored import ArrayBlock
from hardthresh.designs.scratch import KeptRows
from hardthresh.designs.tree import FAN, Tree, add
from hardthresh.estimators.blocked import JoinedBlock


def slow_sum(parts):
    """The slow and obvious twin of `Tree`: rows of eights, from left to right."""
    if len(parts) == 1:
        return parts[0]
    above = []
    for start in range(0, len(parts), FAN):
        total = parts[start]
        for part in parts[start + 1 : start + FAN]:
            total = total + part
        above.append(total)
    return slow_sum(above)


def numbers(count):
    """Numbers whose sum has other bits in almost any other order."""
    rng = np.random.default_rng(count)
    return list(rng.standard_normal(count) * 10.0 ** rng.integers(0, 8, count))


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 20, 63, 64, 65, 72, 73, 512, 513, 600])
def test_the_tree_has_the_bits_of_its_slow_twin(count):
    tree, parts = Tree(), numbers(count)
    for part in parts:
        tree.push((np.array([part]),))
    assert tree.total()[0][0] == slow_sum(parts)


def test_other_orders_have_other_bits():
    parts = numbers(600)
    assert slow_sum(parts) != slow_sum(parts[::-1])
    assert slow_sum(parts) != np.add.reduce(parts)


@pytest.mark.parametrize("size", [8, 64, 512])
def test_the_leaf_of_a_subtree_changes_no_bit(size):
    parts, whole, coarse = numbers(600), Tree(), Tree()
    for part in parts:
        whole.push((np.array([part]),))
    for start in range(0, 600, size):
        leaf = Tree()
        for part in parts[start : start + size]:
            leaf.push((np.array([part]),))
        coarse.push(leaf.total())
    assert coarse.total()[0][0] == whole.total()[0][0]


def test_only_open_nodes_are_held():
    tree = Tree()
    for number in range(8**3 + 8 + 1):
        tree.push((np.array([float(number)]),))
    held = [node.count for node in tree._rows]
    assert held == [1, 1, 0, 1]


@pytest.mark.parametrize("count", [9, 64, 100, 600])
def test_an_empty_part_keeps_its_place(count):
    """So that the bits do not depend on whether the rows of a block are known before it is read."""
    parts = numbers(count)
    empty = np.random.default_rng(1).random(count) < 0.4
    tree = Tree()
    for part, none in zip(parts, empty, strict=True):
        tree.push(None if none else (np.array([part]),))
    assert tree.total()[0][0] == slow_sum(list(np.where(empty, 0.0, parts)))


def test_parts_are_not_changed_and_empty_ones_add_nothing():
    first, tree = np.ones(2), Tree()
    for part in (None, (first,), None, (np.full(2, 3.0),)):
        tree.push(part)
    assert_array_equal(tree.total()[0], [4.0, 4.0])
    assert_array_equal(first, [1.0, 1.0])
    assert add([None, None]) is None
    assert Tree().total() is None


def table(n=3000, d=7, rows=100, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return from_arrays(X, rng.standard_normal(n), rng.random(n), rng.standard_normal(n), rows=rows)


def products(X, y, weight, offset, point):
    residual = weight * (X @ point + offset - y)
    return np.array([residual @ residual]), residual @ X


def noise(X, y, weight, offset, number):
    return (np.random.default_rng((3, number)).standard_normal(2) * X.shape[0],)


def first_columns(X, y, weight, offset, m):
    return X[:, :m], y, weight, offset


def products_and_columns(X, y, weight, offset, point, m):
    return products(X, y, weight, offset, point), first_columns(X, y, weight, offset, m)


POINT = np.linspace(-1, 1, 7)
ENGINES = {
    "serial": Serial,
    "serial, 3 readers": lambda blocks: Serial(blocks, readers=3),
    "1 thread": lambda blocks: Threads(blocks, 1),
    "2 threads": lambda blocks: Threads(blocks, 2),
    "4 threads": lambda blocks: Threads(blocks, 4),
}


def bits(sums):
    return [part.tobytes() for part in sums]


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_the_bits_of_the_slow_twin(name):
    """Check 4 of scale.md, in one process."""
    blocks, engine = table(), ENGINES[name](table())
    parts = [products(*blocks.read(number), POINT) for number in range(len(blocks))]
    expected = [slow_sum([part[i] for part in parts]) for i in range(2)]
    for _ in range(2):
        assert bits(engine.sweep(products, POINT)) == bits(expected)
    assert engine.readings == 2


@pytest.mark.parametrize("size", [1, 8, 64])
def test_leaves_of_any_size_have_the_same_bits(size):
    """Check 4 of scale.md: what a worker of another machine does."""
    blocks = table()
    tree, kept_tree = Tree(), Tree()
    for leaf in leaves(blocks, size):
        leaf = pickle.loads(pickle.dumps(leaf))
        tree.push(sum_leaf(leaf, products, (POINT,)))
        sums, kept = both_of_leaf(leaf, products_and_columns, (POINT, 3))
        assert bits(sums) == bits(sum_leaf(leaf, products, (POINT,)))
        assert bits(kept.read(0)) == bits(keep_leaf(leaf, first_columns, (3,)).read(0))
        kept_tree.push(sum_leaf(kept, products, (POINT[:3],)))
    assert bits(tree.total()) == bits(Serial(blocks).sweep(products, POINT))
    engine = Serial(blocks)
    assert bits(kept_tree.total()) == bits(engine.sweep(products, POINT[:3], on=engine.keep(first_columns, 3)))


@pytest.mark.parametrize("size", [0, 2, 12, 16])
def test_leaves_of_other_sizes_are_refused(size):
    with pytest.raises(InvalidInputError, match="1, 8, 64"):
        leaves(table(), size)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("size", [1, 8, 64])
def test_random_numbers_are_those_of_the_block(name, size):
    """Rule 7 of section 3 of scale.md: they depend on the number of the block alone."""
    tree = Tree()
    for leaf in leaves(table(), size):
        tree.push(sum_leaf(leaf, noise, (NUMBER,)))
    expected = ENGINES[name](table()).sweep(noise, NUMBER)
    assert bits(tree.total()) == bits(expected)
    assert bits(expected) != bits(Serial(table()).sweep(noise, 0))


def strange(X, how):
    """The same rows, in an order or at an address that BLAS treats differently."""
    if how == "Fortran order":
        return np.asfortranarray(X)
    if how == "not contiguous":
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    raw = np.zeros(X.nbytes + 1, np.uint8)
    out = raw[1:].view(X.dtype).reshape(X.shape)
    out[...] = X
    return out


@pytest.mark.parametrize("how", ["Fortran order", "not contiguous", "misaligned"])
@pytest.mark.parametrize("name", ["serial", "2 threads"])
def test_the_layout_in_memory_changes_no_bit(name, how):
    """Rule 4 of section 3 of scale.md."""
    rng = np.random.default_rng(1)
    X, y, w, o = rng.standard_normal((2000, 33)).astype(np.float32), *rng.random((3, 2000))
    expected = Serial(from_arrays(X, y, w, o, rows=500)).sweep(products, np.ones(33))
    others = [strange(part[:, None], how)[:, 0] for part in (y, w, o)]
    engine = ENGINES[name](from_arrays(strange(X, how), *others, rows=500))
    assert bits(engine.sweep(products, np.ones(33))) == bits(expected)


def test_tasks_get_rows_in_c_order_and_aligned():
    def flags(X, y, weight, offset):
        arrays = (X, y, weight, offset)
        return (np.array([all(a.flags.c_contiguous and a.flags.aligned for a in arrays)], dtype=float),)

    X = strange(np.ones((40, 3)), "Fortran order")
    part = strange(np.ones((40, 1)), "misaligned")[:, 0]
    assert Serial(from_arrays(X, part, part, part, rows=10)).sweep(flags)[0][0] == 4


def test_blas_has_one_thread_in_a_task():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads(X, y, weight, offset):
        return (
            np.array([max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")], float),
        )

    with threadpool_limits(3, "blas"):
        for engine in ENGINES.values():
            assert engine(table(200)).sweep(threads)[0][0] == 2  # one in each of two blocks


@pytest.mark.parametrize("name", ENGINES)
def test_both_is_one_reading_and_the_sum_and_the_rows_of_two(name):
    engine, other = ENGINES[name](table()), Serial(table())
    sums, kept = engine.both(products_and_columns, POINT, 3)
    assert engine.readings == 1
    assert bits(sums) == bits(other.sweep(products, POINT))
    with kept:
        assert bits(engine.sweep(products, POINT[:3], on=kept)) == bits(
            other.sweep(products, POINT[:3], columns=np.arange(3))
        )
    assert engine.readings == 1
    with pytest.raises(InvalidInputError, match="released"):
        engine.sweep(products, POINT[:3], on=kept)


@pytest.mark.parametrize("memory", [0, 20_000, None])
def test_kept_rows_are_in_a_file_from_where_they_exceed_their_share(memory, monkeypatch, tmp_path):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    blocks = table()
    kept = KeptRows(blocks, memory)
    for number in range(len(blocks)):
        kept.put(number, first_columns(*blocks.read(number), 5))
    in_memory = sum(isinstance(block.data.X, np.ndarray) for block in kept.blocks)
    assert in_memory == {0: 0, 20_000: 4, None: 30}[memory]  # a block has 100 rows of 5 singles and 3 doubles
    assert (kept._scratch is not None) == (memory is not None)
    for number in range(len(blocks)):
        for ours, theirs in zip(kept.blocks.read(number), blocks.select(np.arange(5)).read(number), strict=True):
            assert_array_equal(ours, theirs, strict=True)
    kept.release()
    assert list(tmp_path.iterdir()) == []


def test_memory_of_kept_rows_does_not_grow_with_the_table(monkeypatch, tmp_path):
    """Check 5 of scale.md: so many bytes are in memory, on any machine, and the rest in the file."""
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "free_memory", lambda: 1 << 50)
    monkeypatch.setattr(scratch, "MOST_IN_MEMORY", 20_000)
    for n in (3000, 6000):
        with Serial(table(n)).keep(first_columns, 5) as kept:
            in_memory = sum(isinstance(block.data.X, np.ndarray) for block in kept.blocks)
        assert in_memory == 4


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("part", ["X", "y", "weight"])
def test_data_that_differ_between_readings_are_noticed(name, part):
    """Section 9 of scale.md, without a cluster: of a block that is made anew for each reading."""
    changing = ENGINES[name](replace(table(), blocks=tuple(Noisy(block, part) for block in table())))
    changing.sweep(products, POINT)
    for read in (lambda: changing.sweep(products, POINT), lambda: changing.keep(first_columns, 3)):
        with pytest.raises(InvalidInputError, match="the data differ from reading to reading; persist X or seed"):
            read()
    assert bits(changing.on_blocks(table()).sweep(products, POINT)) == bits(Serial(table()).sweep(products, POINT))


@dataclass(frozen=True, eq=False)
class Noisy(Block):
    """A block one part of which is other at each reading."""

    block: Block
    part: str
    made: list = field(default_factory=list)

    rows = property(lambda self: self.block.rows)

    def load(self):
        rows = as_rows(self.block.load())
        self.made.append(0)
        return replace(rows, **{self.part: getattr(rows, self.part) + 1e-6 * len(self.made)})


@pytest.mark.parametrize("name", ENGINES)
def test_infinity_is_left_to_the_tasks(name):
    engine = ENGINES[name](from_arrays(np.array([[np.inf], [1.0]]), np.array([-np.inf, 1.0]), rows=1))
    for _ in range(2):
        assert engine.sweep(lambda X, *rest: (X.sum(axis=0),))[0][0] == np.inf


@pytest.mark.parametrize("nameless", [True, False])
def test_a_scratch_file_disappears_with_its_rows(monkeypatch, tmp_path, nameless):
    """With a name, on Windows, when the object does. Without one there is nothing that SIGTERM could leave behind."""
    monkeypatch.setattr(scratch, "_NAMELESS", nameless and scratch._NAMELESS)
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    kept = KeptRows(table(), 0)
    kept.put(0, table().read(0))
    assert_array_equal(kept._blocks[0].load().X, table().read(0).X, strict=True)
    file = kept._scratch._file
    assert len(list(tmp_path.iterdir())) == (not scratch._NAMELESS)
    del kept
    assert file.closed
    assert list(tmp_path.iterdir()) == []


def test_a_full_disc_is_named(monkeypatch, tmp_path):
    """Section 9 of scale.md; /dev/full is a disc without room."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    kept = KeptRows(table(), 0)
    kept.put(0, table().read(0))
    with Path("/dev/full").open("wb", buffering=0) as full, monkeypatch.context() as patch:
        patch.setattr(kept._scratch, "_file", full)
        with pytest.raises(OSError, match=rf"{tmp_path} is full: 2,800 more bytes are needed.*TMPDIR") as caught:
            kept.put(1, table().read(1))
    assert caught.value.errno is None  # which the shell would take for one of standard output


def test_nothing_is_left_of_rows_that_a_failing_task_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "SHARE_IN_MEMORY", 0.0)

    def fails(X, y, weight, offset, number):
        if number == 20:
            raise KeyError(number)
        return X, y, weight, offset

    for engine in ENGINES.values():
        with pytest.raises(KeyError):
            engine(table()).keep(fails, NUMBER)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ENGINES)
def test_no_thread_is_left_after_an_error(name):
    """Section 9 of scale.md: so Ctrl-C, which is an error in the main thread, ends the threads."""

    def interrupted(X, y, weight, offset, number):
        if number == 11:
            raise KeyboardInterrupt
        return (np.zeros(1),)

    engine = ENGINES[name](table())
    with pytest.raises(KeyboardInterrupt):
        engine.sweep(interrupted, NUMBER)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hardthresh-blocks")]


def test_rows_come_in_the_order_of_the_picks():
    data = table()
    X = np.concatenate([data.read(number).X for number in range(len(data))])
    got = Serial(data).rows([3, (1, np.array([5, 2, 2])), 0])
    assert isinstance(got, Rows)
    assert_array_equal(got.X, X[[*range(300, 400), 105, 102, 102, *range(100)]])
    assert got.y.shape == got.weight.shape == got.offset.shape == (203,)


def test_empty_blocks_are_skipped_and_an_empty_table_is_refused():
    """Section 9 of scale.md."""
    full, empty = table(), ArrayBlock(Rows(np.zeros((0, 7)), np.zeros(0)))
    blocks = [*full.blocks]
    for at in (0, 5, 32):
        blocks.insert(at, empty)
    gaps = RowBlocks(tuple(blocks), 7, full.dtype)
    for engine in (Serial, lambda table: Threads(table, 2)):
        sums = engine(gaps).sweep(products, POINT)
        for ours, theirs in zip(sums, Serial(full).sweep(products, POINT), strict=True):
            assert_allclose(ours, theirs, rtol=1e-12)
        kept = engine(gaps).keep(first_columns, 3)
        assert kept.blocks.shape == (3000, 3)
        with pytest.raises(InvalidInputError, match="all blocks are empty"):
            engine(RowBlocks((empty, empty), 7, full.dtype)).sweep(products, POINT)


def test_sparse_blocks_give_the_sums_of_dense_ones():
    X = sp.random(500, 7, density=0.3, random_state=0, format="csc")
    y = np.arange(500.0)
    ones = np.ones(500)
    sparse = Serial(from_arrays(X, y, ones, ones, rows=64)).sweep(products, POINT)
    dense = Serial(from_arrays(X.toarray(), y, ones, ones, rows=64)).sweep(products, POINT)
    for ours, theirs in zip(sparse, dense, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)
    kept = Serial(from_arrays(X, y, ones, ones, rows=64)).keep(first_columns, 3)
    assert_allclose(kept.blocks.read(2).X.toarray(), X.toarray()[128:192, :3])


WRONG = {
    "columns": (
        Rows(np.zeros((4, 6)), np.zeros(4)),
        "block 1 has 6 columns, block 0 has 7: all parts of a table need the same columns in the same order",
    ),
    "y": (
        Rows(np.zeros((4, 7)), np.zeros(3)),
        "block 1 has 4 rows of X and 3 of y; rechunk y to the chunks of X",
    ),
    "sample_weight": (
        Rows(np.zeros((4, 7)), np.zeros(4), np.zeros(5)),
        "block 1 has 4 rows of X and 5 of sample_weight",
    ),
    "dimensions": (Rows(np.zeros(7)), "block 1: X must be a matrix"),
    "text": (Rows(np.array([["a"] * 7])), "block 1: X must be numeric, got dtype '<U1'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_block_that_does_not_fit_is_named(what):
    """Section 9 of scale.md."""
    data, message = WRONG[what]
    good = ArrayBlock(Rows(np.zeros((4, 7)), np.zeros(4)))
    for engine in ENGINES.values():
        with pytest.raises(InvalidInputError, match=message):
            engine(RowBlocks((good, ArrayBlock(data)), 7, np.dtype(float))).sweep(lambda X, y, w, o: (X.sum(axis=0),))


def test_singles_become_doubles_in_a_table_of_doubles():
    blocks = RowBlocks(tuple(ArrayBlock(Rows(np.ones((2, 3), t))) for t in ("f4", "f8", "i8", "?")), 3, np.dtype(float))
    assert {blocks.read(number).X.dtype for number in range(4)} == {np.dtype(float)}


@pytest.mark.parametrize(
    ("d", "dtype", "chunk", "expected"),
    [
        (1000, "float32", 1, 8192),  # 32 MB
        (1000, "float64", 1, 4096),
        (1024, "float32", 1, 8192),  # 32 MiB exactly
        (1025, "float32", 1, 4096),
        (2, "float32", 1, 2**20),  # never more
        (10**6, "float64", 1, 1024),  # never fewer
        (0, "float64", 1, 2**20),
        (1000, "float32", 3000, 6000),
        (1000, "float32", 50_000, 50_000),
    ],
)
def test_rows_of_a_block_depend_on_the_table_alone(d, dtype, chunk, expected):
    """Rule 1 of section 3 of scale.md."""
    assert block_rows(d, dtype, chunk=chunk) == expected


@pytest.mark.parametrize("part", ["y", "sample_weight", "offset"])
def test_arrays_of_another_length_are_refused(part):
    with pytest.raises(InvalidInputError, match=f"X has 4 rows, {part} has shape"):
        from_arrays(np.zeros((4, 2)), **{part: np.zeros(3)})


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_rows_have_to_be_a_number_of_rows(rows):
    with pytest.raises(InvalidInputError, match="rows must be a positive integer"):
        from_arrays(np.zeros((4, 2)), rows=rows)


def test_a_fingerprint_is_that_of_the_data():
    base = table().fingerprint()
    assert table().fingerprint() == base
    assert table(seed=1).fingerprint() != base
    assert table(rows=500).fingerprint() == table(rows=500).fingerprint()


@dataclass(frozen=True, eq=False)
class Decoded(Block):
    """Rows that take long to read, and count how many are read at once."""

    rows: int
    seen: list

    def load(self):
        self.seen.append(threading.active_count())
        return Rows(np.ones((self.rows, 10)))


@pytest.mark.parametrize(
    ("free", "readers"), [(1 << 40, 4), (3 * 16 * 100_000 * 80, 3), (16 * 100_000 * 80, 1), (0, 1)]
)
def test_fewer_threads_read_where_memory_is_short(monkeypatch, free, readers):
    """A quarter of the free memory holds four times the blocks that are decoded at once."""
    asked = []
    monkeypatch.setattr(engines, "free_memory", lambda: free)
    monkeypatch.setattr(
        engines, "in_order", lambda f, items, threads, ahead: asked.append((threads, ahead)) or map(f, items)
    )
    blocks = RowBlocks((Decoded(100_000, []), Decoded(5, [])), 10, np.dtype(float), readers=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Serial(blocks).sweep(lambda X, y, w, o: (X.sum(axis=0),))
        Serial(blocks, readers=2).sweep(lambda X, y, w, o: (X.sum(axis=0),))
    assert asked == [(readers, readers), (2, 2)]


def test_a_thread_that_cannot_be_started_is_reported(monkeypatch):
    """As where the address space has no room for its stack: Python raises RuntimeError."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("hardthresh.core.memory.address_space", lambda: 1_500_000_000_000)
    blocks = RowBlocks((Decoded(100, []),), 10, np.dtype(float), readers=1)
    message = r"no thread can be started to read blocks: write smaller .* more than 1,500,000 MB of address space"
    with pytest.raises(OutOfMemoryError, match=message):
        Serial(blocks).sweep(lambda X, y, w, o: (X.sum(axis=0),))


def test_blocks_too_large_for_the_memory_are_warned_of(monkeypatch):
    """Section 9 of scale.md: with the size that fits."""
    blocks = RowBlocks((Decoded(100_000, []),), 10, np.dtype(float), readers=1)
    monkeypatch.setattr(engines, "free_memory", lambda: 16_000_000)
    message = r"a block takes 8 MB, more than a quarter of the free memory \(16 MB\); write .* at most 50,000 rows"
    for engine in (Serial, lambda blocks: Threads(blocks, 2)):
        with pytest.warns(UserWarning, match=message):
            engine(blocks)
    Serial(from_arrays(np.ones((100_000, 10)), rows=100_000))  # views take no memory
    monkeypatch.setattr(engines, "free_memory", lambda: 32_000_000)
    Serial(blocks)


@pytest.mark.parametrize("kind", ["arrays", "shards"])
def test_sparse_blocks_are_as_large_as_their_entries(kind, tmp_path, monkeypatch):
    """Dense rows would be 8 GB: they are neither warned of, nor do they keep threads from reading."""
    places = np.arange(10_000)
    X = sp.csr_array((np.ones(10_000), (places % 1000, 97 * places)), shape=(1000, 1_000_000))
    if kind == "shards":
        sp.save_npz(tmp_path / "0.npz", X)
        blocks = from_npz_shards(tmp_path)
    else:
        blocks = from_arrays(X, np.ones(1000))
    loaded = blocks.read(0).nbytes
    for table in (blocks, replace(blocks, blocks=tuple(JoinedBlock(block, {"y": np.ones(1000)}) for block in blocks))):
        assert table.largest == loaded < 200_000
    assert blocks.select(np.array([3, 5])).largest <= 2 * 1000 * 8
    monkeypatch.setattr(engines, "free_memory", lambda: 1_000_000)
    Serial(blocks)
    monkeypatch.setattr(engines, "free_memory", lambda: 400_000)
    with pytest.warns(UserWarning, match="a block takes 0 MB") if kind == "shards" else nullcontext():
        Serial(blocks)


def test_two_blocks_are_in_memory_at_a_time():
    """Check 5 of scale.md: the one that is worked on, and the next."""
    alive = []

    class Counted(Block):
        rows = 10

        def load(self):
            X = np.ones((10, 3)).view(Tracked)
            alive.append(weakref.ref(X))
            return Rows(X)

    class Tracked(np.ndarray):
        pass

    def living(X, y, weight, offset):
        return (np.array([sum(each() is not None for each in alive)], float),)

    most = []
    blocks = RowBlocks((Counted(),) * 40, 3, np.dtype(float))
    Serial(blocks, readers=1).sweep(lambda *rows: most.append(living(*rows)[0][0]) or (np.zeros(1),))
    assert max(most) <= 2


def test_a_block_is_freed_before_the_next_one_is_read():
    alive, at_load = [], []

    class Tracked(np.ndarray):
        pass

    class Counted(Block):
        rows = 10

        def load(self):
            at_load.append(sum(each() is not None for each in alive))
            X = np.ones((10, 3)).view(Tracked)
            alive.append(weakref.ref(X))
            return Rows(X)

    blocks = RowBlocks((Counted(),) * 5, 3, np.dtype(float))
    Serial(blocks, readers=0).sweep(lambda *rows: (np.zeros(1),))
    assert at_load == [0] * 5
