"""The meter: exact counts, nothing paid twice, and no example beyond its budget."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.core.errors import InvalidInputError
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    BudgetError,
    CostModel,
    Exploitation,
    Exploration,
    Hybrid,
    Meter,
    RowSource,
    learn,
)

X = np.arange(60.0).reshape(6, 10)


def source(**settings):
    return ArraySource(X, np.arange(6.0), shuffle=False, **(settings or {"n_observed": 3}))


def counts(meter):
    return meter.examples, meter.attributes, meter.max_per_example, meter.money


def test_one_attribute_too_many_is_refused_and_costs_nothing():
    s = source()
    examples = s.draw(2)
    examples.observe([1, 2])
    examples.observe([7])
    with pytest.raises(BudgetError, match=re.escape("4 attributes of one example were asked for, 3 of them bought")):
        examples.observe([0])
    with pytest.raises(BudgetError, match="4 attributes of one example were asked for, 0 of them bought"):
        s.draw(1).observe([0, 1, 2, 3])
    assert counts(s.meter) == (3, 6, 3, 6.0)
    assert examples.observe([7, 1]).tolist() == [[7.0, 1.0], [17.0, 11.0]]


def test_repeated_attributes_are_free():
    s = source()
    examples = s.draw(4)
    for indices in ([4, 5], [5, 4], [4, 4, 4], [5], []):
        values = examples.observe(indices)
        np.testing.assert_array_equal(values, X[:4][:, indices])
        assert counts(s.meter) == (4, 8, 2, 8.0)


def test_owned_attributes_are_not_read_again():
    read = []

    class Watched(ArraySource):
        def read(self, examples, indices):
            read.append(indices.tolist())
            return super().read(examples, indices)

    examples = Watched(X, np.arange(6.0), n_observed=3).draw(3)
    for indices in ([2, 1], [1], [2, 9], [9, 1, 2]):
        examples.observe(indices)
    assert read == [[1, 2], [9]]


def test_a_panel_is_paid_once_and_all_of_it_is_there():
    s = source(costs={"blood": 2.5, "scan": 10.0}, panels=["blood", "scan"] * 5, budget=10.0)
    examples = s.draw(2)
    assert examples.observe([4]).tolist() == [[4.0], [14.0]]
    assert counts(s.meter) == (2, 10, 5, 5.0)
    assert examples.observe([0, 8]).tolist() == [[0.0, 8.0], [10.0, 18.0]]
    assert counts(s.meter) == (2, 10, 5, 5.0)
    with pytest.raises(BudgetError, match=re.escape("attributes for 12.5 of one example were asked for, 5 of them")):
        examples.observe([1])
    s.draw(1).observe([1])
    assert counts(s.meter) == (3, 15, 5, 15.0)


def test_a_budget_of_equal_prices_is_told_as_a_number_of_attributes():
    s = source(costs=[7.0] * 10, budget=22.0)
    with pytest.raises(BudgetError, match=r"4 attributes of one example were asked for, .*; the budget is 3$"):
        s.draw(1).observe([0, 1, 2, 3])
    s.draw(1).observe([0, 1, 2])
    assert counts(s.meter) == (2, 3, 3, 21.0)


@pytest.mark.slow
@pytest.mark.parametrize("price", [2.0, 0.1, 7.3])
@pytest.mark.parametrize(
    "algorithm",
    [
        AdaptiveHybrid(n_nonzero_coefs=3),
        Exploration(step=0.1, batches=40, n_nonzero_coefs=2),
        Hybrid(0.1, 40, 60, n_nonzero_coefs=2, max_rounds=3),
        Exploitation(step=0.1, batches=40),
    ],
)
def test_an_algorithm_does_the_same_at_another_price_for_all(algorithm, price):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((1500, 10))
    y = Z[:, 2] - Z[:, 7]
    w0 = np.eye(10)[4] if isinstance(algorithm, Exploitation) else None
    plain = learn(algorithm, ArraySource(Z, y, 4), w0)
    priced = learn(algorithm, ArraySource(Z, y, costs=[price] * 10, budget=4.5 * price), w0)
    assert priced.w.tobytes() == plain.w.tobytes()
    assert counts(priced.meter)[:3] == counts(plain.meter)[:3]
    assert priced.meter.money == pytest.approx(price * plain.meter.money)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 9), max_size=4)), max_size=30))
def test_counts_are_those_of_a_ledger(purchases):
    s = ArraySource(X, np.arange(6.0), n_observed=5)
    hands = [s.draw(n) for n in (1, 2, 3)]
    ledger = [set() for _ in hands]
    for hand, indices in purchases:
        if len(ledger[hand] | set(indices)) > 5:
            with pytest.raises(BudgetError):
                hands[hand].observe(indices)
            continue
        hands[hand].observe(indices)
        ledger[hand] |= set(indices)
        assert hands[hand].owned.tolist() == sorted(ledger[hand])
    bought = sum(len(examples) * len(owned) for examples, owned in zip(hands, ledger, strict=True))
    assert counts(s.meter) == (6, bought, max(map(len, ledger)), bought)


def test_an_example_that_is_not_there_costs_nothing_and_one_with_a_gap_is_paid():
    rows = X.copy()
    rows[1, 3] = np.nan
    s = RowSource(list(zip(rows.tolist(), range(6), strict=True)), n_features=10, n_observed=3)
    examples = s.draw(3)
    assert examples.observe([0, 3]).tolist() == [[0.0, 3.0], [20.0, 23.0]]
    assert (examples.ids, examples.paid, examples.targets().tolist()) == ([0, 2], 3, [0.0, 2.0])
    assert counts(s.meter) == (3, 6, 2, 6.0)
    assert examples.observe([4, 0]).tolist() == [[4.0, 0.0], [24.0, 20.0]]
    assert (examples.paid, *counts(s.meter)) == (2, 3, 8, 3, 8.0)


def test_buying_for_nobody_counts_nothing():
    purchase, meter = CostModel.of(5, 3).purchase([0, 4], owned=np.array([1])), Meter()
    assert (purchase.new.tolist(), purchase.owned.tolist(), purchase.cost) == ([0, 4], [0, 1, 4], 2.0)
    meter.add(purchase, 0)
    assert counts(meter) == (0, 0, 0, 0.0)
    meter.add(purchase, 3)
    assert counts(meter) == (0, 6, 3, 6.0)


@pytest.mark.parametrize(
    "algorithm", [AdaptiveHybrid(n_nonzero_coefs=2), Exploration(step=0.1, batches=7, n_nonzero_coefs=2)]
)
def test_an_algorithm_counts_as_its_source_does(algorithm):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 10))
    Z[rng.random(Z.shape) < 0.02] = np.nan
    result = learn(algorithm, ArraySource(Z, rng.standard_normal(500), n_observed=4))
    learner = result.learner
    assert counts(learner.meter) == counts(result.meter)
    assert result.meter.max_per_example <= 4
    assert learner.dropped > 0
    unabsorbed = 0 if learner.answers is None else int(learner.answers.answered.sum())
    assert result.meter.examples == learner.state.seen + learner.dropped + unabsorbed


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([10], "there is no attribute 10; there are 10, counted from 0"),
        ([-1], "there is no attribute -1"),
        ([0.5], "indices must be a list of integers, got [0.5]"),
        ([True], "indices must be a list of integers"),
        (3, "indices must be a list of integers, got 3"),
        ([[1]], "indices must be a list of integers"),
        (["age"], "indices must be a list of integers"),
    ],
)
def test_indices_that_make_no_sense(indices, message):
    s = source()
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        s.draw(1).observe(indices)
    assert s.meter.attributes == 0
