"""The wave farms: a tiny file of the same format, since the real one cannot be had here."""

import numpy as np
import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import DatasetError, fetch_wave_energy

HEADER = "X1,Y1,X2,Y2,Power1,Power2,qW,Total_Power"
LINES = ["0.0,0.0,100.5,50.0,80000.25,90000.5,0.86,170000.75", "1,2,3,4,70000,60000,0.75,130000"]


@pytest.fixture
def farm(tmp_path, monkeypatch):
    """Write the file of a site from its lines, where it is looked for."""
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    monkeypatch.setenv("HARDTHRESH_CACHE", str(tmp_path / "cache"))

    def write(*lines, site="Perth"):
        (tmp_path / f"WEC_{site}_49.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return write


def test_the_total_power_is_the_target(farm):
    farm(HEADER, *LINES)
    farms = fetch_wave_energy()
    assert farms.data.tolist() == [[0, 0, 100.5, 50, 80000.25, 90000.5, 0.86], [1, 2, 3, 4, 70000, 60000, 0.75]]
    assert farms.target.tolist() == [170000.75, 130000]
    assert farms.feature_names.tolist() == ["X1", "Y1", "X2", "Y2", "Power1", "Power2", "qW"]
    assert farms.target_names.tolist() == ["Total_Power"]
    powers = [name.startswith("Power") for name in farms.feature_names]
    np.testing.assert_array_equal(farms.data[:, powers].sum(axis=1), farms.target)


def test_the_target_may_stand_anywhere(farm):
    farm("Total_Power,X1", "5,1", site="Sydney")
    X, y = fetch_wave_energy("Sydney", return_X_y=True)
    assert (X.tolist(), y.tolist()) == ([[1]], [5])


def test_as_frame(farm):
    farm(HEADER, *LINES)
    frame = fetch_wave_energy(as_frame=True)
    assert list(frame.data.columns) == HEADER.split(",")[:-1]
    assert frame.target.tolist() == [170000.75, 130000]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("X1,Y1", "1,2"), "must name Total_Power"),
        (("X1,X1,Total_Power", "1,2,3"), "every column once"),
        ((HEADER, "1,2,three,4,5,6,7,8"), "not a table of numbers"),
        ((HEADER, "1,2,3"), "8 names for 3 columns"),
    ],
)
def test_another_table_is_refused(farm, lines, said):
    farm(*lines)
    with pytest.raises(DatasetError, match=said):
        fetch_wave_energy()


def test_an_unknown_site(farm):
    with pytest.raises(InvalidInputError, match="use 'Perth' or 'Sydney'"):
        fetch_wave_energy("Adelaide")
