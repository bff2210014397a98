"""The selector's side, and life among scikit-learn's tools."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import Quantile


def test_the_support_in_every_form(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    mask = model.get_support()
    assert mask.dtype == bool
    assert mask.shape == (12,)
    assert_array_equal(np.flatnonzero(mask), model.support_)
    assert_array_equal(model.get_support(indices=True), model.support_)
    assert_array_equal(np.flatnonzero(np.reshape(model.coef_, -1)), model.support_)
    assert_array_equal(model.get_feature_names_out(), [f"x{j}" for j in model.support_])


def test_transforming_keeps_the_chosen_columns(selector):
    X, y = selector.data()
    model = selector.make().fit(X, y)
    chosen = model.transform(X)
    assert_array_equal(chosen, X[:, model.support_])
    back = model.inverse_transform(chosen)
    assert_array_equal(back[:, model.support_], chosen)
    assert np.all(np.delete(back, model.support_, axis=1) == 0.0)
    assert_array_equal(selector.make().fit_transform(X, y), chosen)
    sparse = model.transform(sp.csr_array(X))
    assert sp.issparse(sparse)
    assert_array_equal(sparse.toarray(), chosen)


def test_included_columns_are_chosen_also_where_their_coefficient_is_zero(plain):
    X, y = plain.data()
    model = plain.make(k=1, always_include=[4], positive=True).fit(X, y)
    assert np.reshape(model.coef_, -1)[4] == 0.0
    assert model.get_support()[4]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(selector, library):
    package = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y = selector.data()
    frame = package.DataFrame({f"gene {j}": X[:, j] for j in range(12)})
    model = selector.make().set_output(transform=library).fit(frame, y)
    chosen = model.transform(frame)
    assert isinstance(chosen, package.DataFrame)
    assert list(chosen.columns) == [f"gene {j}" for j in model.support_]


def test_within_select_from_model(selector):
    X, y = selector.data()
    model = selector.make().fit(X, y)
    least = {"threshold": 1e-12}  # in the place of the mean size of the coefficients
    assert_array_equal(SelectFromModel(selector.make(), **least).fit(X, y).get_support(), model.get_support())
    assert_array_equal(SelectFromModel(model, prefit=True, **least).transform(X), model.transform(X))


@pytest.mark.slow
def test_within_a_pipeline(selector):
    X, y = selector.data()
    whole = make_pipeline(StandardScaler(), selector.make(), selector.make(k=1)).fit(X, y)
    alone = make_pipeline(StandardScaler(), selector.make()).fit(X, y)
    chosen = alone[-1].support_
    assert_array_equal(whole[1].support_, chosen)
    assert_array_equal(whole[:-1].transform(X), StandardScaler().fit_transform(X)[:, chosen])
    assert whole[-1].n_features_in_ == chosen.size
    assert_allclose(selector.scores(alone)(X), selector.scores(selector.make().fit(X, y))(X), rtol=1e-6)


def test_estimators_of_positive_targets_are_not_transformers(case):
    """scikit-learn's transformers take any target; `get_support` and `inverse_transform` remain."""
    model = case.make()
    positive = not case.loss.in_domain(np.zeros(1))[0]
    assert case.transforms != positive
    assert hasattr(model, "fit_transform") != positive
    assert (get_tags(model).transformer_tags is None) == positive
    if positive:
        for method in ("transform", "fit_transform"):
            with pytest.raises(AttributeError, match=rf"{case.cls.__name__} has no {method}: its targets must be pos"):
                getattr(model, method)
        X, y = case.data()
        least = {"threshold": 1e-12}  # in the place of the mean size of the coefficients
        within = make_pipeline(SelectFromModel(case.make(), **least), case.make(k=1)).fit(X, y)
        assert_array_equal(within[0].get_support(), case.make().fit(X, y).get_support())
        with pytest.raises(InvalidInputError, match=r"needs targets that are finite numbers > 0; y\[3\] is 0.0"):
            model.fit(X, np.where(np.arange(y.size) == 3, 0.0, y))


def test_a_grid_over_the_number_of_features(plain):
    X, y = plain.data(n=90, noise=0.1)
    search = GridSearchCV(plain.new(), {"n_nonzero_coefs": [1, 2, 3]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_estimator_.n_nonzero_coefs_ == search.best_params_["n_nonzero_coefs"]
    assert search.best_params_["n_nonzero_coefs"] > 1
    assert search.predict(X).shape == y.shape


@pytest.mark.slow
def test_scores_of_scikit_learn(case):
    X, y = case.data(n=150, noise=0.1)
    assert np.mean(cross_val_score(case.make(), X, y, cv=3, error_score="raise")) > (
        0.5 if isinstance(case.loss, Quantile) else 0.7
    )
    assert cross_val_predict(case.make(), X, y, cv=3).shape == y.shape


def test_a_clone_has_the_settings_and_is_not_fitted(case):
    X, y = case.data()
    model = case.make(alpha=0.5, always_include=[2], verbose=False).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    assert_array_equal(copy.fit(X, y).coef_, model.coef_)


def test_fitting_does_not_touch_the_settings(case):
    X, y = case.data()
    model = case.make(always_include=[5, 2], alpha=1)
    before = {name: id(value) for name, value in model.get_params().items()}
    model.fit(X, y)
    assert {name: id(value) for name, value in model.get_params().items()} == before


def test_every_setting_is_by_keyword_only(case):
    with pytest.raises(TypeError, match="positional"):
        case.cls(3)


def test_the_repr_shows_what_was_changed(case):
    ridge = "alphas" if case.chooses else "alpha"
    model = case.cls(n_nonzero_coefs=4, **{ridge: 0.5})
    assert repr(model) == f"{case.cls.__name__}({ridge}=0.5, n_nonzero_coefs=4)"
