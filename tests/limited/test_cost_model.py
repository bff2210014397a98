"""What can be bought of an example: bundles, blocks, choices within limits, and settings that make no sense."""

import re
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import top_k
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.limited import CostModel
from levels import only_at


@st.composite
def markets(draw):
    """Attributes in panels, in any order, with prices that span a hundred, and a budget that can buy each panel."""
    n_panels = draw(st.integers(1, 8))
    d = draw(st.integers(n_panels, 20))
    panels = draw(
        st.permutations(
            [
                *range(n_panels),
                *draw(st.lists(st.integers(0, n_panels - 1), min_size=d - n_panels, max_size=d - n_panels)),
            ]
        )
    )
    prices = draw(st.lists(st.integers(1, 100), min_size=n_panels, max_size=n_panels))
    unit = draw(st.sampled_from([1.0, 0.1, 1 / 3]))
    dearest, total = max(prices), sum(prices)
    budget = draw(st.integers(dearest, max(dearest, total + 3)))
    return CostModel.of(
        d, costs={i: price * unit for i, price in enumerate(prices)}, panels=panels, budget=budget * unit
    )


plain_markets = (
    st.integers(1, 20).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d))).map(lambda a: CostModel.of(*a))
)
any_market = st.one_of(markets(), plain_markets)


def subset(data, cost_model, room):
    """Some attributes that can be bought for `room`."""
    order = data.draw(st.permutations(range(cost_model.n_features)))
    chosen = []
    for j in order[: data.draw(st.integers(0, cost_model.n_features))]:
        if cost_model.within_budget(cost_model.cost([*chosen, j]), room):
            chosen.append(j)
    return np.array(sorted(chosen), dtype=np.intp)


def scores(data, cost_model):
    return np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=cost_model.n_features, max_size=cost_model.n_features)), float
    )


@pytest.mark.slow
@given(st.data(), any_market)
def test_a_bundle_is_whole_panels_and_costs_the_same(data, cost_model):
    indices = data.draw(st.lists(st.integers(0, cost_model.n_features - 1)))
    bundle = cost_model.whole_panels(indices)
    assert np.all(np.diff(bundle) > 0)
    assert set(indices) <= set(bundle.tolist())
    assert set(cost_model.panel[bundle]) == set(cost_model.panel[np.array(indices, dtype=int)])
    assert bundle.size == np.isin(cost_model.panel, cost_model.panel[bundle]).sum()
    assert (
        cost_model.cost(bundle)
        == cost_model.cost(indices)
        == pytest.approx(sum(cost_model.price[list(set(cost_model.panel[bundle]))]))
    )
    np.testing.assert_array_equal(cost_model.whole_panels(bundle), bundle)


@only_at("pairs")
@given(st.data(), any_market)
def test_blocks_partition_the_rest_and_each_is_affordable(data, cost_model):
    support = subset(data, cost_model, cost_model.prediction_limit)
    dearest = cost_model.panel_limit(cost_model.prediction_limit)
    parts = cost_model.partition(support, dearest)
    too_dear = np.flatnonzero(cost_model.price[cost_model.panel] > dearest * (1 + 1e-9))
    assert parts.shape == (cost_model.n_features,)
    np.testing.assert_array_equal(np.flatnonzero(parts == -1), np.union1d(cost_model.whole_panels(support), too_dear))
    assert set(parts[parts >= 0]) == set(range(parts.max() + 1))
    for part in range(parts.max() + 1):
        block = np.flatnonzero(parts == part)
        np.testing.assert_array_equal(cost_model.whole_panels(block), block)
        assert cost_model.within_budget(cost_model.cost(np.union1d(block, support)))


@pytest.mark.slow
@given(st.data(), plain_markets)
def test_with_equal_prices_there_are_as_few_blocks_as_can_be(data, cost_model):
    support = subset(data, cost_model, cost_model.prediction_limit)
    d, s, observed = cost_model.n_features, support.size, int(cost_model.budget)
    if s < d:
        assert cost_model.partition(support).max() + 1 == ceil((d - s) / (observed - s))


@only_at("pairs")
@given(st.data(), any_market)
def test_a_choice_keeps_within_its_limits(data, cost_model):
    score, count = scores(data, cost_model), data.draw(st.integers(0, cost_model.n_features))
    limit = cost_model.prediction_limit * data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    chosen = cost_model.choose(score, count, limit)
    assert np.all(np.diff(chosen) > 0)
    assert chosen.size <= count
    assert (
        cost_model.within_budget(cost_model.cost(chosen), limit)
        or cost_model.cost(chosen) <= limit + 1e-9 * cost_model.budget
    )
    if cost_model.uniform:
        np.testing.assert_array_equal(chosen, top_k(score, min(count, int(limit * (1 + 1e-9)))))


@only_at("pairs")
@given(st.data(), any_market)
def test_an_extension_keeps_within_the_budget_and_the_support(data, cost_model):
    support, score = subset(data, cost_model, cost_model.budget), scores(data, cost_model)
    extended = cost_model.extend(support, score)
    np.testing.assert_array_equal(cost_model.whole_panels(extended), extended)
    assert set(support.tolist()) <= set(extended.tolist())
    assert cost_model.within_budget(cost_model.cost(extended))
    left = np.setdiff1d(np.flatnonzero(score), extended)
    for j in left:  # nothing of interest that still fits is left out
        assert not cost_model.within_budget(cost_model.cost([*extended, j]) * (1 - 1e-6))


def test_with_equal_prices_an_extension_takes_the_largest():
    cost_model = CostModel.of(8, 4)
    assert cost_model.extend(np.array([6]), np.array([1.0, 9, 0, 3, 2, 0, 5, 8])).tolist() == [1, 3, 6, 7]


def test_prices_alone_keep_every_attribute_its_own_panel():
    cost_model = CostModel.of(3, costs=[1.0, 2.0, 4.0], budget=5)
    assert (cost_model.cost([0, 2]), cost_model.cost([2, 2]), cost_model.uniform) == (5.0, 4.0, False)
    assert cost_model.whole_panels([2, 0, 2]).tolist() == [0, 2]
    assert cost_model.prediction_limit == 3.0  # the third costs more than half of the budget
    assert cost_model.partition(np.array([0]), cost_model.panel_limit(cost_model.prediction_limit)).tolist() == [
        -1,
        0,
        -1,
    ]
    assert cost_model.partition(np.array([0])).tolist() == [-1, 0, 1]


def test_the_prices_of_attributes_in_a_panel_add_up():
    cost_model = CostModel.of(4, costs=[1.0, 2.0, 4.0, 8.0], panels=["a", "b", "a", "b"], budget=10)
    assert cost_model.price.tolist() == [5.0, 10.0]


def test_prediction_limits_of_full_and_smaller_budgets():
    assert CostModel.of(5, 5).prediction_limit == 5.0
    assert CostModel.of(5, 4).prediction_limit == 3.0


@pytest.mark.parametrize("price", [1.0, 2.0, 0.1, 1 / 3, 7.3, 1e-12, 1e12])
@pytest.mark.parametrize("observed", range(1, 8))
def test_equal_prices_are_a_unit(observed, price):
    cost_model, unit = CostModel.of(7, costs=[price] * 7, budget=observed * price), CostModel.of(7, observed)
    assert cost_model.uniform
    assert cost_model.n_observed == unit.n_observed == observed
    assert cost_model.count_for(cost_model.prediction_limit) == unit.prediction_limit
    assert CostModel.of(7, costs=[price] * 7, budget=(observed + 0.6) * price).n_observed == observed
    score = np.array([1.0, 5, 2, 0, 3, 3, 4])
    np.testing.assert_array_equal(
        cost_model.choose(score, 7, cost_model.prediction_limit), unit.choose(score, 7, unit.prediction_limit)
    )
    np.testing.assert_array_equal(cost_model.extend(np.empty(0, int), score), unit.extend(np.empty(0, int), score))
    np.testing.assert_array_equal(cost_model.partition(np.empty(0, int)), unit.partition(np.empty(0, int)))


@pytest.mark.parametrize(
    "cost_model",
    [
        CostModel.of(3, costs=[1.0, 2.0, 2.0], budget=4),
        CostModel.of(4, costs={"a": 1, "b": 1}, panels=["a", "a", "b", "b"], budget=2),
    ],
)
def test_other_prices_buy_no_certain_number(cost_model):
    assert not cost_model.uniform
    with pytest.raises(CapabilityError, match="it depends on which are bought"):
        cost_model.n_observed  # noqa: B018


NONSENSE = [
    (lambda: CostModel.of(0, 1), "the number of attributes must be an integer >= 1, got 0"),
    (lambda: CostModel.of(2.5, 1), "the number of attributes must be an integer >= 1, got 2.5"),
    (lambda: CostModel.of(True, 1), "got True"),
    (lambda: CostModel.of(5), "n_observed must be an integer in 1 .. 5, the number of attributes; got None"),
    (lambda: CostModel.of(5, 0), "n_observed must be an integer in 1 .. 5, the number of attributes; got 0"),
    (lambda: CostModel.of(5, 6), "got 6"),
    (lambda: CostModel.of(5, 2.0), "got 2.0"),
    (lambda: CostModel.of(5, 2, budget=3.0), "without costs give n_observed"),
    (lambda: CostModel.of(2, 1, costs=[1, 1], budget=2), "give budget=, what may be spent on one example, instead of"),
    (lambda: CostModel.of(2, costs=[1, 1]), "budget must be a finite number > 0, got None"),
    (lambda: CostModel.of(2, costs=[1, 1], budget=-1), "got -1"),
    (lambda: CostModel.of(2, costs=[1, 1], budget=float("inf")), "got inf"),
    (lambda: CostModel.of(2, costs=[1, 1], budget=float("nan")), "got nan"),
    (lambda: CostModel.of(2, costs=[1, 1, 1], budget=2), "costs has shape (3,); (2,) is needed, one price for each"),
    (lambda: CostModel.of(2, costs=[1, 0], budget=2), "prices must be finite and > 0; that of 'attribute 1' is not"),
    (lambda: CostModel.of(2, costs=[1, float("nan")], budget=2), "that of 'attribute 1' is not"),
    (lambda: CostModel.of(2, costs=[5, -1], panels=["a", "a"], budget=9), "that of 'a' is not"),
    (lambda: CostModel.of(2, costs={"a": 1}, panels=["a", "b"], budget=9), "costs has no price for 'b'; give one"),
    (lambda: CostModel.of(3, 1, panels=["a", "b"]), "panels has 2 labels; one for each of 3 attributes is needed"),
    (lambda: CostModel.of(3, 1, panels=["a", "b", "a"]), "'a' costs 2, more than the budget of 1 for one example"),
    (
        lambda: CostModel.of(2, costs=[1, 9], budget=5),
        "'attribute 1' costs 9, more than the budget of 5 for one example",
    ),
]


@pytest.mark.parametrize(("make", "message"), NONSENSE, ids=[message for _, message in NONSENSE])
def test_nonsense_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        make()
