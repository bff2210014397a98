"""Least squares of several outputs on halves of the rows of a table in blocks, from sums that halves read together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hardthresh.designs.engine import NUMBER

from .block_rows import powers_of_two
from .blocked_outputs import BlockedOutputs
from .first_reading import FirstReading
from .half_readings import BlockHalves, Quadratic, half_moments, half_products
from .readings import of_output, together
from .table_moments import PartSums

_ENTRIES = 1 << 24
"""Limit of the numbers that one reading sums: 128 MB. The halves of wider tables are read in several groups."""


def half_models(model: BlockedOutputs, halves: BlockHalves, *, scale: bool) -> Iterator[BlockedOutputs | str]:
    """Yield the model of the rows of each half, in units of its own; or why there is none.

    Parameters
    ----------
    model : BlockedOutputs
        The model of all rows.
    halves : BlockHalves
        The halves.
    scale : bool
        Whether columns are scaled.

    Notes
    -----
    Cost: a reading for as many halves as have 16 million sums together, of which each has the square of the number of
    columns: one for 100 halves of 400 columns.
    """
    units, level = model.units, np.broadcast_to(model.units.level, model.shape[1:])
    d, count = units.mean.size, level.size
    every, columns = units.scaled(np.arange(d)), np.arange(d)
    factor = powers_of_two(units.inverse_scale, units.dtype)
    size = max(1, _ENTRIES // (d * (d + 3 * count)))
    for start in range(0, len(halves), size):
        which = np.arange(start, min(start + size, len(halves)))
        given = halves, NUMBER, which
        tasks = [
            (of_output, (output, count, half_moments, *given, Quadratic(level[output]), units.mean, factor))
            for output in range(count)
        ]
        places = [columns] * which.size
        (*sums,) = model.engine.sweep(
            together, *tasks, (half_products, (*given, Quadratic(0.0), every, places, places))
        )
        outputs, products = [sums[i : i + 5] for i in range(0, 5 * count, 5)], sums[5 * count :]
        for i, gram in enumerate(products):
            targets, curved, linear, _, squares = outputs[0]
            total = float(targets[0, i])
            if not total > 0:
                yield "no row of the half has a weight"
                continue
            moments = (
                np.array([curved[0, i], total, 0.0, 0.0, 0.0, float(model.moments.with_offset), 0.0]),
                np.stack([own[0][2:, i] for own in outputs], axis=1),
                linear[i],
                squares[i],
                np.stack([own[3][i] for own in outputs], axis=1),
            )
            of_half = PartSums(tuple(part[None] for part in moments), units.mean, level, units.dtype)
            found = of_half.moments([0])
            own = np.concatenate([gram, (linear[i] * every.scale)[:, None]], axis=1)[None]
            whole = model.whole_weights
            first = FirstReading(found, every, own, None, (), (), None, (found,), of_half, whole)
            yield model.of_rows(first, model.row_ridge(), intercept=units.intercept, scale=scale)
