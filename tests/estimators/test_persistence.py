"""Fitted models that travel: with their answer, without the data."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal


def through_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "first protocol": lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    "joblib": through_joblib,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_comes_back(case, way):
    X, y = case.data()
    model = case.make(always_include=[2]).fit(X, y)
    again = WAYS[way](model)
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.get_support(), model.get_support())
    assert_array_equal(again.history_["value"], model.history_["value"])
    assert again.get_params().keys() == model.get_params().keys()
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == {name for name in vars(again) if name.endswith("_")}
    assert_array_equal(again.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("certified", [False, True])
def test_the_training_data_stay_at_home(case, certified):
    X, y = case.data(n=2000)
    model = case.make().fit(X, y)
    if certified:
        model.certificate()
    size = len(pickle.dumps(model))
    assert size < 30_000 < X.nbytes
    assert "_training" not in model.__getstate__()


def test_a_certificate_is_computed_once(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    assert model.certificate() is model.certificate()
    first = model.certificate()
    assert model.fit(X, y).certificate() is not first


def test_an_unfitted_model_travels_too(case):
    again = pickle.loads(pickle.dumps(case.make(alpha=0.5)))
    assert (again.alphas if case.chooses else again.alpha) == 0.5
    assert not hasattr(again, "coef_")


def test_models_of_one_fit_share_nothing_that_can_be_written(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    other = copy.deepcopy(model)
    other.coef_[...] = 0.0
    assert np.any(model.coef_ != 0.0)
