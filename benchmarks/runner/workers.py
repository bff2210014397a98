"""Processes that solvers run in: one for this interpreter, and one for every environment of peers."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import files


class Worker:
    """A process that can be asked; it is killed when an answer takes too long, and the next question starts another."""

    def __init__(self, python: str | Path) -> None:
        self._command = [str(python), str(files.ROOT / "run.py"), "--serve"]
        self._process: subprocess.Popen[str] | None = None
        self._folder: str | None = None

    def ask(self, do: str, limit: float | None = None, **request: Any) -> dict[str, Any]:
        """Return the answer; a failure, the end of the process and the limit are answers too."""
        if do == "read":
            self._folder = request["folder"]
        if self._process is None:
            self._start()
            if do != "read" and self._folder is not None:
                self._exchange(None, {"do": "read", "folder": self._folder})
        return self._exchange(limit, {"do": do, **request})

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def _exchange(self, limit: float | None, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], limit)[0]:
            self.close()
            return {"failed": f"not finished in {limit:.0f} s"}
        line = process.stdout.readline()
        if not line:
            self.close()
            return {"failed": "the process ended"}
        return json.loads(line)


@dataclass(frozen=True, slots=True)
class Entrant:
    """A solver with its parameters, where it runs, and the variant of the problem that it gets."""

    label: str
    stem: str
    version: str
    parameters: dict[str, Any]
    worker: Worker
    variant: dict[str, Any] = field(default_factory=dict)

    def run(self, limit: float) -> dict[str, Any]:
        """Return what it answers."""
        return self.worker.ask("run", limit, stem=self.stem, parameters=self.parameters, variant=self.variant)


class Crew:
    """Everybody who is here, and why the others are not."""

    def __init__(self) -> None:
        pythons = [Path(sys.executable), *sorted(files.ENVIRONMENTS.glob("*/bin/python"))]
        self.workers: list[Worker] = []
        self.entrants: dict[str, Entrant] = {}
        missing = dict.fromkeys(files.solvers(), "")
        for python in pythons:
            worker = Worker(python)
            cards = worker.ask("offer", stems=list(missing))
            if "failed" in cards or all("failed" in card for card in cards.values()):
                worker.close()
                cards = {} if "failed" in cards else cards
            else:
                self.workers.append(worker)
            for stem, card in cards.items():
                if "failed" in card:
                    missing[stem] = missing[stem] or card["failed"]
                    continue
                del missing[stem]
                for parameters in card["grid"]:
                    label = _label(card, parameters)
                    self.entrants[label] = Entrant(label, stem, card["version"], parameters, worker)
        self.entrants = {e.label: e for stem in files.solvers() for e in self.entrants.values() if e.stem == stem}
        self.missing = missing

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.close()


def _label(card: dict[str, Any], parameters: dict[str, Any]) -> str:
    """Return the name, and the parameters that are not the first of their list."""
    first = card["grid"][0]
    return " ".join([card["name"], *(str(value) for key, value in parameters.items() if value != first[key])])
