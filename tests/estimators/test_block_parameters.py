"""Parameters of losses that are estimated over blocks: those in memory, from the columns that are kept.

Checks 3 and 4 of scale.md: the models of rows in memory, in as few readings as with the parameter given, and the same
bits with any engine.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hardthresh import (
    SparseHuberRegression,
    SparseNegativeBinomialRegression,
    SparseQuantileRegression,
    SparseQuantileRegressionCV,
    StabilitySelection,
)
from hardthresh.core import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.designs import Serial, Threads, from_arrays
from hardthresh.estimators.linear.huber import noise_scale, noise_scale_by_sweeps
from hardthresh.estimators.linear.negative_binomial import Shape
from hardthresh.losses import Huber, NegativeBinomial
from hardthresh.losses.location import weighted_quantile
from hardthresh.objectives import blocked_model
from hardthresh.objectives.row_sums import rows_near
from levels import at, at_most, only_at

MODELS = {
    "noise": (SparseHuberRegression(n_nonzero_coefs=5), "noise_scale_"),
    "shape": (SparseNegativeBinomialRegression(n_nonzero_coefs=5), "dispersion_"),
}
CHOSEN = [3, 40, 60, 75, 90]


def data(name, seed=0, n=1500, d=100):
    """Columns far from zero, targets of five of them with outliers or of varying rates, weights with zeros, offsets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X += 3.0
    weight, offset = rng.integers(0, 3, n).astype(float), rng.standard_normal(n)
    u = X[:, np.array(CHOSEN) % d] @ [0.5, -0.5, 0.4, -0.4, 0.6] + offset
    if name == "shape":
        return X, rng.poisson(np.exp(0.5 * u - 1.0) * rng.gamma(2.0, 0.5, n)).astype(float), weight, offset
    y = 10.0 * (u + rng.standard_normal(n))
    y[rng.random(n) < 0.1] += 300.0
    return X, y, weight, 10.0 * offset


def given(model):
    """The parameter that a model has estimated, as a setting of an estimator."""
    if isinstance(model, SparseHuberRegression):
        return {"delta": model.epsilon * model.noise_scale_}
    return {"dispersion": model.dispersion_}


def assert_same(name, blocked, plain, tol=1e-9):
    parameter = MODELS[name][1]
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=0, atol=tol)
    assert blocked.intercept_ == pytest.approx(plain.intercept_, rel=tol, abs=tol)
    assert getattr(blocked, parameter) == pytest.approx(getattr(plain, parameter), rel=tol)
    assert blocked.objective_ == pytest.approx(plain.objective_, rel=tol)
    assert blocked.converged_ == plain.converged_


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, *at("pairs", range(1, 10))])
def test_estimates_are_those_in_memory_without_more_readings(name, seed):
    """At most one more than with the parameter given, whose pilot searches with it; 16 of 20 fits take none more."""
    model, _ = MODELS[name]
    X, y, weight, offset = data(name, seed)
    blocks = from_arrays(X, y, weight, offset, rows=256)
    blocked, plain = clone(model).fit(blocks), clone(model).fit(X, y, weight, offset)
    assert_same(name, blocked, plain)
    assert len(set(CHOSEN) & set(blocked.support_)) >= 4
    known = clone(model).set_params(**given(plain)).fit(blocks)
    assert blocked.history_["readings"][-1] <= known.history_["readings"][-1] + (seed > 0)


SETTINGS = {
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "ridge": {"alpha": 0.3},
    "always": {"always_include": [0, 11]},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.2, 0.3)},
    "nothing": {"n_nonzero_coefs": 0},
    "pursuit": {"solver": "pursuit"},
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("name", "setting"),
    [("noise", setting) for setting in SETTINGS] + [("shape", setting) for setting in at("pairs", list(SETTINGS))],
)
def test_settings_are_those_in_memory(name, setting):
    model = clone(MODELS[name][0]).set_params(**SETTINGS[setting])
    X, y, weight, offset = data(name, n=1000)
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=256))
    assert_same(name, blocked, clone(model).fit(X, y, weight, offset), 1e-8)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_criterion_chooses_the_number_of_features_that_it_chooses_in_memory(name):
    """Of counts the likelihoods are those of the dispersion of each number of features."""
    model = clone(MODELS[name][0]).set_params(n_nonzero_coefs="auto")
    X, y, weight, offset = data(name, n=700, d=10)
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=256))
    plain = clone(model).fit(X, y, weight, offset)
    assert_same(name, blocked, plain)
    best = plain.best_n_nonzero_coefs_
    np.testing.assert_allclose(blocked.criterion_path_[: best + 1], plain.criterion_path_[: best + 1], rtol=1e-7)
    assert blocked.history_["readings"][-1] <= 4


@only_at("pairs")
@pytest.mark.parametrize("name", MODELS)
def test_bits_are_the_same_in_threads(name):
    model, parameter = MODELS[name]
    blocks = from_arrays(*data(name, n=600, d=20), rows=64)
    one, other = clone(model).fit(Serial(blocks)), clone(model).fit(Threads(blocks, 3))
    for part in ("coef_", "intercept_", parameter, "objective_"):
        assert np.asarray(getattr(one, part)).tobytes() == np.asarray(getattr(other, part)).tobytes()


@only_at("pairs")
def test_columns_that_a_pilot_has_missed_are_found():
    """Where some rows say nothing, the fit on their columns is not the last one, and the parameter changes with it."""
    X, y, weight, _ = data("noise", n=2048, d=600)
    rng = np.random.default_rng(1)
    for block in (0, 2, 5, 7):  # those that are looked at first
        y[256 * block : 256 * (block + 1)] = rng.standard_normal(256)
    model = SparseHuberRegression(n_nonzero_coefs=5)
    blocked = clone(model).fit(from_arrays(X, y, weight, rows=256))
    assert_same("noise", blocked, clone(model).fit(X, y, weight))


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", MODELS)
def test_what_follows_a_fit_takes_its_parameter(name):
    model, parameter = MODELS[name]
    X, y, weight, offset = data(name)
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=256))
    plain = clone(model).fit(X, y, weight, offset)
    found, expected = (model.certificate().swap for model in (blocked, plain))
    assert (found.removed, found.added) == (expected.removed, expected.added)
    found, expected = (model.inference(kind="refit").to_frame() for model in (blocked, plain))
    np.testing.assert_allclose(found.to_numpy(float), expected.to_numpy(float), rtol=1e-6)
    some = X[:700], y[:700], weight[:700], offset[:700]
    found, expected = (blocked.summary(from_arrays(*some, rows=256)), plain.summary(*some))
    np.testing.assert_allclose(found.to_frame()["drop_cost"], expected.to_frame()["drop_cost"], rtol=1e-6)
    before = getattr(blocked, parameter)
    again = blocked.set_params(warm_start=True).fit(from_arrays(X, y, weight, offset, rows=256))
    assert getattr(again, parameter) == pytest.approx(before, rel=1e-9)
    assert again.history_["readings"][-1] <= 2


@only_at("pairs")
def test_halves_are_searched_with_the_scale_of_all_rows():
    X, y, weight, offset = data("noise")
    selector = StabilitySelection(SparseHuberRegression(n_nonzero_coefs=5), n_pairs=3, random_state=0)
    found = selector.fit(from_arrays(X, y, weight, offset, rows=256))
    assert set(found.support_) <= set(CHOSEN)
    assert found.support_.size >= 3


@pytest.mark.slow
def test_a_scale_of_noise_that_falls_to_zero_is_told():
    """As in memory; repeated rows are no evidence that they are exact."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 8))
    y = X[:, 0] + rng.standard_normal(10)
    model = SparseHuberRegression(n_nonzero_coefs=6)
    with pytest.warns(ConvergenceWarning, match="of the rows are fitted exactly, as many as there are coefficients"):
        model.fit(from_arrays(np.repeat(X, 3, axis=0), np.repeat(y, 3), rows=16))
    assert not model.converged_


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [0, 5])
def test_rows_without_noise_are_fitted_exactly_beside_outliers(spoilt):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 16))
    y = 3.0 * X[:, 4] - X[:, 9]
    y[:spoilt] += 10.0 * rng.standard_normal(spoilt)
    blocked = SparseHuberRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, rows=16))
    assert blocked.converged_
    np.testing.assert_allclose(blocked.coef_[[4, 9]], [3.0, -1.0], atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SparseQuantileRegression was fitted with an offset")
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_smoothed_quantiles_are_those_in_memory(tau):
    X, y, weight, offset = data("noise")
    y[y > 150.0] -= 300.0  # outliers among a tenth of the targets are what the largest ones are about
    model = SparseQuantileRegression(n_nonzero_coefs=5, quantile=tau, smoothing=5.0)
    blocks = from_arrays(X, y, weight, offset, rows=256)
    blocked, plain = clone(model).fit(blocks), clone(model).fit(X, y, weight, offset)
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=0, atol=1e-6)
    assert blocked.intercept_ == pytest.approx(plain.intercept_, abs=1e-5)
    assert blocked.history_["readings"][-1] <= 3
    assert blocked.score(blocks) == pytest.approx(plain.score(X, y, weight, offset), rel=1e-6)
    without = from_arrays(X, y, weight, rows=256)
    assert blocked.score(without) == pytest.approx(plain.score(X, y, weight), rel=1e-6)


def test_pinball_losses_are_refused_before_a_reading():
    engine = Serial(from_arrays(*data("noise", n=300), rows=256))
    for model, message in (
        (SparseQuantileRegression(n_nonzero_coefs=2), "without a smoothing: the pinball loss has a kink"),
        (SparseQuantileRegressionCV(smoothing=1.0), "SparseQuantileRegressionCV is not fitted to tables in blocks"),
    ):
        with pytest.raises(CapabilityError, match=message):
            model.fit(engine)
    assert engine.readings == 0


def test_scores_with_an_offset_take_two_readings_of_the_targets():
    """The best constant has the offset added to it, as in memory; the targets are kept while it is looked for."""
    X, y, weight, offset = data("shape")
    engine = Serial(from_arrays(X, y, weight, offset, rows=256))
    model = SparseNegativeBinomialRegression(n_nonzero_coefs=5).fit(X, y, weight, offset)
    assert model.score(engine) == pytest.approx(model.score(X, y, weight, offset), rel=1e-9)
    assert engine.readings == 2
    zeros = from_arrays(X, 0.0 * y, weight, offset, rows=256)
    assert model.score(zeros) == model.score(X, 0.0 * y, weight, offset)


# ------------------------------------------------------------------------------------------- a slow twin of each sum


def model_of(y, weight=None, offset=None, X=None, loss=None, rows=7):
    X = np.random.default_rng(0).standard_normal((len(y), 3)) if X is None else X
    return blocked_model(Serial(from_arrays(X, y, weight, offset, rows=rows)), Huber(1.0) if loss is None else loss)


NUMBERS = {
    "normal": lambda rng: rng.standard_normal(60),
    "ties": lambda rng: rng.integers(-2, 3, 60) * 1.0,
    "zeros of both signs": lambda rng: rng.choice([-0.0, 0.0, 1.0], 60),
    "sizes": lambda rng: rng.standard_normal(60) * 10.0 ** rng.integers(-150, 150, 60),
    "neighbours": lambda rng: 1.0 + np.finfo(float).eps * rng.integers(0, 9, 60),
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_of_blocks_are_those_of_sorted_targets(numbers, weighted):
    """To the last bit, also of distances and of targets less the offset; the largest number is that of all."""
    rng = np.random.default_rng(3)
    y, weight, offset = NUMBERS[numbers](rng), rng.integers(0, 3, 60) * 1.0 if weighted else None, rng.random(60)
    model, own = model_of(y, weight, offset), np.ones(60) if weight is None else weight
    kept, r = own > 0, y - offset
    readings = model.readings
    for share in (1e-9, 0.1, 0.5, 0.77, 1.0):
        for about in (None, 0.3):
            expected = [one if about is None else np.abs(one - about) for one in (r, y)]
            found = [model.target_quantile(share, about, without_offset=less) for less in (True, False)]
            assert found == [weighted_quantile(one[kept], own[kept], share) for one in expected]
    assert model.target_quantile(np.inf, 0.0, without_offset=False) == np.abs(y[kept]).max()
    assert model.readings == readings


RESIDUALS = {
    "normal": lambda rng: rng.standard_normal(80),
    "heavy tails": lambda rng: rng.standard_cauchy(80) ** 3,
    "outliers": lambda rng: np.where(np.arange(80) % 4 == 0, 1e9, rng.standard_normal(80)),
    "mostly exact": lambda rng: np.where(np.arange(80) % 10 == 0, rng.standard_normal(80), 0.0),
    "half exact": lambda rng: np.where(np.arange(80) % 2 == 0, rng.standard_normal(80), 0.0),
    "ties": lambda rng: rng.integers(-2, 3, 80) * 1.0,
    "all exact": lambda rng: np.zeros(80),
}


@pytest.mark.parametrize("residuals", RESIDUALS)
@pytest.mark.parametrize("start", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 3.0])
def test_the_scale_by_sweeps_is_that_of_sorted_residuals(residuals, start, epsilon):
    rng = np.random.default_rng(4)
    y, weight = RESIDUALS[residuals](rng), rng.integers(1, 4, 80) * 1.0
    model = model_of(y, weight)
    at = Evaluation(model.units.coordinates(model.units.point(model.zeros(), level=0.0)), 0.0, model.zeros())
    least = 1e-8 * (np.abs(y).max() or 1.0)
    expected = max(noise_scale(y, weight, epsilon), least)
    assert noise_scale_by_sweeps(model, at, start, epsilon, least) == pytest.approx(expected, rel=1e-12)


@only_at("pairs")
def test_the_first_shape_of_counts_is_that_in_memory():
    """For one expected count, times the exponentials of the offsets."""
    X, y, weight, offset = data("shape", n=300, d=10)
    model, blocks = SparseNegativeBinomialRegression(n_nonzero_coefs=2), from_arrays(X, y, weight, offset, rows=64)
    kept, theta = weight > 0, []
    for table in (blocks, X[kept]):
        rows = () if table is blocks else (y[kept], weight[kept], offset[kept])
        problem = clone(model).fit(table, *rows)._training[0]
        theta.append(Shape().start(problem).theta)
    assert theta[0] == pytest.approx(theta[1], rel=1e-9)


def test_another_loss_is_another_model_with_the_same_columns():
    X, y, weight, offset = data("shape", n=300, d=6)
    model, fresh = (
        blocked_model(Serial(from_arrays(X, y, weight, offset, rows=64)), NegativeBinomial(theta))
        for theta in (1.0, 3.0)
    )
    model.columns(np.array([1, 4, 6])).evaluate(np.ones(3))
    other, readings = model.with_loss(NegativeBinomial(3.0)).with_ridge(0.5), model.readings
    few, expected = (one.columns(np.array([1, 4, 6])) for one in (other, fresh.with_ridge(0.5)))
    w = np.array([0.1, -0.2, 0.3])
    assert few.evaluate(w).value == pytest.approx(expected.evaluate(w).value, rel=1e-13)
    assert model.readings == readings
    full = np.array([0.0, 0.1, 0, 0, -0.2, 0, 0.3])
    np.testing.assert_allclose(other.evaluate(full).gradient, fresh.with_ridge(0.5).evaluate(full).gradient)
    assert model.with_loss(NegativeBinomial(1.0)) is model


@dataclass(frozen=True)
class OfColumns:
    """A linear predictor of 0, so that rows are near whose targets are."""

    def predict(self, X, offset):
        return np.zeros(len(X))


def test_rows_that_are_equal_count_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 3))[rng.integers(5, size=40)]
    X[::2, 1] = -0.0
    X[1::2, 1] = 0.0
    y, weight = np.where(np.arange(40) < 30, 0.0, 1.0), rng.integers(0, 3, 40) * 1.0
    weights, places = rows_near(X, y, weight, None, OfColumns(), np.array([0, 1]), 0.5)
    near = (y == 0) & (weight > 0)
    assert np.count_nonzero(places) == len(np.unique(X[near][:, :2], axis=0))
    assert places.sum() == near.sum()
    assert weights.tolist() == [weight[near].sum(), weight[y == 1].sum()]


@only_at("pairs")
def test_one_column_more_is_another_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    places = rows_near(X, np.zeros(60), None, None, OfColumns(), np.arange(4), 0.5)[1]
    assert np.count_nonzero(places) == 60


@pytest.mark.slow
def test_estimates_that_settle_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(MODELS["noise"][0]).fit(from_arrays(*data("noise", n=600, d=95), rows=128))
