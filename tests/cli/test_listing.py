"""``hardthresh list``."""

from importlib import import_module
from typing import get_args

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.cli.listing import KINDS
from hardthresh.core.registry import Kind, lookup, registered

X = np.random.default_rng(0).standard_normal((40, 4))
USES = {
    "loss": lambda word: lookup("loss", word)(),
    "solver": lambda word: ht.SparseLinearRegression(n_nonzero_coefs=1, solver=word).fit(X, X[:, 0]),
    "constraint": lambda word: getattr(ht.constraints, word),
    "step": lambda word: getattr(ht.steps, word),
    "algorithm": lambda word: getattr(ht.limited, word),
    "estimator": lambda word: getattr(ht, word),
    "selector": lambda word: getattr(ht, word),
}


def ours(kind):
    """The registered classes of the rooms that are listed; other tests may have imported baselines."""
    public = {name for room in KINDS[kind].rooms for name in import_module(f"hardthresh.{room}").__all__}
    return [entry.cls.__name__ for entry in registered(kind).values() if entry.cls.__name__ in public]


@pytest.fixture
def sections(done):
    """The lines below each title that begin with something to use."""
    found: dict[str, list[str]] = {}
    titles = {kind.title: name for name, kind in KINDS.items()}
    for line in done("list").splitlines():
        if line and not line.startswith(" "):
            listed = found.setdefault(titles[line.partition(":")[0]], [])
        elif line.startswith("  ") and line[2:3].strip():
            listed.append(line)
    return found


def test_every_kind_but_objectives_is_listed(sections):
    assert {*get_args(Kind)} - {*KINDS} == {"objective"}
    assert list(sections) == list(KINDS)


@pytest.mark.parametrize("kind", USES)
def test_listed_names_can_be_used_as_printed(sections, kind):
    assert len(sections[kind]) == len(ours(kind))
    for line in sections[kind]:
        word = line.split()[0]
        if "=..." in word:
            assert getattr(ht.solvers, word.partition("(")[0])
        else:
            USES[kind](word)


def test_everything_registered_is_listed(done):
    text = done("list")
    for kind in set(KINDS) - {"loss"}:
        for name in ours(kind):
            assert name in text


def test_it_is_read_in_a_pipe_of_eighty_columns(done, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = done("list").splitlines()
    assert len(lines) < 200
    assert max(map(len, lines)) <= 80
    assert not any("…" in line or "`" in line or ":math:" in line for line in lines)
