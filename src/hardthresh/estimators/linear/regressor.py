"""The base of regressors: predictions on the scale of the targets, and the share of deviance that they remove."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import all_finite, double, to_numpy
from hardthresh.core.errors import warn

from ..base import numpy_dtype
from ..blocked import is_blocks
from .lazy import lazy
from .streaming import StreamedModel


class SparseRegressor(RegressorMixin, StreamedModel):
    """Base of the estimators that predict a number: the mean of a loss at the linear predictor."""

    @lazy
    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return predictions, in the shape of the targets of `fit`. Only the chosen columns are read.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data; of a Dask array or data frame the predictions are a Dask array.
        offset : array, shape (n_samples,) or (n_samples, n_outputs), optional
            A known part of the linear predictor.
        """
        u = self._linear_predictor(X, offset, "predict")
        with np.errstate(over="ignore"):
            predictions = self._loss.mean(u)
        if all_finite(predictions):
            return predictions
        infinite = int(np.count_nonzero(np.isinf(to_numpy(predictions)) & np.isfinite(to_numpy(u))))
        if infinite:
            exceed = "exceeds" if infinite == 1 else "exceed"
            warn(
                f"{infinite} of {u.shape[0]} predictions {exceed} the largest {np.dtype(numpy_dtype(u))} and "
                f"{'is' if infinite == 1 else 'are'} infinite"
            )
        return predictions

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        r"""Return :math:`D^2`, the share of deviance removed; :math:`R^2` for least squares and Huber's loss.

        It is 1 less the mean loss of the predictions over that of the best constant, to which the offset is added too;
        the best is 1. Of several outputs it is the mean over them. Without an offset it is what the regressors of
        scikit-learn with the same loss return, and `sklearn.metrics.d2_tweedie_score`. Where that constant has no loss,
        as where all targets are equal, it is 1 for perfect predictions, else 0, as `r2_score` has it: NaN would be the
        mean over folds, and a grid search would take its first candidate.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or RowBlocks, shape (n_samples, n_features)
            Data; a table in blocks is read once, or twice if the loss is not squared or its columns have means that
            are far from zero.
        y : array, shape (n_samples,) or (n_samples, n_outputs)
            Targets, in the domain of the loss; blocks may have them instead.
        sample_weight : array, shape (n_samples,), optional
            Non-negative weights.
        offset : array, shape (n_samples,) or (n_samples, n_outputs), optional
            A known part of the linear predictor.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For targets that `fit` would refuse.
        """
        if is_blocks(X):
            return float(self._score_blocks(X, y, sample_weight, offset).d2)
        loss = self._scored_loss
        if loss.quadratic and offset is None:
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        given = self._validate(X, y, sample_weight, offset, reset=False)
        rows = given.weighted_rows()
        u = double(self._linear_predictor(X, offset, "score"))[rows]
        weights, known = (None if part is None else double(part)[rows] for part in (given.sample_weight, given.offset))
        y = double(given.y)[rows]
        if u.ndim == 1:
            return float(loss.d2_score(y, u, weights, known))
        assert known is not None  # several outputs are those of least squares
        return float(np.mean([loss.d2_score(y[:, j], u[:, j], weights, known[:, j]) for j in range(u.shape[1])]))
