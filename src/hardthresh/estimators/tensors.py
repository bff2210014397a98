"""Arrays whose numbers cannot be used: tensors of torch that NumPy cannot read, and complex numbers."""

from __future__ import annotations

from typing import Any

from array_api_compat import is_torch_array

from hardthresh.core.errors import InvalidInputError


def check_readable(x: Any, name: str) -> None:
    """Check that the numbers of an array are real, and that other libraries can read them.

    Parameters
    ----------
    x : array, or anything else, which passes
        The array.
    name : str
        What messages call it.

    Raises
    ------
    InvalidInputError
        For complex numbers, and tensors of torch that record gradients, are not dense, hold no numbers, or have a
        precision that NumPy lacks; the message says how to convert them.
    """
    dtype = str(getattr(x, "dtype", ""))
    if "complex" in dtype:
        raise InvalidInputError(
            f"Complex data not supported: {name} has dtype {dtype}; give real numbers, such as {name}.real"
        )
    if not is_torch_array(x):
        return
    if str(x.layout) != "torch.strided":
        raise InvalidInputError(
            f"{name} is a tensor of the layout {x.layout}; give {name}.to_dense(), or a sparse array of SciPy"
        )
    if x.device.type == "meta":
        raise InvalidInputError(f"{name} is a tensor on the device meta, which holds no numbers; give one that does")
    if dtype == "torch.bfloat16" or dtype.startswith("torch.float8"):
        raise InvalidInputError(f"{name} has dtype {dtype}, which NumPy lacks; give {name}.to(torch.float32)")
    if x.requires_grad:
        raise InvalidInputError(f"{name} is a tensor that requires gradients; give {name}.detach()")
