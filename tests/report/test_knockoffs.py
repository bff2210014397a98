"""The chart of a selection by knockoffs draws the statistics and the threshold that select."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning
from hardthresh.report import plot_knockoffs, write_report

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
X = pandas.DataFrame(RNG.standard_normal((300, 30)), columns=[f"gene{j}" for j in range(30)])
Y = X.to_numpy()[:, :8].sum(axis=1) + RNG.standard_normal(300)


def fitted(**settings):
    model = ht.SparseLinearRegression(n_nonzero_coefs=8)
    return ht.Knockoffs(model, **{"fdr": 0.2, "random_state": 1, **settings}).fit(X, Y)


def drawn(ax):
    """The points, and the heights of the horizontal lines."""
    points = {(float(x), float(y)) for line in ax.lines if line.get_linestyle() == "None" for x, y in line.get_xydata()}
    levels = {float(line.get_ydata()[0]) for line in ax.lines if line.get_linestyle() != "None"}
    return points, levels


def test_each_feature_is_drawn_once_with_the_threshold_on_both_sides():
    selector, ax = fitted(), Figure().subplots()
    assert plot_knockoffs(selector, ax) is ax
    points, levels = drawn(ax)
    assert points == {(float(j), w) for j, w in enumerate(selector.statistics_[0].tolist())}
    threshold = float(selector.threshold_[0])
    assert levels == {threshold, -threshold, 0.0}
    named = {line.get_gid() for line in ax.lines if (line.get_gid() or "").startswith("gene")}
    assert {one.partition(":")[0] for one in named} == {f"gene{j}" for j in selector.support_}
    assert [text.get_text() for text in ax.texts] == [f"gene{j}" for j in selector.support_]


def test_several_draws_show_the_e_values_that_select():
    selector = fitted(n_draws=2, fdr=0.5)
    points, levels = drawn(plot_knockoffs(selector, Figure().subplots()))
    assert points == {(float(j), e) for j, e in enumerate(selector.e_values_.tolist())}
    (needed,) = levels - {0.0}
    assert_array_equal(selector.support_, np.flatnonzero(selector.e_values_ >= needed - 1e-9))
    points, _ = drawn(plot_knockoffs(selector, Figure().subplots(), draw=1))
    assert points == {(float(j), w) for j, w in enumerate(selector.statistics_[1].tolist())}
    with pytest.raises(InvalidInputError, match=r"draw must be between 0 and the last draw \(1\)"):
        plot_knockoffs(selector, Figure().subplots(), draw=2)


def test_another_thing_is_refused():
    with pytest.raises(InvalidInputError, match="chart shows a fitted Knockoffs; got LinearRegression"):
        plot_knockoffs(LinearRegression(), Figure().subplots())


def test_a_report_names_the_chart_that_there_is(tmp_path):
    with pytest.raises(InvalidInputError, match="Knockoffs does not have them: plot_knockoffs draws its statistics"):
        write_report(fitted(), tmp_path / "report.html")
    with pytest.raises(InvalidInputError, match="show fitted models; got dict"):
        write_report({}, tmp_path / "report.html")


def test_an_empty_selection_has_no_threshold():
    with pytest.warns(NothingFoundWarning):
        selector = fitted(fdr=0.05)
    ax = plot_knockoffs(selector, Figure().subplots())
    assert drawn(ax)[1] == {0.0}
    assert ax.get_title("left") == "nothing is selected"
