"""The certificate of a model: about the training data while they are there, about any data that are given."""

import copy
import gc
import pickle
import re
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import hardthresh as ht
from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.report import write_report
from levels import at_most

WAYS = {
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, folder: copy.copy(model),
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "save": lambda model, folder: (ht.save(model, folder / "m.json"), ht.load(folder / "m.json"))[1],
}


def assert_agree(one, other):
    """Two certificates of the same point, computed from the same data with another rounding."""
    assert (one.best_swap, one.exact, one.fitted, one.unit) == (other.best_swap, other.exact, other.fitted, other.unit)
    assert (one.removed_name, one.added_name) == (other.removed_name, other.added_name)
    for name in ("value", "smallest_L", "smoothness"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)
    assert_allclose(one.swap.decrease, other.swap.decrease, rtol=1e-6)
    assert_allclose(one.swap.tolerance, other.swap.tolerance, rtol=1e-6)
    assert_allclose(one.stationarity.gradient_scale, other.stationarity.gradient_scale, rtol=1e-6)
    assert one.swap_optimal == other.swap_optimal
    assert one.is_stationary() == other.is_stationary()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_computed_certificates_are_saved_and_copied(case, way, tmp_path):
    X, y = case.data()
    model = case.make().fit(X, y)
    without = WAYS[way](model, tmp_path)
    with pytest.raises(HardThreshError, match=r"give them again, as in certificate\(X, y\)"):
        without.certificate()
    certificate = model.certificate()
    assert WAYS[way](model, tmp_path).certificate() == certificate
    assert not hasattr(clone(model), "coef_")
    assert clone(model)._certificate is None
    assert_agree(WAYS[way](model, tmp_path).fit(X, y[::-1]).certificate(), clone(model).fit(X, y[::-1]).certificate())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_certificate_of_the_training_data_is_that_of_the_fit(case, way, tmp_path):
    X, y = case.data()
    rows = {"sample_weight": np.arange(60) % 3, "offset": np.linspace(-0.5, 0.5, 60)}
    model = case.make(always_include=[2]).fit(X, y, **rows)
    again = WAYS[way](model, tmp_path)
    assert_agree(again.certificate(X, y, **rows), model.certificate())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"alpha": 0.1}, {"standardize": False}, {"fit_intercept": False}, {"positive": True}]
)
def test_so_it_is_with_other_settings(case, settings):
    X, y = case.data()
    model = case.make(**settings).fit(X, y)
    assert_agree(model.certificate(X, y), model.certificate())


def test_so_it_is_with_groups():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 9))
    y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(60)
    labels = list("aaabbbccd")
    model = ht.SparseLinearRegression(groups=labels, n_nonzero_groups=1).fit(X, y)
    certificate = model.certificate(X, y)
    assert_agree(certificate, model.certificate())
    assert certificate.removed_name == "a"


@pytest.mark.slow
@at_most(1)
def test_so_it_is_with_sparse_and_single_precision_tables(case):
    X, y = case.data()
    for table in (scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)):
        model = case.make().fit(table, y)
        assert_agree(model.certificate(table, y), model.certificate())
    single = case.make().fit(X.astype("f4"), y)
    assert single.certificate(X.astype("f4"), y).best_swap == single.certificate().best_swap


def test_it_is_about_the_data_that_are_given():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, X[:, 0] - X[:, 1])
    other = X[:, 0] - X[:, 2]
    certificate = model.certificate(X, other)
    assert_allclose(certificate.value, 0.5 * np.mean((model.predict(X) - other) ** 2))
    assert not certificate.fitted
    assert certificate.best_swap == (1, 2)
    assert not certificate.swap_optimal


@pytest.mark.slow
def test_giving_data_changes_nothing(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    before = model.certificate()
    attributes = dict(vars(model))
    model.certificate(X[::-1], y)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is value for name, value in attributes.items())
    assert model.certificate() is before


@at_most(3)
def test_the_questions_can_be_asked_in_any_order(case):
    X, y = case.data()
    first, last = case.make().fit(X, y), case.make().fit(X, y)
    before = first.alternatives()
    assert_agree(first.certificate(), last.certificate())
    assert last.summary().to_dict() == first.summary().to_dict()
    assert last.alternatives() == before


@pytest.mark.slow
@at_most(3)
def test_the_data_are_let_go_with_the_model(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    data = weakref.ref(X)
    other = copy.deepcopy(model)
    del X, model
    gc.collect()
    assert data() is None
    assert other.predict(case.data()[0]).shape == y.shape


def test_data_that_were_changed_in_place_are_noticed(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    X[:, model.support_[0]] *= 1.01
    with pytest.raises(HardThreshError, match="changed in place"):
        model.certificate()


@pytest.mark.parametrize("seed", range(5))
def test_data_that_were_not_changed_are_not_said_to_be(seed):
    """Where the included columns fit perfectly, every gradient is rounding."""
    rng = np.random.default_rng(seed)
    X = 10.0**seed * rng.standard_normal((20, 5)) + 7.0
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, always_include=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] / 3.0 - X[:, 1])
    assert model.certificate().fitted


def far_from_zero(far, n=20):
    """All columns are included and have large means: the gradient at the null model is rounding."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 3))
    return Z + far, Z[:, 0] + 0.1 * rng.standard_normal(n)


def all_included(kind=ht.SparseLinearRegression):
    return kind(n_nonzero_coefs=0, always_include=[0, 1, 2])


def untouched_linear():
    return all_included().fit(*far_from_zero(1e4))


def untouched_linear_very_far():
    return all_included().fit(*far_from_zero(1e8))


def untouched_sparse():
    X, y = far_from_zero(1e4)
    return all_included().fit(scipy.sparse.csc_array(X), y)


def untouched_logistic():
    X, y = far_from_zero(1e4, 500)
    return all_included(ht.SparseLogisticRegression).fit(X, y > 0)


def untouched_float32():
    X = [[99.98751, 99.99828, 100.01081], [100.00518, 100.00161, 100.11839], [99.99567, 100.0006, 99.95285]]
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, solver="pursuit")
    return model.fit(np.array(X, dtype=np.float32), np.array([-1.71, 0.16, 1.54]))


def untouched_estimate():
    """The solver ends with an estimate of the gradient, from some of the rows."""
    rng = np.random.default_rng(0)
    X = 1000.0 * rng.integers(-3, 4, (60, 2))
    return ht.SparseLinearRegression(n_nonzero_coefs=1, solver="probabilistic", tol=0.01).fit(
        X, rng.standard_normal(60)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "fitted",
    [
        untouched_linear,
        untouched_linear_very_far,
        untouched_sparse,
        untouched_logistic,
        untouched_float32,
        untouched_estimate,
    ],
)
def test_rounding_is_not_taken_for_a_change_of_the_data(fitted):
    assert np.isfinite(fitted().certificate().value)


@pytest.mark.filterwarnings("ignore:1 sparse column")
@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_change_of_a_single_entry_is_noticed(far, storage, standardize):
    X, y = far_from_zero(far)
    X = storage(X * np.array([1.0, 1e-20, 1e20]))
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, standardize=standardize).fit(X, y)
    X[7, 1] += 0.1 * 1e-20
    with pytest.raises(HardThreshError, match="changed in place"):
        model.certificate()


def test_a_change_of_a_target_is_noticed():
    X, y = far_from_zero(1.0)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    y[3] += 1e-3
    with pytest.raises(HardThreshError, match="changed in place"):
        model.certificate()


def test_a_chosen_column_that_is_constant_in_these_data_is_named(case):
    X, y = case.data()
    model = case.single().fit(X, y)
    X[:, model.support_[0]] = 4.0
    with pytest.warns(
        UserWarning, match=rf"1 constant column \(feature {model.support_[0]}, counted from 0\) of these"
    ):
        certificate = model.certificate(X, y)
    coef = np.ravel(model.coef_)
    loss = np.mean(case.loss.value(case.numbers(y), X @ coef + float(np.ravel(model.intercept_)[0])))
    ridge = case.loss.default_ridge / 2 * np.sum((X.std(axis=0) * coef) ** 2)
    assert_allclose(certificate.value, loss + ridge)


def test_data_that_do_not_fit_the_model_are_refused(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features"):
        model.certificate(X[:, 1:], y)
    with pytest.raises(InvalidInputError, match="need both X and y, got no y"):
        model.certificate(X)
    with pytest.raises(InvalidInputError, match="got no X"):
        model.certificate(y=y)
    with pytest.raises(InvalidInputError, match="belong to data; give X and y"):
        model.certificate(sample_weight=np.ones(60))
    with pytest.raises(ValueError, match="NaN"):
        model.certificate(np.where(np.eye(60, 12), np.nan, X), y)
    with pytest.raises(InvalidInputError, match="sample_weight"):
        model.certificate(X, y, sample_weight=np.ones(7))
    assert model.n_features_in_ == 12


def test_names_of_columns_must_be_those_of_the_fit(case):
    pandas = pytest.importorskip("pandas")
    X, y = case.data()
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    model = case.make().fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.certificate(frame.rename(columns={"gene 0": "age"}), y)
    assert model.certificate(frame, y).added_name.startswith("gene ")


def test_classes_must_be_those_of_the_fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = np.where(X[:, 0] + rng.logistic(size=40) > 0, "well", "ill")
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1).fit(X, y)
    with pytest.raises(
        InvalidInputError, match=r"y has the classes \['ill', 'sick'\], the model's are \['ill', 'well'\]"
    ):
        model.certificate(X, np.where(y == "well", "sick", "ill"))
    with pytest.raises(InvalidInputError, match="one class only"):
        model.certificate(X, np.full(40, "ill"))
    assert_array_equal(model.classes_, ["ill", "well"])


def test_an_unfitted_model_has_no_certificate(case):
    X, y = case.data()
    with pytest.raises(ValueError, match="not fitted"):
        case.make().certificate(X, y)


def test_groups_that_were_set_since_the_fit_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, X[:, 0])
    model.set_params(n_nonzero_coefs=None, groups=[0, 0, 1, 1])
    with pytest.raises(InvalidInputError, match="groups was set, or taken back, since the fit"):
        model.certificate(X, X[:, 0])


def quantiles(seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 10))
    return X, X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(120)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    "settings",
    [
        {"n_nonzero_coefs": 2},
        {"n_nonzero_coefs": 10},
        {"n_nonzero_coefs": 10, "positive": True},
        {"n_nonzero_coefs": 3, "bounds": (-0.3, 0.3), "quantile": 0.8},
        {"n_nonzero_coefs": 3, "alpha": 0.05, "standardize": False},
    ],
)
def test_the_subgradient_of_a_quantile_regression_vanishes(settings, tmp_path, no_charts):
    """The slopes of the rows at their targets are those of which the sum is least, not 1/2 - tau."""
    model = ht.SparseQuantileRegression(**settings).fit(*quantiles())
    found = model.certificate()
    assert found.fitted
    assert found.is_stationary()
    assert found.basic_feasibility < 1e-9 * found.stationarity.gradient_scale
    assert found.smoothness == np.inf
    assert "a loss with a kink" in str(found)
    assert "Exchanges: not examined" in str(found)
    ht.save(model, tmp_path / "m.json")
    assert str(ht.load(tmp_path / "m.json").certificate()) == str(found)
    write_report(model, tmp_path / "report.html")
    assert not re.search("(exchange of|no single)", (tmp_path / "report.html").read_text())


def test_the_subgradient_vanishes_in_single_precision_too():
    """Rounding puts predictions of interpolated rows beside their targets."""
    X, y = (part.astype(np.float32) for part in quantiles())
    assert ht.SparseQuantileRegression(n_nonzero_coefs=10, positive=True).fit(X, y).certificate().fitted
    assert ht.SparseQuantileRegression(n_nonzero_coefs=2, quantile=0.8).fit(X, 100 + y).certificate().fitted


def test_another_point_than_the_minimum_of_pinball_losses_is_not_fitted():
    X, y = quantiles()
    model = ht.SparseQuantileRegression(n_nonzero_coefs=2).fit(X, y)
    model.coef_ = 1.01 * model.coef_
    assert not model.certificate(X, y).fitted


def test_a_quantile_regression_with_a_smoothing_has_exchanges():
    model = ht.SparseQuantileRegression(n_nonzero_coefs=2, smoothing=0.5).fit(*quantiles())
    assert model.certificate().swap.tried > 0
    assert "gradient: " in str(model.certificate())
