"""What the tests of served studies share."""

import re
import time

from starlette.testclient import TestClient

from hardthresh.study import Study
from hardthresh.study.serve.access import Access
from hardthresh.study.serve.app import application

TOKEN = "a-token-of-the-tests-0123456789"
ADDRESS = "http://localhost:8123"
TERMS = """
title = "Days in hospital"
n_nonzero_coefs = 1
budget_per_example = 27.0
total_budget = 270.0
currency = "EUR"
[target]
name = "stay"
unit = "days"
range = [0, 60]
possible = [0, 3000]
[panels.blood]
price = 20.0
[attributes.age]
kind = "integer"
unit = "years"
range = [18, 100]
possible = [0, 120]
help = "in <b>whole</b> years & no months"
[attributes.creatinine]
unit = "umol/l"
units = { "mg/dl" = 88.42 }
range = [30, 300]
possible = [1, 5000]
panel = "blood"
[attributes.smoker]
kind = "yes/no"
[attributes.ward]
kind = "category"
levels = ["medical", "surgical", "intensive"]
price = 2.0
"""
ANSWER = {"age": 61, "creatinine": "1.1 mg/dl", "smoker": True, "ward": "surgical", "stay": 6.5}


def served_by(thread, clock=time.monotonic):
    """Return what makes clients of the application of a study, without a network."""
    app = application(thread, Access(TOKEN, clock), {"localhost"})
    return lambda: TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


def signed_in(client, who="Ann"):
    """Return a client that somebody has signed in with."""
    form = hidden(client.get(f"/?token={TOKEN}").text)
    assert client.post("/sign-in", data={**form, "who": who}).url.path == "/"
    return client


def hidden(page):
    """The hidden fields of the first form of a page that is not that to sign out."""
    body = page[page.index("<main") :]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', body[: body.find("</form>")]))


def content(path):
    """Everything that the file of a study says."""
    study = Study.open(path)
    return [(event.who, event.action, event.question, event.body) for event in study.events()]
