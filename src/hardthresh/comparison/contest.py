"""Nested cross-validation: every entrant fits the same training rows, and predicts the same rows held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from hardthresh.core.checking import checked_integer, checked_number, seed_of
from hardthresh.core.errors import InvalidInputError, plural
from hardthresh.core.progress import Report, progress_line

from .entrants import Entrant, entrants_of
from .entries import Entry, Round
from .limits import OutOfTimeError, limited
from .result import MethodComparison
from .tables import Features, Prepared, features_of
from .targets import Target, target_of
from .training import Fitted, Split, Training

_SAME = 1e-6
"""Relative difference of predictions beyond which they depend on a column. Rounding is less, of float32 too."""


def compare(
    X: Any,
    y: Any,
    *,
    loss: str = "auto",
    entrants: Any = None,
    folds: int = 10,
    repeats: int = 1,
    inner_folds: int = 5,
    sample_weight: Any = None,
    offset: Any = None,
    categorical_features: Any = "from_dtype",
    feature_names: Sequence[str] | None = None,
    impute: bool = False,
    time_limit: float | None = None,
    random_state: Any = 0,
    verbose: bool = False,
) -> MethodComparison:
    r"""Compare models of this package with those of other packages by nested cross-validation.

    Each entrant (method) a is fitted to the training rows of each outer fold j, where it chooses its penalty or its
    number of features by inner folds, and predicts the held-out rows. With its mean held-out loss :math:`\ell_{aj}`,
    and that of the model without features, :math:`\ell_{0j}`, its relative loss is

    .. math:: R_a = \frac1J \sum_{j=1}^J \frac{\ell_{aj}}{\ell_{0j}},

    so a method with a relative loss of 1 is no better than the model without features. Two entrants are compared by the
    J differences of their relative losses in the same folds. The variance of their mean is estimated by :math:`s^2 (1/J
    + 1/(\text{folds} - 1))`, where :math:`s^2` is the variance of the differences, because the training rows of folds
    overlap (Nadeau and Bengio, 2003). The p-value is that of Student's t distribution with J - 1 degrees of freedom,
    corrected by Holm's method (1979) for all comparisons with our method; the comparisons with the model without
    features are a family of their own. A difference is significant if its corrected p-value is at most 5 %.

    Parameters
    ----------
    X : array, sparse matrix or data frame, shape (n, d)
        The features, in memory. Columns are standardised, and categories encoded, by the training rows of each fold.
    y : array, shape (n,), or (n, 2)
        The target: numbers, labels of classes, counts, positive amounts, or for ``loss="cox"`` times and events.
    loss : {"auto", "squared", "logistic", "poisson", "gamma", "cox"}
        The loss that is predicted and measured. "auto" is "logistic" for strings, booleans and targets with two
        distinct integers, "cox" for a structured array of events and times, and otherwise "squared".
    entrants : sequence of str, or mapping, optional
        Names from `hardthresh.comparison.ENTRANTS`; or a mapping from names to scikit-learn estimators, where None
        stands for the method of that name. Default: all methods that are installed.
    folds, repeats : int
        The number of outer folds of random rows, >= 2, and the number of repetitions with new folds, >= 1.
    inner_folds : int
        The number of inner folds, >= 2. It is reduced if a class, or the events, have fewer rows.
    sample_weight : array, shape (n,), optional
        Weights of the rows, >= 0. Methods that do not support weights are left out.
    offset : array, shape (n,), optional
        A known part of the mean, or of the log-mean, such as the logarithm of an exposure. Not for classes and censored
        times.
    categorical_features : "from_dtype", sequence of int or str, or None
        As for the estimators.
    feature_names : sequence of str, optional
        The names of the columns. Default: those of a data frame.
    impute : bool
        Whether to impute missing numbers by the means of the training rows, and to add an indicator column.
    time_limit : float, optional
        Seconds after which an entrant is stopped. Compiled code is stopped when it returns to Python; on Windows, and
        outside the main thread, a running fit is completed. Default: no limit.
    random_state : int, RandomState or None
        The seed of the folds, and of entrants that use random numbers.
    verbose : bool
        Whether to show a progress line on standard error.

    Returns
    -------
    MethodComparison
        The result; ``print`` shows it as text. After Ctrl-C it contains the outer folds that are complete.

    Raises
    ------
    InvalidInputError
        For invalid data and settings. A failure of an entrant raises no error, and is recorded in the result.
    KeyboardInterrupt
        After Ctrl-C, if fewer than two outer folds are complete.

    Notes
    -----
    Guarantee: heuristic. Procedures are compared on one data set, and the standard errors are approximate. If they were
    exact, the probability of a false alarm would be at most 5 % among the comparisons with our method, and 5 % among
    those with the model without features, for any number of entrants; with more entrants, a difference must be larger
    to be significant. Without our method, the entrant with the lowest loss takes its place, and the correction is for
    all pairs of entrants. Cost: for most entrants (inner folds + 1) x folds x repeats fits of a path.

    References
    ----------
    C. Nadeau and Y. Bengio (2003), Inference for the generalization error, *Machine Learning* 52, 239-281.

    S. Holm (1979), A simple sequentially rejective multiple test procedure, *Scandinavian Journal of Statistics* 6,
    65-70.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 20))
    >>> y = 2 * X[:, 3] - X[:, 7] + rng.standard_normal(120)
    >>> found = ht.compare(X, y, entrants=["hardthresh", "lasso", "ridge"], folds=5)
    >>> found["ridge"].relative_loss > found["hardthresh"].relative_loss
    True
    """
    target, rows, n = target_of(y, loss, sample_weight, offset)
    features = features_of(X, categorical_features, feature_names, impute=impute)
    if features.shape[0] != n:
        raise InvalidInputError(f"X has {plural(features.shape[0], 'row')} and y has {n:,}; they must be equal")
    features = features.take(rows)
    checked_integer("folds", folds, 2)
    checked_integer("repeats", repeats, 1)
    checked_integer("inner_folds", inner_folds, 2)
    if time_limit is not None:
        checked_number("time_limit", time_limit, above=0.0)
    _check_folds(target, folds)
    contest = _Contest(features, target, folds, inner_folds, seed_of(random_state), time_limit)
    asked = entrants_of(entrants)
    left_out = [(entrant.name, reason) for entrant in asked if (reason := entrant.reason_against(target))]
    taking_part = [entrant for entrant in asked if not entrant.reason_against(target)]
    if not taking_part:
        raise InvalidInputError(f"no entrant can take part: {'; '.join(f'{name}: {why}' for name, why in left_out)}")
    rounds, entries, interrupted = contest.run(taking_part, repeats, verbose=verbose)
    return MethodComparison(
        target=target,
        n_features=features.shape[1],
        names=features.names,
        n_categorical=len(features.factors),
        folds=folds,
        repeats=repeats,
        inner_folds=inner_folds,
        rounds=tuple(rounds),
        entries=tuple(entries),
        left_out=tuple(left_out),
        interrupted=interrupted,
        random_state=contest.seed,
        time_limit=time_limit,
        impute=impute,
    )


def _check_folds(target: Target, folds: int) -> None:
    most = target.most_folds if target.strata is not None else len(target.y) // 2
    what = "the smallest class" if target.loss == "logistic" else "the table"
    has = plural(target.most_folds, "event" if target.loss == "cox" else "row")
    has += "" if target.weights is None else " of positive weight"
    if folds > most:
        raise InvalidInputError(
            f"{what} has {has}, too few for {folds} outer folds; use at most {most}"
            if most >= 2
            else f"{what} has {has}, too few to compare anything"
        )
    if target.strata is not None and most - -(-most // folds) < 2:  # what the largest outer fold leaves
        raise InvalidInputError(
            f"{what} has {has}, too few for inner folds within {folds} outer ones; use "
            f"{'3 outer folds' if most >= 3 else 'more rows'}"
        )


class _Contest:
    """The data and settings that all entrants share."""

    def __init__(
        self, features: Features, target: Target, folds: int, inner: int, seed: int, time_limit: float | None
    ) -> None:
        self.features, self.target, self.folds, self.inner = features, target, folds, inner
        self.seed, self.time_limit = seed, time_limit

    def run(self, entrants: list[Entrant], repeats: int, *, verbose: bool) -> tuple[list[Round], list[Entry], bool]:
        """Return the outer folds that are complete, what each entrant did in them, and whether the user interrupted."""
        planned = self._plan(repeats)
        rounds: list[Round] = []
        entries = [Entry.start(entrant, self.target.loss, self.features.shape[1]) for entrant in entrants]
        try:
            with progress_line(verbose, "comparing", len(planned) * len(entrants)) as report:
                for fold in planned:
                    entries = self._round(entrants, entries, fold, report)
                    rounds.append(fold)
        except KeyboardInterrupt:
            if len(rounds) < 2:
                raise
            return rounds, entries, True
        return rounds, entries, False

    def _plan(self, repeats: int) -> list[Round]:
        """Return the outer folds.

        Raises
        ------
        InvalidInputError
            If the model without features has no loss in one of them, beside which others could be measured.
        """
        planned: list[Round] = []
        for repeat in range(repeats):
            for train, test in self.target.splits(self.folds, self.seed + repeat):
                planned.append(Round(len(planned), repeat, train, test, self._null_loss(train, test)))
        if not all(fold.null_loss > 0 for fold in planned):
            raise InvalidInputError(
                f"predicting {self.target.null} has no loss in an outer fold, beside which other losses could be "
                "measured: its rows are too few or too equal; use fewer folds"
            )
        return planned

    def _null_loss(self, train: np.ndarray, test: np.ndarray) -> float:
        n = len(self.target.y) if self.target.loss == "cox" else test.size
        prediction = self.target.take(train).null_prediction(n)
        return self.target.held_out_loss(train, test, self.target.checked_prediction(prediction, n))

    def _round(
        self,
        entrants: list[Entrant],
        entries: list[Entry],
        fold: Round,
        report: Report,
    ) -> list[Entry]:
        """Return the entries with what entrants did in one more outer fold."""
        train, test = fold.train, fold.test
        native = Prepared.of(self.features, train, test)
        encoded = native.encoded()
        target = self.target.take(train)
        inner = target.splits(min(self.inner, target.most_folds), self.seed)
        found = []
        for entrant, entry in zip(entrants, entries, strict=True):
            report(entrant.name)
            if entry.stopped:
                found.append(entry)
                continue
            rows = native if entrant.native else encoded
            training = Training(
                rows.train.copy(), target.take(np.arange(train.size)), _copies(inner), rows.factors, self.seed
            )
            found.append(self._attempt(entrant, entry, training, rows, fold))
        return found

    def _attempt(
        self,
        entrant: Entrant,
        entry: Entry,
        training: Training,
        rows: Prepared,
        fold: Round,
    ) -> Entry:
        train, test = fold.train, fold.test
        fit = entrant.fits[self.target.loss][0]
        started = time.perf_counter()
        try:
            with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
                warnings.simplefilter("always")
                with limited(None if self.time_limit is None else self.time_limit - sum(entry.seconds)):
                    fitted = fit(training)
                seconds = time.perf_counter() - started
                prediction, own = self._predictions(fitted, rows, train, test)
            loss = self.target.held_out_loss(train, test, prediction)
            accuracy = self.target.accuracy(test, own)
        except OutOfTimeError:
            return replace(entry, stopped=True, seconds=(*entry.seconds, time.perf_counter() - started))
        except Exception as error:  # the other entrants continue, and the result names what failed
            return entry.failed(fold.number, time.perf_counter() - started, f"{type(error).__name__}: {error}")
        unconverged = any("converge" in f"{each.category.__name__} {each.message}".lower() for each in caught)
        used = rows.columns_of(fitted.used)
        done = entry.done(fold.number, seconds, loss, fold.null_loss, used, accuracy, unconverged=unconverged)
        return replace(done, stopped=self.time_limit is not None and sum(done.seconds) >= self.time_limit)

    def _predictions(
        self, fitted: Fitted, rows: Prepared, train: np.ndarray, test: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the prediction that the loss is of, and that of the rows held out.

        Raises
        ------
        InvalidInputError
            If predictions depend on columns that the fit says it does not use.
        """
        target = self.target
        own = target.checked_prediction(fitted.predict(rows.test.copy()), test.size)
        if fitted.used is not None and test.size > 1:
            others = target.checked_prediction(fitted.predict(_exchanged(rows.test, fitted.used)), test.size)
            if not np.allclose(own, others, rtol=_SAME, atol=_SAME * float(np.abs(own).max())):
                raise InvalidInputError("its predictions depend on features that it does not report")
        if target.loss != "cox":
            return own, own
        every = np.empty(len(target.y))
        every[test] = own
        every[train] = target.checked_prediction(fitted.predict(rows.train.copy()), train.size)
        return every, own


def _copies(folds: list[Split]) -> list[Split]:
    return [(train.copy(), test.copy()) for train, test in folds]


def _exchanged(X: Any, used: np.ndarray) -> Any:
    """Return rows whose columns that are not used are those of other rows."""
    order = np.roll(np.arange(X.shape[0]), 1)
    kept = np.zeros(X.shape[1])
    kept[used] = 1.0
    if sparse.issparse(X):
        return (X @ sparse.diags(kept) + X[order] @ sparse.diags(1.0 - kept)).tocsr()
    return np.where(kept > 0, X, X[order])
