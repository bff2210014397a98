"""Any function: with a gradient of its own, or differentiated by torch or JAX; over mini-batches where it is a mean."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from hardthresh.arrays import as_floating, namespace
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.registry import register
from hardthresh.core.typing import Array, is_integer

from .computed import Computed
from .derivatives import Given, Jax, Torch, imported
from .sources import Parameters, check_call, from_dataset, indexed, warn_of_training


class _LogCosh:
    """The mean of log cosh of the residuals of a linear map, for the conformance tests."""

    def __init__(self, shape: tuple[int, ...], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.A, self.y = rng.standard_normal((30, *shape)), rng.standard_normal(30)

    def _seen(self, w: Array, rows: Any) -> tuple[Array, Array]:
        A = self.A[rows].reshape(-1, w.size)
        return A, A @ w.ravel() - self.y[rows]

    def value(self, w: Array, rows: Any = slice(None)) -> float:
        r = np.abs(self._seen(w, rows)[1])
        return float(np.mean(r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)))

    def gradient(self, w: Array, rows: Any = slice(None)) -> Array:
        A, r = self._seen(w, rows)
        return (np.tanh(r) @ A / r.size).reshape(w.shape)

    def both(self, w: Array, rows: Any = slice(None)) -> tuple[float, Array]:
        return self.value(w, rows), self.gradient(w, rows)

    def product(self, w: Array, direction: Array, rows: Any = slice(None)) -> Array:
        A, r = self._seen(w, rows)
        return ((A @ direction.ravel() / np.cosh(r) ** 2) @ A / r.size).reshape(w.shape)


def _examples() -> list[Function]:
    """Return small functions for the conformance tests: of 12 entries, as a vector and as a matrix."""
    vector, matrix = _LogCosh((12,), 0), _LogCosh((4, 3), 1)
    return [
        Function(vector.value, 12, vector.gradient, curvature=vector.product, lower_bound=0.0),
        Function(vector.both, 12, True, curvature=vector.product, n_rows=30, chunk=7, lower_bound=0.0),
        Function(matrix.both, (4, 3), True, curvature=matrix.product),
    ]


@register("objective", "function", _examples)
class Function(Computed):
    r"""Any smooth function of an array, given as a callable.

    .. math:: f(w) = \mathtt{fn}(w) \qquad\text{or, over n examples,}\qquad
              f(w) = \frac1n \sum_{i=1}^n \ell_i(w), \quad
              \mathtt{fn}(w, \mathrm{batch}) = \frac1{|B|} \sum_{i \in B} \ell_i(w)

    Parameters
    ----------
    fn : callable
        ``fn(w)``, or ``fn(w, batch)`` if there are examples: then the mean over those of the batch, never their sum. It
        returns one number; with ``gradient=True`` the pair of it and the gradient.
    shape : int or tuple of int, optional
        Of the points, which are NumPy arrays of float64. Either this or `like`.
    gradient : callable or True
        ``gradient(w)``, or ``gradient(w, batch)``: an array of the shape of w. True: `fn` returns it too. To have it
        computed, use `from_torch` or `from_jax`.
    like : array, optional
        Points have the shape, dtype, library and device of this array.
    curvature : callable, optional
        ``curvature(w, v)``, or ``curvature(w, v, batch)``: the Hessian at w times v. Default: a central difference of
        gradients, with a relative error of about 1e-10 in float64.
    batches : callable, optional
        ``batches(indices)`` makes the batch of some examples, by an array of their indices in the library of the
        points. Default: the indices are the batch.
    n_rows : int, optional
        How many examples there are; needed for, and only for, mini-batches.
    chunk : int, optional
        How many examples are evaluated at once; default all.
    lower_bound : float
        A number that f never falls below; some step rules use it.

    Raises
    ------
    InvalidInputError
        If there is no gradient, a shape is missing or given twice, or examples are not counted. By `evaluate` and
        `value`, if what the callable returns is not a number or has another shape than the points.
    NotFiniteError
        By `evaluate` and `value`, if the callable returns NaN or minus infinity, or a gradient with either. It says at
        what point; `minimize` then ends the run with the best iterate and the status ``DIVERGED``, but passes the error
        on where the run starts there.

    See Also
    --------
    Function.check_gradient : Whether the gradient is that of the function.

    Notes
    -----
    A value of plus infinity is not an error. It means that the point is outside the domain of f: line searches shorten
    the step, and a run that reaches such a point ends with the status ``DIVERGED``.

    Callables receive a copy of the point, which they may modify. f has to be deterministic: put a network with dropout
    in ``eval()`` mode.

    The default solver, `Splicing`, needs only values and gradients. If f has no examples, a test with at most seven
    gradients and, if torch or JAX can differentiate twice, products with the Hessian decides whether f is quadratic; it
    is not counted as data passes. For a quadratic of at most 4096 coordinates, the whole Hessian is computed and
    searched like that of a linear model.

    Cost: a call of `fn` counts as one data pass, one with the gradient or a product with the Hessian as two (four by a
    difference); on a batch as its share of the examples. Mini-batches (``rows``) drawn at random are unbiased estimates
    of f.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> t = np.array([3.0, 0.1, -2.0, 0.2])
    >>> f = Function(lambda w: np.sum(np.cosh(w - t)), 4, lambda w: np.sinh(w - t))
    >>> minimize(f, Sparsity(2)).support
    Coordinates([0, 2])

    The mean over many examples, of which solvers may examine a few:

    >>> X = np.random.default_rng(0).standard_normal((1000, 30))
    >>> y = X[:, 4] - X[:, 8]
    >>> def loss(w, rows):
    ...     residual = X[rows] @ w - y[rows]
    ...     return np.mean(residual**2), 2 * residual @ X[rows] / len(rows)
    >>> from hardthresh.solvers import ProbabilisticIHT
    >>> minimize(Function(loss, 30, True, n_rows=1000), Sparsity(2), ProbabilisticIHT()).support
    Coordinates([4, 8])
    """

    _module: Any = None  # of `from_torch`

    def __init__(
        self,
        fn: Callable[..., Any],
        shape: int | tuple[int, ...] | None = None,
        gradient: Callable[..., Any] | bool | None = None,
        *,
        like: Array | None = None,
        curvature: Callable[..., Any] | None = None,
        batches: Callable[[Any], Any] | None = None,
        n_rows: int | None = None,
        chunk: int | None = None,
        lower_bound: float = -inf,
    ) -> None:
        if gradient is not True and not callable(gradient):
            raise InvalidInputError(
                "a gradient is needed: give gradient=, a callable or True if fn returns (value, gradient), or have it "
                "computed with Function.from_torch or Function.from_jax"
            )
        for name, some in (("fn", fn), ("curvature", curvature)):
            if not callable(some) and (some is not None or name == "fn"):
                raise InvalidInputError(f"{name} must be callable, got {format_value(some)}")
        source, examples = Given(fn, None if gradient is True else gradient, curvature), indexed(batches, n_rows, chunk)
        check_call("fn", fn, "w", examples)
        check_call("gradient", gradient, "w", examples)
        check_call("curvature", curvature, "w, v", examples)
        super().__init__(source, _zeros(shape, like), examples, lower_bound)

    @classmethod
    def from_torch(
        cls,
        fn: Any,
        shape: int | tuple[int, ...] | None = None,
        *,
        like: Array | None = None,
        loss: Callable[..., Any] | None = None,
        curvature: bool = True,
        batches: Any = None,
        n_rows: int | None = None,
        chunk: int | None = None,
        lower_bound: float = -inf,
    ) -> Function:
        """Return a function that torch differentiates.

        Parameters
        ----------
        fn : callable or torch.nn.Module
            ``fn(w)``, or ``fn(w, batch)``, of a tensor w: a scalar tensor. Or, with `loss`, a module whose parameters
            are to be found.
        shape, like :
            As for `Function`. With `shape`, w is a float64 tensor on the CPU and points are NumPy arrays; with a tensor
            as `like`, points are tensors of its dtype on its device.
        loss : callable, optional
            For a module: ``loss(model)``, or ``loss(model, batch)``, returns a scalar tensor. ``model`` is called like
            the module, with the parameters of the point: all parameters that require gradients, flattened, in the order
            of ``fn.named_parameters()``. Runs start at the projection of the present parameters of the module. Points
            are tensors; `parameters` converts them to named parameters. The module itself is never changed.
        curvature : bool
            Whether products with the Hessian are computed by differentiating twice; otherwise by differences of
            gradients, for functions whose gradients torch cannot differentiate.
        batches : callable, torch Dataset or DataLoader, optional
            As for `Function`, with NumPy indices; or a data set or a loader. The data set, the ``collate_fn`` and the
            batch size (as `chunk`) of a loader are used. Solvers draw the examples themselves, so a loader with its own
            sampler of a subset raises an error.
        n_rows, chunk, lower_bound :
            As for `Function`. The length of a data set is known.

        Returns
        -------
        Function

        Raises
        ------
        InvalidInputError
            As for `Function`, and by `evaluate` if no gradient reaches w.
        MissingDependencyError
            If torch is not installed.

        Warns
        -----
        UserWarning
            If dropout or batch normalisation of the module is in training mode, in which the module is not a function
            of w alone.

        Examples
        --------
        >>> import numpy as np
        >>> import torch
        >>> from hardthresh import minimize
        >>> from hardthresh.constraints import Sparsity
        >>> t = torch.tensor([3.0, 0.1, -2.0, 0.2], dtype=torch.float64)
        >>> f = Function.from_torch(lambda w: torch.cosh(w - t).sum(), 4)
        >>> minimize(f, Sparsity(2)).support
        Coordinates([0, 2])

        A module with at most 3 parameters that are not zero:

        >>> X = torch.from_numpy(np.random.default_rng(0).standard_normal((200, 10)))
        >>> y = X[:, :1] - X[:, 3:4]
        >>> net = torch.nn.Linear(10, 1).double()
        >>> f = Function.from_torch(net, loss=lambda model: torch.mean((model(X) - y) ** 2))
        >>> minimize(f, Sparsity(2)).support
        Coordinates([0, 3])
        """
        torch = imported("torch")
        self = cls.__new__(cls)
        examples = from_dataset(torch, batches, n_rows, chunk) or indexed(batches, n_rows, chunk, numpy=True)
        if loss is not None:
            if not isinstance(fn, torch.nn.Module) or shape is not None or like is not None:
                raise InvalidInputError(
                    "a loss of (model, batch) needs a torch.nn.Module and neither shape nor like: its points are the "
                    "parameters; for any other function of w give fn(w) and its shape"
                )
            check_call("loss", loss, "model", examples)
            warn_of_training(fn)
            self._module = Parameters(fn)
            fn, like = self._module.function(loss), self._module.flat
        elif not callable(fn):
            raise InvalidInputError(f"fn must be callable, got {format_value(fn)}")
        else:
            check_call("fn", fn, "w", examples)
        zeros = _zeros(shape, like)
        Computed.__init__(self, Torch(fn, zeros, curvature), zeros, examples, lower_bound)
        return self

    @classmethod
    def from_jax(
        cls,
        fn: Callable[..., Any],
        shape: int | tuple[int, ...] | None = None,
        *,
        like: np.ndarray | None = None,
        curvature: bool = True,
        batches: Callable[[Any], Any] | None = None,
        n_rows: int | None = None,
        chunk: int | None = None,
        lower_bound: float = -inf,
    ) -> Function:
        """Return a function that JAX differentiates; points are NumPy arrays.

        Parameters
        ----------
        fn : callable
            ``fn(w)``, or ``fn(w, batch)``, of a JAX array w: a scalar. A function without batches is compiled, with its
            derivatives, at the first call, so it must not change afterwards; a function that branches on the values of
            w is not compiled. Compile a function of batches with ``jax.jit`` if it is called often; batches of many
            sizes are then compiled many times.
        shape, like :
            As for `Function`; `like` is a NumPy array. Float64 points are computed in float64, for any setting of JAX,
            which is not changed.
        curvature : bool
            Whether products with the Hessian are computed by differentiating twice; otherwise by differences of
            gradients.
        batches, n_rows, chunk, lower_bound :
            As for `Function`.

        Returns
        -------
        Function

        Raises
        ------
        MissingDependencyError
            If JAX is not installed.

        Examples
        --------
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from hardthresh import minimize
        >>> from hardthresh.constraints import Sparsity
        >>> t = np.array([3.0, 0.1, -2.0, 0.2])
        >>> f = Function.from_jax(lambda w: jnp.sum(jnp.cosh(w - t)), 4)
        >>> minimize(f, Sparsity(2)).support
        Coordinates([0, 2])
        """
        jax = imported("jax")
        if not callable(fn):
            raise InvalidInputError(f"fn must be callable, got {format_value(fn)}")
        if like is not None and not isinstance(like, np.ndarray):
            raise InvalidInputError(f"points of a JAX function are NumPy arrays; like is a {type(like).__name__}")
        self = cls.__new__(cls)
        examples = indexed(batches, n_rows, chunk)
        check_call("fn", fn, "w", examples)
        Computed.__init__(self, Jax(jax, fn, curvature, examples is None), _zeros(shape, like), examples, lower_bound)
        return self

    def null_point(self) -> Array:
        """Return the start of runs without w0: the parameters of the module if there is one, else zero."""
        return self.zeros() if self._module is None else self._module.flat + 0.0

    def parameters(self, w: Array) -> dict[str, Any]:
        """Return a point as the module's parameters by name: ``module.load_state_dict(f.parameters(w), strict=False)``.

        Raises
        ------
        CapabilityError
            If the function was not made from a module.
        InvalidInputError
            If it is not a point of this function.
        """
        self._need_module("parameters")
        w = as_floating(w, name="w")
        if tuple(w.shape) != self.shape:
            raise InvalidInputError(f"w has shape {tuple(w.shape)}, points have {self.shape}")
        named: dict[str, Any] = self._module.split(w)
        return named

    def _need_module(self, ability: str) -> None:
        if self._module is None:
            raise CapabilityError(f"{ability} is of a function made by Function.from_torch(module, loss=...)")


def _zeros(shape: int | tuple[int, ...] | None, like: Array | None) -> Array:
    """Return the zero point of a shape, or like an array."""
    if (shape is None) == (like is None):
        raise InvalidInputError("give the shape of the points, or an array that they are like: one of the two")
    if like is not None:
        like = as_floating(like, name="like")
        return namespace(like).zeros_like(like)
    sizes: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not sizes or not all(is_integer(size) and size >= 1 for size in sizes):
        raise InvalidInputError(
            f"shape must be an integer or a tuple of integers, all positive sizes, got {format_value(shape)}"
        )
    return np.zeros(sizes)
