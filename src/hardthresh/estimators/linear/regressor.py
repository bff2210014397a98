"""The base class of regressors: predictions on the scale of the targets, and the fraction of deviance explained."""

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
        r"""Return :math:`D^2`, the fraction of deviance explained (:math:`R^2` for least squares and Huber's loss).

        :math:`D^2 = 1 - \bar \ell(y, u) / \bar \ell(y, c)`, where the mean loss of the predictions u is compared with
        that of the best constant c (plus the offset, if there is one). The largest value is 1. For several outputs it
        is the mean over the outputs. Without an offset it equals the score of scikit-learn's regressors with the same
        loss, and `sklearn.metrics.d2_tweedie_score`. If the constant has no loss, as when all targets are equal, the
        score is 1 for perfect predictions and otherwise 0, as in `sklearn.metrics.r2_score`. With NaN, the mean over
        folds would be NaN, and a grid search would choose its first candidate.

        Parameters
        ----------
        X : array, scipy.sparse array, data frame or RowBlocks, shape (n_samples, n_features)
            Data. A table in blocks is read once, or twice if the loss is not squared or the means of its columns are
            far from zero.
        y : array, shape (n_samples,) or (n_samples, n_outputs)
            Targets in the domain of the loss. Leave it out if the blocks of X contain the targets.
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
            For targets that `fit` would not accept.
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
