"""What a run found, in a form that tables, figures and a file for the documentation share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .entrants import Entrant
from .instance import Instance
from .store import Row

Measures = dict[str, dict[str, list[float]]]  # by entrant and measure: a number for each repetition


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results for one instance.

    Attributes
    ----------
    title, half, loss : str
        Of the instance.
    real : bool
        Whether it is a real set.
    measures : dict
        By entrant and measure, a number for each repetition; the repetitions are those that all entrants have.
    """

    title: str
    half: str
    loss: str
    real: bool
    measures: Measures

    @property
    def criterion(self) -> str:
        """The measure that counts."""
        return "loss" if self.real else "risk"

    @property
    def repetitions(self) -> int:
        """The number of repetitions."""
        return len(next(iter(self.measures.values()))["features"])

    def values(self, entrant: str, measure: str | None = None) -> np.ndarray:
        """Return a measure of an entrant in each repetition, without a name the one that counts."""
        return np.asarray(self.measures[entrant][measure or self.criterion])

    def mean(self, entrant: str, measure: str | None = None) -> float:
        """Return the mean of a measure over repetitions."""
        return float(self.values(entrant, measure).mean())

    def shortened(self) -> dict[str, Any]:
        """Return the attributes by name, with the mean alone of measures that are never compared by repetition."""
        whole = (self.criterion, "features", "excess", "excess_error")
        measures = {
            entrant: {
                measure: [float(f"{value:.4g}") for value in (values if measure in whole else [np.mean(values)])]
                for measure, values in found.items()
            }
            for entrant, found in self.measures.items()
        }
        return {"title": self.title, "half": self.half, "loss": self.loss, "real": self.real, "measures": measures}


@dataclass(frozen=True, slots=True)
class Results:
    """Outcomes, and which entrants are ours and which are sparse."""

    ours: list[str]
    sparse: list[str]
    outcomes: list[Outcome]

    def of(self, **wanted: Any) -> Results:
        """Return the outcomes with some attributes, such as ``half="choosing"``."""
        kept = [each for each in self.outcomes if all(getattr(each, name) == value for name, value in wanted.items())]
        return Results(self.ours, self.sparse, kept)

    @property
    def entrants(self) -> list[str]:
        """All entrants that have a result, ours first."""
        return list(dict.fromkeys(name for outcome in self.outcomes for name in outcome.measures))

    def write(self, file: Path, machine: dict[str, Any]) -> None:
        """Write what tables and figures need to a JSON file: four digits, and of some measures only the mean."""
        head = {"machine": machine, "ours": self.ours, "sparse": self.sparse}
        lines = ",\n".join(json.dumps(outcome.shortened()) for outcome in self.outcomes)
        file.write_text(json.dumps(head)[:-1] + f', "outcomes": [\n{lines}\n]}}\n', encoding="utf-8")


def gather(rows: Iterable[Row], instances: list[Instance], entrants: list[Entrant], repetitions: range) -> Results:
    """Return the results of the present editions.

    An outcome has the repetitions that all entrants with any result for the instance have finished, with the data of
    the last row. An entrant that failed once is left out of that instance.
    """
    editions = {entrant.label: entrant.edition for entrant in entrants}
    there = [row for row in rows if row["repetition"] in repetitions]
    data = {(row["instance"], row["repetition"]): row["data"] for row in there}
    found: dict[str, dict[str, dict[int, Row]]] = {}
    for row in there:
        is_present = editions.get(row["entrant"]) == row["edition"]
        if is_present and data[row["instance"], row["repetition"]] == row["data"]:
            found.setdefault(row["instance"], {}).setdefault(row["entrant"], {})[row["repetition"]] = row
    outcomes = []
    for instance in instances:
        by_entrant = {
            label: found[instance.title][label]
            for label in editions
            if label in found.get(instance.title, {})
            and not any("error" in row for row in found[instance.title][label].values())
        }
        if not by_entrant:
            continue
        common = sorted(set.intersection(*(set(rows) for rows in by_entrant.values())))
        if common:
            measures = {label: _by_measure([rows[r] for r in common]) for label, rows in by_entrant.items()}
            outcomes.append(Outcome(instance.title, instance.half, instance.loss, instance.real, measures))
    names = [entrant.label for entrant in entrants if entrant.ours]
    return Results(names, [entrant.label for entrant in entrants if entrant.sparse], outcomes)


_NOT_MEASURES = ("instance", "repetition", "entrant", "edition", "data")


def _by_measure(rows: list[Row]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0] if name not in _NOT_MEASURES}
