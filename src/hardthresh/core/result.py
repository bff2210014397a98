"""The result of a run: status, history and solution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from .constraint import Constraint
from .objective import Objective
from .schema import Fields, stored
from .state import State
from .support import SUPPORTS, Support, of_kind, upgrade_supports
from .typing import Array


@stored("result/status")
class Status(Enum):
    """Reasons for the end of a run, each with a sentence for users and whether it means convergence."""

    SETTLED = ("the solver sees nothing left to improve", True)
    STATIONARY = ("the point is basic feasible", True)
    SMALL_DECREASE = ("the objective no longer changes", True)
    SUPPORT_STABLE = ("the support no longer changes", True)
    LOWER_BOUND = ("the objective has reached its lower bound: a perfect fit", True)
    NO_MINIMISER = (
        "no finite point attains the infimum of the objective, as when classes are separated perfectly; add a ridge "
        "(alpha or l2 > 0)",
        False,
    )
    STALLED = (
        "the gradient of the objective is not small, but no step that was tried lowers it: it has a kink there, or its "
        "gradient is wrong (Function.check_gradient tells)",
        False,
    )
    MAX_ITER = ("the limit of iterations was reached before convergence; raise max_iter", False)
    BUDGET = ("the limit of passes or seconds was reached before convergence; raise it", False)
    FLOOR = (
        "the published test keeps rejecting, and to first order accepts no smaller step: its precision floor is reached"
        "; use the default variant",
        False,
    )
    SOURCE_EMPTY = ("the source is used up", True)
    ENOUGH = ("all updates that were asked for are made", True)
    RULE = ("a rule of the caller ended the run", False)
    CALLBACK = ("the callback stopped the run", False)
    INTERRUPTED = ("interrupted from the keyboard; this is the best iterate, and .state resumes the run", False)
    DIVERGED = (
        "the objective grows, or is infinite or NaN; this is the best iterate: take a smaller step or less momentum, "
        "rescale, or start elsewhere (w0)",
        False,
    )

    def __init__(self, sentence: str, converged: bool) -> None:
        self.sentence = sentence
        self.converged = converged


class History(Mapping[str, np.ndarray]):
    """The columns recorded along a run, as read-only arrays.

    ``history["value"][t]`` is f(w_t) for t = 0 .. n_iter, like ``"passes"`` and ``"seconds"``; ``history["step"][t]``
    is the step from w_t to w_{t+1}, t = 0 .. n_iter - 1, like all columns about the transition between two states.

    Parameters
    ----------
    columns : mapping from str to sequence of float
        The columns by name.
    """

    def __init__(self, columns: Mapping[str, Sequence[float]] | None = None) -> None:
        self._columns: dict[str, list[float]] = {name: list(column) for name, column in (columns or {}).items()}

    def record(self, row: Mapping[str, float]) -> None:
        """Append one number to each named column."""
        for name, number in row.items():
            self._columns.setdefault(name, []).append(float(number))

    def column(self, name: str) -> Sequence[float]:
        """Return a column as it is, without a copy."""
        return self._columns.get(name, ())

    def __getitem__(self, name: str) -> np.ndarray:
        column = np.asarray(self._columns[name])
        column.flags.writeable = False
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = max(map(len, self._columns.values()), default=0)
        return f"History({', '.join(self._columns)}; {rows} rows)"


def _upgrade_supports(fields: Fields) -> Fields:
    """Return the fields of a result in version 2: its support, and those of its state, are of its constraint's kind."""
    state, constraint = fields["state"], fields["constraint"]
    support = upgrade_supports({"point": fields["w"], "support": fields["support"]})["support"]
    kind = support if constraint is None else constraint.project(fields["w"]).support
    own = {name: of_kind(kind, value) for name in SUPPORTS if (value := getattr(state, name, None)) is not None}
    return fields | {"support": of_kind(kind, support), "state": replace(state, **own)}


@stored("result/run", upgrades=[_upgrade_supports])
@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of `minimize`.

    Attributes
    ----------
    w : array
        The solution: the last iterate, or the best one if the run was interrupted or diverged.
    support : Support
        Where `w` may be non-zero; for `Sparsity` the increasing indices of its non-zeros and free coordinates.
    value : float
        f(w).
    status : Status
        Why the run ended.
    message : str
        The reason as a sentence with its numbers.
    n_iter : int
        The number of iterations.
    history : History
        The values at each iteration.
    state : State
        The last state, which can be passed to `minimize` to continue the run.
    seconds : float
        Wall time.
    passes : float
        The number of data passes; nan for an objective that does not count them.
    """

    w: Array
    support: Support
    value: float
    status: Status
    message: str
    n_iter: int
    history: History
    state: State
    seconds: float
    passes: float
    objective: Objective | None = field(default=None, repr=False)
    constraint: Constraint | None = field(default=None, repr=False)

    @property
    def converged(self) -> bool:
        """Whether the run ended because it had converged."""
        return self.status.converged

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.6g}, status={self.status.name}, n_iter={self.n_iter}, "
            f"passes={self.passes:g}, seconds={self.seconds:.3f}): {self.message}"
        )
