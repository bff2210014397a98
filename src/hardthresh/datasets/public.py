"""Data sets from the archives that publish them: OpenML, UCI, scikit-learn, and files of pinned commits on GitHub."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import HardThreshError
from hardthresh.datasets import files
from hardthresh.datasets.files import (
    FOLDER_VARIABLE,
    DatasetError,
    archive_member,
    archived_names,
    download,
    file_of,
    forget,
)
from hardthresh.datasets.r_files import read_expression_set, read_r
from hardthresh.datasets.registry import Arrays, Record, digest_of_names, moments

TOLERANCE = 1e-9
"""Relative difference of moments that rounding explains: the data have at most 2.5e9 entries of 16 digits."""

_TECATOR_ROWS = 215
"""The training, monitoring and test samples of the 240 on OpenML; the others are for extrapolation."""


def public_arrays(record: Record) -> Arrays:
    """Return the arrays of a data set from its public archive, after a check of their shape, names and moments.

    Raises
    ------
    DatasetError
        If the archive does not answer, has no such file, has another one, or the file is not what is expected.
    MissingDependencyError
        If a package for the download or for the format is not installed.
    """
    public = record.public
    assert public is not None
    if public.url is None:
        return _checked(record, _READERS[public.reader], None)
    file = file_of(public.url)
    path = download(
        public.url,
        file,
        public.sha256,
        f"the data set {record.name!r}",
        f"download that address elsewhere, and set {FOLDER_VARIABLE} to the folder that holds {file} (or "
        f"{record.file}, SHA-256 {record.sha256}).",
    )
    try:
        return _checked(record, _READERS[public.reader], path)
    except DatasetError:
        forget(path)
        raise


def _checked(record: Record, read: Callable[[Record, Any], Arrays], path: Path | None) -> Arrays:
    """Return the arrays that a reader finds, if they are those of the record."""
    where = str(path) if path else "What scikit-learn downloaded"
    try:
        arrays = read(record, path)
        table = record.table(arrays)
    except HardThreshError:
        raise
    except Exception as error:  # a file of another format fails in the reader's own way
        raise DatasetError(f"{where} cannot be read as the data set {record.name!r}: {error!r}") from error
    assert record.public is not None
    sums = moments(table)
    found = {"shape": table.data.shape, "names": digest_of_names(table), "moments": sums}
    known = {"shape": record.shape, "names": record.public.names, "moments": record.public.moments}
    wrong = [key for key in ("shape", "names") if found[key] != known[key]]
    if not np.allclose(sums, record.public.moments, rtol=TOLERANCE, atol=0.0):
        wrong.append("moments")
    if wrong:
        differences = "; ".join(f"{key} {found[key]}, expected {known[key]}" for key in wrong)
        raise DatasetError(
            f"{where} is not the data set {record.name!r} that hardthresh knows: {differences}. The archive may have "
            f"changed it; set {FOLDER_VARIABLE} to a folder that holds {record.file} (SHA-256 {record.sha256})."
        )
    return arrays


# --- readers: each returns the arrays that the file of the record has ---


def _matlab(record: Record, path: Path) -> Arrays:
    from scipy.io import loadmat

    content = loadmat(path)
    return {"X": content["X"], "y": content["Y"].ravel()}


def _bags(record: Record, path: Path) -> Arrays:
    """Read a table of the label, the bag and the features of each row."""
    table = np.loadtxt(path, delimiter=",")
    return {"X": table[:, 2:], "y": table[:, 0], "bag": table[:, 1]}


def _riboflavin(record: Record, path: Path) -> Arrays:
    frame = read_r(path)["riboflavin"]
    return {"X": frame["x"].to_numpy(), "y": frame["y"], "gene": frame["x"].coords["dim_1"].to_numpy()}


def _golub(record: Record, path: Path) -> Arrays:
    expression, people = read_expression_set(path, "ALL.AML")
    number = np.array(expression.coords["dim_1"].to_numpy(), dtype=int)
    order = np.argsort(number)
    return {
        "X": expression.to_numpy().T[order],
        "y": np.array(people == "AML")[order],
        "train": number[order] <= 38,  # Golub et al. (1999): 38 training samples, numbered first
        "probe": expression.coords["dim_0"].to_numpy(),
    }


def _blogfeedback(record: Record, path: Path) -> Arrays:
    """Read the training file and the test files of UCI, those of March before those of February as in our file."""

    def table(name: str) -> Any:
        with archive_member(path, name).open(encoding="ascii") as file:
            return np.loadtxt(file, delimiter=",", ndmin=2)

    train = table("blogData_train.csv")
    names = sorted(Path(name).name for name in archived_names(path) if "blogData_test-" in name)
    test = np.concatenate([table(name) for month in ("2012.03", "2012.02") for name in names if month in name])
    return {"X_train": train[:, :-1], "y_train": train[:, -1], "X_test": test[:, :-1], "y_test": test[:, -1]}


def _communities(record: Record, path: Path) -> Arrays:
    with archive_member(path, "communities.data").open(encoding="ascii") as file:
        rows = [line.strip().split(",")[5:] for line in file if line.strip()]  # five columns identify the community
    table = np.array([[np.nan if entry == "?" else float(entry) for entry in row] for row in rows])
    return {"X": table[:, :-1], "y": table[:, -1]}


def _tecator(record: Record, path: None) -> Arrays:
    from sklearn.datasets import fetch_openml

    with _online(record, "OpenML"):
        found = fetch_openml(
            data_id=505,
            target_column="fat",
            as_frame=False,
            parser="liac-arff",
            data_home=files.cache_folder(),
            n_retries=1,
        )
    absorbance = ["absorbance" in name for name in found.feature_names]
    return {
        "X": np.asarray(found.data, dtype=float)[:_TECATOR_ROWS, absorbance],
        "y": np.asarray(found.target, dtype=float)[:_TECATOR_ROWS],
    }


def _news20(record: Record, path: None) -> Arrays:
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    arrays: dict[str, Any] = {}
    counter = CountVectorizer()
    for part in ("train", "test"):
        with _online(record, "the archive of scikit-learn"):
            posts = fetch_20newsgroups(subset=part, shuffle=False, data_home=files.cache_folder(), n_retries=1)
        order = sorted(range(len(posts.data)), key=lambda i: (posts.target[i], Path(posts.filenames[i]).name))
        texts = [posts.data[i] for i in order]
        counts = sp.csr_array(counter.fit_transform(texts) if part == "train" else counter.transform(texts))
        arrays |= {f"{part}_{key}": getattr(counts, key) for key in ("data", "indices", "indptr")}
        arrays |= {f"{part}_shape": np.array(counts.shape), f"y_{part}": posts.target[order]}
    return arrays | {"class_name": posts.target_names, "vocabulary_utf8": counter.get_feature_names_out()}


_READERS: Mapping[str, Callable[[Record, Any], Arrays]] = {
    "matlab": _matlab,
    "bags": _bags,
    "riboflavin": _riboflavin,
    "golub": _golub,
    "blogfeedback": _blogfeedback,
    "communities": _communities,
    "tecator": _tecator,
    "news20": _news20,
}


@contextmanager
def _online(record: Record, archive: str) -> Iterator[None]:
    """Say what to do where scikit-learn cannot download a data set.

    scikit-learn waits indefinitely for a server that stops sending, so that sockets without a limit of their own get
    one in the meantime.
    """
    before = socket.getdefaulttimeout()
    try:
        socket.setdefaulttimeout(before or files.TIMEOUT)
        yield
    except (OSError, ValueError, EOFError, HTTPException) as error:  # no answer, no such set, another one, a part
        raise DatasetError(
            f"Downloading the data set {record.name!r} from {archive} failed. Check the network and try again, or set "
            f"{FOLDER_VARIABLE} to a folder that holds {record.file} (SHA-256 {record.sha256}). The reason: {error!r}"
        ) from error
    finally:
        socket.setdefaulttimeout(before)
