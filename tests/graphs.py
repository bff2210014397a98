"""Graphs of simulated data, for the tests of several rooms."""

import numpy as np

from hardthresh.datasets import make_graphical_model


def standardised_graph(graph, p, n, seed):
    """Return samples with columns of mean zero and variance one, and the precision matrix behind them."""
    problem = make_graphical_model(n, p, graph=graph, seed=seed)
    return (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0), problem.precision


def f1_of_graphs(found, truth):
    """Return the F1 score of the edges of one matrix against those of another."""
    found, true = np.triu(found != 0, 1), np.triu(truth != 0, 1)
    return 2 * np.sum(found & true) / (np.sum(found) + np.sum(true))
