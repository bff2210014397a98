"""The errors of studies."""

from __future__ import annotations

from hardthresh.core.errors import HardThreshError, InvalidInputError


class QuestionBack(InvalidInputError):
    """Values are outside of their ranges; they become data when they are confirmed.

    Parameters
    ----------
    doubts : tuple of (str, float, float, float, str)
        For each the name of the attribute, the value, the range, and the unit.

    Attributes
    ----------
    doubts : tuple of (str, float, float, float, str)
        The same.
    """

    def __init__(self, doubts: tuple[tuple[str, float, float, float, str], ...]) -> None:
        self.doubts = doubts
        listed = "; ".join(
            f"{name} is {value:g}{f' {unit}' if unit else ''}, outside of {low:g} to {high:g}"
            for name, value, low, high, unit in doubts
        )
        super().__init__(
            f"{listed}: look again; confirm the value if it is right, correct it, or report it missing; it was not "
            "taken, only noted in the audit trail"
        )


class LateAnswer(HardThreshError):
    """A question is not with this person any more, or was answered, skipped or given back."""


class NothingToAsk(HardThreshError):
    """There is no question for this person now; the message says why."""


class BudgetUsed(NothingToAsk):
    """The budget of the study does not cover another question."""


class StudyClosed(HardThreshError):
    """The study is closed."""


class RepeatedKey(HardThreshError):
    """A request has the key of an earlier one, but other content."""
