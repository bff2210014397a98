"""The CT slices of UCI, of which we have seen the first rows only: the file must be brought by the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import brought, read_table

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

    Each row is a slice: 240 bins of a histogram of bone, 144 of air, both in polar space, -0.25 where a bin lies
    outside the image. The target is where on the axis of the body the slice is, from 0 (head) to 180 (feet).

    Parameters
    ----------
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return a pandas DataFrame and Series in place of arrays.

    Returns
    -------
    Dataset, or tuple (data, target)
        Float64; `data` has the 384 columns value0 to value383, `sample_groups` the patients: slices of one patient are
        alike, and a split that ignores it says little about the next patient.

    Raises
    ------
    DatasetError
        ``slice_localization_data.csv`` is not in the folder that ``HARDTHRESH_DATA`` names nor in the cache, or it is
        not such a table.
    MissingDependencyError
        `as_frame` was asked for and pandas is not installed.

    See Also
    --------
    fetch : The data sets of which we have a copy to compare a file with.

    Notes
    -----
    Source: UCI Machine Learning Repository, data set 206. Licence: CC BY 4.0. No checksum is known to us, so any table
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
    dataset = _read(brought(FILE, SOURCE))
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
        description=f"Histograms of CT slices, and their place on the axis of the body. Source: {SOURCE}.",
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        citation=(
            "Graf, Kriegel, Schubert, Poelsterl and Cavallaro (2011), 2D image registration in CT images using radial "
            "image descriptors, MICCAI."
        ),
        sample_groups=table[:, group].astype(np.int64),
    )
