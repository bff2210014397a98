"""Information criteria: minus twice the log-likelihood, plus a penalty on the number of features."""

from __future__ import annotations

from math import inf, lgamma, log, prod
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.result import Result


def aic(result: Result) -> float:
    r"""Return Akaike's criterion, :math:`-2 \log L + 2 p`, for a fit with p coefficients.

    Parameters
    ----------
    result : Result
        A fit of a `LinearModel`.

    Returns
    -------
    float
        Up to a constant of the data; for least squares with the noise variance at its maximum likelihood,
        :math:`-2 \log L = n \log(\mathrm{RSS} / n)`. A weight counts as so many rows.

    Raises
    ------
    CapabilityError
        If the objective has no likelihood, or the result was loaded from a file, which does not carry the data.
    InvalidInputError
        If the weights stand for fewer than three examples.

    Notes
    -----
    Criteria compare fits with far fewer coefficients than examples. A fit with as many, less one, gets infinity; but
    already at half as many a search over many columns fits noise that no criterion here accounts for.

    References
    ----------
    Akaike (1974), *A new look at the statistical model identification*.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.selection import bic, path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> f = LinearModel(X, 2 * X[:, 3] - X[:, 7] + rng.standard_normal(100))
    >>> min(path(f, Sparsity, range(1, 11)), key=bic).support
    Coordinates([3, 7])
    """
    model = _model(result)
    return _misfit(model, result) + 2.0 * _size(result)


def bic(result: Result) -> float:
    r"""Return Schwarz's criterion, :math:`-2 \log L + p \log n`, for a fit with p coefficients on n rows.

    The constant is that of `aic`.

    Parameters
    ----------
    result : Result
        As for `aic`.

    Returns
    -------
    float

    Raises
    ------
    CapabilityError, InvalidInputError
        As for `aic`.

    References
    ----------
    Schwarz (1978), *Estimating the dimension of a model*.
    """
    model = _model(result)
    return _misfit(model, result) + log(model.n_targets) * _size(result)


def ebic(result: Result, gamma: float = 1.0) -> float:
    r"""Return the extended BIC, :math:`\mathrm{BIC} + 2 \gamma \log \binom{d}{k}`, for k features chosen out of d.

    For many candidate features: it also pays for the number of models that could have been chosen. Where groups are
    chosen, d and k count groups. The constant is that of `aic`.

    Parameters
    ----------
    result : Result
        As for `aic`.
    gamma : float
        Between 0, the BIC, and 1.

    Returns
    -------
    float

    Raises
    ------
    CapabilityError, InvalidInputError
        As for `aic`; if the constraint does not say out of how many features it chooses; for gamma out of range.

    References
    ----------
    Chen and Chen (2008), *Extended Bayesian information criteria for model selection with large model spaces*.
    """
    if not 0.0 <= gamma <= 1.0:
        raise InvalidInputError(f"gamma must be between 0 and 1, got {format_value(gamma)}")
    d, k = _choice(result)
    return bic(result) + 2.0 * gamma * (lgamma(d + 1) - lgamma(k + 1) - lgamma(d - k + 1))


def gic(result: Result) -> float:
    r"""Return the generalised criterion :math:`-2 \log L + k \log(d) \log \log n`, for k features chosen out of d.

    Features are coordinates, also where they are chosen in groups. The constant is that of `aic`.

    Parameters
    ----------
    result : Result
        As for `aic`.

    Returns
    -------
    float

    Raises
    ------
    CapabilityError, InvalidInputError
        As for `aic`.

    References
    ----------
    Fan and Tang (2013), *Tuning parameter selection in high dimensional penalized likelihood*.
    """
    model = _model(result)
    constraint, w = _constraint(result), result.w
    free = constraint.project(0.0 * w).support.degrees_of_freedom
    d, k = prod(w.shape) - free, result.support.degrees_of_freedom - free
    per_feature = log(max(d, 2)) * log(log(model.n_targets))
    return _misfit(model, result) + per_feature * k


def _model(result: Result) -> Any:
    """Return the objective of a result, checked to have a likelihood."""
    model: Any = result.objective
    if not hasattr(model, "minus_twice_log_likelihood"):
        raise CapabilityError(
            "a criterion needs the objective of the fit, with a likelihood (LinearModel has one); "
            f"this result has {type(model).__name__}"
        )
    if model.n_targets < 3:
        raise InvalidInputError(
            f"the weights stand for {model.n_targets:.3g} examples; a criterion takes them as repetitions, so scale "
            "them until their sum is the number of examples"
        )
    return model


def _misfit(model: Any, result: Result) -> float:
    """Return minus twice the log-likelihood: infinite for a fit with as many coefficients as examples, less one."""
    if _size(result) >= model.n_targets - 1:
        return inf
    at = result.state.at if result.w is result.state.w else model.evaluate(result.w)  # of a run that ended badly
    rounding = 1e-14 * result.state.trace.null_value
    return -inf if at.value <= rounding else float(model.minus_twice_log_likelihood(at))


def _size(result: Result) -> int:
    """Return the number of fitted coefficients."""
    return result.support.degrees_of_freedom


def _choice(result: Result) -> tuple[int, int]:
    """Return the numbers of candidates, coordinates or groups, and of those chosen."""
    constraint = _constraint(result)
    structure = constraint.structure(tuple(result.w.shape))
    if structure is None:
        raise CapabilityError(
            f"ebic counts what was chosen out of how many, which {type(constraint).__name__} does not say; use bic"
        )
    return structure.candidates, structure.selected(result.support)


def _constraint(result: Result) -> Constraint:
    if result.constraint is None:
        raise CapabilityError("a criterion needs the constraint of the fit; a result that was loaded has none")
    return result.constraint
