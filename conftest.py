"""What examples in docstrings and in the user guide need: an optional package, or they skip; no flushes of the disk."""

import sys
from importlib.util import find_spec

import pytest

NEEDS = {
    "hardthresh.attacks.": "torch",
    "hardthresh.objectives.function.Function.from_torch": "torch",
    "hardthresh.objectives.function.Function.from_jax": "jax",
    "hardthresh.report.perturbation.": "torch",
    "any_objective.rst": "jax",
    "robustness.rst": "torch",
}
"""How the names of such examples begin."""

SLOW = {
    "any_objective.rst",
    "believe.rst",
    "choosing_k.rst",
    "getting_started.rst",
    "graphical_models.rst",
    "imputation.rst",
    "larger_than_memory.rst",
    "limited.rst",
    "low_rank.rst",
    "report.rst",
    "robustness.rst",
    "saving.rst",
    "several_outputs.rst",
    "solvers.rst",
    "sparse_polyak.rst",
    "steps.rst",
    "stochastic.rst",
    "structured.rst",
    "study.rst",
    "study_planning.rst",
    "survival.rst",
    "trust.rst",
    "hardthresh.attacks.search.universal_perturbation",
    "hardthresh.comparison.contest.compare",
    "hardthresh.diagnostics.bounds.restricted_bounds",
    "hardthresh.estimators.graph.model_cv.SparseGaussianGraphicalModelCV",
    "hardthresh.estimators.linear.cox_cv.SparseCoxRegressionCV",
    "hardthresh.estimators.linear.huber.SparseHuberRegressionCV",
    "hardthresh.estimators.linear.negative_binomial.SparseNegativeBinomialRegressionCV",
    "hardthresh.estimators.linear.quantile.SparseQuantileRegressionCV",
    "hardthresh.estimators.low_rank.imputer_cv.LowRankImputerCV",
    "hardthresh.limited.algorithms.adaptive.AdaptiveHybrid",
    "hardthresh.limited.algorithms.dantzig.DantzigSelector",
    "hardthresh.limited.algorithms.dual_averaging.RegularizedDualAveraging",
    "hardthresh.limited.algorithms.logistic.LogisticHybrid",
    "hardthresh.limited.estimators.LimitedAttributeLogisticRegression",
    "hardthresh.limited.estimators.LimitedAttributeRegression",
    "hardthresh.objectives.function.Function",
    "hardthresh.report.comparison.write_comparison",
    "hardthresh.report.html.write_report",
    "hardthresh.study.planning.plan",
}
"""The names of examples that are slow, as tests/levels.py defines it."""


@pytest.fixture(autouse=True)
def no_flushed_journals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write journals without waiting for the disk, which takes most of the time of an example that buys."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr("hardthresh.limited.sources.database._SYNCHRONOUS", "OFF")


@pytest.fixture(autouse=True)
def beside_its_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the page about studies in its own folder, where the terms are that it shows."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.name == "study.rst":
        monkeypatch.chdir(request.node.path.parent)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples before some tests are deselected by their marks."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            if item.name in SLOW:
                item.add_marker(pytest.mark.slow)
            for start, package in NEEDS.items():
                if item.name.startswith(start) and find_spec(package) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))


@pytest.fixture(autouse=True)
def leave_nothing():
    """Close the figures of a test or an example, and forget the scheduler of a Dask client that is closed.

    Matplotlib warns of more than 20 figures. Dask keeps such a scheduler if the cluster was closed first, or if a
    worker in this process had a client of its own; later tests could not compute.
    """
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
    if "dask.config" in sys.modules:
        sys.modules["dask.config"].config.pop("scheduler", None)
