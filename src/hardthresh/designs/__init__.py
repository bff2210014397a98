"""Storage of data matrices."""

from typing import Any

import scipy.sparse as _sp

from .base import Design, LinearMap
from .beside import SideBySide
from .blocks import Block, RowBlocks, Rows
from .dask import DaskEngine, engine_of
from .dense import DenseDesign
from .engine import Engine
from .formats.arrays import from_arrays, from_file
from .formats.dask_tables import from_dask
from .formats.hdf5 import from_hdf5
from .formats.parquet import from_parquet
from .formats.shards import from_libsvm, from_npz_shards
from .formats.zarr import from_zarr
from .local import Serial, Threads
from .observed import ObservedEntries, observe
from .operator import OperatorDesign, is_operator
from .plink import Bed
from .reading_log import logged_readings
from .running_moments import RunningMoments
from .sparse import SparseDesign
from .standardized import Standardized, centred_block, standardize
from .thresholds import ThresholdDesign

__all__ = [
    "Bed",
    "Block",
    "DaskEngine",
    "DenseDesign",
    "Design",
    "Engine",
    "LinearMap",
    "ObservedEntries",
    "OperatorDesign",
    "RowBlocks",
    "Rows",
    "RunningMoments",
    "Serial",
    "SideBySide",
    "SparseDesign",
    "Standardized",
    "Threads",
    "ThresholdDesign",
    "as_design",
    "centred_block",
    "engine_of",
    "from_arrays",
    "from_dask",
    "from_file",
    "from_hdf5",
    "from_libsvm",
    "from_npz_shards",
    "from_parquet",
    "from_zarr",
    "logged_readings",
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
