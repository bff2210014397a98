"""Cross-validation over tables in blocks: the folds, and the sums over held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from typing import Any

import numpy as np

from hardthresh.core.constraint import CoordinateBudget, coordinate_budget
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.objectives import BlockedClasses
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.block_rows import Point
from hardthresh.objectives.blocked import Blocked
from hardthresh.objectives.column_sums import ColumnSums
from hardthresh.objectives.first_reading import UnknownFolds
from hardthresh.objectives.guess import some_rows
from hardthresh.objectives.held_out_readings import held_out_gains
from hardthresh.objectives.refit_readings import Fits, held_out_losses
from hardthresh.selection import FoldPath
from hardthresh.solvers.working_set.blocked_folds import blocked_fold_paths
from hardthresh.solvers.working_set.blocked_refits import best_constant
from hardthresh.solvers.working_set.generalized_blocked_folds import generalized_blocked_fold_paths

from ..block_labels import counted_rows
from ..block_posing import outputs_of
from ..blocked import BlockTable
from .averages import exponential_average
from .block_class_scores import check_classes_of_folds, held_out_of_classes, scores_of_classes
from .grid_models import FoldFits, Search
from .null_comparison import NullComparison, is_clear
from .problem import Problem, features_of
from .row_splits import HeldOut


@dataclass(frozen=True, slots=True)
class BlockSplits:
    """The folds of a table in blocks; see `block_splits`.

    Attributes
    ----------
    folds : BlockFolds
        The folds.
    outputs : tuple of int
        The shape of the targets of a row.
    """

    folds: BlockFolds
    outputs: tuple[int, ...]

    def described(self, table: Any) -> BlockTable:
        """Return a table with what is known of the targets."""
        described: BlockTable = table.with_outputs(self.outputs)
        return described

    def divided(self, table: Any, pose: Callable[[Any, int], Problem]) -> tuple[BlockTable, Problem]:
        """Return a table with these folds, and its problem: the first reading."""
        table = replace(table, folds=self.folds)
        try:
            problem = pose(table, 0)
        except UnknownFolds:
            table = replace(table, folds=_of_labels(_fold_labels(table.engine)))
            problem = pose(table, 0)
        return table.measured(problem.objective), problem

    def fewest_rows(self, model: Blocked) -> int:
        """Return how many rows the fold with the fewest trains on."""
        rows = [part.n_rows for part in model.parts]
        return sum(rows) - max(rows)

    def training_tables(self, table: BlockTable) -> Iterator[BlockTable]:
        """Yield the rows that each fold trains on."""
        assert table.folds is not None  # since it was divided
        return (table.without(fold) for fold in range(table.folds.count))

    def search(
        self, estimator: Any, table: BlockTable, problem: Problem, sizes: np.ndarray, ridges: np.ndarray, seed: int
    ) -> Search:
        """Return the fits of all sizes with all ridges in each fold and on all rows, and their held-out scores."""
        model: Any = problem.objective
        prediction = estimator._prediction_model(model.loss, table)
        selection = coordinate_budget(problem.constraint, tuple(model.shape))
        if isinstance(model, BlockedClasses):
            check_classes_of_folds(model, estimator.classes_)
        if selection is None:  # of rows of a matrix: each fold searches a model of its own
            tables = [*self.training_tables(table), table]
            *folds, everywhere = (estimator._fold(train, sizes, ridges, seed) for train in tables)
        else:
            paths = _paths(estimator, model, selection, sizes.tolist(), ridges.tolist())
            *folds, everywhere = (FoldFits.of(path, problem, prediction, path.unconverged) for path in paths)
        shape = (sizes.size, ridges.size)
        losses: list[np.ndarray]
        if model.loss.quadratic:
            every = [_of_outputs(model, part, fold.columns, *fold.flat()) for part, fold in enumerate(folds)]
            losses = [0.5 * np.sum([sums.errors(*fit) for sums, fit in own], axis=0) for own in every]
        else:
            values = _held_out_of(model)(model, folds, [fold.flat() for fold in folds])[0]
            losses = [own / part.total for own, part in zip(values, model.parts, strict=True)]
        scores = -prediction.score_scale * np.stack([own.reshape(shape) for own in losses], axis=2)
        return Search(sizes, ridges, folds, everywhere, scores)

    def compared_with_none(
        self, estimator: Any, search: Search, single: tuple[int, int], problem: Problem, table: BlockTable, seed: int
    ) -> NullComparison:
        """Return whether a single model predicts held-out rows better than the null model: one reading.

        Orders of the rows are not drawn over blocks; the gain has to be more than three standard errors.
        """
        if single[0] == 0:
            return NullComparison(False, np.nan)
        model: Any = problem.objective
        if not model.loss.quadratic:
            places = [0, single[0]], [0, single[1]]
            fits = [(fold.coefs[places], fold.intercepts[places]) for fold in search.folds]
            gains = np.sum([own[1] for own in _held_out_of(model)(model, search.folds, fits)[2]], axis=0)
            gain, error = _mean_gain(gains, model.moments.n_rows, model.whole_weights)
            return NullComparison(is_clear(gain, error), np.nan)
        used = [np.flatnonzero(features_of(fold.coefs[single])) for fold in search.folds]
        columns = np.unique(np.concatenate([fold.columns[own] for fold, own in zip(search.folds, used, strict=True)]))
        models = [
            (
                _predictor(np.empty(0, dtype=np.int64), fold.coefs[0, 0][..., :0], fold.intercepts[0, 0]),
                _predictor(
                    np.searchsorted(columns, fold.columns[own]), fold.coefs[single][..., own], fold.intercepts[single]
                ),
            )
            for fold, own in zip(search.folds, used, strict=True)
        ]
        (sums,) = model.engine.sweep(held_out_gains, *model.folds.arguments, models, model.loss, columns=columns)
        gain, error = _mean_gain(sums, model.moments.n_rows, model.whole_weights)
        return NullComparison(is_clear(gain, error), np.nan)

    def average(self, search: Search, candidates: np.ndarray, averaging: str, table: BlockTable) -> np.ndarray:
        """Return the weights of all models in the average, shape (n_sizes, n_ridges)."""
        return exponential_average(search, candidates, self.n_rows(table))

    def n_rows(self, table: BlockTable) -> float:
        """Return how many rows there are: weights that are whole numbers count rows, others do not."""
        model = table.sums
        return float(model.total_weight if model.whole_weights else model.moments.n_rows)

    def held_out(
        self, estimator: Any, search: Search, fits: Sequence[tuple[np.ndarray, np.ndarray]], table: BlockTable
    ) -> HeldOut:
        """Return how well one model for each fold predicts held-out rows, from sums."""
        by_sweep = scores_of_classes if isinstance(table.sums, BlockedClasses) else _scores_by_sweep
        scores = _scores_by_sums if table.sums.loss.quadratic else by_sweep
        return HeldOut(scores(search, fits, table.sums))


def _paths(
    estimator: Any, model: Any, selection: CoordinateBudget, sizes: list[int], ridges: list[float]
) -> list[FoldPath]:
    """Return the paths of all folds, and that of all rows."""
    paths = blocked_fold_paths if model.loss.quadratic else generalized_blocked_fold_paths
    settings = {"intercept": estimator.fit_intercept, "standardize": estimator.standardize, "tol": estimator.tol}
    return paths(model, selection, model.folds.members, sizes, ridges, **settings)


def _held_out_of(model: Any) -> Callable[..., tuple[Any, ...]]:
    """Return what computes the losses of held-out rows from kept columns."""
    return held_out_of_classes if isinstance(model, BlockedClasses) else _held_out


def _held_out(
    model: Any, folds: Sequence[FoldFits], fits: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[list[np.ndarray], ...]:
    """Return what `held_out_losses` says of some fits of each fold: a sweep over kept columns."""
    units, kept = model.units, model.kept
    places, rows, levels, owner = [], [], [], []
    for number, (fold, (coefs, intercepts)) in enumerate(zip(folds, fits, strict=True)):
        factor, shift = kept.change(fold.columns)
        inverse = units.inverse_scale[fold.columns]
        w = coefs / np.where(inverse > 0, inverse, 1.0)  # a constant column has no coefficient
        full = np.zeros((len(coefs), kept.index.size))
        full[:, kept.places(fold.columns)] = w * factor
        rows.append(full)
        levels.append(intercepts + coefs @ units.mean[fold.columns] + w @ shift)
        places += [np.empty(0, dtype=np.int64)] * len(coefs)
        owner.append(np.full(len(coefs), number))
    stacked = Fits(tuple(places), np.concatenate(rows), np.concatenate(levels), np.concatenate(owner))
    sums = kept.sums(held_out_losses, *model.folds.arguments, stacked, model.loss)
    ends = np.cumsum([len(coefs) for coefs, _ in fits])[:-1]
    return tuple(np.split(part, ends) for part in sums)


def _predictor(columns: np.ndarray, coef: np.ndarray, intercept: Any) -> Point:
    """Return the linear predictor of coefficients of shape (s,) or (n_outputs, s)."""
    return Point(columns, np.zeros(columns.size), coef.T, intercept)


def _of_outputs(
    model: Any, part: int, columns: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray
) -> list[tuple[ColumnSums, tuple[np.ndarray, np.ndarray]]]:
    """Return the moments of each output over the rows of a fold, with coefficients and intercepts of some fits."""
    coefs, intercepts = (of[:, None] if coefs.ndim == 2 else of for of in (coefs, intercepts))
    every = model.sums_of(part, columns)
    return [(sums, (coefs[:, output], intercepts[:, output])) for output, sums in enumerate(every)]


def _scores_by_sums(search: Search, fits: Sequence[tuple[np.ndarray, np.ndarray]], model: Any) -> dict[str, float]:
    """Return how well one model for each fold predicts held-out rows, of least squares; means over several outputs."""
    parts = [
        [
            sums.of_prediction(coef[0], float(level[0]))
            for sums, (coef, level) in _of_outputs(model, part, columns, *fit)
        ]
        for part, (columns, fit) in enumerate(zip([fold.columns for fold in search.folds], fits, strict=True))
    ]
    outputs = [reduce(ColumnSums.joined, of_folds) for of_folds in zip(*parts, strict=True)]
    errors = [float(whole.errors(np.ones((1, 1)), np.zeros(1))[0]) for whole in outputs]
    shares = [
        1.0 - error / whole.target_variance if whole.target_variance > 0 else float(error == 0.0)
        for error, whole in zip(errors, outputs, strict=True)
    ]
    prediction = search.everywhere.prediction
    scores = {
        prediction.score_name.removeprefix("neg_"): 0.5 * prediction.score_scale * sum(errors),
        "r2": float(np.mean(shares)),
    }
    return scores if len(model.shape) > 1 else scores | _line(outputs[0], fits, model.moments.with_offset)


def _line(whole: ColumnSums, fits: Sequence[tuple[np.ndarray, np.ndarray]], with_offset: bool) -> dict[str, float]:
    """Return the line of calibration of held-out predictions, from their moments."""
    spread = float(whole.covariance[0, 0])
    slope = float(whole.crossed[0]) / spread if spread > 0 else np.nan
    constant = not any(np.any(coef) for coef, _ in fits)  # the line would be that of one constant for each fold
    if constant or with_offset:  # sums are of targets less the offset
        slope = np.nan
    return {
        "calibration_intercept": whole.target_mean - slope * float(whole.mean[0]),
        "calibration_slope": slope,
    }


def _scores_by_sweep(search: Search, fits: Sequence[tuple[np.ndarray, np.ndarray]], model: Any) -> dict[str, float]:
    """Return how well one model for each fold predicts held-out rows, of any loss."""
    loss, folds = model.loss, search.folds
    constant = best_constant(model)
    both = [(np.concatenate([coef, np.zeros_like(coef)]), np.append(intercept, constant)) for coef, intercept in fits]
    values, right, _ = _held_out(model, folds, both)
    error, null = np.sum(values, axis=0) / model.units.total
    prediction = search.everywhere.prediction
    scores = {
        prediction.score_name.removeprefix("neg_"): prediction.score_scale * float(error),
        "d2": 1.0 - float(error / null) if null > 0 else float(error == 0.0),
    }
    if loss.classifies:
        scores["accuracy"] = float(np.sum(right, axis=0)[0] / model.units.total)
    return scores


def _mean_gain(sums: np.ndarray, n_rows: int, whole: bool) -> tuple[float, float]:
    """Return the mean gain and its standard error, from the sums of `held_out_gains`; see `mean_over_rows`."""
    total, first, second, square, square_first, square_second = sums.tolist()
    mean = first / total
    if whole:
        return mean, np.sqrt(max(second / total - mean * mean, 0.0) / max(total - 1.0, 1.0))
    spread = square_second - 2.0 * mean * square_first + mean * mean * square
    return mean, np.sqrt(max(spread, 0.0) * n_rows / max(n_rows - 1, 1)) / total


def block_splits(estimator: Any, table: BlockTable, params: dict[str, Any]) -> BlockSplits:
    """Return the folds of a table in blocks: those of its fold column, or else as many as `cv` says.

    Without a column the fold of a row is drawn from the seed of the estimator, the number of its block and its place in
    it, so that it is the same with any engine.

    Raises
    ------
    CapabilityError
        For groups of rows, splitters, scorers, solvers and averages that need rows in memory.
    InvalidInputError
        For a number of folds below 2, and a fold column with one value.
    """
    cv, what = estimator.cv, None
    if params:
        what = f"{next(iter(params))} of fit is"
    elif isinstance(cv, bool) or not (cv is None or isinstance(cv, Integral)):
        what = f"cv={format_value(cv)} is"
    if what is not None:
        raise CapabilityError(
            f"{what} not used over blocks, whose rows are not gathered; give the blocks a fold column, the fold in "
            "which each row is held out, or cv as a number of folds"
        )
    if estimator.scoring is not None:
        raise CapabilityError("scorers need rows in memory; over blocks leave scoring out, which scores by the loss")
    if estimator.averaging == "stacking":
        raise CapabilityError('averaging="stacking" needs rows in memory; over blocks use "exponential" or "none"')
    if estimator.groups is not None:
        raise CapabilityError(
            "numbers of groups are not compared in folds of a table in blocks; give n_nonzero_groups to the model "
            "without CV, or rows that fit into memory"
        )
    if estimator.solver != "auto":
        raise CapabilityError('folds of a table in blocks are searched by the default solver; use solver="auto"')
    rows = some_rows(table.engine)
    outputs: tuple[int, ...] = ()
    if estimator._takes_outputs:
        outputs = outputs_of(rows)
        estimator._is_column = outputs == (1,)
    if rows.fold is not None:
        return BlockSplits(_of_labels(np.unique(rows.fold)), outputs)
    count = 5 if cv is None else int(cv)
    if count < 2:
        raise InvalidInputError(f"cv={count}: cross-validation needs at least 2 folds")
    return BlockSplits(BlockFolds(count, estimator._seed()), outputs)


def _of_labels(labels: np.ndarray) -> BlockFolds:
    if labels.size < 2:
        raise InvalidInputError(
            f"the fold column has one value, {format_value(labels[0])}; cross-validation needs at least 2 folds"
        )
    return BlockFolds(labels.size, labels=labels)


def _fold_labels(engine: Any) -> np.ndarray:
    """Return the values of the fold column, sorted: one block is read after another."""
    found = [np.unique(np.asarray(rows.fold)[counted]) for rows, counted in counted_rows(engine)]
    return np.unique(np.concatenate(found))
