"""The grid of sizes, under the name that solvers of `benchmark_sparse_support_recovery` import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchopt.stopping_criterion import StoppingCriterion


class RunOnGridCriterion(StoppingCriterion):
    """Run a solver once with each value of a grid: the largest share of non-zeros."""

    def __init__(
        self, grid: Sequence[float], strategy: str = "iteration", key_to_monitor: str = "value", minimize: bool = True
    ) -> None:
        super().__init__(strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize, grid=grid)
        self.grid = grid

    def init_stop_val(self) -> float:
        """Return the first value."""
        return float(self.grid[0])

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Return whether the grid is at its end, and the share of it that is done."""
        return self.n_eval + 1 >= len(self.grid), (self.n_eval + 1) / len(self.grid)

    def get_next_stop_val(self, stop_val: float) -> float:
        """Return the next value."""
        return float(self.grid[self.n_eval])
