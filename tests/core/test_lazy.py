"""Numbers that stay on a device until they are needed, with torch on the CPU (check 12 of scale.md)."""

import operator
import pickle
from math import floor, inf, nan, sqrt
from weakref import ref

import numpy as np
import pytest

array_api_strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from hardthresh.arrays import conjugate_gradients  # noqa: E402
from hardthresh.constraints import Sparsity  # noqa: E402
from hardthresh.core.choosing import (  # noqa: E402
    ahead,
    begun,
    choose,
    choose_array,
    corrected,
    in_step,
    larger,
    power_above,
    ratio_if,
)
from hardthresh.core.few import (  # noqa: E402
    curvature_along_few,
    filled,
    predict_few,
    predict_together,
    take,
)
from hardthresh.core.lazy import LazyScalar, at_hand, inner, scalar, to_host_together  # noqa: E402
from hardthresh.objectives import LinearModel  # noqa: E402
from host_waits import HostWaits  # noqa: E402
from levels import at_most  # noqa: E402


def lazy(x, dtype=torch.float64):
    return scalar(torch.asarray(x, dtype=dtype))


def test_numbers_of_numpy_are_those_of_python():
    for x, kind in [(np.sum(np.ones(3)), float), (np.float32(0.5), float), (np.any([True]), bool), (3.0, float)]:
        assert type(scalar(x)) is kind


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1000,), (40, 25)])
def test_inner_products_are_those_of_sums(dtype, shape):
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.standard_normal(shape), dtype=dtype, order=order) for order in "CF")
    assert type(inner(a, b)) is float
    assert inner(a, b) == np.sum(a * b).item()  # to the last bit, as reductions of NumPy depend on the order
    there = inner(torch.asarray(a), torch.asarray(b))
    assert not at_hand(there)
    terms = a.astype(np.float64) * b
    assert abs(float(there) - terms.sum()) <= 1000 * np.finfo(dtype).eps * np.abs(terms).sum()  # in an order of its own


BINARY = [getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne")]


@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize(("a", "b"), [(0.3, 7.0), (-2.0, -2.0), (1e-300, 3.0)])
def test_arithmetic_is_that_of_floats(operation, a, b):
    for kinds in [(lazy, lazy), (float, lazy), (lazy, float)]:
        left, right = (kind(x) for kind, x in zip(kinds, (a, b), strict=True))
        result = operation(left, right)
        assert isinstance(result, LazyScalar)
        assert not at_hand(result)
        assert result.get() == operation(a, b)
        assert type(result.get()) is type(operation(a, b))


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_factor_of_an_array_is_the_same_on_the_device_as_on_the_host(dtype):
    v = torch.asarray([0.1, 3.0, -7.0], dtype=dtype)
    a, b = torch.sum(v * v), torch.max(v)
    expected = (float(a) - 1.0) / float(b) * v
    step = (scalar(a) - 1.0) / scalar(b)
    with HostWaits() as waits:
        found = step * v
    assert waits.total == 0
    assert found.dtype == dtype
    assert torch.equal(found, expected)
    assert float(step) == (float(a) - 1.0) / float(b)


def test_one_transfer_brings_all_numbers_that_are_in_use():
    v = torch.arange(5.0)
    total, largest, flag, unused = scalar(v.sum()), scalar(v.max()), scalar((v > 3).any()), scalar(v.min())
    del unused
    with HostWaits() as waits:
        assert total + largest > 13.0
        assert flag
        assert largest == 4.0
        assert min(3.0, largest) == 3.0
    assert waits.total == 1


def test_one_transfer_brings_arrays_of_several_kinds_and_the_numbers():
    number, flag = lazy(7.0), scalar(torch.asarray(True))
    given = [
        torch.asarray([[1.0, 2.0], [3.0, 0.1]], dtype=torch.float32),
        torch.asarray([0.1], dtype=torch.float64),
        torch.asarray([True, False]),
        torch.asarray([5, -6]),
        torch.asarray([7], dtype=torch.int32),  # the integers of JAX, unless it is told otherwise
        torch.zeros((0, 3), dtype=torch.float64),
    ]
    with HostWaits() as waits:
        found = to_host_together(*given)
        assert (float(number), bool(flag)) == (7.0, True)
    assert waits.total == 1
    for here, there in zip(found, given, strict=True):
        np.testing.assert_array_equal(here, there.numpy(), strict=True)  # shape and dtype too
    v = np.ones(2)
    assert to_host_together(v)[0] is v


def test_the_larger_number_and_the_ratio_are_those_of_floats():
    for a, b in [(1.0, 2.0), (2.0, 1.0), (1.0, nan), (nan, 1.0)]:
        expected = max(a, b)
        for found in (larger(a, b), larger(lazy(a), b), larger(a, lazy(b)), larger(lazy(a), lazy(b))):
            assert float(found) == pytest.approx(expected, nan_ok=True)
    for condition in (lambda x: x, lambda x: scalar(torch.asarray(x))):
        assert float(ratio_if(condition(True), 3.0, 4.0)) == 0.75
        assert float(ratio_if(condition(False), 3.0, 0.0)) == 0.0  # and no ZeroDivisionError


@pytest.mark.parametrize("x", [1e-300, 0.3, 1.0, 6.0, 8.0, 1e150])
def test_a_power_of_two_is_above_a_number_on_the_host_and_on_the_device(x):
    ones = torch.ones(1, dtype=torch.float64)
    assert power_above(3) == power_above(3.0) == 4.0
    for power in (power_above(x), float(power_above(lazy(x))), float((power_above(lazy(x)) * ones)[0])):
        assert np.frexp(power)[0] == 0.5
        assert x <= power <= 4.0 * x


def test_only_a_device_begins_with_the_first_item_before_it_is_asked():
    for like, number in [(np.ones(1), 0), (torch.ones(1), 1)]:
        started = []
        items = begun(map(lambda i: started.append(i) or i, range(4)), like)  # noqa: C417
        assert len(started) == number
        assert next(items) == 0
        assert len(started) == 1
        assert [*items] == [1, 2, 3]


@pytest.mark.parametrize("scale", [1.0, 1e-150, 0.0])
@pytest.mark.parametrize("rank", [0, 2, 6])
def test_conjugate_gradients_end_on_a_device_where_they_end_on_the_host(scale, rank):
    root = np.random.default_rng(rank).standard_normal((6, rank))
    A, b = root @ root.T, scale * np.arange(1.0, 7.0)
    ours = torch.asarray(A)
    # without curvature, after a few products, or at the end of what can be reached
    for iterations, tol in [(3, 0.0), (30, 1e-10)]:
        expected = conjugate_gradients(lambda v: A @ v, b, iterations, tol)
        with HostWaits() as waits:
            found = conjugate_gradients(lambda v: ours @ v, torch.asarray(b), iterations, tol)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        assert waits.total == iterations // 30  # one in eight products: it has ended there


def test_a_step_that_makes_the_residual_grow_is_not_taken_on_a_device():
    A, b = np.array([[1e-18, 1e8], [1e8, 0.0]]), np.array([1.0, 0.0])  # the curvature along b is rounding
    ours = torch.asarray(A)
    for found in (
        conjugate_gradients(lambda v: A @ v, b, 3),
        conjugate_gradients(lambda v: ours @ v, torch.asarray(b), 3).numpy(),
    ):
        np.testing.assert_array_equal(found, [0.0, 0.0])


def test_a_support_is_compared_with_that_a_projection_started_from_before_it_is_asked():
    z = torch.asarray([3.0, 0.0, -2.0, 1.0], dtype=torch.float64)
    first = Sparsity(2).project(z)
    assert first.support == first.support
    for other, same in [(z * 2.0, True), (-z.flip(0), False)]:
        support = Sparsity(2).project(other, first.support).support
        assert bool(support == Sparsity(2).project(z).support) is same  # another object, compared anew
        assert support == Sparsity(2).project(other).support
        value = lazy(1.0)
        support = Sparsity(2).project(other, first.support).support
        assert float(value) == 1.0
        with HostWaits() as waits:
            assert bool(support == first.support) is same
            assert bool(support != first.support) is not same
        assert waits.total == 0


def test_a_shared_number_is_computed_once():
    x = y = lazy(1.0)
    for _ in range(12):  # 2^12 terms if it were computed for each use
        y = y + y
    v = torch.ones(2, dtype=torch.float64)
    with HostWaits() as waits:
        assert torch.equal(y * v, 2.0**12 * v)
        first = waits.operations
        assert torch.equal(y * v, 2.0**12 * v)
    assert first < 200
    assert waits.operations <= 2 * first - 12  # the sums are there
    assert float(y) == 2.0**12 * float(x)


@pytest.mark.parametrize("a", [2.0, 0.0, -1.0, nan])
def test_a_choice_divides_only_where_its_condition_holds(a):
    def root_of_ratio(x):
        return choose(x != 2.0, ratio_if(x > 0.0, 4.0, x, -1.0), 2.0)

    expected = 4.0 / a if a > 0.0 else -1.0
    assert root_of_ratio(a) == expected
    assert float(root_of_ratio(lazy(a))) == expected
    assert torch.equal(root_of_ratio(lazy(a)) * torch.ones(1, dtype=torch.float64), torch.asarray([expected]).double())
    u, v = torch.ones(2), torch.zeros(2)
    assert choose_array(a > 0.0, u, v) is (u if a > 0.0 else v)
    assert torch.equal(choose_array(lazy(a) > 0.0, u, v), u if a > 0.0 else v)


@pytest.mark.slow
def test_a_sum_of_many_terms_neither_recurses_nor_keeps_them():
    """A counter that is carried from iteration to iteration, which nobody reads on the host."""
    terms, total, chosen = [], 0.0, 0
    with HostWaits() as waits:
        for i in range(100_000):
            term = torch.tensor(float(i), dtype=torch.float64)
            total = total + scalar(term)
            if not i % 100:
                terms.append(ref(term))
                chosen = choose(scalar(term) >= 0.0, chosen + 1, 0)
        del term
        assert sum(term() is not None for term in terms) <= 64
    assert waits.total == 0
    assert not at_hand(total)
    once = total * torch.ones(1, dtype=torch.float64)
    assert float(once[0]) == float(total) == sum(range(100_000))
    assert float(chosen) == 1000


def test_a_sum_of_known_terms_is_known():
    total, largest = 0.0, 0.0
    for i in range(1000):
        term = lazy(float(i))
        total, largest = total + term, larger(largest, term)
        assert float(term) == i
        assert at_hand(total)
    with HostWaits() as waits:
        assert float(total) == 499_500.0
        assert float(largest) == 999.0
    assert waits.operations == 0


def test_a_number_that_is_computed_early_may_be_one_that_nobody_asks_for():
    zero = lazy(0.0)
    assert float(zero) == 0.0
    x = zero + 1.0
    for _ in range(200):
        x = 1.0 / zero + x
    with pytest.raises(ZeroDivisionError):
        float(x)


def test_what_overflows_is_corrected_on_the_host():
    assert corrected(inf, lambda: 5.0) == corrected(nan, lambda: 5.0) == 5.0
    assert float(corrected(lazy(inf), lambda: 5.0)) == 5.0
    assert float(corrected(lazy(2.0), lambda: 5.0)) == corrected(2.0, lambda: 5.0) == 2.0


def test_items_are_worked_on_one_by_one_on_the_host_and_ahead_on_a_device():
    for like, number, at_once in [(np.ones(1), 3, 1), (torch.ones(1), 3, 3), (torch.ones(1), 1, 1)]:
        started = []
        items = ahead(map(lambda i: started.append(i) or i, range(7)), like, number)  # noqa: C417
        assert next(items) == 0
        assert len(started) == at_once
        assert [*items] == [1, 2, 3, 4, 5, 6]


def test_runs_go_on_together_on_a_device_to_where_the_host_looks():
    def run(name, steps):
        for step in range(steps):
            log.append((name, step))
            yield
        return name

    for like, together in [(np.ones(1), False), (torch.ones(1), True)]:
        log = []
        found = in_step([run("a", 2), run("b", 0), run("c", 3)], like)
        assert next(found) == "a"
        assert [entry for entry in log if entry[0] == "c"] == ([("c", 0), ("c", 1), ("c", 2)] if together else [])
        assert [*found] == ["b", "c"]
        assert len(log) == 5


def test_a_run_that_fails_ends_those_before_it_first():
    def run(divisor):
        yield
        return 1.0 / divisor

    for like in (np.ones(1), torch.ones(1)):
        found = in_step(map(run, (2.0, 0.0)), like)
        assert next(found) == 0.5
        with pytest.raises(ZeroDivisionError):
            next(found)


def test_it_is_used_like_a_float():
    x = lazy(2.5)
    assert (sqrt(x), int(x), round(x), floor(x), f"{x:.1f}", repr(x)) == (sqrt(2.5), 2, 2, 2, "2.5", "2.5")
    assert x == pytest.approx(2.5)
    assert hash(x) == hash(2.5)
    np.testing.assert_array_equal(np.array([x, x]), [2.5, 2.5])
    assert type(pickle.loads(pickle.dumps(x))) is float


@pytest.mark.parametrize("library", [torch, array_api_strict])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_columns_of_few_nonzeros_are_taken_with_others_up_to_their_bound(library, count):
    with HostWaits() as waits:
        indices = filled(library.asarray([False, True, False, False, True, False]), count)
    assert waits.total == 0
    found = [int(i) for i in indices]
    assert found == sorted({*found})
    assert len(found) == count
    assert {1, 4} <= {*found} <= {*range(6)}


def test_entries_are_taken_along_either_axis_in_one_operation():
    X = torch.arange(6.0).reshape(2, 3)
    with HostWaits() as waits:
        columns, rows = take(X, torch.asarray([2, 0]), axis=1), take(X, torch.asarray([1]))
    assert (columns.tolist(), rows.tolist()) == ([[2.0, 0.0], [5.0, 3.0]], [[3.0, 4.0, 5.0]])
    assert waits.operations <= 6  # those that make the indices too


@pytest.mark.parametrize("numbers", [[True], [1], [0.5], [1, True, 0.5, False, 2, -1.5]])
def test_numbers_of_several_kinds_come_over_in_one_transfer(numbers):
    with HostWaits() as waits:
        there = [scalar(torch.asarray(x)) for x in numbers]
        there += [scalar(torch.asarray(0.1, dtype=torch.float32))]
        here = [x.get() for x in there]
    assert waits.total == 1
    assert here[:-1] == numbers
    assert [*map(type, here[:-1])] == [float if type(x) is int else type(x) for x in numbers]
    assert here[-1] == np.float32(0.1)


def test_a_model_predicts_from_these_columns_without_waiting():
    rng = np.random.default_rng(0)
    f = LinearModel(torch.asarray(rng.standard_normal((9, 90))), torch.asarray(rng.standard_normal(9)), l2=0.1)
    w = torch.zeros(90, dtype=torch.float64)
    w[[3, 80]] = torch.asarray([1.0, -2.0], dtype=torch.float64)
    at = f.evaluate(w)
    with HostWaits() as waits:
        prediction = predict_few(f, Sparsity(4), w)
        curvature = curvature_along_few(f, Sparsity(4), at, w)
    assert waits.total == 0
    assert torch.allclose(prediction, f.predict(w), rtol=1e-14)
    assert float(curvature) == pytest.approx(float(f.curvature_along(at, w)), rel=1e-14)


def model_of_100():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 500)), (rng.random(30) > 0.5).astype(float)
    l2, weights = rng.uniform(0.1, 1.0, 500), rng.uniform(1.0, 2.0, 30)
    both = ((X, y, l2, weights), map(torch.asarray, (X, y, l2, weights)))
    return [LinearModel(X, y, loss="logistic", l2=l2, sample_weight=weights) for X, y, l2, weights in both]


def test_columns_that_were_taken_are_not_looked_through_again():
    """From 64 columns on, a design looks for the non-zeros of a point."""
    here, there = model_of_100()
    w = np.zeros(500)
    w[::5] = 1.0
    with HostWaits() as waits:
        found = predict_few(there, Sparsity(100), torch.asarray(w))
    assert waits.total == 0
    np.testing.assert_allclose(found.numpy(), here.predict(w), rtol=1e-12)


def test_several_predictions_wait_once():
    here, there = model_of_100()
    points = np.zeros((4, 500))
    points[np.arange(4), [3, 400, 3, 77]] = [1.0, -2.0, 0.5, 4.0]
    with HostWaits() as waits:
        found = predict_together(there, [*torch.asarray(points)])
    assert waits.total == 1
    np.testing.assert_allclose(torch.stack(found).numpy(), points @ here.design.dense().T, rtol=1e-12)
    for one, point in zip(predict_together(here, [*points]), points, strict=True):
        np.testing.assert_array_equal(one, here.predict(point))


def test_a_model_comes_to_the_host_in_one_transfer():
    here, there = model_of_100()
    with HostWaits() as waits:
        back = there.on_host()
    assert waits.total == 1
    assert here.on_host() is here
    w = np.random.default_rng(2).standard_normal(500)
    expected, found = here.evaluate(w), back.evaluate(w)
    assert type(found.gradient) is np.ndarray
    assert found.value == pytest.approx(expected.value, rel=1e-14)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-12)
    assert back.n_examples == there.n_examples
