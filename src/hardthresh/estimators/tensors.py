"""Arrays whose numbers cannot be used: lazy ones, tensors of torch that NumPy cannot read, and complex numbers."""

from __future__ import annotations

from typing import Any

from array_api_compat import is_array_api_obj, is_torch_array
from sklearn import get_config

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.typing import is_numpy
from hardthresh.designs.blocks import in_blocks
from hardthresh.designs.formats.dask_tables import is_dask


def check_readable(x: Any, name: str) -> None:
    """Check that the numbers of an array are here and real, and that other libraries can read them.

    Parameters
    ----------
    x : array, or anything else, which passes
        The array.
    name : str
        What messages call it.

    Raises
    ------
    CapabilityError
        For arrays and data frames of Dask and tables in blocks, which may be larger than the memory of this process.
    InvalidInputError
        For complex numbers, and tensors of torch that record gradients, are not dense, hold no numbers, or have a
        precision that NumPy lacks; the message says how to convert them.
    """
    if is_dask(x):
        raise CapabilityError(
            f"{name} is a Dask {type(x).__name__}, which would have to be here as a whole; give {name}.compute(), if "
            "it fits into memory"
        )
    if in_blocks(x):
        raise CapabilityError(
            f"{name} is a table in blocks, which would have to be here as a whole; give an array of rows that fit into "
            "memory"
        )
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
    if x.device.type != "cpu" and not get_config()["array_api_dispatch"]:
        raise InvalidInputError(
            f"{name} is a tensor on the device {x.device}; for a fit on it set the environment variable "
            "SCIPY_ARRAY_API=1 before Python starts (os.environ before SciPy is imported will do), and call "
            f"sklearn.set_config(array_api_dispatch=True); for one on the CPU give {name}.cpu()"
        )
    if x.requires_grad:
        raise InvalidInputError(f"{name} is a tensor that requires gradients; give {name}.detach()")


def check_numpy_alone(model: Any, X: Any, dtype: Any) -> None:
    """Check that an estimator that computes in NumPy alone is not given an array of another library to compute in.

    Parameters
    ----------
    model : estimator
        The estimator.
    X : array, or anything else, which passes
        Its data.
    dtype : data-type, or a sequence of these
        What the estimator converts data to: of NumPy, if it computes in NumPy alone.

    Raises
    ------
    InvalidInputError
        For an array of another library while scikit-learn dispatches on arrays.
    """
    if not get_config()["array_api_dispatch"] or not is_array_api_obj(X) or is_numpy(X):
        return
    if any(isinstance(kind, type) for kind in (dtype if isinstance(dtype, (tuple, list)) else (dtype,))):
        raise InvalidInputError(
            f"{type(model).__name__} computes in NumPy alone, and X is a {type(X).__module__}.{type(X).__name__}; "
            "convert it (X.numpy(), of a device X.cpu().numpy()), or fit without array_api_dispatch, which reads it as "
            "NumPy's"
        )
