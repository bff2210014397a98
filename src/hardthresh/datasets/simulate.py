"""Problems with a planted sparse solution; the same seed gives the same arrays, for ever.

Every function draws from ``numpy.random.default_rng(seed)`` in the order its docstring states, because published
iteration counts are checked against these very arrays. Changing a draw order is changing the data set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.special import expit

from hardthresh.core.errors import InvalidInputError, format_value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulated:
    """A simulated problem and the truth behind it.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csc_array, shape (n_samples, n_features)
        The design matrix.
    y : ndarray of shape (n_samples,)
        The response.
    coef : ndarray of shape (n_features,)
        The planted coefficients; the mean response is ``X @ coef`` through the link of the model.
    support : ndarray of int64
        The indices of the non-zero coefficients, increasing.
    noise_variance : float or None
        Variance of the noise that was added to ``X @ coef``, 0 for none; None where the response is drawn from another
        distribution than the normal one.
    train, test : ndarray of int64, or None
        Row indices of the two parts of a random split, in the order in which they were drawn.
    """

    X: Any
    y: NDArray[Any]
    coef: NDArray[Any]
    support: NDArray[np.int64]
    noise_variance: float | None
    train: NDArray[np.int64] | None = None
    test: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return f"Simulated(X={self.X.shape} {self.X.dtype}, non-zeros={len(self.support)})"


def sample_size(alpha: float, sparsity: int, n_features: int) -> int:
    """Return the number of samples at which the theory of sparse recovery speaks.

    .. math:: n = \\lceil \\alpha \\, s \\log d \\rceil

    Parameters
    ----------
    alpha : float
        Samples per unit of s log d, positive.
    sparsity : int
        s, the number of non-zeros that a solver may use.
    n_features : int
        d, at least 2.

    Returns
    -------
    int
        n, at least 1.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    References
    ----------
    Qiao and Maros (2025), "Sparse Polyak: an adaptive step size rule for high-dimensional M-estimation", section 6.

    Examples
    --------
    >>> from hardthresh.datasets import sample_size
    >>> sample_size(5.0, 700, 5000)
    29811
    """
    _require_positive(alpha=alpha)
    _require_counts(sparsity=sparsity)
    _require_counts(least=2, n_features=n_features)
    return math.ceil(alpha * sparsity * math.log(n_features))


def make_ar1_problem(
    n_features: int,
    sparsity: int,
    n_nonzero: int,
    *,
    model: Literal["linear", "logistic", "poisson"] = "linear",
    alpha: float = 5.0,
    n_samples: int | None = None,
    correlation: float = 0.5,
    noise_variance: float = 0.25,
    coef_scale: float = 1.0,
    coef_squared_norm: float | None = None,
    dtype: DTypeLike = np.float64,
    seed: int = 0,
) -> Simulated:
    """Make a regression problem whose features are an autoregressive process of order one.

    .. math:: x_1 = \\varepsilon_1 / \\sqrt{1 - \\omega^2}, \\qquad x_{t+1} = \\omega x_t + \\varepsilon_{t+1},
              \\qquad \\varepsilon_t \\sim N(0, 1),

    so every feature has variance 1 / (1 - omega^2). With u = x' theta*, the response is u + N(0, noise_variance) for
    ``"linear"``, 1 with probability 1 / (1 + exp(-u)) and else 0 for ``"logistic"``, Poisson with mean exp(u) for
    ``"poisson"``.

    Parameters
    ----------
    n_features : int
        d.
    sparsity : int
        s, only used for the number of samples: ``sample_size(alpha, sparsity, n_features)``.
    n_nonzero : int
        s*, the number of planted non-zeros, between 1 and d.
    model : {"linear", "logistic", "poisson"}
        The distribution of the response.
    alpha : float
        Samples per unit of s log d.
    n_samples : int, optional
        Given, it replaces the number computed from `alpha`.
    correlation : float
        omega, between -1 and 1, exclusive.
    noise_variance : float
        Variance of the noise of the linear model, not negative.
    coef_scale : float
        Standard deviation of the planted coefficients.
    coef_squared_norm : float, optional
        Given, the coefficients are rescaled to this squared norm, so that problems of different size have the same
        signal. Not in the paper.
    dtype : dtype
        Of X, y and coef. The features are computed in float64 and rounded.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X is Fortran-ordered: the features are contiguous.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: the innovations, feature by feature; the support, without replacement; the coefficients, assigned to
    the sorted support; the noise, or the uniform (logistic) or Poisson draws. The paper uses the same innovation for
    the first two features, which makes them collinear; here each has its own.

    References
    ----------
    Qiao and Maros (2025), "Sparse Polyak: an adaptive step size rule for high-dimensional M-estimation", section 6.

    Examples
    --------
    >>> from hardthresh.datasets import make_ar1_problem
    >>> problem = make_ar1_problem(1000, 30, 15, seed=0)
    >>> problem.X.shape, problem.X.flags.f_contiguous, len(problem.support)
    ((1037, 1000), True, 15)
    >>> round(float(problem.X.T.sum()), 6)
    1740.897105
    """
    _require_nonzeros(n_nonzero, n_features)
    _require_correlation(correlation)
    _require_not_negative(noise_variance=noise_variance)
    _require_positive(coef_scale=coef_scale)
    if n_samples is None:
        n_samples = sample_size(alpha, sparsity, n_features)
    _require_counts(n_samples=n_samples)
    if model not in ("linear", "logistic", "poisson"):
        raise InvalidInputError(f"model={format_value(model)} is unknown; use 'linear', 'logistic' or 'poisson'.")

    rng = np.random.default_rng(seed)
    features = np.empty((n_features, n_samples), dtype=dtype)
    feature = rng.standard_normal(n_samples) / math.sqrt(1.0 - correlation**2)
    features[0] = feature
    for j in range(1, n_features):  # one at a time: float32 problems need no float64 copy
        feature = correlation * feature + rng.standard_normal(n_samples)
        features[j] = feature

    support = np.sort(rng.choice(n_features, n_nonzero, replace=False))
    values = coef_scale * rng.standard_normal(n_nonzero)
    if coef_squared_norm is not None:
        _require_positive(coef_squared_norm=coef_squared_norm)
        values *= math.sqrt(coef_squared_norm / float(values @ values))
    mean = values @ features[support].astype(np.float64)
    if model == "linear":
        y = mean + math.sqrt(noise_variance) * rng.standard_normal(n_samples)
    elif model == "logistic":
        y = _bernoulli(rng, mean)
    else:
        y = rng.poisson(np.exp(mean)).astype(np.float64)
    return Simulated(
        X=features.T,
        y=y.astype(dtype),
        coef=_scatter(n_features, support, values).astype(dtype),
        support=support,
        noise_variance=noise_variance if model == "linear" else None,
    )


def make_sparse_regression(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    *,
    correlation: float = 0.0,
    snr: float = 10.0,
    seed: int = 0,
) -> Simulated:
    """Make a dense least-squares problem with a given signal-to-noise ratio.

    .. math:: y = X \\beta + e - \\text{mean}, \\qquad \\operatorname{var}(X\\beta) / \\operatorname{var}(e)
              = \\text{snr},

    where the features are AR(1) across the columns (independent for ``correlation=0``), then centred and scaled to
    mean square 1, and the non-zeros of beta are uniform on [1, 2] with random signs.

    Parameters
    ----------
    n_samples, n_features : int
        n and d.
    n_nonzero : int
        Between 1 and d.
    correlation : float
        Of neighbouring features, between -1 and 1, exclusive.
    snr : float
        Variance of the signal over the variance of the noise, positive.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X float64, Fortran-ordered, columns with mean 0 and mean square 1; y centred.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: the innovations, feature by feature; the support, without replacement, then sorted; the signs; the
    magnitudes; the noise.

    References
    ----------
    The dense least-squares instances of the benchmarks of hardthresh.

    Examples
    --------
    >>> from hardthresh.datasets import make_sparse_regression
    >>> problem = make_sparse_regression(100, 50, 3, seed=0)
    >>> problem.X.shape, problem.support.tolist()
    ((100, 50), [4, 12, 14])
    """
    _require_positive(snr=snr)
    rng = np.random.default_rng(seed)
    X = _standardised_design(rng, n_samples, n_features, correlation)
    support, values = _signed_magnitudes(rng, np.arange(n_features), n_nonzero)
    signal = X[:, support] @ values
    noise_variance = signal.var() / snr
    y = signal + rng.standard_normal(n_samples) * math.sqrt(noise_variance)
    return Simulated(X, y - y.mean(), _scatter(n_features, support, values), support, float(noise_variance))


def make_sparse_classification(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    *,
    correlation: float = 0.0,
    scale: float = 3.0,
    seed: int = 0,
) -> Simulated:
    """Make a dense two-class problem with a logistic model and a given signal strength.

    .. math:: P(y = 1 \\mid x) = 1 / (1 + e^{-x'\\beta}), \\qquad \\operatorname{std}(X\\beta) = \\text{scale},

    where X and the shape of beta are those of `make_sparse_regression`.

    Parameters
    ----------
    n_samples, n_features : int
        n and d.
    n_nonzero : int
        Between 1 and d.
    correlation : float
        Of neighbouring features, between -1 and 1, exclusive.
    scale : float
        Standard deviation of the linear predictor over the samples, positive; 3 is an easy problem, 1 a hard one.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X float64, Fortran-ordered, columns with mean 0 and mean square 1; y float64 of 0 and 1.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: as `make_sparse_regression`, with n uniform numbers in place of the noise.

    References
    ----------
    The logistic instances of the benchmarks of hardthresh.

    Examples
    --------
    >>> from hardthresh.datasets import make_sparse_classification
    >>> problem = make_sparse_classification(100, 50, 3, seed=0)
    >>> sorted(set(problem.y.tolist())), round(float((problem.X @ problem.coef).std()), 6)
    ([0.0, 1.0], 3.0)
    """
    _require_positive(scale=scale)
    rng = np.random.default_rng(seed)
    X = _standardised_design(rng, n_samples, n_features, correlation)
    support, values = _signed_magnitudes(rng, np.arange(n_features), n_nonzero)
    signal = X[:, support] @ values
    stretch = scale / signal.std()
    y = _bernoulli(rng, signal * stretch)
    return Simulated(X, y, _scatter(n_features, support, values * stretch), support, None)


def make_sparse_text(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    *,
    density: float = 0.001,
    task: Literal["regression", "classification"] = "regression",
    snr: float = 10.0,
    min_count: int = 200,
    seed: int = 0,
) -> Simulated:
    """Make a sparse problem that looks like text: few frequent columns, a long tail of rare ones.

    ``int(n * d * density)`` entries are thrown at uniform rows and at column j with probability proportional to
    :math:`j^{-0.7}` (Zipf's law), each with the value ``|N(0, 1)|`` + 0.1; entries that meet are added. The planted
    columns are drawn among those with at least `min_count` entries, with coefficients uniform on [1, 2] and random
    signs. Regression: y = X beta + e with var(X beta) / var(e) = snr. Classification: logistic model, with beta
    rescaled so that X beta has standard deviation snr.

    Parameters
    ----------
    n_samples, n_features : int
        n and d.
    n_nonzero : int
        At most the number of columns that are frequent enough.
    density : float
        Entries thrown per cell, in (0, 1].
    task : {"regression", "classification"}
        The model of the response.
    snr : float
        Signal strength as above, positive.
    min_count : int
        Least number of entries of a planted column.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X is a float64 `scipy.sparse.csc_array` with sorted 32-bit indices; y is not centred.

    Raises
    ------
    InvalidInputError
        An argument is out of its range, or too few columns are frequent enough.

    Notes
    -----
    Draw order: the columns of all entries; their rows; their values; the support, without replacement, then sorted;
    the signs; the magnitudes; the noise or the uniform numbers.

    References
    ----------
    The sparse instances of the benchmarks of hardthresh.

    Examples
    --------
    >>> from hardthresh.datasets import make_sparse_text
    >>> problem = make_sparse_text(1000, 500, 5, density=0.02, min_count=50, seed=0)
    >>> problem.X.shape, problem.X.format, len(problem.support)
    ((1000, 500), 'csc', 5)
    """
    _require_counts(n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    _require_positive(snr=snr)
    if not 0 < density <= 1:
        raise InvalidInputError(f"density={format_value(density)} must be greater than 0 and at most 1.")
    if task not in ("regression", "classification"):
        raise InvalidInputError(f"task={format_value(task)} is unknown; use 'regression' or 'classification'.")

    rng = np.random.default_rng(seed)
    n_entries = int(n_samples * n_features * density)
    frequency = 1.0 / np.arange(1, n_features + 1) ** 0.7
    columns = rng.choice(n_features, n_entries, p=frequency / frequency.sum()).astype(np.int32)
    rows = rng.integers(0, n_samples, n_entries).astype(np.int32)
    entries = np.abs(rng.standard_normal(n_entries)) + 0.1
    X = sp.csc_array((entries, (rows, columns)), shape=(n_samples, n_features))
    X.sum_duplicates()
    X.sort_indices()

    frequent = np.flatnonzero(np.diff(X.indptr) >= min_count)
    if len(frequent) < n_nonzero:
        raise InvalidInputError(
            f"n_nonzero={n_nonzero}, but only {len(frequent)} columns have at least min_count={min_count} entries; "
            "lower n_nonzero or min_count, or raise density or n_samples."
        )
    support, values = _signed_magnitudes(rng, frequent, n_nonzero)
    coef = _scatter(n_features, support, values)
    signal = X @ coef
    if task == "regression":
        noise_variance = float(signal.var() / snr)
        y = signal + rng.standard_normal(n_samples) * math.sqrt(noise_variance)
        return Simulated(X, y, coef, support, noise_variance)
    stretch = snr / signal.std()
    return Simulated(X, _bernoulli(rng, signal * stretch), coef * stretch, support, None)


def make_gaussian_design(
    n_samples: int, n_features: int, n_nonzero: int, *, dtype: DTypeLike = np.float64, seed: int = 0
) -> Simulated:
    """Make a noiseless compressed-sensing problem: a Gaussian matrix and a sparse vector of unit norm.

    .. math:: \\Phi_{ij} \\sim N(0, 1/m), \\qquad \\|x^*\\|_2 = 1, \\qquad b = \\Phi x^*.

    Parameters
    ----------
    n_samples, n_features : int
        m and n of the paper.
    n_nonzero : int
        k, between 1 and n.
    dtype : {float64, float32}
        In which the matrix is drawn. x* stays float64.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X = Phi, Fortran-ordered, and y = b, both of `dtype`.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: Phi, row by row; the support, without replacement; the values, normal, assigned in the order drawn.

    References
    ----------
    Khanna and Kyrillidis (2018), "IHT dies hard: provable accelerated iterative hard thresholding", Fig. 2.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.datasets import make_gaussian_design
    >>> problem = make_gaussian_design(75, 200, 5, seed=0)
    >>> bool(np.allclose(problem.X @ problem.coef, problem.y)), problem.noise_variance
    (True, 0.0)
    """
    _require_counts(n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    rng = np.random.default_rng(seed)
    X = _standard_normal(rng, (n_samples, n_features), dtype)
    X /= np.sqrt(n_samples).astype(dtype)
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    y = X[:, drawn] @ coef[drawn].astype(dtype)
    return Simulated(np.asfortranarray(X), y, coef, np.sort(drawn), 0.0)


def make_toy(n_samples: int = 6, n_features: int = 10, n_nonzero: int = 2, *, seed: int = 0) -> Simulated:
    """Make the toy problem on which momentum is drawn: tiny, Gaussian, noiseless.

    .. math:: \\Phi_{ij} \\sim N(0, 1), \\qquad \\|x^*\\|_2 = 1, \\qquad b = \\Phi x^*.

    Parameters
    ----------
    n_samples, n_features, n_nonzero : int
        The size of the paper is the default.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X = Phi, C-ordered float64, and y = b.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: Phi, row by row; the support, without replacement; the values, normal, assigned in the order drawn.

    References
    ----------
    Khanna and Kyrillidis (2018), "IHT dies hard: provable accelerated iterative hard thresholding", Fig. 1.

    Examples
    --------
    >>> from hardthresh.datasets import make_toy
    >>> make_toy(seed=409).support.tolist()
    [2, 4]
    """
    _require_counts(n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    return Simulated(X, X @ coef, coef, np.sort(drawn), 0.0)


def make_correlated_split(
    n_samples: int = 800,
    n_features: int = 200,
    n_nonzero: int = 20,
    *,
    correlation: float = 0.4,
    snr: float = 10.0,
    seed: int = 0,
) -> Simulated:
    """Make a correlated regression problem with noise of an exact size and a random half for testing.

    .. math:: y = \\Phi x^* + e, \\qquad \\|x^*\\|_2 = 1, \\qquad \\|\\Phi x^*\\|^2 / \\|e\\|^2 = \\text{snr},

    where the rows of Phi are AR(1) across the features with unit variance, and its columns are then scaled to unit
    norm.

    Parameters
    ----------
    n_samples, n_features, n_nonzero : int
        The size of the paper is the default; half of the samples, rounded down, is for training.
    correlation : float
        Of neighbouring features, between -1 and 1, exclusive.
    snr : float
        Squared norm of the signal over that of the noise, positive.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X, y with all samples; `train` and `test` hold the rows of the two halves. `noise_variance` is the mean square
        of the noise drawn.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: the innovations, row by row; the support, without replacement; the values, normal, assigned in the
    order drawn; the noise; the permutation of the rows, whose first half is `train`.

    References
    ----------
    Khanna and Kyrillidis (2018), "IHT dies hard: provable accelerated iterative hard thresholding", Fig. 3.

    Examples
    --------
    >>> from hardthresh.datasets import make_correlated_split
    >>> problem = make_correlated_split(seed=0)
    >>> X_train, y_train = problem.X[problem.train], problem.y[problem.train]
    >>> X_train.shape, len(problem.test)
    ((400, 200), 400)
    """
    _require_counts(least=2, n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    _require_correlation(correlation)
    _require_positive(snr=snr)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    _correlate(X.T, correlation)
    X /= np.linalg.norm(X, axis=0)
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    signal = X @ coef
    noise = rng.standard_normal(n_samples)
    noise *= np.linalg.norm(signal) / np.linalg.norm(noise) / np.sqrt(snr)
    train, test = _split(rng, n_samples, n_samples // 2)
    return Simulated(X, signal + noise, coef, np.sort(drawn), float(np.mean(noise**2)), train, test)


def make_limited_attributes(
    n_samples: int = 100_000,
    n_features: int = 500,
    n_nonzero: int = 25,
    *,
    noise_variance: float = 1.0,
    dtype: DTypeLike = np.float32,
    seed: int = 0,
) -> Simulated:
    """Make a long stream of independent Gaussian examples, for learners that see few attributes of each.

    .. math:: x_{ij} \\sim N(0, 1), \\qquad y = x'\\theta^* + N(0, \\sigma^2), \\qquad
              \\theta^* = (1, \\ldots, 1, -1, \\ldots, -1, 0, \\ldots, 0),

    with +1 on the first half of the `n_nonzero` leading coordinates (rounded up) and -1 on the rest of them.

    Parameters
    ----------
    n_samples, n_features, n_nonzero : int
        The size of the paper is the default; X takes 200 MB in float32.
    noise_variance : float
        sigma^2, not negative.
    dtype : {float32, float64}
        In which X is drawn. y is computed from the stored X in float64.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        `train` holds nine tenths of the rows in the order of the stream, `test` the others.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: X, row by row, in `dtype`; the noise; the permutation of the rows, whose first nine tenths are `train`.

    References
    ----------
    Murata and Suzuki (2018), "Sample efficient stochastic gradient iterative hard thresholding method for stochastic
    sparse linear regression with limited attribute observation", synthetic experiment.

    Examples
    --------
    >>> from hardthresh.datasets import make_limited_attributes
    >>> stream = make_limited_attributes(1000, 20, 5, seed=0)
    >>> stream.coef[:6].tolist(), len(stream.train)
    ([1.0, 1.0, 1.0, -1.0, -1.0, 0.0], 900)
    """
    _require_counts(n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    _require_not_negative(noise_variance=noise_variance)
    rng = np.random.default_rng(seed)
    X = _standard_normal(rng, (n_samples, n_features), dtype)
    support = np.arange(n_nonzero)
    values = np.where(support < (n_nonzero + 1) // 2, 1.0, -1.0)
    y = X[:, :n_nonzero].astype(np.float64) @ values + math.sqrt(noise_variance) * rng.standard_normal(n_samples)
    train, test = _split(rng, n_samples, round(0.9 * n_samples))
    return Simulated(X, y, _scatter(n_features, support, values), support, noise_variance, train, test)


def make_sign_planted(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    *,
    model: Literal["linear", "logistic"] = "linear",
    correlation: float = 0.0,
    noise_std: float = 0.1,
    magnitudes: tuple[float, float] = (1.0, 2.0),
    seed: int = 0,
) -> Simulated:
    """Make a Gaussian problem whose planted coefficients have bounded magnitudes and random signs.

    .. math:: y = A x + \\sigma e, \\qquad \\text{or} \\qquad P(y_i = 1) = 1 / (1 + e^{-(A x)_i}),
              \\quad y_i \\in \\{-1, 1\\},

    with rows of A that are AR(1) across the features with unit variance, and coefficients whose absolute
    values are uniform on `magnitudes`.

    Parameters
    ----------
    n_samples, n_features : int
        N and n of the paper.
    n_nonzero : int
        K, between 1 and n.
    model : {"linear", "logistic"}
        The distribution of the response; "logistic" has labels -1 and +1.
    correlation : float
        Of neighbouring features, between -1 and 1, exclusive.
    noise_std : float
        sigma of the linear model, not negative.
    magnitudes : pair of float
        Smallest and largest size of a planted coefficient.
    seed : int
        Of `numpy.random.default_rng`.

    Returns
    -------
    Simulated
        X = A, C-ordered float64.

    Raises
    ------
    InvalidInputError
        An argument is out of its range.

    Notes
    -----
    Draw order: A, row by row; a permutation of the features, whose first K are the support; the magnitudes; the signs;
    the noise or the uniform numbers.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), "Probabilistic iterative hard thresholding for sparse
    learning", sparse regression.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.datasets import make_sign_planted
    >>> problem = make_sign_planted(100, 30, 4, seed=0)
    >>> sizes = np.abs(problem.coef[problem.support])
    >>> bool(sizes.min() >= 1) and bool(sizes.max() <= 2)
    True
    """
    _require_counts(n_samples=n_samples)
    _require_nonzeros(n_nonzero, n_features)
    _require_correlation(correlation)
    _require_not_negative(noise_std=noise_std)
    if len(magnitudes) != 2 or not 0 < magnitudes[0] <= magnitudes[1]:
        raise InvalidInputError(
            f"magnitudes={format_value(magnitudes)} must be a pair (smallest, largest) of positive numbers."
        )
    if model not in ("linear", "logistic"):
        raise InvalidInputError(f"model={format_value(model)} is unknown; use 'linear' or 'logistic'.")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    _correlate(X.T, correlation)
    drawn = rng.permutation(n_features)[:n_nonzero]
    sizes = rng.uniform(magnitudes[0], magnitudes[1], n_nonzero)
    coef = _scatter(n_features, drawn, sizes * np.where(rng.random(n_nonzero) < 0.5, -1, 1))
    signal = X @ coef
    if model == "linear":
        return Simulated(
            X, signal + noise_std * rng.standard_normal(n_samples), coef, np.sort(drawn), float(noise_std) ** 2
        )
    return Simulated(X, 2.0 * _bernoulli(rng, signal) - 1.0, coef, np.sort(drawn), None)


# --- the draws that several problems share ---


def _standard_normal(rng: np.random.Generator, shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Draw in single or double precision: the two give different streams, so a cast would not do."""
    kind = np.dtype(dtype)
    if kind == np.float64:
        return rng.standard_normal(shape)
    if kind == np.float32:
        return rng.standard_normal(shape, dtype=np.float32)
    raise InvalidInputError(f"dtype={kind.name} cannot be drawn; use float64 or float32.")


def _correlate(innovations: NDArray[np.float64], correlation: float) -> None:
    """Turn independent features (rows) into an AR(1) process of unit variance, in place."""
    if correlation == 0:
        return
    innovations[1:] *= math.sqrt(1 - correlation**2)
    for j in range(1, len(innovations)):
        innovations[j] += correlation * innovations[j - 1]


def _standardised_design(
    rng: np.random.Generator, n_samples: int, n_features: int, correlation: float
) -> NDArray[np.float64]:
    """Draw AR(1) features one after the other, centred and scaled to mean square 1; Fortran-ordered."""
    _require_counts(least=2, n_samples=n_samples)
    _require_counts(n_features=n_features)
    _require_correlation(correlation)
    features = rng.standard_normal((n_features, n_samples))
    _correlate(features, correlation)
    X = features.T
    X -= X.mean(axis=0)
    X /= np.sqrt((X * X).mean(axis=0))
    return X


def _signed_magnitudes(
    rng: np.random.Generator, candidates: NDArray[np.int64], n_nonzero: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw a sorted support among the candidates, and coefficients uniform on [1, 2] with random signs."""
    _require_nonzeros(n_nonzero, len(candidates))
    support = np.sort(rng.choice(candidates, n_nonzero, replace=False))
    return support, rng.choice([-1.0, 1.0], n_nonzero) * rng.uniform(1, 2, n_nonzero)


def _unit_normal_coef(
    rng: np.random.Generator, n_features: int, n_nonzero: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw a support (in the order drawn) and normal coefficients, scaled to unit norm."""
    drawn = rng.choice(n_features, n_nonzero, replace=False)
    coef = _scatter(n_features, drawn, rng.standard_normal(n_nonzero))
    return drawn, coef / np.linalg.norm(coef)


def _bernoulli(rng: np.random.Generator, logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw 1 with the probability of each logit and else 0."""
    ones: NDArray[np.bool_] = rng.random(len(logits)) < expit(logits)
    return ones.astype(np.float64)


def _split(rng: np.random.Generator, n_samples: int, n_train: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = rng.permutation(n_samples)
    return order[:n_train], order[n_train:]


def _scatter(n_features: int, support: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    coef = np.zeros(n_features)
    coef[support] = values
    return coef


# --- arguments ---


def _require_counts(*, least: int = 1, **counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InvalidInputError(f"{name}={format_value(value)} must be an integer of at least {least}.")


def _require_nonzeros(n_nonzero: int, n_features: int) -> None:
    _require_counts(n_features=n_features, n_nonzero=n_nonzero)
    if n_nonzero > n_features:
        raise InvalidInputError(f"n_nonzero={n_nonzero} must be at most n_features={n_features}.")


def _require_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise InvalidInputError(f"{name}={format_value(value)} must be a positive finite number.")


def _require_not_negative(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0 <= value < math.inf:
            raise InvalidInputError(f"{name}={format_value(value)} must be a finite number that is not negative.")


def _require_correlation(correlation: float) -> None:
    if not -1 < correlation < 1:
        raise InvalidInputError(f"correlation={format_value(correlation)} must lie between -1 and 1, exclusive.")
