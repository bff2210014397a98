"""Random studies of several writers, who are killed, lose replies and repeat requests; run by test_fire.py.

``python tests/study/fire.py --studies 1000`` runs many, and prints what was found.
"""

import argparse
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

import hardthresh.limited.sources.database as database
from hardthresh.core.errors import InvalidInputError
from hardthresh.limited import Learner
from hardthresh.study import LateAnswer, NothingToAsk, QuestionBack, Study, StudyClosed, Terms
from hardthresh.study.export import answer_columns

WRITERS = ("ann", "ben", "cem", "dua")
ENOUGH = 45  # answers: a batch of 32, which is corrected after it was learned from, and a part of the next


def terms_of(rng):
    """Return random terms: prices and panels, two classes or numbers, with or without a total budget."""
    d, classes = int(rng.integers(5, 9)), rng.random() < 0.3
    lines = ["n_nonzero_coefs = 2", f"budget_per_example = {int(rng.integers(4, 7))}"]
    if rng.random() < 0.5:
        lines.append(f"total_budget = {int(rng.integers(150, 500))}")
    if rng.random() < 0.5:
        lines.append("examples = 120")
    lines += ["[target]", "name = 'y'", "kind = 'class'" if classes else "range = [-30, 30]"]
    if rng.random() < 0.5:
        lines += ["[panels.blood]", "price = 1.5"]
        lines += ["[attributes.a0]", "panel = 'blood'", "[attributes.a1]", "panel = 'blood'", "range = [-6, 6]"]
    for j in range(2 if "[panels.blood]" in lines else 0, d):
        lines += [f"[attributes.a{j}]", "range = [-6, 6]", f"price = {rng.choice([1, 1, 1.25])}"]
    return Terms.parse("\n".join(lines))


def truth(terms, number, seed):
    """Return what an examination of an example finds."""
    rng = np.random.default_rng([7, seed, number])
    x = rng.standard_normal(len(terms.attributes))
    y = float(x[0] - 2 * x[-1] + 0.3 * rng.standard_normal())
    values = {attribute.name: float(value) for attribute, value in zip(terms.attributes, x, strict=True)}
    return values | {"y": ("yes" if y > 0 else "no") if terms.is_class else y}


class Fragile(sqlite3.Connection):
    """A connection of a process that is killed at random, before or after it writes."""

    rng, chance = None, 0.0

    def execute(self, sql, *parameters):
        deadly = sql.startswith(("COMMIT", "INSERT"))
        if deadly and self.rng.random() < self.chance:
            os.kill(os.getpid(), signal.SIGKILL)
        cursor = super().execute(sql, *parameters)
        if deadly and self.rng.random() < self.chance:
            os.kill(os.getpid(), signal.SIGKILL)
        return cursor


def write(path, who, seed, start):
    """Work on a study until enough was answered or nothing is left, with lost replies and repeated requests."""
    rng = np.random.default_rng([seed, WRITERS.index(who), start])
    Fragile.rng, Fragile.chance = rng, 0.004
    sqlite3.connect = partial(sqlite3.connect, factory=Fragile)
    study = Study.open(path)
    terms, sent = study.terms, 0

    def request(method, *arguments, **settings):
        """Make a request; its reply may be lost, and then it is made again, perhaps by another program."""
        nonlocal sent
        sent += 1
        key = f"{who} {start} {sent}"
        reply = method(*arguments, **settings, key=key)
        while rng.random() < 0.1:
            name = method.__name__
            again = getattr(Study.open(path) if rng.random() < 0.5 else study, name)(*arguments, **settings, key=key)
            same = [q.number for q in again] == [q.number for q in reply] if name == "ask" else again == reply
            assert same, (name, arguments, reply, again)
        return reply

    while study.status().answered < ENOUGH:
        try:
            question = request(study.ask, who, int(rng.integers(1, 4)))[-1]
        except StudyClosed:
            return
        except NothingToAsk:
            others = [question for question in study.status().open if question.holder != who]
            if not others:
                return
            time.sleep(0.01)
            if rng.random() < 0.1:
                take_back(study, others[0].number, who)
            continue
        number, values = question.number, truth(terms, question.number, seed)
        try:
            if rng.random() < 0.03:
                request(study.give_back, number, who, reason="tired")
                continue
            if rng.random() < 0.05:
                request(study.skip, number, who, bought=[question.attributes[0].name] if rng.random() < 0.5 else [])
                continue
            answer = {name: values[name] for name in question.needed}
            if rng.random() < 0.1:
                answer[next(iter(answer))] = None
            if rng.random() < 0.1 and "y" in answer and not terms.is_class and answer["y"] is not None:
                with suppress(QuestionBack):
                    study.tell(number, {"y": 100.0}, who)
            pieces = [answer]
            if rng.random() < 0.5 and len(answer) > 1:
                first = next(iter(answer))
                pieces = [{first: answer.pop(first)}, answer]
            for piece in pieces:
                request(study.tell, number, piece, who, confirmed=list(piece))
            if rng.random() < 0.05:
                some = int(rng.integers(0, number + 1))
                name = study.question(some).attributes[0].name
                request(study.correct, some, {name: float(rng.standard_normal())}, who, reason="typo")
            elif rng.random() < 0.03:
                request(study.withdraw, int(rng.integers(0, number + 1)), who, reason="consent")
        except (InvalidInputError, LateAnswer, StudyClosed):
            continue  # another writer was faster, or the answer cannot be corrected


def take_back(study, number, who):
    with suppress(InvalidInputError, LateAnswer):  # it was answered meanwhile
        study.give_back(number, who, reason="waited too long")


def forked(path, who, seed, start):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            write(path, who, seed, start)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def run(seed, folder):
    """Run one study; return how often a writer was killed, and everything that must not have happened."""
    path, rng = Path(folder) / f"study {seed}.db", np.random.default_rng([seed])
    terms = terms_of(rng)
    Study.create(path, terms, "ann")
    running = {forked(path, who, seed, 0): (who, 0) for who in WRITERS}
    killed, wrong = 0, []
    while running:
        pid, status = os.wait()
        who, start = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            killed += 1
            running[forked(path, who, seed, start + 1)] = (who, start + 1)
        elif code:
            wrong.append(f"{who} ended with {code}")
    study = Study.open(path)
    study.verify()
    return killed, len(list(study.events())), wrong + mistakes(study, terms)


class Ledger:
    """The purchases of a study, by the log alone: what each question has cost, or may cost while it is open."""

    def __init__(self, terms):
        self.terms = terms
        self.asked, self.holder, self.values, self.measured, self.bought = {}, {}, {}, {}, {}
        self.wrong = []

    def add(self, event):
        """Enter an event, and note what must not have happened."""
        number, body = event.question, event.body
        match event.action:
            case "asked":
                if self.holder.get(number) is not None or number in self.bought:
                    self.wrong.append(f"question {number} was with two persons, or asked after it was closed")
                if self.asked.setdefault(number, body["columns"]) != body["columns"]:
                    self.wrong.append(f"question {number} has changed")
                self.holder[number] = event.who
            case "given back":
                self.holder[number] = None
            case "told" | "skipped":
                if self.holder[number] != event.who:
                    self.wrong.append(f"question {number} was with another person")
                self._tell(number, body.get("values", {}))
                if event.action == "skipped" or len(self.values[number]) == self.needed(number):
                    self.bought[number] = self.measured[number] | {*body.get("bought", ())}
                    self.holder[number] = None
            case "corrected":
                self._measure(number, body["values"])
                if number in self.bought:  # what was measured after all has to be paid now
                    self.bought[number] |= self.measured[number]
        self._check_money(number)

    def _tell(self, number, values):
        known = self.values.setdefault(number, {})
        self.wrong += [f"{name} of question {number} was bought twice" for name in values.keys() & known.keys()]
        known |= values
        self._measure(number, values)

    def _measure(self, number, values):
        measured = {name for name, value in values.items() if value is not None} - {"y"}
        self.measured.setdefault(number, set()).update(measured)

    def needed(self, number):
        return len(self.terms.attributes_at(self.asked[number])) + 1

    def price(self, number):
        model = self.terms.cost_model
        if number in self.bought:
            return model.cost(self.terms.columns_at(self.bought[number]))
        return model.cost(self.asked[number])

    def _check_money(self, number):
        if number is not None and self.price(number) > self.terms.budget_per_example * (1 + 1e-9):
            self.wrong.append(f"question {number} costs {self.price(number)}")
        committed, total = sum(map(self.price, self.asked)), self.terms.total_budget
        if total is not None and committed > total * (1 + 1e-9):
            self.wrong.append(f"{committed} of {total} are committed")


def mistakes(study, terms):
    """Return what must not have happened, by the log alone, and by a writer who does the same without haste."""
    ledger = Ledger(terms)
    for event in study.events():
        ledger.add(event)
    status = study.status()
    spent = sum(map(ledger.price, ledger.bought))
    reserved = sum(ledger.price(number) for number in ledger.asked if number not in ledger.bought)
    wrong = ledger.wrong
    if abs(status.spent + status.reserved - spent - reserved) > 1e-6:
        wrong.append(f"{status.spent} spent and {status.reserved} reserved, instead of {spent} and {reserved}")
    exported = float(np.sum(dict(answer_columns(study))["cost"]))
    if abs(status.spent - exported) > 1e-6:
        wrong.append(f"{status.spent} spent, and {exported} in the export")
    careful = careful_learner(study, terms)
    if coefficients(careful) != coefficients(learner_of(study)):
        wrong.append("one careful writer has other coefficients")
    changed = any(event.action in ("corrected", "withdrawn") for event in study.events())
    if not changed and coefficients(plain_learner(study, terms)) != coefficients(careful):
        wrong.append("a learner without a study has other coefficients")
    return wrong


def learner_of(study):
    """Return the learner of a study."""
    with study._reading() as (_, state):
        return state.learner


def coefficients(learner):
    """Return coefficients in hexadecimal digits."""
    state = learner.final_state()
    return [float(w).hex() for w in (*state.w, state.intercept)]


def careful_learner(study, terms):
    """Return the learner of one program that makes the same requests in the same order in a new study."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Study.create(Path(folder) / "alone.db", terms, "ann")
        for event in study.events():
            number, body = event.question, event.body
            match event.action:
                case "asked":
                    held = sum(question.holder == event.who for question in alone.status().open)
                    assert number in [question.number for question in alone.ask(event.who, held + 1)]
                case "told":
                    alone.tell(number, typed(terms, body["values"]), event.who, confirmed=body["confirmed"])
                case "skipped":
                    alone.skip(number, event.who, bought=body["bought"])
                case "given back":
                    alone.give_back(number, event.who)
                case "corrected":
                    values = typed(terms, body["values"])
                    alone.correct(number, values, event.who, reason="same", confirmed=list(values))
                case "withdrawn":
                    alone.withdraw(number, event.who, reason="same")
        return learner_of(alone)


def typed(terms, values):
    """Return values as they are typed."""
    levels = terms.target.levels
    return {
        name: levels[int(value)] if name == "y" and levels and value is not None else value
        for name, value in values.items()
    }


def plain_learner(study, terms):
    """Return the learner that is told, without a study, the same answers in the same order."""
    learner, ledger = Learner.of(terms.algorithm, terms.cost_model, length=terms.examples), Ledger(terms)
    for event in study.events():
        ledger.add(event)
        if event.action in ("told", "skipped") and event.question in ledger.bought:
            learner.questions(1)
            values = ledger.values[event.question]
            row = [values.get(terms.columns[j]) for j in ledger.asked[event.question]]
            if event.action == "skipped" or None in row or values["y"] is None:
                paid = terms.columns_at(ledger.bought[event.question])
                learner.skip(event.question, paid=np.array(paid, dtype=int))
            else:
                learner.tell(event.question, row, values["y"])
    return learner


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    database._SYNCHRONOUS = "OFF"  # what the system has is safe from SIGKILL, if not from a power cut
    killed = events = 0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.studies):
            k, e, found = run(seed, folder)
            killed, events, wrong = killed + k, events + e, wrong + [(seed, f) for f in found]
            for file in Path(folder).iterdir():
                file.unlink()
            if found:
                print(seed, found, flush=True)
    print(json.dumps({"studies": given.studies, "killed": killed, "events": events, "mistakes": len(wrong)}))
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
