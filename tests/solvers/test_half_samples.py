"""Halves of the rows that share their products with the data choose what fits to each half alone choose."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import hardthresh as ht
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import InvalidInputError
from hardthresh.solvers.working_set import half_samples
from hardthresh.solvers.working_set.half_samples import least_squares_half_samples
from levels import slow_beyond

N, D = 120, 30


def table(d=D, rho=0.5, n=N, seed=0):
    """Rows of neighbouring columns that correlate by rho, and targets of five of them."""
    rng = np.random.default_rng((seed, n, d))
    noise = rng.standard_normal((n, d))
    X = np.empty((n, d))
    X[:, 0] = noise[:, 0]
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * noise[:, j]
    chosen = rng.permutation(d)[:5]
    return X, X[:, chosen] @ rng.choice([-1.0, 1.0], 5) + rng.standard_normal(n)


def halves(n=N, count=6, seed=0):
    shuffled = [np.random.default_rng((seed, b)).permutation(n) for b in range(count // 2)]
    return [np.sort(rows[part]) for rows in shuffled for part in (slice(n // 2), slice(n // 2, n))]


def together(model, X, y, parts, **params):
    """What all parts of the rows choose at once."""
    given = model._validate_fit(X, y, params.get("sample_weight"), params.get("offset"))
    problem = model._problem(model._encode(given), model.n_nonzero_coefs)
    selection = coordinate_budget(problem.constraint, tuple(problem.objective.shape))
    supports = least_squares_half_samples(
        problem.objective,
        selection,
        parts,
        model._ridge(),
        intercept=model.fit_intercept,
        standardize=model.standardize,
    )
    return [support.tolist() for support in supports]


def alone(model, X, y, parts, **params):
    """What each part chooses, fitted by the estimator."""
    return [
        np.asarray(model.fit(X[rows], y[rows], **{name: x[rows] for name, x in params.items()}).support_).tolist()
        for rows in parts
    ]


def weights():
    return np.random.default_rng(1).integers(1, 4, N).astype(float)


KINDS = {
    "plain": {},
    "ridge": {"alpha": 0.5},
    "no intercept": {"fit_intercept": False},
    "as they are": {"standardize": False, "alpha": 0.5},
    "requested": {"always_include": [3, 20]},
    "positive": {"positive": True},
    "bounded": {"bounds": (-0.3, 0.3)},
}


@slow_beyond(4)
@pytest.mark.parametrize("d", [D, 200])
@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_check_18_halves_choose_what_they_choose_alone(settings, d):
    X, y = table(d)
    X = X * np.linspace(0.5, 3.0, d) + 2.0
    model = ht.SparseLinearRegression(n_nonzero_coefs=4, **settings)
    assert together(model, X, y, halves()) == alone(model, X, y, halves())


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_check_18_halves_of_many_columns_choose_what_they_choose_alone(rho):
    X, y = table(1500, rho, n=300)
    model = ht.SparseLinearRegression(n_nonzero_coefs=5)
    assert together(model, X, y, halves(300)) == alone(model, X, y, halves(300))


def test_weights_and_offsets_belong_to_their_rows():
    X, y = table()
    offset, weight = 3.0 * X[:, 0] ** 2, weights()
    model = ht.SparseLinearRegression(n_nonzero_coefs=4)
    weighted = together(model, X, y, halves(), sample_weight=weight, offset=offset)
    assert weighted == alone(model, X, y, halves(), sample_weight=weight, offset=offset)
    assert weighted != together(model, X, y, halves())


def test_weights_count_as_repeated_rows():
    X, y = table()
    weight, model = weights(), ht.SparseLinearRegression(n_nonzero_coefs=4)
    repeated = np.repeat(np.arange(N), weight.astype(int))
    parts = [np.flatnonzero(np.isin(repeated, rows)) for rows in halves()]
    found = together(model, X, y, halves(), sample_weight=weight)
    assert found == together(model, X[repeated], y[repeated], parts)


def single(X):
    return X.astype(np.float32)


def in_torch(X):
    return pytest.importorskip("torch").asarray(X)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array, single, np.asfortranarray, in_torch])
def test_storage_does_not_matter(storage):
    X, y = table(100)
    X[np.abs(X) < 0.5] = 0.0
    model = ht.SparseLinearRegression(n_nonzero_coefs=4)
    assert together(model, storage(X), y, halves()) == together(model, X, y, halves())


def test_a_half_does_not_depend_on_the_others():
    X, y = table(400)
    model = ht.SparseLinearRegression(n_nonzero_coefs=4)
    every = together(model, X, y, halves())
    assert [together(model, X, y, [rows])[0] for rows in halves()] == every


def test_halves_in_batches_choose_the_same(monkeypatch):
    X, y = table(200)
    model = ht.SparseLinearRegression(n_nonzero_coefs=4)
    every = together(model, X, y, halves())
    monkeypatch.setattr(half_samples, "ENTRIES", 1600)
    assert together(model, X, y, halves()) == every


def test_an_outlier_outside_a_half_does_not_blur_its_columns():
    """Over the rows without it the column varies by ten millionths of its deviation over all rows."""
    X, y = table(100)
    X[:, 7] = y + 0.1 * X[:, 7]
    X[0, 7] = 1e8
    rows = np.arange(1, N)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1)
    assert together(model, X, y, [rows]) == [[7]] == alone(model, X, y, [rows])


def test_a_column_that_is_constant_in_a_half_is_not_chosen_there():
    X, y = table()
    X[: N // 2, 4] = 1.0
    X[N // 2 :, 4] = 2.0 + y[N // 2 :]
    parts = [np.arange(N // 2), np.arange(N // 2, N)]
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    first, second = together(model, X, y, parts)
    assert 4 not in first
    assert 4 in second


@pytest.mark.parametrize("always", [[], [2, 9]])
def test_no_column_may_be_chosen(always):
    X, y = table()
    model = ht.SparseLinearRegression(n_nonzero_coefs=0, always_include=always)
    assert together(model, X, y, halves()) == [always] * 6


def test_constant_targets_choose_nothing():
    X, _ = table()
    assert together(ht.SparseLinearRegression(n_nonzero_coefs=3), X, np.ones(N), halves()) == [[]] * 6


def test_as_many_columns_as_there_are():
    X, y = table(6)
    assert together(ht.SparseLinearRegression(n_nonzero_coefs=6), X, y, halves()) == [[*range(6)]] * 6


def test_supports_are_increasing_integers():
    X, y = table(200)
    model = ht.SparseLinearRegression(n_nonzero_coefs=8)
    for support in together(model, X, y, halves()):
        assert_array_equal(support, np.unique(support))


def test_bad_input_is_refused():
    X, y = table()
    model = ht.SparseLinearRegression(n_nonzero_coefs=3)
    problem = model._problem(model._encode(model._validate_fit(X, y, None, None)), 3)
    selection = coordinate_budget(problem.constraint, tuple(problem.objective.shape))
    with pytest.raises(InvalidInputError, match="ridges must be finite numbers >= 0"):
        least_squares_half_samples(problem.objective, selection, halves(), -1.0, intercept=True, standardize=True)
    with pytest.raises(InvalidInputError, match="none of them empty"):
        together(model, X, y, [np.arange(0)])
    other = ht.SparseLogisticRegression(n_nonzero_coefs=3)
    with pytest.raises(InvalidInputError, match="for the squared loss only"):
        together(other, X, y > 0, halves())
