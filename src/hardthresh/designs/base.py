"""The contracts of linear maps and of data matrices, and data matrices that count their passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import nan

from hardthresh.arrays import gather, namespace
from hardthresh.core.lazy import scalar
from hardthresh.core.meter import Meter
from hardthresh.core.typing import Array


class LinearMap(ABC):
    """A linear map from a point to predictions: a number, or a row of numbers, for each of some examples."""

    lacks: Mapping[str, str] = {}
    """What objectives on it do not offer, and why, as a message says it: ``rows`` where a few cost as much as all."""

    @abstractmethod
    def predict(self, w: Array) -> Array:
        """Return the predictions of a point."""

    @abstractmethod
    def pullback(self, r: Array) -> Array:
        """Return the transposed map of numbers in the shape of the predictions: a point."""

    @abstractmethod
    def rows(self, indices: Array) -> LinearMap:
        """Return the map to the predictions of some examples."""

    @abstractmethod
    def metered(self, meter: Meter, share: float = 1.0) -> LinearMap:
        """Return the same map, adding its data passes to a meter; all examples count as `share` of a pass."""


class Design(LinearMap):
    """A data matrix X of shape (n examples, d columns), as used by linear models.

    Designs are immutable; all arrays that they return have the same array library, dtype and device.
    """

    stores_zeros: bool = True
    """False where only non-zeros are held, so that centring a column would fill it."""

    lazy: bool = False
    """True where entries are copied from a larger matrix when asked for, so that blocks of rows save memory."""

    has_columns: bool = True
    """False where only products with the whole matrix are known: a linear model on it is not a `LinearObjective`."""

    @property
    def readings(self) -> float:
        """How often the columns were read from a file so far (some columns count as a share); NaN in memory."""
        return nan

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, d)."""

    @abstractmethod
    def zeros(self, size: int) -> Array:
        """Return a vector of zeros where the data live."""

    @abstractmethod
    def predict(self, w: Array) -> Array:
        """Return X w, shape (n,); only the columns where w is non-zero are read when these are few.

        For w of shape (d, q) the (n, q) products.
        """

    @abstractmethod
    def pullback(self, r: Array) -> Array:
        """Return X^T r, shape (d,): one data pass; for r of shape (n, q) the (d, q) products, counted as q passes."""

    @abstractmethod
    def gram(self, weights: Array, other: Design | None = None) -> Array:
        """Return X^T diag(weights) Z, for weights >= 0 and Z another design of the same rows and kind (default: X)."""

    @abstractmethod
    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        """Return the sum over rows of r_i (x_ij - c_j)^2, shape (d,); the center c is zero if not given.

        For r of shape (n, q) the (d, q) sums.
        """

    def screening_pullback(self, r: Array) -> Array:
        """Return X^T r for several right-hand sides, in single precision if that is faster: shape (d, q), q passes.

        The error of a product is at most a millionth of the norm of the column times that of r, if the squares of the
        entries are in the range of single precision. This is enough to decide which columns to examine, but not to
        choose between them.
        """
        return self.pullback(r)

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        r"""Return the moments of each column over several parts of the rows, as of the folds of cross-validation.

        .. math:: m_{bj} = \\frac{\\sum_{i \\in b} s_i x_{ij}}{\\sum_{i \\in b} s_i}, \\qquad
                  v_{bj} = \\sum_{i \\in b} s_i (x_{ij} - m_{bj})^2, \\qquad
                  c_{bj} = \\sum_{i \\in b} r_i (x_{ij} - m_{bj})

        If the mean of a column is so close to zero that at most two digits are lost, sums about zero are corrected by
        the mean; the entries of other columns are centred first.

        Parameters
        ----------
        weights : array, shape (n,)
            s, non-negative, not all zero over any part.
        y : array, shape (n,)
            The target.
        parts : sequence of array of int
            The rows of each part; a row may be in several, or twice in one.
        centred : bool
            False for moments about zero: then m is taken as 0.

        Returns
        -------
        tuple of three arrays, shape (n_parts, d)
            The means m, the sums of squares v and the products c, in double precision or in that of the data.
        """
        xp = namespace(y)
        found = []
        for rows in parts:
            part, s, gaps, mean = self.rows(rows), gather(weights, rows), gather(y, rows), self.zeros(self.shape[1])
            if centred:
                mean = part.pullback(s) / xp.sum(s)
                gaps = gaps - xp.sum(s * gaps) / xp.sum(s)
            found.append((mean, part.pullback_squares(s, mean), part.pullback(s * gaps)))
        mean, squares, products = (xp.stack(list(each)) for each in zip(*found, strict=True))
        return mean, squares, products

    @abstractmethod
    def columns(self, indices: Array) -> Design:
        """Return the design of some columns, by increasing index."""

    @abstractmethod
    def rows(self, indices: Array | slice) -> Design:
        """Return the design of some rows."""

    def block(self, rows: Array, columns: Array) -> Design:
        """Return the design of some rows and columns: of a dense matrix that is not large, a copy of these entries.

        Parameters
        ----------
        rows, columns : array of int
            The rows, in any order, and the columns, increasing.
        """
        return self.columns(columns).rows(rows)

    @abstractmethod
    def dense(self) -> Array:
        """Return X as a dense array; only for small designs."""

    @abstractmethod
    def double(self) -> Design:
        """Return the same entries in double precision; a large dense matrix is not copied as a whole."""

    @abstractmethod
    def moments(self, weights: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each column, for weights >= 0 of any positive sum.

        A column that is constant up to rounding has standard deviation exactly 0.
        """

    def metered(self, meter: Meter, share: float = 1.0) -> Design:
        """Return the same design, adding its data passes to a meter; all of X counts as `share` of a pass."""
        return Metered(self, meter, share)


class Metered(Design):
    """A design that counts its data passes."""

    def __init__(self, design: Design, meter: Meter, share: float = 1.0) -> None:
        self._design = design
        self._meter = meter
        self._share = share
        self.stores_zeros = design.stores_zeros
        self.lazy = design.lazy
        self.has_columns = design.has_columns
        self.lacks = design.lacks

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.shape

    @property
    def readings(self) -> float:
        return self._design.readings

    def zeros(self, size: int) -> Array:
        return self._design.zeros(size)

    def predict(self, w: Array) -> Array:
        nonzero = scalar(namespace(w).count_nonzero(w))
        self._meter.add(self._share * nonzero / max(self.shape[1], 1))  # of a matrix, the passes of its columns
        return self._design.predict(w)

    def pullback(self, r: Array) -> Array:
        self._meter.add(self._share * (1 if r.ndim == 1 else r.shape[1]))
        return self._design.pullback(r)

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        self._meter.add(self._share)
        if isinstance(other, Metered):
            self._meter.add(other._share)
            other = other._design
        return self._design.gram(weights, other)

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        self._meter.add(self._share * (1 if r.ndim == 1 else r.shape[1]))
        return self._design.pullback_squares(r, center)

    def screening_pullback(self, r: Array) -> Array:
        self._meter.add(self._share * r.shape[1])
        return self._design.screening_pullback(r)

    def part_moments(
        self, weights: Array, y: Array, parts: Sequence[Array], *, centred: bool
    ) -> tuple[Array, Array, Array]:
        rows = sum(part.shape[0] for part in parts)
        self._meter.add(3 * self._share * rows / max(self.shape[0], 1))
        return self._design.part_moments(weights, y, parts, centred=centred)

    def columns(self, indices: Array) -> Design:
        share = self._share * indices.shape[0] / max(self.shape[1], 1)
        return Metered(self._design.columns(indices), self._meter, share)

    def rows(self, indices: Array | slice) -> Design:
        part = self._design.rows(indices)
        return Metered(part, self._meter, self._share * part.shape[0] / max(self.shape[0], 1))

    def dense(self) -> Array:
        self._meter.add(self._share)
        return self._design.dense()

    def double(self) -> Design:
        return Metered(self._design.double(), self._meter, self._share)

    def moments(self, weights: Array) -> tuple[Array, Array]:
        self._meter.add(2 * self._share)
        return self._design.moments(weights)
