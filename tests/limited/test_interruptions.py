"""Nothing that goes wrong during a purchase lets an example be measured beyond its budget, or be counted wrongly."""

import copy
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    CallbackSource,
    CostModel,
    Journal,
    Learner,
    LimitedAttributeRegression,
    RowSource,
)

LOST = "a purchase for these examples was interrupted; draw others"


class Device:
    """Measures patients until it is told to fail at one of them, and remembers what it measured of whom."""

    def __init__(self, fails, error):
        self.fails, self.error, self.measured = fails, error, {}

    def ask(self, patient, indices):
        if patient == self.fails:
            self.fails = None
            raise self.error
        self.measured.setdefault(patient, set()).update(indices.tolist())
        return [float(j) for j in indices]

    @property
    def count(self):
        return sum(map(len, self.measured.values()))


@pytest.mark.parametrize("error", [ConnectionError("the line is dead"), KeyboardInterrupt()])
@pytest.mark.parametrize("row", range(4))
def test_an_interrupted_hand_buys_no_more(row, error):
    device = Device(row, error)
    source = CallbackSource(device.ask, 6, 2, target=float)
    patients = source.draw(4)
    with pytest.raises(type(error)):
        patients.observe([0, 1])
    for indices in ([2, 3], [0, 1], [0], []):
        with pytest.raises(HardThreshError, match=LOST):
            patients.observe(indices)
    assert (source.meter.examples, source.meter.attributes) == (row, device.count) == (row, 2 * row)
    source.draw(2).observe([2, 3])
    assert (source.meter.examples, source.meter.attributes) == (row + 2, device.count)
    assert source.meter.max_per_example == max(map(len, device.measured.values())) == 2


@pytest.mark.parametrize("row", range(4))
def test_an_interrupted_second_purchase_is_counted_to_the_row(row):
    device = Device(None, ConnectionError("the line is dead"))
    source = CallbackSource(device.ask, 6, 2, target=float)
    patients = source.draw(4)
    patients.observe([0])
    device.fails = row
    with pytest.raises(ConnectionError):
        patients.observe([1])
    with pytest.raises(HardThreshError, match=LOST):
        patients.observe([2])
    assert (source.meter.examples, source.meter.attributes) == (4, device.count) == (4, 4 + row)
    assert patients.owned.tolist() == [0]


def test_a_purchase_cannot_make_another_purchase():
    def ask(patient, indices):
        return patients.observe([5])

    source = CallbackSource(ask, 6, 2, target=float)
    patients = source.draw(1)
    with pytest.raises(HardThreshError, match=LOST):
        patients.observe([0])
    assert source.meter.attributes == 0


@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize(
    "make",
    [lambda X: ArraySource(X, np.zeros(3), 2, shuffle=False), lambda X: RowSource(zip(X, range(3), strict=True), 4, 2)],
)
def test_an_infinite_value_is_paid_and_ends_the_hand(make, row):
    X = np.arange(12.0).reshape(3, 4)
    X[row, 1] = np.inf
    source = make(X)
    rows = source.draw(3)
    with pytest.raises(InvalidInputError, match=f"attribute 1 of example {row} is inf"):
        rows.observe([0, 1])
    with pytest.raises(HardThreshError, match=LOST):
        rows.observe([2, 3])
    meter = source.meter
    assert (meter.examples, meter.attributes, meter.max_per_example, rows.paid) == (row + 1, 2 * (row + 1), 2, row + 1)


@pytest.mark.usefixtures("no_disk")
@pytest.mark.parametrize("row", range(4))
def test_an_interrupted_journal_writes_no_more(tmp_path, row):
    path, device = tmp_path / "study.sqlite", Device(row, ConnectionError("the line is dead"))
    journal = Journal(CallbackSource(device.ask, 6, 2, target=float), path)
    patients, others = journal.draw(4), journal.draw(2)
    with pytest.raises(ConnectionError):
        patients.observe([0, 1])
    for hand in (patients, others, patients):
        with pytest.raises(HardThreshError, match="interrupted"):
            hand.observe([0, 1])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT example FROM answers ORDER BY number").fetchall() == [
            (i,) for i in range(row)
        ]
    again = Journal(CallbackSource(device.ask, 6, 2, target=float), path)
    again.draw(4).observe([0, 1])
    assert (again.meter.examples, again.meter.attributes) == (4, device.count) == (4, 8)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_table_with_a_target_that_is_no_number_sells_nothing(wrong):
    with pytest.raises(InvalidInputError, match=f"the target of example 2 is {wrong}; it must be a finite number"):
        ArraySource(np.ones((3, 2)), [0.0, 1.0, wrong], 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_examples_cannot_be_copied(copied):
    with pytest.raises(CapabilityError, match="examples cannot be copied: what a copy buys would not be counted"):
        copied(ArraySource(np.ones((2, 4)), [0.0, 1.0], 2).draw(2))


def test_the_record_of_owned_attributes_is_read_only():
    source = ArraySource(np.ones((2, 4)), [0.0, 1.0], 2)
    rows = source.draw(2)
    rows.observe([1, 2])
    with pytest.raises(AttributeError):
        rows.owned = np.empty(0, dtype=int)
    with pytest.raises(ValueError, match="read-only"):
        rows.owned[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        source.cost_model.price[:] = 0.1


def test_returned_values_are_not_those_that_are_kept():
    rows = ArraySource(np.ones((2, 4)), [0.0, 1.0], 2).draw(2)
    rows.observe([1, 2])[:] = 7.0
    assert rows.observe([1, 2]).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda cost_model: pickle.loads(pickle.dumps(cost_model))])
def test_a_copied_cost_model_is_read_only(again):
    cost_model = again(CostModel.of(3, costs=[1.0, 2.0, 4.0], budget=5))
    assert (cost_model.price.tolist(), cost_model.panel.tolist(), cost_model.budget) == (
        [1.0, 2.0, 4.0],
        [0, 1, 2],
        5.0,
    )
    assert [array.flags.writeable for array in (cost_model.price, cost_model.panel)] == [False, False]


def test_a_stored_market_is_as_firm(tmp_path):
    ht.save(
        Learner.of(AdaptiveHybrid(n_nonzero_coefs=1), CostModel.of(3, costs=[1.0, 2.0, 2.5], budget=5)),
        tmp_path / "l.json",
    )
    cost_model = ht.load(tmp_path / "l.json").cost_model
    assert cost_model.price.tolist() == [1.0, 2.0, 2.5]
    assert [array.flags.writeable for array in (cost_model.price, cost_model.panel)] == [False, False]


def test_a_cost_model_copies_its_prices():
    prices = np.array([1.0, 2.0])
    cost_model = CostModel(np.arange(2), prices, 5.0)
    prices[:] = 0.1
    assert cost_model.price.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("names", "shown"), [(["a", "b", "a"], "'a'"), (("a", "b", "a"), "'a'"), (np.array([3, 4, 3]), "3")]
)
def test_a_list_that_has_an_example_twice_is_refused(names, shown):
    with pytest.raises(InvalidInputError, match=f"examples has {shown} twice"):
        CallbackSource(print, 4, 2, target=float, examples=names)


def test_a_stream_that_has_an_example_twice_is_refused_when_it_comes():
    source = CallbackSource(lambda i, indices: [0.0, 0.0], 4, 2, target=lambda i: 0.0, examples=iter("abcb"))
    source.draw(3).observe([0, 1])
    with pytest.raises(InvalidInputError, match="examples has 'b' twice"):
        source.draw(1)


def test_only_the_latest_names_of_a_stream_are_remembered(monkeypatch):
    monkeypatch.setattr("hardthresh.limited.sources.callback.REMEMBERED", 2)
    source = CallbackSource(print, 4, 2, target=lambda i: 0.0, examples=iter("abca"))
    assert source.draw(4).ids == list("abca")


def test_examples_without_names_are_not_compared():
    patients = [{"age": 61}, {"age": 61}]
    for examples in (patients, iter(patients)):
        source = CallbackSource(lambda i, indices: [i["age"]], 1, 1, target=lambda i: 0.0, examples=examples)
        assert source.draw(2).observe([0]).tolist() == [[61.0], [61.0]]


def test_empty_requests_are_not_forwarded():
    device = Device(0, AssertionError)
    for source in (CallbackSource(device.ask, 4, 2, target=float), CallbackSource(device.ask, 4, 2)):
        patients = source.draw(3)
        assert patients.observe([]).shape == (3, 0)
        assert (source.meter.examples, source.meter.attributes) == (3, 0)


def test_an_empty_predictor_asks_nobody():
    model = LimitedAttributeRegression(n_nonzero_coefs=1, n_observed=2).fit(np.ones((200, 4)), np.ones(200))
    device = Device(0, AssertionError)
    source = CallbackSource(device.ask, 4, 2, n_examples=3)
    assert (model.predict(source).tolist(), device.count, device.fails) == ([1.0] * 3, 0, 0)


def test_targets_that_come_with_attributes_are_asked_for_even_without_any():
    source = CallbackSource(lambda i, indices: None if i == 1 else ([0.0] * len(indices), float(i)), 4, 2)
    values, targets = source.draw(3).answers([])
    assert (values.shape, targets.tolist(), source.meter.examples) == ((2, 0), [0.0, 2.0], 2)
