"""The chart of a stability selection, and the part of the report about it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number, percent
from hardthresh.report import plot_coefficients, plot_stability, write_report
from levels import only_at

pytestmark = pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 30))
Y = 2.0 * X[:, 3] - X[:, 17] + RNG.standard_normal(80)


@pytest.fixture(scope="module")
def selection():
    return ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=3), n_pairs=10).fit(X, Y)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_bars_are_frequencies_the_highest_first(selection, ax):
    assert plot_stability(selection, ax) is ax
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(selection.inclusion_frequencies_, reverse=True)[: len(widths)]
    assert len({bar.get_facecolor() for bar in ax.patches}) == 2
    assert ax.patches[1].get_facecolor() == ax.patches[0].get_facecolor()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert {labels[0], labels[1]} == {"feature 3", "feature 17"}
    assert plt.get_fignums() == []


def test_the_threshold_has_its_bound(selection, ax):
    plot_stability(selection, ax)
    pairs, threshold = ax.lines
    assert threshold.get_xdata()[0] == 0.75
    assert f"at most {number(selection.expected_false_)}" in threshold.get_label().replace("\n", " ")
    shown = [int(label.get_text().split()[1]) for label in ax.get_yticklabels()]
    np.testing.assert_array_equal(pairs.get_xdata(), selection.pair_frequencies_[shown])
    rest = np.count_nonzero(selection.inclusion_frequencies_) - len(shown)
    assert f"{rest} more features are chosen at least once" in ax.get_xlabel().replace("\n", " ")


def test_legend_and_diamonds_are_within_the_picture(selection):
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = plot_stability(selection, figure.subplots())
    figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert figure.bbox.x0 <= legend.x0 <= legend.x1 <= figure.bbox.x1
    diamonds = ax.lines[0]
    half = diamonds.get_markersize() * figure.dpi / 72 / 2
    assert 0.0 in diamonds.get_xdata()
    assert ax.transData.transform((0.0, 0.0))[0] - half >= ax.bbox.x0


def test_another_thing_is_refused(ax):
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, Y)
    with pytest.raises(InvalidInputError, match="chart shows a fitted StabilitySelection; got SparseLinear"):
        plot_stability(model, ax)


def test_without_a_chosen_feature_the_chart_says_so(ax):
    nothing = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=0), n_pairs=2).fit(X, Y)
    plot_stability(nothing, ax)
    assert [text.get_text() for text in ax.texts] == ["no half-sample chooses a feature"]


def test_a_selection_that_is_not_fitted_is_refused(ax, tmp_path):
    selection = ht.StabilitySelection(ht.SparseLinearRegression())
    with pytest.raises(NotFittedError):
        plot_stability(selection, ax)
    with pytest.raises(NotFittedError):
        write_report(selection, tmp_path / "report.html")


@only_at("pairs")
def test_the_report_shows_the_frequencies_and_the_statement(selection, tmp_path):
    text = write_report(selection, tmp_path / "report.html").read_text(encoding="utf-8")
    words = " ".join(text.split())
    assert "How stable is the choice?" in words
    assert str(selection.statement()) in words
    assert "Share of half-samples" in words
    for j in selection.estimator_.support_:
        assert percent(selection.inclusion_frequencies_[j]) in words
    assert "half-samples, " in words  # the tooltip of a bar


@only_at("pairs")
def test_the_report_of_the_model_alone_has_the_column(selection, tmp_path):
    text = write_report(selection.estimator_, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Share of half-samples" in text
    assert "How stable is the choice?" not in text


@only_at("pairs")
def test_the_report_counts_halves_that_failed(tmp_path):
    y = np.zeros(80)
    y[:2] = 5.0
    model = ht.SparsePoissonRegression(n_nonzero_coefs=1, alpha=0.1)
    with pytest.warns(UserWarning, match="could not be fitted"):
        selection = ht.StabilitySelection(model, n_pairs=8).fit(X, y)
    text = write_report(selection, tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{selection.n_failed_} half-samples could not be fitted; their pairs are left out" in " ".join(text.split())


def test_a_model_of_scikit_learn_has_no_report(tmp_path):
    selection = ht.StabilitySelection(Lasso(alpha=0.1), n_pairs=2).fit(X, Y)
    with pytest.raises(InvalidInputError, match="Lasso does not"):
        write_report(selection, tmp_path / "report.html")


def test_a_selection_has_no_coefficients_of_its_own(selection, ax):
    with pytest.raises(InvalidInputError, match="StabilitySelection does not"):
        plot_coefficients(selection, ax)
