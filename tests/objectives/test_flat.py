"""A model of several outputs as a linear objective of vectors: it is the same function, and its blocks are right."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hardthresh.core.objective import LinearObjective
from hardthresh.objectives import MultiOutputModel
from hardthresh.objectives.flat import FlatModel


def models():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((25, 4)), rng.uniform(0.5, 2.0, 25)
    classes = rng.integers(0, 3, 25).astype(float)
    ridge = np.array([0.1, 0.0, 0.3, 0.2])
    return [
        MultiOutputModel(X, rng.standard_normal((25, 2)), sample_weight=weights, l2=ridge),
        MultiOutputModel(X, classes, "multinomial", sample_weight=weights, offset=rng.standard_normal((25, 3)), l2=0.1),
        MultiOutputModel(X, rng.poisson(1.0, (25, 2)).astype(float), "poisson", l2=ridge),
    ]


@pytest.mark.parametrize("place", range(3))
def test_it_is_the_model(place):
    model = models()[place]
    flat = FlatModel(model)
    assert isinstance(flat, LinearObjective)
    v = np.random.default_rng(1).standard_normal(flat.shape)
    W = flat.to_matrix(v)
    assert_allclose(flat.to_vector(W), v, atol=1e-14)
    at, there = flat.evaluate(v), model.evaluate(W)
    assert at.value == there.value == flat.value(v)
    assert_allclose(at.gradient @ v, np.sum(there.gradient * W), rtol=1e-12)
    assert flat.rounding(at) == model.rounding(there)
    assert flat.width == 2, "of two outputs, and of three classes, which differ in two directions"


@pytest.mark.parametrize("place", range(3))
def test_its_hessian_by_products(place):
    flat = FlatModel(models()[place])
    at = flat.evaluate(np.random.default_rng(1).standard_normal(flat.shape))
    size = flat.shape[0]
    H = np.stack([flat.curvature(at, unit) for unit in np.eye(size)])
    assert_allclose(flat.hessian(at), H, atol=1e-12)
    assert_allclose(flat.hessian_diag(at), np.diag(H), atol=1e-12)
    direction = np.random.default_rng(2).standard_normal(size)
    assert_allclose(flat.curvature_along(at, direction), direction @ H @ direction)
    step = 1e-6
    slopes = [flat.evaluate(at.point + s * step * direction).gradient for s in (1, -1)]
    assert_allclose(H @ direction, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("place", range(3))
def test_columns_are_whole_rows(place):
    flat = FlatModel(models()[place])
    v = np.random.default_rng(1).standard_normal(flat.shape)
    indices = np.array([2, 3, 6, 7])  # the rows 1 and 3
    v[np.setdiff1d(np.arange(8), indices)] = 0.0
    part, at = flat.columns(indices), flat.evaluate(v)
    small = part.evaluate(v[indices], at.prediction)
    assert small.value == pytest.approx(at.value)
    H = flat.hessian(at)
    assert_allclose(small.gradient, at.gradient[indices])
    assert_allclose(part.hessian(small), H[np.ix_(indices, indices)], atol=1e-12)
    other = flat.columns(np.array([0, 1]))
    assert_allclose(part.cross_hessian(small, other), H[np.ix_(indices, [0, 1])], atol=1e-12)


def test_it_falls_for_ever_where_the_model_does():
    X = np.random.default_rng(0).standard_normal((40, 4))
    model = MultiOutputModel(X, np.argmax(X[:, :3], axis=1).astype(float), "multinomial")
    flat = FlatModel(model)
    at, there = flat.evaluate(flat.zeros()), model.evaluate(model.zeros())
    found = flat.recession(at, np.arange(8))
    assert_allclose(flat.to_matrix(found), model.recession(there, np.arange(12)), atol=1e-12)
    assert flat.value(found) < 0.2 * at.value
    assert flat.recession(at, np.arange(2)) is None, "one column does not separate three classes"
