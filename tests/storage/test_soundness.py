"""No estimator that predicts NaN is saved or loaded, whatever its family, and whatever the reason."""

import copy
import warnings

import numpy as np
import pytest

import hardthresh as ht
import hardthresh.estimators
import hardthresh.limited.estimators
from hardthresh.core.registry import registered
from hardthresh.estimators.linear.cross_validation import SparseLinearModelCV
from hardthresh.estimators.linear.model import SparseLinearModel
from hardthresh.storage import StorageError
from levels import at_most, slow_beyond

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
TARGETS = {
    "numbers": 2 * X[:, 0] - X[:, 3] + 0.1 * RNG.standard_normal(60),
    "classes": np.where(X[:, 0] - X[:, 3] + 0.5 * RNG.standard_normal(60) > 0, "yes", "no"),
    "rows": X[:, :2] @ RNG.standard_normal((2, 4)) + 0.1 * RNG.standard_normal((60, 4)),
}
TABLE = np.where(RNG.random(X.shape) < 0.2, np.nan, X @ RNG.standard_normal((6, 1)) + 0.1 * X)
CASES = {  # settings, target, and the method that shows what the fitted attributes are good for
    "low_rank_regression": ({"rank": 2}, TARGETS["rows"], "predict"),
    "low_rank_regression_cv": ({"rank": [1, 2], "cv": 3}, TARGETS["rows"], "predict"),
    "low_rank_imputer": ({"rank": 1}, None, "transform"),
    "low_rank_imputer_cv": ({"rank": [1], "cv": 3}, None, "transform"),
    "sparse_gaussian_graphical_model": ({"n_edges": 3}, None, "mahalanobis"),
    "sparse_gaussian_graphical_model_cv": ({"n_edges": [3], "cv": 3}, None, "mahalanobis"),
    "limited_attribute_regression": ({"n_nonzero_coefs": 2, "n_observed": 4}, TARGETS["numbers"], "predict"),
    "limited_attribute_logistic_regression": (
        {"n_nonzero_coefs": 2, "n_observed": 4},
        TARGETS["classes"],
        "decision_function",
    ),
}


def sparse_case(cls):
    """Settings, target and method of a sparse linear model, by what its loss says."""
    settings = {"n_nonzero_coefs": [1, 2], "cv": 3} if issubclass(cls, SparseLinearModelCV) else {"n_nonzero_coefs": 2}
    if hasattr(cls, "decision_function"):
        return settings, TARGETS["classes"], "decision_function"
    return (
        settings,
        cls()._loss.example_target(X[:, 0] - X[:, 3] / 2, np.random.default_rng(1), 0.1),
        ("predict_proba" if hasattr(cls, "predict_proba") else "predict"),
    )


CASES |= {
    name: sparse_case(entry.cls)
    for name, entry in registered("estimator").items()
    if issubclass(entry.cls, SparseLinearModel)
}


@pytest.fixture(scope="module", params=[*registered("estimator")])
def fitted(request):
    """A fitted estimator of each registered class, its data, and the name of the method that uses it."""
    settings, y, method = CASES[request.param]
    rows = TABLE if method == "transform" else X
    model = registered("estimator")[request.param].cls(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows
        return model.fit(rows, *(() if y is None else (y,))), rows, method


def spoilt(model, name, value):
    """A copy with a number in the first entry of a fitted attribute."""
    other = copy.copy(model)
    attribute = np.array(getattr(model, name))
    attribute.flat[0] = value
    setattr(other, name, attribute if attribute.ndim else float(attribute))
    return other


def used(fitted, value):
    """The fitted attributes in which a number shows in what the model returns."""
    model, rows, method = fitted
    for name, attribute in vars(model).items():
        if name.endswith("_") and np.asarray(attribute).dtype.kind == "f" and np.size(attribute):
            with np.errstate(all="ignore"):
                try:
                    if np.isfinite(getattr(spoilt(model, name, value), method)(rows)).all():
                        continue
                except ValueError:
                    pass
            yield name


@at_most(7)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_that_predicts_nan_is_neither_saved_nor_loaded(fitted, value, tmp_path, monkeypatch):
    names = [*used(fitted, value)]
    assert names or (fitted[2] == "predict_proba" and value == np.inf)  # probabilities are finite
    for name in names:
        model = spoilt(fitted[0], name, value)
        with pytest.raises(StorageError, match=rf"not a sound \w+: {name} holds .*infinity"):
            ht.save(model, tmp_path / "model.json")
        assert [*tmp_path.iterdir()] == []
        with monkeypatch.context() as unchecked:
            unchecked.setattr("hardthresh.storage.encoding.check_estimator", lambda model: None)
            ht.save(model, tmp_path / "model.json")
        with pytest.raises(StorageError, match=rf"model\.json: not a sound \w+: {name} holds .*infinity"):
            ht.load(tmp_path / "model.json")
        (tmp_path / "model.json").unlink()


@slow_beyond(8)
def test_a_model_without_an_attribute_or_with_another_shape_is_not_saved(fitted, tmp_path):
    model, _, _ = fitted
    arrays = [name for name in used(fitted, np.nan) if np.ndim(getattr(model, name))]
    assert arrays
    for name in arrays:
        other = copy.copy(model)
        setattr(other, name, np.concatenate([getattr(model, name)] * 2, axis=-1))
        with pytest.raises(StorageError, match=rf"not a sound \w+: {name} has shape"):
            ht.save(other, tmp_path / "model.json")
        delattr(other, name)
        with pytest.raises(StorageError, match=rf"not a sound \w+: {name} missing"):
            ht.save(other, tmp_path / "model.json")


@slow_beyond(18)
def test_every_family_is_saved_and_loaded(fitted, tmp_path):
    model, rows, method = fitted
    ht.save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(getattr(ht.load(tmp_path / "model.json"), method)(rows), getattr(model, method)(rows))
    ht.save(type(model)(), tmp_path / "model.json")  # without a fit there is nothing to check
    assert repr(ht.load(tmp_path / "model.json")) == repr(type(model)())


def test_states_and_results_may_hold_nan(tmp_path):
    """They record what happened, including a run that diverged."""
    result = ht.minimize(
        ht.objectives.LinearModel(X, TARGETS["numbers"]), ht.constraints.Sparsity(2), ht.solvers.IHT(), max_iter=1
    )
    result.w[0] = np.nan
    ht.save(result, tmp_path / "result.json")
    assert np.isnan(ht.load(tmp_path / "result.json").w[0])
