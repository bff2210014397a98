"""Minimise an objective over a constraint, with the parts that the package has and with one of one's own."""
# pyright: strict, reportMissingTypeStubs=false

from collections.abc import Iterator
from typing import Any, assert_type

import hardthresh as ht
from hardthresh import certificates, constraints, losses, objectives, selection, solvers, steps
from hardthresh.core import History, State, Status, Support
from hardthresh.datasets import make_sparse_regression
from hardthresh.designs import as_design

DATA = make_sparse_regression(60, 8, 2, seed=0)
OBJECTIVE = objectives.LinearModel(as_design(DATA.X), DATA.y, losses.Squared())


def minimize_returns_a_result() -> None:
    result = ht.minimize(OBJECTIVE, constraints.Sparsity(2))
    assert_type(result, ht.Result)
    assert_type(result.w, Any)
    assert_type(result.value, float)
    assert_type(result.status, Status)
    assert_type(result.status is ht.Status.NO_MINIMISER, bool)
    assert_type(result.converged, bool)
    assert_type(result.support, Support)
    assert_type(result.n_iter, int)
    assert_type(result.history, History)
    print(certificates.certify(result, OBJECTIVE))


def a_run_can_be_watched_and_resumed() -> None:
    def watch(state: State) -> None:
        assert_type(state.iteration, int)
        assert_type(state.at.value, float)

    solver = solvers.IHT(steps.SparsePolyak(target=0.0))
    result = ht.minimize(OBJECTIVE, constraints.Sparsity(2), solver, callback=watch, max_iter=5)
    ht.minimize(OBJECTIVE, constraints.Sparsity(2), solver, state=result.state)


def iterate_yields_states() -> None:
    states = ht.iterate(OBJECTIVE, constraints.Sparsity(2))
    assert_type(states, Iterator[State])
    assert_type(next(states).w, Any)


def a_path_yields_results() -> None:
    for result in selection.path(OBJECTIVE, constraints.Sparsity, range(3)):
        assert_type(result, ht.Result)
