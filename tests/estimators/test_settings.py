"""Every setting does what it says."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.registry import registered
from hardthresh.core.result import History
from hardthresh.solvers import IHT, HardThresholdingPursuit
from levels import inherited, slow_beyond


def flat(model):
    return np.reshape(model.coef_, -1)


# the fit against SciPy's, on the chosen columns


def minimiser(case, Z, y, alpha, weight=None, fit_intercept=True):
    """Coefficients and intercept that minimise the mean loss of some columns, plus a ridge, by SciPy.

    That the mean loss is what scikit-learn calls so, its scorers tell in the tests of losses.
    """
    y, weight = case.numbers(y), np.full(y.size, 1 / y.size) if weight is None else weight / weight.sum()
    columns = np.column_stack([Z, np.ones(y.size)]) if fit_intercept else Z
    ridge = np.append(np.full(Z.shape[1], alpha), [0.0] * fit_intercept)
    found = minimize(
        lambda w: weight @ case.loss.value(y, columns @ w) + ridge @ w**2 / 2,
        np.zeros(columns.shape[1]),
        jac=lambda w: columns.T @ (weight * case.loss.gradient(y, columns @ w)) + ridge * w,
        hess=lambda w: (columns.T * (weight * case.loss.curvature(y, columns @ w))) @ columns + np.diag(ridge),
        method="trust-exact",
        options={"gtol": 1e-11},
    )
    return found.x[: Z.shape[1]], found.x[-1] if fit_intercept else 0.0


def reference(case, X, y, alpha, model, weight=None, fit_intercept=True):
    """The minimiser on the standardised chosen columns, back on the scale of the data."""
    mean = np.average(X, axis=0, weights=weight) if fit_intercept else np.zeros(X.shape[1])
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = ((X - mean) / scale)[:, model.support_]
    coef, intercept = minimiser(case, Z, y, alpha, weight, fit_intercept)
    coef = coef / scale[model.support_]
    return coef, intercept - coef @ mean[model.support_]


@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_coefficients_minimise_the_mean_loss_of_the_chosen_columns(case, alpha, weighted, fit_intercept):
    X, y = case.data(n=120, noise=1.0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else None
    model = case.single(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12).fit(X, y, sample_weight=weight)
    coef, intercept = reference(case, X, y, alpha, model, weight, fit_intercept)
    assert_allclose(flat(model)[model.support_], coef, rtol=1e-4)
    assert_allclose(model.intercept_, intercept if fit_intercept else 0.0, rtol=1e-4, atol=1e-8)
    assert np.all(np.delete(flat(model), model.support_) == 0.0)


def test_without_standardising_the_ridge_is_on_the_coefficients_themselves(plain):
    X, y = plain.data(n=120)
    model = plain.make(standardize=False, alpha=0.1, tol=1e-12).fit(X, y)
    coef, intercept = minimiser(plain, X[:, model.support_], y, 0.1)
    assert_allclose(flat(model)[model.support_], coef, rtol=1e-4)
    assert_allclose(model.intercept_, intercept, rtol=1e-4)
    assert_allclose(model.scale_, 1.0)


@inherited
def test_the_scale_is_the_standard_deviation(case):
    X, y = case.data()
    weight = np.random.default_rng(0).uniform(0, 2, y.size)
    assert_allclose(case.make().fit(X, y).scale_, X.std(axis=0), rtol=1e-12)
    spread = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
    assert_allclose(case.make().fit(X, y, sample_weight=weight).scale_, spread, rtol=1e-12)


def test_the_objective_is_what_the_docstring_says(plain):
    X, y = plain.data()
    weight, offset = np.linspace(0, 2, y.size), np.linspace(-1, 1, y.size)
    model = plain.make(alpha=0.3).fit(X, y, sample_weight=weight, offset=offset)
    u = X @ flat(model) + model.intercept_ + offset
    loss = np.average(plain.loss.value(plain.numbers(y), u), weights=weight)
    ridge = 0.15 * np.sum((model.scale_ * flat(model)) ** 2)
    assert_allclose(model.objective_, loss + ridge, rtol=1e-9)


# convergence


def test_stopping_early_is_said(plain):
    X, y = plain.data(noise=2.0)
    with pytest.warns(ConvergenceWarning, match="limit of iterations was reached before convergence; raise max_iter"):
        model = plain.make(max_iter=1, solver="pursuit").fit(X, y)
    assert model.converged_ is False
    assert "raise max_iter" in model.stop_reason_
    assert model.n_iter_ == 1
    assert np.all(np.isfinite(model.coef_))


@inherited
def test_convergence_is_said(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    assert model.converged_ is True
    assert "nothing left to improve" in model.stop_reason_
    assert isinstance(model.history_, History)
    assert model.history_["value"].size == model.n_iter_ + 1
    assert np.all(np.diff(model.history_["value"]) <= 0)
    assert_allclose(model.history_["value"][-1], model.objective_)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_perfect_separation_warns_and_stays_finite(probabilistic, k):
    X, _ = probabilistic.data()
    y = X[:, 4] > np.median(X[:, 4])
    settings = {"n_nonzero_coefs": [k]} if probabilistic.chooses else {}
    with pytest.warns(ConvergenceWarning) as caught:
        model = probabilistic.make(k=k, alpha=0.0, **settings).fit(X, y)
    assert re.search("classes are separated perfectly.*alpha", str(caught[-1].message))
    assert 4 in model.support_
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.predict_log_proba(X)[np.arange(y.size), y.astype(int)]))
    assert_array_equal(model.predict(X), y)


def test_the_feature_whose_coefficient_grows_for_ever_is_named(probabilistic):
    """A dummy variable that is on for one class only; the other columns do not separate the classes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((300, 3)), columns=["age", "height", "relapsed"])
    ill = X["age"] + rng.standard_normal(300) > 0
    X["relapsed"] = (ill & (rng.random(300) < 0.3)).astype(float)
    settings = {"n_nonzero_coefs": [2], "cv": 2} if probabilistic.chooses else {}
    with pytest.warns(ConvergenceWarning) as caught:
        model = probabilistic.make(k=2, alpha=0.0, **settings).fit(X, ill)
    assert str(caught[-1].message).endswith("Growing without bound: the coefficient of relapsed")
    assert not model.converged_
    assert not model.separated_


def test_the_default_ridge_keeps_separated_classes_quiet(classifier):
    X, _ = classifier.data()
    y = X[:, 4] > np.median(X[:, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier.single(**({"n_nonzero_coefs": [3]} if classifier.chooses else {})).fit(X, y)
    assert model.converged_
    assert_array_equal(model.predict(X), y)


@inherited
@pytest.mark.parametrize("k", [3, 5, 12])
def test_a_perfect_fit(case, k):
    if case.loss.classifies:
        pytest.skip("classes that are separated are tested above")
    X, _ = case.data()
    y = case.loss.mean(case.gain * (3.0 * X[:, 1] - 2.0 * X[:, 4] + 0.5 * X[:, 7] + 7.0))
    model = case.make(k=k).fit(X, y)
    assert {1, 4, 7} <= set(model.support_.tolist())
    assert_allclose(model.predict(X), y, rtol=1e-6)
    assert_allclose(flat(model)[[1, 4, 7]], case.gain * np.array([3.0, -2.0, 0.5]), rtol=1e-6)
    assert model.converged_


@inherited
def test_a_target_without_variation(case):
    if case.loss.classifies:
        pytest.skip("one class is refused")
    X, y = case.data()
    model = case.make().fit(X, np.full_like(y, 5.0))
    assert_allclose(model.predict(X), 5.0)
    assert np.all(np.isfinite(model.coef_))


# settings of the set


def used(model):
    """Count the features with coefficients, without the included ones."""
    return np.setdiff1d(np.flatnonzero(flat(model)), model.always_include or []).size


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* constant column")
@pytest.mark.parametrize("always", [None, [11], [0, 11]])
def test_the_number_of_features_is_that_of_the_model(case, always):
    X, y = case.data()
    two = X.copy()
    two[:, 1:-2] = 1.0
    copies = np.repeat(X[:, 1:3], 6, axis=1)
    for table in (X, two, copies):
        for k in (0, 3, 12):
            model = case.make(n_nonzero_coefs=[k] if case.chooses else k, always_include=always).fit(table, y)
            assert model.n_nonzero_coefs_ == used(model) <= k
            if case.chooses:
                assert model.best_n_nonzero_coefs_ == k
    assert case.make(n_nonzero_coefs=[5] if case.chooses else 5).fit(two, y).n_nonzero_coefs_ <= 3


def test_a_perfect_fit_by_fewer_features_than_chosen(chooser):
    if not chooser.loss.quadratic:
        pytest.skip("only the tableau of least squares sees, before all are chosen, that fewer fit perfectly")
    X, _ = chooser.data()
    model = chooser.make(n_nonzero_coefs=[3, 4]).fit(X, 3.0 * X[:, 1])
    assert (model.best_n_nonzero_coefs_, model.n_nonzero_coefs_, model.support_.tolist()) == (3, 1, [1])


def test_included_columns_are_not_counted(case):
    X, y = case.data()
    model = case.make(k=3, always_include=[0, 11]).fit(X, y)
    assert {0, 11} <= set(model.support_.tolist())
    assert model.support_.size == model.n_nonzero_coefs_ + 2
    assert {0, 11}.isdisjoint(set(model.support_.tolist()) - {0, 11})
    alone = case.make(n_nonzero_coefs=[0] if case.chooses else 0, always_include=[0, 11]).fit(X, y)
    assert_array_equal(alone.support_, [0, 11])


def test_included_columns_are_not_penalised(plain):
    X, y = plain.data()
    free = plain.make(k=0, always_include=[1, 4, 7], alpha=100.0, tol=1e-12).fit(X, y)
    none = plain.make(k=0, always_include=[1, 4, 7], alpha=0.0, tol=1e-12).fit(X, y)
    assert_allclose(free.coef_, none.coef_, rtol=1e-9)
    chosen = plain.make(k=3, alpha=100.0).fit(X, y)
    assert np.all(np.abs(flat(chosen)) < 0.1 * np.max(np.abs(flat(free))))


@inherited
def test_included_columns_may_be_given_in_any_way(case):
    X, y = case.data()
    expected = case.make(k=2, always_include=[3, 8]).fit(X, y)
    for given in ((8, 3), [3, 8, 3], np.array([8, 3]), {3, 8}, range(3, 9, 5)):
        assert_array_equal(case.make(k=2, always_include=given).fit(X, y).coef_, expected.coef_)
    nothing = case.make(k=2).fit(X, y)
    assert_array_equal(case.make(k=2, always_include=[]).fit(X, y).coef_, nothing.coef_)


@inherited
def test_a_coefficient_that_is_positive_or_zero(case):
    X, y = case.data(n=120)
    X[:, 4] *= -1  # the effects of 1, 4 and 7 are positive now
    six = {"n_nonzero_coefs": [6] if case.chooses else 6}
    free, bound = (case.single(**six, positive=positive).fit(X, y) for positive in (False, True))
    assert np.any(flat(free) < 0), "the data of this test tell the settings apart"
    assert np.all(flat(bound) >= 0)
    assert {1, 4, 7} <= set(bound.support_.tolist())
    if not case.chooses:
        feasible = case.make(k=12, positive=True).fit(X, y).support_.size
        for k in range(1, 8):
            assert case.make(k=k, positive=True).fit(X, y).support_.size == min(k, feasible)


def test_bounds_are_part_of_the_fit_and_not_an_afterthought(plain):
    """All columns allowed: non-negative least squares, whose answer is known."""
    if not plain.loss.quadratic:
        pytest.skip("there is no other implementation to compare with")
    X, y = plain.data(n=120, noise=1.0)
    model = plain.make(k=12, positive=True, tol=1e-12).fit(X, y)
    expected, _ = nnls(X - X.mean(axis=0), y - y.mean())
    assert_allclose(model.coef_, expected, rtol=1e-5, atol=1e-8)


@inherited
def test_the_intercept_is_not_bounded_but_included_columns_are(case):
    X, y = case.data(n=120, level=-15.0)
    low = case.make(k=2, positive=True, always_include=[4]).fit(X, y)  # the effect of 4 is negative
    assert flat(low)[4] == 0.0
    assert 4 in low.support_
    assert case.loss.classifies or low.intercept_ < 0.0


# offset


def test_an_offset_is_a_column_with_a_known_coefficient(case):
    """Fit with the offset 2 x_0: the same as an included x_0 whose coefficient came out as 2 larger."""
    X, y = case.data(n=150, noise=1.0)
    settings = {"alpha": 0.0, "always_include": [0], "tol": 1e-12}
    without = case.make(**settings).fit(X, y)
    known = case.make(**settings).fit(X, y, offset=2.0 * X[:, 0])
    shift = np.eye(12)[0] * 2.0
    assert_array_equal(known.support_, without.support_)
    assert_allclose(flat(known) + shift, flat(without), rtol=1e-4, atol=1e-6)
    assert_allclose(known.objective_, without.objective_, rtol=1e-9)
    there, here = case.scores(known)(X, offset=2.0 * X[:, 0]), case.scores(without)(X)
    assert_allclose(there, here, rtol=1e-4, atol=1e-5)


@inherited
def test_a_number_is_an_offset_for_all_rows(case):
    X, y = case.data()
    here, there = case.make().fit(X, y), case.make().fit(X, y, offset=3.0)
    assert_allclose(there.coef_, here.coef_, rtol=1e-5)
    assert_allclose(there.intercept_, here.intercept_ - 3.0, rtol=1e-5)
    assert_allclose(case.scores(there)(X, offset=3.0), case.scores(here)(X), rtol=1e-4, atol=1e-6)


def test_every_prediction_takes_the_offset(probabilistic):
    X, y = probabilistic.data()
    model = probabilistic.make().fit(X, y)
    offset = np.linspace(-9, 9, y.size)
    u = X @ flat(model) + model.intercept_ + offset
    assert_allclose(model.decision_function(X, offset=offset), u, rtol=1e-9)
    assert_allclose(model.predict_proba(X, offset=offset)[:, 1], 1 / (1 + np.exp(-u)), rtol=1e-9)
    assert_allclose(model.predict_log_proba(X, offset=offset)[:, 0], -np.logaddexp(0, u), rtol=1e-9)
    assert_array_equal(model.predict(X, offset=offset), np.where(u > 0, "well", "ill"))


# solvers


@slow_beyond(5)
@pytest.mark.parametrize("name", [*(name for name in registered("solver") if name != "stochastic"), "auto"])
def test_every_solver_by_name(plain, name):
    X, y = plain.data()
    if name == "exact" and not plain.loss.quadratic:
        with pytest.raises(CapabilityError, match="needs a quadratic objective"):
            plain.make(solver=name).fit(X, y)
        return
    model = plain.make(solver=name).fit(X, y)
    assert model.converged_
    assert np.count_nonzero(model.coef_) == 3
    assert_array_equal(model.support_, [1, 4, 7])


def test_a_solver_that_needs_settings_cannot_be_asked_for_by_name(plain):
    X, y = plain.data()
    with pytest.raises(InvalidInputError, match=r"needs settings of its own \(step\); give .* StochasticIHT\(step="):
        plain.make(solver="stochastic").fit(X, y)


@inherited
@pytest.mark.parametrize("solver", [IHT(), HardThresholdingPursuit()], ids=lambda solver: type(solver).__name__)
def test_a_solver_as_an_object_is_used_and_left_as_it_is(case, solver):
    X, y = case.data()
    before = repr(solver)
    model = case.make(solver=solver).fit(X, y)
    assert model.solver is solver
    assert repr(solver) == before
    assert_array_equal(model.coef_, case.make(solver=type(solver)()).fit(X, y).coef_)


def test_a_smaller_tolerance_is_a_better_answer(plain):
    X, y = plain.data(noise=2.0)
    rough, fine = (plain.make(tol=tol, solver="iht").fit(X, y) for tol in (1e-1, 1e-10))
    assert rough.n_iter_ < fine.n_iter_
    assert fine.objective_ <= rough.objective_


def test_a_warm_start_starts_there(plain):
    X, y = plain.data(noise=2.0)
    model = plain.make(k=5, warm_start=True).fit(X, y)
    first = model.coef_.copy()
    cold = model.history_["value"][0]
    model.fit(X, y)
    assert model.history_["value"][0] < cold
    assert_allclose(model.history_["value"][0], model.objective_, rtol=1e-6)
    assert_allclose(model.coef_, first, rtol=1e-5)
    again = plain.make(k=5).fit(X, y)
    assert again.history_["value"][0] == again.fit(X, y).history_["value"][0] == cold


def test_a_warm_start_takes_a_smaller_budget(plain):
    X, y = plain.data(noise=2.0)
    model = plain.make(k=8, warm_start=True).fit(X, y)
    model.set_params(n_nonzero_coefs=2).fit(X, y)
    assert np.count_nonzero(model.coef_) <= 2


def test_a_warm_start_with_other_columns_is_refused(plain):
    X, y = plain.data()
    model = plain.make(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start: the last fit had 12 features, X has 7"):
        model.fit(X[:, :7], y)


@pytest.mark.slow
def test_a_fit_forgets_the_one_before(case):
    X, y = case.data()
    other, target = case.data(d=7, seed=5)
    model = case.make().fit(other, target)
    model.certificate()
    assert_array_equal(model.fit(X, y).coef_, case.make().fit(X, y).coef_)
    assert model.certificate().value == pytest.approx(model.objective_)


@inherited
@pytest.mark.parametrize("state", [None, 0, 7, np.random.RandomState(3)])
def test_the_default_solver_draws_no_random_numbers(case, state):
    X, y = case.data()
    assert_array_equal(case.make(random_state=state).fit(X, y).coef_, case.make().fit(X, y).coef_)


@inherited
def test_fitting_leaves_the_global_random_state_alone(case):
    X, y = case.data()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the legacy state is what must not change
    case.make().fit(X, y)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@inherited
def test_progress_goes_to_standard_error(case, capfd):
    pytest.importorskip("rich", reason="rich is not installed")
    X, y = case.data()
    quiet = case.make().fit(X, y)
    assert capfd.readouterr() == ("", "")
    loud = case.make(verbose=True).fit(X, y)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err != ""
    assert_array_equal(loud.coef_, quiet.coef_)


@inherited
def test_coefficients_that_overflow_are_refused(case):
    X, y = case.data()
    if case.loss.classifies:
        pytest.skip("classes have no size")
    with pytest.raises(InvalidInputError, match="are so small that their squares underflow; rescale it"):
        case.make().fit(X * 1e-160, y)
    small = (X * np.where(np.arange(X.shape[1]) == 2, 1e-24, 1.0)).astype("f4")
    message = (
        r"feature 2 \(counted from 0\) are so small that its coefficient may leave the range of float32; rescale it"
    )
    with pytest.raises(InvalidInputError, match=message):
        case.make().fit(small, (y * 1e13).astype("f4"))
