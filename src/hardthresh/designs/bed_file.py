"""A PLINK 1 .bed file: its checks, how columns are read, and its genotypes as a design."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError, plural
from hardthresh.core.threads import in_pieces
from hardthresh.core.typing import Array

from .base import Design
from .genotypes import Genotypes, code_counts, means_of, select, some_columns, width_of

_MAGIC, _BY_SAMPLE = b"\x6c\x1b\x01", b"\x6c\x1b\x00"


@dataclass(frozen=True)
class BedFile:
    """A .bed file of n samples and p variants, as it was when it was opened.

    Attributes
    ----------
    path : str
        The file.
    n, p : int
        The number of samples and of variants.
    stamp : tuple of int
        Its size in bytes, and the time of its last change in nanoseconds.
    counts : list of int
        How many columns were read each time.
    """

    path: str
    n: int
    p: int
    stamp: tuple[int, int]
    counts: list[int] = field(default_factory=list, compare=False, repr=False)

    @property
    def readings(self) -> float:
        """How many times the file was read so far: the number of columns that were, over that of all."""
        return sum(self.counts) / max(self.p, 1)

    @classmethod
    def of(cls, path: str, n: int) -> BedFile:
        """Return a file of n samples, checked.

        Raises
        ------
        InvalidInputError
            If it is no .bed file by variants, or its size is not that of whole columns.
        """
        with open(path, "rb") as file:
            magic, status = file.read(3), os.fstat(file.fileno())
        if magic == _BY_SAMPLE:
            raise InvalidInputError(
                f"{path} is a .bed file by samples (magic {magic.hex()}); convert it with plink --make-bed"
            )
        if magic != _MAGIC:
            raise InvalidInputError(
                f"{path} is no PLINK 1 .bed file: it begins with {magic.hex() or 'nothing'}, not 6c1b01; convert it "
                "with plink --make-bed"
            )
        width, size = width_of(n), status.st_size
        if (size - 3) % width:
            raise InvalidInputError(
                f"{path} has {size} bytes, which is not 3 + {width} p for {plural(n, 'sample')} and p variants: it was "
                "cut off, or has another number of samples"
            )
        return cls(path, n, (size - 3) // width, (size, status.st_mtime_ns))

    def read(self, columns: np.ndarray | slice) -> np.ndarray:
        """Return some packed columns, shape (m, width).

        Raises
        ------
        HardThreshError
            If the file has changed since it was opened.
        OSError
            If it cannot be read, or is shorter than it was, whichever columns are asked for.
        """
        width = width_of(self.n)
        runs = [columns] if isinstance(columns, slice) else list(_runs(columns))
        packed = np.empty((sum(run.stop - run.start for run in runs), width), dtype=np.uint8)
        start = 0
        with open(self.path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if status.st_size < self.stamp[0]:
                raise self._too_short(status.st_size)
            if (status.st_size, status.st_mtime_ns) != self.stamp:
                raise HardThreshError(f"{self.path} has changed since it was opened; open it again, and fit again")
            for run in runs:
                stop = start + run.stop - run.start
                self._fill(file, 3 + run.start * width, packed[start:stop])
                start = stop
        self.counts.append(packed.shape[0])
        return packed

    def _fill(self, file: Any, place: int, packed: np.ndarray) -> None:
        """Read packed columns from a place of the file on."""
        file.seek(place)
        left = memoryview(packed.reshape(-1)) if packed.size else memoryview(b"")  # type: ignore[arg-type]
        while left:
            got = file.readinto(left)
            if not got:
                raise self._too_short(file.tell())
            left = left[got:]

    def _too_short(self, end: int) -> OSError:
        first = max(0, end - 3) // width_of(self.n)
        return OSError(
            f"{self.path} ends at byte {end}: variants {first}..{self.p - 1}, counted from 0, are missing; it was cut "
            "off, or replaced by a shorter file, after it was opened"
        )


def _runs(columns: np.ndarray) -> Iterator[slice]:
    """Yield increasing columns as ranges."""
    for run in np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1):
        if run.size:
            yield slice(int(run[0]), int(run[-1]) + 1)


class Variants(Genotypes):
    """The genotypes of a file, of all samples or of some; a product reads all of it, block by block.

    Parameters
    ----------
    file : BedFile
        The file.
    samples : array of int, optional
        Which samples; one may be there more than once.
    fill : array, shape (p,), optional
        What missing genotypes count as; default: the mean of the variant over all samples of the file.
    dtype : dtype
        Of points and results.
    """

    lacks: Mapping[str, str] = {"rows": "each mini-batch would read the whole file"}

    def __init__(
        self, file: BedFile, samples: np.ndarray | None = None, fill: np.ndarray | None = None, dtype: Any = np.float64
    ) -> None:
        self.file, self._samples, self._means = file, samples, fill
        self._n, self._p, self._dtype = file.n, file.p, np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self._n if self._samples is None else self._samples.size, self._p

    @property
    def readings(self) -> float:
        return self.file.readings

    @cached_property
    def counts(self) -> np.ndarray:
        """How many samples of the file have each code, shape (p, 4): one reading, once."""
        counts = np.empty((self._p, 4), dtype=np.int32)

        def of_columns(columns: slice) -> None:
            counts[columns] = code_counts(self._read(columns), self._n)

        in_pieces(of_columns, self._blocks())
        return counts

    def _read(self, columns: slice) -> np.ndarray:
        return self.file.read(columns)

    def _sums(self, r: Array, *values: np.ndarray) -> list[np.ndarray]:
        if self._samples is not None:
            spread = np.zeros((self._n, *r.shape[1:]))
            np.add.at(spread, self._samples, r)  # one may be there twice
            r = spread
        return super()._sums(r, *values)

    def _sums_of_codes(self, r: Array) -> np.ndarray:
        if self._samples is None and r.size and np.all(r == r.reshape(-1)[0]):  # the same for all: no reading
            total = np.reshape(np.sum(r, axis=0, dtype=np.float64), -1)
            return self.counts.T[..., None] / self._n * total
        return super()._sums_of_codes(r)

    def predict(self, w: Array) -> Array:
        predictions = super().predict(w)
        few = 4 * np.count_nonzero(w if w.ndim == 1 else w.any(axis=1)) < w.shape[0]
        return predictions if few or self._samples is None else predictions[self._samples]

    def columns(self, indices: Array) -> Design:
        packed = self.file.read(np.asarray(indices))
        fill = means_of(code_counts(packed, self._n)) if self._means is None else self._means[indices]
        if self._samples is not None:
            packed = select(packed, self._samples)
        return some_columns(packed, self.shape[0], fill, self._dtype)

    def rows(self, indices: Array | slice) -> Design:
        every = np.arange(self._n) if self._samples is None else self._samples
        part = Variants(self.file, every[indices], self._means, self._dtype)
        if "counts" in vars(self):
            part.counts = self.counts
        return part

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        return self.columns(np.arange(self._p)).gram(weights, other)

    def dense(self) -> Array:
        return self.columns(np.arange(self._p)).dense()

    def double(self) -> Design:
        part = Variants(self.file, self._samples, self._means)
        vars(part).update({name: value for name, value in vars(self).items() if name != "_dtype"})
        return part
