"""The conversation between a solver that buys what it sees and whoever answers: a source, a person, a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.core.result import Status
from hardthresh.core.schema import stored
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array, is_integer

from .contract import ObservationSolver, ObservationState, Request
from .cost_model import Market
from .learning_curve import LearningCurve
from .meter import Meter
from .sources import AttributeSource


@stored("learner/answers")
@dataclass
class Answers:
    """What was answered to one request; the order of answers does not matter.

    Attributes
    ----------
    indices : int array
        The attributes that were asked for, increasing.
    ids : list of int
        The examples that were asked about.
    x, y : array
        A row of values, and a target, for each of them.
    told : bool array
        Which of them have been answered.
    """

    indices: Array
    ids: list[int]
    x: Array
    y: Array
    told: Array


@stored("learner/solver")
@dataclass
class Learner:
    """Asks about one example after the other, and learns from the answers.

    Nothing but what was told is ever used, so a learner that was stored (`hardthresh.save`) goes on after an
    interruption as if there had been none: it asks again for what it had not been told.

    Attributes
    ----------
    solver : ObservationSolver
        The algorithm.
    market : Market
        Attributes, prices and budget.
    state : ObservationState
        What the algorithm made of the answers.
    meter : Meter
        What they cost.
    curve : LearningCurve
        How well it predicted them.
    answers : Answers or None
        The answers to the request under way.
    next_example : int
        The number of the next new example.
    diverged : bool
        Whether it gave up, as the coefficients exploded; `state` is the one before they did.
    dropped : int
        How many examples were paid for without being learned from, as something could not be had.
    best : ObservationState or None
        Of a solver that takes steps, the coefficients that predicted the examples after them best.
    least : float
        The mean squared error of these predictions.
    """

    solver: ObservationSolver
    market: Market
    state: ObservationState
    meter: Meter
    curve: LearningCurve = field(default_factory=LearningCurve)
    answers: Answers | None = None
    next_example: int = 0
    diverged: bool = False
    dropped: int = 0
    best: ObservationState | None = None
    least: float = inf

    @classmethod
    def of(
        cls, solver: ObservationSolver, market: Market, w0: Array | None = None, length: int | None = None
    ) -> Learner:
        """Return a learner that has heard nothing."""
        return cls(solver, market, solver.start(market, w0, length), Meter(market))

    @property
    def request(self) -> Request | None:
        """What it wants to observe; None when it is done."""
        return None if self.diverged else self.solver.request(self.market, self.state)

    @property
    def done(self) -> bool:
        """Whether it has no more questions."""
        return self.request is None

    def questions(self, count: int = 1) -> list[tuple[int, Array]]:
        """Return up to `count` >= 1 open questions, (example, indices) each, to be answered in any order, hours later.

        It asks the same until it is told the answer, or that there is none (`skip`). It can have fewer open questions
        than `count` (one at least, until it is done): the next ones may depend on the answers.
        """
        if not (is_integer(count) and count >= 1):
            raise InvalidInputError(f"the number of questions must be an integer >= 1, got {count!r}")
        answers = self._open()
        if answers is None:
            return []
        waiting = [id_ for id_, told in zip(answers.ids, answers.told, strict=True) if not told]
        return [(id_, answers.indices.copy()) for id_ in waiting[:count]]

    def ask(self) -> tuple[int, Array]:
        """Return the example, counted from 0, and the increasing indices of its attributes to observe.

        Raises
        ------
        HardThreshError
            If it is done.
        """
        self._under_way()
        return self.questions()[0]

    def tell(self, example: int, values: Any, y: float) -> None:
        """Answer a question: the attributes of an example, in the order they were asked for, and its target.

        Raises
        ------
        InvalidInputError
            If there is no such question, it was answered before, or the answer is no list of finite numbers of the
            right length; nothing has changed then.
        """
        place = self._place(example)
        answers = self._under_way()
        row = _numbers(values, f"the values of example {example}")
        if row.shape != answers.indices.shape:
            raise InvalidInputError(
                f"values of shape {row.shape} for example {example}; ({answers.indices.size},) is needed, one for each "
                "attribute asked for"
            )
        for j in np.flatnonzero(~np.isfinite(row)):
            raise InvalidInputError(
                f"attribute {answers.indices[j]} of example {example} is {row[j]}; measure it again, or skip({example})"
            )
        target = _numbers(y, f"the target of example {example}")
        if target.shape != () or not np.isfinite(target):
            raise InvalidInputError(f"the target of example {example} is {y!r}; it must be a finite number")
        self.solver.check_targets(np.atleast_1d(target))
        answers.x[place], answers.y[place], answers.told[place] = row, target, True
        self._count(answers, 1)
        self._absorb_when_whole()

    def skip(self, example: int, *, paid: bool = False) -> None:
        """Say that there will be no answer about an example; another one takes its place.

        Parameters
        ----------
        example : int
            An example with an open question.
        paid : bool
            Whether its attributes were paid for all the same.
        """
        place = self._place(example)
        answers = self._under_way()
        if paid:
            self._count(answers, 1)
            self.dropped += 1
        answers.ids[place] = self.next_example
        self.next_example += 1
        self._shorten(1)

    def learn(self, source: AttributeSource) -> bool:
        """Buy answers to the request under way from a source; return whether there were any to be had."""
        answers = self._open()
        if answers is None:
            return False
        waiting = np.flatnonzero(~answers.told)
        examples = source.draw(waiting.size)
        drawn = len(examples)
        if not drawn:
            return False
        self._check_targets(examples.known_targets())
        x, y = examples.answers(answers.indices)
        self.solver.check_targets(y)
        filled = waiting[: len(y)]
        answers.x[filled], answers.y[filled], answers.told[filled] = x, y, True
        self._count(answers, examples.paid)
        self.dropped += examples.paid - len(y)
        self._shorten(drawn - len(y))
        self._absorb_when_whole()
        return True

    @serial_blas()
    def conclusion(self) -> ObservationState:
        """Return what can be made of everything it was told, the answers to half a request included.

        Where the coefficients exploded that is what predicted best before.
        """
        state = self.state
        if self.diverged:
            return state if self.best is None else self.best
        answers = self.answers
        if answers is not None and np.any(answers.told):
            told = answers.told
            with np.errstate(over="ignore", invalid="ignore"):
                state = self.solver.absorb(self.market, state, answers.indices, answers.x[told], answers.y[told])
        return self.solver.conclude(self.market, state)

    def trouble(self, conclusion: ObservationState) -> str:
        """Return why its `conclusion` cannot be relied on, empty if nothing is known; half a request counts."""
        if self.diverged:
            return self._end.sentence
        if self.dropped > self.meter.examples / 2:
            return (
                f"{self.dropped} of {self.meter.examples} examples were paid for and dropped, because something that "
                "was asked for could not be had; leave out the attributes that are often missing"
            )
        heard = replace(self.state, seen=self.meter.examples - self.dropped)
        return self.solver.trouble(heard) or self.solver.trouble(conclusion) or self.curve.trouble

    def __repr__(self) -> str:
        bought = f"{self.meter.examples} examples, {self.meter.attributes} attributes"
        return f"Learner({self.solver!r}, {bought}, {self.state.support.size} chosen)"

    def go_on(self) -> None:
        """Forget how many examples there were to be, as there are more; what was told of a request is learned from."""
        if self.state.length is None or self.diverged:
            return
        if self.answers is not None and np.any(self.answers.told):
            self._absorb(self.answers, self.answers.told)
        self.answers = None
        if not self.diverged:
            self.state = self.solver.endless(self.market, self.state)

    def _check_targets(self, known: Sequence[float | None]) -> None:
        """Refuse targets that cannot be learned from, as far as they are known before anything is paid."""
        self.solver.check_targets(np.array([y for y in known if y is not None and isfinite(y)]))

    def _shorten(self, count: int) -> None:
        """Lower the number of examples there are by those that cannot be had."""
        if count and self.state.length is not None:
            self.state = replace(self.state, length=self.state.length - count)

    def _open(self) -> Answers | None:
        """Return the answers so far to the request under way; None when there is no request."""
        if self.answers is None:
            request = self.request
            if request is None:
                return None
            n = request.count
            ids = list(range(self.next_example, self.next_example + n))
            self.next_example += n
            x, y = np.zeros((n, request.indices.size)), np.zeros(n)
            self.answers = Answers(request.indices, ids, x, y, np.zeros(n, dtype=bool))
        return self.answers

    @property
    def _end(self) -> Status:
        """Why it has no more questions, or why it would end now."""
        if self.diverged:
            return Status.DIVERGED
        return Status.ENOUGH if self.solver.through(self.state) else Status.SOURCE_EMPTY

    def _under_way(self) -> Answers:
        answers = self._open()
        if answers is None:
            raise HardThreshError(f"there is nothing left to ask: {self._end.sentence}")
        return answers

    def _place(self, example: Any) -> int:
        """Return where an example stands among the open questions."""
        answers = self._under_way()
        if not (is_integer(example) and example in answers.ids):
            waiting = [id_ for id_, _ in self.questions(3)]
            raise InvalidInputError(f"no question about example {example!r} is open; open are {waiting}, see ask()")
        place = answers.ids.index(example)
        if answers.told[place]:
            raise InvalidInputError(f"example {example} was told before; the next question is {self.questions()}")
        return place

    def _count(self, answers: Answers, count: int) -> None:
        self.meter.draw(count)
        self.meter.buy(np.empty(0, dtype=np.intp), answers.indices, count)

    def _absorb_when_whole(self) -> None:
        answers = self._under_way()
        if np.all(answers.told):
            self._absorb(answers, answers.told)
            self.answers = None

    @serial_blas()
    def _absorb(self, answers: Answers, told: Array) -> None:
        """Predict, and then learn from, some of the answers."""
        x, y, before = answers.x[told], answers.y[told], self.state
        support = before.support
        with np.errstate(over="ignore", invalid="ignore"):
            linear = x[:, np.searchsorted(answers.indices, support)] @ before.w[support] + before.intercept
            self.curve.add(y - self.solver.response(linear), y, self.meter.examples, self.meter.attributes)
            state = self.solver.absorb(self.market, before, answers.indices, x, y)
        self.diverged = not np.all(np.isfinite(state.w)) or (self.solver.takes_steps and self.curve.exploded)
        if self.diverged:
            return
        self.state = state
        if self.solver.takes_steps and state.updates != before.updates and self.curve.latest < self.least:
            self.best, self.least = before, self.curve.latest


@stored("result/observation")
@dataclass(frozen=True)
class ObservationResult:
    """What came of learning from a source.

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
        What was bought of the source: ``attributes``, ``examples``, ``max_per_example``, ``money``.
    learning_curve : dict of arrays
        "examples" and "attributes" used, and the mean "squared_error" of predictions made before learning from them.
    learner : Learner
        Which can go on with more examples.
    trouble : str
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
    trouble: str = ""

    def __repr__(self) -> str:
        return f"ObservationResult({self.support.size} of {self.w.size} attributes, {self.status.name}): {self.message}"


def learn(learner: Learner, source: AttributeSource) -> Iterator[ObservationState]:
    """Yield the state a learner starts from, and then each with new coefficients, until the source or it is done."""
    yield learner.state
    updates = learner.state.updates
    while learner.learn(source):
        if learner.state.updates != updates:
            updates = learner.state.updates
            yield learner.state


def exhaust(learner: Learner, source: AttributeSource) -> ObservationResult:
    """Let a learner learn from a source until one of them has no more."""
    while learner.learn(source):
        pass
    return _result(learner, learner.conclusion(), source)


class BuyingSolver(ObservationSolver):
    """Base of the solvers that learn from a source."""

    def iterate(self, source: AttributeSource, w0: Sequence[float] | Array | None = None) -> Iterator[ObservationState]:
        """Yield the start state, and then the state after every update, while the source has examples."""
        return learn(Learner.of(self, source.market, w0, source.remaining), source)

    def run(self, source: AttributeSource, w0: Sequence[float] | Array | None = None) -> ObservationResult:
        """Learn from a source until it is empty, or all updates are made.

        Parameters
        ----------
        source : AttributeSource
            Whose examples are used up.
        w0 : array, shape (d,), optional
            The starting point, by default 0.

        Raises
        ------
        InvalidInputError
            If settings do not fit the source.
        """
        return exhaust(Learner.of(self, source.market, w0, source.remaining), source)


def _result(learner: Learner, state: ObservationState, source: AttributeSource) -> ObservationResult:
    left, status = source.remaining, learner._end
    unused = f"; the last {left} are too few for another update" if left and status is Status.SOURCE_EMPTY else ""
    message = f"{status.sentence}{unused} ({learner.meter.examples} examples, {learner.meter.attributes} attributes)"
    trouble = learner.trouble(state)
    return ObservationResult(
        state.w,
        state.intercept,
        state.support,
        status,
        message,
        source.meter,
        learner.curve.columns(),
        learner,
        trouble,
    )


def _numbers(given: Any, what: str) -> Array:
    """Return numbers as a float64 array."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{what} must be numbers, got {given!r}") from error
