"""
Which genes act together?
=========================

Which of the forty most variable genes in the colon data of Alon et al. (1999) are related, given all the others? A
Gaussian graphical model with a budget of edges shows the strongest of these relations.
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import load_colon

colon = load_colon(as_frame=True)
expression = np.log(colon.data)
genes = expression[expression.var().nlargest(40).index]
print(f"{genes.shape[0]} tissues, {genes.shape[1]} genes, {40 * 39 // 2} pairs")

# %%
# How many edges?
# ---------------
# The band is one standard error of the mean held-out log-likelihood.

counts = [0, 10, 20, 40, 80, 120]
compared = ht.SparseGaussianGraphicalModelCV(counts, cv=3).fit(genes)
mean, error = compared.mean_scores_, compared.standard_errors_
plt.plot(compared.candidates_, mean, "o-", color="black")
plt.fill_between(compared.candidates_, mean - error, mean + error, color="#dddddd")
plt.gca().set(xlabel="edges", ylabel="held-out log-likelihood")
plt.show()

# %%
# The likelihood rises up to the largest number of edges: most of these genes differ between tumour and normal tissue,
# and such a hidden common cause leads to edges everywhere. But the curve flattens, because few relations are strong. A
# budget of thirty edges shows these.

model = ht.SparseGaussianGraphicalModel(30, alpha=compared.alpha_).fit(genes)

# %%
# Which ones?
# -----------
# The partial correlation of an edge is the correlation of two genes given all the others.

for edge in model.edges_[:8]:
    print(f"{edge['first']} - {edge['second']}: {edge['partial_correlation']:+.2f}")

# %%
# In the graph, strong edges are thick and negative edges are orange. Genes without an edge are not drawn.

edges = model.edges_
joined = np.unique(np.concatenate([edges["i"], edges["j"]]))
angle = dict(zip(joined.tolist(), 2 * np.pi * np.arange(joined.size) / joined.size, strict=True))
figure, axis = plt.subplots(figsize=(6.5, 6.5))
for edge in edges:
    ends = np.array([angle[edge["i"]], angle[edge["j"]]])
    colour = "#111111" if edge["partial_correlation"] > 0 else "#e07b00"
    axis.plot(np.cos(ends), np.sin(ends), color=colour, lw=6 * abs(edge["partial_correlation"]), alpha=0.8)
places = np.array(list(angle.values()))
axis.plot(np.cos(places), np.sin(places), "o", color="#8a8a8a", ms=4)
axis.set_aspect("equal")
axis.axis("off")
plt.show()

# %%
# How far to trust it?
# --------------------
# 62 tissues are few for forty genes. ``positive_definite_adjustment_`` is 0 if the data suffice for the number of
# edges, and a second model of half of the tissues shows how many edges are found again.

print(f"adjustment {model.positive_definite_adjustment_:.3f}, ridge {model.alpha_}")
half = ht.SparseGaussianGraphicalModel(30, alpha=model.alpha_).fit(genes[::2])
pairs = [{tuple(pair) for pair in one.edges_[["i", "j"]].tolist()} for one in (model, half)]
print(f"found again: {len(pairs[0] & pairs[1])} of {len(pairs[0])}")
