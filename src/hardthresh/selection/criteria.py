"""Information criteria: minus twice the log-likelihood, plus a penalty on the number of features."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, lgamma, log, prod
from typing import Any

from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.losses import Loss

from .effective_size import coefficients, effective_size, evaluation

PRICES: dict[str, Callable[[float], float]] = {"bic": log, "aic": lambda n: 2.0}
"""What criteria of n examples add to minus twice the log-likelihood for each coefficient, or edge."""


def aic(result: Result) -> float:
    r"""Return Akaike's criterion, :math:`-2 \log L + 2 p`, for a fit with p coefficients.

    With a ridge, p is the effective number of coefficients (`degrees_of_freedom`), in every criterion. The likelihood
    is that of the fit, without the ridge term.

    Parameters
    ----------
    result : Result
        A fit of a `LinearModel` or `MultiOutputModel`.

    Returns
    -------
    float
        The criterion, up to a constant that depends only on the data. For least squares, with the maximum likelihood
        estimate of the noise variance, :math:`-2 \log L = n \log(\mathrm{RSS} / n)`, where RSS is the residual sum of
        squares. Weights count as numbers of rows.

    Raises
    ------
    CapabilityError
        If the objective has no likelihood, or the result was loaded from a file, which does not contain the data.
    InvalidInputError
        If the weights represent fewer than three examples.

    Notes
    -----
    The criteria are for fits with far fewer coefficients than examples. A fit with n - 1 coefficients or more has the
    criterion infinity; but already with n / 2, a search over many columns fits noise that none of these criteria
    accounts for.

    Terms that depend only on the targets, such as :math:`n (1 + \log 2 \pi)` for least squares, are omitted. Values
    therefore differ from those of other software by a number that is the same for all fits to the same rows; compare
    differences.

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
    misfit, size, n = _fit(result)
    return misfit + PRICES["aic"](n) * size


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
    misfit, size, n = _fit(result)
    return misfit + PRICES["bic"](n) * size


def ebic(result: Result, gamma: float = 1.0, n_features_original: int | None = None) -> float:
    r"""Return the extended BIC, :math:`\mathrm{BIC} + 2 \gamma \log \binom{d}{k}`, for k features chosen out of d.

    It is for many candidate features: the last term penalises the number of models with k features. If groups are
    chosen, d and k count groups. The constant is that of `aic`.

    Parameters
    ----------
    result : Result
        As for `aic`.
    gamma : float
        0 <= gamma <= 1; 0 gives the BIC.
    n_features_original : int, optional
        d, the number of features (or groups) before any screening that used the target; at least the present number.
        Default: the number of features (or groups) of the constraint.

    Returns
    -------
    float

    Raises
    ------
    CapabilityError, InvalidInputError
        As for `aic`; if the constraint does not define a number of candidate features; for gamma out of range, or fewer
        original features than present ones.

    References
    ----------
    Chen and Chen (2008), *Extended Bayesian information criteria for model selection with large model spaces*.

    Examples
    --------
    Of 1,000 columns, a screening by correlations left 20:

    >>> import numpy as np
    >>> from functools import partial
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.selection import path
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((50, 1000)), rng.standard_normal(50)
    >>> few = np.argsort(-abs(X.T @ y))[:20]
    >>> fits = [*path(LinearModel(X[:, few], y), Sparsity, range(5))]
    >>> len(min(fits, key=ebic).support), len(min(fits, key=partial(ebic, n_features_original=1000)).support)
    (4, 0)
    """
    if not 0.0 <= gamma <= 1.0:
        raise InvalidInputError(f"gamma must be between 0 and 1, got {format_value(gamma)}")
    return bic(result) + 2.0 * gamma * _log_choices(result, n_features_original)


def working_ebic(result: Result, gamma: float = 1.0, n_features_original: int | None = None) -> float:
    """Return the extended BIC with the working criterion of a loss in the place of its likelihood.

    For a loss with a likelihood it is `ebic`. For one without it (`Loss.working_criterion`) it only ranks fits with the
    same parameters of the loss: a heuristic.
    """
    misfit, size, n = _fit(result, _working)
    return misfit + PRICES["bic"](n) * size + 2.0 * gamma * _log_choices(result, n_features_original)


def gic(result: Result, n_features_original: int | None = None) -> float:
    r"""Return the generalised criterion :math:`-2 \log L + k \log(d) \log \log n`, for k features chosen out of d.

    Features are coordinates, even if they are chosen in groups. With several outputs, d counts the rows of W and k
    their coefficients. The constant is that of `aic`.

    Parameters
    ----------
    result : Result
        As for `aic`.
    n_features_original : int, optional
        d, the number of features before any screening, as for `ebic`.

    Returns
    -------
    float

    Raises
    ------
    CapabilityError, InvalidInputError
        As for `aic`; for fewer original features than present ones.

    References
    ----------
    Fan and Tang (2013), *Tuning parameter selection in high dimensional penalized likelihood*.
    """
    constraint, w = _constraint(result), result.w
    free = constraint.project(0.0 * w).support.degrees_of_freedom
    misfit, size, n = _fit(result)
    features = (prod(w.shape) - free) // prod(w.shape[1:])  # of several outputs, rows of coefficients
    features = _before_screening(n_features_original, features)
    return misfit + log(max(features, 2)) * log(log(n)) * (size - coefficients(result.objective, free))


CRITERIA: dict[str, Callable[..., float]] = {"ebic": ebic, "bic": bic, "aic": aic, "gic": gic}
"""The criteria by name; all take a result, and are smaller for a better one."""


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


def _likelihood(model: Any, at: Evaluation) -> float:
    return float(model.minus_twice_log_likelihood(at))


def _working(model: Any, at: Evaluation) -> float:
    if hasattr(model, "working_criterion"):  # over blocks, where nothing has a number for each row
        return float(model.working_criterion(at))
    if not isinstance(model.loss, Loss) or getattr(model, "y", None) is None:  # of products, or several outputs
        return _likelihood(model, at)
    return float(model.loss.working_criterion(model.y, at.prediction, model.weights, model.n_targets))


def _fit(result: Result, misfit: Callable[[Any, Evaluation], float] = _likelihood) -> tuple[float, float, float]:
    """Return minus twice the log-likelihood, the number of coefficients, and that of examples.

    The first is infinite for a fit with as many coefficients as targets, less one.
    """
    model = _model(result)
    size, n = effective_size(model, result), model.n_examples
    if size >= model.n_targets - 1:
        return inf, size, n
    at = evaluation(model, result)
    bound = model.lower_bound
    rounding = 1e-14 * (result.state.trace.null_value - bound)
    return -inf if at.value - bound <= rounding else misfit(model, at), size, n


def _before_screening(original: int | None, left: int) -> int:
    """Return the number of candidates there were, which is that of those left unless another is given."""
    return left if original is None else checked_integer("n_features_original", original, least=left)


def _log_choices(result: Result, original: int | None = None) -> float:
    """Return the logarithm of the number of choices of as many candidates as were chosen."""
    left, k = choice(result)
    d = _before_screening(original, left)
    return lgamma(d + 1) - lgamma(k + 1) - lgamma(d - k + 1)


def choice(result: Result) -> tuple[int, int]:
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
