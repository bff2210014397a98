"""
Which genes distinguish tumours?
================================

*I have 62 tissue samples and 2,000 genes. How many genes does a good classifier need, and which ones?*

The package contains the colon data of Alon et al. (1999): 40 tumours and 22 normal tissues.
"""

from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import load_colon
from hardthresh.report import plot_coefficients, plot_cv

colon = load_colon(as_frame=True)
print(f"{colon.data.shape[0]} tissues, {colon.data.shape[1]} genes")

# %%
# How many?
# ---------
# Cross-validation fits models with 1 to 12 genes in each fold. The band is one standard error of the mean score. It is
# wide: 62 tissues are too few to distinguish neighbouring numbers of genes.

model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 13), cv=5, averaging="none")
model.fit(colon.data, colon.target)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
plot_cv(model, axis)
figure.suptitle("Held-out score for each number of genes")
plt.show()

# %%
# Which ones?
# -----------
# A coefficient depends on the scale of its gene; multiplied by the standard deviation of the gene, coefficients can be
# compared.

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
plot_coefficients(model, axis)
figure.suptitle("The chosen genes")
plt.show()

# %%
# Would other tissues lead to the same genes? The bars show the share of 100 half-samples that choose each gene, for
# the ten genes that are chosen most often; the genes of the model are dark. The ``NothingFoundWarning`` says that no
# gene reaches the share of three quarters that stability selection asks for.

stability = ht.StabilitySelection(ht.SparseLogisticRegression(n_nonzero_coefs=model.n_nonzero_coefs_))
stability.fit(colon.data, colon.target)
frequencies = stability.inclusion_frequencies_
often = frequencies.argsort()[::-1][:10]

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
colours = ["#17568f" if gene in model.support_ else "#c8cfd7" for gene in often]
axis.barh(colon.data.columns[often], frequencies[often], color=colours)
axis.invert_yaxis()
axis.set(xlabel="share of half-samples", xlim=(0, 1), title="How often other tissues choose a gene")
plt.show()

# %%
# How good is it on new tissues?
# ------------------------------
# The score of the chosen number is optimistic, because the number was chosen for its score. An outer cross-validation,
# which chooses the number again in each of its folds, does not have this bias.

from sklearn.model_selection import cross_val_score

outer = cross_val_score(model, colon.data, colon.target, cv=5, scoring="accuracy")
print(f"accuracy {outer.mean():.2f}, and {(colon.target == 1).mean():.2f} by always predicting tumour")

# %%
# What to conclude, and what not
# ------------------------------
# A few genes distinguish most tumours from normal tissue: the accuracy on held-out tissues is well above that of a
# constant prediction. It is less clear which genes these are. No gene is chosen by half of the half-samples: genes
# are correlated, each has many substitutes, and 31 tissues are few. So do not report the list as *the* genes of
# colon cancer, and do not conclude that a missing gene has no role. The model only describes one laboratory and one
# array until it has been tested on others.
