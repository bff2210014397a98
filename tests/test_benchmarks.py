"""The benchmark's own computations: the optimum by enumeration, the designs, the kept answers, the table of goals."""

from __future__ import annotations

import importlib
import json
import runpy
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import RowSparsity
from hardthresh.objectives import MultiOutputModel
from levels import only_at

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


@only_at("pairs")
def test_all_kinds_of_files_hold_the_same_rows(tmp_path):
    """The benchmark of files: sums over files of any kind have the same bits, and nothing is left of them."""
    code = [sys.executable, str(FOLDER / "scale.py"), "--task", "formats", "--rows", "20", "--folder", str(tmp_path)]
    settings = ["--seeds", "5", "--gb", "1"]  # of other tasks, which have none here
    code += ["--table", str(tmp_path / "t"), *settings]
    run = subprocess.run(code, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    machine, *rows = map(json.loads, run.stdout.splitlines())
    assert machine["task"] == "machine"
    digests = {row["digest"] for row in rows if "skipped" not in row and "sparse" not in row["case"]}
    assert len(digests) == 1
    assert {row["readers"] for row in rows if "skipped" not in row} == {1, 4}
    assert (tmp_path / "t.jsonl").read_text() == run.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.jsonl", "t.md"]


def row_of_parquet(speed):
    return {"task": "formats", "case": "parquet plain", "readers": 4, "gb_per_s": speed, "gb_per_cpu_s": 0.9}


def said_of(start, rows):
    """Return what the table of checks measured, and whether it says that the check is met, for the line of a check."""
    machine = {"task": "machine", "measures": [], "processor": "p", "processors": 4, "memory_gb": 24.0}
    checks = importlib.import_module("scaling.checks")
    [line] = [line for line in checks.table_of([machine, *rows]).splitlines() if start in line]
    cells = [cell.strip() for cell in line.split("|")]
    return cells[3], cells[4]


def row_of_readings(median=4.0, most=7, certificate=2, **more):
    return {"task": "readings", "case": "c", "median": median, "most": most, "certificate": certificate, **more}


def row_of_dask(case, **found):
    return {"task": "dask", "case": case, **found}


def rows_of_bits(squared, logistic):
    found = (("squared", squared), ("logistic", logistic))
    return [row_of_dask(f"fit, {loss}, {place} workers", bits=b) for loss, all in found for place, b in enumerate(all)]


def rows_of_disc(ours, theirs):
    cases = [("reading 1", 9.0), *(("reading 2, 4 threads", speed) for speed in ours), ("dd iflag=direct", theirs)]
    return [{"task": "disc", "case": case, "gb_per_s": speed} for case, speed in cases]


def rows_of_others(ours, *others):
    cases = zip(("hardthresh", "xgboost.dask, 20 trees", "dask-ml, lbfgs"), (ours, *others), strict=False)
    return [row_of_dask(f"{case}, 100000 x 100", cpu_s=seconds - 1.0, workers_cpu_s=1.0) for case, seconds in cases]


READINGS, PATHS, BITS = "4 readings in the median", "folds over 1..30", "the same bits"
TINY, LOOK, FIT = "512 tiny blocks", "look by a worker", "fit by a worker"
DISC, OTHERS = "second reading of a raw file", "logistic fit of 100,000 x 100"


@pytest.mark.parametrize(
    ("check", "rows", "measured", "met"),
    [
        (READINGS, [row_of_readings(), row_of_readings(3.0, 5)], "4 in the median, 7 at most; certificate 2", "yes"),
        (READINGS, [row_of_readings(), row_of_readings(4.5)], "4.5 in the median", "no"),
        (READINGS, [row_of_readings(most=8), row_of_readings()], "8 at most", "no"),
        (READINGS, [row_of_readings(certificate=3)], "certificate 3", "no"),
        (READINGS, [row_of_readings(), row_of_readings(9.0, 9, choice="cv")], "4 in the median", "yes"),
        (PATHS, [row_of_readings(most=m, choice=c) for c, m in (("cv", 6), ("path", 5))], "folds 6, paths 5", "yes"),
        (PATHS, [row_of_readings(most=m, choice=c) for c, m in (("cv", 7), ("path", 5))], "folds 7, paths 5", "no"),
        (PATHS, [row_of_readings(most=m, choice=c) for c, m in (("cv", 6), ("path", 6))], "folds 6, paths 6", "no"),
        (PATHS, [row_of_readings(most=6, choice="cv")], "not measured", ""),
        (READINGS, [row_of_readings(most=6, choice="cv")], "not measured", ""),
        (BITS, rows_of_bits("aa", "bb"), "squared: 1 of 2 fits; logistic: 1 of 2 fits", "yes"),
        (BITS, rows_of_bits("aab", "bb"), "squared: 2 of 3 fits; logistic: 1 of 2 fits", "no"),
        (BITS, rows_of_bits("aa", "bc"), "squared: 1 of 2 fits; logistic: 2 of 2 fits", "no"),
        (BITS, rows_of_bits("aa", "b"), "logistic: 1 of 1 fits", "no"),
        (BITS, rows_of_bits("aa", ""), "not measured", ""),
        (TINY, [row_of_dask("reading of 512 tiny blocks", best_s=0.4, tasks=92)], "0.40 s, 92 tasks", "yes"),
        (TINY, [row_of_dask("reading of 512 tiny blocks", best_s=0.41, tasks=92)], "0.41 s, 92 tasks", "no"),
        (TINY, [row_of_dask("reading of 512 tiny blocks", best_s=0.4, tasks=93)], "0.40 s, 93 tasks", "no"),
        (LOOK, [row_of_dask(f"look, {n} workers", best_s=s) for n, s in ((1, 3.3), (4, 1.0))], "0.82", "yes"),
        (LOOK, [row_of_dask(f"look, {n} workers", best_s=s) for n, s in ((1, 3.1), (4, 1.0))], "0.78", "no"),
        (
            LOOK,
            [row_of_dask(f"look, {n} workers", best_s=s) for n, s in ((1, 3.3), (3, 1.4), (8, 1.2))],
            "with 3",
            "no",
        ),
        (LOOK, [row_of_dask(f"look, {n} workers", best_s=3.3) for n in (1, 8)], "not measured", ""),
        (LOOK, [row_of_dask("look, 1 workers", best_s=3.3)], "not measured", ""),
        (FIT, [row_of_dask(f"fit in memory, {n} workers", wall_s=s) for n, s in ((1, 2.7), (4, 1.0))], "0.68", "yes"),
        (FIT, [row_of_dask(f"fit in memory, {n} workers", wall_s=s) for n, s in ((1, 2.5), (4, 1.0))], "0.62", "no"),
        (DISC, rows_of_disc([1.0, 1.75], 2.0), "0.88 (1.75 and 2.00 GB/s)", "yes"),
        (DISC, rows_of_disc([1.0, 1.65], 2.0), "0.82 (1.65 and 2.00 GB/s)", "no"),
        (OTHERS, rows_of_others(1.9, 5.1, 28.8), "hardthresh 1.9, xgboost.dask 5.1, dask-ml 28.8 CPU s", "yes"),
        (OTHERS, rows_of_others(5.2, 5.1, 28.8), "hardthresh 5.2, xgboost.dask 5.1, dask-ml 28.8 CPU s", "no"),
        (OTHERS, rows_of_others(5.2, 5.1), "hardthresh 5.2, xgboost.dask 5.1 CPU s", "no"),
        (OTHERS, rows_of_others(1.9, 2.1), "hardthresh 1.9, xgboost.dask 2.1 CPU s", "yes"),
        (OTHERS, rows_of_others(1.9), "not measured", ""),
    ],
)
def test_each_check_of_the_design_can_pass_and_fail(bench, check, rows, measured, met):
    """Checks 3, 4, 7, 8 and 9 of scale.md, and that of other packages: each just met, and each just missed."""
    said, verdict = said_of(check, rows)
    assert measured in said
    assert verdict == met


def test_a_check_does_not_count_what_failed(bench):
    """As the second number of workers, which fails before anything is measured."""
    rows = [row_of_dask("look, 1 workers", best_s=3.3), row_of_dask("look, 4 workers", failed="why")]
    assert said_of(LOOK, rows) == ("not measured", "")
    assert said_of(READINGS, [row_of_readings(), row_of_readings(9.0, skipped="why")])[1] == "yes"


@pytest.mark.parametrize(("rows", "said"), [([0.9], "no"), ([1.1], "yes"), ([], "")])
def test_checks_of_the_design_are_beside_what_was_measured(bench, rows, said):
    machine = {"task": "machine", "measures": [], "processor": "p", "processors": 4, "memory_gb": 24.0}
    checks = importlib.import_module("scaling.checks")
    table = checks.table_of([machine, *map(row_of_parquet, rows), {"task": "dask", "case": "c", "failed": "why"}])
    [line] = [line for line in table.splitlines() if "Parquet with 4 readers" in line]
    assert [cell.strip() for cell in line.split("|")][4] == said
    assert table.endswith("* dask, c: why\n")


def test_a_task_that_is_measured_again_leaves_the_rows_of_others(bench, tmp_path):
    scale, checks = importlib.import_module("scale"), importlib.import_module("scaling.checks")
    here = {"task": "machine", "processor": "a", "processors": 4, "memory_gb": 24.0}
    rows = [
        here | {"measures": ["formats", "disc"]},
        row_of_parquet(1.0) | {"load": [1.0, 2.5]},
        *rows_of_disc([1.0], 2.0),
        here | {"measures": ["dask"]},
        row_of_dask("look, 1 workers"),
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert scale.others(path, ["disc", "dask"]) == rows[:2]  # that of the machine still says where files were read
    assert scale.others(path, ["dask"]) == rows[:-2]
    assert scale.others(tmp_path / "none", ["dask"]) == []
    again = {"task": "machine", "measures": ["disc"], "processor": "b", "processors": 2, "memory_gb": 8.0}
    table = checks.table_of([*rows[:2], again]).splitlines()
    assert table[:2] == [
        "* formats: a, 4 processors, 24.0 GB; load 1.0 to 2.5",
        "* disc: b, 2 processors, 8.0 GB; no load was taken",
    ]


def disc_row(loss, gb, memory, exact=True):
    return {
        "task": "disc", "case": f"fit, {loss}", "gb": gb, "limit_mb": 1500, "anonymous_mb": memory,
        "support_exact": exact,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("squared", 2, 150.0), ("squared", 4, 170.0)], "yes"),
        ([("squared", 2, 190.0), ("squared", 4, 201.0)], "no"),
        ([("squared", 4, 125.0), ("squared", 2, 100.0)], "no"),
        ([("squared", 2, 100.0), ("logistic", 4, 150.0)], "yes"),
        ([("squared", 2, 100.0), ("squared", 4, 100.0, False)], "no"),
        ([("squared", 2, 100.0)], "no"),
    ],
)
def test_the_check_of_memory_compares_memory(bench, rows, said):
    """Check 5 of scale.md: at most 200 MB, and 1.2 times as much for a file twice as long."""
    assert said_of("| 5 |", [disc_row(*row) for row in rows])[1] == said


@only_at("pairs")
def test_the_benchmark_of_devices_rehearses_without_one(capsys, tmp_path):
    """Check 13 of scale.md: it runs on the CPU, says so, and judges nothing."""
    pytest.importorskip("torch", reason="torch is not installed")
    kept = tmp_path / "lines.jsonl"
    settings = ["--n", "400", "--d", "90", "--k", "2", "--repeats", "1", "--batch", "50", "--json", str(kept)]
    module = runpy.run_path(str(FOLDER / "gpu.py"))
    module["main"](settings)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [json.loads(line) for line in kept.read_text().splitlines()] == lines
    each = ["copy", "X'r", *["fit"] * 4, "minibatch", *["difference from NumPy"] * 4]
    assert [line["what"] for line in lines] == 2 * each
    assert [line["dtype"] for line in lines] == ["float32"] * len(each) + ["float64"] * len(each)
    assert {line["device"] for line in lines} == {"cpu: no GPU was used"}
    assert all(line["found"] for line in lines if "found" in line)
    assert all(line["share"] > 0 for line in lines if line["what"] in ("X'r", "fit", "minibatch"))
    assert all(line["relative"] <= 1e-5 for line in lines if line["what"] == "difference from NumPy")
    assert not any("goal" in line for line in lines)
    judged = module["judged"]
    assert judged({"what": "fit", "share": 0.6}) == {"goal": 0.7, "met": False}
    assert judged({"what": "difference from NumPy", "relative": 0.0, "found": False})["met"] is False
    assert judged({"what": "copy"}) == {}
