"""
Which genes tell tumour from normal?
====================================

The colon data of Alon et al. (1999): 2,000 genes measured in 40 tumours and 22 normal tissues. How many genes does a
good classifier need, which ones, and how far can the choice be trusted?
"""

import matplotlib.pyplot as plt
import numpy as np

import hardthresh as ht
from hardthresh.datasets import load_colon

colon = load_colon()
print(f"{colon.data.shape[0]} tissues, {colon.data.shape[1]} genes")

# %%
# How many?
# ---------
# Cross-validation fits a path over k in each fold. The band is one standard error of the mean score, and it is wide:
# 62 tissues cannot tell neighbouring k apart.

budgets = np.arange(1, 11)
model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=budgets, cv=5).fit(colon.data, colon.target)
print(f"chosen: {model.n_nonzero_coefs_} genes")

scores = np.asarray(model.scores_)
mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(budgets, mean - error, mean + error, alpha=0.2, label="one standard error")
ax.plot(budgets, mean, marker="o", label="mean over folds")
ax.axvline(model.n_nonzero_coefs_, color="0.4", linestyle=":", label="chosen")
ax.set(xlabel="number of genes", ylabel="cross-validated score", xticks=budgets)
ax.legend()
plt.show()

# %%
# Which ones?
# -----------
# A coefficient is on the scale of its gene; multiplied by the gene's standard deviation it becomes comparable.

genes = model.support_
effects = model.coef_.ravel()[genes] * colon.data[:, genes].std(axis=0)
order = np.argsort(effects)

fig, ax = plt.subplots(figsize=(7, 1.2 + 0.35 * len(genes)), layout="constrained")
ax.barh(
    [str(colon.feature_names[gene]) for gene in genes[order]],
    effects[order],
    color=["tab:red" if effect > 0 else "tab:blue" for effect in effects[order]],
)
ax.axvline(0, color="0.4", linewidth=0.8)
ax.set(xlabel="effect on the log-odds of a tumour, per standard deviation")
plt.show()

# %%
# How far to trust it?
# --------------------
# The run says whether it finished; the certificate, whether the answer passes the tests that the best one must pass.

print(model.stop_reason_)
print(model.certificate())
