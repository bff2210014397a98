"""The chart of the sets of features that fit nearly as well as a model."""

import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import signed_percent
from hardthresh.report import plot_alternatives, write_report
from hardthresh.report.plots.style import DARK, LIGHT
from levels import only_at, turn

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 6))
X = np.hstack([X, X + 0.2 * RNG.standard_normal((60, 6))])
MODEL = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, X[:, 1] - X[:, 3] + 0.5 * RNG.standard_normal(60))
NOISY = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, RNG.standard_normal(60))
ALONE = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, X[:, 1])
KINK = ht.SparseQuantileRegression(n_nonzero_coefs=1).fit(X, X[:, 1] + X[:, 2])


@pytest.fixture(scope="module")
def found():
    return MODEL.alternatives(tolerance=0.5)


def colour(patch):
    return tuple(round(255 * part) for part in patch.get_facecolor()[:3])


def rgb(code):
    return tuple(int(code[i : i + 2], 16) for i in (1, 3, 5))


def test_a_cell_says_that_a_set_has_a_feature(found):
    ax = Figure().subplots()
    assert plot_alternatives(found, ax) is ax
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert sorted(columns[:2]) == sorted(found.own)
    cells = {(round(p.get_y() + 0.4), columns[round(p.get_x() + 0.45)]): colour(p) for p in ax.patches}
    expected = {
        (i, name): rgb(DARK if name in found.own else LIGHT)
        for i, one in enumerate(found.supports)
        for name in one.names
    }
    assert cells == expected
    assert len({*expected.values()}) == 2
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert rows[[not one.added for one in found.supports].index(True)] == "the model"
    assert all(text.startswith(("+", "−", "the model")) for text in rows)
    assert plt.get_fignums() == []


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(4)
    noise = rng.standard_normal((50, 60))
    return ht.SparseLinearRegression(n_nonzero_coefs=3).fit(noise, rng.standard_normal(50)).alternatives(tolerance=0.5)


@only_at("pairs")
def test_many_sets_and_features_are_cut_and_said_to_be(many):
    found = many
    ax = plot_alternatives(found, Figure(figsize=(8, 6)).subplots())
    columns, rows = (len(axis.get_ticklabels()) for axis in (ax.xaxis, ax.yaxis))
    assert (columns, rows) == (24, 30)
    assert ax.get_title(loc="left") == f"{len(found.shares) - 24} more features in fewer sets"
    narrow = plot_alternatives(found, Figure(figsize=(4, 6)).subplots())
    assert len(narrow.xaxis.get_ticklabels()) == 10


def test_without_another_set_the_chart_says_so():
    ax = plot_alternatives(ALONE.alternatives(), Figure().subplots())
    (text,) = ax.texts
    assert text.get_text() == "no other set of 1 feature was found\nto fit within 2 % of the model"
    assert not ax.patches


@pytest.mark.slow
def test_labels_of_many_rows_do_not_overlap(many):
    found = many
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = plot_alternatives(found, figure.subplots())
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert 5 < len(boxes) < 30
    assert all(lower.y1 <= upper.y0 for upper, lower in pairwise(boxes))
    texts = [label.get_text() for label in ax.get_yticklabels()]
    rows = ["the model" if not one.added else signed_percent(one.excess) for one in found.supports]
    assert texts == [rows[round(place)] for place in ax.get_yticks()]


def test_another_thing_is_refused():
    with pytest.raises(InvalidInputError, match=r"chart shows the Alternatives that model\.alternatives\(\) returns"):
        plot_alternatives(MODEL, Figure().subplots())


def part_of(page):
    """The part of a report about alternatives."""
    return page.partition('id="others">')[2].partition("</section>")[0]


def report_of(model, folder, **given):
    return part_of(write_report(model, folder / "report.html", **given).read_text(encoding="utf-8"))


@only_at("pairs")
def test_the_report_has_the_chart_and_says_that_all_are_known(tmp_path):
    proved = NOISY.alternatives(most=20, time_limit=None)
    assert proved.complete
    assert len(proved.supports) > 1
    page = report_of(NOISY, tmp_path, alternatives=proved)
    assert f"{len(proved.supports)} sets within 2 % of the objective" in page
    assert re.search(r"It is proved that no other set of \d+ features is within the tolerance\.", page)
    assert page.count("<svg") == 2


@only_at("pairs")
def test_the_report_does_not_say_that_there_is_no_other_set_where_one_was_asked_for(tmp_path):
    proved = NOISY.alternatives(most=1, time_limit=None)
    assert proved.more
    page = report_of(NOISY, tmp_path, alternatives=proved)
    assert "No other set" not in page
    assert re.search(r"Other sets of \d+ features are within 2 % of the model, but only one set was asked for\.", page)


@only_at("pairs")
def test_the_report_looks_for_twenty_sets(tmp_path):
    assert f"{len(NOISY.alternatives(most=20).supports)} sets within 2 % of" in report_of(NOISY, tmp_path)


@only_at("pairs")
@pytest.mark.parametrize(
    ("model", "sentence"),
    turn(
        [
            (ALONE, "No other set of 1 feature was found to fit within 2 % of the model."),
            (KINK, "Not known: a loss with a kink has no second derivatives by which exchanges could be ranked."),
        ],
        "the report says why it has no chart",
    ),
)
def test_the_report_says_why_it_has_none(tmp_path, model, sentence):
    assert sentence in report_of(model, tmp_path)


@only_at("pairs")
def test_the_report_takes_what_was_found(tmp_path, found):
    page = report_of(MODEL, tmp_path, alternatives=found)
    assert f"{len(found.supports)} sets within 50 % of the objective" in page
