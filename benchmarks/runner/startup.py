"""What happens once: importing the package, and the first fit; each measured in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from statistics import median
from typing import Any

_FOUNDATIONS = ("numpy", "scipy", "sklearn")
_MINIMIZE = "import hardthresh; hardthresh.minimize"
_ESTIMATOR = "import hardthresh; hardthresh.SparseLinearRegression"
_MODULES = f"""
import sys
names = [n for n in sys.modules if n.split(".")[0] in {_FOUNDATIONS!r}]
"""

SIZES = ((100, 200, 5), (500, 1000, 10), (1000, 5000, 50))

_FIRST_FIT = """
import json, time, warnings
import numpy as np
import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.datasets import make_sparse_regression
from hardthresh.objectives import LinearModel
ht.SparseLinearRegression, ht.minimize
n, d, k = {size!r}
made = make_sparse_regression(n, d, k, correlation=0.5)
X, y = made.X, made.y
def minimize():
    ht.minimize(LinearModel(X, y), Sparsity(k))
def estimator():
    ht.SparseLinearRegression(n_nonzero_coefs=k).fit(X, y)
def cpu():
    start = time.process_time()
    {what}()
    return time.process_time() - start
print(json.dumps([cpu(), cpu()]))
"""


def imports(repeats: int) -> dict[str, Any]:
    """Return the CPU seconds of a whole process that imports something, and what ours adds to what it stands on.

    What a line of ours stands on is the very NumPy, SciPy and scikit-learn modules that it loads, imported alone in
    another process.
    """
    ours = {"hardthresh.minimize": _MINIMIZE, "hardthresh.SparseLinearRegression": _ESTIMATOR}
    scripts = {
        "python alone": "",
        "numpy, scipy.sparse, scipy.linalg": "import numpy, scipy.sparse, scipy.linalg",
        "sklearn.linear_model": "import sklearn.linear_model",
        "hardthresh": "import hardthresh",
        **ours,
        **{f"{name}: modules of others alone": _foundation(script) for name, script in ours.items()},
    }
    if find_spec("abess") is not None:
        scripts["abess.linear"] = "import abess.linear"
    seconds: dict[str, list[float]] = {name: [] for name in scripts}
    for _ in range(repeats):
        for name, script in scripts.items():
            seconds[name].append(_cpu(script))
    medians = {name: median(column) for name, column in seconds.items()}
    beyond = {name: medians[name] - medians[f"{name}: modules of others alone"] for name in ours}
    beyond = {"hardthresh": medians["hardthresh"] - medians["python alone"], **beyond}
    return {"seconds": seconds, "median": medians, "beyond": beyond}


def first_fits(
    sizes: tuple[tuple[int, int, int], ...], repeats: int, entries: tuple[str, ...] = ("minimize", "estimator")
) -> list[dict[str, Any]]:
    """Return, per size and entry point, the CPU seconds of the first and the second fit of fresh processes."""
    rows = []
    for size in sizes:
        for what in entries:
            pairs = [json.loads(_output(_FIRST_FIT.format(size=size, what=what))) for _ in range(repeats)]
            first, second = median(a for a, _ in pairs), median(b for _, b in pairs)
            rows.append({"size": size, "what": what, "pairs": pairs, "first": first, "second": second})
    return rows


def _foundation(script: str) -> str:
    """Return a script that imports what another one imports of NumPy, SciPy and scikit-learn."""
    names = _output(f"{script}{_MODULES}print(*names)").split()
    # what C code has put into sys.modules under a made-up name cannot be imported by it, and costs nothing
    return f"""
import importlib
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
"""


def _cpu(script: str) -> float:
    return float(_output(f"{script}\nimport time; print(time.process_time())"))


def _output(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], check=True, text=True, capture_output=True).stdout
