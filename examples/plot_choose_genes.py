"""
Which genes tell tumour from normal?
====================================

The colon data of Alon et al. (1999): 2,000 genes measured in 40 tumours and 22 normal tissues. How many genes does a
good classifier need, which ones, and how far can the choice be trusted?
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import load_colon
from hardthresh.report import plot_coefficients, plot_cv

colon = load_colon(as_frame=True)
print(f"{colon.data.shape[0]} tissues, {colon.data.shape[1]} genes")

# %%
# How many?
# ---------
# Cross-validation fits a path over k in each fold. The band is one standard error of the mean score, and it is wide:
# 62 tissues cannot tell neighbouring k apart.

model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 13), cv=5).fit(colon.data, colon.target)
plot_cv(model)
plt.show()

# %%
# Which ones?
# -----------
# A coefficient is on the scale of its gene; multiplied by the gene's standard deviation it becomes comparable.

plot_coefficients(model)
plt.show()

# %%
# Would other tissues have chosen the same genes? The share of the folds in which each was chosen again:

for gene, share in zip(model.get_feature_names_out(), model.selection_frequency_[model.support_], strict=True):
    print(f"{gene}: {share:.0%}")

# %%
# How far to trust it?
# --------------------
# The run says whether it finished; the certificate, whether the answer passes the tests that the best one must pass.

print(model.stop_reason_)
print(model.certificate())

# %%
# How good is it on new tissues? The score of the chosen k is too good, because it was chosen for it. An outer
# cross-validation, which chooses anew in each of its folds, tells the truth.

from sklearn.model_selection import cross_val_score

outer = cross_val_score(model, colon.data, colon.target, cv=5, scoring="accuracy")
print(f"accuracy {outer.mean():.2f}, and {np.mean(colon.target == 1):.2f} by always saying tumour")
