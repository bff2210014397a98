"""
Step rules side by side
=======================

This example compares iterative hard thresholding with five step rules on one problem, a planted 10-sparse signal among
1,000 features. The horizontal axis counts *data passes*, that is, products with the whole data matrix, so that rules
which try several steps in an iteration are charged for all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import Backtracking, BarzilaiBorwein, ExactLineSearch, Polyak, SparsePolyak

rng = np.random.default_rng(0)
n, d, k = 300, 1000, 10
X = rng.standard_normal((n, d))
truth = np.zeros(d)
truth[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
y = X @ truth + 0.1 * rng.standard_normal(n)

f = LinearModel(X, y, loss="squared")
default = ht.minimize(f, Sparsity(k))

# %%
# The two Polyak rules need a target, the value to reach. It is set to the value that the default solver found, and
# their scale is 5, as in the paper. The other rules have no parameters to set.

rules = {
    "Polyak": Polyak(target=default.value, scale=5.0),
    "Sparse Polyak": SparsePolyak(target=default.value, scale=5.0),
    "exact line search": ExactLineSearch(),
    "backtracking": Backtracking(),
    "Barzilai-Borwein": BarzilaiBorwein(),
}
runs = {name: ht.minimize(f, Sparsity(k), IHT(step=rule), max_iter=100, tol=0.0) for name, rule in rules.items()}
runs["default solver"] = default

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, run in runs.items():
    gap = np.maximum(run.history["value"] - default.value, 1e-12)
    ax.semilogy(run.history["passes"], gap, label=name, linewidth=3 if run is default else 1.5)
ax.set(xlabel="data passes", ylabel="objective above the default solver's", ylim=(1e-9, None))
ax.legend()
plt.show()

# %%
# The full gradient of a 1,000-dimensional problem is mostly noise, so the classical Polyak step is too short. Sparse
# Polyak uses only the ten largest entries.

for name, run in runs.items():
    found = len(np.intersect1d(np.flatnonzero(run.w), np.flatnonzero(truth)))
    print(f"{name:18} {run.n_iter:4} iterations, {run.passes:6.1f} passes, {found} of {k} features found")
