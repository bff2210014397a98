"""Blocks of .npz and libsvm files. Each .npz file is a block, and a libsvm file becomes such files."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from blocks_of_files import D, N, assert_same_bits, joined, table
from hardthresh.core import InvalidInputError
from hardthresh.designs import Serial, from_libsvm, from_npz_shards
from hardthresh.designs.engine import FOLD, stacked


def sparse():
    X = sp.random(N, D, density=0.2, random_state=0, format="csr", dtype=np.float32)
    return X, table()[1]


def test_sparse_shards(tmp_path):
    X, others = sparse()
    for number, start in enumerate(range(0, N, 300)):
        some = slice(start, start + 300)
        part = X[some]
        parts = {name: each[some] for name, each in others.items()}
        shard = {"data": part.data, "indices": part.indices, "indptr": part.indptr, "shape": part.shape}
        np.savez_compressed(tmp_path / f"{number}.npz", format=b"csr", **shard, **parts)
    blocks = pickle.loads(pickle.dumps(from_npz_shards(tmp_path)))
    assert [block.rows for block in blocks] == [300, 300, 300, 100]
    got = joined(blocks)
    assert blocks.dtype == np.float32
    assert_array_equal(got.X.toarray(), X.toarray(), strict=True)
    assert_array_equal(got.offset, others["offset"])
    assert_array_equal(joined(blocks.select(np.array([1, 4]))).X.toarray(), X.toarray()[:, [1, 4]])
    assert_same_bits(blocks, X, others, 300)
    folds = Serial(blocks).sweep(lambda X, y, w, o, fold: (np.bincount(fold, minlength=5),), FOLD)
    assert_array_equal(folds[0], np.bincount(others["fold"]))


def test_dense_shards_and_those_of_scipy(tmp_path):
    X, _ = sparse()
    np.savez(tmp_path / "0.npz", X=X[:600].toarray(), y=np.ones(600))
    dense = from_npz_shards(tmp_path / "0.npz")
    assert_array_equal(joined(dense).X, X[:600].toarray(), strict=True)
    sp.save_npz(tmp_path / "1.npz", X[600:])
    got = joined(from_npz_shards([tmp_path / "1.npz"]))
    assert_array_equal(got.X.toarray(), X[600:].toarray())
    assert got.y is None


def test_what_is_no_shard_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no files that end in \.npz"):
        from_npz_shards(tmp_path)
    np.savez(tmp_path / "0.npz", X=np.ones((3, 4)))
    np.savez(tmp_path / "1.npz", X=np.ones((3, 5)))
    with pytest.raises(InvalidInputError, match=r"1\.npz has 5 columns, .*0\.npz has 4: all parts"):
        from_npz_shards(tmp_path)
    np.savez(tmp_path / "1.npz", X=np.ones((2, 4)), y=np.ones(2))
    with pytest.raises(InvalidInputError, match=r"1\.npz has y, and .*0\.npz has not: all parts of a table need it"):
        from_npz_shards(tmp_path)
    with pytest.raises(InvalidInputError, match="some blocks have y, and others have not: all need it, or none"):
        stacked([from_npz_shards(tmp_path / name).blocks[0].load() for name in ("0.npz", "1.npz")])
    np.savez(tmp_path / "1.npz", y=np.ones(3))
    with pytest.raises(InvalidInputError, match=r"1\.npz has no matrix X and no sparse matrix by rows"):
        from_npz_shards(tmp_path)
    sp.save_npz(tmp_path / "1.npz", sp.eye(4, format="csc"))
    with pytest.raises(InvalidInputError, match="no sparse matrix by rows"):
        from_npz_shards(tmp_path)
    (tmp_path / "1.npz").write_bytes(b"PK")
    with pytest.raises(OSError, match=r"1\.npz cannot be read as \.npz"):
        from_npz_shards(tmp_path)


def write(path, X, y, first=1):
    rows = (
        " ".join([f"{t:.17g}", *(f"{j + first}:{v:.17g}" for j, v in zip(row.indices, row.data, strict=True))])
        for t, row in zip(y, map(X[[0]].__class__, [X[[i]] for i in range(X.shape[0])]), strict=True)
    )
    path.write_text("\n".join(rows) + "\n")
    return path


def test_rows_are_those_that_were_written(tmp_path, monkeypatch):
    X, others = sparse()
    path = write(tmp_path / "t.svm", X, others["y"])
    blocks = from_libsvm(path, tmp_path / "shards", shard_bytes=20_000)
    assert len(blocks) > 5
    got = joined(blocks)
    assert_allclose(got.X.toarray(), X.toarray(), rtol=1e-15)
    assert_array_equal(got.y, others["y"])
    monkeypatch.setattr("sklearn.datasets.load_svmlight_file", None)  # the second time nothing is parsed
    again = from_libsvm(path, tmp_path / "shards", shard_bytes=20_000)
    assert again.fingerprint() == blocks.fingerprint()
    part = sp.load_npz(again.sources[0])  # SciPy reads them too
    assert part.shape == (again[0].rows, D)


def test_settings(tmp_path):
    X, others = sparse()
    path = write(tmp_path / "t.svm", X, others["y"], first=0)
    blocks = from_libsvm(path, tmp_path / "a", zero_based=True, n_features=D + 3, dtype="float32")
    assert (blocks.shape, blocks.dtype) == ((N, D + 3), np.float32)
    assert_array_equal(joined(blocks).X.toarray()[:, :D], X.toarray(), strict=True)
    with pytest.raises(InvalidInputError, match=r"is no libsvm file, between bytes 0 and .*zero_based=True"):
        from_libsvm(path, tmp_path / "b")
    with pytest.raises(InvalidInputError, match=f"has the index {D - 1}, which is too large for 5 features"):
        from_libsvm(path, tmp_path / "c", zero_based=True, n_features=5)
    again = from_libsvm(path, tmp_path / "c", zero_based=True)  # nothing was left
    assert again.shape == (N, D)
    assert not list((tmp_path / "b").iterdir())
    assert {each.name for each in tmp_path.iterdir()} == {"t.svm", "a", "b", "c"}
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine.txt").touch()
    with pytest.raises(InvalidInputError, match=r"the folder .*d has other files"):
        from_libsvm(path, tmp_path / "d")
