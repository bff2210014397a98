"""
What is each feature worth?
===========================

Two columns with almost the same information: a sparse model takes one of them. Its summary says how little it would
lose with the other one.
"""

import numpy as np
import pandas
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.report import plot_correlations, plot_observed, plot_rootogram

# %%
# Claims of 2,000 insured drivers. The number depends on the age and the mileage; the engine power and the weight of the
# car are two measurements of about the same thing, and only the first one matters.

rng = np.random.default_rng(0)
names = ["age", "mileage", "power", "weight", *(f"noise {j}" for j in range(20))]
X = rng.standard_normal((2000, len(names)))
X[:, 3] = 0.9 * X[:, 2] + 0.3 * X[:, 3]
claims = rng.poisson(np.exp(-0.5 - 0.4 * X[:, 0] + 0.5 * X[:, 1] + 0.3 * X[:, 2]))

X = pandas.DataFrame(X, columns=names)
model = ht.SparsePoissonRegression(n_nonzero_coefs=3).fit(X, claims)

# %%
# The summary
# -----------
# "Drop cost" is the rise of the objective when a feature leaves and the others are refitted. The closest substitute of
# the power is the weight, and it costs much less than doing without both. The standard errors take the three features
# as given, although the same rows chose them.

print(model.summary())

# %%
# The correlations show why.

found = model.summary().correlations
plot_correlations(found.values, found.rows, columns=found.columns)
plt.show()

# %%
# Does the model fit?
# -------------------
# The bars of the rootogram hang from the numbers of drivers that the model expects for each number of claims: they end
# at zero if the counts are Poisson. In tenths of the drivers by their prediction, the observed mean is near it.

predicted = model.predict(X)
plot_rootogram(claims, predicted)
plt.show()

# %%

plot_observed(claims, predicted)
plt.show()
