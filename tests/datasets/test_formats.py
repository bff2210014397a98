"""The formats of the public archives: small files of each, and the arrays that they become."""

import hashlib
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import Bunch

from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets import DatasetError, ct_slices, fetch_ct_slices, fetch_wave_energy, public, wave_energy
from hardthresh.datasets.registry import RECORDS

R_FILES = Path(__file__).parent / "files"


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


def test_ct_slices_of_uci(stranger: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "patientId,value0,reference\n0,-0.25,21.5\n7,0.5,96.0\n"
    path = zipped(tmp_path / "ct+slices.zip", **{"slice_localization_data.csv": rows})
    monkeypatch.setattr(ct_slices, "URL", f"{serve(tmp_path)}/ct+slices.zip")
    with pytest.raises(DatasetError, match="SHA256 hash"):
        fetch_ct_slices()
    monkeypatch.setattr(ct_slices, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    assert fetch_ct_slices().data.tolist() == [[-0.25], [0.5]]
    assert [path.name for path in stranger.iterdir()] == ["ct+slices.zip"]


def test_wave_farms_of_uci(stranger: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    header = ",".join([*(f"X{j}" for j in range(148)), "Total_Power"])
    row = ",".join(["1"] * 148 + ["7"])
    path = zipped(tmp_path / "wave.zip", **{"WEC/WEC_Perth_49.csv": f"{header}\n{row}\n{row}\n"})
    monkeypatch.setattr(wave_energy, "URL", f"{serve(tmp_path)}/wave.zip")
    with pytest.raises(DatasetError, match=r"shape \(2, 148\), expected \(36043, 148\)"):
        fetch_wave_energy()
    assert not (stranger / "wave.zip").exists()  # the wrong archive is not kept
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
