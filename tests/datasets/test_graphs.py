"""Simulated graphs: the arrays that the published numbers were measured on, bit for bit."""

import numpy as np
import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import make_graphical_model

GRAPHS = ("chain", "random", "band")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("p", "n", "graph_seed", "seed"), [(50, 25, 0, 10), (30, 100, 3, 1)])
def test_the_arrays_are_those_of_the_reference_generators(generators, graph, p, n, graph_seed, seed):
    problem = make_graphical_model(n, p, graph=graph, graph_seed=graph_seed, seed=seed)
    precision = generators.precision_matrix(p, graph, graph_seed)
    np.testing.assert_array_equal(problem.precision, precision)
    np.testing.assert_array_equal(problem.X, generators.ggm_sample(precision, n, seed))


@pytest.mark.parametrize(
    ("graph", "edges", "weight", "data"),
    [
        ("chain", 49, 73.52202524222743, -7.811516996730018),
        ("random", 63, 30.748121956295673, -11.770936968900712),
        ("band", 97, 93.11297691047176, -7.065904415700231),
    ],
)
def test_fingerprints(graph, edges, weight, data):
    """Computed from the reference generators, so that exactness is tested everywhere."""
    problem = make_graphical_model(25, 50, graph=graph, seed=10)
    assert problem.edges.shape == (edges, 2)
    places = np.arange(1, 2501) / 2500
    assert np.sum(problem.precision.ravel() * places) == pytest.approx(weight, rel=1e-10)
    assert np.sum(problem.X.ravel() * places[: problem.X.size]) == pytest.approx(data, rel=1e-10)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_truth_is_what_the_docstring_says(graph):
    problem = make_graphical_model(20000, 12, graph=graph, seed=1)
    precision = problem.precision
    np.testing.assert_array_equal(precision, precision.T)
    assert np.linalg.eigvalsh(precision)[0] > 0
    np.testing.assert_allclose(np.diag(np.linalg.inv(precision)), 1.0)
    assert {tuple(edge) for edge in problem.edges} == {tuple(e) for e in np.argwhere(precision) if e[0] < e[1]}
    np.testing.assert_allclose(np.cov(problem.X.T), np.linalg.inv(precision), atol=0.05)
    assert repr(problem) == f"SimulatedGraph(X=(20000, 12) float64, edges={len(problem.edges)})"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_samples": 0}, "n_samples must be >= 1, got 0"),
        ({"n_samples": 2.5}, "n_samples must be an integer, got 2.5"),
        ({"n_features": 1}, "n_features must be >= 2, got 1"),
        ({"graph": "ring"}, "graph must be one of 'chain', 'random', 'band'; got 'ring'"),
        ({"degree": -1.0}, "degree must be a finite number > 0 and <= 4, got -1.0"),
        ({"degree": 4.5}, "degree must be a finite number > 0 and <= 4, got 4.5"),
        ({"degree": np.nan}, "degree must be a finite number > 0"),
        ({"degree": 2.0, "graph": "chain"}, "degree=2.0 is a setting of 'random', not of 'chain'"),
        ({"correlation": 0.5, "graph": "chain"}, "correlation must be a finite number > -0.5 and < 0.5, got 0.5"),
        ({"correlation": "much", "graph": "chain"}, "correlation must be a finite number"),
        ({"correlation": 0.3}, "correlation=0.3 is a setting of 'chain', not of 'random'"),
        ({"correlation": 0.3, "graph": "band"}, "not of 'band'"),
    ],
)
def test_bad_arguments_say_what_and_which(changes, message):
    with pytest.raises(InvalidInputError) as caught:
        make_graphical_model(**{"n_samples": 10, "n_features": 5, **changes})
    assert message in str(caught.value)


def test_a_variable_has_no_more_neighbours_than_there_are():
    every = np.argwhere(np.triu(np.ones((4, 4)), 1))
    np.testing.assert_array_equal(make_graphical_model(5, 4, degree=3).edges, every)
    np.testing.assert_array_equal(make_graphical_model(5, 3).edges, every[[0, 1, 3]])
