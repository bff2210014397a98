"""The facts about how the size of a fitted estimator was chosen, for summaries, charts and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardthresh.arrays import double, to_numpy
from hardthresh.selection.grid import standard_error

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One score on held-out rows.

    Attributes
    ----------
    key, name : str
        Its name, as `held_out_scores_` has it and in words.
    value : float
        Of the model; NaN where it is not defined.
    without : float or None
        Of the mean of the held-out targets, which needs no features, or if the predictions are exact, of the folds'
        models without features; None where the mean has no such score.
    """

    key: str
    name: str
    value: float
    without: float | None

    @property
    def lower_is_better(self) -> bool:
        """Whether it is a loss."""
        return self.key not in _GAINS


@dataclass(frozen=True, slots=True)
class Model:
    """One of the models of which an estimator is the average.

    Attributes
    ----------
    k : int
        Its number of features or groups.
    ridge : float
        Its ridge.
    weight : float
        Its weight in the average.
    """

    k: int
    ridge: float
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Bins of held-out rows by their prediction.

    Attributes
    ----------
    predicted, observed : str
        The mean prediction and the mean target, in words.
    bins : ndarray of shape (n_bins, 3)
        The mean prediction, the mean target and the weight of each bin; has no empty bins.
    """

    predicted: str
    observed: str
    bins: Vector


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
        Positions of the chosen k, the k with the best mean, and the smallest k within one standard error of it. Where
        models are averaged, the chosen one is the best single model.
    unit : {"feature", "group", "rank", "edge"}
        The unit that k counts.
    null, null_error : float or None
        The mean score of the models of the folds without features, and its standard error; None if it was not compared.
    found : bool
        Whether some number predicts better than none.
    p_value : float or None
        That of the test whether it does, if there was one.
    extended : bool
        Whether the range of k was extended because the best was near its end.
    ridge : float or None
        The ridge of the chosen k, if ridges were compared. The scores of another k are those with its best ridge.
    ridges : tuple of float
        The ridges that were compared, increasing.
    models : tuple of Model
        The models of which the estimator is the average, largest weight first; empty if it is a single model.
    held_out : tuple of Score
        The scores of the predictions of all held-out rows; empty if there are none, or if the model has no features.
    calibrations : tuple of Calibration
        How predictions of held-out rows agree with their targets: of one output or two classes one, of several outputs
        or classes one for each; empty where predictions are no means.
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
    unit: str
    null: float | None
    null_error: float | None
    found: bool
    p_value: float | None
    extended: bool
    ridge: float | None
    ridges: tuple[float, ...]
    models: tuple[Model, ...]
    held_out: tuple[Score, ...]
    calibrations: tuple[Calibration, ...]

    @property
    def threshold(self) -> float:
        """The worst score that is within one standard error of the best."""
        slack = float(self.error[self.best])
        return float(self.mean[self.best]) + (slack if self.lower_is_better else -slack)

    @property
    def symbol(self) -> str:
        """Short name of a candidate."""
        return "rank" if self.unit == "rank" else "k"

    @property
    def role(self) -> str:
        """What the chosen k is for the final model."""
        return "best single model" if self.models else "chosen"

    @property
    def best_with_features(self) -> int:
        """Position of the k with the best mean, but not 0, unless that is the only one."""
        first = int(self.k[0] == 0 and len(self.k) > 1)
        scores = self.mean[first:]
        return first + int(np.argmin(scores) if self.lower_is_better else np.argmax(scores))


MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
    "r2": "R²",
    "d2_log_loss_score": "share of deviance (D²)",
    "neg_mean_poisson_deviance": "mean Poisson deviance",
    "neg_mean_tweedie_deviance": "mean Tweedie deviance",
}
"""Scorers of scikit-learn in words, where these are not their names."""

HELD_OUT = {
    "r2": "R²",
    "d2": "share of deviance (D²)",
    "roc_auc": "area under the ROC curve",
    "mean_poisson_deviance": "mean Poisson deviance",
    "mean_tweedie_deviance": "mean Tweedie deviance",
}
"""Scores on held-out rows in words, where these are not their names."""


_GAINS = ("r2", "d2", "roc_auc", "concordance", "accuracy", "balanced_accuracy")
"""The scores on held-out rows that are larger for better predictions."""
_LEAST_LEFT = 1e-12
"""Below this share of the loss, 1 less it has fewer than the three correct digits that are shown."""


def output_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the outputs of a fitted model: those of the columns of y, or else their places."""
    given = getattr(estimator, "output_names_", None)
    if given is not None:
        return tuple(str(name) for name in given)
    return tuple(f"output {c}" for c in range(len(np.atleast_2d(double(estimator.coef_)))))


def unit_of(estimator: Any) -> str:
    """Return the unit of k: a feature, a group of features, a rank, or an edge."""
    if hasattr(estimator, "best_rank_"):
        return "rank"
    if hasattr(estimator, "n_edges_"):
        return "edge"
    return "group" if hasattr(estimator, "groups_") else "feature"


def budget_of(estimator: Any) -> int:
    """Return the number of features, groups or edges, or the rank, that the model may use."""
    name = "n_nonzero_groups" if hasattr(estimator, "groups_") else "n_nonzero_coefs"
    for chosen in ("best_rank_", "best_n_edges_", f"best_{name}_"):
        if hasattr(estimator, chosen):
            return int(getattr(estimator, chosen))
    asked = None if hasattr(estimator, "scores_") else getattr(estimator, name, None)
    return int(getattr(estimator, f"{name}_") if asked is None else asked)


def was_searched(estimator: Any) -> bool:
    """Return whether k was searched, so that not all numbers between those that were compared were tried."""
    k = getattr(estimator, "n_nonzero_groups" if hasattr(estimator, "groups_") else "n_nonzero_coefs", None)
    return isinstance(k, str) and k == "search"


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
    k = to_numpy(estimator.candidates_).astype(np.int64)
    order = np.argsort(k)
    folds, mean, error = (scores[order] for scores in _scores(estimator))
    best = int(np.argmax(mean))
    null = double(estimator.null_scores_) if hasattr(estimator, "null_scores_") else None
    p_value = float(getattr(estimator, "null_p_value_", np.nan))
    models = tuple(
        Model(int(model.n_nonzero), float(model.alpha), float(model.weight))
        for model in getattr(estimator, "models_", ())
    )
    ridges = double(estimator.alphas_).tolist() if hasattr(estimator, "grid_scores_") else []
    has_features = to_numpy(getattr(estimator, "support_", np.empty(0))).size > 0
    bins = double(getattr(estimator, "calibration_", np.empty((0, 3))))
    return CrossValidation(
        measure=MEASURES.get(name, name.removeprefix("neg_").replace("_", " ")),
        lower_is_better=lower_is_better,
        k=k[order],
        folds=sign * folds,
        mean=sign * mean,
        error=error,
        chosen=position_of(k[order], budget_of(estimator), best),
        best=best,
        sparsest=position_of(k[order], int(estimator.one_standard_error_), best),
        unit=unit_of(estimator),
        null=None if null is None else sign * float(np.mean(null)),
        null_error=None if null is None else float(standard_error(null)),
        found=bool(getattr(estimator, "found_", True)),
        p_value=None if np.isnan(p_value) else p_value,
        extended=bool(getattr(estimator, "range_extended_", False)),
        ridge=float(estimator.alpha_) if ridges else None,
        ridges=tuple(ridges),
        models=models if len(models) > 1 else (),
        held_out=_held_out(estimator, bins) if has_features else (),
        calibrations=_calibrations(estimator, bins),
    )


def _calibrations(estimator: Any, bins: Vector) -> tuple[Calibration, ...]:
    """Return the bins of each output or class, without empty ones.

    The targets of decision values are -1 and 1, and their mean is what a decision value between these estimates.
    """
    if not bins.size:  # as of tables in blocks
        return ()
    each = bins[None] if bins.ndim == 2 else bins
    names = [str(label) for label in getattr(estimator, "classes_", ())]
    observed = "observed share"
    if not names:
        predicted = ["target"] if len(each) == 1 else list(output_names(estimator))
        observed = "observed mean"
    elif _decides(estimator):
        predicted = ["decision value, cut at -1 and 1"]
        observed = f"mean of -1 for {names[0]}, 1 for {names[1]},"
    elif hasattr(estimator, "thresholds_"):
        predicted = [f"probability of a class above {name}" for name in names[:-1]]
    else:
        predicted = [f"probability of {name}" for name in (names[1:] if len(each) == 1 else names)]
    filled = [part[part[:, 2] > 0] for part in each]
    return tuple(
        Calibration(f"predicted {one}", observed, part)
        for one, part in zip(predicted, filled, strict=True)
        if len(part)
    )


def _decides(estimator: Any) -> bool:
    """Return whether it predicts classes by decision values, without probabilities."""
    return hasattr(estimator, "classes_") and not estimator._loss.multiplies


def position_of(k: NDArray[np.int64], size: int, best: int) -> int:
    """Return the position of a size among the candidates; that of the best one if it is none of them, such as 0."""
    return int(np.flatnonzero(k == size)[0]) if np.any(k == size) else best


def _scores(estimator: Any) -> tuple[Vector, Vector, Vector]:
    """Return the scores of the folds for each candidate, their means, and the standard errors of these.

    Where ridges were compared too, each candidate has its best one, but the chosen candidate has the chosen one.
    """
    if not hasattr(estimator, "grid_scores_"):
        scores = estimator.scores_, estimator.mean_scores_, estimator.standard_errors_
        folds, mean, error = (double(given) for given in scores)
        return folds, mean, error
    grid = double(estimator.grid_scores_)
    ridge = np.argmax(grid.mean(axis=2), axis=1)
    chosen = to_numpy(estimator.candidates_) == budget_of(estimator)
    ridge[chosen] = np.argmin(np.abs(double(estimator.alphas_) - estimator.alpha_))
    folds = grid[np.arange(len(grid)), ridge]
    return folds, folds.mean(axis=1), standard_error(folds)


def _held_out(estimator: Any, bins: Vector) -> tuple[Score, ...]:
    """Return scores on held-out rows beside those of the best constant; `bins` are those of the calibration."""
    scores: Mapping[str, float] = getattr(estimator, "held_out_scores_", {})
    shares = [np.nan] if not bins.size else [_mean_target(part) for part in (bins if bins.ndim == 3 else bins[None])]
    if _decides(estimator):  # of targets -1 and 1
        shares = [0.5 * (1.0 + shares[0])]
    if len(shares) == 1:
        shares.append(1.0 - shares[0])
    elif hasattr(estimator, "thresholds_"):  # they are those of the classes above each threshold
        shares = (-np.diff([1.0, *shares, 0.0])).tolist()
    without: dict[str, float | None] = {"r2": 0.0, "d2": 0.0, "roc_auc": 0.5, "concordance": 0.5}
    without |= {"accuracy": max(shares), "balanced_accuracy": 1.0 / len(shares)}
    if getattr(estimator, "offset_used_", False):  # which tells rows apart without features too
        without |= {"roc_auc": np.nan, "concordance": np.nan, "accuracy": np.nan, "balanced_accuracy": np.nan}
    without |= {"calibration_slope": None, "calibration_intercept": None}
    return tuple(
        Score(
            key,
            HELD_OUT.get(key, key.replace("_", " ")),
            float(value),
            without[key] if key in without else _loss_without(estimator, key, float(value)),
        )
        for key, value in scores.items()
    )


def _mean_target(bins: Vector) -> float:
    """Return the mean target of the rows of some bins."""
    filled = bins[bins[:, 2] > 0]
    return float(np.average(filled[:, 1], weights=filled[:, 2]))


def _loss_without(estimator: Any, key: str, loss: float) -> float:
    """Return the loss of the best constant for the held-out rows, of which R2 or D2 is a share.

    If the predictions are so exact that this share is lost in rounding, it is the loss of the models of the folds
    without features, a little larger; NaN if that is not known either.
    """
    scores: Mapping[str, float] = estimator.held_out_scores_
    several = estimator.coef_.ndim == 2 and "r2" in scores  # of which R2 is a mean over outputs, no share
    left = np.nan if several else 1.0 - scores.get("d2", scores.get("r2", np.nan))
    if left > _LEAST_LEFT:
        return loss / left
    if not hasattr(estimator, "null_scores_") or str(estimator.scorer_name_) != f"neg_{key}":
        return np.nan
    return -float(np.mean(double(estimator.null_scores_)))
