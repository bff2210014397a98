"""Any function: its conventions, batches, torch and JAX, what it refuses, and what becomes of NaN."""

import copy
import pickle

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import CapabilityError, InvalidInputError, MeanObjective, Status
from hardthresh.core.errors import MissingDependencyError, NotFiniteError
from hardthresh.core.meter import Meter
from hardthresh.objectives import Function, LinearModel, derivatives
from hardthresh.solvers import IHT, FixedBatch, HardThresholdingPursuit, ProbabilisticIHT, StochasticIHT
from hardthresh.steps import Fixed
from levels import at_most, in_turn

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 15))
Y = X[:, 2] - 2.0 * X[:, 7] + 0.1 * RNG.standard_normal(120)
MODEL = LinearModel(X, Y)
W = RNG.standard_normal(15)


def squared(w, rows=slice(None)):
    residual = X[rows] @ w - Y[rows]
    return 0.5 * np.mean(residual**2)


def slope(w, rows=slice(None)):
    residual = X[rows] @ w - Y[rows]
    return residual @ X[rows] / residual.size


def both(w, rows=slice(None)):
    return squared(w, rows), slope(w, rows)


def hessian_product(w, v, rows=slice(None)):
    return (X[rows] @ v) @ X[rows] / X[rows].shape[0]


def torch_or_skip():
    return pytest.importorskip("torch", reason="torch is not installed")


def torch_functions():
    torch = torch_or_skip()
    tX, ty = torch.from_numpy(X), torch.from_numpy(Y)
    return {
        "callable": Function.from_torch(lambda w: 0.5 * torch.mean((tX @ w - ty) ** 2), 15, curvature=True),
        "rows": Function.from_torch(
            lambda w, rows: 0.5 * torch.mean((tX[rows] @ w - ty[rows]) ** 2), 15, curvature=True, n_rows=120, chunk=50
        ),
        "batches": Function.from_torch(
            lambda w, batch: 0.5 * torch.mean((batch[0] @ w - batch[1]) ** 2),
            15,
            curvature=True,
            batches=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tX, ty), batch_size=32, shuffle=True),
        ),
        "examples one by one": Function.from_torch(
            lambda w, batch: 0.5 * torch.mean((batch[0] @ w - batch[1]) ** 2),
            15,
            curvature=True,
            batches=torch.utils.data.Subset(torch.utils.data.TensorDataset(tX, ty), range(120)),
        ),
    }


def jax_functions():
    pytest.importorskip("jax", reason="jax is not installed")
    import jax.numpy as jnp

    return {
        "callable": Function.from_jax(lambda w: 0.5 * jnp.mean((X @ w - Y) ** 2), 15, curvature=True),
        "rows": Function.from_jax(
            lambda w, rows: 0.5 * jnp.mean((X[rows] @ w - Y[rows]) ** 2), 15, curvature=True, n_rows=120, chunk=50
        ),
        "batches": Function.from_jax(
            lambda w, batch: 0.5 * jnp.mean((batch[0] @ w - batch[1]) ** 2),
            15,
            curvature=True,
            n_rows=120,
            batches=lambda rows: (X[rows], Y[rows]),
        ),
    }


def given_functions():
    return {
        "gradient": Function(squared, 15, slope, curvature=hessian_product),
        "both": Function(both, 15, True, curvature=hessian_product),
        "rows": Function(both, 15, True, curvature=hessian_product, n_rows=120, chunk=50),
        "rows of both callables": Function(squared, 15, slope, curvature=hessian_product, n_rows=120),
        "batches": Function(
            lambda w, batch: 0.5 * np.mean((batch[0] @ w - batch[1]) ** 2),
            15,
            lambda w, batch: (batch[0] @ w - batch[1]) @ batch[0] / batch[1].size,
            curvature=lambda w, v, batch: (batch[0] @ v) @ batch[0] / batch[1].size,
            batches=lambda rows: (X[rows], Y[rows]),
            n_rows=120,
        ),
    }


WAYS = {"given": given_functions, "torch": torch_functions, "jax": jax_functions}
every_way = pytest.mark.parametrize("way", WAYS)


@at_most(1)
@every_way
def test_every_way_to_say_it_is_the_same_function(way):
    at = MODEL.evaluate(W)
    for name, f in WAYS[way]().items():
        seen = f.evaluate(W)
        np.testing.assert_allclose(seen.value, at.value, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(seen.gradient, at.gradient, rtol=1e-10, atol=1e-13, err_msg=name)
        np.testing.assert_allclose(f.value(W), at.value, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(f.curvature(seen, W), MODEL.curvature(at, W), rtol=1e-10, err_msg=name)
        assert seen.point is W
        assert type(seen.gradient) is np.ndarray
        assert seen.gradient.dtype == np.float64
        assert f.check_gradient() < 1e-7
        assert f.check_gradient(W) < 1e-7


@pytest.mark.slow
@at_most(2)
@every_way
def test_a_mini_batch_is_that_of_the_linear_model(way):
    for name, f in WAYS[way]().items():
        assert isinstance(f, MeanObjective) == (name not in ("callable", "gradient", "both"))
        if not isinstance(f, MeanObjective):
            assert f.traits.n_rows == 1
            continue
        rows = np.array([3, 50, 7, 119])
        some, expected = f.rows(rows), MODEL.rows(rows)
        assert (f.traits.n_rows, some.traits.n_rows) == (120, 4)
        np.testing.assert_allclose(some.value(W), expected.value(W), rtol=1e-12)
        np.testing.assert_allclose(some.evaluate(W).gradient, expected.evaluate(W).gradient, rtol=1e-10)
        np.testing.assert_allclose(some.rows(np.array([1, 1])).value(W), MODEL.rows(np.array([50])).value(W))


@at_most(1)
@in_turn(
    "solver,way",
    [None, IHT(), HardThresholdingPursuit(), ProbabilisticIHT(), StochasticIHT(step=0.3, batch=FixedBatch(30))],
    list(WAYS),
)
def test_solvers_find_the_truth(way, solver):
    for f in WAYS[way]().values():
        if solver is not None and not isinstance(f, solver.requires):
            continue
        run = ht.minimize(f, Sparsity(2), solver, seed=0, max_iter=200)
        np.testing.assert_array_equal(run.support, [2, 7])
        assert run.passes > 0


def test_passes_are_counted():
    meter = Meter()
    f = Function(both, 15, True, curvature=hessian_product, n_rows=120, chunk=50).metered(meter)
    at = f.evaluate(W)
    assert meter.passes == pytest.approx(2.0)
    f.value(W)
    assert meter.passes == pytest.approx(3.0)
    f.curvature(at, W)
    assert meter.passes == pytest.approx(5.0)
    f.rows(np.arange(30)).evaluate(W)
    assert meter.passes == pytest.approx(5.5)


def test_a_callable_may_do_what_it_likes_with_its_arguments():
    """It may overwrite the point, and return the same array each time."""
    kept = np.zeros(15)

    def careless(w):
        w -= 1.0
        kept[:] = w
        return 0.5 * np.sum(w**2), kept

    f = Function(careless, 15, True)
    w = np.zeros(15)
    one = f.evaluate(w)
    f.evaluate(w + 5.0)
    np.testing.assert_array_equal(w, 0.0)
    np.testing.assert_array_equal(one.gradient, -1.0)


def test_points_are_like_the_array_they_should_be_like():
    f = Function(both, like=np.zeros(15, dtype=np.float32), gradient=True)
    at = f.evaluate(W.astype(np.float32))
    assert f.zeros().dtype == at.gradient.dtype == np.float32
    torch = torch_or_skip()
    like = torch.zeros(4, dtype=torch.float32)
    f = Function.from_torch(lambda w: torch.sum((w - 1.0) ** 4), like=like)
    at = f.evaluate(like)
    assert isinstance(at.gradient, torch.Tensor)
    assert at.gradient.dtype == torch.float32
    assert not at.gradient.requires_grad
    run = ht.minimize(f, Sparsity(2))
    np.testing.assert_allclose(np.sort(run.w.numpy()), [0.0, 0.0, 1.0, 1.0], atol=0.1)
    assert f.evaluate(np.zeros(4)).gradient.tolist() == [-4.0] * 4  # a NumPy point is answered in NumPy
    assert f.check_gradient() < 1e-2


def test_a_convention_that_fits_torch_tensors_of_ones_own():
    torch = torch_or_skip()
    f = Function(lambda w: (torch.sum(w**2), 2 * w), like=torch.zeros(3), gradient=True)
    assert f.evaluate(torch.ones(3)).gradient.tolist() == [2.0, 2.0, 2.0]


def test_the_parameters_of_a_module():
    torch = torch_or_skip()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(15, 1, bias=False), torch.nn.BatchNorm1d(1, affine=False)).double().eval()
    frozen = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=False)
    net.register_parameter("frozen", frozen)
    tX, ty = torch.from_numpy(X), torch.from_numpy(Y)
    before = {name: p.clone() for name, p in net.state_dict().items()}
    f = Function.from_torch(net, loss=lambda model: torch.mean((model(tX)[:, 0] - ty) ** 2))
    assert f.shape == (15,)
    np.testing.assert_array_equal(f.null_point(), net[0].weight.detach().ravel())
    run = ht.minimize(f, Sparsity(2))
    assert run.support.indices.tolist() == [2, 7]
    assert run.w.dtype == torch.float64
    assert all(torch.equal(before[name], p) for name, p in net.state_dict().items())
    assert net[0].weight.grad is None
    net.load_state_dict(f.parameters(run.w), strict=False)
    torch.testing.assert_close(torch.mean((net(tX)[:, 0] - ty) ** 2).item(), run.value)


def test_a_module_learns_in_mini_batches():
    torch = torch_or_skip()
    net = torch.nn.Linear(15, 1).double()
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    f = Function.from_torch(
        net,
        loss=lambda model, batch: torch.mean((model(batch[0])[:, 0] - batch[1]) ** 2),
        batches=torch.utils.data.DataLoader(data, batch_size=40),
    )
    run = ht.minimize(f, Sparsity(2), ProbabilisticIHT(), seed=0, max_iter=300)
    assert run.support.indices.tolist() == [2, 7]


def test_jax_keeps_its_settings():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    before = jax.config.jax_enable_x64
    f = Function.from_jax(lambda w: jax.numpy.sum((w - 1.0) ** 4), 3)
    assert f.evaluate(np.zeros(3)).gradient.dtype == np.float64
    assert f.check_gradient() < 1e-7
    assert jax.config.jax_enable_x64 == before
    small = Function.from_jax(lambda w: jax.numpy.sum(w**2), like=np.zeros(3, dtype=np.float32))
    assert small.evaluate(np.ones(3, dtype=np.float32)).gradient.dtype == np.float32


def test_a_wrong_gradient_is_found():
    assert Function(squared, 15, slope).check_gradient(W) < 1e-7
    assert Function(squared, 15, lambda w: 1.01 * slope(w)).check_gradient(W) > 5e-3
    assert Function(squared, 15, lambda w: slope(w)[::-1]).check_gradient(W) > 0.1


# --- NaN and infinity ------------------------------------------------------------------------------------------------


def test_nan_ends_a_run_with_its_best_iterate():
    calls = []

    def spoilt(w):
        calls.append(w)
        return (np.nan if len(calls) > 9 else squared(w)), slope(w)

    run = ht.minimize(Function(spoilt, 15, True), Sparsity(3), IHT(step=Fixed(0.1)))
    assert run.status is Status.DIVERGED
    assert "the function returned nan at the point with 3 of 15 entries non-zero" in run.message
    assert run.value == run.history["value"].min() < squared(np.zeros(15))
    assert run.value == squared(run.w)


def test_nan_at_the_start_is_an_error_that_says_where():
    with pytest.raises(NotFiniteError, match="returned nan at the point with 0 of 2 entries"):
        ht.minimize(Function(lambda w: np.nan, 2, lambda w: w), Sparsity(1), IHT())
    with pytest.raises(NotFiniteError, match="the gradient has nan in entry 1 at the point with 1 of 2"):
        Function(lambda w: 0.0, 2, lambda w: np.array([1.0, np.nan])).evaluate(np.array([0.0, 3.0]))
    with pytest.raises(NotFiniteError, match="returned -inf"):
        Function(lambda w: -np.inf, 2, lambda w: w).value(np.zeros(2))


def test_infinity_is_outside_of_the_domain_and_line_searches_go_back():
    def barrier(w):
        return -float((np.log1p(-w) + w).sum()) - 4.0 * w[0] if (w < 1).all() else np.inf

    f = Function(barrier, 3, lambda w: 1.0 / (1.0 - w) - np.array([5.0, 1.0, 1.0]))
    far = f.evaluate(np.full(3, 2.0))
    assert far.value == np.inf
    assert np.isnan(far.gradient).all()
    run = ht.minimize(f, Sparsity(1))
    np.testing.assert_allclose(run.w, [0.8, 0.0, 0.0], atol=1e-4)
    run = ht.minimize(f, Sparsity(1), IHT(step=Fixed(10.0)))
    assert run.status is Status.DIVERGED
    np.testing.assert_array_equal(run.w, 0.0)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Function(squared, 15), "Function.from_torch or Function.from_jax"),
        (lambda: Function(squared, 15, False), "a gradient is needed"),
        (lambda: Function(3, 15, slope), "fn must be callable"),
        (lambda: Function(squared, 15, slope, curvature=2.0), "curvature must be callable"),
        (lambda: Function(squared, None, slope), "give the shape"),
        (lambda: Function(squared, 15, slope, like=np.zeros(15)), "one of the two"),
        (lambda: Function(squared, 1.5, slope), "integer or a tuple of integers"),
        (lambda: Function(squared, (3, 0), slope), "positive sizes"),
        (lambda: Function(squared, 15, slope, batches=lambda rows: rows), "n_rows="),
        (lambda: Function(squared, 15, slope, chunk=3), "n_rows="),
        (lambda: Function(squared, 15, slope, batches=[1, 2], n_rows=2), "batches must be a callable"),
        (lambda: Function(squared, 15, slope, n_rows=0), "n_rows must be >= 1"),
        (lambda: Function(squared, 15, slope, n_rows=2.5), "n_rows must be an integer"),
        (lambda: Function(squared, 15, slope, n_rows=5, chunk=0), "chunk must be >= 1"),
        (lambda: Function(squared, 15, slope, lower_bound=np.nan), "lower_bound"),
        (lambda: Function(lambda w: w, 15, slope).value(W), r"one number, got an array of shape \(15,\)"),
        (lambda: Function(both, 15, slope).value(W), "say gradient=True"),
        (lambda: Function(squared, 15, True).value(W), r"must return \(value, gradient\), got"),
        (lambda: Function(lambda w: None, 15, slope).value(W), "one number, got NoneType"),
        (
            lambda: Function(squared, 15, lambda w: w[:3]).evaluate(W),
            r"the gradient has shape \(3,\), the point \(15,\)",
        ),
        (lambda: Function(squared, 15, lambda w: "uphill").evaluate(W), "the gradient must be numeric"),
        (lambda: Function(squared, 15, slope).check_gradient(np.zeros(3)), "w has shape"),
        (lambda: Function(squared, 15, slope).check_gradient(directions=0), "directions must be >= 1"),
        (lambda: Function(squared, 15, slope).check_gradient(directions=2.5), "directions must be an integer"),
        (lambda: Function(lambda w: np.inf, 15, slope).check_gradient(), "f is infinite at or beside .* give w="),
        (
            lambda: Function(lambda w: np.where(w[0] > W[0], np.inf, 1.0), 15, slope).check_gradient(W),
            "f is infinite at or beside",
        ),
        (lambda: Function(None, 15, slope), "fn must be callable, got None"),
        (lambda: Function(squared, 15, slope, lower_bound="0"), "lower_bound must be a number"),
        (lambda: Function(squared, 15, slope, lower_bound=None), "lower_bound must be a number"),
        (lambda: Function(lambda w: "1", 15, slope).value(W), "one number, got str"),
        (lambda: Function(lambda w: True, 15, slope).value(W), "one number, got bool"),
        (lambda: Function(lambda w: np.bool_(True), 15, slope).value(W), "one number, got bool"),
        (lambda: Function(lambda w: np.complex128(1 + 3j), 15, slope).value(W), "one number, got complex128"),
        (
            lambda: Function(lambda w: 1.0, 15, slope, n_rows=10),
            r"fn is called as fn\(w, batch\), but its arg",
        ),
        (lambda: Function(squared, 15, lambda w: w, n_rows=10), r"gradient is called as gradient\(w, batch\)"),
        (lambda: Function(lambda w, rows: 1.0, 15, slope), r"fn is called as fn\(w\), .* n_rows= says how many"),
        (lambda: Function(squared, 15, slope, curvature=lambda w: w), r"curvature is called as curvature\(w, v\)"),
        (lambda: Function(lambda w: next(iter([])), 15, slope).value(W), "raised StopIteration"),
        (lambda: Function(lambda w: next(iter([])), 15, True).evaluate(W), "raised StopIteration"),
        (lambda: Function(both, 15, True, n_rows=120).rows(np.array([], dtype=int)), "at least one row"),
    ],
)
def test_invalid_arguments_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_missing_contracts_are_named_before_a_run():
    f = Function(squared, 15, slope)
    with pytest.raises(CapabilityError, match="needs rows"):
        ht.minimize(f, Sparsity(2), ProbabilisticIHT(batch=FixedBatch(10)))
    with pytest.raises(CapabilityError, match=r"from_torch\(module"):
        f.parameters(W)


def test_functions_that_torch_cannot_differentiate_are_refused():
    torch = torch_or_skip()
    net = torch.nn.Linear(3, 1)
    data = torch.utils.data
    for build, message in [
        (lambda: Function.from_torch(lambda w: w.sum().item(), 3).evaluate(np.ones(3)), "scalar tensor, got 3.0"),
        (lambda: Function.from_torch(lambda w: w**2, 3).evaluate(np.ones(3)), r"shape \(3,\)"),
        (lambda: Function.from_torch(lambda w: w.detach().sum(), 3).evaluate(np.ones(3)), "detach"),
        (lambda: Function.from_torch(3, 3), "fn must be callable"),
        (lambda: Function.from_torch(net, 4, loss=lambda model: 0), "neither shape nor like"),
        (lambda: Function.from_torch(lambda w: w, loss=lambda model: 0), "torch.nn.Module"),
        (lambda: Function.from_torch(torch.nn.ReLU(), loss=lambda model: 0), "got none"),
        (
            lambda: Function.from_torch(lambda w, b: w.sum(), 3, batches=data.TensorDataset(torch.ones(4)), n_rows=5),
            "the data set has 4 examples",
        ),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            build()


def test_a_loader_that_chooses_examples_is_refused():
    data = torch_or_skip().utils.data
    examples = data.TensorDataset(torch_or_skip().ones(50, 3))

    def mean(**options):
        loader = data.DataLoader(examples, **options)
        return Function.from_torch(lambda w, b: (b[0].double() @ w).mean(), 3, batches=loader)

    drawn, some = data.RandomSampler(examples, replacement=True), data.RandomSampler(examples, num_samples=7)
    for options, message in [
        ({"sampler": data.SubsetRandomSampler(range(10))}, "SubsetRandomSampler chooses .*Subset of it"),
        ({"sampler": data.WeightedRandomSampler([1.0] * 50, 50)}, "WeightedRandomSampler chooses"),
        ({"sampler": data.SequentialSampler(range(3))}, "SequentialSampler chooses"),
        ({"sampler": drawn}, "RandomSampler chooses"),
        ({"sampler": some}, "RandomSampler chooses"),
        ({"batch_size": 32, "drop_last": True}, "drops the last 18 of 50"),
        ({"batch_size": None}, "batch_size=None"),
        ({"batch_sampler": data.BatchSampler(data.SequentialSampler(examples), 7, False)}, "batch_sampler"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            mean(**options)
    for options in ({"shuffle": True}, {"batch_size": 7}, {"batch_size": 25, "drop_last": True}):
        assert mean(**options).traits.n_rows == 50
        assert mean(**options).value(np.ones(3)) == pytest.approx(3.0)


def test_inference_mode_is_called_by_its_name():
    torch = torch_or_skip()
    f = Function.from_torch(lambda w: (w**2).sum(), 3)
    with torch.inference_mode(), pytest.raises(InvalidInputError, match="inference_mode"):
        f.evaluate(np.ones(3))
    with torch.no_grad():
        np.testing.assert_array_equal(f.evaluate(np.ones(3)).gradient, 2.0)


def test_parameters_are_those_of_a_point():
    torch = torch_or_skip()
    f = Function.from_torch(torch.nn.Linear(4, 1), loss=lambda model: model(torch.ones(3, 4)).mean())
    for w in (np.zeros(3), torch.zeros(6), "much"):
        with pytest.raises(InvalidInputError, match=r"w (has shape|must be numeric)"):
            f.parameters(w)
    assert f.parameters(np.zeros(5))["weight"].shape == (1, 4)


def test_a_module_in_training_mode_is_warned_of():
    torch = torch_or_skip()
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))

    def loss(model):
        return model(torch.ones(3, 4)).mean()

    with pytest.warns(UserWarning, match=r"Dropout.*call module.eval\(\)"):
        Function.from_torch(net, loss=loss)
    Function.from_torch(net.eval(), loss=loss)
    Function.from_torch(torch.nn.Linear(4, 1), loss=loss)  # nothing there that training would change


def test_a_linear_function_has_no_curvature():
    torch = torch_or_skip()
    f = Function.from_torch(lambda w: w.sum(), 3, curvature=True)
    np.testing.assert_array_equal(f.curvature(f.evaluate(np.ones(3)), np.ones(3)), 0.0)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(("name", "build"), [("torch", Function.from_torch), ("jax", Function.from_jax)])
def test_a_missing_library_is_named(monkeypatch, name, build):
    def missing(module):
        raise ImportError(module)

    monkeypatch.setattr(derivatives, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=rf"hardthresh\[{name}\]"):
        build(lambda w: w, 3)


def test_it_can_be_stored():
    f = Function(both, 15, True, n_rows=120, chunk=50)
    assert pickle.loads(pickle.dumps(f)).value(W) == f.value(W)


def torch_loss(w, batch):
    return ((batch[0].double() @ w) ** 2).mean()


def torch_loss_of_rows(w, rows):
    return (w[rows % w.shape[0]] ** 2).mean()


def module_loss(model):
    return model(derivatives.imported("torch").ones(3, 4)).mean()


def test_functions_of_torch_can_be_stored():
    torch = torch_or_skip()
    rows = torch.arange(30.0).reshape(10, 3)
    examples = torch.utils.data.TensorDataset(rows)
    pairs = [(row, 0.0) for row in rows]
    for f in (
        Function.from_torch(torch_loss, 3, batches=examples),
        Function.from_torch(torch_loss, 3, batches=torch.utils.data.DataLoader(examples, batch_size=4)),
        Function.from_torch(torch_loss, 3, batches=torch.utils.data.Subset(pairs, range(7))),
        Function.from_torch(torch_loss_of_rows, 3, n_rows=10),
        Function.from_torch(torch.nn.Linear(4, 1), loss=module_loss),
    ):
        w = f.zeros() + 1.0
        assert pickle.loads(pickle.dumps(f)).value(w) == copy.deepcopy(f).value(w) == f.value(w)
