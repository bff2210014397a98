"""Simulators: the same seed gives the arrays that the published numbers were measured on, bit for bit.

The fingerprints below were computed from the reference generators, so that exactness is tested everywhere; where the
generators themselves are at hand, every array is compared with theirs.
"""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import (
    Simulated,
    make_ar1_problem,
    make_correlated_split,
    make_gaussian_design,
    make_limited_attributes,
    make_sign_planted,
    make_sparse_classification,
    make_sparse_regression,
    make_sparse_text,
    make_toy,
    sample_size,
)

SMALL: dict[str, Callable[[], Simulated]] = {
    "ar1 linear": lambda: make_ar1_problem(60, 6, 4, alpha=3.0, correlation=0.7, coef_scale=0.3, seed=4),
    "ar1 logistic": lambda: make_ar1_problem(
        60, 6, 4, alpha=3.0, correlation=0.7, model="logistic", coef_scale=0.3, seed=4
    ),
    "ar1 poisson": lambda: make_ar1_problem(
        60, 6, 4, alpha=3.0, correlation=0.7, model="poisson", coef_scale=0.3, seed=4
    ),
    "regression": lambda: make_sparse_regression(50, 40, 5, correlation=0.5, snr=3.0, seed=2),
    "classification": lambda: make_sparse_classification(50, 40, 5, correlation=0.5, scale=3.0, seed=2),
    "text regression": lambda: make_sparse_text(2000, 100, 4, density=0.05, snr=3.0, seed=1),
    "text classification": lambda: make_sparse_text(2000, 100, 4, density=0.05, snr=3.0, task="classification", seed=1),
    "gaussian": lambda: make_gaussian_design(12, 40, 3, seed=7),
    "gaussian float32": lambda: make_gaussian_design(12, 40, 3, dtype=np.float32, seed=7),
    "toy": lambda: make_toy(seed=409),
    "split": lambda: make_correlated_split(40, 20, 5, seed=3),
    "limited attributes": lambda: make_limited_attributes(100, 30, 7, seed=1),
    "signs linear": lambda: make_sign_planted(40, 30, 6, correlation=0.5, noise_std=0.2, seed=5),
    "signs logistic": lambda: make_sign_planted(40, 30, 6, correlation=0.5, model="logistic", seed=5),
}

# problem -> fingerprint of X, fingerprint of y, support; of the training rows where there is a split
FINGERPRINTS: dict[str, tuple[float, float, list[int]]] = {
    "ar1 linear": (96.95973475511745, 5.407825288680509, [7, 12, 13, 52]),
    "ar1 logistic": (96.95973475511745, 23.472972972972972, [7, 12, 13, 52]),
    "ar1 poisson": (96.95973475511745, 44.62162162162162, [7, 12, 13, 52]),
    "regression": (-17.741703803728804, 5.145745564392425, [0, 6, 11, 24, 29]),
    "classification": (-17.741703803728804, 12.34, [0, 6, 11, 24, 29]),
    "text regression": (4292.6192450370445, 1365.0360360631394, [0, 1, 2, 7]),
    "text classification": (4292.6192450370445, 729.1465, [0, 1, 2, 7]),
    "gaussian": (-7.951705104611926, -0.8910648435822736, [10, 34, 39]),
    "gaussian float32": (-2.736857460375419, 0.4597194076826175, [3, 15, 23]),
    "toy": (-2.9983330822516963, -0.0896183176880586, [2, 4]),
    "split": (2.0975126844291876, 0.27436181815767946, [1, 4, 7, 10, 12]),
    "limited attributes": (-32.703763173047726, 11.132457082984311, [0, 1, 2, 3, 4, 5, 6]),
    "signs linear": (62.10756233678274, -27.483287963988595, [1, 5, 6, 11, 14, 23]),
    "signs logistic": (62.10756233678274, -5.2, [1, 5, 6, 11, 14, 23]),
}


def fingerprint(array: Any) -> float:
    """A sum that notices every value and its place, whatever the memory order."""
    values = (array.data if sp.issparse(array) else np.asarray(array)).ravel().astype(np.float64)
    return math.fsum(values * (np.arange(1, values.size + 1) / values.size))


@pytest.mark.parametrize("name", SMALL)
def test_fingerprints(name: str) -> None:
    problem = SMALL[name]()
    rows = slice(None) if problem.train is None else problem.train
    X, y, support = FINGERPRINTS[name]
    rel = 1e-5 if problem.y.dtype == np.float32 else 1e-10  # of the last digit a BLAS may give another
    assert fingerprint(problem.X[rows]) == pytest.approx(X, rel=rel)
    assert fingerprint(problem.y[rows]) == pytest.approx(y, rel=rel)
    assert problem.support.tolist() == support


@pytest.mark.parametrize("name", SMALL)
def test_every_problem_is_coherent(name: str) -> None:
    problem, again = SMALL[name](), SMALL[name]()
    n_samples, n_features = problem.X.shape
    assert problem.y.shape == (n_samples,)
    assert problem.coef.shape == (n_features,)
    assert np.array_equal(np.flatnonzero(problem.coef), problem.support)
    assert np.array_equal(problem.y, again.y)
    assert np.array_equal(problem.coef, again.coef)
    if problem.train is not None:
        assert problem.test is not None
        assert np.array_equal(np.sort(np.concatenate([problem.train, problem.test])), np.arange(n_samples))
    assert repr(problem).startswith("Simulated(X=(")


# --- published numbers ---


@pytest.mark.parametrize(
    ("seed", "sum_of_features", "linear", "logistic"),
    [
        (0, 1740.8971048885, 0.120840087615, 0.262432353528),
        (1, -360.1749104899, 0.134112583468, 0.286584284108),
        (2, 2119.1480156450, 0.127071863239, 0.284229673973),
    ],
)
def test_published_family(seed: int, sum_of_features: float, linear: float, logistic: float) -> None:
    problem = make_ar1_problem(1000, 30, 15, seed=seed)
    assert problem.X.shape == (1037, 1000)
    assert problem.X.flags.f_contiguous
    assert problem.X.T.sum() == pytest.approx(sum_of_features, abs=1e-9)
    residual = problem.y - problem.X @ problem.coef
    assert residual @ residual / (2 * 1037) == pytest.approx(linear, abs=1e-12)
    classes = make_ar1_problem(1000, 30, 15, model="logistic", seed=seed)
    u = classes.X @ classes.coef
    assert np.mean(np.logaddexp(0, u) - classes.y * u) == pytest.approx(logistic, abs=1e-12)


def test_golden_file(specs: Path) -> None:
    problem = make_ar1_problem(200, 10, 5, seed=0)
    with np.load(specs / "golden" / "sparse_polyak_linear.npz") as golden:
        assert np.array_equal(problem.X.T, golden["XT"])
        assert np.allclose(problem.y, golden["y"], rtol=0, atol=1e-14)  # a product of another BLAS
        assert np.array_equal(problem.coef, golden["theta_star"])


@pytest.mark.parametrize(("d", "n"), [(5000, 29811), (10000, 32237), (20000, 34663)])
def test_published_sample_sizes(d: int, n: int) -> None:
    assert sample_size(5.0, 700, d) == n


# --- the reference generators ---


def same(*pairs: tuple[Any, Any]) -> None:
    for ours, theirs in pairs:
        assert np.array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
def test_ar1_is_bitwise_the_reference(model: Any, dtype: Any, generators: SimpleNamespace) -> None:
    XT, y, theta = generators.make_problem(
        150, 8, 5, alpha=3.0, omega=0.7, model=model, seed=4, dtype=dtype, theta_scale=0.3, n=90, theta_norm2=2.0
    )
    ours = make_ar1_problem(
        150,
        8,
        5,
        correlation=0.7,
        model=model,
        seed=4,
        dtype=dtype,
        coef_scale=0.3,
        n_samples=90,
        coef_squared_norm=2.0,
    )
    same((ours.X.T, XT), (ours.y, y), (ours.coef, theta))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_dense_instances_are_bitwise_the_reference(rho: float, generators: SimpleNamespace) -> None:
    ours = make_sparse_regression(200, 60, 5, correlation=rho, snr=3.0, seed=2)
    same(*zip((ours.X, ours.y, ours.support), generators.inst_ls(200, 60, 5, rho, 3.0, seed=2), strict=True))
    assert ours.X.flags.f_contiguous
    ours = make_sparse_classification(200, 60, 5, correlation=rho, scale=2.0, seed=2)
    same(*zip((ours.X, ours.y, ours.support), generators.inst_logit(200, 60, 5, rho, 2.0, seed=2), strict=True))


@pytest.mark.parametrize(("task", "name"), [("regression", "ls"), ("classification", "logit")])
def test_text_is_bitwise_the_reference(task: Any, name: str, generators: SimpleNamespace) -> None:
    X, y, support = generators.inst_sparse(2000, 400, 0.03, 7, 3.0, seed=1, task=name)
    ours = make_sparse_text(2000, 400, 7, density=0.03, snr=3.0, task=task, seed=1)
    same((ours.X.data, X.data), (ours.X.indices, X.indices), (ours.X.indptr, X.indptr))
    same((ours.y, y), (ours.support, support))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_and_stream_are_bitwise_the_reference(dtype: Any, generators: SimpleNamespace) -> None:
    ours = make_gaussian_design(120, 400, 8, dtype=dtype, seed=7)
    reference = generators.gaussian_sparse(7, 120, 400, 8, dtype=dtype)
    same(*zip((ours.X, ours.y, ours.coef), reference, strict=True))
    ours = make_limited_attributes(1005, 30, 7, noise_variance=0.25, dtype=dtype, seed=1)
    reference = generators.synthetic(1, 1005, 30, 7, sigma=0.5, dtype=dtype)
    same(*zip((ours.X, ours.y, ours.train, ours.test, ours.coef), reference, strict=True))


def test_toy_is_bitwise_the_reference(generators: SimpleNamespace) -> None:
    ours = make_toy(seed=409)
    same(*zip((ours.X, ours.y, ours.coef), generators.toy_fig1(409), strict=True))


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.95])
def test_split_is_bitwise_the_reference(rho: float, generators: SimpleNamespace) -> None:
    ours = make_correlated_split(101, 40, 5, correlation=rho, seed=3)
    train, test = ours.train, ours.test
    reference = generators.correlated_fig3(3, 101, 40, 5, rho=rho)
    same(*zip((ours.X[train], ours.y[train], ours.X[test], ours.y[test], ours.coef), reference, strict=True))


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_signs_are_bitwise_the_reference(model: Any, rho: float, generators: SimpleNamespace) -> None:
    ours = make_sign_planted(100, 40, 6, model=model, correlation=rho, noise_std=0.2, magnitudes=(0.5, 3.0), seed=5)
    reference = generators.sparse_regression_data(5, 100, 40, 6, noise=0.2, rho=rho, kind=model, amp=(0.5, 3.0))
    same(*zip((ours.X, ours.y, ours.coef), reference, strict=True))


# --- what the docstrings promise ---


def test_stated_noise_and_signal() -> None:
    regression = make_sparse_regression(4000, 20, 4, snr=5.0, seed=0)
    signal = regression.X @ regression.coef
    assert regression.noise_variance == pytest.approx(signal.var() / 5.0)
    assert np.var(regression.y - signal) == pytest.approx(regression.noise_variance, rel=0.1)
    assert np.allclose(regression.X.mean(axis=0), 0)
    assert np.allclose((regression.X**2).mean(axis=0), 1)
    split = make_correlated_split(seed=0)
    noise = split.y - split.X @ split.coef
    assert np.sum((split.X @ split.coef) ** 2) / np.sum(noise**2) == pytest.approx(10.0)
    assert split.noise_variance == pytest.approx(np.mean(noise**2))
    fixed = make_ar1_problem(300, 10, 5, coef_squared_norm=7.0)
    assert fixed.coef @ fixed.coef == pytest.approx(7.0)


def test_classes_follow_the_planted_model() -> None:
    for problem in (
        make_sparse_classification(4000, 20, 4, scale=2.0, seed=0),
        make_sparse_text(4000, 50, 4, density=0.1, task="classification", snr=2.0, seed=0),
    ):
        logits = problem.X @ problem.coef
        assert logits.std() == pytest.approx(2.0)
        assert np.mean(problem.y) == pytest.approx(np.mean(expit(logits)), abs=0.03)
        assert problem.noise_variance is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_ar1_problem(10, 3, 11), "n_nonzero=11 must be at most n_features=10"),
        (lambda: make_ar1_problem(10, 3, 2, correlation=1.0), "correlation=1.0 must lie between -1 and 1"),
        (lambda: make_ar1_problem(10, 3, 2, model="gamma"), "model='gamma' is unknown"),
        (lambda: make_ar1_problem(10, 3, 2, noise_variance=-1.0), "noise_variance=-1.0"),
        (lambda: make_ar1_problem(10, 3, 2, alpha=0.0), "alpha=0.0 must be a positive"),
        (lambda: make_ar1_problem(10, 3, 2, n_samples=0), "n_samples=0 must be an integer of at least 1"),
        (lambda: make_ar1_problem(10, 3, 2, coef_squared_norm=float("nan")), "coef_squared_norm=nan"),
        (lambda: make_sparse_regression(1, 10, 2), "n_samples=1 must be an integer of at least 2"),
        (lambda: make_sparse_regression(9, 10, 0), "n_nonzero=0 must be an integer of at least 1"),
        (lambda: make_sparse_regression(9, 10, 2.0), "n_nonzero=2.0 must be an integer"),  # type: ignore[arg-type]
        (lambda: make_sparse_regression(9, 10, 2, snr=0), "snr=0 must be a positive"),
        (lambda: make_sparse_classification(9, 10, 2, scale=-1), "scale=-1 must be a positive"),
        (lambda: make_sparse_text(100, 50, 3, density=2.0), "density=2.0"),
        (lambda: make_sparse_text(100, 50, 3, task="ranking"), "task='ranking' is unknown"),
        (lambda: make_sparse_text(100, 50, 3, density=0.1), "only 0 columns have at least min_count=200"),
        (lambda: make_gaussian_design(5, 6, 2, dtype=np.int64), "dtype=int64 cannot be drawn"),
        (lambda: make_toy(n_nonzero=True), "n_nonzero=True must be an integer"),
        (lambda: make_limited_attributes(10, 5, 6), "n_nonzero=6 must be at most n_features=5"),
        (lambda: make_sign_planted(10, 5, 2, magnitudes=(2.0, 1.0)), "smallest, largest"),
        (lambda: make_sign_planted(10, 5, 2, model="poisson"), "model='poisson' is unknown"),
        (lambda: sample_size(5.0, 3, 1), "n_features=1 must be an integer of at least 2"),
    ],
)
def test_bad_arguments_say_what_and_which(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert message in str(caught.value)
