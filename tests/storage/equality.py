"""Equality to the last bit of things made of arrays, dataclasses and plain values."""

from dataclasses import fields, is_dataclass

import numpy as np
from array_api_compat import device, is_array_api_obj

from hardthresh.arrays import to_numpy
from hardthresh.core import History
from hardthresh.core.lazy import LazyScalar
from hardthresh.core.support import Support


def assert_same(a, b):
    """Equal in type, structure and every bit."""
    a, b = (x.get() if isinstance(x, LazyScalar) else x.plain() if isinstance(x, Support) else x for x in (a, b))
    assert type(a) is type(b)
    if isinstance(a, np.ndarray) and a.dtype != object:
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes(order="A") == b.tobytes(order="A")
        assert (a.flags.c_contiguous, a.flags.f_contiguous) == (b.flags.c_contiguous, b.flags.f_contiguous)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape
        assert_same(a.ravel().tolist(), b.ravel().tolist())
    elif is_array_api_obj(a) and not isinstance(a, np.generic):
        assert (a.dtype, device(a)) == (b.dtype, device(b))
        assert_same(to_numpy(a), to_numpy(b))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, (dict, History)):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif is_dataclass(a):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes()
    else:
        assert a == b
