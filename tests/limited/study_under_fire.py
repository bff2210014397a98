"""Run by conftest.py: keeps one warm interpreter, and forks studies off it that are killed as they are told.

Each line of standard input is ``{"what": ..., "folder": ..., "kill": null or [kind, count], "programs": n}``. For each
a line comes back with the exit statuses of the n programs that ran at the same time, negative for a signal. A fork
takes milliseconds, a new interpreter imports for a second.
"""

import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import numpy as np

import hardthresh as ht
import hardthresh.storage
from hardthresh.limited import AdaptiveHybrid, CallbackSource, CostModel, Journal, Learner, learn
from hardthresh.limited.sources import database

D, OBSERVED = 10, 4
PATIENTS, ANSWERS = 320, 40
ALGORITHM = AdaptiveHybrid(n_nonzero_coefs=2)


class Fuse:
    """Kills the process at the n-th time something happens."""

    def __init__(self, kind, count):
        self.kind, self.left = kind, count

    def at(self, kind):
        self.left -= kind == self.kind
        if kind == self.kind and self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Device:
    """Measures patients, and charges for each attribute that it has not measured before, in an append-only ledger."""

    def __init__(self, folder, fuse):
        self.ledger, self.requests, self.fuse = folder / "ledger", folder / "requests", fuse
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        self.charged = {tuple(map(int, line.split())) for line in lines}

    def ask(self, patient, indices):
        self.fuse.at("asked")
        self._append(self.requests, str(patient))
        if patient % 13 == 7:
            return None  # did not come
        for j in indices.tolist():
            if (patient, j) not in self.charged:
                self._append(self.ledger, f"{patient} {j}")
        self.fuse.at("measured")
        return np.random.default_rng([1, patient]).standard_normal(D)[indices] * 7 + 3

    def target(self, patient):
        x = np.random.default_rng([1, patient]).standard_normal(D)
        return x[2] - 2 * x[8] + 0.1 * np.random.default_rng([2, patient]).standard_normal()

    def _append(self, path, line):
        with path.open("a") as file:
            file.write(line + "\n")


def with_journal(folder, fuse):
    """Learn from a device behind a journal."""

    class Connection(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if sql == "COMMIT":
                fuse.at("inserted")
            cursor = super().execute(sql, *parameters)
            if sql == "COMMIT":
                fuse.at("committed")
            return cursor

    sqlite3.connect = partial(sqlite3.connect, factory=Connection)
    database._SYNCHRONOUS = "OFF"
    device = Device(folder, fuse)
    inner = CallbackSource(device.ask, n_features=D, n_observed=OBSERVED, target=device.target, n_examples=PATIENTS)
    result = learn(ALGORITHM, Journal(inner, folder / "study.sqlite"))
    meter = result.meter
    return [*result.w, result.intercept], [meter.examples, meter.attributes, meter.max_per_example, meter.money]


def slowly_with_journal(folder, fuse):
    """The same with a device that takes some milliseconds for each patient."""
    ask = Device.ask

    def slow(device, patient, indices):
        time.sleep(0.003)
        return ask(device, patient, indices)

    Device.ask = slow
    return with_journal(folder, fuse)


def with_learner(folder, fuse):
    """Answer the questions of a learner that is stored after every answer, three at a time and the last one first."""
    os.fsync = lambda descriptor: fuse.at("saving")
    device, path = Device(folder, fuse), folder / "state.json"
    learner = ht.load(path) if path.exists() else Learner.of(ALGORITHM, CostModel.of(D, OBSERVED), length=ANSWERS)
    while learner.meter.examples < ANSWERS:
        patient, indices = learner.questions(3)[-1]
        values = device.ask(patient, indices)
        if values is None:
            learner.skip(patient)
        else:
            learner.tell(patient, values, device.target(patient))
        ht.save(learner, path)
        fuse.at("saved")
    state, meter = learner.final_state(), learner.meter
    return [*state.w, state.intercept], [meter.examples, meter.attributes, meter.max_per_example, meter.money]


def child(command):
    os.fsync = lambda descriptor: None  # what the system has is safe from SIGKILL, if not from a power cut
    folder = Path(command["folder"])
    numbers, counts = globals()[command["what"]](folder, Fuse(*(command["kill"] or [None, 0])))
    result = json.dumps([[float(number).hex() for number in numbers], counts])
    (folder / "result").write_text(result)
    with (folder / "results").open("a") as file:
        file.write(result + "\n")


def size(path):
    return path.stat().st_size if path.exists() else 0


def forked(command):
    """Fork a study, and return its process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child(command)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def run(command):
    """Fork studies; "outside" kills the first one from here, a while after the n-th request."""
    requests = Path(command["folder"]) / "requests"
    before = size(requests)
    pids = [forked(command) for _ in range(command["programs"])]
    if command["kill"] and command["kill"][0] == "outside":
        deadline = time.monotonic() + 60
        while size(requests) < before + 4 * command["kill"][1] and time.monotonic() < deadline:
            time.sleep(0.0005)
        os.kill(pids[0], signal.SIGKILL)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
