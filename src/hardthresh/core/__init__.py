"""The contracts and the one loop."""

from .constraint import Constraint, Projection
from .errors import (
    CapabilityError,
    HardThreshError,
    InvalidInputError,
    MissingDependencyError,
    NotFiniteError,
    OutOfMemoryError,
    SearchRangeWarning,
    StallWarning,
)
from .meter import Meter
from .minimize import iterate, minimize, minimize_together
from .objective import Evaluation, Objective, provides, require
from .registry import Entry, lookup, register, registered
from .result import History, Result, Status
from .schema import stored
from .solver import Solver, State, Trace
from .stationarity import Certificate, certify, feasibility_residual, smallest_lipschitz
from .step import Move, StepRule
from .stopping import (
    LowerBound,
    MaxIter,
    Passes,
    RelativeDecrease,
    Seconds,
    Settled,
    Stationarity,
    Stop,
    StopRule,
    SupportStable,
    Unbounded,
)

__all__ = [
    "CapabilityError",
    "Certificate",
    "Constraint",
    "Entry",
    "Evaluation",
    "HardThreshError",
    "History",
    "InvalidInputError",
    "LowerBound",
    "MaxIter",
    "Meter",
    "MissingDependencyError",
    "Move",
    "NotFiniteError",
    "Objective",
    "OutOfMemoryError",
    "Passes",
    "Projection",
    "RelativeDecrease",
    "Result",
    "SearchRangeWarning",
    "Seconds",
    "Settled",
    "Solver",
    "StallWarning",
    "State",
    "Stationarity",
    "Status",
    "StepRule",
    "Stop",
    "StopRule",
    "SupportStable",
    "Trace",
    "Unbounded",
    "certify",
    "feasibility_residual",
    "iterate",
    "lookup",
    "minimize",
    "minimize_together",
    "provides",
    "register",
    "registered",
    "require",
    "smallest_lipschitz",
    "stored",
]
