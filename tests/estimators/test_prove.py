"""Proofs that are asked from fitted models: about their data, their names and their coefficients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.solvers import BranchAndBound
from levels import inherited


def data(n=60, d=12):
    rng = np.random.default_rng(25)
    X = rng.standard_normal((n, d))
    return X, X[:, 1] - X[:, 4] + 0.5 * X[:, 7] + rng.standard_normal(n)


def test_every_model_has_a_proof_or_a_bound_or_says_why(case):
    X, y = case.data()
    model = case.make(alpha=0.1).fit(X, y)
    before = dict(vars(model))
    proof = model.prove(progress=False)
    assert proof.value == pytest.approx(model.certificate().value)
    if proof.lower_bound is None:
        assert proof.status == "no bound"
    else:
        assert model.certificate().lower_bound <= proof.upper_bound * (1 + 1e-9) + 1e-9 * abs(proof.upper_bound)
        assert proof.lower_bound <= proof.upper_bound
    assert {name: vars(model)[name] for name in before if name != "_certificate"} == {
        name: value for name, value in before.items() if name != "_certificate"
    }


@pytest.mark.filterwarnings("ignore:1 sparse column:UserWarning")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("mean", "deviation"), [(1e6, 1e3), (1.6e9, 1e3)])
def test_a_large_mean_does_not_hide_a_column(mean, deviation, sparse):
    """A time stamp: its centred Gram matrix has lost up to all but two digits of its square."""
    rng = np.random.default_rng(28)
    X = rng.standard_normal((200, 6))
    X[:, 0] = mean + deviation * X[:, 0]
    y = (X[:, 0] - mean) / deviation + X[:, 3] + 0.1 * X[:, 5]
    centred = X - X.mean(axis=0)
    target = y - y.mean()
    explained = (centred.T @ target) ** 2 / np.sum(centred**2, axis=0)
    best = 0.5 * (target @ target - explained.max()) / 200
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, alpha=0.0).fit(csr_array(X) if sparse else X, y)
    proof = model.prove()
    assert proof.lower_bound <= best * (1 + 1e-9)
    assert sparse or (proof.proved and proof.lower_bound >= best * (1 - 1e-8))


def test_a_proof_about_given_data_is_that_of_the_training_data(tmp_path):
    X, y = data()
    weight, offset = np.arange(60) % 3 + 0.5, np.linspace(-1.0, 1.0, 60)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, always_include=[0]).fit(X, y, weight, offset)
    own = model.prove()
    ht.save(model, tmp_path / "model.json")
    again = ht.load(tmp_path / "model.json")
    assert own.proved
    assert_allclose(again.prove(X, y, weight, offset).lower_bound, own.lower_bound, rtol=1e-9)
    with pytest.raises(
        HardThreshError, match=r"does not carry its training data, .* prove\(X, y\) or inference\(X, y\)"
    ):
        again.prove()
    with pytest.raises(InvalidInputError, match="give X and y, too"):
        model.prove(sample_weight=weight)


def test_a_proof_goes_on_with_its_own_data_and_settings_only(tmp_path):
    """Also from a file; the objective of the model is the same where a column that it does not use is another."""
    X, y = data()
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, alpha=0.1).fit(X, y)
    ht.save(model.prove(time_limit=1e-6), tmp_path / "proof.json")
    proof = ht.load(tmp_path / "proof.json")
    unused = np.setdiff1d(np.arange(12), model.support_)[0]
    other = X.copy()
    other[:, unused] = y
    assert model.prove(X, y, resume=proof).proved
    assert model.prove(X, y, np.full(60, 2.0), resume=proof).proved  # only ratios of weights count

    def refit(**settings):
        return ht.SparseLinearRegression(**({"n_nonzero_coefs": 3, "alpha": 0.1} | settings)).fit(X, y)

    for name, ask in {
        "other data": lambda: model.prove(other, y, resume=proof),
        "weights": lambda: model.prove(X, y, 1.0 + np.arange(60) % 2, resume=proof),
        "of k = 3, not of k = 4": lambda: refit(n_nonzero_coefs=4).prove(resume=proof),
        "another ridge": lambda: refit(alpha=0.2).prove(resume=proof),
        "among 12 features, not 11": lambda: refit(always_include=[0]).prove(resume=proof),
        "another intercept": lambda: refit(fit_intercept=False).prove(resume=proof),
    }.items():
        with pytest.raises(InvalidInputError, match=f"this proof is .*{name}"):
            ask()


def test_a_better_set_has_the_names_and_coefficients_of_the_data():
    """The model is made worse by hand; what the proof finds instead is what an exact fit gives."""
    pandas = pytest.importorskip("pandas")
    X, y = data()
    X = 3.0 * X + 5.0
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    exact = ht.SparseLinearRegression(n_nonzero_coefs=3, solver="exact").fit(frame, y)
    other = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(frame, y)
    other.coef_ = np.where(np.isin(np.arange(12), [9, 10, 11]), 1e-3, 0.0)
    other.intercept_ = float(y.mean())
    proof = other.prove(frame, y)
    assert proof.features == tuple(f"gene {j}" for j in exact.support_)
    assert_allclose(proof.coef, exact.coef_, rtol=1e-8)
    assert proof.intercept == pytest.approx(exact.intercept_)
    assert proof.upper_bound == pytest.approx(exact.objective_)
    assert not exact.prove().found_better


def test_an_exact_fit_is_proved():
    """Its certificate and its summary have the bound of the search, which is above that of the relaxation."""
    X, y = data(30, 12)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, alpha=0.01, solver="exact").fit(X, y)
    assert model.converged_
    assert "no support has a value below this one: proved to" in model.stop_reason_
    assert ht.SparseLinearRegression(n_nonzero_coefs=3, alpha=0.01).fit(X, y).certificate().gap > 1e-3
    certificate = model.certificate()
    assert certificate.proved
    assert certificate.lower_bound <= certificate.value
    assert model.summary().gap == certificate.gap <= 1e-6
    assert model.certificate(X, y).gap > 1e-3  # of given data only the relaxation is known
    assert model.prove().proved


def test_a_fit_with_a_time_limit_says_what_is_left_to_prove():
    rng = np.random.default_rng(31)
    X = rng.standard_normal((30, 40))
    y = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(30)
    exact = BranchAndBound(time_limit=1e-9)
    model = ht.SparseLinearRegression(n_nonzero_coefs=5, alpha=0.05, solver=exact)
    with pytest.warns(ConvergenceWarning, match=r"ended at its time limit, .* with \d+ % of the objective left to"):
        model.fit(X, y)
    assert not model.converged_
    assert model.n_nonzero_coefs_ == 5
    assert 0.0 < model.certificate().gap < 1.0


def test_categorical_columns_are_called_features():
    """Their indicators are a group of columns, which users gave no groups for."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(34)
    frame = pandas.DataFrame({"a": rng.standard_normal(80), "b": rng.standard_normal(80)})
    frame["c"] = pandas.Categorical(rng.choice(list("xyz"), 80))
    y = frame["a"] + (frame["c"] == "x") + rng.standard_normal(80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.5).fit(frame, y)
    assert model.certificate().unit == "feature"
    assert "group" not in str(model.certificate())
    assert "categorical features" in model.prove().reason


@inherited
def test_the_proof_of_an_average_is_about_the_best_single_model():
    X, y = data()
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=range(6), averaging="exponential", cv=3).fit(X, y)
    assert len(model.models_) > 1
    proof = model.prove()
    assert proof.subject.startswith("the best single model (k = ")
    assert str(proof).startswith("About the best single model")


def test_strata_belong_to_the_data():
    rng = np.random.default_rng(26)
    X = rng.standard_normal((60, 8))
    y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(60) < 0.8])
    strata = np.arange(60) % 2
    model = ht.SparseCoxRegression(n_nonzero_coefs=2, alpha=0.05).fit(X, y, strata=strata)
    own, given = model.prove(), model.prove(X, y, strata=strata)
    assert own.lower_bound == pytest.approx(given.lower_bound)
    assert own.lower_bound < own.value < 0.0
    assert 0.0 < own.gap < 0.5
