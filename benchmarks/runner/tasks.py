"""What can be measured: which instances, which question, and who takes part unless others are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmark_utils.bases import grid

from .files import load

OURS = (
    "hardthresh",
    "hardthresh fast",
    "hardthresh thorough",
    "hardthresh pursuit",
    "hardthresh estimator",
    "hardthresh estimator one ridge",
)
PATHS = ((200, 500, 10, 0.5, 10), (1000, 5000, 20, 0, 10), (1000, 5000, 20, 0.5, 1), (2000, 20000, 30, 0.5, 10))
DEFAULTS = (
    (49, 200, 5),
    (62, 2000, 5),
    (100, 200, 5),
    (200, 1000, 5),
    (500, 200, 10),
    (500, 1000, 10),
    (2000, 200, 10),
    (1000, 5000, 20),
    (2000, 20000, 30),
)
"""n, d, k of the simulated tables on which everybody runs with all defaults."""
UNITS = ({}, {"y": 1e-3}, {"y": 1e3}, {"x": 1e-3}, {"x": 1e3})
SUFFIX = {"fixed": "", "path": " EBIC", "cv": " CV", "defaults": " defaults"}


@dataclass(frozen=True, slots=True)
class Instance:
    """A question about the data of a dataset file with these parameters."""

    question: str
    stem: str
    parameters: dict[str, Any]

    def dataset(self) -> Any:
        """Return the dataset, which draws or reads its data when asked."""
        return load("dataset", self.stem).get_instance(**self.parameters)

    @property
    def title(self) -> str:
        """The name in tables."""
        return self.dataset().title + SUFFIX[self.question]


@dataclass(frozen=True, slots=True)
class Task:
    """Some instances, who takes part by default, and the variants of the data that everybody gets.

    `seconds` is spent on every solver and instance, `limit` on a single run.
    """

    title: str
    instances: tuple[Instance, ...]
    entrants: tuple[str, ...]
    variants: tuple[dict[str, Any], ...] = ({},)
    seconds: float = 1.5
    limit: float = 60.0


def tasks(seeds: tuple[int, ...] = (0,)) -> dict[str, Task]:
    """Return all tasks by their names."""
    squared, logistic = _all("fixed", "least_squares", seeds), _all("fixed", "logistic", seeds)
    text = tuple(i for i in _all("fixed", "sparse_text", seeds) if i.parameters["n"] > 2000 or _is_squared(i))
    return {
        "fixed": Task("Least squares, fixed k", squared, (*OURS, "abess", "scikit-learn OMP")),
        "logistic": Task("Logistic, fixed k", logistic, (*OURS, "abess")),
        "path": Task("k chosen among 1 to 50 by EBIC", _paths("path", seeds), (*OURS, "abess")),
        "cv": Task(
            "k chosen among 1 to 50 by 5-fold cross-validation",
            _paths("cv", seeds),
            ("hardthresh estimator", "abess", "scikit-learn OMP", "scikit-learn Lasso"),
            limit=25.0,
        ),
        "sparse": Task(
            "Sparse X, fixed k",
            (*text, _real("fixed", "news20", "logistic", 50)),
            (*OURS[:3], "abess", "celer", "skglm MCP", "scikit-learn L1"),
            limit=10.0,
        ),
        "outputs": Task(
            "Three outputs and three classes, fixed k",
            tuple(
                Instance("fixed", "several_outputs", one) for one in grid(load("dataset", "several_outputs").parameters)
            ),
            ("hardthresh", "hardthresh fast", "hardthresh thorough", "abess"),
        ),
        "real": Task(
            "Real data",
            _real_instances(),
            (*OURS, "abess", "scikit-learn OMP", "scikit-learn Lasso"),
            limit=20.0,
        ),
        "small": Task(
            "Small tables",
            _small(seeds),
            ("hardthresh", "hardthresh thorough", "hardthresh estimator", "abess", "scikit-learn OMP"),
            seconds=0.2,
        ),
        "recovery": Task(
            "Support recovery",
            _recovery(seeds if len(seeds) > 1 else tuple(range(5))),
            (*OURS, "abess", "scikit-learn OMP"),
            seconds=0.0,
        ),
        "recall": Task(
            "Recall: AR(1) rho 0.9, n 500, d 3000, k 20, SNR 9",
            _recall(seeds if len(seeds) > 1 else tuple(range(5))),
            (*OURS, "abess", "scikit-learn OMP"),
            seconds=0.5,
        ),
        "equivariance": Task(
            "The same columns when y or X is multiplied by a thousand or a thousandth",
            (*squared, *logistic),
            ("hardthresh", "abess"),
            variants=UNITS,
            seconds=0.0,
        ),
        "precision": Task(
            "float32 against float64",
            squared,
            ("hardthresh",),
            variants=({}, {"dtype": "float32"}),
        ),
        "defaults": Task(
            "k chosen by 5-fold cross-validation, with all defaults",
            (*_defaults("squared", seeds), *_defaults("logistic", seeds)),
            ("hardthresh estimator", "hardthresh estimator one ridge", "abess"),
            limit=60.0,
        ),
    }


def tiny() -> Task:
    """Return small instances of everything, well-conditioned enough for the same path on every machine."""
    regression = {"n": 200, "d": 400, "k": 5, "rho": 0.5, "snr": 10}
    correlated = {"n": 300, "d": 600, "k": 8, "rho": 0.9, "snr": 10}
    classes = {"n": 300, "d": 400, "k": 4, "rho": 0.3, "scale": 3.0}
    text = {"n": 2000, "d": 300, "density": 0.05, "k": 5, "loss": "squared", "signal": 10.0}
    blocks = {"n": 100, "d": 200, "k": 5, "design": "blocks", "rho": 0.8, "snr": 3.0, "loss": "logistic"}
    pulses = {"kind": "pulses", "n": 120, "d": 100, "k": 5, "rho": 0.0}
    instances = (
        Instance("fixed", "least_squares", regression),
        Instance("fixed", "least_squares", correlated),
        Instance("fixed", "logistic", classes),
        Instance("fixed", "correlated", blocks),
        Instance("fixed", "recovery", pulses),
        Instance("fixed", "sparse_text", text),
        Instance("path", "least_squares", regression),
        Instance("cv", "least_squares", regression),
    )
    return Task("Smoke", instances, (), seconds=0.0)


def _all(question: str, stem: str, seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    parameters = {**load("dataset", stem).parameters, "seed": list(seeds)}
    return tuple(Instance(question, stem, combination) for combination in grid(parameters))


def _paths(question: str, seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    sizes = {"n, d, k, rho, snr": list(PATHS), "seed": list(seeds)}
    return tuple(Instance(question, "least_squares", combination) for combination in grid(sizes))


def _defaults(loss: str, seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    """Return simulated tables of all sizes, and the real small ones."""
    simulated = tuple(instance for size in DEFAULTS for instance in defaults(loss, size, seeds))
    return (*simulated, *defaults_on_tables(loss))


def defaults(loss: str, size: tuple[int, int, int], seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    """Return simulated tables on which k is chosen by cross-validation with all defaults, a seed for each design."""
    n, d, k = size
    shape = {"n": n, "d": d, "k": k, "intercept": True}
    if loss == "logistic":
        found = [("logistic", {"rho": rho, "scale": scale}) for rho, scale in ((0, 3.0), (0.5, 1.0), (0.9, 3.0))]
    else:
        found = [("least_squares", {"rho": rho, "snr": snr}) for rho, snr in ((0, 10), (0, 1), (0.5, 1), (0.9, 10))]
    return tuple(
        Instance("defaults", stem, {**shape, **design, "seed": seeds[i % len(seeds)]})
        for i, (stem, design) in enumerate(found)
    )


def defaults_on_tables(loss: str) -> tuple[Instance, ...]:
    """Return the real small tables with all defaults."""
    sets = grid({**load("dataset", "small_table").parameters, "k": [5], "intercept": [True]})
    return tuple(Instance("defaults", "small_table", found) for found in sets if found["loss"] == loss)


def _recall(seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    settings = {"n": 500, "d": 3000, "k": 20, "rho": 0.9, "snr": 9}
    return tuple(Instance("fixed", "least_squares", {**settings, "seed": seed}) for seed in seeds)


def _small(seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    """Return 100 x 200 for both losses, and the real tables."""
    classes = [{"n": 100, "d": 200, "k": 5, "rho": rho, "scale": 3.0} for rho in (0, 0.5, 0.9)]
    designs = load("dataset", "least_squares").parameters["rho, snr"]
    regressions = [{"n": 100, "d": 200, "k": 5, "rho": rho, "snr": snr} for rho, snr in designs]
    drawn = [("least_squares", found) for found in regressions] + [("logistic", found) for found in classes]
    real = grid(load("dataset", "small_table").parameters)
    simulated = (Instance("fixed", stem, {**found, "seed": seed}) for seed in seeds for stem, found in drawn)
    return (*simulated, *(Instance("fixed", "small_table", found) for found in real))


def _recovery(seeds: tuple[int, ...]) -> tuple[Instance, ...]:
    parameters = {**load("dataset", "recovery").parameters, "seed": list(seeds)}
    return tuple(Instance("fixed", "recovery", combination) for combination in grid(parameters))


def _real(question: str, name: str, loss: str, k: int) -> Instance:
    return Instance(question, "real", {"set": name, "loss": loss, "k": k})


def _real_instances() -> tuple[Instance, ...]:
    sets = [c for c in grid(load("dataset", "real").parameters) if c["set"] != "news20"]
    regressions = [c for c in sets if c["loss"] == "squared"]
    return tuple(
        Instance(question, "real", combination)
        for question, combinations in (("fixed", sets), ("path", regressions), ("cv", regressions))
        for combination in combinations
    )


def _is_squared(instance: Instance) -> bool:
    return instance.parameters["loss"] == "squared"
