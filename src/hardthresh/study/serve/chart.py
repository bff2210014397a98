"""The learning curve as lines of an inline SVG, which the template draws in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, isfinite, log10

import numpy as np

from hardthresh.core.numbers import number

from ..progress import ErrorCurve

HEIGHT = 280
LEFT, RIGHT, TOP, BOTTOM = 54, 14, 14, 44  # pixels around the axes, for their labels
HEADROOM = 1.5
"""The axis ends at so many times the typical error without attributes; what is above, as bands of few examples are, is
cut off there."""
CUT = 3.0  # times that; lines end so far outside of the chart


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """The pieces of a chart, in pixels.

    Attributes
    ----------
    width, height : int
        Its size.
    left, right, top, bottom : int
        The ends of the axes.
    error, null, band : str
        The line of the error, that without attributes, and the outline of the band: points of SVG.
    x, y : tuple of Tick
        The marks of the axes.
    """

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    error: str
    null: str
    band: str
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]


def learning_curve(curve: ErrorCurve, width: int) -> Chart | None:
    """Return the chart of a learning curve; None if there are not two points yet."""
    if len(curve.examples) < 2:
        return None
    left, right, top, bottom = LEFT, width - RIGHT, TOP, HEIGHT - BOTTOM
    first, last = int(curve.examples[0]), int(curve.examples[-1])
    highest = HEADROOM * float(np.median(curve.null)) or float(np.max(curve.error)) or 1.0

    def across(count: float) -> float:
        return left + (count - first) / (last - first) * (right - left)

    def up(value: float) -> float:
        return bottom - min(max(value, 0.0) / highest, CUT) * (bottom - top)

    def points(values: Iterable[float]) -> list[str]:
        pairs = zip(curve.examples.tolist(), values, strict=True)
        return [f"{across(count):.1f},{up(value if isfinite(value) else CUT * highest):.1f}" for count, value in pairs]

    steps = (right - left) // 70  # so that labels of a million do not touch
    return Chart(
        width=width,
        height=HEIGHT,
        left=left,
        right=right,
        top=top,
        bottom=bottom,
        error=" ".join(points(curve.error.tolist())),
        null=" ".join(points(curve.null.tolist())),
        band=" ".join([*points(curve.high.tolist()), *reversed(points(curve.low.tolist()))]),
        x=tuple(Tick(across(at), f"{at:,.0f}") for at in round_numbers(first, last, steps) if at == floor(at)),
        y=tuple(Tick(up(at), number(at)) for at in round_numbers(0.0, highest, 4)),
    )


def round_numbers(low: float, high: float, steps: int) -> list[float]:
    """Return about so many round numbers of an interval: multiples of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> round_numbers(0.0, 7.3, 4)
    [0.0, 2.0, 4.0, 6.0]
    """
    least = (high - low) / steps
    power = 10.0 ** floor(log10(least))
    step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= least * (1 - 1e-9))
    return [step * place for place in range(int(-(-low // step)), floor(high / step * (1 + 1e-12)) + 1)]
