"""The certificate of a fitted sparse model, which prints as sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isnan

from hardthresh.arrays import as_double
from hardthresh.core.constraint import Constraint, CoordinateBudget, Structure
from hardthresh.core.gap import PROVED, relative_gap
from hardthresh.core.objective import LinearObjective
from hardthresh.core.schema import stored
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import FEASIBLE, Certificate, certify_point, is_negligible
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array

from .gap import bound_sentence
from .kinks import model_with_kink, with_least_subgradient
from .lower_bounds import lower_bound
from .swap import SwapCertificate, listed, swap_certificate


@stored(
    "certificate/model",
    upgrades=[
        lambda fields: fields | {"subject": ""},
        lambda fields: fields | {"lower_bound": None, "gap": None},
    ],
)
@dataclass(frozen=True, slots=True)
class ModelCertificate:
    """First-order conditions and one-swap optimality of a fitted model; ``print`` shows them as text.

    Attributes
    ----------
    stationarity : Certificate
        Basic feasibility and L-stationarity.
    swap : SwapCertificate
        The best exchange of one chosen feature for another.
    exact : bool
        Whether `swap_optimal` is exact: the objective is quadratic, there are no bounds, all groups were examined, and
        no exchange is undecided. Otherwise a quadratic model ranked the exchanges.
    value : float
        The value of the objective at the model, computed in double precision.
    removed_name, added_name : str or None
        The features or groups of the best exchange.
    unit : {"feature", "group"}
        Whether features or groups are exchanged.
    undecided_names : tuple of str
        The features or groups that `swap` leaves undecided.
    fitted : bool
        Whether the coefficients of the chosen features are optimal: by the quadratic model, a refit would lower the
        objective by at most `swap.tolerance`, or 1e-10 times the objective of the null model. If columns are nearly
        dependent, this is a stronger condition than a small gradient. For a loss with a kink, such as the pinball loss,
        the condition is that the subgradient nearest to zero is at most 1e-5 times the gradient at the null model.
    subject : str
        What the certificate is about, if not the model whose method was called.
    lower_bound : float or None
        A lower bound of the objective over all sets of this size (`hardthresh.certificates.lower_bound`); None if no
        bound is known, for example without a ridge if there are no more rows than columns.
    gap : float or None
        The relative gap between `lower_bound` and `value` (`hardthresh.certificates.relative_gap`): 0 if the model is
        proved to be the best, 1 if nothing is proved. **A large gap does not mean that the model is poor**: it usually
        means that the bound is weak.
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
    subject: str = ""
    lower_bound: float | None = None
    gap: float | None = None

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
        """The estimate of the restricted smoothness, to compare with `smallest_L`; inf if the loss has a kink."""
        return self.stationarity.smoothness

    @property
    def swap_optimal(self) -> bool:
        """Whether no exchange of one chosen feature, or group, for another was found to lower the objective.

        Groups with too many columns are not examined; ``swap.complete`` is then False.
        """
        return self.swap.optimal

    @property
    def proved(self) -> bool:
        """Whether the lower bound proves, to 1e-6 relative, that no other set of this size has a lower objective."""
        return self.gap is not None and self.gap <= PROVED

    @property
    def examined(self) -> bool:
        """Whether at least one exchange was examined, or no exchange exists."""
        return self.swap.complete or self.swap.tried > 0

    @property
    def best_swap(self) -> tuple[int, int] | None:
        """The best exchange (removed, added), or None."""
        swap = self.swap
        return None if swap.removed is None or swap.added is None else (swap.removed, swap.added)

    def with_bound(self, bound: float, least: float) -> ModelCertificate:
        """Return the certificate with a given lower bound, if that is higher than its own.

        Parameters
        ----------
        bound : float
            The bound.
        least : float
            A lower bound of the objective over all points; -inf if none is known.
        """
        if bound <= (-inf if self.lower_bound is None else self.lower_bound):
            return self
        if bound > self.value + PROVED * abs(self.value):  # wrong by rounding: it proves nothing
            return self
        bound = min(bound, self.value)
        return replace(self, lower_bound=bound, gap=relative_gap(self.value, bound, least))

    def is_stationary(self, L: float | None = None, tol: float | None = None) -> bool:
        """Return whether the model is `fitted` and passes the first-order test.

        Parameters
        ----------
        L : float, optional
            As in `hardthresh.core.Certificate.is_stationary`.
        tol : float, optional
            Relative tolerance of the gradient on the chosen features. Default: only `fitted` is required for these.
        """
        return self.fitted and self.stationarity.is_stationary(L, inf if tol is None else tol)

    def __str__(self) -> str:
        first = self.stationarity
        relative = first.basic_feasibility / first.gradient_scale if first.gradient_scale > 0 else 0.0
        what = "subgradient" if self._has_kink else "gradient"
        remaining = f"remaining {what}: {relative:.1e} of that of the null model"
        if not self.fitted and self.swap.refit > 0 and self.value > 0:
            share = min(1.0, self.swap.refit / self.value)
            remaining += (
                f"; a refit would lower the objective by {f'{share:.2%}' if share >= 1e-4 else f'{share:.1e} of it'}"
            )
        smoothness = f"smoothness at least {first.smoothness:.3g}"
        if self._has_kink:
            smoothness = "a loss with a kink has no smoothness to compare it with"
        lines = [
            f"Coefficients of the chosen features fully fitted: {'yes' if self.fitted else 'no'} ({remaining}).",
            f"First-order test: {'passed' if first.is_stationary(tol=inf) else 'not passed'} "
            f"(smallest L {first.smallest_L:.3g}, {smoothness}).",
        ]
        if self.fitted and first.smallest_L == inf:
            lines = [
                "Coefficients of the chosen features fully fitted: yes.",
                f"First-order test: not passed, because fewer {self.unit}s are chosen than the model may have, and the "
                f"{what} of the others is not zero: {relative:.1e} of that of the null model. A large ridge leaves "
                "them only a small gain"
                + (
                    f", which the lower bound proves to be below {PROVED:.0e} of the objective." if self.proved else "."
                ),
            ]
        lines += [
            self._swap_sentence(),
            bound_sentence(self.value, self.lower_bound, self.gap),
        ]
        return "\n".join([f"About {self.subject}.", *lines] if self.subject else lines)

    @property
    def _has_kink(self) -> bool:
        return self.smoothness == inf

    def _swap_sentence(self) -> str:
        swap = self.swap
        if swap.removed is None:
            if self._has_kink:
                return "Exchanges: not examined, because a loss with a kink has no second derivatives to rank them by."
            if not swap.complete:
                return "Exchanges: not examined, because the chosen groups, or all others, have too many columns."
            return "Exchanges: there is nothing to exchange."
        pair = f"{self.removed_name or swap.removed} for {self.added_name or swap.added}"
        change = abs(swap.decrease) / abs(self.value) if self.value else 0.0
        worse = (
            f"which raises the objective by {change:.2g} of its value" if swap.decrease < -swap.tolerance else "as good"
        )
        if not swap.optimal:
            advice = (
                ""
                if self.unit != "feature"
                else ('; solver=WorkingSet(effort="thorough") searches harder for it, unless columns are categorical')
            )
            return f"Exchanges: {pair} would lower the objective by {change:.2%}, so a better model exists{advice}."
        how, limit = f"among the {swap.tried} most promising, no exchange", ""
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
        are = "is so nearly a combination" if len(names) == 1 else "are so nearly combinations"
        return f" It is not proved, because {listed(names)} {are} of the chosen {self.unit}s that rounding decides."


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
        The objective that was minimised.
    constraint : Constraint
        The set of points with at most k non-zero coordinates or groups.
    w : array
        The answer.
    support : Support
        The support of the answer.
    name : callable
        Returns the name of a coordinate, or of a group, from its number.
    trace : Trace, optional
        The trace of the run that found the answer, for the scales of its null model.

    Notes
    -----
    Cost: some s + 25 to s + 50 data passes for a support of s coordinates, plus the Hessian of each group if there are
    groups; see `swap_certificate`. The lower bound takes at most 12 more, and the Hessian of at most 512 columns with
    each.
    """
    at, exact, structure = objective.evaluate(w), objective.double(), constraint.structure(tuple(w.shape))
    null_value = 0.0 if trace is None else trace.null_value
    kink = model_with_kink(objective)
    if kink is not None:
        at = with_least_subgradient(kink, constraint, at, support)
        swap = SwapCertificate(True, None, None, -inf, 0, complete=False)
    else:
        swap = swap_certificate(objective, constraint, at, null_value=null_value, support=support)
    provable = objective.traits.quadratic and swap.complete and not _is_bounded(structure)
    stationarity = certify_point(objective, constraint, at, support, trace)
    if kink is not None:
        stationarity = replace(stationarity, smoothness=inf)
    if isnan(swap.refit):
        fitted = is_negligible(stationarity.basic_feasibility, stationarity.gradient_scale, FEASIBLE)
    else:
        fitted = swap.refit <= max(swap.tolerance, FEASIBLE**2 * abs(null_value))
    value = at.value if exact is objective else exact.value(as_double(w))
    bound = lower_bound(objective, constraint, at)
    return ModelCertificate(
        stationarity=stationarity,
        swap=swap,
        exact=provable and not swap.undecided,
        value=value,
        removed_name=None if swap.removed is None else name(swap.removed),
        added_name=None if swap.added is None else name(swap.added),
        unit="feature" if structure is None or structure.blocks() is None else "group",
        fitted=fitted,
        undecided_names=swap.undecided_names(name) if provable else (),
        lower_bound=bound,
        gap=None if bound is None else relative_gap(value, bound, objective.lower_bound),
    )


def _is_bounded(structure: Structure | None) -> bool:
    return isinstance(structure, CoordinateBudget) and structure.bounds is not None
