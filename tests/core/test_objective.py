"""The contracts of objectives: what the smallest one has, what an instance may lack, what a meter leaves as it is."""

from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.core import (
    BaseObjective,
    CapabilityError,
    Evaluation,
    LinearObjective,
    MeanObjective,
    Meter,
    Objective,
    SmoothObjective,
    Traits,
    registered,
    require,
)
from hardthresh.core.objective import value_rounding
from hardthresh.objectives import Function, LinearModel
from hardthresh.solvers import IHT, AcceleratedIHT, FixedBatch, HardThresholdingPursuit, StochasticIHT, WorkingSet

CONTRACTS = (Objective, SmoothObjective, LinearObjective, MeanObjective)
TARGET = np.array([0.5, -3.0, 0.25, 2.0])


class Distance(BaseObjective):
    """The smallest objective: a shape, and the value and the gradient."""

    shape = (4,)

    def evaluate(self, w, prediction=None):
        return Evaluation(w, 0.5 * float(np.sum((w - TARGET) ** 2)), w - TARGET)


class SmoothDistance(Distance):
    """The same with a Hessian."""

    def curvature(self, at, direction):
        return direction


def test_the_smallest_objective_runs():
    run = minimize(Distance(), Sparsity(2), IHT())
    np.testing.assert_allclose(run.w, [0.0, -3.0, 0.0, 2.0], atol=1e-6)
    assert np.isnan(run.passes)
    assert [isinstance(Distance(), contract) for contract in CONTRACTS] == [True, False, False, False]


def test_curvature_makes_it_smooth():
    objective = SmoothDistance()
    assert isinstance(objective, SmoothObjective)
    at = objective.evaluate(objective.zeros())
    assert objective.curvature_along(at, np.array([3.0, 0.0, 4.0, 0.0])) == 25.0
    np.testing.assert_allclose(minimize(objective, Sparsity(2), HardThresholdingPursuit()).w, [0.0, -3.0, 0.0, 2.0])


def test_a_method_that_is_none_is_missing():
    objective = SmoothDistance()
    objective.curvature = None
    assert not isinstance(objective, SmoothObjective)
    with pytest.raises(CapabilityError, match="nobody needs curvature, which SmoothDistance does not provide"):
        require(objective, SmoothObjective, by="nobody")


def test_a_slot_or_a_property_that_is_none_is_missing():
    """What the class has is a descriptor there, which says nothing about the instance."""

    @dataclass(slots=True)
    class Sampled(Distance):
        rows: object = None
        curvature: object = None
        traits = Traits(n_rows=50)

    objective = Sampled()
    assert not isinstance(objective, SmoothObjective)
    with pytest.raises(CapabilityError, match="needs rows, which Sampled does not provide"):
        minimize(objective, Sparsity(2), StochasticIHT(0.1, FixedBatch(5)))
    objective.rows = lambda indices: objective
    assert isinstance(objective, MeanObjective)
    assert not isinstance(Sampled(), MeanObjective)

    class Undecided(Distance):
        product = None

        @property
        def curvature(self):
            return self.product

    objective = Undecided()
    assert not isinstance(objective, SmoothObjective)
    objective.product = lambda at, direction: direction
    assert isinstance(objective, SmoothObjective)


def test_a_method_may_be_removed_from_a_class():
    class Changed(Distance):
        def curvature(self, at, direction):
            return direction

    objective = Changed()
    assert isinstance(objective, SmoothObjective)
    del Changed.curvature
    assert not isinstance(objective, SmoothObjective)


def test_a_member_may_come_from_the_instance():
    """What the class lacks is looked for in every instance, whatever another one of the class has."""
    given, without = Distance(), Distance()
    given.curvature = lambda at, direction: direction
    assert isinstance(given, SmoothObjective)
    assert not isinstance(without, SmoothObjective)

    class Wrapper:
        def __getattr__(self, name):
            return getattr(given, name)

    assert isinstance(Wrapper(), SmoothObjective)


def test_a_contract_is_found_without_evaluating_properties():
    class Slow(SmoothDistance):
        @property
        def traits(self):
            raise AssertionError("traits were evaluated")

    assert isinstance(Slow(), SmoothObjective)
    assert not isinstance(Slow(), LinearObjective)


@pytest.mark.parametrize(
    ("objective", "solver", "message"),
    [
        (Distance(), AcceleratedIHT(), "AcceleratedIHT needs curvature, which Distance does not provide"),
        (Distance(), WorkingSet(), "WorkingSet needs columns and hessian and"),
        (LinearModel(aslinearoperator(np.eye(4)), TARGET), WorkingSet(), "WorkingSet needs columns, which LinearModel"),
        (lambda w: 0.0, IHT(), "an objective's contract needs shape and lower_bound and .* which function does not"),
    ],
    ids=["curvature", "columns", "operator", "function"],
)
def test_a_missing_contract_is_named_before_the_run(objective, solver, message):
    with pytest.raises(CapabilityError, match=message):
        minimize(objective, Sparsity(2), solver)


def test_an_objective_without_evaluate_says_so():
    class Nothing(BaseObjective):
        shape = (2,)

    with pytest.raises(NotImplementedError, match="Nothing must have a method evaluate"):
        minimize(Nothing(), Sparsity(1), IHT())


import_module("hardthresh.objectives")  # registers them


@pytest.mark.parametrize(
    "objective",
    [
        *(
            pytest.param(objective, id=f"{entry.name}{number}")
            for entry in registered("objective").values()
            for number, objective in enumerate(entry.examples())
        ),
        pytest.param(LinearModel(aslinearoperator(np.eye(4)), TARGET), id="operator"),
        pytest.param(Distance(), id="distance"),
    ],
)
def test_a_meter_changes_no_contract(objective):
    metered = objective.metered(Meter())
    assert isinstance(objective, Objective)
    for contract in CONTRACTS:
        assert isinstance(metered, contract) == isinstance(objective, contract)
    assert metered.traits == objective.traits


def test_traits_of_rows_and_columns_are_their_own():
    """Those of some rows or columns are their own."""
    y = np.array([0.0, 1.0, 1.0])
    model = LinearModel(np.eye(3), y, loss="logistic", l2=np.array([1.0, 1.0, 0.0]))
    assert model.traits == Traits(quadratic=False, n_rows=3)
    assert not model.attains_bound()
    assert model.columns(np.array([0, 1])).attains_bound()
    assert model.rows(np.array([0, 0])).traits.n_rows == 2


def test_rounding_that_is_not_finite_is_none():
    class Huge(Distance):
        def rounding(self, at):
            return np.inf

    at = Distance().evaluate(TARGET + 1.0)
    assert value_rounding(Huge(), at) == 0.0
    assert value_rounding(Distance(), at) == 16 * np.finfo(float).eps * at.value


def test_a_function_is_what_it_was_given():
    smooth = Function(lambda w: np.sum(w**2), 3, lambda w: 2 * w, curvature=lambda w, v: 2 * v)
    assert isinstance(smooth, SmoothObjective)
    assert not isinstance(smooth, MeanObjective)
    np.testing.assert_array_equal(smooth.null_point(), np.zeros(3))
