"""How often 95 % intervals of chosen features cover: with the rows that chose them, and with others.

    python benchmarks/inference.py --runs 200

prints for each of five models the share of the intervals that cover the population coefficients of the chosen features,
of ``inference(kind="refit")`` and ``kind="split"``; the mean width of the latter over that of the former; and the share
of the true features that all rows and half of them choose. 200 rows, 200 columns of which neighbours have the
correlation .3, noise of variance 1; the seeds are (53, row of the table, run). A second table has how often the
intervals of a split cover with model-based and with robust standard errors, also where the model is wrong: targets x^2
with noise of standard deviation .2, for one column x and three of noise; the seeds are (54, row, run). A third table
has how often they cover with the formulas HC1, HC2 and HC3, computed here, also of smaller tables: a model is fitted to
a random half of the rows, and least squares to the others; the seeds are (55, row, run).

    python benchmarks/inference.py --runs 200 --tables 3

prints only the third.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from run import limit_threads
from scipy.stats import t

import hardthresh as ht

N = D = 200
RHO = 0.3
ROWS = {
    "pure noise, k = 3": (0, 0.0, 3),
    "5 true of .15, k = 5": (5, 0.15, 5),
    "5 true of .3, k = 5": (5, 0.3, 5),
    "5 true of .3, k = 10": (5, 0.3, 10),
    "5 true of 1, k = 5": (5, 1.0, 5),
}
"""The number of true features, their coefficients, of either sign, and k."""
SQUARES = {
    "x^2, x uniform on (0, 3), 100 rows": (100, lambda rng, n: rng.uniform(0, 3, n), 3.0),
    "x^2, x uniform on (0, 3), 1000 rows": (1000, lambda rng, n: rng.uniform(0, 3, n), 3.0),
    "x^2, x of Gamma(3), 1000 rows": (1000, lambda rng, n: rng.gamma(3.0, 1.0, n), 8.0),
    "x^2, x exponential, 400 rows": (400, lambda rng, n: rng.exponential(size=n), 4.0),
    "x^2, x exponential, 4000 rows": (4000, lambda rng, n: rng.exponential(size=n), 4.0),
}
"""The number of rows, how x is drawn, and the slope of the best line."""
SMALL = {
    "60 x 30, 5 true of 1, k = 5": (5, 1.0, 5, 60, 30),
    "60 x 30, 5 true of .3, k = 10": (5, 0.3, 10, 60, 30),
    "40 x 30, pure noise, k = 3": (0, 0.0, 3, 40, 30),
}
"""The number of true features, their coefficients, k, rows and columns."""
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]
"""X, y, the population covariance of the columns and the best coefficients, and k."""


def data(true: int, size: float, k: int, n: int = N, d: int = D, *, rng: np.random.Generator) -> Data:
    """Return a table whose targets are linear, with noise of variance 1."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = RHO * X[:, j - 1] + np.sqrt(1 - RHO**2) * X[:, j]
    w = np.zeros(d)
    w[rng.permutation(d)[:true]] = size * rng.choice([-1.0, 1.0], true)
    y = X @ w + rng.standard_normal(n)
    return X, y, RHO ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))), w, k


def squares(name: str, rng: np.random.Generator) -> Data:
    """Return a table whose targets are squares."""
    n, draw, slope = SQUARES[name]
    x = draw(rng, n)
    X, y = np.column_stack([x, 0.1 * rng.standard_normal((n, 3))]), x**2 + 0.2 * rng.standard_normal(n)
    return X, y, np.eye(4), np.array([slope, 0.0, 0.0, 0.0]), 1


def best(covariance: np.ndarray, w: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Return the coefficients of the best linear predictor of some columns."""
    return np.linalg.solve(covariance[np.ix_(chosen, chosen)], covariance[chosen] @ w)


def run(row: int, number: int) -> dict[str, tuple[int, int, float, float]]:
    """Return for each kind how many intervals cover, how many there are, their widths, and the share of true ones."""
    rng = np.random.default_rng((53, row, number))
    X, y, covariance, w, k = data(*list(ROWS.values())[row], rng=rng)
    true = np.count_nonzero(w)
    model = ht.SparseLinearRegression(n_nonzero_coefs=k, random_state=number).fit(X, y)
    found = {}
    for kind in ("refit", "split"):
        intervals = model.inference(X, y, kind=kind).intervals
        chosen = [one.index for one in intervals]
        target = best(covariance, w, chosen)
        covered = sum(one.lower <= b <= one.upper for one, b in zip(intervals, target, strict=True))
        width = float(np.mean([one.upper - one.lower for one in intervals]))
        recall = float(np.mean(w[chosen] != 0) * k / true) if true else np.nan
        found[kind] = (covered, len(chosen), width, recall)
    return found


def run_errors(name: str, row: int, number: int) -> dict[bool, tuple[int, int, float]]:
    """Return for model-based and robust errors how many intervals of a split cover, of how many, and their widths."""
    rng = np.random.default_rng((53 if name in ROWS else 54, row, number))
    X, y, covariance, w, k = data(*ROWS[name], rng=rng) if name in ROWS else squares(name, rng)
    model, found = ht.SparseLinearRegression(n_nonzero_coefs=k, random_state=number).fit(X, y), {}
    for robust in (False, True):
        intervals = model.inference(X, y, kind="split", robust=robust).intervals
        target = best(covariance, w, [one.index for one in intervals])
        covered = sum(one.lower <= b <= one.upper for one, b in zip(intervals, target, strict=True))
        found[robust] = covered, len(intervals), float(np.mean([one.upper - one.lower for one in intervals]))
    return found


FORMULAS = ("model-based", "HC1", "HC2", "HC3")


def standard_errors(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of least squares with an intercept, and their standard errors by each formula."""
    A = np.column_stack([np.ones(len(y)), X])
    n, s = A.shape
    inverse = np.linalg.inv(A.T @ A)
    coef = inverse @ A.T @ y
    squared = (y - A @ coef) ** 2
    kept = 1.0 - np.sum((A @ inverse) * A, axis=1)
    variances = [np.diagonal(inverse) * squared.sum() / (n - s)]
    for weights in (squared * n / (n - s), squared / kept, squared / kept**2):
        variances.append(np.diagonal(inverse @ (A.T * weights @ A) @ inverse))
    return coef[1:], np.sqrt(variances)[:, 1:]


def run_formulas(name: str, row: int, number: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Return how many intervals of a split cover by each formula, of how many, and their mean errors."""
    rng = np.random.default_rng((55, row, number))
    X, y, covariance, w, k = squares(name, rng) if name in SQUARES else data(*(ROWS | SMALL)[name], rng=rng)
    order = rng.permutation(len(y))
    first, second = order[: len(y) // 2], order[len(y) // 2 :]
    chosen = ht.SparseLinearRegression(n_nonzero_coefs=k).fit(X[first], y[first]).support_.tolist()
    coef, errors = standard_errors(X[second][:, chosen], y[second])
    half = t.ppf(0.975, len(second) - len(chosen) - 1)
    covered = np.abs(coef - best(covariance, w, chosen)) <= half * errors
    return covered.sum(axis=1), len(chosen), errors.mean(axis=1)


def compare_formulas(runs: int) -> None:
    """Print how often intervals cover by each formula."""
    print(f"| | {' | '.join(FORMULAS)} | width, HC3 / model-based |")
    print("|---|" + "--:|" * (len(FORMULAS) + 1))
    for row, name in enumerate(ROWS | SMALL | SQUARES):
        covered, counts, errors = zip(*(run_formulas(name, row, number) for number in range(runs)), strict=True)
        cover = [f"{share:.3f}" for share in np.sum(covered, axis=0) / sum(counts)]
        width = np.mean([one[3] / one[0] for one in errors])
        print(f"| {name} | {' | '.join(cover)} | {width:.2f} |", flush=True)


def compare_kinds(runs: int) -> None:
    """Print how often intervals of a refit and of a split cover."""
    print("| | refit covers | split covers | width, split / refit | found by all rows | by half |")
    print("|---|--:|--:|--:|--:|--:|")
    for row, name in enumerate(ROWS):
        results = [run(row, number) for number in range(runs)]
        refit, split = (np.array([result[kind] for result in results]) for kind in ("refit", "split"))
        cover = [f"{part[:, 0].sum() / part[:, 1].sum():.3f}" for part in (refit, split)]
        found = ["–" if np.isnan(part[0, 3]) else f"{part[:, 3].mean():.2f}" for part in (refit, split)]
        print(f"| {name} | {' | '.join(cover)} | {np.mean(split[:, 2] / refit[:, 2]):.2f} | {' | '.join(found)} |")


def compare_errors(runs: int) -> None:
    """Print how often intervals of a split cover with model-based and with robust standard errors."""
    print("| | model-based covers | robust covers | width, robust / model-based |")
    print("|---|--:|--:|--:|")
    for table in (ROWS, SQUARES):
        for row, name in enumerate(table):
            results = [run_errors(name, row, number) for number in range(runs)]
            by_model, robust = (np.array([result[kind] for result in results]) for kind in (False, True))
            cover = [f"{part[:, 0].sum() / part[:, 1].sum():.3f}" for part in (by_model, robust)]
            print(f"| {name} | {' | '.join(cover)} | {np.mean(robust[:, 2] / by_model[:, 2]):.2f} |", flush=True)


def main() -> int:
    """Print a row of the tables for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--tables", type=int, nargs="+", choices=(1, 2, 3), default=[1, 2, 3])
    asked = parser.parse_args()
    for place, number in enumerate(asked.tables):
        if place:
            print()
        (compare_kinds, compare_errors, compare_formulas)[number - 1](asked.runs)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
