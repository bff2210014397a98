"""A stored file of every kind, written before files of the package moved, loads and gives what it gave."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same
from kinds import KINDS

import hardthresh as ht
from hardthresh.baselines.balls import InnerBases
from hardthresh.constraints import Coordinates, Edges, Groups
from hardthresh.solvers import AcceleratedIHT, ConstantMomentum, ExactMomentum, NesterovMomentum
from hardthresh.steps import ExactLineSearch, Fixed
from hardthresh.storage import load_notes

STORED = Path(__file__).parent / "stored"

every = pytest.mark.parametrize("name", KINDS)


def read(path, name):
    """A stored thing; one of torch only where there is torch."""
    if name == "perturbation":
        pytest.importorskip("torch", reason="torch is not installed")
    return ht.load(path)


def gives(thing, name):
    """The numbers that a thing gives when it is used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs that are stopped early
        return np.asarray(KINDS[name].use(thing), dtype=float).ravel()


def test_there_is_a_file_of_every_kind():
    assert {path.stem for path in STORED.iterdir()} == KINDS.keys()


@every
def test_a_stored_thing_gives_what_it_gave(name):
    path = STORED / f"{name}.json"
    thing = read(path, name)
    if KINDS[name].use is None:
        assert_same(thing, KINDS[name].make())
    else:
        np.testing.assert_allclose(gives(thing, name), load_notes(path)["gives"], rtol=1e-6, atol=1e-9)


@every
def test_stored_again_it_is_the_same(name, tmp_path):
    thing = read(STORED / f"{name}.json", name)
    ht.save(thing, tmp_path / "again.json")
    again = ht.load(tmp_path / "again.json")
    if KINDS[name].use is None:
        assert_same(thing, again)
    else:
        np.testing.assert_array_equal(gives(thing, name), gives(again, name))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("iht", Coordinates), ("edges", Edges), ("pursuit_groups", Groups), ("frank_wolfe_nuclear", InnerBases)],
)
def test_supports_of_earlier_files_are_of_the_kind_of_their_constraint(name, kind):
    """They were arrays of coordinates, edges or numbers of groups alike."""
    result = ht.load(STORED / f"{name}.json")
    assert type(result.support) is kind
    assert type(result.state.support) is kind
    assert result.support == result.constraint.project(result.w).support
    assert result.support == result.state.support


@pytest.mark.parametrize(
    ("name", "plain", "chooses", "parameter"),
    [
        ("low_rank_imputer", ht.LowRankImputer, ht.LowRankImputerCV, "rank"),
        ("graphical_model", ht.SparseGaussianGraphicalModel, ht.SparseGaussianGraphicalModelCV, "n_edges"),
    ],
)
def test_models_of_earlier_files_that_chose_by_cross_validation_load_as_their_cv_versions(
    name, plain, chooses, parameter, tmp_path
):
    given, chosen = (ht.load(STORED / f"{name}{end}.json") for end in ("", "_cv"))
    assert type(given) is plain
    assert type(chosen) is chooses
    assert (getattr(chosen, parameter), chosen.cv) == (None, 3)
    assert chosen.scores_.shape == (chosen.candidates_.size, 3)
    document = json.loads((STORED / f"{name}_cv.json").read_text())
    document["object"]["parameters"][parameter] = [1, 2]
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert getattr(ht.load(tmp_path / "x.json"), parameter) == [1, 2]


@pytest.mark.parametrize(
    ("momentum", "step", "rules"),
    [
        (None, "support", (None, ExactLineSearch())),
        ("exact", "line_search", (ExactMomentum(), ExactLineSearch("direction"))),
        ("nesterov", "support", (NesterovMomentum(), ExactLineSearch())),
        (0.25, 0.125, (ConstantMomentum(0.25), Fixed(0.125))),
    ],
)
def test_words_and_numbers_of_earlier_files_become_rules(momentum, step, rules, tmp_path):
    fields = {"variant": "paper", "momentum": momentum, "step": step, "debias": None, "restricted": True}
    ht.save(0, tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    document["object"] = {"$": "object", "class": "solver/accelerated", "version": 1, "fields": fields}
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert ht.load(tmp_path / "x.json") == AcceleratedIHT("paper", *rules)
