"""Matrix completion from observed entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from hardthresh.arrays import as_floating
from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.core.typing import Array
from hardthresh.designs import ObservedEntries, observe
from hardthresh.losses import Loss

from .composite import Composite
from .inputs import Targets, checked_ridge, matrix_shape

STORAGES = ("auto", "dense", "factored")
_SMALL = 64  # sides up to which points are dense: a decomposition costs less than handling factors. Arbitrary


def _examples() -> list[MatrixCompletion]:
    """Return small problems for the conformance tests: some entries of 6 x 6 matrices, one of them seen twice."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((6, 6))
    rows, cols = np.nonzero(rng.random((6, 6)) < 0.7)
    rows, cols = np.append(rows, rows[3]), np.append(cols, cols[3])
    y, weights = truth[rows, cols], rng.integers(0, 3, rows.size)
    return [
        MatrixCompletion(rows, cols, y, shape=(6, 6), storage="dense"),
        MatrixCompletion(rows, cols, y, shape=(6, 6), storage="factored"),
        MatrixCompletion(
            rows, cols, y > 0, shape=(6, 6), loss="logistic", sample_weight=weights, l2=0.1, storage="factored"
        ),
        MatrixCompletion(rows, cols, np.round(np.exp(y)), shape=(6, 6), loss="poisson", offset=0.1 * y, l2=0.1),
    ]


@register("objective", "matrix_completion", _examples)
class MatrixCompletion(Composite):
    r"""The mean loss of the observed entries of a matrix.

    .. math:: f(W) = \sum_i \omega_i \, \ell(y_i, W_{r_i c_i} + o_i) + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(W) = \tfrac{1}{2n} \sum_i (y_i - W_{r_i c_i})^2`.

    Parameters
    ----------
    rows, cols : array of integers, shape (n,)
        The position of each observation, :math:`0 \le r_i < p`, :math:`0 \le c_i < q`, in any order. The same position
        may occur several times, as several observations.
    values : array, shape (n,)
        The targets y, in the domain of the loss. float32 is computed in float32.
    shape : tuple of int
        (p, q).
    loss : str or Loss
        "squared", "logistic", "poisson", or an instance.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero. An observation with weight 2 is equivalent to two copies; one with weight 0 is
        ignored.
    offset : array, shape (n,), optional
        o, a known part of each prediction; finite.
    l2 : float
        Ridge :math:`\lambda \ge 0` on all entries, observed or not.
    storage : {"auto", "dense", "factored"}
        How points and gradients are stored: as p x q arrays, or as `FactoredMatrix`, whose memory grows with n and with
        (p + q) times the rank. "auto" means "factored" if p and q both exceed 64. The results agree up to rounding.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, lengths that do not match, indices that are not integers or outside the shape, no
        observation at all, negative weights or ridge, targets outside the loss's domain, arrays that are not NumPy's.

    Notes
    -----
    Rows and columns without an observation are allowed, and are completed by zeros if a solver starts from zero.
    Observations are stored sorted by row and then column; this is the order of `row_indices`, `column_indices`, `y`,
    predictions and the indices of `rows`. Those of weight zero are removed.

    A data pass is one pass over the observations. Cost of `evaluate`: two data passes, `curvature` the same,
    `curvature_along` one. A pass for a matrix of rank r costs O(p q r) by blocks, or O(n r) if few of its entries are
    observed; the memory is bounded.

    References
    ----------
    Jain, Meka and Dhillon (2010), *Guaranteed rank minimization via singular value projection*.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Rank
    >>> from hardthresh.solvers import minimize
    >>> f = MatrixCompletion([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0], shape=(2, 2))
    >>> f.evaluate(np.zeros((2, 2))).gradient
    array([[-0.33333333, -0.66666667],
           [-1.        ,  0.        ]])
    >>> print(minimize(f, Rank(1)).w.round(3))
    [[1. 2.]
     [3. 6.]]
    """

    design: ObservedEntries
    l2: float

    def __init__(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        *,
        shape: tuple[int, int] | None = None,
        loss: str | Loss = "squared",
        sample_weight: Any = None,
        offset: Any = None,
        l2: float = 0.0,
        storage: str = "auto",
    ) -> None:
        if shape is None:
            raise InvalidInputError("shape=(p, q) is missing: the observed entries do not say how large the matrix is")
        checked_word("storage", storage, STORAGES)
        arrays = {"rows": rows, "cols": cols, "values": values, "sample_weight": sample_weight, "offset": offset}
        for name, array in arrays.items():
            if is_array_api_obj(array) and not isinstance(array, np.ndarray):
                raise InvalidInputError(f"{name} is a {type(array).__name__}; matrix completion computes with NumPy")
        p, q = matrix_shape(shape)
        y = as_floating(values, name="values")
        if y.ndim != 1 or y.shape[0] == 0:
            raise InvalidInputError(f"values has shape {y.shape}; (n,) with n >= 1 is needed, one for each observation")
        n = y.shape[0]
        targets = Targets.of(y, sample_weight, offset, y, n, "values")
        row, column = _indices(rows, n, p, "rows"), _indices(cols, n, q, "cols")
        seen = np.flatnonzero(targets.weights)
        factored = storage == "factored" or (storage == "auto" and min(p, q) > _SMALL)
        design, order = observe(row[seen], column[seen], (p, q), factored=factored, dtype=y.dtype)
        super().__init__(design, targets.take(seen[order]), loss, float(checked_ridge(l2, y)))

    @classmethod
    def from_matrix(cls, A: Any, **settings: Any) -> MatrixCompletion:
        """Return the problem whose observations are the entries of a matrix that are not NaN.

        Parameters
        ----------
        A : array-like or scipy.sparse array, shape (p, q)
            NaN marks missing entries. The observations of a sparse array are its stored entries, including stored
            zeros.
        **settings
            As in `MatrixCompletion`: loss, l2, storage.

        Raises
        ------
        InvalidInputError
            If it is not a matrix, or as in `MatrixCompletion`.

        Examples
        --------
        >>> import numpy as np
        >>> f = MatrixCompletion.from_matrix([[1.0, 2.0], [3.0, np.nan]])
        >>> f.y
        array([1., 2., 3.])
        """
        if sp.issparse(A):
            if A.ndim != 2:
                raise InvalidInputError(f"a matrix is needed, got {A.ndim} dimensions")
            coo = A.tocoo()
            return cls(coo.row, coo.col, coo.data, shape=coo.shape, **settings)
        A = as_floating(A, name="A")
        if A.ndim != 2:
            raise InvalidInputError(f"a matrix is needed, got {A.ndim} dimensions")
        if not isinstance(A, np.ndarray):
            raise InvalidInputError(f"A is a {type(A).__name__}; matrix completion computes with NumPy")
        rows, cols = np.nonzero(~np.isnan(A))
        return cls(rows, cols, A[rows, cols], shape=A.shape, **settings)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return self.design.shape

    @property
    def row_indices(self) -> np.ndarray:
        """The row of each observation, increasing."""
        rows: np.ndarray = self.design.pattern.rows[self.design.places]
        return rows

    @property
    def column_indices(self) -> np.ndarray:
        """The column of each observation, increasing within a row."""
        columns: np.ndarray = self.design.pattern.cols[self.design.places]
        return columns

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic if the loss is, and partial if some entry is not observed."""
        return replace(super().traits, partial=self.design.pattern.rows.size < self.shape[0] * self.shape[1])

    def zeros(self) -> Array:
        """Return W = 0, as the storage keeps it."""
        return self.design.zeros()

    # `curvature` and `_mean` compute what those of the base do, but round in another order: expected results and stored
    # replays have these bits

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        image = self.loss.curvature(self.y, at.prediction) * self.design.predict(direction)
        return self._pull(self.weights * image, direction)

    def rows(self, indices: Array) -> MatrixCompletion:
        """Return the problem of some observations; they are kept by row and then column."""
        return super().rows(indices[np.argsort(self.design.places[indices], kind="stable")])

    def _mean(self, losses: Array) -> float:
        return float(self.weights @ losses)


def _indices(x: Any, n: int, size: int, name: str) -> np.ndarray:
    """Return row or column numbers, checked."""
    indices = np.asarray(x)
    if indices.shape != (n,):
        raise InvalidInputError(f"{name} has shape {indices.shape}; ({n},) is needed, one for each value")
    if indices.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must be integers, got dtype {indices.dtype}; round and convert them first")
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidInputError(
            f"{name}[{i}] is {indices[i]}, outside 0 ... {size - 1}; count from 0, within the shape"
        )
    return indices
