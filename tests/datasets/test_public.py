"""Public archives, played by a server on this machine: what users get, and all that goes wrong."""

import dataclasses
import hashlib
import json
import socket
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import scipy.io

from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets import (
    DatasetError,
    fetch,
    files,
    public,
)
from hardthresh.datasets.registry import RECORDS, Arrays, Record, digest_of_names, moments

pytest.importorskip("pooch", reason="downloads need pooch")

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


@pytest.mark.slow
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
