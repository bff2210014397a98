"""
Step rules side by side
=======================

Iterative hard thresholding with five step rules on one problem: a planted 10-sparse signal among 1,000 features. The
horizontal axis counts *data passes*, products with the whole data matrix, so rules that try several steps pay for them.
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
noise = 0.1 * rng.standard_normal(n)
y = X @ truth + noise

f = LinearModel(X, y, loss="squared")
best = f.value(truth)

# %%
# The two Polyak rules are given the objective at the truth as their target, with the paper's scale of 5. The others
# need no number.

rules = {
    "Polyak": Polyak(target=best, scale=5.0),
    "Sparse Polyak": SparsePolyak(target=best, scale=5.0),
    "exact line search": ExactLineSearch(),
    "backtracking": Backtracking(),
    "Barzilai-Borwein": BarzilaiBorwein(),
}
runs = {name: ht.minimize(f, Sparsity(k), IHT(step=rule), max_iter=100, tol=0.0) for name, rule in rules.items()}
runs["default solver"] = ht.minimize(f, Sparsity(k))

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, run in runs.items():
    gap = np.maximum(run.history["value"] - min(r.value for r in runs.values()), 1e-12)
    ax.semilogy(run.history["passes"], gap, label=name, linewidth=3 if name == "default solver" else 1.5)
ax.set(xlabel="data passes", ylabel="objective above the best found", xlim=(0, 120), ylim=(1e-9, None))
ax.legend()
plt.show()

# %%
# The full gradient of a 1,000-dimensional problem is mostly noise, so the classical Polyak step is too short; Sparse
# Polyak measures only the ten entries that matter.

for name, run in runs.items():
    found = len(np.intersect1d(np.flatnonzero(run.w), np.flatnonzero(truth)))
    print(f"{name:18} {run.n_iter:4} iterations, {run.passes:6.1f} passes, {found} of {k} features found")
