"""What a study returns about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited.relearning import Batch, BatchValues, Lesson

from .question import Question
from .terms import Terms, sum_of_money


@dataclass(frozen=True)
class Receipt:
    """What became of a request.

    Attributes
    ----------
    event : int
        The number of its event.
    number : int
        The number of the question; -1 if it was about the study.
    complete : bool
        Whether all that was asked was told.
    learned : bool
        Whether the example is learned from, at once or with the rest of its batch.
    needed : tuple of str
        The names of what is still to be told.
    cost : float
        What was paid for the example so far.
    """

    event: int
    number: int
    complete: bool = False
    learned: bool = False
    needed: tuple[str, ...] = ()
    cost: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON."""
        return {
            "event": self.event,
            "question": self.number,
            "complete": self.complete,
            "learned": self.learned,
            "needed": list(self.needed),
            "cost": self.cost,
        }


@dataclass(frozen=True)
class Status:
    """How a study stands.

    Attributes
    ----------
    events : int
        The number of the last event.
    asked : int
        Questions that were handed out.
    answered, left_out : int
        Examples that are learned from, at once or with their round; examples that are not, because a value is missing,
        because they were skipped or withdrawn, or because the study was closed first.
    waiting : tuple of int
        Questions with complete answers, which are learned from with the rest of their round.
    to_come : int
        How many answers this round still needs; 0 if no more questions can be asked.
    spent, reserved : float
        What was paid; what the rest of the open questions may cost.
    left : float or None
        What is left of the total budget; None without one.
    open : tuple of Question
        The open questions.
    chosen : tuple of str
        The columns that the predictor needs at present.
    closed : bool
        Whether the study is closed.
    ended : str
        Why no more questions can be asked, although none is open and the study is not closed; empty if they can.
    """

    events: int
    asked: int
    answered: int
    left_out: int
    waiting: tuple[int, ...]
    to_come: int
    spent: float
    reserved: float
    left: float | None
    open: tuple[Question, ...]
    chosen: tuple[str, ...]
    closed: bool
    ended: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, for JSON: the open questions by their numbers."""
        return {
            "closed": self.closed,
            "ended": self.ended,
            "answered": self.answered,
            "left_out": self.left_out,
            "waiting": list(self.waiting),
            "to_come": self.to_come,
            "asked": self.asked,
            "open": [question.number for question in self.open],
            "spent": sum_of_money(self.spent),
            "reserved": sum_of_money(self.reserved),
            "left": None if self.left is None else sum_of_money(self.left),
            "chosen": list(self.chosen),
            "events": self.events,
        }


@dataclass(frozen=True, eq=False)
class Learned:
    """The examples that were learned from, in this order, as they were corrected.

    Attributes
    ----------
    questions : int array, shape (n,)
        The numbers of their questions.
    values : array, shape (n, d)
        The columns, NaN where they were not observed.
    target : array, shape (n,)
        The targets.
    prediction : array, shape (n,)
        Predictions that were made before the example was learned from; of classes the probability of the second.
    batch : int array, shape (n,)
        The batch that they were learned with, from 0.
    chosen : tuple of int arrays
        The columns of the predictor after each batch.
    money : array, shape (n,)
        What each example cost.
    columns : tuple of str
        The names of the columns.
    is_class : bool
        Whether the target is one of two classes.
    """

    questions: Array
    values: Array
    target: Array
    prediction: Array
    batch: Array
    chosen: tuple[Array, ...]
    money: Array
    columns: tuple[str, ...]
    is_class: bool


def learned_examples(terms: Terms, batches: list[tuple[Batch, BatchValues]], lessons: list[Lesson]) -> Learned:
    """Return the examples of some batches, and what came of each batch."""
    d = len(terms.columns)
    count = [int(np.count_nonzero(values.kept)) for _, values in batches]
    table = [np.full((n, d), np.nan) for n in count]
    for rows, (batch, values) in zip(table, batches, strict=True):
        rows[:, batch.indices] = values.x
    costs = [terms.cost_model.cost(batch.indices) for batch, _ in batches]

    def joined(parts: list[Array], dtype: Any = np.float64) -> Array:
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    return Learned(
        questions=joined([batch.examples[values.kept] for batch, values in batches], np.int64),
        values=np.concatenate(table) if table else np.zeros((0, d)),
        target=joined([values.y for _, values in batches]),
        prediction=joined([lesson.predictions for lesson in lessons]),
        batch=np.repeat(np.arange(len(batches)), count),
        chosen=tuple(lesson.support for lesson in lessons),
        money=np.repeat(np.array(costs), count),
        columns=tuple(terms.columns),
        is_class=terms.is_class,
    )
