"""The container of a real data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardthresh.core.errors import InvalidInputError, MissingDependencyError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A data matrix with its target, names and origin.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features), scipy.sparse.csr_array or pandas.DataFrame
        One row per sample, float64.
    target : ndarray of shape (n_samples,), pandas.Series or pandas.DataFrame
        Regression: float64. Classification: int64 labels 0, 1, ..., so that ``target_names[target]`` gives the
        original label of every row. Survival: a structured array with the fields ``event`` (bool, False where the time
        is censored) and ``time`` (float64), or a DataFrame with these columns.
    feature_names : ndarray of str, shape (n_features,)
        Object array, so that ``feature_names[model.support_]`` are the names of the chosen features.
    target_names : ndarray of str
        The classes in the order of their labels, the name of the response of a regression, or the fields of a survival
        target.
    name : str
        The name that `hardthresh.datasets.fetch` knows.
    description : str
        The measurements, the source of the file, and any changes.
    licence : str
        The licence as its source states it.
    citation : str
        The publication to cite.
    sample_groups : ndarray of int64, shape (n_samples,), or None
        Rows with the same number belong together, such as the conformations of one molecule, and must not be split by
        cross-validation.

    Examples
    --------
    >>> from hardthresh.datasets import load_colon
    >>> load_colon()
    Dataset(name='colon', data=(62, 2000) float64, target=(62,) int64)
    """

    data: Any
    target: Any
    feature_names: NDArray[np.object_]
    target_names: NDArray[np.object_]
    name: str
    description: str
    licence: str
    citation: str
    sample_groups: NDArray[np.int64] | None = None

    @property
    def DESCR(self) -> str:
        """The description, under the name that scikit-learn uses."""
        return self.description

    def __repr__(self) -> str:
        storage = " sparse" if sp.issparse(self.data) else ""
        dtype = getattr(self.data, "dtype", "DataFrame")
        kind = getattr(self.target, "dtype", "DataFrame")
        fields = getattr(kind, "names", None)
        return (
            f"Dataset(name={self.name!r}, data={self.data.shape} {dtype}{storage}, "
            f"target={self.target.shape} {' and '.join(fields) if fields else kind})"
        )

    def to_pandas(self) -> Dataset:
        """Return the same data set with a DataFrame as `data`, and a Series, or for survival a DataFrame, as `target`.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        InvalidInputError
            If the data are sparse: one DataFrame column per term would not fit into memory.
        """
        if sp.issparse(self.data):
            raise InvalidInputError(
                f"as_frame=True is for dense data, but {self.name!r} is a sparse matrix of shape {self.data.shape}; "
                "use as_frame=False and read the column names from feature_names."
            )
        pandas = _import_pandas()
        data = pandas.DataFrame(self.data, columns=self.feature_names)
        if self.target.dtype.names:
            return replace(self, data=data, target=pandas.DataFrame(self.target))
        target_name = str(self.target_names[0]) if len(self.target_names) == 1 else "target"
        return replace(
            self,
            data=data,
            target=pandas.Series(self.target, name=target_name),
        )


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError(
            "as_frame=True needs pandas, which is not installed; run 'pip install pandas' or leave as_frame=False."
        ) from error
    return pandas
