"""The charts of studies show the numbers of progress and plan."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from hardthresh.core.errors import InvalidInputError
from hardthresh.limited import AdaptiveHybrid, CostModel
from hardthresh.report import plot_plan, plot_progress
from hardthresh.study import Terms, plan, progress
from hardthresh.study.simulation import simulate


@pytest.fixture
def ax():
    return Figure().subplots()


def now(n):
    X = np.random.default_rng(0).standard_normal((n, 8))
    return progress(simulate(AdaptiveHybrid(1), CostModel.of(8, 4), X, X[:, 1], length=n)[0])


def test_the_line_of_progress_is_its_curve_and_ends_in_the_present_error(ax):
    shown = now(300)
    lines = plot_progress(shown, ax).get_lines()
    np.testing.assert_array_equal(lines[1].get_ydata(), shown.curve.error)
    np.testing.assert_array_equal(lines[0].get_ydata(), shown.curve.null)
    assert lines[2].get_ydata() == shown.errors[0].model.value
    assert str(shown.errors[0].model) in lines[2].get_gid()


def test_a_study_without_examples_says_that_there_is_nothing_to_draw(ax):
    assert plot_progress(now(0), ax).texts[0].get_text() == "there is no error to be drawn yet"


def test_the_points_of_a_plan_are_its_shares_with_the_cost_above(ax):
    names = "".join(f"[attributes.a{j}]\n" for j in range(6))
    text = f"n_nonzero_coefs = 1\nbudget_per_example = 3\nexamples = 60\n[target]\nname = 'y'\n{names}"
    shown = plan(Terms.parse(text), examples=[50, 100], repeats=3)
    plot_plan(shown, ax)
    study = next(line for line in ax.get_lines() if len(line.get_xdata()) == 2 and line.get_marker() == "o")
    assert study.get_ydata().tolist() == [size.all_found.value for size in shown.sizes]
    assert {"what the terms allow", "study", "complete rows, same money"} == {
        text.get_text() for text in ax.get_legend().get_texts()
    }
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["50", "100"]


@pytest.mark.parametrize("chart", [plot_progress, plot_plan])
def test_other_things_are_not_drawn(chart, ax):
    with pytest.raises(InvalidInputError, match="of a study; got list"):
        chart([], ax)
