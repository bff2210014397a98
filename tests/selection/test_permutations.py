"""The permutation test of a whole procedure: what is permuted, what is counted, and that its level holds."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

import hardthresh as ht
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.numbers import number
from hardthresh.core.randomness import Purpose, generator
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.designs.blocks import BlockAround
from hardthresh.selection.permutations import _fitted
from levels import only_at


def draw(seed, n=40, d=8, signal=0.0):
    rng = np.random.default_rng((17, seed))
    X = rng.standard_normal((n, d))
    return X, signal * X[:, 2] + rng.standard_normal(n)


def test_the_p_value_counts_the_fits_to_random_orders():
    X, y = draw(0)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    found = ht.permutation_test(model, X, y, n_permutations=19, random_state=3)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    orders = [generator(seed, b, Purpose.PERMUTATIONS).permutation(40) for b in range(19)]
    values = [model.fit(X, y[order]).objective_ for order in orders]
    assert found.statistics.tolist() == pytest.approx(values, rel=1e-9)
    assert found.statistic == pytest.approx(model.fit(X, y).objective_, rel=1e-9)
    assert found.p_value == (1 + sum(value <= found.statistic for value in values)) / 20
    assert 0.05 < found.p_value < 1.0
    assert json.loads(json.dumps(found.to_dict()))["n_failed"] == 0
    assert str(found).startswith(f"p = {found.p_value:.3g}: of 19 random orders")


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [lambda blocks: blocks, Serial, lambda blocks: Threads(blocks, 2)], ids=["blocks", "serial", "threads"]
)
def test_orders_of_targets_beside_blocks_are_those_in_memory(engine):
    """With weights, zeros among them, and offsets, which stay with the targets."""
    X, y = draw(0, n=120, signal=0.2)
    rng = np.random.default_rng(1)
    weighted = {"sample_weight": rng.integers(0, 3, 120).astype(float), "offset": 0.3 * rng.standard_normal(120)}
    model, table = ht.SparseLinearRegression(n_nonzero_coefs=2), engine(from_arrays(X, rows=32))
    for params in ({}, weighted):
        found, expected = (
            ht.permutation_test(model, rows, y, n_permutations=9, random_state=3, **params) for rows in (table, X)
        )
        np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-9)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert found.p_value == expected.p_value
    classes = np.array(["ill", "well"])[(y > 0).astype(int)]
    logistic = ht.SparseLogisticRegression(n_nonzero_coefs=2)
    found, expected = (ht.permutation_test(logistic, rows, classes, n_permutations=3) for rows in (table, X))
    np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-6)


def test_what_of_blocks_has_no_random_order_is_refused():
    X, y = draw(0)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    uncounted = replace(from_arrays(X), blocks=(Uncounted(from_arrays(X)[0]),))
    for table, targets in [(from_arrays(X, y), None), (Serial(from_arrays(X, y)), None), (uncounted, y)]:
        with logged_readings() as log, pytest.raises(CapabilityError, match="targets of blocks are not in one place"):
            ht.permutation_test(model, table, targets)
        assert log.readings == 0
    for part in ("sample_weight", "offset"):
        with pytest.raises(InvalidInputError, match="the blocks have weights or offsets, which stay"):
            ht.permutation_test(model, from_arrays(X, y, **{part: np.ones(40)}), y)


class Uncounted(BlockAround):
    """A block whose rows are not counted."""

    rows = None

    def load(self):
        return self.block.load()


@pytest.mark.parametrize("seed", [0, (0, 0), (0, 1), (0, 0, 1)])
def test_orders_by_default_are_none_of_data_simulated_with_a_small_seed(seed):
    """An order that made the data, such as one that shuffled them, would not be independent of them."""
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    made = np.random.default_rng(seed).permutation(40)
    model = LinearRegression()
    found = ht.permutation_test(model, X, y, n_permutations=5, statistic=lambda fit: fit.coef_[0])
    assert np.abs(found.statistics - model.fit(X, y[made]).coef_[0]).min() > 1e-6


@pytest.mark.slow
def test_targets_keep_their_weights_and_offsets_so_that_every_order_of_the_data_has_the_same_fits():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((4, 2)), rng.standard_normal(4)
    rows = {"sample_weight": np.array([1.0, 2.0, 3.0, 1.0]), "offset": rng.standard_normal(4)}
    model, everyone = ht.SparseLinearRegression(n_nonzero_coefs=1), np.arange(4)

    def all_statistics(y, rows):
        orders = map(np.array, permutations(range(4)))
        return sorted(_fitted(model, X, y, rows, everyone, order).objective_ for order in orders)

    expected = all_statistics(y, rows)
    shuffled = np.array([3, 0, 2, 1])
    together = {name: values[shuffled] for name, values in rows.items()}
    assert all_statistics(y[shuffled], together) == pytest.approx(expected, rel=1e-9)
    assert all_statistics(y[shuffled], rows) != pytest.approx(expected, rel=1e-3)
    ranks = np.searchsorted(expected, np.array(expected) + 1e-12, side="right") / 24  # their exact p-values
    for t in (0.05, 0.2, 0.5):
        assert np.mean(ranks <= t) <= t


@only_at("pairs")
def test_a_signal_is_found_by_each_procedure():
    X, y = draw(2, signal=1.5)
    procedures = {
        "objective": ht.SparseLinearRegression(n_nonzero_coefs=2),
        "least EBIC": ht.SparseLinearRegression(),
        "gain in the held-out score": ht.SparseLinearRegressionCV(n_nonzero_coefs=range(4), cv=3),
    }
    for what, model in procedures.items():
        found = ht.permutation_test(model, X, y, n_permutations=9, random_state=0)
        assert (found.what, found.p_value) == (what, 0.1)
        assert "More orders can lower it" in str(found)
        shown = -found.statistic if what.startswith("gain") else found.statistic
        assert shown > 0.0
        assert f"as that to the data ({what} {number(shown)})." in str(found)


@pytest.mark.filterwarnings("ignore:no number of features")
def test_a_procedure_that_finds_nothing_has_a_p_value_of_one_where_orders_change_nothing():
    X, y = draw(3)
    found = ht.permutation_test(ht.SparseLinearRegression(n_nonzero_coefs=0), X, y, n_permutations=9)
    assert found.p_value == 1.0  # all objectives are the variance of the targets, up to rounding


@only_at("pairs")
def test_p_values_of_noise_are_uniform():
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    p_values = [
        ht.permutation_test(model, *draw(100 + i), n_permutations=9, random_state=i).p_value for i in range(100)
    ]
    for t in (0.1, 0.3, 0.5, 0.8):
        low, high = binom(100, t).ppf([0.001, 0.999])
        assert low <= np.sum(np.array(p_values) <= t + 1e-9) <= high


def test_failed_fits_count_as_good_as_the_data():
    X, y = draw(4, signal=3.0)

    def statistic(model):
        if model.support_[0] > 4:  # of some random orders; the data choose column 2
            raise ValueError("this order cannot be fitted.")
        return model.objective_

    model = ht.SparseLinearRegression(n_nonzero_coefs=1)
    plain = ht.permutation_test(model, X, y, n_permutations=19, random_state=0)
    found = ht.permutation_test(model, X, y, n_permutations=19, statistic=statistic, random_state=0)
    assert 0 < found.n_failed < 19
    assert found.n_failed == np.isnan(found.statistics).sum()
    assert plain.p_value == 0.05
    assert found.p_value == pytest.approx((1 + found.n_failed) / 20)
    assert "failed and count as that good; the first: this order cannot be fitted." in str(found)
    assert found.to_dict()["statistics"].count(None) == found.n_failed


def test_unconverged_fits_fail():
    X, y = draw(5)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3, solver=ht.solvers.IHT(), max_iter=1)
    with pytest.warns(UserWarning, match="SparseLinearRegression"):
        found = ht.permutation_test(model, X, y, n_permutations=5)
    assert found.n_failed == 5
    assert found.p_value == 1.0


def test_rows_of_weight_zero_are_left_out():
    X, y = draw(6)
    weights = np.arange(40) % 3.0
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    found = ht.permutation_test(model, X, y, n_permutations=9, sample_weight=weights, random_state=1)
    kept = weights > 0
    alone = ht.permutation_test(model, X[kept], y[kept], n_permutations=9, sample_weight=weights[kept], random_state=1)
    assert found.statistics.tolist() == pytest.approx(alone.statistics.tolist(), rel=1e-9)


@only_at("all")
def test_processes_change_nothing():
    X, y = draw(6)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    one, two = (ht.permutation_test(model, X, y, n_permutations=9, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert two.statistics.tolist() == one.statistics.tolist()


def test_strata_and_frames_go_along():
    pandas = pytest.importorskip("pandas")
    X, u = draw(7)
    rng = np.random.default_rng(8)
    y = np.array(
        list(zip(rng.random(40) < 0.8, rng.exponential(np.exp(-u)), strict=True)), dtype=[("e", bool), ("t", float)]
    )
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    strata = np.repeat(["a", "b"], 20)
    found = ht.permutation_test(
        ht.SparseCoxRegression(n_nonzero_coefs=1), frame, y, n_permutations=5, strata=strata, random_state=0
    )
    order = generator(np.random.RandomState(0).randint(2**31 - 1), 0, Purpose.PERMUTATIONS).permutation(40)
    first = ht.SparseCoxRegression(n_nonzero_coefs=1).fit(frame, y[order], strata=strata[order])
    assert found.statistics[0] == pytest.approx(first.objective_, rel=1e-9)


def test_any_estimator_is_tested_by_a_statistic():
    X, y = draw(9, signal=2.0)
    found = ht.permutation_test(
        LinearRegression(), X, y, n_permutations=9, statistic=lambda model: -np.abs(model.coef_).max()
    )
    assert found.p_value == 0.1
    with pytest.raises(InvalidInputError, match="LinearRegression has no statistic by default"):
        ht.permutation_test(LinearRegression(), X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_permutations": 0}, "n_permutations must be"),
        ({"statistic": "best"}, "statistic must be callable"),
        ({"groups": np.arange(40)}, "not exchangeable"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    X, y = draw(10)
    model = ht.SparseLinearRegressionCV(cv=KFold(3))
    with pytest.raises(InvalidInputError, match=message):
        ht.permutation_test(model, X, y, **settings)
