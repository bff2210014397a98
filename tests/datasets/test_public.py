"""Public archives, played by a server on this machine: files of their formats, and all that goes wrong with them."""

import dataclasses
import hashlib
import json
import socket
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import scipy.io
from sklearn.utils import Bunch

from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets import (
    DatasetError,
    ct_slices,
    fetch,
    fetch_ct_slices,
    fetch_wave_energy,
    files,
    public,
    wave_energy,
)
from hardthresh.datasets.registry import RECORDS, Arrays, Record, digest_of_names, moments

pytest.importorskip("pooch", reason="downloads need pooch")

R_FILES = Path(__file__).parent / "files"
X = np.array([[3.0, -1.0, 4.0], [1.0, 5.0, -9.0], [2.0, 6.0, 5.0], [-3.0, 5.0, 8.0]])
LABELS = np.array([-1, 1, 1, -1])


def known(name: str, arrays: Arrays, **changes: Any) -> Record:
    """Return the record of a data set, for a table with these small arrays in the place of the real ones."""
    record = RECORDS[name]
    assert record.public is not None
    table = record.table(arrays)
    there = dataclasses.replace(record.public, names=digest_of_names(table), moments=moments(table), **changes)
    return dataclasses.replace(record, shape=table.data.shape, public=there)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The folder that the server shows, with a small file in the place of arcene.mat."""
    folder = tmp_path / "archive"
    folder.mkdir()
    scipy.io.savemat(folder / "arcene.mat", {"X": X, "Y": LABELS[:, None]})
    return folder


@pytest.fixture
def arcene(
    stranger: Path, archive: Path, serve: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """A function that registers the small arcene at an address of the server, and returns the address."""

    def register(place: str = "", sha256: str | None = "right") -> str:
        url = f"{serve(archive)}/{place}arcene.mat"
        if sha256 == "right":
            sha256 = hashlib.sha256((archive / "arcene.mat").read_bytes()).hexdigest()
        monkeypatch.setitem(RECORDS, "arcene", known("arcene", {"X": X, "y": LABELS}, url=url, sha256=sha256))
        return url

    return register


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


# --- a file, from its archive to the arrays ---


def test_a_stranger_gets_the_data_and_keeps_the_file(arcene: Any, archive: Path, stranger: Path) -> None:
    arcene()
    found = fetch("arcene")
    assert found.data.tolist() == X.tolist()
    assert found.target.tolist() == [0, 1, 1, 0]
    (archive / "arcene.mat").unlink()
    assert fetch("arcene").data.tolist() == X.tolist()  # from the cache
    assert kept(stranger) == ["arcene.mat"]


def test_the_file_of_the_archive_may_lie_in_the_folder(
    arcene: Any, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arcene("nowhere/")
    monkeypatch.setenv("HARDTHRESH_DATA", str(archive))
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert fetch("arcene").data.tolist() == X.tolist()
    (archive / "arcene.mat").write_bytes(b"something else")
    with pytest.raises(DatasetError, match=r"arcene\.mat is not the known file of the data set 'arcene'.*SHA-256"):
        fetch("arcene")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # requests drops a broken connection
@pytest.mark.parametrize("place", ["nowhere/", "truncated/", "silent/"])
def test_an_archive_that_fails(place: str, arcene: Any, stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TIMEOUT", 0.2)
    url = arcene(place)
    with pytest.raises(DatasetError, match="failed, and nothing was kept") as caught:
        fetch("arcene")
    reason = {"nowhere/": "404", "truncated/": "IncompleteRead", "silent/": "timed out"}[place]
    for part in (url, reason, "Check the network", "HARDTHRESH_DATA", "arcene.mat", "arcene.npz"):
        assert part in str(caught.value)
    assert kept(stranger) == []


def test_another_file_than_the_known_one(arcene: Any, archive: Path, stranger: Path) -> None:
    arcene()
    scipy.io.savemat(archive / "arcene.mat", {"X": X + 1, "Y": LABELS[:, None]})
    with pytest.raises(DatasetError, match="SHA256 hash"):
        fetch("arcene")
    assert kept(stranger) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y: (X[[1, 0, 2, 3]], y[[1, 0, 2, 3]]), "moments"),  # other rows first
        (lambda X, y: (X[:, [1, 0, 2]], y), "moments"),  # other columns first
        (lambda X, y: (X, -y), "moments"),
        (lambda X, y: (X + 1e-6, y), "moments"),
        (lambda X, y: (X[:3], y[:3]), "shape"),
        (lambda X, y: (X[:, :2], y), "names"),
    ],
)
def test_a_file_without_a_checksum_is_known_by_its_content(
    change: Any, said: str, arcene: Any, archive: Path, stranger: Path
) -> None:
    arcene(sha256=None)
    changed, labels = change(X, LABELS)
    scipy.io.savemat(archive / "arcene.mat", {"X": changed, "Y": labels[:, None]})
    with pytest.raises(DatasetError, match=rf"not the data set 'arcene' that hardthresh knows: .*{said} .*expected"):
        fetch("arcene")
    scipy.io.savemat(archive / "arcene.mat", {"X": X, "Y": LABELS[:, None]})
    assert fetch("arcene").data.tolist() == X.tolist()  # the wrong file was not kept


def test_a_file_of_another_format(arcene: Any, archive: Path) -> None:
    arcene(sha256=None)
    (archive / "arcene.mat").write_bytes(b"<html>We have moved.</html>")
    with pytest.raises(DatasetError, match=r"cannot be read as the data set 'arcene'"):
        fetch("arcene")


def test_without_pooch(arcene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arcene()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install hardthresh\[data\].*HARDTHRESH_DATA"):
        fetch("arcene")


def test_addresses_are_encrypted_and_pinned() -> None:
    for record in RECORDS.values():
        if record.public and record.public.url:
            files.check_encrypted(record.public.url)
            assert "archive.ics.uci.edu/static/public/" in record.public.url or record.public.sha256
        assert record.public is None or record.public.reader in public._READERS


# --- the format of each archive ---


def test_bags_of_musk(tmp_path: Path) -> None:
    (tmp_path / "musk1.csv").write_text("1,1,42,-198\n1,1,43,-199\n0,2,44,-200\n")
    arrays = public._bags(RECORDS["musk1"], tmp_path / "musk1.csv")
    table = RECORDS["musk1"].table(arrays)
    assert table.data.tolist() == [[42, -198], [43, -199], [44, -200]]
    assert table.target.tolist() == [1, 1, 0]
    assert table.sample_groups is not None
    assert table.sample_groups.tolist() == [1, 1, 2]


def zipped(path: Path, **contents: str) -> Path:
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in contents.items():
            opened.writestr(name, text)
    return path


def test_communities_of_uci(tmp_path: Path) -> None:
    rows = "8,?,?,Lakewoodcity,1,0.19,?,0.2\n53,?,?,Tukwilacity,1,0,0.16,0.67\n"
    path = zipped(tmp_path / "c.zip", **{"communities.names": "@attribute", "communities.data": rows})
    arrays = public._communities(RECORDS["communities_crime"], path)
    assert np.array_equal(arrays["X"], [[0.19, np.nan], [0, 0.16]], equal_nan=True)
    assert arrays["y"].tolist() == [0.2, 0.67]


def test_blogfeedback_of_uci(tmp_path: Path) -> None:
    days = {"02.01.00_00": "5,50\n", "03.01.00_00": "6,60\n7,70\n", "03.31.01_00": "8,80\n"}
    test = {f"blogData_test-2012.{day}.csv": rows for day, rows in days.items()}
    arrays = public._blogfeedback(
        RECORDS["blogfeedback"], zipped(tmp_path / "b.zip", **{"blogData_train.csv": "1,10\n2,20\n", **test})
    )
    assert arrays["X_train"].tolist() == [[1], [2]]
    assert arrays["y_test"].tolist() == [60, 70, 80, 50]  # March before February, as in the file of the folder


def test_files_of_r() -> None:
    pytest.importorskip("rdata", reason="files of R need rdata")
    flavin = RECORDS["riboflavin"].table(public._riboflavin(RECORDS["riboflavin"], R_FILES / "riboflavin.RData"))
    assert flavin.data.tolist() == [[1.5, 4], [-2, 5], [0.25, 6]]
    assert flavin.target.tolist() == [-6.5, -7.25, -8]
    assert flavin.feature_names.tolist() == ["AADK_at", "AAPA_at"]
    golub = RECORDS["leukemia"].table(public._golub(RECORDS["leukemia"], R_FILES / "golub.rda"))
    assert golub.data.tolist() == [[70, 80], [30, 40], [10, 20], [50, 60]]  # samples 1, 2, 39, 40
    assert golub.target.tolist() == [0, 1, 0, 1]
    assert golub.train is not None
    assert golub.train.tolist() == [True, True, False, False]
    assert golub.feature_names.tolist() == ["P1_at", "P2_at"]


def test_files_of_r_without_rdata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(MissingDependencyError, match=r"needs rdata.*pip install hardthresh\[data\]"):
        public._riboflavin(RECORDS["riboflavin"], R_FILES / "riboflavin.RData")


# --- what scikit-learn downloads ---

ROWS = np.column_stack([np.arange(217.0), np.linspace(2.0, 3.0, 217), np.linspace(3.0, 2.0, 217), np.ones(217)])
NAMES = ["principal_component_1", "absorbance_1", "absorbance_2", "moisture"]


@pytest.fixture
def openml(
    stranger: Path, tmp_path: Path, serve: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """A function that puts the server in the place of OpenML, with a small set 505, and returns its ARFF."""

    def start(place: str = "") -> Path:
        fat = 50 - np.arange(217.0)
        declared = "\n".join(f"@attribute {name} numeric" for name in [*NAMES, "fat"])
        lines = "\n".join(",".join(map(repr, map(float, row))) for row in np.column_stack([ROWS, fat]))
        arff = tmp_path / "data" / "v1" / "download" / "505" / "tecator.arff"
        arff.parent.mkdir(parents=True)
        arff.write_text(f"@relation tecator\n{declared}\n@data\n{lines}\n")
        described = {
            "id": "505",
            "name": "tecator",
            "description": "Meat.",
            "version": "1",
            "format": "ARFF",
            "status": "active",
        }
        described |= {"file_id": "505", "url": "https://www.openml.org/data/v1/download/505/tecator.arff"}
        described |= {"md5_checksum": hashlib.md5(arff.read_bytes()).hexdigest(), "default_target_attribute": "fat"}
        plain = {
            "data_type": "numeric",
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        features = [
            plain | {"index": str(i), "name": name, "is_target": str(name == "fat").lower()}
            for i, name in enumerate([*NAMES, "fat"])
        ]
        answers = {
            "505": {"data_set_description": described},
            "features/505": {"data_features": {"feature": features}},
            "qualities/505": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "217.0"}]}},
        }
        for path, answer in answers.items():
            file = tmp_path / "api" / "v1" / "json" / "data" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(answer))
        url = serve(tmp_path)

        def reach(request: Any) -> Any:
            path = urlsplit(request.full_url).path
            broken = place if place != "truncated/" or path.endswith(".arff") else ""
            return urllib.request.urlopen(f"{url}/{broken}{path.removeprefix('/')}")

        monkeypatch.setattr("sklearn.datasets._openml.urlopen", reach)
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        small = {"X": ROWS[:215, 1:3], "y": fat[:215]}
        monkeypatch.setitem(RECORDS, "tecator", known("tecator", small))
        return arff

    return start


def test_tecator_of_openml(openml: Any) -> None:
    openml()
    found = fetch("tecator")
    assert found.data.tolist() == ROWS[:215, 1:3].tolist()  # no principal components, no samples for extrapolation
    assert found.target[:3].tolist() == [50, 49, 48]
    assert found.target_names.tolist() == ["fat"]


@pytest.mark.filterwarnings("ignore:A network error", "ignore:Invalid cache")
@pytest.mark.parametrize("place", ["nowhere/", "truncated/", "silent/"])
def test_openml_fails(place: str, openml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TIMEOUT", 0.2)
    openml(place)
    before = socket.getdefaulttimeout()
    with pytest.raises(DatasetError, match=r"'tecator' from OpenML failed\. Check the network.*HARDTHRESH_DATA"):
        fetch("tecator")
    assert socket.getdefaulttimeout() == before


@pytest.mark.filterwarnings("ignore:Invalid cache")
def test_openml_has_changed_the_file(openml: Any) -> None:
    arff = openml()
    arff.write_text(arff.read_text().replace("49.0", "48.0"))
    with pytest.raises(DatasetError, match="md5 checksum"):
        fetch("tecator")


def test_news20_in_the_order_of_the_file(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    posts = {
        "train": Bunch(
            data=["red red", "blue", "red green"], filenames=["b/20", "a/3", "b/10"], target=np.array([1, 0, 1])
        ),
        "test": Bunch(data=["green white"], filenames=["a/9"], target=np.array([0])),
    }
    asked = []

    def give(subset: str, **options: Any) -> Bunch:
        asked.append(options["data_home"])
        return Bunch(**posts[subset], target_names=["a", "b"])

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", give)
    arrays = public._news20(RECORDS["news20"], None)
    table = RECORDS["news20"].table(arrays)
    assert table.feature_names.tolist() == ["blue", "green", "red"]  # of the training posts alone
    assert table.data.toarray().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 2], [0, 1, 0]]
    assert table.target.tolist() == [0, 1, 1, 0]
    assert asked == [stranger, stranger]


# --- large tables in zip archives of UCI ---


def test_ct_slices_of_uci(stranger: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "patientId,value0,reference\n0,-0.25,21.5\n7,0.5,96.0\n"
    path = zipped(tmp_path / "ct+slices.zip", **{"slice_localization_data.csv": rows})
    monkeypatch.setattr(ct_slices, "URL", f"{serve(tmp_path)}/ct+slices.zip")
    with pytest.raises(DatasetError, match="SHA256 hash"):
        fetch_ct_slices()
    monkeypatch.setattr(ct_slices, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    assert fetch_ct_slices().data.tolist() == [[-0.25], [0.5]]
    assert kept(stranger) == ["ct+slices.zip"]


def test_wave_farms_of_uci(stranger: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    header = ",".join([*(f"X{j}" for j in range(148)), "Total_Power"])
    row = ",".join(["1"] * 148 + ["7"])
    path = zipped(tmp_path / "wave.zip", **{"WEC/WEC_Perth_49.csv": f"{header}\n{row}\n{row}\n"})
    monkeypatch.setattr(wave_energy, "URL", f"{serve(tmp_path)}/wave.zip")
    with pytest.raises(DatasetError, match=r"shape \(2, 148\), expected \(36043, 148\)"):
        fetch_wave_energy()
    monkeypatch.setitem(wave_energy.ROWS, "Perth", 2)
    assert fetch_wave_energy().target.tolist() == [7, 7]
    with pytest.raises(DatasetError, match=r"has 0 files WEC_Sydney_49\.csv"):
        fetch_wave_energy("Sydney")
    (stranger / "wave.zip").write_bytes(path.read_bytes()[:100])
    with pytest.raises(DatasetError, match="not a whole zip archive"):
        fetch_wave_energy()
    assert fetch_wave_energy().target.tolist() == [7, 7]  # the damaged archive was replaced


@pytest.mark.parametrize(("module", "fetch_set"), [(ct_slices, fetch_ct_slices), (wave_energy, fetch_wave_energy)])
def test_without_network(
    module: Any, fetch_set: Any, stranger: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "URL", f"{serve(tmp_path)}/nowhere.zip")
    with pytest.raises(DatasetError, match=r"Check the network, or download that address elsewhere.* \S+\.csv\."):
        fetch_set()
