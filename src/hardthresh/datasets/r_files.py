"""Files of R, read by the package rdata."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hardthresh.core.errors import MissingDependencyError


def read_r(path: Path) -> Any:
    """Return the variables of an .RData file by name: a data frame as a dict of columns, named matrices as DataArrays.

    Raises
    ------
    MissingDependencyError
        If rdata is not installed.
    """
    rdata = _rdata(path)
    return _converted(rdata, rdata.parser.parse_file(path))


def read_expression_set(path: Path, variable: str) -> tuple[Any, Any]:
    """Return the matrix of an ExpressionSet of Bioconductor, and a variable of its samples.

    Only these two objects are converted, because rdata does not know everything that such a file contains.

    Parameters
    ----------
    path : Path
        The .rda file.
    variable : str
        The name of a column of the table of samples.

    Returns
    -------
    matrix : xarray.DataArray, shape (n_probes, n_samples)
    values : array, shape (n_samples,)

    Raises
    ------
    MissingDependencyError
        If rdata is not installed.
    LookupError
        If there is no such matrix or variable.
    """
    rdata = _rdata(path)
    matrices, tables = [], []
    for part in _parts(rdata.parser.parse_file(path).object):
        attributes = _attributes(rdata, part)
        if len(attributes.get("dim", ())) == 2 and "dimnames" in attributes:
            matrices.append(_converted(rdata, part))
        if variable in [str(name) for name in attributes.get("names", ())]:
            tables.append(part.value[[str(name) for name in attributes["names"]].index(variable)])
    if not matrices or not tables:
        raise LookupError(f"no matrix with names, or no variable {variable}")
    return max(matrices, key=lambda matrix: int(matrix.size)), _converted(rdata, tables[0])


def _rdata(path: Path) -> Any:
    try:
        return importlib.import_module("rdata")
    except ImportError as error:
        raise MissingDependencyError(
            f"Reading {path} needs rdata, which is not installed; run 'pip install hardthresh[data]'."
        ) from error


def _converted(rdata: Any, part: Any) -> Any:
    """Convert an object of R; columns of a data frame may be matrices, which no data frame of pandas holds."""
    keep = {"data.frame": lambda value, attributes: value, "AsIs": lambda value, attributes: value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes that rdata does not know, whose plain values are what is wanted
        return rdata.conversion.convert(part, constructor_dict={**rdata.conversion.DEFAULT_CLASS_MAP, **keep})


def _parts(root: Any) -> Iterator[Any]:
    """Yield each object of a file once."""
    waiting, seen = [root], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or not hasattr(part, "info"):
            continue
        seen.add(id(part))
        yield part
        value = part.value
        if isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif hasattr(value, "frame"):
            waiting.extend([value.frame, *([value.hash_table] if value.hash_table is not None else [])])
        waiting.extend(child for child in (part.attributes,) if child is not None)
        if part.referenced_object is not None:
            waiting.append(part.referenced_object)


def _attributes(rdata: Any, part: Any) -> dict[str, Any]:
    """Return the attributes dim, dimnames and names of an object, as far as it has them."""
    found, node = {}, part.attributes
    while node is not None and isinstance(node.value, (list, tuple)) and len(node.value) == 2 and node.tag is not None:
        name = str(_converted(rdata, node.tag))
        if name in ("dim", "dimnames", "names"):
            found[name] = _converted(rdata, node.value[0])
        node = node.value[1]
    return found
