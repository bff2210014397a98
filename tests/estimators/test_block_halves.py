"""Stability selection over tables in blocks: that in memory on the same halves, in few readings, on any engine.

Checks 3 and 4 of scale.md.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest

import hardthresh as ht
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.core.randomness import Purpose, generator, random_halves
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.estimators.base import seed_of
from hardthresh.estimators.selectors import stability
from hardthresh.losses import Huber, Logistic
from hardthresh.objectives import half_readings
from hardthresh.objectives.block_rows import Point, Scaled
from hardthresh.objectives.half_readings import (
    BlockHalves,
    Quadratic,
    half_moments,
    half_products,
    half_slopes,
)
from hardthresh.solvers.working_set import blocked_half_samples
from levels import at_most, only_at

N, ROWS = 2000, 256


def data(d, seed=0, n=N):
    """Rows of neighbouring columns that correlate by .5, and predictors of six of them, some of which are weak."""
    rng = np.random.default_rng((seed, d))
    X = rng.standard_normal((n, d))
    X[:, 1:] = 0.5 * X[:, :-1] + np.sqrt(0.75) * X[:, 1:]
    chosen = rng.permutation(d)[:6]
    return 3.0 + X, X[:, chosen] @ [1.0, -0.8, 0.6, -0.4, 0.2, -0.1], rng


def halves_in_memory(halves, y, weight=None, rows=ROWS):
    """The rows of each half of a table that is cut into blocks."""
    parts = [slice(start, start + rows) for start in range(0, len(y), rows)]
    own = [halves.of(b, y[part], None if weight is None else weight[part]) for b, part in enumerate(parts)]
    sides = np.concatenate(own)
    return [np.flatnonzero(sides[:, half // 2] == half % 2) for half in range(len(halves))]


def by_hand(model, X, y, parts, **params):
    """The slow twin: the share of halves in which a fit in memory chooses each column."""
    fits = [clone(model).fit(X[rows], y[rows], **{name: x[rows] for name, x in params.items()}) for rows in parts]
    return np.mean([fit.get_support() for fit in fits], axis=0)


SETTINGS = {
    "default": {},
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False, "alpha": 0.5},
    "ridge": {"alpha": 0.3},
    "always": {"always_include": [0, 5]},
    "positive": {"positive": True},
}


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("d", [40, 300])
def test_least_squares_chooses_what_fits_to_the_same_halves_choose(setting, d):
    X, u, rng = data(d)
    y = u + 2.0 * rng.standard_normal(N)
    weight, offset = rng.integers(0, 3, N).astype(float), 0.1 * X[:, 3]
    model = ht.SparseLinearRegression(**{"n_nonzero_coefs": 5, **SETTINGS[setting]})
    selector = ht.StabilitySelection(model, n_pairs=4, random_state=1)
    found = selector.fit(from_arrays(X, y, weight, offset, rows=ROWS))
    parts = halves_in_memory(BlockHalves(4, seed_of(1)), y, weight)
    expected = by_hand(model, X, y, parts, sample_weight=weight, offset=offset)
    np.testing.assert_allclose(found.inclusion_frequencies_, expected, atol=1e-12)
    assert (found.n_failed_, found.n_pairs_) == (0, 4)
    np.testing.assert_array_equal(found.support_, np.flatnonzero(expected >= 0.75))
    np.testing.assert_array_equal(found.estimator_.inclusion_frequencies_, found.inclusion_frequencies_)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block"])
def test_storage_changes_nothing(storage):
    X, u, rng = data(60)
    y = u + 2.0 * rng.standard_normal(N)
    if storage == "sparse":
        X = np.where(rng.random(X.shape) < 0.3, X, 0.0)
    rows, model = N if storage == "one block" else ROWS, ht.SparseLinearRegression(n_nonzero_coefs=5)
    table = sp.csr_array(X) if storage == "sparse" else X.astype(np.float32) if storage == "float32" else X
    found = ht.StabilitySelection(model, n_pairs=4).fit(from_arrays(table, y, rows=rows))
    expected = by_hand(model, X, y, halves_in_memory(BlockHalves(4, 0), y, rows=rows))
    np.testing.assert_allclose(found.inclusion_frequencies_, expected, atol=1e-12)


OTHERS = {
    "logistic": (ht.SparseLogisticRegression, lambda u, rng: np.where(u + rng.logistic(size=N) > 0.5, "ill", "well")),
    "svc": (ht.SparseLinearSVC, lambda u, rng: np.where(u + rng.logistic(size=N) > 0.5, "ill", "well")),
    "poisson": (ht.SparsePoissonRegression, lambda u, rng: rng.poisson(np.exp(0.5 * u)).astype(float)),
    "gamma": (ht.SparseGammaRegression, lambda u, rng: np.exp(u) * rng.gamma(2.0, size=N)),
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", OTHERS)
def test_other_losses_choose_nearly_what_fits_choose(name):
    """They are expanded to second order, so that of features that fit as well another one may be chosen."""
    kind, targets = OTHERS[name]
    X, u, rng = data(120)
    y, model = targets(u, rng), kind(n_nonzero_coefs=5)
    selector = ht.StabilitySelection(model, n_pairs=4).fit(from_arrays(X, y, rows=ROWS))
    classes = y.dtype.kind == "U"
    parts = halves_in_memory(BlockHalves(4, 0, classes), np.unique(y, return_inverse=True)[1] if classes else y)
    gaps = np.abs(by_hand(model, X, y, parts) - selector.inclusion_frequencies_)
    assert gaps.max() <= 0.25 + 1e-12  # two halves of eight
    assert gaps.sum() <= 0.75 + 1e-12  # of 5: three exchanges in eight halves


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("delta", "most"), [(0.03, 1.0), (0.1, 1.0), (1.345, 0.5)])
def test_a_small_delta_chooses_nearly_what_fits_choose(delta, most):
    """Of delta .03, beside noise of 2, a second derivative of 1 of a row in 80 was all there was: the gap was 6.75."""
    X, u, rng = data(60)
    y, model = u + 2.0 * rng.standard_normal(N), ht.SparseHuberRegression(n_nonzero_coefs=5, delta=delta)
    selector = ht.StabilitySelection(model, n_pairs=4).fit(from_arrays(X, y, rows=ROWS))
    gaps = np.abs(by_hand(model, X, y, halves_in_memory(BlockHalves(4, 0), y)) - selector.inclusion_frequencies_)
    assert gaps.sum() <= most + 1e-12
    assert selector.n_failed_ == 0


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("alpha", "delta"), [(0.0, 0.02), (0.5, 0.03)])
def test_halves_whose_curvature_is_that_of_few_rows_are_counted_and_named(alpha, delta):
    """The ridge does not change that: with one the frequencies were noise, without a warning."""
    X, u, rng = data(60)
    y = u + 2.0 * rng.standard_normal(N)
    model = ht.SparseHuberRegression(n_nonzero_coefs=5, delta=delta, alpha=alpha)
    selector = ht.StabilitySelection(model, n_pairs=8)
    with pytest.warns(UserWarning, match="could not be fitted, .* the loss has curvature in . rows? of the half"):
        selector.fit(from_arrays(X, y, rows=ROWS))
    assert 0 < selector.n_failed_ < 16
    assert 0 < selector.n_pairs_ < 8
    far = ht.StabilitySelection(clone(model).set_params(delta=0.002), n_pairs=4)
    with pytest.raises(InvalidInputError, match=r"no pair of halves .* curvature in \d rows? .* a larger delta"):
        far.fit(from_arrays(X, y, rows=ROWS))


@only_at("pairs")
def test_halves_are_the_same_on_any_engine():
    """Check 4 of scale.md."""
    X, u, rng = data(300)
    y = np.where(u + rng.logistic(size=N) > 0, 1, 0)
    selector = ht.StabilitySelection(ht.SparseLogisticRegression(n_nonzero_coefs=5), n_pairs=4, random_state=2)
    blocks = from_arrays(X, y, rows=64)
    serial = clone(selector).fit(Serial(blocks))
    again = clone(selector).fit(Threads(blocks, 4))
    assert again.inclusion_frequencies_.tobytes() == serial.inclusion_frequencies_.tobytes()
    assert again.estimator_.coef_.tobytes() == serial.estimator_.coef_.tobytes()
    other = clone(selector).set_params(random_state=3).fit(blocks)
    assert other.inclusion_frequencies_.tobytes() != serial.inclusion_frequencies_.tobytes()


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_readings_do_not_grow_with_the_number_of_halves(kind):
    """Check 3 of scale.md: 16 halves take at most 6 readings, those of the fit to all rows among them."""
    X, u, rng = data(300)
    y = u + 2.0 * rng.standard_normal(N) if kind == "squared" else np.where(u + rng.logistic(size=N) > 0, 1, 0)
    model = (ht.SparseLinearRegression if kind == "squared" else ht.SparseLogisticRegression)(n_nonzero_coefs=5)
    for n_pairs in (8, 20):
        with logged_readings() as log:
            ht.StabilitySelection(model, n_pairs=n_pairs).fit(from_arrays(X, y, rows=ROWS))
        assert 4 <= log.readings <= 6


@pytest.mark.slow
def test_halves_of_wide_tables_are_read_in_groups(monkeypatch):
    X, u, rng = data(300)
    y = np.where(u + rng.logistic(size=N) > 0, 1, 0)
    selector = ht.StabilitySelection(ht.SparseLogisticRegression(n_nonzero_coefs=5), n_pairs=4)
    blocks = from_arrays(X, y, rows=ROWS)
    together = clone(selector).fit(blocks)
    monkeypatch.setattr(blocked_half_samples, "_ENTRIES", 40_000)
    with logged_readings() as log:
        apart = clone(selector).fit(blocks)
    assert log.readings > 10
    np.testing.assert_array_equal(apart.inclusion_frequencies_, together.inclusion_frequencies_)


def test_the_halves_of_a_block_are_pure_functions_of_seed_and_number():
    halves, y = BlockHalves(3, seed=7), np.zeros(101)
    sides = halves.of(2, y, None)
    rng = generator(7, 2, Purpose.HALVES_OF_BLOCKS)
    for pair in range(3):
        for side, rows in enumerate(random_halves(rng, [np.arange(101)])):
            np.testing.assert_array_equal(np.flatnonzero(sides[:, pair] == side), rows)
            assert rows.size == 50
    np.testing.assert_array_equal(BlockHalves(2, seed=7).of(2, y, None), sides[:, :2])
    assert not np.array_equal(halves.of(3, y, None), sides)
    assert not np.array_equal(BlockHalves(3, seed=8).of(2, y, None), sides)


def test_halves_have_equal_shares_of_classes_and_no_row_of_weight_zero():
    rng = np.random.default_rng(0)
    y, weight = rng.integers(0, 2, 501).astype(float), rng.integers(0, 2, 501).astype(float)
    sides = BlockHalves(4, 0, by_label=True).of(0, y, weight)
    assert (sides[weight == 0] == 2).all()
    for label in (0.0, 1.0):
        counts = [np.sum(sides[(y == label)] == side, axis=0) for side in (0, 1)]
        assert np.abs(counts[0] - counts[1]).max() <= 1
    assert (np.sum(sides == 0, axis=0) == np.sum(sides == 1, axis=0)).all()
    assert (BlockHalves(4, 0).of(0, y[:3], np.zeros(3)) == 2).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", [None, Logistic(), Huber(0.5)])
def test_sums_over_halves_are_those_of_their_rows(loss, sparse):
    """A slow twin of all readings of halves."""
    rng = np.random.default_rng(0)
    n, d = 1500, 7
    X, y = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6), rng.integers(0, 2, n).astype(float)
    weight, offset, shift = rng.integers(0, 3, n).astype(float), 0.3 * rng.standard_normal(n), rng.standard_normal(d)
    halves, which = BlockHalves(3, 0), np.array([1, 2, 5])
    at = Point(np.array([2, 4]), np.array([0.1, 0.2]), rng.standard_normal((2, 6)), rng.standard_normal(6))
    model = Quadratic(0.4) if loss is None else Quadratic(0.4, loss, at, floor=0.2)
    fits = Point(np.array([0, 3]), np.array([0.5, 0.0]), rng.standard_normal((2, 3)), rng.standard_normal(3))
    block = (sp.csr_array(X) if sparse else X, y, weight, offset, halves, 3)
    targets, curved, linear, crossed, squares = half_moments(*block, which, model, shift)
    union = Scaled(np.array([1, 2, 6]), np.array([0.3, 0.1, 0.0]), np.array([2.0, 1.0, 0.5]))
    places = [np.array([0, 2]), np.array([1]), np.array([0, 1, 2])]
    new = [np.array([2]), np.array([1]), np.array([0, 2])]
    products = half_products(*block, which, model, union, new, places)
    (slopes,) = half_slopes(*block, which, model, fits, shift)
    sides = halves.of(3, y, weight)
    Z = (X[:, union.columns] - union.centre) * union.scale
    for i, half in enumerate(which):
        w = weight * (sides[:, half // 2] == half % 2)
        if loss is None:
            own, omega, t = np.ones(n), w, y - offset - 0.4
        else:
            u = (X[:, at.columns] - at.centre) @ at.coef[:, half] + at.level[half]
            own = h = loss.curvature(y, u + offset)
            if loss == Huber(0.5):
                assert 0.0 < np.mean(h == 0.0) < 1.0
                h = np.where(h == 0.0, 0.2, h)
            omega, t = w * h, u - 0.4 - loss.gradient(y, u + offset) / h
        np.testing.assert_allclose(curved[:, i], [np.sum(w > 0), w @ own, w @ own**2])
        np.testing.assert_allclose(targets[:, i], [w.sum(), omega.sum(), omega @ t, omega @ t**2])
        np.testing.assert_allclose(linear[i], omega @ (X - shift), atol=1e-9)
        np.testing.assert_allclose(crossed[i], (omega * t) @ (X - shift), atol=1e-9)
        np.testing.assert_allclose(squares[i], omega @ (X - shift) ** 2)
        np.testing.assert_allclose(products[i], Z[:, new[i]].T @ (omega[:, None] * Z[:, places[i]]), atol=1e-9)
        residual = t - (X[:, fits.columns] - fits.centre) @ fits.coef[:, i] - fits.level[i]
        np.testing.assert_allclose(slopes[i], (omega * residual) @ (X - shift), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("loss", [None, Logistic()])
def test_halves_of_the_same_columns_share_the_products_of_the_rows_that_they_share(loss, d, weighted, monkeypatch):
    """A slow twin, in several pieces and with products of patterns of more than 1024 rows."""
    rng = np.random.default_rng(1)
    n = 5001
    X, y = rng.standard_normal((n, d)), rng.integers(0, 2, n).astype(float)
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    monkeypatch.setattr(half_readings, "_HELD", 4000 * d if d == 3 else 10_000)
    halves, which = BlockHalves(5, 0), np.array([0, 1, 2, 3, 5, 8, 9])
    at = Point(np.array([0, 2]), np.array([0.1, 0.2]), rng.standard_normal((2, 1)), np.array([0.3]))
    model = Quadratic(0.4) if loss is None else Quadratic(0.4, loss, at)
    union = Scaled(np.arange(d), rng.standard_normal(d), rng.random(d))
    some, every = np.arange(0, d, 2), np.arange(d)
    sides = halves.of(3, y, weight)
    Z = (X - union.centre) * union.scale
    omega = np.ones(n) if weight is None else weight
    if loss is not None:
        u = (X[:, at.columns] - at.centre) @ at.coef[:, 0] + at.level[0]
        omega = omega * loss.curvature(y, u)
    for new in ([every] * 7, [some] * 7, [every, some, every, some, every, every, every[:0]]):
        found = half_products(X, y, weight, None, halves, 3, which, model, union, new, [every] * 7)
        for half, one, products in zip(which, new, found, strict=True):
            own = omega * (sides[:, half // 2] == half % 2)
            np.testing.assert_allclose(products, Z[:, one].T @ (own[:, None] * Z), atol=1e-9)


@pytest.mark.parametrize("factor", [1e19, 1e-25])
def test_squares_of_single_precision_keep_their_range(factor):
    X, u, rng = data(20)
    y = u + rng.standard_normal(N)
    strongest = int(np.argmax(np.abs((X - X.mean(axis=0)).T @ (y - y.mean()))))
    selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=3), n_pairs=4)
    plain = X.astype(np.float32)
    other = plain.copy()
    other[:, strongest] *= np.float32(factor)
    expected = clone(selector).fit(from_arrays(plain, y, rows=ROWS))
    found = clone(selector).fit(from_arrays(other, y, rows=ROWS))
    assert expected.inclusion_frequencies_[strongest] == 1.0
    np.testing.assert_array_equal(found.inclusion_frequencies_, expected.inclusion_frequencies_)


def test_jobs_are_threads_that_change_no_bit(monkeypatch):
    X, u, rng = data(40)
    asked = []
    monkeypatch.setattr(stability, "Threads", lambda blocks, n: asked.append(n) or Threads(blocks, n))
    selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=5), n_pairs=4)
    blocks = from_arrays(X, u + rng.standard_normal(N), rows=ROWS)
    alone = clone(selector).fit(blocks)
    assert not asked
    for table in (blocks, Serial(blocks)):
        found = clone(selector).set_params(n_jobs=3).fit(table)
        assert found.inclusion_frequencies_.tobytes() == alone.inclusion_frequencies_.tobytes()
    assert asked == [3, 3]


REFUSED = {
    "a criterion": (ht.SparseLinearRegression(), "share their readings where each chooses a given number"),
    "folds": (ht.SparseLinearRegressionCV(), "share their readings where each chooses a given number"),
    "a solver": (ht.SparseLinearRegression(n_nonzero_coefs=2, solver="pursuit"), "by the default solver"),
    "groups": (ht.SparseLinearRegression(groups=[0, 0, 1, 1, 2, 2, 3, 3], n_nonzero_groups=1), "single features"),
    "another package": (SelectKBest(k=2), "by the sparse linear models of this package alone, not by SelectKBest"),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_read_the_table_for_each_half_is_refused_before_it_is_read(model, message):
    X, u, _ = data(8)
    with logged_readings() as log, pytest.raises(CapabilityError, match=message):
        ht.StabilitySelection(model).fit(from_arrays(X, u, rows=ROWS))
    assert log.readings == 0


def test_a_half_without_rows_is_refused():
    X, u, _ = data(8)
    blocks = from_arrays(X, u, np.where(np.arange(N) % ROWS == 0, 1.0, 0.0), rows=ROWS)
    with pytest.raises(InvalidInputError, match=r"no pair of halves .* no row of the half has a weight"):
        ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=1), n_pairs=2).fit(blocks)


def test_a_table_of_dask_is_searched_where_it_is():
    da = pytest.importorskip("dask.array", reason="dask is not installed: pip install 'hardthresh[dask]'")
    X, u, rng = data(40)
    y = u + rng.standard_normal(N)
    selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=5), n_pairs=4)
    expected = clone(selector).fit(from_arrays(X, y, rows=ROWS))
    lazy = da.from_array(X, chunks=(ROWS, -1))
    found = clone(selector).fit(lazy, da.from_array(y, chunks=ROWS))
    assert found.inclusion_frequencies_.tobytes() == expected.inclusion_frequencies_.tobytes()
    assert isinstance(found.inclusion_frequencies_, np.ndarray)
    np.testing.assert_array_equal(found.transform(X), X[:, found.support_])


@pytest.mark.slow
def test_a_ridge_is_that_of_the_mean_loss():
    """The mean curvature of the losses, here a seventh, is part of no ridge."""
    X, _, rng = data(30)
    Z = X - 3.0
    y = rng.poisson(np.exp(Z[:, :10] @ np.linspace(0.15, 0.075, 10) - 2.0)).astype(float)
    X = Z * np.where(np.arange(30) % 2, 0.3, 1.0)
    model = ht.SparsePoissonRegression(n_nonzero_coefs=5, alpha=0.1, standardize=False)
    found = ht.StabilitySelection(model, n_pairs=4).fit(from_arrays(X, y, rows=ROWS))
    gaps = np.abs(by_hand(model, X, y, halves_in_memory(BlockHalves(4, 0), y)) - found.inclusion_frequencies_)
    assert gaps.sum() <= 0.25 + 1e-12  # one exchange in eight halves; with that curvature four


@pytest.mark.slow
def test_a_half_does_not_hang_on_the_fit_to_all_rows():
    """With expansions at no feature to begin with, halves choose what they choose from the fit to all rows."""
    X, _, rng = data(30)
    X = np.exp(X - 3.0)  # of these long tails expansions elsewhere are poor
    u = X[:, :6] @ [1.0, -0.8, 0.6, -0.4, 0.3, 0.2]
    y = (3.0 * (u - u.mean()) + rng.logistic(size=N) > 0).astype(float)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=5).fit(from_arrays(X, y, rows=ROWS))
    problem, result = model._untouched_training()
    halves, settings = BlockHalves(4, 0, by_label=True), {"standardize": True, "tol": 1e-8}
    found, bare = (problem.supports_of_parts(halves, model._ridge(), at, **settings) for at in (result.w, 0 * result.w))
    assert sum(len({*one} ^ {*other}) for one, other in zip(found, bare, strict=True)) <= 2  # one exchange, else four
