"""The alternatives to a fitted model: about the training data, about data that are given, and in the user's names."""

import pickle

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError, NothingFoundWarning
from levels import inherited


@inherited
def test_every_loss_has_alternatives_or_says_why_not(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    if case.name.startswith("quantile") and model.get_params().get("smoothing") is None:
        with pytest.raises(CapabilityError, match="kink"):
            model.alternatives(tolerance=0.3)
        return
    found, again = model.alternatives(tolerance=0.3), model.alternatives(X, y, tolerance=0.3)
    assert [one.numbers for one in found.supports] == [one.numbers for one in again.supports]
    assert [one.excess for one in found.supports] == pytest.approx([one.excess for one in again.supports], abs=1e-6)
    own = next(one for one in found.supports if not one.added)
    assert found.subject or own.numbers == tuple(np.asarray(model.support_).tolist())
    assert all(one.excess <= 0.3 + 1e-9 for one in found.supports)


def almost_copies(n=80):
    """Twelve columns of which the last six are almost copies of the first six, and a signal in two of them."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 6))
    X = np.hstack([X, X + 0.1 * rng.standard_normal((n, 6))])
    return X, X[:, 2] - X[:, 4]


def test_several_outputs_and_classes_exchange_features_whole():
    X, u = almost_copies()
    rng = np.random.default_rng(6)
    outputs = np.column_stack([u, -u]) + 0.5 * rng.standard_normal((80, 2))
    of_outputs = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, outputs).alternatives(tolerance=0.2)
    of_classes = (
        ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(X, np.digitize(u, [-1, 1])).alternatives(tolerance=0.15)
    )
    for found in (of_outputs, of_classes):
        assert {name for one in found.supports for name in one.names} == {f"feature {j}" for j in (2, 4, 8, 10)}
    refit = ht.SparseLinearRegression(n_nonzero_coefs=2)
    for one in of_outputs.supports:
        own = refit.fit(X[:, one.numbers], outputs)
        assert one.value == pytest.approx(own.objective_, rel=1e-8)


def test_columns_and_groups_have_the_names_of_the_user():
    pandas = pytest.importorskip("pandas")
    X, u = almost_copies()
    y = u + 0.5 * np.random.default_rng(7).standard_normal(80)
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    found = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(frame, y).alternatives(tolerance=0.2)
    assert set(found.own) <= {"c2", "c4", "c8", "c10"}
    labels = [f"g{j % 6}" for j in range(12)]
    of_groups = ht.SparseLinearRegression(groups=labels, n_nonzero_groups=2).fit(X, y).alternatives()
    assert of_groups.unit == "group"
    assert of_groups.own == ("g2", "g4")


def test_a_categorical_column_is_one_feature():
    pandas = pytest.importorskip("pandas")
    X, u = almost_copies()
    frame = pandas.DataFrame(X[:, :6], columns=[f"c{j}" for j in range(6)])
    frame["level"] = pandas.Categorical(np.array(list("abc"))[np.arange(80) % 3])
    y = 2.0 * u + np.arange(80) % 3 + np.random.default_rng(10).standard_normal(80)
    found = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(frame, y).alternatives(tolerance=1.0)
    assert found.unit == "feature"
    assert found.own == ("c2", "c4", "level")
    assert any(one.removed == ("level",) for one in found.supports)


def test_an_average_is_compared_by_its_best_model():
    X, u = almost_copies()
    y = u + np.random.default_rng(8).standard_normal(80)
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=range(1, 4), random_state=0).fit(X, y)
    assert len(model.models_) > 1
    assert str(model.alternatives()).startswith("About ")


def test_data_that_are_gone_have_to_be_given_again():
    X, u = almost_copies()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, u)
    first = model.alternatives()
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(HardThreshError, match="does not carry its training data"):
        again.alternatives()
    assert again.alternatives(X, u).supports == first.supports
    with pytest.raises(InvalidInputError, match="sample_weight and offset belong to data"):
        model.alternatives(sample_weight=np.ones(80))


def test_a_time_limit_is_for_what_prove_searches():
    X, u = almost_copies()
    y = u + np.random.default_rng(11).standard_normal(80)
    proved = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y).alternatives(tolerance=0.2, time_limit=None)
    assert proved.complete
    assert len(proved.supports) > 1
    several = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, np.column_stack([y, u])).alternatives(time_limit=1)
    assert not several.complete
    assert several.reason.startswith("searches choose single columns for one output")
    times = np.column_stack([np.exp(y), np.ones(80)])
    assert "least squares" in ht.SparseCoxRegression(n_nonzero_coefs=2).fit(X, times).alternatives(time_limit=1).reason


def test_strata_go_along():
    X, u = almost_copies()
    rng = np.random.default_rng(9)
    y = np.column_stack([rng.exponential(np.exp(-u)), rng.random(80) < 0.8])
    strata = np.repeat(["a", "b"], 40)
    model = ht.SparseCoxRegression(n_nonzero_coefs=2).fit(X, y, strata=strata)
    found, again = model.alternatives(X, y, strata=strata), model.alternatives()
    assert [one.numbers for one in found.supports] == [one.numbers for one in again.supports]
    assert found.value == pytest.approx(model.objective_, rel=1e-9)


def test_intervals_that_too_few_rows_have_are_not_advised():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 30))
    y = X[:, 0] + 0.1 * rng.standard_normal(10)
    model = ht.SparseLinearRegression(n_nonzero_coefs=9).fit(X, y)
    assert "times as wide" not in str(model.inference())
    split = str(model.inference(X, y, kind="split"))
    assert "valid" not in split
    assert "too few rows for intervals" in split
    empty = ht.SparseLinearRegression(n_nonzero_coefs=0).fit(X, y)
    assert str(empty.inference()) == "The model has no feature, so that there is no interval."
    assert "valid" not in str(empty.inference(X, y, kind="split"))


def test_a_ridge_that_leaves_nothing_to_gain_is_told_by_all_solvers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(60)
    with pytest.warns(NothingFoundWarning, match="none is chosen"):
        empty = ht.SparseLinearRegression(n_nonzero_coefs=3, alpha=1e12).fit(X, y)
    assert "which the lower bound proves to be below 1e-06 of the objective" in str(empty.certificate())
    with pytest.warns(NothingFoundWarning, match="a model without them is as good"):
        ht.SparseLinearRegression(n_nonzero_coefs=3, alpha=1e12, solver="exact").fit(X, y)


def test_missing_columns_are_named():
    pandas = pytest.importorskip("pandas")
    X, u = almost_copies()
    X = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, u)
    with pytest.raises(InvalidInputError, match="X does not have x1: add or rename"):
        model.predict(X.rename(columns={"x1": "z"}))
