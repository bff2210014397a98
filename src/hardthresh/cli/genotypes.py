"""Genotypes of a PLINK .bed file, with the phenotypes and covariates of its samples from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, plural

from .data import Data, Request, listed, refuse_lacking
from .databases import Query
from .tables import read_ids, read_rows, read_table

if TYPE_CHECKING:
    from hardthresh.designs import Bed


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Rows of a table of people in the order of the samples of a .bed file; see `hardthresh.cli.tables.read_table`.

    Attributes
    ----------
    source : Path or Query
        The table.
    rows : polars.DataFrame
        The rows of those samples that have all that is needed.
    samples : array of int
        Which samples these are.
    remarks : tuple of str
        How many samples and rows are left out.
    """

    source: Path | Query
    rows: Any
    samples: np.ndarray
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.source)

    def frame(self) -> Any:
        """Return the rows."""
        return self.rows


def read_genotypes(path: Path, people: tuple[Path | Query, str] | None, request: Request) -> Data:
    """Read a .bed file, with what a table says about its samples.

    Parameters
    ----------
    path : Path
        The .bed file, with a .fam file beside it.
    people : tuple of Path or Query, and str, or None
        The table of the samples, and its format.
    request : Request
        The columns of the table: what to predict and other roles, `id`, and `covariates`; or to predict, the columns
        that a model needs, of the table and of the file.

    Returns
    -------
    Data
        Its X is a `Bed` of the samples that have all that is needed, or to predict, the needed columns as an array.

    Raises
    ------
    InvalidInputError
        Without a .fam file, for ids that are there twice or match none, and as by `read_table`.
    """
    from hardthresh.designs import Bed

    _check(path, people, request)
    bed = Bed(path)
    assert bed.sample_ids is not None
    names = list(request.covariates)
    if request.only is not None:
        known = set(bed.feature_names.tolist())
        names = [name for name in request.only if name not in known]
    table = _without_table(path, bed, names) if people is None else _joined(bed, path, *people, request, names)
    data = table if isinstance(table, Data) else read_table(table, "bed", replace(request, only=names, id=None))
    samples = np.arange(bed.shape[0]) if isinstance(table, Data) else table.samples
    covariates = np.zeros((bed.shape[0], len(names)))
    covariates[samples] = data.X
    polars: Any = import_module("polars")
    frame = polars.DataFrame(covariates, schema=names) if names else None
    known_means = None if request.means is None else _known_means(bed, request.means)
    whole = Bed(path, frame, means=known_means)[samples]
    X: Any = whole if request.only is None else _needed(whole, request.only)
    shown = whole.feature_names.tolist() if request.only is None else request.only
    ids = None if request.learn else bed.sample_ids[samples].tolist()
    remarks = data.remarks if isinstance(table, Data) else (*table.remarks, *data.remarks)
    return replace(
        data, source=str(path), X=X, names=tuple(shown), ids=ids, id_name=request.id or "IID", remarks=remarks
    )


def means_of_chosen(model: Any, X: Any) -> dict[str, float]:
    """Return what missing genotypes of the chosen variants count as, by name; nothing for other data than a `Bed`."""
    means = getattr(X, "means", None)
    if means is None:
        return {}
    first = X.shape[1] - means.size
    return {str(X.feature_names[j]): float(means[j - first]) for j in model.support_.tolist() if j >= first}


def _check(path: Path, people: tuple[Path | Query, str] | None, request: Request) -> None:
    """Refuse options that do not go with a .bed file."""
    if not path.with_suffix(".fam").exists():
        raise InvalidInputError(f"there is no {path.with_suffix('.fam')}, which names the samples of {path.name}")
    if people is None and request.learn:
        raise InvalidInputError(
            f"{path} has no column to predict; add --phenotypes TABLE --id COLUMN --target COLUMN, for a table of its "
            "samples"
        )
    if people is not None and request.id is None:
        raise InvalidInputError(f"add --id COLUMN, the column of {people[0]} with the sample ids of {path.name}")
    unused = {"--drop": request.drop, "--categorical": request.categorical}
    for option, given in unused.items():
        if given and request.learn:
            raise InvalidInputError(f"{option} is for tables; of a .bed file all variants are features, leave it out")
    if request.may_be_missing and request.learn:
        raise InvalidInputError(
            "--impute is for tables; missing genotypes of a .bed file count as the mean of their variant, and samples "
            "without a covariate are left out"
        )


def _without_table(path: Path, bed: Bed, names: Sequence[str]) -> Data:
    """Return all samples, for a model that needs nothing but genotypes."""
    if names:
        refuse_lacking(str(path), names, bed.feature_names)
    return Data(str(path), np.empty((bed.shape[0], 0)))


def _joined(
    bed: Bed, path: Path, source: Path | Query, kind: str, request: Request, covariates: Sequence[str]
) -> Joined:
    """Return the rows of the samples that have a value in all columns that are needed."""
    frame, column = read_rows(source, kind), request.id
    if column not in frame.columns:
        raise InvalidInputError(
            f"{source} has no column {column!r} for the id of samples; there are: {listed(frame.columns)}"
        )
    ids, samples = read_ids(source, kind, frame, frame.columns.index(column)), bed.sample_ids
    assert samples is not None
    fam = path.with_suffix(".fam")
    row_of, place_of = _by_id(ids, f"the column {column!r} of {source}", "row"), _by_id(samples.tolist(), fam, "line")
    found = np.array([place for name, place in place_of.items() if name in row_of], dtype=np.intp)
    if not found.size:
        raise InvalidInputError(
            f"no id in the column {column!r} of {source}, such as {ids[0]!r}, is a sample of {fam}, such as "
            f"{samples[0]!r}; are the ids those of its second column?"
        )
    rows = frame[[row_of[samples[place]] for place in found.tolist()]]
    remarks = [
        f"{plural(count, what)} left out: {why}"
        for count, what, why in (
            (len(samples) - found.size, "sample", f"no row of {source} has its id"),
            (len(ids) - found.size, "row", f"its id is not in {fam}"),
        )
        if count
    ]
    roles = [name for role, name in request.roles.items() if role != "id"]
    for name in dict.fromkeys([*roles, *covariates]):
        if name not in rows.columns:
            continue  # `read_table` says so
        missing = rows[name].is_null()
        missing |= rows[name].is_nan() if str(rows[name].dtype).startswith("Float") else False
        if count := int(missing.sum()):
            remarks.append(f"{plural(count, 'sample')} left out: without a value of {name!r}")
            rows, found = rows.filter(~missing), found[~missing.to_numpy()]
    if not found.size:
        raise InvalidInputError(f"no sample of {fam} is left: {'; '.join(remarks)}")
    return Joined(source, rows, found, tuple(remarks))


def _by_id(ids: Sequence[str], where: object, unit: str) -> dict[str, int]:
    """Return the place of each id, of which no two may be the same."""
    places: dict[str, int] = {}
    for place, name in enumerate(ids):
        if places.setdefault(name, place) != place:
            raise InvalidInputError(
                f"{where} has the id {name!r} in {unit}s {places[name] + 1} and {place + 1}; each sample needs one of "
                "its own"
            )
    return places


def _known_means(bed: Bed, means: Any) -> np.ndarray:
    """Return what missing genotypes of the variants of a model count as; 0 for the others, which are not read."""
    return np.array([means.get(name, 0.0) for name in bed.feature_names.tolist()])


def _needed(bed: Bed, names: Sequence[str]) -> np.ndarray:
    """Return the columns of some names, in their order."""
    places = {name: j for j, name in enumerate(bed.feature_names.tolist())}
    X: np.ndarray = bed[:, [places[name] for name in names]] if names else np.empty((bed.shape[0], 0))
    return X
