"""The perspective relaxation of a quadratic over at most k columns, and the lower bound that any point gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from hardthresh.solvers.perspective import largest, penalty

from .quadratic import Reduced

_ROUNDS, _STEPS = 40, 3
"""Limits of the rounds in which columns become active, and of Newton steps in each. They end earlier by themselves;
the bound is valid wherever they end."""

_ENOUGH = 0.05
"""The relaxation is solved once its value is this share of the distance to the upper bound above its lower bound: then
a better solution could hardly prune the node. Arbitrary between 0.01 and 0.3."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """A point of the relaxation and what it proves.

    Attributes
    ----------
    lower : float
        A lower bound of the quadratic over at most k columns.
    active : array of int
        The places where the point is not zero.
    x : array, shape (n_active,)
        Its entries there.
    shares : array, shape (n_active,)
        How much of each column the relaxation chooses, z in [0, 1].
    worth : array, shape (m,)
        :math:`v_j^2 / 2D_j`, with what :math:`v_j` may be up to rounding: the bound falls by this when column j joins
        the k columns of largest worth.
    """

    lower: float
    active: np.ndarray
    x: np.ndarray
    shares: np.ndarray
    worth: np.ndarray


def relax(reduced: Reduced, D: np.ndarray, k: int, active: np.ndarray, x: np.ndarray, upper: float) -> Relaxed:
    r"""Solve the perspective relaxation of a quadratic over at most k columns, until its bound is good enough.

    For a diagonal D > 0 with M - D positive semidefinite, it is

    .. math:: \min_{x, \, 0 \le z \le 1, \, \sum z \le k} \;
              \tfrac{1}{2} x^\top (M - D) x - c^\top x + \tfrac{1}{2} \sum_j D_j x_j^2 / z_j

    and at any x, with :math:`v = c - (M - D) x`, Fenchel's inequality gives the bound

    .. math:: -\tfrac{1}{2} x^\top (M - D) x
              - \tfrac{1}{2} \max_{|S| \le k} \sum_{j \in S} v_j^2 / D_j

    The minimum over z is a quadratic of x between changes of signs and of which z are 1, so that Newton steps on the
    few columns that are not zero end at the minimum over these. Then the columns whose slopes are too large for a zero
    become active.

    Parameters
    ----------
    reduced : Reduced
        M, c and the constant.
    D : array, shape (m,)
        D, positive.
    k : int
        1 <= k < m.
    active, x : array
        The places of non-zeros at the start, and their entries.
    upper : float
        The best value known: the relaxation is not solved any better once the bound exceeds it.
    """
    root, scale = np.sqrt(D), reduced.problem.scale
    constant = reduced.constant - reduced.error
    best: Relaxed | None = None
    rows = reduced.rows(active)
    for _ in range(_ROUNDS):
        inner = rows[:, active]
        inner[np.diag_indices(active.size)] -= D[active]
        x = _minimise(inner, reduced.slope[active], root[active], k, x)
        kept = x != 0
        if not kept.all():
            active, x, rows = active[kept], x[kept], rows[kept]
        v = reduced.slope - x @ rows
        v[active] += D[active] * x
        inexact = reduced.rounding * (scale + float(np.max(np.abs(x), initial=0.0)))  # an entry of v
        worth = 0.5 * ((np.abs(v) + inexact) / root) ** 2
        along = float(x @ (reduced.slope[active] - v[active]))  # x'(M - D)x
        most = largest(worth, k)
        lower = constant - 0.5 * along - float(worth[most].sum()) - inexact * float(np.abs(x).sum())
        size = root[active] * np.abs(x)
        omega, threshold, _ = penalty(size, k)
        value = constant + 0.5 * along - float(x @ reduced.slope[active]) + omega
        if best is None or lower > best.lower:
            shares = np.minimum(1.0, size / threshold) if threshold > 0 else np.ones(size.size)
            best = Relaxed(lower, active, x, shares, worth)
        if best.lower >= upper or value - best.lower <= _ENOUGH * (upper - best.lower):
            break
        level = np.abs(v) / root
        level[active] = 0.0
        new = np.flatnonzero(level > threshold * (1.0 + 1e-7))
        new = new[largest(level[new], max(4, 2 * k, active.size // 4))]
        if new.size == 0:
            break
        active, rows = np.concatenate([active, new]), np.concatenate([rows, reduced.rows(new)])
        x = np.concatenate([x, np.copysign(1e-300, v[new])])  # the sign says where it goes
    assert best is not None
    return best


def _minimise(inner: np.ndarray, slope: np.ndarray, root: np.ndarray, k: int, x: np.ndarray) -> np.ndarray:
    """Return the minimiser of the relaxation over the active columns, some of which may end at zero.

    Newton steps end at the exact minimum on a few columns of the Gram matrix of a node, from the solution of its
    parent; `hardthresh.certificates.perspective.minimise_quadratic` takes groups and bounds, once, and any start.
    """

    def value(x: np.ndarray) -> float:
        return 0.5 * float(x @ (inner @ x)) - float(x @ slope) + penalty(root * np.abs(x), k)[0]

    now = value(x)
    for _ in range(_STEPS):
        some = np.flatnonzero(x)
        if some.size == 0:
            break
        own, sign = root[some], np.sign(x[some])
        _, _, whole = penalty(own * np.abs(x[some]), k)
        matrix = inner.copy() if some.size == x.size else inner[np.ix_(some, some)]
        matrix[np.diag_indices(some.size)] += np.where(whole, own * own, 1e-13)
        part = ~whole
        if part.any():
            direction = np.where(part, own * sign, 0.0)
            matrix += np.outer(direction, direction / (k - int(whole.sum())))
        _, target, failed = dposv(matrix.T, slope[some], overwrite_a=True)  # of a symmetric matrix, without a copy
        if failed:
            break
        step = target - x[some]
        t, moved = 1.0, None
        for _ in range(30):
            trial = x[some] + t * step
            trial[part & (trial * sign < 0)] = 0.0
            whole_trial = np.zeros(x.size)
            whole_trial[some] = trial
            after = value(whole_trial)
            if after < now or (after <= now and t == 1.0):
                moved = whole_trial
                break
            t *= 0.5
        if moved is None:
            break
        same = t == 1.0 and not (part & (target * sign < 0)).any()
        done = same and np.array_equal(penalty(own * np.abs(moved[some]), k)[2], whole)
        fell, x, now = now - after, moved, after
        if done or fell <= 1e-15 * abs(now):
            break
    return np.where(np.abs(x) < 1e-200, 0.0, x)
