"""scikit-learn's selector, for tables of any library and with categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj
from scipy.sparse import issparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._array_api import get_namespace
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import gather_columns, move, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import is_numpy
from hardthresh.designs import Bed
from hardthresh.designs.formats.dask_tables import is_dask

from .frames import frame_of
from .validation import validated


class FeatureSelector(SelectorMixin, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of the estimators whose `transform` returns the columns that they chose. See the concrete classes.

    `SelectorMixin` wraps the output of `transform`, so that this class need not (`auto_wrap_output_keys`).
    """

    support_: Any
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _encodes(self) -> bool:
        """Return whether the last fit had categorical columns."""
        return hasattr(self, "encoding_")

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._chosen_features()] = True
        return mask

    def _chosen_features(self) -> np.ndarray:
        """Return the chosen columns of X; some may be there more than once."""
        return to_numpy(self.support_)

    def transform(self, X: Any) -> Any:
        """Return the chosen columns.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.

        Returns
        -------
        array, shape (n_samples, n_selected)
            The chosen columns. The array has the type object if categorical columns of a data frame are chosen;
            ``set_output(transform="pandas")`` keeps their types. A Dask array or data frame gives a Dask array or data
            frame, which is not computed.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._chosen_lazily(X)
        if isinstance(X, Bed):
            return validated(self, X, accept_genotypes=True, reset=False).columns(self._chosen_features()).dense()
        frame = frame_of(X) if self._encodes() else None
        plain = _get_output_config("transform", self)["dense"] == "default"
        if plain and frame is not None and frame.implementation.is_pandas():
            X = X.astype(object)  # scikit-learn would cast the categories to float
        return super().transform(X)

    def _chosen_lazily(self, X: Any) -> Any:
        """Return the chosen columns of a table of Dask, which are not computed."""
        chosen = np.flatnonzero(self._get_support_mask())
        if X.shape[1] != self.n_features_in_:
            raise InvalidInputError(f"X has {X.shape[1]} columns, the fit had {self.n_features_in_}; give the same")
        return X[:, chosen] if hasattr(X, "chunks") else X[[X.columns[j] for j in chosen.tolist()]]

    def _transform(self, X: Any) -> Any:
        return gather_columns(X, self.support_) if _is_foreign(X) else super()._transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows of all features, with zeros for the features that were not chosen.

        Parameters
        ----------
        X : array, shape (n_samples, n_selected)
            Rows of the chosen features.

        Returns
        -------
        array, shape (n_samples, n_features)
        """
        check_is_fitted(self)
        features = np.flatnonzero(self._get_support_mask())
        chosen, foreign = features.size, bool(get_namespace(X)[1]) and _is_foreign(X)
        if issparse(X) or (chosen and not foreign):  # scikit-learn refuses dense data without a column
            return super().inverse_transform(X)
        X = X if foreign else np.asarray(X)
        xp = namespace(X)
        if X.ndim != 2 or X.shape[1] != chosen:
            raise InvalidInputError(f"X has shape {tuple(X.shape)}; (n_samples, {chosen}) is needed")
        place = np.full(self.n_features_in_, chosen)
        place[features] = np.arange(chosen)
        padded = xp.concat([X, xp.zeros((X.shape[0], 1), dtype=X.dtype, device=device(X))], axis=1)
        return gather_columns(padded, move(place, X))


def _is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library than NumPy."""
    return bool(is_array_api_obj(X)) and not is_numpy(X)
