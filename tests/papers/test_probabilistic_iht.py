"""The experiments of *Probabilistic IHT* (Bergamaschi et al. 2025): what their rows are made of, in small."""

import gzip
from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from hardthresh.cli.reproduce import load_runner
from hardthresh.constraints import Sparsity
from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets import DatasetError
from hardthresh.objectives import GraphicalModel
from hardthresh.solvers import CoordinateVote, ExponentialBatch, FixedBatch, FullBatch
from hardthresh.steps import Polyak, SparsePolyak
from levels import only_at

PAPERS = Path(__file__).parents[2] / "papers"


@pytest.fixture(scope="module")
def library():
    return load_runner(PAPERS).Library(PAPERS)


def part(library, name):
    """Return a script or a helper of the paper."""
    library.item("probabilistic_iht", "regression_tables")
    return import_module(f"papers.probabilistic_iht.{name}")


def test_settings_of_a_file_make_the_method(library):
    common = part(library, "_common")
    published = common.solver({})
    assert (published.alpha, published.delta_max, published.clip, published.refit) == (1.0, 10.0, "full", False)
    assert published.batch == FullBatch()
    ours = common.solver({"automatic": True, "clip": "stable", "batch": ["authors", 5, 9], "vote": ["coordinate", 0.2]})
    assert (ours.alpha, ours.batch, ours.vote) == (None, ExponentialBatch(5, 9), CoordinateVote(0.2))


def test_the_regression_data_are_those_of_the_specification(library, generators):
    common = part(library, "_common")
    for loss, kind in (("squared", "linear"), ("logistic", "logistic")):
        A, y, x = generators.sparse_regression_data(3, 30, 20, 4, 0.1, 0.5, kind)
        drawn = common.regression(3, 30, 20, 4, rho=0.5, loss=loss)
        w = np.linspace(-1.0, 1.0, 20)
        u = A @ w
        values = 0.5 * (u - y) ** 2 if loss == "squared" else np.log1p(np.exp(-y * u))
        assert drawn.objective.value(w) == pytest.approx(values.mean(), rel=1e-12)
        np.testing.assert_array_equal(drawn.truth, np.flatnonzero(x))
        assert drawn.best <= drawn.objective.value(x)


def test_a_run_ends_at_the_least_clipping_level(library):
    common = part(library, "_common")
    drawn = common.regression(1, 60, 40, 4)
    run, said = common.follow(drawn.objective, Sparsity(4), {}, 500, least=1e-6)
    assert run.history["delta"][-1] < 1e-6 <= run.history["delta"][-2]
    assert said["iterations"] == run.n_iter < 500
    assert said["samples"] == 3 * 60 * run.n_iter
    assert common.overlap(run.support.indices, drawn.truth) == 1.0
    assert common.overlap(np.array([0, 1]), np.array([1, 2])) == 0.5


def test_a_start_is_feasible_and_a_lasso_has_no_more_edges_than_wanted(library):
    graphs = part(library, "_graphs")
    W = graphs.random_start(12, 21, 0)
    assert np.count_nonzero(W) == 20  # an edge costs two
    assert (W == W.T).all()
    X, truth, edges = graphs.samples(8, "chain", 400, 0, 0)
    np.testing.assert_allclose([X.mean(axis=0), (X**2).mean(axis=0)], np.repeat([[0.0], [1.0]], 8, axis=1), atol=1e-12)
    assert edges.size == 7 == (np.count_nonzero(truth) - 8) / 2
    found, value = graphs.graphical_lasso_edges(X, 7)
    assert found.size <= 7
    assert np.isfinite(value)


@only_at("pairs")
@pytest.mark.parametrize("name", ["regression_tables", "graphs_tables"])
def test_a_made_up_result_has_the_fields_of_a_real_one(library, name):
    item = library.item("probabilistic_iht", name)
    small = {
        "regression_tables": {"data": {"n": 60, "d": 30, "k": 3}, "limit": 20},
        "graphs_tables": {"p": 8, "n": 40, "limit": 20},
    }
    seen = set()
    for cell in item.cells(False, 0):
        kind = (cell.arguments.get("table"), cell.arguments.get("part"), "rival" in str(cell.arguments))
        if kind in seen or cell.arguments.get("part") in ("synthetic", "elbow", "near"):
            continue
        seen.add(kind)
        given = {**cell.arguments, **small[name]}
        real, example = cell.function(**given), item.example(**given)
        assert real.keys() == example.keys()
        assert {*real["runs"][0]} <= {*example["runs"][0]} or name == "regression_tables"
        assert {*example["runs"][0]} <= {*real["runs"][0]}
    assert seen


@pytest.mark.parametrize("name", ["theory", "penalised_form", "regression_tables", "graphs_tables"])
def test_every_seed_draws_everything_anew(library, name):
    item = library.item("probabilistic_iht", name)
    cells = [cell.arguments for seed in (0, 1, 2) for cell in item.cells(False, seed)]
    per_seed = len(cells) // 3
    for one, other, third in zip(cells[:per_seed], cells[per_seed : 2 * per_seed], cells[2 * per_seed :], strict=True):
        drawn = [{*given["seeds"]} if "seeds" in given else {given["seed"]} for given in (one, other, third)]
        assert not drawn[0] & drawn[1]
        assert not drawn[1] & drawn[2]


@pytest.mark.parametrize("clip", ["full", "restricted", "stable"])
def test_trials_computed_anew_are_those_of_the_run(library, clip):
    theory, common = part(library, "theory"), part(library, "_common")
    drawn, states = common.regression(3, 60, 40, 4, rho=0.7), []
    common.follow(drawn.objective, Sparsity(4), {"clip": clip, "batch": ["fixed", 20]}, 60, seed=1, states=states)
    made = theory.iterations(states, clip)
    assert len(made) == len(states) - 1 == 60
    assert {one.accepted for one in made} == {True, False}
    for one, after in zip(made, states[1:], strict=True):
        np.testing.assert_allclose(after.w, one.trial if one.accepted else one.x, rtol=1e-12, atol=1e-15)


def test_inequalities_of_the_theory_by_hand(library):
    theory = part(library, "theory")
    x, g = np.array([1.0, 0.0]), np.array([0.0, -1.1])
    made = theory.Iteration(x, g, np.array([0.0, 1.1]), np.array([1]), 1.1, 1.0, 0.5, True)
    assert theory._descent(made) == pytest.approx(1.21 / 2.21)  # erratum 1
    assert made.drops
    assert made.restricted == pytest.approx(1.1)
    falling = {"gap": [1.0, 0.5, 0.6, 0.4], "delta": [0.5, 1.0, 0.2], "C": 1.0}
    assert theory._lemma_5({**falling, "trusted": [True, False, True]}) == pytest.approx(2.0)  # .5 / .25, and .2 / .04
    assert theory._lemma_5({**falling, "trusted": [False, True, False]}) == pytest.approx(-0.1)
    assert theory._share_of_sum([1.0, 0.1, 0.01, 0.001]) == 0.25
    assert theory._share_of_sum([1.0] * 100) == 0.99
    assert theory._smallest_L(np.array([0.0, 2.0, 0.0]), np.array([3.0, 0.0, -4.0])) == 2.0


def test_the_process_of_theorem_3_by_hand(library):
    process = part(library, "_process").Process(odds=10.0, zeta=5.0, c=0.4, gamma=2.0)
    assert process.fall(0.3, 1.0, 2.0) == pytest.approx(0.0)  # f falls by .3, the squared level grows by 3
    assert process.fall(0.0, 1.0, 0.5) == pytest.approx(0.75)  # (32), twice (38) and half of (36)
    assert (process.by_reduction(1.0), process.by_increase(1.0)) == pytest.approx((0.375, 1.5))
    assert process.by_gradient(3.0, 0.5) == pytest.approx(1.5)
    assert [process.is_first_case(size, 0.1) for size in (0.6, 0.4)] == [True, False]


def test_an_iteration_on_the_same_batches_is_that_of_the_run(library):
    common, process = part(library, "_common"), part(library, "_process")
    drawn, states, settings = common.regression(3, 60, 40, 4), [], {"batch": ["fixed", 20]}
    common.follow(drawn.objective, Sparsity(4), settings, 20, seed=1, states=states)
    given = (drawn.objective, Sparsity(4), common.solver(settings), states[7])
    same, other = process.iterate_anew(*given, seed=1), process.iterate_anew(*given, seed=2)
    np.testing.assert_allclose(same.w, states[8].w)
    assert (same.delta, same.ratio) == pytest.approx((states[8].delta, states[8].ratio))
    assert other.ratio != pytest.approx(states[8].ratio)


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_penalised_form_is_minimised_in_every_entry(library, l2):
    penalised = part(library, "_penalised")
    X = np.random.default_rng(2).standard_normal((20, 5)) @ np.triu(np.ones((5, 5)))
    f, S, penalties = GraphicalModel(X, l2=l2), X.T @ X / 20, [0.0, 0.05, 0.3, 1e6]
    found = penalised.penalised(S, penalties, l2=l2, tol=1e-12)
    assert [np.count_nonzero(W) for W in found] == sorted([np.count_nonzero(W) for W in found], reverse=True)
    assert np.count_nonzero(found[-1]) == 5
    for penalty, W in zip(penalties, found, strict=True):

        def total(W, penalty=penalty):
            return f.value(W) + penalty * np.count_nonzero(W)

        least = total(W)
        for i in range(5):
            for j in range(i + 1):
                for change in (-W[i, j] if i > j else 0.0, -1e-3, 1e-3, -0.3, 0.3):
                    V = W.copy()
                    V[i, j] = V[j, i] = W[i, j] + change
                    assert total(V) >= least - 1e-10


def test_the_least_values_of_small_graphs(library):
    penalised = part(library, "_penalised")
    X = np.random.default_rng(5).standard_normal((12, 3)) @ np.triu(np.ones((3, 3)))
    f, S, pairs = GraphicalModel(X), X.T @ X / 12, [(0, 1), (0, 2), (1, 2)]

    def best(chosen):
        def value(v):
            W = np.diag(np.exp(v[:3]))
            for entry, (i, j) in zip(v[3:], chosen, strict=True):
                W[i, j] = W[j, i] = entry
            return f.value(W)

        return scipy.optimize.minimize(value, np.zeros(3 + len(chosen)), tol=1e-12).fun

    twin = [min(best(chosen) for chosen in combinations(pairs, count)) for count in range(4)]
    assert penalised.lowest(f, S) == pytest.approx(twin, rel=1e-7)


def test_the_distance_from_the_references_by_hand(library):
    form = part(library, "penalised_form")
    paths = [
        {"part": "path", "method": form.REFERENCE, "runs": [{"values": [4.0, 2.0], "edges": [3, 7], "diagonal": 6.0}]},
        {"part": "path", "method": "paper", "runs": [{"values": [4.5, 1.0]}]},
    ]
    assert form._above(paths, "paper") == [[0.25, -0.25]]
    small = [
        {"part": "exact", "method": form.REFERENCE, "runs": [{"values": [6.0, 4.0, 2.0, 1.0], "reached": 1.0}]},
        {"part": "exact", "method": "paper", "runs": [{"values": [4.0, 3.0]}]},
    ]
    assert form._above(small, "paper") == [[0.0, 0.25]]


def test_penalties_reach_the_lower_hull(library):
    reachable = part(library, "_penalised").reachable
    assert reachable([4.0, 2.0, 1.0, 0.5]) == [True] * 4  # ever smaller falls
    assert reachable([4.0, 3.5, 1.0, 0.9]) == [True, False, True, True]
    falls = np.diff([9.0, 6.0, 5.9, 3.0, 2.0, 1.9])
    values = np.concatenate([[9.0], 9.0 + np.cumsum(falls)])
    wanted = {int(np.argmin(values + penalty * np.arange(6))) for penalty in np.linspace(0.0, 4.0, 4001)}
    assert {at for at, reached in enumerate(reachable([*values])) if reached} == wanted


@pytest.mark.parametrize("own_target", [False, True])
@pytest.mark.parametrize("rule", [Polyak(scale=2.0), SparsePolyak(scale=2.0)])
def test_stochastic_iht_with_polyaks_step_is_its_formula(library, rule, own_target):
    common, stochastic = part(library, "_common"), part(library, "_stoiht_polyak")
    drawn, batch = common.regression(4, 60, 20, 3, noise=0.5), FixedBatch(15)
    X, y = drawn.objective.design.predict(np.eye(20)), drawn.objective.y
    reference = drawn.solution if own_target else None
    points = stochastic.polyak_stochastic_iht(
        drawn.objective, Sparsity(3), rule, batch, 12, 7, reference=reference, every=4
    )
    w, expected = np.zeros(20), [np.zeros(20)]
    for t in range(12):
        rows = batch.gradient_rows(60, 15, 7, t)
        A, b = X[rows], y[rows]
        g = A.T @ (A @ w - b) / 15
        target = 0.5 * np.mean((A @ reference - b) ** 2) if own_target else 0.0
        kept = np.sort(np.abs(g))[-3:] if isinstance(rule, SparsePolyak) else g
        w = w - max(0.5 * np.mean((A @ w - b) ** 2) - target, 0.0) / (2.0 * kept @ kept) * g
        w[np.argsort(-np.abs(w), kind="stable")[3:]] = 0.0
        if t % 4 == 3:
            expected.append(w)
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-12)


def test_files_of_the_omnibus_are_read(library, tmp_path, monkeypatch):
    expression = part(library, "fig3_fig4_expression")
    text = (
        "^DATASET = GDS2910\n#GSM1 = one\n!dataset_table_begin\nID_REF\tIDENTIFIER\tGSM1\tGSM2\n"
        "a\tA\t1.5\t2\nb\tB\tnull\t-3\n!dataset_table_end\n"
    )
    with gzip.open(tmp_path / "GDS2910.soft.gz", "wt") as file:
        file.write(text)
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    np.testing.assert_array_equal(expression.read_soft(expression.find("GDS2910.soft.gz")), [[1.5, np.nan], [2, -3]])
    assert any(cell.arguments["data"] == "gds2910" for cell in expression.cells(True, 0))
    assert part(library, "_omnibus").fetch_gds2910() == tmp_path / "GDS2910.soft.gz"
    with pytest.raises(DatasetError, match="HARDTHRESH_DATA"):
        expression.find("nki272.npz")


def test_the_omnibus_is_asked_once_and_what_it_sends_is_read_before_it_is_kept(library, tmp_path, monkeypatch):
    omnibus = part(library, "_omnibus")
    kept = tmp_path / "cache" / omnibus.NAME
    monkeypatch.delenv("HARDTHRESH_DATA", raising=False)
    monkeypatch.setenv("HARDTHRESH_CACHE", str(kept.parent))
    sent = tmp_path / "sent"
    for content in (None, b"a page that says no", gzip.compress(b"no table")):
        if content is not None:
            sent.write_bytes(content)
        with pytest.raises(DatasetError, match="Nothing was kept"):
            omnibus.fetch_gds2910(sent.as_uri())
        assert not kept.parent.exists() or not [*kept.parent.iterdir()]
    sent.write_bytes(gzip.compress(b"!dataset_table_begin\nID_REF\tIDENTIFIER\tGSM1\na\tA\t1.5\n!dataset_table_end\n"))
    assert omnibus.fetch_gds2910(sent.as_uri()) == kept
    sent.unlink()
    assert omnibus.fetch_gds2910(sent.as_uri()) == kept


def test_full_expression_is_the_papers_plan_and_a_part_of_it_can_be_run(library, monkeypatch):
    expression = part(library, "fig3_fig4_expression")
    monkeypatch.delenv("HARDTHRESH_CELLS", raising=False)
    cells = [cell.arguments for cell in expression.cells(True, 0)]
    paper = {(given["K"], *given["starts"]) for given in cells if given["method"] == "paper"}
    assert paper == {(K, start) for K in range(5000, 15_001, 500) for start in range(10)}
    assert {given["limit"] for given in cells if given["method"] == "paper"} == {1000}
    monkeypatch.setenv("HARDTHRESH_CELLS", "3")
    assert [cell.arguments for cell in expression.cells(True, 0)] == cells[:3]
    rows = [given | expression.example(**given) for given in cells[:3]]
    assert expression.summarise(rows, True).keys() >= {f"nki272 paper K={K}" for K in (5000, 10_000, 15_000)}
    assert expression.draw(rows, True)
    again = {"starts": [1], "runs": [{**rows[0]["runs"][0], "value": rows[0]["runs"][0]["value"] + 2.0}]}
    [both] = expression.together([rows[0], rows[0] | again], K=5000)
    assert len(both["runs"]) == 2


def test_expression_in_small(library, tmp_path, monkeypatch):
    expression = part(library, "fig3_fig4_expression")
    np.savez(tmp_path / "nki272.npz", X=np.random.default_rng(0).standard_normal((272, 9)))
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    given = {"data": "nki272", "probes": 7, "seed": 0, "method": "paper", "K": 15, "starts": [0, 1], "limit": 12}
    expression.expression.cache_clear()
    real, example = expression.run(**given), expression.example(**given)
    expression.expression.cache_clear()
    assert real.keys() == example.keys()
    assert real["runs"][0].keys() == example["runs"][0].keys()
    assert len(real["path"]) == 1 + real["runs"][0]["accepted"]
    assert np.isfinite(real["path"]).all()


def test_a_long_run_says_where_the_specification_would_have_stopped(library, tmp_path, monkeypatch):
    expression = part(library, "fig3_fig4_expression")
    np.savez(tmp_path / "nki272.npz", X=np.random.default_rng(0).standard_normal((272, 9)))
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    monkeypatch.setattr(expression, "LIMIT", 12)
    given = {"data": "nki272", "probes": 7, "seed": 0, "method": "paper", "K": 15, "starts": [0]}
    expression.expression.cache_clear()
    short, long = (expression.run(**given, limit=limit) for limit in (12, 20))
    expression.expression.cache_clear()
    [ended] = short["runs"]
    assert short["early"] == []
    assert long["early"] == [pytest.approx([ended["value"], ended["validation"], ended["accepted"]], rel=1e-12)]
    assert len(expression.example(**given, limit=20)["early"]) == 1


@pytest.fixture
def small_attack(library, tmp_path, monkeypatch):
    """The item with 120 artificial images, and runs of three iterations."""
    pytest.importorskip("torch")
    pytest.importorskip("lzma")
    attack = part(library, "fig1_fig2_attack")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 10
    X = rng.integers(0, 60, (120, 28, 28), dtype=np.uint8)
    X[np.arange(120), 2 * y, 5] = 255
    np.savez(tmp_path / "mnist.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    for name, value in {"LIMIT": 3, "RANDOM_LIMIT": 3, "RANDOM_STARTS": 2, "EPOCHS": 3, "BATCH": 40}.items():
        monkeypatch.setattr(attack, name, value)
    monkeypatch.setattr(attack, "SIZES", {"part": (120, 100, 80)})
    attack.images.cache_clear()
    attack.classifier.cache_clear()
    yield attack
    attack.images.cache_clear()
    attack.classifier.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("network", ["dense", "cnn"])
@pytest.mark.parametrize("search", ["published", "greedy"])
def test_an_attack_in_small(small_attack, network, search):
    given = {
        "network": network, "size": "part", "space": "tanh-paper", "K": 25, "target": 5, "loss": "label",
        "search": search, "seed": 0,
    }  # fmt: skip
    real, example = small_attack.run(**given), small_attack.example(**given)
    assert real.keys() == example.keys()
    assert real["changed"] <= 25
    assert real["rate_before"] <= 1.0


def test_random_starts_in_small(small_attack):
    given = {"network": "dense", "size": "part", "K": 5, "seed": 0}
    real = small_attack.random_starts(**given)
    assert real.keys() == small_attack.example(**given).keys()
    assert 0.0 <= real["misled"] <= 1.0


def test_each_seed_draws_other_images_and_another_network(small_attack):
    images, labels = small_attack.drawn("train", 100, 0)
    np.testing.assert_array_equal(images, small_attack.images()["X_train"][:100])
    assert len(labels) == 100
    others, _ = small_attack.drawn("train", 100, 1)
    assert not np.array_equal(images, others)
    first, second = (small_attack.classifier("dense", "part", seed)[1].weight for seed in (0, 1))
    assert not np.array_equal(first.detach(), second.detach())


def test_without_torch_an_attack_says_so(library, monkeypatch):
    attack = part(library, "fig1_fig2_attack")
    attack.classifier.cache_clear()

    def absent(name):
        raise MissingDependencyError(f"{name} is not installed")

    monkeypatch.setattr(attack, "imported", absent)
    with pytest.raises(DatasetError, match="torch is not installed"):
        attack.classifier("dense", "part", 0)
