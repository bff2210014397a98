"""Saving and loading of models in a versioned JSON format, without executing code.

`save` writes fitted estimators, results and states of runs, and settings (solvers, step rules, constraints, losses,
stopping rules); `load` reads them. A run that continues from a loaded state returns bitwise identical numbers.

The format, version 3
---------------------
A file is strict JSON (UTF-8, no ``NaN``):

.. code-block:: text

    {"format": "hardthresh", "format_version": 3,
     "written_by": {"hardthresh": ..., "numpy": ..., "scikit-learn": ...},
     "notes": {...},            what the writer wants to remember: plain JSON, not part of the object
     "object": ...,
     "arrays": {"a0": {"dtype": "<f8", "shape": [2000, 2000], "order": "C", "base64": ...}, ...}}

Null, booleans, integers, finite floats (in their shortest form, which is exact), strings, lists and dictionaries with
strings as keys are themselves. Everything else is a dictionary whose key ``"$"`` says what it is:

=============== ======================================================================================================
``"$"``         other keys
=============== ======================================================================================================
``float``       ``value``: ``"nan"``, ``"inf"`` or ``"-inf"``
``tuple``       ``items``
``range``       ``items``: start, stop, step
``dict``        ``items``: pairs; a dictionary with other keys, or with the key ``"$"``
``array``       up to 64 numbers or strings: ``dtype`` (as ``numpy.dtype.str``), ``shape``, ``order`` (``"C"`` or
                ``"F"``), ``data`` (flat, in that order); else ``name``, that of an entry of ``arrays``, which has the
                same keys with the bytes as ``base64`` in place of ``data``. ``library``, if it was not NumPy's:
                ``"torch"``, ``"array_api_strict"``, ...
``texts``       ``items``, ``shape``: an array of Python strings, numbers or None
``scalar``      ``array``: a NumPy scalar, as an array of shape ()
``history``     ``columns``: a `History`
``splitter``    ``class``, ``settings``: a cross-validation splitter of scikit-learn. One of the settings may be a
                class, as the ``KFold`` of a ``RepeatedKFold``: such a node has no ``settings``
``pipeline``    ``steps``: pairs of a name and a node, the steps of a pipeline of scikit-learn
``imputer``     ``settings``, ``rows``, ``names``: a ``SimpleImputer`` of scikit-learn, with two rows that fit it alike,
                and the names of its columns; both null if it is not fitted
``columns``     ``settings``, ``parts``, ``names``, ``output``: a ``ColumnTransformer``. Parts are triples of a name, an
                imputer, ``"passthrough"`` or ``"drop"``, and names of columns; ``names`` are those it was fitted on, or
                null if it is not fitted; ``output`` is the choice of ``set_output``
``randomstate`` ``state``: a ``numpy.random.RandomState``
``enum``        ``class``, ``version``, ``name``
``object``      ``class``, ``version``, ``fields``: a dataclass
``estimator``   ``class``, ``version``, ``parameters`` (of ``get_params(deep=False)``), ``fitted`` (the attributes that
                end in ``_``, the certificate if it was asked for, and the choice of ``set_output``)
=============== ======================================================================================================

``class`` is the name that the class was registered with, "kind/name" as in "solver/iht", or that it was given by
`hardthresh.core.stored`. It says nothing of the file or room of the class, which may move. ``version`` counts the
changes of the fields of the class; those of an earlier version are upgraded when they are loaded.

A class is never imported by its name: the name is looked up in the list of what was registered or named. A class of
your own can be stored if it is on that list, or is a dataclass or enumeration in a file with a class that is; then its
name is that of its module. It can be loaded once that file is imported.

A file may come from a stranger. An array takes no more memory than its bytes in the file; an array whose declared shape
does not agree with these is refused, and so is an estimator whose coefficients are not finite or do not fit together.

A file is written to a draft beside it, which is renamed when it is on disk: at every moment there is one whole model
under the name, however many processes save and load it.

Files of earlier versions are still read. In version 2 and 1 the name of a class was that of its module in hardthresh.
Version 1 had its larger arrays in an npz file beside the JSON: a model that is saved again is one file, and the npz
file can go.

Arrays of torch and array_api_strict come back in their library, on the CPU, if it can be imported. Where it cannot,
they come back as NumPy arrays, like those of any other library (CuPy, JAX), and a warning names the library.

The objective of a `Result` holds the data and is not stored; nor are an estimator's other private attributes, callbacks
and metadata requests. Ask a model for its ``certificate()`` before you save it: a loaded one has no data to find it
with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hardthresh.core.errors import warn

from .decoding import Decoder
from .encoding import Encoder
from .errors import StorageError, reading
from .files import (
    as_path,
    decoded_document,
    encoded_document,
    json_path,
    larger_arrays,
    read_document,
    write_document,
)

__all__ = ["StorageError", "from_bytes", "load", "load_notes", "save", "to_bytes"]


def save(obj: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write an object to a file.

    Parameters
    ----------
    obj : estimator, Result, State, or settings (Solver, StepRule, Constraint, Loss, StopRule)
        The object to store; also lists, tuples and dictionaries of such things, numbers and arrays; and a pipeline of
        scikit-learn whose steps are a `SimpleImputer` and an estimator.
    path : path ending in ".json"
        An existing file is replaced, in one step: a save that is killed leaves the old model whole.
    notes : mapping, optional
        Anything in plain JSON types to keep with the object, such as the command that made it; see `load_notes`.

    Raises
    ------
    StorageError
        If a part of the object cannot be stored; the message names the part. Also if an estimator is not sound: its
        settings are out of range, its fitted attributes do not fit together, as after a fit that failed, or its
        coefficients are NaN or infinite, as after a fit that did not converge.
    OSError
        If the file cannot be written; its ``filename`` is `path`.

    Notes
    -----
    Cost: the file has 4/3 of the bytes of the arrays. 64 MB of them take about half a second.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.solvers import IHT
    >>> from hardthresh.steps import Fixed
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ht.save(IHT(step=Fixed(0.5)), Path(folder) / "solver.json")
    ...     ht.load(Path(folder) / "solver.json")
    IHT(step=Fixed(step=0.5))
    """
    target = json_path(path)
    encoder = Encoder()
    node = encoder.encode(obj, type(obj).__name__)
    write_document(target, node, encoder.arrays.table(), notes or {})


def load(path: str | os.PathLike[str]) -> Any:
    """Read an object that `save` wrote. Nothing in the file is executed, and no class outside a fixed list is made.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object
        The object that was saved.

    Raises
    ------
    StorageError
        If there is no such file, it is damaged or not a hardthresh file, needs more memory than there is, comes from a
        newer format, or holds a class that is not known here, or an estimator that is not sound: its settings are out
        of range, its fitted attributes do not fit together, or its coefficients are NaN or infinite.

    Warns
    -----
    UserWarning
        If arrays of another library come back as NumPy arrays, with the reason.

    Examples
    --------
    >>> import hardthresh as ht
    >>> ht.load("nowhere.json")
    Traceback (most recent call last):
    hardthresh.storage.errors.StorageError: nowhere.json: cannot be read, No such file or directory
    """
    target = as_path(path)
    with reading(target):
        document = read_document(target)
        with larger_arrays(target, document) as read:
            decoder = Decoder(read)
            value = decoder.decode(document["object"])
    for library, reason in decoder.arrays.lost.items():
        warn(f"{target}: arrays of {library} come back as NumPy arrays; {reason}")
    return value


def to_bytes(obj: Any) -> bytes:
    """Return the content of the file that `save` would write, for a database.

    Parameters
    ----------
    obj : object
        What `save` takes.

    Returns
    -------
    bytes
        JSON, in UTF-8.

    Raises
    ------
    StorageError
        As in `save`.

    Examples
    --------
    >>> from hardthresh.solvers import IHT
    >>> from hardthresh.storage import from_bytes, to_bytes
    >>> from_bytes(to_bytes(IHT())) == IHT()
    True
    """
    encoder = Encoder()
    return encoded_document(encoder.encode(obj, type(obj).__name__), encoder.arrays.table(), {})


def from_bytes(content: bytes, where: str = "the content") -> Any:
    """Return the object that `to_bytes` made bytes of; as in `load`, nothing in them is executed.

    Parameters
    ----------
    content : bytes
        What `to_bytes` returned.
    where : str
        What messages call it.

    Returns
    -------
    object
        The object.

    Raises
    ------
    StorageError
        As in `load`.
    """
    path = as_path(where)
    with reading(path):
        document = decoded_document(content)
        with larger_arrays(path, document) as read:
            return Decoder(read).decode(document["object"])


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read only the notes that were saved with an object.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict
        The notes, empty if there are none.

    Raises
    ------
    StorageError
        As in `load`.
    """
    target = as_path(path)
    with reading(target):
        return dict(read_document(target)["notes"])
