"""What can be bought of an example: bundles, blocks, choices within limits, and settings that make no sense."""

import re
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import top_k
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.limited import Market


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
    return Market.of(d, costs={i: price * unit for i, price in enumerate(prices)}, panels=panels, budget=budget * unit)


plain_markets = (
    st.integers(1, 20).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d))).map(lambda a: Market.of(*a))
)
any_market = st.one_of(markets(), plain_markets)


def subset(data, market, room):
    """Some attributes that can be bought for `room`."""
    order = data.draw(st.permutations(range(market.n_features)))
    chosen = []
    for j in order[: data.draw(st.integers(0, market.n_features))]:
        if market.affords(market.cost([*chosen, j]), room):
            chosen.append(j)
    return np.array(sorted(chosen), dtype=np.intp)


def scores(data, market):
    return np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=market.n_features, max_size=market.n_features)), float
    )


@given(st.data(), any_market)
def test_a_bundle_is_whole_panels_and_costs_the_same(data, market):
    indices = data.draw(st.lists(st.integers(0, market.n_features - 1)))
    bundle = market.bundle(indices)
    assert np.all(np.diff(bundle) > 0)
    assert set(indices) <= set(bundle.tolist())
    assert set(market.panel[bundle]) == set(market.panel[np.array(indices, dtype=int)])
    assert bundle.size == np.isin(market.panel, market.panel[bundle]).sum()
    assert (
        market.cost(bundle) == market.cost(indices) == pytest.approx(sum(market.price[list(set(market.panel[bundle]))]))
    )
    np.testing.assert_array_equal(market.bundle(bundle), bundle)


@given(st.data(), any_market)
def test_blocks_partition_the_rest_and_each_is_affordable(data, market):
    support = subset(data, market, market.room)
    dearest = market.dearest(market.room)
    parts = market.blocks(support, dearest)
    too_dear = np.flatnonzero(market.price[market.panel] > dearest * (1 + 1e-9))
    assert parts.shape == (market.n_features,)
    np.testing.assert_array_equal(np.flatnonzero(parts == -1), np.union1d(market.bundle(support), too_dear))
    assert set(parts[parts >= 0]) == set(range(parts.max() + 1))
    for part in range(parts.max() + 1):
        block = np.flatnonzero(parts == part)
        np.testing.assert_array_equal(market.bundle(block), block)
        assert market.affords(market.cost(np.union1d(block, support)))


@given(st.data(), plain_markets)
def test_with_equal_prices_there_are_as_few_blocks_as_can_be(data, market):
    support = subset(data, market, market.room)
    d, s, observed = market.n_features, support.size, int(market.budget)
    if s < d:
        assert market.blocks(support).max() + 1 == ceil((d - s) / (observed - s))


@given(st.data(), any_market)
def test_a_choice_keeps_within_its_limits(data, market):
    score, count = scores(data, market), data.draw(st.integers(0, market.n_features))
    limit = market.room * data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    chosen = market.choose(score, count, limit)
    assert np.all(np.diff(chosen) > 0)
    assert chosen.size <= count
    assert market.affords(market.cost(chosen), limit) or market.cost(chosen) <= limit + 1e-9 * market.budget
    if market.plain:
        np.testing.assert_array_equal(chosen, top_k(score, min(count, int(limit * (1 + 1e-9)))))


@given(st.data(), any_market)
def test_an_extension_keeps_within_the_budget_and_the_support(data, market):
    support, score = subset(data, market, market.budget), scores(data, market)
    extended = market.extend(support, score)
    np.testing.assert_array_equal(market.bundle(extended), extended)
    assert set(support.tolist()) <= set(extended.tolist())
    assert market.affords(market.cost(extended))
    left = np.setdiff1d(np.flatnonzero(score), extended)
    for j in left:  # nothing of interest that still fits is left out
        assert not market.affords(market.cost([*extended, j]) * (1 - 1e-6))


def test_with_equal_prices_an_extension_takes_the_largest():
    market = Market.of(8, 4)
    assert market.extend(np.array([6]), np.array([1.0, 9, 0, 3, 2, 0, 5, 8])).tolist() == [1, 3, 6, 7]


def test_prices_alone_keep_every_attribute_its_own_panel():
    market = Market.of(3, costs=[1.0, 2.0, 4.0], budget=5)
    assert (market.cost([0, 2]), market.cost([2, 2]), market.plain) == (5.0, 4.0, False)
    assert market.bundle([2, 0, 2]).tolist() == [0, 2]
    assert market.room == 3.0  # the third costs more than half of the budget
    assert market.blocks(np.array([0]), market.dearest(market.room)).tolist() == [-1, 0, -1]
    assert market.blocks(np.array([0])).tolist() == [-1, 0, 1]


def test_the_prices_of_attributes_in_a_panel_add_up():
    market = Market.of(4, costs=[1.0, 2.0, 4.0, 8.0], panels=["a", "b", "a", "b"], budget=10)
    assert market.price.tolist() == [5.0, 10.0]


def test_there_is_room_for_everything_where_the_budget_covers_it():
    assert Market.of(5, 5).room == 5.0
    assert Market.of(5, 4).room == 3.0


@pytest.mark.parametrize("price", [1.0, 2.0, 0.1, 1 / 3, 7.3, 1e-12, 1e12])
@pytest.mark.parametrize("observed", range(1, 8))
def test_equal_prices_are_a_unit(observed, price):
    market, unit = Market.of(7, costs=[price] * 7, budget=observed * price), Market.of(7, observed)
    assert market.plain
    assert market.n_observed == unit.n_observed == observed
    assert market.count_for(market.room) == unit.room
    assert Market.of(7, costs=[price] * 7, budget=(observed + 0.6) * price).n_observed == observed
    score = np.array([1.0, 5, 2, 0, 3, 3, 4])
    np.testing.assert_array_equal(market.choose(score, 7, market.room), unit.choose(score, 7, unit.room))
    np.testing.assert_array_equal(market.extend(np.empty(0, int), score), unit.extend(np.empty(0, int), score))
    np.testing.assert_array_equal(market.blocks(np.empty(0, int)), unit.blocks(np.empty(0, int)))


@pytest.mark.parametrize(
    "market",
    [
        Market.of(3, costs=[1.0, 2.0, 2.0], budget=4),
        Market.of(4, costs={"a": 1, "b": 1}, panels=["a", "a", "b", "b"], budget=2),
    ],
)
def test_other_prices_buy_no_certain_number(market):
    assert not market.plain
    with pytest.raises(CapabilityError, match="it depends on which are bought"):
        market.n_observed  # noqa: B018


NONSENSE = [
    (lambda: Market.of(0, 1), "the number of attributes must be an integer >= 1, got 0"),
    (lambda: Market.of(2.5, 1), "the number of attributes must be an integer >= 1, got 2.5"),
    (lambda: Market.of(True, 1), "got True"),
    (lambda: Market.of(5), "n_observed must be an integer in 1 .. 5, the number of attributes; got None"),
    (lambda: Market.of(5, 0), "n_observed must be an integer in 1 .. 5, the number of attributes; got 0"),
    (lambda: Market.of(5, 6), "got 6"),
    (lambda: Market.of(5, 2.0), "got 2.0"),
    (lambda: Market.of(5, 2, budget=3.0), "without costs give n_observed"),
    (lambda: Market.of(2, 1, costs=[1, 1], budget=2), "give budget=, what may be spent on one example, instead of"),
    (lambda: Market.of(2, costs=[1, 1]), "budget must be a finite number > 0, got None"),
    (lambda: Market.of(2, costs=[1, 1], budget=-1), "got -1"),
    (lambda: Market.of(2, costs=[1, 1], budget=float("inf")), "got inf"),
    (lambda: Market.of(2, costs=[1, 1], budget=float("nan")), "got nan"),
    (lambda: Market.of(2, costs=[1, 1, 1], budget=2), "costs has shape (3,); (2,) is needed, one price for each"),
    (lambda: Market.of(2, costs=[1, 0], budget=2), "prices must be finite and > 0; that of 'attribute 1' is not"),
    (lambda: Market.of(2, costs=[1, float("nan")], budget=2), "that of 'attribute 1' is not"),
    (lambda: Market.of(2, costs=[5, -1], panels=["a", "a"], budget=9), "that of 'a' is not"),
    (lambda: Market.of(2, costs={"a": 1}, panels=["a", "b"], budget=9), "costs has no price for 'b'; give one"),
    (lambda: Market.of(3, 1, panels=["a", "b"]), "panels has 2 labels; one for each of 3 attributes is needed"),
    (lambda: Market.of(3, 1, panels=["a", "b", "a"]), "'a' costs 2, more than the budget of 1 for one example"),
    (lambda: Market.of(2, costs=[1, 9], budget=5), "'attribute 1' costs 9, more than the budget of 5 for one example"),
]


@pytest.mark.parametrize(("make", "message"), NONSENSE, ids=[message for _, message in NONSENSE])
def test_nonsense_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        make()
