"""The benchmark's own computations: the optimum by enumeration, the designs, the kept answers, the table of goals."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import RowSparsity
from hardthresh.objectives import MultiOutputModel

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark, which are not part of any package."""
    sys.path.insert(0, str(FOLDER))
    try:
        from benchmark_utils import enumeration, problem, refit, spec
        from runner import goals, quality, tasks

        yield SimpleNamespace(
            enumeration=enumeration, problem=problem, refit=refit, spec=spec, goals=goals, quality=quality, tasks=tasks
        )
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_enumeration_finds_the_least_residual(bench, rho):
    for seed in range(5):
        X, y, _ = bench.spec.correlated(20, 8, 3, "blocks", rho, 0.5, "squared", seed, block=4)
        residuals = {s: np.linalg.lstsq(X[:, s], y, rcond=None)[1][0] for s in combinations(range(8), 3)}
        assert tuple(bench.enumeration.best_subset(X, y, 3)) == min(residuals, key=residuals.get)


def test_columns_of_a_block_have_the_correlation_and_others_have_none(bench):
    X, _, _ = bench.spec.correlated(20000, 30, 3, "blocks", 0.8, 1.0, "squared", 0)
    correlation, same = np.corrcoef(X.T), np.kron(np.eye(3), np.ones((10, 10)))
    np.testing.assert_allclose(correlation, 0.8 * same + 0.2 * np.eye(30), atol=0.04)  # 5 standard errors of 20000 rows


def test_signal_to_noise_ratio_of_a_regression(bench):
    X, y, support = bench.spec.correlated(20000, 30, 3, "ar1", 0.9, 3.0, "squared", 0)
    residual = y - X[:, support] @ np.linalg.lstsq(X[:, support], y, rcond=None)[0]
    assert y.var() / residual.var() - 1.0 == pytest.approx(3.0, rel=0.05)


def test_signal_to_noise_ratio_of_two_classes(bench):
    X, y, support = bench.spec.correlated(20000, 30, 3, "ar1", 0.5, 3.0, "logistic", 0)
    f = X[:, support] @ np.linalg.lstsq(X[:, support], y - y.mean(), rcond=None)[0]
    # the variance of the predictor is 3 times that of the logistic distribution, so its standard deviation is pi
    order = np.argsort(f)
    share = y[order].reshape(100, -1).mean(axis=1)
    log_odds = np.log((share + 1e-2) / (1 - share + 1e-2))
    assert log_odds[10:90].std() == pytest.approx(np.pi * _trimmed_spread(), rel=0.15)


def _trimmed_spread():
    """Return the standard deviation of the middle 80 % of a normal distribution."""
    draws = np.sort(np.random.default_rng(0).standard_normal(10000))
    return draws[1000:9000].std()


class Counting:
    """An entrant that counts how often it is asked."""

    label, edition, key = "peer", "1.0", "peer 1.0"

    def __init__(self):
        self.asked = 0

    def solve(self, problem):
        self.asked += 1
        return np.array([0, problem.k])


def test_answers_of_peers_are_kept_until_the_data_or_the_edition_change(bench, tmp_path):
    X, y, _ = bench.spec.correlated(30, 6, 2, "ar1", 0.5, 1.0, "squared", 0)
    problem, other = (bench.problem.Problem(X, target, "squared", 2) for target in (y, y + 1.0))
    peer = Counting()
    for cache in (bench.quality.Cache(tmp_path), bench.quality.Cache(tmp_path)):
        assert list(cache.solve(peer, problem, "an instance")) == [0, 2]
    assert peer.asked == 1
    cache.solve(peer, other, "an instance")
    assert peer.asked == 2
    peer.key = "peer 2.0"
    cache.solve(peer, other, "an instance")
    assert peer.asked == 3
    peer.edition = None  # ours: never kept
    cache.solve(peer, other, "an instance")
    cache.solve(peer, other, "an instance")
    assert peer.asked == 5


def _row(family, loss, **value):
    return {"family": family, "loss": loss, "value": {"default": 1.0, "thorough": 1.0, **value}}


def test_shares_of_the_table_count_ties_and_leave_out_others(bench):
    tie = 1.0 - 1e-10
    found = bench.goals.Findings(
        objectives=[
            _row("real", "squared", abess=tie),
            _row("real", "squared", abess=2.0, restarts=0.5),
            _row("real", "logistic", abess=0.5),
            _row("simulated", "squared", abess=2.0),
        ],
        optima=[{"value": {"default": 1.0, "optimum": tie}}, {"value": {"default": 1.0, "optimum": 0.99}}],
    )
    assert found.best("real") == pytest.approx(1 / 3)
    assert found.best("simulated") == 1.0
    assert found.not_above("real", "squared") == 1.0  # restarts are ours
    assert found.not_above("real", "logistic") == 0.0
    assert found.optimum() == 0.5


def test_every_race_that_a_goal_reads_is_run_and_counts(bench):
    races = bench.goals.races((0,))
    row = {"instance": "", "ratio": 1e9, "user_ratio": 1e9, "passes": 0.0, "ours": 1.0, "peer": 1e9}
    shares = {"objectives": [_row("real", "squared"), _row("real", "logistic"), _row("simulated", "squared")]}
    shares["objectives"] += [_row("simulated", "logistic", abess=2.0)]
    full = bench.goals.Findings(
        {race.name: [row] for race in races}, optima=[{"value": {"default": 1.0, "optimum": 1.0}}]
    )
    full.objectives = [{**r, "value": {"abess": 2.0, **r["value"]}} for r in shares["objectives"]]
    lines = bench.goals.table(full).rows
    assert [line[0] for line in lines if "-" in line[3]] == []
    assert {line[4] for line in lines} == {"yes", ""}  # "" where there is no goal
    assert {line[3] for line in bench.goals.table(bench.goals.Findings()).rows} == {""}


def test_a_goal_that_is_missed_is_not_reached(bench):
    found = bench.goals.Findings({"passes": [{"passes": 6.1}], "sparse": [{"ratio": 11.9}], "real": [{"ratio": 2.0}]})
    verdicts = {line[0]: line[4] for line in bench.goals.table(found).rows}
    assert verdicts["passes of time per fit at 5000x40000"] == "no"
    assert verdicts["sparse 20000x100000, celer's path / ours"] == "no"
    assert verdicts["real small tables, abess / ours: median; min"] == "1 of 2"


def test_seeds_and_designs_take_turns(bench):
    fixed = next(race for race in bench.goals.races(tuple(range(10))) if race.name == "100x200")
    drawn = [(i.parameters["rho"], i.parameters["snr"], i.parameters["seed"]) for i in fixed.instances]
    assert len(drawn) == 10
    assert {(rho, snr) for rho, snr, _ in drawn} == set(bench.goals.DESIGNS)
    assert [seed for *_, seed in drawn] == list(range(10))


def test_simulated_instances_have_different_names(bench):
    titles = [(i.title, i.parameters["seed"]) for _, i in bench.quality.simulated((0, 1))]
    assert len(titles) == len(set(titles)) == 2 * 44


@pytest.mark.parametrize(("kind", "n", "d", "k"), [("random", 100, 300, 5), ("pulses", 120, 100, 7)])
def test_recovery_problems(bench, kind, n, d, k):
    settings = {"kind": kind, "n": n, "d": d, "k": k, "rho": 0.0, "seed": 1}
    data = bench.tasks.Instance("fixed", "recovery", settings).dataset().get_data()
    X, y, truth = data["X"], data["y"], data["truth"]
    assert X.shape == (n, d)
    assert truth.size == k
    np.testing.assert_allclose(np.linalg.norm(X, axis=0), 1.0)
    unexplained = y - X[:, truth] @ np.linalg.lstsq(X[:, truth], y, rcond=None)[0]
    assert 5 < (y @ y) / (unexplained @ unexplained) < 25  # the signal-to-noise ratio is 10


@pytest.mark.parametrize("loss", ["multi_task", "multinomial"])
def test_the_refit_of_several_outputs_is_the_minimum_of_our_objective(bench, loss):
    X, y, support = bench.spec.several_outputs(120, 20, 3, 0.5, loss, 1)
    problem = bench.problem.Problem(X, y, loss, 3, intercept=True)
    ridge = np.r_[np.full(3, problem.ridge if loss == "multinomial" else 0.0), 0.0]
    model = MultiOutputModel(np.column_stack([X[:, support], np.ones(120)]), y, loss, l2=ridge)
    value = minimize(model, RowSparsity(3, free=(3,)), tol=1e-13).value
    expected = 240 * value / np.sum(y * y) if loss == "multi_task" else value
    np.testing.assert_allclose(bench.refit.objective(problem, support), expected, rtol=1e-9)
