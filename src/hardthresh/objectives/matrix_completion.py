"""Some entries of a matrix: find the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from hardthresh.arrays import as_floating
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.meter import Meter
from hardthresh.core.objective import BaseObjective, Evaluation, Traits
from hardthresh.core.registry import lookup, register
from hardthresh.core.typing import Array
from hardthresh.designs import ObservedEntries, observe
from hardthresh.losses import Loss

from .base import checked_ridge, checked_targets, loss_rounding, matrix_shape, mean_weights, total_weight

STORAGES = ("auto", "dense", "factored")
_SMALL = 64  # sides up to this: a dense decomposition costs less than the handling of factors


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
    ]


@register("objective", "matrix_completion", _examples)
class MatrixCompletion(BaseObjective):
    r"""The mean loss of the observed entries of a matrix.

    .. math:: f(W) = \sum_i \omega_i \, \ell(y_i, W_{r_i c_i}) + \tfrac{\lambda}{2} \|W\|_F^2,
              \qquad \omega_i = \frac{s_i}{\sum_i s_i}

    so for ``loss="squared"`` :math:`f(W) = \tfrac{1}{2n} \sum_i (y_i - W_{r_i c_i})^2`.

    Parameters
    ----------
    rows, cols : array of integers, shape (n,)
        Where each observation is, :math:`0 \le r_i < p`, :math:`0 \le c_i < q`, in any order. The same place given
        twice is two observations.
    values : array, shape (n,)
        The targets y, in the domain of the loss. float32 is computed in float32.
    shape : tuple of int
        (p, q).
    loss : str or Loss
        "squared", "logistic", "poisson", or an instance.
    sample_weight : array, shape (n,), optional
        s, non-negative, not all zero; weight 2 is the same as an observation given twice, weight 0 as one left out.
    l2 : float
        Ridge :math:`\lambda \ge 0` on all entries, observed or not.
    storage : {"auto", "dense", "factored"}
        How points and gradients are kept: as p x q arrays, or as `FactoredMatrix`, in memory that grows with n and
        with (p + q) times the rank. "auto" is "factored" where both sides are longer than 64. Answers agree up to
        rounding.

    Raises
    ------
    InvalidInputError
        For NaN or infinity, lengths that do not match, indices that are no integers or outside the shape, no
        observation at all, negative weights or ridge, targets outside the loss's domain, arrays that are not NumPy's.

    Notes
    -----
    A row or column without an observation is allowed; as nothing is known of it, solvers started from zero complete it
    by zeros. Observations are kept by row and then column, the order in which `row_indices`, `column_indices`, `y`,
    predictions and `rows` speak of them; those of weight zero are left out.

    A data pass is one sweep over the observations. Cost of `evaluate`: two data passes, `curvature` the same,
    `curvature_along` one. A sweep over a matrix of rank r costs O(p q r) by blocks, or O(n r) where few of its entries
    are observed; memory stays bounded.

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

    def __init__(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        *,
        shape: tuple[int, int] | None = None,
        loss: str | Loss = "squared",
        sample_weight: Any = None,
        l2: float = 0.0,
        storage: str = "auto",
    ) -> None:
        if shape is None:
            raise InvalidInputError("shape=(p, q) is missing: the observed entries do not say how large the matrix is")
        if storage not in STORAGES:
            raise InvalidInputError(f"storage is one of {', '.join(STORAGES)}; got {format_value(storage)}")
        for name, given in (("rows", rows), ("cols", cols), ("values", values), ("sample_weight", sample_weight)):
            if is_array_api_obj(given) and not isinstance(given, np.ndarray):
                raise InvalidInputError(f"{name} is a {type(given).__name__}; matrix completion computes with NumPy")
        p, q = matrix_shape(shape)
        y = as_floating(values, name="values")
        if y.ndim != 1 or y.shape[0] == 0:
            raise InvalidInputError(f"values has shape {y.shape}; (n,) with n >= 1 is needed, one for each observation")
        n = y.shape[0]
        y = checked_targets(y, y, n, "values")
        row, column = _indices(rows, n, p, "rows"), _indices(cols, n, q, "cols")
        weights = mean_weights(sample_weight, y, n)
        self.n_examples = float(n) if sample_weight is None else total_weight(as_floating(sample_weight, y))
        if not weights.all():
            seen = np.flatnonzero(weights)
            row, column, y, weights = row[seen], column[seen], y[seen], weights[seen]
        factored = storage == "factored" or (storage == "auto" and min(p, q) > _SMALL)
        self.entries, order = observe(row, column, (p, q), factored=factored, dtype=y.dtype)
        self.row_indices, self.column_indices = row[order], column[order]
        self.y, self.weights = y[order], weights[order]
        self.loss: Loss = lookup("loss", loss)() if isinstance(loss, str) else loss
        self.loss.check_targets(self.y)
        self.l2 = float(checked_ridge(float(l2), y))
        self.lower_bound = self.loss.lower_bound

    n_examples: float
    """How many observations the weights stand for: their sum."""

    @classmethod
    def from_matrix(cls, A: Any, **settings: Any) -> MatrixCompletion:
        """Return the problem whose observations are the entries of a matrix that are not NaN.

        Parameters
        ----------
        A : array-like or scipy.sparse array, shape (p, q)
            NaN is missing. Of a sparse array the stored entries are the observations, zeros among them too.
        **settings
            As in `MatrixCompletion`: loss, l2, storage.

        Raises
        ------
        InvalidInputError
            If it is no matrix, or as in `MatrixCompletion`.

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

    def _with(self, entries: ObservedEntries, **changes: Any) -> MatrixCompletion:
        """Return a problem that differs in some parts, which are known to fit."""
        other = MatrixCompletion.__new__(MatrixCompletion)
        vars(other).update(vars(self), entries=entries, **changes)
        return other

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The shape of W, (p, q)."""
        return self.entries.shape

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Partial if some entry is not observed."""
        return Traits(
            quadratic=self.loss.quadratic,
            partial=self.entries.pattern.rows.size < self.shape[0] * self.shape[1],
            n_rows=int(self.y.shape[0]),
        )

    def attains_bound(self) -> bool:
        """Return whether every loss has a finite minimiser, or there is a ridge."""
        return self.l2 > 0.0 or not np.any(self.loss.recession(self.y))

    def zeros(self) -> Array:
        """Return W = 0, as the storage keeps it."""
        return self.entries.zeros()

    def predict(self, W: Array) -> Array:
        """Return the observed entries of W, shape (n,)."""
        return self.entries.predict(W)

    def value(self, W: Array, prediction: Array | None = None) -> float:
        """Return f(W)."""
        u = self.predict(W) if prediction is None else prediction
        return self._mean(self.loss.value(self.y, u), W)

    def _mean(self, losses: Array, W: Array) -> float:
        """Return the mean of losses, plus the ridge at W."""
        return float(self.weights @ losses) + 0.5 * self._ridge_along(W)

    def evaluate(self, W: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at W."""
        u = self.predict(W) if prediction is None else prediction
        losses, slopes = self.loss.value_and_gradient(self.y, u)
        return Evaluation(W, self._mean(losses, W), self._pull(slopes, W), u)

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `loss_rounding`."""
        return loss_rounding(self.weights, self.loss, self.y, at.prediction, 0.5 * self._ridge_along(at.point))

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        return self._pull(self.loss.curvature(self.y, at.prediction) * self.predict(direction), direction)

    def curvature_along(self, at: Evaluation, direction: Array) -> float:
        """Return direction' H direction: one data pass instead of two."""
        image = self.predict(direction)
        bend = self.weights * self.loss.curvature(self.y, at.prediction)
        return float(np.sum(bend * image * image)) + self._ridge_along(direction)

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return it at an evaluated point, without the ridge, up to a constant of the data; `n_examples` is n."""
        mean = float(self.weights @ self.loss.value(self.y, at.prediction))
        return self.loss.minus_twice_log_likelihood(mean, self.n_examples)

    def rows(self, indices: Array) -> MatrixCompletion:
        """Return the problem of some observations, in the order of `y`: drawn at random, an unbiased estimate.

        The mean is taken over all n observations as if the m given ones stood for them: weights are multiplied by
        n / m.

        Raises
        ------
        InvalidInputError
            If no observations are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row (an observation), got none")
        full = self.entries
        row, column = self.row_indices[indices], self.column_indices[indices]
        entries, order = observe(row, column, full.shape, factored=full.factored, dtype=full.dtype)
        indices = indices[order]
        weights = self.weights[indices] * self.weights.dtype.type(self.y.shape[0] / indices.shape[0])
        return self._with(
            entries if full.meter is None else entries.metered(full.meter, self.y.shape[0]),
            y=self.y[indices],
            weights=weights,
            row_indices=row[order],
            column_indices=column[order],
        )

    def metered(self, meter: Meter) -> MatrixCompletion:
        """Return the same problem, adding its data passes to a meter."""
        return self._with(self.entries.metered(meter, self.y.shape[0]))

    def _pull(self, slopes: np.ndarray, W: Array) -> Array:
        gradient = self.entries.pullback(self.weights * slopes)
        return gradient if self.l2 == 0.0 else gradient + self.l2 * W

    def _ridge_along(self, W: Array) -> float:
        if self.l2 == 0.0:
            return 0.0
        xp = np if isinstance(W, np.ndarray) else W.__array_namespace__()
        return self.l2 * float(xp.sum(W * W))


def _indices(given: Any, n: int, size: int, name: str) -> np.ndarray:
    """Return row or column numbers, checked."""
    indices = np.asarray(given)
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
