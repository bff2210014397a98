"""Intervals of a split of tables in blocks: those in memory of the same halves, in few readings, on any engine."""

import pickle
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

import hardthresh as ht
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.estimators.base import seed_of
from hardthresh.estimators.linear.halves import HalfBlock
from hardthresh.objectives.half_readings import BlockHalves
from levels import at_most, only_at

N, ROWS, SEED = 1501, 256, 3
CLASSES = np.array(["well", "ill"])


def data(d=30, n=N, seed=0):
    rng = np.random.default_rng((seed, d))
    X = rng.standard_normal((n, d))
    X[:, 1:] = 0.5 * X[:, :-1] + X[:, 1:]
    return 2.0 + X, X[:, [3, d // 3, d - 10]] @ [1.0, -0.7, 0.5], rng


KINDS = {
    "squared": (ht.SparseLinearRegression, lambda u, rng: u + rng.standard_normal(u.size)),
    "logistic": (
        partial(ht.SparseLogisticRegression, class_weight="balanced"),
        lambda u, rng: CLASSES[(u + rng.logistic(size=u.size) > 0.7).astype(int)],
    ),
    "svc": (ht.SparseLinearSVC, lambda u, rng: CLASSES[(u + rng.logistic(size=u.size) > 0).astype(int)]),
    "poisson": (ht.SparsePoissonRegression, lambda u, rng: rng.poisson(np.exp(0.3 * u)).astype(float)),
    "huber": (partial(ht.SparseHuberRegression, delta=1.5), lambda u, rng: u + rng.standard_t(2.0, u.size)),
}


def halves_in_memory(y, weight=None, rows=ROWS, by_label=False, seed=SEED):
    """The rows of each half of a table that is cut into blocks."""
    pair, sides = BlockHalves(1, seed_of(seed), by_label), []
    for number, start in enumerate(range(0, len(y), rows)):
        part = slice(start, start + rows)
        sides.append(pair.of(number, y[part], None if weight is None else weight[part])[:, 0])
    return [np.flatnonzero(np.concatenate(sides) == side) for side in (0, 1)]


def by_hand(model, halves, X, y, weight=None, offset=None, **asked):
    """The slow twin: a fit in memory to one half, and its intervals of a refit of the other."""
    first, second = ([None if part is None else part[rows] for part in (X, y, weight, offset)] for rows in halves)
    chooser = clone(model).fit(*first)
    return chooser, chooser.inference(*second, **{"robust": True, **asked})


def assert_split(found, expected, halves, tol=1e-5):
    """Intervals of a split are those of a refit on its second half, with p-values."""
    assert (found.n_chosen, found.n_estimated) == tuple(half.size for half in halves)
    assert found.n_estimated == expected.n_estimated
    assert found.weights == expected.weights
    assert found.degrees_of_freedom == pytest.approx(expected.degrees_of_freedom)
    assert [one.index for one in found.intervals] == [one.index for one in expected.intervals]
    freedom = found.degrees_of_freedom
    tail = norm.sf if freedom is None else student(freedom).sf
    for one, other in zip(found.intervals, expected.intervals, strict=True):
        assert one.coefficient == pytest.approx(other.coefficient, rel=tol)
        assert one.standard_error == pytest.approx(other.standard_error, rel=tol)
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=10 * tol, abs=tol)
        assert one.p_value == pytest.approx(2 * tail(abs(one.coefficient / one.standard_error)))


WEIGHTS = {
    "none": lambda rng: None,
    "whole": lambda rng: rng.integers(0, 3, N).astype(float),
    "shares": lambda rng: rng.uniform(0.1, 0.9, N),
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_split_is_that_in_memory_of_the_same_halves(kind, weights):
    model, targets = KINDS[kind]
    X, u, rng = data()
    y, weight = targets(u, rng), WEIGHTS[weights](rng)
    offset = 0.1 * X[:, 5] if kind == "poisson" else None
    model = model(n_nonzero_coefs=4, always_include=[2], alpha=0.01)
    halves = halves_in_memory(y, weight, by_label=y.dtype.kind == "U")
    assert not np.intersect1d(*halves).size
    chooser, expected = by_hand(model, halves, X, y, weight, offset)
    table = from_arrays(X, y, weight, offset, rows=ROWS)
    found = model.inference(table, kind="split", random_state=SEED)  # what is not fitted yet, too
    assert found.robust
    assert_split(found, expected, halves)
    assert [one.index for one in found.intervals] == chooser.support_.tolist()
    if kind in ("squared", "huber"):
        found = model.inference(table, kind="split", random_state=SEED, robust=False)
        assert_split(found, by_hand(model, halves, X, y, weight, robust=False)[1], halves)


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block", "beside", "column by column"])
def test_storage_changes_nothing(storage, tmp_path):
    X, u, rng = data(300 if storage == "column by column" else 30)
    X = np.where(rng.random(X.shape) < 0.4, X, 0.0) if storage == "sparse" else X
    X = X.astype(np.float32) if storage == "float32" else X
    y, weight = u + rng.standard_normal(N), rng.integers(0, 3, N).astype(float)
    rows, given = N if storage == "one block" else ROWS, ()
    table = from_arrays(sp.csr_array(X) if storage == "sparse" else X, y, weight, rows=rows)
    if storage == "beside":
        table, given = from_arrays(X, rows=rows), (y, weight)
    elif storage == "column by column":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'hardthresh[parquet]'")
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(np.column_stack([X, y, weight]), columns=[*map(str, range(300)), "y", "weight"])
        frame.to_parquet(tmp_path / "table.parquet", row_group_size=ROWS)
        table = ht.from_parquet(tmp_path / "table.parquet", target="y", sample_weight="weight")
        rows = table.blocks[0].rows
    halves = halves_in_memory(y, weight, rows)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3)
    asked = {"weights": "frequency"}
    found = model.inference(table, *given, kind="split", random_state=SEED, **asked)
    expected = by_hand(model, halves, X, y, weight, **asked)[1]
    assert_split(found, expected, halves, 1e-3 if storage == "float32" else 1e-5)


def test_several_outputs_are_split_too():
    X, u, rng = data()
    y = np.column_stack([u, X[:, 3] - u]) + rng.standard_normal((N, 2))
    halves, model = halves_in_memory(y), ht.SparseLinearRegression(n_nonzero_coefs=3)
    found = model.inference(from_arrays(X, y, rows=ROWS), kind="split", random_state=SEED)
    assert_split(found, by_hand(model, halves, X, y, robust=False)[1], halves)
    assert len(found.intervals) == 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["criterion", "folds", "groups"])
def test_the_half_that_chooses_does_so_with_all_that_a_fit_chooses(kind):
    """The number of features, the ridge, and what is left out of the model of all rows."""
    X, u, rng = data()
    y, fold = u + 2.0 * rng.standard_normal(N), rng.integers(0, 3, N)
    halves = halves_in_memory(y)
    if kind == "folds":
        model, table = ht.SparseLinearRegressionCV(averaging="none"), from_arrays(X, y, fold=fold, rows=ROWS)
        own = clone(model).set_params(cv=list(PredefinedSplit(fold[halves[0]]).split()))
    else:
        settings = {"groups": np.arange(30) // 3, "n_nonzero_groups": 2} if kind == "groups" else {}
        own = model = ht.SparseLinearRegression(**settings)
        table = from_arrays(X, y, rows=ROWS)
    chooser, expected = by_hand(own, halves, X, y)
    fitted = clone(model).fit(table)
    found = fitted.inference(table, kind="split", random_state=SEED)
    assert_split(found, expected, halves)
    assert found.left_out == tuple(f"feature {j}" for j in sorted({*fitted.support_} - {*chooser.support_}))


@only_at("pairs")
def test_it_has_the_same_bits_on_any_engine():
    """Check 4 of scale.md."""
    X, u, rng = data(300)
    y = CLASSES[(u + rng.logistic(size=N) > 0).astype(int)]
    model, blocks = ht.SparseLogisticRegression(n_nonzero_coefs=3), from_arrays(X, y, rows=64)
    given = [(Serial(blocks),), (Threads(blocks, 4),), (blocks,)]
    if find_spec("dask"):
        da = import_module("dask.array")
        given.append((da.from_array(X, chunks=(64, -1)), da.from_array(y, chunks=64)))
    found = {repr(model.inference(*table, kind="split", random_state=SEED).to_dict()) for table in given}
    assert len(found) == 1
    assert repr(model.inference(blocks, kind="split", random_state=SEED + 1).to_dict()) not in found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_readings_are_those_of_a_fit_and_few_more(kind):
    model, targets = KINDS[kind]
    X, u, rng = data(400)
    table, model = from_arrays(X, targets(u, rng), rows=ROWS), model(n_nonzero_coefs=3)
    with logged_readings() as fit:
        model.fit(table)
    with logged_readings() as split:
        model.inference(table, kind="split", random_state=SEED)
    assert fit.readings < split.readings <= fit.readings + 3


def test_a_half_of_a_block_is_a_pure_function_of_its_rows_and_its_number():
    X, u, rng = data(11, n=101, seed=1)
    y, weight = (u > 0).astype(float), rng.integers(0, 3, 101).astype(float)
    [block] = from_arrays(X, y, weight, rows=101)
    pair = BlockHalves(1, 5, by_label=True)
    first, second = (HalfBlock(block, 7, pair, side) for side in (0, 1))
    one, other = first.load(), second.load()
    sides = pair.of(7, y, weight)[:, 0]
    np.testing.assert_array_equal(one.weight, np.where(sides == 0, weight, 0))
    np.testing.assert_array_equal(other.weight, np.where(sides == 1, weight, 0))
    assert abs(np.sum(y[one.weight > 0]) - np.sum(y[other.weight > 0])) <= 1
    sent = pickle.loads(pickle.dumps(first.bare())).holding(first.held()).select(np.array([0, 2]))
    np.testing.assert_array_equal(sent.load().X, X[:, [0, 2]])
    np.testing.assert_array_equal(sent.load().weight, one.weight)
    assert not np.array_equal(HalfBlock(block, 8, pair, 0).load().weight, one.weight)


X_SMALL = np.arange(24.0).reshape(12, 2) ** 2 % 7


@pytest.mark.parametrize(
    ("table", "asked", "error", "message"),
    [
        (from_arrays(X_SMALL, X_SMALL[:, 0]), {"groups": np.zeros(12)}, CapabilityError, "groups of rows need rows in"),
        (from_arrays(X_SMALL[:3], X_SMALL[:3, 0]), {}, InvalidInputError, "needs at least 4 rows, .* got 3"),
        (from_arrays(X_SMALL, X_SMALL[:, 0], rows=1), {}, InvalidInputError, "1 row at most have 0 rows for each half"),
        (from_arrays(X_SMALL[:, :1], X_SMALL[:, 0]), {}, InvalidInputError, "X has 1 features, the fit had 2"),
    ],
    ids=["groups", "rows", "blocks of one row", "columns"],
)
def test_what_cannot_be_split_is_refused_before_it_is_read(table, asked, error, message):
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X_SMALL, X_SMALL[:, 0])
    with logged_readings() as log, pytest.raises(error, match=message):
        model.inference(table, kind="split", **asked)
    assert log.readings == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"positive": True},
        {"bounds": (0, None)},
        {"bounds": {1: (None, 3.0)}},
        {"bounds": (None, np.array([1, np.inf]))},
    ],
    ids=["positive", "pair", "mapping", "array"],
)
def test_a_split_with_bounds_is_refused_before_it_is_read(settings):
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, **settings)
    with logged_readings() as log, pytest.raises(CapabilityError, match="may meet a bound"):
        model.inference(from_arrays(X_SMALL, X_SMALL[:, 0]), kind="split")
    assert log.readings == 0


def test_a_split_without_a_finite_bound_is_one_without_bounds():
    X, u, rng = data(11, n=60)
    table = from_arrays(X, u + rng.standard_normal(60))
    found = [
        ht.SparseLinearRegression(n_nonzero_coefs=1, bounds=bounds).inference(table, kind="split", random_state=0)
        for bounds in (None, (None, np.inf), {2: (None, None)})
    ]
    assert found[1].to_dict() == found[2].to_dict() == found[0].to_dict()
    with pytest.raises(InvalidInputError, match="bounds must be a pair"):
        ht.SparseLinearRegression(n_nonzero_coefs=1, bounds="ab").inference(table, kind="split")


@pytest.mark.parametrize("engine", [lambda blocks: blocks, Serial], ids=["blocks", "engine"])
@pytest.mark.parametrize("name", ["knockoffs", "imputer", "targets"])
def test_what_needs_all_rows_refuses_blocks_before_they_are_read(name, engine):
    table, model = engine(from_arrays(X_SMALL, X_SMALL[:, 0])), ht.SparseLinearRegression(n_nonzero_coefs=1)
    calls = {
        "knockoffs": lambda: ht.Knockoffs(model).fit(table, X_SMALL[:, 0]),
        "imputer": lambda: ht.LowRankImputer(rank=1).fit(table),
        "targets": lambda: model.fit(X_SMALL, table),
    }
    with logged_readings() as log, pytest.raises(CapabilityError, match="is a table in blocks, which would have to be"):
        calls[name]()
    assert log.readings == 0


def test_what_a_half_lacks_is_said_with_which_half():
    X, _, rng = data(11, n=40)
    y, model = np.array([0] * 39 + [1]), ht.SparseLogisticRegression(n_nonzero_coefs=1, class_weight="balanced")
    places = [[39 in half for half in halves_in_memory(y, rows=40, by_label=True, seed=seed)] for seed in range(20)]
    for side, (which, why) in enumerate([("chooses the features", "two classes"), ("estimates", "y has the classes")]):
        seed = places.index([side == 1, side == 0])  # the other half has the row
        with pytest.raises(InvalidInputError, match=rf"{why}(.|\n)*\(in the half of the rows that {which}"):
            model.inference(from_arrays(X, y, rows=40), kind="split", random_state=seed)
    plain = ht.SparseLinearRegression(n_nonzero_coefs=1)
    with pytest.raises(InvalidInputError, match="in the half of the rows that chooses"):
        plain.inference(from_arrays(X, rng.random(40), np.tile([1.0, 0.0], 20), rows=2), kind="split")
    with pytest.raises(InvalidInputError, match="the blocks have no targets"):
        plain.inference(from_arrays(X), kind="split")
    labels = np.where(np.arange(40) % 7, np.where(np.arange(40) % 2, "a", "b").astype(object), None)
    with pytest.raises(InvalidInputError, match="y has missing labels"):
        model.inference(from_arrays(X, labels, rows=10), kind="split")


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a", None, "b", "a"], "y has missing labels"), ([1, "b", 1, "b"], "y has labels of the types int, str")],
)
def test_a_half_of_labels_that_cannot_be_sorted_is_refused(labels, message):
    """Neither half has all rows then."""
    [block] = from_arrays(X_SMALL[:4], np.array(labels, dtype=object), rows=4)
    for side in (0, 1):
        with pytest.raises(InvalidInputError, match=message):
            HalfBlock(block, 0, BlockHalves(1, 5, by_label=True), side).load()


def test_rows_without_weight_may_lack_a_label_in_halves():
    labels, weight = np.array(["a", None, "b", "a"], dtype=object), np.array([1.0, 0.0, 0.0, 1.0])
    [block] = from_arrays(X_SMALL[:4], labels, weight, rows=4)
    assert HalfBlock(block, 0, BlockHalves(1, 5, by_label=True), 0).load().weight.sum() == 1.0
