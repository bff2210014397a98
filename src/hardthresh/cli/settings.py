"""Settings that the models of some losses have besides those of all, such as ``--quantile 0.9``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from hardthresh.core.errors import InvalidInputError, format_value

from .data import Data, listed
from .options import names_of

if TYPE_CHECKING:
    from .task import Task


class FitCommand(TyperCommand):
    """A command whose unknown options may be settings of the model of a loss.

    ``--quantile 0.9`` becomes ``--set quantile=0.9``, so that the settings need not be listed here. They are looked up,
    which imports the models, only where an option is unknown.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of a command line."""
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        return list(super().parse_args(ctx, as_settings(args, known)))


def as_settings(args: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return a command line with ``--set name=value`` instead of options that are settings of some model.

    Parameters
    ----------
    args : sequence of str
        The command line.
    known : iterable of str
        The other options, which stay as they are.
    """
    known = {*known, "--"}
    rewritten: list[str] = []
    rest = iter(args)
    own: set[str] | None = None
    for argument in rest:
        option, equals, value = argument.partition("=")
        if option.startswith("--") and option not in known:
            own = {name for names in own_settings().values() for name in names} if own is None else own
            name = option.removeprefix("--").replace("-", "_")
            if name in own:
                rewritten += ["--set", f"{name}={value if equals else next(rest, '')}"]
                continue
        rewritten.append(argument)
        if argument == "--":
            return [*rewritten, *rest]
    return rewritten


def own_settings() -> dict[str, tuple[str, ...]]:
    """Return the settings that the model of each loss has of its own, by the name of the loss."""
    from hardthresh.estimators.linear.model import SparseLinearModel

    from .task import models

    common = signature(SparseLinearModel).parameters.keys()
    chosen = {loss: model for (loss, validated), model in models().items() if not validated}
    return {
        loss: tuple(name for name in signature(model).parameters if name not in common)
        for loss, model in chosen.items()
    }


def common_settings(table: Data, task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model that do not depend on how its number of features is chosen.

    Parameters
    ----------
    table, task :
        The data.
    options : mapping
        The options of ``hardthresh fit``, by the names of its parameters.

    Raises
    ------
    InvalidInputError
        For columns that the table does not have, and settings that the model of the loss does not have.
    """
    categorical = names_of(options["categorical"])
    included = [*names_of(options.get("covariates")), *names_of(options["always_include"])]
    return {
        "always_include": [table.position(name) for name in included] or None,
        "positive": options["positive"],
        **({"categorical_features": categorical} if categorical else {}),
        "fit_intercept": not options["no_intercept"],
        "standardize": not options["no_standardize"],
        "max_iter": options["max_iter"],
        "random_state": options["seed"],
        **settings_of(options["own"] or (), task.loss, sorted(set(task.y.tolist())) if task.counts else ()),
    }


def settings_of(given: Sequence[str], loss: str, labels: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the settings of a model that ``--set`` gives.

    Parameters
    ----------
    given : sequence of str
        Texts "name=value".
    loss : str
        The loss of the model.
    labels : sequence
        The labels of the classes, if there are some, which the keys of a dict are texts of.

    Raises
    ------
    InvalidInputError
        For a text without "=", and a setting that the model of this loss does not have.
    """
    settings: dict[str, Any] = {}
    own = own_settings()
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not value.strip():
            raise InvalidInputError(f"--set takes name=value, such as quantile=0.9; got {text!r}")
        if name not in own.get(loss, ()):
            raise InvalidInputError(_misplaced(name, loss, own))
        is_mapping = value.strip().startswith("{") or (name in MAPPINGS and value.strip() not in MAPPINGS[name])
        settings[name] = _mapping(name, value, labels) if is_mapping else _value(value.strip())
    return settings


MAPPINGS = {"class_weight": ("balanced", "none")}
"""The settings that are dicts, with the words that they may be instead."""


def _mapping(name: str, text: str, labels: Sequence[Any]) -> dict[Any, Any]:
    """Return a dict of JSON, such as {"ill": 2, "well": 1}, whose keys are labels of classes."""
    try:
        given, reason = json.loads(text), ""
    except json.JSONDecodeError as error:
        given, reason = None, f": {error}" if text.strip().startswith("{") else ""
    if not isinstance(given, dict):
        example = json.dumps(dict(zip(map(str, labels or ("yes", "no")), (2, 1), strict=False)))
        words = "".join(f"{word}, " for word in MAPPINGS.get(name, ()))
        kind = f"{words}or a dict" if words else "a dict"
        raise InvalidInputError(
            f"--{name.replace('_', '-')} takes {kind} as JSON, such as '{example}'; got {text!r}{reason}"
        )
    label_of = {key: label for label in labels for key in (str(label), _value(str(label)))}
    return {label_of.get(key, label_of.get(_value(key), key)): value for key, value in given.items()}


def _misplaced(name: str, loss: str, own: Mapping[str, Sequence[str]]) -> str:
    """Return what to do about a setting that the model of a loss does not have."""
    with_it = [other for other, names in own.items() if name in names]
    if with_it:
        return f"--{name.replace('_', '-')} is for --loss {' or '.join(with_it)}, and the loss is {loss}"
    has = f"it has {listed(own[loss])}" if own.get(loss) else "it has none of its own"
    return f"the model of the loss {loss} has no setting {format_value(name)}; {has}"


def _value(text: str) -> int | float | str | None:
    """Return a value as a number where it is one, None for "none", and else the text."""
    if text.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
