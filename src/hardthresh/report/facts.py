"""The facts about a fitted estimator for charts and reports; no other file reads its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardthresh.core.errors import InvalidInputError

Vector = NDArray[np.float64]


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
        Change of the prediction per unit of the feature.
    effect : float
        The same per standard deviation, so that features can be compared; per unit if they were not standardised.
    share : float or None
        Share of the folds that choose it at the final k; None without cross-validation.
    requested : bool
        Whether it is in the model because `always_include` asks for it.
    """

    index: int
    name: str
    coefficient: float
    effect: float
    share: float | None
    requested: bool


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """The scores over k, with the sign of errors reversed: an error is positive, and lower is better.

    Attributes
    ----------
    measure : str
        The score in words.
    lower_is_better : bool
        Whether the score is an error.
    k : ndarray of int, shape (n_candidates,)
        The candidates, increasing.
    folds : ndarray of shape (n_candidates, n_folds)
        The score of each fold.
    mean, error : ndarray of shape (n_candidates,)
        Their means and the standard errors of these.
    chosen, best, sparsest : int
        Positions of the chosen k, the k with the best mean, and the smallest k within one standard error of it.
    effects : ndarray of shape (n_candidates, n_features)
        The coefficients per standard deviation, fitted on all rows, for each k.
    unit : {"feature", "group", "rank", "edge"}
        The unit that k counts.
    """

    measure: str
    lower_is_better: bool
    k: NDArray[np.int64]
    folds: Vector
    mean: Vector
    error: Vector
    chosen: int
    best: int
    sparsest: int
    effects: Vector
    unit: str

    @property
    def threshold(self) -> float:
        """The worst score that is within one standard error of the best."""
        slack = float(self.error[self.best])
        return float(self.mean[self.best]) + (slack if self.lower_is_better else -slack)

    @property
    def symbol(self) -> str:
        """Short name of a candidate."""
        return "rank" if self.unit == "rank" else "k"


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
        Number of features to choose from.
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
    multiplies : str
        The quantity that a coefficient multiplies, in words; empty where it adds to the prediction.
    separated : bool
        Whether the features separate the classes of the training rows perfectly.
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
    multiplies: str
    separated: bool


MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
    "r2": "R²",
    "d2_log_loss_score": "share of deviance explained",
    "neg_mean_poisson_deviance": "mean Poisson deviance",
}


def read(estimator: Any) -> Facts:
    """Return the facts about a fitted estimator.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    InvalidInputError
        If it does not choose features, or has several responses.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    if not hasattr(estimator, "support_"):
        raise InvalidInputError(
            f"charts and reports of coefficients are for models that choose features; {type(estimator).__name__} "
            "does not. plot_cv and plot_convergence draw its curves."
        )
    if hasattr(estimator, "learning_curve_"):
        raise InvalidInputError(
            "charts and reports of coefficients show models that saw all of their data; "
            f"{type(estimator).__name__} did not. plot_learning_curve draws how it learned."
        )
    rows = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    if len(rows) != 1:
        raise InvalidInputError(
            f"charts and reports show models of one response, but coef_ has the shape {rows.shape}; "
            "fit one class against the others and report each."
        )
    coefficients = rows[0]
    scale = np.asarray(estimator.scale_, dtype=np.float64)
    effects = coefficients * scale
    given = getattr(estimator, "feature_names_in_", None)
    originals = [f"feature {j}" for j in range(len(coefficients))] if given is None else [str(name) for name in given]
    names = tuple(one_line(name) for name in originals)
    requested = getattr(estimator, "always_include", None)
    wanted = set() if requested is None else {originals.index(r) if isinstance(r, str) else int(r) for r in requested}
    shares = getattr(estimator, "selection_frequency_", None)
    features = [
        Feature(
            index=j,
            name=names[j],
            coefficient=float(coefficients[j]),
            effect=float(effects[j]),
            share=None if shares is None else float(shares[j]),
            requested=j in wanted,
        )
        for j in map(int, estimator.support_)
    ]
    return Facts(
        kind=type(estimator).__name__,
        classes=tuple(one_line(str(label)) for label in getattr(estimator, "classes_", ())),
        n_features=len(coefficients),
        features=tuple(sorted(features, key=lambda feature: (-abs(feature.effect), feature.index))),
        names=names,
        numbered=given is None,
        per="standard deviation" if estimator.standardize else "unit",
        cross_validation=cross_validation(estimator),
        unit=_unit(estimator),
        budget=_budget(estimator),
        multiplies=estimator._loss.multiplies,
        separated=bool(getattr(estimator, "separated_", False)),
    )


def _unit(estimator: Any) -> str:
    """Return the unit of k: a feature, a group of features, a rank, or an edge."""
    if hasattr(estimator, "best_rank_"):
        return "rank"
    if hasattr(estimator, "n_edges_"):
        return "edge"
    return "group" if hasattr(estimator, "groups_") else "feature"


def _budget(estimator: Any) -> int:
    """Return the number of features, groups or edges, or the rank, that the model may use."""
    name = "n_nonzero_groups" if hasattr(estimator, "groups_") else "n_nonzero_coefs"
    for chosen in ("best_rank_", "best_n_edges_", f"best_{name}_"):
        if hasattr(estimator, chosen):
            return int(getattr(estimator, chosen))
    asked = None if hasattr(estimator, "scores_") else getattr(estimator, name, None)
    return int(getattr(estimator, f"{name}_") if asked is None else asked)


def cross_validation(estimator: Any) -> CrossValidation | None:
    """Return the cross-validation that chose the size of a fitted estimator; None if the size was given.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    if not hasattr(estimator, "scores_"):
        return None
    name = str(estimator.scorer_name_)
    lower_is_better = name.startswith("neg_")
    sign = -1.0 if lower_is_better else 1.0
    k = np.asarray(estimator.candidates_, dtype=np.int64)
    order = np.argsort(k)
    mean = np.asarray(estimator.mean_scores_, dtype=np.float64)[order]
    error = np.asarray(estimator.standard_errors_, dtype=np.float64)[order]
    best = int(np.argmax(mean))
    effects = np.empty((len(k), 0))
    if hasattr(estimator, "coefs_path_"):
        effects = np.asarray(estimator.coefs_path_, dtype=np.float64).reshape(len(k), -1) * estimator.scale_
    return CrossValidation(
        measure=MEASURES.get(name, name.removeprefix("neg_").replace("_", " ")),
        lower_is_better=lower_is_better,
        k=k[order],
        folds=sign * np.asarray(estimator.scores_, dtype=np.float64)[order],
        mean=sign * mean,
        error=error,
        chosen=int(np.flatnonzero(k[order] == _budget(estimator))[0]),
        best=best,
        sparsest=int(np.flatnonzero(k[order] == estimator.one_standard_error_)[0]),
        effects=effects[order],
        unit=_unit(estimator),
    )


def progress(run: Any) -> Mapping[str, Vector]:
    """Return the history of a fitted estimator or of a `Result`."""
    history: Mapping[str, Vector] | None = getattr(run, "history_", getattr(run, "history", None))
    if history is None:
        raise InvalidInputError(
            f"{type(run).__name__} has no history of iterations; plot_learning_curve draws models that buy their "
            "attributes, once they are fitted"
        )
    return history


def learning_curve(run: Any) -> Mapping[str, Vector]:
    """Return the learning curve of a fitted estimator, or of a result, that bought its attributes."""
    curve: Mapping[str, Vector] | None = getattr(run, "learning_curve_", getattr(run, "learning_curve", None))
    if curve is None:
        raise InvalidInputError(
            f"{type(run).__name__} has no learning curve; that is for models that buy their attributes and are fitted, "
            "such as LimitedAttributeRegression"
        )
    if not len(curve["examples"]):
        raise InvalidInputError("the learning curve is empty: nothing was learned yet")
    return curve


def one_line(name: str) -> str:
    """Return a name without line breaks, control characters and marks of the writing direction."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in name).split())
