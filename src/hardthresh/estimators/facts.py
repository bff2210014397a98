"""The facts about a fitted estimator for summaries, charts and reports.

Besides this file, only `choice_facts` and `run_facts` read attributes of estimators for these purposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardthresh.arrays import double, to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.printed import one_line

from .choice_facts import (
    CrossValidation,
    Vector,
    budget_of,
    cross_validation,
    output_names,
    position_of,
    unit_of,
    was_searched,
)

_LISTED = 6
"""Largest number of outputs, or classes, with columns of their own in tables: more do not fit on a line."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One chosen feature.

    Attributes
    ----------
    index : int
        Its column.
    name : str
        Its name, on one line.
    coefficient : float
        Change of the prediction per unit of the feature; with several outputs the length of the vector of theirs.
    effect : float
        The same per standard deviation, so that features can be compared; per unit if they were not standardised.
    share : float or None
        Share of the folds that choose it at the final k; None without cross-validation.
    requested : bool
        Whether it is in the model because `always_include` asks for it.
    level_of : int or None
        The categorical column of the table that it is a level of; None if it is a column itself.
    outputs : tuple of float
        With several outputs, its effect on each of them.
    column : str
        The name of that categorical column, on one line; empty if it is a column itself.
    inclusion : float or None
        Share of the half-samples that choose it, or the categorical column that it is a level of; None if the model is
        not from a stability selection.
    """

    index: int
    name: str
    coefficient: float
    effect: float
    share: float | None
    requested: bool
    level_of: int | None = None
    outputs: tuple[float, ...] = ()
    column: str = ""
    inclusion: float | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """The models of all numbers that were compared, fitted on all rows.

    Attributes
    ----------
    k : array of int, shape (n_candidates,)
        The numbers, increasing.
    effects : ndarray of shape (n_candidates, n_features)
        The coefficients per standard deviation, or of several outputs the length of these.
    by_output : ndarray of shape (n_outputs, n_candidates, n_features)
        Those of each output, or class, where there are several; else empty.
    chosen : int
        The position of the chosen number.
    mean, error : ndarray of shape (n_candidates,)
        The mean held-out score of these models, of which all have the ridge of the chosen one, and its standard error,
        with the sign of errors reversed; empty without cross-validation.
    """

    k: NDArray[np.int64]
    effects: Vector
    by_output: Vector
    chosen: int
    mean: Vector
    error: Vector


@dataclass(frozen=True, slots=True)
class Facts:
    """A fitted linear model.

    Attributes
    ----------
    kind : str
        The name of its class.
    classes : tuple of str
        The two classes of a classifier, last the one that positive coefficients make likelier; empty for a regression.
    n_features : int
        Number of features to choose from; a categorical column is one.
    features : tuple of Feature
        The chosen features, the largest effect first.
    names : tuple of str
        The names of all features.
    numbered : bool
        Whether the names are numbers, counted from 0, because the columns have no names.
    per : str
        "standard deviation" or "unit": the change of a feature that effects refer to.
    cross_validation : CrossValidation or None
        The choice of k; None if k was given.
    unit : {"feature", "group"}
        The unit that k counts.
    budget : int
        The final k: the number of features or groups that the model may use besides the requested ones.
    criterion : str
        The information criterion that chose k, such as "EBIC"; empty if cross-validation or the user did.
    ranks_only : bool
        Whether that criterion is a heuristic, because the loss has no likelihood.
    multiplies : str
        The quantity that a coefficient multiplies, in words; empty where it adds to the prediction.
    separated : bool
        Whether the features separate the classes of the training rows perfectly.
    criterion_values : ndarray of shape (n_candidates,)
        The criterion of each number that was compared; empty if none chose.
    path : Path or None
        The models of all numbers that were compared; None if k was given.
    outputs : tuple of str
        The names of the outputs, or of the classes, that have coefficients of their own; empty for one vector of them.
    searched : bool
        Whether k was searched, so that not all numbers between those that were compared were tried.
    left_out : tuple of str
        The features that models of the average choose, and that it has not itself.
    """

    kind: str
    classes: tuple[str, ...]
    n_features: int
    features: tuple[Feature, ...]
    names: tuple[str, ...]
    numbered: bool
    per: str
    cross_validation: CrossValidation | None
    unit: str
    budget: int
    criterion: str
    ranks_only: bool
    multiplies: str
    separated: bool
    criterion_values: Vector
    path: Path | None
    outputs: tuple[str, ...]
    searched: bool
    left_out: tuple[str, ...] = ()

    @property
    def listed_outputs(self) -> tuple[str, ...]:
        """The outputs, or classes, that have columns of their own in tables: none of more than fit on a line."""
        return self.outputs if len(self.outputs) <= _LISTED else ()


def read(estimator: Any) -> Facts:
    """Return the facts about a fitted estimator.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    InvalidInputError
        If it does not choose features.
    """
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(estimator, "fit"):
        raise InvalidInputError(
            f"charts and reports of coefficients show fitted models; got {type(estimator).__name__}"
        )
    check_is_fitted(estimator)
    if not (hasattr(estimator, "support_") and hasattr(estimator, "coef_")):
        other = "plot_cv and plot_convergence draw its curves"
        if hasattr(estimator, "statistics_"):
            other = "plot_knockoffs draws its statistics"
        elif hasattr(estimator, "estimator_"):
            other = "its estimator_ may have them"
        raise InvalidInputError(
            f"charts and reports show the coefficients of chosen features; {type(estimator).__name__} does not have "
            f"them: {other}"
        )
    if hasattr(estimator, "learning_curve_"):
        raise InvalidInputError(
            "charts and reports of coefficients show models that saw all of their data; "
            f"{type(estimator).__name__} did not. plot_learning_curve draws how it learned."
        )
    rows = np.atleast_2d(double(estimator.coef_))
    each = rows * double(estimator.scale_)
    coefficients, effects = (rows[0], each[0]) if len(rows) == 1 else (np.linalg.norm(m, axis=0) for m in (rows, each))
    classes = tuple(one_line(str(label)) for label in getattr(estimator, "classes_", ()))
    outputs = () if len(rows) == 1 else classes or tuple(one_line(name) for name in output_names(estimator))
    encoded = hasattr(estimator, "encoding_")
    given = estimator.encoded_feature_names_ if encoded else getattr(estimator, "feature_names_in_", None)
    originals = [f"feature {j}" for j in range(len(coefficients))] if given is None else [str(name) for name in given]
    names = tuple(one_line(name) for name in originals)
    requested = (estimator._always() if encoded else getattr(estimator, "always_include", None)) or ()
    wanted = {originals.index(r) if isinstance(r, str) else int(r) for r in requested}
    shares = getattr(estimator, "selection_frequency_", None)
    known = getattr(estimator, "inclusion_frequencies_", None)
    inclusion = None if known is None else double(known)[estimator._features]
    features = [
        Feature(
            index=j,
            name=names[j],
            coefficient=float(coefficients[j]),
            effect=float(effects[j]),
            share=None if shares is None else float(shares[j]),
            requested=j in wanted,
            outputs=tuple(each[:, j].tolist()) if outputs else (),
            inclusion=None if inclusion is None else float(inclusion[j]),
            **_source(estimator, j) if encoded else {},
        )
        for j in to_numpy(estimator.support_).tolist()
    ]
    chosen = cross_validation(estimator)
    return Facts(
        kind=type(estimator).__name__,
        classes=classes,
        n_features=int(estimator.n_features_in_) if encoded else len(coefficients),
        features=tuple(sorted(features, key=lambda feature: (-abs(feature.effect), feature.index))),
        names=names,
        numbered=given is None,
        per="standard deviation" if estimator.standardize else "unit",
        cross_validation=chosen,
        unit=unit_of(estimator),
        budget=budget_of(estimator),
        criterion=estimator.criterion.upper() if hasattr(estimator, "criterion_path_") else "",
        ranks_only=hasattr(estimator, "criterion_path_") and not estimator._loss.has_likelihood,
        multiplies=estimator._loss.multiplies,
        separated=bool(getattr(estimator, "separated_", False)),
        criterion_values=double(getattr(estimator, "criterion_path_", np.empty(0))),
        path=_path(estimator, chosen),
        outputs=outputs,
        searched=was_searched(estimator),
        left_out=tuple(names[j] for j in _left_out(estimator)),
    )


def _left_out(estimator: Any) -> list[int]:
    """Return the features of the models of an average that it has not itself."""
    models = getattr(estimator, "models_", ())
    used = {j for model in models for j in to_numpy(model.support).tolist()}
    return sorted(used.difference(to_numpy(estimator.support_).tolist()))


def _source(estimator: Any, j: int) -> dict[str, Any]:
    """Return which categorical column an encoded one is a level of, and its name; nothing if it is none."""
    encoding = estimator.encoding_
    if j not in encoding.indicators:
        return {}
    column = int(encoding.features[j])
    names = getattr(estimator, "feature_names_in_", None)
    return {"level_of": column, "column": f"x{column}" if names is None else one_line(str(names[column]))}


def _path(estimator: Any, chosen: CrossValidation | None) -> Path | None:
    """Return the models of all numbers that were compared."""
    if not hasattr(estimator, "coefs_path_"):
        return None
    k = to_numpy(estimator.candidates_).astype(np.int64)
    order = np.argsort(k)
    effects = double(estimator.coefs_path_) * double(estimator.scale_)
    several = effects.ndim == 3 and effects.shape[1] > 1
    by_output = effects[order].transpose(1, 0, 2) if several else np.empty((0, len(k), effects.shape[-1]))
    if effects.ndim == 3:
        effects = effects[:, 0] if effects.shape[1] == 1 else np.linalg.norm(effects, axis=1)
    if chosen is None:
        nothing = np.empty(0)
        return Path(
            k[order], effects[order], by_output, position_of(k[order], budget_of(estimator), 0), nothing, nothing
        )
    mean = double(estimator.mean_scores_)[order] * (-1.0 if chosen.lower_is_better else 1.0)
    error = double(estimator.standard_errors_)[order]
    return Path(k[order], effects[order], by_output, chosen.chosen, mean, error)
