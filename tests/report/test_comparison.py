"""The chart and the page of a comparison of methods."""

import datetime
from dataclasses import replace

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.report import plot_comparison, write_comparison
from levels import only_at

DATE = datetime.date(2026, 11, 28)


@pytest.fixture(scope="session")
def comparison():
    """Ours, a sparse method and one that uses all, on classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = np.where(2 * X[:, 1] + rng.logistic(size=60) > 0, "ill", "well")
    names = ["age", "<b>", *map(str, range(6))]
    return ht.compare(X, y, entrants=["hardthresh", "lasso", "forest"], folds=3, feature_names=names)


@only_at("pairs")
def test_each_method_is_drawn_at_its_loss_with_its_error(comparison):
    ax = plot_comparison(comparison)
    tips = {artist.get_gid() for artist in ax.get_children() if artist.get_gid()}
    for entry in comparison.ranked:
        [tip] = [tip for tip in tips if tip.startswith(f"{entry.name}: ")]
        assert ("all features" in tip) == entry.uses_all
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"hardthresh", "lasso", "forest", "no features: 1"}
    assert "log loss" in ax.get_ylabel()


@pytest.mark.slow
def test_a_method_that_is_far_worse_than_none_does_not_hide_the_others(comparison):
    far = [
        replace(entry, relative_losses=(90.0,) * 3) if entry.name == "lasso" else entry for entry in comparison.entries
    ]
    ax = plot_comparison(replace(comparison, entries=tuple(far)))
    assert ax.get_ylim()[1] < 5


@pytest.mark.slow
@pytest.mark.parametrize("loss", [90.0, 1.0, 0.5])
def test_equal_losses_of_all_methods_are_within_the_axis(comparison, loss):
    entries = tuple(replace(entry, relative_losses=(loss,) * 3) for entry in comparison.entries)
    low, high = plot_comparison(replace(comparison, entries=entries)).get_ylim()
    assert low < min(loss, 2.0) < high  # the largest that is drawn is 2
    assert loss == 0.5 or low < 1.0 < high


def test_what_is_no_comparison_is_refused():
    for call in (plot_comparison, lambda other: write_comparison(other, "page.html")):
        with pytest.raises(InvalidInputError, match=r"a comparison of methods, which hardthresh\.compare returns"):
            call(3)


@pytest.mark.slow
def test_the_page_has_the_verdict_the_table_and_what_was_run(comparison, tmp_path, no_charts):
    path = write_comparison(
        comparison, tmp_path / "page.html", date=DATE, command="hardthresh compare", data_summary={"target": "illness"}
    )
    page = path.read_text(encoding="utf-8")
    for words in (*comparison.verdict.sentences, comparison.how(), "to predict illness", "&lt;b&gt;", "2026-11-28"):
        assert words in page
    for row in comparison.rows():
        assert all(cell in page for cell in row)
    assert '<table class="tight">' in page  # or the last column would be cut off on every screen
    assert "<b>" not in page.replace("<p><b>", "").replace("<div><b>", "")
    assert "://" not in page
    again = write_comparison(
        comparison, tmp_path / "again.html", date=DATE, command="hardthresh compare", data_summary={"target": "illness"}
    )
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_comparison_without_a_sound_method_has_a_page(comparison, tmp_path):
    failed = [
        replace(entry, rounds=(), losses=(), relative_losses=(), features=(), failures=((0, "broken"),))
        for entry in comparison.entries
    ]
    page = write_comparison(replace(comparison, entries=tuple(failed)), tmp_path / "page.html")
    assert "There is nothing to compare" in page.read_text(encoding="utf-8")
