"""Check 12: what Cox's model costs, in data passes; seconds are in the benchmarks, ``benchmarks/families.py``."""

import tracemalloc

import numpy as np
import pytest

import hardthresh as ht


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_check_12_twice_the_rows_cost_twice_as_much_and_no_square_of_them(ties):
    work, d = {}, 1000
    for n in (5000, 10_000):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        death, end = rng.exponential(np.exp(X[:, 3] / 2 - X[:, 7] / 2)), rng.exponential(2.0, n)
        y = np.column_stack([np.minimum(death, end), death <= end])
        tracemalloc.start()
        try:
            model = ht.SparseCoxRegression(n_nonzero_coefs=10, ties=ties).fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert {3, 7} <= set(model.support_.tolist())
        work[n] = n * model.history_["passes"][-1]
    assert work[10_000] <= 2.5 * work[5000]
    assert peak < n * n  # truths of all pairs of rows; an eighth of their numbers
    assert peak < 3 * X.nbytes
