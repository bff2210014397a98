"""Several outputs: each is a linear model of its own, and together they are one objective of a matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator

from hardthresh import minimize
from hardthresh.constraints import Rank
from hardthresh.core import InvalidInputError, lookup
from hardthresh.core.meter import Meter
from hardthresh.designs import as_design, standardize
from hardthresh.losses import pointwise_losses
from hardthresh.objectives import LinearModel, MultiOutputModel


def data(n=30, p=4, q=3):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, p)), rng.standard_normal((n, q)), rng.uniform(0, 2, n), rng.standard_normal((p, q))


def stored(X, kind):
    if kind == "standardised":
        return standardize(as_design(X), np.full(len(X), 1 / len(X)), scale=True, intercept=True)
    return {"dense": np.asarray, "sparse": sp.csr_array, "operator": aslinearoperator}[kind](X)


@pytest.mark.parametrize("loss", pointwise_losses())
@pytest.mark.parametrize("kind", ["dense", "sparse", "operator", "standardised"])
def test_it_is_the_sum_of_its_outputs(kind, loss):
    X, U, weight, W = data()
    Y = lookup("loss", loss)().example_target(0.3 * U, np.random.default_rng(1))
    offset, X = 0.1 * U[::-1], stored(X, kind)
    if kind == "standardised":
        W = np.vstack([W, np.ones(3)])
    f = MultiOutputModel(X, Y, loss, sample_weight=weight, offset=offset, l2=0.2)
    parts = [LinearModel(X, Y[:, j], loss, sample_weight=weight, offset=offset[:, j], l2=0.2) for j in range(3)]
    at, alone = f.evaluate(W), [part.evaluate(W[:, j]) for j, part in enumerate(parts)]
    np.testing.assert_allclose(at.value, sum(one.value for one in alone), rtol=1e-12)
    np.testing.assert_allclose(at.gradient, np.stack([one.gradient for one in alone], axis=1), rtol=1e-12)
    np.testing.assert_allclose(at.prediction, np.stack([one.prediction for one in alone], axis=1), rtol=1e-12)
    images = [part.curvature(one, W[:, j]) for j, (part, one) in enumerate(zip(parts, alone, strict=True))]
    np.testing.assert_allclose(f.curvature(at, W), np.stack(images, axis=1), rtol=1e-12)
    along = [part.curvature_along(one, W[:, j]) for j, (part, one) in enumerate(zip(parts, alone, strict=True))]
    np.testing.assert_allclose(f.curvature_along(at, W), sum(along), rtol=1e-12)
    assert f.traits.quadratic == parts[0].traits.quadratic


@pytest.mark.parametrize("loss", [name for name in pointwise_losses() if lookup("loss", name)().has_likelihood])
def test_the_likelihood_is_that_of_all_targets(loss):
    """As of one linear model of all targets, one below the other, that share the dispersion."""
    X, U, weight, W = data()
    Y = lookup("loss", loss)().example_target(0.3 * U, np.random.default_rng(1))
    f = MultiOutputModel(X, Y, loss, sample_weight=weight)
    stacked = LinearModel(np.kron(X, np.eye(3)), Y.ravel(), loss, sample_weight=np.repeat(weight, 3))
    np.testing.assert_allclose(f.targets.n_examples, weight.sum())
    np.testing.assert_allclose([f.n_targets, stacked.n_targets], 3 * weight.sum())
    one, other = f.evaluate(0.1 * W), stacked.evaluate(0.1 * W.ravel())
    np.testing.assert_allclose(f.minus_twice_log_likelihood(one), stacked.minus_twice_log_likelihood(other))


def test_a_ridge_attains_the_bound_of_separated_classes():
    X, Y = np.array([[-1.0], [1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    assert not MultiOutputModel(X, Y, "logistic").attains_bound()
    assert MultiOutputModel(X, Y, "logistic", l2=0.1).attains_bound()


def test_coefficients_of_low_rank_predict_counts():
    rng = np.random.default_rng(3)
    X, W = rng.standard_normal((2000, 5)), 0.4 * np.outer([1.0, 0.0, -1.0, 0.5, 0.0], [1.0, -0.5, 0.5])
    run = minimize(MultiOutputModel(X, rng.poisson(np.exp(X @ W)), "poisson"), Rank(1))
    assert run.converged
    np.testing.assert_allclose(run.w, W, atol=0.05)


def test_passes_are_counted_by_column():
    X, Y, _, W = data()
    meter = Meter()
    f = MultiOutputModel(X, Y).metered(meter)
    at = f.evaluate(W)
    assert meter.passes == 6.0
    f.curvature_along(at, W)
    assert meter.passes == 9.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Y": np.ones(30)}, r"Y has shape \(30,\); \(30, q\) is needed"),
        ({"Y": np.ones((29, 3))}, r"Y has shape \(29, 3\); \(30, q\) is needed"),
        ({"Y": np.ones((30, 0))}, r"Y has shape \(30, 0\)"),
        ({"Y": np.full((30, 3), np.nan)}, "Y contains NaN or infinity"),
        ({"X": np.ones((30, 0))}, "at least one example and one column"),
        ({"Y": np.pad([[1.5]], ((4, 25), (2, 0))), "loss": "logistic"}, r"0, 1 or between; y\[4, 2\] is 1.5"),
        ({"offset": np.ones(30)}, r"offset has shape \(30,\); \(30, q\) is needed"),
        ({"offset": np.ones((30, 2))}, r"offset has shape \(30, 2\), but Y has \(30, 3\)"),
        ({"sample_weight": -np.ones(30)}, "sample_weight must be non-negative"),
        ({"l2": -1.0}, "l2 must be finite and >= 0"),
        ({"l2": np.inf}, "l2 must be finite and >= 0"),
    ],
    ids=str,
)
def test_bad_input_is_refused(changes, message):
    X, Y, _, _ = data()
    with pytest.raises(InvalidInputError, match=message):
        MultiOutputModel(**{"X": X, "Y": Y, **changes})


# directions along which f falls for ever


def separated(seed=0, n=60):
    """Three classes in the order of the first column, and in no order of the others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.searchsorted([-0.5, 0.5], X[:, 0]).astype(float)
    return np.column_stack([X, np.ones(n)]), y


def falls(model, v, start):
    """How far f falls, and by how much it rises at most on the way, along multiples of a direction."""
    values = [model.value(start + t * v) for t in (0.0, 0.5, 1.0, 2.0)]
    return values[0] - values[-1], max(np.diff(values).max(), 0.0)


def test_separated_classes_have_a_direction():
    X, y = separated()
    model = MultiOutputModel(X, y, "multinomial")
    at = model.evaluate(np.zeros((5, 3)))
    v = model.recession(at, np.arange(15))
    gained, lost = falls(model, v, np.zeros((5, 3)))
    assert gained > 0.5
    assert lost == 0.0
    own = np.take_along_axis(X @ v, y.astype(int)[:, None], axis=1)
    assert np.all(own >= X @ v - 1e-6 * np.abs(v).max())
    assert model.recession(at, np.arange(3, 15)) is None, "without the first column"
    ridge = np.array([0.1, 0, 0, 0, 0])
    assert MultiOutputModel(X, y, "multinomial", l2=ridge).recession(at, np.arange(15)) is None
    assert MultiOutputModel(X, y, "multinomial", l2=0.1).recession(at, np.arange(15)) is None


def test_one_overlapping_row_takes_the_direction_away():
    X, y = separated()
    y[np.argmax(X[:, 0])], y[np.argmin(X[:, 0])] = 0.0, 2.0
    y[np.argsort(X[:, 0])[[1, -2]]] = 1.0
    model = MultiOutputModel(X, y, "multinomial")
    assert model.recession(model.evaluate(np.zeros((5, 3))), np.arange(15)) is None
    weights = np.ones(60)
    weights[np.argsort(X[:, 0])[[0, 1, -2, -1]]] = 0.0
    without = MultiOutputModel(X, y, "multinomial", sample_weight=weights)
    assert without.recession(without.evaluate(np.zeros((5, 3))), np.arange(15)) is not None


def test_counts_of_one_output_that_are_zero_with_a_dummy():
    rng = np.random.default_rng(1)
    dummy = (np.arange(40) % 4 == 0).astype(float)
    Y = 1.0 + rng.poisson(2.0, (40, 2))
    Y[:, 1] *= dummy == 0
    X = np.column_stack([rng.standard_normal(40), dummy, np.ones(40)])
    model = MultiOutputModel(X, Y, "poisson")
    v = model.recession(model.evaluate(np.zeros((3, 2))), np.arange(6))
    assert v[1, 1] < 0
    assert_allclose(np.delete(v.reshape(-1), 3), 0.0, atol=1e-9)
    assert MultiOutputModel(X, Y, "squared").recession(model.evaluate(np.zeros((3, 2))), np.arange(6)) is None
