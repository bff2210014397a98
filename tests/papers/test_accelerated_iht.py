"""*IHT dies hard* (Khanna and Kyrillidis 2018): its experiments in small, and what they read off a run."""

from importlib import import_module
from itertools import islice, pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest
from papers.accelerated_iht._data import conditioned_design, correlated_split, toy

from hardthresh.cli.reproduce import load_runner
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import iterate, minimize
from hardthresh.datasets.files import DatasetError
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import Fixed
from levels import only_at

PAPERS = Path(__file__).resolve().parents[2] / "papers"


@pytest.fixture(scope="module")
def scripts():
    load_runner(PAPERS)
    return lambda name: import_module(f"papers.accelerated_iht.{name}")


SMALL = {
    "fig1_toy": {"limit": 30},
    "fig2_gaussian": {"m": 40, "n": 90, "planted": 3, "k": 3, "limit": 30},
    "fig3_correlated": {"limit": 30},
    "fig4_skipped": {"limit": 30},
    "lemma1_recursion": {"limit": 30},
    "momenta": {"limit": 30},
    "momentum_kappa": {"limit": 30},
    "momentum_study": {"limit": 30},
    "figs5to7_completion": {"height": 24, "width": 30, "rank": 2, "limit": 8, "snapshot": 4},
    "table1_tumours": {"limit": 3, "kind": "twin", "ridges": [1.0], "sizes": [2], "grid_limit": 2},
    "approximate_projections": {"height": 24, "width": 30, "rank": 2, "limit": 8},
}
FIRST_OF_EACH = {  # cells of one kind return the same fields
    "fig1_toy": lambda cell: cell.arguments["what"],
    "fig2_gaussian": lambda cell: cell.arguments["method"],
    "fig3_correlated": lambda cell: cell.arguments["method"],
    "fig4_skipped": lambda cell: cell.arguments.get("method"),
    "lemma1_recursion": lambda cell: cell.arguments["n"],
    "momenta": lambda cell: cell.arguments["method"],
    "momentum_kappa": lambda cell: cell.arguments["method"],
    "momentum_study": lambda cell: (cell.arguments["name"], cell.arguments["method"]),
    "figs5to7_completion": lambda cell: cell.arguments["method"],
    "table1_tumours": lambda cell: (cell.arguments["what"], cell.arguments["method"]),
    "approximate_projections": lambda cell: cell.arguments["model"],
}


@only_at("pairs")
@pytest.mark.parametrize("name", SMALL)
def test_a_made_up_result_has_the_fields_of_a_real_one(scripts, name):
    item = scripts(name).ITEM
    seen = set()
    for cell in item.cells(False, 0):
        kind = FIRST_OF_EACH[name](cell)
        if kind in seen:
            continue
        seen.add(kind)
        small = {key: value for key, value in SMALL[name].items() if key in cell.arguments}
        if cell.arguments.get("what") == "law":
            small = {}  # the rate is that of 400 iterations
        real = cell.function(**(cell.arguments | small))
        made_up = item.example(**(cell.arguments | small))
        assert real.keys() == made_up.keys(), kind
        for field, value in made_up.items():
            assert isinstance(value, str) == isinstance(real[field], str), (kind, field)


@pytest.fixture(scope="module")
def small():
    """A small problem, its step 1/L, and its matrix and response."""
    drawn = toy(40, 60, 4, seed=3)
    f = LinearModel(drawn.X, drawn.y)
    return f, 40 / np.linalg.norm(drawn.X, 2) ** 2, drawn.X, drawn.y


def points_of(f, solver, iterations, k=4):
    return [state.w for state in islice(iterate(f, Sparsity(k), solver), iterations + 1)]


def largest(z, k=4):
    kept = np.zeros_like(z)
    best = np.argsort(-abs(z), kind="stable")[:k]
    kept[best] = z[best]
    return kept


def test_heavy_ball_is_its_formula(scripts, small):
    f, step, X, y = small
    got = points_of(f, scripts("_momenta").HeavyBall(0.4, Fixed(step)), 30)
    before = now = np.zeros(60)
    for point in got[1:]:
        before, now = now, largest(now + step * X.T @ (y - X @ now) / 40 + 0.4 * (now - before))
        np.testing.assert_allclose(point, now, atol=1e-12)


def test_double_overrelaxation_is_its_formula(scripts, small):
    f, step, X, y = small
    got = points_of(f, scripts("_momenta").DoubleOverrelaxation(Fixed(step)), 30)
    before = now = np.zeros(60)

    def minimised(at, direction):
        image = X @ direction
        return at + image @ (y - X @ at) / (image @ image) * direction if image @ image > 0 else at

    for point in got[1:12]:
        plain = largest(now + step * X.T @ (y - X @ now) / 40)
        z = minimised(plain, plain - now)
        relaxed = largest(minimised(z, z - before))
        better = np.linalg.norm(y - X @ relaxed) < np.linalg.norm(y - X @ plain)
        before, now = now, relaxed if better else plain
        np.testing.assert_allclose(point, now, atol=1e-9)


def test_alps_minimises_along_the_last_move(scripts, small):
    f, step, X, y = small
    solver = scripts("_common").published(scripts("_momenta").FreeMomentum(), step)
    states = [*islice(iterate(f, Sparsity(4), solver), 12)]
    for old, new in pairwise(states):
        image = X @ (new.w - old.w)
        assert new.momentum == pytest.approx(image @ (y - X @ new.w) / (image @ image), rel=1e-6, abs=1e-12)


def test_a_skipped_momentum_never_increases_f(scripts, small):
    f, step, _, _ = small
    solver = scripts("_common").published(scripts("_momenta").SkippedMomentum(0.5), 3.0 * step)
    states = [*islice(iterate(f, Sparsity(4), solver), 25)]
    taus = {state.momentum for state in states[1:]}
    assert taus == {0.0, 0.5}
    for old, new in pairwise(states):
        allowed = f.value(new.w + 0.5 * (new.w - old.w)) <= new.value
        assert new.momentum == (0.5 if allowed else 0.0)


def test_without_momentum_all_are_iterative_hard_thresholding(scripts, small):
    f, step, _, _ = small
    plain = points_of(f, IHT(Fixed(step)), 10)
    momenta = scripts("_momenta")
    for solver in (momenta.HeavyBall(0.0, Fixed(step)), scripts("_common").published(0.0, step)):
        np.testing.assert_allclose(points_of(f, solver, 10), plain, atol=1e-13)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9])
def test_the_rate_of_heavy_ball_is_that_of_its_matrix(scripts, momentum):
    values, step = [0.2, 0.7, 1.5], 0.8
    powers = [
        np.linalg.matrix_power(np.array([[1.0 - step * value + momentum, -momentum], [1.0, 0.0]]), 400)
        for value in values
    ]
    measured = max(np.linalg.norm(power, 2) for power in powers) ** (1 / 400)
    assert scripts("_momenta").heavy_ball_rate(values, step, momentum) == pytest.approx(measured, rel=0.02)


def test_the_planted_columns_have_the_condition_number(scripts):
    drawn = conditioned_design(50, 12, 4, condition=30.0, seed=1)
    on = drawn.X[:, drawn.support]
    eigenvalues = np.linalg.eigvalsh(on.T @ on) / 50
    assert eigenvalues[-1] == pytest.approx(1.0)
    assert eigenvalues[-1] / eigenvalues[0] == pytest.approx(30.0)
    np.testing.assert_allclose(drawn.y, on @ drawn.coef[drawn.support])
    np.testing.assert_allclose((np.delete(drawn.X, drawn.support, axis=1) ** 2).mean(axis=0), 1.0)


def test_the_published_example_of_skipped_momentum(scripts):
    figure = scripts("fig4_skipped")
    assert np.linalg.norm(figure.B - figure.PHI @ figure.BEFORE) == pytest.approx(1.1328, abs=2e-4)  # as published
    found = figure.example_of_the_paper("paper")
    assert found["residuals"][0] == pytest.approx(0.2224, abs=2e-4)
    assert found["residuals"] == sorted(found["residuals"])
    assert found["best"] < 0


def test_the_ratio_of_lemma_1_by_hand(scripts):
    ratios = scripts("lemma1_recursion").ratios
    row = {"distances": [4.0, 2.0, 1.0], "matrix": [0.5, 0.25], "noise": 0.5}
    np.testing.assert_allclose(
        ratios(row), [2.0 / 3.5, 1.0 / 2.5]
    )  # 0.5 * 4 + 0.25 * 4 + 0.5, 0.5 * 2 + 0.25 * 4 + 0.5
    np.testing.assert_allclose(ratios(row, 0.0), [2.0 / 3.0, 1.0 / 2.0])


def test_slopes_are_powers_of_the_condition_number(scripts):
    study = scripts("momentum_kappa")
    rows = [
        {"method": "best", "seed": seed, "kappa": kappa, "arrived": kappa < 90, "found": 3.0 * kappa**0.5}
        for seed in (0, 1)
        for kappa in (10.0, 40.0, 160.0)
    ]
    assert study.slope(rows, "best", "found") == pytest.approx(0.5)


@only_at("pairs")
def test_other_seeds_have_other_data(scripts):
    for name in SMALL:
        if name in ("fig2_gaussian", "figs5to7_completion", "approximate_projections"):
            continue
        drawn = [
            {str(cell.arguments) for cell in scripts(name).ITEM.cells(False, seed) if "seed" in cell.arguments}
            for seed in (0, 1)
        ]
        assert drawn[0], name
        assert not drawn[0] & drawn[1], name


@pytest.mark.slow
def test_the_toy_of_another_seed_is_like_that_of_the_caption(scripts):
    figure = scripts("fig1_toy")
    assert figure.like_the_caption(409) == 409
    other = figure.constants("constants", figure.like_the_caption(1409))
    assert other["constants"][2] == pytest.approx(0.94, abs=0.01)


def test_the_grid_of_table_1_is_that_of_the_paper(scripts):
    table = scripts("table1_tumours")
    assert [len(grid[True]) for grid in (table.RIDGES, table.GROUPS, table.BALLS)] == [6, 8, 6]
    assert all(set(grid[False]) < set(grid[True]) for grid in (table.RIDGES, table.GROUPS, table.BALLS))


def test_the_first_iteration_at_a_level(scripts):
    first = scripts("_common").first
    assert first([1.0, 0.5, 0.6, 0.1], [1.0, 0.55, 0.2, 0.05]) == [0, 1, 3, inf]
    assert first([1.0, inf, 0.1], [0.5]) == [2]


def test_the_largest_eigenvalue_without_a_decomposition(scripts, monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 80))
    dense = scripts("_common").lipschitz(X)
    monkeypatch.setattr(scripts("_common"), "DENSE", 0)
    assert scripts("_common").lipschitz(X) == pytest.approx(dense, rel=1e-6)


def test_pictures_survive_a_cell(scripts):
    images = scripts("_images")
    image = np.random.default_rng(0).integers(0, 256, (5, 7))
    np.testing.assert_array_equal(images.unpacked(images.packed(image), 5, 7), image)
    assert images.unpacked(images.packed(np.array([[-3.0, 300.0, np.nan]])), 1, 3).tolist() == [[0, 255, 0]]
    assert images.psnr(image + 255.0, image) == pytest.approx(0.0)


def test_the_image_has_the_rank_and_the_mask_of_the_specification(scripts):
    truth, observed = scripts("_images").low_rank_image("china.jpg", 128, 192, 15)
    assert np.linalg.matrix_rank(truth) == 15
    assert observed.mean() == pytest.approx(0.35, abs=0.01)
    np.testing.assert_array_equal(observed, np.random.default_rng(1).random((128, 192)) < 0.35)
    assert not np.array_equal(scripts("_images").low_rank_image("china.jpg", 128, 192, 15, seed=1)[1], observed)


@pytest.mark.parametrize(("script", "name"), [("_images", "kodim05.png"), ("table1_tumours", "vandevijver295.npz")])
def test_data_that_are_missing_are_named(scripts, monkeypatch, tmp_path, script, name):
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=f"{name}.*HARDTHRESH_DATA"):
        scripts(script)._find(name)


def test_measures_of_a_perfect_fit_and_of_nothing(scripts):
    judge = scripts("fig3_correlated").judge
    drawn = correlated_split(seed=0)
    X, y = drawn.X, drawn.X @ drawn.coef + 1e-9 * drawn.y
    right = judge(X, y, X, y, drawn.coef, drawn.coef)
    assert right["r2"] == pytest.approx(1.0)
    assert right["auc"] == 1.0
    nothing = judge(X, y, X, y - y.mean(), drawn.coef, np.zeros(200))
    assert nothing["r2"] == pytest.approx(0.0)
    assert nothing["auc"] == 0.5
    assert right["loglik"] > nothing["loglik"]


def test_groups_of_the_synthetic_twin_share_five_columns_with_the_next(scripts):
    X, y, groups = scripts("table1_tumours").data("twin", 0)
    assert X.shape == (295, 1000)
    assert set(y) == {0.0, 1.0}
    assert all(len(np.intersect1d(a, b)) == 5 for a, b in pairwise(groups))


def test_a_design_that_is_drawn_in_blocks_is_the_one_that_is_drawn_at_once(scripts, monkeypatch):
    monkeypatch.setattr(scripts("_data"), "ROWS", 7)
    drawn = scripts("_data").gaussian_design(40, 90, 3, dtype=np.float32, seed=5)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 90), dtype=np.float32) / np.sqrt(np.float32(40))
    np.testing.assert_array_equal(drawn.X, X)
    assert drawn.X.dtype == np.float32
    assert drawn.X.flags.f_contiguous


# --- approximate projections ---


@pytest.fixture(scope="module")
def projections(scripts):
    return scripts("_projections")


def test_a_sketch_finds_a_matrix_of_low_rank_and_keeps_the_rank_of_others(projections):
    rng = np.random.default_rng(0)
    low = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 9))
    for power in (0, 1):
        sketch = projections.SketchedRank(3, power=power, oversampling=2)
        np.testing.assert_allclose(sketch.project(low).point, low, atol=1e-10)
        assert np.linalg.matrix_rank(sketch.project(low + rng.standard_normal(low.shape)).point) == 3
    assert not sketch.project(np.zeros((12, 9))).support.left.size


def test_a_sketch_is_the_best_approximation_within_its_columns(projections):
    z = np.random.default_rng(1).standard_normal((12, 9))
    Q = np.linalg.qr(z @ np.random.default_rng(3).standard_normal((9, 5)))[0]
    U, s, Vt = np.linalg.svd(Q @ Q.T @ z, full_matrices=False)
    sketch = projections.SketchedRank(3, power=0, oversampling=2, rng=np.random.default_rng(3))
    first = sketch.project(z)
    np.testing.assert_allclose(first.point, (U[:, :3] * s[:3]) @ Vt[:3], atol=1e-12)
    np.testing.assert_allclose(first.support.restrict(first.point), first.point, atol=1e-12)
    assert not np.allclose(sketch.project(z).point, first.point)  # another sketch


def test_power_steps_bring_the_sketch_to_the_nearest_matrix(projections):
    z = np.random.default_rng(2).standard_normal((20, 15))
    nearest = np.linalg.norm(z - Rank(4).project(z).point)
    far = [
        np.linalg.norm(z - projections.SketchedRank(4, power=power, oversampling=3).project(z).point) / nearest
        for power in (0, 1, 2, 50)
    ]
    assert far == sorted(far, reverse=True)
    assert far[0] > 1.05
    assert far[-1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 6])
def test_chains_of_groups_are_projected_on_the_nearest_point(projections, k):
    groups = [range(2 * g, 2 * g + 3) for g in range(6)]
    chain = projections.ChainGroups(groups, k)
    for seed in range(20):
        z = np.random.default_rng(seed).standard_normal(13)
        ours, best = chain.project(z), chain.reference_project(z)
        assert np.sum((z - ours.point) ** 2) == pytest.approx(np.sum((z - best.point) ** 2))
        assert len(ours.support.numbers) <= k


def test_groups_by_themselves_count_shared_coordinates_twice(projections):
    z = np.array([0.0, 2.0, 3.0, 2.0, 0.0, 1.5])
    groups = [[0, 1, 2], [2, 3, 4], [5]]  # energies 13, 13 and 2.25; the first two share 9
    assert projections.SeparateGroups(groups, 2).project(z).support.numbers.tolist() == [0, 1]
    assert projections.ChainGroups(groups, 2).project(z).support.numbers.tolist() == [0, 1]
    z[5] = 2.5  # energy 6.25, more than the 4 that the second group adds to the first
    assert projections.SeparateGroups(groups, 2).project(z).support.numbers.tolist() == [0, 1]
    assert 2 in projections.ChainGroups(groups, 2).project(z).support.numbers
    assert projections.SeparateGroups(groups, 2).project(np.zeros(6)).support.numbers.size == 0


def test_the_worst_supports_that_constants_allow(projections):
    z = np.array([1.0, -4.0, 2.0, 3.0])  # squares in order: 16, 9, 4, 1
    head, tail = projections.worst_head, projections.worst_tail
    assert head(z, 2, 1.0).tolist() == tail(z, 2, 1.0).tolist() == [0, -4, 0, 3]
    assert head(z, 2, 0.72).tolist() == [0, 0, 2, 3]  # 13 / 25 = .72^2
    assert head(z, 2, 0.73).tolist() == [0, -4, 0, 3]
    assert tail(z, 2, 1.84).tolist() == [0, -4, 0, 3]
    assert tail(z, 2, 1.85).tolist() == [0, 0, 2, 3]  # 17 / 5 = 1.844^2
    assert tail(z, 2, 2.3).tolist() == [1, 0, 2, 0]  # 25 / 5 = 2.236^2
    assert tail(np.array([0.0, 5.0, 0.0, 1.0]), 2, 9.0).tolist() == [0, 5, 0, 1]  # of a sparse point only itself


def test_without_approximation_head_and_tail_are_iterative_hard_thresholding(scripts):
    script = scripts("approximate_projections")
    drawn = scripts("_data").gaussian_design(60, 120, 4, seed=1)
    values = script.head_tail(drawn.X, drawn.y, 4, None, 1.0, momentum=0.25, step=0.4, limit=12)
    f = LinearModel(drawn.X, drawn.y)
    run = minimize(f, Sparsity(4), scripts("_common").published(0.25, 0.4 * 60), max_iter=12, tol=0.0)
    np.testing.assert_allclose(values, run.history["value"] / run.history["value"][0], rtol=1e-9)
    late = script.head_tail(drawn.X, drawn.y, 4, 1.0, 1.0, momentum=0.0, step=0.4, limit=3)
    assert len(late) == 4
    assert late[-1] < late[0] == 1.0


def test_operations_of_a_projection_by_hand(scripts):
    flops = scripts("approximate_projections").flops
    assert flops("exact", 2, 3, 1) == 6 * 3 * 4 + 20 * 8
    products, bases, small = 2 * 2 * 2 * 3, 4 * 2, 6 * 3 + 20 + 2 * (2 + 6)
    assert flops("q=0 p=0", 2, 3, 1) == products + bases + small
