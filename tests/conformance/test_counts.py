"""A green run must mean that the combinations ran: how many there are, from the collection of this run."""

from types import SimpleNamespace

import pytest
from cases import (
    ROOMS,
    combinations_of,
    each_class,
    examples,
    pairs_of_examples,
    refuse_skip,
    triples_with_classes,
)
from toys import TOYS

from levels import LEVEL, LEVELS, covering

LEAST = {
    "test_losses.py": (45, 45, 45),
    "test_constraints.py": (1170, 1230, 1230),
    "test_steps.py": (165, 2250, 2300),
    "test_solvers.py": (465, 8300, 8500),
    "test_stationarity.py": (36, 63, 63),
    "test_limited.py": (100, 460, 460),
    "test_toys.py": (9, 21, 21),
}
"""Lower bounds of the tests in each suite, by level. Raise them when a suite grows, never lower them for a green run
(they fell four times: when pairs took the place of all triples, when one test of a trajectory took that of four, when
every loss became an example of a linear model, so that classes of objectives took the place of examples, and when the
level ``fast`` got each value of each parameter in the place of each pair)."""

LEAST_EXAMPLES = {"loss": 3, "constraint": 39, "step": 9, "solver": 16, "objective": 21, "algorithm": 8}
"""Registered ones; the toys come on top."""


@pytest.mark.parametrize("suite", LEAST)
def test_the_combinations_are_as_many_as_they_should_be(collected, suite, record_property):
    if suite not in collected:
        pytest.skip(f"{suite} is not part of this run")
    record_property("combinations", collected[suite])
    assert collected[suite] >= LEAST[suite][LEVELS.index(LEVEL)]


@pytest.mark.parametrize("kind", ROOMS)
def test_every_kind_has_its_examples(kind):
    toys = sum(len(found) for found in TOYS.get(kind, {}).values())
    assert len(examples(kind)) - toys >= LEAST_EXAMPLES[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["step", "solver"])
def test_every_compatible_pair_is_covered(kind):
    """At no level, and every example of every kind takes part where all pairs do."""
    everything = list(combinations_of(examples(kind)))
    for meetings in (each_class, pairs_of_examples, triples_with_classes):
        kept = covering(everything, meetings)
        assert len(kept) < len(everything)
        assert set().union(*map(meetings, kept)) == set().union(*map(meetings, everything))
    for place, room in enumerate((kind, "objective", "constraint")):
        assert {triple[place].id for triple in kept} == {example.id for example in examples(room)}


@pytest.mark.parametrize(
    ("reason", "outcome"), [("no time today", "failed"), ("torch is not installed, which it needs", "skipped")]
)
def test_a_skip_is_a_failure_unless_a_library_is_missing(reason, outcome):
    report = SimpleNamespace(outcome="skipped", nodeid="test_hidden", longrepr=None)
    refuse_skip(report, reason)
    assert report.outcome == outcome
    assert (reason in str(report.longrepr)) == (outcome == "failed")
