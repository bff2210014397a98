"""Learning again after answers were corrected: the questions of the past stay, and the coefficients are recomputed."""

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
    """A record of answers that were learned from together, without their values.

    Attributes
    ----------
    examples : int array, shape (n,)
        The examples.
    indices : int array
        The attributes that the questions named.
    choice : Choice
        The choice of the algorithm when it absorbed them.
    meter : Meter
        The total cost afterwards.
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
        """Return the record of answers that a learner has just absorbed; `before` is its previous state."""
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
    """The present values of a batch, after corrections.

    Attributes
    ----------
    kept : bool array, shape (n,)
        False for examples that were withdrawn.
    x : array, shape (n_kept, len(indices))
        The attributes of the other examples.
    y : array, shape (n_kept,)
        The targets of the other examples.
    """

    kept: Array
    x: Array
    y: Array


@dataclass(frozen=True)
class Lesson:
    """The result of learning from a batch again.

    Attributes
    ----------
    predictions : array
        Predictions of the examples that were kept, made before the batch was learned from.
    support : int array
        The attributes of the predictor afterwards.
    """

    predictions: Array
    support: Array


def relearned(
    learner: Learner, batches: Iterable[tuple[Batch, BatchValues]], length: int | None = None
) -> tuple[Learner, list[Lesson]]:
    """Return a learner that has learned from the corrected values, and the result of each batch.

    The questions and supports of the past do not change, because there are no answers to other questions. The
    coefficients are computed from the corrected values, and so is every later choice. Withdrawn examples are ignored.

    Parameters
    ----------
    learner : Learner
        The learner that the answers belong to; it does not change.
    batches : iterable of (Batch, BatchValues)
        All batches that it has learned from, in order.
    length : int, optional
        The length of the stream when the learner began, as it was given to `Learner.of`.

    Returns
    -------
    learner : Learner
        Its state after the last batch, without answers to the open query.
    lessons : list of Lesson
        One for each batch.

    Raises
    ------
    CapabilityError
        If the algorithm of the learner is not `AdaptiveHybrid` or `LogisticHybrid`.
    HardThreshError
        If the learner would return other questions now: another version of the algorithm asked the past ones.
    """
    algorithm, cost_model = learner.algorithm, learner.cost_model
    lessons = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the learner gave these warnings when it was created
        again: Learner | None = None
        for batch, values in batches:
            if again is None:
                again = Learner.of(algorithm, cost_model, length=length)
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
