"""Real data: the right arrays from every place where a file may lie, and a clear word where it does not."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh import datasets
from hardthresh.core.errors import InvalidInputError, MissingDependencyError
from hardthresh.datasets import DatasetError, fetch, list_datasets, real, sources
from hardthresh.datasets.registry import RECORDS, Record, digest_of_names, moments
from levels import at_most, only_at

CLASS_SIZES = {
    "colon": (22, 40),
    "leukemia": (47, 25),
    "arcene": (112, 88),
    "madelon": (1300, 1300),
    "musk1": (269, 207),
    "musk2": (5581, 1017),
}
FIELDS: dict[str, Any] = {
    "name": "tiny",
    "file": "tiny.npz",
    "sha256": "",
    "shape": (3, 3),
    "task": "regression",
    "summary": "Three rows.",
    "source": "this test",
    "licence": "free",
    "citation": "none",
    "target_names": ["y"],
}
MIRRORED = [name for name, record in RECORDS.items() if not record.bundled]


@only_at("pairs")
def test_import_brings_in_nothing_heavy() -> None:
    code = (
        "import sys, hardthresh.datasets as d; d.load_colon(); "
        "print([m for m in ('sklearn', 'pandas', 'pooch') if m in sys.modules])"
    )
    source = str(Path(datasets.__file__).parents[2])
    answer = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "[]"


# --- the registry ---


def test_list_datasets_has_every_record() -> None:
    infos = list_datasets()
    assert [info.name for info in infos] == list(RECORDS)
    assert {info.task for info in infos} == {"classification", "regression", "survival"}
    assert all(info.licence and info.summary for info in infos)
    assert [info.name for info in infos if info.where == "bundled"] == ["colon", "growth", "actg175"]
    assert [info.name for info in infos if info.where == "folder"] == ["bloodbrain"]
    assert infos[0].shape == (62, 2000)


def test_every_record_has_its_own_function() -> None:
    for name, record in RECORDS.items():
        function = getattr(datasets, f"{'load' if record.bundled else 'fetch'}_{name}")
        assert function.__name__ in datasets.__all__
        assert "Examples" in function.__doc__
        assert ("subset :" in function.__doc__) == record.has_split


def test_labels_of_a_file_become_classes_in_their_order() -> None:
    record = Record(**{**FIELDS, "task": "classification", "target_names": ["left", "right"]})
    table = record.table({"X": np.eye(3), "y": np.array([1.0, -1.0, 1.0])})
    assert table.target.tolist() == [1, 0, 1]
    assert table.target.dtype == np.int64
    assert table.feature_names.tolist() == ["feature_1", "feature_2", "feature_3"]


def test_parts_of_a_file_are_joined_training_rows_first() -> None:
    record = Record(**{**FIELDS, "has_split": True})
    table = record.table({"X_train": np.eye(2), "y_train": [1, 2], "X_test": np.ones((1, 2)), "y_test": [3]})
    assert table.data.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert table.target.tolist() == [1.0, 2.0, 3.0]
    assert table.train is not None
    assert table.train.tolist() == [True, True, False]


@pytest.mark.parametrize("name", MIRRORED)
def test_record_agrees_with_the_sidecar(name: str, mirror: Path) -> None:
    record = RECORDS[name]
    sidecar = json.loads((mirror / record.file).with_suffix(".json").read_text(encoding="utf-8"))
    assert record.sha256 == sidecar["sha256"]
    assert record.licence == sidecar["licence"]
    assert record.shape == (sidecar["n"] + sidecar.get("n_test", 0), sidecar["d"])


@pytest.mark.parametrize("wrong", ["leukaemia", "golub_leukemia", "Leukemia"])
def test_unknown_name_suggests_the_closest(wrong: str) -> None:
    with pytest.raises(InvalidInputError, match=r"Did you mean .*'leukemia'.* Known: colon"):
        fetch(wrong)


def test_a_name_without_close_matches_lists_all_names() -> None:
    with pytest.raises(InvalidInputError, match=r"No data set is called 'zzz'\. Known: colon"):
        fetch("zzz")


def test_subset_of_a_set_without_split() -> None:
    with pytest.raises(InvalidInputError, match="'colon' has: 'all'"):
        fetch("colon", subset="train")


# --- the mirror ---


@at_most(2)
@pytest.mark.parametrize("name", MIRRORED)
def test_fetch_from_the_mirror(name: str, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORDS[name]
    arrays = sources.read_arrays(record)
    monkeypatch.setattr(real, "read_arrays", lambda record: arrays)  # large files are read once
    dataset = getattr(datasets, f"fetch_{name}")()
    assert dataset.data.shape == record.shape
    assert dataset.data.dtype == np.float64
    assert dataset.target.shape == record.shape[:1]
    assert dataset.feature_names.shape == record.shape[1:]
    assert len(set(dataset.feature_names)) == record.shape[1]
    if record.task == "classification":
        assert dataset.target.dtype == np.int64
        assert np.array_equal(np.unique(dataset.target), np.arange(len(dataset.target_names)))
    else:
        assert dataset.target.dtype == np.float64
        assert len(dataset.target_names) == 1
    if record.public:
        table = record.table(arrays)
        assert record.public.names == digest_of_names(table)
        assert record.public.moments == pytest.approx(moments(table), rel=1e-12)
    if name in CLASS_SIZES:
        assert tuple(np.bincount(dataset.target)) == CLASS_SIZES[name]


def test_leukemia_split(mirror: Path) -> None:
    train, test, both = (datasets.fetch_leukemia(subset=subset) for subset in ("train", "test", "all"))
    assert np.bincount(train.target).tolist() == [27, 11]
    assert np.bincount(test.target).tolist() == [20, 14]
    assert train.target_names.tolist() == ["ALL", "AML"]
    assert train.feature_names[0] == "AFFX-BioB-5_at"
    assert both.data.sum() == train.data.sum() + test.data.sum()


@only_at("pairs")
def test_news20_is_sparse(mirror: Path) -> None:
    train = datasets.fetch_news20(subset="train")
    assert isinstance(train.data, sp.csr_array)
    assert train.data.shape == (11314, 130107)
    assert train.data.nnz == 1787565
    assert datasets.fetch_news20(subset="test").data.nnz == 1107956
    assert train.target_names[0] == "alt.atheism"
    assert "sparse" in repr(train)
    with pytest.raises(InvalidInputError, match="dense"):
        datasets.fetch_news20(as_frame=True)


def test_musk_knows_its_molecules(mirror: Path) -> None:
    groups = datasets.fetch_musk1().sample_groups
    assert groups is not None
    assert len(np.unique(groups)) == 92


@pytest.mark.slow
def test_responses_are_the_documented_ones(mirror: Path) -> None:
    assert datasets.fetch_tecator().target[:3].tolist() == [22.5, 40.1, 8.4]  # fat, not moisture or protein
    assert datasets.fetch_riboflavin().target.min() == pytest.approx(-9.966, abs=5e-4)
    assert datasets.fetch_blogfeedback(subset="train").data.shape == (52397, 280)
    crime = datasets.fetch_communities_crime()
    assert (~np.isnan(crime.data).any(axis=0)).sum() == 99


# --- a tiny data set of our own, wherever a file may lie ---


@pytest.fixture
def shelf(stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file of a data set "tiny"; no mirror and no URL are set, and the cache is empty."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    np.savez(folder / "tiny.npz", X=np.eye(3), y=np.arange(3.0))
    content = (folder / "tiny.npz").read_bytes()
    record = Record(**{**FIELDS, "sha256": hashlib.sha256(content).hexdigest()})
    monkeypatch.setitem(RECORDS, "tiny", record)
    return folder


@pytest.fixture
def server(shelf: Path, serve: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The shelf over HTTP, set as ``HARDTHRESH_DATA_URL``."""
    pytest.importorskip("pooch", reason="downloads need pooch")
    url = serve(shelf)
    monkeypatch.setenv("HARDTHRESH_DATA_URL", url)
    return url


def cached(shelf: Path) -> list[str]:
    folder = shelf.parent / "cache"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_mirror_comes_first_and_needs_no_pooch(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv("HARDTHRESH_DATA", str(shelf))
    monkeypatch.setenv("HARDTHRESH_DATA_URL", "http://127.0.0.1:9/never-asked")
    assert np.array_equal(fetch("tiny").data, np.eye(3))
    assert cached(shelf) == []


def test_damaged_mirror_file_is_refused(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARDTHRESH_DATA", str(shelf))
    (shelf / "tiny.npz").write_bytes(b"something else")
    with pytest.raises(DatasetError, match=r"tiny\.npz is not the known file of 'tiny'.*SHA-256 is .* expected"):
        fetch("tiny")


def test_missing_file_says_exactly_what_to_do(shelf: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        fetch("tiny")
    message = str(caught.value)
    for part in ("HARDTHRESH_DATA ", "tiny.npz", "HARDTHRESH_DATA_URL", "this test", "Licence: free", "cache"):
        assert part in message
    assert RECORDS["tiny"].sha256 in message


def test_without_folders_and_pooch_the_error_says_so(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARDTHRESH_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match="no folder, because none is set"):
        fetch("tiny")


def test_download_is_cached(server: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.array_equal(fetch("tiny").target, np.arange(3.0))
    assert cached(shelf) == ["tiny.npz"]
    monkeypatch.delenv("HARDTHRESH_DATA_URL")
    (shelf / "tiny.npz").unlink()
    assert fetch("tiny").data.shape == (3, 3)  # from the cache, with no address left


def test_default_address_is_the_release(server: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARDTHRESH_DATA_URL")
    monkeypatch.setattr(sources, "RELEASE_URL", server + "/")
    assert fetch("tiny").data.shape == (3, 3)


def test_wrong_download_leaves_no_file(server: str, shelf: Path) -> None:
    (shelf / "tiny.npz").write_bytes(b"something else")
    with pytest.raises(
        DatasetError, match=r"'tiny' from http://127\.0\.0\.1:\d+/tiny\.npz failed, and nothing was kept"
    ):
        fetch("tiny")
    assert cached(shelf) == []


def test_file_missing_on_the_server(server: str, shelf: Path) -> None:
    (shelf / "tiny.npz").unlink()
    with pytest.raises(DatasetError, match=r"HARDTHRESH_DATA_URL.*404"):
        fetch("tiny")
    assert cached(shelf) == []


@pytest.mark.parametrize(
    "url", ["http://example.org/data", "HTTP://example.org", "ftp://example.org", "http://[::2]/x"]
)
def test_plain_connections_are_refused(url: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("pooch.retrieve", lambda url, **_: asked.append(url))
    monkeypatch.setenv("HARDTHRESH_DATA_URL", url)
    with pytest.raises(DatasetError, match=r"not encrypted.*https"):
        fetch("tiny")
    assert asked == []


def test_download_without_pooch(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARDTHRESH_DATA_URL", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install hardthresh\[data\]"):
        fetch("tiny")
