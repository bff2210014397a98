"""Each chart shows the numbers of the model, on the axes it is given, and changes nothing else."""

import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, MissingDependencyError
from hardthresh.datasets import make_graphical_model
from hardthresh.report import (
    plot_calibration,
    plot_coefficients,
    plot_convergence,
    plot_criterion,
    plot_cv,
    plot_learning_curve,
    plot_path,
    write_report,
)

CHARTS = [plot_calibration, plot_coefficients, plot_convergence, plot_cv, plot_path]


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.mark.parametrize("plot", CHARTS)
def test_given_axes_are_used_and_nothing_else_is_touched(plot, classifier, ax):
    before = dict(matplotlib.rcParams)
    assert plot(classifier, ax) is ax
    ax.figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []
    assert ax.get_xlabel()


@pytest.mark.parametrize("plot", CHARTS)
def test_without_axes_there_is_a_new_figure(plot, classifier):
    ax = plot(classifier)
    assert ax.figure is plt.gcf()
    plt.close(ax.figure)


@pytest.mark.parametrize("plot", CHARTS)
def test_matplotlib_is_asked_for_by_name(plot, classifier, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*hardthresh\[plot\]"):
        plot(classifier)


def test_bars_are_effects_the_strongest_first(classifier, ax):
    plot_coefficients(classifier, ax)
    widths = [bar.get_width() for bar in ax.patches]
    effects = (classifier.coef_[0] * classifier.scale_)[classifier.support_]
    assert sorted(widths) == pytest.approx(sorted(effects))
    assert [*map(abs, widths)] == sorted(map(abs, widths), reverse=True)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {*names} == {*classifier.get_feature_names_out()}
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top


@pytest.mark.parametrize(("k", "bars"), [(0, 0), (1, 1), (40, 40), (200, 40)])
def test_at_most_forty_bars(build, ax, k, bars):
    plot_coefficients(build(k, 300, classes=None), ax)
    assert len(ax.patches) == bars
    assert ("not drawn" in ax.get_title("left")) == (k > bars)
    assert any("no feature" in text.get_text() for text in ax.texts) == (k == 0)


@pytest.mark.parametrize("plot", CHARTS)
def test_names_are_no_mathematics(build, plot, ax):
    model = build(3, 3, names=["$x_", "\\frac{$}{$", "é" * 90], classes=("$", "$a_{$"))
    model.calibration_ = np.array([[0.2, 0.3, 1.0]])
    plot(model, ax)
    ax.figure.canvas.draw()


def test_path_shows_every_feature_that_is_ever_chosen(classifier, ax):
    plot_path(classifier, ax)
    effects = classifier.coefs_path_ * classifier.scale_
    lines = [line for line in ax.lines if line.get_gid()]
    assert len(lines) == np.count_nonzero(effects.any(axis=0) | (classifier.coef_[0] != 0))
    for line in lines:
        drawn = np.nan_to_num(line.get_ydata())
        j = [*classifier.feature_names_in_].index(line.get_gid().partition(":")[0])
        np.testing.assert_allclose(drawn, effects[:, j])


def test_cv_marks_the_chosen_k_and_the_sparsest_one(classifier, ax):
    plot_cv(classifier, ax)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"best single model: k = {classifier.best_n_nonzero_coefs_}" in words
    assert f"smallest within one standard error: k = {classifier.one_standard_error_}" in words
    (mean,) = [line for line in ax.lines if line.get_label().startswith("mean of")]
    best = classifier.grid_scores_.mean(axis=2).max(axis=1)
    np.testing.assert_allclose(mean.get_ydata(), -best)  # a loss, drawn as the loss it is
    assert "lower is better" in ax.get_ylabel()


def test_cv_draws_the_score_without_features(classifier, ax):
    plot_cv(classifier, ax)
    (line,) = [line for line in ax.lines if line.get_label().startswith("no features: ")]
    np.testing.assert_allclose(line.get_ydata(), -np.mean(classifier.null_scores_))


@pytest.mark.parametrize(("found", "label"), [(True, "chosen: k = 5"), (False, "chosen: k = 0")])
def test_cv_marks_no_features_where_these_are_best(build_grid, ax, found, label):
    plot_cv(build_grid(4 if found else 0, found=found), ax)
    assert label in [text.get_text() for text in ax.get_legend().get_texts()]


def test_each_k_is_drawn_with_its_best_ridge_and_the_chosen_one_with_its_own(build_grid, ax):
    model = build_grid()
    model.best_n_nonzero_coefs_, model.alpha_ = 1, 0.1
    plot_cv(model, ax)
    (mean,) = [line for line in ax.lines if line.get_label().startswith("mean of")]
    np.testing.assert_allclose(mean.get_ydata()[:3], [0.84, 0.8, 0.7])  # of k = 1 the largest ridge is best, .74


def test_calibration_shows_bins_that_have_rows(build_grid, ax):
    plot_calibration(build_grid(), ax)
    points = np.concatenate([dots.get_offsets() for dots in ax.collections])
    np.testing.assert_allclose(points, [[0.1, 0.2], [0.9, 0.8]])
    areas = [dots.get_sizes()[0] for dots in ax.collections]
    assert areas[0] == pytest.approx(3 * areas[1])
    assert (ax.get_xlabel(), ax.get_title("left")) == ("predicted probability of tumour", "slope 0.8 (calibrated: 1)")
    diagonal = ax.lines[0]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_calibration_of_a_regression_is_on_the_scale_of_the_target(build_grid, ax):
    plot_calibration(build_grid(classes=None), ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted target", "observed mean\nof held-out rows")


def test_calibration_needs_predictions_of_held_out_rows(regression, low_rank, ax):
    with pytest.raises(InvalidInputError, match="use SparseLinearRegressionCV"):
        plot_calibration(regression, ax)
    with pytest.raises(InvalidInputError, match="LowRankRegressionCV has no predictions of held-out rows"):
        plot_calibration(ht.LowRankRegressionCV(rank=4, cv=3).fit(*low_rank), ax)


@pytest.mark.parametrize("plot", [plot_cv, plot_path])
def test_a_given_k_has_no_curve(plot, regression, ax):
    with pytest.raises(InvalidInputError, match="SparseLinearRegressionCV"):
        plot(regression, ax)


@pytest.fixture(scope="module")
def low_rank():
    """Data of rank 2 for a regression of several outputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    return X, X @ rng.standard_normal((8, 2)) @ rng.standard_normal((2, 5)) + rng.standard_normal((60, 5))


def test_the_curve_over_ranks(low_rank, ax):
    model = ht.LowRankRegressionCV(rank=4, cv=3).fit(*low_rank)
    assert plot_cv(model, ax).get_xlabel() == "rank"
    assert f"chosen: rank = {model.best_rank_}" in [text.get_text() for text in ax.get_legend().get_texts()]
    with pytest.raises(InvalidInputError, match=r"no curve over rank, .*; use LowRankRegressionCV to choose it"):
        plot_cv(ht.LowRankRegression(rank=2).fit(*low_rank), ax)


def test_a_model_that_chose_k_by_a_criterion_is_not_said_to_have_been_given_it(ax):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = ht.SparseLinearRegression().fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match=r"chose k by a criterion: plot_criterion\(model.candidates_, "):
        plot_cv(model, ax)
    with pytest.raises(InvalidInputError, match="no predictions of held-out rows, because it was not cross-validated"):
        plot_calibration(model, ax=ax)
    model = ht.SparseLinearRegressionCV(criterion="ebic").fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match=r'chose k by a criterion.*; use criterion="cv" to choose it by'):
        plot_cv(model, ax)


def test_a_criterion_has_a_value_for_each_candidate(ax):
    with pytest.raises(InvalidInputError, match=r"one value, but their shapes are \(2,\) and \(1,\)"):
        plot_criterion([1, 2], [3], ax)


@pytest.mark.parametrize("draw", [plot_path, plot_coefficients, lambda model, ax: write_report(model, "report.html")])
@pytest.mark.parametrize("outputs", [1, 5])
def test_models_without_chosen_features_are_refused(low_rank, draw, outputs, ax):
    X, Y = low_rank
    model = ht.LowRankRegression(rank=1).fit(X, Y[:, :outputs])
    with pytest.raises(InvalidInputError, match="LowRankRegression does not"):
        draw(model, ax)


@pytest.mark.parametrize("candidates", [[3, 4, 5], [3, 10, 100]])
def test_every_tick_is_a_whole_number_of_features(build, ax, candidates):
    model = build(3, 200)
    model.candidates_ = np.array(candidates)
    plot_cv(model, ax)
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_a_single_candidate_can_be_drawn(build, ax):
    model = build(3, 20)
    for name in ("candidates_", "scores_", "mean_scores_", "standard_errors_", "coefs_path_"):
        setattr(model, name, getattr(model, name)[:1])
    plot_cv(model, ax)
    plot_path(model, Figure().subplots())


def test_convergence_of_a_result_and_of_an_estimator(classifier, ax):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 10))
    objective = ht.objectives.LinearModel(X, X[:, 0], loss="squared")
    result = ht.minimize(objective, ht.constraints.Sparsity(2))
    for run, history in [(result, result.history), (classifier, classifier.history_)]:
        plot_convergence(run, ax)
        np.testing.assert_allclose(ax.lines[0].get_ydata(), history["value"])
        np.testing.assert_allclose(ax.lines[0].get_xdata(), history["passes"])
        ax.clear()


def test_convergence_counts_iterations_where_no_passes_are_recorded(build, ax):
    model = build(3, 20)
    del model.history_["passes"]
    assert plot_convergence(model, ax).get_xlabel() == "iteration"


@pytest.mark.slow
def test_the_curve_over_numbers_of_edges(ax):
    X = make_graphical_model(60, 6, graph="chain").X
    model = ht.SparseGaussianGraphicalModelCV([2, 5, 9], cv=3).fit(X)
    plot_cv(model, ax)
    assert ax.get_xlabel() == "k, the number of edges"
    assert ax.get_ylabel() == "log likelihood\n(higher is better)"
    assert f"chosen: k = {model.best_n_edges_}" in {line.get_label() for line in ax.get_lines()}
    with pytest.raises(InvalidInputError, match="one given number of edges; use SparseGaussianGraphicalModelCV"):
        plot_cv(ht.SparseGaussianGraphicalModel(5).fit(X))


@pytest.fixture(scope="module")
def buyers():
    """A regression, a classifier with prices, and the result of a solver, all of which bought their attributes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 20))
    y = 2 * X[:, 3] - X[:, 11] + 0.5 * rng.standard_normal(3000)
    prices = np.linspace(1.0, 3.0, 20)
    return {
        "regression": ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=6).fit(X, y),
        "classifier": ht.LimitedAttributeLogisticRegression(2, costs=prices, budget=12.0).fit(X, y > 0),
        "result": ht.limited.learn(ht.limited.AdaptiveHybrid(2), ht.limited.ArraySource(X, y, n_observed=6)),
    }


BUYERS = ["regression", "classifier", "result"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUYERS)
def test_learning_curve_on_given_axes(buyers, kind, ax):
    before = dict(matplotlib.rcParams)
    assert plot_learning_curve(buyers[kind], ax) is ax
    ax.figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("examples", "log", "log")
    assert ax.get_ylabel().startswith("Brier score" if kind == "classifier" else "squared error")


def test_learning_curve_on_a_new_figure(buyers):
    ax = plot_learning_curve(buyers["regression"])
    assert ax.figure is plt.gcf()
    plt.close(ax.figure)


def test_learning_curve_shows_windows_and_their_mean(buyers, ax):
    model = buyers["regression"]
    plot_learning_curve(model, ax)
    windows, mean, last = ax.lines
    curve = model.learning_curve_
    counts = np.diff(curve["examples"], prepend=0)
    large = counts >= np.median(counts) / 2
    assert large.mean() > 0.8
    np.testing.assert_array_equal(windows.get_xdata(), curve["examples"][large])
    np.testing.assert_array_equal(windows.get_ydata(), curve["squared_error"][large])
    for t in (0, 5, len(counts) - 1):
        recent = curve["examples"][: t + 1] > 0.8 * curve["examples"][t]
        expected = np.average(curve["squared_error"][: t + 1][recent], weights=counts[: t + 1][recent])
        assert mean.get_ydata()[t] == pytest.approx(expected)
    assert last.get_ydata()[0] == mean.get_ydata()[-1] == pytest.approx(0.25, rel=0.2)  # the noise


@pytest.mark.parametrize("kind", BUYERS)
def test_learning_curve_counts_attributes_along_the_top(buyers, kind, ax):
    plot_learning_curve(buyers[kind], ax)
    ax.figure.canvas.draw()
    (top,) = ax.child_axes
    bought = buyers[kind].learning_curve_ if kind != "result" else buyers[kind].learning_curve
    to_attributes, to_examples = top._functions
    np.testing.assert_allclose(to_attributes(bought["examples"]), bought["attributes"])
    np.testing.assert_allclose(to_examples(bought["attributes"]), bought["examples"])
    beyond = np.array([1.0, 1e6])
    np.testing.assert_allclose(to_examples(to_attributes(beyond)), beyond)
    assert ("paid in all" in top.get_xlabel()) == (kind == "classifier")


def test_perfect_predictions_have_no_logarithm(ax):
    X = np.random.default_rng(0).standard_normal((500, 6))
    plot_learning_curve(ht.LimitedAttributeRegression(n_nonzero_coefs=1, n_observed=6).fit(X, np.zeros(500)), ax)
    assert "no error" in ax.texts[0].get_text()


def test_models_without_a_learning_curve_are_refused(regression, ax):
    with pytest.raises(InvalidInputError, match=r"SparseLinearRegression has no learning curve.*buy their attributes"):
        plot_learning_curve(regression, ax)
    with pytest.raises(InvalidInputError, match=r"LimitedAttributeRegression has no learning curve.*are fitted"):
        plot_learning_curve(ht.LimitedAttributeRegression(), ax)
    nothing = ht.limited.ArraySource(np.zeros((0, 9)), [], n_observed=4)
    with pytest.raises(InvalidInputError, match="empty"):
        plot_learning_curve(ht.limited.learn(ht.limited.AdaptiveHybrid(2), nothing), ax)


@pytest.mark.parametrize("plot", CHARTS)
def test_other_charts_of_buyers_lead_to_their_learning_curve(buyers, plot, ax):
    with pytest.raises(InvalidInputError, match="plot_learning_curve draws"):
        plot(buyers["regression"], ax)


def test_learning_curve_asks_for_matplotlib_by_name(buyers, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*hardthresh\[plot\]"):
        plot_learning_curve(buyers["regression"])
