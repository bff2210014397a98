"""The objective of a table in blocks for the settings of an estimator: one output, several outputs, or classes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.designs import Engine, Rows
from hardthresh.losses import Loss, Multinomial, MultiTask
from hardthresh.losses.log_link import LogLink
from hardthresh.objectives import blocked_classes, blocked_model, blocked_outputs
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.block_rows import NO_TARGETS, Point, check_offset
from hardthresh.objectives.guess import simple_guess, some_rows, taken
from hardthresh.solvers.pilot import LEAST_ROWS, pilot, pilot_of_classes

from .posed import Asked, Posed
from .validation import check_some_above_zero

MOST_GROUPED = 2048
"""Columns of a table in blocks of which groups are chosen: their Hessian is held. Its size is arbitrary: 32 MB."""
MOST_OF_CLASSES = 256
"""Columns of a table in blocks of which folds of more than two classes are searched: all are kept where the blocks are.
As many as searches for other losses keep beside some for each feature."""
FEWEST_PRODUCTS = 256
"""Up to so many columns the first reading of least squares computes all products, and is the last. They are 2 d
operations for each entry that is read; where that pays depends on the disc. Arbitrary."""
_OF_A_PATH = 30
"""The number of columns that a pilot fits where a criterion is to choose it: the largest that is compared at first."""


def pose_blocks(
    engine: Engine, asked: Asked, folds: BlockFolds | None, chosen: np.ndarray | None, last: Point | None
) -> Posed:
    """Return the objective of a table in blocks, after a pilot and the first reading.

    Parameters
    ----------
    engine : Engine
        The table.
    asked : Asked
        The settings.
    folds, chosen, last :
        As those of `BlockTable`.

    Raises
    ------
    CapabilityError
        For losses of all rows together, several outputs of a loss that is not squared, folds of more than two classes
        of more than 256 columns, and several outputs, more than two classes and groups of more than 2048 columns.
    InvalidInputError
        For blocks without targets, and as `hardthresh.objectives.blocked_model`.
    """
    loss, d = asked.loss, engine.blocks.n_columns
    if isinstance(loss, Multinomial):
        return _pose_classes(engine, asked, folds)
    if not isinstance(loss, Loss | MultiTask):
        raise CapabilityError(
            f"the {type(loss).__name__} loss is not computed over blocks, only losses of one number for each row such "
            "as 'squared', 'logistic' and 'poisson'; give rows that fit into memory, or one output at a time"
        )
    if asked.grouped and d > MOST_GROUPED:
        raise CapabilityError(
            f"groups are chosen over blocks of at most {MOST_GROUPED:,} columns, X has {d:,}; choose single columns, "
            "or give rows that fit into memory"
        )
    size = min(asked.k or _OF_A_PATH, d)
    rows = some_rows(engine, LEAST_ROWS * (size + 1), folds)
    if outputs_of(rows):
        return _pose_outputs(engine, asked, folds, rows)
    assert isinstance(loss, Loss)  # that of several outputs is asked for where rows are known to have them
    all_products, guess = loss.quadratic and (d <= FEWEST_PRODUCTS or asked.grouped), None
    fit = partial(
        pilot, loss=_loss_of_pilot(asked, rows, size), constraint=asked.constraint, k=size, ridge=asked.ridge,
        intercept=asked.fit_intercept, scale=asked.scale, centre=asked.fit_intercept, last=last,
    )  # fmt: skip
    if chosen is not None:
        all_products, guess = False, simple_guess(rows, loss, chosen)
    elif not all_products:
        guess = fit(rows)
    if folds is not None:
        members = [np.arange(d)] * (folds.count + 1)
        if guess is not None:
            own = [fit(taken(rows, np.flatnonzero(rows.fold != fold))).members for fold in range(folds.count)]
            members = [*own, guess.members]
            guess = replace(guess, members=np.unique(np.concatenate(members)))
        folds = replace(folds, members=tuple(members))
    del rows  # which the first reading needs no more
    model = blocked_model(
        engine, loss, l2=asked.ridge, intercept=asked.fit_intercept, scale=asked.scale, guess=guess,
        products=all_products, folds=folds,
    )  # fmt: skip
    if isinstance(loss, LogLink) and asked.fit_intercept:
        check_some_above_zero(bool(model.moments.target_mean > 0))
    return _posed(model, model.units.level)


def _loss_of_pilot(asked: Asked, rows: Rows, k: int) -> Any:
    """Return the loss with which some rows are searched: with a parameter that their targets tell, if there is one."""
    y, weight = np.asarray(rows.y, dtype=np.float64), rows.weight
    check_offset(rows.offset, y.shape[1:])
    r = y if rows.offset is None else y - rows.offset
    if asked.loss_of_rows is None or r.size < 2 or not np.isfinite(r).all():  # which the first reading refuses
        return asked.loss
    weights = np.ones(r.size) if weight is None else np.asarray(weight, dtype=np.float64)
    return asked.loss_of_rows(r, weights / weights.sum(), k)


def _pose_outputs(engine: Engine, asked: Asked, folds: BlockFolds | None, rows: Rows) -> Posed:
    """Return the objective of a table in blocks with several outputs, after the first reading.

    Parameters
    ----------
    engine, asked, folds :
        As for `pose_blocks`.
    rows : Rows
        Some rows, which have the targets.
    """
    d = engine.blocks.n_columns
    if not asked.loss.quadratic:
        raise CapabilityError(
            f"several outputs of the {type(asked.loss).__name__} loss are not fitted over blocks; give one at a time"
        )
    if d > MOST_GROUPED:
        raise CapabilityError(
            f"several outputs are fitted over blocks of at most {MOST_GROUPED:,} columns, X has {d:,}; give one at a "
            "time, or rows that fit into memory"
        )
    guess = simple_guess(rows, asked.loss, np.arange(d))
    model = blocked_outputs(
        engine, l2=asked.ridge, intercept=asked.fit_intercept, scale=asked.scale, centre=asked.fit_intercept,
        guess=guess, folds=folds,
    )  # fmt: skip
    return _posed(model, np.asarray(model.units.level, dtype=model.units.dtype))


def pose_training(model: Any, asked: Asked, fold: int) -> Posed:
    """Return the objective of the rows that a fold trains on, from the sums of a model of all rows; of all with -1."""
    found = model.training_model(fold, asked.ridge, intercept=asked.fit_intercept, scale=asked.scale)
    return _posed(found, np.asarray(found.units.level, dtype=found.units.dtype))


def _pose_classes(engine: Engine, asked: Asked, folds: BlockFolds | None) -> Posed:
    """Return the objective of a table in blocks with more than two classes, after a pilot and the first reading."""
    d, loss = engine.blocks.n_columns, asked.loss
    if folds is not None and d > MOST_OF_CLASSES:
        raise CapabilityError(
            f"more than two classes are cross-validated over blocks of at most {MOST_OF_CLASSES:,} columns, X has "
            f"{d:,}; fit SparseLogisticRegression, whose criterion chooses the number of features, or each class "
            "against the rest"
        )
    if d > MOST_GROUPED:
        raise CapabilityError(
            f"more than two classes are fitted over blocks of at most {MOST_GROUPED:,} columns, X has {d:,}; fit each "
            "class against the rest, or give rows that fit into memory"
        )
    size = min(asked.k or _OF_A_PATH, d)
    settings = {"intercept": asked.fit_intercept, "scale": asked.scale}
    guess = pilot_of_classes(
        some_rows(engine, LEAST_ROWS * (size + 1)), loss,
        lambda k, inverse_scale: asked.constraint(k, inverse_scale, loss.n_classes),
        size, ridge=asked.ridge, **settings,
    )  # fmt: skip
    if folds is not None:
        guess = replace(guess, members=np.arange(d))
    model = blocked_classes(engine, loss.n_classes, l2=asked.ridge, guess=guess, folds=folds, **settings)
    return _posed(model, np.asarray(model.units.level, dtype=model.units.dtype))


def _posed(model: Any, level: Any) -> Posed:
    """Return a model with its units, in the precision of X, and the level of its predictions."""
    mean, inverse_scale = (part.astype(model.units.dtype) for part in (model.units.mean, model.units.inverse_scale))
    return Posed(model, mean, inverse_scale, level, model.moments.with_offset)


def outputs_of(rows: Rows) -> tuple[int, ...]:
    """Return the shape of the targets of a row; blocks without targets are refused, or where these are no numbers."""
    if rows.y is None:
        raise InvalidInputError(NO_TARGETS)
    if rows.y.ndim > 2 or 0 in rows.y.shape[1:]:
        raise InvalidInputError(f"y must have shape (n,) or (n, n_outputs), that of some rows is {rows.y.shape}")
    if rows.y.dtype.kind not in "fiub":
        raise InvalidInputError(f"y must be numeric, got dtype {format_value(str(rows.y.dtype))}")
    return tuple(rows.y.shape[1:])
