"""The learner, which asks for what an algorithm wants to observe, and passes on the answers of a source or a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value
from hardthresh.core.result import Status
from hardthresh.core.schema import renames, stored
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array, is_integer

from .contract import Algorithm, AlgorithmState, Query
from .cost_model import CostModel
from .learning_curve import LearningCurve
from .meter import Meter
from .sources import AttributeSource
from .sources.values import as_numbers, as_target

LARGEST = 1e150
"""The largest attribute or target that `tell` takes: 1e7 squares of it can be added in float64, none of 1e155."""
_TOO_LARGE = f"numbers above {LARGEST:g} in size overflow when they are squared: rescale them"
_OVERFLOW = (
    "squares of the attributes or targets overflow, so this is the model of the examples before: rescale them, targets "
    "of 1e200 by 1e-200 for instance, and begin again"
)


@stored("learner/answers", upgrades=[renames(told="answered")])
@dataclass
class Answers:
    """The answers to one query so far, which may come in any order.

    Attributes
    ----------
    indices : int array
        The attributes that were asked for, increasing.
    ids : list of int
        The examples that were asked about.
    x, y : array
        A row of values, and a target, for each of them.
    answered : bool array
        Which of them have been answered.
    """

    indices: Array
    ids: list[int]
    x: Array
    y: Array
    answered: Array


@stored("learner/solver", upgrades=[renames(solver="algorithm", market="cost_model"), renames(least="least_error")])
@dataclass
class Learner:
    """Asks about one example after the other, and learns from the answers.

    It uses nothing but the answers, so a learner that was stored (`hardthresh.save`) continues after an interruption
    as if there had been none: it asks again for what was not answered.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm.
    cost_model : CostModel
        Attributes, prices and budget.
    state : AlgorithmState
        What the algorithm has learned.
    meter : Meter
        What the answers cost.
    curve : LearningCurve
        How well they were predicted.
    answers : Answers or None
        The answers to the open query.
    next_example : int
        The number of the next new example.
    diverged : bool
        Whether the coefficients diverged, which ends learning; `state` is the one before.
    dropped : int
        The number of examples that were paid for but not learned from, as a value could not be had.
    best : AlgorithmState or None
        Of an algorithm that takes steps, the state whose next batch had the smallest error.
    least_error : float
        The mean squared error of the predictions of that batch.

    Examples
    --------
    >>> from hardthresh.limited import AdaptiveHybrid, CostModel
    >>> learner = Learner.of(AdaptiveHybrid(1), CostModel.of(3, 2))
    >>> learner.ask()
    (0, array([0, 1]))
    >>> learner.tell(0, [0.5, 1.5], y=2.0)
    >>> learner.ask()[0], learner.meter.attributes
    (1, 2)
    """

    algorithm: Algorithm[Any]
    cost_model: CostModel
    state: AlgorithmState
    meter: Meter = field(default_factory=Meter)
    curve: LearningCurve = field(default_factory=LearningCurve)
    answers: Answers | None = None
    next_example: int = 0
    diverged: bool = False
    dropped: int = 0
    best: AlgorithmState | None = None
    least_error: float = inf

    @classmethod
    def of(
        cls, algorithm: Algorithm[Any], cost_model: CostModel, w0: Any | None = None, length: int | None = None
    ) -> Learner:
        """Return a learner without any answers; its arguments are those of `Algorithm.start`."""
        return cls(algorithm, cost_model, algorithm.start(cost_model, w0, length))

    @classmethod
    def for_source(cls, algorithm: Algorithm[Any], source: AttributeSource, w0: Any | None = None) -> Learner:
        """Return a learner without any answers, for the attributes, prices and examples of a source."""
        return cls.of(algorithm, source.cost_model, w0, source.remaining)

    @property
    def query(self) -> Query | None:
        """What it wants to observe; None when it is done."""
        return None if self.diverged else self.algorithm.query(self.cost_model, self.state)

    @property
    def done(self) -> bool:
        """Whether it has no more questions."""
        return self.query is None

    def questions(self, count: int = 1) -> list[tuple[int, Array]]:
        """Return up to `count` >= 1 open questions, (example, indices) each, to be answered in any order at any time.

        A question stays open until `tell` answers it or `skip` withdraws it. There may be fewer than `count`, but at
        least one until the learner is done: later questions may depend on the answers to these.
        """
        if not (is_integer(count) and count >= 1):
            raise InvalidInputError(f"the number of questions must be an integer >= 1, got {count!r}")
        answers = self._open()
        if answers is None:
            return []
        waiting = [id_ for id_, answered in zip(answers.ids, answers.answered, strict=True) if not answered]
        return [(id_, answers.indices.copy()) for id_ in waiting[:count]]

    def ask(self) -> tuple[int, Array]:
        """Return the example, counted from 0, and the increasing indices of its attributes to observe.

        Raises
        ------
        HardThreshError
            If it is done.
        """
        questions = self.questions()
        if not questions:
            raise HardThreshError(f"there is nothing left to ask: {self._end}")
        return questions[0]

    def tell(self, example: int, values: Any, y: float) -> None:
        """Answer a question: the attributes of an example, in the order they were asked for, and its target.

        Raises
        ------
        InvalidInputError
            If there is no such question, it was answered before, or the answer is not a list of finite numbers of the
            right length; nothing has changed then.
        """
        answers, place = self._question(example)
        row, target = self._checked_answer(example, values, y, answers)
        answers.x[place], answers.y[place], answers.answered[place] = row, target, True
        self._pay(answers.indices, 1)
        self._absorb_if_complete(answers)

    def skip(self, example: int, *, paid: bool | Array = False) -> None:
        """Withdraw the question about an example; another example takes its place.

        Parameters
        ----------
        example : int
            An example with an open question.
        paid : bool or int array
            Whether its attributes were paid for all the same, or which of them.
        """
        answers, place = self._question(example)
        bought = (answers.indices if paid else answers.indices[:0]) if isinstance(paid, bool) else np.asarray(paid)
        if not np.all(np.isin(bought, answers.indices)):
            raise InvalidInputError(f"only attributes that were asked for can be paid, got {format_value(paid)}")
        if bought.size:
            self._pay(bought, 1)
            self.dropped += 1
        self._replace(answers, place)

    def amend(self, example: int, values: Any, y: float) -> None:
        """Replace an answer to the open query, which was not absorbed yet, by another one.

        Raises
        ------
        InvalidInputError
            If the example is not among the answers to the open query, or for what `tell` refuses.
        """
        answers, place = self._waiting_answer(example)
        row, target = self._checked_answer(example, values, y, answers)
        answers.x[place], answers.y[place] = row, target

    def withdraw(self, example: int) -> None:
        """Take back an answer to the open query; it stays paid, and another example takes its place.

        Raises
        ------
        InvalidInputError
            If the example is not among the answers to the open query.
        """
        answers, place = self._waiting_answer(example)
        answers.answered[place] = False
        self.dropped += 1
        self._replace(answers, place)

    def step(self, source: AttributeSource) -> bool:
        """Return whether a source had answers to the open query, after buying them."""
        answers = self._open()
        if answers is None:
            return False
        waiting = np.flatnonzero(~answers.answered)
        examples = source.draw(waiting.size)
        drawn = len(examples)
        if not drawn:
            return False
        # targets that are known are checked before anything is paid, the others as each of them comes
        self.algorithm.check_targets(np.array([y for y in examples.known_targets() if y is not None]))
        x, y = examples.answers(answers.indices, self.algorithm.check_targets)
        filled = waiting[: len(y)]
        answers.x[filled], answers.y[filled], answers.answered[filled] = x, y, True
        self._pay(answers.indices, examples.paid)
        self.dropped += examples.paid - len(y)
        self._shorten(drawn - len(y))
        self._absorb_if_complete(answers)
        return True

    def iterate(self, source: AttributeSource) -> Iterator[AlgorithmState]:
        """Run as an iterator: the present state, and then each with new coefficients, until the source or learner ends.

        Parameters
        ----------
        source : AttributeSource
            The examples, whose attributes are bought.

        Yields
        ------
        AlgorithmState
            The state after an update.
        """
        yield self.state
        updates = self.state.updates
        while self.step(source):
            if self.state.updates != updates:
                updates = self.state.updates
                yield self.state

    def run(self, source: AttributeSource) -> LearningResult:
        """Return what is learned from a source until it is empty, or all updates are made."""
        for _ in self.iterate(source):
            pass
        left, status = source.remaining, self._status
        unused = f"; the last {left} are too few for another update" if left and status is Status.SOURCE_EMPTY else ""
        bought = f"{self.meter.examples} examples, {self.meter.attributes} attributes"
        return replace(self.result(f"{self._end}{unused} ({bought})"), meter=source.meter)

    def result(self, message: str) -> LearningResult:
        """Return what has been learned so far, with a message that says why learning ended."""
        state, failure_reason = self.finalize()
        return LearningResult(
            w=state.w,
            intercept=state.intercept,
            support=state.support,
            status=self._status,
            message=message,
            meter=self.meter,
            learning_curve=self.curve.columns(),
            learner=self,
            failure_reason=failure_reason,
        )

    def final_state(self) -> AlgorithmState:
        """Return the best state that can be computed from all answers: see `finalize`."""
        return self.finalize()[0]

    @without_overflow_warnings
    @serial_blas()
    def finalize(self) -> tuple[AlgorithmState, str]:
        """Return the best state that can be computed from all answers, and why it cannot be relied on, empty if it can.

        The answers to half a query are used, and the learner itself does not change. If it diverged, the state is the
        one that predicted best before; if the coefficients overflow now, it is the last one.
        """
        state = self.state
        if self.diverged:
            return (state if self.best is None else self.best), self._end
        answers = self.answers
        if answers is not None and np.any(answers.answered):
            x, y = answers.x[answers.answered], answers.y[answers.answered]
            state = self.algorithm.absorb(self.cost_model, state, answers.indices, x, y)
        if state.finite:
            state = self.algorithm.finalize(self.cost_model, state)
        if not state.finite:
            return self.state, self._divergence
        return state, self._failure_reason(state)

    def _failure_reason(self, final: AlgorithmState) -> str:
        """Return why a finite state cannot be relied on; empty if nothing is known against it."""
        if self.dropped > self.meter.examples / 2:
            return (
                f"{self.dropped} of {self.meter.examples} examples were paid for and dropped, because something that "
                "was asked for could not be had; leave out the attributes that are often missing"
            )
        # judge by all answers that came, also those of an incomplete query; then by what `finalize` found
        with_open_query = replace(self.state, seen=self.meter.examples - self.dropped)
        return (
            self.algorithm.failure_reason(with_open_query)
            or self.algorithm.failure_reason(final)
            or self.curve.failure_reason
        )

    def __repr__(self) -> str:
        bought = f"{self.meter.examples} examples, {self.meter.attributes} attributes"
        return f"Learner({self.algorithm!r}, {bought}, {self.state.support.size} chosen)"

    def forget_length(self) -> None:
        """Continue with a stream of unknown length: learn from the answers to half a query, and forget the length."""
        if self.state.length is None or self.diverged:
            return
        if self.answers is not None and np.any(self.answers.answered):
            self.absorb(self.answers)
        self.answers = None
        if not self.diverged:
            self.state = self.algorithm.without_length(self.cost_model, self.state)

    def _open(self) -> Answers | None:
        """Return the answers so far to the open query; None when there is no query."""
        if self.answers is None:
            query = self.query
            if query is None:
                return None
            n = query.count
            ids = list(range(self.next_example, self.next_example + n))
            self.next_example += n
            self.answers = Answers(
                query.indices, ids, np.zeros((n, query.indices.size)), np.zeros(n), np.zeros(n, bool)
            )
        return self.answers

    def _question(self, example: Any) -> tuple[Answers, int]:
        """Return the open query, and the place of an example among its questions."""
        self.ask()  # opens the next query, and raises if the learner is done
        answers = self.answers
        assert answers is not None
        if not (is_integer(example) and example in answers.ids):
            waiting = [id_ for id_, _ in self.questions(3)]
            raise InvalidInputError(f"no question about example {example!r} is open; open are {waiting}, see ask()")
        place = answers.ids.index(example)
        if answers.answered[place]:
            raise InvalidInputError(f"example {example} was answered before; the next question is {self.questions()}")
        return answers, place

    def _waiting_answer(self, example: Any) -> tuple[Answers, int]:
        """Return the open query, and the place of an example that has answered it."""
        answers = self.answers
        if answers is not None and is_integer(example) and example in answers.ids:
            place = answers.ids.index(example)
            if answers.answered[place]:
                return answers, place
        raise InvalidInputError(f"example {example!r} has no answer that still waits to be learned from")

    def _checked_answer(self, example: int, values: Any, y: Any, answers: Answers) -> tuple[Array, float]:
        """Return an answer as finite numbers that can be squared, with a target that the algorithm takes."""
        row = _checked_row(values, answers.indices, example)
        target = as_target(y, example)
        if abs(target) > LARGEST:
            raise InvalidInputError(f"the target of example {example} is {target:g}; {_TOO_LARGE}")
        self.algorithm.check_targets(np.array([target]))
        return row, target

    def _replace(self, answers: Answers, place: int) -> None:
        """Ask the next new example in place of one that cannot be had."""
        answers.ids[place] = self.next_example
        self.next_example += 1
        self._shorten(1)

    @property
    def _status(self) -> Status:
        """Why it has no more questions, or why it would end now."""
        if self.diverged:
            return Status.DIVERGED
        return Status.ENOUGH if self.algorithm.finished(self.state) else Status.SOURCE_EMPTY

    @property
    def _end(self) -> str:
        return self._divergence if self.diverged else self._status.sentence

    @property
    def _divergence(self) -> str:
        return Status.DIVERGED.sentence if self.algorithm.takes_steps else _OVERFLOW

    def _pay(self, indices: Array, count: int) -> None:
        self.meter.draw(count)
        self.meter.add(self.cost_model.purchase(indices), count)

    def _shorten(self, count: int) -> None:
        """Reduce the length of the stream by examples that cannot be had."""
        if count and self.state.length is not None:
            self.state = replace(self.state, length=self.state.length - count)

    def _absorb_if_complete(self, answers: Answers) -> None:
        if np.all(answers.answered):
            self.absorb(answers)
            self.answers = None

    @without_overflow_warnings
    @serial_blas()
    def predictions(self, indices: Array, x: Array) -> Array:
        """Return what the present coefficients predict from values of some attributes, which include the support."""
        support = self.state.support
        linear = x[:, np.searchsorted(indices, support)] @ self.state.w[support] + self.state.intercept
        return self.algorithm.response(linear)

    @without_overflow_warnings
    @serial_blas()
    def absorb(self, answers: Answers) -> None:
        """Predict, and then learn from, the answers to a query that have come."""
        x, y, before = answers.x[answers.answered], answers.y[answers.answered], self.state
        errors = y - self.predictions(answers.indices, x)
        self.curve.add(errors, y, self.meter.examples, self.meter.attributes)
        state = self.algorithm.absorb(self.cost_model, before, answers.indices, x, y)
        self.diverged = not state.finite or (self.algorithm.takes_steps and self.curve.exploded)
        if self.diverged:
            return
        self.state = state
        if self.algorithm.takes_steps and state.updates != before.updates and self.curve.latest < self.least_error:
            self.best, self.least_error = before, self.curve.latest


@stored("result/observation", upgrades=[renames(trouble="failure_reason")])
@dataclass(frozen=True)
class LearningResult:
    """The result of learning from a source.

    Attributes
    ----------
    w : array, shape (d,)
        The coefficients.
    intercept : float
        The intercept.
    support : int array
        The increasing indices of the non-zeros.
    status : Status
        Why the run ended.
    message : str
        The same with its numbers.
    meter : Meter
        What the source sold: ``attributes``, ``examples``, ``max_per_example``, ``money``.
    learning_curve : dict of arrays
        "examples" and "attributes" used, and the mean "squared_error" of predictions made before learning from them.
    learner : Learner
        The learner, which can continue with more examples.
    failure_reason : str
        Why the coefficients cannot be relied on; empty if nothing is known against them.
    """

    w: Array
    intercept: float
    support: Array
    status: Status
    message: str
    meter: Meter
    learning_curve: dict[str, Array]
    learner: Learner = field(repr=False)
    failure_reason: str = ""

    def __repr__(self) -> str:
        return f"LearningResult({self.support.size} of {self.w.size} attributes, {self.status.name}): {self.message}"


def learn(
    algorithm: Algorithm[Any], source: AttributeSource, w0: Sequence[float] | Array | None = None
) -> LearningResult:
    """Learn from a source until it is empty, or all updates are made.

    Parameters
    ----------
    algorithm : Algorithm
        What chooses the attributes and learns from them.
    source : AttributeSource
        The source, whose examples are used up.
    w0 : array, shape (d,), optional
        The starting point; by default 0.

    Returns
    -------
    LearningResult
        The coefficients, why the run ended, and the learner, which can continue.

    Raises
    ------
    InvalidInputError, CapabilityError
        If settings do not fit the source; nothing has been bought then.

    Notes
    -----
    Cost: one pass over the examples. Guarantee: no example costs more than the budget; the rest is the algorithm's.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import AdaptiveHybrid, ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((4000, 12))
    >>> result = learn(AdaptiveHybrid(n_nonzero_coefs=2), ArraySource(X, X[:, 1] - X[:, 7], n_observed=6))
    >>> result.support, result.meter.max_per_example
    (array([1, 7]), 6)
    """
    return Learner.for_source(algorithm, source, w0).run(source)


def _checked_row(values: Any, indices: Array, example: int) -> Array:
    """Return the values of an example as finite float64 numbers, one for each attribute, that can be squared."""

    def named(place: int) -> str:
        return f"attribute {indices[place]}"

    row = as_numbers(values, indices.size, f"example {example}", named, f"measure it again, or skip({example})")
    bad = np.flatnonzero(np.abs(row) > LARGEST)
    if bad.size:
        raise InvalidInputError(f"{named(bad[0])} of example {example} is {row[bad[0]]:g}; {_TOO_LARGE}")
    return row
