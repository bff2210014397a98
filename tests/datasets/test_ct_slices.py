"""The CT slices: a tiny file of the same format, and the first rows of the real one where they are."""

import os
from pathlib import Path

import numpy as np
import pytest

from hardthresh.datasets import DatasetError, fetch_ct_slices

HEADER = "patientId,value0,value1,reference"
LINES = ["0,0.0,-0.25,21.5", "7,0.5,0.125,96.0"]
FRAGMENT = Path(os.environ.get("HARDTHRESH_DATA", "")) / "ctslice_fragment.npz"


@pytest.fixture
def slices(tmp_path, monkeypatch):
    """Write the file from its lines, where it is looked for."""
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    monkeypatch.setenv("HARDTHRESH_CACHE", str(tmp_path / "cache"))

    def write(*lines):
        (tmp_path / "slice_localization_data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return write


def test_the_reference_is_the_target_and_patients_are_groups(slices):
    slices(HEADER, *LINES)
    found = fetch_ct_slices()
    assert found.data.tolist() == [[0.0, -0.25], [0.5, 0.125]]
    assert found.target.tolist() == [21.5, 96.0]
    assert found.sample_groups.tolist() == [0, 7]
    assert found.feature_names.tolist() == ["value0", "value1"]
    assert found.target_names.tolist() == ["reference"]


def test_as_arrays_and_as_frames(slices):
    slices(HEADER, *LINES)
    X, y = fetch_ct_slices(return_X_y=True)
    assert (X.shape, y.shape) == ((2, 2), (2,))
    assert list(fetch_ct_slices(as_frame=True).data.columns) == ["value0", "value1"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("value0,reference", "1,2"), "must name patientId, reference"),
        (("patientId,value0,value0,reference", "1,2,3,4"), "every column once"),
        ((HEADER, "1,two,3,4"), "not a table of numbers"),
        ((HEADER, "1,2,3"), "4 names for 3 columns"),
    ],
)
def test_another_table_is_refused(slices, lines, said):
    slices(*lines)
    with pytest.raises(DatasetError, match=said):
        fetch_ct_slices()


@pytest.mark.skipif(not FRAGMENT.is_file(), reason="HARDTHRESH_DATA has no ctslice_fragment.npz")
def test_the_first_rows_of_the_real_file(slices):
    with np.load(FRAGMENT, allow_pickle=False) as kept:
        X, y, patient = np.round(kept["X"].astype(float), 6), kept["y"], kept["patient"]
    header = ",".join(["patientId", *(f"value{j}" for j in range(384)), "reference"])
    slices(header, *(",".join(map(repr, row.tolist())) for row in np.column_stack([patient, X, y])))
    found = fetch_ct_slices()
    np.testing.assert_array_equal(found.data, X)
    np.testing.assert_array_equal(found.target, y)
    np.testing.assert_array_equal(found.sample_groups, patient)
