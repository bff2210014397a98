"""A source that calls a function to measure the attributes of each example."""

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
"""The number of absent examples in a row that counts as an error; arbitrary: no study loses that many."""
REMEMBERED = 100_000
"""The number of names that later ones are compared with; arbitrary: about 10 MB."""


class CallbackSource(AttributeSource):
    """A source that calls a function to measure the attributes of each example.

    Parameters
    ----------
    ask : callable
        ``ask(example_id, indices)`` measures attributes of one example, and returns their values in this order.
        `indices` is an increasing int array of whole panels. If the example is absent, such as a patient who did not
        come, it returns None: the example costs nothing, and a learner uses another one. It raises StopIteration if
        there are no more examples. It is never called again for an attribute that was bought.
    n_features : int, optional
        d; by default the number of `feature_names`.
    n_observed : int in 1 .. d, optional
        s', the number of attributes that may be observed of one example.
    target : callable, mapping or sequence, optional
        The target of each example: ``target(example_id)`` or ``target[example_id]``, which is evaluated before anything
        is paid for. A callable may raise StopIteration if there are no more examples. Without `target`, `ask` returns a
        pair ``(values, y)``.
    examples : iterable, optional
        The numbers or names of the examples, in the order of their use. The default is the keys of `target` if that is
        a mapping, and else 0, 1, 2, ..., up to the length of `target` if that is a sequence. A duplicate raises an
        error, because its example would be measured twice: in a list, tuple or array immediately; in another iterable
        when it is drawn, where it is compared with the latest 100 000. Names that cannot be hashed are not compared.
    n_examples : int >= 0, optional
        The largest number of examples.
    costs, panels, budget
        Prices, attributes that are bought together, and the budget in money: see `CostModel.of`. With `feature_names`,
        `costs` may be a mapping from name to price.
    feature_names : sequence of str, optional
        The names of the attributes.

    Raises
    ------
    InvalidInputError
        As in `CostModel.of`, and for duplicate examples. During a purchase: if `ask` returns another number of values,
        NaN, infinity or anything but numbers (the message has the example and the attribute), if an example has no
        target, or after 1000 absent examples in a row.

    Notes
    -----
    Cost: one call of `ask` for each example and purchase. If an exception interrupts a purchase, the values that were
    measured for examples drawn together are lost, unless the source is in a `Journal`.

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
        """The number of examples left; None if it is not known."""
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
        """Return the target of an example; None if `ask` returns it."""
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
        """Return the values that `ask` returned, checked, and store the target in the example if `ask` returned it."""
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
    """Return the names of examples; raise InvalidInputError for a duplicate."""
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
