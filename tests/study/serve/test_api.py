"""The API: questions, answers, their repetition, and its description."""

import json
import sqlite3
from contextlib import closing

import pandas
import pytest
from serve_helpers import ANSWER, TOKEN, content
from sklearn.exceptions import ConvergenceWarning

from hardthresh.study import Study

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


def test_a_question_is_asked_answered_in_parts_and_learned_from(post):
    status, answer = post("ask", {"who": "Ann"})
    assert status == 200
    [question] = answer["questions"]
    assert question["needed"][-1] == "stay"
    assert {"panel": "blood", "attributes": ["creatinine"]} in question["panels"]
    told = {name: ANSWER[name] for name in question["needed"]}
    stay = told.pop("stay")
    status, receipt = post("tell", {"who": "Ann", "question": question["question"], "values": told, "subject": "P1"})
    assert (status, receipt["complete"], receipt["needed"]) == (200, False, ["stay"])
    status, receipt = post("tell", {"who": "Ann", "question": question["question"], "values": {"stay": stay}})
    assert (status, receipt["complete"], receipt["learned"]) == (200, True, True)


def ask(post, who="Ann"):
    [question] = post("ask", {"who": who})[1]["questions"]
    return question["question"], {name: ANSWER[name] for name in question["needed"]}


def get(served, path):
    return served.client().get(path, headers={"Authorization": f"Bearer {TOKEN}"}).json()


def test_a_repeated_request_has_the_same_reply_and_changes_nothing(served, post):
    first = post("ask", {"who": "Ann"}, Idempotency_Key="1")
    assert post("ask", {"who": "Ann"}, Idempotency_Key="1") == first
    number, values = first[1]["questions"][0]["question"], {"age": 61}
    told = post("tell", {"who": "Ann", "question": number, "values": values}, Idempotency_Key="2")
    before = content(served.path)
    assert post("tell", {"who": "Ann", "question": number, "values": values}, Idempotency_Key="2") == told
    status, answer = post("tell", {"who": "Ann", "question": number, "values": {"age": 62}}, Idempotency_Key="2")
    assert (status, answer["error"]) == (409, "RepeatedKey")
    assert content(served.path) == before


def test_a_value_outside_of_its_range_is_asked_back_and_confirmed(post):
    number, values = ask(post)
    tell = {"who": "Ann", "question": number, "values": {**values, "age": 110}}
    status, answer = post("tell", tell)
    assert (status, answer["error"]) == (409, "QuestionBack")
    assert answer["doubts"] == [{"attribute": "age", "value": 110.0, "low": 18.0, "high": 100.0, "unit": "years"}]
    assert post("tell", {**tell, "confirmed": ["age"]})[1]["complete"]


def test_skip_give_back_correct_and_withdraw(served, post):
    number, values = ask(post)
    assert post("give-back", {"who": "Ann", "question": number, "reason": "night"})[0] == 200
    assert ask(post, "Bob")[0] == number
    status, answer = post("tell", {"who": "Ann", "question": number, "values": values})
    assert (status, answer["error"]) == (409, "LateAnswer")
    assert "Bob" in answer["message"]
    assert post("tell", {"who": "Bob", "question": number, "values": values})[1]["learned"]
    correct = {"who": "Ann", "question": number, "values": {"age": 62}, "reason": "typing error"}
    assert post("correct", correct)[0] == 200
    assert post("correct", {**correct, "values": {}, "subject": "P 7"})[0] == 200
    assert list(Study.open(served.path).events())[-1].subject == "P 7"
    assert post("withdraw", {"who": "Ann", "question": number, "reason": "wrong patient"})[0] == 200
    number, _ = ask(post)
    assert post("skip", {"who": "Ann", "question": number, "bought": ["age"], "reason": "gone home"})[1]["cost"] == 1.0
    assert get(served, "/api/questions") == {"questions": []}
    status = get(served, "/api/status")
    assert (status["answered"], status["open"], status["currency"]) == (0, [], "EUR")


def test_the_model_predicts_what_its_estimator_predicts(served, post):
    assert get(served, "/api/model")["intercept"] is None
    assert post("predict", {"values": {}})[0] == 422
    for day in range(6):
        number, values = ask(post)
        told = {"who": "Ann", "question": number, "values": {**values, "age": 40 + 5 * day, "stay": 3.0 + day}}
        assert post("tell", told)[0] == 200
    with pytest.warns(ConvergenceWarning, match="too few"):
        model = Study.open(served.path).model()
    shown = get(served, "/api/model")
    assert "too few" in shown["caution"]
    assert shown["intercept"] == pytest.approx(float(model.intercept_))
    assert [one["value"] for one in shown["coefficients"]] == [x for x in model.coef_.ravel() if x]
    whole = {name: value for name, value in ANSWER.items() if name != "stay"}
    row = pandas.DataFrame([[61, 1.1 * 88.42, 1, 1, 0]], columns=model.feature_names_in_)
    assert post("predict", {"values": whole})[1]["prediction"] == pytest.approx(float(model.predict(row)[0]))


@pytest.mark.slow
def test_the_description_is_valid_and_describes_this_study(served, post):
    validate = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed").validate
    document = get(served, "/openapi.json")
    validate(document)
    from jsonschema import Draft202012Validator

    values = Draft202012Validator(document["components"]["schemas"]["Values"])
    assert values.is_valid(ANSWER)
    assert not values.is_valid({"age": 300})
    assert not values.is_valid({"ward": "attic"})
    assert not values.is_valid({"aeg": 30})
    number, told = ask(post)
    for name, answer in (
        ("Receipt", post("tell", {"who": "Ann", "question": number, "values": told})[1]),
        ("Error", post("tell", {"who": "Ann", "question": number, "values": told})[1]),
        ("Status", get(served, "/api/status")),
        ("Model", get(served, "/api/model")),
        ("Question", post("ask", {"who": "Ann"})[1]["questions"][0]),
    ):
        schema = {**document["components"]["schemas"][name], "components": document["components"]}
        assert [error.message for error in Draft202012Validator(schema).iter_errors(answer)] == [], name


def test_a_question_says_what_its_instruments_have_to_know(post):
    [question] = post("ask", {"who": "Ann"})[1]["questions"]
    assert question["details"].keys() == {*question["needed"]}
    creatinine, ward = question["details"]["creatinine"], question["details"]["ward"]
    assert (creatinine["unit"], creatinine["units"], creatinine["range"]) == ("umol/l", {"mg/dl": 88.42}, [30, 300])
    assert (ward["kind"], ward["levels"]) == ("category", ["medical", "surgical", "intensive"])
    assert question["details"]["stay"]["possible"] == [0, 3000]


def test_every_refusal_is_described(served, post):
    described = get(served, "/openapi.json")["paths"]["/api/tell"]["post"]["responses"].keys()
    client, path = served.client(), "/api/tell"
    answers = [
        client.post(path, json={}),
        client.post(path, json={}, headers={**AUTHORIZED, "Origin": "https://evil.example"}),
        client.post(path, content=b"x", headers={**AUTHORIZED, "Content-Type": "text/plain"}),
        client.post(path, json={}, headers={**AUTHORIZED, "Host": "evil.example"}),
        client.post(path, json={}, headers={**AUTHORIZED, "X": "x" * 20_000}),
        client.post(path, content=b" " * 300_000, headers=AUTHORIZED),
        client.post(path, json={}, headers=AUTHORIZED),
    ]
    assert [answer.status_code for answer in answers] == [401, 403, 415, 421, 431, 413, 422]
    assert {str(answer.status_code) for answer in answers} <= described


def test_every_path_of_the_description_is_served(served):
    document = get(served, "/openapi.json")
    for path, operations in document["paths"].items():
        for method in operations:
            answer = served.client().request(method, path, headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code in (200, 422), path


def test_a_busy_file_is_no_conflict(served, post, monkeypatch):
    monkeypatch.setattr("hardthresh.study.log._WAIT", 0.0)
    before = content(served.path)
    with closing(sqlite3.connect(served.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = served.client().post("/api/ask", json={"who": "Ann"}, headers=AUTHORIZED)
    assert (answer.status_code, answer.json()["error"]) == (503, "Busy")
    assert int(answer.headers["retry-after"]) > 0
    assert content(served.path) == before
    assert post("ask", {"who": "Ann"})[0] == 200


def test_a_file_that_cannot_be_written_is_no_conflict(served, monkeypatch):
    def full(self, connection, how):
        raise sqlite3.DatabaseError("database or disk is full")

    monkeypatch.setattr("hardthresh.study.log.StudyLog._begin", full)
    answer = served.client().post("/api/ask", json={"who": "Ann"}, headers=AUTHORIZED)
    assert (answer.status_code, "disk is full" in answer.json()["message"]) == (503, True)


def test_answers_are_json_without_numbers_that_json_lacks(served):
    answer = served.client().get("/api/status", headers={"Authorization": f"Bearer {TOKEN}"})
    json.loads(answer.text, parse_constant=pytest.fail)
