"""What a certificate claims, against every exchange and every choice, on tables whose columns depend on each other."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.losses.logistic import Logistic
from levels import at_most, reaches

pytestmark = pytest.mark.filterwarnings("ignore")  # constant columns, runs that are cut short

SAME = 1e-13  # of a column's length: what is left of a combination that is exact in real numbers


def duplicates(rng, n, d):
    X = rng.standard_normal((n, d))
    return X[:, rng.integers(0, max(2, d // 2), d)]


def sums(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, -1] = X[:, 0] + X[:, 1]
    X[:, -2] = 2.0 * X[:, 0] - X[:, 2]
    return X[:, rng.permutation(d)]


def whole_numbers(rng, n, d):
    return rng.integers(-1, 2, (n, d)).astype(float)


def one_hot(rng, n, d):
    labels = rng.integers(0, 3, (n, d // 3))
    return np.concatenate([labels == level for level in range(3)], axis=1).astype(float)


def sparse_rows(rng, n, d):
    X = np.zeros((n, d))
    for j in range(d):
        X[rng.integers(0, n, 2), j] = rng.choice([1.0, rng.random() + 1e-3], 2)
    return X


def constant_and_equal_rows(rng, n, d):
    X = rng.standard_normal((n, d))[rng.integers(0, 4, n)]
    X[:, rng.integers(0, d)] = 3.7
    return X


def more_columns_than_rows(rng, n, d):
    return rng.standard_normal((int(rng.integers(2, 5)), d))


def nearly_equal(rng, n, d):
    X = rng.standard_normal((n, d))
    for gap in 10.0 ** rng.choice([-3, -5, -7, -9, -9, -11], 3):
        i, j = rng.permutation(d)[:2]
        X[:, j] = X[:, i] + gap * rng.standard_normal(n)
    return X


def nearly_a_sum(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, 1] = X[:, 0]
    X[:, 2] = X[:, 0] + X[:, 3] + 10.0 ** rng.uniform(-6, -4) * rng.standard_normal(n)
    return X


def powers(rng, n, d):
    return np.sort(rng.random(n))[:, None] ** np.arange(1, d + 1)


KINDS = {
    make.__name__: make
    for make in (
        duplicates,
        sums,
        whole_numbers,
        one_hot,
        sparse_rows,
        constant_and_equal_rows,
        more_columns_than_rows,
        nearly_equal,
        nearly_a_sum,
        powers,
    )
}


def least_squares(A, b):
    """The minimum of |A x - b|^2 / 2 in extended precision, by Gram-Schmidt with pivoting, each step done twice."""
    A, b = A.copy(), b.copy()
    length = np.sqrt(np.sum(A * A, axis=0))
    A = A[:, length > 0] / length[length > 0]
    found = np.zeros((A.shape[0], 0), dtype=A.dtype)
    while A.shape[1]:
        length = np.sqrt(np.sum(A * A, axis=0))
        largest = int(np.argmax(length))
        if length[largest] < SAME:
            break
        q = A[:, largest] / length[largest]
        for _ in range(2):
            q = q - found @ (found.T @ q)
        q /= np.sqrt(q @ q)
        found, A = np.column_stack([found, q]), np.delete(A, largest, axis=1)
        for _ in range(2):
            A = A - np.outer(q, q @ A)
            b = b - q * (q @ b)
    return float(b @ b) / 2


def logistic(A, y, weights, ridge, offset):
    """The minimum of the mean log-loss with a ridge, by damped Newton steps."""
    x, loss = np.zeros(A.shape[1]), Logistic()

    def value(x):
        return float(weights @ loss.value(y, A @ x + offset) + 0.5 * ridge @ (x * x))

    for _ in range(100):
        u = A @ x + offset
        slope = A.T @ (weights * loss.gradient(y, u)) + ridge * x
        hessian = (A.T * (weights * loss.curvature(y, u))) @ A + np.diag(ridge)
        step = np.linalg.lstsq(hessian, -slope, rcond=1e-14)[0]
        t = next((t for t in 0.5 ** np.arange(40) if value(x + t * step) < value(x)), 0.0)
        if t == 0.0:
            break
        x = x + t * step
    return value(x)


class Case:
    """A random table of a kind, a model with random settings, and the minimum on any choice of its columns."""

    def __init__(self, kind, loss, dtype, seed):
        rng = np.random.default_rng(seed)
        self.X = KINDS[kind](rng, int(rng.integers(4, 13)), int(rng.integers(4, 9))).astype(dtype)
        n, d = self.X.shape
        y = self.X[:, rng.integers(0, d, 2)] @ rng.standard_normal(2) + rng.choice(
            [0.0, 0.1, 1.0]
        ) * rng.standard_normal(n)
        self.loss, self.y = loss, (y if loss == "squared" else y > np.median(y)).astype(dtype)
        self.settings = {
            "alpha": float(rng.choice([0.0, 0.0, 1e-8, 0.1] if loss == "squared" else [1e-3, 0.1])),
            "fit_intercept": bool(rng.random() < 0.7),
            "standardize": bool(rng.random() < 0.7),
            "solver": str(rng.choice(["auto", "pursuit", "iht", "accelerated"])),
            "max_iter": int(rng.choice([1000, 1000, 1000, 1, 3])),
        }
        self.weights = None if rng.random() < 0.6 else np.where(rng.random(n) < 0.3, 0.0, rng.integers(1, 4, n))
        self.kept = np.ones(n, dtype=bool) if self.weights is None else self.weights > 0
        self.labels = list(range(d))
        if rng.random() < 0.25:
            self.labels = rng.integers(0, d // 2, d).tolist()
            self.settings |= {
                "groups": self.labels,
                "n_nonzero_groups": int(rng.integers(1, len(set(self.labels)) + 1)),
            }
        else:
            self.settings |= {
                "n_nonzero_coefs": int(rng.integers(1, min(d, 4) + 1)),
                "positive": bool(rng.random() < 0.1),
            }
            varies = np.flatnonzero(np.ptp(self.X[self.kept], axis=0) > 0.0) if self.kept.any() else []
            if rng.random() < 0.2 and loss == "squared" and len(varies):
                self.settings["always_include"] = [int(varies[-1])]
        self._minima = {}

    def fit(self):
        """The fitted model, or None where there is nothing to learn from."""
        if not self.kept.any() or (self.loss == "logistic" and np.unique(self.y[self.kept]).size < 2):
            return None
        model = ht.SparseLinearRegression if self.loss == "squared" else ht.SparseLogisticRegression
        return model(**self.settings).fit(self.X, self.y, sample_weight=self.weights)

    def prepare(self, model):
        """Standardise in extended precision, as the model does."""
        omega = np.ones(len(self.y)) if self.weights is None else self.weights
        self.omega = omega.astype(np.longdouble) / omega.sum()
        X = self.X.astype(np.longdouble)
        mean = self.omega @ X if self.settings["fit_intercept"] else 0.0 * X[0]
        size = np.sqrt(self.omega @ (X - mean) ** 2)
        usable = model.scale_ > 0
        self.usable = set(np.flatnonzero(usable).tolist())
        self.Z = (X - mean) / np.where(usable & self.settings["standardize"], np.where(size > 0, size, 1), 1)
        self.always = set(self.settings.get("always_include", ()))
        self.ridge = np.array([0.0 if j in self.always else self.settings["alpha"] for j in range(X.shape[1])])

    def minimum(self, units):
        """The smallest value of the objective on some units and the columns that are always included."""
        columns = tuple(
            sorted(({j for j, label in enumerate(self.labels) if label in units} | self.always) & self.usable)
        )
        if columns not in self._minima:
            ones = np.ones((len(self.y), int(self.settings["fit_intercept"])))
            A, ridge = np.concatenate([self.Z[:, columns], ones], axis=1), self.ridge[list(columns)]
            if self.loss == "squared":
                rows = np.zeros((ridge.size, A.shape[1]), dtype=A.dtype)
                np.fill_diagonal(rows, np.sqrt(ridge))
                A = np.concatenate([np.sqrt(self.omega)[:, None] * A, rows])
                found = least_squares(A, np.concatenate([np.sqrt(self.omega) * self.y, 0 * ridge]))
            else:
                ridge = np.concatenate([ridge, 0 * ones[0]])
                found = logistic(A.astype(float), self.y, self.omega.astype(float), ridge, 0.0)
            self._minima[columns] = found
        return self._minima[columns]


@at_most(1)
@pytest.mark.parametrize(("loss", "dtype"), [("squared", "f8"), ("squared", "f4"), ("logistic", "f8")])
@pytest.mark.parametrize("kind", KINDS)
def test_certificates_agree_with_brute_force(kind, loss, dtype):
    said = Counter()
    share = 1 if reaches("pairs") else 5  # a fifth of the tables at the level fast
    for seed in range((30 if loss == "squared" else 9) // share):
        case = Case(kind, loss, dtype, seed)
        model = case.fit()
        if model is None:
            continue
        certificate = model.certificate()
        case.prepare(model)
        chosen = set(model.groups_ if "groups" in case.settings else model.support_.tolist()) - case.always
        others = {case.labels[j] for j in case.usable} - chosen - case.always
        here, null = certificate.value, case.minimum(set())
        slack = 1e-6 * here + 1e-10 * null + 1e-24 * float(np.mean(case.y**2))
        rounding = 0.0
        if dtype == "f4":  # what is reported was computed in it: a mean of squared residuals, see `Composite.rounding`
            rounding = 16.0 * np.finfo(dtype).eps * np.sqrt(here * 2.0 * np.mean(case.y.astype(float) ** 2))
            slack += certificate.swap.tolerance + rounding
        if case.settings.get("positive"):
            assert not certificate.exact
            continue
        if certificate.exact and certificate.swap_optimal:
            said["proved"] += 1
            for i in chosen:
                for j in others:
                    assert case.minimum(chosen - {i} | {j}) >= here - slack, (seed, i, j, str(certificate))
        if not certificate.swap_optimal:
            said["better"] += 1
            removed, added = certificate.best_swap
            names = sorted(set(case.labels), key=case.labels.index)  # groups are numbered as they appear
            swapped = chosen - {names[removed]} | {names[added]}
            assert case.minimum(swapped) <= here - certificate.swap.decrease + slack, (seed, str(certificate))
        if certificate.fitted:
            said["fitted"] += 1
            assert case.minimum(chosen) >= here - slack, (seed, str(certificate))
        budget = case.settings.get("n_nonzero_groups", case.settings.get("n_nonzero_coefs"))
        sets = combinations(sorted(chosen | others), min(budget, len(chosen | others)))
        best = min((case.minimum(set(some)) for some in sets), default=null)
        if certificate.lower_bound is not None:
            said["bounded"] += 1
            assert certificate.lower_bound <= best + 1e-9 * best + 1e-14 * null + rounding, (seed, str(certificate))
        if loss == "squared" and model.converged_ and here <= best + 1e-9 * best + 1e-13 * null + rounding:
            said["best"] += 1
            rounded = (
                dtype == "f4" and certificate.stationarity.basic_feasibility < 1e-4
            )  # a Gram matrix of single precision
            assert not certificate.fitted or rounded or certificate.is_stationary(), (seed, str(certificate))
    assert loss == "logistic" or min(said["fitted"], said["best"], said["proved"]) >= max(6 // share - 1, 1)
    assert said["bounded"] > 0
