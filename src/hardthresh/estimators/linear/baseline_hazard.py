"""The baseline hazard of a Cox model: its estimation, and its values at given times."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import double, move, to_numpy
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Evaluation
from hardthresh.losses.cox import CoxMean

from .problem import Problem


def baseline_hazard(problem: Problem, at: Evaluation) -> tuple[Any, Any]:
    """Return the event times, and the cumulative hazards at the means of the columns.

    Returns
    -------
    times, hazards : array, or dict from stratum to array
        Of float64, in the library of the columns.
    """
    mean_loss = problem.objective.mean_loss
    assert isinstance(mean_loss, CoxMean)
    sets, y = mean_loss.sets, double(problem.objective.y)
    prediction = problem.objective.predict(at.point) if at.prediction is None else at.prediction
    jumps = mean_loss.hazards(prediction)
    times, hazards = {}, {}
    for part in sets.strata():
        number = int(y[sets.order[sets.starts[part.start]], 2]) if y.shape[1] == 3 else 0
        times[number] = move(problem.codes.times[sets.times[part][::-1].astype(np.int64)], problem.mean)
        hazards[number] = move(np.cumsum(jumps[part][::-1]), problem.mean)
    if problem.codes.strata is None:
        return times[0], hazards[0]
    labels = problem.codes.strata[[*times]].tolist()
    return dict(zip(labels, times.values(), strict=True)), dict(zip(labels, hazards.values(), strict=True))


def baseline_at(event_times: Any, hazards: Any, times: Any, strata: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cumulative baseline hazard of each stratum at some times, and the stratum of each row.

    Parameters
    ----------
    event_times, hazards : array, or dict from stratum to array
        As of `baseline_hazard`.
    times : array, shape (n_times,), or None
        Default: all event times.
    strata : array, shape (n,), or None
        The stratum of each row.
    n : int
        The number of rows.

    Returns
    -------
    baseline : array, shape (n_strata, n_times)
        Right-continuous steps.
    stratum : array of int, shape (n,)

    Raises
    ------
    InvalidInputError
        For strata of a model without them, missing or unknown ones, and times that are no numbers.
    """
    if isinstance(event_times, dict):
        stratum = _stratum_numbers(list(event_times), strata, n)
    elif strata is not None:
        raise InvalidInputError("the model was fitted without strata; leave strata out")
    else:
        event_times, hazards, stratum = {None: event_times}, {None: hazards}, np.zeros(n, dtype=np.int64)
    own = {label: double(of_label) for label, of_label in event_times.items()}
    at = np.unique(np.concatenate([*own.values()])) if times is None else _checked_times(times)
    steps = [
        np.append(0.0, double(hazards[label]))[np.searchsorted(of_label, at, side="right")]
        for label, of_label in own.items()
    ]
    return np.array(steps), stratum


def _stratum_numbers(labels: list[Any], strata: Any, n: int) -> np.ndarray:
    """Return the place of the stratum of each row among those of the fit."""
    if strata is None:
        raise InvalidInputError("the model was fitted with strata; give the stratum of each row")
    given = np.asarray(to_numpy(strata) if is_array_api_obj(strata) else strata)
    if given.shape != (n,):
        raise InvalidInputError(f"strata has shape {given.shape}; ({n},) is needed, one label for each row of X")
    place = {label: number for number, label in enumerate(labels)}
    unknown = next((label for label in given.tolist() if label not in place), None)
    if unknown is not None:
        raise InvalidInputError(
            f"the stratum {format_value(unknown)} has no event in the rows of the fit; its hazard is unknown"
        )
    return np.array([place[label] for label in given.tolist()], dtype=np.int64)


def _checked_times(times: Any) -> np.ndarray:
    """Return the times of predictions as an array."""
    try:
        plain = np.atleast_1d(np.asarray(to_numpy(times) if is_array_api_obj(times) else times, dtype=float))
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"times must be numbers in a list, got {format_value(times)}") from error
    if plain.ndim != 1:
        raise InvalidInputError(f"times must be numbers in a list, got an array of shape {plain.shape}")
    if np.isnan(plain).any():
        raise InvalidInputError(
            f"times must be numbers, but times[{int(np.argmax(np.isnan(plain)))}] is nan; leave it out"
        )
    return plain
