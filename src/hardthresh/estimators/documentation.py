"""The decorator of public estimators: registration, complete docstrings, and their name in Python's own errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import update_wrapper
from inspect import cleandoc, getattr_static, isfunction, signature, unwrap
from types import FunctionType
from typing import Any, TypeVar

from hardthresh.core.registry import register, registered
from hardthresh.core.schema import Upgrade
from hardthresh.losses import Loss

from .callbacks import fit_method

T = TypeVar("T", bound=type)

_SHARED = {
    "parameters": """
    n_nonzero_coefs : int, "auto" or "search"
        k, the largest number of features in the model, 0 <= k <= n_features; the columns of `always_include` are not
        counted. "auto" fits each number 0, 1, ..., K with K = n / (log n_features log log n), and refits the number
        whose `criterion` is smallest. "search" tries only a few numbers up to `max_nonzero_coefs`. Here n is the number
        of rows, or the sum of the weights if that is larger. The guide to choosing k has the details.
    {groups}
    n_nonzero_groups : int, "auto" or "search"
        With `groups`, the largest number of groups in the model, 0 <= k <= number of groups; it replaces
        `n_nonzero_coefs`. Groups are compared by the sum of the squares of their coefficients on standardised columns,
        without a correction for the size of the group.
    criterion : {"ebic", "bic", "aic", "gic"}
        The information criterion that chooses the number of features if none is given: "ebic" is the extended Bayesian
        information criterion (BIC), `selection.ebic`; the others are `selection.bic`, `selection.aic` and
        `selection.gic`. For a loss that is not a negative log-likelihood, "ebic" uses n times the logarithm of the mean
        loss instead (heuristic), and the others raise an error.
    {choice}
    {ridge}
    {settings}
    warm_start : bool
        Whether to start from the coefficients of the previous fit.
    {seed}""",
    "choice": """
    ebic_gamma : float
        :math:`\\gamma` of the extended BIC, 0 <= gamma <= 1; 0 gives the BIC.
    n_features_original : int, optional
        The number of features before any screening that used the target, >= n_features. The extended BIC and the GIC
        use it in their penalty. With `groups`, the number of groups before screening, for the extended BIC. Default:
        the present number.
    max_nonzero_coefs : int, optional
        With "search", K, the largest number of features or of groups to try. With an information criterion the default,
        and the upper limit, is n / (log n_features log log n), beyond which the criterion ranks noise; with
        cross-validation the default is 120. Golden-section search (`selection.golden_section`) finds the minimum of a
        unimodal curve in at most 2.5 log2 K + 5 fits. It is faster than the fit of all numbers only for K of 100 or
        more, because the fits of a path share work.""",
    "cv_parameters": """
    n_nonzero_coefs : "auto", "search", iterable of int, or int
        The numbers of features to compare; a single number K means 0, 1, ..., K. "auto" compares 0, 1, ..., 10, 12, 14,
        17, 20, 25 and 30. It then doubles the range, with three larger numbers each time, as long as the best score in
        the upper half exceeds the best in the lower half by more than one standard error. The range ends at 120, at the
        number of columns that vary, or below the number of training rows of a fold. "search" tries 0 and a few of the
        numbers up to `max_nonzero_coefs`.
    {groups}
    n_nonzero_groups : "auto", "search", iterable of int, or int
        With `groups`, the numbers of groups to compare; it replaces `n_nonzero_coefs`.
    criterion : {"cv", "ebic", "bic", "aic", "gic"}
        How to choose the number of features and the ridge: by cross-validation, or by an information criterion of fits
        to all rows, which takes about a tenth of the work (`selection.ebic`, `bic`, `aic` and `gic`). With an
        information criterion, "auto" compares 0, 1, ..., K with K = n / (log n_features log log n), and `cv`,
        `scoring`, `rule` and `averaging` must keep their defaults. Information criteria need a loss that is a negative
        log-likelihood.
    {choice}
    alphas : "auto", float, or iterable of float
        The ridge penalties to compare with each number of features: alpha >= 0 adds alpha / 2 times the squared norm of
        the standardised coefficients to the mean loss. "auto" compares {ridges} times the mean second derivative of the
        loss at the model without features, which is 1 for least squares. With an information criterion, "auto" uses the
        single value {default_ridge}.
    averaging : {"auto", "none", "exponential", "stacking"}
        Whether the final model is the single best one ("none") or an average of the compared models, with exponential
        weights (`selection.exponential_weights`) or with weights that minimise the held-out loss
        (`selection.stacking_weights`). An average keeps the smallest set of features that explains 99 % of the variance
        of its predictions, those with the largest effects first, and at most the largest number compared. "auto" means
        "exponential", or "none" with `scoring` or ``rule="one_standard_error"``.
    cv : int, splitter or iterable of (train, test) indices
        The folds, as in scikit-learn; stratified for classifiers.
    scoring : str or callable, optional
        A scikit-learn scorer. Default "{score_name}".
    rule : {"best", "one_standard_error"}
        "best" takes the model with the best mean score. "one_standard_error" takes, of the models whose mean score is
        within one standard error of the best, the one with the fewest features, and among these the largest ridge.
    n_jobs : int, optional
        The number of folds to fit at a time.
    {settings}
    {seed}""",
    "dispersion": """
    dispersion_ : float
        Pearson's estimate of the dispersion: the ratio of the variance of a target to the variance function of the
        model at its mean. NaN if there are no more rows than coefficients.""",
    "class_weight": """
    class_weight : dict, "balanced" or None
        Factors that multiply the weights of the rows of each class: a dict from class to a number > 0, where classes
        that are missing from the dict have the factor 1; or "balanced", which gives all classes the same total weight.
        The fit, and its held-out losses, equal those with the products as `sample_weight`. A scorer (`scoring`)
        receives `sample_weight` alone, as in scikit-learn.""",
    "groups": """
    groups : sequence of n_features labels, dict or pandas Series from column to label, or lists of columns, optional
        The group of each column: any hashable label, in any order. The model then contains whole groups. The labels of
        columns of `always_include` are ignored. To let groups share columns, give the columns of each group, by index
        or by name, in a list of lists or in a dict from the name of the group to its list. The model then contains the
        columns of at most `n_nonzero_groups` lists, found by a greedy projection and a local search (heuristic); models
        are not averaged, and a column in no list has the coefficient 0. Cannot be combined with `positive`, `bounds` or
        `n_nonzero_coefs`.""",
    "ridge": """
    alpha : float, optional
        Ridge penalty >= 0: alpha / 2 times the squared norm of the standardised coefficients is added to the mean loss.
        Default {default_ridge}.""",
    "settings": """
    always_include : sequence of int or str, optional
        Columns, by index or by name, that are in every model. They are neither counted nor penalised.
    positive : bool
        Whether coefficients must be >= 0: short for ``bounds=(0, None)``.
    bounds : (lower, upper), or dict from column to (lower, upper), optional
        Bounds of the coefficients on the scale of the data, lower <= 0 <= upper. In a pair, each bound is a number, an
        array of shape (n_features,), or None for no bound. In a dict, keys are columns by index or by name, each bound
        is a number or None, and columns that are missing are unbounded. The bounds also hold for columns of
        `always_include`. Cannot be combined with `positive` or `groups`.
    categorical_features : "from_dtype", sequence of int or str, or None
        The categorical columns, by index or by name. "from_dtype" takes the columns of a data frame whose type is
        categorical or an enumeration. Each column is replaced by indicators of its levels, which are chosen together
        and count as one feature. With a positive ridge (if several are compared, with all of them positive) every level
        has an indicator; otherwise every level but the most frequent one, which is the reference. Cannot be combined
        with `positive` or `bounds`.
    {intercept_and_scale}
        Whether to scale columns to unit variance for the fit. Coefficients are returned on the scale of the data, and
        sparse data stay sparse.
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0 of the stopping rule of the solver.
    max_iter : int
        Largest number of iterations of the solver, >= 1.""",
    "intercept_and_scale": """
    fit_intercept : bool
        Whether to fit an intercept, which is neither counted nor penalised. Without an intercept, columns are not
        centred, and their scale is the root of their mean square instead of their standard deviation.
    standardize : bool""",
    "seed": """
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.""",
    "coefficients": """
    coef_ : array, shape (n_features,)
        Coefficients on the scale of the data; exactly 0 for features that were not chosen.
    intercept_ : float
        The intercept.""",
    "attributes": """
    support_ : array of int
        The indices of the chosen features and of the columns of `always_include`, increasing.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        The number of features in the model without those of `always_include`, or with `groups` the number of groups. It
        is smaller than the number allowed if fewer columns vary, or if fewer fit the rows exactly.
    groups_ : tuple
        With `groups`, the labels of the chosen groups, in the order in which they first appear.
    scale_ : array, shape (n_features,)
        The standard deviation of each column as used in the fit, 0 for a constant column; ``coef_ * scale_`` is the
        effect per standard deviation.
    n_iter_, converged_, stop_reason_, objective_, history_ :
        The number of iterations; whether the solver converged; why it stopped; the minimum that it found of the
        objective; and the values at each iteration. If a parameter of the loss is estimated, `history_` is that of the
        last search, in which the parameter had its previous estimate.
    best_n_nonzero_coefs_, best_n_nonzero_groups_ : int
        Only with "auto" or "search": the number that was chosen; if it is 0, `fit` issued a `NothingFoundWarning`.
    candidates_, criterion_path_ : array, shape (n_candidates,)
        Only with "auto" or "search": the numbers that were compared, increasing from 0, and the `criterion` of each;
        smaller is better.
    coefs_path_, intercepts_path_ : array, shape (n_candidates, n_features) and (n_candidates,)
        Only with "auto" or "search": the coefficients and the intercept of the model of each number.
    stream_, n_samples_seen_ :
        Only after `partial_fit`, which sets them instead of `objective_` and `history_`: the sums over the batches that
        the next call needs (a `StreamState`), and the number of rows so far. `n_iter_` is the number of batches.
    offset_used_ : bool
        Whether the fit had an offset; if so, `predict` needs one too.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.
    encoded_feature_names_ : array of str
        The names of the columns that `coef_`, `support_` and `scale_` refer to: the columns of X, with each categorical
        column replaced by one name for each of its encoded levels, such as "colour=red".
    encoding_ : Encoding
        Only with categorical columns: ``encoding_.factors`` lists their levels and the reference level of each.""",
    "cv_attributes": """
    coef_, intercept_, support_, ... :
        The attributes of `{without_cv}`, for the final model, which is fitted to all rows and may be an average.
        `objective_`, `n_iter_`, `converged_`, `stop_reason_` and `history_` describe the single best model.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        The number of features, or of groups, in the final model.
    found_ : bool
        Whether a model with features predicts held-out rows better than the model without features. If not, the final
        model has no features besides those of `always_include`, unless 0 was not among the numbers compared.
    null_p_value_ : float
        The p-value of a permutation test of the hypothesis that no feature predicts the target; NaN if `found_` was
        decided without it.
    best_n_nonzero_coefs_, best_n_nonzero_groups_ : int
        The number of features, or of groups, that `rule` chose for the single best model.
    alpha_ : float
        The ridge of the single best model.
    best_model_ : AveragedModel
        The single best model: ``n_nonzero``, ``alpha``, ``weight`` in the average, ``support``, ``coef`` and
        ``intercept``.
    models_ : tuple of AveragedModel
        The models in the average, by decreasing weight; one model if there is no average.
    averaging_ : {"none", "exponential", "stacking"}
        How the models were averaged.
    candidates_ : array of int, shape (n_candidates,)
        The numbers of features, or of groups, that were compared, increasing.
    alphas_ : array, shape (n_alphas,)
        The ridges that were compared, increasing.
    criterion_path_ : array, shape (n_candidates,)
        Only with an information criterion: its value for each number of `candidates_` with the ridge `alpha_`; smaller
        is better. The attributes about folds, `null_p_value_` and those from `range_extended_` to `calibration_`, are
        then absent.
    range_extended_ : bool
        Whether "auto" extended its first range of numbers.
    grid_scores_ : array, shape (n_candidates, n_alphas, n_folds)
        Held-out scores of the single models; higher is better. `scorer_name_` is the name of the score.
    scores_ : array, shape (n_candidates, n_folds)
        The held-out scores with the ridge `alpha_`. `mean_scores_` and `standard_errors_` are their means and standard
        errors over the folds.
    null_scores_ : array, shape (n_folds,)
        The held-out scores of the model without features.
    one_standard_error_ : int
        The smallest number whose mean score is within one standard error of the best.
    selection_frequency_ : array, shape (n_features,)
        The share of folds in which the model, chosen or averaged as the final one, contains the feature.
    held_out_scores_ : dict from str to float
        Scores of the predictions of held-out rows by the models of the folds: the mean loss; R2 or D2; for two classes
        the area under the receiver operating characteristic (ROC) curve and the accuracy; and the slope and intercept
        of calibration. For three or more classes: the loss, D2 and the accuracy. They are optimistic, especially with
        few rows, because the number of features, the ridge and the weights were chosen on the same rows. A score that
        is not defined is NaN; the slope is infinite if the predictions separate the classes.
    calibration_ : array, shape (n_bins, 3)
        The held-out rows, sorted by their prediction, in ten bins: the mean prediction, the mean target and the total
        weight of each bin. An empty bin, as with fewer than ten rows or with equal predictions, has NaN, NaN and 0.
        Models of hazards and of quantiles have neither this table nor a slope of calibration, because their predictions
        are not means. The decision values of a linear support vector classifier (SVC) are clipped to [-1, 1] and
        compared with targets of -1 and 1.
    coefs_path_ : array, shape (n_candidates, n_features)
        The coefficients of the model of each candidate with the ridge `alpha_`, fitted to all rows in the same way as
        in the folds.
    intercepts_path_ : array, shape (n_candidates,)
        The intercepts of these models.""",
    "guarantee": """
    Guarantee: heuristic. The default solver, `hardthresh.solvers.WorkingSet`, stops at a minimum on the chosen
    features, which need not be the global minimum; `certificate` compares it with exchanges of features, and `prove`
    returns a lower bound. Cost: usually 9 to 20 data passes for a given number of features.""",
    "cv_guarantee": """
    Guarantee: heuristic, both for the choice of the number of features and the ridge and for the search for the
    features. `fit` describes the comparison, and how folds share data passes.""",
    "largest_rank": """
    rank : int, optional
        The largest rank of the coefficient matrix, 0 <= rank <= min(n_features, n_outputs). Default: a tenth of
        min(n_features, n_outputs), rounded up.""",
    "low_rank_parameters": """
    alpha : float or None
        Ridge penalty >= 0: alpha / 2 times the squared norm of the standardised coefficients is added to the mean loss.
        Default 0. None means the default, as in the other estimators.
    fit_intercept : bool
        Whether to fit an intercept for each output. Intercepts are not penalised.
    standardize : bool
        Whether to scale columns to unit variance for the fit. Coefficients are returned on the scale of the data. It
        changes the result only with a ridge, or if several matrices fit equally well. Outputs are never scaled.
    solver : str or Solver
        "auto" computes the closed form. The name of a registered solver, or a solver object, is passed to
        `hardthresh.minimize`, which stores the full matrix of coefficients.
    tol : float
        Relative tolerance > 0 of the stopping rule of a given solver.
    max_iter : int
        Largest number of iterations of a given solver, >= 1.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the closed form draws none.
    verbose : bool
        Whether to show a progress line.""",
    "low_rank_attributes": """
    U_ : array, shape (n_features, r)
        Orthonormal directions of the features, on the scale of the data: the matrix W is ``U_ @ diag(singular_values_)
        @ V_.T``. Like all fitted arrays, float32 after a fit to float32 data, otherwise float64.
    V_ : array, shape (n_outputs, r)
        Orthonormal directions of the outputs. The entry of largest absolute value in each is positive.
    singular_values_ : array, shape (r,)
        The singular values of W, decreasing, > 0.
    intercept_ : array, shape (n_outputs,), or float
        The intercepts; a float after a fit to one-dimensional targets.
    coef_ : array, shape (n_outputs, n_features) or (n_features,)
        The coefficients, which are computed at each access.
    rank_ : int
        The rank r of the fitted matrix, at most `rank`.
    n_iter_, converged_, stop_reason_, objective_ :
        The number of iterations, 1 for the closed form; whether the solver converged; why it stopped; the minimum of
        the objective.
    history_ : History
        The values at each iteration: ``history_["value"][t]`` is the objective after t iterations. The closed form has
        two values, the objective of W = 0 and the minimum, and no other column.
    n_features_in_, feature_names_in_ :
        The number and the names of the columns seen in `fit`.""",
    "low_rank_cv_parameters": """
    cv : int, splitter or iterable of (train, test) indices
        The folds, as in scikit-learn.
    scoring : str or callable, optional
        A scikit-learn scorer. Default: the negative mean squared error over rows and outputs.
    rule : {"best", "one_standard_error"}
        "best" takes the rank with the best mean score, "one_standard_error" the smallest rank whose mean score is
        within one standard error of the best.
    n_jobs : int, optional
        The number of folds to fit at a time.""",
    "imputer_parameters": """
    center : bool
        Whether to subtract the mean of the observed entries of each column. Without centring, the entries that are
        imputed in rows and columns with few observed entries are shrunk towards zero.
    standardize : bool
        Whether to divide each column by the standard deviation of its observed entries, so that the fit does not depend
        on the units.
    keep_observed : bool
        Whether `transform` returns observed entries unchanged. If not, all entries are those of the low-rank matrix.
    missing : {"nan", "unstored"}
        How missing entries are marked: as NaN in a dense table, or as entries that a scipy.sparse array does not store.
        Stored zeros are observed entries.
    add_indicator : bool
        Whether `transform` appends an indicator (1 for a missing entry, otherwise 0) for each column that had missing
        entries in `fit`.
    keep_empty_features : bool
        Whether `transform` keeps columns that had no observed entry in `fit`, and imputes their missing entries with
        zeros.
    solver : str or Solver
        "auto", conjugate iterative hard thresholding; or the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0 of the stopping rule of the solver.
    max_iter : int
        Largest number of iterations, >= 1, for each rank on the path to `rank`.""",
    "imputer_attributes": """
    U_ : array, shape (n_samples, r)
        Orthonormal directions of the rows. The fitted W is ``U_ @ diag(singular_values_) @ V_.T``; it is never formed.
    singular_values_ : array, shape (r,)
        The singular values of W, decreasing, > 0.
    V_ : array, shape (n_features, r)
        Orthonormal directions of the standardised columns. The entry of largest absolute value in each is positive. The
        entries of constant and empty columns are zero.
    mean_, scale_ : array, shape (n_features,)
        The number that is subtracted from each column, and the number by which the difference is divided. The mean of
        an empty column is NaN.
    rank_ : int
        The rank of the fitted matrix, at most the rank that was given or chosen.
    alpha_, row_ridge_ : float
        The ridge, and the equivalent ridge for the sum of squared errors of one row: ``alpha_`` times the share of
        observed entries.
    indicator_features_ : array of int
        The columns that have an indicator with `add_indicator`: those with missing entries in `fit`.
    n_iter_, converged_, stop_reason_ :
        The number of iterations for all ranks on the path; whether the last fit converged; why it stopped.
    objective_ : float
        The minimum that was found of the objective.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations, ``history_["rank"][t]`` the rank allowed in
        iteration t.
    n_features_in_, feature_names_in_ :
        The number and the names of the columns seen in `fit`.""",
    "graph_parameters": """
    standardize : bool
        Whether to scale columns to unit variance for the fit, so that the graph does not depend on the units.
        `precision_` and `covariance_` are in the units of the data. Columns are always centred.
    refit : bool
        Whether `precision_` maximises the likelihood on the graph. If not, it is the minimiser of the equation above,
        modified to be positive definite where it is not.""",
    "graph_run": """
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0 of the stopping rule of the solver.
    max_iter : int
        Limit of iterations, >= 1.
    warm_start : bool
        Whether to start from `precision_` of the previous fit.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.""",
    "graph_attributes": """
    precision_, covariance_ : array, shape (p, p)
        The precision matrix and its inverse, the covariance matrix; both are symmetric and positive definite. Entries
        of `precision_` for pairs without an edge are exactly zero.
    location_ : array, shape (p,)
        The means of the columns; zeros for a precomputed covariance.
    alpha_ : float
        The ridge of the likelihood; without `refit`, the ridge of the equation above.
    n_edges_ : int
        The number of edges, at most the number that was given or chosen.
    edges_ : structured array, one row for each edge
        The edges by decreasing absolute partial correlation: ``i``, ``j`` (columns), ``first``, ``second`` (their
        names) and ``partial_correlation``. ``pandas.DataFrame(model.edges_)`` converts it to a table.
    positive_definite_adjustment_ : float
        The share by which the off-diagonal entries of the minimiser were shrunk to make it positive definite; 0 if it
        was. With `refit` this affects only the start of the second step, but a value above a few hundredths indicates
        too many edges for the data.
    n_iter_, converged_, stop_reason_, objective_ :
        The number of iterations; whether the solver converged; why it stopped; the minimum of the objective for
        standardised columns.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations.
    n_features_in_, feature_names_in_ :
        The number and the names of the columns seen in `fit`.""",
}


def public_estimator(name: str, upgrades: Iterable[Upgrade] = (), **texts: str) -> Callable[[T], T]:
    """Class decorator of a public estimator: register it, complete its docstring, give its methods its name.

    Parameters
    ----------
    name : str
        The name under which it is registered.
    upgrades : iterable of callables
        Functions that turn parameters and attributes of earlier versions in files into those of this one; see
        `hardthresh.core.stored`.
    **texts : str
        Texts instead of ``{key}`` in the docstring, besides the descriptions that estimators share. Texts may have
        such keys themselves.

    Notes
    -----
    Tests run on an instance without settings, with three folds if it cross-validates.

    Python's errors about arguments name the class that defines a method: without a method of its own, a misspelt
    parameter of `SparseLinearRegression` would be one of a private class that its users have never seen.
    """

    def add(cls: T) -> T:
        words = _filled(cleandoc(cls.__doc__ or ""), {**_SHARED, **_texts_of(cls), **texts})
        cls.__doc__ = f"{words}\n"  # numpydoc wants the closing quotes in a line of their own
        public = {entry.cls for entry in registered("estimator").values()}
        for base in cls.__mro__[1:]:
            if base in public:
                break
            if base.__module__.partition(".")[0] == __name__.partition(".")[0]:
                names_methods(base)(cls)
        return register("estimator", name, lambda: [_example(cls)], upgrades)(cls)

    return add


def _filled(text: str, texts: dict[str, str]) -> str:
    """Return a text with its keys replaced, and the keys in their replacements too."""
    return re.sub(
        r"\{(\w+)\}", lambda key: _filled(cleandoc(texts[key[1]]), texts) if key[1] in texts else key[0], text
    )


def _texts_of(cls: type) -> dict[str, str]:
    """Return the texts that depend on the loss of a linear model, and the name of the model without ``CV``."""
    loss: type[Loss] | None = getattr(cls, "_loss_type", None)
    if loss is None:
        return {}
    ridge = f"{loss.default_ridge:g}" if loss.default_ridge else "0, no ridge"
    small = f"{0.1 * loss.default_ridge:g}, {loss.default_ridge:g}, and 0.1, 0.3, 1 and 3"
    return {
        "default_ridge": ridge,
        "ridges": small if loss.default_ridge else "0, and 0.1, 0.3, 1, 3 and 10",
        "score_name": loss.score_name,
        "without_cv": cls.__name__.removesuffix("CV"),
    }


def _example(cls: type) -> Any:
    return cls(cv=3) if "cv" in signature(cls).parameters else cls()


def names_methods(base: type) -> Callable[[T], T]:
    """Class decorator: copy the public methods of a private base class under the name of the decorated class."""

    def add(cls: T) -> T:
        for name, method in vars(base).items():
            inherited = isfunction(method) and name not in vars(cls) and getattr_static(cls, name) is method
            if inherited and (name == "__init__" or not name.startswith("_")):
                function = unwrap(method)
                copy = _copied(function, f"{cls.__qualname__}.{name}")
                decorate = getattr(method, "decorated_by", fit_method)
                setattr(cls, name, copy if method is function else decorate(copy))
        return cls

    return add


def _copied(function: Any, qualname: str) -> Callable[..., Any]:
    """Return a copy of a function under another qualified name."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    update_wrapper(copy, function)
    del copy.__wrapped__  # type: ignore[attr-defined]
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, qualname
    return copy
