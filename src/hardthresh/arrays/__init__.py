"""Functions that depend on the array library: namespaces, devices, top-k and small linear algebra."""

from .factored import FactoredMatrix, Pattern
from .grouping import Grouping, scaled_squares
from .indexing import gather, gather_columns, mask_of, scatter, union, where_true
from .linalg import (
    column_squares,
    conjugate_gradients,
    gram_product,
    inverse_definite,
    inverse_factor,
    inverse_semidefinite,
    is_regular,
    product,
    solve_semidefinite,
    symmetric_part,
    times_transpose,
)
from .namespace import all_finite, as_double, as_floating, double, move, namespace, to_numpy
from .svd import METHODS, truncated_svd
from .topk import leading, refuse_nan, top_k

__all__ = [
    "METHODS",
    "FactoredMatrix",
    "Grouping",
    "Pattern",
    "all_finite",
    "as_double",
    "as_floating",
    "column_squares",
    "conjugate_gradients",
    "double",
    "gather",
    "gather_columns",
    "gram_product",
    "inverse_definite",
    "inverse_factor",
    "inverse_semidefinite",
    "is_regular",
    "leading",
    "mask_of",
    "move",
    "namespace",
    "product",
    "refuse_nan",
    "scaled_squares",
    "scatter",
    "solve_semidefinite",
    "symmetric_part",
    "times_transpose",
    "to_numpy",
    "top_k",
    "truncated_svd",
    "union",
    "where_true",
]
