"""A permutation test of a whole estimation procedure."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.checking import checked_integer, seed_of
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError, format_value, plural
from hardthresh.core.numbers import number
from hardthresh.core.progress import progress_line
from hardthresh.core.randomness import Purpose, generator
from hardthresh.designs import RowBlocks, Serial
from hardthresh.designs.blocks import in_blocks
from hardthresh.objectives.guess import some_rows
from hardthresh.objectives.inputs import weighted_rows

from .comparison import in_parallel

_TIE = 1e-9
"""Share of the statistic below which two are equal: orders that change nothing count, whatever the rounding."""
_GAIN = "gain in the held-out score"
"""What is larger for a better fit, so that the statistic is minus it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PermutationTest:
    """The result of a permutation test; ``print`` shows it as text.

    Attributes
    ----------
    p_value : float
        The share of permutations, including that of the data, whose statistic is at most that of the data; in (0, 1].
    statistic : float
        The statistic of the data; a smaller value is a better fit.
    statistics : array, shape (n_permutations,)
        The statistic of each random permutation; NaN if the fit failed.
    what : str
        The name of the statistic. If it is "gain in the held-out score", `statistic` is minus this gain.
    n_failed : int
        The number of fits to permutations that failed or did not converge. They count as fits that are as good as that
        to the data, so the p-value is conservative.
    failure : str
        Why the first of these fits failed; empty if none failed.
    """

    p_value: float
    statistic: float
    statistics: np.ndarray
    what: str
    n_failed: int = 0
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of numbers, strings and lists, which `json` can write; None stands for NaN."""
        return {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "statistics": [None if isnan(value) else value for value in self.statistics.tolist()],
            "what": self.what,
            "n_failed": self.n_failed,
            "failure": self.failure,
        }

    def __str__(self) -> str:
        orders = self.statistics.size
        as_good = round(self.p_value * (orders + 1)) - 1
        value = -self.statistic if self.what == _GAIN else self.statistic
        lines = [
            f"p = {self.p_value:.3g}: of {plural(orders, 'random order')} of the targets, "
            f"{as_good or 'none'} {'lead' if as_good > 1 else 'leads'} to a fit as good as that to the data "
            f"({self.what} {number(value)})."
        ]
        if self.n_failed:
            lines.append(f"{plural(self.n_failed, 'fit')} failed and count as that good; the first: {self.failure}.")
        if as_good == 0:
            lines.append(f"More orders can lower it: with {orders} of them it is at least {1 / (orders + 1):.3g}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    n_permutations: int = 99,
    *,
    statistic: Callable[[Any], float] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
    **params: Any,
) -> PermutationTest:
    r"""Test whether an estimator fits the data better than randomly permuted targets.

    .. math:: p = \frac{1 + \#\{b : f_b \le f\}}{1 + B}

    where f is the statistic of the fit to the data, and :math:`f_b` are those of the fits to B random permutations of
    the targets. The whole procedure is repeated for each permutation, including the choice of the number of features
    and of the ridge. Weights, offsets, strata and other arrays with one entry per row are permuted with the targets.

    Parameters
    ----------
    estimator : estimator
        A sparse linear model, with or without cross-validation, or any estimator if `statistic` is given. It is cloned.
    X, y :
        Data, as its `fit` accepts them. For a table in blocks, y must contain the targets of all rows, because targets
        inside the blocks cannot be permuted.
    n_permutations : int
        B, >= 1; the p-value is at least 1 / (1 + B).
    statistic : callable, optional
        Returns a number for a fitted estimator, smaller for a better fit. Default: with cross-validation, the mean
        held-out score without features minus the best mean held-out score; with an information criterion, its smallest
        value; otherwise the objective of the fit.
    random_state : int or RandomState, optional
        The seed of the permutations.
    n_jobs : int, optional
        The number of fits that run in parallel, as in joblib.
    progress : bool
        Whether to show a progress line on standard error.
    **params : dict
        Other parameters of `fit`, such as `sample_weight`, `offset` and `strata`.

    Returns
    -------
    PermutationTest

    Raises
    ------
    InvalidInputError
        For settings out of range, `groups` of rows, estimators without a default statistic, and tables in blocks that
        contain weights or offsets, which would have to be permuted with the targets.
    CapabilityError
        For a table in blocks without y, or with an unknown number of rows.
    ValueError
        As raised by the estimator for the data.

    Notes
    -----
    Guarantee: for any estimator and statistic, the p-value is exact, :math:`P(p \le t) \le t`, under the hypothesis
    that the rows of X are independent of the targets (with what is permuted with them) and exchangeable. Targets are
    also permuted relative to always-included columns, so the test is not conditional on these. Dependent rows in groups
    are not exchangeable and raise an error.

    A small p-value shows that the procedure found a relation to the target. It does not show that each chosen feature
    has an effect.

    Cost: B + 1 fits, each of which takes a few passes over a table in blocks. `hardthresh.selection.null_p_value`,
    which the estimators with cross-validation use, tests nearly the same hypothesis at the cost of a few fits, by the
    sum of the ten largest scores of single columns. It needs no refits, and takes account of always-included columns,
    weights and groups, but it does not detect effects that only several features show together.

    References
    ----------
    B. Phipson and G. K. Smyth (2010), Permutation p-values should never be zero, *Statistical Applications in Genetics
    and Molecular Biology* 9.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 10))
    >>> model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    >>> ht.permutation_test(model, X, 2 * X[:, 3] + rng.standard_normal(40), n_permutations=19, random_state=0).p_value
    0.05
    >>> ht.permutation_test(model, X, rng.standard_normal(40), n_permutations=19, random_state=0).p_value > 0.1
    True
    """
    from sklearn.utils.validation import _num_samples  # here, as not everyone who imports this room needs scikit-learn

    n_permutations = checked_integer("n_permutations", n_permutations, 1)
    if params.get("groups") is not None:
        raise InvalidInputError(
            "rows of groups that depend on each other are not exchangeable, so that a permutation test of them is not "
            "valid; leave groups out only if the rows are independent"
        )
    if statistic is not None and not callable(statistic):
        raise InvalidInputError(f"statistic must be callable or None, got {format_value(statistic)}")
    measure, seed = _Measure(statistic), seed_of(random_state)
    if in_blocks(X):
        _check_blocks(X, y)
    kept = weighted_rows(params.get("sample_weight"), _num_samples(X if y is None else y))
    own = _fitted(estimator, X, y, params, kept, kept)
    first = measure(own)
    orders = (kept[generator(seed, b, Purpose.PERMUTATIONS).permutation(kept.size)] for b in range(n_permutations))
    found: list[float | str] = []
    with progress_line(progress, "permutations", n_permutations) as report:
        for value in in_parallel(_refitted, ((estimator, X, y, params, kept, o, measure) for o in orders), n_jobs):
            found.append(value)
            report("")
    failures = [value for value in found if isinstance(value, str)]
    statistics = np.array([nan if isinstance(value, str) else value for value in found])
    limit = first + _TIE * abs(first)
    as_good = int(np.count_nonzero(~(statistics > limit)))  # NaN counts
    return PermutationTest(
        p_value=(1 + as_good) / (1 + n_permutations),
        statistic=first,
        statistics=statistics,
        what=measure.words(own),
        n_failed=len(failures),
        failure=failures[0].rstrip(".") if failures else "",
    )


@dataclass(frozen=True, slots=True)
class _Measure:
    """The statistic of fitted estimators."""

    given: Callable[[Any], float] | None

    def __call__(self, model: Any) -> float:
        """Return the statistic of a fit."""
        if self.given is not None:
            return float(self.given(model))
        return self._default(model)[0]

    def words(self, model: Any) -> str:
        """Return what it is."""
        return "statistic" if self.given is not None else self._default(model)[1]

    def _default(self, model: Any) -> tuple[float, str]:
        if hasattr(model, "mean_scores_") and hasattr(model, "null_scores_"):
            gain = np.max(double(model.mean_scores_)) - np.mean(double(model.null_scores_))
            return -float(gain), _GAIN
        values = double(model.criterion_path_) if hasattr(model, "criterion_path_") else np.zeros(0)
        if np.isfinite(values).any():
            return float(np.nanmin(values)), f"least {model.criterion.upper()}"
        if hasattr(model, "objective_"):
            return float(model.objective_), "objective"
        raise InvalidInputError(
            f"{type(model).__name__} has no statistic by default; give one, as statistic=lambda model: ..., smaller "
            "for a better fit"
        )


def _fitted(estimator: Any, X: Any, y: Any, params: dict[str, Any], rows: np.ndarray, order: np.ndarray) -> Any:
    """Return a fit of some rows of X to the targets of rows in some order, and to whatever stays with these."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing, indexable
    from sklearn.utils.validation import _check_method_params

    if in_blocks(X):  # its rows stay where they are, those of weight 0 too
        places = np.arange(len(y))
        places[rows] = order
        return clone(estimator).fit(X, _safe_indexing(y, places), **_check_method_params(y, params, indices=places))
    X, y = indexable(X, y)
    own = _check_method_params(X, params, indices=order)
    return clone(estimator).fit(_safe_indexing(X, rows), _safe_indexing(y, order), **own)


def _check_blocks(X: Any, y: Any) -> None:
    """Check that all that is permuted against a table in blocks is beside it."""
    engine: Any = Serial(X) if isinstance(X, RowBlocks) else X
    if y is None or engine.blocks.n_rows is None:
        raise CapabilityError(
            "targets of blocks are not in one place, so that they have no random order; give y, the targets of all "
            "rows, beside a table in blocks whose rows are counted"
        )
    rows = some_rows(engine.on_blocks(engine.blocks.select(np.arange(1))))
    if rows.weight is not None or rows.offset is not None:
        raise InvalidInputError(
            "the blocks have weights or offsets, which stay with the targets in a random order; give sample_weight and "
            "offset beside blocks that have none"
        )


def _refitted(
    estimator: Any,
    X: Any,
    y: Any,
    params: dict[str, Any],
    rows: np.ndarray,
    order: np.ndarray,
    measure: _Measure,
) -> float | str:
    """Return the statistic of a fit to targets in some order, or why it failed.

    What a fit warns of is not repeated for each order: what matters of it was said of the data.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = _fitted(estimator, X, y, params, rows, order)
            value = measure(model)
    except (ValueError, HardThreshError) as error:
        return str(error)
    if not getattr(model, "converged_", True):
        return str(model.stop_reason_)
    return "the statistic is not a number" if isnan(value) else value
