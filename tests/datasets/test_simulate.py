"""The simulator of regression problems: the same seed gives the arrays that published numbers were measured on.

The fingerprints were computed from the reference generators, so that exactness is tested everywhere; where these are
available, every array is compared with theirs.
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import make_sparse_regression

SMALL: dict[str, dict[str, Any]] = {
    "linear": {"correlation": 0.5, "snr": 3.0, "seed": 2},
    "logistic": {"correlation": 0.5, "scale": 3.0, "seed": 2},
    "poisson": {"correlation": 0.5, "seed": 2},
}
FINGERPRINTS = {  # of X and y
    "linear": (-17.741703803728804, 5.145745564392425),
    "logistic": (-17.741703803728804, 12.34),
    "poisson": (-17.741703803728804, 46.82),
}


def fingerprint(array: Any) -> float:
    """A sum that notices every value and its place, whatever the memory order."""
    values = np.asarray(array, dtype=np.float64).ravel()
    return math.fsum(values * (np.arange(1, values.size + 1) / values.size))


@pytest.mark.parametrize("model", SMALL)
def test_fingerprints(model: Any) -> None:
    problem = make_sparse_regression(50, 40, 5, model=model, **SMALL[model])
    X, y = FINGERPRINTS[model]
    assert fingerprint(problem.X) == pytest.approx(X, rel=1e-10)  # of the last digit a BLAS may give another
    assert fingerprint(problem.y) == pytest.approx(y, rel=1e-10)
    assert problem.support.tolist() == np.flatnonzero(problem.coef).tolist() == [0, 6, 11, 24, 29]
    assert repr(problem) == "Simulated(X=(50, 40) float64, non-zeros=5)"


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_dense_instances_are_bitwise_the_reference(rho: float, generators: SimpleNamespace) -> None:
    linear = make_sparse_regression(200, 60, 5, correlation=rho, snr=3.0, seed=2)
    logistic = make_sparse_regression(200, 60, 5, model="logistic", correlation=rho, scale=2.0, seed=2)
    for ours, theirs in (
        (linear, generators.inst_ls(200, 60, 5, rho, 3.0, seed=2)),
        (logistic, generators.inst_logit(200, 60, 5, rho, 2.0, seed=2)),
    ):
        for one, other in zip((ours.X, ours.y, ours.support), theirs, strict=True):
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype
        assert ours.X.flags.f_contiguous


def test_the_linear_model_has_the_stated_noise() -> None:
    problem = make_sparse_regression(4000, 20, 4, snr=5.0, seed=0)
    signal = problem.X @ problem.coef
    assert problem.noise_variance == pytest.approx(signal.var() / 5.0)
    assert np.var(problem.y - signal) == pytest.approx(problem.noise_variance, rel=0.1)
    assert np.allclose(problem.X.mean(axis=0), 0)
    assert np.allclose((problem.X**2).mean(axis=0), 1)
    assert abs(problem.y.mean()) < 1e-12


@pytest.mark.parametrize(("model", "mean"), [("logistic", expit), ("poisson", np.exp)])
def test_the_response_has_the_mean_of_its_model(model: Any, mean: Any) -> None:
    problem = make_sparse_regression(20000, 20, 4, model=model, scale=1.5, seed=0)
    u = problem.X @ problem.coef
    assert u.std() == pytest.approx(1.5)
    residual = problem.y - mean(u)
    assert abs(residual.mean()) < 4 * residual.std() / math.sqrt(20000)
    assert abs((residual * u).mean()) < 4 * (residual * u).std() / math.sqrt(20000)
    assert problem.noise_variance is None


def test_the_scale_of_the_linear_model_is_that_of_the_coefficients() -> None:
    drawn, scaled = (make_sparse_regression(100, 20, 4, scale=scale, seed=1) for scale in (None, 2.0))
    assert set(np.abs(drawn.coef[drawn.support]) // 1) == {1.0}  # magnitudes within [1, 2]
    assert (scaled.X @ scaled.coef).std() == pytest.approx(2.0)
    np.testing.assert_allclose(scaled.y, drawn.y * 2.0 / (drawn.X @ drawn.coef).std())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 1}, "n_samples must be >= 2, got 1"),
        ({"n_features": 2.0}, "n_features must be an integer, got 2.0"),
        ({"n_nonzero": 0}, "n_nonzero must be >= 1, got 0"),
        ({"n_nonzero": 11}, "n_nonzero must be at most n_features = 10, got 11"),
        ({"model": "gamma"}, "model must be one of 'linear', 'logistic', 'poisson'; got 'gamma'"),
        ({"correlation": 1.0}, "correlation must be a finite number > -1 and < 1, got 1.0"),
        ({"correlation": "some"}, "correlation must be a finite number > -1 and < 1, got 'some'"),
        ({"snr": 0}, "snr must be a finite number > 0, got 0"),
        ({"snr": 2.0, "model": "logistic"}, "snr=2.0 is a setting of the linear model; give scale= instead"),
        ({"scale": float("inf")}, "scale must be a finite number > 0, got inf"),
    ],
)
def test_bad_arguments_say_what_and_which(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make_sparse_regression(**{"n_samples": 20, "n_features": 10, "n_nonzero": 2, **arguments})
    assert message in str(caught.value)
