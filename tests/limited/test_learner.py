"""The conversation: in any order, with gaps, interrupted and stored, it ends where an uninterrupted run does."""

from itertools import islice

import numpy as np
import pytest

import hardthresh
from bits import everything
from hardthresh.core import InvalidInputError, Status
from hardthresh.core.errors import HardThreshError
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    CallbackSource,
    CostModel,
    Exploitation,
    Exploration,
    Geometric,
    Hybrid,
    Learner,
    LogisticHybrid,
    learn,
)
from hardthresh.limited.learning_curve import WINDOWS, LearningCurve
from hardthresh.storage import StorageError
from levels import at_most

N, D, OBSERVED = 1500, 12, 6
ALGORITHMS = {
    "exploration": Exploration(0.1, Geometric(15, 1.2), 3),
    "exploitation": Exploitation(0.1, 45),
    "hybrid": Hybrid(0.1, 10, 40, n_nonzero_coefs=3),
    "adaptive": AdaptiveHybrid(3),
}
every = pytest.mark.parametrize("name", ALGORITHMS)


def table(n=N):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, D))
    return X, X[:, [2, 5, 9]] @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(n) + 2


def learner_of(name, n=N):
    w0 = np.eye(D)[2] - np.eye(D)[5] if name == "exploitation" else None
    return Learner.of(ALGORITHMS[name], CostModel.of(D, OBSERVED), w0, n)


def run(name, X, y):
    w0 = np.eye(D)[2] - np.eye(D)[5] if name == "exploitation" else None
    return learn(ALGORITHMS[name], ArraySource(X, y, OBSERVED, shuffle=False), w0)


def iterate(name, source):
    return Learner.for_source(ALGORITHMS[name], source).iterate(source)


def converse(learner, X, y, most=None):
    """Answer every question from the rows of a table, as long as there are rows and questions."""
    answered = 0
    while not learner.done and answered != most:
        id_, indices = learner.ask()
        if id_ >= len(y):
            return
        learner.tell(id_, X[id_, indices], y[id_])
        answered += 1


@pytest.mark.slow
@at_most(2)
@every
def test_asking_and_telling_is_running(name):
    X, y = table()
    learner, ran = learner_of(name), run(name, X, y)
    converse(learner, X, y)
    assert everything(learner) == everything(ran.learner)
    end = learner.final_state()
    np.testing.assert_array_equal(end.w, ran.w)
    assert end.intercept == ran.intercept
    for field in ("attributes", "examples", "max_per_example", "money"):
        assert getattr(learner.meter, field) == getattr(ran.meter, field)


@pytest.mark.slow
@at_most(2)
@every
@pytest.mark.parametrize("count", [2, 7, 1000])
def test_the_order_of_answers_does_not_matter(name, count):
    X, y = table()
    learner = learner_of(name)
    rng = np.random.default_rng(0)
    while not learner.done:
        questions = learner.questions(count)
        assert 1 <= len(questions) <= count
        questions = [(id_, indices) for id_, indices in questions if id_ < N]
        for place in rng.permutation(len(questions)):
            id_, indices = questions[place]
            learner.tell(id_, X[id_, indices], y[id_])
        if not questions:
            break
    assert everything(learner) == everything(run(name, X, y).learner)


@every
def test_a_question_stays_until_it_is_answered(name):
    X, y = table()
    learner = learner_of(name)
    for _ in range(60):
        first, again = learner.questions(3), learner.questions(3)
        assert everything(first) == everything(again)
        assert learner.ask()[0] == first[0][0]
        first[0][1][:] = -1  # the caller's own copy
        id_, indices = learner.ask()
        assert np.all(np.diff(indices) > 0)
        assert np.isin(learner.state.support, indices).all()
        learner.tell(id_, X[id_, indices], y[id_])


@pytest.mark.slow
@at_most(3)
@every
@pytest.mark.parametrize("paid", [False, True])
def test_another_example_takes_the_place_of_one_that_is_skipped(name, paid):
    """As if the stream had consisted of the others only, but for the bill."""
    X, y = table()
    learner, skipped, told, spent = learner_of(name, None), [], [], 0
    rng = np.random.default_rng(1)
    while not learner.done and len(told) < 700:
        id_, indices = learner.ask()
        if rng.random() < 0.2:
            learner.skip(id_, paid=paid)
            skipped.append(id_)
            spent += indices.size * paid
        else:
            learner.tell(id_, X[id_, indices], y[id_])
            told.append(id_)
            spent += indices.size
    assert len(skipped) > 50
    assert sorted(skipped + told) == list(range(len(skipped) + len(told))) or learner.answers is not None
    other = learner_of(name, None)
    for id_ in told:
        expected, indices = other.ask()
        other.tell(expected, X[id_, indices], y[id_])
    assert everything(learner.state) == everything(other.state)
    assert learner.meter.examples == len(told) + len(skipped) * paid
    assert learner.meter.attributes == learner.meter.money == spent
    assert learner.dropped == len(skipped) * paid


BAD_ANSWERS = [
    (lambda id_, x, y: (id_ + 10**6, x, y), "no question about example 1000003 is open; open are"),
    (lambda id_, x, y: (-1, x, y), "no question about example -1 is open"),
    (lambda id_, x, y: (float(id_), x, y), "no question about example 3.0 is open"),
    (lambda id_, x, y: (True, x, y), "no question about example True is open"),
    (lambda id_, x, y: (0, x, y), "example 0 was answered before"),
    (lambda id_, x, y: (id_, x[:-1], y), "example 3 has 5 values; 6 are needed, one for each"),
    (lambda id_, x, y: (id_, x[None], y), "example 3 has 1 values; 6 are needed"),
    (lambda id_, x, y: (id_, 1.0, y), "example 3 has 1.0 for values; a list of 6 numbers is needed"),
    (
        lambda id_, x, y: (id_, np.where(np.arange(6) == 2, np.nan, x), y),
        "attribute 2 of example 3 is nan; a measurement must be .*: measure it again",
    ),
    (lambda id_, x, y: (id_, np.where(np.arange(6) == 5, -np.inf, x), y), r"attribute 5 of example 3 is -inf"),
    (lambda id_, x, y: (id_, ["a"] * 6, y), "attribute 0 of example 3 is 'a'; a measurement must be a number"),
    (lambda id_, x, y: (id_, None, y), "example 3 has None for values; a list of 6 numbers is needed"),
    (lambda id_, x, y: (id_, x, np.inf), "the target of example 3 is inf; it must be a finite number"),
    (lambda id_, x, y: (id_, x, np.nan), "the target of example 3 is nan"),
    (lambda id_, x, y: (id_, x, None), "the target of example 3 is None"),
    (lambda id_, x, y: (id_, x, [y]), r"the target of example 3 is \[0.5\]"),
    (lambda id_, x, y: (id_, x, "high"), "the target of example 3 is 'high'; it must be a finite number"),
]


@pytest.mark.parametrize(("answer", "words"), BAD_ANSWERS)
def test_a_bad_answer_changes_nothing(answer, words):
    X, y = table()
    learner = learner_of("adaptive")
    converse(learner, X, y, 3)
    id_, indices = learner.ask()
    assert (id_, indices.tolist()) == (3, list(range(6)))
    before = everything(learner)
    with pytest.raises(InvalidInputError, match=words):
        learner.tell(*answer(id_, X[id_, indices], 0.5))
    assert everything(learner) == before
    learner.tell(id_, X[id_, indices], y[id_])


@pytest.mark.parametrize("example", [0, 10**6, -1, None, 3.0])
def test_skipping_what_is_not_asked_changes_nothing(example):
    X, y = table()
    learner = learner_of("adaptive")
    converse(learner, X, y, 3)
    learner.ask()
    before = everything(learner)
    with pytest.raises(InvalidInputError, match=r"answered before|no question about"):
        learner.skip(example)
    assert everything(learner) == before


@pytest.mark.parametrize("count", [0, -1, 2.0, None])
def test_a_number_of_questions_is_positive(count):
    with pytest.raises(InvalidInputError, match="the number of questions must be an integer >= 1"):
        learner_of("adaptive").questions(count)


def test_a_finished_learner_has_no_questions():
    X, y = table()
    learner = Learner.of(Exploration(0.1, 10, 3, max_updates=2), CostModel.of(D, OBSERVED))
    converse(learner, X, y)
    assert learner.done
    assert learner.query is None
    assert learner.questions(5) == []
    assert not learner.step(ArraySource(X, y, OBSERVED))
    for act in (learner.ask, lambda: learner.tell(0, [], 1.0), lambda: learner.skip(0)):
        with pytest.raises(HardThreshError, match="nothing left to ask: all updates that were asked for are made"):
            act()


def test_a_learner_that_diverged_says_so_and_stays_finite():
    X, y = table()
    learner = Learner.of(Exploration(1e200, 10, 3), CostModel.of(D, OBSERVED))
    converse(learner, X, y)
    assert learner.done
    assert learner.diverged
    assert np.all(np.isfinite(learner.final_state().w))
    with pytest.raises(HardThreshError, match="take a smaller step"):
        learner.ask()


@pytest.mark.slow
@at_most(2)
@every
def test_final_state_does_not_change_the_learner(name):
    X, y = table()
    plain, curious = learner_of(name), learner_of(name)
    for _ in range(400):
        if plain.done:
            break
        for learner in (plain, curious):
            converse(learner, X, y, 1)
        before = everything(curious)
        end = curious.final_state()
        assert everything(curious) == before
        assert np.all(np.isfinite(end.w))
    assert everything(plain) == everything(curious)


def test_final_state_uses_an_incomplete_query():
    X, y = table()
    learner = learner_of("adaptive")
    converse(learner, X, y, 517)
    told = np.count_nonzero(learner.answers.answered)
    assert 0 < told < len(learner.answers.ids)
    end = learner.final_state()
    assert end.seen == learner.state.seen + told == learner.meter.examples == 517
    assert end.own.count == learner.state.own.count + told


@pytest.mark.slow
@every
def test_the_meter_counts_what_was_told(name):
    X, y = table()
    learner, attributes, most = learner_of(name), 0, 0
    for number in range(300):
        if learner.done:
            break
        assert learner.meter.examples == number
        id_, indices = learner.ask()
        learner.tell(id_, X[id_, indices], y[id_])
        attributes, most = attributes + indices.size, max(most, indices.size)
        assert learner.meter.attributes == learner.meter.money == attributes
        assert learner.meter.max_per_example == most <= OBSERVED


@pytest.mark.slow
@at_most(2)
@every
def test_the_learning_curve_is_of_predictions_made_before_learning(name):
    """Each request is answered as a whole, with the model that asked it."""
    X, y = table()
    learner, windows = learner_of(name), []
    while not learner.done:
        state, learnt, errors = learner.state, len(learner.curve.counts), []
        while learner.state is state and not learner.done:
            id_, indices = learner.ask()
            if id_ >= N:
                break
            errors.append(y[id_] - X[id_] @ state.w - state.intercept)
            learner.tell(id_, X[id_, indices], y[id_])
        if learner.state is state:
            break
        windows.append((learner.meter.examples, learner.meter.attributes, np.mean(np.square(errors))))
        assert len(learner.curve.counts) == learnt + 1
    assert len(windows) < WINDOWS
    columns = learner.curve.columns()
    examples, attributes, means = map(list, zip(*windows, strict=True))
    assert columns["examples"].tolist() == examples
    assert columns["attributes"].tolist() == attributes
    np.testing.assert_allclose(columns["squared_error"], means, rtol=1e-9)
    ran = run(name, X, y)
    for column, values in columns.items():
        np.testing.assert_array_equal(ran.learning_curve[column], values)


@pytest.mark.parametrize("sizes", [[1] * 3000, [32] * 1000, [1, 50, 7] * 400, [5] * 255, [5] * 256, [5] * 257])
def test_joined_windows_keep_their_totals(sizes):
    rng = np.random.default_rng(0)
    curve, total, examples = LearningCurve(), 0.0, 0
    for size in sizes:
        errors = rng.standard_normal(size)
        total, examples = total + np.sum(errors**2), examples + size
        curve.add(errors, np.zeros(size), examples, 3 * examples)
        assert sum(curve.counts) == curve.examples[-1] == examples
        assert len(curve.counts) < WINDOWS
    columns = curve.columns()
    np.testing.assert_array_equal(np.cumsum(curve.counts), columns["examples"])
    np.testing.assert_array_equal(3 * columns["examples"], columns["attributes"])
    np.testing.assert_allclose(columns["squared_error"] @ curve.counts, total)
    assert min(curve.counts[:-1]) >= min(curve.width, max(sizes))
    assert len(curve.counts) >= min(len(sizes), WINDOWS // 4)


@pytest.mark.slow
@at_most(1)
@every
@pytest.mark.parametrize("stages", [(0, 1, 5, 40, 41, 200), (333, 500, 777, 1200)])
def test_a_stored_learner_goes_on_as_if_nothing_had_happened(name, stages, tmp_path):
    X, y = table()
    learner, whole = learner_of(name), learner_of(name)
    converse(whole, X, y)
    told = 0
    for number, stage in enumerate(stages):
        converse(learner, X, y, stage - told)
        told = stage
        hardthresh.save(learner, tmp_path / f"{number}.json")
        again = hardthresh.load(tmp_path / f"{number}.json")
        assert everything(again) == everything(learner)
        assert everything(again.final_state()) == everything(learner.final_state())
        learner = again
    converse(learner, X, y)
    assert everything(learner) == everything(whole)


def test_an_open_question_is_asked_again_after_an_interruption(tmp_path):
    X, y = table()
    learner = learner_of("adaptive")
    questions = learner.questions(4)
    for id_, indices in (questions[0], questions[2]):
        learner.tell(id_, X[id_, indices], y[id_])
    hardthresh.save(learner, tmp_path / "learner.json")
    again = hardthresh.load(tmp_path / "learner.json")
    assert [id_ for id_, _ in again.questions(2)] == [1, 3]
    with pytest.raises(InvalidInputError, match="example 2 was answered before"):
        again.tell(2, X[2, questions[2][1]], y[2])


@pytest.mark.parametrize(
    "algorithm",
    [Exploration(0.1, lambda t: 10 * t, 3), Hybrid(0.1, 10, 20, exploit_steps=lambda k: k, n_nonzero_coefs=3)],
    ids=["exploration", "hybrid"],
)
def test_functions_cannot_be_stored_and_the_way_out_is_named(algorithm, tmp_path):
    learner = Learner.of(algorithm, CostModel.of(D, OBSERVED))
    with pytest.raises(StorageError, match="Geometric"):
        hardthresh.save(learner, tmp_path / "learner.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_run_can_go_on_with_more_examples():
    X, y = table(3000)
    first = learn(AdaptiveHybrid(3), ArraySource(X[:N], y[:N], OBSERVED, shuffle=False))
    more = ArraySource(X[N:], y[N:], OBSERVED, shuffle=False)
    while first.learner.step(more):
        pass
    end = first.learner.final_state()
    assert end.seen == 3000
    assert np.sum((end.w[end.support] - [1.0, -1.0, 0.5]) ** 2) < 0.01


def test_iterating_yields_the_start_and_every_update():
    X, y = table()
    states = list(iterate("exploration", ArraySource(X, y, OBSERVED, shuffle=False)))
    assert [state.updates for state in states] == list(range(len(states)))
    assert len(states) > 5
    np.testing.assert_array_equal(states[-1].w, run("exploration", X, y).w)
    few = list(islice(iterate("adaptive", ArraySource(X, y, OBSERVED, shuffle=False)), 4))
    assert few[0].updates == 0
    assert np.all(np.diff([state.updates for state in few]) > 0)


@every
def test_the_result_says_how_it_ended(name):
    X, y = table()
    ran = run(name, X, y)
    assert ran.status is Status.SOURCE_EMPTY
    assert f"({ran.meter.examples} examples, {ran.meter.attributes} attributes)" in ran.message
    np.testing.assert_array_equal(ran.support, np.flatnonzero(ran.w))
    assert ran.learner.state.left <= N - ran.meter.examples + 32


def test_a_run_in_pieces_that_diverges_keeps_the_same_best_coefficients():
    X, y = table()
    algorithm, cost_model = Exploration(2.0, 10, 3), CostModel.of(D, OBSERVED)
    whole, pieces = Learner.of(algorithm, cost_model), Learner.of(algorithm, cost_model)
    result = whole.run(ArraySource(X, y, OBSERVED, shuffle=False))
    assert result.status is Status.DIVERGED
    for start in range(0, N, 100):
        rows = slice(start, start + 100)
        last = pieces.run(ArraySource(X[rows], y[rows], OBSERVED, shuffle=False))
    assert everything(pieces) == everything(whole)
    np.testing.assert_array_equal(last.w, result.w)
    assert "smaller step" in pieces.finalize()[1]
    assert np.mean((X @ result.w - y) ** 2) < np.mean((X @ pieces.state.w - y) ** 2)


def test_a_model_worse_than_the_mean_is_trouble():
    X, y = table()
    for shift, trouble in ((0.0, False), (10.0, True)):
        learner = Learner.of(Exploration(0.02, 10, 3), CostModel.of(D, OBSERVED))
        learner.run(ArraySource(X, y - 2 + shift, OBSERVED, shuffle=False))
        assert ("predicts worse than the mean" in learner.finalize()[1]) == trouble


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exploration", "hybrid", "adaptive"])
def test_a_continued_learner_explores_again(name):
    """A learner that believed to be at its end forgets that, and explores again."""
    X, y = table(6000)
    y[:3000] = 0.1 * X[:3000, 2]
    learner = learner_of(name, 3000)
    learner.run(ArraySource(X[:3000], y[:3000], OBSERVED, shuffle=False))
    learner.forget_length()
    learner.run(ArraySource(X[3000:], y[3000:], OBSERVED, shuffle=False))
    assert learner.state.length is None
    assert learner.state.seen > 5500
    assert {2, 5} <= set(learner.final_state().support.tolist())


def test_a_plan_that_was_cut_short_is_made_whole():
    X, y = table()
    algorithm, cost_model = Hybrid(0.1, 10, 40, n_nonzero_coefs=3, max_rounds=2), CostModel.of(D, OBSERVED)
    short, whole = Learner.of(algorithm, cost_model, length=450), Learner.of(algorithm, cost_model)
    short.run(ArraySource(X[:450], y[:450], OBSERVED, shuffle=False))
    assert not algorithm.finished(short.state)
    short.forget_length()
    short.run(ArraySource(X[450:], y[450:], OBSERVED, shuffle=False))
    whole.run(ArraySource(X, y, OBSERVED, shuffle=False))
    assert algorithm.finished(short.state)
    assert algorithm.finished(whole.state)


@every
def test_missing_examples_do_not_count_as_unused(name):
    X, y = table()
    holes = np.where(np.random.default_rng(1).random((N, 1)) < 0.6, np.nan, X)
    learner = learner_of(name)
    source = ArraySource(holes, y, OBSERVED, shuffle=False)
    learner.run(source)
    told = 0 if learner.answers is None else int(learner.answers.answered.sum())
    assert learner.dropped > 500
    assert learner.state.left == source.remaining + told


def test_a_skipped_example_is_none_that_is_left():
    learner = learner_of("exploration")
    learner.skip(learner.ask()[0])
    assert learner.state.length == N - 1


def test_a_target_that_is_no_class_is_refused_before_a_purchase():
    X, _ = table()
    source = CallbackSource(lambda i, indices: X[i, indices], D, OBSERVED, target=lambda i: 7.0)
    with pytest.raises(InvalidInputError, match="targets must be 0 or 1, got 7"):
        learn(LogisticHybrid(3), source)
    assert source.meter.attributes == 0
