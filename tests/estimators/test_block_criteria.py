"""Information criteria over tables in blocks choose what they choose in memory, for every loss of blocks."""

import numpy as np
import pytest
from sklearn.base import clone

import hardthresh as ht
from hardthresh.core import CapabilityError
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.losses import Gamma, Huber, Logistic, NegativeBinomial, Poisson, Squared, SquaredHinge, Tweedie
from hardthresh.objectives import blocked_model
from hardthresh.selection import bic
from levels import at_most, in_turn, only_at

N, D, ROWS = 1200, 24, 400
TRUE = [4, 11, 20]
KINDS = {
    "gamma": (ht.SparseGammaRegression(), lambda u, rng: np.exp(u) * rng.gamma(2.0, 0.5, N)),
    "tweedie": (ht.SparseTweedieRegression(), lambda u, rng: rng.poisson(np.exp(u)) * rng.gamma(2.0, 1.0, N)),
    "huber": (ht.SparseHuberRegression(delta=1.3), lambda u, rng: u + rng.standard_t(2.0, N)),
    "svc": (ht.SparseLinearSVC(), lambda u, rng: np.where(u + 0.5 * rng.logistic(size=N) > 0, "well", "ill")),
    "poisson": (ht.SparsePoissonRegression(), lambda u, rng: rng.poisson(np.exp(u)).astype(float)),
    "counts": (
        ht.SparseNegativeBinomialRegression(dispersion=0.5),
        lambda u, rng: rng.poisson(np.exp(u) * rng.gamma(2.0, 0.5, N)).astype(float),
    ),
}
CRITERIA = ["ebic", "bic", "aic", "gic"]


def data(kind, seed, d=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, d))
    X[:, 1:] = 0.5 * X[:, :-1] + 0.8 * X[:, 1:]
    return 2.0 + X, KINDS[kind][1](X[:, TRUE] @ [0.6, -0.4, 0.25], rng)


def assert_same_choice(blocked, plain, kind):
    assert blocked.best_n_nonzero_coefs_ == plain.best_n_nonzero_coefs_ > 0
    np.testing.assert_array_equal(blocked.get_support(), plain.get_support())
    np.testing.assert_array_equal(blocked.candidates_, plain.candidates_)
    ours, theirs = blocked.criterion_path_, plain.criterion_path_
    if kind == "counts":  # the likelihood of counts has a constant that blocks leave out
        ours, theirs = ours - ours[0], theirs - theirs[0]
    best = plain.best_n_nonzero_coefs_ + 1
    np.testing.assert_allclose(ours[:best], theirs[:best], rtol=1e-7, atol=1e-6)


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore::hardthresh.core.SearchRangeWarning")
@in_turn("kind,seed", list(KINDS), range(len(CRITERIA)))
def test_a_criterion_chooses_what_it_chooses_in_memory(kind, seed):
    """Huber's loss and that of the margins have no likelihood: the extended BIC alone ranks their fits."""
    X, y = data(kind, seed)
    criterion = "ebic" if kind in ("huber", "svc") else CRITERIA[seed]
    model = clone(KINDS[kind][0]).set_params(n_nonzero_coefs="auto", criterion=criterion)
    with logged_readings() as log:
        blocked = clone(model).fit(from_arrays(X, y, rows=ROWS))
    plain = clone(model).fit(X, y)
    assert_same_choice(blocked, plain, kind)
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=1e-4, atol=1e-6)
    assert 1 <= log.readings <= (7 if kind == "svc" else 5)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("kind", ["gamma", "tweedie", "huber", "svc"])
def test_weights_offsets_and_a_ridge_count_as_in_memory(kind):
    """The criterion is that of the mean loss without the ridge, of as many examples as weights stand for."""
    X, y = data(kind, 3)
    rng = np.random.default_rng(4)
    weight, offset = rng.integers(0, 4, N).astype(float), 0.3 * rng.standard_normal(N)
    model = clone(KINDS[kind][0]).set_params(alpha=0.1)
    blocked = clone(model).fit(from_arrays(X, y, sample_weight=weight, offset=offset, rows=ROWS))
    plain = clone(model).fit(X, y, sample_weight=weight, offset=offset)
    assert_same_choice(blocked, plain, kind)


@only_at("pairs")
@pytest.mark.parametrize("kind", ["gamma", "svc"])
def test_the_choice_has_the_same_bits_on_other_engines(kind):
    X, y = data(kind, 5)
    one, other = (
        clone(KINDS[kind][0]).fit(make(from_arrays(X, y, rows=ROWS)))
        for make in (Serial, lambda blocks: Threads(blocks, 2))
    )
    assert one.criterion_path_.tobytes() == other.criterion_path_.tobytes()
    assert one.coef_.tobytes() == other.coef_.tobytes()


@pytest.mark.slow
def test_a_criterion_compares_ridges_of_amounts_over_blocks():
    X, y = data("gamma", 6)
    model = ht.SparseGammaRegressionCV(criterion="bic", alphas=[0.0, 0.05])
    blocked, plain = clone(model).fit(from_arrays(X, y, rows=ROWS)), clone(model).fit(X, y)
    assert blocked.alpha_ == plain.alpha_
    assert_same_choice(blocked, plain, "gamma")


@pytest.mark.parametrize("kind", ["huber", "svc"])
def test_a_loss_without_likelihood_is_refused_before_reading(kind):
    X, y = data(kind, 7)
    engine = Serial(from_arrays(X, y, rows=ROWS))
    with pytest.raises(CapabilityError, match='no likelihood for criterion="bic"'):
        clone(KINDS[kind][0]).set_params(criterion="bic").fit(engine)
    assert engine.readings == 0


def test_no_likelihood_is_made_up_of_a_mean_loss():
    """`bic` of a fit over blocks is refused in the words of a fit in memory."""
    X, y = data("huber", 8)
    model = blocked_model(Serial(from_arrays(X, y, rows=ROWS)), Huber(1.3))
    with pytest.raises(CapabilityError, match="the Huber loss has no likelihood for an information criterion"):
        bic(ht.minimize(model, ht.constraints.Sparsity(2, free=(D,))))


LOSSES = [Squared(), Logistic(), Poisson(), Gamma(), Tweedie(1.5), Huber(1.0), SquaredHinge(), NegativeBinomial(2.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_criterion_of_a_mean_is_that_of_its_rows_up_to_a_constant(loss):
    rng = np.random.default_rng(9)
    u, n = rng.standard_normal((3, 50)), 80.0
    y, weights = loss.example_target(u[0], rng), rng.uniform(0.1, 2.0, 50)
    rows = [loss.working_criterion(y, v, weights, n) for v in u]
    means = [loss.criterion_of_mean(loss.weighted_mean(y, v, weights), n) for v in u]
    np.testing.assert_allclose(np.diff(means), np.diff(rows), rtol=1e-10)
