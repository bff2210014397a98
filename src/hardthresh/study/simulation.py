"""A study as it would run on a complete table: the learner of the study, with the rows as the answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited import Algorithm, ArraySource, CostModel, Learner

from .records import Learned


def simulate(
    algorithm: Algorithm[Any],
    cost_model: CostModel,
    X: Array,
    y: Array,
    *,
    length: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> tuple[Learned, Learner]:
    """Return what a study learns from the rows of a table, taken in their order, and its learner.

    Parameters
    ----------
    algorithm : Algorithm
        What chooses the attributes.
    cost_model : CostModel
        Prices and the budget for one example.
    X : array, shape (n, d)
        The complete rows, of which only what the learner asks for is read. A row that has NaN there was paid for, and
        is dropped.
    y : array, shape (n,)
        The targets.
    length : int, optional
        The number of examples that the study is planned for; by default it is not known.
    columns : tuple of str, optional
        The names of the columns; by default their numbers.

    Returns
    -------
    learned : Learned
        The rows of all complete batches.
    learner : Learner
        The learner after all rows, whose `finalize` uses the last, incomplete batch too.
    """
    source = ArraySource(X, y, cost_model=cost_model, shuffle=False)
    learner = Learner.of(algorithm, cost_model, length=length)
    values = np.full(X.shape, np.nan)
    prediction, batch, money = np.zeros(len(y)), np.full(len(y), -1), np.zeros(len(y))
    chosen: list[Array] = []
    waiting: list[int] = []
    for first, count, query, before in _steps(learner, source):
        rows = np.arange(first, first + count)
        there = rows[np.all(np.isfinite(X[np.ix_(rows, query)]), axis=1)]
        values[np.ix_(there, query)] = X[np.ix_(there, query)]
        linear = X[np.ix_(there, before.support)] @ before.w[before.support] + before.intercept
        prediction[there] = algorithm.response(linear)
        money[there] = cost_model.cost(query)
        waiting += there.tolist()
        if learner.answers is None:
            batch[waiting] = len(chosen)
            chosen.append(learner.state.support)
            waiting = []
    kept = np.flatnonzero(batch >= 0)
    names = tuple(map(str, range(X.shape[1]))) if columns is None else columns
    learned = Learned(
        questions=kept,
        values=values[kept],
        target=np.asarray(y, dtype=np.float64)[kept],
        prediction=prediction[kept],
        batch=batch[kept],
        chosen=tuple(chosen),
        money=money[kept],
        columns=names,
        is_class=algorithm.target == "class",
    )
    return learned, learner


def _steps(learner: Learner, source: ArraySource) -> Any:
    """Yield the rows of each step, first and count, what was asked of them, and the state before it."""
    while questions := learner.questions(1):
        before, first = learner.state, source.meter.examples
        if not learner.step(source):
            return
        yield first, source.meter.examples - first, questions[0][1], before
