"""The log-loss of classes over blocks is the model of the same rows in memory, with weights, offsets and a ridge."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh import minimize
from hardthresh.constraints import RowSparsity
from hardthresh.core import InvalidInputError, RowObjective
from hardthresh.designs import Serial, as_design, from_arrays, standardize
from hardthresh.losses import Multinomial
from hardthresh.objectives import MultiOutputModel, blocked_classes
from hardthresh.objectives.flat import FlatModel
from hardthresh.objectives.flat_classes import FlatClasses
from hardthresh.objectives.inputs import mean_weights
from hardthresh.objectives.kept_classes import KeptClasses
from hardthresh.solvers import IHT, AcceleratedIHT, HardThresholdingPursuit
from levels import at_most

N, D, Q = 700, 20, 3
CHOSEN = np.array([3, 4, 7])


def both(intercept, sparse=False, shift=20.0):
    """Return a model over blocks and that in memory, of columns of which one has a large mean."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X[:, 4] += shift
    y = np.argmax(2.0 * X[:, [3, 9, 15]] + rng.gumbel(size=(N, Q)), axis=1).astype(float)
    weight, offset = rng.integers(0, 3, N).astype(float), 0.2 * rng.standard_normal((N, Q))
    given = sp.csr_array(X) if sparse else X
    blocked = blocked_classes(Serial(from_arrays(given, y, weight, offset, rows=128)), Q, l2=0.1, intercept=intercept)
    design = as_design(X)
    weights = mean_weights(weight, design.zeros(1), N)
    columns = standardize(design, weights, scale=True, intercept=intercept, centre=intercept)
    ridge = np.append(np.full(D, 0.1), 0.0) if intercept else 0.1
    plain = MultiOutputModel(columns, y, Multinomial(Q), sample_weight=weight, offset=offset, l2=ridge)
    return blocked, plain


def point(model):
    rng = np.random.default_rng(1)
    w = np.zeros(model.shape)
    w[CHOSEN] = rng.standard_normal((3, Q))
    w[-1] = rng.standard_normal(Q)
    return w


def what(model):
    """Return what a model says at a point, about the rows of the point, and about one direction of all rows."""
    w = point(model)
    at, rows = model.evaluate(w), np.append(CHOSEN, model.shape[0] - 1)
    few = model.columns(rows)
    there, products = few.evaluate(w[rows]), model.column_products()
    direction = np.random.default_rng(2).standard_normal(model.shape)
    return {
        "value": at.value,
        "gradient": at.gradient,
        "curvature": model.curvature(at, direction),
        "curvature along its rows": model.curvature(at, w),
        "second derivative": model.curvature_along(at, direction),
        "second derivative along its rows": model.curvature_along(at, w),
        "block of the outputs": model.output_block(at),
        "hessian": model.hessian(at),
        "value of few": there.value,
        "gradient of few": there.gradient,
        "hessian of few": few.hessian(there),
        "products": products.columns(rows).hessian(at),
        "squares": products.hessian_diag(at),
        "products of few": few.column_products().hessian(there),
        "likelihood": model.minus_twice_log_likelihood(at),
        "shrinkage": model.shrinkage(at, rows),
        "rounding": model.rounding(at),
        "examples": (model.n_targets, model.coefficients_per_row, model.attains_bound()),
    }


def test_a_model_can_be_sent_elsewhere_without_the_rows_that_it_keeps():
    model, _ = both(intercept=True)
    there = pickle.loads(pickle.dumps(model))
    assert there.kept.index.size == 0
    at, again = (f.evaluate(point(f)) for f in (model, there))
    assert again.value == pytest.approx(at.value, rel=1e-12)
    np.testing.assert_allclose(again.gradient, at.gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_what_it_says_is_what_rows_in_memory_say(intercept, sparse):
    blocked, plain = both(intercept, sparse)
    assert isinstance(blocked, RowObjective)
    found, expected = what(blocked), what(plain)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_blocks_of_rows_are_those_of_the_hessian(intercept):
    """What certificates ask for: the Hessian of each row of coefficients, from one reading."""
    blocked, plain = both(intercept)
    flat, twin = FlatClasses(blocked), FlatModel(plain)
    at, there = (model.evaluate(model.to_vector(point(model._model))) for model in (flat, twin))
    hessian = twin.hessian(there)
    before = blocked.readings
    np.testing.assert_allclose(flat.hessian_diag(at), np.diagonal(hessian), rtol=1e-9)
    units = np.arange(hessian.shape[0]).reshape(-1, flat.width)
    found = flat.hessian_blocks(at, units)
    np.testing.assert_allclose(found, [hessian[np.ix_(unit, unit)] for unit in units], rtol=1e-9, atol=1e-12)
    assert blocked.readings == before + 1
    few = np.concatenate([units[3], units[-1]])
    part = flat.columns(few)
    np.testing.assert_allclose(
        part.hessian(part.evaluate(at.point[few])),
        twin.columns(few).hessian(twin.columns(few).evaluate(at.point[few])),
        rtol=1e-9,
        atol=1e-12,
    )


SOLVERS = {
    "auto": (None, 6),
    "pursuit": (HardThresholdingPursuit(), 15),
    "IHT": (IHT(), np.inf),
    "momentum": (AcceleratedIHT(), np.inf),
}


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_of_any_solver_has_the_answer_in_memory(solver):
    """Refits are of columns that are kept, and no readings: pursuit made 31 with them."""
    solver, most = SOLVERS[solver]
    blocked, plain = both(True)
    sparse = RowSparsity(3, free=(D,))
    found, expected = (minimize(model, sparse, solver, tol=1e-12) for model in (blocked, plain))
    np.testing.assert_array_equal(found.support.rows, expected.support.rows)
    np.testing.assert_allclose(found.w, expected.w, atol=1e-4)
    assert blocked.readings <= most


def test_second_derivatives_along_kept_columns_are_no_reading():
    blocked, _ = both(True)
    at, direction = blocked.evaluate(point(blocked)), point(blocked)
    blocked.columns(CHOSEN)
    before = blocked.readings
    blocked.curvature_along(at, direction)
    assert blocked.readings == before
    direction[12] = 1.0
    blocked.curvature_along(at, direction)
    assert blocked.readings == before + 1


def test_products_with_the_hessian_of_few_columns_compute_it_once(monkeypatch):
    """Conjugate gradients ask for many at one point."""
    blocked, plain = both(True)
    rows, calls = np.append(CHOSEN, D), []
    few, twin, w = blocked.columns(rows), plain.columns(rows), point(blocked)[rows]
    at, there = few.evaluate(w), twin.evaluate(w)
    computed = KeptClasses._sums
    monkeypatch.setattr(KeptClasses, "_sums", lambda *given, **count: calls.append(1) or computed(*given, **count))
    for direction in (w, np.ones_like(w)):
        image = twin.curvature(there, direction)
        np.testing.assert_allclose(few.curvature(at, direction), image, rtol=1e-9, atol=1e-12)
    assert len(calls) == 1
    other = few.evaluate(np.zeros_like(w))
    np.testing.assert_allclose(few.hessian(other), twin.hessian(twin.evaluate(other.point)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("separated", [True, False])
def test_a_direction_along_which_it_falls_for_ever_is_that_of_a_point_that_separates(separated):
    """Without a ridge: that of the point itself is tried, as for two classes."""
    x = np.linspace(-2.0, 2.0, 90)
    y = np.digitize(x, [-2 / 3, 2 / 3]).astype(float)
    y[40] = 1.0 if separated else 0.0
    model = blocked_classes(Serial(from_arrays(x[:, None], y, rows=40)), 3, l2=0.0, scale=False)
    w = np.array([[-3.0, 0.0, 3.0], [-0.5, 1.5, -0.5]])
    at, indices = model.evaluate(w), np.arange(6)
    model.columns(np.array([0]))
    before, found = model.readings, model.recession(at, indices)
    assert (found is not None) == separated
    assert model.readings == before
    assert model.with_ridge([1.0, 0.0]).recession(at, indices) is None
    if found is not None:
        assert model.value(w + found) < 1e-9 < at.value


@pytest.mark.parametrize(("y", "message"), [(np.full(50, 3.0), "50 in y are not"), (np.full(50, 0.5), "class numbers")])
def test_targets_that_are_no_class_are_refused(y, message):
    with pytest.raises(InvalidInputError, match=message):
        blocked_classes(Serial(from_arrays(np.eye(50), y, rows=12)), 3)
