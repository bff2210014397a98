"""From a JSON node back to its value, without executing anything; `hardthresh.storage` describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from hardthresh.core.result import History

from .arrays import ArrayReader, Node
from .checking import check_estimator
from .classes import estimators, find, is_fitted_attribute, plain_classes, splitters
from .errors import StorageError

_TWISTER = 624  # numbers in the state of NumPy's MT19937; set_state checks neither their type nor the position


class Decoder:
    """Turns nodes into values; `read` returns the larger arrays. On invented content it raises one of `DAMAGE`."""

    def __init__(self, read: Callable[[str], np.ndarray]) -> None:
        self.arrays = ArrayReader(read)

    def decode(self, node: Node) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$" not in node:
            return self._parts(node)
        decode = _OF_KIND.get(node["$"])
        if decode is None:
            raise StorageError(f"it holds a {node['$']!r}, which is unknown")
        return decode(self, node)

    def _float(self, node: Node) -> float:
        return float(node["value"])

    def _tuple(self, node: Node) -> tuple[Any, ...]:
        return tuple(self.decode(node["items"]))

    def _range(self, node: Node) -> range:
        return range(*node["items"])

    def _dict(self, node: Node) -> dict[Any, Any]:
        return dict(self.decode(node["items"]))

    def _array(self, node: Node) -> Any:
        return self.arrays.value(node)

    def _texts(self, node: Node) -> np.ndarray:
        texts = np.empty(len(node["items"]), dtype=object)
        texts[:] = self.decode(node["items"])
        return texts.reshape(node["shape"])

    def _scalar(self, node: Node) -> Any:
        return self.decode(node["array"])[()]

    def _history(self, node: Node) -> History:
        return History({name: self.decode(column).tolist() for name, column in node["columns"].items()})

    def _random_state(self, node: Node) -> np.random.RandomState:
        state = self.decode(node["state"])
        key, position = state["state"]["key"], state["state"]["pos"]
        if key.dtype != np.uint32 or key.shape != (_TWISTER,) or not 0 <= position <= _TWISTER:
            raise StorageError(f"it holds a RandomState at {position!r} of {key.size} numbers; NumPy would crash")
        random_state = np.random.RandomState()
        random_state.set_state(state)
        return random_state

    def _enum(self, node: Node) -> Enum:
        member: Enum = find(plain_classes(), node["class"], Enum)[node["name"]]
        return member

    def _object(self, node: Node) -> Any:
        name = node["class"]
        if name.startswith("hardthresh.estimators."):
            estimators(load=True)
        return find(plain_classes(), name)(**self._parts(node["fields"]))

    def _splitter(self, node: Node) -> Any:
        cls = find(splitters(load=True), node["class"])
        splitter: Any = object.__new__(cls)
        vars(splitter).update(self._parts(node["settings"]))
        return splitter

    def _estimator(self, node: Node) -> Any:
        model = find(estimators(load=True), node["class"])(**self._parts(node["parameters"]))
        fitted = {name: part for name, part in node["fitted"].items() if is_fitted_attribute(name)}
        vars(model).update(self._parts(fitted))
        check_estimator(model)
        return model

    def _parts(self, parts: Mapping[str, Node]) -> dict[str, Any]:
        return {name: self.decode(part) for name, part in parts.items()}


_OF_KIND: dict[str, Callable[[Decoder, Node], Any]] = {
    "float": Decoder._float,
    "tuple": Decoder._tuple,
    "range": Decoder._range,
    "dict": Decoder._dict,
    "array": Decoder._array,
    "texts": Decoder._texts,
    "scalar": Decoder._scalar,
    "enum": Decoder._enum,
    "object": Decoder._object,
    "history": Decoder._history,
    "estimator": Decoder._estimator,
    "splitter": Decoder._splitter,
    "randomstate": Decoder._random_state,
}
