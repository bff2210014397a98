"""The learner, which passes the queries of an algorithm to a source or a person, and returns the answers to it."""

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
"""The largest modulus of an attribute or target in `tell`. Its square is 1e300, so 1e7 of them can be added in float64;
the square of 1e155 overflows."""
_TOO_LARGE = f"numbers above {LARGEST:g} in size overflow when they are squared: rescale them"
_OVERFLOW = (
    "squares of the attributes or targets overflow, so this is the model of the examples before: rescale them, targets "
    "of 1e200 by 1e-200 for instance, and begin again"
)


@stored("learner/answers", upgrades=[renames(told="answered")])
@dataclass
class Answers:
    """The answers to one query so far. They may arrive in any order.

    Attributes
    ----------
    indices : int array
        The attributes of the query, increasing.
    ids : list of int
        The numbers of its n examples.
    x : array, shape (n, len(indices))
        The values of the attributes; 0 before the answer.
    y : array, shape (n,)
        The targets; 0 before the answer.
    answered : bool array, shape (n,)
        Which examples have an answer.
    """

    indices: Array
    ids: list[int]
    x: Array
    y: Array
    answered: Array


@stored("learner/solver", upgrades=[renames(solver="algorithm", market="cost_model"), renames(least="least_error")])
@dataclass
class Learner:
    """Passes the queries of an algorithm to a source or a person, and learns from the answers.

    A query concerns several examples; the question about one of them is its number and the attributes to observe. All
    answers to a query are learned from together. The learner depends only on the answers. So it can be stored at any
    time (`hardthresh.save`); after an interruption it returns the unanswered questions again, and learns the same.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm.
    cost_model : CostModel
        Attributes, prices and budget.
    state : AlgorithmState
        The state of the algorithm, with its coefficients.
    meter : Meter
        The cost of the answers.
    curve : LearningCurve
        The errors of predictions that were made before the answers were learned from.
    answers : Answers or None
        The answers to the open query; None if there is no open query.
    next_example : int
        The number of the next new example.
    diverged : bool
        Whether the coefficients diverged, which ends learning; `state` is then the last one before.
    dropped : int
        The number of examples that were paid for but not learned from, because a value was missing.
    best : AlgorithmState or None
        For an algorithm that takes steps, the state with the smallest error of its predictions of the next batch.
    least_error : float
        The mean squared error of these predictions.

    Notes
    -----
    Cost: each answer is used once. Guarantee: no question costs more than the budget for one example; the coefficients
    have the guarantee of the algorithm.

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
        """The next query of the algorithm; None if there are no more questions."""
        return None if self.diverged else self.algorithm.query(self.cost_model, self.state)

    @property
    def done(self) -> bool:
        """Whether there are no more questions."""
        return self.query is None

    def questions(self, count: int = 1) -> list[tuple[int, Array]]:
        """Return up to `count` >= 1 open questions, pairs (example, indices), which can be answered in any order.

        A question stays open until `tell` answers it or `skip` withdraws it. There may be fewer than `count`, because
        later questions may depend on the answers to these. The list is empty only if there are no more questions.

        Raises
        ------
        InvalidInputError
            If `count` is not an integer >= 1.
        """
        if not (is_integer(count) and count >= 1):
            raise InvalidInputError(f"the number of questions must be an integer >= 1, got {count!r}")
        answers = self._open()
        if answers is None:
            return []
        waiting = [id_ for id_, answered in zip(answers.ids, answers.answered, strict=True) if not answered]
        return [(id_, answers.indices.copy()) for id_ in waiting[:count]]

    def ask(self) -> tuple[int, Array]:
        """Return the number of an example, from 0, and the increasing indices of its attributes to observe.

        Raises
        ------
        HardThreshError
            If there are no more questions.
        """
        questions = self.questions()
        if not questions:
            raise HardThreshError(f"there is nothing left to ask: {self._end}")
        return questions[0]

    def tell(self, example: int, values: Any, y: float) -> None:
        """Answer a question: pass the values of the attributes in the order of the question, and the target.

        Raises
        ------
        InvalidInputError
            If no question about this example is open, if the values are not one number for each attribute, if a number
            is not finite or exceeds 1e150 in modulus, or if the algorithm refuses the target. The learner has not
            changed then.
        HardThreshError
            If there are no more questions.
        """
        answers, place = self._question(example)
        row, target = self._checked_answer(example, values, y, answers)
        answers.x[place], answers.y[place], answers.answered[place] = row, target, True
        self._pay(answers.indices, 1)
        self._absorb_if_complete(answers)

    def skip(self, example: int, *, paid: bool | Array = False) -> None:
        """Withdraw the question about an example; a new example replaces it.

        Parameters
        ----------
        example : int
            An example with an open question.
        paid : bool or int array
            Whether the attributes of the question were paid for although there is no answer, or the indices of those
            that were.

        Raises
        ------
        InvalidInputError
            If no question about this example is open, or `paid` has other attributes than the question.
        HardThreshError
            If there are no more questions.
        """
        answers, place = self._question(example)
        bought = (answers.indices if paid else answers.indices[:0]) if isinstance(paid, bool) else np.asarray(paid)
        if not np.all(np.isin(bought, answers.indices)):
            raise InvalidInputError(f"only attributes that were asked for can be paid, got {format_value(paid)}")
        if bought.size:
            self._pay(bought, 1)
            self.dropped += 1
        self._replace(answers, place)

    def pay_late(self, indices: Array, owned: Array) -> None:
        """Pay for attributes of one skipped example that were bought, as it turns out, besides those paid before.

        Parameters
        ----------
        indices : int array
            All attributes of the example that were bought.
        owned : int array
            Those of them that were paid before.

        Raises
        ------
        BudgetError
            If they cost more together than the budget for one example.
        """
        if not owned.size:
            self.meter.draw(1)
            self.dropped += 1
        self.meter.add(self.cost_model.purchase(indices, self.cost_model.whole_panels(owned)), 1)

    def amend(self, example: int, values: Any, y: float) -> None:
        """Replace an answer to the open query, which has not been learned from yet.

        Raises
        ------
        InvalidInputError
            If the open query has no answer about this example, or for values or a target that `tell` refuses.
        """
        answers, place = self._waiting_answer(example)
        row, target = self._checked_answer(example, values, y, answers)
        answers.x[place], answers.y[place] = row, target

    def withdraw(self, example: int) -> None:
        """Remove an answer to the open query, which remains paid for; a new example replaces it.

        Raises
        ------
        InvalidInputError
            If the open query has no answer about this example.
        """
        answers, place = self._waiting_answer(example)
        answers.answered[place] = False
        self.dropped += 1
        self._replace(answers, place)

    def step(self, source: AttributeSource) -> bool:
        """Buy answers to the open query, and return whether there is a query and the source had examples for it.

        Returns
        -------
        bool
            Whether the source had examples.

        Raises
        ------
        InvalidInputError
            If the algorithm refuses a target, or the source a value.
        """
        answers = self._open()
        if answers is None:
            return False
        waiting = np.flatnonzero(~answers.answered)
        examples = source.draw(waiting.size)
        drawn = len(examples)
        if not drawn:
            return False
        # known targets are checked before anything is paid for, and the others when each of them arrives
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
        """Yield the present state, and then each state with new coefficients, until the source or the algorithm ends.

        Parameters
        ----------
        source : AttributeSource
            The source of the examples.

        Yields
        ------
        AlgorithmState
            The present state, and the state after each update.
        """
        yield self.state
        updates = self.state.updates
        while self.step(source):
            if self.state.updates != updates:
                updates = self.state.updates
                yield self.state

    def run(self, source: AttributeSource) -> LearningResult:
        """Learn from a source until it is empty or the algorithm has finished, and return the result.

        Returns
        -------
        LearningResult
            The result.

        Raises
        ------
        InvalidInputError
            If the algorithm refuses a target, or the source a value.
        """
        for _ in self.iterate(source):
            pass
        left, status = source.remaining, self._status
        unused = f"; the last {left} are too few for another update" if left and status is Status.SOURCE_EMPTY else ""
        bought = f"{self.meter.examples} examples, {self.meter.attributes} attributes"
        return replace(self.result(f"{self._end}{unused} ({bought})"), meter=source.meter)

    def result(self, message: str) -> LearningResult:
        """Return the result of all answers so far; `message` says why learning ended."""
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
        """Return the best state that can be computed from all answers, as `finalize` does."""
        return self.finalize()[0]

    @without_overflow_warnings
    @serial_blas()
    def finalize(self) -> tuple[AlgorithmState, str]:
        """Return the best state that can be computed from all answers, and the reason why it cannot be relied on.

        The reason is empty if there is none. Answers to an incomplete query are used; the learner does not change. If
        the learner has diverged, the state is the earlier one with the smallest error (`best`). If the coefficients
        overflow in this call, it is the present state.
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
        """Return why a finite state cannot be relied on; an empty string if there is no such reason."""
        if self.dropped > self.meter.examples / 2:
            return (
                f"{self.dropped} of {self.meter.examples} examples were paid for and dropped, because something that "
                "was asked for could not be had; leave out the attributes that are often missing"
            )
        # count all answers, also those to an incomplete query; then use the result of `finalize`
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
        """Continue with a stream of unknown length: learn from the answers to an incomplete query, and close it."""
        if self.state.length is None or self.diverged:
            return
        if self.answers is not None and np.any(self.answers.answered):
            self.absorb(self.answers)
        self.answers = None
        if not self.diverged:
            self.state = self.algorithm.without_length(self.cost_model, self.state)

    def _open(self) -> Answers | None:
        """Return the answers so far to the open query, after opening it if necessary; None if there is no query."""
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
        """Return the open query, and the position of an example in it that has no answer yet."""
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
        """Return the open query, and the position of an example in it that has an answer."""
        answers = self.answers
        if answers is not None and is_integer(example) and example in answers.ids:
            place = answers.ids.index(example)
            if answers.answered[place]:
                return answers, place
        raise InvalidInputError(f"example {example!r} has no answer that still waits to be learned from")

    def _checked_answer(self, example: int, values: Any, y: Any, answers: Answers) -> tuple[Array, float]:
        """Return an answer as finite numbers that can be squared; raise InvalidInputError for any other answer."""
        row = _checked_row(values, answers.indices, example)
        target = as_target(y, example)
        if abs(target) > LARGEST:
            raise InvalidInputError(f"the target of example {example} is {target:g}; {_TOO_LARGE}")
        self.algorithm.check_targets(np.array([target]))
        return row, target

    def _replace(self, answers: Answers, place: int) -> None:
        """Replace an example of the open query by the next new one."""
        answers.ids[place] = self.next_example
        self.next_example += 1
        self._shorten(1)

    @property
    def _status(self) -> Status:
        """Why learning ended, or why it would end now."""
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
        """Subtract absent or incomplete examples from the length of the stream."""
        if count and self.state.length is not None:
            self.state = replace(self.state, length=self.state.length - count)

    def _absorb_if_complete(self, answers: Answers) -> None:
        if np.all(answers.answered):
            self.absorb(answers)
            self.answers = None

    @without_overflow_warnings
    @serial_blas()
    def predictions(self, indices: Array, x: Array) -> Array:
        """Return the predictions of the present coefficients from attributes `indices`, which include the support."""
        support = self.state.support
        linear = x[:, np.searchsorted(indices, support)] @ self.state.w[support] + self.state.intercept
        return self.algorithm.response(linear)

    @without_overflow_warnings
    @serial_blas()
    def absorb(self, answers: Answers) -> None:
        """Predict the examples of a query that have answers, and then learn from them."""
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
        Why learning ended.
    message : str
        The same as a sentence, with the numbers of examples and attributes.
    meter : Meter
        What was bought: ``attributes``, ``examples``, ``max_per_example``, ``money``.
    learning_curve : dict of arrays
        For each window of examples: "examples" and "attributes", the numbers bought until its end, and
        "squared_error", the mean squared error of predictions that were made before the examples were learned from.
    learner : Learner
        The learner, which can continue with more examples.
    failure_reason : str
        Why the coefficients cannot be relied on; an empty string if there is no such reason.
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
    """Learn from a source until it is empty or the algorithm has finished.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm, which chooses the attributes to observe and learns the coefficients.
    source : AttributeSource
        The source; each example can be used only once.
    w0 : array, shape (d,), optional
        The starting point; by default 0.

    Returns
    -------
    LearningResult
        The coefficients, why the run ended, and the learner, which can continue.

    Raises
    ------
    InvalidInputError, CapabilityError
        If the settings do not fit the source, before anything is bought; InvalidInputError also if the algorithm
        refuses a target, or the source a value.

    Notes
    -----
    Cost: one pass over the examples. Guarantee: no example costs more than the budget; the coefficients have the
    guarantee of the algorithm.

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
