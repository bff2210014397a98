"""Check 15: information criteria by their formulas, up to a constant of the data."""

from math import comb, log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import digamma, expit, gammaln, log_softmax

import golden
from acceptance.fits import COLUMNS, budget, drawn, objective
from hardthresh import minimize
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.selection import aic, bic, ebic, gic


def gamma(y, u, s):
    """That of the most likely shape."""
    loss = y * np.exp(-u) + u - 1 - np.log(y)
    mean = np.average(loss, weights=s)
    nu = brentq(lambda nu: log(nu) - digamma(nu) - mean, 1e-6, 1e6, xtol=1e-15, rtol=1e-15)
    return 2 * s.sum() * (nu * mean + nu - nu * log(nu) + gammaln(nu))


def negative_binomial(y, u, s, theta=2.0):
    mu = np.exp(u)
    terms = gammaln(y + theta) - gammaln(theta) + theta * np.log(theta / (theta + mu)) + y * np.log(mu / (theta + mu))
    return -2 * s @ terms


def tweedie(y, u, s):
    terms = np.exp(u / 2) / 0.5 + y * np.exp(-u / 2) / 0.5 - 4 * np.sqrt(y)
    return s.sum() * log(np.average(terms, weights=s))


def quantile(y, u, s):
    return 2 * s.sum() * log(np.average(np.maximum(0.7 * (y - u), -0.3 * (y - u)), weights=s))


def ordinal(y, u, s, thresholds):
    below = np.column_stack([np.zeros(y.size), expit(thresholds - u[:, None]), np.ones(y.size)])
    return -2 * s @ np.log(np.diff(below)[np.arange(y.size), y.astype(int)])


def cox(y, u, s, ties):
    total = 0.0
    for time in np.unique(y[(y[:, 1] > 0) & (s > 0), 0]):
        risk, dead = y[:, 0] >= time, (y[:, 0] == time) & (y[:, 1] > 0) & (s > 0)
        at_risk, dying, count = (s * np.exp(u))[risk].sum(), (s * np.exp(u))[dead].sum(), dead.sum()
        left_out = np.arange(count) / count * dying if ties == "efron" else np.zeros(count)
        total += s[dead].mean() * np.log(at_risk - left_out).sum() - s[dead] @ u[dead]
    return 2 * total


MISFITS = {
    "squared": lambda y, u, s: s.sum() * log(np.average((y - u) ** 2, weights=s)),
    "multitask": lambda y, u, s: 3 * s.sum() * log(np.average((y - u) ** 2, weights=s, axis=0).mean()),
    "logistic": lambda y, u, s: 2 * s @ (np.logaddexp(0, u) - y * u),
    "multinomial": lambda y, u, s: -2 * s @ log_softmax(u, axis=1)[np.arange(y.size), y.astype(int)],
    "poisson": lambda y, u, s: 2 * s @ (np.exp(u) - y * u),
    "gamma": gamma,
    "negative_binomial": negative_binomial,
    "tweedie": tweedie,
    "quantile": quantile,
    "ordinal": ordinal,
    "cox_breslow": lambda y, u, s: cox(y, u, s, "breslow"),
    "cox_efron": lambda y, u, s: cox(y, u, s, "efron"),
}
"""Minus twice the log-likelihood of linear predictors u and weights s, up to a constant."""
OUTPUTS = {"multitask": 3, "multinomial": 2}
FREE = {"ordinal": 3, "cox_breslow": 0, "cox_efron": 0}


def by_hand(name, run, k, s):
    """The four criteria of a fit of k columns."""
    X, y, offset = drawn(name)
    w = run.w
    u = X @ w[:COLUMNS] + (0.0 if offset is None else offset)
    if name == "ordinal":
        misfit = ordinal(y, u, s, w[COLUMNS:])
    else:
        misfit = MISFITS[name](y, u if name.startswith("cox") else u + w[COLUMNS], s)
    n = s @ y[:, 1] if name.startswith("cox") else s.sum()
    q = OUTPUTS.get(name, 1)
    size = q * k + FREE.get(name, q)
    return {
        aic: misfit + 2 * size,
        bic: misfit + size * log(n),
        ebic: misfit + size * log(n) + 2 * log(comb(COLUMNS, k)),
        gic: misfit + q * k * log(COLUMNS) * log(log(n)),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MISFITS)
def test_check_15_criteria_are_their_formulas(name, weighted):
    s = golden.weights(name) if weighted else np.ones(golden.GOLDEN["n"])
    f = objective(name, sample_weight=s)
    one, other = (minimize(f, budget(f, k)) for k in (1, 4))
    left, right = by_hand(name, one, 1, s), by_hand(name, other, 4, s)
    for criterion, value in left.items():
        found = criterion(one) - criterion(other)
        assert_allclose(found, value - right[criterion], rtol=1e-10, atol=1e-10 * abs(value))
        assert_allclose(criterion(one) - aic(one), value - left[aic], rtol=1e-10, atol=1e-10 * abs(value))


@pytest.mark.parametrize("name", ["poisson", "cox_efron", "multinomial"])
def test_check_15_features_that_were_screened_out_before_count(name):
    f = objective(name)
    run = minimize(f, budget(f, 4))
    d = COLUMNS + 500
    assert_allclose(ebic(run, n_features_original=d) - ebic(run), 2 * log(comb(d, 4) / comb(COLUMNS, 4)), rtol=1e-10)
    n = run.objective.n_examples
    assert_allclose(
        gic(run, n_features_original=d) - gic(run),
        OUTPUTS.get(name, 1) * 4 * log(d / COLUMNS) * log(log(n)),
        rtol=1e-10,
    )
    assert ebic(run, n_features_original=COLUMNS) == ebic(run)
    for criterion in (ebic, gic):
        with pytest.raises(InvalidInputError, match=f"n_features_original must be .*{COLUMNS}.* got 3"):
            criterion(run, n_features_original=3)


@pytest.mark.parametrize("name", ["huber", "squared_hinge"])
def test_check_15_a_loss_without_a_likelihood_is_named(name):
    f = objective(name)
    run = minimize(f, budget(f, 2))
    for criterion in (aic, bic, ebic, gic):
        with pytest.raises(CapabilityError, match=r"has no likelihood.* cross-valid"):
            criterion(run)
