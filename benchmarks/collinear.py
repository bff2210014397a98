"""Tables whose columns nearly depend on each other: time, and whether a residual is below the true one.

    python benchmarks/collinear.py --tables 1000

Smooth spectra, powers of one variable, and duplicates plus noise of 1e-9, with and without standardised columns. Each
is given to the path over k, to a single fit, to a thorough one, and to cross-validation; CPU time on one thread. The
true residual of the chosen columns is that of an orthogonal basis from a singular value decomposition.
"""

import argparse
import sys
import warnings
from time import process_time

import numpy as np
from run import limit_threads

KINDS = ("spectra", "powers", "duplicates")
SLOW = 100.0  # times the median


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of one table."""
    rng = np.random.default_rng((77, seed))
    n, d = int(rng.integers(20, 150)), int(rng.integers(5, 100))
    kind = KINDS[seed % len(KINDS)]
    if kind == "spectra":
        grid, parts = np.linspace(0, 1, d), int(rng.integers(2, 12))
        shares = rng.uniform(0, 1, (n, parts))
        peaks = np.exp(-(((grid - rng.uniform(0, 1, (parts, 1))) / rng.uniform(0.05, 0.5, (parts, 1))) ** 2))
        X = shares @ peaks + 10.0 ** rng.uniform(-9, -3) * rng.standard_normal((n, d))
    elif kind == "powers":
        X = rng.uniform(-1 if seed % 2 == 0 else 0, 1, n)[:, None] ** np.arange(1, min(d, 30) + 1)
    else:
        X = rng.standard_normal((n, d))
        X[:, : d // 2] = X[:, d - d // 2 :] + 1e-9 * rng.standard_normal((n, d // 2))
    d = X.shape[1]
    w = np.zeros(d)
    w[rng.choice(d, min(5, d), replace=False)] = rng.standard_normal(min(5, d))
    centred = X - X.mean(0)
    u = centred @ w
    y = u + 10.0 ** rng.uniform(-4, 0.5) * (u.std() or 1.0) * rng.standard_normal(n)
    deviation = centred.std(0)
    return (centred / np.where(deviation > 0, deviation, 1) if rng.random() < 0.5 else X), y


def residual(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> float:
    """Return half the mean squared residual of the best combination of some columns."""
    columns = X[:, support]
    size = np.linalg.norm(columns, axis=0)
    basis, values, _ = np.linalg.svd(columns / np.where(size > 0, size, 1), full_matrices=False)
    basis = basis[:, values > 1e-15 * values[0]]
    rest = y - basis @ (basis.T @ y)
    return 0.5 * float(rest @ rest) / len(y)


def study(seed: int) -> tuple[dict[str, float], int]:
    """Return seconds by task, and how many answers claim less than the true residual."""
    import hardthresh as ht
    from hardthresh.constraints import Sparsity
    from hardthresh.objectives import LinearModel
    from hardthresh.selection import path
    from hardthresh.solvers import WorkingSet

    X, y = table(seed)
    n, d = X.shape
    Z, most = np.column_stack([X, np.ones(n)]), min(15, d)
    f = LinearModel(Z, y)

    def best(k: int) -> Sparsity:
        return Sparsity(k, free=(d,))

    tasks = {
        "path": lambda: list(path(f, best, range(most + 1))),
        "fit": lambda: [ht.minimize(f, best(min(5, d)))],
        "thorough": lambda: [ht.minimize(f, best(min(5, d)), WorkingSet(effort="thorough"))],
        "cross-validation": lambda: ht.SparseLinearRegressionCV(n_nonzero_coefs=range(1, most + 1), cv=4).fit(X, y),
    }
    seconds, below = {}, 0
    for name, task in tasks.items():
        began = process_time()
        found = task()
        seconds[name] = process_time() - began
        for result in found if isinstance(found, list) else ():
            true = residual(Z, y, result.support)
            below += result.value < true * (1 - 1e-6) - 1e-13 * float(y @ y) / n
    return seconds, below


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    study(options.first)  # what is imported late is imported now
    found = [study(seed) for seed in range(options.first, options.first + options.tables)]
    slow = False
    for name in found[0][0]:
        times = np.array([seconds[name] for seconds, _ in found])
        worst = times.max() / np.median(times)
        slow |= worst > SLOW
        print(f"{name:16}  median {np.median(times):.4f} s, most {times.max():.4f} s: {worst:.1f} times the median")
    below = sum(count for _, count in found)
    print(f"{below} answers below the true residual, in {options.tables} tables")
    return int(slow or below > 0)


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
