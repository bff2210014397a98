"""What a cross-validated estimator may replace: the loss of a fold, its scores, and the predictions that it scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from hardthresh import SparseLinearRegression, SparseLinearRegressionCV
from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.linear.prediction import PointwisePrediction
from hardthresh.losses import Squared
from hardthresh.losses.base import Loss


def data(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 2 * X[:, 1] - X[:, 4] + 0.5 * rng.standard_t(3, n)


FOLDS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros((90, 1))))
SETTINGS = {"n_nonzero_coefs": [0, 1, 2], "alphas": 0.01, "cv": FOLDS, "averaging": "none"}


@dataclass(frozen=True)
class PseudoHuber(Loss):
    """A loss with a parameter: the square root of squares, beyond about `width`."""

    width: float = 1.0
    domain: ClassVar[str] = "finite"
    score_name: ClassVar[str] = "minus twice the pseudo-Huber loss"
    curvature_bound: ClassVar[float] = 1.0

    def in_domain(self, y):
        return y == y

    def value(self, y, u):
        return self.width**2 * (namespace(u).sqrt(1 + ((u - y) / self.width) ** 2) - 1)

    def gradient(self, y, u):
        return (u - y) / namespace(u).sqrt(1 + ((u - y) / self.width) ** 2)

    def curvature(self, y, u):
        return (1 + ((u - y) / self.width) ** 2) ** -1.5

    def mean(self, u):
        return u

    def link(self, mean):
        return mean

    def example_target(self, u, rng, noise=1.0):
        return u + noise * rng.standard_normal(u.shape)


class Robust(SparseLinearRegression):
    _loss = PseudoHuber()


class WidthOfTheFold(SparseLinearRegressionCV):
    _loss = PseudoHuber()

    def _fold_loss(self, train):
        return PseudoHuber(float(np.median(np.abs(train.y - np.median(train.y)))))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "pursuit"])
def test_each_fold_has_the_loss_of_its_training_rows(solver):
    X, y = data()
    model = WidthOfTheFold(solver=solver, **SETTINGS).fit(X, y)
    for fold, (train, test) in enumerate(FOLDS):
        loss = PseudoHuber(float(np.median(np.abs(y[train] - np.median(y[train])))))
        for row, k in enumerate([0, 1, 2]):
            alone = Robust(n_nonzero_coefs=k, alpha=0.01)
            alone._loss = loss
            alone.fit(X[train], y[train])
            score = -2 * np.mean(loss.value(y[test], alone.predict(X[test])))
            assert_allclose(model.scores_[row, fold], score, rtol=1e-6)
    everywhere = Robust(n_nonzero_coefs=2, alpha=0.01)
    everywhere._loss = PseudoHuber(float(np.median(np.abs(y - np.median(y)))))
    assert_allclose(model.coef_, everywhere.fit(X, y).coef_, rtol=1e-6)


class OverFolds(PointwisePrediction):
    by_row = False


class DifferenceOfSums(SparseLinearRegressionCV):
    """The score of a fold is by how much its loss over all rows exceeds that over its training rows."""

    def _prediction_model(self, loss, table):
        return OverFolds(loss)

    def _fold_scores(self, fold, table, split):
        u = fold.predict(table, *fold.flat())
        losses = fold.prediction.losses(table.y, u)
        return -(losses.sum(axis=0) - losses[split[0]].sum(axis=0))


def test_a_score_that_is_no_mean_over_rows():
    X, y = data()
    model = DifferenceOfSums(**SETTINGS).fit(X, y)
    by_rows = SparseLinearRegressionCV(**SETTINGS).fit(X, y)
    assert_allclose(model.scores_, by_rows.scores_ / 2 * 30, rtol=1e-10)
    assert_array_equal(model.coef_, by_rows.coef_)
    assert model.found_
    assert 0 < model.null_p_value_ <= 0.03, "a comparison over folds is tested, however large the gain"
    assert np.isnan(by_rows.null_p_value_)


def test_only_scores_over_rows_are_stacked():
    X, y = data()
    with pytest.raises(InvalidInputError, match="no mean over rows"):
        DifferenceOfSums(**{**SETTINGS, "averaging": "stacking"}).fit(X, y)
    assert PointwisePrediction(Squared()).by_row
