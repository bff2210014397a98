"""The base of objectives that are computed by a callable, a mean over mini-batches among them: see `Function`."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, isnan, prod
from typing import Any, Self

import numpy as np
from array_api_compat import device, is_array_api_obj

from hardthresh.arrays import all_finite, as_floating, namespace, to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, NotFiniteError, format_value
from hardthresh.core.meter import Meter
from hardthresh.core.objective import BaseObjective, Evaluation, Traits
from hardthresh.core.stationarity import norm
from hardthresh.core.typing import Array, is_real, library

from .sources import Examples, Source, called, copied, pair


class Computed(BaseObjective):
    """Base of the objectives whose value and gradient come from a source. See the concrete classes.

    Parameters
    ----------
    source : Source
        What computes them.
    zeros : array
        The zero point: points have its shape, dtype, library and device.
    examples : Examples or None
        What the mean is over, if it is one.
    lower_bound : float
        A number that it never falls below, or -inf.
    """

    def __init__(self, source: Source, zeros: Array, examples: Examples | None, lower_bound: float) -> None:
        if not is_real(lower_bound) or isnan(lower_bound) or lower_bound == inf:
            raise InvalidInputError(f"lower_bound must be a number or -inf, got {format_value(lower_bound)}")
        self.shape, self.lower_bound = tuple(zeros.shape), float(lower_bound)
        self._source, self._zeros, self._examples = source, zeros, examples
        self._rows: Array | None = None  # of the examples, those that the mean is over; None for all
        self._meter: Meter | None = None
        if not source.curved:
            self.curvature = None  # type: ignore[assignment, method-assign]
        if examples is None:
            self.rows = None  # type: ignore[assignment, method-assign]

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """The number of examples of the mean; 1 for a function without examples."""
        if self._rows is not None:
            return Traits(n_rows=int(self._rows.shape[0]))
        return Traits(n_rows=1 if self._examples is None else self._examples.count)

    def rows(self, indices: Array) -> Self:
        """Return the mean over some examples: drawn at random, an unbiased estimate of the whole.

        Raises
        ------
        InvalidInputError
            If no rows are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row, got none")
        return self._with(_rows=indices if self._rows is None else namespace(indices).take(self._rows, indices, axis=0))

    def metered(self, meter: Meter) -> Self:
        """Return the same function, adding its data passes to a meter."""
        return self._with(_meter=meter)

    def zeros(self) -> Array:
        """Return the zero point."""
        return namespace(self._zeros).zeros_like(self._zeros)

    def predict(self, w: Array) -> None:
        """Return None: there are no predictions to reuse."""

    def value(self, w: Array, prediction: Array | None = None) -> float:
        """Return f(w); plus infinity outside the domain."""
        value = 0.0
        for share, batch in self._batches():
            self._count(1.0, share)
            value += share * _number(called(self._source.value, copied(w), *batch))
        return self._checked(value, w)

    def evaluate(self, w: Array, prediction: Array | None = None) -> Evaluation:
        """Return value and gradient at w; plus infinity, with a gradient of NaN, outside the domain."""
        value, gradient = 0.0, namespace(w).zeros_like(w)
        for share, batch in self._batches():
            self._count(2.0, share)
            one, slope = pair(called(self._source.both, copied(w), *batch))
            value += share * _number(one)
            gradient = gradient + share * self._shaped(slope, w, "gradient")
        if self._checked(value, w) == inf:
            return Evaluation(w, inf, gradient + namespace(w).nan)
        if not all_finite(gradient):
            raise NotFiniteError(
                f"the gradient has {_first_not_finite(gradient)} at {_described(w)}, where f = {value:.6g}"
            )
        return Evaluation(w, value, gradient)

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        image = namespace(direction).zeros_like(direction)
        for share, batch in self._batches():
            self._count(2.0, share)
            part = called(self._source.product, copied(at.point), copied(direction), *batch)
            image = image + share * self._shaped(part, direction, "product with the Hessian")
        return image

    def check_gradient(self, w: Array | None = None, *, directions: int = 5, seed: int = 0) -> float:
        r"""Return the largest relative error of the gradient, by central differences along random directions.

        .. math:: \max_v \frac{|\tfrac{1}{2h} (f(w + hv) - f(w - hv)) - \nabla f(w)^\top v|}
                              {\max(|\nabla f(w)^\top v|, \|\nabla f(w)\| / \sqrt d)}, \qquad \|v\| = 1

        Parameters
        ----------
        w : array, optional
            Where f is finite, but not where the gradient vanishes; default at a random point.
        directions : int
            How many, >= 1.
        seed : int
            Of the directions.

        Returns
        -------
        float
            About 1e-9 for a right gradient in float64, and 1e-3 in float32; about 1 for a wrong one.

        Raises
        ------
        InvalidInputError
            If f is infinite there, or there are no directions.

        Examples
        --------
        >>> import numpy as np
        >>> from hardthresh.objectives import Function
        >>> Function(lambda w: np.sum(w**4), 3, lambda w: 4 * w**3).check_gradient() < 1e-7
        True
        >>> Function(lambda w: np.sum(w**4), 3, lambda w: 3 * w**3).check_gradient() < 1e-7
        False
        """
        directions, rng = checked_integer("directions", directions, 1), np.random.default_rng(seed)
        w = self._like(rng.standard_normal(self.shape)) if w is None else as_floating(w, self._zeros, "w")
        if tuple(w.shape) != self.shape:
            raise InvalidInputError(f"w has shape {tuple(w.shape)}, points have {self.shape}")
        xp = namespace(w)
        gradient = self.evaluate(w).gradient
        least = norm(gradient) / prod(self.shape) ** 0.5
        h = float(xp.finfo(w.dtype).eps) ** (1 / 3) * max(1.0, float(xp.max(xp.abs(w))))
        worst = 0.0
        for _ in range(directions):
            v = self._like(rng.standard_normal(self.shape))
            v = v / norm(v)
            slope, along = (self.value(w + h * v) - self.value(w - h * v)) / (2.0 * h), float(xp.sum(gradient * v))
            if not (isfinite(slope) and isfinite(along)):
                raise InvalidInputError(
                    f"f is infinite at or beside {_described(w)}, so there is no gradient to check; give w= inside of "
                    "its domain"
                )
            size = max(abs(along), least)
            worst = max(worst, abs(slope - along) / size if size > 0.0 else abs(slope))
        return worst

    def _batches(self) -> Iterator[tuple[float, tuple[Any, ...]]]:
        """Yield the arguments of the callable after the point, each with its share of the mean."""
        if self._examples is None:
            yield 1.0, ()
            return
        n, chunk, like = self.traits.n_rows, self._examples.chunk, self._zeros
        for start in range(0, n, chunk):
            stop = min(n, start + chunk)
            if self._rows is None:
                some = namespace(like).arange(start, stop, device=device(like))
            else:
                some = self._rows[start:stop]
            yield (stop - start) / n, (called(self._examples.batch, some),)

    def _count(self, passes: float, share: float) -> None:
        if self._meter is not None:
            whole = 1 if self._examples is None else self._examples.count
            self._meter.add(passes * share * self.traits.n_rows / whole)

    def _checked(self, value: float, w: Array) -> float:
        if isnan(value) or value == -inf:
            raise NotFiniteError(f"the function returned {value} at {_described(w)}")
        return value

    def _shaped(self, array: Any, w: Array, name: str) -> Array:
        """Return the array that a callable returned as a copy of the kind and shape of the point."""
        if isinstance(w, np.ndarray) and not is_array_api_obj(array):
            array = np.asarray(array)
        numbers = as_floating(array, w, f"the {name}")
        if tuple(numbers.shape) != tuple(w.shape):
            raise InvalidInputError(f"the {name} has shape {tuple(numbers.shape)}, the point {tuple(w.shape)}")
        return numbers

    def _like(self, x: np.ndarray) -> Array:
        zeros = self._zeros
        return namespace(zeros).asarray(x, dtype=zeros.dtype, device=device(zeros))

    def _with(self, **changes: Any) -> Self:
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), **changes)
        return other


def _number(value: Any) -> float:
    """Return the number that a callable returned as a float."""
    shape = tuple(getattr(value, "shape", ()))
    if shape:
        raise InvalidInputError(f"the function must return one number, got an array of shape {shape}; take the mean")
    try:
        if isinstance(value, bool | str | bytes) or not _is_real(value):
            raise TypeError
        return float(value)
    except (TypeError, ValueError) as error:
        hint = "; say gradient=True if it returns the gradient too" if isinstance(value, tuple) else ""
        raise InvalidInputError(f"the function must return one number, got {type(value).__name__}{hint}") from error


def _is_real(value: Any) -> bool:
    """Return whether an object is a real number, or an array of one."""
    return not is_array_api_obj(value) or library(value).isdtype(value.dtype, ("real floating", "integral"))


def _described(w: Array) -> str:
    """Return a description of the point for messages."""
    x = to_numpy(w).ravel()
    large = int(np.argmax(np.abs(x)))
    return (
        f"the point with {np.count_nonzero(x)} of {x.size} entries non-zero, norm {float(np.linalg.norm(x)):.6g} and "
        f"largest entry {x[large]:.6g} at {large}"
    )


def _first_not_finite(gradient: Array) -> str:
    x = to_numpy(gradient).ravel()
    first = int(np.argmin(np.isfinite(x)))
    return f"{x[first]} in entry {first}"
