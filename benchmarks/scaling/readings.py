"""How often a fit reads its table, and whether it finds what a fit in memory finds: the same on every machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

import hardthresh as ht
from hardthresh.designs import from_arrays
from hardthresh.losses import Gamma, Huber, Logistic, Loss, NegativeBinomial, Poisson, Squared, Tweedie

N, D, K = 16_384, 600, 12
CORRELATIONS = (0.0, 0.5, 0.9)
MODERATE = 0.5
SAME = 1e-8
"""Relative difference of two criteria that are the same up to rounding."""
MODELS = {"squared": ht.SparseLinearRegression, "logistic": ht.SparseLogisticRegression}
MEDIAN, MOST = 4, 7
"""Readings of a fit in the median and at most: checks 2 and 3 of the design. More of them end the benchmark."""
FOLDS = {
    "squared": (ht.SparseLinearRegressionCV(), Squared()),
    "logistic": (ht.SparseLogisticRegressionCV(), Logistic()),
    "squared_hinge": (ht.SparseLinearSVCCV(), Logistic()),
    "poisson": (ht.SparsePoissonRegressionCV(), Poisson()),
    "gamma": (ht.SparseGammaRegressionCV(), Gamma()),
    "tweedie": (ht.SparseTweedieRegressionCV(power=1.5), Tweedie(1.5)),
    "negative_binomial": (ht.SparseNegativeBinomialRegressionCV(dispersion=0.5), NegativeBinomial(2.0)),
    "huber": (ht.SparseHuberRegressionCV(delta=1.0), Huber(1.0)),
}
"""Models that choose the number of features by folds over 1 to 30, and the losses whose targets they are fitted to."""
MOST_OF_FOLDS = {"squared": 6, "logistic": 7, "squared_hinge": 7, "huber": 7}
MOST_WITH_LOG_LINK = 9
"""Readings of these at most: those of the design, and more where folds search near their largest fits, too."""
MOST_OF_A_PATH = 5
"""Readings of a path by the extended BIC at most, where the correlation of neighbouring columns is at most .5: check 3
of the design."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the task."""
    parser.add_argument("--seeds", type=int, default=20, help="tables of each kind, with seeds 0, 1, ...")
    parser.add_argument(
        "--fold-seeds", type=int, help="tables of each loss with folds; default: a quarter of the seeds"
    )


def table(seed: int, correlation: float, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table whose neighbouring columns correlate, and targets of twelve of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    for j in range(1, D):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    support = rng.choice(D, K, replace=False)
    u = 0.5 * X[:, support] @ (rng.choice([-1.0, 1.0], K) * (0.3 + rng.random(K)))
    return X, u + rng.standard_normal(N) if loss == "squared" else (u + rng.logistic(size=N) > 0).astype(float)


def fits(seed: int, correlation: float, loss: str) -> dict[str, Any]:
    """Return what a fit over blocks and one in memory have found."""
    X, y = table(seed, correlation, loss)
    blocked = MODELS[loss](n_nonzero_coefs=K).fit(from_arrays(X, y, rows=1024))
    plain = MODELS[loss](n_nonzero_coefs=K).fit(X, y)
    objective = blocked._training[0].objective
    fitted = objective.readings
    blocked.certificate()
    return {
        "readings": int(fitted),
        "certificate": int(objective.readings - fitted),
        "same_support": bool(np.array_equal(blocked.support_, plain.support_)),
        "excess": float(blocked.objective_ / plain.objective_ - 1.0),
    }


def table_of(seed: int, loss: Loss, correlation: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of `table`, targets that a loss draws for twelve of them, and an offset as long."""
    X, _ = table(seed, correlation, "squared")
    rng = np.random.default_rng((seed, 1))
    u = 0.3 * X[:, rng.choice(D, K, replace=False)] @ rng.choice([-1.0, 1.0], K)
    return X, loss.example_target(u, rng), 0.5 * rng.standard_normal(N)


def choices_of_folds(name: str, seeds: int, with_offset: bool) -> dict[str, Any]:
    """Return how often folds of a loss read a table, and whether they choose what folds in memory choose."""
    readings, sizes, gaps = [], [], []
    model, loss = FOLDS[name]
    model = clone(model).set_params(n_nonzero_coefs=range(1, 31))
    for seed in range(seeds):
        X, y, offset = table_of(seed, loss)
        fold = np.random.default_rng((seed, 2)).integers(5, size=N)
        offset = offset if with_offset else None
        found = clone(model).fit(from_arrays(X, y, None, offset, fold=fold, rows=1024))
        plain = clone(model).set_params(cv=PredefinedSplit(fold)).fit(X, y, offset=offset)
        readings.append(int(found._training[0].objective.readings))
        sizes.append((int(found.best_n_nonzero_coefs_), int(plain.best_n_nonzero_coefs_)))
        gaps.append(float(found.mean_scores_.max() / plain.mean_scores_.max() - 1.0))
    return {
        "task": "readings",
        "choice": "cv",
        "loss": name,
        "offset": with_offset,
        "correlation": 0.5,
        "seeds": seeds,
        "median": float(np.median(readings)),
        "most": max(readings),
        "same_k": sum(ours == theirs for ours, theirs in sizes),
        "chosen": [ours for ours, _ in sizes],
        "largest_gap_of_scores": max(map(abs, gaps)),
    }


def path_of(seed: int, correlation: float, loss: str) -> dict[str, Any]:
    """Return what choices by the extended BIC over blocks and in memory have found, and the criteria of their paths."""
    X, y = table(seed, correlation, loss)
    blocked = MODELS[loss]().fit(from_arrays(X, y, rows=1024))
    plain = MODELS[loss]().fit(X, y)
    objective = blocked._training[0].objective
    fitted = objective.readings
    optimal = bool(blocked.certificate().swap_optimal)
    compared = min(blocked.criterion_path_.size, plain.criterion_path_.size)
    own, others = blocked.criterion_path_[:compared], plain.criterion_path_[:compared]
    gaps = (own - others) / np.abs(others)
    return {
        "readings": int(fitted),
        "certificate": int(objective.readings - fitted),
        "same_number": blocked.best_n_nonzero_coefs_ == plain.best_n_nonzero_coefs_,
        "same_support": bool(np.array_equal(blocked.support_, plain.support_)),
        "swap_optimal": optimal,
        "gaps": gaps,
    }


def paths(loss: str, correlation: float, seeds: int) -> dict[str, Any]:
    """Return how often paths read a table, and how many of their fits have the criterion of those in memory."""
    found = [path_of(seed, correlation, loss) for seed in range(seeds)]
    readings, gaps = [one["readings"] for one in found], np.concatenate([one["gaps"] for one in found])
    return {
        "task": "readings",
        "choice": "path",
        "loss": loss,
        "correlation": correlation,
        "seeds": seeds,
        "median": float(np.median(readings)),
        "most": max(readings),
        "certificate": max(one["certificate"] for one in found),
        **{name: sum(one[name] for one in found) for name in ("same_number", "same_support", "swap_optimal")},
        "fits": int(gaps.size),
        "same": int(np.sum(np.abs(gaps) <= SAME)),
        "better": int(np.sum(gaps < -SAME)),
        "largest_gap": float(gaps.max()),
        "least_gap": float(gaps.min()),
    }


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each loss and correlation; end the benchmark, after the last, if fits read more than they may."""
    few, wrong = max(1, options.seeds // 4), list[str]()
    for name, (_, loss) in FOLDS.items():
        for with_offset in (False, True):
            most = MOST_OF_FOLDS.get(name, MOST_WITH_LOG_LINK) + 2 * (with_offset and not loss.quadratic)
            row = choices_of_folds(name, options.fold_seeds or few, with_offset)
            yield row
            if row["most"] > most:
                wrong.append(f"readings of folds, {name}: {row['most']}, where {most} are allowed")
    for loss in MODELS:
        for correlation in CORRELATIONS:
            row = paths(loss, correlation, options.seeds)
            yield row
            if correlation <= MODERATE and row["most"] > MOST_OF_A_PATH:
                wrong.append(f"readings of a path, {loss}: {row['most']}, where {MOST_OF_A_PATH} are allowed")
    for loss in MODELS:
        for correlation in CORRELATIONS:
            found = [fits(seed, correlation, loss) for seed in range(options.seeds)]
            readings = [one["readings"] for one in found]
            yield {
                "task": "readings",
                "loss": loss,
                "correlation": correlation,
                "seeds": options.seeds,
                "median": float(np.median(readings)),
                "most": max(readings),
                "certificate": max(one["certificate"] for one in found),
                "same_support": sum(one["same_support"] for one in found),
                "largest_excess": max(one["excess"] for one in found),
                "least_excess": min(one["excess"] for one in found),
            }
            if np.median(readings) > MEDIAN or max(readings) > MOST:
                wrong.append(f"readings: {readings}, where {MEDIAN} in the median and {MOST} at most are allowed")
    if wrong:
        raise SystemExit("\n".join(wrong))
