"""Data passes, the honest unit of cost, are counted as the documentation says."""

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh.constraints import Sparsity
from hardthresh.core import BaseObjective, CapabilityError, Meter, Passes, iterate, minimize
from hardthresh.designs import as_design, standardize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit
from hardthresh.steps import Fixed

N, D = 50, 200


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, X[:, 0] + 0.1 * rng.standard_normal(N)


STORAGES = {"dense": np.asarray, "fortran": np.asfortranarray, "sparse": sp.csc_array}


@pytest.fixture(params=STORAGES)
def metered(request):
    X, y = data()
    meter = Meter()
    return LinearModel(STORAGES[request.param](X), y).metered(meter), meter


def sparse_point(s):
    w = np.zeros(D)
    w[:s] = 1.0
    return w


@pytest.mark.parametrize("s", [0, 7, D])
def test_an_evaluation_costs_one_pass_and_the_prediction_its_share(metered, s):
    objective, meter = metered
    at = objective.evaluate(sparse_point(s))
    assert meter.passes == pytest.approx(1 + s / D)
    objective.evaluate(at.point, at.prediction)
    assert meter.passes == pytest.approx(2 + s / D)


def test_a_value_costs_only_its_share(metered):
    objective, meter = metered
    prediction = objective.predict(sparse_point(10))
    assert meter.passes == pytest.approx(10 / D)
    objective.value(sparse_point(10), prediction)
    assert meter.passes == pytest.approx(10 / D)
    objective.value(sparse_point(10))
    assert meter.passes == pytest.approx(20 / D)


def test_curvature(metered):
    objective, meter = metered
    at = objective.evaluate(sparse_point(0))
    spent = meter.passes
    objective.curvature_along(at, sparse_point(4))
    assert meter.passes - spent == pytest.approx(4 / D)
    objective.curvature(at, sparse_point(4))
    assert meter.passes - spent == pytest.approx(1 + 8 / D)


def test_columns_and_rows_share_the_meter(metered):
    objective, meter = metered
    part = objective.columns(np.arange(20))
    assert meter.passes == 0.0
    part.evaluate(np.ones(20))
    assert meter.passes == pytest.approx(2 * 20 / D)
    meter.passes = 0.0
    batch = objective.rows(np.arange(10))
    batch.evaluate(sparse_point(D))
    assert meter.passes == pytest.approx(2 * 10 / N)
    meter.passes = 0.0
    batch.columns(np.arange(20)).evaluate(np.ones(20))
    assert meter.passes == pytest.approx(2 * (10 / N) * (20 / D))


def test_an_unmetered_model_counts_nothing():
    X, y = data()
    objective, meter = LinearModel(X, y), Meter()
    objective.metered(meter)
    objective.evaluate(sparse_point(3))
    assert meter.passes == 0.0


def test_a_standardized_design_costs_what_its_data_cost():
    X, y = data()
    weights = np.full(N, 1 / N)
    meter = Meter()
    design = standardize(as_design(X).metered(meter), weights, scale=True, intercept=True)
    assert meter.passes == 2.0
    meter.passes = 0.0
    objective = LinearModel(design, y)
    objective.evaluate(objective.zeros())
    assert meter.passes == pytest.approx(1.0)


def test_a_run_counts_its_own_passes():
    X, y = data()
    objective = LinearModel(X, y)
    run = minimize(objective, Sparsity(4), IHT(step=Fixed(0.1)), max_iter=10, tol=0.0)
    np.testing.assert_allclose(run.history["passes"], 1 + np.arange(11) * (1 + 4 / D), rtol=1e-12)
    again = minimize(objective, Sparsity(4), IHT(step=Fixed(0.1)), max_iter=10, tol=0.0)
    assert again.passes == run.passes


def test_a_start_of_ones_own_pays_for_the_scales_of_the_run_too():
    objective = LinearModel(*data())
    cold = next(iterate(objective, Sparsity(4), IHT()))
    warm = next(iterate(objective, Sparsity(4), IHT(), sparse_point(4)))
    assert cold.passes == pytest.approx(1.0)
    assert warm.passes == pytest.approx(1.0 + 1.0 + 4 / D)


def test_the_default_solver_spends_little():
    X, y = data()
    run = minimize(LinearModel(X, y), Sparsity(4), HardThresholdingPursuit())
    spent = np.diff(run.history["passes"])
    assert run.passes < 3 * (run.n_iter + 1)
    assert (spent > 0).all()


def test_two_runs_side_by_side_do_not_share_a_meter():
    X, y = data()
    objective = LinearModel(X, y)
    runs = [iterate(objective, Sparsity(4), IHT(step=Fixed(0.1))) for _ in range(2)]
    states = [[next(run) for run in runs] for _ in range(4)]
    assert [one.passes for one, _ in states] == [other.passes for _, other in states]


def test_an_objective_that_does_not_count_is_not_said_to_be_free(uncounted):
    result = minimize(uncounted, Sparsity(2), IHT(), max_iter=3)
    assert np.isnan(result.passes)
    with pytest.raises(CapabilityError, match="metered"):
        minimize(uncounted, Sparsity(2), IHT(), stop=Passes(5.0))


@pytest.fixture
def uncounted():
    """A linear model without the ability to count."""
    model = LinearModel(np.eye(4), np.arange(4.0))

    class Uncounted(BaseObjective):
        shape, lower_bound = model.shape, model.lower_bound
        zeros, predict, value, evaluate = model.zeros, model.predict, model.value, model.evaluate

    return Uncounted()
