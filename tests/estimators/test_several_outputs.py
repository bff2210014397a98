"""Models of several outputs and of more than two classes: what they keep of those of one, and what is theirs alone."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import hardthresh as ht
from hardthresh import (
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
)
from hardthresh.core.errors import InvalidInputError
from hardthresh.storage import StorageError

CLASSES = np.array(["ash", "birch", "cedar"])
NAMES = ["gain", "loss", "risk"]


def regression_data(n=80, d=10, q=3, seed=0):
    rng = np.random.default_rng((seed, n, d, q))
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d) + np.linspace(-1.0, 3.0, d)
    B = np.zeros((d, q))
    B[[1, 3, 5]] = [[1.5 * np.cos(2 * np.pi * c / q + j) for c in range(q)] for j in range(3)]
    return X, X @ B + rng.standard_normal((n, q))


def class_data(n=150, d=8, seed=0, classes=CLASSES):
    X, U = regression_data(n, d, len(classes), seed)
    U = U - U.mean(axis=0)
    rng = np.random.default_rng((seed, n))
    return X, np.asarray(classes)[np.argmax(U + rng.gumbel(size=U.shape), axis=1)]


def data_of(cls):
    return regression_data() if issubclass(cls, SparseLinearRegression) else class_data()


BOTH = [SparseLinearRegression, SparseLogisticRegression]
TWINS = [SparseLinearRegressionCV, SparseLogisticRegressionCV]


# the numbers


def loss_of_rows(X, y, B, c, classes):
    """The mean log-loss of coefficients, by rows."""
    U = X @ B.T + c
    own = np.searchsorted(classes, y)
    return np.mean(logsumexp(U, axis=1) - U[np.arange(len(y)), own])


def test_all_supports_of_classes_by_another_solver():
    """Of all pairs of columns the best by scikit-learn is the one that is chosen, with the same coefficients."""
    X, y = class_data(d=6)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    alpha, best = 0.05, (np.inf, None, None)
    for pair in map(list, combinations(range(6), 2)):
        other = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=1000).fit(Z[:, pair], y)
        value = loss_of_rows(Z[:, pair], y, other.coef_, other.intercept_, CLASSES)
        value += alpha / 2 * np.sum(other.coef_**2)
        if value < best[0]:
            best = value, pair, other.coef_
    fit = SparseLogisticRegression(n_nonzero_coefs=2, alpha=alpha).fit(X, y)
    assert_array_equal(fit.support_, best[1])
    assert_allclose(fit.objective_, best[0], rtol=1e-8)
    assert_allclose(fit.coef_[:, best[1]] * fit.scale_[best[1]], best[2], atol=1e-5)


def test_all_supports_of_outputs_by_least_squares():
    X, Y = regression_data(d=7)
    values = {}
    for three in combinations(range(7), 3):
        columns = np.column_stack([X[:, list(three)], np.ones(len(X))])
        residual = Y - columns @ np.linalg.lstsq(columns, Y, rcond=None)[0]
        values[three] = np.sum(residual**2) / (2 * len(X))
    fit = SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y)
    assert tuple(fit.support_) == min(values, key=values.get)
    assert_allclose(fit.objective_, min(values.values()), rtol=1e-10)


# classes: check 6


@pytest.mark.slow
def test_check_06_coefficients_of_classes_add_up_to_zero():
    X, y = class_data()
    for alpha in (0.0, 0.01, 1.0):
        model = SparseLogisticRegression(n_nonzero_coefs=3, alpha=alpha, always_include=[0]).fit(X, y)
        assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-10)
        assert_allclose(model.intercept_.sum(), 0.0, atol=1e-10)
    average = SparseLogisticRegressionCV(n_nonzero_coefs=3, cv=3).fit(X, y)
    assert_allclose(average.coef_.sum(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("order", [[1, 2, 0], [2, 1, 0]])
def test_check_06_other_names_of_classes_permute_the_rows(order):
    """No class is the reference: names that sort in another order give the same coefficients in that order."""
    X, y = class_data()
    renamed = CLASSES[order][np.searchsorted(CLASSES, y)]
    one = SparseLogisticRegression(n_nonzero_coefs=3).fit(X, y)
    other = SparseLogisticRegression(n_nonzero_coefs=3).fit(X, renamed)
    assert_array_equal(other.support_, one.support_)
    assert_allclose(other.coef_[order], one.coef_, atol=1e-8)
    assert_allclose(other.intercept_[order], one.intercept_, atol=1e-8)
    assert_allclose(other.predict_proba(X)[:, order], one.predict_proba(X), atol=1e-8)


@pytest.mark.slow
def test_check_06_no_class_is_the_reference():
    """Coefficients relative to a class are other ones, and shrunk otherwise, whichever class it is."""
    X, y = class_data()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    alpha = 0.3
    ours = SparseLogisticRegression(n_nonzero_coefs=8, alpha=alpha).fit(X, y)
    own = np.searchsorted(CLASSES, y)
    for reference in range(3):
        free = [c for c in range(3) if c != reference]

        def value(theta, free=free):
            B = np.zeros((3, 9))
            B[free] = theta.reshape(2, 9)
            U = Z @ B[:, :8].T + B[:, 8]
            rows = logsumexp(U, axis=1) - U[np.arange(len(y)), own]
            return rows.mean() + alpha / 2 * np.sum(B[:, :8] ** 2)

        B = np.zeros((3, 8))
        B[free] = minimize(value, np.zeros(18)).x.reshape(2, 9)[:, :8]
        assert not np.allclose(B - B.mean(axis=0), ours.coef_ * ours.scale_, atol=0.01)


def test_check_06_two_classes_are_those_of_one_row():
    """Halves of the log-odds with both signs and twice the ridge are the same model."""
    X, y = class_data(classes=CLASSES[:2])
    two = SparseLogisticRegression(n_nonzero_coefs=3, alpha=0.02).fit(X, y)
    assert two.coef_.shape == (1, 8)
    problem = SparseLogisticRegression(n_nonzero_coefs=3, alpha=0.04)
    problem.classes_ = CLASSES[:2]
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(y))])
    ridge = np.append(np.full(8, 0.04), 0.0)
    model = ht.objectives.MultiOutputModel(Z, np.searchsorted(CLASSES, y).astype(float), "multinomial", l2=ridge)
    found = ht.minimize(model, ht.constraints.RowSparsity(3, free=(8,)), tol=1e-12)
    assert_allclose(found.w[:8, 1] - found.w[:8, 0], (two.coef_ * two.scale_)[0], atol=1e-7)
    assert_allclose(found.value, two.objective_, rtol=1e-10)


def test_probabilities():
    X, y = class_data()
    model = SparseLogisticRegression(n_nonzero_coefs=3).fit(X, y)
    U = X @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(X), U)
    P = np.exp(U - logsumexp(U, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X), P)
    assert_allclose(model.predict_log_proba(X), np.log(P))
    assert_array_equal(model.predict(X), CLASSES[np.argmax(U, axis=1)])
    assert model.score(X, y) == accuracy_score(y, model.predict(X))
    far = model.predict_log_proba(1e4 * X)
    assert np.all(np.isfinite(far))
    assert far.min() < -1000


def test_integer_classes_come_back_as_integers():
    X, y = class_data(classes=np.array([-5, 3, 11]))
    predicted = SparseLogisticRegression(n_nonzero_coefs=2).fit(X, y).predict(X)
    assert predicted.dtype == y.dtype
    assert set(predicted.tolist()) <= {-5, 3, 11}


def test_separated_classes_have_no_minimiser_and_the_feature_is_named():
    X, y = class_data()
    X = np.column_stack([X, np.where(y == "birch", 4.0, 0.5 * (y == "ash"))])
    with pytest.warns(ConvergenceWarning, match=r"Growing without bound: the coefficients? of .*feature 8"):
        model = SparseLogisticRegression(n_nonzero_coefs=2, alpha=0.0).fit(X, y)
    assert 8 in model.support_
    assert model.separated_  # one column puts three classes in order: the middle one is ash
    ridged = SparseLogisticRegression(n_nonzero_coefs=2, alpha=1e-3).fit(X, y)
    assert ridged.converged_
    assert ridged.separated_


def test_one_class_may_be_separated_from_two_that_are_not():
    X, y = class_data()
    X = np.column_stack([X, (y == "birch").astype(float)])
    with pytest.warns(ConvergenceWarning, match="Growing without bound"):
        model = SparseLogisticRegression(n_nonzero_coefs=2, alpha=0.0).fit(X, y)
    assert not model.separated_


def test_classes_that_overlap_have_a_minimiser():
    X, y = class_data()
    model = SparseLogisticRegression(n_nonzero_coefs=3, alpha=0.0).fit(X, y)
    assert model.converged_
    assert not model.separated_


# outputs


def test_one_column_of_targets_is_that_of_a_vector():
    X, Y = regression_data()
    for cls in (SparseLinearRegression, SparseLinearRegressionCV):
        one, column = cls(n_nonzero_coefs=3).fit(X, Y[:, 0]), cls(n_nonzero_coefs=3).fit(X, Y[:, :1])
        assert column.coef_.shape == (1, 10)
        assert column.intercept_.shape == (1,)
        assert_array_equal(column.coef_[0], one.coef_)
        assert column.intercept_[0] == one.intercept_
        assert_array_equal(column.predict(X), one.predict(X)[:, None])
        assert one.score(X, Y[:, 0]) == column.score(X, Y[:, :1])
        other = LinearRegression().fit(X, Y[:, :1])
        assert (column.predict(X).shape, column.coef_.shape) == (other.predict(X).shape, other.coef_.shape)
    again = column.fit(X, Y[:, 0])
    assert (again.coef_.shape, again.predict(X).shape) == ((10,), (80,))


def test_shapes_and_score_of_several_outputs():
    X, Y = regression_data()
    model = SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y)
    assert (model.coef_.shape, model.intercept_.shape, model.predict(X).shape) == ((3, 10), (3,), (80, 3))
    assert_allclose(model.score(X, Y), r2_score(Y, model.predict(X)))
    assert_array_equal(np.flatnonzero(model.coef_.any(axis=0)), model.support_)
    assert_array_equal(model.transform(X), X[:, model.support_])


def test_copies_of_an_output_are_that_output():
    X, Y = regression_data()
    one = SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y[:, 0])
    two = SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y[:, [0, 0]])
    assert_array_equal(two.support_, one.support_)
    assert_allclose(two.coef_, [one.coef_, one.coef_], rtol=1e-9)
    assert_allclose(two.objective_, 2 * one.objective_)


# what all models keep


@pytest.mark.parametrize("cls", BOTH)
def test_weight_2_is_a_row_given_twice(cls):
    X, y = data_of(cls)
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = cls(n_nonzero_coefs=3).fit(X, y, sample_weight=weights)
    repeated = cls(n_nonzero_coefs=3).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights, axis=0))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-10)
    by_criterion = [
        cls().fit(X, y, sample_weight=weights),
        cls().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights, axis=0)),
    ]
    assert_allclose(
        by_criterion[0].criterion_path_, by_criterion[1].criterion_path_[: len(by_criterion[0].candidates_)]
    )


@pytest.mark.parametrize("cls", BOTH)
def test_an_offset_is_a_known_part_of_each_predictor(cls):
    X, y = data_of(cls)
    offset = np.random.default_rng(2).standard_normal((len(X), 3))
    model = cls(n_nonzero_coefs=3).fit(X, y, offset=offset)
    if cls is SparseLinearRegression:
        plain = cls(n_nonzero_coefs=3).fit(X, y - offset)
        assert_allclose(model.coef_, plain.coef_, atol=1e-9)
        assert_allclose(model.predict(X, offset), plain.predict(X) + offset)
    else:
        U = X @ model.coef_.T + model.intercept_ + offset
        assert_allclose(model.decision_function(X, offset), U)
        slopes = np.exp(U - logsumexp(U, axis=1, keepdims=True)) - (y[:, None] == CLASSES)
        assert_allclose(slopes.mean(axis=0), 0.0, atol=1e-7)
    with pytest.raises(InvalidInputError, match=r"offset has shape \(\d+,\); \(\d+, 3\) is needed, one number per row"):
        cls(n_nonzero_coefs=3).fit(X, y, offset=offset[:, 0])


def test_a_score_with_an_offset_is_the_mean_over_the_outputs():
    """The null model of an output is its offset and a constant, as of least squares of one."""
    X, y = regression_data(q=2)
    rng = np.random.default_rng(2)
    offset, weight = rng.standard_normal(y.shape), rng.integers(0, 3, len(X)).astype(float)
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y, weight, offset)
    expected = r2_score(y - offset, model.predict(X, offset) - offset, sample_weight=weight)
    assert_allclose(model.score(X, y, weight, offset), expected, rtol=1e-12)
    with config_context(enable_metadata_routing=True):
        asks = SparseLinearRegression(n_nonzero_coefs=2).set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(asks, X, y, cv=KFold(3), params={"offset": offset}, error_score="raise")
    for (train, test), score in zip(KFold(3).split(X), scores, strict=True):
        model = SparseLinearRegression(n_nonzero_coefs=2).fit(X[train], y[train], offset=offset[train])
        known = offset[test]
        assert_allclose(score, r2_score(y[test] - known, model.predict(X[test], known) - known), rtol=1e-10)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", ["sparse", "float32"])
def test_other_tables_of_the_same_numbers(cls, kind):
    X, y = data_of(cls)
    expected = cls(n_nonzero_coefs=3).fit(X, y)
    other = sp.csr_array(X) if kind == "sparse" else X.astype(np.float32)
    model = cls(n_nonzero_coefs=3).fit(other, y)
    assert_array_equal(model.support_, expected.support_)
    assert_allclose(model.coef_, expected.coef_, atol=1e-8 if kind == "sparse" else 1e-3)
    assert model.coef_.dtype == (np.float64 if kind == "sparse" else np.float32)


@pytest.mark.parametrize("cls", BOTH)
def test_groups_and_always_included_columns(cls):
    X, y = data_of(cls)
    groups = np.arange(X.shape[1]) // 2
    model = cls(groups=groups, n_nonzero_groups=2).fit(X, y)
    assert model.n_nonzero_groups_ == len(model.groups_) == 2
    assert_array_equal(model.support_, np.flatnonzero(np.isin(groups, model.groups_)))
    with_it = cls(n_nonzero_coefs=2, always_include=[0]).fit(X, y)
    assert 0 in with_it.support_
    assert (len(with_it.support_), with_it.n_nonzero_coefs_) == (3, 2)
    certificate = with_it.certificate()
    assert certificate.swap_optimal
    assert certificate.best_swap[0] in with_it.support_
    assert certificate.best_swap[1] not in with_it.support_


@pytest.mark.parametrize("cls", BOTH)
def test_bounds_are_refused(cls):
    X, y = data_of(cls)
    for settings in ({"positive": True}, {"bounds": (0, 1)}):
        with pytest.raises(InvalidInputError, match="for models of one output or of two classes"):
            cls(n_nonzero_coefs=3, **settings).fit(X, y)


@pytest.mark.parametrize("cls", BOTH)
def test_a_warm_start_has_as_many_outputs(cls):
    X, y = data_of(cls)
    model = cls(n_nonzero_coefs=3, warm_start=True).fit(X, y)
    again = model.coef_.copy()
    assert_allclose(model.fit(X, y).coef_, again, atol=1e-8)
    other = y[:, 0] if y.ndim == 2 else np.where(y == "ash", "birch", y)
    with pytest.raises(InvalidInputError, match=r"warm_start: the last fit has coefficients of shape \(3, \d+\)"):
        model.fit(X, other)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [*BOTH, *TWINS])
def test_models_are_stored(cls, tmp_path):
    X, y = data_of(cls)
    model = cls(n_nonzero_coefs=2).fit(X, y)
    ht.save(model, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.coef_, model.coef_)


def test_an_exchange_that_helps_is_found():
    """The certificate of a wrong support names the exchange that all refits by hand find best."""
    X, Y = regression_data(d=7)
    poor = SparseLinearRegression(n_nonzero_coefs=2, always_include=[0]).fit(X[:, [0, 2, 3]], Y)
    model = SparseLinearRegression(n_nonzero_coefs=2, always_include=[0]).fit(X, Y)
    coef = np.zeros((3, 7))
    coef[:, [0, 2, 3]] = poor.coef_
    model.coef_, model.intercept_, model.support_ = coef, poor.intercept_, np.array([0, 2, 3])
    certificate = model.certificate(X, Y)

    def value(columns):
        Z = np.column_stack([X[:, columns], np.ones(len(X))])
        return np.sum((Y - Z @ np.linalg.lstsq(Z, Y, rcond=None)[0]) ** 2) / (2 * len(X))

    tried = {(i, j): value([0, 5 - i, j]) for i in (2, 3) for j in (1, 4, 5, 6)}
    best = min(tried, key=tried.get)
    assert not certificate.swap_optimal
    assert certificate.exact
    assert certificate.best_swap == best
    assert_allclose(certificate.swap.decrease, value([0, 2, 3]) - tried[best], rtol=1e-8)


def test_an_exchange_of_groups_that_helps_is_found():
    """With groups it exchanges one whole group for another; a feature on request is in none."""
    X, Y = regression_data(d=9)
    groups = np.array([7, 3, 3, 2, 2, 1, 1, 0, 0])
    model = SparseLinearRegression(n_nonzero_groups=2, groups=groups, always_include=[0]).fit(X, Y)
    assert_array_equal(sorted(model.groups_), [1, 2])

    def fit(chosen):
        columns = np.flatnonzero(np.isin(groups, [7, *chosen]))
        found = LinearRegression().fit(X[:, columns], Y)
        return np.sum((Y - found.predict(X[:, columns])) ** 2) / (2 * len(X)), columns, found

    before, columns, poor = fit([2, 0])
    model.coef_, model.intercept_, model.support_ = np.zeros((3, 9)), poor.intercept_, columns
    model.coef_[:, columns] = poor.coef_
    certificate = model.certificate(X, Y)
    tried = {(i, j): fit([2 - i, j])[0] for i in (2, 0) for j in (3, 1)}
    best = min(tried, key=tried.get)
    assert not certificate.swap_optimal
    assert certificate.exact
    assert certificate.best_swap == tuple(3 - label for label in best)  # their numbers, in order of first appearance
    assert_allclose(certificate.swap.decrease, before - tried[best], rtol=1e-8)


def effective_size(model, X):
    """The trace of H (H + ridge)^-1 for the coefficients of all classes, whose sums change nothing."""
    Z = np.column_stack([((X - X.mean(axis=0)) / X.std(axis=0))[:, model.support_], np.ones(len(X))])
    P = model.predict_proba(X)
    hessian = sum(np.kron(np.outer(z, z), np.diag(p) - np.outer(p, p)) for z, p in zip(Z, P, strict=True)) / len(X)
    ridge = np.kron(np.diag([model._loss.default_ridge] * model.support_.size + [0.0]), np.eye(P.shape[1]))
    return np.trace(hessian @ np.linalg.pinv(hessian + ridge, hermitian=True))


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
def test_the_number_of_features_by_the_extended_bic(cls):
    """log n counts rows; a feature has a coefficient for each output, or one less than classes, which a ridge shrinks.

    Check 15.
    """
    X, y = data_of(cls)
    model = cls().fit(X, y)
    n, d = X.shape
    for k, found in zip(model.candidates_, model.criterion_path_, strict=True):
        fit = cls(n_nonzero_coefs=int(k)).fit(X, y)
        if cls is SparseLinearRegression:
            misfit, size = 3 * n * np.log(np.mean((y - fit.predict(X)) ** 2)), 3 * (k + 1)
        else:
            misfit, size = 2 * n * log_loss(y, fit.predict_proba(X)), effective_size(fit, X)
        choose = sum(np.log((d - i) / (i + 1)) for i in range(k))
        assert_allclose(found, misfit + size * np.log(n) + 2 * choose, rtol=1e-6)
    assert_array_equal(model.support_, [1, 3, 5])


# cross-validation: check 27


def folds_of(y):
    splitter = KFold(3, shuffle=True, random_state=0) if y.ndim == 2 else StratifiedKFold(3)
    return list(splitter.split(np.zeros((len(y), 1)), y))


@pytest.mark.slow
@pytest.mark.parametrize("cls", TWINS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_by_hand(cls, weighted):
    X, y = data_of(cls)
    plain = cls.__mro__[next(i for i, c in enumerate(cls.__mro__) if f"{c.__name__}CV" == cls.__name__)]
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    settings = {"alphas": [0.1], "averaging": "none", "cv": folds_of(y)}
    model = cls(n_nonzero_coefs=[0, 1, 3], **settings).fit(X, y, sample_weight=weight if weighted else None)
    for fold, (train, test) in enumerate(folds_of(y)):
        for row, k in enumerate([0, 1, 3]):
            fit = plain(n_nonzero_coefs=k, alpha=0.1).fit(X[train], y[train], sample_weight=weight[train])
            if y.ndim == 2:
                score = -mean_squared_error(y[test], fit.predict(X[test]), sample_weight=weight[test])
            else:
                score = -log_loss(y[test], fit.predict_proba(X[test]), sample_weight=weight[test])
            assert_allclose(model.scores_[row, fold], score, rtol=1e-6)
    assert model.scorer_name_ == ("neg_mean_squared_error" if y.ndim == 2 else "neg_log_loss")
    assert_array_equal(model.support_, [1, 3, 5])


@pytest.mark.slow
@pytest.mark.parametrize("cls", TWINS)
def test_the_default_score_is_that_of_the_scorer(cls):
    X, y = data_of(cls)
    settings = {"n_nonzero_coefs": 3, "cv": folds_of(y), "averaging": "none"}
    default = cls(**settings).fit(X, y)
    named = cls(scoring=default.scorer_name_, **settings).fit(X, y)
    assert_allclose(named.scores_, default.scores_, rtol=1e-10)
    assert_allclose(named.coef_, default.coef_)


@pytest.mark.parametrize("cls", TWINS)
def test_what_is_kept_of_held_out_rows(cls):
    X, y = data_of(cls)
    model = cls(n_nonzero_coefs=3, cv=folds_of(y)).fit(X, y)
    assert model.found_
    assert model.coefs_path_.shape == (4, 3, X.shape[1])
    assert model.selection_frequency_[[1, 3, 5]].min() == 1.0
    assert model.calibration_.shape == (3, 10, 3)
    assert_allclose(model.calibration_[:, :, 2].sum(axis=1), len(X))
    observed = np.nansum(model.calibration_[:, :, 1] * model.calibration_[:, :, 2], axis=1)
    assert_allclose(observed, y.sum(axis=0) if y.ndim == 2 else np.sum(y[:, None] == CLASSES, axis=0))
    scores = model.held_out_scores_
    assert all(np.isfinite(value) for value in scores.values())
    total = sum(part.weight for part in model.models_)
    assert_allclose(total, 1.0)
    assert {part.coef.shape[0] for part in model.models_} == {3}
    if y.ndim == 2:
        assert list(scores) == ["mean_squared_error", "r2"]
    else:
        assert list(scores) == ["log_loss", "d2", "accuracy", "balanced_accuracy"]
        assert scores["accuracy"] > 0.5


@pytest.mark.parametrize("cls", TWINS)
def test_held_out_scores_of_a_single_model_are_those_of_its_folds(cls):
    """With one candidate and one ridge nothing is averaged: the predictions are those of a fit to each fold."""
    X, y = data_of(cls)
    plain = next(c for c in cls.__mro__ if f"{c.__name__}CV" == cls.__name__)
    model = cls(n_nonzero_coefs=[3], alphas=0.1, averaging="none", cv=folds_of(y)).fit(X, y)
    u = np.empty((len(X), 3))
    for train, test in folds_of(y):
        fit = plain(n_nonzero_coefs=3, alpha=0.1).fit(X[train], y[train])
        u[test] = fit.predict(X[test]) if y.ndim == 2 else fit.predict_proba(X[test])
    scores = model.held_out_scores_
    if y.ndim == 2:
        assert_allclose(scores["mean_squared_error"], mean_squared_error(y, u), rtol=1e-6)
        assert_allclose(scores["r2"], r2_score(y, u), rtol=1e-6)
    else:
        shares = np.mean(y[:, None] == CLASSES, axis=0)
        assert_allclose(scores["log_loss"], log_loss(y, u), rtol=1e-6)
        assert_allclose(scores["d2"], 1 + log_loss(y, u) / (shares @ np.log(shares)), rtol=1e-6)
        assert_allclose(scores["accuracy"], np.mean(CLASSES[u.argmax(axis=1)] == y))


@pytest.mark.parametrize("cls", TWINS)
def test_nothing_is_found_in_noise(cls):
    rng = np.random.default_rng(4)
    X, (_, y) = rng.standard_normal((120, 8)), data_of(cls)
    model = cls(n_nonzero_coefs=3, cv=3).fit(X[: len(y)], rng.permutation(y)[: len(X)])
    assert not model.found_
    assert model.support_.size == 0


@pytest.mark.parametrize("cls", TWINS)
def test_an_average_is_made_by_stacking(cls):
    """No other weights of the same models have a lower held-out loss."""
    X, y = data_of(cls)
    model = cls(n_nonzero_coefs=3, alphas=[0.1, 1.0], averaging="stacking", cv=folds_of(y)).fit(X, y)
    assert model.averaging_ == "stacking"
    assert_allclose(sum(part.weight for part in model.models_), 1.0)
    single = cls(n_nonzero_coefs=3, alphas=[0.1, 1.0], averaging="none", cv=folds_of(y)).fit(X, y)
    name = next(iter(model.held_out_scores_))
    assert model.held_out_scores_[name] <= single.held_out_scores_[name] * (1 + 1e-3)


def test_folds_have_rows_of_every_class():
    X, y = class_data()
    rare = np.flatnonzero(y == "cedar")
    folds = [(np.setdiff1d(np.arange(len(y)), rare), rare)]
    with pytest.raises(InvalidInputError, match="fold 0 of cv trains on rows without the class 'cedar'"):
        SparseLogisticRegressionCV(cv=folds).fit(X, y)


# names


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("cls", [SparseLinearRegression, SparseLinearRegressionCV])
def test_outputs_have_the_names_of_the_columns_of_y(cls, library, tmp_path):
    frames = pytest.importorskip(library)
    X, Y = regression_data()
    settings = {"cv": 3, "n_nonzero_coefs": [1, 3]} if cls is SparseLinearRegressionCV else {"n_nonzero_coefs": 3}
    model = cls(**settings).fit(X, frames.DataFrame(dict(zip(NAMES, Y.T, strict=True))))
    assert_array_equal(model.coef_, cls(**settings).fit(X, Y).coef_)
    assert_array_equal(model.output_names_, NAMES)
    summary = model.summary()
    assert summary.facts.outputs == tuple(NAMES)
    assert summary.to_frame().attrs["outputs"] == NAMES
    assert all(name in str(summary) for name in NAMES)
    if cls is SparseLinearRegressionCV:
        calibrations = summary.facts.cross_validation.calibrations
        assert [one.predicted for one in calibrations] == [f"predicted {name}" for name in NAMES]
    ht.save(model, tmp_path / "model.json")
    assert_array_equal(ht.load(tmp_path / "model.json").output_names_, NAMES)


def test_names_of_outputs_are_those_of_the_last_fit():
    pandas = pytest.importorskip("pandas")
    X, Y = regression_data()
    model = SparseLinearRegression(n_nonzero_coefs=3).fit(X, pandas.DataFrame(Y, columns=NAMES))
    for unnamed in (Y, pandas.DataFrame(Y)):
        assert not hasattr(model.fit(X, unnamed), "output_names_")
        assert model.summary().facts.outputs == ("output 0", "output 1", "output 2")
        model.fit(X, pandas.DataFrame(Y, columns=NAMES))


@pytest.mark.parametrize("names", [["gain", "loss"], "gain"])
def test_another_number_of_names_than_outputs_is_not_sound(names, tmp_path):
    X, Y = regression_data()
    model = SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y)
    model.output_names_ = np.array(names, dtype=object)
    with pytest.raises(StorageError, match=r"output_names_ has shape .*; \(3,\) is needed"):
        ht.save(model, tmp_path / "model.json")


def test_more_outputs_than_fit_on_a_line_have_no_columns():
    X, Y = regression_data(q=7)
    facts = [SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y[:, :q]).summary().facts for q in (6, 7)]
    assert [len(one.outputs) for one in facts] == [6, 7]
    assert [len(one.listed_outputs) for one in facts] == [6, 0]
