"""Find, download and verify the files of data sets."""

from __future__ import annotations

import hashlib
import importlib
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from hardthresh.core.errors import HardThreshError, MissingDependencyError

FOLDER_VARIABLE = "HARDTHRESH_DATA"
CACHE_VARIABLE = "HARDTHRESH_CACHE"

TIMEOUT = 30.0
"""Seconds after which a server that sends nothing is given up, as pooch's default."""


class DatasetError(HardThreshError, OSError):
    """The file of a data set cannot be found, downloaded or verified; the message says what to do."""


def data_folder() -> Path | None:
    """Return the folder that ``HARDTHRESH_DATA`` names."""
    return Path(folder).expanduser() if (folder := os.environ.get(FOLDER_VARIABLE)) else None


def local_folders() -> list[Path]:
    """Return the folders that are searched for files of data sets, in this order."""
    return [folder for folder in (data_folder(), cache_folder()) if folder]


def cache_folder() -> Path | None:
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


def download(url: str, file: str, sha256: str | None, what: str, advice: str) -> Path:
    """Return the path of a file: in one of the folders, or downloaded by pooch into the cache.

    Parameters
    ----------
    url : str
        Its address.
    file : str
        Its name in the folders.
    sha256 : str or None
        Its checksum, which every file is held against; None if it is unknown.
    what : str
        What the file is, for messages.
    advice : str
        What to do when it cannot be downloaded, for messages.

    Raises
    ------
    DatasetError
        If the address does not answer within `TIMEOUT`, has no such file, or has another one; nothing is kept then.
    MissingDependencyError
        If pooch is not installed.
    """
    if (folder := data_folder()) and (folder / file).is_file():
        check_content(folder / file, sha256, what)
        return folder / file
    check_encrypted(url)
    try:
        pooch = importlib.import_module("pooch")
    except ImportError as error:
        raise MissingDependencyError(
            f"Downloading {url} needs pooch, which is not installed; run 'pip install hardthresh[data]', or {advice}"
        ) from error
    try:
        path = pooch.retrieve(
            url,
            known_hash=sha256 and f"sha256:{sha256}",
            fname=file,
            path=cache_folder(),
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
        )
    except (OSError, ValueError) as error:  # no answer, no such file, or (ValueError) another SHA-256
        raise DatasetError(
            f"Downloading {what} from {url} failed, and nothing was kept. Check the network, or {advice} The reason: "
            f"{error}"
        ) from error
    return Path(path)


def check_content(path: Path, sha256: str | None, what: str) -> bytes:
    """Return the content of a file.

    Raises
    ------
    DatasetError
        If its SHA-256 is another one than the known one.
    """
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise DatasetError(
            f"{path} is not the known file of {what}: its SHA-256 is {found}, expected {sha256}. Remove or replace "
            "the file."
        )
    return content


def archived_names(archive: Path) -> list[str]:
    """Return the names in a zip archive.

    Raises
    ------
    DatasetError
        If the archive is damaged; one in the cache is removed.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except zipfile.BadZipFile as error:
        forget(archive)
        raise DatasetError(f"{archive} is not a whole zip archive ({error}); try again.") from error


def archive_member(archive: Path, name: str) -> zipfile.Path:
    """Return a file of a zip archive, in whichever folder of it.

    Raises
    ------
    DatasetError
        If the archive is damaged, or has no such file; a damaged archive in the cache is removed.
    """
    found = [entry for entry in archived_names(archive) if entry.rsplit("/", 1)[-1] == name]
    if len(found) != 1:
        raise DatasetError(f"{archive} has {len(found)} files {name}, expected one")
    return zipfile.Path(archive, found[0])


def file_of(url: str) -> str:
    """Return the name under which a download is kept."""
    return unquote(urlsplit(url).path).rsplit("/", 1)[-1]


def archived_table(name: str, url: str, sha256: str | None, what: str) -> Path | zipfile.Path:
    """Return a file from one of the folders, or from a zip archive at an address.

    Raises
    ------
    DatasetError, MissingDependencyError
        As `download` and `archive_member`.
    """
    if path := local_file(name):
        return path
    archive = file_of(url)
    advice = f"download that address elsewhere, and set {FOLDER_VARIABLE} to the folder that holds {archive} or {name}."
    return archive_member(download(url, archive, sha256, what, advice), name)


def forget(path: Path) -> None:
    """Remove a file if it lies in the cache, so that the next call downloads it again."""
    if path.parent == cache_folder():
        path.unlink(missing_ok=True)


def local_file(name: str) -> Path | None:
    """Return the path of a file in one of the folders, None if none of them has it."""
    return next((folder / name for folder in local_folders() if (folder / name).is_file()), None)


def read_table(path: Path | zipfile.Path, needed: Sequence[str], what: str) -> tuple[list[str], NDArray[np.float64]]:
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
