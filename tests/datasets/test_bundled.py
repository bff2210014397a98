"""The data sets inside the package: the published tables, in every form, with their provenance."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hardthresh import SparseCoxRegression, datasets
from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets import load_actg175, load_colon, load_growth
from hardthresh.datasets.registry import RECORDS


def test_colon_is_the_published_table() -> None:
    colon = load_colon()
    assert colon.data.shape == (62, 2000)
    assert colon.data.dtype == np.float64
    assert np.bincount(colon.target).tolist() == [22, 40]
    assert colon.target[:4].tolist() == [1, 0, 1, 0]
    assert colon.data[0, 0] == 8589.42
    assert round(float(colon.data.sum()), 2) == 50069562.29
    assert colon.target_names.tolist() == ["normal", "tumour"]
    assert colon.feature_names[[0, 1999]].tolist() == ["gene_0001", "gene_2000"]
    assert "no gene identifiers" in colon.DESCR
    assert "Alon" in colon.citation


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if record.bundled])
def test_bundled_sets_travel_with_their_provenance(name: str) -> None:
    path = Path(datasets.__file__).parent / "data" / f"{name}.json"
    sidecar = json.loads(path.read_text(encoding="utf-8"))
    file = path.with_name(sidecar["file"])
    assert file.stat().st_size == sidecar["bytes"] < 450_000
    assert hashlib.sha256(file.read_bytes()).hexdigest() == sidecar["sha256"] == RECORDS[name].sha256
    assert sidecar["licence"] == RECORDS[name].licence
    assert (sidecar["n"], sidecar["d"]) == RECORDS[name].shape


def test_growth_is_the_published_table() -> None:
    growth = load_growth()
    assert growth.data.shape == (72, 41)
    assert np.isfinite(growth.data).all()
    assert growth.target[:3].tolist() == [0.01369, 0.006421, 0.018897]  # Algeria, Argentina, Australia
    assert growth.data[0, growth.feature_names == "GDP60"] == 7.439


def test_actg175_is_the_published_trial() -> None:
    trial = load_actg175()
    assert trial.data.shape == (2139, 19)
    assert np.isfinite(trial.data).all()
    assert trial.target["event"].sum() == 521
    assert trial.target[:2].tolist() == [(False, 948.0), (True, 1002.0)]
    arms = trial.data[:, -3:]
    assert arms.sum(axis=0).tolist() == [522, 524, 561]
    assert set(arms.sum(axis=1)) == {0, 1}
    assert not {"cd420", "cd820", "offtrt"} & set(trial.feature_names)  # known only after the treatment began


def test_a_survival_target_fits_in_both_forms() -> None:
    X, y = load_actg175(return_X_y=True)
    frame = load_actg175(as_frame=True)
    assert frame.target.dtypes.to_dict() == {"event": np.bool_, "time": np.float64}
    by_array, by_frame = (
        SparseCoxRegression(n_nonzero_coefs=4).fit(*data) for data in ((X, y), (frame.data, frame.target))
    )
    assert np.array_equal(by_array.coef_, by_frame.coef_)
    assert by_array.score(X, y) > 0.65
    assert "event and time" in repr(load_actg175())
    assert "DataFrame" in repr(frame)


def test_colon_in_other_forms() -> None:
    X, y = load_colon(return_X_y=True)
    frame = load_colon(as_frame=True)
    assert frame.data.columns[0] == "gene_0001"
    assert np.array_equal(frame.data.to_numpy(), X)
    assert np.array_equal(frame.target.to_numpy(), y)
    data, target = load_colon(return_X_y=True, as_frame=True)
    assert data.equals(frame.data)
    assert target.equals(frame.target)


def test_two_loads_share_nothing() -> None:
    first, second = load_colon(), load_colon()
    first.data[:] = 0
    assert second.data.min() > 0


def test_as_frame_without_pandas_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="pip install pandas"):
        load_colon(as_frame=True)
