"""The places of the files of data sets, in the order in which they are tried."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardthresh.datasets.files import (
    FOLDER_VARIABLE,
    DatasetError,
    check_content,
    download,
    local_file,
    local_folders,
)
from hardthresh.datasets.public import public_arrays
from hardthresh.datasets.registry import DATA, Arrays, Record

URL_VARIABLE = "HARDTHRESH_DATA_URL"

RELEASE_URL: str | None = None
"""URL of the release assets with the files of the table; None until a release includes them."""


def read_arrays(record: Record) -> Arrays:
    """Return the arrays of a data set, after a check.

    Places, in this order: the package (bundled sets only), the folder ``HARDTHRESH_DATA``, the cache
    (``HARDTHRESH_CACHE``, or a folder of the user), the address ``HARDTHRESH_DATA_URL``, and the public archive of the
    record.
    """
    if record.bundled:
        return _unpacked(DATA / record.file, record)
    if path := local_file(record.file):
        return _unpacked(path, record)
    if base_url := os.environ.get(URL_VARIABLE):
        return _downloaded(record, base_url)
    if record.public:
        return public_arrays(record)
    if RELEASE_URL:
        return _downloaded(record, RELEASE_URL)
    looked = " and ".join(str(folder) for folder in local_folders()) or "no folder, because none is set"
    raise DatasetError(
        f"{record.file}, the file of the data set {record.name!r}, is not on this machine (looked in: {looked}), and "
        f"no public address of it is known. Set the environment variable {FOLDER_VARIABLE} to a folder that holds "
        f"{record.file}, or {URL_VARIABLE} to the URL of such a folder. The file was made from: {record.source}. "
        f"Licence: {record.licence}. SHA-256 of the file: {record.sha256}."
    )


def _downloaded(record: Record, base_url: str) -> Arrays:
    path = download(
        f"{base_url.rstrip('/')}/{record.file}",
        record.file,
        record.sha256,
        f"the data set {record.name!r}",
        f"check the address in {URL_VARIABLE}, or set {FOLDER_VARIABLE} to a folder that holds {record.file} (SHA-256 "
        f"{record.sha256}).",
    )
    return _unpacked(path, record)


def _unpacked(path: Path, record: Record) -> dict[str, NDArray[Any]]:
    content = check_content(path, record.sha256, repr(record.name))
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)
