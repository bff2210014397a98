"""What the tests of all kinds of files share: a table, and the laws of its blocks."""

import pickle

import numpy as np
from numpy.testing import assert_array_equal

from hardthresh.designs import Serial, Threads, from_arrays

N, D = 1000, 37


def table(dtype=np.float32):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(dtype)
    others = {"y": rng.standard_normal(N), "sample_weight": rng.random(N), "offset": rng.random(N)}
    return X, {**others, "fold": rng.integers(0, 5, N)}


def joined(blocks):
    """All rows of a table, block by block."""
    return Serial(blocks).rows(range(len(blocks)))


def assert_same_rows(blocks, X, others, rows=None):
    """Each engine's way to the rows gives what was written, after a pickle too."""
    got = joined(pickle.loads(pickle.dumps(blocks)))
    assert_array_equal(got.X, X, strict=True)
    for name, ours in zip(("y", "sample_weight", "offset", "fold"), (*got, got.fold)[1:], strict=True):
        assert (ours is None) == (name not in others)
        if ours is not None:
            assert_array_equal(ours, others[name])
    if rows is not None:
        assert [block.rows for block in blocks] == rows
    some = np.array([0, 5, D - 1])
    chosen = joined(blocks.select(some))
    assert_array_equal(chosen.X, X[:, some], strict=True)


def products(X, y, weight, offset):
    return ((weight * (y - offset)) @ X,)


def assert_same_bits(blocks, X, others, rows):
    """Check 4 of scale.md: the kind of file changes no bit, if the blocks are the same."""
    expected = Serial(from_arrays(X, **others, rows=rows)).sweep(products)
    for engine in (Serial(blocks), Serial(blocks, readers=3), Threads(blocks, 3)):
        assert engine.sweep(products)[0].tobytes() == expected[0].tobytes()
