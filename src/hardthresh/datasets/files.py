"""Find, download and verify the files of data sets."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from hardthresh.core.errors import HardThreshError, MissingDependencyError
from hardthresh.datasets.registry import DATA, Record

MIRROR_VARIABLE = "HARDTHRESH_DATA"
CACHE_VARIABLE = "HARDTHRESH_CACHE"
URL_VARIABLE = "HARDTHRESH_DATA_URL"

RELEASE_URL: str | None = None
"""URL of the release assets with the files of the table; None until a release includes them."""


class DatasetError(HardThreshError, OSError):
    """The file of a data set cannot be found, downloaded or verified; the message says what to do."""


def read_arrays(record: Record) -> dict[str, NDArray[Any]]:
    """Return the arrays of the file of a record, after checking its SHA-256.

    Places, in this order: the package (bundled sets only), the folder ``HARDTHRESH_DATA``, the cache
    (``HARDTHRESH_CACHE``, or a folder of the user), and ``HARDTHRESH_DATA_URL``, from which pooch downloads the file
    into the cache.
    """
    path = _locate(record)
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != record.sha256:
        raise DatasetError(
            f"{path} is not the known file of {record.name!r}: its SHA-256 is {found}, expected "
            f"{record.sha256}. Remove or replace the file."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def _locate(record: Record) -> Path:
    if record.bundled:
        return DATA / record.file
    folders = local_folders()
    for folder in folders:
        if (folder / record.file).is_file():
            return folder / record.file
    base_url = os.environ.get(URL_VARIABLE) or RELEASE_URL
    if base_url is None:
        looked = " and ".join(str(folder) for folder in folders) or "no folder, because none is set"
        raise DatasetError(
            f"{record.file}, the file of the data set {record.name!r}, is not on this machine (looked in: {looked}), "
            f"and no release of hardthresh includes it yet. Set the environment variable {MIRROR_VARIABLE} to a folder "
            f"that holds {record.file}, or {URL_VARIABLE} to the URL of such a folder. The file was made from: "
            f"{record.source}. Licence: {record.licence}. SHA-256 of the file: {record.sha256}."
        )
    return _download(record, base_url)


def local_folders() -> list[Path]:
    """Return the folders that are searched for files of data sets, in this order."""
    folders = [Path(mirror).expanduser()] if (mirror := os.environ.get(MIRROR_VARIABLE)) else []
    if cache := _cache_folder():
        folders.append(cache)
    return folders


def _cache_folder() -> Path | None:
    """Return the folder of downloads; None if none is set and pooch, which provides a default, is not installed."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser()
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        return None
    return Path(pooch.os_cache("hardthresh"))


def check_encrypted(url: str) -> None:
    """Check that a URL is encrypted, so that nobody can read or change a download on its way.

    Raises
    ------
    DatasetError
        For http and ftp, unless the server is this machine.
    """
    parts = urlsplit(url)
    if parts.scheme in ("http", "ftp") and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise DatasetError(f"{url} is not downloaded, because {parts.scheme} is not encrypted; use an https address.")


def _download(record: Record, base_url: str) -> Path:
    url = f"{base_url.rstrip('/')}/{record.file}"
    check_encrypted(url)
    try:
        pooch = importlib.import_module("pooch")
    except ImportError as error:
        raise MissingDependencyError(
            f"Downloading {url} needs pooch, which is not installed; run 'pip install hardthresh[data]', or set "
            f"{MIRROR_VARIABLE} to a folder that holds {record.file}."
        ) from error
    try:
        return Path(pooch.retrieve(url, known_hash=f"sha256:{record.sha256}", fname=record.file, path=_cache_folder()))
    except (OSError, ValueError) as error:  # no answer, no such file, or (ValueError) another SHA-256
        raise DatasetError(
            f"Downloading the data set {record.name!r} from {url} failed: {error} Nothing was kept. Check the address "
            f"in {URL_VARIABLE}, or set {MIRROR_VARIABLE} to a folder that holds {record.file} (SHA-256 "
            f"{record.sha256})."
        ) from error


def user_file(name: str, source: str) -> Path:
    """Return the path of a file that users must download themselves.

    Raises
    ------
    DatasetError
        If no folder has it; the message says where to get it and where to put it.
    """
    folders = local_folders()
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    looked = " and ".join(map(str, folders)) or "no folder, because none is set"
    raise DatasetError(
        f"{name} is not on this machine (looked in: {looked}), and hardthresh cannot download it. Get it from "
        f"{source}, and set the environment variable {MIRROR_VARIABLE} to the folder that holds it."
    )


def read_table(path: Path, needed: Sequence[str], what: str) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of the columns and the numbers of a CSV file.

    Raises
    ------
    DatasetError
        If a needed column is missing, a name occurs twice, or an entry is not a number.
    """
    with path.open(encoding="utf-8-sig") as file:
        names = [name.strip().strip('"') for name in file.readline().split(",")]
        if not {*needed} <= {*names} or len(set(names)) < len(names):
            raise DatasetError(
                f"{path} is not a table of {what}: its header must name {', '.join(needed)}, and every column once"
            )
        try:
            table = np.loadtxt(file, delimiter=",", ndmin=2)
        except ValueError as error:
            raise DatasetError(f"{path} is not a table of numbers: {error}") from error
    if table.shape[1] != len(names):
        raise DatasetError(f"{path} has {len(names)} names for {table.shape[1]} columns")
    return names, table
