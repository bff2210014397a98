"""A source that measures: it calls a function for the attributes of each example."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from itertools import count as numbers_from
from itertools import islice
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array, is_integer
from hardthresh.limited.cost_model import CostModel

from .base import AttributeSource, Example
from .values import as_numbers

MOST_ABSENT = 1000
"""Examples in a row that could not be had until it is taken for an error; arbitrary: no study loses that many."""
REMEMBERED = 100_000
"""Names that those of later examples are compared with; arbitrary: some 10 MB of them."""


class CallbackSource(AttributeSource):
    """Examples whose attributes are measured when they are asked for.

    Parameters
    ----------
    ask : callable
        ``ask(example_id, indices)`` measures attributes (an increasing int array, whole panels) of one example, and
        returns their values in this order; or None if the example cannot be had, as a patient who did not come: it
        costs nothing, and another one takes its place. It may raise StopIteration when there are no more examples.
        What was bought of an example is never asked for again.
    n_features : int, optional
        d; by default the number of `feature_names`.
    n_observed : int in 1 .. d, optional
        s', how many attributes of one example may be observed.
    target : callable, mapping or sequence, optional
        The target of each example: ``target(example_id)`` or ``target[example_id]``, looked up before anything is
        paid; a callable may raise StopIteration when there are no more. Without it `ask` returns a pair
        ``(values, y)``.
    examples : iterable, optional
        The names of the examples, used in this order; by default the keys of a mapping of targets, else 0, 1, 2, ...
        as far as a sequence of targets goes, or without end. A name that is there twice is refused, as its example
        would be measured twice: at once in a list, tuple or array; when it is drawn in another iterable, of which only
        the latest 100 000 names are remembered. Names that cannot be hashed are not compared.
    n_examples : int >= 0, optional
        At most so many.
    costs, panels, budget
        Prices, attributes that are bought together, and the budget in money: see `CostModel.of`. With `feature_names` a
        mapping can have the price of each attribute by its name.
    feature_names : sequence of str, optional
        The names of the attributes.

    Raises
    ------
    InvalidInputError
        As in `CostModel.of`, and for examples that are there twice. While examples are measured: for an answer of
        another length, NaN, infinity, and anything but numbers, with the example and the attribute; and for an example
        without a target. Answers that were paid before are kept if the source is in a `Journal`, and only there:
        without it, nothing more can be bought of examples that were drawn together once their purchase was interrupted.

    Examples
    --------
    >>> def ask(patient, indices):
    ...     print("measure", indices, "of patient", patient)
    ...     return None if patient == 1 else [10.0 * patient + j for j in indices]
    >>> source = CallbackSource(ask, n_features=5, n_observed=2, target=[1.0, 0.0, 1.0])
    >>> patients = source.draw(3)
    >>> patients.observe([0, 4])
    measure [0 4] of patient 0
    measure [0 4] of patient 1
    measure [0 4] of patient 2
    array([[ 0.,  4.],
           [20., 24.]])
    >>> patients.ids, patients.targets(), source.meter.examples, source.meter.attributes
    ([0, 2], array([1., 1.]), 2, 4)
    """

    def __init__(
        self,
        ask: Callable[[Any, Array], Any],
        n_features: int | None = None,
        n_observed: int | None = None,
        *,
        target: Callable[[Any], Any] | Mapping[Any, Any] | Sequence[Any] | None = None,
        examples: Iterable[Any] | None = None,
        n_examples: int | None = None,
        costs: Sequence[float] | Mapping[Any, float] | None = None,
        panels: Sequence[Any] | None = None,
        budget: float | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if not callable(ask):
            raise InvalidInputError(f"ask must be a function of an example and indices, got {format_value(ask)}")
        if target is not None and not (callable(target) or hasattr(target, "__getitem__")):
            raise InvalidInputError(f"target must be a function, a mapping or a sequence, got {format_value(target)}")
        if n_examples is not None and not (is_integer(n_examples) and n_examples >= 0):
            raise InvalidInputError(f"n_examples must be an integer >= 0, got {format_value(n_examples)}")
        super().__init__(
            CostModel.of(
                n_features, n_observed, costs=costs, panels=panels, budget=budget, feature_names=feature_names
            ),
            feature_names,
        )
        self._ask = ask
        self._absent = 0
        self._target = target
        self.targets_known = target is not None
        ids = _default_ids(target) if examples is None else examples
        lengths = [n for n in (len(ids) if isinstance(ids, Sized) else None, n_examples) if n is not None]
        self._left = min(lengths) if lengths else None
        self._ids: Iterator[Any] = iter(ids if examples is None else _distinct(ids))

    @property
    def remaining(self) -> int | None:
        """How many examples are left to be asked for; None where that is not known."""
        return 0 if self.ended else self._left

    def next_examples(self, count: int) -> list[Example]:
        drawn: list[Example] = []
        for id_ in islice(self._ids, count if self._left is None else min(count, self._left)):
            try:
                y = self._looked_up(id_)
            except StopIteration:
                self.ended = True
            if self.ended:
                break
            drawn.append(Example(id_, y))
        if self._left is not None:
            self._left -= len(drawn)
        return drawn

    def _looked_up(self, id_: Any) -> Any:
        """Return the target of an example; None if it comes with the answer."""
        if self._target is None:
            return None
        if callable(self._target):
            return self._target(id_)
        try:
            return self._target[id_]
        except (LookupError, TypeError):
            raise InvalidInputError(f"example {format_value(id_)} has no target") from None

    def read(self, examples: Sequence[Example], indices: Array) -> Iterator[Array | None]:
        for example in examples:
            try:
                answer = self._ask(example.id, indices.copy())
            except StopIteration:
                self.ended = True
                return
            self._absent = self._absent + 1 if answer is None else 0
            if self._absent == MOST_ABSENT:
                raise InvalidInputError(
                    f"{MOST_ABSENT} examples in a row could not be had, {format_value(example.id)} the last of them; "
                    "raise StopIteration where there are no more"
                )
            yield None if answer is None else self._values(example, indices, answer)

    def _values(self, example: Example, indices: Array, answer: Any) -> Array:
        """Return a checked answer; the target that comes with it goes to the example."""
        if self._target is None:
            if not (isinstance(answer, (tuple, list)) and len(answer) == 2 and hasattr(answer[0], "__len__")):
                raise InvalidInputError(
                    f"ask returned {format_value(answer)} for example {format_value(example.id)}; "
                    "without target= it must return a pair (values, y), or None"
                )
            answer, example.y = answer[0], answer[1]
        return as_numbers(
            answer,
            indices.size,
            f"example {format_value(example.id)}",
            lambda place: self._named(int(indices[place])),
            "measure it again, or return None instead of the list to continue without the example",
        )


def _distinct(ids: Iterable[Any]) -> Iterable[Any]:
    """Return the names of examples, which are refused if one is there twice."""
    if isinstance(ids, (range, Mapping, Set)):
        return ids
    if isinstance(ids, (list, tuple, np.ndarray)):
        for _ in _compared(ids, len(ids)):
            pass
        return ids
    return _compared(ids, REMEMBERED)


def _compared(ids: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield names, each compared with the latest `most` before it."""
    latest: dict[Any, None] = {}
    for id_ in ids:
        if isinstance(id_, Hashable):
            if id_ in latest:
                raise InvalidInputError(f"examples has {format_value(id_)} twice; an example can be measured only once")
            latest[id_] = None
            if len(latest) > most:
                del latest[next(iter(latest))]
        yield id_


def _default_ids(target: Any) -> Iterable[Any]:
    if isinstance(target, Mapping):
        return target
    return range(len(target)) if hasattr(target, "__len__") else numbers_from()
