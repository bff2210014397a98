"""What users meet: results, messages, and the methods of other packages."""

import json

import numpy as np
import pandas as pd
import pytest

from comparison.methods import Constant, Sparse, X, Y, compare
from hardthresh.comparison import ENTRANTS
from hardthresh.core.errors import InvalidInputError
from levels import at


def test_it_is_text_html_json_and_a_frame():
    found = compare({"hardthresh": Sparse((1, 4)), "ridge": None})
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["entrants"][0]["features"] == [["x1", "x4"]] * 3
    assert data["verdict"]["recommended"] == found.verdict.recommended
    assert len(data["null_losses"]) == 3
    frame = found.to_frame()
    assert frame["method"].tolist() == [row[0] for row in found.rows()]
    assert frame["relative_loss"].is_monotonic_increasing
    assert str(found) == repr(found)
    assert "<table>" in found._repr_html_()
    lines = str(found).splitlines()
    assert lines[0] == "2 methods compared on 60 rows and 6 features: numbers"
    assert ("scikit-learn", found["ridge"].edition) in found.versions()


def test_equal_seeds_give_equal_numbers():
    first, second, other = (compare(["hardthresh"], random_state=seed)["hardthresh"] for seed in (3, 3, 4))
    assert first.losses == second.losses != other.losses


BAD = {
    "unknown": (lambda: compare(["laso"]), "unknown entrant 'laso'; known: hardthresh, lasso"),
    "no list": (lambda: compare(Constant()), "a mapping from names to estimators"),
    "estimators without names": (lambda: compare([Constant()]), "a mapping from names to estimators"),
    "one text": (lambda: compare("lasso"), "entrants must be a list of names, such as ['lasso']"),
    "twice": (lambda: compare(["lasso", "lasso"]), "'lasso' is given twice"),
    "none": (lambda: compare([]), "entrants is empty"),
    "no estimator": (lambda: compare({"a": 3}), "'a' must be an estimator of scikit-learn, got 3"),
    "a class": (lambda: compare({"a": Constant}), "the class Constant"),
    "rows": (lambda: compare(["lasso"], y=Y[:50]), "X has 60 rows and y has 50"),
    "loss": (lambda: compare(["lasso"], loss="huber"), "huber"),
    "folds": (lambda: compare(["lasso"], folds=1), "folds"),
    "many folds": (lambda: compare(["lasso"], folds=31), "60 rows, too few for 31 outer folds"),
    "rare class": (lambda: compare(["lasso"], y=np.arange(60) < 2), "the smallest class has 2 rows"),
    "rare class in inner folds": (
        lambda: compare(["lasso"], y=np.arange(60) < 3, folds=2),
        "too few for inner folds within 2 outer ones; use 3 outer folds",
    ),
    "missing label": (lambda: compare(["lasso"], y=np.where(Y > 0, "a", None)), "missing labels, the first in row"),
    "not a number as a label": (
        lambda: compare(["lasso"], y=np.where(np.arange(60) == 3, np.nan, Y > 0), loss="logistic"),
        "y is nan in row 3",
    ),
    "no loss without features": (
        lambda: compare({"a": Constant()}, y=np.r_[np.zeros(28), -1.0, 1.0], X=X[:30], folds=15),
        "use fewer folds",
    ),
    "names of columns": (lambda: compare(["lasso"], feature_names=["a"]), "feature_names has 1 name, and X has 6"),
    "weights as text": (lambda: compare(["lasso"], sample_weight=["a"] * 60), "sample_weight must have numbers"),
    "one value": (lambda: compare(["lasso"], y=np.ones(60)), "only one value"),
    "infinite": (lambda: compare(["lasso"], y=np.where(Y > 1, np.inf, Y)), "finite numbers"),
    "negative counts": (lambda: compare(["ridge"], loss="poisson"), "numbers >= 0, but y is -"),
    "amounts as classes": (lambda: compare(["lasso"], loss="logistic"), "y holds amounts"),
    "two targets": (lambda: compare(["lasso"], y=X), "compare takes one target"),
    "offset of classes": (lambda: compare(["lasso"], y=Y > 0, offset=Y), "no other package takes it"),
    "text": (lambda: compare(["lasso"], X=pd.DataFrame({"a": ["b"] * 60})), "name it in categorical_features"),
    "weights": (lambda: compare(["lasso"], sample_weight=-np.ones(60)), "must not be negative"),
    "limit": (lambda: compare(["lasso"], time_limit=0), "time_limit"),
    "nobody": (lambda: compare(["celer"], y=Y > 0), "no entrant can take part: celer:"),
    "who": (lambda: compare({"a": Constant()})["b"], "no entrant 'b' took part; there are a"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_to_do(name):
    call, message = BAD[name]
    with pytest.raises(InvalidInputError) as refused:
        call()
    assert message in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "y", "loss"),
    [
        (["lasso", "elastic-net", "omp", "ridge", "forest"], Y, "squared"),
        (["lasso", "ridge", "forest"], Y > 0, "logistic"),
        (["ridge"], np.digitize(Y, [-1, 1]), "logistic"),
        (["ridge", "forest"], np.exp(0.5 * Y), "gamma"),
        (["ridge", "forest"], np.round(np.exp(0.5 * Y)), "poisson"),
    ],
)
def test_methods_of_every_supported_scikit_learn_predict(names, y, loss):
    """Names of its parameters have changed from release to release."""
    found = compare(names, y=y, loss=loss, inner_folds=2)
    for entry in found.entries:
        assert entry.failures == ()
        assert entry.relative_loss < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["abess", "celer", *at("pairs", ["skglm"])])
def test_peers_that_are_installed_find_the_features(name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    assert name in ENTRANTS
    found = compare([name])[name]
    assert found.failures == ()
    assert found.relative_loss < 0.3
    assert {1, 4} <= {*found.frequencies}
