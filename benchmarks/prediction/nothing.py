"""Data in which there is nothing to find: permuted targets of real sets, and random targets beside simulated columns.

Each half has 100 fits: ten permutations of five regressions and of five sets with two classes. What counts is how often
a model has no feature, and how often its held-out loss is above that of the model without features by more than the
standard error of this difference over held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from . import halves, real, simulation
from .instance import LOGISTIC, SQUARED, Fit, Judge, Training, held_out, losses

HELD_OUT_ROWS = 1000  # of a simulated design

SOURCES = (
    (halves.CHOOSING, SQUARED, ("bloodbrain", "communities_crime", "riboflavin", "low rho0", "high-10 rho0.35")),
    (halves.CHOOSING, LOGISTIC, ("colon", "golub_leukemia", "gravier_breast", "medium rho0.35", "high-5 rho0")),
    (
        halves.REPORTING,
        SQUARED,
        ("gds1116 gene 10", "gds181 gene 10", "tecator fat", "medium rho0.7", "high-5 rho0.35"),
    ),
    (halves.REPORTING, LOGISTIC, ("all_chiaretti BCR/ABL", "nki272", "prostate_6033", "low rho0.35", "high-10 rho0.7")),
)
"""Half, loss, and three real sets and two simulated designs. Real sets are in the half of their families."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """A target that does not depend on the columns of some source."""

    source: str
    half: str
    loss: str

    real = True

    @property
    def title(self) -> str:
        """The name in tables."""
        return f"{self.source} {self.loss}"

    def draw(self, repetition: int) -> tuple[Training, Judge]:
        """Return a permutation, split into training rows and held-out rows."""
        seed = (crc32(self.title.encode()), repetition)
        X, y, train, test = self._permuted(seed) if _is_set(self.source) else self._simulated(seed)
        relative = held_out(self.loss, y[train], X[test], y[test])
        null = losses(self.loss, y[test], np.full(test.size, y[train].mean()))

        def judge(fit: Fit) -> dict[str, float]:
            excess = losses(self.loss, y[test], fit.predict(X[test])) - null
            error = excess.std(ddof=1) / np.sqrt(excess.size)
            return relative(fit) | {"excess": float(excess.mean()), "excess_error": float(error)}

        return Training(X[train], y[train], self.loss), judge

    def _permuted(self, seed: tuple[int, int]) -> tuple:
        X, y = real.find(self.source).table()
        y = np.random.default_rng(seed).permutation(y)
        return X, y, *real.split(y, self.loss, seed)

    def _simulated(self, seed: tuple[int, int]) -> tuple:
        setting, rho = self.source.split(" rho")
        n, d, _ = simulation.SETTINGS[setting]
        rng = np.random.default_rng(seed)
        X = simulation.autoregressive(rng, n + HELD_OUT_ROWS, d, float(rho))
        y = rng.standard_normal(len(X)) if self.loss == SQUARED else rng.integers(0, 2, len(X)).astype(np.float64)
        rows = np.arange(len(X))
        return X, y, rows[:n], rows[n:]


def sources() -> list[Nothing]:
    """Return all sources."""
    return [Nothing(source, half, loss) for half, loss, names in SOURCES for source in names]


def _is_set(source: str) -> bool:
    return " rho" not in source
