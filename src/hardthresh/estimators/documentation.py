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
        Largest number of features of the model, 0 <= k <= n_features, besides those of `always_include`. "auto" takes
        the number of the best `criterion` out of 0, 1, ..., K with K = n / (log n_features log log n), and fits it as
        if it had been given; the guide to choosing k has the details. n is the number of rows, or the sum of the
        weights if that is larger. "search" tries few of these numbers (`max_nonzero_coefs`).
    {groups}
    n_nonzero_groups : int, "auto" or "search"
        With `groups`, the largest number of groups of the model, 0 <= k <= number of groups, in the place of
        `n_nonzero_coefs`. Groups are compared by the energy of their coefficients on standardised columns, whatever
        their sizes.
    criterion : {"ebic", "bic", "aic", "gic"}
        What chooses a number that is not given: the extended BIC, `selection.ebic`, or `selection.bic`, `aic` or `gic`.
        With a loss that is no likelihood "ebic" ranks by n times the logarithm of the mean loss (heuristic), and the
        others are refused.
    {choice}
    {ridge}
    {settings}
    warm_start : bool
        Whether to start from the last fit's coefficients.
    {seed}""",
    "choice": """
    ebic_gamma : float
        :math:`\\gamma` of the extended BIC, between 0, the BIC, and 1.
    n_features_original : int, optional
        How many features there were before they were screened by means of the target, which the extended BIC and the
        GIC account for; not fewer than there are. Where groups are chosen, the number of groups for the extended BIC.
    max_nonzero_coefs : int, optional
        With "search", the largest number to try, K, of features or of groups. Default, and limit, with an information
        criterion: n / (log n_features log log n), beyond which it ranks noise; default with cross-validation: 120.
        Golden-section search (`selection.golden_section`) finds the best number of a curve with one valley in at most
        2.5 log2 K + 5 fits; it pays for K of 100 or more, because a path shares its work.""",
    "cv_parameters": """
    n_nonzero_coefs : "auto", "search", iterable of int, or int
        The numbers of features to compare; a single number K means 0 .. K. "auto" compares 0 .. 10, 12, 14, 17, 20, 25
        and 30, and doubles the range, by three larger numbers each time, as long as its upper half is better than the
        lower by more than a standard error: up to 120, all features that vary, or fewer than the training rows of a
        fold. "search" tries 0 and few of the numbers up to `max_nonzero_coefs`.
    {groups}
    n_nonzero_groups : "auto", "search", iterable of int, or int
        With `groups`, the numbers of groups to compare, in the place of `n_nonzero_coefs`.
    criterion : {"cv", "ebic", "bic", "aic", "gic"}
        What chooses the number of features and the ridge: cross-validation, or an information criterion of fits to all
        rows, a tenth of the work (`selection.ebic`, `bic`, `aic` and `gic`). With a criterion "auto" compares 0, 1,
        ..., K with K = n / (log n_features log log n), and `cv`, `scoring`, `rule` and `averaging` must be left out.
        Only for losses that are likelihoods.
    {choice}
    alphas : "auto", float, or iterable of float
        The ridges to compare with each number of features: alpha >= 0 adds alpha / 2 times the squared norm of the
        standardised coefficients to the mean loss. "auto" takes {ridges}
        times the mean curvature of the loss at the model without features, which is 1 for least squares. With
        an information criterion it takes one ridge: {default_ridge}.
    averaging : {"auto", "none", "exponential", "stacking"}
        Whether the model is the single best one, or an average of the models that were compared, with exponential
        weights (`selection.exponential_weights`), or with those that minimise the held-out loss
        (`selection.stacking_weights`). Of the features of an average those of the largest effects are
        kept, the fewest that hold 99 % of the variance of its predictions, and no more than the largest number
        compared. "auto" is "exponential",
        but "none" with `scoring` or ``rule="one_standard_error"``.
    cv : int, splitter or iterable of (train, test) indices
        The folds, as everywhere in scikit-learn; stratified for classifiers.
    scoring : str or callable, optional
        A scikit-learn scorer. Default "{score_name}".
    rule : {"best", "one_standard_error"}
        Take the model with the best mean score; or within a standard error of it the one with the fewest features, and
        of these with the largest ridge.
    n_jobs : int, optional
        The number of folds to fit at a time.
    {settings}
    {seed}""",
    "dispersion": """
    dispersion_ : float
        Pearson's estimate of the variance of a target over the power of its mean that belongs to the model; NaN where
        there are no more rows than coefficients.""",
    "class_weight": """
    class_weight : dict, "balanced" or None
        What the weights of the rows of each class are multiplied by: a dict from class to a number > 0, in which a
        missing class has 1; or "balanced", which gives all classes the same total weight. A fit with it is the fit with
        the products as `sample_weight`, held-out losses included. A scorer (`scoring`) sees `sample_weight` alone, as
        in scikit-learn.""",
    "groups": """
    groups : sequence of n_features labels, dict or pandas Series from column to label, or lists of columns, optional
        The group of each column, by any hashable label and in any order; features are then chosen by whole groups.
        The labels of columns of `always_include` are ignored. Groups that may share columns are lists of these, by
        index or by name, in a list or in a dict from the name of the group: the features are then those of at most
        `n_nonzero_groups` lists, found by a greedy projection and a local search (heuristic), models are not averaged,
        and a column in no list stays out. Not together with `positive`,
        `bounds` or `n_nonzero_coefs`.""",
    "ridge": """
    alpha : float, optional
        Ridge >= 0 on the mean loss, alpha / 2 times the squared norm of the standardised coefficients. Default
        {default_ridge}.""",
    "settings": """
    always_include : sequence of int or str, optional
        Columns, by index or by name, that are in every model, not counted and not penalised.
    positive : bool
        Whether coefficients must be >= 0: short for ``bounds=(0, None)``.
    bounds : (lower, upper), or dict from column to (lower, upper), optional
        Bounds of the coefficients on the scale of the data, lower <= 0 <= upper. In the pair each is a number, an array
        of shape (n_features,) or None; in the dict, a number or None for a column by index or by name, and the columns
        that it leaves out are unbounded. Columns of `always_include` keep theirs, too. Not together with `positive` or
        `groups`.
    categorical_features : "from_dtype", sequence of int or str, or None
        The columns of categories, by index or by name: by default those of a data frame whose type is categorical or an
        enumeration. Each is replaced by indicators of its levels, which are chosen together and count as one feature:
        of all levels where they are penalised (with several ridges, if all are positive), else of all but the most
        frequent one, which is the reference. Not together with `positive` or `bounds`.
    {intercept_and_scale}
        Whether to scale columns to unit variance for the fit; coefficients come back on the scale of the data, and
        sparse data stay sparse.
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1.""",
    "intercept_and_scale": """
    fit_intercept : bool
        Whether to fit an intercept; it is neither counted nor penalised. Without it columns are not centred, and their
        scale is the root of their mean square in the place of the standard deviation.
    standardize : bool""",
    "seed": """
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.""",
    "coefficients": """
    coef_ : array, shape (n_features,)
        Coefficients on the scale of the data; exactly 0 for features not chosen.
    intercept_ : float
        The intercept.""",
    "attributes": """
    support_ : array of int
        The chosen and the always-included features, increasing.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        The number of features of the model besides those of `always_include`, or with `groups` the number of groups: as
        many as allowed, or fewer where fewer columns vary, or fewer fit the rows exactly.
    groups_ : tuple
        With `groups`, the labels of the chosen ones, in the order in which they first appear.
    scale_ : array, shape (n_features,)
        Standard deviation of each column as used in the fit, 0 for a constant one; ``coef_ * scale_`` is the effect
        per standard deviation.
    n_iter_, converged_, stop_reason_, objective_, history_ :
        Iterations; whether and why the solver stopped; the minimised objective; what happened along the way.
        Where a parameter of the loss is estimated, `history_` is of the last search, with the parameter before that.
    best_n_nonzero_coefs_, best_n_nonzero_groups_ : int
        With "auto" or "search", the number that was chosen; 0 with a `NothingFoundWarning`.
    candidates_, criterion_path_ : array, shape (n_candidates,)
        Then also the numbers compared, increasing from 0, and the `criterion` of each; smaller is better.
    coefs_path_, intercepts_path_ : array, shape (n_candidates, n_features) and (n_candidates,)
        Then also the coefficients and the intercept of each.
    stream_, n_samples_seen_ :
        After `partial_fit`, in the place of `objective_` and `history_`: what is remembered of the batches, a
        `StreamState`, and the number of their rows. `n_iter_` is the number of batches.
    offset_used_ : bool
        Whether the fit had an offset; predictions then need one too.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.
    encoded_feature_names_ : array of str
        The names of the columns that `coef_`, `support_` and `scale_` refer to: those of X, but for each categorical
        column one for each of its encoded levels, such as "colour=red".
    encoding_ : Encoding
        Only with categorical columns: their levels, and which of them is the reference, in ``encoding_.factors``.""",
    "cv_attributes": """
    coef_, intercept_, support_, ... :
        Of the model, which may be an average, fitted on all data. Of the attributes of `{without_cv}`, `objective_`,
        `n_iter_`, `converged_`, `stop_reason_` and `history_` are those of the single best model.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        The number of features, or of groups, of the model.
    found_ : bool
        Whether features predict better than none. If not, the model has no feature, unless you asked for some.
    null_p_value_ : float
        The p-value of a permutation test that no feature predicts; NaN if it was not needed to decide `found_`.
    best_n_nonzero_coefs_, best_n_nonzero_groups_ : int
        The number of features, or with `groups` of these, that the rule chose for the single best model.
    alpha_ : float
        Its ridge.
    best_model_ : AveragedModel
        That model: ``n_nonzero``, ``alpha``, ``weight`` in the average, ``support``, ``coef`` and ``intercept``.
    models_ : tuple of AveragedModel
        The models in the average, the largest weight first; one if there is no average.
    averaging_ : {"none", "exponential", "stacking"}
        How they were averaged.
    candidates_ : array of int, shape (n_candidates,)
        The numbers compared, increasing.
    alphas_ : array, shape (n_alphas,)
        The ridges compared, increasing.
    criterion_path_ : array, shape (n_candidates,)
        Only with an information criterion: that of each number with the ridge `alpha_`; smaller is better. The
        attributes about folds, from `range_extended_` to `calibration_` and `null_p_value_`, are then absent.
    range_extended_ : bool
        Whether more numbers were compared than at first.
    grid_scores_ : array, shape (n_candidates, n_alphas, n_folds)
        Held-out scores of single models; higher is better. `scorer_name_` names them.
    scores_ : array, shape (n_candidates, n_folds)
        Those with the ridge `alpha_`. `mean_scores_` and `standard_errors_` summarise them.
    null_scores_ : array, shape (n_folds,)
        The scores of the model without features.
    one_standard_error_ : int
        The smallest number within one standard error of the best.
    selection_frequency_ : array, shape (n_features,)
        The share of folds whose model, made like this one, has the feature.
    held_out_scores_ : dict from str to float
        The mean loss, R2 or D2, for two classes the area under the ROC curve and the accuracy, and the slope and
        intercept of calibration, of the predictions of held-out rows by these models. Of three or more classes: the
        loss, D2 and the accuracy. They are optimistic, most with few rows:
        the number of features, the ridge and the weights were chosen on the same rows. NaN where a score is not
        defined; the slope is infinite if the predictions separate the classes.
    calibration_ : array, shape (n_bins, 3)
        The mean prediction, the mean target and the weight of ten bins of held-out rows, by their prediction. NaN, NaN
        and 0 for empty bins, such as with fewer than ten rows or with equal predictions. Hazards and quantiles, which
        are no means, have none, and no slope of calibration. The decision values of a linear SVC are cut at -1 and 1,
        and compared with targets of -1 and 1.
    coefs_path_ : array, shape (n_candidates, n_features)
        The coefficients of every candidate with the ridge `alpha_` on all data, found as in the folds.
    intercepts_path_ : array, shape (n_candidates,)
        Their intercepts.""",
    "largest_rank": """
    rank : int, optional
        The largest rank of the coefficient matrix, 0 <= rank <= min(n_features, n_outputs); default a tenth of that,
        rounded up.""",
    "low_rank_parameters": """
    alpha : float or None
        Ridge >= 0 on the mean loss, alpha / 2 times the squared norm of the standardised coefficients. Default 0, no
        ridge; None says the same, as in the other estimators, where it is each one's own default.
    fit_intercept : bool
        Whether to fit an intercept for each output; it is not penalised.
    standardize : bool
        Whether to scale columns to unit variance for the fit; coefficients come back on the scale of the data. It
        matters where there is a ridge, or where several matrices fit equally well; outputs are never scaled.
    solver : str or Solver
        "auto", the closed form; or the name of a registered solver, or a solver object, for
        `hardthresh.minimize`, which holds the whole matrix of coefficients.
    tol : float
        Relative tolerance > 0 of such a solver.
    max_iter : int
        Its limit of iterations, >= 1.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the closed form draws none.
    verbose : bool
        Whether to show a progress line.""",
    "low_rank_attributes": """
    U_ : array, shape (n_features, r)
        Orthonormal directions of the features, on the scale of the data and whatever its units: the matrix W is
        ``U_ @ diag(singular_values_) @ V_.T``. Like all arrays here, float32 after a fit to float32, else float64.
    V_ : array, shape (n_outputs, r)
        Orthonormal directions of the outputs; the entry of largest size in each is positive.
    singular_values_ : array, shape (r,)
        Decreasing, > 0.
    intercept_ : array, shape (n_outputs,), or float
        The intercepts; a float after a fit to one-dimensional targets.
    coef_ : array, shape (n_outputs, n_features) or (n_features,)
        The coefficients, computed when asked for.
    rank_ : int
        The rank r attained, at most `rank`.
    n_iter_, converged_, stop_reason_, objective_ :
        Iterations, 1 for the closed form; whether and why the solver stopped; the minimised objective.
    history_ : History
        The history of the run, as in the linear estimators: ``history_["value"][t]`` is the objective after t
        iterations. The closed form has two values, that of no coefficients and the minimum, and no other column.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.""",
    "low_rank_cv_parameters": """
    cv : int, splitter or iterable of (train, test) indices
        The folds, as everywhere in scikit-learn.
    scoring : str or callable, optional
        A scikit-learn scorer. Default: minus the mean squared error over rows and outputs.
    rule : {"best", "one_standard_error"}
        Take the rank with the best mean score, or the smallest one within a standard error of it.
    n_jobs : int, optional
        The number of folds to fit at a time.""",
    "imputer_parameters": """
    center : bool
        Whether to subtract the mean of each column's observed entries; without it, what is filled in for rows and
        columns of which little is known tends to zero.
    standardize : bool
        Whether to divide each column by the standard deviation of its observed entries, so that units do not matter.
    keep_observed : bool
        Whether `transform` leaves observed entries as they are. If not, all entries are those of the low-rank table.
    missing : {"nan", "unstored"}
        The mark of missing entries: NaN in a dense table, or what a scipy.sparse table does not store; stored zeros
        are observed.
    add_indicator : bool
        Whether `transform` appends a column of zeros and ones for each column with missing entries in `fit`.
    keep_empty_features : bool
        Whether `transform` keeps columns without an observed entry in `fit`, filled with zeros where nothing is known.
    solver : str or Solver
        "auto", conjugate iterative hard thresholding; or the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1, for each rank on the way.""",
    "imputer_attributes": """
    U_ : array, shape (n_samples, r)
        Orthonormal directions of the rows. The fitted W is ``U_ @ diag(singular_values_) @ V_.T``, never formed.
    singular_values_ : array, shape (r,)
        Decreasing, > 0.
    V_ : array, shape (n_features, r)
        Orthonormal directions of the columns, in standard units; the entry of largest size in each is positive.
        Constant and empty columns have zeros.
    mean_, scale_ : array, shape (n_features,)
        The number subtracted from each column, and the one by which it is divided then; the mean of an empty
        column is NaN.
    rank_ : int
        The rank attained: at most the one asked for or chosen.
    alpha_, row_ridge_ : float
        The ridge, and what that is beside the sum of squared errors of one row: ``alpha_`` times the observed share.
    indicator_features_ : array of int
        The columns that `add_indicator` marks: those with missing entries in `fit`.
    n_iter_, converged_, stop_reason_ :
        Iterations, all ranks on the way together; whether and why the last of them stopped.
    objective_ : float
        The minimised objective.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations, ``history_["rank"][t]`` the rank allowed in them.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.""",
    "graph_parameters": """
    standardize : bool
        Whether to scale columns to unit variance for the fit, so that units do not matter; `precision_` and
        `covariance_` are in the units of the data. Columns are centred in any case.
    refit : bool
        Whether `precision_` is the maximum of the likelihood on the graph, or else the minimiser above itself, made
        positive definite where it is not.""",
    "graph_run": """
    solver : str or Solver
        "auto", the name of a registered solver, or a solver object.
    tol : float
        Relative tolerance > 0.
    max_iter : int
        Limit of iterations, >= 1.
    warm_start : bool
        Whether to start from the last fit's `precision_`.
    random_state : int, RandomState or None
        Seed of solvers that draw random numbers; the default solver draws none.
    verbose : bool
        Whether to show a progress line.""",
    "graph_attributes": """
    precision_, covariance_ : array, shape (p, p)
        Symmetric, positive definite, and inverse to each other. Pairs that are not joined are exactly zero in
        `precision_`.
    location_ : array, shape (p,)
        The means of the columns; zeros for a precomputed covariance.
    alpha_ : float
        The ridge of the likelihood; without `refit` that of the objective above.
    n_edges_ : int
        The number of pairs that are joined: at most as many as asked for or chosen.
    edges_ : structured array, one row for each edge
        The edges, the strongest partial correlation first: ``i``, ``j`` (columns), ``first``, ``second`` (their names)
        and ``partial_correlation``. ``pandas.DataFrame(model.edges_)`` makes a table of it.
    positive_definite_adjustment_ : float
        By what share the entries off the diagonal of the minimiser had to shrink before it was positive definite; 0
        where it was. With `refit` this only concerns the start of the second step, but more than a few hundredths say
        that there are too many edges for the data.
    n_iter_, converged_, stop_reason_, objective_ :
        Iterations; whether and why the solver stopped; the minimised objective, in standard units.
    history_ : History
        ``history_["value"][t]`` is the objective after t iterations.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.""",
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
        Texts in the place of ``{key}`` in the docstring, besides the descriptions that estimators share. Texts may have
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
