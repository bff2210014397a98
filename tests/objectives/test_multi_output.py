"""Several outputs: each is a linear model of its own, and together they are one objective of a matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from hardthresh.core import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.designs import as_design, standardize
from hardthresh.objectives import LinearModel, MultiOutputModel


def data(n=30, p=4, q=3):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, p)), rng.standard_normal((n, q)), rng.uniform(0, 2, n), rng.standard_normal((p, q))


def stored(X, kind):
    if kind == "standardised":
        return standardize(as_design(X), np.full(len(X), 1 / len(X)), scale=True, intercept=True)
    return {"dense": np.asarray, "sparse": sp.csr_array, "operator": aslinearoperator}[kind](X)


@pytest.mark.parametrize("kind", ["dense", "sparse", "operator", "standardised"])
def test_it_is_the_sum_of_its_outputs(kind):
    X, Y, weight, W = data()
    X = stored(X, kind)
    if kind == "standardised":
        W = np.vstack([W, np.ones(3)])
    f = MultiOutputModel(X, Y, sample_weight=weight, l2=0.2)
    parts = [LinearModel(X, Y[:, j], sample_weight=weight, l2=0.2) for j in range(3)]
    at, alone = f.evaluate(W), [part.evaluate(W[:, j]) for j, part in enumerate(parts)]
    np.testing.assert_allclose(at.value, sum(one.value for one in alone), rtol=1e-12)
    np.testing.assert_allclose(at.gradient, np.stack([one.gradient for one in alone], axis=1), rtol=1e-12)
    np.testing.assert_allclose(at.prediction, np.stack([one.prediction for one in alone], axis=1), rtol=1e-12)
    bends = [part.curvature(one, W[:, j]) for j, (part, one) in enumerate(zip(parts, alone, strict=True))]
    np.testing.assert_allclose(f.curvature(at, W), np.stack(bends, axis=1), rtol=1e-12)


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
