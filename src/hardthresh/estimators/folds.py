"""Cross-validation in estimators: candidates, folds of rows, metadata for splitters and scorers, fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from hardthresh.core.checking import checked_integer, checked_number, with_warnings_of_caller
from hardthresh.core.errors import HardThreshError, InvalidInputError, format_value, warn
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.core.typing import Array
from hardthresh.selection import path
from hardthresh.selection.comparison import Comparison

from .table import Table

Metadata = dict[str, Any]
Split = tuple[np.ndarray, np.ndarray]
Splits = list[Split]
Model = TypeVar("Model")

_OF_A_COMPARISON = ("scores_", "mean_scores_", "standard_errors_", "one_standard_error_", "scorer_name_")
"""Attributes of fits that compared candidates on held-out rows."""
_ABOUT_FOLDS = {"cv": (5,), "scoring": (None,), "rule": ("best",), "averaging": ("auto", "none")}
"""Parameters that are about folds, with the values that say nothing about these."""
_OWN_OF_CRITERIA = {"ebic_gamma": ("ebic",), "n_features_original": ("ebic", "gic")}
"""Parameters that some criteria have, with these."""


class CrossValidatedMixin:
    """Base of the estimators whose `fit` divides rows into folds with the splitter `cv`."""

    cv: Any
    scoring: Any = None
    n_features_in_: int
    candidates_: Array
    scores_: Array
    mean_scores_: Array
    standard_errors_: Array
    one_standard_error_: int
    scorer_name_: str

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that `fit` accepts and passes on to the splitter and to the scorer.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if self.scoring is not None:
            scorer = check_scoring(self, scoring=self.scoring)
            router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

    def _route(self, params: Metadata, n_samples: int, sample_weight: Any = None) -> tuple[Metadata, Metadata]:
        """Return the metadata for the splitter, and those for the scorer.

        Without metadata routing the splitter gets `groups`, and the scorer the weights.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", **params, **weights)
            return routed.splitter.split, {} if self.scoring is None else routed.scorer.score
        _raise_for_params({name: value for name, value in params.items() if name != "groups"}, self, "fit")
        groups = params.get("groups")
        if groups is None:
            return {}, weights
        if not hasattr(self.cv, "split"):
            raise InvalidInputError(
                f"groups has no effect on the folds of cv={'a list' if hasattr(self.cv, '__iter__') else self.cv}; "
                "leave it out, or pass a splitter that uses it, such as cv=GroupKFold(5)"
            )
        count = len(groups) if hasattr(groups, "__len__") else None
        if count != n_samples:
            columns = (
                f"; groups of columns are set by {type(self).__name__}(groups=...)" if hasattr(self, "groups") else ""
            )
            raise InvalidInputError(
                f"groups has {count} labels, but X has {n_samples} rows: fit takes the group of each row, for the "
                f"splitter{columns}"
            )
        return {"groups": groups}, weights

    def _row_folds(self, everything: Table, given: Table, params: Metadata) -> tuple[Splits, list[Metadata]]:
        """Return the folds of the given rows, which have positive weight, and the metadata for the scorer of each."""
        n_samples, kept = everything.n_rows, everything.weighted_rows()
        split_params, score_params = self._route(params, n_samples, everything.sample_weight)
        splits = self._splits_of(given, kept, n_samples, split_params)
        check_splits(splits)
        return splits, [_rows_of(score_params, kept[test], n_samples) for _, test in splits]

    def _splits_of(self, given: Table, kept: np.ndarray, n_samples: int, params: Metadata) -> Splits:
        """Return the folds of the given rows: see `splits_of`."""
        return splits_of(self.cv, given, kept, n_samples, params, classifier=is_classifier(self))

    @with_warnings_of_caller()
    def _score_by_scorer(self, attributes: dict[str, Any], test: Table, y: Any, params: Metadata) -> float:
        """Return the score of a model with some fitted attributes, on rows with targets y as they were given."""
        fitted = type(self)(**self.get_params(deep=False))  # type: ignore[attr-defined]
        columns = ("n_features_in_",) if test.given is None else ("n_features_in_", "feature_names_in_", "encoding_")
        seen = {name: getattr(self, name) for name in columns if hasattr(self, name)}
        for name, value in {**attributes, **seen}.items():
            setattr(fitted, name, value)
        if "sample_weight" in params:  # without the weights of classes
            params = {**params, "sample_weight": test.to_backend(params["sample_weight"])}
        try:
            return float(check_scoring(fitted, scoring=self.scoring)(fitted, test.as_given(), y, **params))
        except (ValueError, TypeError, AttributeError) as error:
            if not isinstance(self.scoring, str) or isinstance(error, HardThreshError):
                raise  # a function of the user may raise what it likes
            raise InvalidInputError(
                f"scoring={format_value(self.scoring)} does not fit this {type(self).__name__}: {error}; "
                f"{_other_scorers(self.scoring)}"
            ) from error

    def _warm_path(self, problem: Any, candidates: list[int], seed: int, solver: Solver | None = None) -> list[Result]:
        """Return the runs for increasing candidates, each from where the last one ended."""
        settings: Any = self
        return list(
            path(
                problem.objective,
                lambda candidate: problem.with_budget(candidate).constraint,
                candidates,
                solver or settings._solver(problem),
                warm_start=True,
                tol=settings.tol,
                max_iter=settings.max_iter,
                seed=seed,
            )
        )


def _other_scorers(name: str) -> str:
    """Return what to score by instead of a scorer that failed: its forms for several classes, if it has some."""
    forms = [f"{name}_{form}" for form in ("ovr", "ovo", "macro", "weighted") if f"{name}_{form}" in get_scorer_names()]
    some = f"for more than two classes there is {' or '.join(forms)}, or " if forms else ""
    return f"{some}leave scoring out, or give a function of (model, X, y)"


def settings_for_folds(model: Model, *candidates: str) -> Model:
    """Return a copy of an estimator to fit within folds, also in other processes.

    It has neither the folds nor the candidates, of the parameters with these names: any may be given as an iterator,
    which cannot be pickled, and was read before.
    """
    settings = copy(model)
    for name in ("cv", *candidates):
        setattr(settings, name, None)
    return settings


def candidates_of(
    given: Any, most: int, check: Callable[[Any], int], name: str, what: str, least: int = 1
) -> np.ndarray:
    """Return the budgets to compare, increasing: `least` .. `most` by default, and `least` .. K for one number K."""
    if given is None:
        given = range(least, most + 1)
    elif isinstance(given, Integral):
        if check(given) == 0:
            raise InvalidInputError(
                f"{name}=0 leaves nothing to compare: K compares {least} to K, and [0] compares 0 alone"
            )
        given = range(least, check(given) + 1)
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{name} must be a number or {what} to compare, got {format_value(given)}")
    candidates = sorted({check(budget) for budget in given})
    if not candidates:
        raise InvalidInputError(f"{name} is empty; give the {what} to compare, such as range(1, 11)")
    return np.array(candidates)


@with_warnings_of_caller()
def splits_of(cv: Any, table: Table, kept: np.ndarray, n_given: int, params: Metadata, *, classifier: bool) -> Splits:
    """Return the folds as row indices of the table, which holds the `kept` ones of the rows that were given.

    `params` are passed on to the splitter; what has one entry for each given row follows the rows.
    """
    if "groups" not in params and _needs_groups(cv):
        raise InvalidInputError(
            f"cv={type(cv).__name__} needs the group of each row; pass it to fit, as in fit(X, y, groups=...)"
        )
    if hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv.split(_matrix_for(cv, table), table.y, **_rows_of(params, kept, n_given)))
    try:
        splitter = check_cv(cv, table.y, classifier=classifier)
        if cv is None or isinstance(cv, Integral):
            return list(splitter.split(_matrix_for(splitter, table), table.y, **_rows_of(params, kept, n_given)))
    except ValueError as error:
        dropped = n_given - kept.size
        left_out = f"; {dropped} of the {n_given} rows have weight 0 and are left out" if dropped else ""
        raise InvalidInputError(f"cv={format_value(cv)}: {error}{left_out}") from error
    place = np.full(n_given, -1)
    place[kept] = np.arange(kept.size)

    def among_kept(rows: Any) -> np.ndarray:
        rows = np.asarray(rows)
        places = place[rows if rows.size else rows.astype(np.intp)]
        return np.asarray(places[places >= 0])

    try:
        return [(among_kept(train), among_kept(test)) for train, test in splitter.split()]
    except TypeError as error:
        raise InvalidInputError(
            f"cv must be a number of folds, a splitter or pairs (train, test) of indices, got {format_value(cv)}"
        ) from error
    except IndexError as error:
        raise InvalidInputError(f"cv must name rows of X, which has {n_given}: {error}") from error


def _rows_of(params: Metadata, rows: np.ndarray, n_samples: int) -> Metadata:
    """Return metadata for some of the rows: what has one entry per row is indexed, and the rest is passed on."""
    selected: Metadata = _check_method_params(np.empty(n_samples), params, indices=rows)
    return selected


def _matrix_for(splitter: Any, table: Table) -> Any:
    """Return X for a splitter; those of scikit-learn only count its rows, which are not copied for that."""
    if is_of_sklearn(splitter):
        return np.broadcast_to(0.0, (table.n_rows, 1))
    return table.as_given()


def is_of_sklearn(splitter: Any) -> bool:
    """Return whether a splitter is one of scikit-learn's."""
    return type(splitter).__module__.startswith("sklearn.")


def _needs_groups(cv: Any) -> bool:
    """Return whether a splitter asks for the groups of the rows, as scikit-learn's group splitters do."""
    split = getattr(get_routing_for_object(cv), "split", None)
    return split is not None and split.requests.get("groups") is True


def check_splits(splits: Splits) -> None:
    """Check that there are folds, and that each has rows to train on and to hold out."""
    if not splits:
        raise InvalidInputError("cv gives no folds; give a number of folds >= 2, a splitter or a list of folds")
    for fold, (train, test) in enumerate(splits):
        for part, rows in (("train on", train), ("hold out", test)):
            if rows.size == 0:
                raise InvalidInputError(f"fold {fold} of cv has no rows to {part}")


def check_rule(rule: Any) -> None:
    """Check that a rule of choice is known."""
    if rule not in ("best", "one_standard_error"):
        raise InvalidInputError(f'rule must be "best" or "one_standard_error", got {format_value(rule)}')


def check_without_folds(model: Any, params: Metadata | None = None) -> None:
    """Check that nothing is said about folds to an estimator whose `criterion` fits none.

    Parameters
    ----------
    model : estimator
        The estimator.
    params : dict, optional
        What its `fit` was given for the splitter.

    Raises
    ------
    InvalidInputError
        With the first parameter that is.
    """
    if params:
        name = next(iter(params))
        raise InvalidInputError(f'{name} is for folds, and criterion="{model.criterion}" fits none; leave it out')
    for name, neutral in _ABOUT_FOLDS.items():
        given = getattr(model, name, neutral[0])
        if not (given is None or isinstance(given, str | int)) or given not in neutral:
            raise InvalidInputError(
                f'{name}={format_value(given)} is about folds, and criterion="{model.criterion}" fits none; leave '
                f'{name} out, or use criterion="cv"'
            )


def check_own_settings(model: Any) -> None:
    """Check `ebic_gamma` and `n_features_original`, and that they are left alone where `criterion` has no use for them.

    Parameters
    ----------
    model : estimator
        The estimator; it may have no `n_features_original`.

    Raises
    ------
    InvalidInputError
        With the first that is wrong.
    """
    checked_number("ebic_gamma", model.ebic_gamma, least=0.0, most=1.0)
    if getattr(model, "n_features_original", None) is not None:
        checked_integer("n_features_original", model.n_features_original, least=1)
    defaults = signature(type(model)).parameters
    for name, criteria in _OWN_OF_CRITERIA.items():
        if model.criterion in criteria or name not in defaults:
            continue
        if (given := getattr(model, name)) != defaults[name].default:
            raise InvalidInputError(
                f"{name}={format_value(given)} is for criterion={' or '.join(map(repr, criteria))}, not for "
                f"{model.criterion!r}; leave it out"
            )


def scorer_name(scoring: Any, default: str) -> str:
    """Return the name of a scorer: that of scikit-learn, or of a function."""
    if scoring is None:
        return default
    return str(getattr(scoring, "__name__", scoring))


def forget_comparison(model: Any) -> None:
    """Remove the fitted attributes of a comparison on held-out rows, as a fit by an information criterion has none."""
    for name in _OF_A_COMPARISON:
        model.__dict__.pop(name, None)


def keep_comparison(
    model: Any,
    comparison: Comparison,
    chosen: int,
    name: str,
    scorer: str,
    to_backend: Callable[[np.ndarray], Any] = np.asarray,
) -> int:
    """Set the fitted attributes of a comparison, and return the chosen candidate; warn of fits that did not converge.

    Parameters
    ----------
    model : estimator
        The estimator that gets them.
    comparison : Comparison
        The scores.
    chosen : int
        The position of the chosen candidate.
    name : str
        The parameter that was chosen; its value is kept as ``best_{name}_``.
    scorer : str
        The name of the scores.
    to_backend : callable
        Moves an array to the library and the device of the data.
    """
    best = int(comparison.candidates[chosen])
    model.candidates_, model.scores_ = to_backend(comparison.candidates), to_backend(comparison.scores)
    model.mean_scores_, model.standard_errors_ = to_backend(comparison.mean), to_backend(comparison.standard_error)
    model.one_standard_error_ = int(comparison.candidates[comparison.one_standard_error])
    model.scorer_name_ = scorer
    setattr(model, f"best_{name}_", best)
    reasons = comparison.unconverged
    if reasons:
        warn(
            f"{len(reasons)} of {comparison.scores.size} fits inside the folds did not converge: {reasons[0]}",
            ConvergenceWarning,
        )
    return best
