"""Examples of a mean, and parameters of a module, for `Function`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from math import prod
from typing import Any

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_integer, with_warnings_of_caller
from hardthresh.core.errors import InvalidInputError, format_value, warn

from .derivatives import imported


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples of a mean: their number, how to get some by index, and how many to take at once."""

    count: int
    batch: Callable[[Any], Any]
    chunk: int


class Parameters:
    """The parameters of a module as one vector, and back."""

    def __init__(self, module: Any) -> None:
        torch = imported("torch")
        named = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
        if len({(p.dtype, p.device) for p in named.values()}) != 1:
            raise InvalidInputError(
                "the module needs parameters that require gradients, all of one dtype and on one device; got "
                + (", ".join(f"{n}: {p.dtype} on {p.device}" for n, p in named.items()) or "none")
            )
        self._module = module
        self._shapes = {name: tuple(p.shape) for name, p in named.items()}
        self.flat = torch.cat([p.reshape(-1) for p in named.values()])

    def split(self, w: Any) -> dict[str, Any]:
        """Return a vector's parts by the names of the parameters."""
        torch = imported("torch")
        w = torch.as_tensor(w, dtype=self.flat.dtype, device=self.flat.device)
        parts = torch.split(w, [prod(shape) for shape in self._shapes.values()])
        return {name: part.reshape(self._shapes[name]) for name, part in zip(self._shapes, parts, strict=True)}

    def function(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        """Return a loss of the module as a function of the vector."""
        return partial(self._loss, loss)

    def _loss(self, loss: Callable[..., Any], w: Any, *batch: Any) -> Any:
        call = import_module("torch.func").functional_call
        state = {**self.split(w), **{name: b.clone() for name, b in self._module.named_buffers()}}
        return loss(lambda *args, **kwargs: call(self._module, state, args, kwargs), *batch)


def indexed(batches: Any, n_rows: int | None, chunk: int | None, *, numpy: bool = False) -> Examples | None:
    """Return the examples that a callable makes batches of, if there are any."""
    if n_rows is None:
        if batches is not None or chunk is not None:
            raise InvalidInputError("batches and chunk are about examples: say how many there are, n_rows=")
        return None
    if batches is not None and not callable(batches):
        raise InvalidInputError(f"batches must be a callable that takes indices, got {format_value(batches)}")
    make = batches if batches is not None else itself
    return counted(n_rows, partial(_by_numpy, make) if numpy else make, chunk)


def _by_numpy(make: Callable[[Any], Any], rows: Any) -> Any:
    return make(to_numpy(rows))


def itself(rows: Any) -> Any:
    """Return indices, for which the function itself knows the examples."""
    return rows


def from_dataset(torch: Any, batches: Any, n_rows: int | None, chunk: int | None) -> Examples | None:
    """Return the examples of a torch data set or loader; None if `batches` is neither."""
    data = torch.utils.data
    if isinstance(batches, data.DataLoader):
        _refuse_choice(data, batches)
        dataset, collate = batches.dataset, batches.collate_fn
        chunk = chunk or batches.batch_size
    elif isinstance(batches, data.Dataset):
        dataset, collate = batches, data.default_collate
    else:
        return None
    if isinstance(dataset, data.IterableDataset) or not hasattr(dataset, "__len__"):
        raise InvalidInputError("examples are drawn by index: a data set with __getitem__ and __len__ is needed")
    if n_rows is not None and n_rows != len(dataset):
        raise InvalidInputError(f"n_rows is {n_rows}, but the data set has {len(dataset)} examples; leave n_rows out")
    if isinstance(dataset, data.TensorDataset) and collate is data.default_collate:
        return counted(len(dataset), partial(_of_tensors, dataset), chunk)
    return counted(len(dataset), partial(_collated, dataset, collate), chunk)


def _of_tensors(dataset: Any, rows: Any) -> list[Any]:
    return list(dataset[imported("torch").from_numpy(to_numpy(rows))])


def _collated(dataset: Any, collate: Callable[[list[Any]], Any], rows: Any) -> Any:
    return collate([dataset[int(row)] for row in rows])


def _refuse_choice(data: Any, loader: Any) -> None:
    """Raise `InvalidInputError` unless a loader makes batches of the examples of its data set, each once."""
    sampler = loader.sampler
    if loader.batch_size is None:
        raise InvalidInputError(
            "the loader has a batch_sampler, or batch_size=None; solvers draw the examples themselves: give the data "
            "set, or a loader with a batch_size"
        )
    if isinstance(loader.dataset, data.IterableDataset):
        return
    n = len(loader.dataset)
    shuffled = type(sampler) is data.RandomSampler and not sampler.replacement
    if not (shuffled or type(sampler) is data.SequentialSampler) or len(sampler) != n:
        raise InvalidInputError(
            f"the loader's {type(sampler).__name__} chooses among the examples, but solvers draw them themselves: give "
            "the data set, or a torch.utils.data.Subset of it"
        )
    if loader.drop_last and n % loader.batch_size:
        raise InvalidInputError(
            f"the loader drops the last {n % loader.batch_size} of {n} examples, but the mean is over all: give the "
            "data set, or drop_last=False"
        )


def counted(n_rows: Any, batch: Callable[[Any], Any], chunk: Any) -> Examples:
    """Return the examples, after a check of `n_rows` and `chunk`."""
    n_rows = checked_integer("n_rows", n_rows, 1)
    return Examples(n_rows, batch, n_rows if chunk is None else checked_integer("chunk", chunk, 1))


def called(fn: Callable[..., Any], *args: Any) -> Any:
    """Call a callable of the user; a StopIteration that it raises becomes an error, as it would end the loop."""
    try:
        with with_warnings_of_caller():
            return fn(*args)
    except StopIteration as error:
        raise InvalidInputError(
            "the function raised StopIteration, which a loop takes for its end; an iterator in it has none left"
        ) from error


def check_call(name: str, fn: Any, arguments: str, examples: Examples | None) -> None:
    """Raise `InvalidInputError` if the signature of a callable does not take the arguments that it will get."""
    if not callable(fn):
        return
    try:
        seen = signature(fn)
    except (TypeError, ValueError):  # some that are not written in Python say nothing
        return
    wanted = arguments if examples is None else f"{arguments}, batch"
    try:
        seen.bind(*wanted.split(", "))
    except TypeError as error:
        why = "n_rows= says how many there are" if examples is None else "n_rows= or batches= says that there are"
        raise InvalidInputError(
            f"{name} is called as {name}({wanted}), but its arguments are {seen}; a batch is given where there are "
            f"examples, and {why}"
        ) from error


def warn_of_training(module: Any) -> None:
    """Warn of parts of a module whose output does not depend on its parameters alone."""
    parts = {type(part).__name__ for part in module.modules() if part.training}
    noisy = sorted(name for name in parts if "Dropout" in name or "BatchNorm" in name)
    if noisy:
        warn(
            f"the module is in training mode, with {', '.join(noisy)}: its loss is not a function of its parameters "
            "alone, which line searches rely on; call module.eval() first",
        )
