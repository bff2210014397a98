"""Every model that abess has too: time and objective beside abess, with k given, on correlated columns.

    python benchmarks/families.py                      # 500 x 1000, k = 10, correlation .5 and .9, five seeds each
    python benchmarks/families.py --only cox,ordinal --seeds 2000-2004 --write benchmarks/results/families.csv

Both packages get the table as it is, no ridge and k = 10, fit in turns on one thread, and the median of five CPU times
counts. The objective is that of one refit, the same for both, on the columns that each chose: *better* and *worse* are
differences of more than 1e-9 of it. Gamma regression is left out, because abess has another link.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from run import limit_threads

ROUNDS = 5
EQUAL = 1e-9
RHOS = (0.5, 0.9)
N, D, K = 500, 1000, 10


@dataclass(frozen=True, slots=True)
class Contest:
    """One instance, solved by both.

    Attributes
    ----------
    family, rho, seed :
        Which instance.
    seconds, peer_seconds : float
        Median CPU time of a fit.
    value, peer_value : float
        The objective of the refit.
    recall, peer_recall : float
        The share of the planted columns that was found.
    """

    family: str
    rho: float
    seed: int
    seconds: float
    peer_seconds: float
    value: float
    peer_value: float
    recall: float
    peer_recall: float

    @property
    def outcome(self) -> str:
        """Whether our objective is "better", "equal" or "worse"."""
        difference = self.value - self.peer_value
        if abs(difference) <= EQUAL * abs(self.peer_value):
            return "equal"
        return "better" if difference < 0 else "worse"


def models(family: str) -> tuple[Any, Any]:
    """Return our estimator and that of abess, which both choose K columns."""
    import abess.linear as peers

    import hardthresh as ours

    ours_of = {"squared": "Linear", "multitask": "Linear", "multinomial": "Logistic"}
    name = ours_of.get(family, family.capitalize())
    theirs_of = {"squared": "Linear", "multitask": "MultiTask"}
    peer = "CoxPHSurvivalAnalysis" if family == "cox" else f"{theirs_of.get(family, family.capitalize())}Regression"
    mine = getattr(ours, f"Sparse{name}Regression")(n_nonzero_coefs=K, alpha=0.0)
    return mine, getattr(peers, peer)(support_size=K, thread=1)


def chosen(model: Any) -> Any:
    """Return the columns that a fitted model uses; its coefficients have a row for each column or for each output."""
    import numpy as np

    coef = np.atleast_2d(np.asarray(model.coef_))
    return np.flatnonzero(np.any(coef if coef.shape[1] == D else coef.T, axis=0))


def refitted(family: str, X: Any, y: Any, support: Any) -> float:
    """Return the objective of the fit of some columns, without a ridge."""
    model = models(family)[0].set_params(n_nonzero_coefs=support.size, standardize=False, tol=1e-12)
    return float(model.fit(X[:, support], y).objective_)


def timed(fit: Callable[[], Any]) -> float:
    """Return the CPU time of a call."""
    began = process_time()
    fit()
    return process_time() - began


def contest(family: str, rho: float, seed: int) -> Contest:
    """Return how both packages solve an instance."""
    import numpy as np
    from benchmark_utils.families import draw
    from benchmark_utils.refit import recall

    instance = draw(family, N, D, K, rho, seed)
    pair = models(family)
    seconds: list[list[float]] = [[], []]
    for turn in range(ROUNDS + 1):
        for side, model in enumerate(pair):
            used = timed(lambda model=model: model.fit(instance.X, instance.y))
            if turn:  # the first is a warm-up
                seconds[side].append(used)
    supports = [chosen(model) for model in pair]
    values = [refitted(family, instance.X, instance.y, support) for support in supports]
    recalls = [recall(support, instance.support) for support in supports]
    return Contest(family, rho, seed, *(float(np.median(some)) for some in seconds), *values, *recalls)


def rows_of(contests: Iterable[Contest]) -> list[dict[str, Any]]:
    """Return one row for each family and correlation."""
    import numpy as np

    cells: dict[tuple[str, float], list[Contest]] = {}
    for one in contests:
        cells.setdefault((one.family, one.rho), []).append(one)
    rows = []
    for (family, rho), some in cells.items():
        ratios = [one.seconds / one.peer_seconds for one in some]
        outcomes = [one.outcome for one in some]
        rows.append(
            {
                "model": family,
                "rho": rho,
                "time of abess": f"{np.median(ratios):.2f}",
                "most": f"{max(ratios):.2f}",
                "milliseconds": f"{1e3 * np.median([one.seconds for one in some]):.1f}",
                **{name: outcomes.count(name) for name in ("better", "equal", "worse")},
                "recall": f"{np.mean([one.recall for one in some]):.2f}",
                "recall of abess": f"{np.mean([one.peer_recall for one in some]):.2f}",
            }
        )
    return rows


def main() -> int:
    from benchmark_utils.families import FAMILIES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, separated by commas")
    parser.add_argument("--seeds", default="3000-3004", help="first-last; settings are chosen on 2000 to 2004")
    parser.add_argument("--write", type=Path, help="a file for the table, as comma-separated values")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    warnings.simplefilter("ignore")
    contests = []
    for family in options.only.split(","):
        for rho in RHOS:
            cell = [contest(family, rho, seed) for seed in range(first, last + 1)]
            contests += cell
            print(*(f"{key} {value};" for key, value in rows_of(cell)[0].items()), flush=True)
    if options.write:
        rows = rows_of(contests)
        with options.write.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    slower = [one for one in contests if one.seconds > one.peer_seconds]
    worse = [one for one in contests if one.outcome == "worse"]
    for one in worse:
        print(f"worse: {one.family}, rho {one.rho}, seed {one.seed}: {one.value:.8g} against {one.peer_value:.8g}")
    print(f"{len(contests)} instances: {len(slower)} slower than abess, {len(worse)} with a higher objective")
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
