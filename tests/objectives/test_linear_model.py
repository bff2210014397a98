"""The linear model: derivatives, parts, weights, offsets, ridge, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import hardthresh.attacks  # noqa: F401  (registers an objective)
from hardthresh.arrays import to_numpy
from hardthresh.core import InvalidInputError, LinearObjective, MeanObjective, Objective, SmoothObjective, registered
from hardthresh.core.meter import Meter
from hardthresh.designs import as_design, standardize
from hardthresh.losses import Logistic
from hardthresh.objectives import LinearModel
from levels import draws

EXAMPLES = [
    pytest.param(objective, id=f"{entry.name}{number}")
    for entry in registered("objective").values()
    for number, objective in enumerate(entry.examples())
]
every = pytest.mark.parametrize("objective", EXAMPLES)


def that_keeps(contract):
    """The examples that keep a contract."""
    able = [parameter for parameter in EXAMPLES if isinstance(parameter.values[0], contract)]
    assert able, f"no example is a {contract.__name__}, so nothing would be tested"
    return pytest.mark.parametrize("objective", able)


def point(objective, seed=0):
    """A random point or direction; symmetric, and near the null point, for an objective of symmetric matrices."""
    drawn = np.random.default_rng(seed).standard_normal(objective.shape)
    return objective.null_point() + 0.1 * (drawn + drawn.T) if is_symmetric(objective) else drawn


def is_symmetric(objective):
    return objective.traits.symmetric


# --- every registered objective --------------------------------------------------------------------------------------


@every
def test_keeps_the_protocol(objective):
    assert isinstance(objective, Objective)
    assert objective.zeros().shape == objective.shape
    assert not np.asarray(objective.zeros()).any()
    assert objective.value(point(objective)) >= objective.lower_bound
    assert isinstance(objective.value(point(objective)), float)


@every
def test_gradient_is_the_derivative_of_the_value(objective):
    w = point(objective)
    at = objective.evaluate(w)
    gradient = np.asarray(at.gradient)
    assert at.point is w
    assert at.value == objective.value(w)
    h = 1e-5
    for j in np.ndindex(w.shape):
        e = np.zeros_like(w)
        e[j] = 1.0
        e = (e + e.T) / 2 if is_symmetric(objective) else e
        slope = (objective.value(w + h * e) - objective.value(w - h * e)) / (2 * h)
        assert np.isfinite(slope)
        np.testing.assert_allclose(np.sum(gradient * e), slope, rtol=1e-6, atol=1e-9)


@that_keeps(SmoothObjective)
def test_curvature_is_the_derivative_of_the_gradient(objective):
    w, v = point(objective), point(objective, 1)
    h = 1e-5
    slope = (objective.evaluate(w + h * v).gradient - objective.evaluate(w - h * v).gradient) / (2 * h)
    np.testing.assert_allclose(objective.curvature(objective.evaluate(w), v), slope, rtol=1e-6, atol=1e-8)


@that_keeps(SmoothObjective)
def test_curvature_along_a_direction_is_its_share_of_the_product(objective):
    at, v = objective.evaluate(point(objective)), point(objective, 1)
    np.testing.assert_allclose(objective.curvature_along(at, v), np.sum(v * objective.curvature(at, v)), rtol=1e-12)


@that_keeps(LinearObjective)
def test_the_diagonal_of_the_curvature(objective):
    at, unit = objective.evaluate(point(objective)), np.eye(*objective.shape)
    expected = [objective.curvature(at, e)[j] for j, e in enumerate(unit)]
    np.testing.assert_allclose(objective.hessian_diag(at), expected, rtol=1e-12)


@that_keeps(LinearObjective)
def test_the_hessian_is_the_curvature_as_a_matrix(objective):
    at, v = objective.evaluate(point(objective)), point(objective, 1)
    H = objective.hessian(at)
    np.testing.assert_allclose(H @ v, objective.curvature(at, v), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(H, H.T, rtol=1e-12)


@every
def test_a_prediction_saves_computing_it_again(objective):
    w = point(objective)
    prediction = objective.predict(w)
    one, other = objective.evaluate(w), objective.evaluate(w, prediction)
    assert one.value == other.value == objective.value(w, prediction)
    np.testing.assert_array_equal(one.gradient, other.gradient)


@that_keeps(LinearObjective)
def test_columns_are_the_objective_of_some_coordinates(objective):
    some = np.array([1, 4, 7])
    part = objective.columns(some)
    v = np.array([0.5, -1.0, 2.0])
    w = np.zeros(objective.shape)
    w[some] = v
    whole, at = objective.evaluate(w), part.evaluate(v)
    np.testing.assert_allclose(at.value, whole.value, rtol=1e-12)
    np.testing.assert_allclose(at.gradient, whole.gradient[some], rtol=1e-10, atol=1e-12)
    assert part.shape == (3,)


@that_keeps(LinearObjective)
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_several_evaluations_together_are_those_of_each(objective, count):
    points = [point(objective, seed) * (seed != 1) for seed in range(count)]
    together = objective.evaluate_many(points)
    assert len(together) == count
    for w, at in zip(points, together, strict=True):
        expected = objective.evaluate(w)
        assert at.point is w
        assert at.value == expected.value
        np.testing.assert_allclose(at.gradient, expected.gradient, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(at.prediction, expected.prediction)


@that_keeps(LinearObjective)
def test_the_hessian_between_columns_is_a_block_of_the_whole(objective):
    at = objective.evaluate(point(objective))
    whole = objective.hessian(at)
    for some, others in (([1, 4, 7], [0, 11]), ([3], [2]), ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]), ([], [1])):
        one, other = np.array(some, dtype=np.int64), np.array(others, dtype=np.int64)
        block = objective.columns(one).cross_hessian(at, objective.columns(other))
        np.testing.assert_allclose(block, whole[np.ix_(one, other)], rtol=1e-10, atol=1e-13)


@that_keeps(LinearObjective)
def test_a_quadratic_is_one_whose_hessian_is_the_same_everywhere(objective):
    one, other = (objective.hessian(objective.evaluate(point(objective, seed))) for seed in (0, 1))
    assert np.allclose(one, other, rtol=1e-12) == objective.traits.quadratic


@that_keeps(MeanObjective)
def test_rows_are_a_mini_batch(objective):
    """Each stands for all rows, so that their mean, by their sizes, is the objective: an unbiased estimate."""
    w = point(objective)
    n = objective.traits.n_rows
    parts = [objective.rows(np.arange(a, b)) for a, b in ((0, 12), (12, n))]
    share = [12 / n, (n - 12) / n]
    value = sum(m * part.value(w) for m, part in zip(share, parts, strict=True))
    np.testing.assert_allclose(value, objective.value(w), rtol=1e-12)
    gradient = sum(m * np.asarray(part.evaluate(w).gradient) for m, part in zip(share, parts, strict=True))
    np.testing.assert_allclose(gradient, np.asarray(objective.evaluate(w).gradient), rtol=1e-10, atol=1e-12)


@that_keeps(MeanObjective)
def test_no_rows_are_refused(objective):
    with pytest.raises(InvalidInputError, match="at least one row"):
        objective.rows(np.array([], dtype=np.int64))


@every
def test_nothing_is_mutated(objective):
    w, v = point(objective), point(objective, 1)
    w.flags.writeable = v.flags.writeable = False
    at = objective.evaluate(w)
    for array in (at.gradient, at.prediction):
        if isinstance(array, np.ndarray):  # factored ones are immutable
            array.flags.writeable = False
    if isinstance(objective, SmoothObjective):
        objective.curvature(at, v)
    objective.value(w, at.prediction)


# --- the linear model's own ------------------------------------------------------------------------------------------


def data(n=30, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def test_the_formulas():
    X, y = data()
    w = np.arange(6.0) / 3
    assert LinearModel(X, y).value(w) == pytest.approx(np.sum((X @ w - y) ** 2) / 60, rel=1e-14)
    labels = (y > 0).astype(float)
    u = X @ w
    logistic = np.mean(np.logaddexp(0, u) - labels * u)
    assert LinearModel(X, labels, loss="logistic").value(w) == pytest.approx(logistic, rel=1e-14)
    assert LinearModel(X, labels, loss=Logistic()).value(w) == pytest.approx(logistic, rel=1e-14)
    ridge = LinearModel(X, y, l2=np.arange(6.0)).value(w) - LinearModel(X, y).value(w)
    assert ridge == pytest.approx(0.5 * np.sum(np.arange(6.0) * w**2), rel=1e-12)
    offset = np.linspace(-1, 1, 30)
    assert LinearModel(X, y, offset=offset).value(w) == pytest.approx(LinearModel(X, y - offset).value(w), rel=1e-13)


@given(st.lists(st.integers(0, 4), min_size=8, max_size=8).filter(any), st.sampled_from(["squared", "logistic"]))
@draws(30)
def test_weights_are_repetitions(counts, loss):
    X, y = data(8)
    y = (y > 0).astype(float)
    rows = np.repeat(np.arange(8), counts)
    w = np.arange(6.0) / 3
    one = LinearModel(X, y, loss=loss, sample_weight=counts, offset=y, l2=0.1).evaluate(w)
    other = LinearModel(X[rows], y[rows], loss=loss, offset=y[rows], l2=0.1).evaluate(w)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1e300, 1.7e308])
def test_the_scale_of_the_weights_does_not_matter(factor):
    X, y = data()
    weights = np.random.default_rng(1).random(30)
    w = np.ones(6)
    scaled = LinearModel(X, y, sample_weight=weights * factor).value(w)
    assert scaled == pytest.approx(LinearModel(X, y, sample_weight=weights).value(w), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr", "standardized"])
def test_the_hessian_in_blocks_of_rows(kind, monkeypatch):
    X, y = data()
    design = as_design(sp.csr_array(X) if kind == "csr" else X)
    if kind == "standardized":
        design = standardize(design, np.full(30, 1 / 30), scale=True, intercept=True)
    objective = LinearModel(design, (y > 0).astype(float), loss="logistic", l2=0.1)
    at = objective.evaluate(0.1 + objective.zeros())
    whole = objective.hessian(at)
    monkeypatch.setattr("hardthresh.designs.dense._GRAM_BLOCK", 4 * design.shape[1])
    np.testing.assert_allclose(objective.hessian(at), whole, rtol=1e-12)


STORAGES = ["dense", "fortran", "csr", "standardized", "strict", "torch"]


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_several_evaluations_together_whatever_the_storage(kind, loss, monkeypatch):
    X, y = data()
    y = (y > 0).astype(float)
    if kind in ("strict", "torch"):
        library = pytest.importorskip({"strict": "array_api_strict"}.get(kind, kind), reason=f"{kind} is not installed")
        X, y = library.asarray(X), library.asarray(y)
    design = as_design({"fortran": np.asfortranarray, "csr": sp.csr_array}.get(kind, lambda X: X)(X))
    if kind == "standardized":
        design = standardize(design, np.full(30, 1 / 30), scale=True, intercept=True)
    objective = LinearModel(design, y, loss=loss, l2=0.1)
    points = [objective.zeros() + 0.1 * step for step in range(7)]
    for entries in (1 << 23, 3 * design.shape[1], 1):  # how many points are taken at a time
        monkeypatch.setattr("hardthresh.objectives.linear_model._MANY", entries)
        for w, at in zip(points, objective.evaluate_many(points), strict=True):
            expected = objective.evaluate(w)
            assert type(at.gradient) is type(expected.gradient)
            assert at.value == expected.value
            np.testing.assert_allclose(to_numpy(at.gradient), to_numpy(expected.gradient), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gradients_to_screen_are_gradients_up_to_single_precision(loss, l2, monkeypatch):
    rng = np.random.default_rng(17)
    X, y = rng.standard_normal((60, 40)), rng.integers(0, 2, 60).astype(float)
    objective = LinearModel(X, y, loss=loss, l2=l2, offset=rng.standard_normal(60))
    points = [rng.standard_normal(40) for _ in range(6)]
    exact = np.stack([objective.evaluate(w).gradient for w in points])
    sizes = np.linalg.norm(X, axis=0) * np.linalg.norm(rng.standard_normal(60)) / 60
    for least, tol in ((1 << 20, 1e-14), (1, 1e-6)):  # small data are read in their own precision
        monkeypatch.setattr("hardthresh.designs.dense._SINGLE", least)
        found = np.stack(objective.screening_gradients(points))
        error = np.max(np.abs(found - exact) / sizes)
        assert error < 10 * tol
        assert (error > 1e-9) == (least == 1)
    np.testing.assert_array_equal(objective.screening_gradients(points[:1])[0], exact[0])


def test_gradients_to_screen_count_as_a_pass_each():
    X, y = data()
    one, other = Meter(), Meter()
    model = LinearModel(X, y)
    points = [np.ones(X.shape[1]), 2 * np.ones(X.shape[1])]
    model.metered(one).screening_gradients(points)
    model.metered(other).evaluate_many(points)
    assert one.passes == pytest.approx(other.passes)


def test_several_evaluations_count_as_a_pass_each():
    X, y = data()
    one, other = Meter(), Meter()
    model = LinearModel(X, y)
    points = [model.zeros(), np.ones(X.shape[1]), 2 * np.ones(X.shape[1])]
    model.metered(one).evaluate_many(points)
    for w in points:
        model.metered(other).evaluate(w)
    assert one.passes == pytest.approx(other.passes)


def test_several_evaluations_of_float32_are_float32():
    X, y = data()
    model = LinearModel(np.float32(X), np.float32(y))
    for at in model.evaluate_many([model.zeros(), model.zeros() + 1]):
        assert at.gradient.dtype == at.prediction.dtype == np.float32


def test_extreme_predictions_stay_finite():
    """|x'w| = 1e4 under the logistic loss: no overflow, f finite."""
    X = np.array([[1e4], [-1e4], [1e4], [-1e4]])
    objective = LinearModel(X, np.array([1.0, 0.0, 0.0, 1.0]), loss="logistic")
    at = objective.evaluate(np.ones(1))
    assert at.value == pytest.approx(5e3)
    assert np.isfinite(at.gradient).all()
    assert np.isfinite(objective.curvature(at, np.ones(1))).all()


def test_float32_stays_float32():
    X, y = data()
    objective = LinearModel(X.astype(np.float32), y, sample_weight=np.ones(30), offset=y, l2=[0.1] * 6)
    at = objective.evaluate(objective.zeros() + 1)
    assert at.point.dtype == at.gradient.dtype == at.prediction.dtype == np.float32
    assert objective.curvature(at, at.point).dtype == objective.hessian(at).dtype == np.float32


GOOD = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
TARGET = np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("X", "y", "settings", "message"),
    [
        (np.where(GOOD == 3, np.nan, GOOD), TARGET, {}, "X contains NaN or infinity"),
        (np.where(GOOD == 3, np.inf, GOOD), TARGET, {}, "X contains NaN or infinity"),
        (sp.csr_array(np.where(GOOD == 3, np.inf, GOOD)), TARGET, {}, "X contains NaN or infinity"),
        (GOOD[:, 0], TARGET, {}, "X must be a matrix"),
        (GOOD.astype(str), TARGET, {}, "X must be numeric"),
        (GOOD * 1j, TARGET, {}, "X must be numeric"),
        (np.zeros((0, 2)), np.zeros(0), {}, r"X has shape \(0, 2\)"),
        (np.zeros((3, 0)), TARGET, {}, r"X has shape \(3, 0\)"),
        (GOOD, TARGET[:2], {}, r"y has shape \(2,\); \(3,\) is needed"),
        (GOOD, TARGET[:, None], {}, r"y has shape \(3, 1\)"),
        (GOOD, [0.0, np.nan, 1.0], {}, "y contains NaN or infinity"),
        (GOOD, [0.0, np.inf, 1.0], {}, "y contains NaN or infinity"),
        (GOOD, ["a", "b", "c"], {}, "y must be numeric"),
        (GOOD, TARGET * 1j, {}, "y must be"),
        (GOOD, [0.0, 2.0, 1.0], {"loss": "logistic"}, r"Logistic loss needs targets .* y\[1\] is 2"),
        (GOOD, [0.0, 1.0, -1.0], {"loss": "logistic"}, r"y\[2\] is -1"),
        (GOOD, TARGET, {"loss": "logit"}, "unknown loss 'logit'"),
        (GOOD, TARGET, {"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must be non-negative"),
        (GOOD, TARGET, {"sample_weight": [0.0, 0.0, 0.0]}, "positive entry"),
        (GOOD, TARGET, {"sample_weight": [1.0, np.nan, 1.0]}, "sample_weight contains NaN"),
        (GOOD, TARGET, {"sample_weight": [1.0, 1.0]}, "sample_weight has shape"),
        (GOOD, TARGET, {"sample_weight": 1.0}, "sample_weight has shape"),
        (GOOD, TARGET, {"offset": [1.0, 1.0]}, "offset has shape"),
        (GOOD, TARGET, {"offset": [1.0, np.inf, 1.0]}, "offset contains NaN or infinity"),
        (GOOD, TARGET, {"offset": [1.0, -1e200, 1.0]}, "the squares of offset leave the range of float64 .*1e.200"),
        (GOOD, TARGET, {"offset": ["a", "b", "c"]}, "offset must be numeric"),
        (GOOD, TARGET, {"l2": -1.0}, "l2 must be finite and >= 0"),
        (GOOD, TARGET, {"l2": np.nan}, "l2 must be finite and >= 0"),
        (GOOD, TARGET, {"l2": np.inf}, "l2 must be finite and >= 0"),
        (GOOD, TARGET, {"l2": [1.0, 2.0, 3.0]}, "l2 has shape"),
    ],
)
def test_bad_input_is_refused_and_named(X, y, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        LinearModel(X, y, **settings)


def test_libraries_are_not_mixed():
    import array_api_strict

    with pytest.raises(InvalidInputError, match="one library"):
        LinearModel(GOOD, array_api_strict.asarray(TARGET))


def test_a_ridge_on_every_coordinate_attains_the_bound_of_separated_classes():
    """A loss that falls for ever has a minimiser beside a ridge: on all coordinates, not on some of them."""
    X, y = np.array([[-1.0, 0.5], [1.0, 0.5]]), np.array([0.0, 1.0])
    for l2, attained in ((0.0, False), (0.1, True), ([0.1, 0.2], True), ([0.1, 0.0], False)):
        assert LinearModel(X, y, loss="logistic", l2=l2).attains_bound() == attained
        assert LinearModel(X, y, l2=l2).attains_bound


@pytest.mark.parametrize(("loss", "says"), [(None, "got None"), (3, "got 3"), (Logistic, r"write Logistic\(\)")])
def test_what_is_not_a_loss_is_refused(loss, says):
    with pytest.raises(InvalidInputError, match=f"^loss must be .*{says}"):
        LinearModel(np.eye(2), np.ones(2), loss=loss)
