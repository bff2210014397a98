"""Files whose library is not installed are refused with the name of the extra that brings it."""

import sys

import pytest

from hardthresh.core.errors import MissingDependencyError
from hardthresh.designs import from_hdf5, from_parquet, from_zarr


@pytest.mark.parametrize(
    ("package", "extra", "name", "read"),
    [
        ("pyarrow", "parquet", "t.parquet", from_parquet),
        ("h5py", "hdf5", "t.h5", from_hdf5),
        ("zarr", "zarr", "t.zarr", from_zarr),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package, extra, name, read):
    """Check 15 of scale.md."""
    (tmp_path / name).touch()
    for module in [package, *(each for each in sys.modules if each.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"needs {package}, .*pip install hardthresh\[{extra}\]"):
        read(tmp_path / name)
