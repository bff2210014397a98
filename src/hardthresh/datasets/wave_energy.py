"""The wave farms of UCI."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import FOLDER_VARIABLE, DatasetError, archived_table, forget, read_table

ROWS = {"Perth": 36043, "Sydney": 17964}
TARGET = "Total_Power"
SOURCE = "UCI Machine Learning Repository, Large-scale Wave Energy Farm, https://doi.org/10.24432/C5GG7Q"

URL = "https://archive.ics.uci.edu/static/public/882/large-scale+wave+energy+farm.zip"


@overload
def fetch_wave_energy(site: str = ..., *, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
@overload
def fetch_wave_energy(site: str = ..., *, return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...
def fetch_wave_energy(
    site: str = "Perth", *, return_X_y: bool = False, as_frame: bool = False
) -> Dataset | tuple[Any, Any]:
    """Fetch the wave farms with 49 buoys at one site.

    Each row is a layout: the coordinates and the power of 49 buoys, the quality factor qW, and the total power, which
    is the target and the sum of the 49 powers.

    Parameters
    ----------
    site : {"Perth", "Sydney"}
        The site, which selects the file ``WEC_Perth_49.csv`` or ``WEC_Sydney_49.csv``.
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return a pandas DataFrame and Series instead of arrays.

    Returns
    -------
    Dataset, or tuple (data, target)
        Float64; `data` has the 148 columns of the file other than the target.

    Raises
    ------
    DatasetError
        If the file is neither in the folder that ``HARDTHRESH_DATA`` names nor in the cache, and cannot be downloaded,
        or is not such a table; the message says what to do.
    InvalidInputError
        If the site is unknown.
    MissingDependencyError
        If pooch (for a download) or pandas (for `as_frame`) is not installed.

    See Also
    --------
    fetch : Data sets whose files are verified by a checksum.

    Notes
    -----
    Source: UCI Machine Learning Repository, data set 882. Licence: CC BY 4.0. The checksum of the archive is unknown;
    its table must have 148 columns besides the target, and 36,043 rows for Perth or 17,964 for Sydney. A file in one of
    the folders may be any table with a column ``Total_Power``.

    References
    ----------
    Neshat, Alexander, Sergiienko and Wagner (2020), Large-scale Wave Energy Farm data set, UCI Machine Learning
    Repository.

    Examples
    --------
    Not run by the tests, because it downloads the file:

    >>> from hardthresh.datasets import fetch_wave_energy
    >>> X, y = fetch_wave_energy(return_X_y=True)  # doctest: +SKIP
    """
    if site not in ROWS:
        raise InvalidInputError(f"site={format_value(site)} is unknown; use {' or '.join(map(repr, ROWS))}")
    path = archived_table(f"WEC_{site}_49.csv", URL, None, "the wave farms")
    dataset = _read(path, site)
    if isinstance(path, zipfile.Path) and dataset.data.shape != (ROWS[site], 148):
        forget(Path(str(path.root.filename)))
        raise DatasetError(
            f"{path} has the shape {dataset.data.shape}, expected {(ROWS[site], 148)}: UCI has changed it, or what was "
            f"downloaded is another file; set {FOLDER_VARIABLE} to a folder that holds {path.name}"
        )
    if as_frame:
        dataset = dataset.to_pandas()
    return (dataset.data, dataset.target) if return_X_y else dataset


def _read(path: Path | zipfile.Path, site: str) -> Dataset:
    names, table = read_table(path, (TARGET,), "wave farms")
    last = names.index(TARGET)
    return Dataset(
        data=np.delete(table, last, axis=1),
        target=table[:, last].copy(),
        feature_names=np.array([name for name in names if name != TARGET], dtype=object),
        target_names=np.array([TARGET], dtype=object),
        name="wave_energy",
        description=f"Layouts of 49 wave energy converters at {site}, and their power. Source: {SOURCE}.",
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        citation=(
            "Neshat, Alexander, Sergiienko and Wagner (2020), Large-scale Wave Energy Farm data set, UCI Machine "
            "Learning Repository."
        ),
    )
