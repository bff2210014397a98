"""The gallery of the documentation: pages are listed, come to a conclusion, and run with or without their data."""

import os
import re
import runpy
import warnings
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

import hardthresh.datasets
from hardthresh.datasets import DatasetError
from levels import only_at

EXAMPLES = Path(__file__).parents[1] / "examples"
STORIES = sorted(EXAMPLES.glob("plot_*.py"))
METHODS = sorted((EXAMPLES / "methods").glob("plot_*.py"))
FETCHED = {"plot_text": "fetch_news20", "plot_spectra": "fetch_tecator"}
each_story = pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)


def text_of(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("folder", "pages"), [("", STORIES), ("methods", METHODS)])
def test_the_header_lists_each_page_once(folder, pages):
    listed = re.findall(r"plot_\w+\.py", text_of(EXAMPLES / folder / "GALLERY_HEADER.rst"))
    assert sorted(listed) == [page.name for page in pages]


def test_there_are_twelve_stories():
    assert len(STORIES) == 12


@each_story
def test_a_story_begins_with_a_question_and_ends_with_its_conclusion(page):
    """The first paragraph is in the words of a user, and nothing runs after the last section."""
    title, question = re.match(r'"""\n(.+)\n=+\n\n\*(.+?)\*\n\n', text_of(page), re.DOTALL).groups()
    assert title[0].isupper() or title[0].isdigit()
    assert question.endswith((".", "?"))
    _, end = text_of(page).split("# What to conclude, and what not\n# ---")
    assert all(line.startswith("#") for line in end.splitlines()[1:])


@pytest.mark.parametrize("page", STORIES + METHODS, ids=lambda page: page.stem)
def test_pages_use_public_names_and_hide_no_warnings(page):
    assert (
        re.findall(r"\b(?:import|from)\s[\w. ]*\b_[a-z]\w*|\w\._[a-z]\w*|filterwarnings|simplefilter", text_of(page))
        == []
    )


def run(page, monkeypatch):
    """Return the titles of the figures that a page shows, the classes of its warnings, and its variables."""
    figures = []

    def show():
        for number in plt.get_fignums():
            figure = plt.figure(number)
            names = [
                figure.get_suptitle(),
                *(axis.get_title(loc) for axis in figure.axes for loc in ("left", "center")),
            ]
            figures.append([name for name in names if name])
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        variables = runpy.run_path(str(page))
    plt.close("all")
    return figures, {warning.category.__name__ for warning in caught}, variables


def check_run(page, monkeypatch):
    """A title is the alternative text of a figure; a warning that readers see is explained on the page."""
    figures, raised, variables = run(page, monkeypatch)
    assert figures
    assert all(figures)
    assert [name for name in raised if f"``{name}``" not in text_of(page)] == []
    return variables


@only_at("pairs")
@each_story
def test_a_story_runs(page, monkeypatch):
    if page.stem == "plot_attack":
        pytest.importorskip("torch", reason="torch is not installed")
    if page.stem in FETCHED and not os.environ.get("HARDTHRESH_DATA"):
        pytest.skip("its data are in HARDTHRESH_DATA, which is not set; another test runs it without them")
    check_run(page, monkeypatch)


@only_at("pairs")
@pytest.mark.parametrize("name", FETCHED)
def test_a_story_without_its_data_uses_others_and_says_so(name, monkeypatch, capsys):
    def fail(**options):
        raise DatasetError("there is no such file")

    monkeypatch.setattr(hardthresh.datasets, FETCHED[name], fail)
    run(EXAMPLES / f"{name}.py", monkeypatch)
    first = capsys.readouterr().out.splitlines()[0]
    assert re.match(r"[A-Z]{4,}", first)  # in capitals
    assert "machine" in first


@pytest.mark.slow
def test_ships_need_their_exposure(monkeypatch):
    """Without the months at sea the type of the largest fleet has most damages; with them it has not."""
    found = check_run(EXAMPLES / "plot_exposure.py", monkeypatch)
    assert "type_B" in found["numbers"].get_feature_names_out()
    assert "type_B" not in found["rates"].get_feature_names_out()


@only_at("pairs")
def test_the_nile_changes_once(monkeypatch):
    found = check_run(EXAMPLES / "plot_trend_filtering.py", monkeypatch)
    assert found["starts"][found["level"].support_].tolist() == [1899]
    assert found["flow"].sum() == 91_935  # of the published series
