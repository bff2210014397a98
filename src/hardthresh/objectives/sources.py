"""Sources of values, gradients, products with the Hessian and examples for `Function`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from math import prod
from typing import Any, Protocol

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_integer, with_warnings_of_caller
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value, warn
from hardthresh.core.typing import Array


class Source(Protocol):
    """A function with its gradient, of a point alone or (with one more argument) on a batch."""

    curved: bool
    """Whether there is a `product`."""

    def value(self, w: Array, *batch: Any) -> Any:
        """Return the function at a point."""

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        """Return the function and its gradient."""

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        """Return the Hessian at a point times a direction."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples of a mean: their number, how to get some by index, and how many to take at once."""

    count: int
    batch: Callable[[Any], Any]
    chunk: int


class Given:
    """A function by callables of the user."""

    def __init__(self, fn: Callable[..., Any], gradient: Any, curvature: Callable[..., Any] | None) -> None:
        self._fn, self._gradient, self._curvature = fn, gradient, curvature
        self.curved = curvature is not None

    def value(self, w: Array, *batch: Any) -> Any:
        return self._fn(w, *batch) if self._gradient else pair(self._fn(w, *batch))[0]

    def both(self, w: Array, *batch: Any) -> Any:
        if self._gradient is None:
            return self._fn(w, *batch)
        return self._fn(copied(w), *batch), self._gradient(w, *batch)

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        assert self._curvature is not None
        return self._curvature(w, direction, *batch)


class Torch:
    """A function of a tensor, differentiated by autograd."""

    def __init__(self, fn: Callable[..., Any], like: Array, curved: bool) -> None:
        self._fn, self.curved = fn, curved
        self._like = like if isinstance(like, self._torch.Tensor) else self._torch.from_numpy(like)

    @property
    def _torch(self) -> Any:
        return imported("torch")  # and not kept, so that a function of torch can be stored

    def value(self, w: Array, *batch: Any) -> Any:
        with self._torch.no_grad():
            return self._scalar(self._fn(self._tensor(w), *batch)).item()

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        value, slope, _ = self._differentiated(w, batch, again=False)
        return value.item(), self._back(slope, w)

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        _, slope, point = self._differentiated(w, batch, again=True)
        if slope.grad_fn is None:  # a linear function
            return self._back(0.0 * slope, w)
        image = self._torch.autograd.grad(slope, point, self._tensor(direction), allow_unused=True)[0]
        return self._back(0.0 * slope if image is None else image, w)

    def _differentiated(self, w: Array, batch: tuple[Any, ...], again: bool) -> tuple[Any, Any, Any]:
        refuse_inference()
        point = self._tensor(w).requires_grad_(True)
        with self._torch.enable_grad():
            value = self._scalar(self._fn(point, *batch))
            slope = None
            if value.requires_grad:
                slope = self._torch.autograd.grad(value, point, create_graph=again, allow_unused=True)[0]
        if slope is None:
            raise InvalidInputError(
                "the function does not depend on w in a way that torch can see: use torch operations only, and neither "
                "detach(), item() nor numpy() on the way"
            )
        return value.detach(), slope, point

    def _tensor(self, w: Array) -> Any:
        if isinstance(w, self._torch.Tensor):
            return w.detach().clone()
        return self._torch.tensor(w, dtype=self._like.dtype, device=self._like.device)

    def _back(self, x: Any, w: Array) -> Any:
        x = x.detach()
        return x if isinstance(w, self._torch.Tensor) else x.cpu().numpy()

    def _scalar(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor):
            raise InvalidInputError(f"the function must return a scalar tensor, got {format_value(value)}")
        if value.ndim:
            raise InvalidInputError(
                f"the function must return a scalar tensor, got shape {tuple(value.shape)}; take the mean"
            )
        return value


class Jax:
    """A function of a JAX array, differentiated by JAX."""

    def __init__(self, jax: Any, fn: Callable[..., Any], curved: bool) -> None:
        self._jax, self._fn, self.curved = jax, fn, curved

    def value(self, w: Array, *batch: Any) -> Any:
        with self._precision(w):
            return np.asarray(self._fn(self._jax.numpy.asarray(w), *batch))

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        with self._precision(w):
            value, slope = self._jax.value_and_grad(self._scalar)(self._jax.numpy.asarray(w), *batch)
            return np.asarray(value), np.array(slope)

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        asarray = self._jax.numpy.asarray
        with self._precision(w):
            slope = self._jax.grad(lambda v: self._scalar(v, *batch))
            return np.array(self._jax.jvp(slope, (asarray(w),), (asarray(direction),))[1])

    def _scalar(self, w: Any, *batch: Any) -> Any:
        value = self._fn(w, *batch)
        if np.shape(value) != ():
            raise InvalidInputError(f"the function must return a scalar, got shape {np.shape(value)}; take the mean")
        return value

    def _precision(self, w: Array) -> AbstractContextManager[Any]:
        """Return the setting in which JAX computes in float64 where the point is that."""
        if w.dtype != np.float64:
            return nullcontext()
        home = self._jax if hasattr(self._jax, "enable_x64") else import_module("jax.experimental")  # before JAX 0.8
        setting: AbstractContextManager[Any] = home.enable_x64(True)
        return setting


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


def imported(name: str) -> Any:
    """Return an optional library, which is imported only now.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"this needs {name}, which is not installed; run 'pip install hardthresh[{name}]'."
        ) from error


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


def refuse_inference() -> None:
    """Raise `InvalidInputError` in torch's inference mode, which has no gradients."""
    if imported("torch").is_inference_mode_enabled():
        raise InvalidInputError("torch.inference_mode() is on, in which torch finds no gradients: leave it")


def warn_of_training(module: Any) -> None:
    """Warn of parts of a module whose output does not depend on its parameters alone."""
    parts = {type(part).__name__ for part in module.modules() if part.training}
    noisy = sorted(name for name in parts if "Dropout" in name or "BatchNorm" in name)
    if noisy:
        warn(
            f"the module is in training mode, with {', '.join(noisy)}: its loss is not a function of its parameters "
            "alone, which line searches rely on; call module.eval() first",
        )


def copied(w: Array) -> Array:
    return w.copy() if isinstance(w, np.ndarray) else w + 0.0


def pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise InvalidInputError(
            f"with gradient=True the function must return (value, gradient), got {type(returned).__name__}"
        )
    return returned[0], returned[1]
