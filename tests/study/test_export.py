"""What a study leaves in files is what it knows, and no spreadsheet runs it."""

import csv
import json
import re

import numpy as np
import polars
import pytest
from study_helpers import truth

from hardthresh.core.errors import InvalidInputError
from hardthresh.study import Terms
from hardthresh.study.export import write_answers, write_terms, write_trail
from hardthresh.study.terms import EXPORTED

KINDS = """
n_nonzero_coefs = 1
budget_per_example = 9
[target]
name = "ill"
kind = "class"
levels = ["well", "ill"]
[panels.blood]
price = 3.0
[attributes.iron]
panel = "blood"
[attributes.smoker]
kind = "yes/no"
panel = "blood"
[attributes.stage]
kind = "ordered"
levels = ["I", "II"]
[attributes.ward]
kind = "category"
levels = ["A", "=B()", "C"]
"""


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_question_says_what_became_of_it(busy, tmp_path):
    count = write_answers(busy, tmp_path / "answers.csv")
    found = rows(tmp_path / "answers.csv")
    status, learned = busy.status(), busy.learned()
    assert count == len(found) == status.asked
    states = [row["state"] for row in found]
    assert sum(states.count(name) for name in ("dropped", "skipped", "withdrawn")) == status.left_out
    assert {*states} >= {"learned", "withdrawn", "skipped", "dropped", "open"}
    assert states.count("learned") == learned.questions.size
    assert (states.count("dropped"), states.count("skipped")) == (1, 1)
    assert sum(float(row["cost"]) for row in found) == status.spent
    asked = {attribute.name for attribute in busy.terms.attributes} | {busy.terms.target.name}
    assert {*found[0]} - asked == {*EXPORTED}  # no attribute may have such a name
    assert found[0]["corrected"] == "y"
    assert (found[0]["y"], found[0]["reason"]) == ("1.5", "'=typing error")


def test_the_values_are_those_that_were_learned_from(busy, tmp_path):
    write_answers(busy, tmp_path / "answers.parquet")
    table, learned = polars.read_parquet(tmp_path / "answers.parquet"), busy.learned()
    kept = table.filter(polars.col("state") == "learned")
    order = np.argsort(learned.questions)
    np.testing.assert_array_equal(kept["question"].to_numpy(), learned.questions[order])
    np.testing.assert_array_equal(kept.select(learned.columns).to_numpy(), learned.values[order])
    np.testing.assert_array_equal(kept["y"].to_numpy(), learned.target[order])
    np.testing.assert_array_equal(kept["prediction"].to_numpy(), learned.prediction[order])


def test_csv_and_parquet_say_the_same(busy, tmp_path):
    for write in (write_answers, write_trail):
        write(busy, tmp_path / "a.parquet")
        write(busy, tmp_path / "a.csv", verbatim=True)
        table = polars.read_parquet(tmp_path / "a.parquet").to_dicts()
        for row, texts in zip(table, rows(tmp_path / "a.csv"), strict=True):
            assert {name: "" if value is None else str(value) for name, value in row.items()} == texts


def test_the_trail_has_every_event_and_every_value(busy, tmp_path):
    count = write_trail(busy, tmp_path / "trail.csv", verbatim=True)
    found, events = rows(tmp_path / "trail.csv"), list(busy.events())
    assert count == len(found)
    assert [*dict.fromkeys(row["event"] for row in found)] == [str(event.number) for event in events]
    assert {row["checksum"] for row in found} == {event.checksum for event in events}
    told = [(str(e.number), n, v) for e in events if e.action == "told" for n, v in e.body["values"].items()]
    values = [(row["event"], row["name"], row["value"]) for row in found if row["action"] == "told"]
    assert values == [(event, name, "" if value is None else str(value)) for event, name, value in told]
    [doubted] = [row for row in found if row["action"] == "doubted"]
    assert doubted["value"] == "7.0"
    [corrected] = [row for row in found if row["action"] == "corrected"]
    assert corrected["reason"] == "=typing error"
    assert json.loads(corrected["detail"])["old"] == {"y": truth(0)["y"]}
    assert "missing" in {row["reading"] for row in found}


def test_no_spreadsheet_runs_what_people_typed(busy, tmp_path):
    write_answers(busy, tmp_path / "answers.csv")
    write_trail(busy, tmp_path / "trail.csv")
    for name in ("answers.csv", "trail.csv"):
        cells = [cell for row in rows(tmp_path / name) for cell in row.values()]
        assert {"'=typing error", "'@home", "'+49 170"} <= {*cells}
        assert [cell for cell in cells if re.match(r"[=@\t\r]|[+-][^\d.]", cell)] == []


def test_levels_are_written_by_their_names(begin, tmp_path):
    study = begin(terms=KINDS)
    [question] = study.ask("ann")
    known = {"iron": 2.5, "smoker": "yes", "stage": "II", "ward": "=B()"}
    study.tell(question.number, {a.name: known[a.name] for a in question.attributes} | {"ill": "well"}, "ann")
    write_answers(study, tmp_path / "a.csv")
    write_trail(study, tmp_path / "t.csv")
    [row] = rows(tmp_path / "a.csv")
    expected = {"iron": "2.5", "smoker": "yes", "stage": "II", "ward": "'=B()", "ill": "well"}
    assert {name: row[name] for name in expected if row[name]} == expected
    told = {row["name"]: (row["value"], row["reading"]) for row in rows(tmp_path / "t.csv") if row["action"] == "told"}
    assert told["smoker"] == ("1.0", "yes")
    assert told["ward"] == ("1.0", "'=B()")


def test_a_study_without_questions_has_empty_tables_with_types(study, tmp_path):
    assert write_answers(study, tmp_path / "a.parquet") == 0
    assert write_trail(study, tmp_path / "t.parquet") == 1
    types = polars.read_parquet(tmp_path / "a.parquet").schema
    assert (types["question"], types["a0"], types["state"]) == (polars.Int64, polars.Float64, polars.String)


def test_the_terms_are_those_that_it_began_with(study, tmp_path):
    write_terms(study, tmp_path / "terms.toml")
    assert Terms.read(tmp_path / "terms.toml") == study.terms


def test_another_ending_is_refused(study, tmp_path):
    with pytest.raises(InvalidInputError, match=r"must end in \.csv or \.parquet"):
        write_answers(study, tmp_path / "answers.xlsx")


def test_a_file_that_cannot_be_written_is_named_and_kept(study, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="nowhere") as caught:
        write_trail(study, tmp_path / "nowhere" / "trail.csv")
    assert caught.value.filename == str(tmp_path / "nowhere" / "trail.csv")
