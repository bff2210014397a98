"""``to_sklearn``: the estimator of scikit-learn with the same predictions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hardthresh as ht
from hardthresh.core.errors import CapabilityError
from hardthresh.estimators.linear.export import _MODELS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def exported(case, **settings):
    X, y = case.data()
    model = case.make(**settings).fit(X, y)
    try:
        return model, model.to_sklearn(), X, y
    except CapabilityError:
        pytest.skip("scikit-learn has no such model")


def test_check_26_the_predictions_are_the_same(case):
    for intercept in (True, False):
        model, other, X, _ = exported(case, fit_intercept=intercept)
        assert type(other).__name__ in _MODELS.values()
        for method in ("decision_function", "predict_proba"):
            if hasattr(model, method):
                assert_allclose(getattr(other, method)(X), getattr(model, method)(X), rtol=1e-10, atol=1e-12)
        prediction = model.predict(X)
        if prediction.dtype.kind == "f":
            assert_allclose(other.predict(X), prediction, rtol=1e-10)
        else:
            assert_array_equal(other.predict(X), prediction)


def test_the_export_keeps_names_and_shares_no_memory(plain):
    X, y = plain.data()
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    model = plain.make().fit(frame, y)
    try:
        other = model.to_sklearn()
    except CapabilityError:
        pytest.skip("scikit-learn has no such model")
    assert_array_equal(other.feature_names_in_, model.feature_names_in_)
    assert other.n_features_in_ == model.n_features_in_
    before = model.coef_.copy()
    other.coef_[:] = 0.0
    assert_array_equal(model.coef_, before)
    clone(other).fit(X, y)  # its settings are valid


def test_several_classes_and_outputs_are_exported():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    classes = np.array(["a", "b", "c"])[np.digitize(X[:, 1] + 0.3 * rng.standard_normal(90), [-0.5, 0.5])]
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(X, classes)
    assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), rtol=1e-10)
    assert_array_equal(model.to_sklearn().predict(X), model.predict(X))
    outputs = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, X[:, :2] @ rng.standard_normal((2, 3)))
    assert_allclose(outputs.to_sklearn().predict(X), outputs.predict(X), rtol=1e-10)


def test_what_scikit_learn_lacks_is_said():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    with pytest.raises(NotFittedError):
        ht.SparseLinearRegression().to_sklearn()
    with pytest.warns(UserWarning, match="SparseLinearRegression was fitted with an offset, which the predictions"):
        ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y, offset=np.ones(6)).to_sklearn()
    table = pd.DataFrame({"x": y, "c": pd.Categorical(list("ababab"))})
    with pytest.raises(CapabilityError, match="has categorical columns; encode them with OneHotEncoder"):
        ht.SparseLinearRegression(n_nonzero_coefs=1).fit(table, y).to_sklearn()


def test_onnx_takes_the_exported_model():
    """The example of the user guide."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    reference = pytest.importorskip("onnx.reference", reason="onnx is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)).astype(np.float32)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, X[:, 1] - X[:, 3])
    graph = skl2onnx.to_onnx(model.to_sklearn(), X[:1])
    [prediction] = reference.ReferenceEvaluator(graph).run(None, {"X": X})
    assert_allclose(prediction.ravel(), model.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [ht.SparseHuberRegression(n_nonzero_coefs=2), ht.SparseQuantileRegression(n_nonzero_coefs=2, quantile=0.7)],
    ids=lambda model: type(model).__name__,
)
def test_robust_regressions_are_exported(model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    other = model.fit(X, X[:, 1] - X[:, 3] + rng.standard_normal(90)).to_sklearn()
    assert_allclose(other.predict(X), model.predict(X), rtol=1e-10)
    if isinstance(model, ht.SparseHuberRegression):
        assert other.scale_ == model.noise_scale_
        assert_array_equal(other.outliers_, model.outliers_)
    else:
        assert other.quantile == 0.7


def test_a_linear_svc_is_exported():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    model = ht.SparseLinearSVC(n_nonzero_coefs=2).fit(X, np.where(X[:, 1] + rng.standard_normal(90) > 0, "a", "b"))
    other = model.to_sklearn()
    assert_allclose(other.decision_function(X), model.decision_function(X), rtol=1e-10)
    assert_array_equal(other.predict(X), model.predict(X))
