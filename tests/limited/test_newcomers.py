"""What people give to sources first: answers of other shapes, tables with names, names that are there twice."""

import numpy as np
import pandas as pd
import pytest

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.limited import ArraySource, CallbackSource
from hardthresh.limited.sources.callback import MOST_ABSENT

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 8))
Y = X[:, 2] - X[:, 5]


@pytest.mark.parametrize("kind", [lambda i, j: dict(zip(j, X[i, j], strict=True)), lambda i, j: set(X[i, j])])
def test_an_answer_without_order_is_refused(kind):
    with pytest.raises(InvalidInputError, match="a list of 4 numbers is needed, in the order asked"):
        CallbackSource(kind, n_features=8, n_observed=4, target=Y).draw(1).observe([0, 2, 5, 7])


def test_a_study_to_which_nobody_comes_ends():
    asked = []
    source = CallbackSource(lambda i, j: asked.append(i), n_features=8, n_observed=4, target=lambda i: 0.0)
    with pytest.raises(
        InvalidInputError, match=f"{MOST_ABSENT} examples in a row could not be had, {MOST_ABSENT - 1} the last"
    ):
        ht.limited.learn(ht.limited.AdaptiveHybrid(2), source)
    assert len(asked) == MOST_ABSENT


def test_a_data_frame_brings_its_names():
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = ht.LimitedAttributeRegression(2).fit_source(
        ArraySource(frame, Y, costs=dict.fromkeys("abcdefgh", 2.0), budget=8.0)
    )
    assert model.required_features_.tolist() == ["c", "f"]
    assert model.budget_.per_prediction == 4.0


def test_a_name_that_is_there_twice_is_refused():
    with pytest.raises(InvalidInputError, match="two attributes are called 'a'"):
        ArraySource(X, Y, 4, feature_names=list("aabcdefg"))
    with pytest.raises(InvalidInputError, match="two attributes are called 'a'"):
        ht.LimitedAttributeRegression(2, 4).start(3, feature_names=["a", "b", "a"])


def test_paid_and_dropped_examples_are_told():
    gaps = X.copy()
    gaps[:, 0] = np.nan
    with pytest.warns(UserWarning, match="600 of 600 examples were paid for and dropped"):
        model = ht.LimitedAttributeRegression(2).fit_source(ArraySource(gaps, Y, 4))
    assert not model.converged_


def test_a_source_with_one_class_is_told():
    with pytest.warns(UserWarning, match="all targets are of one class"):
        model = ht.LimitedAttributeLogisticRegression(2).fit_source(ArraySource(X, np.zeros(600), 4))
    assert not model.converged_


def test_reprs_are_short():
    learner = ht.LimitedAttributeRegression(2, 4).start(8)
    example, indices = learner.ask()
    learner.tell(example, X[0, indices], 1.0)
    result = ht.limited.learn(ht.limited.AdaptiveHybrid(2), ArraySource(X, Y, 4))
    for shown in map(repr, (learner, learner.learner, result)):
        assert len(shown) < 200
        assert "array" not in shown
