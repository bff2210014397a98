"""The base class of linear models that reads tables: numeric and categorical columns, and their settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value, plural, warn
from hardthresh.designs import Design, Engine
from hardthresh.losses import Loss
from hardthresh.losses.log_link import LogLink

from ..base import (
    SAVES_MEMORY,
    ThresholdingEstimator,
    as_numbers,
    in_precision,
    known_finite,
    per_row,
    row_weights,
)
from ..blocked import BlockTable, as_blocks, is_blocks
from ..frames import called, frame_of
from ..libraries import check_same_namespace
from ..table import Table
from ..validation import check_labels, check_some_above_zero, validated
from .columns import column_indices
from .encoding import Encoding, OpenEncoding, encoding_of, factor_columns, read_codes, without

_LARGEST_SPAN = -float(np.log(np.finfo(np.float64).eps))
"""Beyond it the smallest of two expected values is lost in the rounding of their sum: exposures of 1 and 4.5e15."""


def _warn_of_span(offset: np.ndarray) -> None:
    """Warn of offsets on the scale of a logarithm that span more than logarithms do."""
    least, most = float(offset.min()), float(offset.max())
    if most - least > _LARGEST_SPAN:
        warn(
            f"offset goes from {least:.4g} to {most:.4g}, so that expected values would differ by a factor of "
            f"exp({most - least:.4g}); it is on the scale of the logarithm: of an exposure give offset=np.log(exposure)"
        )


class TabularModel(ThresholdingEstimator):
    """Base of the estimators of tables whose columns, or groups of them, are chosen. See the concrete classes."""

    _loss_type: ClassVar[type[Loss]]
    _takes_outputs: ClassVar[bool] = False
    """Whether targets may have several columns."""
    _takes_blocks: ClassVar[bool] = False
    """Whether the model can be fitted to a table in blocks."""
    _saves_memory: ClassVar[str] = SAVES_MEMORY

    always_include: Any
    positive: bool
    bounds: Any
    categorical_features: Any
    fit_intercept: bool
    output_names_: np.ndarray
    encoding_: Encoding

    @property
    def _loss(self) -> Loss:
        """The loss that predictions are judged by: of a type that is the class's, with this model's parameters."""
        return self._loss_type()

    def _outputs_of(self, y: np.ndarray) -> tuple[int, ...]:
        """Return the shape of the linear predictor of a row, for targets as they were given: () for one number."""
        return ()

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Table:
        """Return training data as validated arrays, with targets as they were given, and remember their columns."""
        return self._validate(X, y, sample_weight, offset, reset=True)

    def _validate(self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool) -> Table:
        """Return data as validated arrays, with targets as they were given; `reset` makes their columns the model's."""
        self._check_settings()
        if is_blocks(X):
            return self._validate_blocks(as_blocks(X, y, sample_weight, offset), reset=reset)
        factors = factor_columns(X, self.categorical_features) if reset else self._factors()
        numbers, targets = self._numbers_and_targets(X, y, factors, reset=reset)
        if reset:
            self._keep_output_names(y)
        if issparse(targets):
            raise InvalidInputError("y is a sparse matrix; give its dense array, y.toarray()")
        y = np.ascontiguousarray(to_numpy(targets))  # the bits of a fit do not depend on the library of y
        weights = row_weights(sample_weight, numbers)
        if self._loss.classifies:
            check_labels(y)
        else:
            self._loss.check_domain(as_numbers(y, "y"), None if weights is None else weights > 0)
        counted = y if weights is None else y[weights > 0]
        outputs = self._outputs_of(counted)
        needs_more_than_0 = reset and isinstance(self._loss, LogLink) and self.fit_intercept
        if needs_more_than_0:
            check_some_above_zero(bool(np.any(as_numbers(counted, "y") > 0)))
        offset = per_row(offset, numbers, "offset", outputs)
        if reset and offset is not None and isinstance(self._loss, LogLink):
            _warn_of_span(offset if weights is None else offset[weights > 0])
        if reset:
            self.__dict__.pop("encoding_", None)  # of a fit to other columns
        if not factors:
            return Table(numbers, y, weights, offset)
        codes = read_codes(X, factors)
        if reset:
            self._check_factors(factors)
            names, size = getattr(self, "feature_names_in_", None), int(self.n_features_in_)
            penalised = set(factors).difference(self._always_given()) if self._has_ridge() else ()
            self.encoding_ = encoding_of(size, codes, weights, names, every_level=penalised)
        else:
            self.encoding_.check_known(codes, getattr(self, "feature_names_in_", None))
        return Table(self.encoding_.encode(numbers, codes), y, weights, offset, given=X)

    def _validate_blocks(self, engine: Engine, *, reset: bool) -> BlockTable:
        """Return a table in blocks, whose columns are numbers; `reset` makes them the model's."""
        if not self._takes_blocks:
            raise CapabilityError(
                f"{type(self).__name__} is not fitted to tables in blocks; SparseLinearRegression, SparseLinearSVC and "
                "the models of classes, counts and amounts are"
            )
        if reset:
            self._check_blocks()
        if not reset and hasattr(self, "encoding_"):
            raise CapabilityError("the model has categorical columns, which tables in blocks do not have; give a frame")
        if not (self.categorical_features is None or isinstance(self.categorical_features, str)):
            raise CapabilityError("categorical columns of a table in blocks are not encoded; give numbers")
        blocks, names = engine.blocks, getattr(self, "feature_names_in_", None)
        if reset:
            for name in ("feature_names_in_", "encoding_", "output_names_", "_is_column"):
                self.__dict__.pop(name, None)  # of a fit to other columns
            self.n_features_in_ = blocks.n_columns
            if blocks.feature_names is not None:
                self.feature_names_in_ = np.asarray(blocks.feature_names, dtype=object)
        elif blocks.feature_names is not None and names is not None:
            wanted, known = names.tolist(), {name: j for j, name in enumerate(blocks.feature_names)}
            if lacking := [name for name in wanted if name not in known]:
                raise InvalidInputError(
                    f"the table does not have {plural(len(lacking), 'column')} of the fit: "
                    f"{', '.join(map(format_value, lacking[:8]))}{' ...' if len(lacking) > 8 else ''}; columns are "
                    "matched by name"
                )
            if wanted != list(blocks.feature_names):
                engine = engine.on_blocks(blocks.select(np.array([known[name] for name in wanted])))
                blocks = engine.blocks
        elif blocks.n_columns != self.n_features_in_:
            raise InvalidInputError(
                f"X has {blocks.n_columns} features, the fit had {self.n_features_in_}; the same columns in the same "
                "order are needed, since they have no names to match them by"
            )
        return BlockTable(blocks, np.empty(0), engine=engine)

    def _check_blocks(self) -> None:
        """Check that a model with these settings is fitted to blocks."""

    def _keep_output_names(self, y: Any) -> None:
        """Set the names of the outputs to those of the columns of y, if it is a data frame of named columns."""
        self.__dict__.pop("output_names_", None)  # of a fit to other targets
        frame = frame_of(y, "y") if self._takes_outputs else None
        if frame is not None and all(isinstance(name, str) for name in frame.columns):
            self.output_names_ = np.asarray(frame.columns, dtype=object)

    def _numbers_and_targets(self, X: Any, y: Any, factors: Collection[int], *, reset: bool) -> Any:
        """Return the columns of X that are not categorical as an array of finite numbers, and the targets."""
        numeric, several = not self._loss.classifies, self._takes_outputs
        try:
            return self._numbers(X, factors, reset=reset, y=y, y_numeric=numeric, multi_output=several)
        except ValueError as error:
            if not str(error).startswith("y should be a 1d array"):
                raise
            other = ", or SparseLinearRegression(...), which takes several columns" if numeric else ""
            raise InvalidInputError(
                f"{error} {type(self).__name__} has one target; fit a model for each column{other}"
            ) from error

    def _numbers(self, X: Any, factors: Collection[int], **options: Any) -> Any:
        """Return the columns of X that are not categorical as an array of finite numbers, and y if it is given."""
        xp = np if isinstance(X, Design) else get_namespace(X)[0]
        numbers = without(X, factors) if factors else None
        return validated(
            self,
            X,
            accept_sparse=("csc", "csr"),
            accept_genotypes=True,
            dtype=(xp.float64, xp.float32),
            ensure_all_finite=not known_finite(X),
            numbers=numbers,
            **options,
        )

    def _check_library(self, X: Any, method: str) -> None:
        """Check that X is of the array library of the fit."""
        if not isinstance(X, Design):
            check_same_namespace(X, self, attribute="coef_", method=method)

    def _numbers_of(self, X: Any) -> Any:
        """Return the columns with a coefficient; those of categorical columns that are not chosen may be anything."""
        factors = self._factors()
        numbers = self._numbers(X, factors, reset=False)
        if not factors:
            return numbers
        codes = read_codes(X, sorted(set(factors).intersection(np.flatnonzero(self._get_support_mask()).tolist())))
        self.encoding_.check_known(codes, getattr(self, "feature_names_in_", None))
        return self.encoding_.encode(numbers, codes)

    def _factors(self) -> tuple[int, ...]:
        """Return the categorical columns of the fit."""
        return tuple(factor.column for factor in self.encoding_.factors) if hasattr(self, "encoding_") else ()

    def _accept_new_levels(self, X: Any) -> tuple[str, ...]:
        """Let categorical columns have levels that were not in the fit; return those of chosen columns of X."""
        if not hasattr(self, "encoding_"):
            return ()
        chosen = set(np.flatnonzero(self._get_support_mask()).tolist())
        new = self.encoding_.new_levels(read_codes(X, sorted(chosen.intersection(self._factors()))))
        self.encoding_ = OpenEncoding(self.encoding_.n_features, self.encoding_.factors)
        names = getattr(self, "feature_names_in_", None)
        return tuple(
            f"{f'x{factor.column}' if names is None else names[factor.column]}={level}" for factor, level in new
        )

    def _has_ridge(self) -> bool:
        """Return whether coefficients are penalised, so that each level of a categorical column can have one."""
        return self._ridge() > 0

    def _check_factors(self, factors: Sequence[int]) -> None:
        """Check that the settings go together with categorical columns."""
        if self.positive or self.bounds is not None:
            names, setting = getattr(self, "feature_names_in_", None), "positive=True" if self.positive else "bounds"
            column = called(factors[0], names)
            raise InvalidInputError(
                f"{setting} does not go together with categorical columns such as {column}, whose coefficients compare "
                "levels; encode them yourself, or leave one of them out"
            )

    def _encode(self, given: Table, *, reset: bool = True) -> Table:
        """Return the table with targets as the loss takes them, all of it in the library of X."""
        return given.encoded(lambda y: in_precision(self._encode_target(y, reset=reset), given.X, "y"))

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        """Return the targets as the loss takes them; with `reset` the model keeps which values there are."""
        return y

    def _decode_target(self, y: Any) -> Any:
        """Return encoded targets as they were given."""
        return y

    def _labels_to_balance(self, y: Any) -> np.ndarray | None:
        """Return the labels of which samples of the rows should have equal shares: classes; None if there are none."""
        return np.asarray(to_numpy(y) if is_array_api_obj(y) else y).ravel() if self._loss.classifies else None

    def _targets_as_given(self, table: Table) -> Any:
        """Return the targets of an encoded table as they were given."""
        return self._decode_target(table.y)

    def _labels(self) -> dict[str, Any]:
        """Return the fitted attributes that `predict` needs besides the coefficients."""
        return {}

    @property
    def encoded_feature_names_(self) -> np.ndarray:
        """The names of the columns of `coef_`, with one name for each encoded level of a categorical column."""
        check_is_fitted(self)
        encoding = getattr(self, "encoding_", Encoding(int(self.n_features_in_), ()))
        return encoding.names(getattr(self, "feature_names_in_", None))

    @property
    def _n_columns(self) -> int:
        """The number of columns with a coefficient."""
        return self.encoding_.n_columns if hasattr(self, "encoding_") else int(self.n_features_in_)

    @property
    def _features(self) -> np.ndarray:
        """For each column with a coefficient, the column of X that it is, or is a level of."""
        return self.encoding_.features if hasattr(self, "encoding_") else np.arange(self.n_features_in_)

    def _column_names(self) -> Sequence[str] | None:
        return self.encoded_feature_names_.tolist() if hasattr(self, "encoding_") else super()._column_names()

    def _always_given(self) -> tuple[int, ...]:
        """Return the always-included columns of X as increasing indices."""
        names = getattr(self, "feature_names_in_", None)
        return column_indices(self.always_include, int(self.n_features_in_), None if names is None else list(names))
