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
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

import hardthresh.limited.sources.database as database
from hardthresh.core.errors import HardThreshError
from hardthresh.limited import Learner
from hardthresh.storage import to_bytes
from hardthresh.study import NothingToAsk, QuestionBack, Study, StudyClosed, Terms
from hardthresh.study.state import StudyState

WRITERS = ("ann", "ben", "cem", "dua")
ENOUGH = 70  # answers, so that two batches and a half are learned from


def terms_of(rng):
    """Return random terms: prices and panels, two classes or numbers, with or without a total budget."""
    d, classes = int(rng.integers(5, 9)), rng.random() < 0.3
    lines = ["n_nonzero_coefs = 2", f"budget_per_example = {int(rng.integers(4, 7))}"]
    if rng.random() < 0.5:
        lines.append(f"total_budget = {int(rng.integers(150, 500))}")
    if rng.random() < 0.3:
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
            if study.status().open and any(q.holder != who for q in study.status().open):
                time.sleep(0.01)
                if rng.random() < 0.1:
                    other = study.status().open
                    if other:
                        request_back(study, other[0].number, who)
                continue
            return
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
                try:
                    study.tell(number, {"y": 100.0}, who)
                except QuestionBack:
                    pass
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
        except HardThreshError:
            continue  # another writer was faster, or the answer cannot be corrected


def request_back(study, number, who):
    try:
        study.give_back(number, who, reason="waited too long")
    except HardThreshError:
        pass  # it was answered meanwhile


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


def mistakes(study, terms):
    """Return what must not have happened, by the log alone."""
    wrong, holder, told, price, paid = [], {}, Counter(), {}, {}
    complete = Counter()
    asked = {}
    for event in study.events():
        number = event.question
        if event.action == "asked":
            if number in holder and holder[number] is not None:
                wrong.append(f"question {number} was with two persons")
            holder[number], asked[number] = event.who, event.body["columns"]
            price[number] = terms.cost_model.cost(event.body["columns"])
            if price[number] > terms.budget_per_example * (1 + 1e-9):
                wrong.append(f"question {number} costs {price[number]}")
        elif event.action == "given back":
            holder[number] = None
        elif event.action == "told":
            if holder[number] != event.who:
                wrong.append(f"question {number} was told by another person")
            told.update((number, name) for name in event.body["values"])
            known = {name for (of, name), _ in told.items() if of == number}
            names = {a.name for a in terms.attributes_at(np.array(asked[number]))} | {"y"}
            if known == names:
                complete[number] += 1
        if terms.total_budget is not None and event.action == "asked":
            committed = sum({**price, **paid}.values())
            if committed > terms.total_budget * (1 + 1e-9):
                wrong.append(f"{committed} of {terms.total_budget} were committed at event {event.number}")
        if event.action in ("told", "skipped", "corrected"):
            question = study.question(number)
            if event.action == "skipped" or (number in complete and number not in paid):
                measured = set(question.measured) | set(event.body.get("bought", ()))
                originally = {n for (of, n) in told if of == number} & {a.name for a in question.attributes}
                paid[number] = terms.cost_model.cost(
                    terms.columns_at(n for n in measured | originally if n not in missing_at_first(study, number))
                )
            if event.action == "skipped":
                holder[number] = None
        if number in complete:
            holder[number] = None
    wrong += [f"{name} of question {number} was bought {n} times" for (number, name), n in told.items() if n > 1]
    wrong += [f"question {number} was answered {n} times" for number, n in complete.items() if n > 1]
    if terms.total_budget is not None and study.status().spent > terms.total_budget * (1 + 1e-9):
        wrong.append("the total budget was exceeded")
    if coefficients(careful(study, terms)) != coefficients(study._read().learner):
        wrong.append("one careful writer has other coefficients")
    return wrong


def missing_at_first(study, number):
    """Return the names of what could not be measured when it was told."""
    with study._log.reading() as transaction:
        events = [event for event in transaction.events(question=number) if event.action == "told"]
    return {name for event in events for name, value in event.body["values"].items() if value is None}


def coefficients(learner):
    """Return coefficients in hexadecimal digits."""
    state = learner.final_state()
    return [float(w).hex() for w in (*state.w, state.intercept)]


def careful(study, terms):
    """Return the learner of one writer who gives the same answers in the same order to a new study."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Study.create(Path(folder) / "alone.db", terms, "ann")
        for event in study.events():
            number, body = event.question, event.body
            match event.action:
                case "asked":
                    held = [q for q in alone.status().open if q.number == number]
                    if held and held[0].holder is not None:
                        alone.give_back(number, event.who)
                    numbers = [q.number for q in alone.ask(event.who, 1000)] if held else []
                    if not held:
                        mine = [q for q in alone.status().open if q.holder == event.who]
                        numbers = [q.number for q in alone.ask(event.who, len(mine) + 1)]
                    assert number in numbers, (number, numbers)
                    for extra in set(numbers) - {number} - {q.number for q in mine} if not held else ():
                        raise AssertionError(f"{extra} was asked instead of {number}")
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
        return alone._read().learner


def typed(terms, values):
    """Return values as they are typed."""
    levels = terms.target.levels
    return {
        name: levels[int(value)] if name == "y" and levels and value is not None else value
        for name, value in values.items()
    }


def plain(study, terms):
    """Return the learner that is told, without a study, the same answers in the same order."""
    learner = Learner.of(terms.algorithm, terms.cost_model, length=terms.examples)
    known, columns = {}, {}
    for event in study.events():
        number = event.question
        if event.action == "asked":
            columns[number] = event.body["columns"]
            known.setdefault(number, {})
        elif event.action == "skipped":
            measured = [n for n, value in known[number].items() if value is not None and n != "y"]
            learner.skip(number, paid=np.array(terms.columns_at([*measured, *event.body["bought"]]), dtype=int))
        elif event.action == "told":
            known[number].update(event.body["values"])
            if len(known[number]) == len(columns[number]) + 1:
                learner.questions(1)
                row = [known[number][terms.columns[j]] for j in columns[number]]
                if None in row or known[number]["y"] is None:
                    measured = [terms.columns[j] for j, value in zip(columns[number], row, strict=True) if value is not None]
                    learner.skip(number, paid=np.array(terms.columns_at(measured), dtype=int))
                else:
                    learner.tell(number, row, known[number]["y"])
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
