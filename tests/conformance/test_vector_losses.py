"""Every registered loss of several predictions keeps the contract of `hardthresh.losses.VectorLoss`."""

import numpy as np
import pytest
from cases import OTHER_LIBRARIES, back, convert
from scipy.special import log_softmax, softmax

from hardthresh.core import InvalidInputError, registered
from hardthresh.losses import Logistic, Multinomial, MultiTask, Poisson, VectorLoss, pointwise_losses
from hardthresh.objectives import LinearModel, MatrixRegression

LOSSES = [*(MultiTask(cls()) for cls in pointwise_losses().values()), Multinomial(), Multinomial(n_classes=3)]
every = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem(loss, n=20, q=3, scale=1.5, dtype=np.float64):
    """Random predictions, targets drawn around them, and directions."""
    rng = np.random.default_rng(5)
    u = scale * rng.standard_normal((n, q))
    y = loss.example_target(np.clip(u, -2, 2), rng).astype(dtype)
    if loss.one_target:
        y[:q] = np.arange(q)  # the last class, too
    return y, u.astype(dtype), rng.standard_normal((n, q)).astype(dtype)


def hessians(loss, y, u, h=1e-5):
    """The blocks by central differences of the gradient, one output after the other."""
    columns = []
    for j in range(u.shape[1]):
        step = np.zeros_like(u)
        step[:, j] = h
        columns.append((loss.gradient(y, u + step) - loss.gradient(y, u - step)) / (2 * h))
    return np.stack(columns, axis=2)


def test_every_registered_loss_of_several_predictions_is_examined():
    known = {entry.cls for entry in registered("loss").values() if issubclass(entry.cls, VectorLoss)}
    assert {type(loss) for loss in LOSSES} == known


@every
def test_the_gradient_is_the_derivative_of_the_value(loss):
    y, u, v = problem(loss)
    h = 1e-5
    slope = (loss.value(y, u + h * v) - loss.value(y, u - h * v)) / (2 * h)
    np.testing.assert_allclose(np.sum(loss.gradient(y, u) * v, axis=1), slope, rtol=1e-6, atol=1e-8)


@every
def test_the_blocks_are_the_derivatives_of_the_gradient(loss):
    y, u, _ = problem(loss)
    np.testing.assert_allclose(loss.blocks(y, u), hessians(loss, y, u), rtol=1e-6, atol=1e-8)


@every
def test_products_and_means_are_those_of_the_blocks(loss):
    y, u, v = problem(loss)
    blocks, weights = loss.blocks(y, u), np.random.default_rng(0).uniform(0, 2, len(u))
    np.testing.assert_allclose(loss.curvature(y, u, v), np.einsum("ijk,ik->ij", blocks, v), rtol=1e-10, atol=1e-13)
    expected = np.einsum("i,ijk->jk", weights, blocks)
    np.testing.assert_allclose(loss.mean_block(y, u, weights), expected, rtol=1e-10, atol=1e-13)


@every
def test_each_output_alone_has_the_mean_of_all(loss):
    y, u, _ = problem(loss)
    parts = loss.each_output(y, u)
    np.testing.assert_allclose(np.stack([one.mean(v) for one, _, v in parts], axis=1), loss.mean(u), rtol=1e-12)
    targets = np.stack([target for _, target, _ in parts], axis=1)
    np.testing.assert_array_equal(targets, y[:, None] == np.arange(u.shape[1]) if loss.one_target else y)


@every
@pytest.mark.parametrize("far", [40.0, 700.0, 1e4])
def test_extreme_predictions_stay_finite(loss, far):
    """An overflow warning is an error in this suite."""
    for dtype in (np.float32, np.float64):
        y, u, v = problem(loss, dtype=dtype)
        u = far * np.sign(u)
        results = (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u, v), loss.blocks(y, u))
        for result in (*results, loss.mean_block(y, u, np.full(len(u), 1 / len(u), dtype=dtype))):
            assert np.isfinite(result).all()
            assert result.dtype == dtype


@every
def test_value_and_gradient_are_those_of_the_two_methods(loss):
    y, u, _ = problem(loss)
    value, gradient = loss.value_and_gradient(y, u)
    assert value.shape == (20,)
    np.testing.assert_array_equal(value, loss.value(y, u))
    np.testing.assert_array_equal(gradient, loss.gradient(y, u))


@every
def test_the_bounds_hold(loss):
    y, u, _ = problem(loss, scale=5.0)
    eigenvalues = np.linalg.eigvalsh(loss.blocks(y, u))
    assert (eigenvalues >= -1e-12 * np.abs(eigenvalues).max()).all()
    assert eigenvalues.max() <= loss.curvature_bound * (1 + 1e-12)
    assert (loss.value(y, u) >= loss.lower_bound).all()


@every
def test_the_quadratic_flag_is_true(loss):
    y, u, _ = problem(loss)
    assert loss.quadratic == np.allclose(loss.blocks(y, u), np.eye(3))


@every
def test_centring_changes_no_loss_and_gives_the_least_norm(loss):
    y, u, _ = problem(loss)
    centred = loss.centre(u)
    np.testing.assert_allclose(loss.value(y, centred), loss.value(y, u), rtol=1e-12)
    assert np.linalg.norm(centred) <= np.linalg.norm(u)
    np.testing.assert_allclose(loss.centre(centred), centred, atol=1e-14)
    null = np.linalg.eigvalsh(loss.blocks(y, u))[:, 0] < 1e-12 * loss.blocks(y, u).max()
    if isinstance(loss, MultiTask):
        assert centred is u
    else:
        assert null.all()
        assert np.allclose(centred.sum(axis=1), 0, atol=1e-13)


@every
@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_array_libraries_agree(loss, library):
    y, u, v = problem(loss)
    theirs = [convert(x, library) for x in (y, u, v)]
    weights = np.full(len(u), 1 / len(u))
    for ours, other in (
        (loss.value(y, u), loss.value(*theirs[:2])),
        (loss.gradient(y, u), loss.gradient(*theirs[:2])),
        (loss.curvature(y, u, v), loss.curvature(*theirs)),
        (loss.blocks(y, u), loss.blocks(*theirs[:2])),
        (loss.mean_block(y, u, weights), loss.mean_block(*theirs[:2], convert(weights, library))),
        (loss.centre(u), loss.centre(theirs[1])),
    ):
        assert type(other) is type(theirs[1])
        np.testing.assert_allclose(back(other), ours, rtol=1e-12, atol=1e-13)
    loss.check_targets(theirs[0])
    assert loss.n_outputs(theirs[0]) == 3


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if getattr(loss, "loss", Logistic()).has_likelihood], ids=repr
)
def test_the_more_likely_of_two_fits_has_the_smaller_criterion(loss):
    y, u, v = problem(loss)
    weights = np.full(len(u), 1 / len(u))
    fits = [loss.minus_twice_log_likelihood(y, point, weights, float(y.size)) for point in (u, u + v)]
    losses = [np.mean(loss.value(y, point)) for point in (u, u + v)]
    assert (fits[0] < fits[1]) == (losses[0] < losses[1])


def test_multinomial_agrees_with_scipy():
    y, u, _ = problem(Multinomial())
    np.testing.assert_allclose(
        Multinomial().value(y, u), -log_softmax(u, axis=1)[np.arange(20), y.astype(int)], rtol=1e-12
    )
    np.testing.assert_allclose(Multinomial().mean(u), softmax(u, axis=1), rtol=1e-13)


def test_two_classes_are_the_logistic_loss_of_the_difference():
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((30, 2)), rng.integers(0, 2, 30).astype(float)
    np.testing.assert_allclose(Multinomial().value(y, u), Logistic().value(y, u[:, 1] - u[:, 0]), rtol=1e-13)
    gradient = Logistic().gradient(y, u[:, 1] - u[:, 0])
    np.testing.assert_allclose(Multinomial().gradient(y, u), np.stack([-gradient, gradient], axis=1), rtol=1e-12)


def test_a_log_loss_that_is_nearly_zero_keeps_its_digits():
    u = np.array([[20.0, 0.0, -1e3], [300.0, 0.0, -1e3], [700.0, 0.0, -1e3]])
    y = np.zeros(3)
    np.testing.assert_allclose(Multinomial().value(y, u), np.exp(-u[:, 0]), rtol=1e-8)
    np.testing.assert_allclose(Multinomial().gradient(y, u)[:, 0], -np.exp(-u[:, 0]), rtol=1e-8)


def test_renumbered_classes_permute_everything():
    y, u, _ = problem(Multinomial())
    order = np.array([2, 0, 1])  # class c becomes the place of c in the order
    renumbered = np.argsort(order)[y.astype(int)].astype(float)
    np.testing.assert_allclose(Multinomial().value(renumbered, u[:, order]), Multinomial().value(y, u), rtol=1e-13)


def test_classes_that_are_given_but_absent_count():
    loss, y = Multinomial(n_classes=4), np.array([0.0, 1.0])
    assert loss.n_outputs(y) == 4
    assert Multinomial().n_outputs(np.zeros(3)) == 2
    np.testing.assert_allclose(loss.value(y, np.zeros((2, 4))), np.log(4))


@pytest.mark.parametrize(
    ("loss", "bad"),
    [
        (Multinomial(), -1.0),
        (Multinomial(), 0.5),
        (Multinomial(), np.nan),
        (Multinomial(), np.inf),
        (Multinomial(3), 3.0),
    ],
)
def test_targets_that_are_no_class_are_named(loss, bad):
    with pytest.raises(InvalidInputError, match=rf"class numbers 0, 1, \.\.\..*; y\[1\] is {bad}; number the classes"):
        loss.check_targets(np.array([0.0, bad, 1.0]))


def test_a_number_of_classes_below_two_is_refused():
    with pytest.raises(InvalidInputError, match="n_classes"):
        Multinomial(n_classes=1)


def test_the_pointwise_loss_checks_its_targets():
    with pytest.raises(InvalidInputError, match=r"Poisson loss needs .*; y\[1, 0\] is -1.0"):
        MultiTask(Poisson()).check_targets(np.array([[1.0, 0.0], [-1.0, 2.0]]))


def test_models_of_one_prediction_refuse_a_loss_of_several():
    for model in (LinearModel, MatrixRegression):
        with pytest.raises(InvalidInputError, match=r"Multinomial loss .* use MultiOutputModel"):
            model(np.eye(3)[:, :, None] if model is MatrixRegression else np.eye(3), np.zeros(3), "multinomial")
