"""Predictions and scores of fitted models on tables in blocks, of which only the chosen columns are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.designs import Engine
from hardthresh.designs.engine import FOLD
from hardthresh.designs.locating import check_finite, refuse_not_finite
from hardthresh.designs.reading_log import counted_reading
from hardthresh.losses import Multinomial
from hardthresh.losses.location import crossing
from hardthresh.objectives.block_rows import NO_WEIGHT, Point, Scaled
from hardthresh.objectives.class_readings import class_score
from hardthresh.objectives.readings import kept, look, of_output, score, together

from .base import per_row

_NO_NULL_LOSS = "the score of the {} loss with an offset is not computed over blocks; give rows that fit into memory"


def predictors_of_blocks(
    engine: Engine, support: np.ndarray, coef: np.ndarray, intercept: Any, offset: np.ndarray | None
) -> tuple[np.ndarray, bool]:
    """Return X coef + intercept + offset of all rows, one block after another, and whether there is an offset.

    Of files by columns few are read. Of several outputs the predictors have shape (n, n_outputs).

    They are summed in double precision, as columns of a large mean and the intercept cancel, and have that of X.

    Parameters
    ----------
    engine : Engine
        The blocks; their own offsets are added.
    support, coef, intercept :
        Of the linear predictor, or of those of several outputs.
    offset : array, shape (n,) or (n, n_outputs), optional
        Another part of it.

    Raises
    ------
    InvalidInputError
        For entries of these columns, and offsets, that are not finite, and offsets of another shape.
    """
    few, found, point = engine.blocks.select(support), [], _point_of_chosen(support, coef, intercept)
    first, with_offset = 0, offset is not None
    with counted_reading(len(few)) as count:
        for number in range(len(few)):
            rows = few.read(number)
            if rows is not None:
                u = point.predict(rows.X, rows.offset)
                if not np.isfinite(u).all():
                    check_finite(engine.blocks, rows, few.first + number, first, support)
                found.append(u)
                first, with_offset = first + u.shape[0], with_offset or rows.offset is not None
            count(0 if rows is None else rows.nbytes)
    u = np.concatenate(found) if found else np.empty((0, *coef.shape[:-1]))
    known = per_row(offset, u, "offset", coef.shape[:-1])
    return (u if known is None else u + known).astype(few.dtype, copy=False), with_offset


def _point_of_chosen(support: np.ndarray, coef: np.ndarray, intercept: Any) -> Point:
    """Return a linear predictor, or several, of the chosen columns, where a table has these alone."""
    chosen = np.asarray(coef[..., support].T, dtype=np.float64)
    level = np.asarray(intercept, dtype=np.float64) if coef.ndim == 2 else float(intercept)
    return Point(np.arange(support.size), np.zeros(support.size), chosen, level)


@dataclass(frozen=True, slots=True)
class BlocksScore:
    """How well a linear predictor fits a table in blocks, after one reading, or two.

    Attributes
    ----------
    mean_loss : float
        The mean loss of the predictor.
    right : float
        The share of the rows, by weight, on the side of whose class, 0 or 1, it is.
    null_loss : callable
        Returns the mean loss of the best constant; of a loss that is not squared by another reading.
    """

    mean_loss: float
    right: float
    null_loss: Callable[[], float]

    @property
    def d2(self) -> float:
        """The share of deviance that it removes; as `Loss.d2_score`."""
        return _share_removed(self.mean_loss, self.null_loss())

    @property
    def removed(self) -> float:
        """The same."""
        return self.d2


def _share_removed(mean: float, null: float) -> float:
    return 1.0 - mean / null if null else float(mean == 0.0)


def score_of_blocks(engine: Engine, loss: Any, support: np.ndarray, coef: np.ndarray, intercept: float) -> BlocksScore:
    """Return how well a linear predictor fits a table in blocks."""
    task = score, ([_point_of_chosen(support, coef, intercept)], loss)
    (sums,) = _about_means(engine, support, [task], [float(intercept)], loss.quadratic)
    return sums.scored(sums.half_variance if loss.quadratic else partial(_null_loss, engine, loss, sums))


def _null_loss(engine: Engine, loss: Any, sums: _ScoreSums) -> float:
    """Return the mean loss of the best constant, by a reading of the targets."""
    if sums.targets[3] > 0 or not loss.linear_in_target:
        return _balanced_loss(engine, loss, sums.total)
    constant = Point.constant(loss.link(sums.mean))
    null = engine.sweep(score, [constant], loss, sums.level, columns=constant.columns)[0]
    return float(null[0]) / sums.total


def _balanced_loss(engine: Engine, loss: Any, total: float) -> float:
    """Return the mean loss of the constant at which slopes balance, as `Loss.constant`: a reading of the targets.

    They are kept, with weights and offsets, while the constant is looked for.
    """
    none = np.empty(0, dtype=np.int64)
    targets = engine.keep(kept, Scaled(none, np.empty(0), np.empty(0)), FOLD, columns=none)

    def at(constant: float) -> tuple[float, float]:
        values, _, slopes, _ = engine.sweep(look, [Point.constant(constant)], loss, on=targets)
        return float(values[0]) / total, float(slopes[0]) / total

    found, _ = at(crossing(lambda constant: at(constant)[1], 0.0))
    targets.release()
    return found


@dataclass(frozen=True, slots=True)
class OutputsScore:
    """How well the predictors of several outputs fit a table in blocks.

    Attributes
    ----------
    outputs : tuple of BlocksScore
        That of each.
    """

    outputs: tuple[BlocksScore, ...]

    @property
    def d2(self) -> float:
        """The mean over the outputs."""
        return float(np.mean([output.d2 for output in self.outputs]))

    @property
    def removed(self) -> float:
        """The share of the deviance of all outputs together."""
        return _share_removed(sum(one.mean_loss for one in self.outputs), sum(one.null_loss() for one in self.outputs))


def score_of_outputs(engine: Engine, loss: Any, support: np.ndarray, coef: np.ndarray, intercept: Any) -> OutputsScore:
    """Return how well the least-squares predictors of several outputs fit a table in blocks."""
    levels = np.asarray(intercept, dtype=np.float64).tolist()
    tasks = [
        (of_output, (output, len(levels), score, [_point_of_chosen(support, own, level)], loss))
        for output, (own, level) in enumerate(zip(coef, levels, strict=True))
    ]
    return OutputsScore(
        tuple(sums.scored(sums.half_variance) for sums in _about_means(engine, support, tasks, levels, True))
    )


def score_of_classes(engine: Engine, support: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> BlocksScore:
    """Return how well the predictors of more than two classes fit a table in blocks: one reading."""
    point, loss = _point_of_chosen(support, coef, intercept), Multinomial(len(coef))
    (losses, right, known), by_class, _ = sums = engine.sweep(class_score, point, loss, columns=support)
    if not all(np.isfinite(part).all() for part in sums):
        refuse_not_finite(engine)
    total = float(by_class.sum())
    if not total > 0.0:
        raise InvalidInputError(NO_WEIGHT)

    def null_loss() -> float:
        if known > 0:
            raise CapabilityError(_NO_NULL_LOSS.format("Multinomial"))
        shares = by_class[:-1][by_class[:-1] > 0] / total
        return -float(shares @ np.log(shares))

    return BlocksScore(float(losses) / total, float(right) / total, null_loss)


@dataclass(frozen=True, slots=True)
class _ScoreSums:
    """What `score` says of a model, and the level that its targets are about."""

    level: float
    values: np.ndarray
    right: np.ndarray
    targets: np.ndarray

    @property
    def total(self) -> float:
        """The weight of the rows."""
        return float(self.targets[0])

    @property
    def mean(self) -> float:
        """The mean of the targets."""
        return self.level + float(self.targets[1]) / self.total

    @property
    def variance(self) -> float:
        """The variance of the targets."""
        gap, square = (self.targets[1:3] / self.total).tolist()
        return max(float(square - gap * gap), 0.0)

    @property
    def is_coarse(self) -> bool:
        """Whether the level is so far from the mean that a third of the digits of the variance is lost."""
        gap = self.mean - self.level
        return bool(gap * gap > np.finfo(np.float64).eps ** (-1 / 3) * self.variance)

    def half_variance(self) -> float:
        """Return the mean of half the squared errors of the best constant."""
        return 0.5 * self.variance

    def scored(self, null_loss: Callable[[], float]) -> BlocksScore:
        """Return the score, with what finds the mean loss of the best constant."""
        return BlocksScore(float(self.values[0]) / self.total, float(self.right[0]) / self.total, null_loss)


def _about_means(
    engine: Engine, support: np.ndarray, tasks: Sequence[Any], levels: Sequence[float], quadratic: bool
) -> list[_ScoreSums]:
    """Return what tasks of `score` say: one reading, or two if variances about levels would have lost their digits.

    Parameters
    ----------
    engine, support :
        The table, and the columns that are read.
    tasks : sequence of (callable, tuple)
        The task of each output, and its arguments but for the level.
    levels : sequence of float
        What targets are first taken to be close to: an intercept is not where columns have large means.
    quadratic : bool
        Whether variances matter.
    """
    asked = ((task, (*given, level)) for (task, given), level in zip(tasks, levels, strict=True))
    sums = engine.sweep(together, *asked, columns=support)
    if not all(np.isfinite(part).all() for part in sums):
        refuse_not_finite(engine)
    if not sums[2][0] > 0.0:
        raise InvalidInputError(NO_WEIGHT)
    found = [_ScoreSums(level, *sums[3 * at : 3 * at + 3]) for at, level in enumerate(levels)]
    if quadratic and any(one.is_coarse for one in found):
        return _about_means(engine, support, tasks, [one.mean for one in found], False)
    return found
