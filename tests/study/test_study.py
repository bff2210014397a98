"""A study asks each person for something else, spends no more than it may, and learns what it is told."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from study_helpers import TERMS, answer, asked, truth

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.limited import Learner
from hardthresh.limited.sources.database import BusyError
from hardthresh.study import (
    BudgetUsed,
    LateAnswer,
    NothingToAsk,
    QuestionBack,
    RepeatedKey,
    Study,
    StudyClosed,
    Terms,
    write_study,
)
from hardthresh.study.closing import save_model
from hardthresh.study.export import answer_columns, trail_columns
from hardthresh.study.log import StudyLog
from hardthresh.study.predicting import predictor


def coefficients(study):
    with study._reading() as (_, state):
        final = state.learner.final_state()
    return [float(w).hex() for w in (*final.w, final.intercept)]


@pytest.mark.slow
def test_it_learns_what_a_learner_learns(study):
    answer(study, "ann", 420)
    learner = Learner.of(study.terms.algorithm, study.terms.cost_model)
    for number in range(420):
        example, indices = learner.ask()
        assert example == number
        known = truth(number)
        learner.tell(number, [known[f"a{j}"] for j in indices], known["y"])
    state = learner.final_state()
    assert coefficients(study) == [float(w).hex() for w in (*state.w, state.intercept)]
    assert study.status().chosen == ("a1", "a6")
    assert study.status().spent == learner.meter.money == 1680.0
    model = study.model()
    assert model.coef_[model.support_].round(1).tolist() == [1.0, -2.0]
    assert model.feature_names_in_.tolist() == study.terms.columns


def test_a_question_belongs_to_one_person(study):
    [mine] = study.ask("ann")
    [yours] = study.ask("ben")
    assert mine.number != yours.number
    assert study.ask("ann") == (mine,)
    assert [question.number for question in study.ask("ann", 3)] == [0, 2, 3]
    with pytest.raises(LateAnswer, match=r"question 1 is with ben since .*, not with ann"):
        study.tell(1, {"a0": 1.0}, "ann")


def test_a_question_that_was_given_back_is_asked_again(study):
    [question] = study.ask("ann")
    study.tell(0, {question.attributes[0].name: 1.0}, "ann")
    study.give_back(0, "ben", reason="ann is ill")
    with pytest.raises(LateAnswer, match="given back by ben at"):
        study.tell(0, {"y": 1.0}, "ann")
    [again] = study.ask("cem")
    assert again.number == 0
    assert again.values == {question.attributes[0].name: 1.0}


def test_a_question_that_is_held_too_long_goes_to_somebody_else(begin, monkeypatch):
    study = begin("hold_hours = 48\n")
    study.ask("ann")
    later = (datetime.now(UTC) + timedelta(hours=49)).isoformat(timespec="milliseconds")
    assert study.ask("ben")[0].number == 1
    study.give_back(1, "ben")
    monkeypatch.setattr(
        "hardthresh.study.transactions.age", lambda since: datetime.fromisoformat(later) - datetime.fromisoformat(since)
    )
    assert [question.number for question in study.ask("ben", 2)] == [0, 1]
    with pytest.raises(LateAnswer, match="question 0 is with ben"):
        study.tell(0, {"a0": 1.0}, "ann")


def test_values_may_come_in_pieces(study):
    [question] = study.ask("ann")
    first, *_ = question.needed
    assert study.tell(0, {first: 1.0}, "ann").needed == question.needed[1:]
    assert study.status().spent == 1.0
    assert study.status().reserved == 3.0
    with pytest.raises(InvalidInputError, match=f"{first} of question 0 was told before, 1; correct it instead"):
        study.tell(0, {first: 2.0}, "ann")
    rest = {name: truth(0)[name] for name in question.needed[1:]}
    receipt = study.tell(0, rest, "ann")
    assert receipt.complete
    assert receipt.learned
    assert receipt.cost == 4.0
    with pytest.raises(LateAnswer, match="question 0 was answered by ann at"):
        study.tell(0, {"y": 1.0}, "ann")


def test_what_could_not_be_measured_is_not_paid_and_not_learned_from(study):
    [question] = study.ask("ann")
    values = {name: truth(0)[name] for name in question.needed} | {question.needed[0]: "missing"}
    receipt = study.tell(0, values, "ann")
    assert receipt.complete
    assert not receipt.learned
    assert receipt.cost == study.status().spent == 3.0
    assert study.status().left_out == 1
    assert study.question(0).lacking == [question.needed[0]]
    assert study.ask("ann")[0].number > 0
    receipt = study.correct(0, {question.needed[0]: 1.0, "y": 2.0}, "ann", reason="found it")
    assert not receipt.learned  # another example took its place
    assert receipt.cost == study.status().spent == 4.0  # it was measured after all
    study.withdraw(0, "ann", reason="consent")
    assert study.status().left_out == 1
    assert study.status().spent == 4.0
    study.verify()


def test_what_was_measured_after_all_is_paid_within_the_total_budget(begin):
    study, numbers = begin("total_budget = 10\n"), []
    for _ in range(3):
        [question] = study.ask("ann")
        study.tell(question.number, dict.fromkeys(question.needed), "ann")
        numbers.append(question.number)
    assert study.status().spent == 0.0

    def corrected(place, **values):
        return study.correct(numbers[place], values, "ann", reason="looked again").cost

    assert corrected(0, a0=1.0, a1=1.0) == 2.0
    assert corrected(0, a0=None) == 2.0
    assert corrected(0, a0=1.0) == 2.0
    assert corrected(1, **dict.fromkeys(asked(study, numbers[1]), 1.0)) == 4.0
    study.ask("ben")
    with pytest.raises(InvalidInputError, match=r"costs 4 EUR, which the rest of the total budget of 10 EUR does not"):
        corrected(2, **dict.fromkeys(asked(study, numbers[2]), 1.0))
    status = study.status()
    assert (status.spent, status.reserved, status.left_out, status.answered) == (6.0, 4.0, 3, 0)
    assert dict(answer_columns(study))["cost"].sum() == 6.0
    assert Study.open(study.path).status() == status
    study.verify()


def test_a_correction_of_a_skipped_example_asks_for_nothing(study):
    study.ask("ann")
    study.tell(0, {"a0": 1.0}, "ann")
    study.skip(0, "ann")
    receipt = study.correct(0, {"a0": 2.0}, "ann", reason="typing error")
    assert (receipt.complete, receipt.learned, receipt.needed) == (False, False, ())


def test_an_answer_that_was_withdrawn_by_a_correction_stays_dropped(study):
    answer(study, "ann", 2)
    study.correct(0, {"y": None}, "ann", reason="another patient")
    study.correct(0, {"y": 1.0}, "ann", reason="the same patient")
    answer(study, "ann", 31)
    assert sorted(study.learned().questions) == list(range(1, 33))
    states = dict(answer_columns(study))["state"]
    assert states[:2] == ["dropped", "learned"]
    assert study.status().left_out == 1


def test_a_value_outside_of_its_range_is_asked_back(study):
    [question] = study.ask("ann")
    values = {name: truth(0)[name] for name in question.needed} | {question.needed[0]: 60.0}
    with pytest.raises(QuestionBack, match=r"a0 is 60, outside of -6 to 6: look again") as caught:
        study.tell(0, values, "ann")
    assert caught.value.doubts == (("a0", 60.0, -6.0, 6.0, ""),)
    assert study.question(0).values == {}
    assert [event.action for event in study.events()] == ["created", "asked", "doubted"]
    assert study.tell(0, values, "ann", confirmed=["a0"]).learned


def test_the_total_budget_covers_open_questions(begin):
    study = begin("total_budget = 11\n")
    study.ask("ann")
    study.ask("ben")
    with pytest.raises(BudgetUsed, match=r"may cost 4 EUR, but 8 EUR of the total budget of 11 EUR are used, 8 EUR"):
        study.ask("cem")
    study.tell(0, dict.fromkeys(study.ask("ann")[0].needed, "missing"), "ann")
    assert study.ask("cem")[0].price == 4.0
    assert study.status().left == 3.0


def test_the_examples_are_used_up(begin):
    study = begin("examples = 2\n")
    study.skip(study.ask("ann")[0].number, "ann")
    answer(study, "ann", 1)
    with pytest.raises(NothingToAsk, match="all 2 examples of the terms were asked about"):
        study.ask("ann")


def test_a_round_waits_for_its_last_answer(study):
    answer(study, "ann", 31)
    study.ask("ben")
    with pytest.raises(NothingToAsk, match=r"the open questions of this round are with others: 31 \(with ben since"):
        study.ask("ann")
    answer(study, "ben")
    assert study.ask("ann")[0].number == 32


def test_what_ended_a_question_is_said_and_what_can_be_done_about_it(study):
    answer(study, "ann", 1)
    study.correct(0, {"y": 1.0}, "ben", reason="typing error")
    with pytest.raises(LateAnswer, match=r"question 0 was answered by ann at .*; to change an answer, correct it"):
        study.skip(0, "ann")
    skipped = study.ask("ann")[0].number
    study.skip(skipped, "ann")
    with pytest.raises(LateAnswer, match=r"was skipped by ann at .*, which is final: another example took its place$"):
        study.give_back(skipped, "ann")
    for request in (
        lambda: study.correct(skipped, {"y": 1.0}, "ann", reason="r"),
        lambda: study.withdraw(skipped, "ann", reason="r"),
    ):
        with pytest.raises(InvalidInputError, match="was skipped before anything was told of it, which is final"):
            request()
    study.withdraw(0, "cem", reason="consent")
    with pytest.raises(LateAnswer, match=r"question 0 was withdrawn by cem at .*, which cannot be undone"):
        study.give_back(0, "ann")


def test_requests_that_would_change_nothing_are_refused(study):
    study.ask("ann")
    study.give_back(0, "ben")
    answered = answer(study, "cem", 2)
    study.give_back(study.ask("cem")[0].number, "cem", key="k")
    back = study.give_back(2, "cem", key="k").number
    study.correct(answered[1], {}, "cem", subject="P-1", reason="forgotten")
    events = study.status().events
    with pytest.raises(LateAnswer, match=r"question 2 was given back by cem at .*, and nobody has it"):
        study.give_back(back, "ann")
    same = {"y": truth(answered[1])["y"]}
    for subject in (None, "P-1"):
        with pytest.raises(InvalidInputError, match="has these values already, so nothing would change"):
            study.correct(answered[1], same, "ann", subject=subject, reason="r")
    with pytest.raises(InvalidInputError, match="nothing would change"):
        study.correct(answered[1], {}, "ann", subject="P-1", reason="r")
    assert study.status().events == events
    study.correct(answered[1], same, "ann", subject="P-2", reason="another one")
    with pytest.raises(InvalidInputError, match="a correction needs a reason"):
        study.correct(answered[1], {"y": 2.0}, "ann", reason="")
    with pytest.raises(InvalidInputError, match="a withdrawal needs a reason"):
        study.withdraw(answered[1], "ann", reason=" ")


def test_a_file_that_is_locked_is_waited_for_with_a_warning(study, monkeypatch):
    monkeypatch.setattr("hardthresh.study.log._WAIT", 0.05)
    monkeypatch.setattr("hardthresh.limited.sources.database._BUSY_TIMEOUT", 0.0)
    monkeypatch.setattr("hardthresh.limited.sources.database._STALLED", 0.0)
    with closing(sqlite3.connect(study.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            pytest.warns(RuntimeWarning, match=r"another program uses .*; waiting for it, up to 0\.05 seconds"),
            pytest.raises(BusyError, match=r"wait for it or end it, and try again; nothing was stored$"),
        ):
            study.ask("ann")
    assert study.ask("ann")[0].number == 0


def test_a_file_that_may_not_be_written_says_what_to_check(study, monkeypatch):
    connected = StudyLog.connected
    monkeypatch.setattr(StudyLog, "connected", lambda log, mode="rw": connected(log, "ro"))
    with pytest.raises(HardThreshError, match=r"cannot be written: .*; check that you may write to the file"):
        study.ask("ann")


def test_a_skipped_example_is_replaced_and_what_was_bought_is_paid(study):
    [question] = study.ask("ann")
    study.tell(0, {question.attributes[0].name: 1.0}, "ann")
    assert study.skip(0, "ann", bought=[question.attributes[1].name], reason="left").cost == 2.0
    assert study.status().spent == 2.0
    with pytest.raises(LateAnswer, match="question 0 was skipped by ann"):
        study.tell(0, {"y": 1.0}, "ann")
    with pytest.raises(InvalidInputError, match="a7 was not asked for in question 32"):
        study.skip(study.ask("ann")[0].number, "ann", bought=["a7"])


def test_a_panel_can_be_paid_for_a_skipped_example(begin):
    panel = TERMS.replace("[target]", "[panels.blood]\nprice = 2\n[target]", 1)
    for name in ("a0", "a1"):
        panel = panel.replace(f"[attributes.{name}]", f"[attributes.{name}]\npanel = 'blood'")
    study = begin(terms=panel)
    study.ask("ann")
    assert study.skip(0, "ann", bought=["blood"]).cost == 2.0
    [question] = study.ask("ann")
    with pytest.raises(InvalidInputError, match="there is no attribute 'blod'"):
        study.skip(question.number, "ann", bought=["blod"])


def test_a_study_with_a_number_of_examples_can_be_read_after_a_skip(begin):
    study = begin("examples = 80\n")
    study.skip(study.ask("ann")[0].number, "ann")
    answer(study, "ann", 40)
    assert study.learned().questions.size == 40
    study.correct(5, {"y": 1.0}, "ann", reason="typing error")
    study.verify()


@pytest.mark.parametrize("again", ["P-17 Müller", "p-17 MÜLLER "])
def test_no_subject_is_examined_twice(study, again):
    [first] = study.ask("ann")
    study.tell(first.number, {"y": 1.0}, "ann", subject="P-17 Müller")
    [second] = study.ask("ben")
    with pytest.raises(
        InvalidInputError, match="'P-17 Müller' was examined before, in question 0; no example is bought twice"
    ):
        study.tell(second.number, {"y": 1.0}, "ben", subject=again)
    with pytest.raises(InvalidInputError, match="question 0 is about 'P-17 Müller', not 'P-18'"):
        study.tell(first.number, {"a0": 1.0}, "ann", subject="P-18")
    study.tell(first.number, {"a0": 1.0}, "ann", subject=again)  # of the same


def test_a_repeated_request_changes_nothing(study):
    asked = study.ask("ann", 2, key="k1")
    assert study.ask("ann", 2, key="k1") == asked
    values = {name: truth(0)[name] for name in asked[0].needed}
    told = study.tell(0, values, "ann", key="k2")
    events = list(study.events())
    assert study.tell(0, values, "ann", key="k2") == told
    assert [question.number for question in study.ask("ann", 2, key="k1")] == [0, 1]
    with pytest.raises(RepeatedKey, match="key 'k2' was used for another request, event"):
        study.tell(1, values, "ann", key="k2")
    with pytest.raises(QuestionBack):
        study.tell(1, {"a0": 60}, "ann", key="k3")
    with pytest.raises(QuestionBack):
        study.tell(1, {"a0": 60}, "ann", key="k3")
    assert len(list(study.events())) == len(events) + 1


@pytest.mark.slow
@pytest.mark.parametrize("answered", [20, 40, 420], ids=["waiting", "learned from", "long ago"])
def test_a_correction_gives_what_the_right_value_would_have_given(begin, answered):
    wrong, right = begin(name="wrong.db"), begin(name="right.db")
    [question] = wrong.ask("ann")
    known = {name: truth(0)[name] for name in question.needed}
    wrong.tell(0, known | {"a1": known["a1"] + 0.5, "y": known["y"] + 5}, "ann")
    answer(wrong, "ann", answered - 1)
    answer(right, "ann", answered)
    assert coefficients(wrong) != coefficients(right) or answered > 40  # then least squares are on later examples
    wrong.correct(0, {"a1": known["a1"], "y": known["y"]}, "ben", reason="two digits exchanged")
    assert coefficients(wrong) == coefficients(right)
    assert coefficients(Study.open(wrong.path)) == coefficients(right)
    [event] = [event for event in wrong.events() if event.action == "corrected"]
    assert event.body["old"] == {"a1": known["a1"] + 0.5, "y": known["y"] + 5}
    assert wrong.question(0).values["a1"] == known["a1"]
    answer(wrong, "ann", 80)
    answer(right, "ann", 80)
    assert coefficients(wrong) == coefficients(right)
    wrong.verify()


@pytest.mark.slow
def test_a_poisoned_answer_is_withdrawn(begin):
    """Withdrawn while attributes are explored, an outlier has no influence on which of them are chosen."""
    study, poisoned = begin(name="study.db"), begin(name="poisoned.db")
    for one in (study, poisoned):
        [question] = one.ask("ann")
        values = {name: truth(0)[name] for name in question.needed} | {"y": 1e6}
        one.tell(0, values, "ann", confirmed=["y"])
        answer(one, "ann", 63)
    study.withdraw(0, "ben", reason="the wrong patient")
    answer(study, "ann", 330)
    answer(poisoned, "ann", 330)
    assert study.status().chosen == ("a1", "a6")
    assert poisoned.status().chosen != ("a1", "a6")
    assert 0 not in study.learned().questions
    assert study.status().spent == poisoned.status().spent
    with pytest.raises(InvalidInputError, match="question 0 was withdrawn"):
        study.correct(0, {"y": 1.0}, "ben", reason="no")
    study.verify()


def test_the_examples_that_were_learned_from(study):
    answer(study, "ann", 70)
    learned = study.learned()
    assert learned.questions.tolist() == list(range(64))
    assert np.count_nonzero(~np.isnan(learned.values), axis=1).tolist() == [4] * 64
    assert learned.batch.tolist() == [0] * 32 + [1] * 32
    assert learned.target.tolist() == [truth(number)["y"] for number in range(64)]
    assert learned.prediction[:32].tolist() == [0.0] * 32
    assert learned.prediction[32:] == pytest.approx(np.full(32, learned.target[:32].mean()))
    assert learned.money.sum() == 256.0
    assert [support.tolist() for support in learned.chosen] == [[], []]  # nothing was fitted yet


def test_a_value_that_was_corrected_to_missing_by_mistake_is_corrected_again(study):
    answer(study, "ann", 40)
    before, spent = coefficients(study), study.status().spent
    study.correct(3, {"y": None}, "ben", reason="the wrong patient")
    assert 3 not in study.learned().questions
    assert study.status().spent == spent
    study.correct(3, {"y": truth(3)["y"]}, "ben", reason="it was the right one")
    assert coefficients(study) == before
    study.verify()


def test_what_was_measured_stays_paid(study):
    [question] = study.ask("ann")
    study.tell(0, {"a0": 1.0, "a1": 1.0}, "ann")
    study.correct(0, {"a0": "missing"}, "ann", reason="of somebody else")
    assert study.status().spent == 2.0
    receipt = study.tell(0, dict.fromkeys(study.question(0).needed, 0.5), "ann")
    assert receipt.cost == study.status().spent == question.price
    assert not receipt.learned


def test_the_subject_of_a_question_can_be_corrected(study):
    study.ask("ann", 2)
    study.tell(0, {"y": 1.0}, "ann", subject="P-9")
    study.tell(0, {"a0": 1.0}, "ann")
    study.correct(0, {}, "ann", subject="P-8", reason="typing error")
    study.tell(1, {"a0": 1.0}, "ann", subject="P-9")
    assert study.question(0).subject == "P-8"
    with pytest.raises(InvalidInputError, match="'P-9' was examined before, in question 1"):
        study.correct(0, {}, "ann", subject="P-9", reason="no")
    [event] = [event for event in study.events() if event.action == "corrected"]
    assert event.body["old subject"] == "P-9"


def test_a_subject_that_was_skipped_without_being_examined_can_come_later(study):
    study.ask("ann", 2)
    study.tell(0, {"y": 1.0}, "ann", subject="P-9")
    study.skip(0, "ann", reason="went home")
    assert study.tell(1, {"a0": 1.0}, "ann", subject="P-9").number == 1


def test_numbers_of_numpy_are_numbers_of_questions(study):
    answer(study, "ann", 40)
    study.withdraw(study.learned().questions[0], "ann", reason="consent")
    study.correct(np.int64(1), {"y": np.float64(1.0)}, "ann", reason="typing error")
    study.give_back(study.ask("ann")[0].number, "ann")
    for number in ([1], "1", 2.0, None):
        with pytest.raises(InvalidInputError, match="was never asked"):
            study.withdraw(number, "ann", reason="consent")


def test_a_repeated_reply_is_that_of_the_time(study):
    [question] = study.ask("ann", key="k")
    study.give_back(0, "ann")
    study.ask("ben")
    study.tell(0, {"a0": 1.0}, "ben")
    assert study.ask("ann", key="k") == (question,)
    study.skip(0, "ben")
    assert study.question(0).holder is None


def test_the_state_of_a_study_cannot_be_changed_by_its_questions(study):
    [question] = study.ask("ann")
    with pytest.raises(TypeError):
        question.values["y"] = 9.0


def test_events_are_read_without_keeping_others_from_writing(study):
    study.ask("ann")
    for event in study.events():
        study.give_back(0, "ann") if event.action == "asked" else study.ask("ann")
    assert [event.action for event in study.events()] == ["created", "asked", "given back"]


def test_a_confirmed_correction_is_in_the_log(study):
    answer(study, "ann", 1)
    with pytest.raises(QuestionBack):
        study.correct(0, {"y": 90.0}, "ann", reason="as measured")
    study.correct(0, {"y": 90.0}, "ann", reason="as measured", confirmed=["y"])
    assert [event.body["confirmed"] for event in study.events() if event.action == "corrected"] == [["y"]]


def test_what_was_learned_is_verified(study):
    answer(study, "ann", 40)
    with closing(sqlite3.connect(study.path)) as connection:
        connection.execute("DROP TRIGGER batches_are_kept")
        connection.execute("UPDATE batches SET content = 'junk'")
        connection.commit()
    with pytest.raises(HardThreshError, match="do not give what was learned"):
        study.verify()


def test_a_snapshot_does_not_change(study):
    answer(study, "ann", 31)
    with study.snapshot() as now:
        answer(study, "ann", 2)
        assert now.status().answered == len(now.status().waiting) == 31
        assert now.learned().questions.size == 0
        assert dict(answer_columns(now))["state"] == ["waiting"] * 31
        with pytest.raises(InvalidInputError, match=r"copy of .* for reading"):
            now.ask("ben")
    assert study.status().answered == 33
    assert study.learned().questions.size == 32


def test_threads_may_share_a_study(study):
    """Readers would see the learner change while they look at it; the switches between threads are made frequent."""
    answering, failures = Event(), []

    def read():
        while not answering.is_set():
            try:
                status = study.status()
                assert status.answered + len(status.open) == status.asked
            except Exception as error:
                failures.append(error)

    readers = [Thread(target=read) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        answer(study, "ann", 40)
    finally:
        answering.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(before)
    assert failures == []


@pytest.mark.parametrize("other", ["longer", "shorter", "other terms"])
@pytest.mark.parametrize("before", ["looked", "refused", "opened"])
def test_a_file_that_is_replaced_while_it_is_open_is_refused(study, begin, tmp_path, other, before):
    answer(study, "ann", 3)
    copy = tmp_path / "copy.db"
    shutil.copy(study.path, copy)
    answer(study, "ann", 2)
    if other == "other terms":
        copy = begin("total_budget = 40\n", name="terms.db").path
    if other != "shorter":
        answer(Study.open(copy), "ben", 4)
    opened = Study.open(study.path)
    if before == "looked":
        opened.learned()
    elif before == "refused":
        with pytest.raises(InvalidInputError, match="never asked"):
            opened.tell(99, {"y": 1.0}, "ann")
    shutil.copy(copy, study.path)
    events = len(list(Study.open(copy).events()))
    for action in (opened.status, opened.learned, lambda: opened.ask("ann"), lambda: answer_columns(opened)):
        for _ in range(2):
            with pytest.raises(HardThreshError, match="was replaced by another file, or by an older copy"):
                action()
    with opened.snapshot() as now, pytest.raises(HardThreshError, match="was replaced"):
        now.status()
    again = Study.open(study.path)
    assert len(list(again.events())) == events
    again.verify()


WRITES = """
import sys
sys.path.insert(0, sys.argv[2])
from study_helpers import TERMS, answer
from hardthresh.study import Study, Terms
study = Study.create(sys.argv[1], Terms.parse(TERMS), "ann")
answer(study, "ann", 400)
study.correct(3, {"y": 1.5}, "ann", reason="typing error")
answer(study, "ann", 40)
"""
VERIFIES = """
import sys
sys.path.insert(0, sys.argv[2])
from study_helpers import answer
from hardthresh.study import Study
study = Study.open(sys.argv[1])
study.verify()
answer(study, "ben", 60)
study.verify()
"""


@pytest.mark.slow
def test_a_study_goes_on_on_another_processor(tmp_path):
    for processor, script in (("Haswell", WRITES), ("Nehalem", VERIFIES)):
        settings = os.environ | {"OPENBLAS_CORETYPE": processor}
        script_and_folder = [script, tmp_path / "study.db", Path(__file__).parent]
        subprocess.run([sys.executable, "-c", *script_and_folder], env=settings, check=True)
    Study.open(tmp_path / "study.db").verify()


def test_everybody_counts_a_last_round_that_stays_incomplete_alike(begin, tmp_path):
    study = begin("total_budget = 160\n")
    answer(study, "ann", 40)
    status = study.status()
    assert status.ended.startswith("the next question may cost 4 EUR, but 160 EUR of the total budget of 160 EUR are")
    assert status.ended.endswith("; close the study")
    assert (status.answered, len(status.waiting), status.to_come) == (40, 8, 0)
    before = coefficients(study)
    study.close("ann")
    assert coefficients(study) == before
    status = study.status()
    assert (status.asked, status.answered, status.waiting, status.to_come, status.ended) == (40, 40, (), 0, "")
    assert dict(answer_columns(study))["state"] == ["learned"] * 40
    page = write_study(study, tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<dd class="value">40</dd>' in page
    assert "of 40 asked about; 8 of them in the last round, which is incomplete" in page


def test_a_study_of_which_everything_was_withdrawn_has_no_model(study):
    for number in answer(study, "ann", 33):
        study.withdraw(number, "ann", reason="consent")
    status = Study.open(study.path).status()
    assert study.status() == status
    assert (status.answered, status.left_out, status.spent) == (0, 33, 132.0)
    assert predictor(study) is None
    with pytest.raises(InvalidInputError, match="no example is learned from, so there is no model"):
        save_model(study, study.path.with_name("model.json"))


def test_what_was_typed_is_in_the_audit_trail(tmp_path):
    terms = Terms.parse(
        "n_nonzero_coefs = 1\nbudget_per_example = 2\n[target]\nname = 'stay'\n[attributes.weight]\nunit = 'kg'\n"
        "units = {lb = 0.45359237}\nrange = [0, 200]\n[attributes.soil]\nkind = 'category'\nlevels = ['sand', 'clay']\n"
    )
    study = Study.create(tmp_path / "study.db", terms, "ann")
    study.ask("ann")
    with pytest.raises(QuestionBack):
        study.tell(0, {"weight": "1500 lb"}, "ann")
    study.tell(0, {"weight": "150 lb", "soil": "Clay", "stay": 3}, "ann")
    study.correct(0, {"weight": "151 lb"}, "ann", reason="typing error")
    trail = dict(trail_columns(study))
    told = [(name, typed) for name, typed in zip(trail["name"], trail["typed"], strict=True) if name]
    assert told == [
        *[("weight", "1500 lb"), ("weight", "150 lb"), ("soil", "Clay"), ("stay", ""), ("weight", "151 lb")],
    ]
    assert study.question(0).to_dict()["values"] == {"weight": 151 * 0.45359237, "soil": "clay", "stay": 3.0}


def test_a_closed_study_can_only_be_read(study):
    answer(study, "ann", 3)
    study.ask("ann")
    with pytest.raises(InvalidInputError, match="give back 1 open question before you close the study, such as 3"):
        study.close("ann")
    study.give_back(3, "ann")
    assert study.status().reserved == 4.0
    before = study.status()
    study.close("ann", reason="the grant ended")
    status = study.status()
    assert (status.asked, status.answered, status.left_out, status.open) == (before.asked, 3, 1, ())
    assert (status.reserved, status.spent) == (0.0, 12.0)
    with pytest.raises(StudyClosed):
        study.held_question(3, "ann")
    for request in (lambda: study.ask("ann"), lambda: study.correct(0, {"y": 1}, "ann", reason="r")):
        with pytest.raises(StudyClosed):
            request()
    assert Study.open(study.path).closed
    assert study.status().answered == 3


def test_damaged_files_are_said_to_be_damaged(study):
    answer(study, "ann", 40)
    content = study.path.read_bytes()
    half = study.path.with_name("half.db")
    half.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInputError, match=r"half\.db cannot be read as a study"):
        Study.open(half).verify()
    with closing(sqlite3.connect(study.path)) as connection:
        connection.execute("DROP TRIGGER events_stay")
        connection.execute("DELETE FROM events WHERE number > 20")
        connection.commit()
    with pytest.raises(InvalidInputError, match="is damaged: it ends with event 20"):
        Study.open(study.path).status()
    with closing(sqlite3.connect(study.path)) as connection:
        connection.execute("DROP TABLE batches")
    with pytest.raises(InvalidInputError, match="cannot be read as a study: no such table"):
        Study.open(study.path).verify()


def test_a_file_that_was_changed_is_refused(study):
    answer(study, "ann", 40)
    study.verify()
    with closing(sqlite3.connect(study.path)) as connection:
        for statement in ("UPDATE events SET who = 'x'", "DELETE FROM events WHERE number = 3"):
            with pytest.raises(sqlite3.IntegrityError, match="a study keeps every event"):
                connection.execute(statement)
        connection.execute("DROP TRIGGER events_are_kept")
        connection.execute("UPDATE events SET who = 'ben' WHERE number = 3")
        connection.commit()
    with pytest.raises(InvalidInputError, match=r"event 3 of .* was changed"):
        study.verify()


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be one" * 30])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="is not a study"):
        Study.open(path)
    if not content:  # as a program leaves it that is killed while it begins a study
        answer(Study.create(path, Terms.parse(TERMS), "ann"), "ann", 1)
        return
    with pytest.raises(InvalidInputError, match="choose another name"):
        Study.create(path, Terms.parse(TERMS), "ann")
    assert path.read_bytes() == content
    with pytest.raises(InvalidInputError, match="there is no study"):
        Study.open(tmp_path / "nothing.db")


def test_the_largest_numbers_do_no_harm(begin):
    study = begin(terms=TERMS.replace("range", "# range"))
    for question in study.ask("ann", 32):
        huge = [1e150, -1e150][question.number % 2]
        study.tell(question.number, dict.fromkeys(question.needed, huge), "ann")
    assert study.ask("ann")[0].number == 32
    assert np.all(np.isfinite(study.learned().prediction))
    with pytest.raises(InvalidInputError, match="at most 1e"):
        study.tell(32, {"a0": 2e150}, "ann")


def test_values_that_overflow_are_not_taken(study, monkeypatch):
    answer(study, "ann", 31)
    monkeypatch.setattr("hardthresh.limited.algorithms.adaptive.AdaptiveState.finite", False)
    events = study.status().events
    with pytest.raises(InvalidInputError, match="sums of squares overflow"):
        answer(study, "ann")
    monkeypatch.undo()
    assert study.status().events == events + 1  # the question stays asked
    answer(study, "ann")
    assert study.learned().questions.size == 32


@pytest.mark.parametrize("who", ["", " ", "a\nb", "x" * 101, None, 3])
def test_persons_without_a_name_are_refused(study, who):
    with pytest.raises(InvalidInputError, match="the name of a person"):
        study.ask(who)


@pytest.mark.parametrize("number", [-1, 2**70, "0", None, 1.0, True, 7])
def test_questions_that_were_never_asked(study, number):
    study.ask("ann")
    with pytest.raises(InvalidInputError, match="was never asked"):
        study.tell(number, {"a0": 1.0}, "ann")


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE events; --", "<script>alert(1)</script>", "../../etc/passwd", "𝔘\u202e"]
)
def test_what_people_type_is_kept_as_text(study, text):
    name = "".join(c for c in text if c.isprintable())
    [question] = study.ask(name)
    study.tell(question.number, {"y": 1.0}, name, subject=name, key=name)
    study.skip(question.number, name, reason=name)
    assert {event.who for event in study.events()} == {"ann", name}
    study.verify()


def test_terms_that_were_changed_after_they_were_read_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="total_budget differs from the TOML of the terms"):
        Study.create(tmp_path / "study.db", replace(Terms.parse(TERMS), total_budget=100.0), "ann")
    assert not (tmp_path / "study.db").exists()


@pytest.mark.parametrize("names", [5, [1, "a1"], [["a1"]], b"a1"])
def test_names_that_are_none(study, names):
    [question] = study.ask("ann")
    with pytest.raises(InvalidInputError, match="bought must be a name or a list of names"):
        study.skip(question.number, "ann", bought=names)
    with pytest.raises(InvalidInputError, match="confirmed must be a name or a list of names"):
        study.tell(question.number, {"y": 1.0}, "ann", confirmed=names)


def test_a_person_is_the_same_however_the_accents_of_the_name_are_composed(study):
    composed, decomposed = "Jos\u00e9", "Jose\u0301"
    [question] = study.ask(decomposed)
    assert question.holder == composed
    assert study.ask(composed)[0].number == question.number
    study.tell(question.number, {"y": 1.0}, composed, subject=decomposed)
    with pytest.raises(InvalidInputError, match="was examined before"):
        study.tell(study.ask("ann")[0].number, {"y": 1.0}, "ann", subject=composed)
