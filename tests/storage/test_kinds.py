"""A stored file of every kind, written before files of the package moved, loads and gives what it gave."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same
from kinds import AMOUNTS, CLASSES, KINDS, NUMBERS, X

import hardthresh as ht
from hardthresh.baselines.balls import InnerBases
from hardthresh.constraints import Coordinates, Edges, Groups
from hardthresh.solvers import AcceleratedIHT, ConstantMomentum, ExactMomentum, NesterovMomentum
from hardthresh.steps import ExactLineSearch, Fixed
from hardthresh.storage import StorageError, load_notes
from levels import at_most, slow_beyond

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


@slow_beyond(30)
@every
def test_a_stored_thing_gives_what_it_gave(name):
    path = STORED / f"{name}.json"
    thing = read(path, name)
    if KINDS[name].use is None:
        assert_same(thing, KINDS[name].make())
    else:
        np.testing.assert_allclose(gives(thing, name), load_notes(path)["gives"], rtol=1e-6, atol=1e-9)


@slow_beyond(6)
@at_most(15)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ridge"), [("linear_regression_cv", 0.0), ("logistic_regression_cv", 0.01), ("gamma_regression_cv", 0.0)]
)
@pytest.mark.parametrize("given", [None, 0.5])
def test_models_that_earlier_versions_cross_validated_with_one_ridge_are_single_models(name, ridge, given, tmp_path):
    document = json.loads((STORED / f"{name}.json").read_text())
    document["object"]["parameters"] |= {"alpha": given, "n_nonzero_coefs": None}
    (tmp_path / "x.json").write_text(json.dumps(document))
    model = ht.load(tmp_path / "x.json")
    assert model.alphas == model.alpha_ == (ridge if given is None else given)
    assert (model.n_nonzero_coefs, model.averaging, model.averaging_) == ("auto", "none", "none")
    np.testing.assert_array_equal(model.models_[0].coef, np.ravel(model.coef_)[model.support_])
    np.testing.assert_array_equal(model.best_model_.support, model.support_)
    assert (model.best_model_.n_nonzero, model.best_model_.alpha) == (model.best_n_nonzero_coefs_, model.alpha_)
    np.testing.assert_array_equal(model.grid_scores_[:, 0], model.scores_)
    assert np.all(np.isnan(model.null_scores_))
    assert model.certificate().subject == ""
    assert model.found_
    y = {"linear": NUMBERS, "logistic": CLASSES, "gamma": AMOUNTS}[name.partition("_")[0]]
    certificate = model.certificate(X, y)
    if given is None:
        np.testing.assert_allclose(certificate.value, model.objective_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data of the test are few
        assert model.fit(X, y).averaging_ == "none"


def test_an_unfitted_model_of_an_earlier_version_loads(tmp_path):
    document = json.loads((STORED / "linear_regression_cv.json").read_text())
    document["object"]["fitted"] = {}
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert ht.load(tmp_path / "x.json").get_params()["alphas"] == 0.0


def test_a_model_that_compared_no_features_keeps_their_scores(tmp_path):
    document = json.loads((STORED / "linear_regression_cv.json").read_text())
    document["object"]["fitted"]["candidates_"]["data"] = [0, 2, 3]
    (tmp_path / "x.json").write_text(json.dumps(document))
    model = ht.load(tmp_path / "x.json")
    np.testing.assert_array_equal(model.null_scores_, model.scores_[0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("support", [1, 3, 5, 12]),
        ("support", [-1, 3, 5, 11]),
        ("support", [1, 5, 3, 11]),
        ("support", [1, 3, 5]),
        ("coef", [1.0, 2.0]),
        ("weight", {"$": "float", "value": "nan"}),
    ],
)
def test_an_average_of_damaged_models_is_refused(field, value, tmp_path):
    document = json.loads((STORED / "logistic_regression_cv_average.json").read_text())
    part = document["object"]["fitted"]["models_"]["items"][0]["fields"]
    assert part["support"]["data"] == [1, 3, 5, 11]
    if isinstance(value, list):
        part[field] |= {"shape": [len(value)], "data": value}
    else:
        part[field] = value
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match="not a sound SparseLogisticRegressionCV"):
        ht.load(tmp_path / "x.json")


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
