"""Studies that buy attributes day by day: several people measure what is asked for, under a budget.

A study is a file. `Terms` say what can be measured, in which units, for which price; a `Study` asks, and learns from
the answers. `plan` simulates it before it begins; `progress` and `drift` say how it goes.
"""

from .attributes import Attribute
from .chosen import ChosenColumn
from .closing import write_study
from .drift import Drift, DriftTest, drift
from .errors import BudgetUsed, LateAnswer, NothingToAsk, QuestionBack, RepeatedKey, StudyClosed
from .export import write_answers, write_trail
from .log import Event
from .planning import Plan, plan
from .progress import ErrorCurve, MeasuredError, Progress, progress
from .question import Question
from .records import Learned, Receipt, Status
from .sizes import PlannedSize
from .study import Study
from .terms import Terms

__all__ = [
    "Attribute",
    "BudgetUsed",
    "ChosenColumn",
    "Drift",
    "DriftTest",
    "ErrorCurve",
    "Event",
    "LateAnswer",
    "Learned",
    "MeasuredError",
    "NothingToAsk",
    "Plan",
    "PlannedSize",
    "Progress",
    "Question",
    "QuestionBack",
    "Receipt",
    "RepeatedKey",
    "Status",
    "Study",
    "StudyClosed",
    "Terms",
    "drift",
    "plan",
    "progress",
    "write_answers",
    "write_study",
    "write_trail",
]
