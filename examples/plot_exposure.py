"""
Counts with exposure
====================

*Which ships are damaged most often, if some were at sea for a hundred times as long as others?*

The data are the numbers of incidents in which waves damaged the forward section of cargo ships, from Lloyd's Register
of Shipping, as printed in McCullagh and Nelder (1989), *Generalized Linear Models*, section 6.3.2. Each row is a type
of ship (A to E), the years in which the ships were built (from 1960, 65, 70 or 75 on), the period of operation (from
1960 or from 1975 on), the months that all these ships were at sea, and the number of incidents.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.report import plot_rootogram

table = """
A 60 60   127  0   A 60 75    63  0   A 65 60  1095  3   A 65 75  1095  4   A 70 60 1512  6   A 70 75  3353 18
A 75 75  2244 11   B 60 60 44882 39   B 60 75 17176 29   B 65 60 28609 58   B 65 75 20370 53  B 70 60  7064 12
B 70 75 13099 44   B 75 75  7117 18   C 60 60  1179  1   C 60 75   552  1   C 65 60   781  0  C 65 75   676  1
C 70 60   783  6   C 70 75  1948  2   C 75 75   274  1   D 60 60   251  0   D 60 75   105  0  D 65 60   288  0
D 65 75   192  0   D 70 60   349  2   D 70 75  1208 11   D 75 75  2051  4   E 60 60    45  0  E 65 60   789  7
E 65 75   437  7   E 70 60  1157  5   E 70 75  2161 12   E 75 75   542  1
"""
ships = pd.DataFrame(np.array(table.split()).reshape(-1, 5), columns=["type", "built", "period", "months", "incidents"])
ships = ships.astype({"months": float, "incidents": int})
X = pd.get_dummies(ships[["type", "built", "period"]], dtype=float).drop(columns="period_60")
print(f"{len(ships)} rows, {ships.months.sum():,.0f} months, {ships.incidents.sum()} incidents")
print(f"months of a row: {ships.months.min():.0f} to {ships.months.max():,.0f}")

# %%
# With the exposure
# -----------------
# The expected number of incidents is proportional to the months, so their logarithm is an *offset*: a term of the
# log-mean with the coefficient 1. Here every level is a column of its own, and the extended BIC chooses how many differ
# from the rest.

rates = ht.SparsePoissonRegression().fit(X, ships.incidents, offset=np.log(ships.months))
for name, coefficient in zip(rates.get_feature_names_out(), rates.coef_[rates.support_], strict=True):
    print(f"{name:10} {np.exp(coefficient):.2f} times the incidents in a month at sea")

# %%
# Without it
# ----------
# The same model without the offset describes another quantity: which rows have many incidents.

numbers = ht.SparsePoissonRegression().fit(X, ships.incidents)
for name, coefficient in zip(numbers.get_feature_names_out(), numbers.coef_[numbers.support_], strict=True):
    print(f"{name:10} {np.exp(coefficient):.2f} times the incidents of a row")

totals = ships.groupby("type")[["months", "incidents"]].sum()
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].bar(totals.index, totals.incidents, color="#c8cfd7")
axes[0].set(xlabel="type of ship", ylabel="incidents", title="Incidents")
axes[1].bar(totals.index, 1000 * totals.incidents / totals.months, color="#17568f")
axes[1].set(xlabel="type of ship", title="Incidents in 1,000 months at sea")
plt.show()

# %%
# Type B has most incidents and the lowest rate: there are many such ships.
#
# Are the counts Poisson?
# -----------------------
# The bars of the rootogram hang from the number of rows that the model expects for each count; they end at zero if
# the model is right. The dispersion, the mean squared Pearson residual, is 1 for Poisson counts.

predicted = rates.predict(X, offset=np.log(ships.months))
squares = (ships.incidents - predicted) ** 2 / predicted
print(f"dispersion {squares.sum() / (len(ships) - rates.support_.size - 1):.2f}")

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
plot_rootogram(ships.incidents, predicted, axis)
figure.suptitle("Observed and expected counts")
plt.show()

# %%
# The counts vary more than Poisson ones: one storm damages several ships, and ships of one row differ. A negative
# binomial model allows for that, and needs more evidence for each level:

overdispersed = ht.SparseNegativeBinomialRegression().fit(X, ships.incidents, offset=np.log(ships.months))
print(list(overdispersed.get_feature_names_out()), f"dispersion parameter {overdispersed.dispersion_:.2f}")

# %%
# What to conclude, and what not
# ------------------------------
# Include an exposure in the model as an offset; without it the largest fleet looks the most dangerous. Ships built
# before 1965 were damaged less often per month at sea, and this conclusion does not depend on the loss. Two other
# conclusions do: types A and E are worse, and damages increased after 1975. With counts as overdispersed as these,
# they may be due to chance. There are only 34 rows, and ships were not assigned to types or seas at random, so the
# data do not show that any level *causes* damage.
