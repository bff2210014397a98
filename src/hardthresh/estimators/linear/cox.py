"""Sparse proportional hazards, for times to an event of which some are censored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from hardthresh.arrays import double, move, namespace, to_numpy, where_true
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.core.typing import Array
from hardthresh.losses import Cox

from ..base import as_numbers, row_weights
from ..callbacks import fit_method
from ..documentation import public_estimator
from ..parameters import own_parameters
from ..soundness import check_coefficients, check_numbers, check_present
from ..table import Table
from ..upgrades import CHOSEN_BY_EBIC
from .baseline_hazard import baseline_at, baseline_hazard
from .concordance import concordance
from .criterion import CriterionPath
from .problem import Problem
from .rows import Rows
from .stratified import StratifiedModel
from .summary import Summary
from .survival_targets import SurvivalTargets, check_comparable, stratified, warn_of_early_times


@public_estimator("cox_regression", intercept_and_scale="standardize : bool", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(without=["fit_intercept"], ties="breslow")
class SparseCoxRegression(RegressorMixin, StratifiedModel):
    r"""Cox regression of censored times with at most k features: proportional hazards.

    .. math:: \min_b \; \frac{1}{\sum_i s_i} \sum_{i : e_i = 1} s_i \Bigl(\log \sum_{j : t_j \ge t_i} s_j e^{u_j}
              - u_i\Bigr) + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    for times t with events e (0 where a time is censored), weights s, offsets o, and :math:`\sigma_j` the standard
    deviation of column j (1 if not standardised). The hazard of a row is :math:`e^u` times a baseline hazard that is
    the same for all rows of a stratum, so there is no intercept.

    Parameters
    ----------
    ties : {{"breslow", "efron"}}
        How events at equal times count: see `hardthresh.losses.Cox`. With "breslow" a weight of 2 is exactly a row
        given twice; "efron" is less biased where many times are tied, as when they are rounded.
    {parameters}

    Attributes
    ----------
    coef_ : array, shape (n_features,)
        Coefficients on the scale of the data; exactly 0 for features not chosen. The hazard is multiplied by
        ``exp(coef_[j])`` where feature j is larger by 1.
    means_ : array, shape (n_features,)
        The weighted means of the columns, where the baseline hazard is that of a row.
    event_times_ : array, shape (n_event_times,), or dict from stratum to such an array
        The times of events, increasing.
    baseline_cumulative_hazard_ : array like `event_times_`, or a dict of them
        Breslow's estimate of the cumulative hazard at these times of a row at `means_`, without an offset; with
        ``ties="efron"`` Efron's.
    {attributes}

    Notes
    -----
    The default ridge is small but not zero, because a few features out of many often order all events, and then no
    finite coefficients are best without it.

    References
    ----------
    D. R. Cox (1972), Regression models and life-tables, *Journal of the Royal Statistical Society B* 34, 187-220.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseCoxRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> time, censored = rng.exponential(np.exp(X[:, 30] - X[:, 4])), rng.exponential(2.0, 200)
    >>> y = np.column_stack([np.minimum(time, censored), time <= censored])
    >>> model = SparseCoxRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, round(model.score(X, y), 2)
    (array([ 4, 30]), 0.8)
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0]).shape
    (2, 2)
    """

    _takes_blocks: ClassVar[bool] = False
    _loss_type: ClassVar[Any] = Cox
    _needs_all_rows: ClassVar[str] = "the partial likelihood compares each row with all others at risk; use fit"
    fit_intercept = False

    ties: str
    means_: Array
    event_times_: Any
    baseline_cumulative_hazard_: Any

    @property
    def _loss(self) -> Any:
        return Cox(ties=self.ties)

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, strata: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Finite numbers; float32 is computed in float32. The columns of `categorical_features` may hold anything.
        y : array or data frame, shape (n_samples, 2), (n_samples, 3) or (n_samples,)
            Columns of times, events (1, or 0 where a time is censored), and perhaps strata, in this order; or a
            structured array or a data frame of two columns, one of times and one of truths, the events; or times alone,
            all of them those of events. Only the order of the times counts.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights; with ``ties="breslow"`` weight 2 is a row given twice, weight 0 a row left out.
        offset : array, shape (n_samples,), optional
            A known part of the log relative hazard.
        strata : array, shape (n_samples,), optional
            A label for each row; the rows of each label have a baseline hazard of their own.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For NaN, infinity, wrong lengths, no event, columns of y whose order is doubtful, or settings out of range;
            the message says which and what to do.

        Warns
        -----
        NothingFoundWarning
            If "auto" chooses no feature, or there are too few rows to choose any.
        SearchRangeWarning
            If "auto" chooses as many as it compares, and others are possible beyond it.
        UserWarning
            For times that are not positive.
        """
        return self._fit(X, stratified(y, strata), sample_weight, offset)

    def _labels_to_balance(self, y: Any) -> np.ndarray | None:
        return SurvivalTargets.of(y).event

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return x'b + offset, the logarithm of the relative hazard, shape (n_samples,).

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,), optional
            A known part of it.
        """
        return self._linear_predictor(X, offset, "predict")

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, strata: Any = None) -> float:
        """Return Harrell's C, the share of comparable pairs of rows whose predictions are in the right order.

        A pair is comparable if one row has an event while the other is known to go on; equal predictions count half,
        and pairs are of one stratum.

        Parameters
        ----------
        X, y, sample_weight, offset, strata :
            As in `fit`.

        Returns
        -------
        float
            0.5 for predictions at random, 1 for the right order; NaN if no pair is comparable.
        """
        u = to_numpy(self.predict(X, offset))
        given = self._validate(X, stratified(y, strata), sample_weight, offset, reset=False)
        weights = row_weights(sample_weight, given.X)
        return concordance(given.y, u, weights)

    def predict_cumulative_hazard(self, X: Any, times: Any = None, offset: Any = None, strata: Any = None) -> Any:
        """Return the cumulative hazard of each row up to some times, shape (n_samples, n_times).

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        times : array, shape (n_times,), optional
            Default: all times of events, `event_times_`.
        offset : array, shape (n_samples,), optional
            A known part of the log relative hazard.
        strata : array, shape (n_samples,), optional
            The stratum of each row, for models that were fitted with strata.

        Returns
        -------
        array of float64, shape (n_samples, n_times)
            Steps at the times of events: 0 before the first one, constant after the last one.

        Notes
        -----
        The hazard of a row is `baseline_cumulative_hazard_` times :math:`e^u` over that of a row at `means_`. With
        ``ties="breslow"`` the baseline rises at each time by the weight of its events over the sum of :math:`s e^u` of
        its risk set, as in scikit-survival. With ``ties="efron"`` the l-th of m tied events meets a risk set less the
        share (l - 1)/m of the tied ones, as in the likelihood and in ``survfit`` of R; lifelines and scikit-survival
        keep Breslow's sum there, with Efron's coefficients. Without ties all of them are equal. Of 400 simulated times
        with mean 1 that are rounded up to halves, probabilities of survival have root mean square errors of 0.07 by
        Efron's sum and 0.15 by Breslow's; rounded up to eighths, of 0.03 and 0.05.
        """
        log_hazard = self._linear_predictor(X, offset, "predict_cumulative_hazard")
        u = double(log_hazard)
        if not hasattr(self, "event_times_"):
            raise CapabilityError(
                "the models that a scorer compares in folds have no baseline hazard, so that predict_cumulative_hazard "
                "and predict_survival_function are not available; use predict, or scoring=None, or GridSearchCV"
            )
        centre = float(double(self.means_) @ double(self.coef_))
        baseline, stratum = baseline_at(self.event_times_, self.baseline_cumulative_hazard_, times, strata, u.size)
        return move(np.exp(u - centre)[:, None] * baseline[stratum], log_hazard)

    def predict_survival_function(self, X: Any, times: Any = None, offset: Any = None, strata: Any = None) -> Any:
        """Return the probability of each row that no event has happened up to some times.

        Parameters
        ----------
        X, times, offset, strata :
            As for `predict_cumulative_hazard`.

        Returns
        -------
        array of float64, shape (n_samples, n_times)
            The exponential of minus the cumulative hazard, whose notes say how tied times count and how other packages
            differ.
        """
        hazard = self.predict_cumulative_hazard(X, times, offset, strata)
        return namespace(hazard).exp(-hazard)

    def _validate(self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool) -> Table:
        """Return data as validated arrays, with a row of time, event, and perhaps stratum, for each row as targets."""
        targets = SurvivalTargets.of(y)
        table = super()._validate(X, targets.time, sample_weight, offset, reset=reset)
        time = as_numbers(np.asarray(table.y), "y").astype(np.float64)
        counted = np.ones(time.size, dtype=bool) if table.sample_weight is None else table.sample_weight > 0
        rows, codes = targets.rows(time, counted)
        if reset:
            check_comparable(rows, counted, codes)
            warn_of_early_times(time, counted)
        return replace(table, y=rows, codes=codes)

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        rows, codes = given.codes.ranked(given.y)
        return super()._encode(replace(given, y=rows, codes=codes), reset=reset)

    def _targets_as_given(self, table: Table) -> np.ndarray:
        """Return times, events, and perhaps the labels of strata: of objects if these are no numbers."""
        labelled: np.ndarray = table.codes.labelled(double(table.y))
        return labelled

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.ties not in ("breslow", "efron"):
            raise InvalidInputError(f'ties must be "breslow" or "efron", got {format_value(self.ties)}')

    def _check_attributes(self) -> None:
        columns = check_coefficients(self)
        check_present(self, "event_times_", "baseline_cumulative_hazard_")
        check_numbers(self, means_=(columns,))

    def _keep_choice(self, choice: CriterionPath | None, problem: Problem, table: Table, w: Any) -> None:
        super()._keep_choice(choice, problem, table, w)
        self.__dict__.pop("intercepts_path_", None)  # there are none

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        return {"coef_": coef, "support_": where_true(coef != 0)}

    def _predictor(self) -> tuple[Any, Any]:
        return self.coef_, 0.0

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        """Return the means of the columns and the baseline hazard there."""
        times, hazards = baseline_hazard(problem, result.state.at)
        means = namespace(problem.mean).asarray(problem.mean, copy=True)
        return {"means_": means, "event_times_": times, "baseline_cumulative_hazard_": hazards}

    def _summarize(self, problem: Problem, w: Any) -> Summary:
        """Return the summary, with times in the place of their ranks."""
        summary, timed = super()._summarize(problem, w), problem.codes.timed
        assert summary.rows is not None  # times are not fitted over blocks
        path = None if summary.path is None else replace(summary.path, y=timed(summary.path.y))
        return replace(summary, rows=replace(summary.rows, y=timed(summary.rows.y)), path=path)

    def _shown(self, rows: Rows, table: Table) -> Rows:
        return replace(rows, y=table.codes.timed(rows.y))

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        model = problem.objective
        c = concordance(double(model.y), double(model.predict(at.point)), double(model.weights))
        return {"concordance": c}
