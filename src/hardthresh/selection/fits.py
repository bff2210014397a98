"""The fits of a path, with criteria and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_word
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.frames import pandas_for_frames
from hardthresh.core.result import Result

from .criteria import CRITERIA, choice

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Path(Sequence[Result]):
    """The results of a path: a sequence of results with their criteria and a table.

    Parameters
    ----------
    results : iterable of Result
        The fits, such as those that `path` yields, in order.

    Raises
    ------
    InvalidInputError
        If there are no results, or something other than results.

    Notes
    -----
    The object holds all results, which share one objective with its data. Criteria are computed at each call.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.selection import Path, path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 20))
    >>> fits = Path(path(LinearModel(X, X[:, 3] - X[:, 7] + rng.standard_normal(60)), Sparsity, range(5)))
    >>> fits.best("ebic").support, len(fits)
    (Coordinates([3, 7]), 5)
    >>> fits.supports()[:, [3, 7]].tolist()
    [[False, False], [True, False], [True, True], [True, True], [True, True]]

    `hardthresh.report.plot_criterion` draws a criterion:

    >>> from hardthresh.report import plot_criterion
    >>> plot_criterion(fits.sizes, fits.values("bic"), name="BIC").get_xlabel()
    'k, the number chosen'
    """

    results: tuple[Result, ...]

    def __init__(self, results: Iterable[Result]) -> None:
        if not isinstance(results, Iterable):
            raise InvalidInputError(f"a Path holds results, such as path(...) yields, got {format_value(results)}")
        listed = tuple(results)
        if not listed:
            raise InvalidInputError("a Path needs at least one result; give what path(...) yields")
        wrong = next((type(one).__name__ for one in listed if not isinstance(one, Result)), None)
        if wrong is not None:
            raise InvalidInputError(f"a Path holds results, such as path(...) yields, got {wrong}")
        object.__setattr__(self, "results", listed)

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> Path: ...
    def __getitem__(self, place: int | slice) -> Result | Path:
        return Path(self.results[place]) if isinstance(place, slice) else self.results[place]

    def __repr__(self) -> str:
        sizes = self.sizes
        return f"Path of {len(self)} results, {sizes.min()} to {sizes.max()} chosen"

    @property
    def sizes(self) -> np.ndarray:
        """The number of coordinates, or groups, that each result has chosen, shape (n_results,)."""
        return np.array([choice(one)[1] for one in self.results])

    def values(self, criterion: str | Callable[[Result], float] = "ebic") -> np.ndarray:
        """Return a criterion of each result; smaller is better.

        Parameters
        ----------
        criterion : {"ebic", "bic", "aic", "gic"} or callable
            Its name, or a function of a result, such as ``functools.partial(ebic, gamma=0.5)``.

        Returns
        -------
        array, shape (n_results,)

        Raises
        ------
        CapabilityError, InvalidInputError
            As raised by the criterion.
        """
        function = criterion if callable(criterion) else CRITERIA[checked_word("criterion", criterion, CRITERIA)]
        return np.array([float(function(one)) for one in self.results])

    def best(self, criterion: str | Callable[[Result], float] = "ebic") -> Result:
        """Return the result with the smallest criterion, the first of ties; the parameters are those of `values`.

        To search more thoroughly, call `minimize` with its number of features.
        """
        values = self.values(criterion)
        return self.results[int(np.argmin(np.where(np.isnan(values), np.inf, values)))]

    def supports(self) -> np.ndarray:
        """Return which coordinates each result has chosen, including free ones: bool, shape (n_results, ...)."""
        shape = tuple(self.results[0].w.shape)
        chosen = np.zeros((len(self), prod(shape)), dtype=bool)
        for row, one in zip(chosen, self.results, strict=True):
            row[to_numpy(one.support.indices)] = True
        return chosen.reshape(len(self), *shape)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table with a row for each result, as numbers, strings and lists.

        The columns are the size, the objective, the criteria that the loss has, the support, and the reason why the run
        ended.
        """
        columns: dict[str, list[Any]] = {"k": self.sizes.tolist(), "value": [float(one.value) for one in self.results]}
        for name in CRITERIA:
            try:
                columns[name] = self.values(name).tolist()
            except CapabilityError:
                continue  # its objective has no likelihood
        columns["support"] = [to_numpy(one.support.indices).tolist() for one in self.results]
        columns["converged"] = [one.converged for one in self.results]
        columns["message"] = [one.message for one in self.results]
        return columns

    def to_frame(self) -> pandas.DataFrame:
        """Return `to_dict` as a pandas data frame.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        pandas = pandas_for_frames()
        return pandas.DataFrame(self.to_dict())
