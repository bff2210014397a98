"""Lower bounds over all sets of a size: check 22 of the specification of the models (models.md)."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

import hardthresh as ht
from hardthresh.certificates import relative_gap
from hardthresh.certificates.gap import bound_sentence
from hardthresh.certificates.lower_bounds import convexity, lower_bound
from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.core.meter import Meter
from hardthresh.core.registry import registered
from hardthresh.losses import Huber, JointLoss, Loss, Multinomial, Quantile
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel
from hardthresh.objectives.flat import FlatModel
from hardthresh.solvers import WorkingSet
from levels import at, at_most, reaches, slow_beyond

ROWS, COLUMNS, K = 80, 7, 2
MODELS = {
    repr(loss): loss
    for entry in registered("loss").values()
    for loss in entry.examples()
    if isinstance(loss, (Loss, JointLoss)) and not (isinstance(loss, Quantile) and not loss.smoothing)
}


def columns(rng, n=ROWS, d=COLUMNS, rho=0.5):
    """Columns of mean 0 and variance 1 whose neighbours are correlated."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    return (X - X.mean(0)) / X.std(0)


def problem(loss, alpha, seed=0, **more):
    """A model of each loss with what is always allowed: an intercept, or thresholds."""
    rng = np.random.default_rng((22, seed))
    X = columns(rng)
    y = loss.example_target(X[:, 1] - 0.7 * X[:, 4], rng)
    if isinstance(loss, JointLoss):
        f = OrdinalModel(X, y, l2=alpha) if loss.n_predictions > 1 else LinearModel(X, y, loss=loss, l2=alpha)
        return f, Sparsity(K, free=tuple(range(COLUMNS, f.shape[0])))
    ridge = np.append(np.full(COLUMNS, alpha), 0.0)
    return LinearModel(np.column_stack([X, np.ones(ROWS)]), y, loss=loss, l2=ridge, **more), Sparsity(
        K, free=(COLUMNS,)
    )


def answer(f, constraint):
    found = ht.minimize(f, constraint, WorkingSet(), tol=1e-12)
    return f.evaluate(found.w)


def best_of_all(f, k, free=()):
    """The least value over all sets, each minimised by itself."""
    size = f.shape[0]
    values = []
    for some in combinations([j for j in range(size) if j not in free], k):
        part = f.columns(np.array([*some, *free]))
        always = Sparsity(0, free=tuple(range(k + len(free))))
        values.append(ht.minimize(part, always, WorkingSet(), tol=1e-12).value)
    return min(values)


@slow_beyond(2)
@at_most(4)
@pytest.mark.parametrize("alpha", [0.01, *at("pairs", [0.1, 0.001])])
@pytest.mark.parametrize("name", MODELS)
def test_check_22_no_sparse_point_is_below_the_bound(name, alpha):
    """Check 22: at 1000 random points of k non-zeros, and at the best set of all."""
    f, constraint = problem(MODELS[name], alpha)
    at = answer(f, constraint)
    bound = lower_bound(f, constraint, at)
    rng = np.random.default_rng(1)
    for _ in range(1000 if reaches("all") else 100):
        w = at.point.copy() if rng.random() < 0.5 else f.null_point()
        w[:COLUMNS] = 0.0
        w[rng.choice(COLUMNS, K, replace=False)] = rng.standard_normal(K)
        w[COLUMNS:] += 0.1 * np.sort(rng.standard_normal(w.size - COLUMNS))
        assert bound <= f.value(w)
    best = best_of_all(f, K, constraint.free)
    assert bound <= best + 1e-12 * abs(best)
    assert at.value - bound <= 0.4 * (at.value - max(f.lower_bound, -1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Logistic()", "Poisson()", "Gamma()", "SquaredHinge()", "Huber(delta=0.3)"])
def test_it_is_the_dual_value_with_the_convex_conjugate(name):
    r"""One round at v: -sum omega l*(a / omega) - topk((X'a)^2) / 2 alpha, the conjugate maximised numerically."""
    alpha, loss = 0.05, MODELS[name]
    f, constraint = problem(loss, alpha)
    rng = np.random.default_rng(3)
    w = np.append(0.2 * rng.standard_normal(COLUMNS), 0.0)
    for _ in range(50):  # the intercept that balances the slopes
        here = f.columns(np.array([COLUMNS])).evaluate(w[COLUMNS:], f.predict(w))
        w[COLUMNS:] -= here.gradient / f.columns(np.array([COLUMNS])).hessian(here)[0]
    at = f.evaluate(w)
    y, slopes = f.y, loss.gradient(f.y, at.prediction)

    def conjugate(target, slope):
        value = lambda u: float(loss.value(np.array([target]), np.array([u]))[0]) - slope * u  # noqa: E731
        return -minimize_scalar(value, bounds=(-40.0, 40.0), method="bounded", options={"xatol": 1e-12}).fun

    total = -sum(conjugate(*pair) for pair in zip(y.tolist(), slopes.tolist(), strict=True)) / ROWS
    worth = np.sort((f.design.pullback(slopes / ROWS)[:COLUMNS]) ** 2 / (2 * alpha))
    assert_allclose(lower_bound(f, constraint, at, rounds=1), max(0.0, total - worth[-K:].sum()), rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "d", "alpha", "most"), [(2000, 200, 0.1, 0.01), (2000, 200, 0.01, 0.02), (300, 200, 0.1, 0.02)]
)
def test_check_22_logistic_gaps_are_small_with_many_rows(n, d, alpha, most):
    """Check 22, with the numbers of section 5.4 of the specification: .000, .011 and .008."""
    rng = np.random.default_rng((1, n, d, 5))
    X = columns(rng, n, d, 0.3)
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, :: d // 5][:, :5].sum(axis=1)))).astype(float)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=5, alpha=alpha).fit(X, y)
    certificate = model.certificate()
    assert 0.0 <= certificate.gap <= most
    assert certificate.lower_bound == pytest.approx(certificate.value * (1 - certificate.gap))


@pytest.mark.parametrize(
    ("n", "d", "k", "alpha", "rho", "snr", "gap"),
    [(500, 100, 5, 0.01, 0.5, 1, 0.003), (1000, 200, 10, 0.001, 0.8, 2, 0.022), (100, 200, 5, 0.1, 0.5, 5, 0.194)],
)
def test_root_gaps_of_least_squares_are_those_of_the_specification(n, d, k, alpha, rho, snr, gap):
    """The rows of section 5.4 with more rows than columns need the eigenvalue, and the third one the ridge alone."""
    rng = np.random.default_rng((1, n, d, k))
    Z = rng.standard_normal((n, d))
    X = Z.copy()
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * Z[:, j]
    coef = np.zeros(d)
    support = np.sort(rng.permutation(d)[:k])
    coef[support] = rng.choice([-1.0, 1.0], k)
    u = X @ coef
    y = u + np.sqrt(u.var() / snr) * rng.standard_normal(n)
    model = ht.SparseLinearRegression(n_nonzero_coefs=k, alpha=alpha).fit((X - X.mean(0)) / X.std(0), y / y.std())
    assert model.certificate().gap == pytest.approx(gap, abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_least_squares_with_weights_an_offset_and_columns_that_depend_on_each_other(seed, alpha):
    rng = np.random.default_rng((23, seed))
    n, d = 40, 8
    X = columns(rng, n, d)
    X[:, 2] = X[:, 1] if seed % 2 else X[:, 2]
    X[:, 5] = 0.0 if seed > 1 else X[:, 5]
    f = LinearModel(
        np.column_stack([X, np.ones(n)]),
        X[:, 1] - X[:, 4] + rng.standard_normal(n),
        sample_weight=rng.integers(0, 3, n).astype(float),
        offset=rng.standard_normal(n),
        l2=np.append(np.full(d, alpha), 0.0),
    )
    constraint = Sparsity(3, free=(d,))
    at = answer(f, constraint)
    bound, best = lower_bound(f, constraint, at), best_of_all(f, 3, (d,))
    assert 0.5 * best <= bound <= best * (1 + 1e-12)


def test_what_it_takes_off_leaves_a_convex_function():
    """D of least squares: the Hessian less D is positive semidefinite, and hardly so."""
    rng = np.random.default_rng(5)
    X = columns(rng, 60, 10) + rng.standard_normal(10)  # whose means the intercept takes
    f = LinearModel(np.column_stack([X, np.ones(60)]), X[:, 0], l2=np.append(np.full(10, 0.03), 0.0))
    D = convexity(f, np.array([10]), f.evaluate(f.zeros()), np.inf)
    eigenvalues = np.linalg.eigvalsh(f.hessian(f.evaluate(f.zeros())) - np.diag(D))
    assert D[10] == 0.0
    assert (D[:10] > 0.03).all()
    assert -1e-12 <= eigenvalues[0] <= 1e-6


def test_groups_are_bounded_whole():
    rng = np.random.default_rng(6)
    X = columns(rng, 50, 9)
    f = LinearModel(X, X[:, 0] + X[:, 1] - X[:, 6] + rng.standard_normal(50), l2=0.05)
    labels = list("aaabbbccd")
    constraint = GroupSparsity(labels, 2)
    found = ht.minimize(f, constraint)
    best = min(
        ht.minimize(f.columns(np.flatnonzero(np.isin(labels, some))), Sparsity(9), WorkingSet()).value
        for some in combinations("abcd", 2)
    )
    bound = lower_bound(f, constraint, f.evaluate(found.w))
    assert 0.9 * best <= bound <= best


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", Multinomial(n_classes=3)])
def test_several_outputs_are_bounded_by_feature(loss):
    rng = np.random.default_rng(7)
    X = columns(rng, 60, 6)
    U = np.outer(X[:, 1], [1.0, -1.0, 0.5]) + np.outer(X[:, 4], [0.0, 1.0, 1.0])
    read = MultiOutputModel(X, np.zeros((60, 3)), loss).loss if isinstance(loss, str) else loss
    f = FlatModel(MultiOutputModel(X, read.example_target(U, rng), loss, l2=0.05))
    labels = np.repeat(np.arange(6), f.width)
    constraint = GroupSparsity(labels.tolist(), 2)
    found = ht.minimize(f, constraint)
    parts = [np.flatnonzero(np.isin(labels, some)) for some in combinations(range(6), 2)]
    best = min(ht.minimize(f.columns(part), GroupSparsity(labels[part].tolist(), 2)).value for part in parts)
    bound = lower_bound(f, constraint, f.evaluate(found.w))
    assert 0.8 * best <= bound <= best * (1 + 1e-12)


def test_squared_errors_of_several_outputs_have_the_convexity_of_one():
    rng = np.random.default_rng(15)
    X = np.column_stack([columns(rng, 80, 10) + 1.0, np.ones(80)])
    ridge = np.append(np.full(10, 0.02), 0.0)
    f = FlatModel(MultiOutputModel(X, rng.standard_normal((80, 3)), l2=ridge))
    one = LinearModel(X, rng.standard_normal(80), l2=ridge)
    D = convexity(f, np.arange(30, 33), f.evaluate(f.zeros()), np.inf)
    assert_allclose(D, np.repeat(convexity(one, np.array([10]), one.evaluate(one.zeros()), np.inf), 3))
    assert (D[:30] > 0.02).all()


def test_signs_make_the_bound_larger():
    rng = np.random.default_rng(8)
    X = columns(rng, 60, 12)
    f = LinearModel(X, X[:, 0] - X[:, 6] + rng.standard_normal(60), l2=0.05)
    signed, plain = Sparsity(2, lower=0.0), Sparsity(2)
    of_signed, of_plain = (lower_bound(f, one, f.evaluate(ht.minimize(f, one).w)) for one in (signed, plain))
    best = min(
        ht.minimize(f.columns(np.array(some)), Sparsity(2, lower=0.0), WorkingSet()).value
        for some in combinations(range(12), 2)
    )
    assert of_plain * 1.01 < of_signed <= best


@pytest.mark.parametrize("k", [0, 7, 20])
def test_without_a_choice_the_bound_is_the_minimum(k):
    f, _ = problem(MODELS["Poisson()"], 0.1)
    constraint = Sparsity(k, free=(COLUMNS,))
    at = answer(f, constraint)
    bound = lower_bound(f, constraint, at)
    assert bound <= at.value
    assert relative_gap(at.value, bound, 0.0) <= 1e-6


def test_a_large_ridge_lets_the_first_round_prove_the_answer():
    """Where no slope outside exceeds alpha times a coefficient inside, the answer solves the relaxation."""
    f, constraint = problem(MODELS["Logistic()"], 1.0)
    at = answer(f, constraint)
    assert relative_gap(at.value, lower_bound(f, constraint, at, rounds=1), 0.0) <= 1e-9


def test_more_rounds_never_lower_it():
    rng = np.random.default_rng(9)
    X = columns(rng, 60, 300)
    f = LinearModel(X, X[:, 0] - X[:, 6] + rng.standard_normal(60), l2=0.1)
    at = answer(f, Sparsity(3))
    bounds = [lower_bound(f, Sparsity(3), at, rounds=rounds) for rounds in (1, 2, 3, 6, 12)]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0]


def test_rounds_are_data_passes():
    rng = np.random.default_rng(10)
    X = columns(rng, 100, 2000)
    f = LinearModel(X, (X[:, 0] - X[:, 6] + rng.standard_normal(100) > 0).astype(float), loss="logistic", l2=0.05)
    at, meter = answer(f, Sparsity(3)), Meter()
    lower_bound(f.metered(meter), Sparsity(3), at)
    assert 2.0 <= meter.passes <= 12 * (1 + 512 / 2000 * 3)  # the Hessian and two products of 512 columns besides


@pytest.mark.parametrize("away", [-2.0, 0.5, 2.0])
def test_a_wrong_intercept_is_put_right(away):
    """At a point where free coordinates have a slope a tangent says nothing about points that move along it."""
    f, constraint = problem(MODELS["Logistic()"], 0.05)
    at = answer(f, constraint)
    w = at.point + away * (np.arange(f.shape[0]) == COLUMNS)
    assert_allclose(lower_bound(f, constraint, f.evaluate(w), rounds=1), lower_bound(f, constraint, at, rounds=1))


@pytest.mark.parametrize("name", ["Logistic()", "Cox(ties='breslow')"])
def test_it_leaves_the_evaluation_as_it_is(name):
    f, constraint = problem(MODELS[name], 0.001)
    at = answer(f, constraint)
    before = at.point.copy(), at.gradient.copy(), at.prediction.copy()
    lower_bound(f, constraint, at)
    for mine, then in zip((at.point, at.gradient, at.prediction), before, strict=True):
        assert_array_equal(mine, then)


def test_single_precision_is_bounded_in_double():
    f, constraint = problem(MODELS["Logistic()"], 0.05)
    single = LinearModel(f.design.dense().astype("f4"), f.y, loss="logistic", l2=f.l2)
    exact = answer(f, constraint)
    bound = lower_bound(single, constraint, single.evaluate(exact.point.astype("f4")))
    assert_allclose(bound, lower_bound(f, constraint, exact), rtol=1e-4)


class _Nonconvex(Huber):
    convex = False


@slow_beyond(11)
@pytest.mark.parametrize("name", MODELS)
def test_without_a_ridge_it_is_the_minimum_of_all_columns(name):
    f, constraint = problem(MODELS[name], 0.0)
    always = Sparsity(0, free=tuple(range(f.shape[0])))
    whole = ht.minimize(f, always, WorkingSet(), tol=1e-12).value
    bound = lower_bound(f, constraint, answer(f, constraint))
    if name == "Squared()":  # whose correlations have a smallest eigenvalue
        assert bound > whole
    else:
        assert whole * (1 - 1e-6 * np.sign(whole)) <= bound <= whole + 1e-12 * abs(whole)


def test_of_groups_that_overlap_it_is_the_minimum_of_all_columns():
    rng = np.random.default_rng(13)
    f = LinearModel(columns(rng, 30, 3), rng.standard_normal(30), l2=1.0)
    constraint = OverlappingGroupSparsity([[0, 1], [1, 2]], 1)
    whole = ht.minimize(f, Sparsity(3)).value
    assert_allclose(lower_bound(f, constraint, f.evaluate(f.zeros())), whole, rtol=1e-9)


def test_separated_classes_have_no_bound_without_a_ridge():
    """All columns separate them: the least value is not attained, and Newton's method does not end."""
    rng = np.random.default_rng(14)
    X = columns(rng, 40, 5)
    f = LinearModel(X, (X.sum(axis=1) > 0).astype(float), loss="logistic")
    assert lower_bound(f, Sparsity(2), f.evaluate(f.zeros())) is None


@pytest.mark.parametrize("case", ["no ridge, few rows", "no ridge, another loss", "a kink", "not convex"])
def test_there_is_none(case):
    rng = np.random.default_rng(11)
    X, y = rng.standard_normal((30, 40)), rng.standard_normal(30)
    f, constraint = LinearModel(X, y), Sparsity(2)
    if case == "no ridge, another loss":
        f = LinearModel(X, y, loss="huber")
    if case == "a kink":
        f = LinearModel(X, y, loss=Quantile(0.5, 0.0), l2=1.0)
    if case == "not convex":
        f = LinearModel(X, y, loss=_Nonconvex(), l2=1.0)
    assert lower_bound(f, constraint, f.evaluate(f.zeros())) is None


def test_the_gap_is_measured_from_the_least_value_there_is():
    """Log-likelihoods of Cox models are below zero, where a share of the value would mean nothing."""
    assert relative_gap(-0.6, -0.7, -1.0) == pytest.approx(0.25)
    assert relative_gap(2.0, 1.5, -np.inf) == 0.25
    assert relative_gap(1.0, -3.0, 0.0) == 1.0
    assert relative_gap(0.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("bound", "gap", "words"),
    [
        (None, None, "Not proved: that no other set"),
        (
            0.2,
            0.8,
            "nothing is proved. It is 80 % below the objective; that is a weakness of the bound, and says nothing",
        ),
        (0.9, 0.1, "no set of this size has an objective below 0.9, and this one has 1 (gap 10 %)"),
        (1.0, 0.0, "proved to 1e-06 relative that no other set"),
    ],
)
def test_the_sentence_does_not_blame_the_model(bound, gap, words):
    assert words in bound_sentence(1.0, bound, gap)


def test_certificates_of_estimators_have_it():
    rng = np.random.default_rng(12)
    X = columns(rng, 100, 20)
    y = X[:, 3] - X[:, 9] + rng.standard_normal(100)
    certificate = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y).certificate()
    assert certificate.lower_bound <= certificate.value
    assert "Lower bound: " in str(certificate)
    few = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X[:15], y[:15]).certificate()
    assert few.lower_bound is few.gap is None
    assert "Not proved: " in str(few)
