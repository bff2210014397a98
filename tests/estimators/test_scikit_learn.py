"""Every registered estimator passes every check of scikit-learn; none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import hardthresh.estimators
from hardthresh.core.registry import registered

ESTIMATORS = [example for entry in registered("estimator").values() for example in entry.examples()]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check, recwarn):
    check(estimator)


def test_every_public_estimator_is_checked():
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == set(hardthresh.estimators.__all__)
