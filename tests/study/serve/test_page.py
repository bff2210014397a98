"""The pages: what a person sees and does, with and without a browser."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from serve_helpers import ANSWER, TERMS, TOKEN, content, hidden, served_by, signed_in

from hardthresh.study import Study, Terms
from hardthresh.study.serve.study_thread import StudyThread
from levels import at, reaches
from patience import PATIENCE

DOCS = Path(__file__).parents[3] / "docs" / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WARD = """
title = "Days in hospital"
n_nonzero_coefs = 3
budget_per_example = 32.0
total_budget = 30000.0
examples = 400
currency = "EUR"
[target]
name = "stay"
unit = "days"
range = [0, 60]
possible = [0, 3000]
help = "from admission to discharge"
[panels]
blood = { price = 20.0 }
examination = { price = 5.0 }
[attributes]
age = { kind = "integer", unit = "years", range = [18, 100], possible = [0, 120], panel = "examination" }
temperature = { unit = "°C", range = [35, 41], possible = [25, 45], panel = "examination", help = "in the ear" }
pain = { kind = "ordered", levels = ["none", "mild", "moderate", "severe"], panel = "examination" }
creatinine = { unit = "umol/l", units = { "mg/dl" = 88.42 }, range = [30, 300], panel = "blood", help = "fasting" }
sodium = { unit = "mmol/l", range = [125, 155], possible = [80, 200], panel = "blood" }
CRP = { unit = "mg/l", range = [0, 300], possible = [0, 1000], panel = "blood" }
smoker = { kind = "yes/no" }
ward = { kind = "category", levels = ["medical", "surgical", "intensive", "day clinic", "other"] }
"base excess" = { unit = "mmol/l", range = [-10, 10], price = 3.0 }
"""
SERVE = "import sys; from hardthresh.study.serve import run; run(sys.argv[1], port=0)"


def patient(rng):
    """The values of a patient, who stays the longer the older and the more inflamed."""
    age, inflamed = rng.randint(20, 95), round(rng.expovariate(1 / 40) % 290, 1)
    return {
        "age": age,
        "temperature": round(rng.uniform(36, 39), 1),
        "pain": rng.choice(["none", "mild", "moderate", "severe"]),
        "creatinine": round(rng.uniform(50, 200)),
        "sodium": round(rng.uniform(130, 150)),
        "CRP": inflamed,
        "smoker": rng.choice(["yes", "no"]),
        "ward": rng.choice(["medical", "surgical", "intensive", "day clinic", "other"]),
        "base excess": round(rng.uniform(-5, 5), 1),
        "stay": round(2 + 0.1 * age + 0.05 * inflamed + rng.uniform(0, 2), 1),
    }


@pytest.fixture
def ward(tmp_path):
    """The file of a study that has learned from two rounds of examples."""
    study = Study.create(tmp_path / "ward.db", Terms.parse(WARD), who="Ann")
    rng = random.Random(0)
    for _ in range(64):
        [question] = study.ask("Ann")
        values = patient(rng)
        study.tell(question.number, {name: values[name] for name in question.needed}, "Ann")
    return study.path


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian package chromium)")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.skipif(not (DOCS / "node_modules").exists(), reason="make check-docs has not installed axe-core")
def test_a_person_measures_with_the_keyboard_on_a_telephone(ward):
    with subprocess.Popen([sys.executable, "-c", SERVE, ward], stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            command = ["node", str(Path(__file__).with_name("page.mjs")), url, *(["--all"] if reaches("pairs") else [])]
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        finally:
            server.terminate()
    assert run.stdout == "0 found\n", run.stdout + run.stderr
    corrected = [event for event in Study.open(ward).events() if event.action == "corrected"]
    assert [event.body["values"] for event in corrected] == [{"temperature": 37.5}, {"age": 62.0}]
    assert {event.who for event in corrected} == {"Ann <b>Bee</b>"}


def ask(person):
    assert person.submit("/ask").url.path == "/question/0"
    return person.get("/question/0").text


def typed(**values):
    return {f"value:{name}": value for name, value in values.items()}


def test_a_form_says_what_is_wrong_with_each_value_and_keeps_what_was_typed(served, person):
    ask(person)
    before = content(served.path)
    wrong = typed(age="61.5", creatinine="1,200") | {"missing:smoker": "1", "value:smoker": "yes"}
    answer = person.submit("/question/0", {**wrong, "unit:creatinine": "mg/dl"}, page="/question/0")
    assert answer.status_code == 422
    for said in ("Age must be a whole number", "Creatinine must be a number", "write a point", "not both"):
        assert said in answer.text
    assert 'value="1,200"' in answer.text
    assert content(served.path) == before
    nothing = person.submit("/question/0", page="/question/0")
    assert "Nothing was typed yet" in nothing.text


def test_a_form_that_comes_back_has_all_fields(served, person):
    """Browsers do not send a choice that was not made."""
    ask(person)
    answer = person.submit("/question/0", typed(age="61.5"), page="/question/0")
    assert answer.status_code == 422
    assert all(f'name="value:{name}"' in answer.text for name in Study.open(served.path).question(0).needed)


def test_a_value_that_came_back_is_confirmed_and_only_that_value(served, person):
    ask(person)
    answer = person.submit("/question/0", typed(age="110"), page="/question/0")
    assert (answer.status_code, "110 years is outside of the expected 18 to 100" in answer.text) == (409, True)
    assert 'name="confirm:age" value="110 years"' in answer.text
    other = person.submit("/question/0", {**typed(age="111"), "confirm:age": "110 years"}, page="/question/0")
    assert other.status_code == 409
    answer = person.submit("/question/0", {**typed(age="110"), "confirm:age": "110 years"}, page="/question/0")
    assert "Still needed: creatinine" in answer.text


def test_units_commas_and_missing_values_reach_the_study(served, person):
    ask(person)
    form = typed(creatinine="1,5", ward="surgical", age="61") | {"unit:creatinine": "mg/dl", "missing:smoker": "1"}
    assert "Still needed: stay" in person.submit("/question/0", form, page="/question/0").text
    assert content(served.path)[-1][3]["values"] == {
        "age": 61.0,
        "creatinine": 1.5 * 88.42,
        "smoker": None,
        "ward": 1.0,
    }
    answer = person.submit("/question/0", typed(stay="6"), page="/question/0")
    assert "is complete. As something could not be measured, the study learns nothing from it." in answer.text


@pytest.mark.parametrize("unit", ["kg/m2", "kg/m²"])
def test_a_unit_that_ends_in_a_digit_is_typed(tmp_path, unit):
    terms = Terms.parse(TERMS.replace("umol/l", unit).replace('units = { "mg/dl" = 88.42 }\n', ""))
    study = Study.create(tmp_path / "study.db", terms, who="Ann")
    with StudyThread(study.path) as thread:
        client = signed_in(served_by(thread)())
        for value in (f"35 {unit}", "35"):
            number = client.post("/ask", data=hidden(client.get("/").text)).url.path
            form = {**hidden(client.get(number).text), "value:creatinine": value}
            assert "Saved" in client.post(number, data=form).text
            assert content(study.path)[-1][3]["values"] == {"creatinine": 35.0}


def test_a_subject_without_values_is_not_enough(served, person):
    ask(person)
    answer = person.submit("/question/0", {"subject": "P 1"}, page="/question/0")
    assert (answer.status_code, "No value was typed yet." in answer.text) == (422, True)
    assert 'value="P 1"' in answer.text


def test_only_the_notice_of_what_was_saved_makes_the_browser_forget_its_draft(served, person):
    ask(person)
    saved = person.submit("/question/0", typed(age="61"), page="/question/0").text
    assert 'class="notice" role="status" data-saved="0"' in saved
    form = {**hidden(person.get("/question/0?correct=1").text), **typed(age="62"), "reason": "typing error"}
    corrected = person.post("/question/0/correct", data=form).text
    assert 'class="notice" role="status">Question 0 was corrected' in corrected


def test_a_subject_may_be_as_long_as_the_field_and_the_description_say(served, person):
    assert 'id="subject" name="subject" type="text" autocomplete="off" maxlength="100"' in ask(person)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    paths = served.client().get("/openapi.json", headers=headers).json()["paths"]
    body = paths["/api/tell"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["subject"]["maxLength"] == 100
    assert (
        person.submit("/question/0", {**typed(age="61"), "subject": "P" * 101}, page="/question/0").status_code == 422
    )
    assert "Saved" in person.submit("/question/0", {**typed(age="61"), "subject": "P" * 100}, page="/question/0").text


def test_a_form_that_is_sent_twice_counts_once(served, person):
    form = {**hidden(ask(person)), **typed(age="61")}
    first = person.post("/question/0", data=form)
    before = content(served.path)
    again = person.post("/question/0", data=form)
    assert (first.status_code, again.status_code) == (200, 200)
    assert content(served.path) == before
    changed = person.post("/question/0", data={**form, **typed(age="62")})
    assert changed.status_code in (409, 422)
    assert content(served.path) == before


def test_asking_twice_by_one_form_gives_one_question(served, person):
    form = hidden(person.get("/").text)
    places = {person.post("/ask", data=form).url.path for _ in range(2)}
    assert places == {"/question/0"}
    assert len(Study.open(served.path).status().open) == 1
    assert person.submit("/ask").url.path == "/question/1"


def whole():
    return typed(**{name: str(value) for name, value in ANSWER.items()} | {"smoker": "yes"})


def test_answers_are_corrected_and_withdrawn_with_a_reason(served, person):
    ask(person)
    assert "is complete" in person.submit("/question/0", {**whole(), "subject": "P 1"}, page="/question/0").text
    assert "P 1" in person.get("/answers?find=P+1").text
    assert "No answer is called" in person.get("/answers?find=P+2").text
    record = person.get("/question/0").text
    assert 'value="97.262"' in record  # in the unit of the terms
    changes = {**hidden(record), **whole(), "unit:creatinine": "umol/l", "value:creatinine": "97.262"}
    answer = person.post("/question/0/correct", data={**changes, **typed(age="62")})
    assert "Say why you correct it" in answer.text
    assert "Nothing was changed" in person.post("/question/0/correct", data={**changes, "reason": "x"}).text
    changes["key"] = "k"
    answer = person.post("/question/0/correct", data={**changes, **typed(age="62"), "reason": "typing error"})
    assert "was corrected" in answer.text
    assert content(served.path)[-1][1:3] == ("corrected", 0)
    assert content(served.path)[-1][3]["values"] == {"age": 62.0}
    named = {**hidden(answer.text), "subject": "P 2", "reason": "another patient"}
    assert "was corrected" in person.post("/question/0/correct", data=named).text
    assert person.get("/answers?find=P+2").text.count("P 2") > 1
    assert "Say why you withdraw it" in person.submit("/question/0/withdraw", page="/question/0").text
    answer = person.submit("/question/0/withdraw", {"reason": "wrong patient"}, page="/question/0")
    assert "was withdrawn" in answer.text
    assert "Withdrawn" in person.get("/question/0").text


def test_the_latest_answer_is_first_also_after_the_clock_went_back(served, person, monkeypatch):
    for number, now in enumerate(("2026-03-01T12:00:00+00:00", "2026-02-01T12:00:00+00:00")):
        monkeypatch.setattr("hardthresh.study.transactions.now", lambda now=now: now)
        person.submit("/ask")
        person.submit(f"/question/{number}", whole(), page=f"/question/{number}")
    page = person.get("/answers").text
    assert page.index("/question/1") < page.index("/question/0")


def test_a_correction_that_is_refused_keeps_what_was_typed(person):
    for number, subject in enumerate(("P 1", "P 2")):
        person.submit("/ask")
        person.submit(f"/question/{number}", {**whole(), "subject": subject}, page=f"/question/{number}")
    form = {**hidden(person.get("/question/1").text), "subject": "P 1", "reason": "another patient"}
    answer = person.post("/question/1/correct", data=form)
    assert (answer.status_code, 'value="another patient"' in answer.text) == (422, True)
    assert "P 1" in answer.text


def test_a_question_is_given_back_taken_over_and_skipped(served, person):
    ask(person)
    other = signed_in(served.client(), "Bob")
    seen = other.get("/question/0").text
    assert "It is with Ann" in seen
    assert other.post("/question/0/give-back", data={**hidden(seen), "reason": "Ann is ill"}).status_code == 200
    late = person.submit("/question/0", typed(age="61"))
    assert (late.status_code, "given back by Bob" in late.text) == (409, True)
    assert other.post("/ask", data=hidden(other.get("/").text)).url.path == "/question/0"
    form = {**hidden(other.get("/question/0").text), "bought": ["creatinine"], "reason": "gone home"}
    assert "another example takes its place" in other.post("/question/0/skip", data=form).text
    assert Study.open(served.path).status().spent == 20.0


def test_a_study_without_answers_has_no_curve_and_no_model_yet(person):
    page = person.get("/study").text
    assert "It begins with the first complete round" in page
    assert "There is none, as no example is learned from" in page
    assert "has not learned from any example yet" in person.get("/predict").text


@pytest.mark.slow
def test_two_classes_have_odds_and_a_probability(tmp_path):
    terms = WARD.replace(
        'unit = "days"\nrange = [0, 60]\npossible = [0, 3000]', 'kind = "class"\nlevels = ["home", "ward"]'
    )
    study = Study.create(tmp_path / "class.db", Terms.parse(terms), who="Ann")
    rng = random.Random(0)
    for _ in range(64):
        [question] = study.ask("Ann")
        values = patient(rng)
        values["stay"] = "ward" if values["age"] + rng.uniform(-10, 10) > 60 else "home"
        study.tell(question.number, {name: values[name] for name in question.needed}, "Ann")
    with StudyThread(study.path) as thread:
        client = signed_in(served_by(thread)())
        page = client.get("/study").text
        assert "Odds ratio" in page
        assert "<polyline" in page
        old = {**typed(**patient(rng)), "value:age": "95"}
        answer = client.post("/predict", data={**hidden(client.get("/predict").text), **old}).text
        assert '<p class="big">ward</p>' in answer
        assert "The probability of ward is" in answer


def through_the_page(client, patients):
    signed_in(client)
    for values in patients:
        question = client.post("/ask", data=hidden(client.get("/").text))
        typed_in = {name: value for name, value in typed(**values).items() if f'name="{name}"' in question.text}
        form = {**hidden(question.text), **typed_in}
        assert "is complete" in client.post(question.url.path, data=form).text


def through_the_api(client, patients):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for values in patients:
        [question] = client.post("/api/ask", json={"who": "Ann"}, headers=headers).json()["questions"]
        told = {name: values[name] for name in question["needed"]}
        body = {"who": "Ann", "question": question["question"], "values": told}
        assert client.post("/api/tell", json=body, headers=headers).json()["learned"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [32, *at("pairs", [300])])
def test_the_page_and_the_api_lead_to_the_same_model(tmp_path, count):
    """What is typed into forms is, bit for bit, what an instrument sends, and both what Python is told."""
    rng = random.Random(1)
    patients = [patient(rng) for _ in range(count)]
    models = []
    for way in (through_the_page, through_the_api):
        study = Study.create(tmp_path / f"{way.__name__}.db", Terms.parse(WARD), who="Ann")
        with StudyThread(study.path) as thread, served_by(thread)() as client:
            way(client, patients)
        study.verify()
        models.append(study.model())
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()
    assert models[0].intercept_ == models[1].intercept_
    assert any(models[0].coef_)
