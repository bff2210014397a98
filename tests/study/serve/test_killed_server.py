"""A server that is killed again and again: instruments repeat what got no reply, and nothing is bought twice."""

import socket
import subprocess
import sys
import threading
import time

import httpx2
import numpy as np
import pytest
from fire import mistakes, terms_of, truth
from serve_helpers import TOKEN

from hardthresh.study import Study
from levels import at

SERVE = "import sys; from hardthresh.study.serve import run; run(sys.argv[1], port=int(sys.argv[2]), token=sys.argv[3])"
INSTRUMENTS, ANSWERS = 4, 12


class Instrument(threading.Thread):
    """Asks and tells until it has told enough, and repeats a request with its key until there is a reply."""

    def __init__(self, name, port, terms, seed):
        super().__init__(daemon=True)
        self.name, self.url, self.terms, self.seed = name, f"http://127.0.0.1:{port}/api", terms, seed
        self.repeated = self.sent = 0
        self.wrong = []

    def post(self, path, body):
        """Return the status and the content of the reply to a request that may have to be repeated."""
        self.sent += 1
        headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": f"{self.name} {self.sent}"}
        while True:
            try:
                reply = httpx2.post(self.url + path, json=body, headers=headers, timeout=60)
                return reply.status_code, reply.json()
            except httpx2.HTTPError:
                self.repeated += 1
                time.sleep(0.05)

    def run(self):
        told = 0
        while told < ANSWERS:
            status, found = self.post("/ask", {"who": self.name})
            if status == 409:  # the last questions of a round are with others, or the budget is used
                if found["error"] == "BudgetUsed":
                    return
                time.sleep(0.05)
                continue
            [question] = found["questions"]
            known = truth(self.terms, question["question"], self.seed)
            values = {name: known[name] for name in question["needed"]}
            body = {"who": self.name, "question": question["question"], "values": values, "confirmed": [*values]}
            status, found = self.post("/tell", body)
            if status != 200 or not found["complete"]:
                self.wrong.append((status, found))
                return
            told += 1


@pytest.mark.parametrize("seed", [*at("pairs", [1]), *at("all", [2, 3])])
def test_a_killed_server_buys_nothing_twice(tmp_path, seed):
    rng = np.random.default_rng(seed)
    terms = terms_of(rng)
    path = tmp_path / "study.db"
    Study.create(path, terms, "Ann")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    instruments = [Instrument(f"instrument {i}", port, terms, seed) for i in range(INSTRUMENTS)]
    for instrument in instruments:
        instrument.start()
    kills = 0
    while any(instrument.is_alive() for instrument in instruments):
        server = subprocess.Popen([sys.executable, "-c", SERVE, path, str(port), TOKEN], stdout=subprocess.PIPE)
        server.stdout.readline()  # it listens
        time.sleep(float(rng.uniform(0.1, 1.0)))
        server.kill()
        server.communicate()
        kills += 1
    assert kills > 1
    assert sum(instrument.repeated for instrument in instruments) > 0
    assert [instrument.wrong for instrument in instruments] == [[]] * INSTRUMENTS
    study = Study.open(path)
    study.verify()
    assert mistakes(study, terms) == []
    assert study.status().answered > 20
