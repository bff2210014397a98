"""How well a learner predicts: errors of predictions that were made before their examples were learned from."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

EXPLODED = 1e6
"""The growth of the squared error that counts as divergence. With values from 1e2 to 1e12 the same runs are stopped,
none of which converges: with 1e2 after a third of the examples, and with 1e12 after twice as many."""
WORSE = 1.1
"""A model has failed if its squared error is more than this many times that of the mean of the targets. Of 30 fits to
noise, 19 count as failed with 1, two with 1.05, and none with 1.1 to 2. Of 30 fits without an intercept to data that
need one, all count as failed with each of these."""
RECENT = 0.1
"""The share of the examples, the latest ones, that decide whether a model has failed. Results are the same with 0.02 to
0.1; with 0.2 one of 30 fits to noise counts as failed."""
FEWEST = 32  # or this number of examples, if it is larger; arbitrary: 8 to 128 give the same results
WINDOWS = 256  # a curve has fewer windows than this; enough for a plot; even, so that neighbours can be joined


@stored("learner/curve")
@dataclass
class LearningCurve:
    """Squared errors of predictions made before their examples were learned from, in windows of examples.

    Every example is used once, and is predicted before it is learned from. So the mean error of a window is an unbiased
    estimate of the error at that time. When there are `WINDOWS` windows, neighbours are joined.

    Attributes
    ----------
    width : int
        The smallest number of examples in a complete window.
    examples, attributes : list of int
        The numbers of examples and of attributes bought until the end of each window.
    counts : list of int
        The number of examples of each window.
    errors : list of float
        The sum of the squared errors of each window.
    null : list of float
        The same sum for the prediction by the mean of all earlier targets.
    seen : int
        The number of examples so far.
    mean : float
        The mean of the targets so far.
    """

    width: int = 1
    examples: list[int] = field(default_factory=list)
    attributes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    null: list[float] = field(default_factory=list)
    seen: int = 0
    mean: float = 0.0

    def add(self, errors: Array, targets: Array, examples: int, attributes: int) -> None:
        """Add the errors and targets of examples; `examples` and `attributes` are the total numbers bought so far."""
        null = float(np.sum((targets - self.mean) ** 2))
        self.seen += len(targets)
        self.mean += float(np.sum(targets - self.mean)) / max(1, self.seen)
        if not self.counts or self.counts[-1] >= self.width:
            for column in (self.counts, self.errors, self.null, self.examples, self.attributes):
                column.append(0)
        self.counts[-1] += len(errors)
        self.errors[-1] += float(np.sum(errors**2))
        self.null[-1] += null
        self.examples[-1], self.attributes[-1] = examples, attributes
        if len(self.counts) == WINDOWS:
            self._join()

    def _join(self) -> None:
        """Join neighbouring windows."""
        self.counts = [a + b for a, b in zip(self.counts[::2], self.counts[1::2], strict=True)]
        self.errors = [a + b for a, b in zip(self.errors[::2], self.errors[1::2], strict=True)]
        self.null = [a + b for a, b in zip(self.null[::2], self.null[1::2], strict=True)]
        self.examples, self.attributes = self.examples[1::2], self.attributes[1::2]
        self.width = max(2 * self.width, min(self.counts))

    @property
    def latest(self) -> float:
        """The mean squared error of the last window; infinity if there is none."""
        return self.errors[-1] / max(1, self.counts[-1]) if self.counts else inf

    @property
    def exploded(self) -> bool:
        """Whether the error of the last window exceeds `EXPLODED` times that of the first one with an error."""
        first = next((error / count for error, count in zip(self.errors, self.counts, strict=True) if error > 0), inf)
        return self.latest > EXPLODED * first

    @property
    def failure_reason(self) -> str:
        """Why the model has failed (it predicts the latest examples worse than the mean); empty if it has not."""
        windows = count = 0
        while windows < len(self.counts) and count < max(FEWEST, RECENT * self.seen):
            windows += 1
            count += self.counts[-windows]
        error, null = sum(self.errors[-windows:]), sum(self.null[-windows:])
        if not windows or error <= WORSE * null:
            return ""
        return (
            f"it predicts worse than the mean of the targets: on the last {count} examples the mean squared error was "
            f"{error / count:.3g} instead of {null / count:.3g}"
        )

    def columns(self) -> dict[str, Array]:
        """Return examples, attributes and mean squared errors, one entry per window."""
        return {
            "examples": np.array(self.examples, dtype=np.int64),
            "attributes": np.array(self.attributes, dtype=np.int64),
            "squared_error": np.array(self.errors) / np.maximum(1, np.array(self.counts)),
        }
