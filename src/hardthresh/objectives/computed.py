"""The base of objectives that are computed by a callable, a mean over mini-batches among them: see `Function`."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, isnan, nan, prod
from typing import Any, Self

import numpy as np
from array_api_compat import device, is_array_api_obj

from hardthresh.arrays import all_finite, as_floating, namespace, to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, NotFiniteError, format_value
from hardthresh.core.meter import Meter
from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.stationarity import norm
from hardthresh.core.typing import Array, is_real, library

from .coordinates import OfCoordinates
from .derivatives import Source, copied, pair
from .quadratic import has_constant_hessian, least_curvature
from .shared import ScreenedExactly
from .sources import Examples, called

MOST_COLUMNS = 4096
"""Vectors of more coordinates have no Hessian by columns: it costs a product for each, and 134 MB for so many."""


class _Known(dict[str, Any]):
    """What a function remembers: its last whole `hessian`, with the point, and what tells whether it is `quadratic`.

    It is not stored, because it can be computed again.
    """

    def __reduce__(self) -> Any:
        return _Known, ()


class Computed(ScreenedExactly):
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
        self._known = _Known()
        if zeros.ndim != 1 or zeros.shape[0] > MOST_COLUMNS:
            self.columns = None  # type: ignore[assignment, method-assign]
        if examples is None:
            self.rows = None  # type: ignore[assignment, method-assign]

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """The number of examples of the mean, 1 for a function without examples; and whether f is quadratic.

        That is tried where the function has no examples and is differentiated twice by torch or JAX. With differences
        of gradients it cannot be sure; where gradients on lines up to 10^6 long are those of a convex quadratic, they
        are relied on all the same: then f is neither `quadratic` nor `arbitrary`.
        """
        if self._rows is not None:
            return Traits(arbitrary=True, n_rows=int(self._rows.shape[0]))
        n_rows, quadratic = 1 if self._examples is None else self._examples.count, self._is_quadratic()
        relied_on = quadratic or (self._source.differences and self._curvature_on_line() > 0.0)
        return Traits(quadratic, arbitrary=not relied_on, n_rows=n_rows)

    def rows(self, indices: Array) -> Self:
        """Return the mean over some examples: drawn at random, an unbiased estimate of the whole.

        Raises
        ------
        InvalidInputError
            If no rows are given.
        """
        if indices.shape[0] == 0:
            raise InvalidInputError("a mini-batch needs at least one row, got none")
        return self._with(
            _known=_Known(),
            _rows=indices if self._rows is None else namespace(indices).take(self._rows, indices, axis=0),
        )

    def metered(self, meter: Meter) -> Self:
        """Return the same function, adding its data passes to a meter; it remembers no Hessian."""
        return self._with(_meter=meter, _known=_Known(self._known, hessian=None))

    def zeros(self) -> Array:
        """Return the zero point."""
        return namespace(self._zeros).zeros_like(self._zeros)

    def predict(self, w: Array) -> Array:
        """Return the point itself, which is what a function of some of its coordinates (`columns`) depends on."""
        return w

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
            return Evaluation(w, inf, gradient + namespace(w).nan, w)
        if not all_finite(gradient):
            raise NotFiniteError(
                f"the gradient has {_first_not_finite(gradient)} at {_described(w)}, where f = {value:.6g}"
            )
        return Evaluation(w, value, gradient, w)

    def curvature(self, at: Evaluation, direction: Array) -> Array:
        """Return the Hessian at an evaluated point times a direction."""
        return self.product_at(at.point, direction)

    def columns(self, indices: Array) -> OfCoordinates:
        """Return the function of some coordinates of the vector, by increasing index; the others are zero."""
        return OfCoordinates(self, indices)

    def hessian(self, at: Evaluation) -> Array:
        """Return the Hessian as a matrix, from a product for each coordinate."""
        return self.columns(self._all()).hessian(at)

    def hessian_diag(self, at: Evaluation) -> Array:
        """Return the diagonal of the Hessian, from a product for each coordinate."""
        return namespace(at.point).linalg.diagonal(self.hessian_rows(at.point, self._all()))

    def cross_hessian(self, at: Evaluation, other: OfCoordinates) -> Array:
        """Return the block of the Hessian between all coordinates and some."""
        return self.columns(self._all()).cross_hessian(at, other)

    def recession(self, at: Evaluation, indices: Array) -> None:
        """Return None: nothing is known of a function at infinity."""

    def double(self) -> Self:
        """Return itself: its precision is that of the user's function."""
        return self

    def product_at(self, w: Array, direction: Array) -> Array:
        """Return the Hessian at a point times a direction."""
        self._count(2.0, 1.0)
        if self._is_quadratic():
            return self._whole_hessian(w) @ direction
        image = namespace(direction).zeros_like(direction)
        for share, batch in self._batches():
            part = called(self._source.product, copied(w), copied(direction), *batch)
            image = image + share * self._shaped(part, direction, "product with the Hessian")
        return image

    def hessian_rows(self, w: Array, indices: Array) -> Array:
        """Return the rows of the Hessian at a point for some coordinates, shape (m, d).

        All rows are remembered, those of a quadratic for every point. What is remembered counts as passes, too, so that
        a run that is resumed counts as many.
        """
        self._count(2.0 * indices.shape[0], 1.0)
        if self._is_quadratic():
            return namespace(w).take(self._whole_hessian(w), indices, axis=0)
        return self._whole_hessian(w) if indices.shape[0] == self.shape[0] else self._rows_of(w, indices)

    def _whole_hessian(self, w: Array) -> Array:
        known = self._known.get("hessian")
        if known is None or not (self._is_quadratic() or bool(namespace(w).all(known[0] == w))):
            point = self.zeros() if self._is_quadratic() else copied(w)
            self._known["hessian"] = known = point, self._rows_of(point, self._all())
        return known[1]

    def _rows_of(self, w: Array, indices: Array) -> Array:
        xp = namespace(w)
        units = xp.take(xp.eye(self.shape[0], dtype=w.dtype, device=device(w)), indices, axis=0)
        rows = xp.zeros_like(units)
        for share, batch in self._batches() if indices.shape[0] else ():
            part = called(self._source.products, copied(w), units, *batch)
            rows = rows + share * self._shaped(part, units, "products with the Hessian")
        return rows

    def _is_quadratic(self) -> bool:
        """Return whether products with the Hessian do not depend on the point: see `traits`."""
        if "quadratic" not in self._known:
            is_on_lines = not isnan(self._curvature_on_line())
            uses_point = self._source.uses_point(copied(self._zeros)) if is_on_lines else True
            self._known["quadratic"] = uses_point is not True and has_constant_hessian(
                self._bare_product, self._zeros, tried=uses_point is None
            )
        return bool(self._known["quadratic"])

    def _curvature_on_line(self) -> float:
        """Return the least second derivative along lines, see `least_curvature`.

        NaN for a mean over examples, which would cost too much to try, and for what is no vector.
        """
        if "curvature" not in self._known:
            tried = self._examples is None and self.columns is not None
            self._known["curvature"] = least_curvature(self._bare_gradient, self._zeros) if tried else nan
        return float(self._known["curvature"])

    def _bare_gradient(self, w: Array) -> Array:
        """Return the gradient of a function without examples, neither counted nor checked."""
        return self._shaped(pair(self._source.both(w))[1], w, "gradient")

    def _bare_product(self, w: Array, v: Array) -> Array:
        """Return the same of the product with the Hessian."""
        return self._shaped(self._source.products(w, v[None])[0], v, "product with the Hessian")

    def _all(self) -> Array:
        return namespace(self._zeros).arange(self.shape[0], device=device(self._zeros))

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
    if type(value) is float:
        return value
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
