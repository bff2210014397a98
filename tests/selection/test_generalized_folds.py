"""Folds of losses that are not squared: each fit against its conditions of optimality, and each fold on its own."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from boxes import bounds_of, draw_bounds
from hardthresh.constraints import Sparsity
from hardthresh.core.compiled import kernel
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import Gamma, Logistic, Loss, NegativeBinomial, Poisson
from hardthresh.objectives import LinearModel
from hardthresh.selection import generalized_fold_paths, least_squares_fold_paths
from hardthresh.solvers import minimize
from hardthresh.solvers.working_set import refits
from hardthresh.solvers.working_set.support_grid import different_refits
from hardthresh.solvers.working_set.training_fold import TrainingFold
from levels import in_turn, only_at, slow_beyond
from numpy_code import use_numpy

BUDGETS = (0, 1, 2, 4, 7)
RIDGES = (0.3, 0.02, 0.1)
LOSSES = {"logistic": Logistic(), "poisson": Poisson(), "gamma": Gamma()}
TRAINING = [train for train, _ in KFold(3, shuffle=True, random_state=0).split(np.zeros((60, 1)))]


@dataclass(frozen=True)
class Case:
    """A problem with a loss; `X` has the column of ones, if there is an intercept."""

    X: np.ndarray
    y: np.ndarray
    loss: Loss
    weights: np.ndarray | None = None
    offset: np.ndarray | None = None
    free: tuple[int, ...] = ()
    bounds: np.ndarray | None = None
    intercept: bool = True
    standardize: bool = True
    storage: object = np.asarray

    @property
    def always(self):
        """The columns that are always included, the intercept besides."""
        return (*self.free, self.X.shape[1] - 1) if self.intercept else self.free

    def rows(self, rows):
        """Return the problem of some rows, some of them perhaps more than once."""
        per_row = {name: getattr(self, name) for name in ("X", "y", "weights", "offset")}
        return replace(self, **{name: None if x is None else x[rows] for name, x in per_row.items()})

    def paths(self, training=TRAINING, budgets=BUDGETS, ridges=RIDGES):
        """Return the fits of every fold."""
        vector = self.storage if self.storage is in_torch else np.asarray
        y, weights, offset = (None if x is None else vector(x) for x in (self.y, self.weights, self.offset))
        objective = LinearModel(self.storage(self.X), y, self.loss, sample_weight=weights, offset=offset)
        selection = CoordinateBudget(self.X.shape[1], max(budgets), self.always, self.bounds)
        settings = {"intercept": self.intercept, "standardize": self.standardize}
        return generalized_fold_paths(objective, selection, training, budgets, ridges, **settings)

    def predictions(self, path):
        """Return what the fits predict for all rows, shape (n_budgets, n_ridges, n), without the offset."""
        return path.coefs @ self.X[:, path.columns].T + path.intercepts[..., None]

    def gradient(self, columns, prediction, coef, ridge):
        """Return the gradient of f in some columns, by its definition."""
        weights = np.ones(self.y.size) if self.weights is None else self.weights
        weights = weights / weights.sum()
        u = prediction if self.offset is None else prediction + self.offset
        X = self.X[:, columns].astype(float)
        mean = weights @ X if self.intercept else 0.0
        square = weights @ (X - mean) ** 2 if self.standardize else np.ones(len(columns))
        square = np.where(np.isin(columns, self.always), 0.0, square)
        return X.T @ (weights * self.loss.gradient(self.y, u)) + ridge * square * coef


def single(X):
    return X.astype(np.float32)


def in_torch(X):
    return pytest.importorskip("torch", reason="torch is not installed").asarray(X)


def make(loss="logistic", n=60, d=30, seed=0, **settings):
    """Correlated columns of unequal scales and levels, six of which make the target."""
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    used = rng.permutation(d)[:6]
    u = 0.6 * X[:, used] @ rng.choice([-1.0, 1.0], used.size)
    if settings.pop("shifted", False):
        settings["offset"] = 0.5 * rng.standard_normal(n)
        u = u + settings["offset"]
    y = LOSSES[loss].example_target(u, rng)
    X = X * rng.uniform(0.3, 3.0, d) + (rng.uniform(-2, 2, d) if settings.get("intercept", True) else 0.0)
    if settings.get("intercept", True):
        X = np.column_stack([X, np.ones(n)])
    if settings.pop("weighted", False):
        settings["weights"] = rng.uniform(0.2, 3.0, n)
    if settings.pop("signed", False):
        signs = np.append(rng.integers(-1, 2, d), 0) if settings.get("intercept", True) else np.ones(d)
        settings["bounds"] = bounds_of(signs)
    if settings.pop("bounded", False):
        settings["bounds"] = np.column_stack([draw_bounds(rng, d, 0.4), [-np.inf, np.inf]])
    return Case(X, y, LOSSES[loss], **settings)


KINDS = {
    "plain": {},
    "weighted": {"weighted": True},
    "shifted": {"shifted": True, "weighted": True},
    "ridge of the columns as they are": {"standardize": False},
    "no intercept": {"intercept": False},
    "signed": {"signed": True},
    "non-negative": {"signed": True, "intercept": False},
    "bounded": {"bounded": True, "weighted": True},
    "included": {"free": (11, 3)},
    "everything": {"free": (3, 11), "weighted": True, "shifted": True, "standardize": False},
    "sparse": {"storage": sp.csc_array, "shifted": True},
    "torch": {"storage": in_torch, "shifted": True},
}


def support(path, budget, ridge):
    return path.columns[path.coefs[budget, ridge] != 0]


def assert_minimal(case, path, ridges=RIDGES, budgets=BUDGETS, atol=1e-5):
    """Each fit of all rows is minimal on its support, within its budget and within the bounds."""
    assert path.coefs.shape == (len(budgets), len(ridges), path.columns.size)
    assert path.intercepts.shape == (len(budgets), len(ridges))
    assert path.unconverged == []
    assert_array_equal(path.columns, np.unique(path.columns))
    predictions, size = case.predictions(path), np.abs(case.X).max(axis=0)
    for budget, k in enumerate(budgets):
        for place, ridge in enumerate(ridges):
            chosen = support(path, budget, place)
            coef = path.coefs[budget, place][path.coefs[budget, place] != 0]
            assert set(case.free) <= set(chosen.tolist())
            assert chosen.size - len(case.free) <= k
            columns = np.append(chosen, case.X.shape[1] - 1) if case.intercept else chosen
            coef = np.append(coef, path.intercepts[budget, place]) if case.intercept else coef
            gradient = case.gradient(columns, predictions[budget, place], coef, ridge)
            if case.bounds is not None:
                lower, upper = case.bounds[:, columns]
                assert np.all((coef >= lower - 1e-9) & (coef <= upper + 1e-9))
                gradient = np.where(coef <= lower + 1e-9, np.minimum(gradient, 0.0), gradient)
                gradient = np.where(coef >= upper - 1e-9, np.maximum(gradient, 0.0), gradient)
            assert_allclose(gradient / size[columns], 0.0, atol=atol)
    assert case.intercept or not path.intercepts.any()


def assert_same(case, one, other, rtol=1e-6):
    """The same supports, and the same predictions for all rows."""
    assert_array_equal(one.columns, other.columns)
    assert_array_equal(one.coefs != 0, other.coefs != 0)
    assert_allclose(case.predictions(one), case.predictions(other), rtol=0, atol=rtol)


@slow_beyond(7)
@in_turn("kind,loss", list(KINDS), list(LOSSES))
def test_a_fold_fits_what_its_training_rows_alone_give(loss, kind):
    case = make(loss, **KINDS[kind])
    for path, rows in zip(case.paths(), TRAINING, strict=True):
        part = case.rows(rows)
        (alone,) = part.paths([np.arange(rows.size)])
        assert_same(case, path, alone)
        assert_minimal(part, path)


@slow_beyond(9)
@in_turn("kind,ruin", list(KINDS), ["X", "y", "weights", "offset"])
def test_held_out_rows_do_not_change_the_models(kind, ruin):
    case = make(**KINDS[kind])
    before = case.paths()
    rng = np.random.default_rng(5)
    for fold, rows in enumerate(TRAINING):
        held_out = np.setdiff1d(np.arange(60), rows)
        X, y = case.X.copy(), case.y.copy()
        weights = None if case.weights is None else case.weights.copy()
        offset = None if case.offset is None else case.offset.copy()
        if ruin == "X":
            X[held_out] = 1e6 * rng.standard_normal(X[held_out].shape)
            X[:, -1] = 1.0 if case.intercept else X[:, -1]
        elif ruin == "y":
            y[held_out] = 1.0 - y[held_out]
        elif ruin == "weights":
            weights = np.ones(60) if weights is None else weights
            weights[held_out] = 1e6
        else:
            offset = np.zeros(60) if offset is None else offset
            offset[held_out] = 30.0
        ruined = replace(case, X=X, y=y, weights=weights, offset=offset)
        assert_same(case, ruined.paths()[fold], before[fold])


def value(case, path, place):
    """f at a fit, by its definition."""
    weights = np.ones(case.y.size) if case.weights is None else case.weights
    weights = weights / weights.sum()
    X, coef = case.X[:, path.columns], path.coefs[place]
    variance = weights @ (X - weights @ X) ** 2
    losses = case.loss.value(case.y, case.predictions(path)[place])
    return weights @ losses + 0.5 * RIDGES[place[1]] * variance @ (coef * coef)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_supports_are_those_of_one_step_of_scoring_or_of_two(loss):
    """The first is from the null model, where without an offset all rows have the same curvature: least squares of y.

    The second, for losses whose curvature has no bound, is from the fit of the largest budget with the smallest of
    three ridges; of both fits the one with the lower f counts.
    """
    case = make(loss, d=90, weighted=True)
    settings = {"intercept": True, "standardize": True}
    selection = CoordinateBudget(91, 7, (90,))
    second_counts = 0
    for path, rows in zip(case.paths(), TRAINING, strict=True):
        part = case.rows(rows)
        mean = np.average(part.y, weights=part.weights)
        curvature = {"logistic": mean * (1 - mean), "poisson": mean, "gamma": 1.0}[loss]
        squared = LinearModel(part.X, part.y, sample_weight=part.weights)
        ridges, every = np.array(RIDGES) / curvature, [np.arange(rows.size)]
        (first,) = least_squares_fold_paths(squared, selection, every, BUDGETS, ridges, **settings)
        if loss == "logistic":
            assert_array_equal(path.coefs != 0, first.coefs != 0)
            continue
        start = np.zeros(91)
        chosen = np.append(first.columns[first.coefs[-1, 1] != 0], 90)
        model = LinearModel(part.X[:, chosen], part.y, part.loss, sample_weight=part.weights)
        weights = part.weights / part.weights.sum()
        deviation = np.sqrt(weights @ (part.X[:, chosen] - weights @ part.X[:, chosen]) ** 2)
        start[chosen] = minimize(
            model.with_ridge(RIDGES[1] * deviation**2), Sparsity(0, free=tuple(range(chosen.size))), tol=1e-12
        ).w
        u = part.X @ start
        own = part.loss.curvature(part.y, u)
        target = u - part.loss.gradient(part.y, u) / own
        squared = LinearModel(part.X, target, sample_weight=part.weights * own)
        ridges = np.array(RIDGES) / (weights @ own)
        (second,) = least_squares_fold_paths(squared, selection, every, BUDGETS, ridges, **settings)
        for place in np.ndindex(len(BUDGETS), len(RIDGES)):
            columns = path.columns[path.coefs[place] != 0].tolist()
            supports = [each.columns[each.coefs[place] != 0].tolist() for each in (first, second)]
            assert columns in supports
            second_counts += columns != supports[0]
    assert (second_counts > 0) == (loss != "logistic")


@only_at("pairs")
@pytest.mark.parametrize("loss", ["poisson", "gamma", "negative binomial"])
def test_folds_choose_the_best_of_all_supports_where_effects_are_large(loss):
    """One step of scoring from the null model takes others in at least one of these folds."""
    losses = {"poisson": Poisson(), "gamma": Gamma(), "negative binomial": NegativeBinomial(0.5)}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((100, 8))
        u = X[:, :3] @ [1.06, -0.85, 0.64]
        y = losses[loss].example_target(1.0 + u, rng)
        case = Case(np.column_stack([X, np.ones(100)]), y, losses[loss])
        training = [train for train, _ in KFold(3, shuffle=True, random_state=0).split(X)]
        for path, rows in zip(case.paths(training, (3,), (1e-6,)), training, strict=True):
            part = case.rows(rows)
            least = min(
                minimize(
                    LinearModel(part.X[:, [*some, 8]], part.y, part.loss), Sparsity(0, free=(0, 1, 2, 3)), tol=1e-9
                ).value
                for some in combinations(range(8), 3)
            )
            assert np.mean(part.loss.value(part.y, part.predictions(path)[0, 0])) <= least + 1e-5 * abs(least)


@pytest.mark.parametrize("entries", [40, 1 << 20])
def test_f_at_the_fits_of_a_fold_is_that_of_its_definition(entries, monkeypatch):
    monkeypatch.setattr("hardthresh.solvers.working_set.training_fold.ENTRIES", entries)
    case = make("gamma", weighted=True)
    objective = LinearModel(case.X, case.y, case.loss, sample_weight=case.weights)
    selection = CoordinateBudget(31, 7, (30,))
    for path, rows in zip(case.paths(), TRAINING, strict=True):
        fold = TrainingFold.of(objective, selection, rows, intercept=True, standardize=True)
        values = fold.values(fold.refitted(fold.null_model(), path, np.array(RIDGES)))
        assert values.shape == (len(BUDGETS), len(RIDGES))
        for place in np.ndindex(values.shape):
            assert_allclose(values[place], value(case.rows(rows), path, place), rtol=1e-9)


def test_of_fits_that_are_equal_but_for_rounding_the_first_is_kept():
    """Else folds of rows without error would depend on whether weights or repeated rows made the sums."""
    case = make("gamma")
    selection = CoordinateBudget(31, 7, (30,))
    fold = TrainingFold.of(
        LinearModel(case.X, case.y, case.loss), selection, TRAINING[0], intercept=True, standardize=True
    )
    path, null = case.paths()[0], fold.null_model()
    lower = fold.refitted(null, path, np.array(RIDGES))
    higher = replace(lower, intercepts=lower.intercepts + 1e-5)
    assert np.all(fold.values(lower) < fold.values(higher))
    assert_array_equal(fold.lower(higher, lower, 1e-8 * null.value).intercepts, higher.intercepts)
    assert_array_equal(fold.lower(higher, lower, 1e-13 * null.value).intercepts, lower.intercepts)


def test_the_second_step_of_scoring_never_raises_f(monkeypatch):
    """Whatever features it chooses: here those of other targets."""
    case = make("poisson", weighted=True)
    monkeypatch.setattr(TrainingFold, "near_largest", lambda *_: None)
    one = case.paths()
    monkeypatch.undo()
    near = TrainingFold.near_largest
    monkeypatch.setattr(
        TrainingFold, "near_largest", lambda fold, *fits: replace(near(fold, *fits), target=fold.y[::-1])
    )
    for first, path, rows in zip(one, case.paths(), TRAINING, strict=True):
        part = case.rows(rows)
        for place in np.ndindex(len(BUDGETS), len(RIDGES)):
            assert value(part, path, place) <= value(part, first, place) + 1e-9
        assert_minimal(part, path)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_null_model_is_that_of_the_offset_and_the_free_columns(loss):
    """A column that is the log of the exposure is of no use where the offset holds it, nor a copy of a free one."""
    case = make(loss, shifted=True, d=8)
    rng = np.random.default_rng(1)
    offset = 2.0 * rng.standard_normal(60)
    known = np.column_stack([offset, case.X[:, 1] + offset, case.X])
    y = case.loss.example_target(offset, rng)
    noisy = replace(case, X=known, y=y, offset=offset)
    plain = replace(noisy, offset=None)
    (given,), (hidden,) = (each.paths([np.arange(60)], (0, 1), (0.05,)) for each in (noisy, plain))
    assert support(hidden, 1, 0).tolist() == [0]
    assert support(given, 1, 0).tolist() != [0]
    (free,) = replace(plain, free=(0,)).paths([np.arange(60)], (0, 1), (0.05,))
    assert support(free, 0, 0).tolist() == [0]


@pytest.mark.parametrize("kind", ["plain", "everything", "bounded"])
def test_rows_that_are_drawn_twice_count_twice(kind):
    case = make(**KINDS[kind])
    rows = np.random.default_rng(0).integers(0, 60, 60)
    (path,), (alone,) = case.paths([rows]), case.rows(rows).paths([np.arange(60)])
    assert_same(case, path, alone)
    counts = np.bincount(rows, minlength=60) * (1.0 if case.weights is None else case.weights)
    (weighted,) = replace(case, weights=counts).paths([np.flatnonzero(counts)])
    assert_same(case, path, weighted)


def test_rows_without_weight_are_absent():
    case = make(weighted=True, shifted=True)
    weights = case.weights.copy()
    weights[::5] = 0.0
    kept = np.flatnonzero(weights)
    (path,), (alone,) = (replace(case, weights=weights).paths([rows]) for rows in (np.arange(60), kept))
    assert_same(case, path, alone)


def test_neither_the_order_of_the_rows_nor_the_other_folds_matter():
    case = make(weighted=True)
    mixed = [np.random.default_rng(0).permutation(rows) - 60 for rows in TRAINING[::-1]]
    for one, other in zip(case.paths(mixed), case.paths()[::-1], strict=True):
        assert_same(case, one, other)


@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_the_columns_do_not_change_the_fits(loss):
    case = make(loss)
    units = np.append(10.0 ** np.random.default_rng(0).integers(-3, 4, 30), 1.0)
    other = replace(case, X=case.X * units)
    for one, two in zip(case.paths(), other.paths(), strict=True):
        assert_array_equal(one.coefs != 0, two.coefs != 0)
        assert_allclose(case.predictions(one), other.predictions(two), atol=1e-6)


def test_a_fit_does_not_depend_on_the_rest_of_its_grid():
    """But for what the search for supports shares: there are so few columns that nothing is screened."""
    case = make()
    for fold, path in enumerate(case.paths()):
        for place, ridge in enumerate(RIDGES):
            alone = case.paths(ridges=(ridge,))[fold]
            whole = case.predictions(path)[:, place]
            assert_allclose(case.predictions(alone)[:, 0], whole, atol=1e-4)
    twice = case.paths([np.arange(60)], (1, 2, 2, 7), (0.1, 0.02, 0.1))[0]
    assert_array_equal(twice.coefs[:, 0], twice.coefs[:, 2])
    assert_array_equal(twice.coefs[1], twice.coefs[2])


def test_each_different_fit_is_made_once():
    rng = np.random.default_rng(0)
    sets = rng.random((4, 9)) < 0.5
    chosen, ridges = sets[rng.integers(0, 4, (5, 4))], np.array([0.1, 1.0, 0.1, 0.0])
    refit_of, refits_, starts = different_refits(chosen, ridges)
    wanted, ridge_of = chosen.reshape(20, 9)[refits_], ridges[refits_ % 4]
    assert_array_equal(wanted[refit_of], chosen)
    assert_array_equal(ridge_of[refit_of], np.broadcast_to(ridges, (5, 4)))
    assert np.unique(np.column_stack([wanted, ridge_of]), axis=0).shape[0] == refits_.size
    assert np.all(starts < np.arange(starts.size))
    for refit, start in enumerate(starts.tolist()):
        same = [i for i in range(refit) if np.array_equal(wanted[i], wanted[refit])]
        assert not same or (start in same and ridge_of[start] > ridge_of[refit])


@pytest.mark.parametrize("kind", ["plain", "everything", "bounded"])
@pytest.mark.parametrize("columns", [1, 6])
def test_few_columns_at_a_time_give_the_same_fits(columns, kind, monkeypatch):
    case = make(**KINDS[kind])
    whole = case.paths()
    monkeypatch.setattr("hardthresh.solvers.working_set.training_fold.ENTRIES", 40 * columns)
    for one, other in zip(case.paths(), whole, strict=True):
        assert_same(case, one, other, rtol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_folds_that_share_the_search_find_what_each_finds_alone(loss, monkeypatch):
    case = make(loss, d=300, weighted=True)
    together = case.paths()
    monkeypatch.setattr("hardthresh.solvers.working_set.training_fold.TrainingFold.is_affine", lambda *_: False)
    for one, other in zip(case.paths(), together, strict=True):
        assert_same(case, one, other)


@pytest.mark.parametrize(("kind", "shares"), [("plain", True), ("shifted", False), ("included", False)])
def test_which_folds_share_the_search(kind, shares, monkeypatch):
    """An offset and free columns make the null model's curvature differ from row to row."""
    searched = []
    monkeypatch.setattr(
        "hardthresh.solvers.working_set.generalized_folds.least_squares_fold_paths",
        lambda *args, **settings: searched.append(len(args[2])) or least_squares_fold_paths(*args, **settings),
    )
    make(**KINDS[kind]).paths()
    assert searched == ([3] if shares else [1, 1, 1])


@slow_beyond(6)
@pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_fits_what_the_numpy_code_fits(kind, monkeypatch):
    case = make(**KINDS[kind])
    compiled = case.paths()
    use_numpy(monkeypatch)
    for one, other in zip(case.paths(), compiled, strict=True):
        assert_same(case, one, other, rtol=1e-7)


@pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")
def test_supports_with_a_singular_hessian_are_refitted_by_numpy():
    """Two copies of a column without a ridge; their sum of coefficients is that of one of them."""
    case = make(d=4)
    columns = np.ascontiguousarray(case.X.T[[0, 0, 4]])
    weights = np.full(60, 1 / 60)
    few = refits.ColumnsToRefit(columns, case.loss.prepare(case.y, weights), None, np.zeros(3), np.zeros(3))
    chosen = np.array([[True, True, True], [True, False, True]])
    coefs, converged = few.refits(chosen, np.zeros(2), np.array([-1, 0]))
    assert converged.all()
    assert_allclose(coefs[0, 0] + coefs[0, 1], coefs[1, 0], rtol=1e-5)
    assert coefs[1, 1] == 0.0


def test_float32_is_close_to_double_precision():
    case = make(weighted=True)
    case = replace(case, X=case.X.astype(np.float32).astype(float))
    for half, whole in zip(replace(case, storage=single).paths(), case.paths(), strict=True):
        assert_same(case, half, whole, rtol=1e-4)
        assert half.coefs.dtype == half.intercepts.dtype == np.float64


def test_budgets_beyond_all_columns_take_all_of_them():
    case = make(d=5)
    for path, rows in zip(case.paths(budgets=(0, 4, 5, 9)), TRAINING, strict=True):
        assert not path.coefs[0].any()
        assert_allclose(path.intercepts[0], np.log(case.y[rows].mean() / (1 - case.y[rows].mean())), rtol=1e-5)
        assert np.all(path.coefs[2:] != 0)
        assert_array_equal(path.coefs[2], path.coefs[3])


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_a_column_that_is_constant_in_one_fold_is_not_chosen_there(value):
    case = make(d=10)
    X = case.X.copy()
    X[TRAINING[0], 4] = value
    y = np.where(X[:, 4] > np.median(X[:, 4]), 1.0, case.y)
    for fold, path in enumerate(replace(case, X=X, y=y).paths(budgets=(1, 3))):
        assert (4 in path.columns) == (fold > 0)
        assert np.all(np.isfinite(path.coefs))


def test_classes_that_a_column_separates_have_a_minimum_with_a_ridge():
    case = make()
    X = case.X.copy()
    X[:, 7] = case.y + 0.1 * X[:, 7] / np.abs(X[:, 7]).max()
    case = replace(case, X=X)
    for path, rows in zip(case.paths(ridges=(1.0, 1e-3)), TRAINING, strict=True):
        assert 7 in support(path, 1, 0)
        assert_minimal(case.rows(rows), path, ridges=(1.0, 1e-3))


def test_fits_without_a_minimum_are_finite_and_reported():
    """Without a ridge, counts are all zero where an indicator column is one."""
    case = make("poisson", d=4)
    X, y = case.X.copy(), case.y.copy()
    X[:, 2] = np.arange(60) % 3 == 0
    y[X[:, 2] == 1] = 0.0
    y[X[:, 2] == 0] += 3.0
    case = replace(case, X=X, y=y)
    for path in case.paths(budgets=(1, 2), ridges=(0.0, 0.1)):
        assert np.all(np.isfinite(path.coefs))
        assert np.all(np.isfinite(path.intercepts))
        assert path.unconverged
        assert all("with ridge 0 has not converged" in message for message in path.unconverged)
    for path in replace(case, free=(2,)).paths(budgets=(0, 1), ridges=(0.1,)):
        assert np.all(np.isfinite(path.coefs))
        assert any("the null model has not converged" in message for message in path.unconverged)


def test_targets_of_zero_are_a_null_model_that_has_not_converged():
    case = replace(make("poisson", d=4), y=np.zeros(60))
    for path in case.paths(budgets=(0, 1), ridges=(0.1,)):
        assert np.all(np.isfinite(path.coefs))
        assert np.all(np.isfinite(path.intercepts))
        assert path.unconverged


def test_the_arguments_are_not_changed():
    case = make(weighted=True, shifted=True)
    copies = [x.copy() for x in (case.X, case.y, case.weights, case.offset)]
    first, second = case.paths(), case.paths()
    for x, copy in zip((case.X, case.y, case.weights, case.offset), copies, strict=True):
        assert_array_equal(x, copy)
    for one, two in zip(first, second, strict=True):
        assert_array_equal(one.coefs, two.coefs)
        assert_array_equal(one.intercepts, two.intercepts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridges": ()}, "ridges must be finite numbers >= 0, at least one"),
        ({"ridges": (0.1, -1.0)}, "ridges must be finite numbers >= 0"),
        ({"ridges": (np.inf,)}, "ridges must be finite numbers >= 0"),
        ({"budgets": (3, 1)}, "budgets must be numbers >= 0 that do not fall"),
        ({"training": [np.arange(61)]}, "numbers of 60 rows"),
        ({"training": [np.empty(0, dtype=int)]}, "none of them empty"),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        make().paths(**settings)


def test_training_rows_without_weight_are_refused():
    case = make()
    with pytest.raises(InvalidInputError, match="fold 1 have no weight"):
        replace(case, weights=np.repeat([0.0, 1.0], 30)).paths([np.arange(20, 60), np.arange(20)])
