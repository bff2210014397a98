"""The fits of a path as a sequence."""

import sys
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, RowSparsity, Sparsity
from hardthresh.core import CapabilityError, InvalidInputError, MissingDependencyError, Result
from hardthresh.losses import Huber
from hardthresh.objectives import LinearModel, MultiOutputModel
from hardthresh.selection import Path, aic, bic, ebic, gic, path


def model(loss="squared"):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((80, 12)), np.ones(80)])
    return LinearModel(X, X[:, 2] - X[:, 5] + 0.5 + 0.5 * rng.standard_normal(80), loss)


@pytest.fixture
def fits():
    return Path(path(model(), lambda k: Sparsity(k, free=(12,)), range(6)))


def test_it_is_a_sequence_of_results(fits):
    assert len(fits) == 6
    assert all(isinstance(one, Result) for one in fits)
    assert fits[2] is fits.results[2] is list(fits)[2]
    assert isinstance(fits[1:3], Path)
    assert_array_equal(fits[1:3].sizes, [1, 2])
    assert next(reversed(fits)) is fits[-1]
    assert repr(fits) == "Path of 6 results, 0 to 5 chosen"


@pytest.mark.parametrize(("name", "function"), [("aic", aic), ("bic", bic), ("ebic", ebic), ("gic", gic)])
def test_a_criterion_has_a_name(fits, name, function):
    assert_array_equal(fits.values(name), [function(one) for one in fits])
    assert fits.best(name) is min(fits, key=function)


def test_a_criterion_may_be_a_function(fits):
    half = partial(ebic, gamma=0.5)
    assert fits.best(half) is min(fits, key=half)
    assert fits.best(lambda one: 0.0) is fits[0], "the first of equals"
    assert fits.best(lambda one: np.nan if one is fits[0] else 1.0) is fits[1]
    assert fits.best() is fits.best("ebic")


def test_sizes_are_what_was_chosen():
    groups = Path(path(model(), lambda k: GroupSparsity(np.arange(13) // 4, k), range(4)))
    assert_array_equal(groups.sizes, range(4))
    X = model().design.dense()
    outputs = Path(path(MultiOutputModel(X, X[:, :2]), lambda k: RowSparsity(k, free=(12,)), [0, 2]))
    assert_array_equal(outputs.sizes, [0, 2])
    assert outputs.supports().shape == (2, 13, 2)
    assert_array_equal(outputs.supports().sum(axis=(1, 2)), [2, 6])


def test_supports_are_rows(fits):
    chosen = fits.supports()
    assert chosen.dtype == bool
    assert chosen.shape == (6, 13)
    for row, one in zip(chosen, fits, strict=True):
        assert_array_equal(np.flatnonzero(row), one.support.indices)


def test_a_table_has_a_row_for_each_result(fits):
    pytest.importorskip("pandas")
    table = fits.to_frame()
    assert list(table) == ["k", "value", "ebic", "bic", "aic", "gic", "support", "converged", "message"]
    assert_array_equal(table["k"], range(6))
    assert_array_equal(table["value"], [one.value for one in fits])
    assert_array_equal(table["bic"], fits.values("bic"))
    assert table["support"][2] == [2, 5, 12]
    assert table["converged"].all()


def test_a_loss_without_a_likelihood_has_a_table_without_criteria():
    fits = Path(path(model(Huber(1.0)), Sparsity, [1, 2]))
    assert list(fits.to_dict()) == ["k", "value", "support", "converged", "message"]
    with pytest.raises(CapabilityError, match="no likelihood"):
        fits.best("bic")


def test_without_pandas_the_table_is_a_dict(fits, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"or use to_dict\(\)"):
        fits.to_frame()


def test_results_that_were_stored_have_a_path_without_criteria(fits, tmp_path):
    ht.save(list(fits), tmp_path / "fits.json")
    again = Path(ht.load(tmp_path / "fits.json"))
    assert_array_equal(again.supports(), fits.supports())
    with pytest.raises(CapabilityError, match="a criterion needs the objective of the fit"):
        again.best()


def test_what_is_no_path_is_refused(fits):
    with pytest.raises(InvalidInputError, match="at least one result"):
        Path([])
    with pytest.raises(InvalidInputError, match="got int"):
        Path([1, 2])
    with pytest.raises(InvalidInputError, match="got None"):
        Path(None)
    with pytest.raises(InvalidInputError, match="criterion must be one of"):
        fits.best("cv")
