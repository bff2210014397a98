"""The bits of things, to compare two of them."""

from dataclasses import fields, is_dataclass

import numpy as np


def everything(thing):
    """All numbers in something that is made of dataclasses, to compare two of them to the last bit."""
    if isinstance(thing, np.ndarray):
        return (thing.shape, thing.dtype.str, thing.tobytes())
    if is_dataclass(thing):
        return (type(thing), *(everything(getattr(thing, field.name)) for field in fields(thing)))
    if isinstance(thing, list | tuple):
        return tuple(everything(item) for item in thing)
    return thing
