"""Arrays of other libraries, with scikit-learn's ``array_api_dispatch``: everything follows X.

scikit-learn's own checks of the same (see `test_scikit_learn`) run under the same condition.
"""

import os
from importlib import import_module

import numpy as np
import pytest
import sklearn
from array_api_compat import array_namespace
from numpy.testing import assert_allclose, assert_array_equal

from hardthresh import SparseLinearRegression, SparseLogisticRegression, SparseLogisticRegressionCV
from hardthresh.arrays import to_numpy

pytestmark = pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1", reason="SciPy reads SCIPY_ARRAY_API=1 when it is imported"
)


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    with sklearn.config_context(array_api_dispatch=True):
        yield import_module(request.param)


def library_of(x):
    return array_namespace(x).__name__.rpartition(".")[2]


@pytest.mark.parametrize("together", [True, False])
def test_the_answer_is_that_of_numpy_in_the_library_of_X(case, xp, together):
    """Targets, weights and offsets may stay NumPy's, which labels must."""
    X, y = case.data()
    weight, offset = np.linspace(0, 2, y.size), np.linspace(-1, 1, y.size)
    per_row = [xp.asarray(a) if together else a for a in (weight, offset)]
    target = xp.asarray(y) if together and not case.loss.classifies else y
    settings = {"always_include": [2], "positive": True}
    here = case.make(**settings).fit(X, y, sample_weight=weight, offset=offset)
    there = case.make(**settings).fit(xp.asarray(X), target, sample_weight=per_row[0], offset=per_row[1])
    names = ("coef_", "support_", "scale_", "coefs_path_", "scores_", "candidates_", "selection_frequency_")
    for name in names:
        if hasattr(here, name):
            assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
            assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), rtol=1e-6, atol=1e-9, err_msg=name)
    intercepts = [
        c if isinstance(c, float) else float(np.reshape(to_numpy(c), ())) for c in (there.intercept_, here.intercept_)
    ]
    assert_allclose(*intercepts, rtol=1e-6)
    scores = case.scores(there)(xp.asarray(X), offset=per_row[1])
    assert_allclose(to_numpy(scores), case.scores(here)(X, offset=offset), rtol=1e-6)
    if case.loss.classifies:
        assert_array_equal(there.predict(xp.asarray(X), offset=per_row[1]), here.predict(X, offset=offset))
    assert there.certificate().best_swap == here.certificate().best_swap
    assert_array_equal(there.get_support(), here.get_support())


def test_a_number_chosen_by_the_criterion_is_that_of_numpy(plain, xp):
    X, y = plain.data(noise=0.5)
    target = y if plain.loss.classifies else xp.asarray(y)
    here, there = plain.cls(alpha=0.1).fit(X, y), plain.cls(alpha=0.1).fit(xp.asarray(X), target)
    assert here.best_n_nonzero_coefs_ == there.best_n_nonzero_coefs_ > 0
    for name in ("coef_", "candidates_", "criterion_path_"):
        assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
        assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), rtol=1e-6, atol=1e-9, err_msg=name)


def test_labels_that_are_numbers_follow_X(classifier, xp):
    X, y = classifier.data()
    model = classifier.make().fit(xp.asarray(X), xp.asarray((y == "well").astype(int) + 5))
    prediction = model.predict(xp.asarray(X))
    assert library_of(prediction) == library_of(xp.asarray(X))
    assert_array_equal(to_numpy(prediction), classifier.make().fit(X, (y == "well").astype(int) + 5).predict(X))


def test_float32_stays_float32(case, xp):
    X, y = case.data()
    X = xp.asarray(X, dtype=xp.float32)
    model = case.make().fit(X, y)
    assert model.coef_.dtype == xp.float32
    assert not case.transforms or model.transform(X).dtype == xp.float32
    scores = case.scores(model)
    assert scores(X).dtype == xp.float32
    assert scores(xp.astype(X, xp.float64) if hasattr(xp, "astype") else X.double()).dtype == xp.float64


def test_a_warm_start_may_change_the_library(plain, xp):
    X, y = plain.data(noise=2.0)
    model = plain.make(k=5, warm_start=True).fit(X, y)
    cold = model.history_["value"][0]
    model.fit(xp.asarray(X), y)
    assert model.history_["value"][0] < cold
    assert library_of(model.coef_) == library_of(xp.asarray(X))


def test_selected_columns_come_back(selector, xp):
    X, y = selector.data()
    model = selector.make().fit(xp.asarray(X), y)
    chosen = model.transform(xp.asarray(X))
    assert_array_equal(to_numpy(chosen), X[:, to_numpy(model.support_)])
    back = to_numpy(model.inverse_transform(chosen))
    assert_array_equal(back, np.where(model.get_support(), X, 0.0))
    with pytest.raises(ValueError, match=r"is needed"):
        model.inverse_transform(xp.asarray(X))


def test_data_of_another_library_than_in_fit_are_refused(case, xp):
    X, y = case.data()
    model = case.make().fit(xp.asarray(X), y)
    with pytest.raises(ValueError, match="must use the same namespace"):
        model.predict(X)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_numbers_are_refused(case, xp, value):
    X, y = case.data()
    X[3, 2] = value
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        case.make().fit(xp.asarray(X), y)


def test_without_dispatch_other_libraries_are_read_as_numpy(case):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y = case.data()
    model = case.make().fit(torch.asarray(X), y)
    assert isinstance(model.coef_, np.ndarray)
    assert_allclose(model.coef_, case.make().fit(X, y).coef_)


@pytest.mark.parametrize("cls", [SparseLinearRegression, SparseLogisticRegression, SparseLogisticRegressionCV])
def test_several_outputs_and_classes_follow_X(cls, xp):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    U = X[:, [1, 3, 1]] * [2.0, 2.0, -2.0] + rng.gumbel(size=(80, 3))
    y = U if cls is SparseLinearRegression else np.argmax(U, axis=1)
    here, there = cls(n_nonzero_coefs=2).fit(X, y), cls(n_nonzero_coefs=2).fit(xp.asarray(X), xp.asarray(y))
    for name in ("coef_", "intercept_", "support_", "coefs_path_"):
        if hasattr(here, name):
            assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
            assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), atol=1e-7, err_msg=name)
    predicted = there.predict(xp.asarray(X))
    assert library_of(predicted) == library_of(xp.asarray(X))
    assert_allclose(to_numpy(predicted), here.predict(X), atol=1e-7)
    assert there.certificate().swap_optimal
