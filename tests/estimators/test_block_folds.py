"""Cross-validation over tables in blocks: that in memory with the same folds, in few readings, the same on any engine.

Checks 3 and 4 of scale.md.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from folds_of_blocks import assert_same, bits, both, pairs
from hardthresh import (
    SparseLinearRegressionCV,
    SparseLinearSVCCV,
    SparseLogisticRegressionCV,
)
from hardthresh.core import CapabilityError, InvalidInputError, NothingFoundWarning
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.randomness import Purpose, generator
from hardthresh.designs import Serial, Threads, from_arrays
from hardthresh.losses import Logistic, Squared
from hardthresh.objectives import blocked_model
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.guess import simple_guess, some_rows
from hardthresh.objectives.refit_readings import Fits, held_out_losses, training_models
from hardthresh.solvers.working_set.blocked_folds import BlockedFolds
from hardthresh.solvers.working_set.fold_moments import FoldFit
from levels import at_most

N, D, ROWS, FOLDS = 3000, 40, 512, 3
SIZES = [0, 1, 2, 3, 4, 5, 6, 8]


def data(seed=0, n=N, d=D, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X += 5.0
    X[:, 7] = 2.0
    u = (X[:, np.array([3, 10, 20, 30]) % d] - 5.0) @ [0.5, -0.5, 0.4, -0.4]
    y = 3.0 + u + rng.standard_normal(n)
    return X.astype(dtype), y, rng.integers(FOLDS, size=n), rng


SETTINGS = {
    "default": {},
    "no intercept": {"fit_intercept": False},
    "no scale": {"standardize": False},
    "always": {"always_include": [0, 11]},
    "positive": {"positive": True},
    "one standard error": {"rule": "one_standard_error"},
    "no average": {"averaging": "none", "alphas": [0.0, 0.1]},
    "search": {"n_nonzero_coefs": "search", "max_nonzero_coefs": 12},
}


@pytest.mark.parametrize(("mean", "digits"), [(1e7, 1e-7), (1e8, 1e-6)])
def test_targets_far_from_zero_have_the_scores_in_memory(mean, digits):
    """Check 10 of scale.md, of y: of a mean of 1e7 deviations scores were 6.8 % off, of 1e8 nothing was chosen."""
    X, y, fold, _ = data()
    model = SparseLinearRegressionCV(n_nonzero_coefs=[0, 2, 4, 6], alphas=[0.01])
    blocks, memory = both(model, np.delete(X, 7, axis=1), y + mean, fold)
    assert blocks.best_n_nonzero_coefs_ == memory.best_n_nonzero_coefs_ > 0
    assert blocks.found_
    np.testing.assert_array_equal(blocks.support_, memory.support_)
    np.testing.assert_allclose(blocks.grid_scores_, memory.grid_scores_, rtol=digits)
    np.testing.assert_allclose(blocks.coef_, memory.coef_, rtol=0, atol=digits)


@pytest.mark.slow
@at_most(6)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("setting", SETTINGS)
def test_it_is_that_in_memory_with_the_same_folds(setting):
    X, y, fold, rng = data()
    weight, offset = rng.integers(0, 3, N).astype(float), 0.1 * X[:, 5]
    model = SparseLinearRegressionCV(**{"n_nonzero_coefs": SIZES, **SETTINGS[setting]})
    assert_same(*both(model, X, y, fold, weight, offset))


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_weights_that_are_no_counts_have_their_standard_error():
    X, y, fold, rng = data()
    blocked, plain = both(SparseLinearRegressionCV(n_nonzero_coefs=SIZES), X, y, fold, rng.uniform(0.5, 2.0, N))
    assert_same(blocked, plain)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("storage", ["float32", "sparse", "one block", "labels"])
def test_storage_changes_nothing(storage):
    X, y, fold, _ = data(dtype=np.float32 if storage == "float32" else np.float64)
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES)
    expected = both(model, X, y, fold)[1]
    labels = np.array(["north", "south", "west"])[fold] if storage == "labels" else fold
    table = sp.csr_array(X) if storage == "sparse" else X
    found = clone(model).fit(from_arrays(table, y, fold=labels, rows=N if storage == "one block" else ROWS))
    assert_same(found, expected, 1e-4 if storage == "float32" else 1e-8)


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_fold_of_which_the_pilot_saw_no_row_is_one_of_the_folds():
    """Of nine blocks the pilot looks at four; the fourth, with all rows of a fold, is none of them."""
    X, y, fold, _ = data(n=9 * 128)
    fold[3 * 128 : 4 * 128] = FOLDS
    blocks = from_arrays(X, y, fold=fold, rows=128)
    assert FOLDS not in some_rows(Serial(blocks)).fold
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES)
    assert_same(clone(model).fit(blocks), clone(model).set_params(cv=pairs(fold)).fit(X, y))


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_drawn_folds_and_bits_are_the_same_on_any_engine():
    X, y, _, _ = data()
    model = SparseLinearRegressionCV(n_nonzero_coefs=SIZES, cv=4, random_state=3)
    blocks = from_arrays(X, y, rows=ROWS)
    serial = clone(model).fit(Serial(blocks))
    assert serial.grid_scores_.shape[2] == 4
    assert bits(clone(model).fit(Threads(blocks, 4))) == bits(serial)
    assert bits(clone(model).set_params(random_state=4).fit(blocks)) != bits(serial)
    folds = BlockFolds(4, model._seed())
    drawn = np.concatenate([folds.of(b, None, block.rows) for b, block in enumerate(blocks)])
    assert_same(serial, clone(model).set_params(cv=pairs(drawn)).fit(X, y))


def test_a_fold_is_a_pure_function_of_seed_block_and_row():
    """Spec, section 2.3; the numbers are those of the random streams of the package."""
    folds = BlockFolds(5, seed=7)
    expected = generator(7, 2, Purpose.FOLDS_OF_BLOCKS).integers(5, size=1000)
    np.testing.assert_array_equal(folds.of(2, None, 1000), expected)
    np.testing.assert_array_equal(folds.of(2, None, 400), expected[:400])
    assert not np.array_equal(folds.of(3, None, 1000), expected)
    assert np.bincount(expected).min() > 150


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
def test_no_held_out_row_has_a_say():
    """What a fold fits is the same whatever the rows are that it holds out, noise that it chooses from among it."""
    X, y, fold, rng = data(n=2000, d=900)
    model = SparseLinearRegressionCV(n_nonzero_coefs=[0, 4, 10, 20], alphas=0.0)
    fits = []
    for shift in (0, 50):
        other = np.where(fold == 0, np.roll(X, shift, axis=1)[:, 100:120].sum(axis=1) + rng.standard_normal(2000), y)
        fits.append(_fold_fits(clone(model), from_arrays(X, other, fold=fold, rows=ROWS))[0])
    np.testing.assert_array_equal(fits[0].columns, fits[1].columns)
    np.testing.assert_allclose(fits[0].coefs, fits[1].coefs, atol=1e-9)


def _fold_fits(model, blocks):
    """The fits of the folds of a model."""
    seen = []
    original = type(model)._keep_held_out

    class Watched(type(model)):
        def _keep_held_out(self, search, *others):
            seen.append(search.folds)
            original(self, search, *others)

    Watched(**model.get_params()).fit(blocks)
    return seen[0]


@pytest.mark.parametrize("centred", [True, False])
def test_sums_of_folds_are_those_of_their_rows(centred):
    """A slow twin of everything that a search of folds asks of a table, also of columns that come later."""
    X, y, fold, rng = data()
    X[:, 7] = rng.standard_normal(N)
    weight, offset = rng.integers(0, 3, N).astype(float), 0.1 * X[:, 5]
    engine = Serial(from_arrays(X, y, weight, offset, fold=fold, rows=ROWS))
    guess = simple_guess(some_rows(engine), Squared(), np.array([2, 9]))
    model = blocked_model(engine, intercept=centred, guess=guess, folds=BlockFolds(FOLDS, labels=np.arange(FOLDS)))
    units, few, every = model.units, np.array([3, 9]), np.array([2, 3, 9, 11])
    Z, gap = (X - units.mean) * units.inverse_scale, y - offset - units.level
    grams, moments = model.part_products(every, few, centred), model.part_moments(centred)
    assert engine.readings == 2
    for part in range(FOLDS):
        rows, own = Z[fold == part][:, few], weight[fold == part]
        mean = np.average(rows, axis=0, weights=own) if centred else 0.0
        np.testing.assert_allclose(grams[part], (rows - mean).T @ ((rows - mean) * own[:, None]) / own.sum(), rtol=1e-9)
        assert moments[part].total == own.sum()
        data_rows, error = X[fold == part][:, few], (y - offset)[fold == part]
        coefs, intercepts = np.array([[0.2, -0.1], [0.0, 0.4]]), np.array([1.0, -1.0])
        u = data_rows @ coefs.T + intercepts
        expected = np.average((error[:, None] - u) ** 2, axis=0, weights=own)
        np.testing.assert_allclose(model.sums_of(part, few)[0].errors(coefs, intercepts), expected, rtol=1e-9)
    w = np.zeros(units.size)
    w[[3, 20]] = 0.3, -0.2
    residual = weight * (gap - Z @ w[:D] - 0.1)
    expected = [Z[(keep := fold != left)].T @ residual[keep] for left in (1, -1)]
    np.testing.assert_allclose(model.residual_products([(w, 0.1)] * 2, np.array([1, -1])), expected, atol=1e-8)
    mean, covariance = model.column_moments(few, left_out=2)
    rows, own = X[fold != 2][:, few], weight[fold != 2]
    np.testing.assert_allclose(mean, np.average(rows, axis=0, weights=own))
    np.testing.assert_allclose(covariance, np.cov(rows.T, aweights=own, bias=True), rtol=1e-9)


def test_a_fold_screens_by_the_residuals_of_its_own_training_rows():
    X, y, fold, _ = data()
    X[:, 7] = y
    engine = Serial(from_arrays(X, y, fold=fold, rows=ROWS))
    guess = simple_guess(some_rows(engine), Squared(), np.array([2, 9]))
    model = blocked_model(engine, guess=guess, folds=BlockFolds(FOLDS, labels=np.arange(FOLDS)))
    selection, members = CoordinateBudget(D + 1, 3, (D,)), [np.array([2, 9])] * (FOLDS + 1)
    folds = BlockedFolds(model, selection, members, intercept=True, standardize=True, tol=1e-8)
    fits = [(number, FoldFit(np.array([2]), np.array([0.3]), 0.1, 0.0, 0.0)) for number in range(FOLDS + 1)]
    Z, gap = (X - model.units.mean) * model.units.inverse_scale, y - model.units.level
    residual = gap - 0.3 * Z[:, 2] - 0.1
    expected = [Z[(rows := fold != left)].T @ residual[rows] / rows.sum() for left in range(FOLDS + 1)]
    np.testing.assert_allclose(folds._slopes(fits), expected, atol=1e-9)


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize(("d", "most"), [(D, 2), (400, 6)])
def test_few_readings(d, most):
    """Check 3 of scale.md: 5 folds over 1..30 take at most 6 readings; two where all products are known."""
    X, y, _, _ = data(n=6000, d=d)
    engine = Serial(from_arrays(X, y, rows=1024))
    found = SparseLinearRegressionCV(n_nonzero_coefs=range(1, 31)).fit(engine)
    assert {3, 10, 20, 30} <= set(found.support_)
    assert engine.readings <= most
    assert found.history_["readings"][-1] <= most


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("positive", [False, True])
def test_many_columns_are_chosen_as_in_memory(positive):
    """Pilots and one screening, in the place of a screening at each mark: the best models are the same."""
    X, y, fold, _ = data(n=4000, d=400)
    blocked, plain = both(SparseLinearRegressionCV(n_nonzero_coefs=SIZES, positive=positive), X, y, fold)
    assert blocked.best_n_nonzero_coefs_ == plain.best_n_nonzero_coefs_
    np.testing.assert_allclose(blocked.coef_, plain.coef_, atol=1e-7)
    np.testing.assert_allclose(blocked.grid_scores_[:5], plain.grid_scores_[:5], rtol=1e-8)


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_the_score_of_an_average_is_that_of_its_predictions():
    X, y, fold, _ = data()
    found = SparseLinearRegressionCV(n_nonzero_coefs=SIZES).fit(from_arrays(X, y, fold=fold, rows=ROWS))
    assert len(found.models_) > 1
    assert found.score(from_arrays(X, y, rows=ROWS)) == pytest.approx(found.score(X, y), rel=1e-12)


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_value_of_the_fold_column_that_some_rows_lack_is_found():
    X, y, _, _ = data(n=8 * 512, d=8)
    fold = np.repeat(np.arange(8), 512) // 2  # four blocks of eight are looked at first
    model = SparseLinearRegressionCV(n_nonzero_coefs=[1, 2])
    assert_same(*both(model, X, y, fold, rows=512))


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_noise_has_no_model():
    X, _, fold, rng = data()
    with pytest.warns(NothingFoundWarning, match="no number of features predicts clearly better than none"):
        found = SparseLinearRegressionCV(n_nonzero_coefs=SIZES).fit(
            from_arrays(X, rng.standard_normal(N), fold=fold, rows=ROWS)
        )
    assert not found.found_
    assert found.support_.size == 0


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_criterion_compares_ridges_over_blocks():
    X, y, _, _ = data()
    model = SparseLinearRegressionCV(criterion="ebic", alphas=[0.0, 0.05])
    blocked, plain = clone(model).fit(from_arrays(X, y, rows=ROWS)), clone(model).fit(X, y)
    assert blocked.alpha_ == plain.alpha_
    np.testing.assert_allclose(blocked.criterion_path_, plain.criterion_path_, rtol=1e-9)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, atol=1e-9)


CLASSES = {"logistic": SparseLogisticRegressionCV, "svc": SparseLinearSVCCV}


def classes(d=30, n=1600):
    X, _, fold, rng = data(n=n, d=d)
    u = 2.0 * (X[:, [3, 10, 20]] - 5.0) @ [0.5, -0.5, 0.4]
    return X, np.where(u + rng.logistic(size=n) > 0, "well", "ill"), fold, rng


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize(("name", "d"), [("logistic", 300), ("svc", 30)])
def test_classes_are_those_in_memory_with_the_same_folds(name, d):
    """Refits in memory end within about 1e-10 of the minimum, so that scores agree to some 1e-7."""
    X, y, fold, rng = classes(d)
    weight = rng.integers(0, 3, len(y)).astype(float)
    model = CLASSES[name](n_nonzero_coefs=[0, 1, 2, 3, 4], alphas=[0.01, 0.1])
    engine = Serial(from_arrays(X, y, weight, fold=fold, rows=64))  # the pilot has some of the blocks
    blocked = clone(model).fit(engine)
    assert_same(blocked, clone(model).set_params(cv=pairs(fold)).fit(X, y, weight), 1e-6)
    assert blocked.history_["readings"][-1] <= 6  # check 3 of scale.md
    again = clone(model).fit(Threads(engine.blocks, 4))
    assert bits(again) == bits(blocked)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")
def test_the_default_ridges_of_classes_are_those_in_memory():
    X, y, fold, _ = classes()
    assert_same(*both(SparseLogisticRegressionCV(n_nonzero_coefs=[0, 2, 3, 5]), X, y, fold), 1e-6)


@pytest.mark.filterwarnings("ignore:1 constant column")
def test_a_fold_that_trains_on_one_class_is_refused():
    X, y, _, _ = classes()
    with pytest.raises(InvalidInputError, match="fold 0 of cv trains on rows of one class only"):
        SparseLogisticRegressionCV().fit(from_arrays(X, y, fold=(y == "well").astype(int), rows=ROWS))


def test_models_of_refits_are_those_of_the_rows():
    """A slow twin of a sweep over kept columns."""
    rng = np.random.default_rng(0)
    Z, y, fold, weight = (
        rng.standard_normal((300, 3)),
        rng.integers(0, 2, 300),
        rng.integers(0, 2, 300),
        rng.random(300),
    )
    loss, folds = Logistic(), BlockFolds(2, labels=np.arange(2))
    coefs = np.array([[0.5, 0.0, -1.0], [0.0, 2.0, 0.0]])
    fits = Fits((np.array([0, 2]), np.array([1])), coefs, np.array([0.1, -0.2]), np.array([1, -1]))
    values, flat = training_models(Z, y, weight, None, folds, 0, fold, fits, loss, np.ones(2, dtype=bool))
    at = 0
    for i, columns in enumerate(fits.columns):
        own = weight * (fold != fits.folds[i])
        some = np.column_stack([Z[:, columns], np.ones(300)])
        u = Z @ coefs[i] + fits.levels[i]
        size = columns.size + 1
        np.testing.assert_allclose(values[i], own @ loss.value(y, u))
        np.testing.assert_allclose(flat[at : at + size], some.T @ (own * loss.gradient(y, u)), atol=1e-10)
        hessian = (some.T * (own * loss.curvature(y, u))) @ some
        np.testing.assert_allclose(flat[at + size : at + size + size**2], hessian.ravel())
        at += size + size**2
    held = fits._replace(folds=np.array([1, 1]))
    losses, right, gains = held_out_losses(Z, y, weight, None, folds, 0, fold, held, loss)
    out, w = fold == 1, weight[fold == 1]
    each = loss.value(y[out][:, None], u_out := Z[out] @ coefs.T + fits.levels)
    np.testing.assert_allclose(losses, w @ each)
    np.testing.assert_allclose(right, w @ ((y[out] > 0)[:, None] == (u_out > 0)))
    gain = each[:, 0] - each[:, 1]
    expected = [part for size in (w, w * w) for part in (size.sum(), size @ gain, size @ gain**2)]
    np.testing.assert_allclose(gains[1], expected)


REFUSED = {
    "splitter": ({"cv": GroupKFold(3)}, {}, CapabilityError, "give the blocks a fold column"),
    "pairs": ({"cv": [(np.arange(10), np.arange(10, 20))]}, {}, CapabilityError, "give the blocks a fold column"),
    "groups": ({}, {"groups": np.arange(N)}, CapabilityError, "groups of fit is not used over blocks"),
    "scorer": ({"scoring": "r2"}, {}, CapabilityError, "leave scoring out"),
    "stacking": ({"averaging": "stacking"}, {}, CapabilityError, 'use "exponential" or "none"'),
    "solver": ({"solver": "pursuit"}, {}, CapabilityError, 'use solver="auto"'),
    "one fold": ({"cv": 1}, {}, InvalidInputError, "at least 2 folds"),
    "groups of columns": ({"groups": np.arange(D) // 2, "averaging": "none"}, {}, CapabilityError, "numbers of groups"),
}


@pytest.mark.filterwarnings("ignore:1 constant column")
@pytest.mark.parametrize("refused", REFUSED)
def test_what_cannot_be_is_refused_by_name(refused):
    settings, given, error, message = REFUSED[refused]
    X, y, _, _ = data()
    engine = Serial(from_arrays(X, y, rows=ROWS))
    with pytest.raises(error, match=message):
        SparseLinearRegressionCV(**settings).fit(engine, **given)
    assert engine.readings == 0


def test_a_fold_column_of_one_value_is_refused():
    X, y, _, _ = data()
    with pytest.raises(InvalidInputError, match=r"the fold column has one value, 0; .* at least 2 folds"):
        SparseLinearRegressionCV().fit(from_arrays(X, y, fold=np.zeros(N, dtype=int), rows=ROWS))
