"""Files of format version 1, JSON with arrays in an npz file beside it: they still load, and hostile ones do no harm.

The files in ``version_1`` were written by the last hardthresh that wrote this version. Their notes hold what the
objects gave then.
"""

import json
import os
import warnings
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import MaxIter, RelativeDecrease
from hardthresh.solvers import IHT
from hardthresh.steps import SparsePolyak
from hardthresh.storage import StorageError, load_notes

OLD = Path(__file__).parent / "version_1"


@pytest.mark.parametrize("name", ["linear", "logistic_cv", "low_rank", "imputer", "graph", "limited"])
def test_estimators_of_version_1_give_what_they_gave(name):
    model, notes = ht.load(OLD / f"{name}.json"), load_notes(OLD / f"{name}.json")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        returns = getattr(model, notes["call"])(np.array(notes["at"]))
    np.testing.assert_allclose(returns, notes["returns"], rtol=1e-9)


def test_details_of_a_model_of_version_1():
    model = ht.load(OLD / "linear.json")
    assert model.feature_names_in_[model.support_].tolist() == ["g3", "g5", "g7"]
    assert model.always_include == ["g5"]
    assert "First-order test: passed" in str(model.certificate())


@pytest.mark.parametrize("name", ["accelerated", "conjugate", "iht", "probabilistic", "working_set"])
def test_states_of_version_1_are_whole(name):
    state, notes = ht.load(OLD / f"state_{name}.json"), load_notes(OLD / f"state_{name}.json")
    assert (type(state).__name__, state.iteration) == (notes["type"], notes["iteration"])
    np.testing.assert_array_equal(np.asarray(state.w), notes["w"])


def test_a_result_of_version_1_is_whole():
    result, notes = ht.load(OLD / "result.json"), load_notes(OLD / "result.json")
    assert (result.w.tolist(), result.value, result.n_iter) == (notes["w"], notes["value"], notes["n_iter"])


def test_settings_of_version_1():
    solver, constraint, rule, columns, texts = ht.load(OLD / "settings.json")
    assert solver == IHT(step=SparsePolyak(target=0.12, scale=5.0))
    assert isinstance(constraint, Sparsity)
    assert rule == RelativeDecrease(1e-6) | MaxIter(200)
    assert (columns.shape, columns.flags.f_contiguous) == ((9, 9), True)
    assert texts.tolist() == ["aaa"] * 70


def test_a_learner_of_version_1_goes_on():
    learner = ht.load(OLD / "learner.json")
    example, _ = learner.ask()
    assert (example, learner.meter.examples) == (1, 1)


# --- damaged and hostile files ---


def members(**contents):
    """An npz file of members as they are given: arrays, or bytes in place of an npy file."""
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        for name, content in contents.items():
            if isinstance(content, np.ndarray):
                buffer = BytesIO()
                np.save(buffer, content)
                content = buffer.getvalue()
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(shape, dtype="<f8", data=b""):
    """The bytes of an npy file that declares a shape and a dtype."""
    buffer = BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"shape": shape, "fortran_order": False, "descr": dtype})
    return buffer.getvalue() + data


@pytest.fixture
def forge(tmp_path):
    """Write a file of version 1 that names the array "a0", and the npz file beside it."""

    def write(content, *, name="arrays.npz", digest=None):
        (tmp_path / "arrays.npz").write_bytes(content)
        document = {
            "format": "hardthresh",
            "format_version": 1,
            "arrays": {"file": name, "sha256": digest or sha256(content).hexdigest()},
            "notes": {},
            "object": {"$": "array", "file": "a0"},
        }
        (tmp_path / "model.json").write_text(json.dumps(document))
        return tmp_path / "model.json"

    return write


def test_an_array_of_version_1_is_read(forge):
    np.testing.assert_array_equal(ht.load(forge(members(a0=np.arange(100.0)))), np.arange(100.0))


def test_missing_arrays_say_so(forge):
    path = forge(members(a0=np.arange(100.0)), name="other.npz")
    with pytest.raises(StorageError, match=r"other\.npz, cannot be read, No such file.*; move the two files together"):
        ht.load(path)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:500] + b"x" + b[501:], lambda b: b""])
def test_changed_arrays_say_so(forge, change):
    content = members(a0=np.arange(100.0))
    with pytest.raises(StorageError, match="were changed or cut short"):
        ht.load(forge(change(content), digest=sha256(content).hexdigest()))


def test_arrays_of_another_folder_are_not_read(forge):
    with pytest.raises(StorageError, match="another folder"):
        ht.load(forge(members(a0=np.arange(100.0)), name="../arrays.npz"))


def encrypted(content):
    """A zip file whose only member is said to be encrypted."""
    start = content.index(b"PK\1\2") + 8  # the flags of the member in the directory
    return content[:start] + bytes([content[start] | 1]) + content[start + 1 :]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (members(a0=np.array([print], dtype=object)), "dtype object, and has not"),
        (members(a0=npy((10**13,))), r"shape \(10000000000000,\) and dtype float64, and has not"),
        (members(a0=npy((2,), data=bytes(8))), "and has not"),
        (members(a0=npy((0,), "|O")), "allow_pickle=False"),
        (members(b0=np.arange(100.0)), "damaged, KeyError"),
        (encrypted(members(a0=np.arange(100.0))), "damaged, RuntimeError: .*encrypted"),
        (b"rubbish", "damaged, BadZipFile"),
    ],
    ids=["pickle", "huge", "cut", "no pickle", "another name", "encrypted", "no zip file"],
)
def test_arrays_are_what_they_are_said_to_be(forge, content, said):
    with pytest.raises(StorageError, match=rf"model\.json: .*{said}"):
        ht.load(forge(content))


def bomb(name):
    """An npz file whose member has 100 MB when it is unpacked."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        if name != "a0":
            archive.writestr("a0.npy", npy((1,), data=bytes(8)))
        archive.writestr(f"{name}.npy", npy((12_500_000,), data=bytes(100_000_000)))
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a0", "unnamed"])
def test_bombs_are_not_unpacked(forge, name):
    content = bomb(name)
    assert len(content) < 200_000
    with pytest.raises(StorageError, match="are said to be larger than the file"):
        ht.load(forge(content))


def test_compressed_arrays_are_refused(forge):
    file = BytesIO()
    np.savez_compressed(file, a0=np.random.default_rng(0).random(100))
    with pytest.raises(StorageError, match=r"its array a0\.npy is compressed"):
        ht.load(forge(file.getvalue() + bytes(1000)))


@pytest.mark.skipif(os.name != "posix", reason="pipes and links are those of POSIX")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "link"])
def test_only_regular_files_are_opened(forge, tmp_path, make):
    path = forge(b"", name="other.npz")
    make(tmp_path / "other.npz")
    with pytest.raises(StorageError, match=r"other\.npz, are not a regular file"):
        ht.load(path)


def test_a_model_saved_again_is_one_file(tmp_path):
    ht.save(ht.load(OLD / "linear.json"), tmp_path / "linear.json")
    assert json.loads((tmp_path / "linear.json").read_text())["format_version"] == 3
    assert [file.name for file in tmp_path.iterdir()] == ["linear.json"]
