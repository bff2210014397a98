"""Models with at most k non-zeros, by iterative hard thresholding.

The public names load on first use (SPEC 1), so importing the package costs next to nothing: NumPy comes with the first
solver, scikit-learn with the first estimator.

Examples
--------
>>> import hardthresh as ht
>>> from hardthresh.datasets import load_colon
>>> colon = load_colon()
>>> model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
>>> int((model.coef_ != 0).sum())
3
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` finds, for type checkers and editors
    from hardthresh import (
        arrays,
        attacks,
        baselines,
        certificates,
        cli,
        comparison,
        constraints,
        core,
        datasets,
        designs,
        diagnostics,
        estimators,
        limited,
        losses,
        objectives,
        report,
        selection,
        solvers,
        steps,
        storage,
        study,
    )
    from hardthresh.comparison import compare as compare
    from hardthresh.core import Result as Result
    from hardthresh.core import Status as Status
    from hardthresh.core import show_versions as show_versions
    from hardthresh.designs import Bed as Bed
    from hardthresh.designs import from_arrays as from_arrays
    from hardthresh.designs import from_dask as from_dask
    from hardthresh.designs import from_file as from_file
    from hardthresh.designs import from_hdf5 as from_hdf5
    from hardthresh.designs import from_libsvm as from_libsvm
    from hardthresh.designs import from_npz_shards as from_npz_shards
    from hardthresh.designs import from_parquet as from_parquet
    from hardthresh.designs import from_zarr as from_zarr
    from hardthresh.estimators import *
    from hardthresh.limited import LimitedAttributeLogisticRegression as LimitedAttributeLogisticRegression
    from hardthresh.limited import LimitedAttributeRegression as LimitedAttributeRegression
    from hardthresh.selection import permutation_test as permutation_test
    from hardthresh.solvers import iterate as iterate
    from hardthresh.solvers import minimize as minimize
    from hardthresh.storage import load as load
    from hardthresh.storage import save as save

__version__ = "0.2.0"

_ROOMS = sorted(room.name for room in os.scandir(__path__[0]) if room.is_dir() and not room.name.startswith("_"))

# public names and the rooms they live in; besides, all names of the room of estimators are public here
_HOME = {
    "Bed": "designs",
    "Result": "core",
    "Status": "core",
    "LimitedAttributeLogisticRegression": "limited",
    "LimitedAttributeRegression": "limited",
    "compare": "comparison",
    "from_arrays": "designs",
    "from_dask": "designs",
    "from_file": "designs",
    "from_hdf5": "designs",
    "from_libsvm": "designs",
    "from_npz_shards": "designs",
    "from_parquet": "designs",
    "from_zarr": "designs",
    "iterate": "solvers",
    "minimize": "solvers",
    "permutation_test": "selection",
    "show_versions": "core",
    "load": "storage",
    "save": "storage",
}


def __getattr__(name: str) -> object:
    value: object
    if name == "__all__":
        value = sorted([*_ROOMS, *_HOME, *import_module(f"{__name__}.estimators").__all__])
    elif name in _ROOMS:
        value = import_module(f"{__name__}.{name}")
    else:
        room = None if name.startswith("_") else import_module(f"{__name__}.{_HOME.get(name, 'estimators')}")
        if room is None or name not in room.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # type: ignore[misc]
