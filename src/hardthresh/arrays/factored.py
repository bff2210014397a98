"""Large matrices that are stored as the sum of a sparse matrix and thin products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.schema import stored

_BLOCK = 1 << 17  # entries of a product that are written out at a time: 1 MB
_GATHERED = 1 << 16  # numbers gathered at a time, where few entries are wanted
_FEW = 0.02  # of all entries: fewer are computed one by one
_CANCELS = 1e-6  # of the parts' squares: a smaller sum of squares is mostly their rounding


@stored("matrix/pattern")
@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """Distinct positions in a matrix, sorted by row and then column.

    Attributes
    ----------
    shape : tuple of int
        (p, q).
    rows, cols : array, shape (n,)
        The places.
    starts : array, shape (p + 1,)
        The index of the first position of each row.
    within : array, shape (n,), or None
        The positions within blocks of rows, in row-major order; None if they are a small part of all entries.
    """

    shape: tuple[int, int]
    rows: np.ndarray
    cols: np.ndarray
    starts: np.ndarray
    within: np.ndarray | None

    def __post_init__(self) -> None:
        """Refuse places outside the matrix, as a damaged file may have them: SciPy would read foreign memory."""
        (p, q), n = self.shape, self.cols.shape[0]
        rows_end_well = (
            self.starts.shape == (p + 1,)
            and self.starts[0] == 0
            and self.starts[-1] == n
            and bool(np.all(self.starts[:-1] <= self.starts[1:]))
        )
        if not rows_end_well or (n and not 0 <= self.cols.min() <= self.cols.max() < q):
            raise InvalidInputError(f"the places of the entries do not fit a matrix of shape {self.shape}")

    @classmethod
    def of(cls, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Pattern:
        """Return the pattern of sorted places without repetition."""
        kind = np.int32 if max(*shape, rows.shape[0]) < 2**31 else np.int64
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        within = None
        if rows.shape[0] >= _FEW * shape[0] * shape[1]:
            within = (rows % _height(shape)).astype(np.intp) * shape[1] + cols
        return cls(shape, rows.astype(kind), cols.astype(kind), starts.astype(kind), within)

    def csr(self, data: np.ndarray) -> Any:
        """Return the SciPy array with these entries; it shares them."""
        from scipy.sparse import csr_array

        return csr_array((data, self.cols, self.starts), shape=self.shape)

    def keys(self) -> np.ndarray:
        """Return the places as increasing numbers."""
        keys: np.ndarray = self.rows.astype(np.int64) * self.shape[1] + self.cols
        return keys

    def is_like(self, other: Pattern) -> bool:
        """Return whether the places are the same."""
        return self is other or (
            self.shape == other.shape
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.cols, other.cols)
        )

    def sample(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the entries of left right' at these places, in bounded memory.

        Products of blocks of rows are computed completely and read at the positions, because this is much faster than
        computing single entries, unless less than one entry in 50 is needed.
        """
        n = self.rows.shape[0]
        found = np.empty(n, dtype=np.result_type(left, right))
        if self.within is None:
            step = max(1, _GATHERED // max(1, left.shape[1]))
            for a in range(0, n, step):
                here = slice(a, a + step)
                np.einsum("ij,ij->i", left[self.rows[here]], right[self.cols[here]], out=found[here])
            return found
        p, height = self.shape[0], _height(self.shape)
        for top in range(0, p, height):
            a, b = int(self.starts[top]), int(self.starts[min(p, top + height)])
            if a < b:
                block = left[top : top + height] @ right.T
                block.reshape(-1).take(self.within[a:b], out=found[a:b], mode="clip")
        return found


def _height(shape: tuple[int, int]) -> int:
    """Return how many rows are written out at a time."""
    return max(1, _BLOCK // shape[1])


@stored("matrix/thin_product")
@dataclass(frozen=True, eq=False, slots=True)
class Thin:
    """A product scale * left right' of few columns; the scale is kept apart, so that the factors stay what they are."""

    left: np.ndarray
    right: np.ndarray
    scale: float = 1.0

    @property
    def scaled(self) -> Any:
        """The left factor times the scale."""
        return self.left if self.scale == 1.0 else self.left * self.left.dtype.type(self.scale)

    def joined(self, other: Thin) -> Thin | None:
        """Return the sum as one product of no more columns, if the two have a factor in common."""
        one, two = self.left.dtype.type(self.scale), self.left.dtype.type(other.scale)
        if _equal(self.left, other.left):
            return Thin(self.left, one * self.right + two * other.right)
        if _equal(self.right, other.right):
            return Thin(one * self.left + two * other.left, self.right)
        return None


@stored("matrix/factored")
@dataclass(frozen=True, eq=False, slots=True)
class FactoredMatrix:
    r"""A matrix stored as :math:`S + \sum_i c_i L_i R_i^\top`, the sum of a sparse matrix and thin products.

    It supports the operations that solvers, constraints and step rules need: shape, dtype, sums, multiples, products
    with thin matrices, and an array namespace whose ``sum(a * b)`` is the inner product. NumPy functions convert it to
    a dense matrix, so ``np.asarray(W)``, ``W - X``, ``W == X`` or ``np.max(W)`` compute all entries.

    Attributes
    ----------
    shape : tuple of int
        (p, q).
    precision : str
        "float32" or "float64"; combinations of both, or of integers, are "float64".
    thin : tuple of Thin
        The products.
    pattern : Pattern or None
        The positions of the entries of the sparse part.
    data : array, shape (n,), or None
        The entries of the sparse part.

    Notes
    -----
    Objects are immutable. A sum of products that share a factor is one product of the same width, so points and tangent
    directions at the same bases stay thin. Products with more columns than a side of the matrix are multiplied out. A
    squared norm whose parts nearly cancel is recomputed from orthogonal bases, so that it is as precise as a dense one.

    Examples
    --------
    >>> import numpy as np
    >>> W = FactoredMatrix.product(np.array([[1.0], [2.0]]), np.array([[3.0], [0.0], [1.0]]))
    >>> W.shape
    (2, 3)
    >>> np.asarray(W + W)
    array([[ 6.,  0.,  2.],
           [12.,  0.,  4.]])
    """

    shape: tuple[int, int]
    precision: str
    thin: tuple[Thin, ...] = ()
    pattern: Pattern | None = None
    data: np.ndarray | None = None

    # --- making one

    @classmethod
    def zeros(cls, shape: tuple[int, int], dtype: Any = np.float64) -> FactoredMatrix:
        """Return the zero matrix."""
        return cls((int(shape[0]), int(shape[1])), _precision(dtype).name)

    @classmethod
    def product(cls, left: np.ndarray, right: np.ndarray) -> FactoredMatrix:
        """Return left right', for factors of shapes (p, r) and (q, r)."""
        common = _precision(np.result_type(left, right))
        thin = Thin(left.astype(common, copy=False), right.astype(common, copy=False))
        return cls((left.shape[0], right.shape[0]), common.name, _few((thin,)))

    @classmethod
    def sparse(cls, pattern: Pattern, data: np.ndarray) -> FactoredMatrix:
        """Return the matrix with given entries at the positions of a pattern, and zero elsewhere."""
        data = data.astype(_precision(data.dtype), copy=False)
        return cls(pattern.shape, data.dtype.name, (), pattern, data)

    @classmethod
    def dense(cls, A: Any, dtype: Any = None) -> FactoredMatrix:
        """Return a dense matrix in this form, with factors of its size."""
        A = np.array(A, dtype=dtype)
        if A.ndim != 2:
            raise InvalidInputError(f"a matrix is needed, got {A.ndim} dimensions")
        A = A.astype(_precision(A.dtype), copy=False)
        return cls((A.shape[0], A.shape[1]), A.dtype.name, (_unfactored(A),))

    # --- what it is

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its entries."""
        return np.dtype(self.precision)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.shape[0] * self.shape[1]

    @property
    def device(self) -> str:
        """The device of the factors."""
        return "cpu"

    @property
    def width(self) -> int:
        """The number of columns of all thin products together."""
        return sum(term.left.shape[1] for term in self.thin)

    @property
    def T(self) -> FactoredMatrix:
        """The transpose."""
        thin = tuple(Thin(term.right, term.left, term.scale) for term in self.thin)
        if self.pattern is None or self.data is None:
            return FactoredMatrix(self.shape[::-1], self.precision, thin)
        order = np.lexsort((self.pattern.rows, self.pattern.cols))
        turned = Pattern.of(self.pattern.cols[order], self.pattern.rows[order], self.shape[::-1])
        return FactoredMatrix(self.shape[::-1], self.precision, thin, turned, self.data[order])

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the thin products as one, left and right, of `width` columns."""
        none = [np.zeros((side, 0), dtype=self.dtype) for side in self.shape]
        return (
            np.concatenate([none[0], *(term.scaled for term in self.thin)], axis=1),
            np.concatenate([none[1], *(term.right for term in self.thin)], axis=1),
        )

    def entries(self, pattern: Pattern) -> np.ndarray:
        """Return the entries at the places of a pattern."""
        found: np.ndarray = np.zeros(pattern.rows.shape[0], dtype=self.dtype)
        if self.thin:
            found = pattern.sample(*self.factors())
        if self.pattern is None or self.data is None:
            return found
        if self.pattern.is_like(pattern):
            found += self.data
            return found
        known, wanted = self.pattern.keys(), pattern.keys()
        place = np.minimum(np.searchsorted(known, wanted), max(0, known.shape[0] - 1))
        here = np.flatnonzero(known[place] == wanted) if known.shape[0] else np.zeros(0, dtype=np.intp)
        found[here] += self.data[place[here]]
        return found

    def to_dense(self) -> np.ndarray:
        """Return all entries."""
        left, right = self.factors()
        dense: np.ndarray = left @ right.T
        if self.pattern is not None and self.data is not None:
            dense[self.pattern.rows, self.pattern.cols] += self.data
        return dense

    def astype(self, dtype: Any) -> FactoredMatrix:
        """Return the matrix in another precision."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype != _precision(dtype):
            raise InvalidInputError(f"a factored matrix is float32 or float64, not {dtype}; np.asarray it first")
        thin = tuple(Thin(t.left.astype(dtype), t.right.astype(dtype), t.scale) for t in self.thin)
        return replace(
            self, precision=dtype.name, thin=thin, data=None if self.data is None else self.data.astype(dtype)
        )

    def _csr(self) -> Any:
        """Return the sparse part as SciPy's."""
        assert self.pattern is not None
        assert self.data is not None
        return self.pattern.csr(self.data)

    # --- arithmetic

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, FactoredMatrix):
            return Hadamard(self, other)
        if _is_number(other):
            c = float(other)
            thin = tuple(replace(term, scale=c * term.scale) for term in self.thin)
            return replace(self, thin=thin, data=None if self.data is None else self.data * self.dtype.type(c))
        return self.to_dense() * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / float(other)) if _is_number(other) else self.to_dense() / other

    def __neg__(self) -> Any:
        return self * -1.0

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, FactoredMatrix):
            return self.to_dense() + other
        if self.shape != other.shape:
            raise InvalidInputError(f"matrices of shapes {self.shape} and {other.shape} cannot be added")
        if self.dtype != other.dtype:
            common = np.result_type(self.dtype, other.dtype)
            return self.astype(common) + other.astype(common)
        thin = _few(reduce(_joined, other.thin, self.thin))
        if self.data is None or other.data is None or self.pattern is None or other.pattern is None:
            holder = self if other.pattern is None else other
            return FactoredMatrix(self.shape, self.precision, thin, holder.pattern, holder.data)
        if self.pattern.is_like(other.pattern):
            return FactoredMatrix(self.shape, self.precision, thin, self.pattern, self.data + other.data)
        both = (self._csr() + other._csr()).tocoo()
        return FactoredMatrix(self.shape, self.precision, thin, Pattern.of(both.row, both.col, self.shape), both.data)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __eq__(self, other: Any) -> Any:
        return np.equal(self, other)

    def __ne__(self, other: Any) -> Any:
        return np.not_equal(self, other)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as of any array

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, FactoredMatrix):
            raise TypeError("the product of two factored matrices is not one; multiply with thin dense factors")
        X = np.asarray(other)
        result = np.zeros((self.shape[0], *X.shape[1:]), dtype=np.result_type(self.dtype, X.dtype))
        if self.pattern is not None:
            result = self._csr() @ X
        for term in self.thin:
            result = result + term.left @ (self.dtype.type(term.scale) * (term.right.T @ X))
        return result

    def __rmatmul__(self, other: Any) -> Any:
        return self.transposed_times(np.asarray(other).T).T

    def transposed_times(self, X: np.ndarray) -> np.ndarray:
        """Return the transpose times a thin dense matrix, without transposing the sparse part."""
        result = np.zeros((self.shape[1], *X.shape[1:]), dtype=np.result_type(self.dtype, X.dtype))
        if self.pattern is not None:
            result = self._csr().T @ X
        for term in self.thin:
            result = result + term.right @ (self.dtype.type(term.scale) * (term.left.T @ X))
        return result

    # --- inner products

    def inner(self, other: FactoredMatrix) -> float:
        """Return the sum of the products of the entries of two matrices."""
        if self is other:
            return self._squares()
        total = sum(_thin_thin(a, b) for a in self.thin for b in other.thin)
        total += sum(_thin_sparse(a, other) for a in self.thin) + sum(_thin_sparse(b, self) for b in other.thin)
        return float(total) + _sparse_sparse(self, other)

    def _squares(self) -> float:
        """Return the sum of the squares of the entries."""
        own = [_thin_thin(a, a) for a in self.thin] + [_sparse_sparse(self, self)]
        cross = sum(_thin_thin(a, b) for i, a in enumerate(self.thin) for b in self.thin[:i])
        cross += sum(_thin_sparse(a, self) for a in self.thin)
        total, parts = sum(own) + 2.0 * cross, sum(own)
        if total > _CANCELS * parts or parts == 0.0 or not np.isfinite(parts):
            return float(total)
        if self.pattern is not None:
            return float(sum(np.sum(block * block) for block in self._blocks()))
        left, right = (np.linalg.qr(factor)[1] for factor in self.factors())
        core = left @ right.T
        return float(np.sum(core * core))

    def _blocks(self) -> Iterator[np.ndarray]:
        """Yield the rows, some at a time."""
        assert self.pattern is not None
        (left, right), sparse = self.factors(), self._csr()
        height = _height(self.shape)
        for top in range(0, self.shape[0], height):
            yield left[top : top + height] @ right.T + sparse[top : top + height].toarray()

    # --- what NumPy sees

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a factored matrix has no dense array that could be shared")
        return np.asarray(self.to_dense(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options and ufunc in _OPERATORS:
            one, other = inputs
            if isinstance(other, FactoredMatrix) and not isinstance(one, FactoredMatrix):
                return getattr(other, f"__r{_OPERATORS[ufunc]}__")(one)
        inputs = tuple(x.to_dense() if isinstance(x, FactoredMatrix) else x for x in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return Library


@dataclass(frozen=True, eq=False, slots=True)
class Hadamard:
    """The product entry by entry of two factored matrices: only its sum is ever computed, unless NumPy wants it all."""

    one: FactoredMatrix
    other: FactoredMatrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.one.to_dense() * self.other.to_dense(), dtype=dtype)


class Library:
    """The array library of factored matrices, as far as points and directions need one."""

    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
    sqrt, all, any, isdtype = np.sqrt, np.all, np.any, np.isdtype

    @staticmethod
    def sum(x: Any) -> Any:
        """Return the sum of all entries; of a product of two matrices, their inner product."""
        if isinstance(x, Hadamard):
            return x.one.dtype.type(x.one.inner(x.other))
        return np.sum(x @ np.ones(x.shape[1], dtype=x.dtype))

    @staticmethod
    def finfo(dtype: Any) -> Any:
        """Return the limits of a dtype."""
        return np.finfo(dtype)

    @staticmethod
    def isfinite(x: FactoredMatrix) -> np.ndarray:
        """Return whether all numbers that a matrix is made of are finite, for `all` and `any`."""
        parts: Iterable[Any] = [x.data, *(part for term in x.thin for part in (term.left, term.right, term.scale))]
        return np.asarray([bool(np.all(np.isfinite(part))) for part in parts if part is not None], dtype=bool)

    @staticmethod
    def zeros_like(x: FactoredMatrix) -> FactoredMatrix:
        """Return zero."""
        return FactoredMatrix.zeros(x.shape, x.dtype)

    @staticmethod
    def ones_like(x: FactoredMatrix) -> FactoredMatrix:
        """Return the matrix of ones, which has rank 1."""
        return FactoredMatrix.product(*(np.ones((side, 1), dtype=x.dtype) for side in x.shape))

    @staticmethod
    def asarray(x: Any, dtype: Any = None, device: Any = None, copy: bool | None = None) -> FactoredMatrix:
        """Return a matrix in factored form."""
        if isinstance(x, FactoredMatrix):
            return x if dtype is None else x.astype(dtype)
        return FactoredMatrix.dense(x, dtype)

    @staticmethod
    def astype(x: FactoredMatrix, dtype: Any, copy: bool = True) -> FactoredMatrix:
        """Return a matrix in another precision."""
        return x.astype(dtype)


_OPERATORS = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.matmul: "matmul"}


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two factors are the same, by value, so that it does not matter where they were kept meanwhile."""
    return a is b or (a.shape == b.shape and np.array_equal(a[:1], b[:1]) and np.array_equal(a, b))


def _precision(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that entries of another one are kept in: float32 stays, other real numbers become float64."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise InvalidInputError(f"a matrix of real numbers is needed, got dtype {dtype}")
    return dtype if dtype == np.float32 else np.dtype(np.float64)


def _is_number(x: Any) -> bool:
    return isinstance(x, Real) or (isinstance(x, np.ndarray | np.generic) and x.ndim == 0)


def _joined(terms: tuple[Thin, ...], new: Thin) -> tuple[Thin, ...]:
    """Return a sum of products and one more, joined with the first that has a factor in common."""
    for i, term in enumerate(terms):
        both = term.joined(new)
        if both is not None:
            return (*terms[:i], both, *terms[i + 1 :])
    return (*terms, new)


def _few(terms: tuple[Thin, ...]) -> tuple[Thin, ...]:
    """Return the products, multiplied out if they have more columns than their matrix has rows or columns."""
    terms = tuple(term for term in terms if term.left.shape[1])
    if not terms:
        return terms
    p, q = terms[0].left.shape[0], terms[0].right.shape[0]
    if len(terms) == 1 or sum(term.left.shape[1] for term in terms) <= min(p, q):
        return terms
    return (_unfactored(sum(term.scaled @ term.right.T for term in terms)),)


def _unfactored(A: Any) -> Thin:
    """Return a dense matrix as a product with the identity on its shorter side."""
    p, q = A.shape
    return Thin(A, np.eye(q, dtype=A.dtype)) if q <= p else Thin(np.eye(p, dtype=A.dtype), np.ascontiguousarray(A.T))


def _thin_thin(a: Thin, b: Thin) -> float:
    return a.scale * b.scale * float(np.sum((a.left.T @ b.left) * (a.right.T @ b.right)))


def _thin_sparse(a: Thin, matrix: FactoredMatrix) -> float:
    if matrix.pattern is None or matrix.data is None:
        return 0.0
    return a.scale * float(np.sum(a.left * (matrix._csr() @ a.right)))


def _sparse_sparse(a: FactoredMatrix, b: FactoredMatrix) -> float:
    if a.pattern is None or b.pattern is None or a.data is None or b.data is None:
        return 0.0
    if a.pattern.is_like(b.pattern):
        return float(a.data @ b.data)
    return float((a._csr() * b._csr()).sum())
