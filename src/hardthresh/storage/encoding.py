"""Encoding of values as JSON nodes; `hardthresh.storage` describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from types import FunctionType, NoneType
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import to_numpy
from hardthresh.constraints.supports import MaskedCoordinates
from hardthresh.core.lazy import LazyScalar
from hardthresh.core.result import History, Result

from .arrays import ArrayWriter, Node, library_of
from .classes import check_estimator, is_fitted_attribute, is_splitter, kind_of, known_classes, path_of
from .errors import StorageError
from .pipelines import column_transformer_parts, imputer_parts, is_column_transformer, is_imputer, is_pipeline


class Encoder:
    """Turns values into nodes; `arrays` collects the larger arrays. Every `where` names the value in an error."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()
        self._known = {schema.cls: schema for schema in known_classes().values()}  # the name goes before the path

    def encode(self, value: Any, where: str) -> Node:
        """Return the node of a value."""
        return _OF_TYPE.get(type(value), Encoder._instance)(self, value, where)

    def _list(self, values: Any, where: str) -> list[Node]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _dict(self, value: dict[Any, Any], where: str) -> Node:
        if "$" not in value and all(type(key) is str for key in value):
            return self._parts(value, where)
        return {"$": "dict", "items": [self._list(pair, f"{where}[{pair[0]!r}]") for pair in value.items()]}

    def _history(self, value: History, where: str) -> Node:
        return {"$": "history", "columns": {name: self._array(value[name], f"{where}[{name!r}]") for name in value}}

    def _instance(self, value: Any, where: str) -> Node:
        """Return the node of an array or of an instance of a known class."""
        cls = type(value)
        if isinstance(value, np.generic):
            return {"$": "scalar", "array": self._array(np.asarray(value), where)}
        if is_array_api_obj(value) and not is_dataclass(value):
            return self._array(value, where)
        if is_splitter(cls):
            return {"$": "splitter", "class": cls.__name__, "settings": self._settings(value, where)}
        if is_pipeline(cls):
            return {"$": "pipeline", "steps": self._list([list(step) for step in value.steps], f"{where}.steps")}
        if is_imputer(cls):
            return {"$": "imputer"} | self._parts(imputer_parts(value, where), where)
        if is_column_transformer(cls):
            return {"$": "columns"} | self._parts(column_transformer_parts(value, where), where)
        schema, kind = self._known.get(cls), kind_of(cls)
        if schema is not None and kind is not None:
            head = {"$": kind, "class": schema.name, "version": schema.version}
            return head | _CONTENT[kind](self, value, where)
        instead = "; a schedule can be a Geometric(first, ratio) instead" if isinstance(value, FunctionType) else ""
        raise StorageError(
            f"{where} cannot be stored: it is a {path_of(cls)}, which is neither plain data nor an estimator, a "
            f"Result, a State or a settings object that hardthresh knows (of your own: see hardthresh.core.stored)"
            f"{instead}"
        )

    def _settings(self, splitter: Any, where: str) -> dict[str, Node]:
        """Return the nodes of a splitter's settings; one may be a class, as the KFold of a RepeatedKFold."""
        return {
            name: {"$": "splitter", "class": value.__name__}
            if isinstance(value, type) and is_splitter(value)
            else self.encode(value, f"{where}.{name}")
            for name, value in vars(splitter).items()
        }

    def _object(self, value: Any, where: str) -> Node:
        if isinstance(value, Result):
            value = replace(value, objective=None)  # which holds the data
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return {"fields": self._parts(parts, where)}

    def _estimator(self, value: Any, where: str) -> Node:
        check_estimator(value)  # what is saved can be loaded
        fitted = {name: part for name, part in vars(value).items() if is_fitted_attribute(name)}
        return {"parameters": self._parts(value.get_params(deep=False), where), "fitted": self._parts(fitted, where)}

    def _array(self, value: Any, where: str) -> Node:
        try:
            array = np.asarray(to_numpy(value))
        except (BufferError, RuntimeError, TypeError) as error:
            raise StorageError(
                f"{where} cannot be stored: NumPy has no such array ({error}); convert it first"
            ) from error
        if array.dtype.hasobject or array.dtype.kind == "T":
            return self._texts(array, where)
        try:
            return self.arrays.node(array, library_of(value))
        except TypeError as error:
            raise StorageError(f"{where} cannot be stored: {error}; convert it first") from error

    def _texts(self, array: np.ndarray, where: str) -> Node:
        items = array.ravel().tolist()
        if array.dtype != object or any(type(x) not in (NoneType, bool, int, float, str) for x in items):
            raise StorageError(f"{where} cannot be stored: an array of arbitrary Python objects; convert it first")
        return {"$": "texts", "shape": list(array.shape), "items": self._list(items, where)}

    def _parts(self, values: Mapping[str, Any], where: str) -> dict[str, Node]:
        return {name: self.encode(value, f"{where}.{name}") for name, value in values.items()}


# by the type itself: a class derived from one of these would come back as another
_OF_TYPE: dict[type, Callable[[Encoder, Any, str], Node]] = {
    **dict.fromkeys((NoneType, bool, int, str), lambda encoder, value, where: value),
    float: lambda encoder, value, where: value if isfinite(value) else {"$": "float", "value": str(value)},
    list: Encoder._list,
    tuple: lambda encoder, value, where: {"$": "tuple", "items": encoder._list(value, where)},
    range: lambda encoder, value, where: {"$": "range", "items": [value.start, value.stop, value.step]},
    dict: Encoder._dict,
    History: Encoder._history,
    LazyScalar: lambda encoder, value, where: encoder.encode(value.get(), where),
    MaskedCoordinates: lambda encoder, value, where: encoder.encode(value.plain(), where),
    np.random.RandomState: lambda encoder, value, where: {
        "$": "randomstate",
        "state": encoder.encode(value.get_state(legacy=False), where),
    },
}

_CONTENT: dict[str, Callable[[Encoder, Any, str], Node]] = {
    "enum": lambda encoder, value, where: {"name": value.name},
    "object": Encoder._object,
    "estimator": Encoder._estimator,
}
