"""Scores and calibration on held-out rows: those of scikit-learn, and lines and bins computed by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn import metrics
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.choice_facts import _held_out
from hardthresh.estimators.linear.held_out import calibration, calibration_line, held_out_scores
from hardthresh.estimators.linear.posing import null_loss
from hardthresh.losses import Gamma, Logistic, Multinomial, Ordinal, Poisson, Squared
from hardthresh.losses.ordinal import class_probabilities

LOSSES = [Squared(), Logistic(), Poisson(), Gamma()]
every = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def predicted(loss, n=80, seed=0):
    """Targets, linear predictors that are too far from their mean by a factor of about 2, and weights."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, n)
    return loss.example_target(u + 0.3, rng), 2 * u, rng.integers(0, 3, n).astype(float)


def by_scikit_learn(loss, y, u, weight):
    given, mean = {"sample_weight": weight}, loss.mean(u)
    if loss == Squared():
        return {
            "mean_squared_error": metrics.mean_squared_error(y, u, **given),
            "r2": metrics.r2_score(y, u, **given),
        }
    if loss == Logistic():
        return {
            "log_loss": metrics.log_loss(y, mean, **given),
            "d2": 1
            - metrics.log_loss(y, mean, **given) / metrics.log_loss(y, 0 * y + np.average(y, weights=weight), **given),
            "roc_auc": metrics.roc_auc_score(y, mean, **given),
            "accuracy": metrics.accuracy_score(y, mean > 0.5, **given),
        }
    power, name = {Poisson(): (1, "mean_poisson_deviance"), Gamma(): (2, "mean_gamma_deviance")}[loss]
    return {
        name: getattr(metrics, name)(y, mean, **given),
        "d2": metrics.d2_tweedie_score(y, mean, power=power, **given),
    }


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(loss, weighted):
    y, u, weight = predicted(loss)
    weight = weight if weighted else None
    ours, theirs = held_out_scores(loss, y, u, weight), by_scikit_learn(loss, y, u, weight)
    assert ours.keys() == theirs.keys() | {"calibration_slope", "calibration_intercept"}
    for name, value in theirs.items():
        assert_allclose(ours[name], value, rtol=1e-12, err_msg=name)


@every
def test_the_calibration_line_minimises_the_loss(loss):
    y, u, weight = predicted(loss)
    best = minimize(lambda line: weight @ loss.value(y, line[0] + line[1] * u), [0.0, 1.0], tol=1e-12)
    line = calibration_line(loss, y, u, weight)
    assert_allclose(line, best.x, rtol=1e-4, atol=1e-6)
    slopes = loss.gradient(y, line[0] + line[1] * u) * weight
    assert_allclose([np.sum(slopes), slopes @ u], 0.0, atol=1e-9 * np.sum(np.abs(slopes)))
    scores = held_out_scores(loss, y, u, weight)
    assert (scores["calibration_intercept"], scores["calibration_slope"]) == line
    assert 0.2 < line[1] < 0.8  # predictions were made twice too large


def test_calibration_lines_are_those_of_scikit_learn():
    y, u, _ = predicted(Logistic())
    theirs = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(u[:, None], y)
    assert_allclose(calibration_line(Logistic(), y, u), [theirs.intercept_[0], theirs.coef_[0, 0]], rtol=1e-5)
    y, u, _ = predicted(Poisson())
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(u[:, None], y)
    assert_allclose(calibration_line(Poisson(), y, u), [theirs.intercept_, theirs.coef_[0]], rtol=1e-5)


@every
def test_a_known_line_of_the_means_is_found_again(loss):
    """Targets that are exactly the means of 0.4 + 0.5 u, also where predictions are far apart."""
    for scale in (1.0, 20.0):
        u = scale * np.linspace(-1, 1, 50)
        assert_allclose(calibration_line(loss, loss.mean(0.4 + 0.5 * u), u), [0.4, 0.5], rtol=1e-6)


def test_a_least_squares_line_does_not_depend_on_the_unit():
    y, u, weight = predicted(Squared())
    intercept, slope = calibration_line(Squared(), y, u, weight)
    assert_allclose(np.polyfit(u, y, 1, w=np.sqrt(weight)), [slope, intercept], rtol=1e-9)
    for unit in (1e-20, 1e20):
        assert_allclose(calibration_line(Squared(), unit * y, u, weight), [unit * intercept, unit * slope], rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "y", "slope"),
    [
        (Logistic(), [0, 0, 1, 1], np.inf),
        (Logistic(), [1, 1, 0, 0], -np.inf),
        (Logistic(), [1, 1, 1, 1], np.nan),
        (Poisson(), [0, 0, 0, 0], np.nan),
        (Poisson(), [0, 0, 0, 5], np.inf),
        (Poisson(), [2, 0, 0, 0], -np.inf),
    ],
)
def test_a_line_without_a_minimum_is_not_a_number_of_steps(loss, y, slope):
    intercept, found = calibration_line(loss, np.array(y, dtype=float), np.arange(4.0))
    assert np.isnan(intercept)
    assert_allclose(found, slope)


def test_quasi_separation_has_no_slope_and_overlap_has_one():
    u = np.array([0.0, 1.0, 1.0, 2.0])
    assert calibration_line(Logistic(), np.array([0.0, 0.0, 1.0, 1.0]), u)[1] == np.inf
    assert np.isfinite(calibration_line(Logistic(), np.array([0.0, 1.0, 0.0, 1.0]), np.arange(4.0))[1])


@every
def test_the_mean_alone_scores_nothing_and_has_no_line(loss):
    y, _, weight = predicted(loss)
    u = np.full(80, loss.link(np.average(y, weights=weight)))
    scores = held_out_scores(loss, y, u, weight)
    assert scores["r2" if loss.quadratic else "d2"] == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(scores["calibration_slope"])
    if loss.classifies:
        assert scores["roc_auc"] == 0.5
        assert scores["accuracy"] == pytest.approx(max(np.average(y == c, weights=weight) for c in (0, 1)))


def test_one_class_has_no_area_under_a_curve():
    scores = held_out_scores(Logistic(), np.ones(3), np.array([1.0, 2.0, -1.0]))
    assert np.isnan(scores["roc_auc"])
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["d2"] == 0.0


@every
def test_rows_without_a_prediction_or_weight_are_left_out(loss):
    y, u, weight = predicted(loss)
    u[::5] = np.nan
    kept = ~np.isnan(u) & (weight > 0)
    few = y[kept], u[kept], weight[kept]
    y = np.where(kept, y, -1e9)  # whatever they are
    assert held_out_scores(loss, y, u, weight) == held_out_scores(loss, *few)
    assert_allclose(calibration(loss, y, u, weight), calibration(loss, *few), rtol=1e-12)


@every
def test_weights_are_repetitions(loss):
    y, u, weight = predicted(loss)
    repeated = [np.repeat(a, weight.astype(int)) for a in (y, u)]
    ours, theirs = held_out_scores(loss, y, u, weight), held_out_scores(loss, *repeated)
    assert_allclose([*ours.values()], [*theirs.values()], rtol=1e-9)
    assert_allclose(calibration(loss, y, u, weight), calibration(loss, *repeated), rtol=1e-12)


@every
def test_the_order_of_rows_does_not_matter(loss):
    y, u, weight = predicted(loss)
    u = np.round(2 * u) / 2  # with ties
    order = np.random.default_rng(1).permutation(80)
    assert_allclose(calibration(loss, y[order], u[order], weight[order]), calibration(loss, y, u, weight), rtol=1e-12)


@every
def test_bins_by_hand(loss):
    y, u, _ = predicted(loss, n=60)
    by_rank = np.argsort(u).reshape(6, 10)
    expected = [[loss.mean(u[rows]).mean(), y[rows].mean(), 10.0] for rows in by_rank]
    assert_allclose(calibration(loss, y, u, n_bins=6), expected, rtol=1e-12)


def test_bins_of_uneven_weights_hold_all_of_it_and_their_means():
    y, u, weight = predicted(Poisson())
    table = calibration(Poisson(), y, u, weight, n_bins=7)
    assert table[:, 2].sum() == weight.sum()
    assert table[:, 2].max() - table[:, 2].min() <= 2 * weight.max()
    assert_allclose(np.average(table[:, 1], weights=table[:, 2]), np.average(y, weights=weight))
    assert (np.diff(table[:, 0]) > 0).all()


def test_equal_predictions_are_one_bin():
    table = calibration(Squared(), np.arange(4.0), np.array([2.0, 2.0, 2.0, 3.0]), n_bins=4)
    assert table[:, 2].tolist() == [0.0, 3.0, 0.0, 1.0]
    assert table[1].tolist() == [2.0, 1.0, 3.0]
    assert np.isnan(table[0, :2]).all()


@pytest.mark.parametrize("score", [held_out_scores, calibration, calibration_line])
def test_nothing_to_score_is_refused(score):
    with pytest.raises(InvalidInputError, match="no row has a held-out prediction"):
        score(Squared(), np.ones(3), np.array([np.nan, np.nan, 1.0]), np.array([1.0, 1.0, 0.0]))


def test_an_offset_that_explains_all_is_no_merit_of_the_model():
    """The counts depend on the exposure alone: a constant with the offset predicts them as well as any model."""
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(400, 6)), rng.uniform(0.1, 50, 400)
    model = ht.SparsePoissonRegressionCV().fit(X, rng.poisson(exposure), offset=np.log(exposure))
    assert abs(model.held_out_scores_["d2"]) < 0.05
    without = {score.key: score.without for score in _held_out(model, np.asarray(model.calibration_))}
    assert_allclose(without["mean_poisson_deviance"], model.held_out_scores_["mean_poisson_deviance"], rtol=0.05)


def test_offsets_of_several_outputs_are_not_their_merit():
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(100, 4)), 20 * rng.normal(size=(100, 2))
    y = offset + rng.normal(size=(100, 2))
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=range(3)).fit(X, y, offset=offset)
    assert abs(model.held_out_scores_["r2"]) < 0.2


def test_quantiles_have_no_calibration_of_means():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    model = ht.SparseQuantileRegressionCV(n_nonzero_coefs=range(3)).fit(X, X[:, 0] + rng.normal(size=100))
    assert model.held_out_scores_.keys() == {"mean_pinball_loss", "d2"}
    assert not hasattr(model, "calibration_")


def test_models_without_features_have_no_calibration_line():
    rng = np.random.default_rng(0)
    model = ht.SparseLinearRegressionCV().fit(rng.normal(size=(60, 5)), rng.normal(size=60))
    assert model.support_.size == 0
    assert np.isnan([model.held_out_scores_[f"calibration_{part}"] for part in ("slope", "intercept")]).all()


# classes with an offset


def constant(loss, point, offset):
    """The probabilities of the classes at thresholds or intercepts and an offset."""
    if isinstance(loss, Ordinal):
        return class_probabilities(point - offset[:, None])
    return softmax(np.append(point, 0.0) + offset, axis=1)


@pytest.mark.parametrize("loss", [Ordinal(), Multinomial()])
def test_the_best_constant_of_classes_with_an_offset_is_that_of_a_search(loss):
    rng = np.random.default_rng(3)
    offset = 1.5 * rng.standard_normal(150 if isinstance(loss, Ordinal) else (150, 3))
    y, weight = rng.integers(0, 3, 150).astype(float), rng.uniform(0.5, 2.0, 150)

    def mean(point):
        return np.average(-np.log(constant(loss, point, offset)[np.arange(150), y.astype(int)]), weights=weight)

    start = np.array([-1.0, 1.0]) if isinstance(loss, Ordinal) else np.zeros(2)
    best = minimize(mean, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14})
    found = null_loss(loss, y, weight, offset)
    assert_allclose(found, best.fun, rtol=1e-9)
    assert found > null_loss(loss, y, weight, None) + 0.05  # an offset of noise only does harm
    assert_allclose(null_loss(loss, y, weight, 0 * offset), null_loss(loss, y, weight, None), rtol=1e-9)
    few = 2.0 * (y == 2)  # a class without rows has the probability 0
    without = null_loss(loss, few / 2, weight, offset if offset.ndim == 1 else offset[:, [0, 2]])
    assert_allclose(null_loss(loss, few, weight, offset), without, rtol=1e-12)
    assert null_loss(loss, 0 * y, weight, offset) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("cls", [ht.SparseOrdinalRegressionCV, ht.SparseLogisticRegressionCV])
def test_classes_with_an_offset_have_a_share_of_deviance(cls):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((120, 4))
    offset = rng.standard_normal(120)
    y = np.searchsorted([-1.0, 1.0], 2 * X[:, 1] + offset + rng.logistic(size=120))
    known = offset if cls is ht.SparseOrdinalRegressionCV else np.outer(offset, [-1.0, 0.0, 1.0])
    model = cls(n_nonzero_coefs=range(3), cv=3, averaging="none").fit(X, y, offset=known)
    loss = Ordinal() if cls is ht.SparseOrdinalRegressionCV else Multinomial()
    scores, without = model.held_out_scores_, null_loss(loss, y, np.ones(120), known)
    assert_allclose(scores["d2"], 1 - scores["log_loss"] / without, rtol=1e-9)
    assert 0.1 < scores["d2"] < 0.9
