"""Matrix completion against a slow twin with a loop, in both storages."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.arrays import FactoredMatrix
from hardthresh.certificates import certify
from hardthresh.constraints import Rank
from hardthresh.core import InvalidInputError, iterate, minimize
from hardthresh.core.meter import Meter
from hardthresh.core.registry import lookup
from hardthresh.objectives import MatrixCompletion
from hardthresh.solvers import IHT, AcceleratedIHT, ConjugateIHT, HardThresholdingPursuit, choose_solver
from hardthresh.solvers import minimize as solve
from hardthresh.steps import BarzilaiBorwein, ExactLineSearch, Fixed, SparsePolyak
from hardthresh.storage import load, save
from levels import at_most, draws, slow_beyond

STORAGES = ("dense", "factored")
LOSSES = ("squared", "logistic", "poisson")
both_storages = pytest.mark.parametrize("storage", STORAGES)


def observations(seed, shape, n, loss="squared", dtype=float):
    """Places in any order, some of them twice, and targets."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, shape[0], n), rng.integers(0, shape[1], n)
    y = rng.standard_normal(n)
    y = {"squared": y, "logistic": (y > 0).astype(float), "poisson": np.floor(np.exp(y))}[loss]
    return rows, cols, y.astype(dtype)


def slow_value(rows, cols, y, W, loss, weights, l2):
    """The mean loss, one observation after the other."""
    loss = lookup("loss", loss)()
    losses = [float(loss.value(y[i : i + 1], W[rows[i], cols[i]][None])[0]) for i in range(len(y))]
    return float(np.dot(weights, losses)) / sum(weights) + 0.5 * l2 * float(np.sum(W * W))


def slow_gradient(*arguments, W, **settings):
    gradient = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        h = np.zeros_like(W)
        h[place] = 1e-6
        gradient[place] = (slow_value(*arguments, W + h, **settings) - slow_value(*arguments, W - h, **settings)) / 2e-6
    return gradient


@given(
    st.integers(0, 2**31),
    st.sampled_from([(4, 3), (3, 4), (1, 5), (5, 1)]),
    st.integers(1, 12),
    st.sampled_from(LOSSES),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(STORAGES),
    st.booleans(),
)
@draws(60)
def test_it_is_the_mean_loss_of_the_observed_entries(seed, shape, n, loss, l2, storage, weighted):
    rng = np.random.default_rng(seed)
    rows, cols, y = observations(seed, shape, n, loss)
    weights = np.append(rng.integers(0, 4, n - 1), 1.0) if weighted else np.ones(n)
    f = MatrixCompletion(
        rows, cols, y, shape=shape, loss=loss, sample_weight=weights if weighted else None, l2=l2, storage=storage
    )
    W, D = rng.standard_normal(shape), rng.standard_normal(shape)
    settings = {"loss": loss, "weights": weights, "l2": l2}
    point = FactoredMatrix.dense(W) if storage == "factored" else W
    direction = FactoredMatrix.dense(D) if storage == "factored" else D
    at = f.evaluate(point)
    np.testing.assert_allclose(at.value, slow_value(rows, cols, y, W, **settings), rtol=1e-12)
    np.testing.assert_allclose(at.gradient, slow_gradient(rows, cols, y, W=W, **settings), atol=1e-6)
    assert f.value(point) == at.value
    assert f.value(point, f.predict(point)) == at.value
    h = 1e-6
    hessian_product = (np.asarray(f.evaluate(W + h * D).gradient) - np.asarray(f.evaluate(W - h * D).gradient)) / (
        2 * h
    )
    np.testing.assert_allclose(f.curvature(at, direction), hessian_product, atol=1e-5)
    np.testing.assert_allclose(f.curvature_along(at, direction), np.sum(D * hessian_product), atol=1e-4, rtol=1e-5)
    assert f.traits.partial == (len({(r, c) for r, c, w in zip(rows, cols, weights, strict=True) if w}) < W.size)
    assert (f.shape, f.lower_bound, f.traits.quadratic) == (
        shape,
        lookup("loss", loss)().lower_bound,
        loss == "squared",
    )


@both_storages
def test_an_offset_is_a_known_part_of_each_prediction(storage):
    """Of squared errors it is subtracted from the values; observations of weight zero take theirs with them."""
    rows, cols, y = observations(0, (4, 5), 9)
    offset, weights = np.linspace(-1.0, 1.0, 9), np.array([1, 2, 3, 0, 1, 1, 2, 0, 1])
    W = np.random.default_rng(1).standard_normal((4, 5))
    settings = {"shape": (4, 5), "sample_weight": weights, "storage": storage}
    one = MatrixCompletion(rows, cols, y, offset=offset, **settings)
    other = MatrixCompletion(rows, cols, y - offset, **settings)
    batch = np.array([3, 0, 3])
    for f, g in ((one, other), (one.rows(batch), other.rows(batch))):
        at, there = f.evaluate(W), g.evaluate(W)
        np.testing.assert_allclose(at.value, there.value, rtol=1e-14)
        np.testing.assert_allclose(at.gradient, there.gradient, atol=1e-15)
        np.testing.assert_allclose(at.prediction - f.offset, there.prediction, atol=1e-15)
    assert solve(one, Rank(1)).value == pytest.approx(solve(other, Rank(1)).value)


@both_storages
def test_weights_are_repetitions_and_the_order_does_not_matter(storage):
    rows, cols, y = observations(0, (4, 5), 9)
    weights = np.array([1, 2, 3, 0, 1, 1, 2, 0, 1])
    W = np.random.default_rng(1).standard_normal((4, 5))
    order = np.random.default_rng(2).permutation(9)
    again = np.repeat(np.arange(9), weights)
    one = MatrixCompletion(rows, cols, y, shape=(4, 5), sample_weight=weights, storage=storage)
    others = [
        MatrixCompletion(rows[again], cols[again], y[again], shape=(4, 5), storage=storage),
        MatrixCompletion(
            rows[order], cols[order], y[order], shape=(4, 5), sample_weight=weights[order], storage=storage
        ),
    ]
    for other in others:
        np.testing.assert_allclose(other.value(W), one.value(W), rtol=1e-14)
        np.testing.assert_allclose(other.evaluate(W).gradient, one.evaluate(W).gradient, atol=1e-15)
        assert other.n_targets == one.n_targets == weights.sum()
        at = one.evaluate(W)
        np.testing.assert_allclose(
            other.minus_twice_log_likelihood(other.evaluate(W)), one.minus_twice_log_likelihood(at)
        )


def test_a_matrix_with_holes():
    A = np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, 3.0]])
    f = MatrixCompletion.from_matrix(A)
    np.testing.assert_array_equal(f.y, [1.0, 0.0, 2.0, 3.0])
    np.testing.assert_array_equal(f.row_indices, [0, 0, 1, 1])
    np.testing.assert_array_equal(f.column_indices, [0, 2, 1, 2])
    S = sp.coo_array(([1.0, 0.0, 2.0, 3.0], ([0, 0, 1, 1], [0, 2, 1, 2])), shape=(2, 3))  # a stored zero is a zero
    for form in (S, S.tocsc(), sp.coo_matrix(S), A.tolist()):
        g = MatrixCompletion.from_matrix(form, l2=0.5)
        np.testing.assert_array_equal(g.y, f.y)
        assert g.l2 == 0.5
    assert f.traits.partial
    assert not MatrixCompletion.from_matrix(np.eye(3)).traits.partial
    with pytest.raises(InvalidInputError, match="a matrix is needed"):
        MatrixCompletion.from_matrix(np.ones(3))
    with pytest.raises(InvalidInputError, match="n >= 1"):
        MatrixCompletion.from_matrix(np.full((2, 2), np.nan))


def test_the_storage_option_selects_the_kind_of_points():
    rows, cols, y = observations(0, (70, 80), 50)
    kinds = {"auto": FactoredMatrix, "factored": FactoredMatrix, "dense": np.ndarray}
    for storage, kind in kinds.items():
        f = MatrixCompletion(rows, cols, y, shape=(70, 80), storage=storage)
        assert type(f.zeros()) is type(f.evaluate(f.zeros()).gradient) is kind
    small = MatrixCompletion(rows % 9, cols % 8, y, shape=(9, 8))
    assert type(small.zeros()) is np.ndarray


@both_storages
def test_float32_stays_float32(storage):
    rows, cols, y = observations(0, (9, 8), 40, dtype=np.float32)
    f = MatrixCompletion(rows, cols, y, shape=(9, 8), l2=0.1, storage=storage)
    for state, _ in zip(iterate(f, Rank(2), ConjugateIHT()), range(4), strict=False):
        assert state.w.dtype == state.at.gradient.dtype == state.at.prediction.dtype == np.float32


@both_storages
def test_passes_are_sweeps_over_the_observations(storage):
    rows, cols, y = observations(0, (9, 8), 40)
    f, meter = MatrixCompletion(rows, cols, y, shape=(9, 8), storage=storage), Meter()
    counted = f.metered(meter)
    at = counted.evaluate(counted.zeros())
    assert meter.passes == 2.0
    counted.curvature_along(at, at.gradient)
    assert meter.passes == 3.0
    counted.value(at.point, at.prediction)
    assert meter.passes == 3.0
    counted.rows(np.arange(10)).predict(at.point)
    assert meter.passes == 3.25
    assert f.design.meter is None


@both_storages
def test_a_mini_batch_is_unbiased(storage):
    rows, cols, y = observations(3, (4, 3), 10)
    f = MatrixCompletion(rows, cols, y, shape=(4, 3), sample_weight=np.arange(1.0, 11.0), storage=storage)
    W = np.random.default_rng(0).standard_normal((4, 3))
    parts = [f.rows(np.array([i, (i + 3) % 10])) for i in range(10)]
    np.testing.assert_allclose(np.mean([part.value(W) for part in parts]), f.value(W))
    mean = sum(np.asarray(part.evaluate(W).gradient) for part in parts) / 10
    np.testing.assert_allclose(mean, f.evaluate(W).gradient)
    with pytest.raises(InvalidInputError, match="at least one"):
        f.rows(np.zeros(0, dtype=int))


GOOD = {"rows": [0, 1], "cols": [0, 1], "values": [1.0, 2.0], "shape": (2, 3)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": None}, "shape=.* is missing"),
        ({"shape": (2,)}, "two integers"),
        ({"shape": (0, 3)}, ">= 1"),
        ({"rows": [0, 2]}, r"rows\[1\] is 2, outside 0 ... 1"),
        ({"cols": [-1, 1]}, r"cols\[0\] is -1, outside 0 ... 2"),
        ({"rows": [0.0, 1.0]}, "rows must be integers, got dtype float64"),
        ({"rows": [0, 1, 1]}, r"rows has shape \(3,\); \(2,\)"),
        ({"cols": [[0], [1]]}, r"cols has shape \(2, 1\)"),
        ({"values": [1.0]}, "rows has shape"),
        ({"values": [1.0, np.nan]}, "NaN"),
        ({"values": [1.0, np.inf]}, "infinity"),
        ({"values": ["a", "b"]}, "numeric"),
        ({"rows": [], "cols": [], "values": []}, "n >= 1"),
        ({"sample_weight": [1.0, -1.0]}, "non-negative"),
        ({"sample_weight": [0.0, 0.0]}, "all-zero"),
        ({"sample_weight": [1.0]}, "sample_weight has shape"),
        ({"l2": -1.0}, "l2"),
        ({"loss": "hinge2"}, "unknown loss"),
        ({"loss": "logistic"}, "Logistic"),
        ({"storage": "disk"}, "'auto', 'dense', 'factored'; got 'disk'"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        MatrixCompletion(**(GOOD | changes))


@pytest.mark.parametrize("name", ["rows", "values"])
def test_other_array_libraries_are_refused_by_name(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InvalidInputError, match=f"{name} is a Tensor.*NumPy"):
        MatrixCompletion(**(GOOD | {name: torch.asarray(GOOD[name])}))
    with pytest.raises(InvalidInputError, match=r"Tensor.*NumPy"):
        MatrixCompletion.from_matrix(torch.eye(3))


# --- solving ---------------------------------------------------------------------------------------------------------


def problem(storage, shape=(40, 30), rank=3, share=0.5, noise=0.0, seed=0, **settings):
    """Some entries of a matrix of low rank."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    rows, cols = np.nonzero(rng.random(shape) < share)
    y = truth[rows, cols] + noise * rng.standard_normal(rows.size)
    return MatrixCompletion(rows, cols, y, shape=shape, storage=storage, **settings), truth


SOLVERS = [
    IHT(),
    IHT(step=Fixed(1200.0)),
    IHT(step=SparsePolyak()),
    IHT(step=BarzilaiBorwein()),
    IHT(step=BarzilaiBorwein(kind="short")),
    IHT(step=ExactLineSearch()),
    HardThresholdingPursuit(),
    AcceleratedIHT(),
    ConjugateIHT(),
]


@slow_beyond(5)
@at_most(7)
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_every_solver_does_the_same_in_both_storages(solver, noise):
    """Equal up to rounding, which the iterations may amplify."""
    states = [
        [state for state, _ in zip(iterate(problem(s, noise=noise)[0], Rank(3), solver), range(9), strict=False)]
        for s in STORAGES
    ]
    for dense, factored in zip(*states, strict=True):
        assert isinstance(factored.w, FactoredMatrix)
        scale = np.max(np.abs(dense.w), initial=1e-300)
        np.testing.assert_allclose(factored.w / scale, dense.w / scale, atol=1e-7)
        np.testing.assert_allclose(factored.value, dense.value, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(factored.step, dense.step, rtol=1e-5)


@pytest.mark.slow
@at_most(3)
@both_storages
@pytest.mark.parametrize("method", ["auto", "lapack", "lanczos", "randomized", "subspace"])
def test_singular_value_projection_completes(storage, method):
    f, truth = problem(storage, noise=0.0)
    run = minimize(f, Rank(3, method), IHT(step=Fixed(1200.0)), max_iter=400)
    np.testing.assert_allclose(run.w, truth, atol=1e-4)


@both_storages
def test_the_default_completes_and_its_support_is_the_decomposition(storage):
    f, truth = problem(storage)
    assert isinstance(choose_solver(f, Rank(3)), ConjugateIHT)
    full = MatrixCompletion.from_matrix(truth)
    assert not isinstance(choose_solver(full, Rank(3)), ConjugateIHT)
    run = solve(f, Rank(3))
    assert run.converged
    U, s, Vt = run.support
    np.testing.assert_allclose((U * s) @ Vt, truth, atol=1e-6)
    np.testing.assert_allclose(np.asarray(run.w), truth, atol=1e-6)
    np.testing.assert_allclose(run.w - truth, np.zeros(truth.shape), atol=1e-6)
    assert certify(run).is_stationary(tol=1e-4)


def test_unobserved_rows_are_completed_by_zeros():
    f, truth = problem("factored", share=0.7)
    keep = f.row_indices != 4
    f = MatrixCompletion(f.row_indices[keep], f.column_indices[keep], f.y[keep], shape=truth.shape, storage="factored")
    w = np.asarray(solve(f, Rank(3)).w)
    np.testing.assert_allclose(w[4], 0.0, atol=1e-8)
    np.testing.assert_allclose(np.delete(w, 4, axis=0), np.delete(truth, 4, axis=0), atol=1e-6)


@both_storages
def test_any_start_will_do(storage):
    f, truth = problem(storage)
    for start in (np.ones(truth.shape), FactoredMatrix.dense(truth), truth.tolist()):
        np.testing.assert_allclose(solve(f, Rank(3), w0=start).w, truth, atol=1e-5)
    with pytest.raises(InvalidInputError, match="w0 has shape"):
        solve(f, Rank(3), w0=truth.T)


def test_a_pickled_run_goes_on_bit_for_bit():
    f, _ = problem("factored", noise=0.1)
    for solver in SOLVERS:
        states = [state for state, _ in zip(iterate(f, Rank(3), solver), range(7), strict=False)]
        again = iterate(f, Rank(3), solver, state=pickle.loads(pickle.dumps(states[3])))
        for one, other in zip(states[3:], again, strict=False):
            np.testing.assert_array_equal(one.w, other.w)
            assert one.value == other.value


def test_a_run_kept_in_a_file_goes_on_bit_for_bit(tmp_path):
    f, _ = problem("factored", noise=0.1)
    part = minimize(f, Rank(3), ConjugateIHT(), max_iter=4)
    save(part, tmp_path / "run.json")
    again = load(tmp_path / "run.json")
    assert isinstance(again.w, FactoredMatrix)
    one, other = (minimize(f, Rank(3), ConjugateIHT(), state=state, max_iter=9) for state in (part.state, again.state))
    np.testing.assert_array_equal(one.w, other.w)
    assert one.value == other.value
