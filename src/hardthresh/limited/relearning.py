"""Learning again from answers that were corrected, after the questions that were asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hardthresh.core.errors import HardThreshError
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .algorithms.retraced import Choice, retraced, same_questions
from .learner import Answers, Learner
from .meter import Meter


@stored("learner/batch")
@dataclass(frozen=True, eq=False)
class Batch:
    """Answers that were learned from together, without their values, and the learner afterwards.

    Attributes
    ----------
    examples : int array, shape (n,)
        The examples.
    indices : int array
        The attributes that were asked for.
    choice : Choice
        What the algorithm chose when it absorbed them.
    meter : Meter
        What everything had cost by then.
    next_example, dropped : int
        As in `Learner`, afterwards.
    length : int or None
        The length of the stream, afterwards.
    """

    examples: Array
    indices: Array
    choice: Choice
    meter: Meter
    next_example: int
    dropped: int
    length: int | None

    @classmethod
    def between(cls, before: Any, answers: Answers, learner: Learner) -> Self:
        """Return the record of answers that a learner has just absorbed, by its state before."""
        state: Any = learner.state
        return cls(
            examples=np.array(answers.ids, dtype=np.int64),
            indices=answers.indices,
            choice=Choice.between(before, state),
            meter=replace(learner.meter),
            next_example=learner.next_example,
            dropped=learner.dropped,
            length=state.length,
        )


@dataclass(frozen=True)
class BatchValues:
    """The values of a batch as they are known now.

    Attributes
    ----------
    kept : bool array, shape (n,)
        The examples that were not withdrawn.
    x : array, shape (kept, len(indices))
        Their attributes.
    y : array, shape (kept,)
        Their targets.
    """

    kept: Array
    x: Array
    y: Array


@dataclass(frozen=True)
class Lesson:
    """What came of a batch that was learned from again.

    Attributes
    ----------
    predictions : array
        Of the examples that were kept, made before the batch was learned from.
    support : int array
        The attributes of the predictor afterwards.
    """

    predictions: Array
    support: Array


def relearned(learner: Learner, batches: Iterable[tuple[Batch, BatchValues]]) -> tuple[Learner, list[Lesson]]:
    """Return a learner that has learned the present values, batch by batch, and what came of each batch.

    The questions and the supports of the past are those that were asked and chosen; the coefficients, and every choice
    from now on, are those of the present values. Withdrawn examples are as if they had not been there.

    Parameters
    ----------
    learner : Learner
        The learner that asked; it does not change.
    batches : iterable of (Batch, BatchValues)
        All that it has learned from, in order.

    Returns
    -------
    learner : Learner
        As it is after the last batch, without answers to the open query.
    lessons : list of Lesson
        One for each batch.

    Raises
    ------
    CapabilityError
        If its algorithm is not `AdaptiveHybrid` or `LogisticHybrid`.
    HardThreshError
        If the learner would ask other questions now, as after answers to another version of the algorithm.
    """
    algorithm, cost_model = learner.algorithm, learner.cost_model
    lessons = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of was said when the learner began
        again: Learner | None = None
        for batch, values in batches:
            if again is None:
                again = Learner.of(algorithm, cost_model, length=batch.length)
            again.algorithm = retraced(algorithm, batch.choice, int(np.count_nonzero(~values.kept)))
            again.state = replace(again.state, length=batch.length)
            again.meter = replace(batch.meter)
            again.next_example, again.dropped = batch.next_example, batch.dropped
            predictions = again.predictions(batch.indices, values.x)
            ids = batch.examples[values.kept].tolist()
            again.absorb(Answers(batch.indices, ids, values.x, values.y, np.ones(len(ids), dtype=bool)))
            lessons.append(Lesson(predictions, again.state.support))
    if again is None:
        return learner, []
    again.algorithm = algorithm
    state, present = replace(again.state, length=None), replace(learner.state, length=None)
    if not (again.diverged or learner.diverged or same_questions(state, present)):  # type: ignore[arg-type]
        raise HardThreshError(
            "the answers were asked for by another version of the algorithm, so they cannot be learned from again; "
            "install the version of hardthresh that began"
        )
    return again, lessons
