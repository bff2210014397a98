"""Many small problems at once: noise-free quadratics f(w) = (w - w*)' H (w - w*) / 2, in arrays with a leading axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Step = Callable[[Floats, Floats], Floats]
"""The steps of all problems from their values, shape (count,), and gradients, shape (count, d)."""


class Quadratics(NamedTuple):
    """Hessians, shape (count, d, d), or (1, d, d) if they share one, and minimisers, shape (count, d), of value 0."""

    hessian: Floats
    truth: Floats

    def gradient(self, w: Floats) -> Floats:
        """Return the gradients."""
        product: Floats = np.matmul(self.hessian, (w - self.truth)[..., None])[..., 0]
        return product

    def value(self, w: Floats, gradient: Floats) -> Floats:
        """Return the values, given the gradients."""
        value: Floats = 0.5 * np.sum((w - self.truth) * gradient, axis=1)
        return value


def drawn_quadratics(count: int, d: int, s_star: int, condition: float, rng: np.random.Generator) -> Quadratics:
    """Draw Hessians with random eigenvectors and log-uniform eigenvalues of at most 1, and normal minimisers."""
    vectors = np.linalg.qr(rng.standard_normal((count, d, d)))[0]
    values = condition ** rng.random((count, d))
    values /= values.max(axis=1, keepdims=True)
    truth = np.zeros((count, d))
    truth[:, :s_star] = rng.standard_normal((count, s_star))
    return Quadratics(np.einsum("bij,bj,bkj->bik", vectors, values, vectors), truth)


def hard_thresholds(z: Floats, s: int) -> Floats:
    """Return each row's s entries of largest magnitude, and 0 for the others; the lowest index wins a tie."""
    kept = np.argsort(-np.abs(z), axis=1, kind="stable")[:, :s]
    out = np.zeros_like(z)
    np.put_along_axis(out, kept, np.take_along_axis(z, kept, axis=1), axis=1)
    return out


def sparse_polyak(s: int, scale: float, target: float = 0.0) -> Step:
    """Return the rule of Sparse Polyak; its step is 0 where the gradient vanishes."""

    def step(value: Floats, gradient: Floats) -> Floats:
        divisor = scale * np.sum(hard_thresholds(gradient, s) ** 2, axis=1)
        gap = np.maximum(value - target, 0.0)
        return np.divide(gap, divisor, out=np.zeros_like(gap), where=divisor > 0.0)

    return step


def fixed(length: float) -> Step:
    """Return the rule of a fixed step."""
    return lambda value, gradient: np.full_like(value, length)


def are_solved(
    problems: Quadratics, s: int, step: Step, iterations: int, share: float, start: Floats | None = None
) -> NDArray[np.bool_]:
    """Return on which problems hard thresholding brings f below a share of f(0) within some iterations.

    It starts at 0, or at `start`. A run with more than a million times f(0) has diverged and stays where it is.
    """
    w = np.zeros_like(problems.truth) if start is None else start
    zero = np.zeros_like(w)
    scale = problems.value(zero, problems.gradient(zero))
    solved = np.zeros(len(w), dtype=bool)
    for _ in range(iterations + 1):
        gradient = problems.gradient(w)
        value = problems.value(w, gradient)
        solved |= value <= share * scale
        moves = ~solved & (value < 1e6 * scale)
        if not moves.any():
            break
        w = np.where(moves[:, None], hard_thresholds(w - step(value, gradient)[:, None] * gradient, s), w)
    return solved
