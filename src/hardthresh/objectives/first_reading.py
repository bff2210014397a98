"""The first pass over a table in blocks: moments of the columns, and sums that a pilot fit requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.designs.engine import FOLD, Engine
from hardthresh.designs.locating import refuse_negative_weights, refuse_not_finite

from .block_folds import BlockFolds, by_fold
from .block_rows import Point, Scaled, powers_of_two
from .column_sums import ColumnSums
from .guess import Guess
from .readings import Sums, gram, look, look_and_keep, moments, rows_counted, together
from .table_moments import FAR, PartSums, TableMoments


@dataclass(frozen=True, slots=True, eq=False)
class FirstReading:
    """What the first reading found.

    Attributes
    ----------
    moments : TableMoments
        The moments.
    members : Scaled
        The columns that the guess names, in its units.
    gram : array, shape (n_parts, m, m + 1), or None
        Of squared errors, the sums of products of these columns and of each with a column of ones, over each part.
    kept : object
        Of other losses, the handle of these columns.
    points : tuple of Point
        The points of the guess.
    looks : tuple of arrays
        What `look` says of them; empty if there are none.
    centre : array, shape (d,), or None
        What the columns were centred by for these.
    parts : tuple of TableMoments
        Those of the rows of each fold; of one part, all rows, without folds.
    sums : PartSums
        What these are made of.
    whole : bool
        Whether all weights are whole numbers, as those that say how often a row was seen.
    """

    moments: TableMoments
    members: Scaled
    gram: np.ndarray | None
    kept: Any
    points: tuple[Point, ...]
    looks: Sums
    centre: np.ndarray | None
    parts: tuple[TableMoments, ...]
    sums: PartSums
    whole: bool

    def without(self, fold: int) -> FirstReading:
        """Return what a reading of the rows that a fold trains on would have found of squared errors; of all with -1.

        It has no points, and one part.
        """
        if fold < 0:
            return self
        rest = np.delete(np.arange(len(self.parts)), fold)
        found, gram = self.sums.moments(rest), None if self.gram is None else self.gram[rest].sum(axis=0)[None]
        sums = replace(self.sums, sums=tuple(part[rest].sum(axis=0)[None] for part in self.sums.sums))
        return replace(self, moments=found, gram=gram, points=(), looks=(), parts=(found,), sums=sums)

    def column_sums(self, part: int, columns: np.ndarray) -> list[ColumnSums]:
        """Return the moments of some columns, whose products are known, and of each output over the rows of a fold."""
        assert self.gram is not None
        at, found = np.searchsorted(self.members.columns, columns), self.parts[part]
        own, scale = self.gram[part] / found.total, self.members.scale[at]
        mean = own[at, -1]
        covariance = (own[np.ix_(at, at)] - np.outer(mean, mean)) / np.outer(scale, scale)
        outputs = zip(found.crossed[columns].T, found.target_mean, found.target_variance, strict=True)
        return [ColumnSums(found.total, found.mean[columns], covariance, *output) for output in outputs]


def read_first(engine: Engine, loss: Any, guess: Guess, folds: BlockFolds | None = None) -> FirstReading:
    """Return the first reading; a second one is made if the guess was so wrong that variances have lost their digits.

    Parameters
    ----------
    engine : Engine
        The table.
    loss : Loss
        The loss.
    guess : Guess
        What is to examine.
    folds : BlockFolds, optional
        The folds of a cross-validation, over the rows of each of which moments and products are summed.

    Raises
    ------
    InvalidInputError
        For NaN or infinity in X, y or the offset, and targets outside of the domain of the loss.
    """
    folds = BlockFolds.none() if folds is None else folds
    dtype, members = engine.blocks.dtype, Scaled(guess.members, guess.shift[guess.members], guess.scale[guess.members])
    level: Any = guess.level if loss.quadratic else 0.0
    factor = powers_of_two(guess.scale, dtype)
    summed: list[Any] = [(moments, (guess.shift, level, loss, factor))]
    with_products = loss.quadratic and members.columns.size > 0
    if with_products:
        summed.append((gram, (members, members)))
    tasks: list[Any] = [(rows_counted, ()), (by_fold, (*folds.arguments, *summed))]
    centre = guess.shift if bool(np.any(np.abs(guess.shift) * guess.scale > FAR)) else None
    if guess.points:
        tasks.append((look, (guess.points, loss, centre)))
    if loss.quadratic:
        sums, kept = engine.sweep(together, *tasks), None
    else:
        sums, kept = engine.both(look_and_keep, members, FOLD, *tasks)
    (n_rows, fractional), parted = sums[0], sums[1 : 6 + with_products]
    whole = [part.sum(axis=0) for part in parted[:5]]
    _check(engine, loss, whole)
    if n_rows != parted[0][:, 0].sum():
        raise UnknownFolds("the fold column of some blocks has values that the blocks that were looked at lack")
    folds.check(parted[0][:, 1])
    found = TableMoments.of(whole, guess.shift, level, dtype)
    if found.is_coarse(guess.shift, level if loss.quadratic else found.target_mean, dtype):
        shift, level = found.mean, found.target_mean if loss.quadratic else 0.0
        members = members._replace(centre=shift[guess.members])
        parts = engine.sweep(
            by_fold,
            *folds.arguments,
            (moments, (shift, level, loss, factor)),
            *([(gram, (members, members))] * with_products),
        )
        found = TableMoments.of([part.sum(axis=0) for part in parts[:5]], shift, level, dtype)
    else:
        shift, parts = guess.shift, parted
    of_folds = PartSums(tuple(parts[:5]), shift, level, dtype)
    each = tuple(of_folds.moments([i]) for i in range(folds.count))
    products = parts[5] if with_products else None
    looks = sums[1 + len(parted) :] if guess.points else ()
    return FirstReading(
        found, members, products, kept, guess.points, looks, centre, each, of_folds, bool(fractional == 0)
    )


class UnknownFolds(InvalidInputError):
    """Raised for values of a fold column that are none of the known ones."""


class TargetsOutside(InvalidInputError):
    """Raised for targets outside of the domain of a loss."""


def _check(engine: Engine, loss: Any, sums: Sequence[np.ndarray]) -> None:
    """Refuse a table whose sums are not finite, or whose weights or targets are out of range."""
    if not all(np.isfinite(part).all() for part in sums[:5]):
        refuse_not_finite(engine)
    if sums[0][6] > 0:
        refuse_negative_weights(engine)
    outside = round(float(sums[0][2]))
    if outside:
        raise TargetsOutside(
            f"the {type(loss).__name__} loss needs targets that are {loss.domain}; {outside:,} in y are not"
            f"{loss.recoding}"
        )
