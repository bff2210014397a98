"""An entry that is no number is named by its column, its block and its row (section 9 of scale.md)."""

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh.core import InvalidInputError
from hardthresh.designs import RowBlocks, Serial, Threads, from_arrays
from hardthresh.designs.locating import refuse_negative_weights, refuse_not_finite


def arrays():
    return {
        "X": np.ones((300, 5)),
        "y": np.ones(300),
        "sample_weight": np.ones(300),
        "offset": np.ones(300),
    }


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("engine", [Serial, lambda blocks: Threads(blocks, 3)])
def test_the_first_entry_of_x_is_named(value, engine):
    given = arrays()
    given["X"][[130, 131, 290], [4, 1, 0]] = value
    message = (
        r"^X contains NaN or infinity: feature 4 \(counted from 0\), block 1 \(rows 100\.\.199, first at row 30 of "
        r"the block\); remove or impute it$"
    )
    with pytest.raises(InvalidInputError, match=message):
        refuse_not_finite(engine(from_arrays(**given, rows=100)))


def test_columns_have_their_names():
    given = arrays()
    given["X"][299, 2] = np.nan
    blocks = from_arrays(**given, rows=100)
    named = RowBlocks(blocks.blocks, 5, blocks.dtype, feature_names=("a", "b", "age", "d", "e"))
    with pytest.raises(InvalidInputError, match=r"column 'age', block 2 \(rows 200\.\.299, first at row 99"):
        refuse_not_finite(Serial(named))


@pytest.mark.parametrize("name", ["y", "sample_weight", "offset"])
def test_other_arrays_are_named(name):
    given = arrays()
    given[name][205] = np.inf
    with pytest.raises(
        InvalidInputError, match=rf"^{name} contains NaN or infinity: block 2 \(rows 200\.\.299, first at row 5 "
    ):
        refuse_not_finite(Serial(from_arrays(**given, rows=100)))


def test_entries_of_sparse_rows_are_found():
    given = arrays()
    X = sp.random(300, 5, density=0.4, random_state=1, format="lil")
    X[77, 3] = np.nan
    X[78, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"feature 3 .*block 0 \(rows 0\.\.99, first at row 77 "):
        refuse_not_finite(Serial(from_arrays(**{**given, "X": X.tocsr()}, rows=100)))


def test_sums_that_overflow_are_told_apart():
    with pytest.raises(InvalidInputError, match="entries of X and y are finite, but sums of their squares are not"):
        refuse_not_finite(Serial(from_arrays(np.full((10, 2), 1e200), np.ones(10))))


@pytest.mark.parametrize(("places", "said"), [([1210], "1 row is not"), ([1210, 1250, 2000], "3 rows are not")])
def test_negative_weights_are_located(places, said):
    weight = np.ones(3000)
    weight[places] = -1.0
    blocks = from_arrays(np.ones((3000, 2)), np.ones(3000), weight, rows=100)
    message = (
        rf"sample_weight must be non-negative; {said}: block 12 \(rows 1,200\.\.1,299, first at row 10 of the block\)"
    )
    with pytest.raises(InvalidInputError, match=message):
        refuse_negative_weights(Serial(blocks))
