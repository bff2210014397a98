"""Check 27: the scores of every cross-validated estimator, recomputed from the models of its folds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import huber
from sklearn.metrics import log_loss, mean_pinball_loss, mean_squared_error, mean_tweedie_deviance
from sklearn.model_selection import KFold

import hardthresh as ht
from acceptance.fits import MODELS, drawn, estimator
from acceptance.test_formulas import cox
from levels import at_most

NUMBERS = [0, 1, 3]


def negative_binomial(y, model, X):
    def likelihood(mean):
        return stats.nbinom.logpmf(y, 2.0, 2.0 / (2.0 + mean))

    saturated = np.where(y > 0, likelihood(np.maximum(y, 1e-300)), 0.0)
    return -2 * np.mean(likelihood(model.predict(X)) - saturated)


def probabilities(y, model, X):
    return log_loss(y, model.predict_proba(X))


LOSSES = {
    "squared": lambda y, model, X: mean_squared_error(y, model.predict(X)),
    "multitask": lambda y, model, X: mean_squared_error(y, model.predict(X)),
    "poisson": lambda y, model, X: mean_tweedie_deviance(y, model.predict(X), power=1),
    "gamma": lambda y, model, X: mean_tweedie_deviance(y, model.predict(X), power=2),
    "tweedie": lambda y, model, X: mean_tweedie_deviance(y, model.predict(X), power=1.5),
    "negative_binomial": negative_binomial,
    "huber": lambda y, model, X: np.mean(huber(1.35, y - model.predict(X))),
    "quantile": lambda y, model, X: mean_pinball_loss(y, model.predict(X), alpha=0.7),
    "squared_hinge": lambda y, model, X: np.mean(np.maximum(1 - y * model.decision_function(X), 0) ** 2) / 2,
    "logistic": probabilities,
    "multinomial": probabilities,
    "ordinal": probabilities,
}


def partial_likelihoods(name, model, X, y, train, test):
    """The loss of all rows less that of the training rows, for each row held out."""
    u, weight, ties = X @ model.coef_, np.ones(len(y)), name.removeprefix("cox_")
    misfits = [cox(y[rows], u[rows], weight[rows], ties) for rows in (np.arange(len(y)), train)]
    return (misfits[0] - misfits[1]) / 2 / test.size


def models_of_folds(chooser, X, y, n_folds):
    """The models that a scorer sees, for each fold those of 0, 1 and 3 features."""
    seen = []

    def score(model, X, y):
        seen.append(model)
        return 0.0

    chooser.set_params(scoring=score).fit(X, y)
    chooser.set_params(scoring=None)
    per_fold = len(seen) // n_folds
    sizes = [{model.get_support().sum(): model for model in seen[i * per_fold :][:per_fold]} for i in range(n_folds)]
    assert all(set(NUMBERS) == set(models) for models in sizes)
    return [[models[k] for k in NUMBERS] for models in sizes]


@at_most(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.SearchRangeWarning")
@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")  # by scores that are all 0
def test_check_27_scores_are_those_of_the_models_of_the_folds(name):
    X, y, _ = drawn(name)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    _, own = MODELS[name]
    cls = getattr(ht, f"{type(estimator(name)).__name__}CV")
    chooser = cls(n_nonzero_coefs=NUMBERS, alphas=0.1, averaging="none", cv=folds, **own)
    models = models_of_folds(chooser, X, y, len(folds))
    chooser.fit(X, y)
    for fold, (train, test) in enumerate(folds):
        for row, model in enumerate(models[fold]):
            if name.startswith("cox"):
                lost = partial_likelihoods(name, model, X, y, train, test)
            else:
                lost = LOSSES[name](y[test], model, X[test])
            assert_allclose(chooser.scores_[row, fold], -lost, rtol=1e-10)
