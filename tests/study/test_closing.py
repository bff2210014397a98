"""The report of a study says what it found, what it cost and what it does not show, and the model can be loaded."""

import datetime
import re

import numpy as np
import pytest
from serve_helpers import served_by, signed_in
from study_helpers import answer, study_of_classes
from typer.testing import CliRunner

import hardthresh as ht
from hardthresh.cli.app import app
from hardthresh.report import plot_progress
from hardthresh.study import Terms, drift, progress
from hardthresh.study.closing import conclusions, save_model, write_study
from hardthresh.study.outcomes import records_of
from hardthresh.study.predicting import predict, predictor
from hardthresh.study.serve.study_thread import StudyThread
from hardthresh.study.summaries import status_summary

DATE = datetime.date(2026, 11, 28)


@pytest.fixture
def page(busy, tmp_path, no_charts):
    return write_study(busy, tmp_path / "page.html", date=DATE).read_text(encoding="utf-8")


def in_words(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.slow
def test_the_page_says_what_was_found_and_what_it_cost(busy, page):
    words = in_words(page)
    assert "Interim report" in words
    assert "Y is predicted from a1, a6. A prediction costs 2 EUR." in words
    assert "1,805 EUR at most 4 EUR for an example" in words
    assert f"{busy.learned().questions.size} of {busy.status().asked} asked about" in words
    assert [*busy.events()][-1].checksum in page


def test_the_page_says_what_went_wrong(page):
    words = in_words(page)
    assert "1 answer had a value outside of its range and was asked back. 1 correction; 3 examples were not" in words
    assert "=typing error" in words
    for what, cost in (("withdrawn", 4), ("skipped", 1), ("dropped", 3)):
        assert f"{what} {cost} EUR" in words


def test_the_page_counts_attributes_and_people(busy, page):
    records = records_of(busy.events(), busy.terms)
    for attribute in busy.terms.attributes:
        asked = sum(attribute in record.attributes for record in records)
        missing = sum(attribute.name in record.lacking for record in records)
        measured = sum(record.values.get(attribute.name) is not None for record in records)
        assert f"{attribute.name} 1 EUR {asked} {measured} {missing} " in in_words(page)
    assert "ann 450 2,250 " in in_words(page)
    assert re.search(r"cem 2 6 \d", in_words(page))


def test_what_people_typed_is_text_and_nothing_is_loaded(page):
    assert "<i>withdrew" not in page
    assert "&lt;i&gt;withdrew&lt;/i&gt; consent" in page
    assert not re.search(r"<script|https?://|src=|@import", page)
    assert "default-src 'none'" in page


@pytest.mark.slow
def test_equal_studies_give_equal_pages(busy, page, tmp_path):
    assert write_study(busy, tmp_path / "again.html", date=DATE).read_text(encoding="utf-8") == page


def test_a_study_without_a_model_says_so(begin, tmp_path, no_charts):
    study = begin('title = "<b>Beds</b>"\ntotal_budget = 40\n')
    answer(study, "ann", 2)
    study.close("ann")
    page = write_study(study, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Final report" in page
    assert "&lt;b&gt;Beds&lt;/b&gt;" in page
    assert "There is no model, as no example is learned from." in page
    assert "nothing can be concluded" in page


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_study_whose_examples_were_withdrawn_can_still_be_looked_at(kept, begin, tmp_path, no_charts):
    study = begin("examples = 60\n")
    answer(study, count=20)
    for number in study.learned().questions[kept:].tolist():
        study.withdraw(number, "ann", reason="withdrew consent")
    learned = study.learned()
    now = progress(learned)
    assert (now.examples, now.settled) == (kept, False)
    assert str(now).startswith("Errors on the latest" if kept else "The error of predictions is not known")
    assert str(drift(learned)) == "There are too few examples to test for drift."
    assert plot_progress(now).get_xlabel() == ("examples" if kept else "")
    words = in_words(write_study(study, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert ("nothing can be concluded" in words) == (not kept)
    assert "nan" not in words
    shown = CliRunner().invoke(app, ["study", "status", str(study.path)], catch_exceptions=False)
    assert str(now).splitlines()[0][:30] in shown.output
    with StudyThread(study.path) as thread:
        assert signed_in(served_by(thread)()).get("/study").status_code == 200
    assert status_summary(study)["progress"]["examples"] == kept


def test_of_two_classes_the_page_has_three_errors_and_log_odds(tmp_path, no_charts):
    study = study_of_classes(tmp_path / "study.db")
    words = in_words(write_study(study, tmp_path / "page.html").read_text(encoding="utf-8"))
    for name in ("log loss", "Brier score", "share of errors"):
        assert name in words
    assert "Ill is predicted from fever." in words
    assert "Positive coefficients speak for “ill”." in words
    assert re.search(r"fever \+[\d.]+ log odds per K \+[\d.]+ log odds", words)
    assert "ill: well or ill" in words


def said(study):
    learned = study.learned()
    found = conclusions(
        study.terms, learned, records_of(study.events(), study.terms), progress(learned), drift(learned)
    )
    return " ".join(found.may), " ".join(found.may_not)


def test_what_may_be_concluded_depends_on_what_was_found(busy, begin):
    may, may_not = said(busy)
    assert "The model predicts better than no model" in may
    assert progress(busy.learned()).choice in may + may_not
    assert "both hold at one look" in may_not
    assert "2 examples were paid for, and could not be measured whole" not in may
    assert "could not be measured: 1 was dropped" in may_not
    assert "causes" in may_not
    noise = begin(name="noise.db")
    rng = np.random.default_rng(0)
    while not noise.learned().questions.size:
        for question in noise.ask("ann", 1000):
            values = rng.standard_normal(len(question.needed)).clip(-6, 6)
            noise.tell(question.number, dict(zip(question.needed, values.tolist(), strict=True)), "ann")
    may, may_not = said(noise)
    assert "The model predicts better" not in may
    assert "That the model predicts better than no model" in may_not
    assert "dropped" not in may_not


def test_the_saved_model_is_the_model_with_its_terms(busy, tmp_path):
    save_model(busy, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.coef_, busy.model().coef_)
    assert loaded.feature_names_in_.tolist() == busy.terms.columns
    notes = ht.storage.load_notes(tmp_path / "model.json")
    assert Terms.parse(notes["terms"]) == busy.terms


def test_predictions_need_only_what_the_model_needs(busy):
    model, fitted = predictor(busy), busy.model()
    assert [attribute.name for attribute in model.attributes] == ["a1", "a6"]
    row = np.zeros((1, 8))
    row[:, [1, 6]] = [[0.5, 7.0]]
    found = predict(busy.terms, model, {"a6": 7.0, "a1": "0.5", "a2": 1.0})
    np.testing.assert_allclose(found.value, row @ fitted.coef_ + fitted.intercept_, rtol=1e-12)
    assert found.cautions == ("a6 is 7, outside of -6 to 6",)
    with pytest.raises(ht.core.InvalidInputError, match="a1 is missing, which a prediction needs"):
        predict(busy.terms, model, {"a6": 7.0})
