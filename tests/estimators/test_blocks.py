"""Linear estimators on tables in blocks: the models that they fit in memory, in few readings; and what they refuse."""

import pickle
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import hardthresh as ht
from hardthresh import (
    SparseCoxRegression,
    SparseGammaRegression,
    SparseLinearRegression,
    SparseLinearSVC,
    SparseLogisticRegression,
    SparsePoissonRegression,
    SparseQuantileRegression,
    SparseTweedieRegression,
)
from hardthresh.core import CapabilityError, InvalidInputError, OutOfMemoryError
from hardthresh.core.errors import HardThreshError, NothingFoundWarning
from hardthresh.designs import RowBlocks, Serial, Threads, from_arrays, logged_readings
from hardthresh.designs.blocks import Block, Rows
from hardthresh.losses import Squared
from hardthresh.objectives.guess import simple_guess
from hardthresh.solvers import pilot as pilots
from levels import at_most, in_turn, only_at

N, D, K = 4000, 400, 5
CLASSES = {"logistic": SparseLogisticRegression, "svc": SparseLinearSVC}
MODELS = {
    "squared": SparseLinearRegression,
    "poisson": SparsePoissonRegression,
    "gamma": SparseGammaRegression,
    "tweedie": SparseTweedieRegression,
    **CLASSES,
}


def data(name="squared", seed=0, n=N, d=D, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X[:, 7] = 2.0
    u = 0.5 * X[:, np.array([3, 40, 90, 200, 310]) % d] @ [1.0, -1.0, 0.8, -0.8, 1.2]
    if name in CLASSES:
        y = np.where(u + rng.logistic(size=n) > 0, "well", "ill")
    elif name == "squared":
        y = 3.0 + u + rng.standard_normal(n)
    elif name == "poisson":
        y = rng.poisson(np.exp(0.5 * u)).astype(float)
    else:
        y = np.exp(0.5 * u) * rng.gamma(2.0, 0.5, n)
    return X.astype(dtype), y


def assert_same_model(blocked, plain, tol=1e-6):
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=0, atol=tol)
    np.testing.assert_allclose(blocked.intercept_, plain.intercept_, rtol=0, atol=tol)
    np.testing.assert_allclose(blocked.objective_, plain.objective_, rtol=1e-8)


@pytest.mark.slow
@at_most(2)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("name", MODELS)
def test_fits_predictions_and_scores_are_those_in_memory(name):
    X, y = data(name)
    model = MODELS[name](n_nonzero_coefs=K)
    blocks = from_arrays(X, y, rows=512)
    blocked, plain = clone(model).fit(blocks), clone(model).fit(X, y)
    assert_same_model(blocked, plain)
    assert blocked.converged_
    assert blocked.n_features_in_ == D
    assert blocked.history_["readings"][-1] <= 4
    if name in CLASSES:
        assert blocked.classes_.tolist() == ["ill", "well"]
        assert (blocked.predict(blocks) == plain.predict(X)).all()
    else:
        np.testing.assert_allclose(blocked.predict(blocks), plain.predict(X), rtol=1e-6)
    np.testing.assert_allclose(blocked.score(blocks), plain.score(X, y), rtol=1e-7)
    np.testing.assert_allclose(blocked.score(X, y), plain.score(X, y), rtol=1e-7)


SETTINGS = {
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "ridge": {"alpha": 0.3},
    "always": {"always_include": [0, 11]},
    "positive": {"positive": True},
    "bounds": {"bounds": (-0.2, 0.3)},
    "auto": {"n_nonzero_coefs": "auto"},
    "solver": {"solver": "pursuit"},
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.filterwarnings("ignore:1 constant column")
@in_turn("setting,name", [*SETTINGS], ["squared", "logistic"])
def test_settings_are_those_in_memory(setting, name):
    X, y = data(name)
    weight, offset = np.random.default_rng(1).integers(0, 3, N).astype(float), 0.2 * X[:, 5]
    model = MODELS[name](**{"n_nonzero_coefs": K, **SETTINGS[setting]})
    blocks = from_arrays(X, y, sample_weight=weight, offset=offset, rows=512)
    assert_same_model(clone(model).fit(blocks), clone(model).fit(X, y, weight, offset))


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_groups_are_chosen_whole():
    X, y = data(d=60)
    groups = np.repeat(np.arange(20), 3)
    model = SparseLinearRegression(groups=groups, n_nonzero_groups=3)
    assert_same_model(clone(model).fit(from_arrays(X, y, rows=512)), clone(model).fit(X, y))
    wide = SparseLinearRegression(groups=np.zeros(2100), n_nonzero_groups=1)
    with pytest.raises(CapabilityError, match="groups are chosen over blocks of at most 2,048 columns, X has 2,100"):
        wide.fit(from_arrays(np.zeros((10, 2100)), np.zeros(10)))


@pytest.mark.slow
@at_most(3)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("storage", ["float32", "sparse", "threads", "beside"])
def test_storage_and_engine_change_nothing(storage):
    X, y = data(dtype=np.float32 if storage == "float32" else np.float64)
    model, weight = SparseLinearRegression(n_nonzero_coefs=K), np.linspace(1, 2, N)
    plain = clone(model).fit(X, y, weight)
    if storage == "sparse":
        found = clone(model).fit(from_arrays(sp.csr_array(X), y, weight, rows=512))
    elif storage == "threads":
        found = clone(model).fit(Threads(from_arrays(X, y, weight, rows=512), 3))
        again = clone(model).fit(Serial(from_arrays(X, y, weight, rows=512)))
        np.testing.assert_array_equal(found.coef_, again.coef_)
    elif storage == "beside":
        found = clone(model).fit(from_arrays(X, rows=512), y, sample_weight=weight)
    else:
        found = clone(model).fit(from_arrays(X, y, weight, rows=512))
        assert found.coef_.dtype == np.float32
    assert_same_model(found, plain, 2e-6 if storage == "float32" else 1e-9)


def test_few_columns_are_read_once():
    """Check 3 of scale.md: the products of up to 256 columns are all that least squares need."""
    X, y = data(d=200)
    X, y = X[:, [*range(7), *range(8, 200)]], X[:, 3] + y * 0.1
    found = SparseLinearRegression(n_nonzero_coefs=3).fit(from_arrays(X, y, rows=512))
    assert found.history_["readings"].tolist() == [1] * found.history_["readings"].size
    assert_same_model(found, SparseLinearRegression(n_nonzero_coefs=3).fit(X, y))


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_certificates_take_two_readings(name):
    """Check 3 of scale.md: at most two, and what they say of exchanges is what they say in memory."""
    X, y = data(name)
    blocked, plain = (MODELS[name](n_nonzero_coefs=K).fit(*of) for of in ((from_arrays(X, y, rows=512),), (X, y)))
    model = blocked._training[0].objective
    before = model.readings
    found, expected = blocked.certificate(), plain.certificate()
    assert model.readings - before <= 2
    assert found.exact == expected.exact
    assert found.fitted
    assert (found.swap.removed, found.swap.added) == (expected.swap.removed, expected.swap.added)
    assert found.lower_bound is None


def rare_class():
    """Return rows whose labels are 0 but for 100 in the second of eight blocks, of which four are looked at first."""
    X, _ = data(n=8 * 1024, d=300)
    y = np.zeros(8 * 1024, dtype=int)
    y[1500:1600] = 1
    X[y == 1, 3] += 4.0
    X[:, 7] = np.linspace(0, 1, 8 * 1024)
    return X, y


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_class_that_some_rows_lack_is_found(class_weight):
    X, y = rare_class()
    model = SparseLogisticRegression(n_nonzero_coefs=2, class_weight=class_weight)
    assert_same_model(clone(model).fit(from_arrays(X, y, rows=1024)), clone(model).fit(X, y))
    with pytest.raises(InvalidInputError, match="one class only"):
        clone(model).fit(from_arrays(X, np.zeros_like(y), rows=1024))
    with pytest.raises(InvalidInputError, match=r"one class only, \[0.5\]"):
        clone(model).fit(from_arrays(X, np.full(len(y), 0.5), rows=1024))
    X, y = X[::8, :60], y[::8]  # fewer, because columns separate the third class, which takes many iterations
    y[0] = 1  # so that two classes are known before the third one is found
    three, one = np.where(np.arange(1024) == 150, 2, y), clone(model).set_params(n_nonzero_coefs=1)
    assert_same_model(clone(one).fit(from_arrays(X, three, rows=128)), clone(one).fit(X, three))
    with pytest.raises(InvalidInputError, match="Only binary classification is supported"):
        SparseLinearSVC(n_nonzero_coefs=2, class_weight=class_weight).fit(from_arrays(X, three, rows=128))


@pytest.mark.parametrize("model", [SparseLinearRegression, SparseLogisticRegression, SparseLinearSVC])
def test_weights_of_zero_alone_are_refused(model):
    X, y = rare_class()
    with pytest.raises(InvalidInputError, match="all rows have weight 0; give some rows a positive weight"):
        model(n_nonzero_coefs=2).fit(from_arrays(X, y, np.zeros(y.size), rows=1024))


def test_the_pilot_copies_few_of_its_rows():
    """Check 5 of scale.md for wide tables: the moments of its rows are computed some columns at a time."""
    rows = Rows(np.ones((2048, 4096), dtype=np.float32), np.arange(2048.0))
    tracemalloc.start()
    try:
        simple_guess(rows, Squared())
        assert tracemalloc.get_traced_memory()[1] < 0.8 * rows.X.nbytes  # three times it with all columns at once
    finally:
        tracemalloc.stop()


@dataclass(frozen=True, eq=False)
class TooLarge(Block):
    """A block that memory has no room for."""

    rows = 100

    def load(self):
        raise MemoryError("Unable to allocate 3.05 MiB")


def test_blocks_that_do_not_fit_into_memory_are_reported():
    """A memory map and float32 are no advice for blocks, whose rows are not in memory anyway."""
    blocks = RowBlocks((TooLarge(),), 4, np.dtype(float))
    message = r"not enough memory for this fit \(Unable to allocate 3.05 MiB\): write smaller row groups or chunks"
    with pytest.raises(OutOfMemoryError, match=message):
        SparseLinearRegression(n_nonzero_coefs=1).fit(blocks)


@only_at("pairs")
def test_empty_blocks_hide_no_class():
    X, y = rare_class()
    parts = [slice(0, 1024), slice(1024, 2048), slice(2048, 2048), slice(2048, 8192)]
    blocks = from_arrays(X, y, rows=1024)
    cut = tuple(from_arrays(X[part], y[part], rows=8192)[0] for part in parts if part.stop > part.start)
    empty = EmptyBlock(X.shape[1])
    for order in ((empty, *cut), (empty, *blocks, empty), (empty,) * 9 + cut + (empty,) * 9):
        model = SparseLogisticRegression(n_nonzero_coefs=2).fit(replace(blocks, blocks=order))
        assert_same_model(model, SparseLogisticRegression(n_nonzero_coefs=2).fit(X, y))


@dataclass(frozen=True, eq=False)
class EmptyBlock(Block):
    """A block without rows, as filters of a data frame leave them."""

    n_columns: int
    rows = 0

    def load(self):
        return Rows(np.empty((0, self.n_columns)), np.empty(0, dtype=int))


@pytest.mark.parametrize("late", [False, True])
def test_missing_labels_are_refused_in_any_block(late):
    X, y = rare_class()
    labels = np.where(y == 1, "well", "ill").astype(object)
    labels[0] = "well"
    labels[1200 if late else 3] = None
    with pytest.raises(InvalidInputError, match="missing labels"):
        SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(X, labels, rows=1024))


def test_blocks_without_labels_are_refused():
    with pytest.raises(InvalidInputError, match="the blocks have no targets"):
        SparseLogisticRegression(n_nonzero_coefs=2).fit(from_arrays(np.eye(50)))


NOTHING = {
    "noise": lambda X, rng: (X, rng.standard_normal(800)),
    "noise of classes": lambda X, rng: (X, rng.integers(0, 2, 800)),
    "noise of counts": lambda X, rng: (X, rng.poisson(2.0, 800)),
    "constant targets": lambda X, rng: (X, np.full(800, 3.0)),
    "constant columns": lambda X, rng: (np.ones_like(X), rng.standard_normal(800)),
    "constant columns of classes": lambda X, rng: (np.ones_like(X), rng.integers(0, 2, 800)),
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore:.*constant columns")
@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("d", [20, 300])
def test_nothing_is_found_where_nothing_is_in_memory(name, d):
    rng = np.random.default_rng(0)
    X, y = NOTHING[name](rng.standard_normal((800, d)), rng)
    kind = {"classes": SparseLogisticRegression, "counts": SparsePoissonRegression}
    model = kind.get(name.split()[-1], SparseLinearRegression)()
    with pytest.warns(NothingFoundWarning, match="the model has none"):
        plain = clone(model).fit(X, y)
    with pytest.warns(NothingFoundWarning, match="the model has none"):
        blocked = clone(model).fit(from_arrays(X, y, rows=100))
    assert blocked.support_.size == plain.support_.size == 0
    np.testing.assert_allclose(blocked.intercept_, plain.intercept_, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "logistic"])
@pytest.mark.parametrize("d", [20, 300])
def test_columns_whose_squares_underflow_are_refused_as_in_memory(name, d):
    """They are neither left out without a word nor taken for constant."""
    X, y = data(name, n=2000, d=d)
    X[:, 7] = X[:, 3]
    model, message = MODELS[name](n_nonzero_coefs=2), r"feature 3 \(counted from 0\) are so small that their squares"
    sides = np.where(np.arange(2000) % 2, 1e-170, -1e-170)  # the mean is 0
    for column in (1e-155 * X[:, 3], 1e-170 * X[:, 3], sides, np.where(np.arange(2000) == 1500, 1e-170, 0.0)):
        X[:, 3] = column
        with pytest.raises(InvalidInputError, match=message):
            clone(model).fit(X, y)
        for rows in (from_arrays(X, y, rows=256), from_arrays(sp.csr_array(X), y, rows=256)):
            with pytest.raises(InvalidInputError, match=message):
                clone(model).fit(rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("name", ["squared", "logistic"])
@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("solver", ["auto", "pursuit"])
def test_columns_of_any_size_are_chosen_in_single_precision(name, size, solver):
    X, y = data(name)
    X[:, [3, 40]] *= size
    model = MODELS[name](n_nonzero_coefs=K, solver=solver)
    plain = clone(model).fit(X.astype(np.float32), y)
    found = clone(model).fit(from_arrays(X.astype(np.float32), y, rows=512))
    np.testing.assert_array_equal(found.support_, plain.support_)
    np.testing.assert_allclose(np.ravel(found.coef_)[found.support_], np.ravel(plain.coef_)[plain.support_], rtol=1e-4)


def test_counts_that_are_all_0_are_refused():
    X = np.random.default_rng(0).standard_normal((2000, 300))
    for model in (SparsePoissonRegression(), SparsePoissonRegression(n_nonzero_coefs=2, alpha=0.1)):
        with pytest.raises(InvalidInputError, match="all targets are 0"):
            model.fit(from_arrays(X, np.zeros(2000), rows=256))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("class_weight", ["balanced", {"well": 3.0}])
def test_classes_have_their_weights(class_weight):
    X, y = data("logistic")
    model = SparseLogisticRegression(n_nonzero_coefs=K, class_weight=class_weight)
    assert_same_model(clone(model).fit(from_arrays(X, y, rows=512)), clone(model).fit(X, y))


def told(model):
    """Return what a model of blocks says after its fit."""
    frames = (said.to_frame().select_dtypes("number") for said in (model.summary(), model.inference()))
    return [*(frame.to_numpy(float, na_value=np.nan) for frame in frames), model.certificate().value]


@only_at("pairs")
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("classes", [2, 3])
def test_large_kept_columns_are_released_when_the_fit_ends(classes, monkeypatch):
    """They take the disc, or the memory of workers. What is asked afterwards reads its own columns, and is the same."""
    X, y = data("logistic")
    y = y if classes == 2 else np.where(X[:, 310] > 0.7, "dead", y)
    handles = []

    class Watched(Serial):
        def keep(self, *task, columns=None):
            handles.append(super().keep(*task, columns=columns))
            return handles[-1]

        def both(self, *task, columns=None):
            sums, kept = super().both(*task, columns=columns)
            handles.append(kept)
            return sums, kept

    model = SparseLogisticRegression(n_nonzero_coefs=K)
    small = clone(model).fit(Watched(from_arrays(X, y, rows=512)))
    assert small._training[0].objective.members.size > K
    assert handles[-1].blocks.n_columns == small._training[0].objective.members.size
    monkeypatch.setattr("hardthresh.objectives.kept_columns.MOST_AFTER_A_FIT", 0)
    handles.clear()
    large = clone(model).fit(Watched(from_arrays(X, y, rows=512)))
    assert handles
    assert large.history_["readings"][-1] == small.history_["readings"][-1]
    for handle in handles:
        with pytest.raises(InvalidInputError, match="kept rows were released"):
            handle.blocks  # noqa: B018
    np.testing.assert_array_equal(large.coef_, small.coef_)
    for ours, theirs in zip(told(large), told(small), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_model_of_blocks_is_stored_and_copied_as_any(tmp_path):
    X, y = data()
    model = SparseLinearRegression(n_nonzero_coefs=K).fit(from_arrays(X, y, rows=512))
    ht.save(model, tmp_path / "model.json")
    for other in (ht.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert model.prove(time_limit=None).proved
    assert len(model.summary().to_frame()) == len(model.summary(X, y).to_frame()) == K


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SparseCoxRegression(n_nonzero_coefs=2), "SparseCoxRegression is not fitted to tables in blocks"),
        (SparseQuantileRegression(n_nonzero_coefs=2), "SparseQuantileRegression is not fitted to tables in blocks"),
        (SparseLinearRegression(categorical_features=[0]), "categorical columns"),
    ],
    ids=lambda part: type(part).__name__ if not isinstance(part, str) else "",
)
def test_what_cannot_be_is_refused_by_name(model, message):
    with pytest.raises(CapabilityError, match=message):
        model.fit(from_arrays(np.eye(50), np.arange(50.0)))


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (from_arrays(np.eye(50)), InvalidInputError, "the blocks have no targets"),
        (
            from_arrays(np.where(np.eye(300) > 0, np.nan, 1.0), np.ones(300), rows=100),
            InvalidInputError,
            "X contains NaN or infinity: feature 0",
        ),
        (from_arrays(np.eye(50), np.ones(50), -np.ones(50)), InvalidInputError, "sample_weight"),
    ],
    ids=["no targets", "nan", "weights"],
)
def test_bad_tables_are_refused(blocks, error, message):
    with pytest.raises(error, match=message):
        SparseLinearRegression(n_nonzero_coefs=2).fit(blocks)


def test_predictions_keep_the_digits_that_a_large_mean_takes():
    """In single precision, products of 3e4 and the intercept of their size leave three digits of a difference."""
    X, y = data(d=30)
    X[:, 3] += 3e4
    X[:, 7] = X[:, 10] + 3e4
    X = X.astype(np.float32)
    rows = from_arrays(X, rows=512)
    model = SparseLinearRegression(n_nonzero_coefs=2, always_include=[3]).fit(from_arrays(X, y))
    exact = X.astype(np.float64) @ model.coef_.astype(np.float64) + model.intercept_
    found = model.predict(rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-7 * np.abs(exact).max())
    offset = np.linspace(0, 1, N)
    np.testing.assert_allclose(model.predict(rows, offset), exact + offset, rtol=0, atol=4e-7 * np.abs(exact).max())


def test_other_columns_are_refused_by_predict():
    X, y = data(d=30)
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(from_arrays(np.delete(X, 7, 1), y, rows=512))
    with pytest.raises(HardThreshError, match="X has 30 features, the fit had 29"):
        model.predict(from_arrays(X))


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_the_last_fit_takes_the_place_of_the_pilot(name, monkeypatch):
    """Section 3 of scale.md: nothing is fitted to some rows, and as few readings as with a pilot end with the same."""
    X, y = data(name)
    blocks = from_arrays(np.delete(X, 7, 1), y, rows=512)
    model = MODELS[name](n_nonzero_coefs=K, warm_start=True).fit(blocks)
    support, objective, readings = model.support_, model.objective_, model.history_["readings"][-1]
    other = MODELS[name](n_nonzero_coefs=2, warm_start=True).fit(blocks)
    monkeypatch.setattr(pilots, "_fits", None)
    for again in (model, other.set_params(n_nonzero_coefs=K)):
        again.fit(blocks)
        np.testing.assert_array_equal(again.support_, support)
        assert again.objective_ == pytest.approx(objective, rel=1e-8)
        assert again.history_["readings"][-1] <= readings
    assert model.history_["readings"][-1] <= 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_last_fit_that_is_worse_than_none_is_not_gone_on_from():
    X, y = data("logistic")
    model = MODELS["logistic"](n_nonzero_coefs=K, warm_start=True)
    model.fit(from_arrays(-X, y, rows=512)).fit(from_arrays(X, y, rows=512))
    assert_same_model(model, MODELS["logistic"](n_nonzero_coefs=K).fit(X, y))


def test_columns_with_names_are_matched_by_them():
    """Files may have more columns than those of the fit, in another order, as frames that the command line reads."""
    X, y = data(d=30)
    X = np.delete(X, 7, 1)  # which is constant
    names = [f"c{j}" for j in range(29)]
    fitted = replace(from_arrays(X, y, rows=512), feature_names=tuple(names))
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(fitted)
    order = np.random.default_rng(0).permutation(29)
    wide = np.column_stack([y, X[:, order]])
    other = replace(from_arrays(wide, y, rows=512), feature_names=("y", *(names[j] for j in order)))
    np.testing.assert_array_equal(model.predict(other), model.predict(fitted))
    assert model.score(other) == model.score(fitted)
    assert str(model.certificate(other)) == str(model.certificate(fitted))
    assert str(model.summary(other)) == str(model.summary(fitted))
    with pytest.raises(InvalidInputError, match=r"does not have 2 columns of the fit: 'c3', 'c5'; columns are matched"):
        model.predict(fitted.select(np.setdiff1d(np.arange(29), [3, 5])))


def test_predictions_are_a_reading_of_the_chosen_columns():
    X, y = data(d=30)
    X = np.delete(X, 7, 1)  # which is constant
    table = from_arrays(X, y, rows=512)
    model = SparseLinearRegression(n_nonzero_coefs=2).fit(table)
    with logged_readings() as log:
        model.predict(table)
    assert (log.readings, log.nbytes) == (1, 2 * X.shape[0] * X.itemsize)
