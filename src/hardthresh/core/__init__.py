"""The contracts of objectives, constraints, step rules and solvers, and the loop that runs them."""

from .constraint import BlockBudget, Constraint, CoordinateBudget, Projection, Structure
from .errors import (
    CapabilityError,
    CriterionWarning,
    DataLostError,
    HardThreshError,
    InvalidInputError,
    MissingDependencyError,
    NotFiniteError,
    NothingFoundWarning,
    OutOfMemoryError,
    SearchRangeWarning,
    StallWarning,
)
from .meter import Meter
from .minimize import iterate, minimize
from .objective import (
    BaseObjective,
    Evaluation,
    LinearObjective,
    MeanObjective,
    Objective,
    RowObjective,
    SmoothObjective,
    Traits,
    require,
)
from .registry import Entry, lookup, register, registered
from .result import History, Result, Status
from .schema import stored
from .solver import Solver
from .state import State, Trace
from .stationarity import Certificate, certify_point, feasibility_residual, smallest_lipschitz
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
    default_stopping,
)
from .support import Support
from .versions import show_versions

__all__ = [
    "BaseObjective",
    "BlockBudget",
    "CapabilityError",
    "Certificate",
    "Constraint",
    "CoordinateBudget",
    "CriterionWarning",
    "DataLostError",
    "Entry",
    "Evaluation",
    "HardThreshError",
    "History",
    "InvalidInputError",
    "LinearObjective",
    "LowerBound",
    "MaxIter",
    "MeanObjective",
    "Meter",
    "MissingDependencyError",
    "Move",
    "NotFiniteError",
    "NothingFoundWarning",
    "Objective",
    "OutOfMemoryError",
    "Passes",
    "Projection",
    "RelativeDecrease",
    "Result",
    "RowObjective",
    "SearchRangeWarning",
    "Seconds",
    "Settled",
    "SmoothObjective",
    "Solver",
    "StallWarning",
    "State",
    "Stationarity",
    "Status",
    "StepRule",
    "Stop",
    "StopRule",
    "Structure",
    "Support",
    "SupportStable",
    "Trace",
    "Traits",
    "Unbounded",
    "certify_point",
    "default_stopping",
    "feasibility_residual",
    "iterate",
    "lookup",
    "minimize",
    "register",
    "registered",
    "require",
    "show_versions",
    "smallest_lipschitz",
    "stored",
]
