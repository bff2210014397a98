"""Files of format version 1, JSON with arrays in an npz file beside it: they still load, and hostile ones do no harm.

The files in ``version_1`` were written by the last hardthresh that wrote this version. Their notes hold what the objects
gave then.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import MaxIter, RelativeDecrease
from hardthresh.solvers import IHT
from hardthresh.steps import SparsePolyak
from hardthresh.storage import load_notes

OLD = Path(__file__).parent / "version_1"


@pytest.mark.parametrize("name", ["linear", "logistic_cv", "low_rank", "imputer", "graph", "limited"])
def test_estimators_of_version_1_give_what_they_gave(name):
    model, notes = ht.load(OLD / f"{name}.json"), load_notes(OLD / f"{name}.json")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        returns = getattr(model, notes["call"])(np.array(notes["at"]))
    np.testing.assert_allclose(returns, notes["returns"], rtol=1e-9)


def test_details_of_a_model_of_version_1():
    model = ht.load(OLD / "linear.json")
    assert model.feature_names_in_[model.support_].tolist() == ["g3", "g5", "g7"]
    assert model.always_include == ["g5"]
    assert "First-order test: passed" in str(model.certificate())


@pytest.mark.parametrize("name", ["accelerated", "conjugate", "iht", "probabilistic", "working_set"])
def test_states_of_version_1_are_whole(name):
    state, notes = ht.load(OLD / f"state_{name}.json"), load_notes(OLD / f"state_{name}.json")
    assert (type(state).__name__, state.iteration) == (notes["type"], notes["iteration"])
    np.testing.assert_array_equal(np.asarray(state.w), notes["w"])


def test_a_result_of_version_1_is_whole():
    result, notes = ht.load(OLD / "result.json"), load_notes(OLD / "result.json")
    assert (result.w.tolist(), result.value, result.n_iter) == (notes["w"], notes["value"], notes["n_iter"])


def test_settings_of_version_1():
    solver, constraint, rule, columns, texts = ht.load(OLD / "settings.json")
    assert solver == IHT(step=SparsePolyak(target=0.12, scale=5.0))
    assert isinstance(constraint, Sparsity)
    assert rule == RelativeDecrease(1e-6) | MaxIter(200)
    assert (columns.shape, columns.flags.f_contiguous) == ((9, 9), True)
    assert texts.tolist() == ["aaa"] * 70


def test_a_learner_of_version_1_goes_on():
    learner = ht.load(OLD / "learner.json")
    example, _ = learner.ask()
    assert (example, learner.meter.examples) == (1, 1)
