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

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names once more, for type checkers and editors
    from hardthresh import (
        arrays,
        attacks,
        baselines,
        certificates,
        cli,
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
    )
    from hardthresh.core import Result, Status
    from hardthresh.estimators import (
        LowRankImputer,
        LowRankRegression,
        LowRankRegressionCV,
        SparseGaussianGraphicalModel,
        SparseLinearRegression,
        SparseLinearRegressionCV,
        SparseLogisticRegression,
        SparseLogisticRegressionCV,
    )
    from hardthresh.limited import LimitedAttributeLogisticRegression, LimitedAttributeRegression
    from hardthresh.solvers import iterate, minimize
    from hardthresh.storage import load, save

__version__ = "0.1.0"

__all__ = [
    "LimitedAttributeLogisticRegression",
    "LimitedAttributeRegression",
    "LowRankImputer",
    "LowRankRegression",
    "LowRankRegressionCV",
    "Result",
    "SparseGaussianGraphicalModel",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "Status",
    "arrays",
    "attacks",
    "baselines",
    "certificates",
    "cli",
    "constraints",
    "core",
    "datasets",
    "designs",
    "diagnostics",
    "estimators",
    "iterate",
    "limited",
    "load",
    "losses",
    "minimize",
    "objectives",
    "report",
    "save",
    "selection",
    "solvers",
    "steps",
    "storage",
]

# public name -> the room it lives in; every other name of __all__ is a room itself
_HOME = {
    "Result": "core",
    "Status": "core",
    "LimitedAttributeLogisticRegression": "limited",
    "LimitedAttributeRegression": "limited",
    "LowRankImputer": "estimators",
    "LowRankRegression": "estimators",
    "LowRankRegressionCV": "estimators",
    "SparseGaussianGraphicalModel": "estimators",
    "SparseLinearRegression": "estimators",
    "SparseLinearRegressionCV": "estimators",
    "SparseLogisticRegression": "estimators",
    "SparseLogisticRegressionCV": "estimators",
    "iterate": "solvers",
    "minimize": "solvers",
    "load": "storage",
    "save": "storage",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = import_module(f"{__name__}.{_HOME.get(name, name)}")
    value: object = getattr(room, name) if name in _HOME else room
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
