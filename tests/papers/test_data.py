"""The data of the papers: the same seed gives the arrays that published numbers were measured on, bit for bit.

The fingerprints were computed from the reference generators, so that exactness is tested everywhere; where these are
available, every array is compared with theirs.
"""

import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from papers.accelerated_iht._data import correlated_split, gaussian_design, toy
from papers.sparse_polyak._data import ar1_problem, sample_size

from hardthresh.cli.reproduce import load_runner

AR1 = {"alpha": 3.0, "correlation": 0.7, "coef_scale": 0.3, "seed": 4}
SMALL = {
    "ar1 linear": lambda: ar1_problem(60, 6, 4, **AR1),
    "ar1 logistic": lambda: ar1_problem(60, 6, 4, model="logistic", **AR1),
    "ar1 poisson": lambda: ar1_problem(60, 6, 4, model="poisson", **AR1),
    "gaussian": lambda: gaussian_design(12, 40, 3, seed=7),
    "gaussian float32": lambda: gaussian_design(12, 40, 3, dtype=np.float32, seed=7),
    "toy": lambda: toy(seed=409),
    "split": lambda: correlated_split(40, 20, 5, seed=3),
}
FINGERPRINTS = {  # of X and y (of the training rows where there is a split), and the support
    "ar1 linear": (96.95973475511745, 5.407825288680509, [7, 12, 13, 52]),
    "ar1 logistic": (96.95973475511745, 23.472972972972972, [7, 12, 13, 52]),
    "ar1 poisson": (96.95973475511745, 44.62162162162162, [7, 12, 13, 52]),
    "gaussian": (-7.951705104611926, -0.8910648435822736, [10, 34, 39]),
    "gaussian float32": (-2.736857460375419, 0.4597194076826175, [3, 15, 23]),
    "toy": (-2.9983330822516963, -0.0896183176880586, [2, 4]),
    "split": (2.0975126844291876, 0.27436181815767946, [1, 4, 7, 10, 12]),
}


@pytest.fixture(scope="module")
def stream():
    """The stream of *limited attributes*, whose module imports the runner of the papers."""
    load_runner(Path(__file__).resolve().parents[2] / "papers")
    return import_module("papers.limited_attributes._common").stream


def fingerprint(array):
    """A sum that notices every value and its place, whatever the memory order."""
    values = np.asarray(array, dtype=np.float64).ravel()
    return math.fsum(values * (np.arange(1, values.size + 1) / values.size))


@pytest.mark.parametrize("name", SMALL)
def test_fingerprints(name):
    problem = SMALL[name]()
    rows = getattr(problem, "train", slice(None))
    X, y, support = FINGERPRINTS[name]
    rel = 1e-5 if problem.y.dtype == np.float32 else 1e-10  # of the last digit a BLAS may give another
    assert fingerprint(problem.X[rows]) == pytest.approx(X, rel=rel)
    assert fingerprint(problem.y[rows]) == pytest.approx(y, rel=rel)
    assert problem.support.tolist() == np.flatnonzero(problem.coef).tolist() == support


def test_fingerprint_of_the_stream(stream):
    X, y, train, test, truth = stream(100, 30, 7, seed=1)
    assert fingerprint(X[train]) == pytest.approx(-32.703763173047726, rel=1e-10)
    assert fingerprint(y[train]) == pytest.approx(11.132457082984311, rel=1e-10)
    assert np.flatnonzero(truth).tolist() == [*range(7)]
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(100))


@pytest.mark.parametrize(
    ("seed", "sum_of_features", "linear", "logistic"),
    [
        (0, 1740.8971048885, 0.120840087615, 0.262432353528),
        (1, -360.1749104899, 0.134112583468, 0.286584284108),
        (2, 2119.1480156450, 0.127071863239, 0.284229673973),
    ],
)
def test_published_family(seed, sum_of_features, linear, logistic):
    problem = ar1_problem(1000, 30, 15, seed=seed)
    assert problem.X.shape == (1037, 1000)
    assert problem.X.flags.f_contiguous
    assert problem.X.T.sum() == pytest.approx(sum_of_features, abs=1e-9)
    residual = problem.y - problem.X @ problem.coef
    assert residual @ residual / (2 * 1037) == pytest.approx(linear, abs=1e-12)
    classes = ar1_problem(1000, 30, 15, model="logistic", seed=seed)
    u = classes.X @ classes.coef
    assert np.mean(np.logaddexp(0, u) - classes.y * u) == pytest.approx(logistic, abs=1e-12)


def test_golden_file(specs):
    problem = ar1_problem(200, 10, 5, seed=0)
    with np.load(specs / "golden" / "sparse_polyak_linear.npz") as golden:
        assert np.array_equal(problem.X.T, golden["XT"])
        assert np.allclose(problem.y, golden["y"], rtol=0, atol=1e-14)  # a product of another BLAS
        assert np.array_equal(problem.coef, golden["theta_star"])


@pytest.mark.parametrize(("d", "n"), [(5000, 29811), (10000, 32237), (20000, 34663)])
def test_published_sample_sizes(d, n):
    assert sample_size(5.0, 700, d) == n


# --- the reference generators ----------------------------------------------------------------------------------------


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_ar1_is_bitwise_the_reference(model, dtype, generators):
    shared = {"alpha": 3.0, "model": model, "seed": 4, "dtype": dtype}
    theirs = generators.make_problem(150, 8, 5, omega=0.7, theta_scale=0.3, n=90, theta_norm2=2.0, **shared)
    ours = ar1_problem(150, 8, 5, correlation=0.7, coef_scale=0.3, n_samples=90, coef_squared_norm=2.0, **shared)
    assert_same((ours.X.T, ours.y, ours.coef), theirs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_and_stream_are_bitwise_the_reference(dtype, generators, stream):
    ours = gaussian_design(120, 400, 8, dtype=dtype, seed=7)
    assert_same((ours.X, ours.y, ours.coef), generators.gaussian_sparse(7, 120, 400, 8, dtype=dtype))
    ours = stream(1005, 30, 7, noise_variance=0.25, dtype=dtype, seed=1)
    assert_same(ours, generators.synthetic(1, 1005, 30, 7, sigma=0.5, dtype=dtype))


def test_toy_is_bitwise_the_reference(generators):
    ours = toy(seed=409)
    assert_same((ours.X, ours.y, ours.coef), generators.toy_fig1(409))


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.95])
def test_split_is_bitwise_the_reference(rho, generators):
    X, y, coef, _, train, test = correlated_split(101, 40, 5, correlation=rho, seed=3)
    theirs = generators.correlated_fig3(3, 101, 40, 5, rho=rho)
    assert_same((X[train], y[train], X[test], y[test], coef), theirs)
