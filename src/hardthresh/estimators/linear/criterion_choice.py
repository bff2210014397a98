"""The estimators with cross-validation where an information criterion chooses in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from warnings import catch_warnings

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_word
from hardthresh.core.errors import CapabilityError, NothingFoundWarning
from hardthresh.selection.criteria import CRITERIA

from ..folds import candidates_of, check_without_folds, forget_comparison
from ..table import Table
from .choosing import is_given, is_searched
from .criterion import CriterionPath
from .grid_models import AveragedModel
from .grid_search import GridSearch
from .problem import Problem, features_of

_OF_A_GRID = (
    "grid_scores_",
    "null_scores_",
    "null_p_value_",
    "range_extended_",
    "selection_frequency_",
    "held_out_scores_",
    "calibration_",
    "_held_out_rows",
)
"""Attributes of fits that compared models on held-out rows."""


class CriterionChoice(GridSearch):
    """Base of the estimators whose `criterion` is "cv", or an information criterion.

    With an information criterion the fit is that of the estimator without cross-validation, but for the numbers of
    features and the ridges that are compared.
    """

    averaging: str
    rule: str
    warm_start: bool = False
    _ridge_name: ClassVar[str] = "alphas"

    def _check_criterion(self) -> None:
        checked_word("criterion", self.criterion, ("cv", *CRITERIA))
        if self.criterion == "cv":
            return
        if not self._loss.has_likelihood:
            raise CapabilityError(
                f'the {type(self._loss).__name__} loss has no likelihood for criterion="{self.criterion}", which would '
                f'compare ridges too; use criterion="cv", or {type(self).__name__[:-2]}, whose "ebic" ranks numbers of '
                "features for one ridge (heuristic)"
            )
        check_without_folds(self)

    def _chooses_k(self) -> bool:
        return True

    def _choose(self, problem: Problem, seed: int) -> tuple[Problem, CriterionPath]:
        """Return the problem with the number of features and the ridge of the least criterion, and the path there."""
        k = getattr(self, self._k_name)
        most, what = self._choices()
        sizes = None
        if k is None or (is_given(k) and not is_searched(k)):
            if k is None:
                self._checked_k(None)  # which says what to give
            sizes = candidates_of(k, most, self._checked_k, self._k_name, f"numbers of {what}", least=0)
        ridges = np.array([self._loss.default_ridge]) if isinstance(self.alphas, str) else self._given_ridges()
        problems = [problem.with_ridge(float(ridge)) for ridge in ridges]
        paths = [self._choose_k(ridged, seed, sizes) for ridged in problems]
        best = int(np.argmin([np.nan_to_num(path.least, nan=np.inf, neginf=-np.inf) for path in paths]))
        self.alpha_, self.alphas_ = float(ridges[best]), ridges
        return problems[best].with_budget(paths[best].best), paths[best]

    def _path_counts(self, X: Any, y: Any, least: int, params: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, int]:
        """Return what the fits of a path choose, with the number of features and the ridge that `fit` chooses."""
        with catch_warnings(action="ignore", category=NothingFoundWarning):
            self.fit(X, y, **params)
        return super()._path_counts(X, y, least, params)

    def _with_own_k(self, problem: Problem, seed: int) -> tuple[Problem, int]:
        return problem, int(self.best_n_nonzero_coefs_)

    def _keep_choice(self, choice: CriterionPath | None, problem: Problem, table: Table, w: Any) -> None:
        super()._keep_choice(choice, problem, table, w)
        assert choice is not None
        forget_comparison(self)
        for name in _OF_A_GRID:
            self.__dict__.pop(name, None)
        coef, intercept = (to_numpy(part) for part in problem.coefficients(w))
        some = np.flatnonzero(features_of(coef))
        self.found_, self.averaging_ = choice.found, "none"
        self.alphas_ = table.to_backend(self.alphas_)
        self.best_model_ = AveragedModel(
            choice.best, self.alpha_, 1.0, some, coef[..., some], intercept if np.ndim(intercept) else float(intercept)
        )
        self.models_: tuple[AveragedModel, ...] = (self.best_model_,)
