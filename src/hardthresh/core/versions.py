"""The versions that a computation depends on, for bug reports."""

from __future__ import annotations

import platform

from hardthresh import __version__

from .compiled import describe_kernel
from .threads import described_libraries, thread_count

REQUIRED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "array-api-compat", "narwhals")
"""The packages that every installation has, those of scikit-learn that are used directly included."""
OPTIONAL = (
    *("torch", "jax", "dask", "distributed", "pandas", "polars", "pyarrow", "h5py", "zarr", "duckdb"),
    *("adbc-driver-postgresql", "pooch", "rdata", "matplotlib", "jinja2", "typer", "rich", "starlette", "uvicorn"),
)
"""The packages that extras install or whose objects are accepted."""


def show_versions() -> None:
    """Print the versions of hardthresh and its dependencies, and whether the compiled kernel is used.

    The lines are: hardthresh, its kernel (with the instructions that it uses, or why NumPy code runs instead), Python,
    the platform, the packages (optional ones if they are installed), each BLAS library with its threads, and the number
    of threads that large passes over the data are split over.

    Notes
    -----
    The function imports SciPy, which loads its BLAS library.

    Examples
    --------
    >>> import hardthresh as ht
    >>> ht.show_versions()
    hardthresh        0.2...
    kernel            ...
    Python            3...
    ...
    """
    rows = [
        ("hardthresh", __version__),
        ("kernel", describe_kernel()),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", platform.platform()),
        *((name, found) for name in (*REQUIRED, *OPTIONAL) if (found := _installed(name)) is not None),
        *(("BLAS", library) for library in described_libraries()),
        ("threads", str(thread_count())),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")


def _installed(package: str) -> str | None:
    """Return the version of a package without importing it, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # takes a tenth of the time of importing this room

    try:
        return version(package)
    except PackageNotFoundError:
        return None
