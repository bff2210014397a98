"""What is known about a fitted sparse model, in one object that prints as sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isnan

from hardthresh.arrays import as_double
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget, Structure
from hardthresh.core.objective import LinearObjective
from hardthresh.core.schema import stored
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import FEASIBLE, Certificate, certify_point, is_negligible
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array

from .swap import SwapCertificate, swap_certificate


@stored("certificate/model")
@dataclass(frozen=True, slots=True)
class ModelCertificate:
    """First-order conditions and one-swap optimality of a fitted model; ``print`` it to read it.

    Attributes
    ----------
    stationarity : Certificate
        Basic feasibility and L-stationarity.
    swap : SwapCertificate
        The best exchange of one chosen feature for another.
    exact : bool
        Whether "swap optimal" is a proof (quadratic objective, no bounds, all groups looked at, nothing undecided) or a
        ranking by the quadratic model.
    value : float
        The objective that was minimised; of one in float32, its value in double precision.
    removed_name, added_name : str or None
        The features, or groups of them, of the best exchange.
    unit : {"feature", "group"}
        What is exchanged.
    undecided_names : tuple of str
        The features, or groups, that `swap` leaves undecided.
    fitted : bool
        Whether a refit of the chosen features would bring nothing: what the quadratic model says that it would bring
        is at most `swap.tolerance`, or 1e-10 of the null model's objective. Where columns are nearly dependent that is
        more than to say that the gradient is small.
    """

    stationarity: Certificate
    swap: SwapCertificate
    exact: bool
    value: float
    removed_name: str | None = None
    added_name: str | None = None
    unit: str = "feature"
    undecided_names: tuple[str, ...] = ()
    fitted: bool = True

    @property
    def basic_feasibility(self) -> float:
        """The residual of basic feasibility."""
        return self.stationarity.basic_feasibility

    @property
    def smallest_L(self) -> float:
        """The smallest L for which the model is L-stationary."""
        return self.stationarity.smallest_L

    @property
    def smoothness(self) -> float:
        """The estimate of the restricted smoothness to compare it with."""
        return self.stationarity.smoothness

    @property
    def swap_optimal(self) -> bool:
        """Whether no exchange of one chosen feature, or group, for another was found that lowers the objective.

        Groups that are too wide to be looked at are not found either; ``swap.complete`` is then False.
        """
        return self.swap.optimal

    @property
    def best_swap(self) -> tuple[int, int] | None:
        """The best exchange (removed, added), or None."""
        swap = self.swap
        return None if swap.removed is None or swap.added is None else (swap.removed, swap.added)

    def is_stationary(self, L: float | None = None, tol: float | None = None) -> bool:
        """Return whether the model is `fitted` and passes the first-order test.

        Parameters
        ----------
        L : float, optional
            As in `hardthresh.core.Certificate.is_stationary`.
        tol : float, optional
            Relative tolerance of the gradient on the chosen features; by default `fitted` alone decides about these.
        """
        return self.fitted and self.stationarity.is_stationary(L, inf if tol is None else tol)

    def __str__(self) -> str:
        first = self.stationarity
        relative = first.basic_feasibility / first.gradient_scale if first.gradient_scale > 0 else 0.0
        left = f"gradient left: {relative:.1e} of the null model's"
        if not self.fitted and self.swap.refit > 0 and self.value > 0:
            share = min(1.0, self.swap.refit / self.value)
            left += (
                f"; a refit would lower the objective by {f'{share:.2%}' if share >= 1e-4 else f'{share:.1e} of it'}"
            )
        lines = [
            f"Fitted to the end on the chosen features: {'yes' if self.fitted else 'no'} ({left}).",
            f"First-order test: {'passed' if first.is_stationary(tol=inf) else 'not passed'} "
            f"(smallest L {first.smallest_L:.3g}, smoothness at least {first.smoothness:.3g}).",
            self._swap_sentence(),
            "Not proved: that no other set of this size, two or more exchanges away, is better.",
        ]
        return "\n".join(lines)

    def _swap_sentence(self) -> str:
        swap = self.swap
        if swap.removed is None:
            if not swap.complete:
                return "Exchanges: not looked at; there are too many columns in what is chosen, or in all others."
            return "Exchanges: there is nothing to exchange."
        pair = f"{self.removed_name or swap.removed} for {self.added_name or swap.added}"
        change = abs(swap.decrease) / abs(self.value) if self.value else 0.0
        worse = f"{change:.2g} times worse" if swap.decrease < -swap.tolerance else "as good"
        if not swap.optimal:
            advice = '; solver=WorkingSet(effort="thorough") looks harder for it' if self.unit == "feature" else ""
            return f"Exchanges: {pair} would lower the objective by {change:.2%}, so a better model exists{advice}."
        how, limit = f"no exchange among the {swap.tried} most promising", ""
        if self.exact:
            share = swap.tolerance / self.value if self.value > 0 else 1.0
            how = "proved: no exchange"
            limit = " by more than " + (f"{share:.0e} of the objective" if share < 1e-2 else "rounding")
        return (
            f"Exchanges: {how} of one chosen {self.unit} for another is better{limit} "
            f"(closest: {pair}, {worse}).{self._undecided_sentence()}"
        )

    def _undecided_sentence(self) -> str:
        names = self.undecided_names
        if not names:
            return ""
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        are = "is so nearly a combination" if len(names) == 1 else "are so nearly combinations"
        return f" It is not proved, because {listed} {are} of the chosen {self.unit}s that rounding decides."


@serial_blas()
def certify_model(
    objective: LinearObjective,
    constraint: Constraint,
    w: Array,
    support: Support,
    name: Callable[[int], str] = str,
    trace: Trace | None = None,
) -> ModelCertificate:
    """Return the certificate of a fitted linear model.

    Parameters
    ----------
    objective : LinearModel
        What was minimised.
    constraint : Constraint
        The set: of at most k coordinates, or groups of them.
    w : array
        The answer.
    support : Support
        Where it may be non-zero.
    name : callable
        What to call a coordinate, or a group of them by its number.
    trace : Trace, optional
        Of the run that found the answer, for the scales of its null model.

    Notes
    -----
    Cost: about s + 25 data passes for a support of s coordinates, and for groups the Hessian of each besides; see
    `swap_certificate`.
    """
    at, exact, structure = objective.evaluate(w), objective.double(), constraint.structure(tuple(w.shape))
    null_value = 0.0 if trace is None else trace.null_value
    swap = swap_certificate(objective, constraint, at, null_value=null_value)
    provable = objective.traits.quadratic and swap.complete and not _is_bounded(structure)
    undecided = swap.undecided if provable else ()
    stationarity = certify_point(objective, constraint, at, support, trace)
    if isnan(swap.refit):
        fitted = is_negligible(stationarity.basic_feasibility, stationarity.gradient_scale, FEASIBLE)
    else:
        fitted = swap.refit <= max(swap.tolerance, FEASIBLE**2 * abs(null_value))
    return ModelCertificate(
        stationarity=stationarity,
        swap=swap,
        exact=provable and not undecided,
        value=at.value if exact is objective else exact.value(as_double(w)),
        removed_name=None if swap.removed is None else name(swap.removed),
        added_name=None if swap.added is None else name(swap.added),
        unit="group" if isinstance(structure, BlockBudget) else "feature",
        fitted=fitted,
        undecided_names=tuple("an always-included column" if i < 0 else name(i) for i in undecided),
    )


def _is_bounded(structure: Structure | None) -> bool:
    return isinstance(structure, CoordinateBudget) and (structure.bounded or structure.signs is not None)
