"""Gaussian graphical models: samples, starts, and runs under the names of the tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from hardthresh.constraints import EdgeSparsity
from hardthresh.datasets import make_graphical_model
from hardthresh.objectives import GraphicalModel
from hardthresh.solvers import minimize

from ._common import follow, overlap

METHODS: dict[str, dict[str, Any]] = {
    "paper": {},
    "stable": {"clip": "stable"},
    "code": {"ratio": "full"},
    "authors": {"batch": "authors"},
    "norm test": {"batch": "norm test"},
    "stable norm test": {"clip": "stable", "batch": "norm test"},
}


def standardised(X: Any) -> Any:
    """Return columns with mean 0 and mean square 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


@lru_cache(maxsize=4)
def samples(p: int, graph: Any, n: int, seed: int, graph_seed: int) -> tuple[Any, Any, Any]:
    """Return standardised samples of a graph, its precision matrix, and the flat edges."""
    drawn = make_graphical_model(n, p, graph=graph, graph_seed=graph_seed, seed=seed)
    return standardised(drawn.X), drawn.precision, flat_edges(drawn.precision)


def flat_edges(W: Any) -> Any:
    """Return the flat coordinates of the edges i < j of a symmetric matrix."""
    return np.flatnonzero(np.triu(W, 1).ravel())


def random_start(p: int, K: int, seed: int) -> Any:
    """Return the identity with .2 at (K - p) // 2 random pairs: feasible, unlike the start of the authors' code."""
    W = np.eye(p)
    i, j = np.triu_indices(p, 1)
    chosen = np.random.default_rng(seed).choice(i.size, size=(K - p) // 2, replace=False)
    W[i[chosen], j[chosen]] = W[j[chosen], i[chosen]] = 0.2
    return W


def fit(
    f: GraphicalModel, K: int, method: str, first: int, limit: int, *, start: Any = None, seed: int = 0
) -> tuple[Any, dict[str, Any]]:
    """Run a method of the tables with first batches of some size; "default" is what the library takes by itself."""
    p = f.shape[0]
    begin = np.eye(p) if start is None else start
    if method == "default":
        run = minimize(f, EdgeSparsity(K), w0=begin, max_iter=limit)
        return run, {"value": run.value, "accepted": 0.0, "iterations": float(run.n_iter), "inside": 0.0}
    settings = dict(METHODS[method])
    if "batch" in settings:
        settings["batch"] = [settings["batch"], first]
    run, said = follow(f, EdgeSparsity(K), settings, limit, start=begin, seed=seed)
    return run, said


def graphical_lasso_edges(X: Any, wanted: int) -> tuple[Any, float]:
    """Return edges of the graphical lasso, as many as wanted or the next fewer, and F_0; the penalty is bisected."""
    import warnings

    from sklearn.covariance import graphical_lasso

    S = X.T @ X / len(X)
    low, high, best = 0.0, float(np.max(np.abs(S - np.diag(np.diag(S))))), np.eye(len(S))
    for _ in range(14):
        penalty = 0.5 * (low + high)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of penalties on the way, some do not converge
            _, W = graphical_lasso(S, penalty, tol=1e-4, max_iter=100)
        found = flat_edges(W).size
        if found > wanted:
            low = penalty
        else:
            high, best = penalty, W
            if found == wanted:
                break
    return flat_edges(best), GraphicalModel(X).value(best)


def table_row(p: int, graph: str, n: int, method: str, seeds: list[int], graph_seed: int, limit: int) -> dict[str, Any]:
    """Fit one method to the samples of some seeds, with as many entries as the truth has."""
    runs = []
    for seed in seeds:
        X, truth, edges = samples(p, graph, n, seed, graph_seed)
        if method == "lasso":
            found, value = graphical_lasso_edges(X, edges.size)
            said = {"value": value, "accepted": 0.0, "iterations": 0.0, "inside": 0.0}
        else:
            result, said = fit(GraphicalModel(X), int(np.count_nonzero(truth)), method, n // 5, limit, seed=seed)
            found = flat_edges(result.w)
        fields = ("value", "accepted", "iterations", "inside")
        runs.append({name: said[name] for name in fields} | {"F1": overlap(found, edges)})
    return {"runs": runs}
