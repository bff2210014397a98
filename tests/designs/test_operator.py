"""Operators are multiplied with vectors and nothing else, and every product counts as what it costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from hardthresh.core import InvalidInputError
from hardthresh.core.meter import Meter
from hardthresh.designs import OperatorDesign, as_design
from hardthresh.designs import operator as home
from hardthresh.objectives import LinearModel

BATCHES = {
    "some": np.array([3, 0, 7]),
    "drawn twice": np.array([2, 2, 5, 2]),
    "one": np.array([4]),
    "slice": slice(2, 6),
    "all, shuffled": np.random.default_rng(0).permutation(9),
    "all": np.arange(9),
    "all, as a slice": slice(None),
}


def matrix():
    return np.random.default_rng(0).standard_normal((9, 4))


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_rows_are_those_of_the_matrix(batch):
    X, rng = matrix(), np.random.default_rng(1)
    ours, theirs = as_design(aslinearoperator(X)).rows(batch), X[batch]
    assert ours.shape == theirs.shape
    for shape in ((4,), (4, 3)):
        w = rng.standard_normal(shape)
        assert_allclose(ours.predict(w), theirs @ w, rtol=1e-13, atol=1e-14)
    for shape in ((len(theirs),), (len(theirs), 3)):
        r = rng.standard_normal(shape)
        assert_allclose(ours.pullback(r), theirs.T @ r, rtol=1e-13, atol=1e-14)
    again = slice(0, 1)
    assert_allclose(ours.rows(again).predict(np.ones(4)), theirs[again] @ np.ones(4), rtol=1e-13)


@pytest.mark.parametrize("batch", ["all", "all, as a slice", None])
def test_all_rows_need_no_scattering(batch, monkeypatch):
    X = matrix()
    design = as_design(aslinearoperator(X))
    part = design if batch is None else design.rows(BATCHES[batch])
    monkeypatch.setattr(home.np, "zeros", lambda *args, **kwargs: pytest.fail("the rows were scattered"))
    assert_allclose(part.pullback(np.ones(9)), X.sum(axis=0), rtol=1e-13)


class Counted:
    """An operator that counts the vectors it is multiplied with."""

    def __init__(self, X):
        self.products = 0

        def multiply(A):
            def by(v):
                self.products += 1
                return A @ v

            return by

        self.operator = LinearOperator(X.shape, matvec=multiply(X), rmatvec=multiply(X.T), dtype=X.dtype)


def test_the_meter_counts_the_products_that_are_made():
    counted, meter = Counted(matrix()), Meter()
    design = as_design(counted.operator)
    assert counted.products == 1, "one product at construction says whether there is an rmatvec"
    metered, few = design.metered(meter), np.array([1.0, 0.0, 0.0, 0.0])
    for part in (metered, metered.rows(np.array([1, 1])), metered.rows(slice(0, 4)).rows(slice(0, 1))):
        n = part.shape[0]
        for product in (
            lambda part=part: part.predict(few),
            lambda part=part: part.predict(np.ones((4, 3))),
            lambda part=part, n=n: part.pullback(np.ones(n)),
            lambda part=part, n=n: part.pullback(np.ones((n, 2))),
        ):
            before = counted.products, meter.passes
            product()
            assert meter.passes - before[1] == counted.products - before[0] > 0


def test_a_mini_batch_of_a_model_counts_whole_passes():
    X, meter = matrix(), Meter()
    LinearModel(aslinearoperator(X), X[:, 0]).metered(meter).rows(np.array([1, 5])).evaluate(np.ones(4))
    assert meter.passes == 2.0


class NoTranspose(LinearOperator):
    """Knows only its product with a vector."""

    def __init__(self):
        super().__init__(np.dtype(float), (3, 3))

    def _matvec(self, x):
        return x


@pytest.mark.parametrize(
    "operator",
    [
        LinearOperator((3, 3), matvec=lambda w: w, dtype=float),
        NoTranspose(),
        2 * NoTranspose(),
        NoTranspose() @ aslinearoperator(np.eye(3)),
    ],
    ids=["function", "class", "multiple", "product"],
)
def test_no_transpose_is_told_at_once(operator):
    for make in (OperatorDesign, as_design, lambda A: LinearModel(A, np.ones(3))):
        with pytest.raises(InvalidInputError, match=r"the operator has no rmatvec, .* give LinearOperator an rmatvec="):
            make(operator)


def test_complex_operators_are_refused():
    with pytest.raises(InvalidInputError, match="the operator must be real, got dtype complex128"):
        as_design(aslinearoperator(1j * np.eye(3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_dtypes(dtype):
    design = as_design(aslinearoperator(np.eye(3, dtype=dtype)))
    expected = np.float32 if dtype == np.float32 else np.float64
    w = np.arange(3, dtype=expected)
    for part in (design, design.rows(np.array([2, 0, 1]))):
        assert part.zeros(2).dtype == part.predict(w).dtype == part.pullback(w).dtype == expected
    assert_array_equal(design.predict(w), w)
