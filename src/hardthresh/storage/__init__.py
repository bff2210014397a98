"""Saving and loading without executing anything: one versioned format, JSON with the large arrays beside it.

`save` writes fitted estimators, results and states of runs, and settings (solvers, step rules, constraints, losses,
stopping rules); `load` brings them back. A run that goes on from a loaded state makes the same numbers, bit for bit.

The format, version 1
---------------------
``model.json`` is strict JSON (UTF-8, no ``NaN``):

.. code-block:: text

    {"format": "hardthresh", "format_version": 1,
     "written_by": {"hardthresh": ..., "numpy": ..., "scikit-learn": ...},
     "arrays": null, or {"file": "model-0123456789ab.npz", "sha256": ...},
     "notes": {...},            what the writer wants to remember: plain JSON, not part of the object
     "object": ...}

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
                ``"F"``), ``data`` (flat, in that order); else ``file``, the name of the array in the npz file.
                ``library``, if it was not NumPy's: ``"torch"``, ``"array_api_strict"``, ...
``texts``       ``items``, ``shape``: an array of Python strings, numbers or None
``scalar``      ``array``: a NumPy scalar, as an array of shape ()
``enum``        ``class``, ``name``
``object``      ``class``, ``fields``: a dataclass
``history``     ``columns``: a `History`
``estimator``   ``class``, ``parameters`` (of ``get_params(deep=False)``), ``fitted`` (the attributes that end in ``_``,
                the certificate if it was asked for, and the choice of ``set_output``)
``splitter``    ``class``, ``settings``: a cross-validation splitter of scikit-learn
``randomstate`` ``state``: a ``numpy.random.RandomState``
=============== ======================================================================================================

A class is never imported by its name: the name is looked up among the registered estimators, the enumerations and
dataclasses of hardthresh's own rooms, and the dataclasses of any file that registers a class
(`hardthresh.core.register`). So a class of your own can be stored if its file registers something, and loaded once that
file is imported.

The npz file holds the larger arrays (NumPy's own format, read with ``allow_pickle=False``). Its name contains the hash
of its content, so writing is atomic: first the new arrays, then the JSON by a rename, and only then the old arrays go.
Move the two files together.

Arrays of torch and array_api_strict come back in their library, on the CPU, if it can be imported. Where it cannot,
they come back as NumPy arrays, like those of any other library (CuPy, JAX), and a warning names the library.

The objective of a `Result` holds the data and is not stored; nor are an estimator's other private attributes, callbacks
and metadata requests. Ask a model for its ``certificate()`` before you save it: a loaded one has no data to find it
with.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .decoding import Decoder
from .encoding import Encoder
from .errors import StorageError, reading
from .files import json_path, read_arrays, read_document, write_files

__all__ = ["StorageError", "load", "load_notes", "save"]


def save(obj: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write an object to ``path``, with its large arrays beside it.

    Parameters
    ----------
    obj : estimator, Result, State, or settings (Solver, StepRule, Constraint, Loss, StopRule)
        What to store; also lists, tuples and dictionaries of such things, numbers and arrays.
    path : path ending in ".json"
        An existing file is replaced, in one step: a save that is killed leaves the old model whole.
    notes : mapping, optional
        Anything in plain JSON types to keep with the object, such as the command that made it; see `load_notes`.

    Raises
    ------
    StorageError
        If a part of the object cannot be stored; the message names the part. Also if an estimator is not sound: its
        settings are out of range, or its fitted attributes do not fit together, as after a fit that failed.
    OSError
        If the file cannot be written.

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
    write_files(target, node, encoder.arrays.beside, notes or {})


def load(path: str | os.PathLike[str]) -> Any:
    """Read an object that `save` wrote. Nothing in the file is executed, and no class outside a fixed list is made.

    Parameters
    ----------
    path : path
        The JSON file; its arrays lie beside it.

    Raises
    ------
    StorageError
        If there is no such file, it is damaged or no hardthresh file, its arrays are missing or changed, it comes from
        a newer format, or it holds a class that is not known here, or an estimator that is not sound: its settings
        are out of range, or its fitted attributes do not fit together.

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
    target = Path(path)
    with reading(target):
        document = read_document(target)
        decoder = Decoder(read_arrays(target, document["arrays"]))
        value = decoder.decode(document["object"])
    for library, reason in decoder.arrays.lost.items():
        warnings.warn(f"{target}: arrays of {library} come back as NumPy arrays; {reason}", stacklevel=2)
    return value


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read only the notes that were saved with an object.

    Raises
    ------
    StorageError
        As in `load`.
    """
    target = Path(path)
    with reading(target):
        return dict(read_document(target)["notes"])
