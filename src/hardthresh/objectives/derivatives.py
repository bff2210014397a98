"""Values, gradients and products with the Hessian: by callables, by torch, by JAX, and by differences of gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from math import inf
from typing import Any, Protocol

import numpy as np

from hardthresh.arrays import all_finite, as_floating, namespace
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value
from hardthresh.core.typing import Array


class Source(Protocol):
    """A function with its gradient, of a point alone or (with one more argument) on a batch."""

    differences: bool
    """Whether products with the Hessian are differences of gradients."""

    def uses_point(self, w: Array) -> bool | None:
        """Return whether products with the Hessian depend on the point; None where that has to be tried.

        True where they are differences of gradients, whose errors do.
        """

    def value(self, w: Array, *batch: Any) -> Any:
        """Return the function at a point."""

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        """Return the function and its gradient."""

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        """Return the Hessian at a point times a direction."""

    def products(self, w: Array, directions: Array, *batch: Any) -> Any:
        """Return the Hessian at a point times each of several directions, shape (m, *w.shape)."""


class Given:
    """A function by callables of the user; without one for the curvature, it is that of differences of gradients."""

    def __init__(self, fn: Callable[..., Any], gradient: Any, curvature: Callable[..., Any] | None) -> None:
        self._fn, self._gradient, self._curvature = fn, gradient, curvature
        self.differences = curvature is None

    def uses_point(self, w: Array) -> bool:
        return True

    def value(self, w: Array, *batch: Any) -> Any:
        return self._fn(w, *batch) if self._gradient else pair(self._fn(w, *batch))[0]

    def both(self, w: Array, *batch: Any) -> Any:
        if self._gradient is None:
            return self._fn(w, *batch)
        value = self._fn(copied(w), *batch)
        if getattr(value, "shape", ()) == () and value == inf:  # a gradient is not asked for outside of the domain
            return value, namespace(w).nan * w
        return value, self._gradient(w, *batch)

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        if self._curvature is None:
            return difference(self.both, w, direction, *batch)
        return self._curvature(w, direction, *batch)

    def products(self, w: Array, directions: Array, *batch: Any) -> Any:
        return one_by_one(self.product, w, directions, *batch)


class Torch:
    """A function of a tensor, differentiated by autograd: twice, or once and then by differences of gradients."""

    def __init__(self, fn: Callable[..., Any], like: Array, twice: bool) -> None:
        self._fn, self._twice, self.differences = fn, twice, not twice
        self._like = like if isinstance(like, self._torch.Tensor) else self._torch.from_numpy(like)

    @property
    def _torch(self) -> Any:
        return imported("torch")  # and not kept, so that a function of torch can be stored

    def uses_point(self, w: Array) -> bool | None:
        return None if self._twice else True

    def value(self, w: Array, *batch: Any) -> Any:
        with self._torch.no_grad():
            return self._scalar(self._fn(self._tensor(w), *batch)).item()

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        value, slope, _ = self._differentiated(w, batch, again=False)
        return value.item(), self._back(slope, w)

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        if not self._twice:
            return difference(self.both, w, direction, *batch)
        return self.products(w, direction[None], *batch)[0]

    def products(self, w: Array, directions: Array, *batch: Any) -> Any:
        if not self._twice:
            return one_by_one(self.product, w, directions, *batch)
        _, slope, point = self._differentiated(w, batch, again=True)
        if slope.grad_fn is None:  # a linear function
            return self._back(0.0 * self._tensor(directions), w)
        images = []
        for direction in self._tensor(directions):
            image = self._torch.autograd.grad(slope, point, direction, allow_unused=True, retain_graph=True)[0]
            images.append(0.0 * slope if image is None else image)
        return self._back(self._torch.stack(images), w)

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
    """A function of a JAX array, differentiated and, where it has no batches and JAX can trace it, compiled by JAX.

    Attributes
    ----------
    CHUNK : int
        How many products with the Hessian are made at once, so that their number does not compile them anew. With 64 in
        the place of 16, fits of Cox's model take four times as long, as they need Hessians of a few columns; trend
        filtering of 2,500 points, which needs the whole one, takes 0.6 times as long.
    """

    CHUNK = 16

    def __init__(self, jax: Any, fn: Callable[..., Any], twice: bool, compiled: bool) -> None:
        self._jax, self._fn, self._twice, self._compiled = jax, fn, twice, compiled
        self.differences = not twice
        self._both, self._products = jax.value_and_grad(self._scalar), self._products_at
        self._known: tuple[Array, Any] | None = None
        if compiled:
            self._both, self._products = jax.jit(self._both), jax.jit(self._products)

    def uses_point(self, w: Array) -> bool | None:
        """Return whether the program of the products reads the point, which takes no compilation to tell."""
        if not (self._twice and self._compiled):
            return True

        def product(w: Any, direction: Any) -> Any:
            return self._jax.jvp(self._jax.grad(self._scalar), (w,), (direction,))[1]

        with self._precision(w):
            try:
                program = self._jax.make_jaxpr(product)(w, w).jaxpr
            except self._jax.errors.ConcretizationTypeError:  # it branches on the values of the point
                return True
        read = reads(program, {program.invars[0]})
        return None if read is None else any(read)

    def value(self, w: Array, *batch: Any) -> Any:
        """Return the function: with its gradient, which is asked for next, and which compiles nothing else."""
        if self._compiled:
            return self.both(w, *batch)[0]
        with self._precision(w):
            return np.asarray(self._fn(self._jax.numpy.asarray(w), *batch))

    def both(self, w: Array, *batch: Any) -> tuple[Any, Any]:
        if self._compiled and self._known is not None and np.array_equal(self._known[0], w):
            value, slope = self._known[1]
            return value, slope.copy()
        value, slope = (np.array(x) for x in self._called("_both", w, *batch))
        found = value.item() if value.dtype.kind == "f" else value, slope
        if self._compiled:
            self._known = w, found
        return found[0], found[1].copy()

    def product(self, w: Array, direction: Array, *batch: Any) -> Any:
        if not self._twice:
            return difference(self.both, w, direction, *batch)
        return np.array(self._called("_products", w, direction[None], *batch))[0]

    def products(self, w: Array, directions: Array, *batch: Any) -> Any:
        if not self._twice:
            return one_by_one(self.product, w, directions, *batch)
        images, size = [], min(self.CHUNK, w.size)
        for start in range(0, len(directions), size):
            some = directions[start : start + size]
            padded = np.concatenate([some, np.zeros((size - len(some), *w.shape), dtype=w.dtype)])
            images.append(np.asarray(self._called("_products", w, padded, *batch))[: len(some)])
        return np.concatenate(images)

    def _products_at(self, w: Any, directions: Any, *batch: Any) -> Any:
        """Return products with the Hessian, which share the part of the work that does not depend on directions."""
        slope = self._jax.grad(lambda v: self._scalar(v, *batch))
        return self._jax.vmap(self._jax.linearize(slope, w)[1])(directions)

    def _called(self, name: str, *args: Any) -> Any:
        """Call a function of JAX on arrays of NumPy; one that cannot be compiled is not, from then on."""
        with self._precision(args[0]):
            if self._compiled:
                try:
                    return getattr(self, name)(*args)
                except self._jax.errors.ConcretizationTypeError:
                    self._compiled = False
                    self._both, self._products = self._jax.value_and_grad(self._scalar), self._products_one_by_one
            arrays = 1 if name == "_both" else 2
            return getattr(self, name)(*map(self._jax.numpy.asarray, args[:arrays]), *args[arrays:])

    def _products_one_by_one(self, w: Any, directions: Any, *batch: Any) -> Any:
        """Return products with the Hessian without tracing the point, on whose values the function may branch."""
        slope = self._jax.grad(lambda v: self._scalar(v, *batch))
        return self._jax.numpy.stack([self._jax.jvp(slope, (w,), (v,))[1] for v in directions])

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


def reads(program: Any, known: set[Any]) -> list[bool] | None:
    """Return which outputs of a program of JAX depend on some of its inputs; None where loops or branches do."""
    known = set(known)
    for step in program.eqns:
        among = [not hasattr(v, "val") and v in known for v in step.invars]  # what has a value is a constant
        if not any(among):
            continue
        outputs: list[bool] | None = [True] * len(step.outvars)
        if step.primitive.name in ("jit", "pjit"):
            inner = step.params["jaxpr"].jaxpr
            outputs = reads(inner, {v for v, is_known in zip(inner.invars, among, strict=True) if is_known})
        elif step.primitive.name in ("scan", "while", "cond", "custom_jvp_call", "custom_vjp_call", "checkpoint"):
            outputs = None
        if outputs is None:
            return None
        known.update(v for v, is_known in zip(step.outvars, outputs, strict=True) if is_known)
    return [not hasattr(v, "val") and v in known for v in program.outvars]


SHRINKS = 8
"""How often the step of a difference is divided by eight where a gradient is not finite: to 1e-7 of the first."""


def difference(both: Callable[..., Any], w: Array, direction: Array, *batch: Any) -> Array:
    r"""Return the Hessian times a direction, by a central difference of gradients.

    .. math:: H v \approx \frac{\nabla f(w + h v) - \nabla f(w - h v)}{2 h}, \qquad
              h \max_j |v_j| = \epsilon^{1/3} \max(1, \max_j |w_j|)

    with a relative error of about :math:`\epsilon^{2/3}` for a function of the scale of w (Nocedal and Wright 2006,
    section 8.1). Where a gradient is not finite, as outside of the domain, the step is shortened to an eighth of one
    with finite gradients on both sides; if there is none, the difference is one between w and one side.
    """
    xp = namespace(w)
    size = float(xp.max(xp.abs(direction)))
    if not size > 0.0:
        return xp.zeros_like(w)

    def gradient(step: float) -> Array | None:
        slope = as_floating(pair(both(w + step * direction, *batch))[1], w, "the gradient")
        return slope if all_finite(slope) else None

    first = float(xp.finfo(w.dtype).eps) ** (1 / 3) * max(1.0, float(xp.max(xp.abs(w)))) / size
    for number in range(SHRINKS):
        h = first / 8.0**number
        ahead, behind = gradient(h), gradient(-h)
        if ahead is not None and behind is not None:
            if number == 0:
                return (ahead - behind) / (2.0 * h)
            ahead, behind = gradient(h / 8.0), gradient(-h / 8.0)
            return (ahead - behind) / (h / 4.0) if ahead is not None and behind is not None else xp.nan * w
    here = gradient(0.0)
    for h in (first, -first):
        beside = gradient(h)
        if beside is not None and here is not None:
            return (beside - here) / h
    return xp.nan * w


def one_by_one(product: Callable[..., Any], w: Array, directions: Array, *batch: Any) -> Array:
    """Return products with the Hessian, from one call for each."""
    images = [as_floating(product(w, v, *batch), w, "the product with the Hessian") for v in directions]
    return namespace(w).stack(images)


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


def refuse_inference() -> None:
    """Raise `InvalidInputError` in torch's inference mode, which has no gradients."""
    if imported("torch").is_inference_mode_enabled():
        raise InvalidInputError("torch.inference_mode() is on, in which torch finds no gradients: leave it")


def copied(w: Array) -> Array:
    return w.copy() if isinstance(w, np.ndarray) else w + 0.0


def pair(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise InvalidInputError(
            f"with gradient=True the function must return (value, gradient), got {type(returned).__name__}"
        )
    return returned[0], returned[1]
