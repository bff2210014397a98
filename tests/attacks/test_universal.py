"""Universal perturbations: the objective's derivatives, budgets, ranges, what is measured, and what is refused."""

import pickle
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hardthresh as ht
from hardthresh.arrays import to_numpy
from hardthresh.attacks import Attack, GreedySaturation
from hardthresh.constraints import DoubleSparsity, GroupSparsity, Sparsity
from hardthresh.core import InvalidInputError, Status
from hardthresh.core.errors import CapabilityError, MissingDependencyError, NotFiniteError
from hardthresh.objectives import Function, derivatives
from hardthresh.report import plot_perturbation
from hardthresh.solvers import IHT, FixedBatch, FullBatch, NormTest, ProbabilisticIHT, Replay, StochasticIHT
from hardthresh.steps import Fixed
from levels import at_most, in_turn, only_at, slow_beyond

torch = pytest.importorskip("torch", reason="torch is not installed")

SPACES = ["pixel", "tanh", "tanh-paper"]
BY_STEPS = ProbabilisticIHT(batch=NormTest(500))


def trained(X, y, seed=0, epochs=40, hidden=64):
    """A small network of flat images, with dropout to be switched off, and in training mode."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(X[0].size, hidden),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(hidden, 10),
    )
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    images, labels = torch.from_numpy(X), torch.from_numpy(y)
    for _ in range(epochs):
        for some in torch.randperm(len(labels)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(images[some]), labels[some]).backward()
            optimiser.step()
    optimiser.zero_grad()
    return net


@pytest.fixture(scope="module")
def digits():
    loaded = load_digits()
    return (loaded.images / 16.0).astype(np.float32), loaded.target


@pytest.fixture(scope="module")
def net(digits):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield trained(digits[0][:1200], digits[1][:1200])
    torch.set_num_threads(threads)


def smooth(seed=0, size=24):
    """A network without kinks, in float64, and images of 2 channels in and on the ends of their range."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    images = torch.rand(20, 2, 4, 3, dtype=torch.float64)
    images[images < 0.2] = 0.0
    images[images > 0.8] = 1.0
    net[3].weight.data *= 20.0
    return net.double(), images, torch.arange(20) % 4


# --- the objective ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grey", [0.0, 1.0], ids=["black", "white"])
@pytest.mark.parametrize("space", SPACES)
def test_pixels_at_the_end_of_their_range_have_a_slope(space, grey):
    """The clamp of torch 2.15 has none at its bounds, so that no black pixel was ever brightened."""
    net, images, labels = smooth()
    f = Attack(net, torch.full_like(images, grey), labels, target=2, space=space)
    gradient = to_numpy(f.evaluate(f.zeros()).gradient)
    assert np.count_nonzero(gradient) == gradient.size


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("options", [{"target": 2}, {}, {"loss": "top2"}], ids=["targeted", "label", "top2"])
@pytest.mark.parametrize("chunk", [None, 7])
def test_the_gradient_is_that_of_the_value(space, options, chunk):
    net, images, labels = smooth()
    f = Attack(net, images, labels, space=space, kappa=0.3, chunk=chunk, **options)
    w = torch.from_numpy(0.3 * np.random.default_rng(1).standard_normal(24))  # none is zero, where f has kinks
    assert f.check_gradient(w, directions=8) <= 1e-7


def formula(net, images, labels, delta, space, target, loss, c, kappa):
    """The objective, image by image, in NumPy."""
    total = 0.0
    for x, label in zip(images.numpy(), labels.tolist(), strict=True):
        if space == "pixel":
            moved = np.clip(x + delta.reshape(x.shape), 0.0, 1.0)
        else:
            start = np.clip(x, 0.5 / 255, 1 - 0.5 / 255)
            moved = (1 + np.tanh(np.arctanh(2 * start - 1) + delta.reshape(x.shape))) / 2
            moved = moved if space == "tanh-paper" else np.clip(x + moved - start, 0.0, 1.0)
        with torch.no_grad():
            Z = net(torch.from_numpy(moved)[None])[0].numpy()
        if target is not None:
            lead = np.delete(Z, target).max() - Z[target]
        elif loss == "label":
            lead = Z[label] - np.delete(Z, label).max()
        else:
            lead = np.sort(Z)[-1] - np.sort(Z)[-2]
        total += np.linalg.norm(moved - x) + c * max(lead, -kappa)
    return total / len(images)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("options", [{"target": 2}, {"target": None}, {"target": None, "loss": "top2"}])
@pytest.mark.parametrize("kappa", [0.0, 0.2])
def test_the_value_is_that_of_the_formula(space, options, kappa):
    net, images, labels = smooth()
    f = Attack(net, images, labels, space=space, c=1.5, kappa=kappa, **options)
    delta = 0.5 * np.random.default_rng(1).standard_normal(24)
    expected = formula(net, images, labels, delta, space, options["target"], options.get("loss", "label"), 1.5, kappa)
    np.testing.assert_allclose(f.value(torch.from_numpy(delta)), expected, rtol=1e-12)
    assert f.value(torch.from_numpy(delta)) >= f.lower_bound


@pytest.mark.parametrize("space", ["pixel", "tanh"])
def test_no_perturbation_moves_nothing_not_even_by_rounding(space):
    net, images, labels = smooth()
    f = Attack(net, images, labels, space=space)
    assert torch.equal(f.perturbed(images, f.zeros()), images)


def test_the_published_map_moves_saturated_pixels_by_half_a_grey_level():
    net, images, labels = smooth()
    images[0, 0, 0, 0] = 0.3 / 255
    published, ours = (Attack(net, images, labels, space=space) for space in ("tanh-paper", "tanh"))
    moved = (published.perturbed(images, published.zeros()) - images).abs()
    saturated = (images == 0.0) | (images == 1.0)
    np.testing.assert_allclose(moved[saturated], 0.5 / 255, rtol=1e-12)
    assert float(moved[0, 0, 0, 0]) == pytest.approx(0.2 / 255)
    saturated[0, 0, 0, 0] = True
    assert float(moved[~saturated].max()) <= 1e-15
    w = torch.randn(24, dtype=torch.float64)
    difference = published.perturbed(images, w) - ours.perturbed(images, w)
    assert float(difference.abs().max()) <= (0.5 + 1e-9) / 255


@pytest.mark.parametrize("space", SPACES)
def test_images_stay_in_their_range(space):
    net, images, labels = smooth()
    f = Attack(net, images, labels, space=space)
    wild = f.perturbed(images, 50.0 * torch.randn(24, dtype=torch.float64))
    assert ((wild >= 0) & (wild <= 1)).all()


def published_run(net, images, target, k, batches):
    """The paper's algorithm on its objective, in torch alone: the points, and which steps were accepted."""
    u = torch.atanh(2.0 * images.clamp(0.5 / 255, 1.0 - 0.5 / 255) - 1.0)

    def f(w, rows):
        moved = (torch.tanh(u[rows] + w.reshape(images.shape[1:])) + 1.0) / 2.0
        Z = net(moved)
        lead = Z[:, [j for j in range(Z.shape[1]) if j != target]].amax(1) - Z[:, target]
        return ((moved - images[rows]).flatten(1).norm(dim=1) + 2.0 * lead.relu()).mean()

    w, delta, points, accepted = torch.zeros(images[0].numel(), dtype=torch.float64), 1.0, [], []
    for gradient_rows, value_rows in batches:
        v = w.clone().requires_grad_(True)
        [g] = torch.autograd.grad(f(v, gradient_rows), v)
        z = w - min(1.0, delta / float(g.norm())) * g
        chosen = z.abs().argsort(descending=True)[:k]
        trial = torch.zeros_like(w)
        trial[chosen] = z[chosen]
        with torch.no_grad():
            decrease = float(f(w, value_rows) - f(trial, value_rows))
        size = float(g[chosen].norm())
        accepted.append(decrease / (size * delta) >= 1e-4 and size >= 1e-4 * delta)
        if accepted[-1]:
            w, delta = trial, min(2.0 * delta, 10.0)
        else:
            delta /= 2.0
        points.append(w)
    return torch.stack(points), accepted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_published_run_is_followed_to_rounding(seed):
    """The twin knows no code of the package; with the map that is centred the points differ."""
    net, images, _ = smooth(seed)
    rng = np.random.default_rng(seed)
    drawn = [np.sort(rng.choice(20, 12, replace=False)) for _ in range(80)]
    twin, accepted = published_run(net, images, 2, 4, zip(drawn[:40], drawn[40:], strict=True))
    batches = Replay(drawn[:40], drawn[40:])
    solver = ProbabilisticIHT("paper", alpha=1.0, eta1=1e-4, eta2=1e-4, delta0=1.0, delta_max=10.0, batch=batches)

    def states(space):
        f = Attack(net, images, target=2, space=space)
        return list(islice(ht.iterate(f, Sparsity(4), solver), 41))[1:]

    ours = states("tanh-paper")
    assert [state.accepted for state in ours] == accepted
    assert 5 <= sum(accepted) < 40
    np.testing.assert_allclose(torch.stack([state.w for state in ours]), twin, atol=1e-12)
    assert float((states("tanh")[-1].w - twin[-1]).abs().max()) > 1e-4


def test_a_mini_batch_is_the_attack_on_some_images():
    net, images, labels = smooth()
    f, rows, w = Attack(net, images, labels), torch.tensor([3, 3, 8]), torch.full((24,), 0.1, dtype=torch.float64)
    assert f.rows(rows).value(w) == pytest.approx(Attack(net, images[rows], labels[rows]).value(w), rel=1e-12)
    run = ht.minimize(f, Sparsity(3), IHT(), max_iter=5)
    assert run.value < f.value(f.zeros())


# --- the attack ------------------------------------------------------------------------------------------------------


def attack(net, digits, **options):
    X, y = digits
    return ht.attacks.universal_perturbation(net, X[:1200], y[:1200], **{"seed": 0, "target": 5, **options})


@only_at("pairs")
def test_more_pixels_mislead_more(net, digits):
    after = [attack(net, digits, k=k).accuracy_after for k in (1, 4, 12)]
    assert after[0] + 0.02 >= after[1] >= after[2] - 0.02
    assert after[2] < 0.6 * attack(net, digits, k=0).accuracy_before


@only_at("pairs")
def test_pixel_space_reaches_what_tanh_hardly_does(net, digits):
    pixel, tanh = (attack(net, digits, k=4, space=space, solver=BY_STEPS) for space in ("pixel", "tanh"))
    assert pixel.accuracy_after < tanh.accuracy_after
    assert pixel.target_rate > tanh.target_rate


@only_at("pairs")
def test_the_loss_that_knows_the_labels_is_the_stronger(net, digits):
    label, top2 = (attack(net, digits, k=10, target=None, loss=loss, solver=BY_STEPS) for loss in ("label", "top2"))
    assert label.accuracy_after < top2.accuracy_after < label.accuracy_before
    assert np.isnan(label.target_rate)


@pytest.mark.slow
@at_most(1)
@in_turn("space,options", SPACES, [{"target": 3}, {"target": None}])
def test_fields_of_the_result_agree_with_the_images(net, digits, space, options):
    X, y = digits[0][:1200], digits[1][:1200]
    p = attack(net, digits, k=5, space=space, **options)
    assert p.delta.shape == (8, 8)
    assert p.images.dtype == p.delta.dtype == np.float32
    assert ((p.images >= 0) & (p.images <= 1)).all()
    ends = 0.5 / 255 if space == "tanh-paper" else 0.0
    different = (np.abs(p.images - np.clip(X, ends, 1.0 - ends)) > 1e-6).any(axis=0)
    assert p.n_changed == np.count_nonzero(different) <= np.count_nonzero(p.result.w) <= 5
    assert np.count_nonzero(p.delta) <= 5
    if space == "pixel":
        np.testing.assert_array_equal(p.images, np.clip(X + p.delta, 0.0, 1.0))
    net.eval()
    with torch.no_grad():
        seen = net(torch.from_numpy(p.images)).argmax(1).numpy()
        plain = net(torch.from_numpy(X)).argmax(1).numpy()
    net.train()
    np.testing.assert_array_equal(p.predicted_after, seen)
    assert p.accuracy_before == np.mean(plain == y)
    assert p.accuracy_after == np.mean(seen == y)
    np.testing.assert_equal(p.target_rate, np.mean(seen == 3) if p.target == 3 else np.nan)
    success = seen == 3 if p.target == 3 else seen != y
    np.testing.assert_allclose(p.success_by_class, [success[y == j].mean() for j in range(10)])


def test_the_model_is_left_as_it_was(net, digits):
    net.train()
    net[2].eval()
    net[1].weight.requires_grad_(False)
    before = {name: p.clone() for name, p in net.state_dict().items()}
    modes = [part.training for part in net.modules()]
    attack(net, digits, k=2, max_iter=5)
    with pytest.raises(InvalidInputError):
        attack(net, digits, k=2, target=77)
    assert [part.training for part in net.modules()] == modes
    assert all(torch.equal(before[name], p) for name, p in net.state_dict().items())
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True]
    assert all(p.grad is None for p in net.parameters())
    net[1].weight.requires_grad_(True)
    net.train()


@only_at("pairs")
def test_the_same_seed_is_the_same_perturbation(net, digits):
    one, two = (attack(net, digits, k=4, max_iter=20) for _ in range(2))
    np.testing.assert_array_equal(one.delta, two.delta)
    np.testing.assert_array_equal(one.images, two.images)
    assert one.result.message == two.result.message


@only_at("pairs")
@pytest.mark.parametrize("options", [{"target": 5}, {"target": None}], ids=["targeted", "untargeted"])
@pytest.mark.parametrize("k", [3, 5])
def test_several_searches_are_at_least_as_strong_as_each_of_them(net, digits, k, options):
    """One search of the first kind alone stops where a few pixels are black or white, and others are needed."""

    def misled(**more):
        p = attack(net, digits, k=k, **options, **more)
        return 1.0 - p.accuracy_after if p.target is None else p.target_rate

    solvers = [BY_STEPS, ProbabilisticIHT(variant="paper"), GreedySaturation()]
    best, ours, paper, greedy = misled(), *(misled(solver=solver) for solver in solvers)
    assert best >= greedy
    assert best >= max(ours, paper)
    assert best > min(ours, paper)


def test_an_interrupted_search_is_the_last_one():
    net, images, labels = smooth()
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return net(x)

    p = ht.attacks.universal_perturbation(interrupted, images, labels, k=3)
    assert len(calls) < 60  # of several hundred
    assert p.n_changed <= 3


def test_a_perturbation_can_be_stored(net, digits, tmp_path):
    p = attack(net, digits, k=4, max_iter=5, starts=1)
    ht.save(p, tmp_path / "p.json")
    loaded = ht.load(tmp_path / "p.json")
    assert repr(loaded) == repr(p)
    np.testing.assert_array_equal(loaded.delta, p.delta)
    X, y = digits[0][1200:], digits[1][1200:]
    assert loaded.evaluate(net, X, y).accuracy_after == p.evaluate(net, X, y).accuracy_after
    assert len(plot_perturbation(loaded, n=2).axes) == 6
    tensors = attack(net, [torch.from_numpy(a) for a in digits], k=2, max_iter=2, starts=1)
    ht.save(tensors, tmp_path / "t.json")
    assert torch.equal(ht.load(tmp_path / "t.json").images, tensors.images)


@pytest.mark.parametrize(
    "solver",
    [
        ProbabilisticIHT(variant="paper", alpha=1.0, batch=FixedBatch(200)),
        StochasticIHT(step=0.1, batch=FixedBatch(200)),
        IHT(),
    ],
    ids=["paper", "stochastic", "iht"],
)
def test_other_solvers_will_do(net, digits, solver):
    p = attack(net, digits, k=6, solver=solver, max_iter=40)
    assert p.accuracy_after < p.accuracy_before


class Careless(IHT):
    """Ends anywhere but in the set."""

    def finish(self, objective, constraint, state):
        return replace(state, at=objective.evaluate(state.w + 0.5))


def test_a_solver_that_leaves_the_budget_is_refused(net, digits):
    with pytest.raises(InvalidInputError, match="exceeded the budget: 64 pixels differ, at most 6 may"):
        attack(net, digits, k=6, solver=Careless(), max_iter=2)


def test_other_images_and_another_model(net, digits):
    X, y = digits
    p = attack(net, digits, k=6)
    held_out = p.evaluate(net, X[1200:], y[1200:])
    assert held_out.images.shape == (597, 8, 8)
    np.testing.assert_array_equal(held_out.delta, p.delta)
    assert held_out.accuracy_after < held_out.accuracy_before - 0.1

    def defended(x):
        """Looks away from the perturbed pixels."""
        return net(torch.where(torch.from_numpy(p.delta != 0), 0.0, x))

    net.eval()
    assert p.evaluate(defended, X[1200:], y[1200:]).accuracy_after > held_out.accuracy_after
    net.train()
    with pytest.raises(InvalidInputError, match="images have shape"):
        p.evaluate(net, X[:, :4], y)
    with pytest.raises(InvalidInputError, match=r"clip = \[0, 1\]"):
        p.evaluate(net, 2 * X, y)
    with pytest.raises(InvalidInputError, match=r"target must be one of the model\'s classes 0 \.\. 2, got 5"):
        p.evaluate(lambda x: net(x)[:, :3], X)


@pytest.mark.slow
def test_without_labels_the_models_own_classes_count(net, digits):
    p = ht.attacks.universal_perturbation(net, digits[0][:300], k=6, seed=0)
    assert p.accuracy_before == 1.0
    assert p.accuracy_after < 0.9


def test_tensors_come_back_as_tensors_in_their_dtype(net, digits):
    X, y = torch.from_numpy(digits[0][:200]).double(), torch.from_numpy(digits[1][:200])
    p = ht.attacks.universal_perturbation(net, X, y, k=3, target=1, max_iter=10)
    assert isinstance(p.images, torch.Tensor)
    assert p.images.dtype == p.delta.dtype == torch.float64
    whole = ht.attacks.universal_perturbation(
        net, (16 * digits[0][:200]).astype(np.uint8), y.numpy(), k=3, clip=(0, 16), target=1, max_iter=10
    )
    assert whole.images.dtype == np.float32


def test_a_model_of_a_dtype_that_numpy_does_not_have(digits):
    """Images come back in their own floating dtype, and integers in the least that holds every bfloat16."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).bfloat16()
    images = digits[0][:50]
    for given in (images, images.astype(float), np.rint(images).astype(int)):
        p = ht.attacks.universal_perturbation(net, given, k=3, target=1, max_iter=5)
        expected = given.dtype if given.dtype.kind == "f" else np.float32
        assert p.images.dtype == p.originals.dtype == p.delta.dtype == expected
        assert p.result.w.dtype == torch.bfloat16
        assert p.n_changed == np.any(p.images != p.originals, axis=0).sum() > 0
        assert p.evaluate(net, given).accuracy_after == p.accuracy_after


def test_the_range_may_be_another(net, digits):
    X, y = 2.0 * digits[0][:300] - 1.0, digits[1][:300]
    p = ht.attacks.universal_perturbation(
        lambda x: net((x + 1.0) / 2.0), X, y, k=4, target=5, clip=(-1.0, 1.0), max_iter=20
    )
    assert ((p.images >= -1) & (p.images <= 1)).all()
    assert p.accuracy_after < p.accuracy_before


def test_a_search_that_reached_its_limit_says_so(net, digits):
    cut, done = attack(net, digits, k=4, max_iter=1, solver=ProbabilisticIHT()), attack(net, digits, k=0)
    assert not cut.converged
    assert "raise max_iter" in cut.message
    assert done.converged
    assert cut.evaluate(net, digits[0][1200:]).message == cut.message


def test_the_repr_is_short_and_says_what_counts(net, digits):
    p = attack(net, digits, k=4, max_iter=1, solver=ProbabilisticIHT())
    said = repr(p)
    assert len(said) < 300
    for word in (
        f"{p.n_changed} of k=4 pixels",
        f"{p.accuracy_before:.3g} -> {p.accuracy_after:.3g}",
        "assigned to class 5",
    ):
        assert word in said
    assert f"converged=False: {p.message}" in said
    assert "assigned" not in repr(attack(net, digits, k=1, target=None, max_iter=1))


def test_the_repr_says_that_the_published_map_also_moves_other_pixels(net, digits):
    published, ours = (attack(net, digits, k=0, space=space) for space in ("tanh-paper", "tanh"))
    assert "(0 of k=0 pixels and the shift of space tanh-paper, accuracy" in repr(published)
    assert (published.images != digits[0][:1200]).any()
    assert "(0 of k=0 pixels, accuracy" in repr(ours)


# --- the greedy search -----------------------------------------------------------------------------------------------


def lead(Z, label, target):
    """How far an image is from a wrong class, or from the target, from its logits; at least 0."""
    wanted = label if target is None else target
    other = max(Z[j] for j in range(len(Z)) if j != wanted)
    return torch.relu(Z[label] - other if target is None else other - Z[target])


def greedy_pixel(net, images, labels, delta, target, candidates):
    """The perturbation with one pixel more, image by image and entry by entry."""
    to_low, to_high = torch.zeros_like(delta), torch.zeros_like(delta)
    for x, label in zip((images + delta).clamp(0.0, 1.0), labels.tolist(), strict=True):
        x = x.clone().requires_grad_(True)
        [g] = torch.autograd.grad(lead(net(x[None])[0], label, target), x)
        to_low += g * x.detach()
        to_high += g * (x.detach() - 1.0)
    gains = torch.maximum(to_low, to_high).clamp(min=0.0)
    ranked = torch.where((delta != 0).any(0), -1.0, gains.sum(0)).flatten().argsort(descending=True)
    trials = []
    for pixel in ranked[:candidates]:
        trial = delta.clone().flatten(1)
        for channel in range(2):
            if gains.flatten(1)[channel, pixel] > 0:
                up = to_high.flatten(1)[channel, pixel] > to_low.flatten(1)[channel, pixel]
                trial[channel, pixel] = 1.0 if up else -1.0
        trials.append(trial.reshape(delta.shape))
    with torch.no_grad():
        hinges = [
            sum(lead(Z, label, target) for Z, label in zip(net((images + trial).clamp(0.0, 1.0)), labels, strict=True))
            for trial in trials
        ]
    return trials[int(np.argmin(hinges))]


@pytest.mark.parametrize("candidates", [1, 4])
@pytest.mark.parametrize("target", [None, 2])
def test_the_greedy_search_is_its_twin(target, candidates):
    net, images, labels = smooth()
    f, delta = Attack(net, images, labels), torch.zeros(2, 4, 3, dtype=torch.float64)
    both_channels = GroupSparsity(np.tile(np.arange(12), 2).tolist(), 3)
    states = ht.iterate(f, both_channels, GreedySaturation(target, batch=FullBatch(), candidates=candidates))
    np.testing.assert_array_equal(next(states).w, np.zeros(24))
    for _ in range(3):
        delta = greedy_pixel(net, images, labels, delta, target, candidates)
        state = next(states)
        np.testing.assert_array_equal(state.w, delta.flatten())
    assert state.settled == "the budget is used up"


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_greedy_search_moves_pixels_to_the_ends_of_their_range(space, library):
    net, images, labels = smooth()
    f = Attack(net, images if library == "torch" else images.numpy(), labels, space=space)
    run = ht.minimize(f, Sparsity(5), GreedySaturation(rounds=2))
    assert run.n_iter == 2  # three entries, and two
    moved = f.perturbed(images, run.w).flatten(1)[:, to_numpy(run.w) != 0]
    nearest = torch.minimum(moved, 1.0 - moved)
    assert moved.shape[1] == 5
    assert float(nearest.max()) <= (0 if space == "pixel" else 1.0 / 255)


def test_the_greedy_search_stops_where_nothing_is_left_to_gain():
    images = torch.full((6, 4), 0.5)
    weights = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    run = ht.minimize(Attack(lambda x: 9.0 * x @ weights, images, target=1), Sparsity(4), GreedySaturation())
    np.testing.assert_array_equal(run.w, [0.0, -1.0, 0.0, 0.0])
    assert "no full move of another pixel" in run.message
    assert run.converged
    assert run.value == 0.5


def test_the_greedy_search_resumes():
    net, images, labels = smooth()
    f, solver = Attack(net, images, labels), GreedySaturation(batch=FixedBatch(7))
    whole = ht.minimize(f, Sparsity(6), solver, seed=3)
    part = ht.minimize(f, Sparsity(6), solver, seed=3, max_iter=2)
    np.testing.assert_array_equal(ht.minimize(f, Sparsity(6), solver, state=part.state).w, whole.w)


def test_the_greedy_search_needs_an_attack_and_a_budget():
    f = Attack(*smooth())
    with pytest.raises(CapabilityError, match="works on an Attack over Sparsity"):
        ht.minimize(Function(lambda w: w @ w, 24, lambda w: 2 * w), Sparsity(2), GreedySaturation())
    with pytest.raises(CapabilityError, match="works on an Attack over Sparsity"):
        ht.minimize(f, DoubleSparsity([0, 1] * 12, 2, 2), GreedySaturation())
    with pytest.raises(InvalidInputError, match=r"classes 0 \.\. 3, got 4"):
        ht.minimize(f, Sparsity(2), GreedySaturation(4))
    with pytest.raises(InvalidInputError, match="rounds must be >= 1"):
        GreedySaturation(rounds=0)


def test_the_nearest_classes_have_the_largest_logits():
    net, images, labels = smooth()
    with torch.no_grad():
        Z = net(images)
    gaps = [float(np.mean([max(row) - row[j] for row in Z.tolist()])) for j in range(4)]
    assert Attack(net, images, labels).nearest_classes(3) == np.argsort(gaps)[:3].tolist()


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("k", [2, 4])
def test_a_few_pixels_without_a_target_are_as_strong_as_after_twenty_random_starts(net, digits, k):
    X, y = torch.from_numpy(digits[0][:300]), torch.from_numpy(digits[1][:300])
    p = ht.attacks.universal_perturbation(net, X, y, k=k, starts=1)
    rng, random = np.random.default_rng(0), []
    net.eval()
    f = Attack(net, X, y)
    for seed in range(20):
        w = torch.zeros(64)
        w[rng.choice(64, k, replace=False)] = torch.from_numpy(rng.uniform(-1.0, 1.0, k).astype(np.float32))
        run = ht.minimize(f, Sparsity(k), ProbabilisticIHT(variant="paper"), w, seed=seed, max_iter=20)
        random.append(float((net(f.perturbed(X, run.w)).argmax(1) == y).double().mean()))
    net.train()
    assert p.accuracy_after <= min(random)
    assert p.accuracy_after < np.median(random)


# --- what k counts ---------------------------------------------------------------------------------------------------


@slow_beyond(1)
@at_most(2)
@pytest.mark.parametrize(("unit", "k"), [("pixel", 3), ("entry", 3), ("channel", 1)])
def test_the_budget_counts_its_unit(unit, k):
    net, images, labels = smooth()
    p = ht.attacks.universal_perturbation(net, images, labels, k=k, unit=unit, max_iter=30, seed=1)
    different = (p.images != images).any(0).numpy()
    count = {"pixel": different.any(0).sum(), "entry": different.sum(), "channel": different.any((1, 2)).sum()}[unit]
    assert 0 < count == p.n_changed <= k
    if unit == "pixel":
        assert different.sum() > count  # both channels of a pixel for the price of one


@at_most(2)
@pytest.mark.parametrize(("unit", "most"), [("pixel", 12), ("entry", 24), ("channel", 2)])
def test_the_budget_ends_where_the_image_does(unit, most):
    net, images, labels = smooth()
    for k in (-1, most + 1):
        with pytest.raises(
            InvalidInputError, match=rf"k must be between 0 and the number of {unit}s of an image \({most}\), got"
        ):
            ht.attacks.universal_perturbation(net, images, labels, k=k, unit=unit)
    full = ht.attacks.universal_perturbation(net, images, labels, k=most, unit=unit, max_iter=5)
    assert full.n_changed <= most
    none = ht.attacks.universal_perturbation(net, images, labels, k=0, unit=unit)
    assert none.n_changed == 0
    assert none.accuracy_before == none.accuracy_after


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.arange(20)}, r"classes 0 \.\. 3 of the model, got values from 0 to 19"),
        ({"y": -np.ones(20, dtype=int)}, "from -1 to -1"),
        ({"y": np.full(20, 0.5)}, "must be classes"),
        ({"y": np.zeros(3, dtype=int)}, r"labels have shape \(3,\); \(20,\) is needed"),
        ({"target": 4}, r"target must be one of the model's classes 0 \.\. 3, got 4"),
        ({"target": True}, "target must be one"),
        ({"target": "cat"}, "target must be one"),
        ({"X": np.full((20, 2, 4, 3), 1.5)}, r"in clip = \[0, 1\]; got 1.5"),
        ({"X": np.full((20, 2, 4, 3), np.nan)}, "finite"),
        ({"X": np.zeros((0, 2, 4, 3))}, "at least one image"),
        ({"X": np.array([["a", "b"]])}, "X must be numeric"),
        ({"clip": (1.0, 0.0)}, "clip must be finite and increasing"),
        ({"clip": 1.0}, "clip must be a pair"),
        ({"k": 2.5}, "k must be an integer"),
        ({"unit": "patch"}, "unit must be one of"),
        ({"space": "fourier"}, "space must be one of"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"c": 0.0}, "c must be a finite number > 0"),
        ({"kappa": -1.0}, "kappa must be a finite number >= 0"),
        (
            {"model": lambda x: x.flatten(1).sum(1)},
            r"shape \(10, classes\) with two classes or more; got shape \(10,\)",
        ),
        ({"model": lambda x: x.flatten(1)[:, :1]}, r"got shape \(10, 1\)"),
        ({"model": lambda x: 3}, "got int"),
        ({"model": 3}, "model must be"),
        ({"c": None}, "c must be a finite number > 0"),
        ({"c": np.inf}, "c must be a finite number > 0"),
        ({"kappa": "much"}, "kappa must be a finite number >= 0"),
        ({"k": True}, "k must be an integer"),
        ({"X": None}, "X must be numeric"),
        ({"X": [[1.0, 0.0], [1.0]]}, "X must be a numeric array"),
        ({"y": ["cat"] * 20}, "labels must be numeric"),
        ({"y": np.zeros(20, dtype=bool)}, "labels are booleans, but the model has 4 classes"),
        ({"starts": 0}, "starts must be >= 1"),
        ({"starts": 2.5}, "starts must be an integer"),
        ({"model": lambda x: x.flatten(1)[:, :4].softmax(1)}, "probabilities.* give a model that returns the logits"),
        ({"model": lambda x: x.flatten(1)[:, :4].detach()}, "no gradient reaches the logits"),
        ({"model": lambda x: torch.nn.functional.one_hot((4 * x[:, 0, 0, 0]).long(), 5) * 2.0}, "no gradient reaches"),
        ({"model": torch.no_grad()(lambda x: x.flatten(1)[:, :4])}, r"neither torch.no_grad\(\)"),
        ({"model": torch.inference_mode()(lambda x: x.flatten(1)[:, :4])}, "no gradient reaches"),
    ],
)
@pytest.mark.parametrize("labelled", [True, False])
def test_invalid_arguments_are_refused(changes, message, labelled):
    net, images, labels = smooth()
    given = {"model": net, "X": images.numpy(), "y": labels.numpy() if labelled else None, "k": 3, **changes}
    with pytest.raises(InvalidInputError, match=message):
        ht.attacks.universal_perturbation(**given)


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.arange(20)}, "must be classes"),
        ({"X": np.full((20, 2, 4, 3), np.nan)}, "finite"),
        ({"X": None}, "X must be numeric"),
        (
            {"model": lambda x: x.flatten(1).sum(1)},
            r"shape \(20, classes\) with two classes or more; got shape \(20,\)",
        ),
        ({"model": lambda x: 3}, "got int"),
        ({"model": 3}, "model must be"),
        ({"model": lambda x: x.flatten(1) * torch.nan}, "NaN"),
    ],
)
@pytest.mark.parametrize("labelled", [True, False])
def test_evaluate_refuses_invalid_arguments(changes, message, labelled):
    net, images, labels = smooth()
    p = ht.attacks.universal_perturbation(net, images, labels, k=2, max_iter=2)
    given = {"model": net, "X": images.numpy(), "y": labels.numpy() if labelled else None, **changes}
    with pytest.raises(InvalidInputError, match=message):
        p.evaluate(**given)


@pytest.mark.slow
def test_a_model_without_gradients_can_be_measured_on_all_the_same():
    net, images, labels = smooth()
    p = ht.attacks.universal_perturbation(net, images, labels, k=4, max_iter=5)
    assert p.evaluate(torch.no_grad()(net), images, labels).accuracy_after == p.accuracy_after
    assert p.evaluate(lambda x: net(x).softmax(1), images, labels).accuracy_after == p.accuracy_after
    with torch.no_grad():
        assert ht.attacks.universal_perturbation(net, images, labels, k=4, max_iter=5).n_changed == p.n_changed
    with torch.inference_mode(), pytest.raises(InvalidInputError, match="inference_mode"):
        ht.attacks.universal_perturbation(net, images, labels, k=4)


def test_a_model_that_rounds_is_warned_of():
    net, images, labels = smooth()
    for options in ({"y": labels}, {"target": 1}, {"y": labels, "loss": "top2"}):
        with pytest.warns(UserWarning, match="zero at every image, as for a model that rounds"):
            p = ht.attacks.universal_perturbation(
                lambda x: net((16 * x).round() / 16), images, k=3, starts=1, **options
            )
        assert p.n_changed == 0
    assert not Attack(net, images, labels, chunk=3).has_zero_gradient()


def test_channels_at_the_end_are_warned_of():
    images = np.random.default_rng(0).uniform(0.2, 0.8, (10, 8, 8, 3))
    options = {"k": 1, "target": 1, "max_iter": 2, "starts": 1}
    with pytest.warns(UserWarning, match=r"shape \(8, 8, 3\), whose first axis is taken for that of 8 channels"):
        ht.attacks.universal_perturbation(lambda x: x.flatten(1)[:, :2], images, **options)
    ht.attacks.universal_perturbation(lambda x: x.flatten(1)[:, :2], images, unit="entry", **options)
    ht.attacks.universal_perturbation(lambda x: x.flatten(1)[:, :2], images[:, :3, :, :1], **options)


def test_labels_may_be_a_series_or_two_truth_values():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    images = np.random.default_rng(0).uniform(0.2, 0.8, (10, 4, 4))
    y = images[:, 0, 0] > 0.5
    for labels in (y, pandas.Series(y.astype(int))):
        p = ht.attacks.universal_perturbation(lambda x: x.flatten(1)[:, :2], images, labels, k=1, max_iter=2)
        np.testing.assert_array_equal(p.labels, y)


def test_a_wrong_budget_is_refused_before_the_model_is_asked():
    _, images, _ = smooth()
    with pytest.raises(InvalidInputError, match="k must be between 0 and the number of pixels"):
        ht.attacks.universal_perturbation(lambda x: pytest.fail("asked"), images, k=99)


def test_channels_need_their_axis():
    with pytest.raises(InvalidInputError, match="no axis of channels"):
        ht.attacks.universal_perturbation(lambda x: x[:, 0, :2], np.zeros((5, 4, 4)), k=1, unit="channel")


def test_nan_logits_are_an_error_at_the_start():
    net, images, labels = smooth()
    for options in ({}, {"target": 1}, {"y": labels}):
        with pytest.raises(NotFiniteError, match="NaN"):
            ht.attacks.universal_perturbation(lambda x: net(x) * torch.nan, images, k=3, **options)


def test_nan_logits_on_the_way_keep_the_best_perturbation():
    net, images, labels = smooth()
    calls = []

    def spoilt(x):
        calls.append(x)
        return net(x) * (torch.nan if len(calls) > 4 else 1.0)

    f = Attack(spoilt, images, labels)
    run = ht.minimize(f, Sparsity(3), IHT(step=Fixed(0.001)))
    assert run.status is Status.DIVERGED
    assert "logits that are NaN" in run.message
    assert run.value == run.history["value"].min()


@pytest.mark.parametrize("chunk", [None, 6])
def test_the_models_own_classes_stand_for_labels(chunk):
    net, images, _ = smooth()
    f = Attack(net, images, chunk=chunk)
    with torch.no_grad():
        np.testing.assert_array_equal(f.labels, net(images).argmax(1))
    assert Attack(net, images, target=1).labels is None
    with pytest.raises(InvalidInputError, match="floating tensor or array"):
        Attack(net, images.long(), target=1)


def test_points_are_of_the_library_of_the_images():
    net, images, labels = smooth()
    ours, theirs = Attack(net, images.numpy(), labels.numpy()), Attack(net, images, labels)
    w = np.full(24, 0.1)
    one, other = ours.evaluate(w), theirs.evaluate(torch.from_numpy(w))
    assert isinstance(one.gradient, np.ndarray)
    assert isinstance(ours.zeros(), np.ndarray)
    assert one.value == other.value
    np.testing.assert_array_equal(one.gradient, other.gradient)
    np.testing.assert_array_equal(ours.perturbed(images, w), theirs.perturbed(images, torch.from_numpy(w)))


@pytest.mark.slow
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_images_and_labels_are_copied(library):
    net, images, labels = smooth()
    given = [x.numpy() if library == "numpy" else x for x in (images, labels)]
    f = Attack(net, *given)
    before = f.value(f.zeros())
    p = ht.attacks.universal_perturbation(net, *given, k=2, max_iter=2)
    original = to_numpy(p.originals).copy()
    given[0] *= 0.5
    given[1][:] = 0
    assert f.value(f.zeros()) == before
    np.testing.assert_array_equal(p.originals, original)


def test_an_attack_is_no_function_of_the_users_own():
    assert not hasattr(Attack, "from_torch")
    assert not hasattr(Attack, "from_jax")
    assert not isinstance(Attack(*smooth()), Function)


def test_an_attack_can_be_stored():
    f = Attack(*smooth())
    assert pickle.loads(pickle.dumps(f)).value(f.zeros()) == f.value(f.zeros())


def test_a_missing_torch_is_named(monkeypatch):
    def missing(module):
        raise ImportError(module)

    monkeypatch.setattr(derivatives, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"hardthresh\[torch\]"):
        ht.attacks.universal_perturbation(lambda x: x, np.zeros((2, 2)))


# --- pictures --------------------------------------------------------------------------------------------------------


@only_at("pairs")
def test_the_picture_grid(net, digits):
    p = attack(net, digits, k=6)
    figure = plot_perturbation(p, n=5)
    assert len(figure.axes) == 15
    titles = [ax.get_title() for ax in figure.axes]
    assert sum(title == "→ 5" for title in titles) == 5  # those that are misled come first
    figure.canvas.draw()
    for n in (0, 2.5):
        with pytest.raises(InvalidInputError, match="n must be"):
            plot_perturbation(p, n)


@pytest.mark.slow
def test_the_picture_grid_is_a_figure_that_pyplot_shows(net, digits):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = {*pyplot.get_fignums()}
    figure = plot_perturbation(attack(net, digits, k=6), n=2)
    assert {*pyplot.get_fignums()} - before == {figure.number}
    assert pyplot.gcf() is figure
    pyplot.close(figure)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_picture_grid_of_channels(channels):
    images = np.random.default_rng(0).uniform(0.2, 0.8, (10, channels, 4, 4))
    p = ht.attacks.universal_perturbation(lambda x: x.flatten(1)[:, :2], images, k=1, target=1, max_iter=5)
    assert len(plot_perturbation(p, n=20).axes) == 30


def test_flat_images_cannot_be_drawn():
    images = np.random.default_rng(0).uniform(0.2, 0.8, (10, 4))
    p = ht.attacks.universal_perturbation(lambda x: x[:, :2], images, k=1, target=1, max_iter=5)
    with pytest.raises(InvalidInputError, match="no height and width"):
        plot_perturbation(p)


# --- the numbers of the specification --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mnist(data_folder):
    """A network of 784-128-10 trained on 10,000 images, 2,000 to attack and 2,000 to measure on."""
    file = data_folder / "mnist.npz"
    if not file.exists():
        pytest.skip("HARDTHRESH_DATA has no mnist.npz")
    with np.load(file, allow_pickle=False) as arrays:
        X = (arrays["X_train"][:14000] / 255.0).astype(np.float32)
        y = arrays["y_train"][:14000].astype(np.int64)
    parts = [(X[a:b], y[a:b]) for a, b in ((0, 10000), (10000, 12000), (12000, 14000))]
    return trained(*parts[0], epochs=4, hidden=128), *parts[1:]


@only_at("pairs")
def test_mnist(mnist):
    """Section 8, 12: accuracies of other images, for two of the targets."""
    net, (X, y), (other_X, other_y) = mnist

    def measured(k, **options):
        p = ht.attacks.universal_perturbation(net, X, y, k=k, seed=0, solver=BY_STEPS, **options)
        assert p.n_changed <= k
        return p.evaluate(net, other_X, other_y)

    few, some, many = (np.mean([measured(k, target=target).accuracy_after for target in (5, 8)]) for k in (5, 25, 100))
    assert few + 0.02 >= some
    assert some + 0.02 >= many
    assert some < 0.5
    tanh = np.mean([measured(25, target=target, space="tanh").accuracy_after for target in (5, 8)])
    assert some < tanh
    assert measured(25).accuracy_after < measured(25, loss="top2").accuracy_after
