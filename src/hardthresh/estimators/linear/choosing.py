"""The base class of linear models that choose columns: the candidate columns, and the problem of choosing k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.errors import CapabilityError, InvalidInputError, warn
from hardthresh.core.threads import serial_blas
from hardthresh.losses import Loss, VectorLoss
from hardthresh.selection.criteria import CRITERIA

from ..base import Scaled, numpy_dtype
from ..folds import check_own_settings
from ..table import Scaling, Table
from .bounds import Bounds, bounds_of
from .columns import ColumnGroups, ColumnLists, are_lists, column_labels, column_lists
from .criterion import Criterion
from .posing import build_problem
from .problem import Problem
from .tabular import TabularModel


class ChoosingModel(TabularModel):
    """Base of the estimators that choose columns, or groups of them, by a loss. See the concrete classes."""

    n_nonzero_coefs: Any
    groups: Any
    n_nonzero_groups: Any
    criterion: str
    ebic_gamma: float
    n_features_original: int | None
    max_nonzero_coefs: int | None
    standardize: bool

    def _loss_for(self, y: Any) -> Loss | VectorLoss:
        """Return the loss of encoded targets: of several predictions for each row, if these have them."""
        return self._loss

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.groups is None and is_given(self.n_nonzero_groups):
            raise InvalidInputError("n_nonzero_groups needs groups, a label for each column; or use n_nonzero_coefs")
        if self.groups is not None and is_given(self.n_nonzero_coefs):
            raise InvalidInputError(
                "n_nonzero_coefs does not go together with groups, which are chosen whole; use n_nonzero_groups"
            )
        if self.positive and self.bounds is not None:
            raise InvalidInputError("positive=True is short for bounds=(0, None); leave one of them out")
        if self.groups is not None and (self.positive or self.bounds is not None):
            given = "positive=True" if self.positive else "bounds"
            raise InvalidInputError(f"{given} does not go together with groups; leave one of them out")
        self._check_criterion()
        check_own_settings(self)
        if self.max_nonzero_coefs is not None:
            checked_integer("max_nonzero_coefs", self.max_nonzero_coefs, least=1)
        if self.max_nonzero_coefs is not None and not is_searched(getattr(self, self._k_name)):
            raise InvalidInputError(
                f'max_nonzero_coefs is the end of the range that {self._k_name}="search" tries; leave it out'
            )

    def _check_criterion(self) -> None:
        """Check that the number of features can be chosen by the criterion of the estimator."""
        validated = f"{type(self).__name__}CV"
        if self.criterion == "cv":
            raise InvalidInputError(f'criterion="cv" is for {validated}, which cross-validates')
        checked_word("criterion", self.criterion, CRITERIA)
        if self.criterion != "ebic" and not self._loss.has_likelihood:
            raise CapabilityError(
                f'the {type(self._loss).__name__} loss has no likelihood for criterion="{self.criterion}"; leave it at '
                f'"ebic", which then only ranks (heuristic), or use {validated}'
            )

    def _criterion(self) -> Criterion:
        """Return the information criterion with its settings."""
        return Criterion(self.criterion, float(self.ebic_gamma), self.n_features_original)

    @property
    def _k_name(self) -> str:
        """The parameter that says how much may be chosen."""
        return "n_nonzero_coefs" if self.groups is None else "n_nonzero_groups"

    def _always(self) -> tuple[int, ...]:
        """Return the always-included columns, of those with a coefficient, as increasing indices."""
        given = self._always_given()
        return tuple(np.flatnonzero(np.isin(self._features, given)).tolist()) if hasattr(self, "encoding_") else given

    def _choices(self) -> tuple[int, str]:
        """Return the number of features or groups to choose from, and which of the two it is."""
        if self.groups is None:
            return int(self.n_features_in_), "features"
        return self._groups().count(self._always()), "groups"

    def _checked_k(self, k: Any) -> int:
        """Return a validated number of non-zeros, or of groups."""
        most, what = self._choices()
        if k is None:
            raise InvalidInputError(
                f'{self._k_name} must be an integer or "auto", got None; "auto" chooses it by an information criterion'
            )
        return self._checked_budget(self._k_name, k, most, f"the number of {what}", otherwise='"auto" or "search"')

    @property
    def _overlapping(self) -> bool:
        """Whether groups are lists of columns, which may overlap."""
        return self.groups is not None and are_lists(self.groups)

    def _groups(self) -> ColumnGroups | ColumnLists:
        """Return the groups of the columns with a coefficient."""
        if not self._overlapping:
            return ColumnGroups(self._group_labels())
        names = [*getattr(self, "feature_names_in_", ())] or None
        return column_lists(self.groups, int(self.n_features_in_), names, self._features)

    def _group_labels(self) -> tuple[Any, ...]:
        """Return the label of each column with a coefficient, None where it is always included.

        Without `groups`, the levels of a categorical column are a group, and so is each other column.
        """
        always, names = self._always_given(), getattr(self, "feature_names_in_", None)
        size = int(self.n_features_in_)
        if self.groups is None:
            given = [f"x{j}" for j in range(size)] if names is None else names
            labels = tuple(None if j in always else label for j, label in enumerate(given))
        else:
            labels = column_labels(self.groups, size, None if names is None else list(names), always)
        return tuple(labels[feature] for feature in self._features)

    def _candidates(self) -> np.ndarray:
        """Return the number of each column of X among the features or groups to choose from; -1 if it is not chosen.

        Lists of columns may overlap; then the columns themselves are counted.
        """
        always, size = self._always_given(), int(self.n_features_in_)
        labels: Sequence[Any] = range(size)
        if self.groups is not None and not self._overlapping:
            names = getattr(self, "feature_names_in_", None)
            labels = column_labels(self.groups, size, None if names is None else list(names), always)
        numbers: dict[Any, int] = {}
        return np.array(
            [
                -1 if j in always or label is None else numbers.setdefault(label, len(numbers))
                for j, label in enumerate(labels)
            ]
        )

    def _bounds(self, table: Table) -> Bounds | None:
        """Return the bounds of the coefficients, in the precision of a table."""
        bounds = (0, None) if self.positive else self.bounds
        names = [*getattr(self, "feature_names_in_", ())] or None
        return bounds_of(bounds, int(self.n_features_in_), names, numpy_dtype(table.X), self._feature_name)

    def _warn_useless_columns(self, columns: Scaled, X: Any) -> None:
        super()._warn_useless_columns(columns, X)
        left_out = np.zeros(0) if self.groups is None else self._groups().left_out(self._always())
        if left_out.size:
            are = "is" if left_out.size == 1 else "are"
            warn(f"{self._listed(left_out, 'ungrouped')} {are} in no group and cannot be chosen")

    def _ridge(self) -> float:
        return self._loss.default_ridge if self.alpha is None else super()._ridge()

    def _loss_of_rows(self) -> Callable[[np.ndarray, np.ndarray, int], Any] | None:
        """Return what makes the loss of a search of some rows from their targets, if that is not the loss of all."""
        return None

    @serial_blas()
    def _problem(self, table: Table, k: int, scaling: Scaling | None = None) -> Problem:
        problem = build_problem(
            table,
            loss=self._loss_for(table.y),
            k=k,
            alpha=self._ridge(),
            always_include=self._always(),
            bounds=self._bounds(table),
            fit_intercept=self.fit_intercept,
            scale=self.standardize,
            name=self._feature_name,
            groups=self._groups() if self.groups is not None or hasattr(self, "encoding_") else None,
            levels=self.encoding_.indicators if hasattr(self, "encoding_") else (),
            scaling=scaling,
            loss_of_rows=self._loss_of_rows(),
        )
        self._check_tiny_columns(problem, table.measured(problem.objective))
        return problem


def is_auto(k: Any) -> bool:
    """Return whether a number of features or groups is to be chosen by a criterion."""
    return isinstance(k, str) and k == "auto"


def is_searched(k: Any) -> bool:
    """Return whether a number of features or groups is to be found by a golden-section search."""
    return isinstance(k, str) and k == "search"


def is_given(k: Any) -> bool:
    """Return whether a number of features or groups is set to anything but its default, here or with `cv`."""
    return not (k is None or is_auto(k))
