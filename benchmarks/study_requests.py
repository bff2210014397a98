"""Requests a second that a served study answers on one core: ask, tell, and the pages that people look at.

    python benchmarks/study_requests.py [--examples 300]

A server in a process of its own is asked by one client over real connections on this machine. The table has, for each
kind of request, the seconds of the processor that the server took for one, the requests a second that one core answers
at this rate, and those that this client saw, which depends on what else the machine does. The file is on the disk with
the synchronisation that protects it from power cuts; its cost is in the wall-clock column.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode, urlsplit

import numpy as np

from hardthresh.study import Study, Terms

ATTRIBUTES, PANELS = 30, 6
TERMS = """
n_nonzero_coefs = 4
budget_per_example = 60
[target]
name = "target"
range = [-100, 100]
"""
SERVE = "import sys; from hardthresh.study.serve import run; run(sys.argv[1], port=0)"
TICKS = 100  # a second, of /proc/PID/stat on Linux


def terms() -> Terms:
    """Return the terms of a study with panels of five attributes."""
    panels = "".join(f"[panels.p{panel}]\nprice = {10 + panel}\n" for panel in range(PANELS))
    attributes = "".join(
        f'[attributes.a{j}]\nunit = "mmol/l"\nrange = [-10, 10]\npanel = "p{j % PANELS}"\n' for j in range(ATTRIBUTES)
    )
    return Terms.parse(TERMS + panels + attributes)


class Client:
    """A browser or an instrument with one open connection."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc)
        self._token = url.partition("token=")[2]
        self._cookie = ""
        self._send("GET", f"/?token={self._token}", "", {})
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self.page("/sign-in")))
        self._send("POST", "/sign-in", urlencode({**form, "who": "Ann"}), {"Content-Type": FORM})

    def _send(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, str]:
        self._connection.request(method, path, body, {**headers, "Cookie": self._cookie})
        answer = self._connection.getresponse()
        self._cookie = (answer.getheader("Set-Cookie") or self._cookie).partition(";")[0]
        return answer.status, answer.read().decode()

    def page(self, path: str) -> str:
        status, text = self._send("GET", path, "", {})
        assert status == 200, text
        return text

    def api(self, path: str, body: dict | None = None) -> dict:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        method, content = ("GET", "") if body is None else ("POST", json.dumps(body))
        status, text = self._send(method, f"/api/{path}", content, headers)
        assert status == 200, text
        return json.loads(text)


FORM = "application/x-www-form-urlencoded"


def processor_seconds(process: int) -> float:
    """Return what a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(name: str, server: int, count: int, request) -> None:
    """Print the rates of some requests of a kind."""
    begun, used = time.perf_counter(), processor_seconds(server)
    for _ in range(count):
        request()
    wall, used = time.perf_counter() - begun, processor_seconds(server) - used
    print(f"{name:34} {count:6} {1e3 * used / count:12.2f} {count / max(used, 1 / TICKS):14.0f} {count / wall:12.0f}")


def main() -> None:
    """Measure all kinds of requests on a study of so many examples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=300)
    examples = parser.parse_args().examples
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        study = Study.create(Path(folder) / "study.db", terms(), who="Ann")
        with subprocess.Popen([sys.executable, "-c", SERVE, study.path], stdout=subprocess.PIPE, text=True) as server:
            try:
                client = Client(server.stdout.readline().strip())
                x = rng.standard_normal(ATTRIBUTES)

                def ask_and_tell() -> None:
                    [question] = client.api("ask", {"who": "Ann"})["questions"]
                    x[:] = rng.standard_normal(ATTRIBUTES)
                    values = {name: x[int(name[1:])] for name in question["attributes"]}
                    values["target"] = float(3 * x[2] - 2 * x[9] + 0.5 * rng.standard_normal())
                    client.api("tell", {"who": "Ann", "question": question["question"], "values": values})

                print(f"{'':34} {'count':>6} {'CPU ms each':>12} {'a second, CPU':>14} {'a second':>12}")
                measure("ask and tell (two requests)", server.pid, examples, ask_and_tell)
                measure("GET /api/questions", server.pid, 200, lambda: client.api("questions"))
                measure("GET /api/status", server.pid, 50, lambda: client.api("status"))
                measure("GET /api/model", server.pid, 50, lambda: client.api("model"))
                measure("page: what to measure next", server.pid, 100, lambda: client.page("/"))
                client.api("ask", {"who": "Ann"})
                measure("page: the form of a question", server.pid, 100, lambda: client.page(f"/question/{examples}"))
                measure("page: the state of the study", server.pid, 50, lambda: client.page("/study"))
                measure("page: answers", server.pid, 50, lambda: client.page("/answers"))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
