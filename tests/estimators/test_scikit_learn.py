"""Every registered estimator passes every check of scikit-learn, but for those of `NOT_YET`.

Below the level ``pairs``, one estimator of each family does, and one that chooses by cross-validation in its own way.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardthresh.estimators
import hardthresh.limited.estimators
from hardthresh.core.registry import registered
from levels import reaches

ESTIMATORS = [example for entry in registered("estimator").values() for example in entry.examples()]
FAMILIES = (
    "SparseLinearRegression",
    "SparseLogisticRegressionCV",
    "SparseGammaRegression",  # its targets are positive, and it is no transformer
    "LowRankImputer",
    "LowRankImputerCV",
    "SparseGaussianGraphicalModel",
    "SparseGaussianGraphicalModelCV",
    "LimitedAttributeRegression",
)


CHECKED = [one for one in ESTIMATORS if reaches("pairs") or type(one).__name__ in FAMILIES]


NOT_YET = {
    (name, f"check_sample_weight_equivalence_on_{storage}_data")
    for name in ("SparseHuberRegressionCV", "SparseQuantileRegression", "SparseQuantileRegressionCV")
    for storage in ("dense", "sparse")
}
"""Checks that fail: with 15 rows and 10 columns the search of these models may end at another support, or another of
several minimisers, where rows are repeated than where they have weights. This is an open fault."""


@parametrize_with_checks(CHECKED)
def test_check_25_scikit_learn_checks(estimator, check, recwarn):
    if (type(estimator).__name__, check.func.__name__) in NOT_YET:
        pytest.skip("an open fault: see NOT_YET")
    check(estimator)


def test_every_public_estimator_is_checked():
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == {
        *hardthresh.estimators.__all__,
        *hardthresh.limited.estimators.__all__,
    }
    assert {type(estimator).__name__ for estimator in CHECKED} >= set(FAMILIES)
