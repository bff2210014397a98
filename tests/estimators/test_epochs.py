"""`StochasticIHT` over the blocks of a table: epochs in an order by seed, and a fit of the chosen columns."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hardthresh import SparseLinearRegression, SparseLogisticRegression
from hardthresh.core import InvalidInputError
from hardthresh.core.checking import seed_of
from hardthresh.core.randomness import Purpose
from hardthresh.designs import Serial, Threads, from_arrays, from_npz_shards, logged_readings
from hardthresh.solvers import StochasticIHT
from levels import at_most, only_at

N, D, K = 8000, 60, 4
RNG = np.random.default_rng(1)
X = RNG.standard_normal((N, D)).astype(np.float32)
SIGNAL = X[:, [3, 20, 41, 50]] @ np.array([2.0, -1.5, 1.0, 3.0], dtype=np.float32)
Y = SIGNAL + RNG.standard_normal(N)
TABLE = from_arrays(X, Y, rows=1000)
SOLVER = StochasticIHT(step=0.3, average=0.8)


def model(**settings):
    return SparseLinearRegression(**({"n_nonzero_coefs": K, "solver": SOLVER, "random_state": 5} | settings))


class Recorded(Serial):
    """An engine that notes which blocks are taken one at a time."""

    def __init__(self, blocks):
        super().__init__(blocks)
        self.taken = []

    def rows(self, picks):
        self.taken += picks if len(picks) == 1 else []
        return super().rows(picks)


def test_epochs_are_batches_in_an_order_by_seed_and_a_refit():
    """The slow twin: `partial_fit` on one block after another, and least squares of the chosen columns of all rows."""
    engine = Recorded(TABLE)
    found = model().fit(engine)
    twin, same, last = model(), 0, None
    order = [
        n
        for epoch in range(9)
        for n in np.random.default_rng((seed_of(5), epoch, Purpose.ORDER_OF_BLOCKS)).permutation(8)
    ]
    for number in order:
        rows = slice(1000 * number, 1000 * (number + 1))
        twin.partial_fit(X[rows], Y[rows])
        same = same + 1 if last is not None and np.array_equal(last, twin.support_) else 0
        last = twin.support_
        if same == 10:  # twice the batches that count in the average, which is more than an epoch
            break
    assert found.n_iter_ == twin.n_iter_ > len(TABLE)
    assert engine.taken == order[: found.n_iter_]
    assert_array_equal(found.support_, twin.support_)
    assert_array_equal(found.support_, [3, 20, 41, 50])
    A = np.column_stack([X[:, found.support_], np.ones(N)]).astype(float)
    solution, residual, *_ = np.linalg.lstsq(A, Y, rcond=None)
    assert_allclose(found.coef_[found.support_], solution[:-1], rtol=1e-5)
    assert_allclose(found.objective_, 0.5 * residual[0] / N, rtol=1e-5)  # products of single precision
    assert found.converged_
    assert "stayed the same for an epoch" in found.stop_reason_


def test_the_bits_do_not_depend_on_the_engine_and_survive_a_pickle():
    one, two = model().fit(TABLE), model().fit(Threads(TABLE, 3))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    stored = pickle.loads(pickle.dumps(one))
    assert_array_equal(stored.coef_, one.coef_)
    assert_array_equal(stored.partial_fit(X[:1000], Y[:1000]).coef_, one.partial_fit(X[:1000], Y[:1000]).coef_)


def test_another_seed_has_another_order():
    orders = [np.random.default_rng((seed, 0, Purpose.ORDER_OF_BLOCKS)).permutation(8).tolist() for seed in (5, 6)]
    assert orders[0] != orders[1]
    assert_array_equal(model(random_state=6).fit(TABLE).support_, [3, 20, 41, 50])


@only_at("pairs")
def test_two_classes_with_weights():
    labels = np.where(SIGNAL + RNG.logistic(size=N) > 0, "yes", "no")
    weight = RNG.integers(0, 3, N).astype(float)
    table = from_arrays(X, labels, weight, rows=1000)
    settings = {"n_nonzero_coefs": K, "random_state": 0}
    found = SparseLogisticRegression(solver=StochasticIHT(step=2.0, average=0.8), **settings).fit(table)
    exact = SparseLogisticRegression(**settings).fit(X, labels, sample_weight=weight)
    assert found.classes_.tolist() == ["no", "yes"]
    assert_array_equal(found.support_, exact.support_)
    assert_allclose(found.coef_, exact.coef_, rtol=1e-3)


def test_the_end_of_the_batches_is_not_silent():
    with pytest.warns(ConvergenceWarning, match="did not stay the same .* after 3 blocks.*raise max_iter"):
        found = model(max_iter=3).fit(TABLE)
    assert (found.converged_, found.n_iter_) == (False, 3)


def test_epochs_count_as_readings():
    with logged_readings() as log:
        found = model().fit(TABLE)
    epochs = -(-found.n_iter_ // len(TABLE))
    whole = found.n_iter_ // len(TABLE)
    assert log.readings == whole + int(found.history_["readings"][-1]) + (epochs > whole)


def test_bounds_hold_in_the_refit():
    found = model(bounds=(-0.9, 2.5)).fit(TABLE)
    assert_array_equal(found.support_, [3, 20, 41, 50])
    exact = SparseLinearRegression(n_nonzero_coefs=K, bounds=(-0.9, 2.5)).fit(X, Y)
    assert_allclose(found.coef_, exact.coef_, rtol=1e-5)
    assert_allclose(found.intercept_, exact.intercept_, rtol=1e-3)


def test_blocks_without_rows_that_count_are_left_out(tmp_path):
    """They ended the fit with an error, which other solvers do not have."""
    weight = np.ones(N)
    weight[2000:3000] = 0.0
    for part, (first, last) in enumerate([(0, 2000), (2000, 2000), (2000, 3000), (3000, N)]):
        rows = slice(first, last)
        np.savez(tmp_path / f"{part}.npz", X=X[rows], y=Y[rows], sample_weight=weight[rows])
    assert model().fit(from_npz_shards(tmp_path)).support_.tolist() == [3, 20, 41, 50]
    with pytest.raises(InvalidInputError, match="all rows have weight 0"):
        model().fit(from_arrays(X, Y, np.zeros(N), rows=1000))


@at_most(1)
@pytest.mark.parametrize("kind", ["classes", "outputs"])
def test_rows_of_coefficients_are_fitted_to_all_rows(kind):
    rng = np.random.default_rng(0)
    U = X[:, [3, 20, 41]] @ rng.standard_normal((3, 3))
    y = np.argmax(2.0 * U + rng.gumbel(size=U.shape), axis=1) if kind == "classes" else U + rng.standard_normal(U.shape)
    start = SparseLogisticRegression() if kind == "classes" else SparseLinearRegression()
    start.set_params(n_nonzero_coefs=3, random_state=0)
    table = from_arrays(X, y, rows=1000)
    found, twin = clone(start).set_params(solver=SOLVER).fit(table), clone(start).fit(table)
    assert found.converged_
    assert_array_equal(found.support_, twin.support_)
    assert_allclose(found.coef_, twin.coef_, atol=1e-4)
