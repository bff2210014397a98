"""The CT slices of UCI. Users download the file; the tests have only its first rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import read_table, user_file

FILE = "slice_localization_data.csv"
GROUP, TARGET = "patientId", "reference"
SOURCE = (
    "UCI Machine Learning Repository, Relative location of CT slices on axial axis, https://doi.org/10.24432/C5CP6G"
)


@overload
def fetch_ct_slices(*, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
@overload
def fetch_ct_slices(*, return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...
def fetch_ct_slices(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
    """Fetch the CT slices, 53,500 of 74 patients, from a file that you have downloaded.

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
        If ``slice_localization_data.csv`` is neither in the folder that ``HARDTHRESH_DATA`` names nor in the cache, or
        has other contents.
    MissingDependencyError
        If `as_frame` is True and pandas is not installed.

    See Also
    --------
    fetch : Data sets whose files are verified by a checksum.

    Notes
    -----
    Source: UCI Machine Learning Repository, data set 206. Licence: CC BY 4.0. The checksum is unknown, so any table
    with columns ``patientId`` and ``reference`` is accepted.

    References
    ----------
    Graf, Kriegel, Schubert, Poelsterl and Cavallaro (2011), 2D image registration in CT images using radial image
    descriptors, Medical Image Computing and Computer-Assisted Intervention.

    Examples
    --------
    Not run by the tests, because it needs the file:

    >>> from hardthresh.datasets import fetch_ct_slices
    >>> X, y = fetch_ct_slices(return_X_y=True)  # doctest: +SKIP
    """
    dataset = _read(user_file(FILE, SOURCE))
    if as_frame:
        dataset = dataset.to_pandas()
    return (dataset.data, dataset.target) if return_X_y else dataset


def _read(path: Path) -> Dataset:
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
