"""A study of simulated patients, measured at the same time on the pages, in a browser, and through the API.

    python benchmarks/study_patients.py [--patients 300] [--folder FOLDER]

One person types on the pages in headless Chromium (``study_patients.mjs``, which needs node and what ``make
check-docs`` installs), one instrument uses the API and repeats every tenth request as after a lost reply. Afterwards
the file is verified, and its coefficients are compared, bit for bit, with those of a learner that is told the same
answers in the same order without a study. It prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np

from hardthresh.datasets import make_clinic
from hardthresh.limited import Learner
from hardthresh.study import Study, Terms

SERVE = "import sys; from hardthresh.study.serve import run; run(sys.argv[1], port=0)"
ROOT = Path(__file__).parents[1]


def terms_of(clinic) -> Terms:
    """Return the terms of a study of a simulated clinic: 51 attributes in panels, 100 euros for a patient."""
    lines = ["n_nonzero_coefs = 7", "budget_per_example = 100.0", "total_budget = 50000.0", 'currency = "EUR"']
    lines += ["[target]", 'name = "stay"', 'unit = "days"', "range = [-40, 80]"]
    lines += [f"[panels.{json.dumps(panel)}]\nprice = {price}" for panel, price in clinic.prices.items()]
    for name, panel in zip(clinic.feature_names, clinic.panels, strict=True):
        lines.append(f"[attributes.{json.dumps(str(name))}]\npanel = {json.dumps(panel)}")
    return Terms.parse("\n".join(lines))


def use_api(url: str, patients: list[dict[str, float]], count: int) -> int:
    """Answer `count` questions through the API; return how many requests were made twice."""
    address, token = urlsplit(url), url.partition("token=")[2]
    connection = HTTPConnection(address.netloc)
    repeated = sent = 0

    def post(path: str, body: dict[str, object]) -> dict[str, object]:
        nonlocal repeated, sent
        sent += 1
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"k{sent}",
        }
        replies = []
        for _ in range(2 if sent % 10 == 0 else 1):
            connection.request("POST", f"/api{path}", json.dumps(body), headers)
            reply = connection.getresponse()
            replies.append((reply.status, json.loads(reply.read())))
        repeated += len(replies) - 1
        assert all(reply == replies[0] for reply in replies), replies
        return replies[0]

    answered = 0
    while answered < count:
        status, asked = post("/ask", {"who": "analyser", "count": 1})
        if status == 409:  # the last questions of a batch are with the other one
            time.sleep(0.05)
            continue
        assert status == 200, asked
        [question] = asked["questions"]
        values = {name: patients[question["question"]][name] for name in question["needed"]}
        status, told = post("/tell", {"who": "analyser", "question": question["question"], "values": values})
        assert status == 200, told
        answered += 1
    return repeated


def alone(study: Study) -> list[str]:
    """Return the coefficients of a learner that is told the same answers in the same order, in hexadecimal digits."""
    terms = study.terms
    learner = Learner.of(terms.algorithm, terms.cost_model, length=terms.examples)
    for event in study.events():
        if event.action == "told":
            question = study.question(event.question)
            columns = terms.columns_at(attribute.name for attribute in question.attributes)
            learner.questions(1)
            row = [question.values[terms.columns[j]] for j in columns]
            learner.tell(event.question, row, question.values[terms.target.name])
    state = learner.final_state()
    return [float(w).hex() for w in (*state.w, state.intercept)]


def main() -> None:
    """Run the study, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    clinic = make_clinic(4 * given.patients, seed=3)
    rows = [dict(zip(map(str, clinic.feature_names), x.tolist(), strict=True)) for x in clinic.X]
    patients = [row | {"stay": float(stay)} for row, stay in zip(rows, clinic.y, strict=True)]
    with TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        study = Study.create(folder / "study.db", terms_of(clinic), "Ann")
        (folder / "patients.json").write_text(json.dumps(patients), encoding="utf-8")
        server = subprocess.Popen([sys.executable, "-c", SERVE, str(study.path)], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if "token=" in word)
        began, half = time.monotonic(), given.patients // 2
        script = [str(ROOT / "benchmarks" / "study_patients.mjs"), url, str(folder / "patients.json"), str(half)]
        page = subprocess.Popen(["node", *script], stdout=subprocess.PIPE, text=True)
        repeated = use_api(url, patients, given.patients - half)
        output, _ = page.communicate()
        seconds = time.monotonic() - began
        server.terminate()
        server.wait()
        study = Study.open(study.path)
        study.verify()
        model, status = study.model(), study.status()
        told = [event.who for event in study.events() if event.action == "told"]
        figures = {
            "patients": status.answered,
            "on the pages": told.count("Ann"),
            "through the API": told.count("analyser"),
            "requests made twice": repeated,
            "errors of the page": output.strip(),
            "spent": status.spent,
            "most of one patient": float(np.max(study.learned().money)),
            "same coefficients": [float(w).hex() for w in (*model.coef_, model.intercept_)] == alone(study),
            "chosen": list(status.chosen),
            "seconds": round(seconds),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
