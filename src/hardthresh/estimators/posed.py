"""The request of an estimator for a table in blocks, and its result: an objective and its units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.constraint import Constraint
from hardthresh.core.typing import Array
from hardthresh.designs import Design
from hardthresh.losses import BaseLoss, Ordinal, VectorLoss
from hardthresh.objectives import LinearModel, MultiOutputModel, OrdinalModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The settings of an objective.

    Attributes
    ----------
    loss : BaseLoss
        The loss.
    k : int
        The number of columns, or of groups; 0 if it is to be chosen.
    ridge : array, shape (d,) or (d + 1,)
        That of each coordinate.
    fit_intercept, scale : bool
        Whether there is an intercept, and whether columns are scaled.
    constraint : callable
        The set of points of k columns, for k and the factors of the columns; of several outputs for their number, too.
    grouped : bool
        Whether it chooses groups of columns.
    scaling : Scaling, or None
        How the columns of rows in memory are standardised; None for their own moments.
    loss_of_rows : callable, or None
        Returns the loss with which a pilot searches some rows for k columns, for their targets less the offset, their
        weights and k; None where it is the loss.
    """

    loss: Any
    k: int
    ridge: np.ndarray
    fit_intercept: bool
    scale: bool
    constraint: Callable[..., Constraint]
    grouped: bool
    scaling: Any
    loss_of_rows: Callable[[np.ndarray, np.ndarray, int], Any] | None = None


@dataclass(frozen=True, slots=True)
class Posed:
    """The objective of a table, and its units.

    Attributes
    ----------
    objective : Objective
        The objective.
    mean, inverse_scale : array, shape (d,)
        What is subtracted from the columns, and the factor afterwards, in the precision of X.
    level : float, or array of shape (n_outputs,)
        The part of the intercept that the objective knows.
    offset_given : bool
        Whether the table has an offset.
    """

    objective: Any
    mean: Array
    inverse_scale: Array
    level: Any
    offset_given: bool


def objective_of(design: Design, y: Any, loss: BaseLoss, **settings: Any) -> Any:
    """Return the objective of a loss: its kind says what a prediction is, and an ordinal one has thresholds besides."""
    if isinstance(loss, Ordinal):
        return OrdinalModel(design, y, **settings)
    if isinstance(loss, VectorLoss):
        return MultiOutputModel(design, y, loss, **settings)
    return LinearModel(design, y, loss, **settings)  # type: ignore[arg-type]
