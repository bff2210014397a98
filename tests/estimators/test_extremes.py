"""Entries near the ends of what floating-point numbers can have: refused, or fitted, and never a NumPy warning."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from hardthresh.core import HardThreshError
from hardthresh.estimators import SparseLogisticRegression
from levels import in_turn, inherited

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: np.clip(X, -1e38, 1e38).astype(np.float32),
}
TARGETS = [1.0, 1e-160, 1e60, 1e150, 1e200]


def scales(kind, d, rng):
    """What the columns are multiplied by."""
    return {
        "large": np.full(d, 1e150),
        "huge": np.full(d, 1e300),
        "tiny": np.full(d, 1e-160),
        "of float32": np.full(d, 1e37),
        "one large column": np.where(np.arange(d) == 1, 1e153, 1.0),
        "one huge column": np.where(np.arange(d) == 1, 1e160, 1.0),
        "mixed": 10.0 ** rng.uniform(-150, 150, d),
        "mixed, modest": 10.0 ** rng.uniform(-30, 30, d),
    }[kind]


KINDS = ["large", "huge", "tiny", "of float32", "one large column", "one huge column", "mixed", "mixed, modest"]


@inherited
@in_turn("kind,form,standardize", list(KINDS), list(FORMS), [True, False])
def test_extreme_entries_are_refused_or_fitted_without_a_warning_of_numpy(case, form, kind, standardize):
    rng = np.random.default_rng(0)
    X, y = case.data(n=40, d=6)
    X = FORMS[form](np.clip(X * scales(kind, 6, rng), -1e308, 1e308))
    for size in [1.0] if case.loss.classifies else TARGETS:
        model = case.make(k=2, standardize=standardize)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            try:
                model.fit(X, y * size if size != 1.0 else y)
                model.certificate()
            except HardThreshError:
                continue
            assert np.isfinite(model.coef_).all() or not model.converged_


@pytest.mark.parametrize("seed", [58, 70, 86, 89])
def test_saturated_examples_are_fitted_to_the_end(seed):
    """Offsets of a hundred saturate the logistic loss: the Hessian is singular where the gradient is large."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    X, y, offset = rng.standard_normal((n, 3)), rng.integers(0, 2, n), 100 * rng.standard_normal(n)
    model = SparseLogisticRegression(n_nonzero_coefs=1, always_include=[0, 1]).fit(X, y, offset=offset)
    assert model.converged_
    assert model.certificate().fitted
