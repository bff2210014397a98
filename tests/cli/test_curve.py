"""The chart of the scores over k in a terminal: nothing is cut off, and the text explains what is drawn."""

from types import SimpleNamespace

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.cli.display import _advice, curve
from hardthresh.estimators.choice_facts import CrossValidation, cross_validation
from hardthresh.estimators.facts import read


def chart_of(null, k, means):
    """The cross-validation of some numbers of features with standard errors of 0.01."""
    means = np.array(means)
    return CrossValidation(
        measure="mean squared hinge loss",
        lower_is_better=True,
        k=np.array(k),
        folds=means[:, None] + np.array([-0.01, 0.0, 0.01]),
        mean=means,
        error=np.full(len(k), 0.01),
        chosen=len(k) - 1,
        best=len(k) - 1,
        sparsest=0,
        unit="feature",
        null=null,
        null_error=0.01,
        found=True,
        p_value=None,
        extended=False,
        ridge=None,
        ridges=(),
        models=(SimpleNamespace(k=1, ridge=0.1, weight=0.5),) * 2,
        held_out=(),
        calibrations=(),
    )


@pytest.mark.parametrize("width", [64, 80, 100])
def test_no_line_of_the_chart_is_longer_than_the_terminal_is_wide(width):
    lines = [line.plain for line in curve(chart_of(0.7, [1, 2, 3], [0.6, 0.55, 0.5]), width)]
    assert max(map(len, lines)) <= width
    assert lines[-1].endswith(" best single model")
    text = " ".join(" ".join(lines).split())
    assert "held-out mean squared hinge loss ± standard error (lower is better)" in text


@pytest.mark.parametrize(
    ("k", "means", "drawn"), [([3], [0.5], True), ([1, 3], [0.52, 0.5], False), ([1, 3], [0.65, 0.5], True)]
)
def test_the_text_about_the_score_without_features_is_of_what_is_drawn(k, means, drawn):
    """It is drawn beside a single number however far it is, and beside several unless it would dwarf them."""
    cv = chart_of(0.7, k, means)
    none, *_, last = [line.plain for line in list(curve(cv, 80))[1:]]
    assert ("│" in last) == drawn
    assert ("▶" in none) == (not drawn)
    text = _advice(SimpleNamespace(features=(), n_features=5, cross_validation=cv), cv)
    assert ("The line │ is the score without features." in text) == drawn
    assert ("The score without features is beyond the chart (▶)." in text) == (not drawn)


def test_the_text_says_why_the_table_and_the_chart_differ():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X[:, 1] + rng.standard_normal(60)
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=range(3), cv=3).fit(X, y)
    table = {score.key: score.without for score in cross_validation(model).held_out}["mean_squared_error"]
    assert table < cross_validation(model).null  # the mean of all rows is better than those of the folds
    text = _advice(read(model), cross_validation(model))
    assert "The chart has means over the folds; the table above has the scores of all held-out rows together." in text
