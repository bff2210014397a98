"""
How far to trust a selected set
===============================

The targets depend on two columns of 42, and a model of three features is fitted. Its third feature is there because
something had to be chosen. Which tools notice that? :doc:`/guide/believe` asks more questions, of a real data set.
"""

import numpy as np
import pandas
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.report import plot_alternatives, plot_gap, plot_stability

# %%
# Six columns "first" have a correlation of .9, six columns "second" one of .55, and one column of each six matters.

rng = np.random.default_rng(0)
first, second = rng.standard_normal((2, 200, 1))
blocks = [0.3 * rng.standard_normal((200, 6)) + first, 0.9 * rng.standard_normal((200, 6)) + second]
X = np.hstack([*blocks, rng.standard_normal((200, 30))])
y = X[:, 0] + X[:, 6] + 1.5 * rng.standard_normal(200)

names = [*(f"first {j}" for j in range(6)), *(f"second {j}" for j in range(6)), *(f"noise {j}" for j in range(30))]
X = pandas.DataFrame(X, columns=names)
model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, y)
print(", ".join(X.columns[model.support_]))

# %%
# The proof does not notice
# -------------------------
# No other three columns fit these rows better. That is true, and proved, and says nothing about "noise 24".

proof = model.prove()
print(proof)

# %%
# A lower bound of all sets meets the objective of the best set that was found. The search is longer for ten features.

plot_gap(ht.SparseLinearRegression(n_nonzero_coefs=10).fit(X, y).prove())
plt.show()

# %%
# The alternatives do
# -------------------
# In the other sets that fit nearly as well the third feature is any column: eight have its place, each in one set. The
# two columns that matter are in all sets. Of five near copies of "first 0" none replaces it within 2 %.

found = model.alternatives()
print(found)

# %%

plot_alternatives(found)
plt.show()

# %%
# Other rows do
# -------------
# Half-samples choose it seldom. A copy of "first 0" takes its place now and then.

stability = ht.StabilitySelection(model).fit(X, y)
plot_stability(stability)
plt.show()

# %%
# Intervals from rows that did not choose
# ---------------------------------------
# Half of the rows choose the same columns. By the other half the coefficient of the third may well be 0.

print(model.inference(X, y, kind="split"))

# %%
# The number of features was given here. The extended BIC chooses two of them.

chosen = ht.SparseLinearRegression().fit(X, y)
print(", ".join(X.columns[chosen.support_]))
