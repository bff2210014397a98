"""Bounds of coefficients for tests, and least squares within them by SciPy."""

from itertools import combinations

import numpy as np
from scipy.optimize import lsq_linear


def bounds_of(signs):
    """Return the bounds that signs are: of one side where one is required, none for 0; None for None."""
    return None if signs is None else np.stack([np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)])


def draw_bounds(rng, d, size=1.0):
    """Return bounds of every kind: none, of one side, of two sides, at zero, and zero for both."""
    bounds = np.stack([-size * rng.random(d), size * rng.random(d)])
    bounds[rng.random((2, d)) < 0.3] = 0.0
    infinite = rng.random((2, d)) < 0.3
    bounds[infinite] = np.broadcast_to(np.array([[-np.inf], [np.inf]]), (2, d))[infinite]
    return bounds


def least_squares(X, y, bounds):
    """Return the coefficients within bounds that minimise half the sum of squares, and that minimum."""
    lower, upper = bounds
    coef, moving = np.zeros(lower.size), lower < upper  # SciPy wants room between them
    if moving.any():
        box = (lower[moving], upper[moving])
        coef[moving] = lsq_linear(X[:, moving], y, box, method="bvls", tol=1e-14, max_iter=1000).x
    rest = y - X @ coef
    return coef, 0.5 * float(rest @ rest)


def best_subset(X, y, bounds, k, free=()):
    """Return the lowest half sum of squares of every choice of k columns besides the free ones."""
    others = [j for j in range(X.shape[1]) if j not in free]
    chosen = ([*free, *some] for some in combinations(others, min(k, len(others))))
    return min(least_squares(X[:, some], y, bounds[:, some])[1] for some in chosen)
