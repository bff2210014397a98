"""The search by refits, for f that is not quadratic, against slow twins and against every support tried in turn."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from boxes import draw_bounds
from hardthresh.constraints import Sparsity
from hardthresh.core.compiled import kernel
from hardthresh.losses import Gamma, Huber, Logistic, NegativeBinomial, Poisson, Quantile, SquaredHinge, Tweedie
from hardthresh.objectives import LinearModel
from hardthresh.solvers import WorkingSet, minimize
from hardthresh.solvers.refinement import refine
from hardthresh.solvers.working_set import by_refits, refit_search, refits, runs
from hardthresh.solvers.working_set.local_scores import Refit
from hardthresh.solvers.working_set.refit_search import RefitSearch
from hardthresh.solvers.working_set.refits import refit, refit_to_the_end
from levels import at_most, draws, in_turn, slow_beyond
from numpy_code import use_numpy

NO_COLUMNS = np.empty(0, dtype=int)
DEEP = {"nearby": 1.6, "add_drop": (0.5, 1.0)}

HOSTILE = {
    Logistic(): [0.0, 0.3, 1.0],
    Poisson(): [0.0, 1e-300, 1.0, 3.0, 1e30],
    Gamma(): [1e-300, 1.0, 2.5, 1e300],
    NegativeBinomial(0.7): [0.0, 1e-300, 1.0, 1e6],
    NegativeBinomial(1e4): [0.0, 3.0, 1e8],
    Tweedie(1.2): [0.0, 1e-300, 2.5, 1e30],
    Tweedie(1.9): [0.0, 1.0, 1e30],
    SquaredHinge(): [-1.0, 0.2, 1.0],
    Huber(0.5): [-1e8, 0.0, 3.0],
}
"""Every loss that the kernel knows, with targets at which its formula may fail."""
LOSSES = list(HOSTILE)

compiled = pytest.mark.skipif(kernel() is None, reason="the compiled kernel was not built, or HARDTHRESH_PURE is set")


@pytest.fixture(params=[pytest.param("compiled", marks=compiled), "NumPy"])
def code(request, monkeypatch):
    """Run a test with and without the kernel."""
    if request.param == "NumPy":
        use_numpy(monkeypatch)


def by_numpy(function, *arguments):
    """Return what a function returns without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        use_numpy(patch)
        return function(*arguments)


def classes(seed, n=30, d=16, k=3, rho=0.95, noise=0.05):
    """Return correlated columns, k of which nearly separate two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(d)
    w[rng.permutation(d)[:k]] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    u = X @ w + noise * rng.standard_normal(n)
    return X, (u > np.median(u)).astype(float)


def best_subset(X, y, k, l2):
    """Return the lowest f of all supports of k columns."""
    search = RefitSearch(LinearModel(X, y, loss="logistic", l2=l2), NO_COLUMNS, 0.0)
    return min(search.fit(chosen).value for chosen in combinations(range(X.shape[1]), k))


def solve(objective, k, effort, **options):
    run = minimize(objective, Sparsity(k, **options), WorkingSet(effort=effort))
    assert (np.diff(run.history["value"]) <= 0).all()
    return run


# --- refits ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("start", [0.0, 1.5])
def test_refit_finds_the_minimum(loss, start):
    rng = np.random.default_rng(0)
    Z, offset, l2 = rng.standard_normal((40, 4)), 0.3 * rng.standard_normal(40), np.array([0.0, 0.01, 0.1, 1.0])
    weights = rng.uniform(0, 1, 40)
    weights /= weights.sum()
    y = loss.example_target(Z[:, 0] + offset, rng)

    def f(b):
        return weights @ loss.value(y, Z @ b + offset) + 0.5 * l2 @ b**2

    coef, prediction, value = refit(Z, loss.prepare(y, weights), offset, l2, np.full(4, start))
    slow = scipy_minimize(f, np.zeros(4), tol=1e-14)
    np.testing.assert_allclose(prediction, Z @ coef + offset, rtol=1e-13)
    np.testing.assert_allclose(value, f(coef), rtol=1e-13)
    np.testing.assert_allclose(value, slow.fun, rtol=1e-5)
    np.testing.assert_allclose(coef, slow.x, rtol=0, atol=1e-2)


@pytest.mark.usefixtures("code")
def test_refit_never_ends_above_its_start():
    """Far from the minimum a whole Newton step of the logistic loss rises."""
    X, y = classes(0)
    weights, l2 = np.full(30, 1 / 30), np.full(3, 1e-6)
    for seed in range(20):
        start = 30 * np.random.default_rng(seed).standard_normal(3)
        at_start = np.mean(Logistic().value(y, X[:, :3] @ start)) + 0.5e-6 * start @ start
        assert refit(X[:, :3], Logistic().prepare(y, weights), None, l2, start)[2] < at_start


@pytest.mark.usefixtures("code")
def test_refit_of_dependent_columns_without_ridge():
    X, y = classes(1, noise=2.0)
    weights = np.full(30, 1 / 30)
    one = refit(X[:, :1], Logistic().prepare(y, weights), None, np.zeros(1), np.zeros(1))[2]
    two = refit(X[:, [0, 0]], Logistic().prepare(y, weights), None, np.zeros(2), np.zeros(2))[2]
    np.testing.assert_allclose(two, one, rtol=1e-5)


@pytest.mark.usefixtures("code")
def test_refit_of_no_columns_is_the_null_model():
    _, y = classes(0)
    value = refit(np.empty((30, 0)), Logistic().prepare(y, np.full(30, 1 / 30)), None, np.empty(0), np.empty(0))[2]
    np.testing.assert_allclose(value, np.log(2))


# --- what the model says ---------------------------------------------------------------------------------------------


def model_change(objective, w, before, after):
    """Return by how much the quadratic model of f at w, minimal on one support, changes on another one."""
    at = objective.evaluate(w)
    H = objective.hessian(at)
    columns = list(after)
    # minimise g'v + v'Hv/2 over v = b - w, with b zero outside `after`
    linear = at.gradient - H @ w
    b = np.zeros_like(w)
    b[columns] = np.linalg.solve(H[np.ix_(columns, columns)], -linear[columns])
    return float(linear @ b + 0.5 * b @ H @ b - (linear @ w + 0.5 * w @ H @ w))


@pytest.mark.usefixtures("code")
def test_scores_are_those_of_the_quadratic_model():
    X, y = classes(2, noise=1.0)
    objective = LinearModel(X, y, loss="logistic", l2=np.linspace(0.01, 0.1, 16))
    search = RefitSearch(objective, NO_COLUMNS, 0.0)
    chosen = (1, 4, 9, 12)
    coef = search.fit(chosen).coef
    for _ in range(3):  # to the minimum, so that the gradient on the support is rounding
        fit = search.fit(chosen)
        w = np.zeros(16)
        coef = refit(X[:, chosen], objective.mean_loss, None, objective.l2[list(chosen)], coef)[0]
    w[list(chosen)] = coef
    scores, costs = search.scores(fit), search.scores(fit).costs()
    for j in range(16):
        fall = 0.0 if j in chosen else -model_change(objective, w, chosen, (*chosen, j))
        np.testing.assert_allclose(scores.gains()[j], fall, rtol=1e-3, atol=1e-9)
    for i, j in enumerate(chosen):
        rise = model_change(objective, w, chosen, [other for other in chosen if other != j])
        np.testing.assert_allclose(costs[i], rise, rtol=1e-3)
    two = model_change(objective, w, chosen, [1, 9])
    np.testing.assert_allclose(scores.cost(np.array([1, 3])), two, rtol=1e-3)
    change = {
        (i, j): model_change(objective, w, chosen, [*chosen[:i], *chosen[i + 1 :], j])
        for i in range(4)
        for j in range(16)
        if j not in chosen
    }
    best = [min((pair for pair in change if pair[0] == i), key=change.__getitem__) for i in range(4)]
    close = [pair for pair in sorted(best, key=change.__getitem__) if change[pair] <= 0.1 * costs[pair[0]]]
    assert search.scores(fit).exchanges() == close
    assert 0 < len(close) < 4


def boxed_change(objective, w, before, after, moving, bounds):
    """The change of the quadratic model at w where a support takes the place of another one.

    Columns that `moving` names have no bounds, those of before that it does not name stay where they are, and others
    stay within their bounds.
    """
    at = objective.evaluate(w)
    gradient, hessian = at.gradient, objective.hessian(at)
    box = np.zeros((2, w.size))
    for j in after:
        free = np.array([-np.inf, np.inf])
        box[:, j] = free if j in moving else [w[j], w[j]] if j in before else bounds[:, j]
    start = np.clip(w, *box)

    def change(v):
        step = v - w
        return gradient @ step + 0.5 * step @ hessian @ step, gradient + hessian @ step

    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000}
    found = scipy_minimize(change, start, jac=True, bounds=box.T, method="L-BFGS-B", options=options)
    return found.fun


def test_scores_within_bounds_are_those_of_the_quadratic_model():
    """Of the chosen columns two are held, and of the others some would meet their bounds."""
    X, y = classes(2, noise=1.0)
    objective = LinearModel(X, y, loss="logistic", l2=np.linspace(0.05, 0.2, 16))
    chosen = (2, 6, 8, 15)
    size = np.where(np.isin(np.arange(16), chosen), 0.48, 0.1)
    bounds = np.stack([-size, size])
    search = RefitSearch(objective, NO_COLUMNS, 0.0, bounds=bounds)
    fit = search.fit(chosen)
    for _ in range(3):
        l2, box = objective.l2[list(chosen)], bounds[:, chosen]
        fit = Refit(chosen, refit(X[:, chosen], objective.mean_loss, None, l2, fit.coef, box)[0], fit.value)
    w = np.zeros(16)
    w[list(chosen)] = fit.coef
    held = [j for j in chosen if w[j] in bounds[:, j]]
    moving = [j for j in chosen if j not in held]
    assert len(held) == 2
    scores, costs, gains = search.scores(fit), search.scores(fit).costs(), search.scores(fit).gains()
    stopped = 0
    for j in set(range(16)) - set(chosen):
        fall = -boxed_change(objective, w, chosen, (*chosen, j), moving, bounds)
        np.testing.assert_allclose(gains[j], fall, rtol=1e-3, atol=1e-8)
        stopped += fall < -0.999 * boxed_change(objective, w, chosen, (*chosen, j), [*moving, j], bounds)
    assert stopped >= 2
    change = {}
    for i, gone in enumerate(chosen):
        rest = [j for j in chosen if j != gone]
        np.testing.assert_allclose(costs[i], boxed_change(objective, w, chosen, rest, moving, bounds), rtol=1e-3)
        for j in set(range(16)) - set(chosen):
            change[i, j] = boxed_change(objective, w, chosen, [*rest, j], moving, bounds)
    two = [chosen.index(held[0]), chosen.index(moving[0])]
    rise = boxed_change(objective, w, chosen, [held[1], moving[1]], moving, bounds)
    np.testing.assert_allclose(scores.cost(np.array(two)), rise, rtol=1e-3)
    best = [min((pair for pair in change if pair[0] == i), key=change.__getitem__) for i in range(4)]
    close = [pair for pair in sorted(best, key=change.__getitem__) if change[pair] <= 0.05 * costs[pair[0]]]
    assert search.scores(fit).exchanges() == close
    assert close


@pytest.mark.slow
@at_most(1)
@in_turn("bounds,loss", [(0.0, np.inf), (-0.4, 0.3), (-3.0, 3.0)], ["logistic", "poisson"])
def test_it_nearly_always_finds_the_best_subset_within_bounds(bounds, loss):
    """Every choice of three columns, each fitted by SciPy. Measured: 10 of 10; fewer than 9 would be worth a look."""
    (lower, upper), found = bounds, []
    for seed in range(10):
        X, y = classes(seed, n=40, d=9, rho=0.9, noise=1.0)
        y = y if loss == "logistic" else np.random.default_rng(seed).poisson(np.exp(np.clip(X[:, 0] - X[:, 3], -3, 3)))
        objective = LinearModel(X, y, loss=loss, l2=1e-3)
        run = solve(objective, 3, "balanced", lower=lower, upper=upper)
        values = []
        for some in map(list, combinations(range(9), 3)):
            few = objective.columns(np.array(some))

            def value(w, few=few):
                at = few.evaluate(w)
                return at.value, at.gradient

            options = {"bounds": [(lower, upper)] * 3, "method": "L-BFGS-B", "options": {"ftol": 1e-15, "gtol": 1e-10}}
            values.append(scipy_minimize(value, np.zeros(3), jac=True, **options).fun)
        assert np.all((lower <= run.w) & (run.w <= upper))
        assert run.converged
        assert run.value >= min(values) * (1 - 1e-9)
        found.append(run.value <= min(values) * (1 + 1e-8))
    assert sum(found) >= 9


@pytest.mark.usefixtures("code")
def test_dependent_columns_gain_nothing():
    X, y = classes(3)
    X[:, 5] = X[:, 0] - 2 * X[:, 1]
    search = RefitSearch(LinearModel(X, y, loss="logistic"), NO_COLUMNS, 0.0)
    gains = search.scores(search.fit((0, 1))).gains()
    assert gains[5] == gains[0] == gains[1] == 0.0
    assert np.count_nonzero(gains) == 13


# --- the search ------------------------------------------------------------------------------------------------------


def test_fixed_columns_stay_and_do_not_count():
    X, y = classes(4, noise=0.3)
    X[:, 7] = 1.0
    search = RefitSearch(LinearModel(X, y, loss="logistic", l2=1e-3), np.array([7]), 1e-8)
    found = search.lowest(search.fit((7,)), 3, **DEEP)
    assert 7 in found.chosen
    assert len(found.chosen) == 4
    best = min(search.fit((*chosen, 7)).value for chosen in combinations([j for j in range(16) if j != 7], 3))
    np.testing.assert_allclose(found.value, best, rtol=1e-3)


def test_a_larger_support_than_allowed_is_not_returned():
    X, y = classes(5)
    search = RefitSearch(LinearModel(X, y, loss="logistic", l2=1e-3), NO_COLUMNS, 1e-8)
    assert all(len(search.lowest(search.fit((0,)), k, **DEEP).chosen) == k for k in (1, 2, 5, 16))


@pytest.mark.slow
def test_it_nearly_always_finds_the_best_subset_of_near_separable_classes():
    """No guarantee; "fast", which does not search by refits, misses five."""
    missed = dict.fromkeys(("fast", "balanced", "thorough"), 0)
    for seed in range(20, 40):
        X, y = classes(seed)
        best = best_subset(X, y, 3, 1e-4) * (1 + 1e-3)
        for effort in missed:
            missed[effort] += solve(LinearModel(X, y, loss="logistic", l2=1e-4), 3, effort).value > best
    assert missed["fast"] >= 5
    assert missed["balanced"] <= 4
    assert missed["thorough"] <= 2


@pytest.mark.parametrize("effort", ["balanced", "thorough"])
@pytest.mark.parametrize("seed", [2, 8, 27])
def test_the_best_subset_is_reached_where_the_model_misleads(effort, seed):
    """On these the search within the quadratic model ends 63 to 280 % higher."""
    X, y = classes(seed)
    objective = LinearModel(X, y, loss="logistic", l2=1e-4)
    best = best_subset(X, y, 3, 1e-4)
    assert solve(objective, 3, "fast").value > 1.5 * best
    run = solve(objective, 3, effort)
    assert run.value <= best * (1 + 1e-6)
    assert run.converged
    again = solve(objective, 3, effort)
    np.testing.assert_array_equal(run.w, again.w)


@pytest.fixture
def deep_searches(monkeypatch):
    """Return a list with an entry for each deep search that is made."""
    searched = []
    lowest = RefitSearch.lowest
    monkeypatch.setattr(RefitSearch, "lowest", lambda *arguments: searched.append(1) or lowest(*arguments))
    return searched


def test_which_runs_search_by_refits(monkeypatch, deep_searches):
    X, y = classes(2)
    classifier = LinearModel(X, y, loss="logistic", l2=1e-4)
    for objective, effort, options, expected in [
        (classifier, "fast", {}, False),
        (classifier, "balanced", {}, True),
        (classifier, "thorough", {}, True),
        (classifier, "thorough", {"lower": 0.0}, True),
        (LinearModel(X, y), "thorough", {}, False),
    ]:
        deep_searches.clear()
        solve(objective, 3, effort, **options)
        assert bool(deep_searches) == expected, (effort, expected)
    deep_searches.clear()
    for module in (runs, by_refits):
        monkeypatch.setattr(module, "MOST_ENTRIES", 30 * 16)
    solve(classifier, 3, "thorough")
    assert not deep_searches


def test_answers_are_searched_deeply_where_refits_are_cheap(monkeypatch, deep_searches):
    monkeypatch.setattr(runs, "_FEW_PRODUCTS", 0)
    X, y = classes(2)
    model = LinearModel(X, y, loss="logistic", l2=1e-4)
    solve(model, 3, "balanced")
    assert deep_searches
    deep_searches.clear()
    monkeypatch.setattr(runs, "_CHEAP_REFIT", 30 * 3**2 - 1)
    solve(model, 3, "balanced")
    assert not deep_searches


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("ratio", [0.0, 1.5, 2.0, np.inf])
def test_doubtful_answers(ratio):
    """If nothing was tried in vain, those from which f falls far more than the model says with half of the columns."""
    doubtful = 0
    for seed in range(10):
        X, y = classes(seed, n=60, rho=0.0, noise=1.0)
        search = RefitSearch(LinearModel(X, y, loss="logistic", l2=1e-3), NO_COLUMNS, 1e-9)
        fit, answer = search.reached(search.fit(()), 4, ratio)
        tried = search.scores(fit).exchanges()
        rest, modelled = search.without_half(fit)
        misled = rest.value - fit.value > ratio * modelled
        assert answer == (ratio < np.inf and (ratio == 0.0 or bool(tried) or misled))
        assert all(search.fit(set(fit.chosen) - {fit.chosen[i]} | {j}).value >= fit.value - 1e-9 for i, j in tried)
        doubtful += answer
    assert doubtful == {0.0: 10, np.inf: 0}.get(ratio, doubtful)
    assert ratio not in (1.5, 2.0) or 0 < doubtful < 10


@pytest.mark.usefixtures("code")
def test_scores_away_from_a_minimum_are_those_at_the_minimum_of_the_model():
    X, y = classes(2, noise=1.0)
    X[:, 8:] = X[:, :8] + 1e-3 * X[:, 8:]
    objective = LinearModel(X, y, loss="logistic", l2=np.linspace(0.01, 0.1, 16) * 1e-3)
    chosen, w = (1, 4, 7), np.zeros(16)
    w[list(chosen)] = [0.5, -0.2, 0.1]
    search = RefitSearch(objective, NO_COLUMNS, 0.0)
    scores = search.scores(Refit(chosen, w[list(chosen)], objective.value(w)))
    least = model_change(objective, w, chosen, chosen)
    assert least < -1e-3
    for j in set(range(16)) - set(chosen):
        fall = least - model_change(objective, w, chosen, (*chosen, j))
        np.testing.assert_allclose(scores.gains()[j], fall, rtol=1e-4, atol=1e-9)
    for i, j in enumerate(chosen):
        rise = model_change(objective, w, chosen, [other for other in chosen if other != j]) - least
        np.testing.assert_allclose(scores.costs()[i], rise, rtol=1e-4)


@pytest.mark.slow
@at_most(2)
@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("seed", range(3))
def test_near_copies_do_not_mislead_the_search(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 100))
    y = (X[:, :5].sum(axis=1) + 2 * rng.standard_normal(200) > 0).astype(float)
    X[:, 50:] = X[:, :50] + 1e-4 * rng.standard_normal((200, 50))
    objective = LinearModel(X, y, loss="logistic")
    assert solve(objective, 12, "balanced").value <= solve(objective, 12, "fast").value * (1 + 1e-6)


@compiled
@pytest.mark.parametrize("seed", [0, 2])
def test_a_separated_budget_does_not_end_the_search_of_the_next(seed):
    X, y = classes(seed, noise=0.5)
    objective = LinearModel(X, y, loss="logistic", l2=1e-9)

    def values():
        search = RefitSearch(objective, NO_COLUMNS, 1e-9, 1e-5 * np.log(2))
        return [search.lowest(search.fit(()), k, **DEEP).value for k in (12, 2)]

    ours, twin = values(), by_numpy(values)
    assert ours[0] < 1e-5
    assert twin[0] < 1e-5
    np.testing.assert_allclose(ours[1], twin[1], rtol=1e-6)


@pytest.mark.usefixtures("code")
def test_add_drop_moves_lead_lower():
    X, y = classes(23, n=40, d=24, k=6, noise=0.5)

    def value(add_drop):
        search = RefitSearch(LinearModel(X, y, loss="logistic", l2=1e-3), NO_COLUMNS, 1e-9)
        return search.lowest(search.fit(()), 5, nearby=1.0, add_drop=add_drop).value

    assert value((0.5, 1.0)) < value(()) - 1e-6


@pytest.mark.parametrize("seed", [0, 3])
def test_replacements_lead_lower(monkeypatch, seed):
    use_numpy(monkeypatch)
    X, y = classes(seed, n=40, d=24, k=6, noise=0.5)

    def value():
        search = RefitSearch(LinearModel(X, y, loss="logistic", l2=1e-3), NO_COLUMNS, 1e-9)
        return search.lowest(search.fit(()), 5, nearby=1.0, add_drop=()).value

    with_them = value()
    monkeypatch.setattr(RefitSearch, "_replacements", lambda *_: iter(()))
    assert with_them < value() - 1e-6


def test_weights_offset_and_free_columns_count():
    X, y = classes(27)
    rng = np.random.default_rng(0)
    weights, offset = rng.integers(0, 3, 30).astype(float), 0.5 * rng.standard_normal(30)
    X[:, 0] = 1.0
    objective = LinearModel(X, y, loss="logistic", l2=1e-3, sample_weight=weights, offset=offset)
    run = solve(objective, 3, "thorough", free=(0,))
    assert run.w[0] != 0
    search = RefitSearch(objective, np.array([0]), 0.0)
    best = min(search.fit((0, *chosen)).value for chosen in combinations(range(1, 16), 3))
    np.testing.assert_allclose(run.value, best, rtol=1e-4)


@pytest.mark.usefixtures("code")
def test_a_search_ends_when_its_work_is_done(monkeypatch):
    X, y = classes(3, n=60, d=30, k=8)
    model = LinearModel(X, y, loss="logistic", l2=1e-3)

    def lowest(most_work):
        monkeypatch.setattr(refit_search, "_MOST_WORK", most_work)
        search = RefitSearch(model, NO_COLUMNS, 1e-9)
        return search.lowest(search.fit(range(8)), 8, **DEEP).value

    values = [lowest(work) for work in (0.0, 1e5, 1e9)]
    assert values[0] > values[1] > values[2]


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_search_ends_near_the_lower_bound(monkeypatch, seed):
    """Where classes are separated, each refit would take many steps towards infinity."""
    X, y = classes(seed, noise=0.0)
    objective = LinearModel(X, y, loss="logistic", l2=1e-9)
    separated = 1e-5 * np.log(2)
    assert minimize(objective, Sparsity(6), WorkingSet(effort="thorough")).value < separated
    use_numpy(monkeypatch)
    search, whole = RefitSearch(objective, NO_COLUMNS, 1e-9, separated), RefitSearch(objective, NO_COLUMNS, 1e-9)
    assert search.lowest(search.fit(()), 6, **DEEP).value < separated
    whole.lowest(whole.fit(()), 6, **DEEP)
    assert len(search._fits) < len(whole._fits) / 2


@compiled
def test_a_singular_hessian_is_left_to_numpy():
    """The kernel does not solve singular systems: two equal columns, both of which are always chosen."""
    X, y = classes(1)
    X[:, 5] = X[:, 4]
    search = RefitSearch(LinearModel(X, y, loss="logistic"), np.array([4, 5]), 1e-9)
    start = search.fit((4, 5))
    twin = by_numpy(lambda: RefitSearch(LinearModel(X, y, loss="logistic"), np.array([4, 5]), 1e-9))
    found, expected = search.lowest(start, 2, **DEEP), by_numpy(twin.lowest, twin.fit((4, 5)), 2, 1.6, (0.5, 1.0))
    assert {4, 5} < set(found.chosen)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)


# --- the compiled kernel against its NumPy twin ----------------------------------------------------------------------


def drawn(seed, n, m, kind, loss=LOSSES[0]):
    """Return a model of m columns."""
    rng = np.random.default_rng(seed)
    X, y = classes(seed, n, m, k=min(3, m), rho=rng.choice([0.0, 0.9]), noise=rng.choice([0.5, 3.0]))
    weights = rng.integers(0, 3, n).astype(float) if "weights" in kind else np.ones(n)
    weights[:2] += 1.0
    largest = 30.0 if loss.curvature_bound < np.inf else 3.0
    offset = rng.choice([0.3, largest]) * rng.standard_normal(n) if "offset" in kind else None
    if loss.classifies:
        y = 0.8 * y + 0.1 if "probabilities" in kind else y
        y = y if loss == Logistic() else 2 * y - 1
    else:
        y = loss.example_target(0.5 * X[:, 0] + (0.0 if offset is None else offset), rng)
    l2 = 10.0 ** rng.uniform(-3, 0, m) if "ridges" in kind else 0.01
    return LinearModel(X, y, loss=loss, sample_weight=weights, offset=offset, l2=l2)


kinds = st.sets(st.sampled_from(["weights", "offset", "probabilities", "ridges"]))
seeds, sizes, losses = st.integers(0, 10**6), st.integers(1, 60), st.sampled_from(LOSSES)


def some_columns(seed, m):
    """Return some of m places, increasing."""
    rng = np.random.default_rng(seed)
    return sorted(rng.choice(m, rng.integers(0, min(m, 21)), replace=False).tolist())


EXTREME = np.concatenate([np.linspace(-50.0, 50.0, 99), np.logspace(-12, 300, 61), -np.logspace(-12, 300, 61), [0.0]])
"""Predictions at which exponentials vanish, overflow or cancel."""


@slow_beyond(12)
@compiled
@pytest.mark.parametrize(("loss", "y"), [(loss, y) for loss in LOSSES for y in HOSTILE[loss]], ids=str)
def test_the_compiled_loss_is_that_of_numpy_to_rounding(loss, y):
    """The value of no columns is the mean loss of the offset, here of one example after the other."""
    near = np.log(y) + np.linspace(-1.5, 1.5, 31) if y > 0 else []  # where terms cancel
    u = np.concatenate([EXTREME, near])
    targets = np.full(u.size, y)
    with np.errstate(all="ignore"):
        expected, slope, curvature = (of(targets, u) for of in (loss.value, loss.gradient, loss.curvature))
        terms = np.abs(expected) + np.abs(slope * u) + abs(y) * (1 + abs(np.log(y if y > 0 else 1.0)))
    for i in range(u.size):
        one = loss.prepare(targets[:1], np.ones(1))
        value = refit(np.empty((1, 0)), one, u[i : i + 1], np.empty(0), np.empty(0))[2]
        close = 0.0 if loss == Logistic() or not np.isfinite(terms[i]) else 4e-15 * terms[i]
        np.testing.assert_allclose(value, expected[i], rtol=2e-15, atol=close + 1e-300, err_msg=str(u[i]))
    small = np.flatnonzero(np.abs(u) < 100)  # the columns of the identity show slopes and curvatures
    search = RefitSearch(LinearModel(np.eye(small.size), targets[small], loss, offset=u[small]), NO_COLUMNS, 0.0)
    scores = search.scores(search.fit(()))
    np.testing.assert_allclose(
        -scores.slope * small.size, slope[small], rtol=1e-13, atol=1e-14 * np.max(terms[small] + abs(slope[small]))
    )
    curved = curvature[small] > 1e-300  # of full precision
    assert (scores.unexplained[curvature[small] == 0.0] == np.inf).all()
    np.testing.assert_allclose(scores.unexplained[curved] * small.size, curvature[small][curved], rtol=1e-13)


@compiled
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("u", [np.nan, np.inf, -np.inf])
def test_a_prediction_that_is_not_finite_has_no_finite_loss(loss, u):
    y = np.full(1, HOSTILE[loss][1])
    with np.errstate(all="ignore"):
        expected = loss.value(y, np.array([u]))[0]
    value = refit(np.empty((1, 0)), loss.prepare(y, np.ones(1)), np.array([u]), np.empty(0), np.empty(0))[2]
    assert not np.isfinite(value)
    assert not np.isfinite(expected)
    assert np.isnan(value) == np.isnan(expected) or loss != Logistic()


@compiled
@draws(200)
@given(seeds, sizes, sizes, kinds, losses, st.booleans())
def test_compiled_refits_agree_with_numpy(seed, n, m, kind, loss, bounded):
    f, chosen = drawn(seed, n + 2, m, kind, loss), some_columns(seed, m)
    rng = np.random.default_rng(seed)
    Z, offset, l2 = f.design.dense()[:, chosen], f.offset, np.broadcast_to(f.l2, m)[chosen]
    start = rng.choice([0.0, 1.0, 5.0]) * rng.standard_normal(len(chosen))  # from 20 not all end within the limit
    before, bounds = start.copy(), draw_bounds(rng, len(chosen)) if bounded else None
    ours = refit(Z, f.mean_loss, offset, l2, start, bounds)
    np.testing.assert_array_equal(start, before)
    for one, twin in zip(ours, by_numpy(refit, Z, f.mean_loss, offset, l2, start, bounds), strict=True):
        np.testing.assert_allclose(one, twin, rtol=1e-9, atol=1e-9)


@compiled
@draws(200)
@given(seeds, sizes, sizes, kinds, losses)
def test_compiled_scores_agree_with_numpy(seed, n, m, kind, loss):
    search, chosen = RefitSearch(drawn(seed, n + 2, m, kind, loss), NO_COLUMNS, 0.0), some_columns(seed, m)
    fit = search.fit(chosen)
    ours, twin = search.scores(fit), by_numpy(search.scores, fit)
    np.testing.assert_array_equal(ours.unexplained == np.inf, twin.unexplained == np.inf)
    for name in ("coef", "inverse", "slope", "unexplained", "regressions"):
        expected = getattr(twin, name)
        scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
        np.testing.assert_allclose(getattr(ours, name), expected, rtol=1e-9, atol=1e-9 * scale, err_msg=name)


@compiled
@draws(50)
@given(seeds, st.integers(20, 60), st.integers(1, 40), kinds, losses, st.integers(1, 6), st.booleans(), st.booleans())
def test_the_search_is_the_same_without_the_kernel(seed, n, m, kind, loss, k, deep, bounded):
    f = drawn(seed, n, m, kind, loss)
    bounds = draw_bounds(np.random.default_rng(seed), m, 0.5) if bounded else None

    def found():
        search = RefitSearch(f, np.array([seed % m]), 1e-9, bounds=bounds)
        start = search.fit((seed % m,))
        return search.lowest(start, k, **DEEP) if deep else search.reached(start, k, 2.0)[0]

    ours, twin = found(), by_numpy(found)
    np.testing.assert_allclose(ours.value, twin.value, rtol=1e-9)
    if ours.chosen == twin.chosen:
        np.testing.assert_allclose(ours.coef, twin.coef, rtol=1e-7, atol=1e-9)


@pytest.mark.usefixtures("code")
def test_a_refit_without_curvature_goes_on_by_the_bound():
    """Saturated losses have no curvature, but a gradient: the step is that of the largest second derivative."""
    X, y = classes(6)
    start, mean_loss = np.full(3, 1e4), Logistic().prepare(y, np.full(30, 1 / 30))
    assert not mean_loss.inner_hessian(X[:, :3] @ start).diagonal.all()
    coef, prediction, value = refit(X[:, :3], mean_loss, None, np.zeros(3), start)
    assert value < mean_loss.value(X[:, :3] @ start)
    np.testing.assert_allclose(prediction, X[:, :3] @ coef, rtol=1e-12)


@pytest.mark.usefixtures("code")
def test_a_refit_stays_where_products_overflow():
    X, y = classes(6)
    start = np.full(3, 1e304)
    with np.errstate(all="ignore"):
        coef, prediction, value = refit(
            X[:, :3] * 1e300, Logistic().prepare(y, np.full(30, 1 / 30)), None, np.zeros(3), start
        )
    np.testing.assert_array_equal(coef, start)
    assert prediction.shape == (30,)
    assert not np.isfinite(value)


@pytest.mark.parametrize(
    ("loss", "seed"), list(product([Huber(0.05), Huber(0.3), Quantile(0.3, 0.1), Quantile(0.5, 0.02)], range(4)))
)
def test_repeated_rows_are_refitted_like_weights_where_few_have_curvature(loss, seed):
    """Rounding says whether a singular Hessian is regular, and must not say where a refit leads."""
    rng = np.random.default_rng(seed)
    Z, count = rng.standard_normal((12, 6)), rng.integers(1, 5, 12)
    y = Z @ rng.standard_normal(6) + rng.standard_cauchy(12)
    weights, repeated = count / count.sum(), np.full(count.sum(), 1 / count.sum())
    null, none = loss.prepare(y, weights), np.zeros(6)
    assert np.count_nonzero(null.inner_hessian(np.zeros(12)).diagonal) < 6
    one, _, value = refit(Z, null, None, none, none)
    other = refit(Z.repeat(count, axis=0), loss.prepare(y.repeat(count), repeated), None, none, none)[0]
    assert value < null.value(np.zeros(12))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@compiled
@draws(200)
@given(seeds, st.integers(5, 60), st.integers(1, 30), kinds, losses, st.sampled_from([1, 8, 30]), st.floats(-1.0, 2.0))
def test_compiled_steps_lead_where_refine_does(seed, n, m, kind, loss, rounds, share):
    """`share` of the possible decrease is asked for: refits that cannot reach it are abandoned."""
    f, chosen = drawn(seed, n, m, kind, loss), some_columns(seed, m)
    w = np.zeros(m)
    size = 1.0 if loss.curvature_bound < np.inf else 0.2  # exponentials of large numbers leave the Hessian singular
    w[chosen] = size * np.random.default_rng(seed).standard_normal(len(chosen))
    constraint = Sparsity(len(chosen))
    start = constraint.project(w)
    options = {"rounds": rounds, "tol": 1e-12}
    lowest = refine(f, constraint, start, cg_iterations=0, rounds=30, tol=1e-12).value
    options["below"] = np.inf if share > 1 else f.value(w) - share * (f.value(w) - lowest)
    ours, twin = (
        refit_to_the_end(f, constraint, start, **options),
        refine(f, constraint, start, cg_iterations=0, **options),
    )
    np.testing.assert_array_equal(start.point, w)
    assert (ours.minimal, ours.abandoned) == (twin.minimal, twin.abandoned)
    np.testing.assert_allclose(ours.value, twin.value, rtol=1e-9)
    np.testing.assert_allclose(ours.projection.point, twin.projection.point, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(ours.projection.support.indices, twin.projection.support.indices)
    np.testing.assert_allclose(ours.prediction, f.predict(ours.projection.point), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("columns", "dtype", "entries"),
    [([0, 1, 2], np.float64, 89), ([0, 1, 2], np.float32, 90), ([0, 1, 1], np.float64, 90)],
    ids=["many entries", "single precision", "dependent columns"],
)
def test_other_refits_are_those_of_refine(columns, dtype, entries, monkeypatch):
    monkeypatch.setattr(refits, "_COMPILED_ENTRIES", entries)
    X, y = classes(7, noise=1.0)
    f, constraint = LinearModel(X[:, columns].astype(dtype), y.astype(dtype), loss="logistic"), Sparsity(3)
    start = constraint.project(np.array([1.0, -1.0, 0.5], dtype=dtype))
    ours = refit_to_the_end(f, constraint, start, rounds=30, tol=1e-9)
    twin = refine(f, constraint, start, cg_iterations=0, rounds=30, tol=1e-9)
    np.testing.assert_array_equal(ours.projection.point, twin.projection.point)
    assert ours.projection.point.dtype == dtype
    assert ours.minimal


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_more_columns_that_separate_the_classes_do_not_end_the_search(code, seed):
    """With four times as many columns f is zero; the sweeps still come back from there."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 60))
    y = (X[:, 0] - X[:, 1] + X[:, 2] + 1.5 * rng.standard_normal(40) > 0).astype(float)
    values = []
    for nearby in (1.0, 4.0):
        search = RefitSearch(LinearModel(X, y, loss="logistic"), NO_COLUMNS, 1e-8, separated=1e-5)
        values.append(search.lowest(search.fit(()), 3, nearby, ()).value)
    assert values[1] <= values[0] * (1 + 1e-6)
    assert values[1] > 1e-3
