"""Cross-validation of every family, and the choice by a criterion, with all defaults: CPU time and test loss.

    python benchmarks/cross_validation.py                             # 500 x 1000 and 300 x 100, four seeds each
    python benchmarks/cross_validation.py --only cox,ordinal --shapes 300x100 --seeds 2004-2007 --json times.json

Rows of a family are also fitted with groups of five columns. The test loss is that of 2,000 further rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from time import process_time
from typing import Any

from run import limit_threads

K, RHO, TEST_ROWS, GROUP = 10, 0.5, 2000, 5


def loss_of(family: str, model: Any, X: Any, y: Any) -> float:
    """Return the mean loss of predictions: the partial likelihood for times, squared errors added up over outputs."""
    import numpy as np
    from sklearn.metrics import log_loss, mean_poisson_deviance

    from hardthresh.losses import Cox

    if family == "cox":
        return float(Cox().prepare(y, np.full(len(y), 1 / len(y))).value(model.predict(X)))
    if family == "poisson":
        return float(mean_poisson_deviance(y, model.predict(X)))
    if hasattr(model, "predict_proba"):
        return float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return float(np.sum((model.predict(X) - y) ** 2) / len(y))


def fitted(family: str, n: int, d: int, seed: int, *, cv: bool, grouped: bool) -> dict[str, Any]:
    """Return the CPU time of a fit, its number of features, and its test loss."""
    import numpy as np
    from benchmark_utils.families import draw

    import hardthresh

    instance = draw(family, n + TEST_ROWS, d, K, RHO, seed)
    name = {"squared": "Linear", "multitask": "Linear", "multinomial": "Logistic"}.get(family, family.capitalize())
    settings = {"groups": (np.arange(d) // GROUP).tolist()} if grouped else {}
    model = getattr(hardthresh, f"Sparse{name}Regression{'CV' * cv}")(**settings)
    began = process_time()
    model.fit(instance.X[:n], instance.y[:n])
    seconds = process_time() - began
    return {
        "family": family,
        "shape": f"{n}x{d}",
        "chooser": "cv" if cv else "criterion",
        "groups": grouped,
        "seed": seed,
        "seconds": seconds,
        "features": int(model.support_.size),
        "loss": loss_of(family, model, instance.X[n:], instance.y[n:]),
    }


def main() -> int:
    import numpy as np
    from benchmark_utils.families import FAMILIES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, separated by commas")
    parser.add_argument("--shapes", default="500x1000,300x100", help="rows x columns, separated by commas")
    parser.add_argument("--seeds", default="2004-2007", help="first-last; settings are chosen on 2000 to 2003")
    parser.add_argument("--json", type=Path, help="a file for all fits")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    warnings.simplefilter("ignore")
    fits: list[dict[str, Any]] = []
    for shape in options.shapes.split(","):
        n, d = map(int, shape.split("x"))
        for family in options.only.split(","):
            for cv, grouped in ((True, False), (False, False), (True, True)):
                fitted(family, 50, 20, 0, cv=cv, grouped=grouped)  # a warm-up
                cell = [fitted(family, n, d, seed, cv=cv, grouped=grouped) for seed in range(first, last + 1)]
                fits += cell
                seconds, loss = (np.mean([one[key] for one in cell]) for key in ("seconds", "loss"))
                label = f"{family}{', groups' * grouped}"
                print(f"{shape} {label:22s} {cell[0]['chooser']:9s} {seconds:.3f} s, test loss {loss:.4f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(fits, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    limit_threads()
    raise SystemExit(main())
