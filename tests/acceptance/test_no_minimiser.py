"""Check 9 on random tables: a model says that it has no minimiser exactly where a linear program finds a direction.

Along such a direction no loss rises and some fall for ever. The programs are those of each definition, on all rows.
"""

import numpy as np
import pytest
from scipy.optimize import linprog

from acceptance.fits import estimator
from levels import at, at_most


def exists(rows, equal=None):
    """Whether a v has rows @ v >= 0, not all of them 0, and equal @ v = 0."""
    rows = np.asarray(rows)
    found = linprog(
        -rows.sum(axis=0),
        A_ub=np.concatenate([-rows, rows]),
        b_ub=np.concatenate([np.zeros(len(rows)), np.ones(len(rows))]),
        A_eq=equal,
        b_eq=None if equal is None else np.zeros(len(equal)),
        bounds=(None, None),
    )
    return found.status == 0 and -found.fun > 1e-7


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def of_two_classes(X, y):
    return exists(with_ones(X) * np.where(y > 0, 1.0, -1.0)[:, None])


def of_classes(X, y):
    """The predictor of the class of each row, less that of each other class."""
    Z, units = with_ones(X), np.eye(3)
    return exists(
        [np.kron(units[own] - units[c], z) for z, own in zip(Z, y, strict=True) for c in range(3) if c != own]
    )


def of_ordered_classes(X, y):
    """The threshold above each row less its predictor, and this less the threshold below."""
    above = [np.append(-x, np.eye(2)[own]) for x, own in zip(X, y, strict=True) if own < 2]
    below = [np.append(x, -np.eye(2)[own - 1]) for x, own in zip(X, y, strict=True) if own > 0]
    return exists(above + below)


def of_counts(X, y):
    """Predictors fall where counts are 0, and stay elsewhere."""
    Z = with_ones(X)
    return bool(np.any(y == 0)) and exists(-Z[y == 0], Z[y > 0])


def of_times(X, y):
    """The predictor of each event less those of its risk set."""
    pairs = [(i, j) for i in np.flatnonzero(y[:, 1]) for j in np.flatnonzero(y[:, 0] >= y[i, 0]) if j != i]
    return bool(pairs) and exists([X[i] - X[j] for i, j in pairs])


PROGRAMS = {
    "logistic": of_two_classes,
    "multinomial": of_classes,
    "ordinal": of_ordered_classes,
    "poisson": of_counts,
    "negative_binomial": of_counts,
    "tweedie": of_counts,
    "cox_breslow": of_times,
    "cox_efron": of_times,
}


def table(name, seed):
    """A few rows, so that columns often order the targets; None where a class or all events are missing."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(12, 40)), int(rng.integers(1, 4))
    X = np.round(rng.standard_normal((n, 5)), 1)
    X[:, 3] = X[:, 3] > 0.8
    u = X[:, 1] + 0.4 * rng.standard_normal(n)
    if name.startswith("cox"):
        event = rng.uniform(size=n) < 0.2
        return X, np.column_stack([np.ceil(4 * rng.exponential(np.exp(-4 * u))), event]), k, event.any()
    if PROGRAMS[name] is of_counts:
        y = rng.poisson(np.exp(u - 1.5)).astype(float)
        return X, y, k, y.any()
    cuts = [0.0] if name == "logistic" else [-0.5, 0.5]
    y = np.digitize(u, cuts)
    return X, y, k, np.unique(y).size == len(cuts) + 1


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_check_09_a_linear_program_agrees_where_there_is_no_minimiser(name):
    verdicts = []
    for seed in [*range(25), *at("pairs", range(25, 100))]:
        X, y, k, usable = table(name, seed)
        if usable:
            model = estimator(name, k).fit(X, y)
            said = not model.converged_ and "no finite point" in model.stop_reason_
            assert said == PROGRAMS[name](X[:, model.support_], y), seed
            assert said or model.converged_, seed
            verdicts.append(said)
    assert 0 < sum(verdicts) < len(verdicts), "the tables of this test are of both kinds"
