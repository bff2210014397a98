"""The table of real data sets, ``data/datasets.toml``, and how the arrays of a file become a matrix and a target.

A data set is added by one more entry of the table; `fetch`, `list_datasets` and the tests find it there.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
DATA = Path(__file__).with_name("data")


class Table(NamedTuple):
    """All rows of a data set."""

    data: Any
    target: NDArray[Any]
    feature_names: NDArray[np.object_]
    target_names: NDArray[np.object_]
    train: NDArray[np.bool_] | None  # the published training rows, where the data set has a split
    sample_groups: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """How a data set is got from a public archive; the head of the TOML file documents the fields."""

    reader: str
    names: str
    moments: list[float]
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of the table; the head of the TOML file documents the fields."""

    name: str
    file: str
    sha256: str
    shape: tuple[int, int]
    task: str
    summary: str
    source: str
    licence: str
    citation: str
    target_names: list[str] | None = None
    target_column: int | None = None
    feature_names: str | None = None
    feature_prefix: str = "feature"
    has_split: bool = False
    bundled: bool = False
    public: Public | None = None

    @property
    def where(self) -> str:
        """Where users get the data set: "bundled", "fetched" or "folder"."""
        return "bundled" if self.bundled else "fetched" if self.public else "folder"

    @property
    def description(self) -> str:
        """Everything known about the data set, as running text."""
        return (
            f"{self.summary}\n\nSamples x features: {self.shape[0]} x {self.shape[1]}. Task: {self.task}.\n"
            f"Source: {self.source}.\nLicence: {self.licence}.\nPlease cite: {self.citation}\n"
            f"File {self.file}, SHA-256 {self.sha256}."
        )

    def table(self, arrays: Arrays) -> Table:
        """Return the rows of the data set, from the arrays of its file."""
        data = _design(arrays)
        return Table(
            data=data,
            target=self._target(arrays),
            feature_names=self._feature_names(arrays, data.shape[1]),
            target_names=_texts(self.target_names or arrays["class_name"]),
            train=arrays.get("train") if "X" in arrays else np.arange(data.shape[0]) < len(arrays["y_train"]),
            sample_groups=arrays["bag"].astype(np.int64) if "bag" in arrays else None,
        )

    def _target(self, arrays: Arrays) -> NDArray[Any]:
        """Return the response in float64, the classes 0, 1, ... in the order of the labels, or events and times."""
        if self.task == "survival":
            return np.rec.fromarrays(
                [arrays["event"], arrays["time"]], dtype=[("event", np.bool_), ("time", np.float64)]
            ).view(np.ndarray)
        if self.target_column is not None and "Y" in arrays:
            target = arrays["Y"][:, self.target_column]
        else:
            target = arrays["y"] if "y" in arrays else np.concatenate([arrays["y_train"], arrays["y_test"]])
        if self.task == "classification":
            return np.unique(target, return_inverse=True)[1].astype(np.int64)
        return np.array(target, dtype=np.float64)

    def _feature_names(self, arrays: Arrays, count: int) -> NDArray[np.object_]:
        """Return the names in the file, or prefix_1, prefix_2, ... for columns that it does not name."""
        if self.feature_names is None:
            width = len(str(count))
            return _texts([f"{self.feature_prefix}_{number:0{width}d}" for number in range(1, count + 1)])
        names = arrays[self.feature_names]
        return _texts(names.tobytes().decode().split("\n") if names.dtype == np.uint8 else names)


def _design(arrays: Arrays) -> Any:
    """Return the array X, or X_train above X_test, or two sparse matrices above each other."""
    if "X" in arrays:
        return np.asarray(arrays["X"], dtype=np.float64)
    if "X_train" in arrays:
        return np.concatenate([arrays["X_train"], arrays["X_test"]]).astype(np.float64, copy=False)
    parts = [
        sp.csr_array(
            (arrays[f"{part}_data"].astype(np.float64), arrays[f"{part}_indices"], arrays[f"{part}_indptr"]),
            shape=tuple(arrays[f"{part}_shape"].tolist()),
        )
        for part in ("train", "test")
    ]
    return sp.vstack(parts, format="csr")


def moments(table: Table) -> list[float]:
    """Return sums by which a data set is recognised, in whatever order an archive may have put it.

    They are those of the entries, their squares, and the entries weighted with the row, the column and the target;
    and those of the target and of the target weighted with the row. Row weights are those of the training rows only,
    because archives differ in the order of the others; missing entries count as 0.
    """
    rows, columns = table.data.shape
    X = table.data if sp.issparse(table.data) else np.nan_to_num(table.data)
    row, column = np.arange(1, rows + 1) / rows, np.arange(1, columns + 1) / columns
    if table.train is not None:
        row = np.where(table.train, row, 0.0)
    y = np.asarray(table.target, dtype=np.float64)
    squares = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
    return [float(value) for value in (X.sum(), squares, row @ (X @ column), y @ (X @ column), y.sum(), row @ y)]


def digest_of_names(table: Table) -> str:
    """Return the start of the SHA-256 of the names of the columns and of the target."""
    names = "\n".join([*table.feature_names, *table.target_names])
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def _texts(values: Any) -> NDArray[np.object_]:
    return np.asarray([str(value) for value in values], dtype=object)


def _read_records() -> dict[str, Record]:
    """Return the entries of the table by name; line breaks of its texts become spaces."""
    with (DATA / "datasets.toml").open("rb") as file:
        entries: dict[str, dict[str, Any]] = tomllib.load(file)
    records = {}
    for name, entry in entries.items():
        fields = {key: " ".join(value.split()) if isinstance(value, str) else value for key, value in entry.items()}
        public = Public(**entry["public"]) if "public" in entry else None
        records[name] = Record(name=name, **fields | {"shape": tuple(entry["shape"]), "public": public})
    return records


RECORDS = _read_records()
