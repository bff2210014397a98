"""The weaker strong convexity of generalised linear models, (14): a search for the directions of least curvature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel

STARTS, ROUNDS = 3, 20
"""Random directions from which a search starts at each radius, and its steps."""


def least_curvature(objective: LinearModel, x: Any, k: int, radii: Sequence[float], step: float, seed: int) -> Any:
    """Return the least left side of (14) over the squared distance |y - x|^2, at each of some distances.

    That is an upper bound of the least of all directions with k non-zeros: the least of those that projected gradient
    steps from random directions meet, each of which is tried at all distances. The left side grows only linearly, so
    that steps beyond the distance 1 are longer.
    """
    rng, at = np.random.default_rng(seed), objective.evaluate(x)
    least = np.full(len(radii), math.inf)
    for radius in radii:
        for _ in range(STARTS):
            direction = unit(rng.standard_normal(len(x)), k)
            for _ in range(ROUNDS):
                slope = (objective.evaluate(x + radius * direction).gradient - at.gradient) / radius
                direction = unit(direction - step * max(1.0, radius) * slope, k)
            rises = np.array([objective.value(x + r * direction) - at.value for r in radii])
            left = rises - np.array(radii) * float(at.gradient @ direction)
            least = np.minimum(least, left / np.square(radii))
    return least


def unit(vector: Any, k: int) -> Any:
    """Return the k entries of largest magnitude, with norm 1."""
    kept = Sparsity(k).hard_threshold(vector)
    return kept / np.linalg.norm(kept)
