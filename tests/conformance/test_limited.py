"""Every registered algorithm keeps to the budget, to its contract, and to what it was told."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from cases import examples

import hardthresh
from bits import everything
from hardthresh.core import CapabilityError, InvalidInputError, Status
from hardthresh.limited import AdaptiveHybrid, ArraySource, Exploitation, Learner, LogisticHybrid, learn
from levels import in_turn, slow_beyond

D = 12
KINDS = ("plain", "shifted", "correlated", "rescaled", "constant columns", "constant target", "short", "wide", "all")
COST_MODELS = ("prices", "panels")
every = pytest.mark.parametrize("algorithm", examples("algorithm"))


def table(kind):
    """Examples with targets 0 and 1, which every algorithm can learn from."""
    rng = np.random.default_rng(11)
    n, d = {"short": 90, "wide": 800}.get(kind, 480), {"wide": 40}.get(kind, D)
    X = rng.standard_normal((n, d))
    score = X[:, [1, 4, 7]] @ [1.5, -1.0, 0.8]
    if kind == "shifted":
        X += 3
    if kind == "correlated":
        X = np.sqrt(0.7) * X + np.sqrt(0.3) * rng.standard_normal((n, 1))
    if kind == "rescaled":
        X *= np.exp(rng.uniform(-1, 0, d))
    if kind == "constant columns":
        X[:, ::3] = 0.1
    y = (score + 0.5 * rng.standard_normal(n) > 0).astype(float)
    return X, 0 * y if kind == "constant target" else y


def source(kind, **settings):
    X, y = table(kind)
    cost_model = {"n_observed": {"all": D, "wide": 8}.get(kind, 6)}
    if kind == "prices":
        cost_model = {"costs": 1.0 + np.arange(D) % 3, "budget": 11.0}
    if kind == "panels":
        cost_model = {"costs": np.ones(D), "panels": [j // 2 for j in range(D)], "budget": 7.0}
    return ArraySource(X, y, shuffle=False, **cost_model, **settings)


def start_of(algorithm, d):
    """A starting point, for those that work on the support of one; the others begin at their own."""
    w0 = np.zeros(d)
    w0[[1, 4]] = 0.1
    return w0 if type(algorithm).__name__ == "Exploitation" else None


def learner_of(algorithm, kind, known=True):
    """A learner and its source, the length of which it may know."""
    bought = source(kind)
    return Learner.of(
        algorithm, bought.cost_model, start_of(algorithm, bought.n_features), bought.remaining if known else None
    ), bought


def run(algorithm, kind):
    bought = source(kind)
    return learn(algorithm, bought, start_of(algorithm, bought.n_features))


def conversation(learner, X, y):
    """Ask and tell to the end of a table, and yield what was asked, and of whom, before each answer."""
    while not learner.done:
        id_, indices = learner.ask()
        if id_ >= len(y):
            return
        yield id_, indices
        learner.tell(id_, X[id_, indices], y[id_])


@slow_beyond(2)
@in_turn("algorithm,kind", examples("algorithm"), KINDS)
def test_requests_are_within_the_budget_and_contain_the_support(algorithm, kind):
    learner, bought = learner_of(algorithm, kind)
    X, y = table(kind)
    spent = 0.0
    for _, indices in conversation(learner, X, y):
        assert np.all(np.diff(indices) > 0)
        assert np.isin(learner.state.support, indices).all()
        assert bought.cost_model.within_budget(bought.cost_model.cost(indices))
        spent += bought.cost_model.cost(indices)
    assert learner.meter.money == pytest.approx(spent)
    assert learner.meter.max_per_example <= bought.cost_model.budget
    assert learner.meter.examples <= len(y)


@slow_beyond(2)
@in_turn("algorithm,kind,known", examples("algorithm"), KINDS, [True, False])
def test_running_is_asking_and_telling(algorithm, kind, known):
    asked, _ = learner_of(algorithm, kind, known)
    for _ in conversation(asked, *table(kind)):
        pass
    ran, bought = learner_of(algorithm, kind, known)
    while ran.step(bought):
        pass
    assert everything(ran) == everything(asked)
    assert everything(ran.final_state()) == everything(asked.final_state())


@slow_beyond(2)
@in_turn("algorithm,kind", examples("algorithm"), KINDS)
def test_results_are_finite_affordable_and_repeatable(algorithm, kind):
    first, second = run(algorithm, kind), run(algorithm, kind)
    cost_model = source(kind).cost_model
    assert cost_model.within_budget(cost_model.cost(first.support))
    assert first.support.size <= getattr(algorithm, "n_nonzero_coefs", first.support.size)
    assert np.all(np.isfinite(first.w))
    assert np.isfinite(first.intercept)
    np.testing.assert_array_equal(first.w, second.w)
    assert first.intercept == second.intercept
    assert first.meter.money == second.meter.money
    assert first.message == second.message
    assert first.status in (Status.SOURCE_EMPTY, Status.ENOUGH, Status.DIVERGED)
    np.testing.assert_array_equal(first.support, np.flatnonzero(first.w))


@every
def test_states_are_frozen_and_nothing_is_changed_in_them(algorithm):
    learner, bought = learner_of(algorithm, "plain")
    kept = []
    for _ in range(20):
        state = learner.state
        with pytest.raises((FrozenInstanceError, TypeError)):
            state.seen = 0
        kept.append((state, everything(state)))
        if not learner.step(bought):
            break
    learner.final_state()
    for state, numbers in kept:
        assert everything(state) == numbers
    assert len(kept) > 10


@slow_beyond(2)
@in_turn("algorithm,told", examples("algorithm"), [0, 1, 33, 100, 401])
def test_a_stored_learner_goes_on_to_the_same_end(algorithm, told, tmp_path):
    X, y = table("plain")
    whole, _ = learner_of(algorithm, "plain")
    for _ in conversation(whole, X, y):
        pass
    learner, _ = learner_of(algorithm, "plain")
    for id_, _ in conversation(learner, X, y):
        if id_ == told:
            break
    hardthresh.save(learner, tmp_path / "learner.json")
    again = hardthresh.load(tmp_path / "learner.json")
    for _ in conversation(again, X, y):
        pass
    assert everything(again) == everything(whole)


@slow_beyond(3)
@in_turn("algorithm,kind", examples("algorithm"), KINDS)
def test_answers_of_any_order_and_none_at_all(algorithm, kind):
    """Backwards, by three, one in seven skipped: as if the others were the stream."""
    X, y = table(kind)
    learner, _ = learner_of(algorithm, kind)
    told = []
    while not learner.done and learner.next_example + 3 < len(y):
        for id_, indices in reversed(learner.questions(3)):
            if id_ % 7 == 3:
                learner.skip(id_)
            else:
                learner.tell(id_, X[id_, indices], y[id_])
                told.append(id_)
    assert learner.meter.examples == len(told) == len(set(told))
    assert learner.state.seen <= len(told)
    assert np.all(np.isfinite(learner.final_state().w))


@every
@pytest.mark.parametrize("kind", COST_MODELS)
def test_prices_are_kept_or_refused(algorithm, kind):
    """Panels are bought whole, and nobody exceeds the budget; who cannot do it says so before a purchase."""
    bought = source(kind)
    try:
        algorithm.start(bought.cost_model, start_of(algorithm, D), bought.remaining)
    except CapabilityError:
        with pytest.raises(CapabilityError, match="AdaptiveHybrid"):
            learn(algorithm, bought, start_of(algorithm, D))
        assert bought.meter.examples == 0
        return
    ran = learn(algorithm, bought, start_of(algorithm, D))
    assert bought.cost_model.within_budget(bought.cost_model.cost(ran.support))
    assert bought.cost_model.within_budget(bought.meter.money / bought.meter.examples)
    assert np.all(np.isfinite(ran.w))


@every
@pytest.mark.parametrize("w0", [np.ones(D - 1), np.full(D, np.nan), np.ones((D, 1))], ids=["length", "NaN", "shape"])
def test_a_bad_starting_point_is_refused_before_a_purchase(algorithm, w0):
    bought = source("plain")
    with pytest.raises(InvalidInputError, match="w0"):
        learn(algorithm, bought, w0)
    assert bought.meter.examples == 0


@every
def test_no_example_at_all(algorithm):
    bought = ArraySource(np.zeros((0, D)), [], 6)
    w0 = start_of(algorithm, D)
    ran = learn(algorithm, bought, w0)
    np.testing.assert_array_equal(ran.w, np.zeros(D) if w0 is None else w0)
    assert ran.meter.examples == 0
    assert ran.status is Status.SOURCE_EMPTY
    assert algorithm.failure_reason(ran.learner.state)


@slow_beyond(2)
@every
def test_the_learning_curve_covers_what_was_learned(algorithm):
    ran = run(algorithm, "plain")
    curve = ran.learning_curve
    assert {"examples", "attributes", "squared_error"} == curve.keys()
    assert np.all(np.diff(curve["examples"]) > 0)
    assert np.all(np.diff(curve["attributes"]) >= 0)
    assert np.all(np.isfinite(curve["squared_error"]))
    assert curve["examples"][-1] <= ran.meter.examples
    if not ran.learner.state.updates:  # all is learned in the end, and nothing predicted before
        assert not np.any(ran.learner.state.w)
        return
    assert curve["squared_error"][-5:].mean() < np.mean(table("plain")[1] ** 2)  # what nothing learned would have


@every
@pytest.mark.parametrize("y", [7.0, -1.0, np.nan, np.inf, "ill", None])
def test_a_target_that_makes_no_sense_changes_nothing(algorithm, y):
    learner, _ = learner_of(algorithm, "plain")
    X, _ = table("plain")
    for _ in range(3):
        id_, indices = learner.ask()
        learner.tell(id_, X[id_, indices], 1.0)
    id_, indices = learner.ask()
    before = everything(learner)
    if algorithm.target == "number" and y in (7.0, -1.0):
        learner.tell(id_, X[id_, indices], y)
        return
    with pytest.raises(InvalidInputError):
        learner.tell(id_, X[id_, indices], y)
    assert everything(learner) == before
    learner.tell(id_, X[id_, indices], 0.0)


@slow_beyond(3)
@every
def test_no_coefficients_are_the_null_model(algorithm):
    """With k = 0 the prediction is that of no attribute, and the budget is kept all the same."""
    if isinstance(algorithm, Exploitation):  # its number is that of its starting point
        return
    bought, y = source("plain"), table("plain")[1]
    ran = learn(replace(algorithm, n_nonzero_coefs=0), bought)
    assert not np.any(ran.w)
    assert 0 < bought.meter.max_per_example <= 6
    intercept = y.mean() if isinstance(algorithm, AdaptiveHybrid) else 0.0
    if isinstance(algorithm, LogisticHybrid):
        intercept = np.log(y.mean() / (1 - y.mean()))
    assert ran.intercept == pytest.approx(intercept, abs=0.05)
