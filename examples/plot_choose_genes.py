"""
Which genes distinguish tumours?
================================

The colon data of Alon et al. (1999) have 2,000 genes, measured in 40 tumours and 22 normal tissues. How many genes does
a good classifier need, which ones, and how reliable is the choice?
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
# Cross-validation fits a path over k in each fold. The band is one standard error of the mean score. It is wide: 62
# tissues are too few to distinguish neighbouring k.

model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 13), cv=5).fit(colon.data, colon.target)
plot_cv(model)
plt.show()

# %%
# Which ones?
# -----------
# A coefficient depends on the scale of its gene; multiplied by the standard deviation of the gene, coefficients can be
# compared.

plot_coefficients(model)
plt.show()

# %%
# Would other tissues lead to the same genes? This is the share of the folds in which each gene was chosen:

for gene, share in zip(model.get_feature_names_out(), model.selection_frequency_[model.support_], strict=True):
    print(f"{gene}: {share:.0%}")

# %%
# How far to trust it?
# --------------------
# The stop reason tells whether the run finished; the certificate tells whether the answer satisfies the conditions that
# are necessary for an optimal one.

print(model.stop_reason_)
print(model.certificate())

# %%
# How good is it on new tissues? The score of the chosen k is optimistic, because k was chosen for its score. An outer
# cross-validation, which chooses k separately in each of its folds, is not biased in this way.

from sklearn.model_selection import cross_val_score

outer = cross_val_score(model, colon.data, colon.target, cv=5, scoring="accuracy")
print(f"accuracy {outer.mean():.2f}, and {np.mean(colon.target == 1):.2f} by always predicting tumour")
