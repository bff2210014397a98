"""More than two classes of tables in blocks: the models that are fitted to them in memory, after a few readings."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh import SparseLinearSVC, SparseLogisticRegression, SparseLogisticRegressionCV, StabilitySelection
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.designs import DaskEngine, Rows, Serial, Threads, from_arrays, from_dask, logged_readings
from hardthresh.losses import Multinomial
from hardthresh.objectives.kept_columns import KeptColumns
from hardthresh.solvers.pilot import pilot_of_classes
from levels import at, at_most, only_at, reaches

N, D, K = 2000, 200, 4
LABELS = np.array(["ant", "bee", "cat", "dog"])


def data(seed=0, q=3, n=N, d=D, dtype=np.float64):
    """Correlated columns, one constant, and q classes whose predictors share K of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X[:, 7] = 2.0
    coef = np.zeros((d, q))
    coef[rng.choice(np.delete(np.arange(d), 7), K, replace=False)] = rng.standard_normal((K, q))
    y = LABELS[np.argmax(X @ coef + rng.gumbel(size=(n, q)), axis=1)]
    return X.astype(dtype), y, rng.integers(0, 3, n).astype(float), 0.2 * rng.standard_normal((n, q))


def assert_same_model(blocked, plain, tol=1e-6):
    np.testing.assert_array_equal(blocked.classes_, plain.classes_)
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    assert blocked.coef_.shape == plain.coef_.shape
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=0, atol=tol * np.abs(plain.coef_).max())
    size = 1 + np.abs(plain.intercept_).max()
    np.testing.assert_allclose(blocked.intercept_, plain.intercept_, rtol=0, atol=tol * size)
    np.testing.assert_allclose(blocked.objective_, plain.objective_, rtol=tol)
    assert blocked.separated_ == plain.separated_


SETTINGS = {
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "ridge": {"alpha": 0.3},
    "no ridge": {"alpha": 0.0},
    "always": {"always_include": [0, 11]},
    "groups": {"groups": np.arange(D) // 4, "n_nonzero_groups": 2, "n_nonzero_coefs": None},
    "auto": {"n_nonzero_coefs": "auto"},
    "pursuit": {"solver": "pursuit"},
    "balanced": {"class_weight": "balanced"},
    "weights": {"class_weight": {"ant": 2.0, "bee": 1.0, "cat": 0.5}},
}

pytestmark = pytest.mark.filterwarnings("ignore:1 constant column")


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("q", [3, 4])
def test_twenty_tables_have_the_model_of_rows_in_memory(q):
    """Checks 2 and 3 of scale.md: the same features and coefficients, with weights of zero among them."""
    readings = []
    for seed in range(20 if reaches("pairs") else 5):
        X, y, weight, offset = data(seed, q)
        model = SparseLogisticRegression(n_nonzero_coefs=K)
        blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=512))
        assert_same_model(blocked, clone(model).fit(X, y, weight, offset))
        readings.append(blocked.history_["readings"][-1])
    assert np.median(readings) <= 4
    assert max(readings) <= 6


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting != "auto" or reaches("pairs")])
def test_settings_are_those_in_memory(setting):
    X, y, weight, offset = data(3)
    model = SparseLogisticRegression(**{"n_nonzero_coefs": K, **SETTINGS[setting]})
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=512))
    plain = clone(model).fit(X, y, weight, offset)
    assert_same_model(blocked, plain)
    if setting == "auto":
        np.testing.assert_allclose(blocked.criterion_path_, plain.criterion_path_, rtol=1e-6)
        assert blocked.history_["readings"][-1] <= 8


@pytest.mark.slow
def test_predictions_scores_and_certificates_are_those_in_memory():
    X, y, weight, offset = data(q=4)
    blocks = from_arrays(X, y, weight, offset, rows=512)
    blocked, plain = (
        SparseLogisticRegression(n_nonzero_coefs=K).fit(*of) for of in ((blocks,), (X, y, weight, offset))
    )
    np.testing.assert_allclose(blocked.predict_proba(blocks), plain.predict_proba(X, offset), rtol=1e-6)
    np.testing.assert_array_equal(blocked.predict(blocks), plain.predict(X, offset))
    np.testing.assert_allclose(blocked.score(blocks), plain.score(X, y, weight, offset), rtol=1e-12)
    engine = blocked._training[0].objective.engine
    before = engine.readings
    found, expected = blocked.certificate(), plain.certificate()
    assert engine.readings - before <= 4  # the Hessian at the fit, what is exchanged, and a comparison
    assert (found.exact, found.fitted) == (expected.exact, True)
    assert (found.swap.removed, found.swap.added) == (expected.swap.removed, expected.swap.added)
    np.testing.assert_allclose(found.swap.decrease, expected.swap.decrease, rtol=1e-5)
    rows = [str(model.summary()).split("\nfeature")[1] for model in (blocked, plain)]
    assert rows[0] == rows[1]


MOST_READINGS = {
    "pursuit": ({"solver": "pursuit"}, 5),
    "accelerated": ({"solver": "accelerated"}, 80),
    "groups": ({"groups": np.arange(60) // 4, "n_nonzero_groups": 2, "n_nonzero_coefs": None}, 6),
    "IHT of groups": ({"groups": np.arange(60) // 4, "n_nonzero_groups": 2, "solver": "iht"}, 60),
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("setting", MOST_READINGS)
def test_refits_and_second_derivatives_along_steps_read_nothing(setting):
    """They are of kept columns: groups took 69 readings, pursuit 29, accelerated steps 128 and a summary 12."""
    X, y, weight, offset = data(3, 4, d=60)
    settings, most = MOST_READINGS[setting]
    model = SparseLogisticRegression(**{"n_nonzero_coefs": None if "groups" in setting else K, **settings})
    blocked = clone(model).fit(from_arrays(X, y, weight, offset, rows=512))
    assert_same_model(blocked, clone(model).fit(X, y, weight, offset), 1e-2 if "IHT" in setting else 1e-5)
    assert blocked.history_["readings"][-1] <= most
    engine = blocked._training[0].objective.engine
    before = engine.readings
    blocked.summary()  # with a certificate
    assert engine.readings - before <= 4


@pytest.mark.slow
def test_a_start_at_which_losses_are_saturated_takes_few_evaluations(monkeypatch):
    """Of three rows of a class the pilot has two, which its columns separate: without a ridge the fit made 47,000."""
    rng, calls, sums = np.random.default_rng(5), [], KeptColumns.sums
    X, B = rng.standard_normal((3000, 60)), np.zeros((60, 3))
    for j in range(1, 60):
        X[:, j] = 0.5 * X[:, j - 1] + 0.75**0.5 * X[:, j]
    B[rng.choice(60, 4, replace=False)] = 1.5 * rng.standard_normal((4, 3))
    y = np.minimum(np.argmax(X @ B + rng.gumbel(size=(3000, 3)), axis=1), 1)
    y[[100, 1700, 2900]] = 2

    def counted(*given):
        calls.append(1)
        assert len(calls) < 2000
        return sums(*given)

    monkeypatch.setattr(KeptColumns, "sums", counted)
    model = SparseLogisticRegression(n_nonzero_coefs=4, alpha=0.0)
    blocked = clone(model).fit(from_arrays(X, y, rows=256))
    assert_same_model(blocked, clone(model).fit(X, y))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("storage", ["float32", "sparse", "beside", "far", "one block"])
def test_storage_changes_nothing(storage):
    single = storage == "float32"
    X, y, weight, _ = data(dtype=np.float32 if single else np.float64)
    X = X + 1e5 if storage == "far" else X
    model = SparseLogisticRegression(n_nonzero_coefs=K)
    table = from_arrays(sp.csr_array(X) if storage == "sparse" else X, y, weight, rows=N if "one" in storage else 512)
    given = (from_arrays(X, rows=512), y, weight) if storage == "beside" else (table,)
    blocked, plain = clone(model).fit(*given), clone(model).fit(X, y, weight)
    assert_same_model(blocked, plain, 1e-3 if single else 1e-5)
    assert blocked.coef_.dtype == plain.coef_.dtype
    np.testing.assert_allclose(blocked.score(table), plain.score(X, y, weight), rtol=1e-2 if single else 1e-12)


def bits(model):
    return model.coef_.tobytes() + model.intercept_.tobytes()


@only_at("pairs")
def test_bits_do_not_depend_on_the_engine():
    """Check 4 of scale.md."""
    X, y, weight, _ = data(n=5000, dtype=np.float32)
    table = from_arrays(X, y, weight, rows=128)
    engines = [Serial(table), Threads(table, 4)]
    models = [SparseLogisticRegression(n_nonzero_coefs=K).fit(engine) for engine in engines]
    assert bits(models[0]) == bits(models[1])
    assert models[0].score(engines[0]) == models[1].score(engines[1])


@only_at("pairs")
def test_bits_are_those_of_a_cluster():
    """Check 4 of scale.md: two workers, arrays of Dask, and predictions that are computed once they are asked for."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'hardthresh[dask]'")
    import dask.array as da

    X, y, weight, _ = data()
    y = np.searchsorted(LABELS, y)
    table = from_arrays(X, y, weight, rows=100)
    serial = SparseLogisticRegression(n_nonzero_coefs=K).fit(table)
    lazy = [da.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        model = SparseLogisticRegression(n_nonzero_coefs=K).fit(*lazy)
        found = model.predict_proba(lazy[0])
        assert hasattr(found, "dask")
        np.testing.assert_allclose(found.compute(), serial.predict_proba(X), rtol=1e-12)
        assert model.score(*lazy) == serial.score(table)
        others = [clone(model).fit(DaskEngine(from_dask(*lazy), leaf_size=size)) for size in (1, 8)]
    assert {bits(other) for other in (model, *others)} == {bits(serial)}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("first", [1, 2, *at("pairs", [3])])
def test_a_class_of_a_later_block_is_found(first):
    """Blocks 0, 5, 10 and 15, at which a pilot looks, do not have all classes: the fit begins anew.

    The offset has a column for each class of all blocks.
    """
    X, y, weight, offset = data(q=4, n=8000)
    seen = np.isin(np.arange(8000) // 500, [0, 5, 10, 15])
    y[seen & ~np.isin(y, LABELS[:first])] = LABELS[0]
    blocked = SparseLogisticRegression(n_nonzero_coefs=K).fit(from_arrays(X, y, weight, offset, rows=500))
    assert_same_model(blocked, SparseLogisticRegression(n_nonzero_coefs=K).fit(X, y, weight, offset))


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("alone", [True, False])
def test_a_dummy_of_rows_of_one_class_is_told(q, alone):
    """Its coefficient grows for ever, and those of the others do not: f does not fall along the point itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    X[:, 0] = np.arange(600) % 20 == 0
    y = np.argmax(0.5 * X[:, 1:2] * np.arange(q) + rng.gumbel(size=(600, q)), axis=1)
    y[X[:, 0] > 0] = 0 if alone else np.arange(30) % q
    model, table = SparseLogisticRegression(n_nonzero_coefs=1, always_include=[0], alpha=0), from_arrays(X, y, rows=100)
    if alone:
        with pytest.warns(
            ConvergenceWarning, match=r"Growing without bound: the coefficient of feature 0 \(counted from 0\)$"
        ):
            model.fit(table)
    else:
        model.fit(table)
    assert model.converged_ != alone
    assert not model.separated_


@pytest.mark.parametrize("block", [0, 1])
def test_a_label_that_is_nan_is_found(block):
    """In a block that is looked at before the first reading, and in another."""
    X, y, *_ = data(n=2500, d=20)
    labels = np.searchsorted(LABELS, y) * 1.0
    labels[500 * block + 20] = np.nan
    with pytest.raises(
        InvalidInputError, match=rf"y contains NaN or infinity: block {block} \(.*at row 20 of the block"
    ):
        SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, labels, rows=500))


@pytest.mark.slow
def test_classes_that_columns_separate():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 30)), rng.integers(0, 3, 600)
    X[np.arange(600), y] += 20.0
    table = from_arrays(X, y, rows=100)
    blocked, plain = (SparseLogisticRegression(n_nonzero_coefs=3).fit(*of) for of in ((table,), (X, y)))
    assert blocked.separated_
    assert_same_model(blocked, plain)
    assert blocked.score(table) == 1.0


@only_at("pairs")
def test_a_fit_is_stored_and_goes_on(tmp_path):
    X, y, *_ = data()
    table = from_arrays(X, y, rows=512)
    model = SparseLogisticRegression(n_nonzero_coefs=K).fit(table)
    ht.save(model, tmp_path / "model.json")
    for other in (ht.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    warm = clone(model).set_params(warm_start=True).fit(table).fit(table)
    assert_same_model(warm, model)


REFUSED = {
    "an offset": (
        SparseLogisticRegression(n_nonzero_coefs=2),
        lambda X, y, o: from_arrays(X, y, offset=o[:, 0], rows=512),
        InvalidInputError,
        r"an offset of shape \(n,\), and \(n, 3\) is needed",
    ),
    "columns": (
        SparseLogisticRegression(n_nonzero_coefs=2),
        lambda X, y, o: from_arrays(np.zeros((N, 2100)), y, rows=512),
        CapabilityError,
        "more than two classes are fitted over blocks of at most 2,048 columns, X has 2,100",
    ),
    "folds": (
        SparseLogisticRegressionCV(),
        lambda X, y, o: from_arrays(np.zeros((N, 257)), y, rows=512),
        CapabilityError,
        "more than two classes are cross-validated over blocks of at most 256 columns, X has 257",
    ),
    "two classes": (
        SparseLinearSVC(n_nonzero_coefs=2),
        lambda X, y, o: from_arrays(X, y, rows=512),
        InvalidInputError,
        "Only binary classification is supported",
    ),
}


@pytest.mark.parametrize(("model", "table", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_fitted_is_refused(model, table, error, message):
    X, y, _, offset = data()
    engine = Serial(table(X, y, offset))
    with logged_readings() as log, pytest.raises(error, match=message):
        model.fit(engine)  # on an engine of its own, whose readings are in the log alone
    assert log.readings == 0


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 3])
def test_offsets_that_are_no_numbers_are_refused(q):
    """A fit to them had an answer, and so had predictions."""
    X, y, weight, offset = data(q=q)
    offset = offset if q > 2 else offset[:, 0]
    model = SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, weight, offset, rows=512))
    wrong = offset.copy()
    row = np.flatnonzero(weight)[-1]
    wrong[row] = np.nan
    table = from_arrays(X, y, weight, wrong, rows=512)
    place = rf"offset contains NaN or infinity: block 3 \(rows 1,536..1,999, first at row {row - 1536} of the block\)"
    for ask in (clone(model).fit, model.score, model.predict, model.predict_proba):
        with pytest.raises(InvalidInputError, match=place):
            ask(table)
    with pytest.raises(InvalidInputError, match=rf"offset contains NaN or infinity: offset\[{row}"):
        model.predict(from_arrays(X, rows=512), wrong)


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 3])
def test_offsets_of_another_shape_are_refused(q):
    X, y, weight, offset = data(q=q)
    right = offset if q > 2 else offset[:, 0]
    model = SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, weight, right, rows=512))
    wrong = offset[:, :1] if q > 2 else offset
    table = from_arrays(X, y, weight, wrong, rows=512)
    for ask in (clone(model).fit, model.score, model.predict):
        with pytest.raises(
            InvalidInputError, match=r"some blocks have an offset of shape \(n, \d\), and \(n.*\) is needed"
        ):
            ask(table)
    with pytest.raises(InvalidInputError, match=r"offset has shape \(2000, \d\); \(2000,.*\) is needed"):
        model.predict(from_arrays(X, rows=512), wrong)


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 3])
def test_predictions_refuse_chosen_columns_that_are_no_numbers(q):
    """NaN had a class; in columns that are not chosen nothing is read."""
    X, y, *_ = data(q=q)
    model = SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, rows=512))
    chosen, expected = model.support_[1], model.predict(X)
    X[700, np.setdiff1d(np.arange(D), model.support_)[0]] = np.nan
    np.testing.assert_array_equal(model.predict(from_arrays(X, rows=512)), expected)
    X[1200, chosen] = np.inf
    place = rf"X contains NaN or infinity: feature {chosen} \(counted from 0\), block 2 \(rows 1,024..1,535"
    with pytest.raises(InvalidInputError, match=place):
        model.predict(from_arrays(X, rows=512))


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 3])
def test_predictions_without_the_offset_of_the_fit_are_warned_of(q):
    X, y, _, offset = data(q=q)
    offset = offset if q > 2 else offset[:, 0]
    table = from_arrays(X, y, offset=offset, rows=512)
    model = SparseLogisticRegression(n_nonzero_coefs=2).fit(table)
    with pytest.warns(UserWarning, match="was fitted with an offset; predict without one leaves it out"):
        model.predict(from_arrays(X, rows=512))
    np.testing.assert_array_equal(model.predict(table), model.predict(from_arrays(X, rows=512), offset))


def test_columns_of_targets_are_refused():
    X, y, *_ = data()
    with pytest.raises(InvalidInputError, match=r"some blocks have targets of shape \(n, 1\), and \(n,\) is needed"):
        SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y[:, None], rows=512))


def test_rows_that_do_not_tell_name_the_columns_whose_products_with_a_class_are_largest():
    X, y, weight, _ = data()

    def failing(k, inverse_scale):
        raise InvalidInputError("no fit")

    rows = Rows(X, np.searchsorted(LABELS, y), weight)
    guess = pilot_of_classes(rows, Multinomial(3), failing, K, ridge=np.zeros(D + 1), intercept=True, scale=True)
    assert guess.points == ()
    chosen = SparseLogisticRegression(n_nonzero_coefs=K).fit(X, y, weight).support_
    assert np.isin(chosen, guess.members).all()
    assert guess.members.size == 64


@pytest.mark.slow
def test_halves_and_proofs_are_refused():
    X, y, *_ = data()
    with pytest.raises(CapabilityError, match="prove is not for this model of a table in blocks"):
        SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, rows=512)).prove()
    with pytest.raises(CapabilityError, match="halves of a table in blocks are not searched for more than two"):
        StabilitySelection(SparseLogisticRegression(n_nonzero_coefs=2)).fit(from_arrays(X, y, rows=512))


@pytest.mark.slow
def test_scores_count_unknown_classes_as_wrong():
    X, y, *_ = data()
    model = SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, y, rows=512))
    other = y.copy()
    other[:500] = "eel"
    expected = np.mean(model.predict(X) == other)
    np.testing.assert_allclose(model.score(from_arrays(X, other, rows=512)), expected, rtol=1e-12)
