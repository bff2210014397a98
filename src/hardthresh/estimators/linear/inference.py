"""Intervals of the coefficients of chosen features: with the rows that chose them, or with others."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.certificates.effects import robust_errors
from hardthresh.certificates.kinks import model_with_kink
from hardthresh.core.checking import checked_number, without_overflow_warnings
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError, format_value
from hardthresh.core.support import Support
from hardthresh.losses import Loss
from hardthresh.objectives import LinearModel
from hardthresh.objectives.inputs import weighted_rows
from hardthresh.selection.stability import complementary_pairs

from ..base import seed_of
from ..facts import read
from .assessment import AssessedModel
from .criterion import number_of_examples
from .intervals import Inference, Interval
from .null_comparison import are_counts
from .problem import Problem
from .survival_targets import SurvivalTargets


class ModelWithInference(AssessedModel):
    """Base of the models that have intervals of their coefficients. See the concrete classes."""

    @without_overflow_warnings
    def inference(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        kind: str = "refit",
        level: float = 0.95,
        robust: bool | None = None,
        groups: Any = None,
        random_state: Any = None,
    ) -> Inference:
        r"""Return intervals of the coefficients of the chosen features, with what they are valid for.

        With ``kind="refit"`` the rows that chose the features also estimate their coefficients. **After selection
        these are not valid as intervals**: in simulations those of 95 % cover 0 % to 95 % of the coefficients, and
        almost none where the features are noise. With ``kind="split"`` a clone of the estimator chooses features on
        half of the rows, with everything that it chooses by cross-validation or by a criterion, and the other half
        estimates their coefficients. With robust standard errors these intervals are asymptotically valid for the best
        linear predictor of the chosen features, whether their model is right or not; with model-based ones, if it is
        right. They are about 1.6 times as wide, and half of the rows find fewer features: in simulations of 200 rows
        with coefficients of .3, 49 % in the place of 86 %.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as for `certificate`. ``kind="split"`` needs them, because it fits again.
        kind : {"refit", "split"}
            Which rows estimate the coefficients.
        level : float
            The nominal coverage of each interval, in (0, 1).
        robust : bool, optional
            Whether standard errors are those of the sandwich :math:`H^{-1} V H^{-1}`, with V the sum of the squares of
            the gradients of the rows, each divided by one less its leverage (HC3): they hold asymptotically, also if
            the mean or the variance is not that of the model. By default they are used with `groups`, and for a split
            if the loss has one prediction for each row; other losses have model-based ones.
        groups : array, shape (n_samples,), optional
            The group of each row; rows of one group depend on each other. They are in one half, and V has the squares
            of the sums over groups, so that standard errors are robust.
        random_state : int or RandomState, optional
            The seed of the split; by default that of the estimator.

        Returns
        -------
        Inference
            ``print`` it to read it; `to_frame` and `to_dict` return its numbers.

        Raises
        ------
        CapabilityError
            With bounds, which estimates may meet; for a loss with a kink; for robust errors of other than single
            predictions; and for the squared hinge loss without them, because it is no likelihood.
        HardThreshError
            As for `certificate`; and if there are no finite estimates and no ridge.
        ValueError
            For settings out of range, and data that `fit` would refuse, as halves of the rows may be.

        Notes
        -----
        The estimates minimise the loss of the chosen features *without a ridge*. Only where that has no minimiser, as
        where they separate the classes, have they the ridge of the model, and `shrunk` says so. Model-based standard
        errors are those of `hardthresh.certificates.standard_errors`, from the observed second derivatives. Intervals
        have Student's distribution with n - p degrees of freedom where a dispersion is estimated, as for least squares,
        and the normal one otherwise. The dispersion of negative binomial counts and the scale of Huber's loss count as
        known. Those of a split are about the *population* coefficients of the chosen features: their best linear
        predictor, not the effects in a model of all features. A level of a categorical column that the rows for the
        choice do not have counts as none of their levels, and is named. Intercepts are not listed.

        Where columns have long tails, robust errors need more rows: of targets x^2, with x exponential, intervals of
        95 % from 200, 2000 rows cover 75 %, 91 %, and model-based ones 29 %, 25 % (``benchmarks/inference.py``).

        Cost: that of a fit to half of the rows for "split", and little else.

        References
        ----------
        D. R. Cox (1975), A note on data-splitting for the evaluation of significance levels, *Biometrika* 62, 441-444.
        A. Rinaldo, L. Wasserman and M. G'Sell (2019), Bootstrapping and sample splitting for high-dimensional,
        assumption-lean inference, *Annals of Statistics* 47, 3438-3469.
        """
        if kind not in ("refit", "split"):
            raise InvalidInputError(f'kind must be "refit" or "split", got {format_value(kind)}')
        level = checked_number("level", level, above=0.0, below=1.0)
        if groups is not None:
            if robust is False:  # not None, which leaves the choice
                raise InvalidInputError("rows of one group depend on each other; groups need robust errors")
            robust = True
        if kind == "split":
            if X is None or y is None:
                raise InvalidInputError('kind="split" fits again, on half of the rows; give X and y')
            seed = seed_of(self.random_state if random_state is None else random_state)
            return self._split_inference((X, y, sample_weight, offset), level, robust, groups, seed)
        if self._is_about(X, y, sample_weight, offset):
            labels = _labels(groups, X)
            labels = None if labels is None else labels[weighted_rows(sample_weight, _num_samples(X))]
            problem, _, support, _ = self._problem_of(X, y, sample_weight, offset)
        elif groups is not None:
            raise InvalidInputError("groups belong to data; give X and y, too")
        else:
            problem, result = self._untouched_training()
            labels, support = None, result.support
        asked = _Request(kind, level, robust, labels)
        return _intervals(self, problem, support, asked, subject=self._subject())

    def _split_inference(
        self, data: tuple[Any, Any, Any, Any], level: float, robust: bool | None, groups: Any, seed: int
    ) -> Inference:
        """Return the intervals of the features that half of the rows choose, from the other half."""
        X, y, sample_weight, _ = data
        rows, labels, classes = (
            weighted_rows(sample_weight, _num_samples(X)),
            _labels(groups, X),
            self._labels_to_balance(y),
        )
        own, classes = (None if part is None else part[rows] for part in (labels, classes))
        first = _half(rows, classes, own, seed)
        second = np.setdiff1d(rows, first)
        folds = {"groups": None if labels is None else labels[first]}
        with_folds = labels is not None and hasattr(getattr(self, "cv", None), "split")
        try:
            chooser = clone(self).fit(*(_rows_of(part, first) for part in data), **(folds if with_folds else {}))
            unseen = chooser._accept_new_levels(_rows_of(X, second))
            problem, _, support, _ = chooser._problem_of(*(_rows_of(part, second) for part in data))
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{error} (in a half of the rows: another random_state draws other halves)"
            ) from error
        left_out: tuple[str, ...] = ()
        if hasattr(self, "support_"):
            missing = np.setdiff1d(to_numpy(self.support_), to_numpy(chooser.support_))
            left_out = tuple(read(self).names[j] for j in missing.tolist())
        asked = _Request("split", level, robust, None if labels is None else labels[second])
        return _intervals(
            chooser, problem, support, asked, n_chosen=first.size, left_out=left_out, unseen_levels=unseen
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """The arguments of `ModelWithInference.inference`; `groups` has the labels of the rows of the problem only."""

    kind: str
    level: float
    robust: bool | None
    groups: np.ndarray | None


def _intervals(
    model: Any,
    problem: Problem,
    support: Support,
    asked: _Request,
    *,
    n_chosen: int = 0,
    left_out: tuple[str, ...] = (),
    unseen_levels: tuple[str, ...] = (),
    subject: str = "",
) -> Inference:
    """Return the intervals of the coefficients of a support, estimated on the rows of a problem."""
    robust = asked.kind == "split" and _is_pointwise(problem.objective) if asked.robust is None else asked.robust
    _check_inference(problem, robust)
    estimated, w, shrunk = _estimates(problem, support)
    objective, columns = estimated.objective, to_numpy(problem.coordinates(support))
    at, n = objective.evaluate(w), number_of_examples(objective)
    if robust:
        assert isinstance(objective, LinearModel)
        errors = robust_errors(objective, at, support, _multiplicities(objective), asked.groups)
    else:
        errors = estimated.standard_errors(at, support, n)
    freedom = None if objective.loss.unit_dispersion else n - columns.size
    if freedom is not None and asked.groups is not None:
        freedom = np.unique(asked.groups).size - 1.0
    normal = norm if freedom is None else student(max(freedom, 1e-9))
    coef, scale = to_numpy(estimated.coefficients(w)[0]), to_numpy(problem.inverse_scale)
    facts, half = read(model), float(normal.ppf(0.5 + 0.5 * asked.level))
    intervals = []
    for j in to_numpy(problem.features(support)).tolist():
        own = np.atleast_1d(errors[int(np.searchsorted(columns, j))] * scale[j])
        for output, (b, error) in enumerate(zip(np.atleast_1d(coef[..., j]).tolist(), own.tolist(), strict=True)):
            p_value = 2.0 * float(normal.sf(abs(b) / error)) if asked.kind == "split" and error > 0 else nan
            ends = b - half * error, b + half * error
            intervals.append(
                Interval(j, facts.names[j], facts.outputs[output] if facts.outputs else "", b, error, *ends, p_value)
            )
    return Inference(
        kind=asked.kind,
        intervals=tuple(intervals),
        level=asked.level,
        robust=robust,
        n_estimated=int(objective.y.shape[0]),
        n_chosen=n_chosen,
        degrees_of_freedom=freedom,
        shrunk=shrunk,
        left_out=left_out,
        unseen_levels=unseen_levels,
        subject=subject,
    )


def _is_pointwise(objective: Any) -> bool:
    """Return whether the loss has one prediction for each row, so that each row has a gradient of its own."""
    return isinstance(objective, LinearModel) and isinstance(objective.loss, Loss)


def _check_inference(problem: Problem, robust: bool) -> None:
    """Raise `CapabilityError` where estimates have no normal distribution, or the errors asked for are not known."""
    objective, structure = problem.objective, problem.constraint.structure(tuple(problem.objective.shape))
    if isinstance(structure, CoordinateBudget) and structure.bounds is not None:
        raise CapabilityError("estimates that may meet a bound are not normal; fit without positive and bounds")
    if model_with_kink(objective) is not None:
        raise CapabilityError(
            "a loss with a kink has no second derivatives to compute standard errors from; set the smoothing of a "
            "quantile regression, or repeat the fit on bootstrap samples"
        )
    pointwise = _is_pointwise(objective)
    if robust and not pointwise:
        raise CapabilityError("robust standard errors need a loss with one prediction for each row; use robust=False")
    if not robust and pointwise and objective.loss.classifies and not objective.loss.has_likelihood:
        raise CapabilityError(
            f"the {type(objective.loss).__name__} loss is no likelihood; use robust=True, whose errors do not need one"
        )


def _estimates(problem: Problem, support: Support) -> tuple[Problem, Any, bool]:
    """Return the problem without a ridge, its minimiser on a support, and that this is wrong.

    Where that has no minimiser, the problem itself, and that it is right.
    """
    for estimated in (problem.with_ridge(0.0), problem):
        ridge = estimated.objective.l2
        columns = to_numpy(problem.coordinates(support))
        level = float(namespace(ridge).max(ridge)) if ridge.shape else float(ridge)
        points, unconverged = estimated.minimisers([columns], [columns.size], np.array([level]))
        found = points[0, 0]
        like = estimated.objective.null_point()
        w = namespace(like).astype(move(found if found.ndim == 1 else found.T, like), like.dtype)
        at = estimated.objective.evaluate(w)
        if not unconverged and estimated.objective.recession(at, support.indices) is None:
            return estimated, w, estimated is problem
    raise HardThreshError(
        "the chosen features have no finite estimates on these rows, as where they separate the classes; set alpha > 0"
    )


def _multiplicities(objective: Any) -> np.ndarray | None:
    """Return how often each row is repeated, if its weight says that; None for weights of other kinds."""
    given = double(objective.weights) * float(objective.targets.n_examples)
    rounded = np.round(given)
    return rounded if np.allclose(given, rounded, rtol=1e-9, atol=0.0) and are_counts(rounded) else None


def _half(rows: np.ndarray, balanced: np.ndarray | None, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return half of some rows: of rows of each label, if there are labels, or of their groups."""
    if groups is None:
        [(first, _)] = complementary_pairs(rows.size, 1, seed, balanced)
        return np.sort(rows[first])
    numbers = np.unique(groups, return_inverse=True)[1]
    [(first, _)] = complementary_pairs(int(numbers.max()) + 1, 1, seed)
    return rows[np.isin(numbers, first)]


def _labels(groups: Any, X: Any) -> np.ndarray | None:
    """Return the group of each row; None if there are none."""
    labels = None if groups is None else np.asarray(groups)
    if labels is not None and labels.shape != (_num_samples(X),):
        raise InvalidInputError(f"groups has shape {labels.shape}; a label for each row of X is needed")
    return labels


def _rows_of(part: Any, rows: np.ndarray) -> Any:
    """Return some rows of data, targets or what has one entry for each of them."""
    if part is None or isinstance(part, int | float):  # one number for all rows
        return part
    return part.take(rows) if isinstance(part, SurvivalTargets) else _safe_indexing(part, rows)
