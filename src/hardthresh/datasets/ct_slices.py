"""The CT slices of UCI."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import archived_table, read_table

FILE = "slice_localization_data.csv"
GROUP, TARGET = "patientId", "reference"
SOURCE = (
    "UCI Machine Learning Repository, Relative location of CT slices on axial axis, https://doi.org/10.24432/C5CP6G"
)

URL = "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
SHA256 = "9411f92082678169d2a01356f036708498c3ab507f6595919456bbb04a1d942a"


@overload
def fetch_ct_slices(*, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
@overload
def fetch_ct_slices(*, return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...
def fetch_ct_slices(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
    """Fetch the CT slices, 53,500 of 74 patients.

    Each row is a slice: 240 bins of a histogram of bone and 144 of air, both in polar coordinates, with -0.25 for bins
    outside the image. The target is the position of the slice on the axis of the body, from 0 (head) to 180 (feet).

    Parameters
    ----------
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return a pandas DataFrame and Series instead of arrays.

    Returns
    -------
    Dataset, or tuple (data, target)
        Float64; `data` has the 384 columns value0 to value383, `sample_groups` the patients: slices of one patient are
        similar, and a split that ignores this does not estimate the error for a new patient.

    Raises
    ------
    DatasetError
        If ``slice_localization_data.csv`` is neither in the folder that ``HARDTHRESH_DATA`` names nor in the cache, and
        cannot be downloaded, or is not such a table; the message says what to do.
    MissingDependencyError
        If pooch (for a download) or pandas (for `as_frame`) is not installed.

    See Also
    --------
    fetch : Data sets whose files are verified by a checksum.

    Notes
    -----
    Source: UCI Machine Learning Repository, data set 206. Licence: CC BY 4.0. The archive that is downloaded, 25 MB, is
    checked by its SHA-256; a file in one of the folders may be any table with columns ``patientId`` and ``reference``.

    References
    ----------
    Graf, Kriegel, Schubert, Poelsterl and Cavallaro (2011), 2D image registration in CT images using radial image
    descriptors, Medical Image Computing and Computer-Assisted Intervention.

    Examples
    --------
    Not run by the tests, because it downloads the file:

    >>> from hardthresh.datasets import fetch_ct_slices
    >>> X, y = fetch_ct_slices(return_X_y=True)  # doctest: +SKIP
    """
    dataset = _read(archived_table(FILE, URL, SHA256, "the CT slices"))
    if as_frame:
        dataset = dataset.to_pandas()
    return (dataset.data, dataset.target) if return_X_y else dataset


def _read(path: Path | zipfile.Path) -> Dataset:
    names, table = read_table(path, (GROUP, TARGET), "CT slices")
    group, target = names.index(GROUP), names.index(TARGET)
    return Dataset(
        data=np.delete(table, [group, target], axis=1),
        target=table[:, target].copy(),
        feature_names=np.array([name for name in names if name not in (GROUP, TARGET)], dtype=object),
        target_names=np.array([TARGET], dtype=object),
        name="ct_slices",
        description=f"Histograms of CT slices, and their position on the axis of the body. Source: {SOURCE}.",
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        citation=(
            "Graf, Kriegel, Schubert, Poelsterl and Cavallaro (2011), 2D image registration in CT images using radial "
            "image descriptors, MICCAI."
        ),
        sample_groups=table[:, group].astype(np.int64),
    )
