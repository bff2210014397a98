"""Storage of data matrices."""

from typing import Any

import scipy.sparse as _sp

from .base import Design, LinearMap
from .dense import DenseDesign
from .observed import ObservedEntries, observe
from .operator import OperatorDesign, is_operator
from .sparse import SparseDesign
from .standardized import Standardized, centred_block, standardize
from .thresholds import ThresholdDesign

__all__ = [
    "DenseDesign",
    "Design",
    "LinearMap",
    "ObservedEntries",
    "OperatorDesign",
    "SparseDesign",
    "Standardized",
    "ThresholdDesign",
    "as_design",
    "centred_block",
    "observe",
    "standardize",
]


def as_design(X: Any) -> Design:
    """Return a data matrix as a `Design`: dense in any array library, scipy.sparse in any format, or an operator.

    Parameters
    ----------
    X : array, scipy.sparse array, linear operator or Design, shape (n, d)
        The matrix.

    Returns
    -------
    Design

    Raises
    ------
    InvalidInputError
        If it is not a numeric matrix of finite entries.

    Examples
    --------
    >>> import numpy as np
    >>> as_design(np.eye(3)).shape
    (3, 3)
    """
    if isinstance(X, Design):
        return X
    if is_operator(X):
        return OperatorDesign(X)
    return SparseDesign(X) if _sp.issparse(X) else DenseDesign(X)
