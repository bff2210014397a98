"""Studies that buy attributes day by day: several people measure what is asked for, under a budget.

A study is a file. `Terms` say what can be measured, in which units, for which price; a `Study` asks, and learns from
the answers.
"""

from .answers import BudgetUsed, LateAnswer, NothingToAsk, QuestionBack, RepeatedKey, StudyClosed
from .log import Event
from .records import Learned, Receipt, Status
from .state import Question
from .study import Study
from .terms import Attribute, Terms

__all__ = [
    "Attribute",
    "BudgetUsed",
    "Event",
    "LateAnswer",
    "Learned",
    "NothingToAsk",
    "Question",
    "QuestionBack",
    "Receipt",
    "RepeatedKey",
    "Status",
    "Study",
    "StudyClosed",
    "Terms",
]
