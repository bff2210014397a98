"""A small study that is served, without a network."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest
from serve_helpers import TERMS, TOKEN, hidden, served_by, signed_in

from hardthresh.study import Study, Terms
from hardthresh.study.serve.study_thread import StudyThread


@pytest.fixture
def path(tmp_path):
    """The file of a new study."""
    Study.create(tmp_path / "study.db", Terms.parse(TERMS), who="Ann")
    return tmp_path / "study.db"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """The settings of TLS with a certificate of this machine, which nobody else trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    found = {name: str(tmp_path_factory.mktemp("tls") / f"{name}.pem") for name in ("certificate", "key")}
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", found["key"], "-out", found["certificate"]]
    subprocess.run([*make, *names, *files], check=True, capture_output=True)
    return found


@pytest.fixture
def served(path):
    """The study with a way to reach it: `client` for anybody, and the clock of its limits."""
    clock = SimpleNamespace(now=0.0)
    with StudyThread(path) as thread:
        yield SimpleNamespace(path=path, clock=clock, client=served_by(thread, lambda: clock.now))


@pytest.fixture
def post(served):
    """Posts to the API with the token; returns the status and the answer."""
    client = served.client()

    def post(path, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = client.post(f"/api/{path}", json=body or {}, headers={"Authorization": f"Bearer {TOKEN}", **named})
        return answer.status_code, answer.json()

    return post


@pytest.fixture
def person(served):
    """Somebody at the page, who has signed in."""
    client = signed_in(served.client())

    def submit(path, fields=None, page="/"):
        """Send the first form of a page to a path, with these fields."""
        return client.post(path, data={**hidden(client.get(page).text), **(fields or {})})

    return SimpleNamespace(client=client, get=client.get, post=client.post, submit=submit)
