"""The false discovery rate and the power of selection by knockoffs, and what it costs.

    python benchmarks/knockoffs.py --instances 40

prints a row for each setting: the mean share of false selections with its standard error, the mean share of the planted
columns that are found, and the median CPU time of a fit. Columns are normal and AR(1), coefficients have one size and
random signs, and the level is 0.2. With ``--peers`` knockpy and hidimstat, if they are installed, select from the same
tables. Seeds are 4000, 4001, ...; settings were chosen on others.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from benchmark_utils.families import FAMILIES
from run import limit_threads
from sklearn.linear_model import LassoCV

import hardthresh as ht
from hardthresh.core.errors import NothingFoundWarning
from hardthresh.estimators.selectors.importances import by_path
from hardthresh.selection import knockoff_threshold

FIRST_SEED, LEVEL = 4000, 0.2
MARGINS = {
    "lognormal": np.exp,
    "binary": lambda Z: (Z > 0).astype(float),
}
"""What columns are of normal ones with the correlation of the setting; they are then standardised."""
MODELS = {
    "squared": ht.SparseLinearRegression,
    "logistic": ht.SparseLogisticRegression,
    "poisson": ht.SparsePoissonRegression,
    "ordinal": ht.SparseOrdinalRegression,
    "cox": ht.SparseCoxRegression,
}


@dataclass(frozen=True)
class Setting:
    """Tables of one kind: n rows, d columns of which k have a coefficient +-size, and the correlation rho."""

    loss: str = "squared"
    n: int = 400
    d: int = 150
    k: int = 20
    size: float = 0.35
    rho: float = 0.3
    margin: str = "normal"
    covariance: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = np.arange(self.d)
        object.__setattr__(self, "covariance", self.rho ** np.abs(places[:, None] - places))

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns, the target, and which columns are planted."""
        rng = np.random.default_rng((seed, list(FAMILIES).index(self.loss)))
        X = rng.standard_normal((self.n, self.d)) @ np.linalg.cholesky(self.covariance).T
        if self.margin != "normal":
            X = MARGINS[self.margin](X)
            X = (X - X.mean(axis=0)) / X.std(axis=0)
        beta = np.zeros(self.d)
        beta[rng.permutation(self.d)[: self.k]] = self.size * rng.choice([-1.0, 1.0], self.k)
        return X, FAMILIES[self.loss].draw((X @ beta)[:, None], rng), beta != 0


def knockoffs(k: int | str | None = None, **settings: Any) -> Callable[[Setting, int], ht.Knockoffs]:
    """Return a function that makes the selector of a setting and a seed; k features are the planted number."""

    def make(setting: Setting, seed: int) -> ht.Knockoffs:
        given = {name: value(setting) if callable(value) else value for name, value in settings.items()}
        model = MODELS[setting.loss](n_nonzero_coefs=setting.k if k is None else k)
        return ht.Knockoffs(given.pop("estimator", model), fdr=LEVEL, random_state=seed, **given)

    return make


def true_covariance(setting: Setting) -> np.ndarray:
    """Return the covariance that the columns are drawn from."""
    return setting.covariance


def counted(setting: Setting) -> Callable[..., np.ndarray]:
    """Return the importances of the path, of which W is then the difference."""
    return partial(by_path, least=int(1 / LEVEL))


LOW, HIGH = Setting(), Setting(rho=0.6, size=0.4)
SQUARED = {
    "path, true covariance": knockoffs(covariance=true_covariance),
    "path, Ledoit-Wolf": knockoffs(),
    "path, Ledoit-Wolf, k chosen": knockoffs("auto"),
    "path, fixed": knockoffs(kind="fixed"),
    "difference of counts": knockoffs(statistic=counted),
    "coefficients of k features": knockoffs(statistic="coef"),
    "coefficients of LassoCV": knockoffs(estimator=lambda setting: LassoCV(), statistic="coef"),
    "path, 15 draws": knockoffs(n_draws=15),
}
OTHERS = {
    "more columns than rows": Setting(n=200, d=500, k=15, size=0.6),
    "lognormal columns, rho 0.6": Setting(rho=0.6, size=0.4, margin="lognormal"),
    "binary columns, rho 0.6": Setting(rho=0.6, size=0.4, margin="binary"),
    "logistic": Setting("logistic", n=600, size=0.8),
    "Poisson": Setting("poisson", n=600, size=0.25),
    "ordinal": Setting("ordinal", n=600, size=0.6),
    "Cox": Setting("cox", n=600, size=0.4),
}


def rates(
    select: Callable[[Setting, int, np.ndarray, np.ndarray], np.ndarray], setting: Setting, instances: int
) -> str:
    """Return a row of the table: false discovery rate, its standard error, power, and CPU time."""
    false, power, seconds = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + instances):
        X, y, planted = setting.draw(seed)
        began = process_time()
        chosen = np.isin(np.arange(setting.d), select(setting, seed, X, y))
        seconds.append(process_time() - began)
        false.append((chosen & ~planted).sum() / max(1, chosen.sum()))
        power.append((chosen & planted).sum() / setting.k)
    error = np.std(false, ddof=1) / np.sqrt(instances)
    return f"{np.mean(false):.3f} ± {error:.3f} | {np.mean(power):.3f} | {1000 * np.median(seconds):.0f}"


def ours(make: Callable[[Setting, int], ht.Knockoffs]) -> Callable[..., np.ndarray]:
    """Return a function that selects features with a selector."""

    def select(setting: Setting, seed: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings(action="ignore", category=NothingFoundWarning):
            return make(setting, seed).fit(X, y).support_

    return select


def knockpy(setting: Setting, seed: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Select with knockpy: Ledoit-Wolf covariance, maximum entropy, the coefficients of a cross-validated lasso."""
    from knockpy import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    chosen = KnockoffFilter(ksampler="gaussian", fstat="lasso", knockoff_kwargs={"method": "maxent"}).forward(
        X, y, fdr=LEVEL
    )
    return np.flatnonzero(chosen)


def hidimstat(setting: Setting, seed: int, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Select with the statistics of hidimstat: Ledoit-Wolf covariance, equicorrelated, a cross-validated lasso."""
    from hidimstat import ModelXKnockoff

    model = ModelXKnockoff(random_state=seed)
    model.fit_importance(X, y)
    statistics = np.ravel(model.importances_)
    return np.flatnonzero(statistics >= knockoff_threshold(statistics, LEVEL))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--only", default="", help="a part of the name of the tables")
    parser.add_argument("--peers", action="store_true")
    arguments = parser.parse_args()
    methods: dict[str, Callable[..., np.ndarray]] = {name: ours(make) for name, make in SQUARED.items()}
    if arguments.peers:
        methods = {"path, Ledoit-Wolf": methods["path, Ledoit-Wolf"], "knockpy": knockpy, "hidimstat": hidimstat}
    print("| tables | selection | false discovery rate | power | CPU ms |")
    print("|---|---|--:|--:|--:|")
    of_others = {"path, Ledoit-Wolf": ours(knockoffs()), "path, Ledoit-Wolf, k chosen": ours(knockoffs("auto"))}
    tables = [(f"squared, rho {setting.rho}", setting, methods) for setting in (LOW, HIGH)]
    tables += [] if arguments.peers else [(name, setting, of_others) for name, setting in OTHERS.items()]
    for name, setting, selections in tables:
        for selection, select in selections.items() if arguments.only in name else ():
            print(f"| {name} | {selection} | {rates(select, setting, arguments.instances)} |", flush=True)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
