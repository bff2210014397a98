"""What a study says while it runs: the coverage of its error bands, and the level and power of its tests of drift.

    python benchmarks/study.py                   # all tables: a quarter of an hour
    python benchmarks/study.py --only window --choose
    python benchmarks/study.py --only drift --studies 400
    python benchmarks/study.py --only looks
    python benchmarks/study.py --only relation

*Window*: over how many of the latest examples the honest error is a mean. For each window, a share of the examples but
at least so many, how often the 95 % band covers the error that the present and the final model have on 4,000 new rows,
the root mean square of log(estimate / error of the present model), the width of the band relative to it, and how often
the true attributes are chosen where the choice is said to have settled and where not.

*Drift*: in how many studies of each kind some test reports drift at the level 5 %, and which: without drift, with
attributes that are missing for those with large values, with attributes that shift by half a standard deviation, and
with coefficients that change their sign, for the second half of the examples. The studies *unequal* have errors of
Student's t distribution with 4 degrees of freedom, whose deviation grows with an attribute that matters.

*Looks*: in how many studies of 600 examples without drift some test reports drift at the last of ten looks, equally
spaced, and at one or more of them; and the same for the sentence that the predictions are better than those without
attributes, and for a chosen column that looks needed but has no effect.

*Relation*: the tests of whether two samples have one linear model, alone, on 50 pairs of samples for each study: the
share that Chow's F test and the Wald test with the covariances HC3 reject at the level 5 % and at 5 % / 30, as Holm's
method may need, where nothing changed and where one coefficient did.

Seeds are (20261128, table, study); ``--choose`` takes those that the constants in the code were chosen on, (20261127,
table, study).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from run import limit_threads
from scipy.special import expit
from scipy.stats import f

from hardthresh.datasets import make_clinic
from hardthresh.limited import AdaptiveHybrid, Algorithm, CostModel, LogisticHybrid
from hardthresh.study import drift, progress
from hardthresh.study.intervals import mean_interval
from hardthresh.study.models import FEWEST_OTHER, least_squares
from hardthresh.study.records import Learned
from hardthresh.study.simulation import simulate
from hardthresh.study.two_samples import wald

CHOOSING, REPORTING = 20261127, 20261128
D, NEEDED, OBSERVED = 30, 3, 8
WINDOWS = [(share, least) for share in (0.1, 0.2, 0.3, 0.5) for least in (32, 64, 128)]
KINDS = ["numbers", "noise", "classes", "clinic"]
SIZES = (300, 1200)
NEW = 4000


def draw(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, targets and the columns that matter, of correlated normal attributes or of the clinic."""
    if kind == "clinic":
        clinic = make_clinic(n, seed=int(rng.integers(2**31)))
        return clinic.X, clinic.y, np.flatnonzero(clinic.coef)
    X = np.sqrt(0.7) * rng.standard_normal((n, D)) + np.sqrt(0.3) * rng.standard_normal((n, 1))
    signal = X[:, 0] - X[:, 10] + X[:, 20]
    if kind == "classes":
        return X, (rng.random(n) < expit(1.5 * signal)).astype(float), np.array([0, 10, 20])
    if kind == "unequal":
        errors = rng.standard_t(4, n) / np.sqrt(2) * np.exp(X[:, 0] - 1)  # of variance 1
        return X, signal + np.std(signal) * errors, np.array([0, 10, 20])
    if kind == "noise":
        return X, rng.standard_normal(n), np.empty(0, dtype=int)
    return X, signal + np.std(signal) * rng.standard_normal(n), np.array([0, 10, 20])


def setting(kind: str) -> tuple[Algorithm[Any], CostModel]:
    """Return the algorithm and the prices of a kind of study."""
    if kind == "clinic":
        clinic = make_clinic(1)
        return AdaptiveHybrid(7), CostModel.of(51, costs=clinic.prices, panels=clinic.panels, budget=100.0)
    algorithm = LogisticHybrid if kind == "classes" else AdaptiveHybrid
    return algorithm(NEEDED), CostModel.of(D, OBSERVED)


def loss(kind: str, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the first measure of `progress` for each row."""
    if kind != "classes":
        return (y - predicted) ** 2
    p = np.clip(predicted, 1e-15, 1 - 1e-15)
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def window(seed: int, studies: int) -> None:
    """Print a row for each kind of study, number of examples and window."""
    print(
        "| study | n | window | covers present | covers final | error of log | width | settled: right | else: right |"
    )
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    pooled: dict[tuple[float, int], list[list[float]]] = {each: [] for each in WINDOWS}
    for number, (kind, n) in enumerate((kind, n) for kind in KINDS for n in SIZES):
        rows: dict[tuple[float, int], list[list[float]]] = {each: [] for each in WINDOWS}
        right: dict[bool, list[bool]] = {True: [], False: []}
        algorithm, cost_model = setting(kind)
        for study in range(studies):
            X, y, truth = draw(kind, n + NEW, np.random.default_rng((seed, number, study)))
            learned, learner = simulate(algorithm, cost_model, X[:n], y[:n], length=n)
            present, final = (
                float(np.mean(loss(kind, y[n:], algorithm.response(X[n:] @ state.w + state.intercept))))
                for state in (learner.state, learner.final_state())
            )
            right[progress(learned).settled].append(np.array_equal(learned.chosen[-1], truth))
            losses = loss(kind, learned.target, learned.prediction)
            for share, least in WINDOWS:
                band = mean_interval(losses[-max(least, round(share * len(losses))) :])
                covers = [band.low <= error <= band.high for error in (present, final)]
                rows[share, least].append([*covers, np.log(band.value / present) ** 2, band.high / band.low - 1])
        shares = [f"{sum(found)} of {len(found)}" for found in (right[True], right[False])]
        for each, found in rows.items():
            pooled[each] += found
            print(
                f"| {kind} | {n} | {each[0]}, {each[1]} | {in_words(found)} | {shares[0]} | {shares[1]} |", flush=True
            )
    for each, found in pooled.items():
        print(f"| all | | {each[0]}, {each[1]} | {in_words(found)} | | |")


CHANGES = ["none", "missing", "shift", "relation"]


def drifting(kind: str, change: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets of a kind of study, of which the second half has changed."""
    X, y, truth = draw(kind, n, rng)
    late = np.arange(n) >= n // 2
    one = truth[0] if truth.size else 0
    if change == "missing":
        large = np.mean(X, axis=0) + np.std(X, axis=0) < X
        X = np.where(large & (rng.random(X.shape) < 0.05), np.nan, X)
    elif change == "shift":
        X[late, one] += 0.5 * np.std(X[:, one])
    elif change == "relation":
        X[late, one] = 2 * np.mean(X[:, one]) - X[late, one]
    return X, y


def tested(seed: int, studies: int) -> None:
    """Print a row for each kind of study, number of examples and change."""
    print("| study | n | change | some test | attribute | target | relation | errors | relation tested |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for number, (kind, n, change) in enumerate(
        (kind, n, change) for kind in [*KINDS, "unequal"] for n in SIZES for change in CHANGES
    ):
        algorithm, cost_model = setting(kind)
        counts = dict.fromkeys(["some", "attribute", "target", "relation", "errors", "tested"], 0)
        for study in range(studies):
            X, y = drifting(kind, change, n, np.random.default_rng((seed, 100 + number, study)))
            learned, _ = simulate(algorithm, cost_model, X, y, length=n)
            result = drift(learned)
            found = {test.kind for test in result.found}
            for name in found:
                counts[name] += 1
            counts["some"] += bool(found)
            counts["tested"] += any(test.kind == "relation" for test in result.tests)
        shares = " | ".join(f"{count / studies:.2f}" for count in counts.values())
        print(f"| {kind} | {n} | {change} | {shares} |", flush=True)


def looked(seed: int, studies: int) -> None:
    """Print a row for each kind of study that is looked at ten times."""
    n, looks = 600, 10
    said = ("drift", "better", "needless")
    print(f"| study | studies | {' | '.join(f'{what}: {when} look' for what in said for when in ('last', 'some'))} |")
    print(f"|---|{'--:|' * (1 + 2 * len(said))}")
    for number, kind in enumerate(KINDS):
        algorithm, cost_model = setting(kind)
        found = np.empty((studies, looks, len(said)), dtype=bool)
        for study in range(studies):
            X, y, truth = draw(kind, n, np.random.default_rng((seed, 200 + number, study)))
            learned, _ = simulate(algorithm, cost_model, X, y, length=n)
            for look, batches in enumerate(np.linspace(0, len(learned.chosen), looks + 1).round().astype(int)[1:]):
                then = first_batches(learned, int(batches))
                now = progress(then)
                needless = any(one.looks_needed and int(one.name) not in truth for one in now.chosen)
                found[study, look] = bool(drift(then).found), now.errors[0].gain.low > 0, needless
        counts = np.stack([found[:, -1], found.any(axis=1)], axis=-1).sum(axis=0)  # what was said by (last, some)
        print(f"| {kind} | {studies} | {' | '.join(map(str, counts.ravel()))} |", flush=True)


SAMPLES = ["equal", "unequal", "skewed", "rare"]


def sample(kind: str, n: int, d: int, change: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows and targets, of which the coefficient of the first column is `change` instead of 0."""
    x = np.sqrt(0.7) * rng.standard_normal((n, d)) + np.sqrt(0.3) * rng.standard_normal((n, 1))
    errors = rng.standard_normal(n)
    if kind == "skewed":
        x = np.exp(x)
        errors *= x[:, 0]
    elif kind == "unequal":
        errors = rng.standard_t(4, n) / np.sqrt(2) * np.exp(x[:, 0])
    elif kind == "rare":
        x[:, 0] = np.arange(n) < FEWEST_OTHER
    return x, change * x[:, 0] + errors


def chow(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> float:
    """Return the p-value of Chow's test, which assumes normal errors of equal variance."""
    together, *apart = (
        np.sum((y - np.column_stack([np.ones(len(y)), x]) @ least_squares(x, y).coef) ** 2)
        for x, y in ((np.vstack([x1, x2]), np.append(y1, y2)), (x1, y1), (x2, y2))
    )
    size, within = x1.shape[1] + 1, sum(apart)
    freedom = len(y1) + len(y2) - 2 * size
    return float(f.sf((together - within) / size / (within / freedom), size, freedom))


def related(seed: int, studies: int) -> None:
    """Print a row for each number of coefficients, size of the samples and kind of columns and errors."""
    print("| coefficients | samples | kind | change | Chow, 5 % | Wald, 5 % | Chow, 0.17 % | Wald, 0.17 % |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    cases = [
        (d, n, kind, change) for d, n in ((1, 20), (3, 40), (3, 200), (7, 80)) for kind in SAMPLES for change in (0, 6)
    ]
    for number, (d, n, kind, change) in enumerate(cases):
        rng = np.random.default_rng((seed, 300 + number))
        p = np.empty((50 * studies, 2))
        for row in p:
            samples = *sample(kind, n, d, 0.0, rng), *sample(kind, n, d, change / np.sqrt(n), rng)
            row[:] = chow(*samples), wald(*samples)
        shares = [np.mean(p <= level, axis=0) for level in (0.05, 0.05 / 30)]
        found = " | ".join(f"{share:.4f}" for share in np.ravel(shares))
        print(f"| {d + 1} | {n} | {kind} | {change / np.sqrt(n):.2f} | {found} |", flush=True)


def first_batches(learned: Learned, batches: int) -> Learned:
    """Return what a study had learned after some batches."""
    rows = learned.batch < batches
    names = ("questions", "values", "target", "prediction", "batch", "money")
    return replace(learned, chosen=learned.chosen[:batches], **{name: getattr(learned, name)[rows] for name in names})


def in_words(found: list[list[float]]) -> str:
    """Return the means of the columns of a window."""
    present, final, square, width = np.mean(found, axis=0)
    return f"{present:.2f} | {final:.2f} | {np.sqrt(square):.3f} | {width:.2f}"


TABLES = {"window": window, "drift": tested, "looks": looked, "relation": related}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(TABLES), help="one of the tables")
    parser.add_argument("--studies", type=int, default=40, help="of each kind")
    parser.add_argument("--choose", action="store_true", help="the seeds that constants are chosen on")
    settings = parser.parse_args()
    seed = CHOOSING if settings.choose else REPORTING
    for name, table in TABLES.items():
        if settings.only in (None, name):
            table(seed, settings.studies)


if __name__ == "__main__":
    limit_threads()
    main()
