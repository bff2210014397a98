"""Where the targets have their origin changes the intercept, and nothing else."""

import numpy as np
import pytest

from hardthresh import SparseLinearRegression, SparseLinearRegressionCV


def correlated(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 300))
    for j in range(1, 300):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    chosen = rng.choice(300, 10, replace=False)
    return X, X[:, chosen] @ rng.standard_normal(10) + 0.5 * rng.standard_normal(150)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [1e2, 1e4, 1e6, -1e8])
def test_a_shift_of_y_moves_only_the_intercept(seed, shift):
    X, y = correlated(seed)
    model = SparseLinearRegression(n_nonzero_coefs=10).fit(X, y)
    shifted = SparseLinearRegression(n_nonzero_coefs=10).fit(X, y + shift)
    np.testing.assert_array_equal(shifted.support_, model.support_)
    np.testing.assert_allclose(shifted.coef_, model.coef_, atol=1e-13 * abs(shift) + 1e-9)
    assert shifted.intercept_ - shift == pytest.approx(model.intercept_, abs=1e-13 * abs(shift) + 1e-9)


def test_a_shift_does_not_change_the_chosen_number():
    X, y = correlated(0)
    model, shifted = (
        SparseLinearRegressionCV(n_nonzero_coefs=range(1, 8), cv=3).fit(X, targets) for targets in (y, y + 1e5)
    )
    assert shifted.n_nonzero_coefs_ == model.n_nonzero_coefs_
    np.testing.assert_allclose(shifted.scores_, model.scores_, rtol=1e-6)


def test_leaving_out_the_offset_of_the_fit_is_said():
    X, y = correlated(1)
    model = SparseLinearRegression(n_nonzero_coefs=3).fit(X, y, offset=np.ones(150))
    with pytest.warns(UserWarning, match="fitted with an offset"):
        model.predict(X)
    model.predict(X, offset=np.ones(150))
