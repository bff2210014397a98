"""Real data sets: the list, and fetchers."""

from __future__ import annotations

import difflib
import textwrap
from typing import Any, Literal, NamedTuple, Protocol, overload

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.registry import RECORDS, Record
from hardthresh.datasets.sources import read_arrays

Subset = Literal["train", "test", "all"]


class DatasetInfo(NamedTuple):
    """One entry of `list_datasets`.

    Attributes
    ----------
    name : str
        The name to pass to `fetch`.
    shape : tuple of int
        Rows and columns of the data.
    task : str
        "classification", "regression" or "survival".
    licence : str
        Licence of the data.
    summary : str
        Description of the data.
    where : str
        "bundled": the package contains it. "fetched": `fetch` downloads it from a public archive. "folder": it is read
        only from a folder or an address of yours, because no public address of it is known.
    """

    name: str
    shape: tuple[int, int]
    task: str
    licence: str
    summary: str
    where: str


def list_datasets() -> tuple[DatasetInfo, ...]:
    """List the data sets that `fetch` knows, in the order of the table.

    Returns
    -------
    tuple of DatasetInfo
        Named tuples ``(name, shape, task, licence, summary, where)``; `shape` is (n_samples, n_features) with all
        subsets.

    Examples
    --------
    >>> from hardthresh.datasets import list_datasets
    >>> info = list_datasets()[0]
    >>> info.name, info.shape, info.task
    ('colon', (62, 2000), 'classification')
    >>> [info.name for info in list_datasets() if info.where == "bundled"]
    ['colon', 'growth', 'actg175']
    """
    return tuple(
        DatasetInfo(record.name, record.shape, record.task, record.licence, record.summary, record.where)
        for record in RECORDS.values()
    )


@overload
def fetch(name: str, *, subset: Subset = ..., return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
@overload
def fetch(name: str, *, subset: Subset = ..., return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...
@overload
def fetch(name: str, *, subset: Subset = ..., return_X_y: bool, as_frame: bool = ...) -> Dataset | tuple[Any, Any]: ...
def fetch(
    name: str, *, subset: Subset = "all", return_X_y: bool = False, as_frame: bool = False
) -> Dataset | tuple[Any, Any]:
    """Fetch a data set by its name.

    The file of the set is searched for in the folder that the environment variable ``HARDTHRESH_DATA`` names, then in
    the cache (``HARDTHRESH_CACHE``, or a folder of the user). If neither has it, pooch downloads it from
    ``HARDTHRESH_DATA_URL``, an https address, where that is set, and otherwise from the archive that publishes the data
    (UCI, OpenML, scikit-learn, or a commit on GitHub), whose file is kept in the cache and converted. Files are checked
    by their SHA-256 every time, where it is known, and what is converted also by its shape, names and sums.

    Parameters
    ----------
    name : str
        One of the names of `list_datasets`.
    subset : {"train", "test", "all"}
        The published split, for the sets that have one (leukemia, news20, blogfeedback). "all" has the training rows
        of news20 and blogfeedback first, and the rows of leukemia in the order of their sample numbers.
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return a pandas DataFrame and Series instead of arrays. Not for sparse data.

    Returns
    -------
    Dataset, or tuple (data, target)
        Dense float64 arrays, or a float64 `scipy.sparse.csr_array` where the data are sparse.

    Raises
    ------
    InvalidInputError
        If the name is unknown, or the set has no such subset.
    DatasetError
        If the file is neither on this machine nor at a known address, the address does not answer, or what it sends is
        not the known data; the message says what to do.
    MissingDependencyError
        If pooch (for a download), rdata (for riboflavin and leukemia) or pandas (for `as_frame`) is not installed.

    Examples
    --------
    >>> from hardthresh.datasets import fetch
    >>> X, y = fetch("colon", return_X_y=True)
    >>> X.shape, y.shape
    ((62, 2000), (62,))
    """
    dataset = _assemble(_record(name), subset)
    if as_frame:
        dataset = dataset.to_pandas()
    return (dataset.data, dataset.target) if return_X_y else dataset


def _record(name: str) -> Record:
    try:
        return RECORDS[name]
    except (KeyError, TypeError):
        close = difflib.get_close_matches(str(name).lower(), RECORDS, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise InvalidInputError(
            f"No data set is called {format_value(name)}. {hint}Known: {', '.join(RECORDS)}."
        ) from None


def _assemble(record: Record, subset: Subset) -> Dataset:
    allowed = ("train", "test", "all") if record.has_split else ("all",)
    if subset not in allowed:
        raise InvalidInputError(f"subset={subset!r}, but {record.name!r} has: {', '.join(map(repr, allowed))}.")
    table = record.table(read_arrays(record))
    rows: Any = slice(None)
    if subset != "all" and table.train is not None:
        rows = table.train if subset == "train" else ~table.train
    return Dataset(
        data=table.data[rows],
        target=table.target[rows],
        feature_names=table.feature_names,
        target_names=table.target_names,
        name=record.name,
        description=record.description,
        licence=record.licence,
        citation=record.citation,
        sample_groups=None if table.sample_groups is None else table.sample_groups[rows],
    )


class Fetcher(Protocol):
    """The signature of `fetch` without the name."""

    @overload
    def __call__(self, *, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
    @overload
    def __call__(self, *, return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...


class SplitFetcher(Protocol):
    """The signature of `fetch` without the name, for a data set with a published split."""

    @overload
    def __call__(self, *, subset: Subset = ..., return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Dataset: ...
    @overload
    def __call__(self, *, subset: Subset = ..., return_X_y: Literal[True], as_frame: bool = ...) -> tuple[Any, Any]: ...


_SUBSET_DOC = """
    subset : {{"train", "test", "all"}}
        The published split.\
"""

_PLACES = {
    "fetched": "It is downloaded on first use.",
    "folder": "It is not downloaded: it is read from a folder or an address of yours.",
}

_FETCHER_DOC = """Fetch the data set {name}: {rows} samples, {columns} features, {task}.

    {summary}

    Parameters
    ----------{subset}
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return a pandas DataFrame and Series instead of arrays. Not for sparse data.

    Returns
    -------
    Dataset, or tuple (data, target)
        Float64 data, and the target as described at `Dataset`.

    See Also
    --------
    fetch : Documents the places of the file and the errors.

    Notes
    -----
    {source}

    {place}

    References
    ----------
    {citation}

    Examples
    --------
    Not run by the tests, because it needs the network or the file:

    >>> from hardthresh.datasets import fetch_{name}
    >>> X, y = fetch_{name}(return_X_y=True)  # doctest: +SKIP
    """


def _document(function: Any, name: str) -> Any:
    record = RECORDS[name]
    wrap = textwrap.TextWrapper(width=116, subsequent_indent=" " * 4, break_on_hyphens=False).fill
    function.__name__ = function.__qualname__ = f"fetch_{name}"
    function.__doc__ = _FETCHER_DOC.format(
        name=name,
        rows=record.shape[0],
        columns=record.shape[1],
        task=record.task,
        summary=wrap(record.summary),
        source=wrap(f"Source: {record.source}. Licence: {record.licence}."),
        place=_PLACES[record.where],
        citation=wrap(record.citation),
        subset=_SUBSET_DOC.format() if record.has_split else "",
    )
    return function


def _fetcher(name: str) -> Fetcher:
    def fetcher(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
        return fetch(name, return_X_y=return_X_y, as_frame=as_frame)

    documented: Fetcher = _document(fetcher, name)
    return documented


def _split_fetcher(name: str) -> SplitFetcher:
    def fetcher(
        *, subset: Subset = "all", return_X_y: bool = False, as_frame: bool = False
    ) -> Dataset | tuple[Any, Any]:
        return fetch(name, subset=subset, return_X_y=return_X_y, as_frame=as_frame)

    documented: SplitFetcher = _document(fetcher, name)
    return documented


fetch_leukemia = _split_fetcher("leukemia")
fetch_news20 = _split_fetcher("news20")
fetch_blogfeedback = _split_fetcher("blogfeedback")
fetch_riboflavin = _fetcher("riboflavin")
fetch_arcene = _fetcher("arcene")
fetch_madelon = _fetcher("madelon")
fetch_musk1 = _fetcher("musk1")
fetch_musk2 = _fetcher("musk2")
fetch_bloodbrain = _fetcher("bloodbrain")
fetch_tecator = _fetcher("tecator")
fetch_communities_crime = _fetcher("communities_crime")
