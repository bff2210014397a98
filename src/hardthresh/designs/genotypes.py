"""Columns of genotypes, packed in two bits each, as a design that never unpacks more than a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.arrays.pieces import ranges, steps, sum_in_order
from hardthresh.core.compiled import kernel
from hardthresh.core.threads import in_pieces
from hardthresh.core.typing import Array

from .base import Design
from .dense import DenseDesign, finish_moments, shares

MISSING = 1
"""The code of a missing genotype; 0, 2 and 3 stand for 2, 1 and 0 copies of the first allele."""


_PRESENT = np.array([2.0, 0.0, 1.0, 0.0])
_CODES = np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3
"""The four codes of each byte: the first genotype is in the lowest bits."""
COLUMNS = 256
"""The number of columns of a block: the unit of work of a thread, and for 50,000 samples 3 MB of a file."""
_LINE = 256  # numbers that the kernel reads at a time, of 64 bytes of each column
_TILE = 1 << 18  # genotypes unpacked at a time: 2 MB
_FEWEST_ROWS = 1024  # of a tile: with fewer BLAS is slow
_SMALL = 1 << 22  # genotypes of columns that are unpacked at once: 32 MB
_MOST = 16  # parts of the columns whose predictions are added up


def width_of(n: int) -> int:
    """Return the number of bytes of a column of n genotypes."""
    return (n + 3) // 4


def genotype_sums(packed: np.ndarray, n: int, value: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sum_i v_{c_{ij}} r_{qi}` for the codes c of each column j.

    A table of the sums of four numbers for each of the 256 bytes makes that an addition for four genotypes. It is
    computed anew for each block of columns, in double precision and in an order that depends on the shapes alone.

    Parameters
    ----------
    packed : array of uint8, shape (p, width)
        The columns.
    n : int
        The number of genotypes of a column.
    value : array, shape (4,)
        v, the value of each code.
    numbers : array, shape (q, m)
        r as `padded` returns it.

    Returns
    -------
    array, shape (q, p)
    """
    found = np.zeros((numbers.shape[0], packed.shape[0]))
    compiled = kernel()
    if compiled is not None:
        compiled.genotype_sums(packed, packed.shape[0], n, value, numbers, found)
        return found
    table = value[_CODES]
    for some in ranges(width_of(n), max(1, packed.size // _TILE)):
        X = table[packed[:, some]].reshape(packed.shape[0], -1)
        found += numbers[:, 4 * some.start : 4 * some.stop] @ X.T
    return found


def missing_sums(packed: np.ndarray, n: int, numbers: np.ndarray) -> np.ndarray:
    """Return the sums of numbers over the missing genotypes of each column, shape (q, p); see `genotype_sums`."""
    compiled = kernel()
    if compiled is None:
        return genotype_sums(packed, n, 1.0 * (np.arange(4) == MISSING), numbers)
    found = np.zeros((numbers.shape[0], packed.shape[0]))
    compiled.genotype_missing(packed, packed.shape[0], n, None, numbers, found)
    return found


def code_counts(packed: np.ndarray, n: int) -> np.ndarray:
    """Return how many of the n genotypes of each column have each code, shape (p, 4)."""
    counts = np.zeros((packed.shape[0], 4), dtype=np.int64)
    compiled = kernel()
    if compiled is not None:
        compiled.genotype_counts(packed, packed.shape[0], n, None, None, counts)
        return counts
    in_byte = np.stack([(code == _CODES).sum(axis=1) for code in range(4)], axis=1)
    for column, found in zip(packed, counts, strict=True):
        found += np.bincount(column, minlength=256) @ in_byte
        if n % 4:  # the last byte has codes of no sample, whatever they are
            np.subtract.at(found, _CODES[column[-1]][n % 4 :], 1)
    return counts


def genotype_products(packed: np.ndarray, n: int, value: np.ndarray) -> np.ndarray:
    """Return the sum over the columns j of value[j, code of example i], shape (n,)."""
    out = np.zeros(4 * width_of(n))
    compiled = kernel()
    if compiled is not None:
        compiled.genotype_products(packed, packed.shape[0], n, value, out)
        return out[:n]
    for column, of_code in zip(packed, value, strict=True):
        out += of_code[_CODES][column].reshape(-1)
    return out[:n]


def unpacked(packed: np.ndarray, n: int, value: np.ndarray) -> np.ndarray:
    """Return value[j, code of example i in column j], shape (p, n)."""
    full = np.empty((packed.shape[0], 4 * width_of(n)))
    compiled = kernel()
    if compiled is not None:
        compiled.genotype_unpack(packed, packed.shape[0], n, value, full)
        return full[:, :n]
    for row, column, of_code in zip(full, packed, value, strict=True):
        np.take(of_code[_CODES], column, axis=0, out=row.reshape(-1, 4), mode="clip")
    return full[:, :n]


def padded(r: Array, n: int) -> np.ndarray:
    """Return numbers, one or several for each of n examples, as rows of doubles with zeros up to whole lines."""
    full = np.zeros((1 if r.ndim == 1 else r.shape[1], -(-n // _LINE) * _LINE))
    full[:, :n] = r.T
    return full


def means_of(counts: np.ndarray) -> np.ndarray:
    """Return the mean number of copies of the genotypes that are there, for counts of each code; 0 if none is."""
    seen = counts.sum(axis=1) - counts[:, MISSING]
    means: np.ndarray = counts @ _PRESENT / np.maximum(seen, 1)
    return means


def select(packed: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the packed columns of some examples."""
    places = np.zeros(4 * width_of(rows.size), dtype=np.intp)
    places[: rows.size] = rows
    codes = packed[:, places >> 2] >> (2 * (places & 3)).astype(np.uint8) & 3
    codes[:, rows.size :] = 0
    return np.ascontiguousarray(
        codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6, dtype=np.uint8
    )


class Genotypes(Design):
    r"""Packed columns in memory: 0, 1 or 2 copies of an allele, or a value for missing ones.

    Parameters
    ----------
    packed : array of uint8, shape (p, ceil(n / 4))
        The columns, in the codes of PLINK 1: four genotypes in a byte.
    n : int
        The number of examples.
    fill : array, shape (p,)
        What missing genotypes of each column count as.
    dtype : dtype
        Of points and results, float64 or float32; sums are in double precision.

    Notes
    -----
    Memory: n p / 4 bytes. Results have the same bits with any number of threads.
    """

    stores_zeros = False
    lazy = True

    def __init__(self, packed: np.ndarray, n: int, fill: np.ndarray, dtype: Any = np.float64) -> None:
        self._packed, self._n, self._p, self._dtype = packed, n, fill.size, np.dtype(dtype)
        self._means: np.ndarray | None = fill

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, self._p

    @property
    def counts(self) -> np.ndarray:
        """How many genotypes of each column have each code, shape (p, 4)."""
        return code_counts(self._packed, self._n)

    @property
    def fill(self) -> np.ndarray:
        """What missing genotypes of each column count as, shape (p,); by default the mean of the others."""
        return means_of(self.counts) if self._means is None else self._means

    def zeros(self, size: int) -> Array:
        return np.zeros(size, dtype=self._dtype)

    def _read(self, columns: slice) -> np.ndarray:
        """Return some packed columns."""
        return self._packed[columns]

    def _blocks(self) -> list[slice]:
        return steps(self._p, COLUMNS)

    def predict(self, w: Array) -> Array:
        several = np.asarray(w if w.ndim == 2 else w[:, None], dtype=np.float64)
        chosen = np.flatnonzero(several.any(axis=1))
        if 4 * chosen.size < self._p:
            return self.columns(chosen).predict(w[chosen])
        values = self._values()

        def of_columns(blocks: list[slice]) -> np.ndarray:
            total = np.zeros((several.shape[1], self._n))
            for columns in blocks:
                packed = self._read(columns)
                for sums, one in zip(total, several.T, strict=True):
                    sums += genotype_products(packed, self._n, values[columns] * one[columns, None])
            return total

        blocks = self._blocks()
        pieces = [blocks[some] for some in ranges(len(blocks), max(1, min(_MOST, len(blocks))))]
        return self._shaped(sum_in_order(in_pieces(of_columns, pieces)).T, w)

    def _values(self) -> np.ndarray:
        """Return the value of each code in each column, shape (p, 4)."""
        values = np.tile(_PRESENT, (self._p, 1))
        values[:, MISSING] = self.fill
        return values

    def _shaped(self, several: np.ndarray, like: Array) -> Array:
        """Return one or several columns of results, in the dtype of the data."""
        return (several[:, 0] if like.ndim == 1 else several).astype(self._dtype, copy=False)

    def _sums(self, r: Array, *values: np.ndarray) -> list[np.ndarray]:
        """Return, in one reading, the sums of r for each of some values of the codes, and over the missing genotypes.

        Each has the shape (p, q).
        """
        numbers = padded(r, self._n)
        found = np.empty((len(values) + 1, numbers.shape[0], self._p))

        def of_columns(columns: slice) -> None:
            packed = self._read(columns)
            for sums, value in zip(found, values, strict=False):
                sums[:, columns] = genotype_sums(packed, self._n, value, numbers)
            found[-1][:, columns] = missing_sums(packed, self._n, numbers)

        in_pieces(of_columns, self._blocks())
        return [sums.T for sums in found]

    def _sums_of_codes(self, r: Array) -> np.ndarray:
        """Return, in one reading, the sums of r for each code, shape (4, p, q)."""
        twice, once, none, missing = self._sums(r, *np.eye(4)[[0, 2, 3]])
        return np.stack([twice, missing, once, none])

    def pullback(self, r: Array) -> Array:
        products, missing = self._sums(r, _PRESENT)
        return self._shaped(products + self.fill[:, None] * missing, r)

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        values = self._values()
        if center is not None:
            values -= np.asarray(center, dtype=np.float64)[:, None]
        return self._shaped(np.einsum("jc,cjq->jq", values**2, self._sums_of_codes(r)), r)  # so that nothing cancels

    def moments(self, weights: Array) -> tuple[Array, Array]:
        weights, values = shares(weights), self._values()
        share = self._sums_of_codes(weights)[..., 0].T
        mean = np.sum(share * values, axis=1)
        variance = np.sum(share * (values - mean[:, None]) ** 2, axis=1)
        seen = self.counts > 0
        low, high = (np.where(seen, values, limit) for limit in (np.inf, -np.inf))
        constant = np.min(low, axis=1) == np.max(high, axis=1)
        mean = np.where(constant, np.max(high, axis=1), mean)
        return finish_moments(self, mean, np.where(constant, 0.0, variance), weights)

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        s, r = np.zeros((2, self.shape[0], len(parts)))
        for number, rows in enumerate(parts):
            own, gaps = (np.asarray(x, dtype=np.float64)[rows] for x in (weights, y))
            np.add.at(s[:, number], rows, own)  # a row may be there twice
            np.add.at(r[:, number], rows, own * (gaps - own @ gaps / np.sum(own) if centred else gaps))
        sums = self._sums_of_codes(np.hstack([s, r]))  # one reading for all parts
        shares, slopes = sums[..., : len(parts)], sums[..., len(parts) :]
        values = self._values().T[..., None]
        mean = np.sum(values * shares, axis=0) / np.sum(s, axis=0) if centred else np.zeros(shares.shape[1:])
        squares, products = np.sum((values - mean) ** 2 * shares, axis=0), np.sum((values - mean) * slopes, axis=0)
        return mean.T, squares.T, products.T

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        n, p = self.shape
        root = np.sqrt(np.asarray(weights, dtype=np.float64))
        size = max(_FEWEST_ROWS, _TILE // max(1, p if other is None else p + other.shape[1]) // 4 * 4)

        def of_rows(rows: slice) -> np.ndarray:
            left: np.ndarray = self.rows(rows).dense().T * root[rows]
            product: np.ndarray = left @ (left.T if other is None else other.rows(rows).dense() * root[rows, None])
            return product

        tiles = steps(n, size)
        parts = (in_pieces(of_rows, tiles[start : start + _MOST]) for start in range(0, len(tiles), _MOST))
        total: np.ndarray = sum_in_order([*map(sum_in_order, parts)]).astype(self._dtype, copy=False)
        return total

    def columns(self, indices: Array) -> Design:
        return some_columns(self._packed[indices], self._n, self.fill[indices], self._dtype)

    def rows(self, indices: Array | slice) -> Design:
        every = range(self._n)[indices] if isinstance(indices, slice) else indices
        if isinstance(every, range) and every.step == 1 and every.start % 4 == 0:
            packed = np.ascontiguousarray(self._packed[:, every.start // 4 : width_of(every.stop)])
        else:
            packed = select(self._packed, np.asarray(every, dtype=np.intp))
        return Genotypes(packed, len(every), self.fill, self._dtype)

    def dense(self) -> Array:
        return unpacked(self._packed, self._n, self._values()).astype(self._dtype, copy=False).T

    def double(self) -> Design:
        return Genotypes(self._packed, self._n, self.fill)


def some_columns(packed: np.ndarray, n: int, fill: np.ndarray, dtype: Any) -> Design:
    """Return the design of packed columns: a dense one if they are small, as the last few that a search is about."""
    genotypes = Genotypes(packed, n, fill, dtype)
    return DenseDesign.of(genotypes.dense()) if n * fill.size <= _SMALL else genotypes
