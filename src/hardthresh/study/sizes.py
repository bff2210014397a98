"""Simulated studies of one number of examples: what they cost and find, beside complete rows for the same money."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.typing import Array
from hardthresh.estimators import SparseLinearRegression, SparseLogisticRegression
from hardthresh.limited import ArraySource, Learner

from .intervals import Interval, Share, mean_interval, share_interval
from .models import losses
from .population import Draw, Population
from .terms import Terms, sum_of_money

_PER_COEFFICIENT = 4  # complete rows for each coefficient of the comparison: what `AdaptiveHybrid` asks for, too


@dataclass(frozen=True, slots=True)
class PlannedSize:
    """What simulated studies of one number of examples cost and found.

    Attributes
    ----------
    examples : int
        The number of examples.
    cost, cost_high : float
        The median and the 90 % quantile of what they cost.
    error, error_high : float
        The median and the 90 % quantile of the error on new examples, relative to that without attributes: the mean
        squared error, or for classes the log loss.
    best : float
        The median error of the best model, relative to the same.
    all_found : Share
        In how many studies all right columns were found, with Wilson's 95 % interval.
    found : Interval
        The mean share of the right columns that were found, with a 95 % interval.
    no_model : Share
        In how many studies there were too few examples for any model.
    complete_rows : int
        The median number of complete rows for the same money.
    complete_error : float
        The median error of a sparse model of these rows, relative to that without attributes.
    complete_all_found : Share
        In how many tables of these rows it found all right columns.
    advantage : Interval
        The mean of ``complete_error`` less ``error``, with a 95 % interval: above 0 if the study is better.
    """

    examples: int
    cost: float
    cost_high: float
    error: float
    error_high: float
    best: float
    all_found: Share
    found: Interval
    no_model: Share
    complete_rows: int
    complete_error: float
    complete_all_found: Share
    advantage: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, for JSON."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value.to_dict() if isinstance(value, Interval) else value for name, value in values.items()}


@dataclass(frozen=True)
class Simulation:
    """Simulated studies of one kind.

    Attributes
    ----------
    terms : Terms
        The terms of all of them.
    population : Population
        What their examples are drawn from.
    repeats : int
        The studies of each size.
    seed : int
        The seed of the random numbers.
    """

    terms: Terms
    population: Population
    repeats: int
    seed: int

    def size(self, n: int) -> PlannedSize:
        """Return what studies of n examples cost and found."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attributes that are too dear, which the terms have said
            studies = np.array([self._study(n, repeat) for repeat in range(self.repeats)])
        money, error, best, found, right, no_model, rows, complete, complete_found = studies.T
        return PlannedSize(
            examples=n,
            cost=sum_of_money(np.median(money)),
            cost_high=sum_of_money(np.quantile(money, 0.9)),
            error=float(np.median(error)),
            error_high=float(np.quantile(error, 0.9)),
            best=float(np.median(best)),
            all_found=share_interval(int(np.sum(found == right)), self.repeats),
            found=mean_interval(found / np.maximum(1, right), least=0.0),
            no_model=share_interval(int(np.sum(no_model)), self.repeats),
            complete_rows=int(np.median(rows)),
            complete_error=float(np.median(complete)),
            complete_all_found=share_interval(int(np.sum(complete_found == right)), self.repeats),
            advantage=mean_interval(complete - error),
        )

    def _study(self, n: int, repeat: int) -> list[float]:
        """Return what one study cost and found, and what complete rows for the same money did."""
        terms, draw = self.terms, self.population.draw(n, generator(self.seed, repeat, Purpose.SIMULATED_STUDY))
        algorithm = terms.algorithm
        source = ArraySource(draw.X, draw.y, cost_model=terms.cost_model, shuffle=False)
        result = Learner.for_source(algorithm, source).run(source)
        predicted = algorithm.response(draw.X_new @ result.w + result.intercept)
        rows = int(result.meter.money / terms.cost_model.cost(np.arange(len(terms.columns))) * (1 + 1e-9))
        complete, support = self._complete(draw, min(rows, n))
        null = np.mean(losses(draw.y_new, np.full(len(draw.y_new), np.mean(draw.y)), is_class=terms.is_class))
        errors = [
            float(np.mean(losses(draw.y_new, each, is_class=terms.is_class)) / null)
            for each in (predicted, draw.best, complete)
        ]
        found, complete_found = (np.isin(draw.right, chosen).sum() for chosen in (result.support, support))
        no_model = result.support.size == 0
        return [result.meter.money, *errors[:2], found, draw.right.size, no_model, rows, errors[2], complete_found]

    def _complete(self, draw: Draw, rows: int) -> tuple[Array, Array]:
        """Return predictions of new examples by a sparse model of complete rows, and its columns."""
        X, y, k = draw.X[:rows], draw.y[:rows], min(self.terms.n_nonzero_coefs, rows // _PER_COEFFICIENT)
        if k < 1 or np.ptp(y) == 0:
            return np.full(len(draw.y_new), np.mean(draw.y)), np.empty(0, dtype=np.intp)
        if self.terms.is_class:
            model: Any = SparseLogisticRegression(n_nonzero_coefs=k).fit(X, y)
            return model.predict_proba(draw.X_new)[:, 1], model.support_
        model = SparseLinearRegression(n_nonzero_coefs=k).fit(X, y)
        return model.predict(draw.X_new), model.support_
