"""From a value to its JSON form, the node; `hardthresh.storage` describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from math import isfinite
from types import FunctionType, NoneType
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import to_numpy
from hardthresh.core.result import History, Result

from .arrays import ArrayWriter, Node, library_of
from .checking import check_estimator
from .classes import class_name, estimators, is_fitted_attribute, plain_classes, splitters
from .errors import StorageError


class Encoder:
    """Turns values into nodes; `arrays` collects the larger arrays. Every `where` names the value in an error."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()
        self._known = plain_classes()

    def encode(self, value: Any, where: str) -> Node:
        """Return the node of a value."""
        return _OF_TYPE.get(type(value), Encoder._instance)(self, value, where)

    def _itself(self, value: Any, where: str) -> Node:
        return value

    def _float(self, value: float, where: str) -> Node:
        return value if isfinite(value) else {"$": "float", "value": str(value)}

    def _list(self, values: Any, where: str) -> list[Node]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _tuple(self, value: tuple[Any, ...], where: str) -> Node:
        return {"$": "tuple", "items": self._list(value, where)}

    def _range(self, value: range, where: str) -> Node:
        return {"$": "range", "items": [value.start, value.stop, value.step]}

    def _dict(self, value: dict[Any, Any], where: str) -> Node:
        if "$" not in value and all(type(key) is str for key in value):
            return self._parts(value, where)
        return {"$": "dict", "items": [self._list(pair, f"{where}[{pair[0]!r}]") for pair in value.items()]}

    def _history(self, value: History, where: str) -> Node:
        return {"$": "history", "columns": {name: self._array(value[name], f"{where}[{name!r}]") for name in value}}

    def _random_state(self, value: np.random.RandomState, where: str) -> Node:
        return {"$": "randomstate", "state": self.encode(value.get_state(legacy=False), where)}

    def _instance(self, value: Any, where: str) -> Node:
        """Return the node of an array or of an instance of a known class."""
        cls = type(value)
        if isinstance(value, np.generic):
            return {"$": "scalar", "array": self._array(np.asarray(value), where)}
        if is_array_api_obj(value) and not is_dataclass(value):
            return self._array(value, where)
        if class_name(cls) in estimators():
            return self._estimator(value, where)
        if cls in splitters().values():
            return {"$": "splitter", "class": cls.__name__, "settings": self._parts(vars(value), where)}
        if class_name(cls) in self._known:
            return self._plain(value, where)
        instead = "; a schedule can be a Geometric(first, ratio) instead" if isinstance(value, FunctionType) else ""
        raise StorageError(
            f"{where} cannot be stored: it is a {class_name(cls)}, which is neither plain data nor an estimator, a "
            f"Result, a State or a settings object that hardthresh knows (of your own: see hardthresh.core.register)"
            f"{instead}"
        )

    def _plain(self, value: Any, where: str) -> Node:
        """Return the node of a member of an enumeration or of a dataclass."""
        name = class_name(type(value))
        if isinstance(value, Enum):
            return {"$": "enum", "class": name, "name": value.name}
        if isinstance(value, Result):
            value = replace(value, objective=None)  # which holds the data
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return {"$": "object", "class": name, "fields": self._parts(parts, where)}

    def _estimator(self, value: Any, where: str) -> Node:
        check_estimator(value)  # what is saved can be loaded
        return {
            "$": "estimator",
            "class": class_name(type(value)),
            "parameters": self._parts(value.get_params(deep=False), where),
            "fitted": self._parts({k: part for k, part in vars(value).items() if is_fitted_attribute(k)}, where),
        }

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
    NoneType: Encoder._itself,
    bool: Encoder._itself,
    int: Encoder._itself,
    str: Encoder._itself,
    float: Encoder._float,
    list: Encoder._list,
    tuple: Encoder._tuple,
    range: Encoder._range,
    dict: Encoder._dict,
    History: Encoder._history,
    np.random.RandomState: Encoder._random_state,
}
