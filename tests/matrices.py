"""What every design keeps: each of its operations is that of a dense matrix."""

import numpy as np
import pytest

from hardthresh.arrays import to_numpy


def strict(X):
    import array_api_strict

    return array_api_strict.asarray(np.array(X))


def torch(X):
    library = pytest.importorskip("torch", reason="torch is not installed")
    return library.asarray(np.array(X))


WEIGHTS = np.array([0.0, 1.0, 2.0, 1.0, 0.5, 3.0, 0.0, 1.0, 1.5])
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def like(design, x):
    """Return a NumPy array in the library of a design."""
    zeros = design.zeros(1)
    if isinstance(zeros, np.ndarray):
        return np.array(x)
    return strict(x) if "strict" in type(zeros).__module__ else torch(x)


def assert_is(design, X, tol=1e-12):
    """Every operation of a design is that of a dense matrix."""
    n, d = X.shape
    rng = np.random.default_rng(1)
    close = {"rtol": tol, "atol": tol}
    assert design.shape == (n, d)
    np.testing.assert_allclose(to_numpy(design.dense()), X, **close)
    r = rng.standard_normal(n)
    np.testing.assert_allclose(to_numpy(design.pullback(like(design, r))), X.T @ r, **close)
    several = rng.standard_normal((n, 3))
    np.testing.assert_allclose(to_numpy(design.pullback(like(design, several))), X.T @ several, **close)
    for weights in (r, np.full(n, 0.3)):
        np.testing.assert_allclose(
            to_numpy(design.pullback_squares(like(design, weights))), (X**2).T @ weights, rtol=tol, atol=10 * tol
        )
    for count in {0, 1, d // 8, d}:
        w = np.zeros(d)
        w[rng.permutation(d)[:count]] = 1.0 + rng.random(count)
        np.testing.assert_allclose(to_numpy(design.predict(like(design, w))), X @ w, **close)
        W = w[:, None] * rng.standard_normal((d, 3))
        np.testing.assert_allclose(to_numpy(design.predict(like(design, W))), X @ W, **close)
    mean, deviation = design.moments(like(design, WEIGHTS[:n] / WEIGHTS[:n].sum()))
    weights = WEIGHTS[:n] / WEIGHTS[:n].sum()
    expected = weights @ X
    np.testing.assert_allclose(to_numpy(mean), expected, rtol=tol, atol=max(tol, 1e-12))
    spread = np.sqrt(weights @ (X - expected) ** 2)
    np.testing.assert_allclose(to_numpy(deviation), spread, rtol=1e-7, atol=1e-7)
    assert design.zeros(3).shape == (3,)
