"""Sums over held-out rows of a table in blocks, for the scores of models that were fitted without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .block_folds import BlockFolds, weights_of
from .block_rows import Point, rows_of
from .readings import Sums


def held_out_gains(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    models: Sequence[tuple[Point, Point]],
    loss: Any,
) -> Sums:
    r"""Return the moments of the gains of a model over another on the rows that each fold holds out: a task.

    Parameters
    ----------
    models : sequence of (Point, Point)
        For each fold the model without features and another one.

    Returns
    -------
    sums : array, shape (6,)
        :math:`\sum w, \sum w g, \sum w g^2` for the gains g, and the same with squared weights.
    """
    own, sums = folds.of(number, column, X.shape[0]), np.zeros(6)
    for fold, (null, model) in enumerate(models):
        for rows in rows_of(X, y, weights_of(fold, own, weight), offset):
            losses = (loss.value(rows.y, point.predict(rows.X, rows.offset)) for point in (null, model))
            gain = next(losses) - next(losses)
            for start, size in ((0, rows.weight), (3, rows.weight**2)):
                sums[start : start + 3] += [size.sum(), size @ gain, size @ gain**2]
    return (sums,)
