"""Decoding of values from JSON nodes, without executing anything; `hardthresh.storage` describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from hardthresh import __version__
from hardthresh.core.result import History
from hardthresh.core.schema import Schema, Successor

from .arrays import ArrayReader, Node
from .classes import Finder, check_estimator, is_fitted_attribute, splitter_class
from .errors import StorageError
from .pipelines import column_transformer_of, imputer_of, pipeline_of

_TWISTER = 624  # numbers in the state of NumPy's MT19937; set_state checks neither their type nor the position


class Decoder:
    """Turns nodes into values; `read` returns the larger arrays. On invented content it raises one of `DAMAGE`."""

    def __init__(self, read: Callable[[str], np.ndarray]) -> None:
        self.arrays = ArrayReader(read)
        self._classes = Finder()

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

    def _texts(self, node: Node) -> np.ndarray:
        texts = np.empty(len(node["items"]), dtype=object)
        texts[:] = self.decode(node["items"])
        return texts.reshape(node["shape"])

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
        schema, fields = self._fields(node, {"name": node["name"]})
        member: Enum = schema.cls[fields["name"]]  # type: ignore[index]
        return member

    def _object(self, node: Node) -> Any:
        schema, fields = self._fields(node, node["fields"])
        return schema.cls(**fields)

    def _estimator(self, node: Node) -> Any:
        parameters = {name: part for name, part in node["parameters"].items() if not is_fitted_attribute(name)}
        fitted_parts = {name: part for name, part in node["fitted"].items() if is_fitted_attribute(name)}
        schema, fields = self._fields(node, parameters | fitted_parts)
        fitted = {name: field for name, field in fields.items() if is_fitted_attribute(name)}
        model = schema.cls(**{name: field for name, field in fields.items() if name not in fitted})
        vars(model).update(fitted)
        check_estimator(model)
        return model

    def _splitter(self, node: Node) -> Any:
        if "settings" not in node:
            raise StorageError(f"it holds a {node['class']} without settings")
        splitter: Any = object.__new__(splitter_class(node["class"]))
        for name, part in node["settings"].items():
            is_class = isinstance(part, dict) and part.get("$") == "splitter" and "settings" not in part
            vars(splitter)[name] = splitter_class(part["class"]) if is_class else self.decode(part)
        return splitter

    def _fields(self, node: Node, parts: Mapping[str, Node]) -> tuple[Schema, dict[str, Any]]:
        """Return the schema of a node's class, and of the node's parts the fields in their present version."""
        schema, version = self._classes.find(node["class"], node["$"]), node.get("version", 1)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise StorageError(f"it holds a {schema.name} of version {version!r}, which is not a version")
        if version > schema.version:
            raise StorageError(
                f"it holds a {schema.name} of version {version!r}; this is hardthresh {__version__}, which reads "
                f"versions up to {schema.version}: upgrade hardthresh"
            )
        fields = schema.upgraded(self._parts(parts), version)
        while isinstance(fields, Successor):
            schema = self._classes.find(fields.name, node["$"])
            fields = schema.upgraded(fields.fields, 1)
        return schema, fields

    def _parts(self, parts: Mapping[str, Node]) -> dict[str, Any]:
        return {name: self.decode(part) for name, part in parts.items()}


_OF_KIND: dict[str, Callable[[Decoder, Node], Any]] = {
    "float": lambda decoder, node: float(node["value"]),
    "tuple": lambda decoder, node: tuple(decoder.decode(node["items"])),
    "range": lambda decoder, node: range(*node["items"]),
    "dict": lambda decoder, node: dict(decoder.decode(node["items"])),
    "array": lambda decoder, node: decoder.arrays.value(node),
    "scalar": lambda decoder, node: decoder.decode(node["array"])[()],
    "texts": Decoder._texts,
    "pipeline": lambda decoder, node: pipeline_of(decoder.decode(node["steps"])),
    "imputer": lambda decoder, node: imputer_of(
        *(decoder.decode(node[part]) for part in ("settings", "rows", "names"))
    ),
    "columns": lambda decoder, node: column_transformer_of(
        *(decoder.decode(node[part]) for part in ("settings", "parts", "names", "output"))
    ),
    "enum": Decoder._enum,
    "object": Decoder._object,
    "history": Decoder._history,
    "estimator": Decoder._estimator,
    "splitter": Decoder._splitter,
    "randomstate": Decoder._random_state,
}
