"""Every registered estimator passes every check of scikit-learn.

Below the level ``pairs``, one estimator of each family does, and one that chooses by cross-validation in its own way.
"""

from sklearn.base import clone
from sklearn.utils.estimator_checks import check_array_api_input, parametrize_with_checks

import hardthresh.estimators
import hardthresh.limited.estimators
from hardthresh.core.registry import registered
from levels import reaches, slow_beyond

KINDS = ("estimator", "selector")
ESTIMATORS = [example for kind in KINDS for entry in registered(kind).values() for example in entry.examples()]
FAMILIES = (
    "SparseLinearRegression",
    "SparseLogisticRegression",
    "SparseGammaRegression",  # its targets are positive, and it is no transformer
    "LowRankImputer",
    "SparseGaussianGraphicalModelCV",
    "LimitedAttributeRegression",
    "StabilitySelection",
    "Knockoffs",
)


NARROWED = {
    "SparseHuberRegressionCV": {"n_nonzero_coefs": [0, 1, 2]},
    "SparseQuantileRegressionCV": {"n_nonzero_coefs": [0, 1, 2]},
}
"""Settings for the comparison of libraries. Columns 5, 7, 8 and 9 of its table span two dimensions: models with two or
more of them predict alike to single precision, so that rounding would decide which of them, and how many, are kept."""

CHECKED = [one for one in ESTIMATORS if reaches("pairs") or type(one).__name__ in FAMILIES]


@slow_beyond(100)
@parametrize_with_checks(CHECKED)
def test_check_25_scikit_learn_checks(estimator, check, recwarn):
    if check.func is check_array_api_input:
        estimator = clone(estimator).set_params(**NARROWED.get(type(estimator).__name__, {}))
    check(estimator)


def test_every_public_estimator_is_checked():
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == {
        *hardthresh.estimators.__all__,
        *hardthresh.limited.estimators.__all__,
    }
    assert {type(estimator).__name__ for estimator in CHECKED} >= set(FAMILIES)
