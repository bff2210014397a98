"""*Limited attributes* (Murata and Suzuki 2018): its experiments in small, and the data of the specification."""

from importlib import import_module
from itertools import combinations
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pytest

from hardthresh.cli.reproduce import load_runner
from hardthresh.datasets.files import DatasetError
from hardthresh.limited import AdaptiveHybrid, ArraySource, CostModel, Exploration
from hardthresh.limited.learner import Learner
from levels import at_most, only_at

PAPERS = Path(__file__).resolve().parents[2] / "papers"


@pytest.fixture(scope="module")
def scripts():
    load_runner(PAPERS)
    return lambda name: import_module(f"papers.limited_attributes.{name}")


SMALL = {
    "fig1_synthetic": {"size": 0.005, "points": [300]},
    "fig2_ct_slices": {"rows": 600, "points": [300]},
    "robustness": {"size": 0.02},
    "excess": {"size": 0.02, "n": 1000},
    "naive": {"size": 0.1},
    "table1_rivals": {"n": 300},
    "theorems": {},
    "tuning": {"size": 0.01},
}


@pytest.fixture
def made_up_table(scripts, monkeypatch):
    """Give figure 2 a table that needs no file."""
    script = scripts("fig2_ct_slices")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 30))
    monkeypatch.setattr(script, "table", lambda name: (X, X[:, 0] - X[:, 1] + rng.standard_normal(900)))
    script.split.cache_clear()
    yield
    script.split.cache_clear()


@only_at("pairs")
@pytest.mark.usefixtures("made_up_table")
@pytest.mark.parametrize("name", SMALL)
def test_a_made_up_result_has_the_fields_of_a_real_one(scripts, name):
    item = scripts(name).ITEM
    seen = set()
    for cell in item.cells(False, 0):
        kind = cell.arguments.get("method", cell.arguments.get("part"))
        if kind in seen:
            continue
        seen.add(kind)
        small = {**cell.arguments, **{key: value for key, value in SMALL[name].items() if key in cell.arguments}}
        if cell.arguments.get("points") == []:
            small["points"] = []
        real = cell.function(**small)
        made_up = item.example(**small)
        assert real.keys() == made_up.keys(), cell.name
        for field, value in made_up.items():
            if isinstance(value, list):
                assert len(value) == len(real[field]), (cell.name, field)


def test_the_stream_of_the_paper(scripts):
    common = scripts("_common")
    X, y, X_test, _, truth = common.data("paper", 3, 0.01)
    drawn_X, drawn_y, train, test, drawn_truth = common.stream(1000, seed=3)
    np.testing.assert_array_equal(X, drawn_X[train])
    np.testing.assert_array_equal(y, drawn_y[train])
    np.testing.assert_array_equal(X_test, drawn_X[test].astype(float))
    np.testing.assert_array_equal(truth, drawn_truth)


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("kind", ["ar5", "equi3", "normal", "sigma5", "scales", "d1000", "n27"])
def test_the_data_of_the_robustness_table(scripts, kind):
    common = scripts("_common")
    X, y, X_test, y_test, truth = common.data(kind, 0, 0.1)
    s, _ = common.budget(kind)
    assert np.count_nonzero(truth) == s
    assert len(y) == 9 * len(y_test)
    noise = 5.0 if kind == "sigma5" else 1.0
    assert np.std(y - X @ truth) == pytest.approx(noise, rel=0.05)
    correlation = np.corrcoef(X[:, 10], X[:, 11])[0, 1]
    assert correlation == pytest.approx({"ar5": 0.5, "equi3": 0.3}.get(kind, 0.0), abs=0.06)
    spread = X.std(axis=0)
    assert (spread.max() / spread.min() > 5) == (kind == "scales")
    assert common.test_excess(X_test, y_test, truth)(truth, 0.0) == 0.0


@only_at("pairs")
def test_follow_measures_a_run_at_the_given_points(scripts):
    common = scripts("_common")
    X, y, _, _, truth = common.data("paper", 0, 0.03)
    measure = common.excess(truth)
    found = common.follow(AdaptiveHybrid(25), X, y, 500, {"excess": measure}, points=[500, 1000], level=0.5)
    assert len(found["excess"]) == 3
    assert found["excess"][2] < found["excess"][1] < found["excess"][0] < 25
    assert found["support"] == list(range(25))
    assert 25 < found["first"] < 2700
    assert (found["examples"], found["most"]) == (2700, 500)


def test_a_run_that_diverges_is_infinitely_bad_from_there_on(scripts):
    common = scripts("_common")
    X, y, _, _, truth = common.data("paper", 0, 0.03)
    found = common.follow(
        Exploration(30.0, 5, 25), X, y, 50, {"excess": common.excess(truth)}, points=[10, 2500], level=0.1
    )
    assert found["excess"][0] == 25.0
    assert found["excess"][1:] == [inf, inf]
    assert found["first"] is None


def test_the_fragment_that_is_missing_is_named(scripts, monkeypatch, tmp_path):
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"ctslice_fragment\.npz.*HARDTHRESH_DATA"):
        scripts("fig2_ct_slices")._fragment()


# --- Section 3.1: estimators ---


def all_subsets(x, n_observed):
    """The zero-filled versions of one example, with every subset of its attributes."""
    subsets = [list(subset) for subset in combinations(range(x.size), n_observed)]
    filled = np.zeros((len(subsets), x.size))
    for row, subset in zip(filled, subsets, strict=True):
        row[subset] = x[subset]
    return filled


X0, Y0, W0 = np.array([1.0, -2.0, 0.5, 3.0]), 0.7, np.array([0.3, 0.0, -1.0, 2.0])


def test_gradients_from_pairs_are_unbiased(scripts):
    gradients = scripts("_estimators").from_pairs(all_subsets(X0, 2), np.full(6, Y0), W0, 2)
    np.testing.assert_allclose(gradients.mean(axis=0), 2 * (W0 @ X0 - Y0) * X0, atol=1e-12)


def test_gradients_from_the_support_are_unbiased(scripts):
    w = np.array([0.0, 1.0, 0.0, 0.0])
    drawn = scripts("_estimators").from_support(
        np.tile(X0, (4000, 1)), np.full(4000, Y0), w, 3, np.random.default_rng(0)
    )
    expected = 2 * (w @ X0 - Y0) * X0
    assert np.all(np.abs(drawn.mean(axis=0) - expected) < 5 * drawn.std(axis=0) / sqrt(4000))
    assert np.all(np.count_nonzero(drawn, axis=1) == 2)


def test_corrected_moments_are_unbiased_and_uncorrected_pairs_too_small(scripts):
    estimators, filled = scripts("_estimators"), all_subsets(X0, 2)
    second, first = estimators.moments(filled, np.full(6, Y0), 2, corrected=True)
    np.testing.assert_allclose(second, np.outer(X0, X0))
    np.testing.assert_allclose(first, Y0 * X0)
    second, first = estimators.moments(filled, np.full(6, Y0), 2, corrected=False)
    np.testing.assert_allclose(np.diag(second), X0**2)
    assert second[0, 1] == pytest.approx(X0[0] * X0[1] / 3)  # seen in 1 of 6 subsets, divided by 1 / 2
    np.testing.assert_allclose(first, Y0 * X0)


def test_the_limit_of_zero_filled_least_squares(scripts):
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])  # one of two is seen, so pairs never are
    np.testing.assert_allclose(scripts("_estimators").limit(covariance, np.array([1.0, 0.0]), 1), [1.0, 0.5])


def test_single_examples_follow_their_equation(scripts):
    estimators, rng = scripts("_estimators"), np.random.default_rng(1)
    X, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    algorithm = estimators.SingleExamples(0.05, 0.5, 2, seed=3)
    source = ArraySource(X, y, n_observed=5, shuffle=False)
    got = Learner.for_source(algorithm, source).run(source).w
    w = np.zeros(8)
    for t in range(30):
        explored = np.sort(np.random.default_rng((3, t, estimators._EXPLORED)).choice(8, 3, replace=False))
        seen = np.isin(np.arange(8), explored)
        z = w - 0.05 / sqrt(t + 1) * 2 * (w @ X[t] - y[t]) * (8 / 3) * X[t] * seen
        w = np.where(np.isin(np.arange(8), np.argsort(-np.abs(z), kind="stable")[:2]), z, 0.0)
    np.testing.assert_allclose(got, w, atol=1e-12)
    assert source.meter.max_per_example <= 5


# --- Table 1: dual averaging that explores in some rounds ---


@pytest.mark.parametrize("gradient", ["truncated", "dense"])
def test_gradients_of_exploring_dual_averaging_are_unbiased(scripts, gradient):
    algorithm = scripts("_dual_averaging").ExploringDualAveraging(1, 10.0, gradient=gradient)
    model = CostModel.of(4, 3)
    state = algorithm.start(model)
    fields = {"dense": np.array([0.2, -1.0, 0.5, 0.0]), "chosen": np.array([1]), "seen": 8}
    state = type(state)(**{name: getattr(state, name) for name in ("w", "summed", "observed")} | fields)

    def estimate(observed):
        found = np.zeros(4)
        observed = np.array(observed)
        found[observed] = algorithm.estimate(model, state, observed, X0[observed], Y0)
        return found

    explores = 1 / sqrt(9)
    mean = (1 - explores) * estimate([1])
    for subset in combinations(range(4), 3):
        mean += explores / 4 * estimate(subset)
    w = state.dense * ([1, 1, 1, 1] if gradient == "dense" else [0, 1, 0, 0])
    np.testing.assert_allclose(mean, 2 * (w @ X0 - Y0) * X0, atol=1e-12)


@only_at("pairs")
def test_exploring_dual_averaging_explores_in_few_rounds(scripts):
    common = scripts("_common")
    algorithm = scripts("_dual_averaging").ExploringDualAveraging(2, 30.0, seed=1)
    X, y, _, _, _ = common.stream(900, 12, 2, dtype=np.float64, seed=0)
    source = ArraySource(X, y, n_observed=6, shuffle=False)
    learner = Learner.for_source(algorithm, source)
    sizes = []
    while (query := learner.query) is not None and learner.step(source):
        sizes.append(query.indices.size)
    assert {*sizes} == {2, 6}
    assert sizes.count(6) == pytest.approx(2 * sqrt(900), abs=25)  # the sum of 1 / sqrt(t)
    assert learner.final_state().support.tolist() == [0, 1]


# --- the theorems ---


def test_rates_of_the_theorems(scripts):
    theorems = scripts("theorems")
    assert theorems.RATES["exploration"] == pytest.approx(1 - 0.5 * (3 / 9) * 2 * 0.45 * 0.2)
    assert theorems.RATES["exploitation"] == pytest.approx(1 - 0.25 * 2 * 0.2 * 0.6)


@at_most(1)
@pytest.mark.parametrize(
    ("part", "value", "most"), [("batch", 50, 20), ("right support", 100, 6), ("exploration over s' - s", 28, 34)]
)
def test_runs_of_the_theorems_make_all_updates(scripts, part, value, most):
    found = scripts("theorems").run(part, value, seed=0)
    assert len(found["excess"]) == scripts("theorems").UPDATES + 1
    assert found["most"] == most
    assert found["excess"][-1] < 0.1 * found["excess"][0]


@only_at("pairs")
def test_rounds_of_hybrid(scripts):
    found = scripts("theorems").run("rounds", 4, seed=0)
    assert len(found["ends"]) == 4
    assert len(found["excess"]) == 4 * (3 + 5) + 1
    assert found["ends"] == found["excess"][8::8]


@only_at("pairs")
def test_all_attributes_take_two_blocks_and_every_s(scripts):
    theorems = scripts("theorems")
    for setting, s in ((theorems.with_all(480), 6), (theorems.with_all(240, 24), 48)):
        cost_model = CostModel.of(setting.d, setting.s + setting.spare)
        assert setting.s == setting.algorithm.n_nonzero_coefs == s
        assert cost_model.n_observed == setting.d
        assert setting.algorithm.blocks(cost_model) == 2
        assert setting.algorithm.batches * 2 * theorems.UPDATES == setting.examples
    assert 234 <= theorems.run("all over s*", 3, seed=0)["most"] <= 240


def test_first_below(scripts):
    first_below = scripts("theorems").first_below
    assert first_below([4.0, 2.0, 0.3, 0.5], 0.1) == 2
    assert first_below([4.0, 2.0], 0.1) == inf


def test_the_exponent_of_a_power_law(scripts):
    assert scripts("_common").slope([1, 2, 4], [3.0, 0.75, 0.1875]) == pytest.approx(-2)


def test_the_figures_have_the_second_of_the_values_tried(scripts):
    tried, methods = scripts("tuning").TRIED, scripts("_common").METHODS
    for name, of_figure in (("synthetic", methods), ("blog", scripts("fig2_ct_slices").LEARNERS)):
        for method, (factory, values) in tried[name].items():
            assert factory(values[1])(10, 3) == of_figure[method](10, 3), (name, method)
