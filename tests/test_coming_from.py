"""The calls of the page "Coming from other packages", of which the doctests run only those in its examples."""

import re
import warnings
from doctest import DocTestParser
from pathlib import Path

import pytest

from levels import slow_beyond

PAGE = (Path(__file__).parent.parent / "docs" / "guide" / "coming_from.rst").read_text(encoding="utf-8")
ROWS = re.findall(r"^   \* - (.+)\n     - (.+)\n     - ``(.+)``$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """What the examples of the page define."""
    defined = {}
    for example in DocTestParser().get_examples(PAGE):
        exec(compile(example.source, "coming_from.rst", "single"), defined)
    return defined


def test_every_row_has_a_call_of_ours():
    assert len(ROWS) == PAGE.count("   * - ") - PAGE.count("   * - task")
    assert len(ROWS) > 40


@slow_beyond(8)
@pytest.mark.parametrize("call", sorted({ours for _, _, ours in ROWS}))
def test_our_calls_run(names, call):
    """Warnings that say something about these data, such as of a separable class, are no mistake of the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert eval(call, dict(names)) is not None


@pytest.mark.parametrize(
    ("with_3", "columns"),
    [
        ("ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)", {3, 7}),
        ("ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, outputs)", {3, 7}),
        ("ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(X, kinds)", {3, 7, 8}),
    ],
)
def test_the_models_of_the_page_find_its_features(names, with_3, columns):
    assert set(eval(with_3, dict(names)).support_.tolist()) == columns
