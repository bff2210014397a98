"""What a study has learned from: the answers in their order, the predictions made before, and the chosen attributes."""

from __future__ import annotations

from dataclasses import dataclass

from hardthresh.core.typing import Array


@dataclass(frozen=True, eq=False)
class Learned:
    """The examples that a study has learned from, in this order, one row for each.

    Attributes
    ----------
    questions : int array, shape (n,)
        The number of the question about each example.
    values : array, shape (n, d)
        Its attributes, NaN where not observed.
    target : array, shape (n,)
        Its target; of two classes 0 or 1.
    prediction : array, shape (n,)
        The prediction made before it was learned from; of two classes the probability of 1.
    batch : int array, shape (n,)
        The batch in which it was learned from, from 0.
    chosen : tuple of int array
        The support after each batch.
    money : array, shape (n,)
        What it cost.
    columns : tuple of str
        The names of the d columns.
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
