"""``hardthresh study``: a day of a study in the shell, and the bad input that people give it."""

import json
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import polars
import pytest
from study_helpers import study_of_classes
from typer.testing import CliRunner

import hardthresh as ht
from hardthresh.cli.app import app
from hardthresh.study import Study, Terms
from hardthresh.study.closing import save_model

ALL = ("age=61", "weight=150 lb", "smoker=yes", "creatinine=1.2 mg/dl", "albumin=40", "NYHA class=ii", "ward=surgery")
"""The values of the first question of the example, without the target."""
SHORT = """
n_nonzero_coefs = 1
budget_per_example = 2
total_budget = 4
hold_hours = 1
[target]
name = "y"
[attributes.a]
range = [0, 9]
[attributes.b]
range = [0, 9]
"""


@pytest.fixture(autouse=True)
def calm(monkeypatch):
    """Let the commands be those of Ann, and let nothing have to survive a power cut."""
    monkeypatch.setenv("HARDTHRESH_WHO", "ann")
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("hardthresh.limited.sources.database._SYNCHRONOUS", "OFF")


@pytest.fixture
def example(done, folder):
    """The study of the example file, of which Ann holds a question."""
    done("study", "example", "terms.toml")
    done("study", "new", "terms.toml", "study.db")
    done("study", "ask", "study.db")
    return Study.open(folder / "study.db")


@pytest.fixture
def short(folder):
    """A study of two attributes that are both bought, with a budget for two examples."""
    return Study.create(folder / "short.db", Terms.parse(SHORT), "ann")


def said(result):
    return " ".join(result.output.split())


# --- terms ---


def test_the_example_is_a_study_that_can_begin(done, refused, folder):
    text = done("study", "example")
    done("study", "example", "terms.toml")
    assert (folder / "terms.toml").read_text(encoding="utf-8") == text
    assert "is there already" in refused("study", "example", "terms.toml")
    assert "must end in .toml" in refused("study", "example", "terms.txt")
    done("study", "new", "terms.toml", "study.db")
    assert Study.open(folder / "study.db").terms == Terms.parse(text)
    assert "study.db is there; choose another name" in refused("study", "new", "terms.toml", "study.db")
    for name in ("copy.toml", "table.csv", ":memory:"):
        assert f"{name} is no name for the file of a study" in refused("study", "new", "terms.toml", name)
        assert not (folder / name).exists()
    kinds = {attribute.kind for attribute in Terms.parse(text).attributes}
    assert kinds == {"number", "integer", "yes/no", "ordered", "category"}


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        ("n_nonzero_coefs = 3", "n_nonzero_coef = 3", "the terms cannot have 'n_nonzero_coef'; did you mean 'n_nonz"),
        (
            "[panels.blood]",
            "[panels.bloood]",
            "attribute 'creatinine' is in panel 'blood', which has no price; did you",
        ),
        ("range = [30, 300]", "range = [300, 30]", "the range of attribute 'creatinine' must increase"),
    ],
)
def test_wrong_terms_are_refused_by_name(done, refused, folder, line, wrong, message):
    text = done("study", "example")
    assert line in text
    (folder / "terms.toml").write_text(text.replace(line, wrong), encoding="utf-8")
    assert refused("study", "new", "terms.toml", "study.db").startswith(f"terms.toml: {message}")
    assert not (folder / "study.db").exists()


def test_a_plan_is_made_of_a_guess_or_of_an_old_table(done, refused, folder):
    (folder / "terms.toml").write_text(SHORT, encoding="utf-8")
    command = ("study", "plan", "terms.toml", "--examples", "40", "--repeats", 2)
    assert "Plan of a study, by 2 simulated studies of each size" in done(*command)
    found = json.loads(done(*command, "--needed", "b", "--r2", 0.9, "--json"))
    assert [size["examples"] for size in found["sizes"]] == [40]
    assert found["assumptions"][0] == "b has an effect of random sign"
    rows = {"a": [float(row % 7) for row in range(120)], "b": [float(row % 5) for row in range(120)]}
    polars.DataFrame(rows | {"y": [2 * a for a in rows["a"]]}).write_csv(folder / "old.csv")
    assert [size["examples"] for size in json.loads(done(*command, "--table", "old.csv", "--json"))["sizes"]] == [40]
    assert "--examples must be numbers such as 200,400; got 'many'" in refused(*command[:-3], "many")
    assert "the name of old.txt must end in .csv, .tsv" in refused(*command, "--table", "old.txt")
    assert "did you mean" in refused(*command, "--needed", "bb,a")
    assert "auc is a guess for a target that is one of two classes" in refused(*command, "--auc", 0.8)
    polars.DataFrame(rows | {"a": [None] * 120, "y": rows["a"]}).write_csv(folder / "old.csv")
    assert "0 of 120 rows" in refused(*command, "--table", "old.csv")


# --- questions and answers ---


def test_a_question_shows_panels_units_and_ranges(example, done):
    text = done("study", "ask", "study.db")
    assert "Question 0, held by ann since" in text
    assert "it costs at most 22 EUR" in text
    for words in (
        ("examination (5 EUR)", "age", "years", "18 to 105"),
        ("blood (12 EUR)", "creatinine", "umol/l or mg/dl", "30 to 300", "fasting, before 9 am"),
        ("4 EUR", "NYHA class", "I, II, III, IV"),
        ("the target", "stay", "days", "0 to 60"),
    ):
        assert any(all(word in line for word in words) for line in text.splitlines()), words
    [shown] = json.loads(done("study", "ask", "study.db", "--json"))
    assert (shown["question"], shown["holder"], shown["price"]) == (0, "ann", 22.0)
    assert shown["needed"] == [*(word.partition("=")[0] for word in ALL), "stay"]
    assert [panel["panel"] for panel in shown["panels"]] == ["examination", "blood", ""]
    assert [*shown["details"]] == [*shown["attributes"], "stay"]
    assert shown["details"]["creatinine"]["unit"] == "umol/l"
    assert shown == example.question(0).described()


def test_values_are_told_in_parts_and_in_any_unit(example, done):
    assert "still needed: creatinine, albumin, NYHA class, ward, stay" in done("study", "tell", "study.db", 0, *ALL[:3])
    assert "150" not in done("study", "ask", "study.db")
    reply = done("study", "tell", "study.db", 0, *ALL[3:], "stay=5", "--subject", "p-17", "--json")
    receipt = json.loads(reply)
    assert receipt["question"] == 0
    assert (receipt["complete"], receipt["learned"], receipt["cost"]) == (True, True, 22.0)
    question = example.question(0)
    assert question.subject == "p-17"
    assert question.values == pytest.approx(
        {"age": 61, "weight": 150 * 0.45359237, "smoker": 1, "creatinine": 1.2 * 88.42, "albumin": 40}
        | {"NYHA class": 1, "ward": 2, "stay": 5}
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("albumn=40", "there is no attribute 'albumn'; did you mean 'albumin'?"),
        ("fev1=3", "there is no attribute 'fev1'; did you mean 'FEV1'?"),
        ("FEV1=3", "FEV1 was not asked for in question 0"),
        ("creatinine=1.2 mmol/l", "creatinine is in umol/l, mg/dl, got '1.2 mmol/l'"),
        ("creatinine=9000", "creatinine is 9000 umol/l, which is not possible"),
        ("age=61.5", "age must be a whole number"),
        ("age=1e999", "age must be a finite number"),
        ("age=1,5", "write a point, not a comma"),
        ("NYHA class=V", "NYHA class must be one of I, II, III, IV, or missing"),
        ("smoker=perhaps", "smoker must be yes or no, or missing"),
        ("albumin", "'albumin' is not NAME=VALUE, such as age=61"),
        ("=40", "'=40' is not NAME=VALUE"),
        ("albumin=", "albumin= has no value; write albumin=missing if it could not be measured"),
        ("age=61' OR '1'='1", "age is in years, got"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_stored(example, refused, word, message):
    events = example.status().events
    assert message in refused("study", "tell", "study.db", 0, "weight=80", word)
    assert example.status().events == events


def test_a_value_that_is_given_twice_is_refused(example, refused):
    assert refused("study", "tell", "study.db", 0, "age=61", "age=62") == "age is given twice; give it once"


def test_a_value_outside_its_range_is_asked_back_and_can_be_confirmed(example, done, refused):
    message = refused("study", "tell", "study.db", 0, "albumin=400", "age=61")
    assert message.startswith("albumin is 400 g/l, outside of 20 to 60: look again")
    assert message.endswith("to confirm, add --confirm albumin; no value of this command was stored")
    assert example.question(0).values == {}
    done("study", "tell", "study.db", 0, "albumin=400", "age=61", "--confirm", "albumin")
    assert example.question(0).values == {"albumin": 400.0, "age": 61.0}
    assert "did you mean 'albumin'" in refused("study", "tell", "study.db", 0, "weight=500", "--confirm", "albumn")


def test_late_answers_say_what_became_of_the_question(example, done, refused):
    assert "question 0 is with ann since" in refused("study", "tell", "study.db", 0, "age=61", "--who", "ben")
    assert done("study", "give-back", "study.db", 0, "--who", "ben", "--reason", "ann is ill") == (
        "Question 0 is given back.\n"
    )
    assert "question 0 was given back by ben" in refused("study", "tell", "study.db", 0, "age=61")
    assert "and nobody has it" in refused("study", "give-back", "study.db", 0)
    done("study", "ask", "study.db")
    assert done("study", "skip", "study.db", 0, "--bought", "age,weight") == (
        "Question 0 is skipped, at a cost of 5 EUR.\n"
    )
    assert "question 0 was skipped by ann" in refused("study", "tell", "study.db", 0, "age=61")
    assert "question 9 was never asked" in refused("study", "tell", "study.db", 9, "age=61")
    assert "give the number of the question" in refused("study", "tell", "study.db")
    assert "give values such as age=61" in refused("study", "tell", "study.db", 0)


def test_corrections_and_withdrawals_need_a_reason(short, run, done, refused):
    done("study", "ask", "short.db")
    done("study", "tell", "short.db", 0, "a=1", "b=2", "y=3")
    assert "Missing option '--reason'" in run("study", "correct", "short.db", 0, "a=2").stderr
    assert "needs a reason" in refused("study", "correct", "short.db", 0, "a=2", "--reason", " ")
    assert "to confirm, add --confirm a" in refused("study", "correct", "short.db", 0, "a=20", "--reason", "typing")
    assert "is corrected" in done("study", "correct", "short.db", 0, "a=2", "--reason", "typing error")
    assert short.question(0).values["a"] == 2.0
    assert "is corrected" in done("study", "correct", "short.db", 0, "--subject", "p-2", "--reason", "typing error")
    assert (short.question(0).subject, short.question(0).values["a"]) == ("p-2", 2.0)
    assert "give the right values" in refused("study", "correct", "short.db", 0, "--reason", "typing error")
    assert "is corrected; the example is not learned from" in done(
        "study", "correct", "short.db", 0, "b=missing", "--reason", "of somebody else"
    )
    assert done("study", "withdraw", "short.db", 0, "--reason", "consent") == (
        "Question 0 is withdrawn; it was not learned from anyway.\n"
    )
    assert "question 0 was withdrawn" in refused("study", "correct", "short.db", 0, "a=2", "--reason", "x")


def test_a_repeated_request_is_done_once(short, done, refused):
    first = done("study", "ask", "short.db", "--key", "k1")
    assert done("study", "ask", "short.db", "--key", "k1") == first
    told = ("study", "tell", "short.db", 0, "a=1", "b=2", "y=3", "--key", "k2")
    assert done(*told) == done(*told)
    assert short.status().answered == 1
    assert "key 'k2' was used for another request" in refused("study", "tell", "short.db", 0, "a=9", "--key", "k2")


def test_without_anything_to_ask_the_exit_code_is_one(short, run, done):
    done("study", "ask", "short.db", "-n", 2)
    result = run("study", "ask", "short.db", "--who", "ben")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing to ask: the next question may cost 2, but 4 of the total budget of 4 are used" in said(result)
    for number in (0, 1):
        done("study", "skip", "short.db", number)
    done("study", "close", "short.db", "--yes")
    result = run("study", "ask", "short.db")
    assert (result.exit_code, said(result)) == (1, "nothing to ask: the study is closed; it can be read and exported")


def test_who_is_the_login_name_unless_it_is_said(short, done, refused, monkeypatch):
    monkeypatch.delenv("HARDTHRESH_WHO")
    monkeypatch.setattr("getpass.getuser", lambda: "login")
    assert "held by login" in done("study", "ask", "short.db")
    assert "held by ben" in done("study", "ask", "short.db", "--who", "ben")
    assert "1 to 100 printable characters" in refused("study", "ask", "short.db", "--who", "\x1b[2J")

    def nobody():
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert refused("study", "ask", "short.db").startswith("who are you? add --who NAME")


# --- answers in files ---


def test_answers_are_read_from_json_and_csv(short, done, folder):
    done("study", "ask", "short.db", "-n", 2)
    (folder / "one.json").write_text('{"a": 1, "b": "2.5"}', encoding="utf-8")
    assert "still needed: y" in done("study", "tell", "short.db", 0, "--from", "one.json")
    (folder / "more.csv").write_text("question;subject;a;b;y\n0;=p1;;;3\n1;p2;missing;4;5\n", encoding="utf-8-sig")
    receipts = json.loads(done("study", "tell", "short.db", "--from", "more.csv", "--json"))
    assert [(receipt["question"], receipt["learned"]) for receipt in receipts] == [(0, True), (1, False)]
    assert short.question(0).values == {"a": 1.0, "b": 2.5, "y": 3.0}
    assert short.question(1).values == {"a": None, "b": 4.0, "y": 5.0}
    assert short.question(0).subject == "=p1"


def test_answers_may_be_written_as_for_the_api_or_by_a_spreadsheet(short, done, refused, folder):
    done("study", "ask", "short.db", "--who", "scale 7")
    done("study", "ask", "short.db")
    body = {"who": "scale 7", "question": 0, "values": {"a": 1, "b": 90, "y": "3"}, "confirmed": ["b"], "subject": "p1"}
    (folder / "body.json").write_text(json.dumps(body), encoding="utf-8")
    done("study", "tell", "short.db", "--from", "body.json")
    assert short.question(0).values == {"a": 1.0, "b": 90.0, "y": 3.0}
    assert [event.who for event in short.events() if event.action == "told"] == ["scale 7"]
    (folder / "sheet.csv").write_text("question,a\n1.0,2\n", encoding="utf-8")
    (folder / "sheet.json").write_text('[{"question": 1.0, "b": 3}]', encoding="utf-8")
    for name in ("sheet.csv", "sheet.json"):
        done("study", "tell", "short.db", "--from", name)
    assert short.question(1).values == {"a": 2.0, "b": 3.0}
    for wrong, message in (
        ({"whom": "x"}, "body.json cannot have 'whom'; did you mean 'who'?"),
        ({"who": 7}, "body.json: who must be a text, got 7"),
        ({"confirmed": "b"}, "body.json: confirmed must be a list of names, got 'b'"),
        ({"question": 1.5}, "body.json: 1.5 is not the number of a question"),
    ):
        (folder / "body.json").write_text(json.dumps(body | wrong), encoding="utf-8")
        assert refused("study", "tell", "short.db", "--from", "body.json") == message
    text = done("study", "tell", "--help")
    assert '{"question": 33, "values": {"age": 61}}' in " ".join(text.split())


def test_a_wrong_row_is_named_and_those_before_it_stay(short, run, done, folder):
    done("study", "ask", "short.db", "-n", 2)
    (folder / "more.csv").write_text("question,a,b,y\n0,1,2,3\n1,100,4,5\n", encoding="utf-8")
    command = ("study", "tell", "short.db", "--from", "more.csv", "--key", "today")
    result = run(*command)
    assert result.exit_code == 2
    assert "Question 0 is complete" in result.stdout
    assert "error: more.csv, row 2 (question 1): a is 100, outside of 0 to 9" in said(result)
    assert said(result).endswith("no value of this row was stored, but those of 1 row before it: take these rows out")
    (folder / "more.csv").write_text("question,a,b,y\n0,1,2,3\n1,9,4,5\n", encoding="utf-8")
    assert "more.csv, row 1 (question 0): question 0 was answered by ann" in said(run(*command[:-2]))
    assert "used for another request" in said(run(*command))  # the second row had other content
    assert short.status().answered == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json cannot be read as JSON"),
        ("a.json", '{"a": 1, "a": 2}', "a.json cannot be read as JSON: 'a' is given twice"),
        ("a.json", "[1]", 'a.json must hold {"name": value, ...} or a list of these; record 1 is 1'),
        ("a.json", "[]", "a.json has no rows"),
        ("a.csv", f"question,a\n{'9' * 5000},1\n", "a.csv, row 1: '999999"),
        ("a.json", '{"question": true, "a": 1}', "a.json: True is not the number of a question"),
        ("a.json", '{"question": 1, "a": 1}', "a.json: it answers question 1, not 0"),
        ("a.json", '{"a": {"b": 1}}', "a.json (question 0): a must be a number"),
        ("a.csv", "a,a\n1,2\n", "a.csv has two columns 'a'"),
        ("a.csv", "a,b\n1,2,3\n", "a.csv: row 1 has 3 cells, and the header 2"),
        ("a.csv", "", "a.csv has no rows"),
        ("a.csv", "question,a\nx,1\n", "a.csv, row 1: 'x' is not the number of a question"),
        ("a.csv", "c\n1\n", "a.csv, row 1: there is no attribute 'c'"),
        ("a.csv", "Question,a\n0,1\n", "a.csv, row 1: there is no attribute 'Question'; did you mean 'question'?"),
        ("a.txt", "a=1", "the name of a.txt must end in .json, .csv or .tsv"),
    ],
)
def test_files_that_make_no_sense_are_refused(short, run, done, folder, name, text, message):
    done("study", "ask", "short.db")
    (folder / name).write_text(text, encoding="utf-8")
    result = run("study", "tell", "short.db", 0, "--from", name)
    assert result.exit_code == 2
    assert f"error: {message}" in said(result)
    assert short.question(0).values == {}


# --- in a terminal ---


@pytest.fixture
def typed(run, monkeypatch):
    """Run a command at a terminal, where a person types lines."""
    monkeypatch.setattr("hardthresh.cli.study.answers.asks_people", lambda: True)
    monkeypatch.setattr("hardthresh.cli.study.results.asks_people", lambda: True)

    def go(lines, *args):
        return CliRunner().invoke(app, ["study", *map(str, args)], input="".join(f"{line}\n" for line in lines))

    return go


def test_in_a_terminal_each_value_is_asked_for_and_checked(example, typed):
    result = typed(["sixty", "61", "500", "n", "80", "yes", "3000", "y"], "tell", "study.db", 0)  # then the input ends
    assert result.exit_code == 130
    for words in ("age must be a number", "500 kg is outside of 35 to 200: is it right?", "blood (12 EUR)"):
        assert words in said(result)
    assert "stored: age, weight, smoker, creatinine interrupted" in said(result)
    assert example.question(0).values == {"age": 61.0, "weight": 80.0, "smoker": 1.0, "creatinine": 3000.0}
    assert [event.body["confirmed"] for event in example.events() if event.action == "told"] == [[], ["creatinine"]]
    result = typed(["missing", "iii", "", ""], "tell", "study.db", 0)
    assert "still needed: ward, stay" in said(result)
    assert {name: example.question(0).values[name] for name in ("creatinine", "albumin", "NYHA class")} == {
        "creatinine": 3000.0,
        "albumin": None,
        "NYHA class": 2.0,
    }
    assert "nothing was typed" in said(typed(["", ""], "tell", "study.db", 0))
    assert "question 0 is with ann since" in said(typed([], "tell", "study.db", 0, "--who", "ben"))
    assert "question 5 was never asked" in said(typed([], "tell", "study.db", 5))
    example.give_back(0, "ben")
    assert "question 0 was given back by ben at" in said(typed([], "tell", "study.db", 0))


def test_without_a_terminal_closing_needs_a_yes(short, refused):
    assert "add --yes" in refused("study", "close", "short.db")
    assert not short.closed


def test_in_a_terminal_closing_is_confirmed(short, typed):
    assert typed(["n"], "close", "short.db").exit_code == 130
    assert not short.closed
    assert typed(["y"], "close", "short.db").exit_code == 0
    assert short.closed


def test_what_cannot_be_served_is_not_announced(short, run):
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    result = run("study", "serve", "short.db", "--host", "192.0.2.1")
    assert result.exit_code == 2
    assert "without TLS" in said(result)
    assert "serving" not in said(result)


def test_the_page_is_served_where_it_is_asked_for(short, done, monkeypatch):
    served = []
    page = SimpleNamespace(run=lambda *args, **more: served.append((args, more)))
    monkeypatch.setitem(sys.modules, "hardthresh.study.serve", page)
    done("study", "serve", "short.db", "--port", 0, "--name", "ward.example", "--token", "a-token-of-16-or-more")
    [(args, more)] = served
    assert (str(args[0]), *args[1:]) == ("short.db", "127.0.0.1", 0, None, None, "a-token-of-16-or-more")
    assert (more["names"], more["allow_plain"]) == (("ward.example",), False)


# --- what is left of it ---


def test_status_says_who_holds_what_and_what_is_left(example, done):
    text = done("study", "status", "study.db")
    assert "Spent 0 EUR, reserved for open questions 22 EUR, left 11,978 EUR" in text
    assert any(line.split()[:2] == ["0", "ann"] and line.endswith("8 of 8") for line in text.splitlines())
    found = json.loads(done("study", "status", "study.db", "--json"))
    assert (found["spent"], found["reserved"], found["open"]) == (0.0, 22.0, [0])
    assert found["questions"] == [example.question(0).to_dict()]
    assert found["questions"][0]["holder"] == "ann"
    assert found["progress"]["examples"] == 0
    assert found["drift"]["tests"] == []


def test_exports_and_the_report_are_written(example, done, refused, folder):
    done("study", "export", "study.db", "--answers", "a.parquet", "--trail", "t.csv", "--terms", "copy.toml")
    assert polars.read_parquet(folder / "a.parquet")["state"].to_list() == ["open"]
    assert polars.read_csv(folder / "t.csv")["action"].to_list() == ["created", "asked"]
    assert (folder / "copy.toml").read_bytes() == (folder / "terms.toml").read_bytes()
    done("study", "report", "study.db", "page.html")
    assert "Interim report" in (folder / "page.html").read_text(encoding="utf-8")
    assert "say what to write" in refused("study", "export", "study.db")
    assert "must end in .csv or .parquet" in refused("study", "export", "study.db", "--answers", "a.xlsx")
    assert "choose two names" in refused("study", "export", "study.db", "--answers", "b.csv", "--trail", "b.csv")
    (folder / "c.csv").symlink_to("b.csv")
    assert "choose two names" in refused("study", "export", "study.db", "--answers", "b.csv", "--trail", "c.csv")
    assert "there is no folder" in refused("study", "report", "study.db", "no/page.html")
    (folder / "study.html").hardlink_to(folder / "study.db")
    assert "is the study, which would be lost" in refused("study", "report", "study.db", "study.html")


def test_a_question_that_waits_for_its_round_is_not_learned_from_yet(short, done, folder):
    done("study", "ask", "short.db", "-n", 2)
    to_come = short.status().to_come
    text = done("study", "tell", "short.db", 0, "a=1", "b=2", "y=3")
    assert text.endswith(f"it will be learned from with its round ({to_come - 1} answers to come).\n")
    assert f"1 answered (1 waits for the rest of the round, {to_come - 1} answers to come)" in done(
        "study", "status", "short.db"
    )


def test_the_last_answer_of_a_round_is_learned_from(learned, done):
    while learned.status().to_come != 1:
        for question in learned.ask("ann", max(1, learned.status().to_come - 1)):
            learned.tell(question.number, {"a": 1, "b": 2, "y": 2}, "ann")
    [question] = learned.ask("ann")
    before = learned.learned().questions.size
    text = done("study", "tell", "short.db", question.number, "a=1", "b=2", "y=2")
    assert text.endswith("; it is learned from.\n")
    assert learned.learned().questions.size > before


def test_a_study_stays_open_if_its_report_cannot_be_written(short, run, folder, monkeypatch):
    def fail(study, path):
        raise ht.core.errors.MissingDependencyError("install matplotlib")

    monkeypatch.setattr("hardthresh.study.closing.write_study", fail)
    result = run("study", "close", "short.db", "--yes", "--out", "model.json", "--report", "page.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "short.db stays open\nerror: install matplotlib\n"
    assert not short.closed
    assert [path.name for path in folder.iterdir()] == ["short.db"]


def test_a_closed_study_leaves_a_model_and_a_report(short, run, done, folder, refused):
    done("study", "ask", "short.db", "-n", 2)
    result = run("study", "close", "short.db", "--yes")
    assert result.exit_code == 2
    assert (
        "short.db stays open error: answer, skip or give back 2 open questions before you close the study, such as 0, 1"
        in said(result)
    )
    for number, y in ((0, 3), (1, 4)):
        done("study", "tell", "short.db", number, "a=1", f"b={y}", f"y={y}")
    command = ("study", "close", "short.db", "-y", "--out", "model.json", "--report", "page.html", "--reason", "done")
    result = run(*command)
    text = result.stdout
    assert result.stderr.startswith("warning: 2 examples are too few")
    assert "SparseLinearRegression" not in result.stderr
    assert "short.db is closed: 2 examples learned from (2 of them in the last round, which is incomplete" in text
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "page.html", "short.db"]
    assert "Final report" in (folder / "page.html").read_text(encoding="utf-8")
    (folder / "page.html").unlink()
    assert done(*command) == text
    assert (folder / "page.html").exists()
    assert "LimitedAttributeRegression" in done("show", "model.json")
    assert ht.load(folder / "model.json").feature_names_in_.tolist() == ["a", "b"]
    assert "the study is closed" in refused("study", "tell", "short.db", 0, "a=1")
    assert "the study is closed" in refused("study", "correct", "short.db", 0, "a=2", "--reason", "x")


def test_a_changed_event_is_found(short, done, refused, folder):
    done("study", "ask", "short.db")
    text = done("study", "verify", "short.db")
    *_, last = short.events()
    assert text.startswith("2 events: the checksums hold")
    assert last.checksum in text
    with closing(sqlite3.connect(folder / "short.db")) as file, file:
        file.execute("DROP TRIGGER events_are_kept")
        file.execute("UPDATE events SET who = 'eve' WHERE number = 2")
    assert "event 2 of short.db is damaged, was changed, or is missing" in refused("study", "verify", "short.db")


@pytest.fixture
def learned(folder, monkeypatch):
    """A study that has a model of one attribute: y = 2 a."""
    study = Study.create(folder / "short.db", Terms.parse(SHORT.replace("total_budget = 4\n", "")), "ann")
    while not study.learned().questions.size:
        for question in study.ask("ann", 1000):
            a = question.number % 7
            study.tell(question.number, {"a": a, "b": (question.number * 3) % 5, "y": 2 * a}, "ann")
    return study


def test_predictions_need_only_what_the_model_needs(learned, done, refused, run, folder):
    assert refused("study", "predict", "short.db") == "give the values that the model needs: a"
    assert done("study", "predict", "short.db", "a=3") == "y: 6\n"
    result = run("study", "predict", "short.db", "a=30", "--json")
    [caution] = (found := json.loads(result.stdout)).pop("cautions")
    assert found == {"target": "y", "unit": "", "prediction": pytest.approx(60.0)}
    assert caution == "a is 30, outside of 0 to 9"
    assert "warning: a is 30, outside of 0 to 9: the study knows little there" in result.stderr
    assert "there is no attribute 'c'" in refused("study", "predict", "short.db", "a=3", "c=1")
    assert "a is missing, which a prediction needs" in refused("study", "predict", "short.db", "b=3")
    (folder / "new.csv").write_text("who,a\n=1+1,1\nben,2.5\n", encoding="utf-8")
    assert done("study", "predict", "short.db", "--from", "new.csv", "--id", "who").splitlines()[0] == "who,prediction"
    assert "\n'=1+1," in done("study", "predict", "short.db", "--from", "new.csv", "--id", "who")
    done("study", "predict", "short.db", "--from", "new.csv", "--out", "p.parquet")
    assert polars.read_parquet(folder / "p.parquet")["prediction"].to_list() == pytest.approx([2.0, 5.0])
    rows = ("study", "predict", "short.db", "--from", "new.csv")
    assert "row 1 has no 'Who', the column of --id; did you mean 'who'?" in refused(*rows, "--id", "Who")
    (folder / "link.csv").symlink_to("new.csv")
    for name in ("new.csv", folder / "new.csv", "link.csv"):
        assert "is the file of --from, which would be lost" in refused(*rows, "--out", name)
    (folder / "upper.csv").write_text("A\n1\n", encoding="utf-8")
    assert "a is missing, which a prediction needs; write 'a' in place of 'A'" in refused(*rows[:-1], "upper.csv")
    assert "give values, or --from FILE, not both" in refused(*rows, "a=1")
    assert "leave them out" in refused("study", "predict", "short.db", "a=1", "--out", "p.csv")


def test_of_two_classes_the_class_and_its_probability_are_predicted(done, folder):
    study_of_classes(folder / "classes.db")
    assert done("study", "predict", "classes.db", "fever=3").startswith("ill: ill with probability 0.")
    (folder / "new.csv").write_text("fever\n0\n3 K\n", encoding="utf-8")
    header, well, ill = done("study", "predict", "classes.db", "--from", "new.csv").splitlines()
    assert header == "prediction,probability of ill"
    assert (well.split(",")[0], ill.split(",")[0]) == ("well", "ill")
    assert float(well.split(",")[1]) < 0.5 < float(ill.split(",")[1])
    one = json.loads(done("study", "predict", "classes.db", "fever=3", "--json"))
    assert one["prediction"] == "ill"
    assert one["probability"] == pytest.approx({"well": 1 - float(ill.split(",")[1]), "ill": float(ill.split(",")[1])})


def test_the_saved_model_says_which_numbers_it_takes(done, refused, folder):
    study = study_of_classes(folder / "classes.db")
    save_model(study, folder / "model.json")
    (folder / "new.csv").write_text("fever,smoker\n3 K,yes\n", encoding="utf-8")
    assert "the model needs them as numbers: fever (in K)" in refused("predict", "model.json", "new.csv")
    kinds = """
        n_nonzero_coefs = 3
        budget_per_example = 3
        [target]
        name = "y"
        [attributes.grade]
        kind = "ordered"
        levels = ["low", "high"]
        [attributes.smoker]
        kind = "yes/no"
        [attributes.ward]
        kind = "category"
        levels = ["general", "surgery"]
        """
    columns = ["grade", "smoker", "ward=surgery"]
    table = polars.DataFrame(
        {name: [float(row >> place & 1) for row in range(32)] for place, name in enumerate(columns)}
    )
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(table, table.to_numpy() @ [1.0, 2.0, 3.0])
    ht.save(model, folder / "kinds.json", notes={"terms": kinds})
    (folder / "new.csv").write_text("grade,smoker,ward=surgery\nhigh,yes,surgery\n", encoding="utf-8")
    message = refused("predict", "kinds.json", "new.csv")
    for codes in ("grade (0 low, 1 high)", "smoker (0 no, 1 yes)", "ward=surgery (1 if it is that level, else 0)"):
        assert codes in message
    for other in ("no terms", 1):  # notes of other programs
        ht.save(model, folder / "other.json", notes={"terms": other})
        assert refused("predict", "other.json", "new.csv").endswith("the model needs them as numbers")


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "study.rst"
FASTER = {"plan": ("--examples", "40", "--repeats", "2"), "close": ("--yes",)}
"""What is added to commands of the guide in a test."""


def test_the_commands_of_the_guide_go_together(run, folder):
    """The first two blocks are a study from its terms to its end; what a comment says of question 20 is true."""
    first, second = re.findall(r"\.\. code-block:: shell\n\n((?:   .*\n|\n)+)", GUIDE.read_text(encoding="utf-8"))[:2]
    lines = [shlex.split(line, comments=True)[1:] for line in (first + second).splitlines() if line.strip()]
    assert [words[1] for words in lines[-3:]] == ["report", "export", "close"]
    for words in lines:
        result = run(*words, *FASTER.get(words[1], ()))
        assert result.exit_code == 0, (words, result.output)
    assert {path.name for path in folder.iterdir()} >= {"report.html", "answers.csv", "trail.csv"}
    assert "so there is no model to write to model.json" in result.stderr  # the only example was withdrawn
    assert Study.open(folder / "study.db").closed


def test_other_files_are_no_studies(refused, run, folder, csv):
    (terms := folder / "short.toml").write_text(SHORT, encoding="utf-8")
    for name in ("nowhere.db", "no/where.db"):
        assert f"there is no study {name}; begin one" in refused("study", "status", name)
    assert "table.csv" in refused("study", "ask", csv)
    assert "Begin with: hardthresh study ask ./-x.db" in run("study", "new", terms, "--", "-x.db").stderr
    assert run("study").stdout == run("study", "--help").stdout
