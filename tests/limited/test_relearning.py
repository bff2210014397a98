"""Answers that were corrected are learned again: with the questions of the time, and the values of now."""

import numpy as np
import pytest

from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError
from hardthresh.limited import AdaptiveHybrid, CostModel, Exploration, Learner, LogisticHybrid
from hardthresh.limited.relearning import Batch, BatchValues, relearned

D, S, OBSERVED = 12, 2, 6
ALGORITHMS = [AdaptiveHybrid(S), LogisticHybrid(S)]


def example(algorithm, number):
    """Return the attributes and the target of an example: y = x1 - 2 x7 + noise, or its sign."""
    x = np.random.default_rng([5, number]).standard_normal(D)
    y = x[1] - 2 * x[7] + 0.3 * np.random.default_rng([6, number]).standard_normal()
    return x, float(y > 0) if algorithm.target == "class" else y


class Record:
    """A learner that was told some wrong values, and everything that it was told."""

    def __init__(self, algorithm, count, wrong=(), length=None, error=4.0):
        self.learner = Learner.of(algorithm, CostModel.of(D, OBSERVED), length=length)
        self.batches, self.told, self.length = [], {}, length
        while self.learner.meter.examples < count or self.learner.answers is not None:  # whole batches
            number, indices = self.learner.ask()
            if number % 9 == 5:
                self.learner.skip(number, paid=indices[:2])
                continue
            x, y = example(algorithm, number)
            self.told[number] = x[indices] + error * (number in wrong), y
            before, answers = self.learner.state, self.learner.answers
            self.learner.tell(number, *self.told[number])
            if self.learner.answers is None:
                self.batches.append(Batch.between(before, answers, self.learner))

    def again(self, correct=(), withdraw=()):
        """Return what is learned from these answers with some of them corrected or withdrawn."""
        history = []
        for batch in self.batches:
            kept = ~np.isin(batch.examples, list(withdraw))
            rows = [self._now(number, batch.indices, correct) for number in batch.examples[kept].tolist()]
            x = np.array([row for row, _ in rows]).reshape(len(rows), batch.indices.size)
            history.append((batch, BatchValues(kept, x, np.array([y for _, y in rows]))))
        return relearned(self.learner, history, self.length)

    def _now(self, number, indices, correct):
        x, y = example(self.learner.algorithm, number)
        return (x[indices], y) if number in correct else self.told[number]


def fields(learner):
    state = learner.state
    moments = [state.scales.mean, state.scores.product, state.part.product, state.together.comoment, state.own.comoment]
    numbers = [state.w.tolist(), state.intercept, state.seen, state.taken, state.quota, learner.curve.errors]
    return numbers + [each.tolist() for each in moments]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("length", [None, 900])
def test_the_same_answers_give_the_same_learner(algorithm, length):
    record = Record(algorithm, 640, length=length)
    again, lessons = record.again()
    assert fields(again) == fields(record.learner)
    assert sum(len(lesson.predictions) for lesson in lessons) == len(record.told)
    for _ in range(64):
        for learner in (again, record.learner):
            number, indices = learner.ask()
            x, y = example(algorithm, number)
            learner.tell(number, x[indices], y)
    assert fields(again) == fields(record.learner)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [96, 320, 640], ids=["exploring", "exploiting", "exploring again"])
def test_corrected_answers_give_what_the_right_ones_would_have_given(algorithm, count):
    """The wrong values are so nearly right that they change no choice."""
    right = Record(algorithm, count)
    wrong = {3, 40, 42, int(right.batches[-1].examples[0])}
    record = Record(algorithm, count, wrong, error=0.01)
    assert [batch.indices.tolist() for batch in record.batches] == [batch.indices.tolist() for batch in right.batches]
    again, _ = record.again(correct=wrong)
    assert fields(again) == fields(right.learner)
    assert fields(again) != fields(record.learner)
    assert again.query.indices.tolist() == record.learner.query.indices.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [96, 320, 640])
@pytest.mark.parametrize("withdraw", [{0}, set(range(32)), set(range(5, 300, 7))], ids=["one", "a batch", "many"])
def test_the_questions_are_those_that_were_asked(algorithm, count, withdraw):
    record = Record(algorithm, count)
    again, lessons = record.again(withdraw=withdraw)
    told = set(record.told)
    assert sum(len(lesson.predictions) for lesson in lessons) == len(told - withdraw)
    assert again.query.indices.tolist() == record.learner.query.indices.tolist()
    assert again.state.phase == record.learner.state.phase
    assert np.all(np.isfinite(again.state.w))


def test_the_coefficients_are_least_squares_on_the_examples_that_were_kept():
    record, withdraw = Record(AdaptiveHybrid(S), 640), set(range(5, 640, 7))
    again, _ = record.again(withdraw=withdraw)
    chosen = [batch.choice.chosen.tolist() for batch in record.batches]
    first = chosen.index([1, 7]) + 1  # the examples after the choice
    assert chosen[first:] == [[1, 7]] * len(chosen[first:])
    rows = [
        example(again.algorithm, n) for batch in record.batches[first:] for n in batch.examples if n not in withdraw
    ]
    x, y = np.array([row[[1, 7]] for row, _ in rows]), np.array([target for _, target in rows])
    expected = np.linalg.lstsq(np.column_stack([x, np.ones(len(y))]), y, rcond=None)[0]
    final, before = again.final_state(), record.learner.final_state()
    assert [*final.w[[1, 7]].tolist(), final.intercept] == pytest.approx(expected.tolist())
    assert final.w[[1, 7]].tolist() != pytest.approx(before.w[[1, 7]].tolist(), rel=1e-3)


def test_a_withdrawn_outlier_leaves_the_moments_of_the_others():
    record = Record(AdaptiveHybrid(S), 96, wrong={3})
    again, _ = record.again(withdraw={3})
    state = again.state
    rows = [example(again.algorithm, number)[0] for number in record.told if number != 3]
    observed = record.batches[0].indices
    assert state.part.count[0] == 95
    assert state.part.mean == pytest.approx(np.mean(rows, axis=0)[observed])


def test_answers_of_another_algorithm_cannot_be_learned_again():
    learner = Learner.of(Exploration(0.1, 10, 1), CostModel.of(D, OBSERVED))
    [batch] = Record(AdaptiveHybrid(S), 32).batches
    with pytest.raises(CapabilityError, match="answers to Exploration cannot be corrected; use AdaptiveHybrid"):
        relearned(learner, [(batch, BatchValues(np.ones(32, bool), np.ones((32, OBSERVED)), np.ones(32)))])


def test_questions_that_would_not_be_asked_any_more_are_noticed(monkeypatch):
    record = Record(AdaptiveHybrid(S), 640)
    monkeypatch.setattr("hardthresh.limited.algorithms.adaptive.GROWTH", 3.0)
    with pytest.raises(HardThreshError, match="asked for by another version"):
        record.again()


def test_an_answer_to_the_open_query_can_be_amended_or_withdrawn():
    learner = Learner.of(AdaptiveHybrid(1), CostModel.of(3, 2))
    for number in range(2):
        learner.tell(number, [1.0, 2.0], y=number)
    learner.amend(0, [3.0, 4.0], y=5.0)
    assert learner.answers.x[0].tolist() == [3.0, 4.0]
    assert learner.answers.y[0] == 5.0
    learner.withdraw(1)
    assert not learner.answers.answered[1]
    assert learner.answers.ids[1] == 32
    assert (learner.meter.examples, learner.dropped) == (2, 1)
    for number in (1, 2, 99):
        with pytest.raises(InvalidInputError, match="no answer that still waits"):
            learner.amend(number, [1.0, 2.0], y=1.0)


def test_an_example_that_was_paid_in_part():
    learner = Learner.of(AdaptiveHybrid(1), CostModel.of(4, costs=[1.0, 2.0, 4.0, 8.0], budget=15.0))
    learner.skip(0, paid=np.array([0, 2]))
    assert (learner.meter.money, learner.meter.attributes, learner.dropped) == (5.0, 2, 1)
    learner.skip(learner.ask()[0], paid=np.array([], dtype=int))
    assert (learner.meter.money, learner.dropped) == (5.0, 1)
    cheap = Learner.of(AdaptiveHybrid(1), CostModel.of(4, 2))
    with pytest.raises(InvalidInputError, match="only attributes that were asked for"):
        cheap.skip(0, paid=np.array([3]))
