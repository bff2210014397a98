"""Charts of arrays: they draw the numbers that a plain recomputation gives, and refuse what they cannot draw."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import nbinom, norm, poisson
from sklearn.metrics import confusion_matrix, roc_auc_score

from hardthresh.core.errors import InvalidInputError
from hardthresh.report import (
    kaplan_meier,
    plot_baseline_hazard,
    plot_confusion,
    plot_correlations,
    plot_coverage,
    plot_criterion,
    plot_observed,
    plot_precision_recall,
    plot_quantiles,
    plot_residuals,
    plot_roc,
    plot_rootogram,
    plot_survival,
)

RNG = np.random.default_rng(0)
SCORE = RNG.standard_normal(60)
CLASS = (SCORE + RNG.standard_normal(60) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(SCORE))
TIME, EVENT = RNG.exponential(np.exp(-SCORE)).round(1), RNG.random(60) < 0.7
WEIGHT = RNG.integers(0, 3, 60).astype(float)

CHARTS = {
    "criterion": lambda ax: plot_criterion(np.arange(4), np.array([3.0, 1.0, np.nan, 2.0]), ax),
    "roc": lambda ax: plot_roc(CLASS, SCORE, ax),
    "precision_recall": lambda ax: plot_precision_recall(CLASS, SCORE, ax),
    "confusion": lambda ax: plot_confusion(CLASS, SCORE > 0, ax),
    "correlations": lambda ax: plot_correlations(np.array([[1.0, np.nan]]), ["$x_"], ax, columns=["\\frac{$", "b"]),
    "observed": lambda ax: plot_observed(COUNTS, np.exp(SCORE), ax),
    "residuals": lambda ax: plot_residuals(COUNTS, np.exp(SCORE), ax),
    "quantiles": lambda ax: plot_quantiles(SCORE, ax),
    "coverage": lambda ax: plot_coverage(COUNTS, np.exp(SCORE), ax, quantile=0.4),
    "rootogram": lambda ax: plot_rootogram(COUNTS, np.exp(SCORE), ax),
    "survival": lambda ax: plot_survival(TIME, EVENT, SCORE, ax),
    "baseline_hazard": lambda ax: plot_baseline_hazard(np.array([1.0, 2.0]), np.array([0.1, 0.3]), ax),
}


@pytest.fixture
def ax():
    return Figure(figsize=(7, 4)).subplots()


@pytest.mark.parametrize("name", CHARTS)
def test_given_axes_are_used_and_nothing_else_is_touched(name, ax):
    before = dict(matplotlib.rcParams)
    assert CHARTS[name](ax) is ax
    ax.figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


def repeated(*arrays):
    """The arrays with each row as often as its weight says."""
    return [np.repeat(array, WEIGHT.astype(int), axis=0) for array in arrays]


def drawn(ax):
    """All numbers that are drawn, and all words."""
    lines = [np.column_stack(line.get_data()) for line in ax.lines]
    patches = [np.array([[*patch.get_xy(), patch.get_width(), patch.get_height()]]) for patch in ax.patches]
    words = [text.get_text() for text in ax.texts] + [ax.get_title("left")]
    return [*lines, *patches], words


@pytest.mark.parametrize(
    ("plot", "arrays"),
    [
        (plot_roc, (CLASS, SCORE)),
        (plot_precision_recall, (CLASS, SCORE)),
        (plot_confusion, (CLASS, SCORE > 0)),
        (plot_observed, (COUNTS, np.exp(SCORE))),
        (plot_coverage, (COUNTS, np.exp(SCORE))),
        (plot_rootogram, (COUNTS, np.exp(SCORE))),
        (plot_survival, (TIME, EVENT, SCORE)),
    ],
)
def test_a_weight_of_two_is_a_row_given_twice(plot, arrays):
    numbers, words = drawn(plot(*arrays, Figure().subplots(), sample_weight=WEIGHT))
    expected, same = drawn(plot(*repeated(*arrays), Figure().subplots()))
    assert words == same
    assert len(numbers) == len(expected)
    for one, other in zip(numbers, expected, strict=True):
        assert {*map(tuple, one.round(9))} == {*map(tuple, other.round(9))}


def test_the_area_and_the_curve_of_roc(ax):
    plot_roc(CLASS, SCORE, ax)
    assert ax.get_title("left") == f"area under the curve {roc_auc_score(CLASS, SCORE):.3g}"
    wrong, found = ax.lines[1].get_data()
    for threshold in SCORE[:5]:
        point = [np.mean(SCORE[label == CLASS] >= threshold) for label in (0, 1)]
        assert np.min(np.abs(wrong - point[0]) + np.abs(found - point[1])) < 0.2


@pytest.mark.parametrize("plot", [plot_roc, plot_precision_recall])
@pytest.mark.parametrize("y", [np.zeros(3), np.array([0, 1, 2])])
def test_curves_of_classes_need_two_of_them(plot, y, ax):
    with pytest.raises(InvalidInputError, match="two classes"):
        plot(y, np.arange(3.0), ax)


def test_the_cells_of_the_confusion_matrix(ax):
    y, predicted = np.array(["b", "a", "b", "c"]), np.array(["b", "b", "a", "c"])
    plot_confusion(y, predicted, ax, classes=["c", "b", "a", "never"])
    counts = [text.get_text().partition("\n")[0] for text in ax.texts]
    expected = confusion_matrix(y, predicted, labels=["c", "b", "a", "never"])
    assert counts == [str(count) for count in expected.ravel()]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b", "a", "never"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    with pytest.raises(InvalidInputError, match="'c' is none of the classes"):
        plot_confusion(y, predicted, ax, classes=["a", "b"])


def test_observed_means_are_beside_the_mean_predictions(ax):
    predicted = np.repeat([1.0, 2.0], 50)
    y = np.tile([0.0, 3.0], 50)
    plot_observed(y, predicted, ax)
    points = np.concatenate([dots.get_offsets() for dots in ax.collections])
    np.testing.assert_allclose(points, [[1.0, 1.5], [2.0, 1.5]])


@pytest.mark.parametrize(("top", "scale"), [(5.0, "linear"), (500.0, "log")])
def test_amounts_of_several_sizes_are_on_logarithmic_axes(top, scale, ax):
    predicted = np.linspace(1.0, top, 100)
    assert plot_observed(predicted, predicted, ax).get_xscale() == scale


def test_residuals_and_their_mean(ax):
    predicted = np.arange(100.0)
    plot_residuals(predicted + 1.0, predicted, ax)
    _, points, mean = ax.lines
    np.testing.assert_allclose(points.get_ydata(), 1.0)
    np.testing.assert_allclose(mean.get_ydata(), 1.0)
    np.testing.assert_allclose(mean.get_xdata(), 4.5 + 10.0 * np.arange(10))


def test_many_residuals_are_thinned_and_the_mean_has_all(ax):
    predicted = np.arange(100_000.0)
    plot_residuals(np.where(predicted % 2 == 0, 1.0, -1.0) + predicted, predicted, ax)
    assert ax.lines[1].get_xdata().size == 2000
    np.testing.assert_allclose(ax.lines[2].get_ydata(), 0.0, atol=1e-9)


def test_normal_residuals_are_on_the_line(ax):
    plot_quantiles(5.0 * norm.ppf((np.arange(199) + 0.5) / 199), ax)
    expected, found = ax.lines[1].get_data()
    assert np.polyfit(expected, found, 1)[0] == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(np.corrcoef(expected, found)[0, 1], 1.0, atol=1e-12)


def test_coverage_is_the_share_at_or_below(ax):
    plot_coverage(np.tile([0.0, 1.0, 2.0, 3.0], 25), np.full(100, 2.0), ax, quantile=0.9)
    aim, dot = ax.lines
    assert aim.get_ydata()[0] == 0.9
    assert [*map(float, dot.get_data()[1])] == [0.75]
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        plot_coverage(COUNTS, SCORE, ax, quantile=1.0)


@pytest.mark.parametrize("dispersion", [0.0, 0.4])
def test_the_rootogram_hangs_from_the_expected_counts(dispersion, ax):
    mean = np.exp(SCORE)
    plot_rootogram(COUNTS, mean, ax, dispersion=dispersion)
    size = 1 / dispersion if dispersion else None
    for count, bar in enumerate(ax.patches[:-1]):
        law = nbinom(size, size / (size + mean)) if dispersion else poisson(mean)
        top = np.sqrt(law.pmf(count).sum())
        assert bar.get_y() + bar.get_height() == pytest.approx(top)
        assert bar.get_height() == pytest.approx(np.sqrt(np.sum(count == COUNTS)))
    tops = [(bar.get_y() + bar.get_height()) ** 2 for bar in ax.patches]
    assert sum(tops) == pytest.approx(60)  # the last bar stands for all that are as large or larger


def test_large_counts_are_one_bar_and_rates_are_none(ax):
    plot_rootogram(np.array([0, 29, 30, 99]), np.full(4, 30.0), ax)
    assert len(ax.patches) == 31
    assert ax.patches[-1].get_height() == pytest.approx(np.sqrt(2))
    assert "30 or more" in ax.get_xlabel()
    with pytest.raises(InvalidInputError, match=r"counts; y has 0\.5"):
        plot_rootogram(np.array([1.0, 0.5]), np.ones(2), ax)


@pytest.mark.parametrize("arrays", [(np.ones(3), np.ones(2)), (np.ones((3, 2)), np.ones((3, 2)))])
def test_rows_have_one_target_and_one_prediction(arrays, ax):
    with pytest.raises(InvalidInputError, match="one target, prediction and weight"):
        plot_residuals(*arrays, ax)


def slow_kaplan_meier(time, event, at):
    """The share without an event by its definition, one time after the other."""
    survival = 1.0
    for t in sorted({*time[event].tolist()}):
        if t <= at:
            survival *= 1 - np.sum((time == t) & event) / np.sum(time >= t)
    return survival


@pytest.mark.parametrize("wrong", [(TIME[:3], EVENT), (TIME, EVENT, np.ones(3)), (TIME[:, None], EVENT)])
def test_kaplan_meier_needs_arguments_of_one_length(wrong):
    with pytest.raises(InvalidInputError, match="must have one entry for each row, but have the shapes"):
        kaplan_meier(*wrong)


def test_kaplan_meier_by_its_definition():
    times, survival = kaplan_meier(TIME, EVENT)
    assert times.tolist() == sorted({*TIME[EVENT].tolist()})
    np.testing.assert_allclose(survival, [slow_kaplan_meier(TIME, EVENT, at) for at in times])
    weighted = kaplan_meier(TIME, EVENT, WEIGHT)
    for one, other in zip(weighted, kaplan_meier(*repeated(TIME, EVENT)), strict=True):
        np.testing.assert_allclose(one, other)


def test_groups_of_risk_have_their_own_curves(ax):
    grid = np.array([0.5, 1.0])
    curves = np.exp(-np.exp(SCORE)[:, None] * grid)
    plot_survival(TIME, EVENT, SCORE, ax, times=grid, survival=curves)
    order = np.argsort(SCORE)
    for group, rows in enumerate(np.array_split(order, 3)):
        observed, predicted = ax.lines[2 * group : 2 * group + 2]
        times, survival = kaplan_meier(TIME[rows], EVENT[rows])
        np.testing.assert_allclose(observed.get_xdata()[1:-1], times)
        np.testing.assert_allclose(observed.get_ydata()[1:-1], survival)
        np.testing.assert_allclose(predicted.get_ydata(), curves[rows].mean(axis=0))


def test_a_group_without_events_stays_at_one(ax):
    risk = np.repeat([0.0, 1.0, 2.0], 20)
    plot_survival(TIME, EVENT & (risk > 0), risk, ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 1.0)


def test_survival_needs_events_and_few_groups(ax):
    with pytest.raises(InvalidInputError, match="no event"):
        plot_survival(TIME, EVENT & False, SCORE, ax)
    with pytest.raises(InvalidInputError, match="1, 2 or 3, got 4"):
        plot_survival(TIME, EVENT, SCORE, ax, n_groups=4)


def test_the_least_criterion_is_marked(ax):
    CHARTS["criterion"](ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["least: k = 1"]
    empty = plot_criterion(np.arange(1), np.array([np.nan]), Figure().subplots())
    assert "too few rows" in empty.texts[0].get_text()


def test_correlations_keep_their_sign_and_gaps(ax):
    plot_correlations(np.array([[1.0, -0.5], [np.nan, 1.0]]), ["a", "b"], ax)
    assert [text.get_text() for text in ax.texts] == ["+1.00", "−0.50", "+1.00"]
    shades = [cell.get_alpha() for cell in ax.patches]
    assert shades[0] > shades[1]
