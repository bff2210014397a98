"""Knockoffs: copies of the columns that share their second moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs

from hardthresh.core.errors import InvalidInputError, numbered

_ENOUGH = 1e-6
"""Newton's method ends at a decrement below this, which bounds how far the entropy is from its maximum. Arbitrary: the
diagonal then has three digits, and the laws of knockoffs hold for any."""
_ROUNDS, _HALVINGS = 50, 60
"""Limits that are not met: 3 to 12 Newton steps suffice for AR(1) and equicorrelated columns, and for Gram matrices of
as many rows as columns; sixty halvings leave nothing of a step in double precision."""
_LEAST_RISE = 0.25
"""A step has to bring this share of what the slope promises: any share below 1/2 allows the full step in the end."""
_RANK = 1e-10
"""A column of which the others explain all but this share of the variance is their combination: ten of sixteen digits
of its coefficients are then lost. It is less than `hardthresh.arrays.linalg.DEPENDENT`: such a column is refused here,
and not only left out."""


def maximum_entropy_diagonal(correlation: np.ndarray) -> np.ndarray:
    r"""Return the diagonal matrix D that maximises the entropy of the columns and their knockoffs.

    .. math:: \max_D \; \log\det(2 S - D) + \log\det D, \qquad \text{whose maximum has }
              D_j = 1 / [(2 S - D)^{-1}]_{jj}.

    Parameters
    ----------
    correlation : array, shape (d, d)
        S, symmetric and positive definite, with a diagonal of ones.

    Returns
    -------
    array, shape (d,)
        The diagonal, positive and with 2 S - D positive definite.

    Notes
    -----
    Cost: two inverses and a Cholesky factor of d x d matrices for each of 3 to 12 steps of Newton's method, with steps
    halved until the entropy rises. The function is concave and self-concordant, so that these steps converge to its
    maximum.

    References
    ----------
    Gimenez and Zou (2019), *Improving the stability of the knockoff procedure*, AISTATS; Spector and Janson (2022),
    *Powerful knockoffs via minimizing reconstructability*, Annals of Statistics 50.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection.knockoff_plan import maximum_entropy_diagonal
    >>> maximum_entropy_diagonal(np.eye(2)).round(4)
    array([1., 1.])
    """
    diagonal = np.ones(len(correlation))
    while not np.isfinite(_entropy(correlation, diagonal)[1]):  # 2 S - D is not positive definite
        diagonal = diagonal / 2.0
    diagonal = diagonal / 2.0  # away from the border
    inverse, entropy = _entropy(correlation, diagonal)
    for _ in range(_ROUNDS):
        slope = 1.0 / diagonal - np.diag(inverse)
        step = cho_solve(cho_factor(inverse**2 + np.diag(diagonal**-2.0), overwrite_a=True), slope)
        promised = float(slope @ step)
        if promised < _ENOUGH:
            break
        length = 1.0
        for _ in range(_HALVINGS):
            new_inverse, new_entropy = _entropy(correlation, diagonal + length * step)
            if new_entropy >= entropy + _LEAST_RISE * length * promised:
                break
            length /= 2.0
        else:
            break  # what is left to gain is rounding
        diagonal, inverse, entropy = diagonal + length * step, new_inverse, new_entropy
    return diagonal


def _entropy(correlation: np.ndarray, diagonal: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (2 S - D)^-1, and log det(2 S - D) + log det D; minus infinity where that does not exist."""
    if not (diagonal > 0).all():
        return diagonal, -np.inf
    factor, failed = _cholesky(2.0 * correlation - np.diag(diagonal))
    if failed:
        return diagonal, -np.inf
    entropy = 2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(diagonal).sum())
    return _inverse_of(factor), entropy


def _cholesky(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the lower triangular factor, and from which row on there is none; 0 if there is."""
    factorise = get_lapack_funcs("potrf", (matrix,))
    factor, failed = factorise(matrix, lower=True)
    return factor, int(failed)


def _inverse_of(factor: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix with such a factor."""
    invert = get_lapack_funcs("potri", (factor,))
    inverse = np.tril(invert(factor, lower=True)[0])
    return np.asarray(inverse + np.tril(inverse, -1).T)


@dataclass(frozen=True, slots=True)
class KnockoffPlan:
    r"""A plan for drawing knockoffs of some columns with covariance, or Gram matrix, S.

    Each knockoff is its column minus a linear combination of all columns, plus noise that is independent of them:
    :math:`\tilde X = X - (X - \mu) S^{-1} D + Z`, where Z has the covariance :math:`2 D - D S^{-1} D`. The columns and
    their knockoffs then have the second moments

    .. math:: \begin{pmatrix} S & S - D \\ S - D & S \end{pmatrix},

    with a diagonal matrix D. They do not change if a column and its knockoff are swapped. A column without a knockoff
    has :math:`D_j = 0`.

    Attributes
    ----------
    tested : array of int, shape (m,)
        The columns with a knockoff.
    diagonal : array, shape (m,)
        The diagonal of D for these columns: the variance of a column minus its covariance with its knockoff.
    regression : array, shape (d, m)
        The columns of :math:`S^{-1} D`.
    factor : array, shape (m, m)
        A matrix F with :math:`F^\top F = 2 D - D S^{-1} D`.

    References
    ----------
    Barber and Candes (2015), *Controlling the false discovery rate via knockoffs*, Annals of Statistics 43, for
    `fixed`; Candes, Fan, Janson and Lv (2018), *Panning for gold: model-X knockoffs for high dimensional controlled
    variable selection*, Journal of the Royal Statistical Society B 80, for `gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.selection import KnockoffPlan
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((10, 3))
    >>> plan = KnockoffPlan.of(X.T @ X)
    >>> copies = plan.fixed(X, rng)
    >>> np.allclose(copies.T @ copies, X.T @ X), np.allclose(X[:, 0] @ copies[:, 1:], X[:, 0] @ X[:, 1:])
    (True, True)
    """

    tested: np.ndarray
    diagonal: np.ndarray
    regression: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(
        cls,
        second_moments: np.ndarray,
        tested: np.ndarray | None = None,
        name: Callable[[int], str] | None = None,
    ) -> KnockoffPlan:
        """Return the plan of maximum entropy, given the columns that are not tested.

        Parameters
        ----------
        second_moments : array, shape (d, d)
            S, symmetric and positive definite.
        tested : array of int, optional
            The columns with a knockoff. Default: all.
        name : callable, optional
            Returns the name of a column in messages. Default: its number.

        Returns
        -------
        KnockoffPlan

        Raises
        ------
        InvalidInputError
            If S is not positive definite; the message names the first column that is a linear combination of others.
        """
        tested = np.arange(len(second_moments)) if tested is None else tested
        name = partial(numbered, "column") if name is None else name
        scale = np.sqrt(np.diag(second_moments))
        correlation = second_moments / np.outer(scale, scale)
        precision = _inverse(correlation, name)
        of_tested = precision[np.ix_(tested, tested)]
        others = np.setdiff1d(np.arange(len(correlation)), tested)
        across = correlation[np.ix_(others, tested)]
        explained = across.T @ np.linalg.solve(correlation[np.ix_(others, others)], across)
        covariance = correlation[np.ix_(tested, tested)] - explained  # given the columns that are not tested
        unit = np.sqrt(np.diag(covariance))
        diagonal = maximum_entropy_diagonal(covariance / np.outer(unit, unit)) * unit**2
        noise = 2.0 * np.diag(diagonal) - diagonal[:, None] * of_tested * diagonal
        regression = precision[:, tested] * (diagonal * scale[tested]) / scale[:, None]
        return cls(tested, diagonal * scale[tested] ** 2, regression, _root(noise) * scale[tested])

    def gaussian(self, X: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return knockoffs of rows from a normal distribution with covariance S.

        Parameters
        ----------
        X : array, shape (n, d)
            The rows.
        mean : array, shape (d,)
            The mean of the distribution.
        rng : Generator
            The source of the noise.

        Returns
        -------
        array, shape (n, m)
        """
        noise = rng.standard_normal((X.shape[0], self.tested.size))
        return np.asarray(X[:, self.tested] - (X - mean) @ self.regression + noise @ self.factor)

    def fixed(self, X: np.ndarray, rng: np.random.Generator, beside: np.ndarray | None = None) -> np.ndarray:
        """Return knockoffs of columns whose Gram matrix is exactly S, with noise that is orthogonal to the columns.

        Parameters
        ----------
        X : array, shape (n, d)
            The columns, with ``X.T @ X == S``.
        rng : Generator
            The source of the directions of the noise.
        beside : array, shape (n,), optional
            Another column, orthogonal to X, to which the knockoffs will also be orthogonal.

        Returns
        -------
        array, shape (n, m)

        Raises
        ------
        InvalidInputError
            With fewer rows than d + m columns, and `beside`.
        """
        n, m = X.shape[0], self.tested.size
        others = X if beside is None else np.column_stack([beside, X])
        if n < others.shape[1] + m:
            raise InvalidInputError(f"{others.shape[1] + m} rows are needed for knockoffs of this kind, there are {n}")
        basis = np.linalg.qr(np.column_stack([others, rng.standard_normal((n, m))]))[0][:, others.shape[1] :]
        return np.asarray(X[:, self.tested] - X @ self.regression + basis @ self.factor)


def _inverse(matrix: np.ndarray, name: Callable[[int], str]) -> np.ndarray:
    """Return the inverse of a positive definite matrix."""
    factor, failed = _cholesky(matrix)
    pivots = np.diag(factor)[: failed - 1 if failed else None] ** 2
    lost = np.flatnonzero(pivots < _RANK * np.diag(matrix)[: pivots.size])
    if failed or lost.size:
        column = int(lost[0]) if lost.size else failed - 1
        raise InvalidInputError(
            f"{name(column)} is a linear combination of the columns before it, so that none of them has a knockoff"
        )
    return _inverse_of(factor)


def _root(matrix: np.ndarray) -> np.ndarray:
    """Return F with F'F a positive semi-definite matrix; eigenvalues below zero by rounding count as zero."""
    try:
        return np.linalg.cholesky(matrix).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
