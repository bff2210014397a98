"""Stability selection: how often a model chooses each feature on halves of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from array_api_compat import is_array_api_obj
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from hardthresh.arrays import move
from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.errors import CapabilityError, InvalidInputError, NothingFoundWarning, format_value, plural, warn
from hardthresh.core.numbers import number
from hardthresh.core.progress import progress_line
from hardthresh.core.registry import register
from hardthresh.designs import RowBlocks, Serial, Threads
from hardthresh.designs.reading_log import shown_readings
from hardthresh.objectives.half_readings import BlockHalves
from hardthresh.objectives.inputs import weighted_rows
from hardthresh.selection import LowProbabilityBound, complementary_pairs, low_probability_bound
from hardthresh.selection.comparison import in_parallel
from hardthresh.selection.stability import checked_threshold

from ..base import seed_of
from ..block_labels import labels_of_some
from ..blocked import as_blocks, is_blocks
from ..feature_selector import FeatureSelector
from ..libraries import check_same_namespace
from ..linear.model import SparseLinearModel
from ..linear.regression import SparseLinearRegression
from ..soundness import check_numbers, check_present, check_selected
from .choices import candidates, check_chooses, choice_of_rows, chosen_features, labels_of_rows

_MORE_CLASSES = (
    "halves of a table in blocks are not searched for more than two classes; give each class against the rest, or rows "
    "that fit into memory"
)


@register("selector", "stability", lambda: [StabilitySelection(SparseLinearRegression(n_nonzero_coefs=1), n_pairs=3)])
class StabilitySelection(FeatureSelector, MetaEstimatorMixin, BaseEstimator):
    r"""Stability selection: select the features that a model chooses on most halves of the rows.

    The rows are divided at random into two halves, many times. The model is fitted to each half, and the share of the
    halves that choose a feature is its inclusion frequency:

    .. math:: \hat\pi_j = \frac{1}{2B} \sum_{b=1}^{B} \bigl(1[j \in \hat S(A_b)] + 1[j \in \hat S(A_b')]\bigr), \qquad
              A_b \cap A_b' = \emptyset

    where :math:`\hat S(A)` are the features that a fit to the rows A chooses. The features with :math:`\hat\pi_j \ge
    \tau` are selected. The inclusion frequencies themselves are often the more useful result: they show which choices
    hardly depend on the particular rows. The threshold is conservative and often misses weak effects.

    Parameters
    ----------
    estimator : estimator
        The estimator that chooses features: any sparse linear model of this package, including those that choose the
        number of features, or a scikit-learn estimator that has `get_support` or `coef_` after `fit`. It is not
        changed.
    n_nonzero_coefs : int, optional
        The number of features (of groups, for a model with `groups`) that each half chooses. Default: that of the
        estimator.
    n_pairs : int
        B, the number of pairs of halves, >= 1.
    threshold : float
        :math:`\tau`, 1/2 < threshold <= 1.
    bound : {"unimodal", "worst_case"}
        The bound of Shah and Samworth for `expected_false_`; see `hardthresh.selection.low_probability_bound`.
    random_state : int, RandomState instance or None
        The seed of the halves. With None, too, every fit draws the same halves.
    n_jobs : int, optional
        The number of halves that are fitted at a time, as in joblib. Halves that share their work are fitted in one
        process. For a table in blocks on this machine, the number of threads, each of which processes a block; other
        engines have their own setting.

    Attributes
    ----------
    inclusion_frequencies_ : array, shape (n_features,)
        The share of the halves that choose each column of X. A categorical column counts as chosen if any of its levels
        is; a column in a group of `groups` counts whenever its group is chosen.
    pair_frequencies_ : array, shape (n_features,)
        The share of the pairs in which both halves choose the feature.
    support_ : array of int, shape (n_selected,)
        The features whose inclusion frequency is at least the threshold.
    expected_false_ : float
        The bound on the expected number of features in `support_` whose probability of being chosen on a half is at
        most q/d; `statement` says this in words.
    mean_n_chosen_ : float
        q, the mean number of features, or of groups, that a half chooses; columns of `always_include` are not counted.
    n_candidates_ : int
        d, the number of features, or of groups, to choose from.
    n_pairs_ : int
        The number of pairs from which the frequencies were computed.
    n_failed_ : int
        The number of halves whose fit raised an error or did not converge. Their pairs are excluded.
    estimator_ : estimator
        The estimator, fitted to all rows. For a sparse linear model, ``summary()`` and the report show the frequencies.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

    See Also
    --------
    hardthresh.selection.low_probability_bound : The bounds and their conditions.

    Notes
    -----
    The two halves of a pair have the same number of rows of each class, and for censored times of events, up to one.
    Weights and other parameters of `fit` are split with their rows. Rows of weight 0 are removed first, and a row of
    weight 2 is not split. If the number of rows is odd, one row is in neither half of a pair.

    Cost: ``2 n_pairs`` fits to half of the rows, and one to all of them. With the squared loss, the default solver, one
    output and a given number of single features, the halves share their products with the data: for 10 features among
    5,000 columns and 500 rows, 100 halves cost as much as 20 to 30 fits.

    For a table in blocks, a half contains half of the rows of each block, drawn from `random_state` and the number of
    the block; one row of an odd number is left out. All halves share the passes over the table: two or three passes
    besides those of the fit to all rows. For wide tables the halves are processed in groups, because the sums of a
    group are limited to 16 million numbers; 200 halves of 20,000 columns take seven passes. A loss other than the
    squared one is replaced by its second-order expansion at the fit of the half, with which about 5 of 100 halves
    choose a different feature than a fit to their rows. The fit of a half starts from the fit to all rows, so the
    halves of a pair are independent, as the theorems require, only up to the effect of this starting point.

    Guarantee: Theorems 1 and 2 of Shah and Samworth bound `expected_false_`. They are about features of low selection
    probability, not about features without effect, and hold for any model that can be fitted to every half. If the
    halves have equal shares of classes or events, the probabilities are conditional on the numbers of classes or
    events. If the number of chosen features varies between halves, the theorems use its expectation, which
    `mean_n_chosen_` estimates. If pairs were excluded because a fit failed (`n_failed_`), the bound is approximate, and
    `statement` says so.

    References
    ----------
    N. Meinshausen and P. Bühlmann (2010), Stability selection, *Journal of the Royal Statistical Society B* 72,
    417-473. R. D. Shah and R. J. Samworth (2013), Variable selection with error control: another look at stability
    selection, *Journal of the Royal Statistical Society B* 75, 55-80.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseLinearRegression, StabilitySelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(100)
    >>> selector = StabilitySelection(SparseLinearRegression(), n_nonzero_coefs=3, n_pairs=25).fit(X, y)
    >>> selector.support_, selector.inclusion_frequencies_[[4, 30]]
    (array([ 4, 30]), array([1., 1.]))
    >>> round(selector.expected_false_, 2)
    0.18
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_nonzero_coefs: int | None = None,
        n_pairs: int = 50,
        threshold: float = 0.75,
        bound: str = "unimodal",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_nonzero_coefs = n_nonzero_coefs
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.bound = bound
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the estimator to all rows and to pairs of halves of them.

        Parameters
        ----------
        X, y :
            Data, as the estimator accepts them: rows in memory, or a table in blocks, which may contain the targets.
        **params : dict
            Other parameters of the `fit` of the estimator, such as `sample_weight`, `offset` and `strata`. Arrays with
            one entry per row are split with the rows. With scikit-learn's metadata routing enabled, the parameters that
            the estimator requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Whatever the estimator raises; for settings out of range; for an estimator that uses all columns when it is
            fitted to all rows; and if no pair of halves could be fitted.
        CapabilityError
            For a table in blocks, if the estimator is not a sparse linear model with a given number of single features
            and the default solver.

        Warns
        -----
        NothingFoundWarning
            If no frequency reaches the threshold.
        UserWarning
            If halves could not be fitted, with their number and the reason; and the warnings of the fit to all rows.
        """
        self._check_settings()
        if _routing_enabled():
            params = process_routing(self, "fit", **params).estimator.fit
        estimator = self._configured()
        in_blocks = is_blocks(X)
        if in_blocks:
            X = _in_threads(X, self.n_jobs)
            _check_shares_halves(estimator)
            _check_two_classes(estimator, X, y, params.get("sample_weight"))
        self.estimator_ = clone(estimator).fit(X, y, **params)
        check_chooses(self.estimator_)
        self.__dict__.pop("feature_names_in_", None)  # of another table
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        self.n_features_in_ = chosen_features(self.estimator_).size
        if in_blocks:
            self._keep(self._choices_of_blocks(), None)
            return self
        kept = weighted_rows(params.get("sample_weight"), _num_samples(X))
        labels = labels_of_rows(self.estimator_, y)
        pairs = complementary_pairs(
            kept.size, self.n_pairs, seed_of(self.random_state), None if labels is None else labels[kept]
        )
        halves = [half for pair in pairs for half in pair]
        choices = self._choices_of_halves(estimator, X, y, params, kept, halves)
        self._keep(choices, X)
        return self

    def statement(self) -> LowProbabilityBound:
        """Return the guarantee of the threshold and its assumptions; ``print`` shows them as text.

        Returns
        -------
        LowProbabilityBound
        """
        check_is_fitted(self)
        bound = low_probability_bound(
            self.mean_n_chosen_,
            self.n_candidates_,
            self.n_pairs_,
            self.threshold,
            self.bound,  # type: ignore[arg-type]
        )
        return replace(bound, n_left_out=self.n_pairs - self.n_pairs_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that `fit` passes on to the estimator.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=type(self).__name__).add(estimator=self.estimator, method_mapping=mapping)

    def _check_settings(self) -> None:
        """Check the settings, of which those of the estimator are checked when it is fitted."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise InvalidInputError(
                f"estimator must be an estimator, such as SparseLinearRegression(), got {format_value(self.estimator)}"
            )
        checked_integer("n_pairs", self.n_pairs, 1)
        checked_threshold(self.threshold)
        checked_word("bound", self.bound, ("unimodal", "worst_case"))
        if self.n_jobs is not None and checked_integer("n_jobs", self.n_jobs) == 0:
            raise InvalidInputError("n_jobs must be None, or an integer other than 0; got 0")

    def _check_attributes(self) -> None:
        """Check that the fitted attributes fit together."""
        d = check_selected(self)
        frequencies = {"inclusion_frequencies_": (d,), "pair_frequencies_": (d,)}
        check_numbers(self, **frequencies, expected_false_=(), mean_n_chosen_=())
        check_present(self, "estimator_", "n_candidates_", "n_pairs_", "n_failed_")

    def _configured(self) -> Any:
        """Return the estimator with the number of features that was asked for."""
        estimator = clone(self.estimator)
        if self.n_nonzero_coefs is None:
            return estimator
        name = getattr(estimator, "_k_name", "n_nonzero_coefs")
        if name not in estimator.get_params(deep=False):
            raise InvalidInputError(
                f"n_nonzero_coefs is for estimators that have this parameter; {type(estimator).__name__} has not: set "
                "the number of features in the estimator, and leave n_nonzero_coefs out"
            )
        return estimator.set_params(**{name: self.n_nonzero_coefs})

    def _choices_of_blocks(self) -> list[np.ndarray | str]:
        """Return the features that each half of the rows of a table in blocks chooses."""
        model = self.estimator_
        halves = BlockHalves(self.n_pairs, seed_of(self.random_state), by_label=model._loss.classifies)
        with shown_readings(bool(model.verbose)):
            choices = model._choices_of_parts(halves)
        if choices is None:  # though it shares halves: rows that were not examined have a third class
            raise CapabilityError(_MORE_CLASSES)
        return [*choices]

    def _choices_of_halves(
        self, estimator: Any, X: Any, y: Any, params: dict[str, Any], kept: np.ndarray, halves: list[np.ndarray]
    ) -> list[np.ndarray | str]:
        """Return the features that each half of the kept rows chooses, or why its fit failed."""
        with progress_line(bool(getattr(estimator, "verbose", False)), "half-samples", len(halves)) as report:
            together = self.estimator_._choices_of_parts(halves) if isinstance(estimator, SparseLinearModel) else None
            if together is not None:
                report("together")
                return [*together]
            if "verbose" in estimator.get_params(deep=False):
                estimator.set_params(verbose=False)  # of a single half
            X, y = indexable(X, y)
            choices = []
            tasks = ((estimator, X, y, params, kept[half]) for half in halves)
            for choice in in_parallel(choice_of_rows, tasks, self.n_jobs):
                choices.append(choice)
                report("")
            return choices

    def _keep(self, choices: list[np.ndarray | str], X: Any) -> None:
        """Set the fitted attributes."""
        failures = [choice for choice in choices if isinstance(choice, str)]
        pairs = [
            (one, other)
            for one, other in zip(choices[::2], choices[1::2], strict=True)
            if not isinstance(one, str) and not isinstance(other, str)
        ]
        self.n_failed_, self.n_pairs_ = len(failures), len(pairs)
        if not pairs:
            raise InvalidInputError(
                f"no pair of halves could be fitted; the first reason: {failures[0].rstrip('.')}. Each half has half "
                "of the rows, and needs several of each class, of events, or of targets that differ: give more of these"
            )
        if failures:
            warn(
                f"{len(failures)} of {plural(len(choices), 'half-sample')} could not be fitted, and the frequencies "
                f"are of the {plural(len(pairs), 'pair')} without them; the first reason: {failures[0]}"
            )
        halves = np.array(pairs)
        frequencies = halves.mean(axis=(0, 1))
        self.inclusion_frequencies_ = _like(frequencies, X)
        self.pair_frequencies_ = _like(halves.all(axis=1).mean(axis=0), X)
        self.support_ = _like(np.flatnonzero(frequencies >= self.threshold - 1e-9), X)
        units = candidates(self.estimator_)
        self.n_candidates_ = int(units.max(initial=-1)) + 1
        chosen = [np.unique(units[half & (units >= 0)]).size for half in halves.reshape(-1, units.size)]
        self.mean_n_chosen_ = float(np.mean(chosen))
        self.expected_false_ = self.statement().value if self.n_candidates_ else 0.0
        if isinstance(self.estimator_, SparseLinearModel):
            self.estimator_.inclusion_frequencies_ = self.inclusion_frequencies_
        if not np.any(frequencies >= self.threshold - 1e-9):
            warn(
                f"no inclusion frequency reaches the threshold {self.threshold:g}; the highest is "
                f"{number(float(frequencies.max()))}, in inclusion_frequencies_",
                NothingFoundWarning,
            )

    def _encodes(self) -> bool:
        return hasattr(self.estimator_, "encoding_")

    def _transform(self, X: Any) -> Any:
        check_same_namespace(X, self, attribute="inclusion_frequencies_", method="transform")
        return super()._transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags, tags.array_api_support = own.input_tags, own.array_api_support
        tags.target_tags = own.target_tags
        return tags


def _in_threads(X: Any, n_jobs: int | None) -> Any:
    """Return a table in blocks on so many threads of this machine, where it is read here and they were asked for."""
    if n_jobs in (None, 1) or not isinstance(X, RowBlocks | Serial):
        return X
    return Threads(X.blocks if isinstance(X, Serial) else X, effective_n_jobs(n_jobs))


def _check_shares_halves(estimator: Any) -> None:
    """Refuse an estimator that would be fitted to each half of a table in blocks alone: each would read all of it.

    Raises
    ------
    CapabilityError
        For another one than a sparse linear model of a given number of single features with the default solver.
    """
    if not isinstance(estimator, SparseLinearModel):
        raise CapabilityError(
            f"halves of a table in blocks are searched by the sparse linear models of this package alone, not by "
            f"{type(estimator).__name__}; give rows that fit into memory, such as some blocks"
        )
    if not estimator._shares_halves():
        raise CapabilityError(
            "halves of a table in blocks share their readings where each chooses a given number of single features by "
            "the default solver; set n_nonzero_coefs, and leave groups, solver and cross-validation out, or give rows "
            "that fit into memory"
        )


def _check_two_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse more than two classes in some rows of a table in blocks, before it is read."""
    takes_more = estimator._loss.classifies and estimator._takes_more_classes
    if takes_more and labels_of_some(as_blocks(X, y, sample_weight)).size > 2:
        raise CapabilityError(_MORE_CLASSES)


def _like(x: np.ndarray, X: Any) -> Any:
    """Return an array in the library of X, if X is one."""
    return move(x, X) if is_array_api_obj(X) and not issparse(X) else x
