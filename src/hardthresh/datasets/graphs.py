"""Gaussian samples with a sparse precision matrix; the same seeds always give the same arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError, format_value

_CORRELATION, _DEGREE = 0.4, 3.0  # defaults, arbitrary: strong and few edges make an easy problem


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulatedGraph:
    """Samples of a Gaussian graphical model, with the true precision matrix and graph.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        One sample per row; all variables have mean zero and variance one, up to rounding.
    precision : ndarray of shape (n_features, n_features)
        The inverse of the covariance matrix of the samples, with exact zeros.
    edges : ndarray of int64, shape (n_edges, 2)
        The pairs i < j with a non-zero entry of `precision`, in increasing order.
    """

    X: NDArray[Any]
    precision: NDArray[Any]
    edges: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"SimulatedGraph(X={self.X.shape} {self.X.dtype}, edges={len(self.edges)})"


def make_graphical_model(
    n_samples: int,
    n_features: int,
    *,
    graph: Literal["chain", "random", "band"] = "random",
    correlation: float | None = None,
    degree: float | None = None,
    graph_seed: int = 0,
    seed: int = 0,
) -> SimulatedGraph:
    """Make samples of a Gaussian graphical model with a known graph.

    .. math:: x \\sim N(0, \\Theta^{-1}), \\qquad \\theta_{ij} \\ne 0 \\text{ only if } i = j \\text{ or } i, j
              \\text{ are joined},

    scaled such that every variable has variance one. Before scaling, :math:`\\Theta` is the identity plus `correlation`
    beside the diagonal for "chain"; for "random" it has an edge with probability degree / (p - 1), of weight
    :math:`\\pm U(0.2, 0.5)`, and a constant diagonal that makes the least eigenvalue 0.1; for "band" it is 0.1 on the
    diagonal plus :math:`0.5^{|i-j|}` wherever :math:`|i - j| \\le 2`.

    Parameters
    ----------
    n_samples, n_features : int
        The shape of X; at least two features.
    graph : {"chain", "random", "band"}
        The kind of graph.
    correlation : float, optional
        For "chain" only, between -0.5 and 0.5, exclusive. Default: 0.4.
    degree : float, optional
        For "random" only: mean number of edges of a variable, 0 < degree <= n_features - 1. Default: 3, or all.
    graph_seed, seed : int
        Seeds of `numpy.random.default_rng` for the graph and for the samples.

    Returns
    -------
    SimulatedGraph
        X, the precision matrix and the edges.

    Raises
    ------
    InvalidInputError
        If an argument is out of its range, or belongs to another kind of graph.

    Notes
    -----
    Draw order of "random", with `graph_seed`: a uniform number for each pair, row by row, which decides whether it is
    an edge; the magnitudes of the edges; a uniform number for the sign of each, negative below one half. The samples,
    with `seed`: a standard normal matrix, row by row.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), "Probabilistic iterative hard thresholding for sparse
    learning", Section 5.2, for "band"; the others are common in the literature.

    Examples
    --------
    >>> from hardthresh.datasets import make_graphical_model
    >>> problem = make_graphical_model(200, 5, graph="chain")
    >>> problem.edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """
    n_samples, p = checked_integer("n_samples", n_samples, 1), checked_integer("n_features", n_features, 2)
    checked_word("graph", graph, ("chain", "random", "band"))
    correlation, degree = _strength(graph, correlation), _density(graph, degree, p)
    precision = _precision(p, graph, correlation, degree, np.random.default_rng(graph_seed))
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky(0.5 * (covariance + covariance.T))
    X = np.random.default_rng(seed).standard_normal((n_samples, p)) @ root.T
    return SimulatedGraph(X, precision, np.argwhere(np.triu(precision, 1)))


def _strength(graph: str, correlation: Any) -> float:
    """Return the entries beside the diagonal of a chain."""
    if correlation is None:
        return _CORRELATION
    if graph != "chain":
        raise InvalidInputError(
            f"correlation={format_value(correlation)} is a setting of 'chain', not of {format_value(graph)}; "
            "leave it out"
        )
    return checked_number("correlation", correlation, above=-0.5, below=0.5)


def _density(graph: str, degree: Any, p: int) -> float:
    """Return the mean number of edges of a variable in a random graph."""
    if degree is None:
        return min(_DEGREE, p - 1)
    if graph != "random":
        raise InvalidInputError(
            f"degree={format_value(degree)} is a setting of 'random', not of {format_value(graph)}; leave it out"
        )
    return checked_number("degree", degree, above=0.0, most=p - 1)


def _precision(p: int, graph: str, correlation: float, degree: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a sparse precision matrix of variables of variance one."""
    if graph == "chain":
        T = np.eye(p) + correlation * (np.eye(p, k=1) + np.eye(p, k=-1))
    elif graph == "band":
        distance = np.abs(np.arange(p)[:, None] - np.arange(p))
        T = 0.1 * np.eye(p) + np.where(distance <= 2, 0.5**distance, 0.0)
    else:
        T = _random_graph(p, degree, rng)
    deviation = np.sqrt(np.diag(np.linalg.inv(T)))
    scaled = T * np.outer(deviation, deviation)
    return np.where(T != 0, 0.5 * (scaled + scaled.T), 0.0)


def _random_graph(p: int, degree: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a symmetric matrix of random edges, with the diagonal that makes its least eigenvalue 0.1."""
    i, j = np.triu_indices(p, 1)
    joined = rng.random(i.size) < degree / (p - 1)
    weights = rng.uniform(0.2, 0.5, joined.sum())
    T = np.zeros((p, p))
    T[i[joined], j[joined]] = weights * np.where(rng.random(joined.sum()) < 0.5, -1, 1)
    T = T + T.T
    loaded: NDArray[np.float64] = T + (0.1 - min(0.0, np.linalg.eigvalsh(T)[0])) * np.eye(p)
    return loaded
