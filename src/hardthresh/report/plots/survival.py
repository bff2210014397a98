"""Charts of times until an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number
from hardthresh.estimators.linear.held_out import quantile_bins

from .style import DARK, LEGEND, LIGHT, MUTED, styled_axes, takes_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GROUPS = {1: ("all rows",), 2: ("lower risk", "higher risk"), 3: ("low risk", "medium risk", "high risk")}
_LINES = (DARK, MUTED, LIGHT)


def kaplan_meier(time: Any, event: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the Kaplan-Meier estimate of the survival function at the event times.

    .. math:: \hat S(t) = \prod_{t_i \le t} \Bigl(1 - \frac{d_i}{n_i}\Bigr)

    with the weight :math:`d_i` of the events at time :math:`t_i`, and the weight :math:`n_i` of the rows at risk, whose
    time is at least :math:`t_i`.

    Parameters
    ----------
    time : array, shape (n,)
        The time of the event, or of censoring.
    event : array of bool, shape (n,)
        Whether the time is that of an event.
    sample_weight : array, shape (n,), optional
        Weights >= 0; weight 2 is a row given twice.

    Returns
    -------
    times : array, shape (m,)
        The event times, increasing.
    survival : array, shape (m,)
        The estimate from each event time on; before the first it is 1.

    Raises
    ------
    InvalidInputError
        For arguments of different lengths.

    Notes
    -----
    Cost: O(n log n).

    References
    ----------
    E. L. Kaplan and P. Meier (1958), Nonparametric estimation from incomplete observations, *Journal of the American
    Statistical Association* 53, 457-481.

    Examples
    --------
    >>> import numpy as np
    >>> times, survival = kaplan_meier(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]))
    >>> times, survival.round(2)
    (array([1., 2., 3.]), array([0.75, 0.5 , 0.  ]))
    """
    time, event = np.asarray(time, dtype=np.float64), np.asarray(event, dtype=bool)
    weight = np.ones(time.shape) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not time.ndim == 1 or not time.shape == event.shape == weight.shape:
        raise InvalidInputError(
            f"time, event and sample_weight must have one entry for each row, but have the shapes {time.shape}, "
            f"{event.shape} and {weight.shape}"
        )
    times, place = np.unique(time, return_inverse=True)
    events, leaving = np.bincount(place, weight * event), np.bincount(place, weight)
    at_risk = np.cumsum(leaving[::-1])[::-1]
    counted = events > 0
    survival = np.cumprod(1.0 - events[counted] / at_risk[counted])
    return times[counted], survival


@takes_axes
def plot_survival(
    time: Any,
    event: Any,
    risk: Any,
    ax: Axes | None = None,
    *,
    times: Any = None,
    survival: Any = None,
    n_groups: int = 3,
    sample_weight: Any = None,
) -> Axes:
    """Draw the observed (Kaplan-Meier) and the predicted survival of groups of rows with similar predicted risk.

    Step functions are observed, and dashed lines are the mean of the predicted curves of the group. If the model
    discriminates well, the groups are far apart; if it is calibrated, the dashed lines follow the steps.

    Parameters
    ----------
    time : array, shape (n,)
        The time of the event, or of censoring.
    event : array of bool, shape (n,)
        Whether the time is that of an event.
    risk : array, shape (n,)
        The predicted risk, larger for earlier events, such as the prediction of `SparseCoxRegression`.
    {ax}
    times : array, shape (m,), optional
        The times of `survival`, increasing.
    survival : array, shape (n, m), optional
        The predicted probability of no event up to each of the times, for each row.
    n_groups : int
        The number of groups of about equal weight, 1 to 3.
    sample_weight : array, shape (n,), optional
        Weights.

    {returns}
    InvalidInputError
        If there are no events, or not 1 to 3 groups.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_survival
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.standard_normal(300)
    >>> time = rng.exponential(np.exp(-risk))
    >>> ax = plot_survival(time, np.ones(300, dtype=bool), risk)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['low risk: 100 of 100 events', 'medium risk: 100 of 100 events', 'high risk: 100 of 100 events']
    """
    if n_groups not in _GROUPS:
        raise InvalidInputError(f"n_groups must be 1, 2 or 3, got {n_groups}")
    time, event = np.asarray(time, dtype=np.float64), np.asarray(event, dtype=bool)
    weight = np.ones(len(time)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not (event & (weight > 0)).any():
        raise InvalidInputError("there is no event, so that nothing is known about survival")
    groups = quantile_bins(np.asarray(risk, dtype=np.float64), weight, n_groups)
    ax = styled_axes(ax, height=4.0)
    for group, (name, color) in enumerate(zip(_GROUPS[n_groups], _LINES, strict=False)):
        rows = (groups == group) & (weight > 0)
        if not rows.any():
            continue
        at, share = kaplan_meier(time[rows], event[rows], weight[rows])
        at, share = np.concatenate([[0.0], at, [time[rows].max()]]), np.concatenate([[1.0], share, share[-1:]])
        share = share if len(share) == len(at) else np.ones(len(at))  # no event in the group
        label = f"{name}: {number(weight[rows] @ event[rows])} of {number(weight[rows].sum())} events"
        (line,) = ax.plot(at, share, color=color, linewidth=1.9, drawstyle="steps-post", zorder=3, label=label)
        line.set_gid(f"{label}; observed")
        if times is not None and survival is not None:
            mean = np.average(np.asarray(survival)[rows], axis=0, weights=weight[rows])
            (dashed,) = ax.plot(times, mean, color=color, linewidth=1.3, linestyle=(0, (4, 3)), zorder=2)
            dashed.set_gid(f"{name}: predicted")
    ax.set_ylim(0.0, 1.03)
    ax.set_xlabel("time")
    ax.set_ylabel("share without the event")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax


@takes_axes
def plot_baseline_hazard(times: Any, cumulative_hazard: Any, ax: Axes | None = None) -> Axes:
    """Draw the cumulative hazard of a row with mean features over time.

    Its slope is the hazard, the rate of events among the rows without an event so far: the hazard increases where the
    line becomes steeper.

    Parameters
    ----------
    times : array, shape (m,)
        The event times, increasing.
    cumulative_hazard : array, shape (m,)
        The cumulative hazard from each event time on.
    {axes}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.report import plot_baseline_hazard
    >>> plot_baseline_hazard(np.array([1.0, 2.0]), np.array([0.1, 0.3])).get_ylabel()
    'cumulative hazard'
    """
    times, hazard = np.asarray(times, dtype=np.float64), np.asarray(cumulative_hazard, dtype=np.float64)
    ax = styled_axes(ax, height=3.2)
    start = min(0.0, float(times[0])) if len(times) else 0.0
    ax.plot([start, *times], [0.0, *hazard], color=DARK, linewidth=1.7, drawstyle="steps-post", zorder=2)
    ax.set_xlabel("time")
    ax.set_ylabel("cumulative hazard")
    return ax
