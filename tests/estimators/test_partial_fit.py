"""Models that learn from one batch after another; check 14 of scale.md."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.designs import RunningMoments, as_design, from_arrays
from hardthresh.solvers import IHT, StochasticIHT
from levels import at, at_most, slow_beyond

RNG = np.random.default_rng(0)
N, D, SIZE = 600, 12, 60
X = RNG.standard_normal((N, D)) * RNG.uniform(0.1, 10.0, D) + RNG.uniform(-3.0, 3.0, D)
U = (X[:, 3] - X[:, 3].mean()) / X[:, 3].std() - (X[:, 7] - X[:, 7].mean()) / X[:, 7].std()
NUMBERS = U + 5.0 + 0.5 * RNG.standard_normal(N)
LABELS = np.where(2.0 * U + RNG.logistic(size=N) > 0, "b", "a")
COUNTS = RNG.poisson(np.exp(0.5 * U + 1.0)).astype(float)
AMOUNTS = np.exp(0.5 * U) * RNG.gamma(4.0, 0.25, N)
TARGETS = {
    ht.SparseLinearRegression: NUMBERS,
    ht.SparseHuberRegression: NUMBERS,
    ht.SparseLogisticRegression: LABELS,
    ht.SparseLinearSVC: LABELS,
    ht.SparsePoissonRegression: COUNTS,
    ht.SparseNegativeBinomialRegression: RNG.poisson(COUNTS * RNG.gamma(2.0, 0.5, N)).astype(float),
    ht.SparseGammaRegression: AMOUNTS,
    ht.SparseTweedieRegression: AMOUNTS,
}
every = pytest.mark.parametrize("cls", TARGETS, ids=lambda cls: cls.__name__)


def batches(*arrays, size=SIZE):
    """The rows of arrays, some at a time."""
    return zip(*(np.split(array, range(size, len(array), size)) for array in arrays), strict=True)


def learned(model, X, y, size=SIZE, epochs=1, **settings):
    """A model after all batches, once or several times."""
    if hasattr(model, "class_weight"):
        settings["classes"] = np.unique(y)
    for _ in range(epochs):
        for X_b, y_b in batches(X, y, size=size):
            model.partial_fit(X_b, y_b, **settings)
    return model


def assert_same_bits(a, b):
    """All attributes that a user sees are equal, bit for bit."""
    names = {name for name in vars(a) if name.endswith("_") and name != "stream_"}
    assert names == {name for name in vars(b) if name.endswith("_") and name != "stream_"}
    for name in names:
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def twin(X, y, k, step, average):
    """The rule for squared errors, from all rows so far, which it keeps: for each batch coefficients and intercept."""
    coef, intercept, total = np.zeros(X.shape[1]), None, 0.0
    slopes = []  # of each batch: its weight, the gradient about its mean, that mean, and the gradient of the intercept
    for stop in range(SIZE, len(X) + 1, SIZE):
        seen, X_b, y_b = X[:stop], X[stop - SIZE : stop], y[stop - SIZE : stop]
        mean, scale = seen.mean(axis=0), seen.std(axis=0)
        intercept = y_b.mean() if intercept is None else intercept
        r = X_b @ coef + intercept - y_b
        slopes = [(average * weight, *rest) for weight, *rest in slopes] + [(1.0, X_b.T @ r / SIZE, r.mean())]
        total = sum(weight for weight, *_ in slopes)
        slope = sum(weight * one for weight, _, one in slopes) / total
        gradient = sum(weight * raw for weight, raw, _ in slopes) / total - mean * slope
        z = coef * scale - step * gradient / scale
        z[np.argsort(-np.abs(z))[k:]] = 0.0
        level = intercept + coef @ mean - step * slope
        coef = z / scale
        intercept = level - coef @ mean
        yield coef, intercept


@pytest.mark.parametrize(("step", "average"), [(0.3, 0.8), (0.5, 0.0)])
def test_it_is_the_rule_of_all_rows_so_far(step, average):
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, solver=StochasticIHT(step, average=average))
    pairs = zip(batches(X, NUMBERS), twin(X, NUMBERS, 2, step, average), strict=True)
    for count, ((X_b, y_b), (coef, intercept)) in enumerate(pairs, 1):
        model.partial_fit(X_b, y_b)
        assert_allclose(model.coef_, coef, rtol=1e-9)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-9)
        assert_allclose(model.scale_, X[: model.n_samples_seen_].std(axis=0), rtol=1e-12)
        assert (model.n_iter_, model.n_samples_seen_) == (count, count * SIZE)


def test_the_default_is_the_step_of_the_specification():
    default = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, NUMBERS)
    explicit = ht.SparseLinearRegression(n_nonzero_coefs=2, solver=StochasticIHT(0.3, average=0.8))
    assert_same_bits(default, learned(explicit, X, NUMBERS))


@pytest.mark.slow
@at_most(2)
@every
def test_epochs_lead_to_the_features_and_nearly_the_coefficients_of_all_rows(cls):
    """Batches of all rows in turn: an average of gradients over ten batches is nearly the gradient of all rows."""
    model = learned(cls(n_nonzero_coefs=2), X, TARGETS[cls], epochs=12)
    whole = cls(n_nonzero_coefs=2).fit(X, TARGETS[cls])
    assert_array_equal(model.support_, whole.support_)
    assert_allclose(model.coef_, whole.coef_, rtol=0.15)
    assert not hasattr(model, "history_")


@slow_beyond(4)
@at_most(7)
@every
def test_a_stream_that_is_pickled_or_saved_in_the_middle_goes_on_with_the_same_bits(cls, tmp_path):
    y = TARGETS[cls]
    straight = learned(cls(n_nonzero_coefs=2), X, y)
    for way in ("pickle", "save"):
        model = learned(cls(n_nonzero_coefs=2), X[: N // 2], y[: N // 2])
        if way == "pickle":
            model = pickle.loads(pickle.dumps(model))
        else:
            ht.save(model, tmp_path / "model.json")
            model = ht.load(tmp_path / "model.json")
        assert_same_bits(straight, learned(model, X[N // 2 :], y[N // 2 :]))
    assert len(pickle.dumps(straight.stream_)) < 40 * 8 * D + 4000  # O(d): no row


@every
def test_a_row_of_weight_2_is_two_rows_and_one_of_weight_0_is_none(cls):
    y, weight = TARGETS[cls], np.tile([0, 1, 2], N // 3)
    extra = {"classes": np.unique(y)} if hasattr(cls(), "class_weight") else {}
    weighted, repeated = cls(n_nonzero_coefs=2), cls(n_nonzero_coefs=2)
    for X_b, y_b, s in batches(X, y, weight):
        weighted.partial_fit(X_b, y_b, sample_weight=s, **extra)
        repeated.partial_fit(np.repeat(X_b, s, axis=0), np.repeat(y_b, s), **extra)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    assert_allclose(weighted.stream_.moments.mean, repeated.stream_.moments.mean, rtol=1e-12)
    assert_allclose(weighted.stream_.moments.squares, repeated.stream_.moments.squares, rtol=1e-9)


def test_a_short_batch_has_little_say():
    model = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, NUMBERS, epochs=3)
    before = model.stream_.gradients.mean
    model.partial_fit(X[:1] + 30.0, NUMBERS[:1])
    after = model.stream_.gradients
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2).partial_fit(X[:1] + 30.0, NUMBERS[:1] + 1.0)
    assert after.weight == pytest.approx(0.8 * 5 * SIZE + 1, rel=1e-2)
    assert np.abs(after.mean - before)[-1] < 1.0
    assert alone.support_.size == 0  # columns of one row are constant


@pytest.mark.parametrize("kind", ["sparse", "float32", "frame"])
def test_other_storage_of_the_rows(kind):
    pandas = pytest.importorskip("pandas") if kind == "frame" else None
    as_kind = {
        "sparse": sp.csr_array,
        "float32": lambda rows: rows.astype(np.float32),
        "frame": lambda rows: pandas.DataFrame(rows, columns=[f"c{j}" for j in range(D)]),
    }[kind]
    plain = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, NUMBERS)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    for X_b, y_b in batches(X, NUMBERS):
        model.partial_fit(as_kind(X_b), y_b)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-4 if kind == "float32" else 1e-9)
    assert model.coef_.dtype == (np.float32 if kind == "float32" else np.float64)
    if kind == "frame":
        assert model.feature_names_in_[3] == "c3"
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(as_kind(X[:SIZE]).rename(columns={"c3": "other"}), NUMBERS[:SIZE])


def test_blocks_of_a_table_are_batches():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((4096, D))
    y = rows[:, 3] - rows[:, 7] + rng.standard_normal(4096)
    weight = rng.integers(0, 3, 4096).astype(float)
    model, plain = (ht.SparseLinearRegression(n_nonzero_coefs=2) for _ in range(2))
    table = from_arrays(rows, y, sample_weight=weight, rows=1024)
    for number in range(len(table)):
        X_b, y_b, s, offset = table.read(number)
        model.partial_fit(X_b, y_b, s, offset)
    for X_b, y_b, s in batches(rows, y, weight, size=1024):
        plain.partial_fit(X_b, y_b, sample_weight=s)
    assert_same_bits(model, plain)


def test_offsets_are_part_of_predictions():
    offset = 3.0 * X[:, 5]
    plain = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, NUMBERS)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    for X_b, y_b, o in batches(X, NUMBERS + offset, offset):
        model.partial_fit(X_b, y_b, offset=o)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    assert model.offset_used_


@at_most(2)
@pytest.mark.parametrize(
    "settings",
    [
        {"n_nonzero_coefs": 1, "always_include": [3]},
        {"n_nonzero_coefs": 1, "positive": True},
        {"n_nonzero_coefs": 1, "bounds": (None, 0.0)},
        {"groups": list(range(6)) * 2, "n_nonzero_groups": 2},
        {"n_nonzero_coefs": 2, "fit_intercept": False},
        {"n_nonzero_coefs": 2, "alpha": 0.5},
    ],
    ids=str,
)
def test_settings_of_the_model_hold(settings):
    """As in the limit of many batches, which is the problem of all rows."""
    model = learned(ht.SparseLinearRegression(**settings), X, NUMBERS, epochs=12)
    whole = ht.SparseLinearRegression(**settings).fit(X, NUMBERS)
    assert_array_equal(model.support_, whole.support_)
    assert_allclose(model.coef_, whole.coef_, rtol=0.15, atol=0.02 / X.std(axis=0).min())
    assert getattr(model, "groups_", None) == getattr(whole, "groups_", None)


@pytest.mark.slow
def test_several_outputs_and_several_classes():
    Y = np.column_stack([NUMBERS, -2.0 * NUMBERS])
    model = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, Y, epochs=12)
    assert_allclose(model.coef_, ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y).coef_, rtol=0.15)
    labels = np.digitize(U + 0.3 * RNG.standard_normal(N), [-0.7, 0.7])
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2)
    rare = labels[:SIZE] > 0
    model.partial_fit(X[:SIZE][rare], labels[:SIZE][rare], classes=[0, 1, 2], offset=np.zeros((rare.sum(), 3)))
    learned(model, X, labels, epochs=5)
    assert_array_equal(model.support_, [3, 7])
    assert model.score(X, labels) > 0.75


def test_a_batch_of_one_class_alone():
    """A sorted file: no coefficient becomes infinite, and later batches put things right."""
    order = np.argsort(LABELS, kind="stable")
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2)
    for X_b, y_b in batches(X[order], LABELS[order]):
        model.partial_fit(X_b, y_b, classes=["a", "b"])
        assert np.all(np.isfinite(model.coef_))
    learned(model, X, LABELS, epochs=4)
    assert_array_equal(model.support_, [3, 7])


def test_a_step_that_would_overflow_is_shortened():
    model = ht.SparsePoissonRegression(n_nonzero_coefs=2, solver=StochasticIHT(1e6))
    learned(model, X, COUNTS, epochs=2)
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.predict(X)))


def test_fit_begins_anew_and_partial_fit_goes_on_from_fit():
    model = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X[::-1], NUMBERS[::-1])
    again = model.fit(X, NUMBERS)
    assert not hasattr(model, "stream_")
    assert not hasattr(model, "n_samples_seen_")
    assert_array_equal(again.coef_, ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, NUMBERS).coef_)
    fitted = again.coef_.copy()
    model.partial_fit(X, NUMBERS)  # whose gradient is zero there
    assert_allclose(model.coef_, fitted, rtol=1e-6)
    assert (model.n_iter_, model.n_samples_seen_) == (1, N)
    with pytest.raises(HardThreshError, match="learned from batches"):
        model.certificate()
    assert model.certificate(X, NUMBERS).stationarity is not None


@pytest.mark.parametrize("cls", [ht.SparseLinearRegression, ht.SparseLogisticRegression])
def test_the_first_batch_chooses_the_number_if_it_is_not_set(cls):
    y = TARGETS[cls]
    model = learned(cls(), X, y, size=200)
    chosen = cls().fit(X[:200], y[:200]).best_n_nonzero_coefs_
    assert model.n_nonzero_coefs_ == model.best_n_nonzero_coefs_ == chosen == 2
    given = learned(cls(n_nonzero_coefs=2).fit(X[:200], y[:200]), X, y, size=200)
    assert_array_equal(model.coef_, given.coef_)
    assert not hasattr(model, "criterion_path_")


def test_a_first_batch_that_lacks_classes_cannot_choose():
    order = np.argsort(LABELS)
    with pytest.raises(InvalidInputError, match=r"no row of the class 'b'.*set n_nonzero_coefs"):
        ht.SparseLogisticRegression().partial_fit(X[order][:SIZE], LABELS[order][:SIZE], classes=["a", "b"])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ht.SparseLinearRegression(n_nonzero_coefs=2, solver="iht"), r"solver 'iht' needs all rows.*StochasticIHT"),
        (ht.SparseLinearRegression(n_nonzero_coefs=2, solver=IHT()), r"solver IHT\(.*needs all rows"),
        (ht.SparseLinearRegressionCV(n_nonzero_coefs=2), "folds of all rows"),
        (ht.SparseLogisticRegressionCV(n_nonzero_coefs=2), "folds of all rows"),
        (ht.SparseQuantileRegression(n_nonzero_coefs=2), "kink"),
        (ht.SparseOrdinalRegression(n_nonzero_coefs=2), "thresholds"),
        (ht.SparseCoxRegression(n_nonzero_coefs=2), "partial likelihood"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_models_that_need_all_rows_say_so(model, reason):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=f"{type(model).__name__} has no partial_fit: .*{reason}"):
        model.partial_fit(X, NUMBERS)


def test_what_is_refused_leaves_the_model_as_it_was():
    model = learned(ht.SparseLinearRegression(n_nonzero_coefs=2), X, NUMBERS)
    before = pickle.dumps(model)
    bad = X[:SIZE].copy()
    bad[3, 4] = np.nan
    for rows, targets, message in (
        (X[:SIZE, 1:], NUMBERS[:SIZE], "11 features"),
        (bad, NUMBERS[:SIZE], "NaN"),
        (X[:SIZE], np.column_stack([NUMBERS, NUMBERS])[:SIZE], "the stream has coefficients of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, targets)
        assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        (LABELS, {}, "classes must be given in the first call"),
        (LABELS, {"classes": ["a", "c"]}, r"y\[\d+\] is 'b'; the classes are 'a', 'c'"),
        (LABELS, {"classes": ["a"]}, "one class only"),
    ],
)
def test_classes_are_those_of_the_first_call(labels, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        ht.SparseLogisticRegression(n_nonzero_coefs=2).partial_fit(X, labels, **settings)


def test_classes_do_not_change():
    model = learned(ht.SparseLogisticRegression(n_nonzero_coefs=2), X, LABELS)
    model.partial_fit(X, LABELS)
    with pytest.raises(InvalidInputError, match=r"classes are \['a', 'c'\], and were \['a', 'b'\] before"):
        model.partial_fit(X, LABELS, classes=["a", "c"])
    balanced = ht.SparseLogisticRegression(n_nonzero_coefs=2, class_weight="balanced")
    with pytest.raises(InvalidInputError, match="needs all rows"):
        balanced.partial_fit(X, LABELS, classes=["a", "b"])


def test_class_weights_are_weights_of_rows():
    by_class = ht.SparseLogisticRegression(n_nonzero_coefs=2, class_weight={"b": 3.0})
    by_row = ht.SparseLogisticRegression(n_nonzero_coefs=2)
    for X_b, y_b in batches(X, LABELS):
        by_class.partial_fit(X_b, y_b, classes=["a", "b"])
        by_row.partial_fit(X_b, y_b, classes=["a", "b"], sample_weight=np.where(y_b == "b", 3.0, 1.0))
    assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_check_10_moments_of_columns_far_from_zero(dtype, tolerance):
    """Mean 1e6 and deviation 1; and 1, 7 and 100 batches agree."""
    rows = (RNG.standard_normal((2000, 3)) + np.array([1e6, 0.0, -1e6])).astype(dtype)
    rows[:, 1] = 0.1  # a constant stays one
    found = []
    for count in (1, 7, 100):
        moments = RunningMoments.none(3)
        for part in np.array_split(rows, count):
            moments = moments.absorb(as_design(part), np.full(len(part), 1 / len(part), dtype), len(part))
        found.append(moments)
        assert_allclose(moments.deviation[[0, 2]], rows[:, [0, 2]].astype(float).std(axis=0), rtol=tolerance)
        assert moments.deviation[1] == 0.0
    for moments in found[1:]:
        assert_allclose(moments.mean, found[0].mean, rtol=1e-13 if dtype is np.float64 else 1e-7)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("seed", [0, 1, *at("all", range(2, 6))])
def test_check_14_a_stream_finds_the_features(seed):
    """500 columns, 15 features, 50 batches of 2,000 rows; 20 seeds are in ``benchmarks/streams.py``."""
    t = np.random.default_rng(seed)
    planted = np.sort(t.choice(500, 15, replace=False))
    coef = t.choice([-1.0, 1.0], 15) * (0.3 + t.random(15))
    model = ht.SparseLinearRegression(n_nonzero_coefs=15)
    for start in range(0, 100_000, 2000):
        rng = np.random.default_rng((seed, start))
        rows = rng.standard_normal((2000, 500), dtype=np.float32)
        rows[:, 1:] += 0.5 * rows[:, :-1]  # neighbours are correlated
        model.partial_fit(rows, rows[:, planted] @ coef + rng.standard_normal(2000))
        if start == 50_000:
            model = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.support_, planted)
    assert_allclose(model.coef_[planted], coef, atol=0.05)


def test_a_table_in_blocks_is_no_batch_but_each_block_is():
    """What the message says to do is done."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4096, 20))
    blocks, model = from_arrays(X, X[:, 3], rows=1024), ht.SparseLinearRegression(n_nonzero_coefs=1)
    with pytest.raises(InvalidInputError, match=r"learns from the rows of one batch.*rows = blocks.read\(0\)"):
        model.partial_fit(blocks, None)
    for number in range(len(blocks)):
        rows = blocks.read(number)
        model.partial_fit(rows.X, rows.y)
    assert model.n_samples_seen_ == 4096
    assert_array_equal(model.support_, [3])
