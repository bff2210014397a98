"""Sparse Cox regression with the number of features chosen by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np

from hardthresh.arrays import double
from hardthresh.certificates import ModelCertificate
from hardthresh.core.errors import InvalidInputError

from ..callbacks import fit_method
from ..documentation import public_estimator
from ..folds import Metadata, Split, Splits, is_of_sklearn, splits_of
from ..parameters import own_parameters
from ..table import Table
from ..upgrades import CHOSEN_BY_FOLDS
from .cox import SparseCoxRegression
from .cross_validation import SparseLinearModelCV
from .grid_models import FoldFits
from .joint_prediction import CoxPrediction
from .prediction import PredictionModel
from .problem import Problem
from .survival_targets import stratified


@public_estimator("cox_regression_cv", intercept_and_scale="standardize : bool", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(without=["fit_intercept"], ties="breslow")
class SparseCoxRegressionCV(SparseLinearModelCV, SparseCoxRegression):
    r"""Cox regression with the number of features chosen by cross-validation.

    The score of fold k is the cross-validated partial likelihood :math:`-(L(w) - L_{-k}(w)) / s_k`, where L is the
    negative log partial likelihood of all rows, :math:`L_{-k}` that of the training rows, w the coefficients fitted to
    the training rows, and :math:`s_k` the total weight of the held-out rows. The partial likelihood of the held-out
    rows alone compares them only with one another, so it is noisy if they are few. If `cv` is a number of folds or a
    stratified splitter of scikit-learn, all folds have about the same share of events.

    Parameters
    ----------
    ties : {{"breslow", "efron"}}
        The approximation of the partial likelihood for tied events; see `hardthresh.losses.Cox`.
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Notes
    -----
    {cv_guarantee}

    References
    ----------
    P. J. M. Verweij and H. C. van Houwelingen (1993), Cross-validation in survival analysis, *Statistics in Medicine*
    12, 2305-2314.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseCoxRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> time, censored = rng.exponential(np.exp(X[:, 11] - X[:, 4])), rng.exponential(2.0, 200)
    >>> y = np.column_stack([np.minimum(time, censored), time <= censored])
    >>> SparseCoxRegressionCV(n_nonzero_coefs=range(4), averaging="none").fit(X, y).support_
    array([ 4, 11])
    """

    @fit_method
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, strata: Any = None, **params: Any
    ) -> Self:
        """Compare numbers of features and ridges on held-out rows, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight, offset, strata :
            As in `SparseCoxRegression.fit`.
        **params : dict
            ``groups``, an array of shape (n_samples,): the group of each row, for a splitter that keeps groups
            together; with scikit-learn's metadata routing, whatever the splitter and the scorer request.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `SparseCoxRegression.fit`, and for invalid candidates, ridges or folds.
        """
        return self._fit(X, stratified(y, strata), sample_weight, offset, **params)

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None, strata: Any = None
    ) -> ModelCertificate:
        """Check the quality of the fit: first-order optimality conditions, and exchanges of features.

        An average of models is not the minimiser of an objective, so its certificate describes the single model with
        the best score.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            As without cross-validation.

        Returns
        -------
        ModelCertificate
            ``print`` it to read it.

        Raises
        ------
        HardThreshError, ValueError
            As without cross-validation.
        """
        return SparseCoxRegression.certificate(self, X, y, sample_weight, offset, strata)

    def _prediction_model(self, loss: Any, table: Table) -> PredictionModel:
        return CoxPrediction(loss)

    def _fold_paths(self, problem: Problem) -> None:
        """Return None: each fold is fitted alone."""

    def _fold_scores(self, fold: FoldFits, table: Table, split: Split) -> np.ndarray:
        """Return the cross-validated partial likelihood of the fits of a fold, one after the other."""
        train, test = split
        both = np.concatenate([train, test])
        rows, weights = table.take(both), table.row_weights()[both]
        u, y = fold.predict(rows, *fold.flat()), double(rows.y)
        size = np.asarray(train).size
        whole, part = (self._loss.prepare(y[some], weights[some]) for some in (slice(None), slice(size)))
        gaps = [whole.value(u[:, fit]) - part.value(u[:size, fit]) for fit in range(u.shape[1])]
        return np.array(gaps) / -float(weights[size:].sum())

    def _splits_of(self, given: Table, kept: np.ndarray, n_samples: int, params: Metadata) -> Splits:
        """Return the folds; splitters of scikit-learn that stratify, and a number of folds, do so by event."""
        if hasattr(self.cv, "split") and not is_of_sklearn(self.cv):
            return super()._splits_of(given, kept, n_samples, params)
        events = replace(given, y=np.asarray(given.y)[:, 1])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # events are no classes of the user
            return splits_of(self.cv, events, kept, n_samples, params, classifier=True)

    def _check_classes(self, table: Table, splits: Splits) -> None:
        """Check that each fold trains on rows of which some have events."""
        happened = double(table.y)[:, 1] > 0
        for fold, (train, _) in enumerate(splits):
            if happened.any() and not happened[train].any():
                raise InvalidInputError(
                    f"fold {fold} of cv trains on rows without an event, of which there "
                    f"{'is' if happened.sum() == 1 else 'are'} {int(happened.sum())} in {happened.size:,} rows; use "
                    "other folds, or choose the number of features without cross-validation"
                )
