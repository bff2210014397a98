"""
When did the level change?
==========================

*My series has a level that jumps, or a slope that changes, a few times. When, and how often?*

The data are the annual flow of the Nile at Aswan from 1871 to 1970 in 10⁸ m³, as published by Cobb (1978),
*Biometrika* 65, 243-251. The construction of a dam at Aswan began in 1898, and rainfall in the highlands of Ethiopia
decreased at about that time.
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht

table = """
1120 1160  963 1210 1160 1160  813 1230 1370 1140  995  935 1110  994 1020  960 1180  799  958 1140
1100 1210 1150 1250 1260 1220 1030 1100  774  840  874  694  940  833  701  916  692 1020 1050  969
 831  726  456  824  702 1120 1100  832  764  821  768  845  864  862  698  845  744  796 1040  759
 781  865  845  944  984  897  822 1010  771  676  649  846  812  742  801 1040  860  874  848  890
 744  749  838 1050  918  986  797  923  975  815 1020  906  901 1170  912  746  919  718  714  740
"""
flow = np.array(table.split(), dtype=float)
years = np.arange(1871, 1971)

# %%
# Jumps of the level
# ------------------
# A level with k jumps is a regression with k non-zeros. The design is the integrated identity: column j is 0 before
# year j and 1 from then on, so its coefficient is the jump in that year, and the intercept is the level of the first
# year:
#
# .. math:: y_t = b_0 + \sum_{j=1872}^{1970} w_j \, 1[t \ge j] + \varepsilon_t, \qquad \|w\|_0 \le k

starts = years[1:]
steps = (years[:, None] >= starts).astype(float)
level = ht.SparseLinearRegression().fit(steps, flow)
for jump in level.support_:
    print(f"{starts[jump]}: the level changes by {level.coef_[jump]:.0f}")

# %%
# Changes of the slope
# --------------------
# If the columns are integrated once more, they are ramps, which are 0 up to year j and then increase. The straight
# line itself is always in the model, and each non-zero is a knot, a change of the slope:
#
# .. math:: y_t = b_0 + b_1 t + \sum_{j=1872}^{1969} w_j \max(0, t - j) + \varepsilon_t

knots = years[1:-1]
ramps = np.maximum(0.0, years[:, None] - knots)
slope = ht.SparseLinearRegression(always_include=[0]).fit(np.column_stack([years, ramps]), flow)
print("knots:", knots[slope.support_[1:] - 1])
print(f"EBIC {level.criterion_path_.min():.1f} with jumps, {slope.criterion_path_.min():.1f} with knots")

figure, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
axis.plot(years, flow, "o", color="#9aa5b1", markersize=4, label="annual flow")
axis.plot(years, level.predict(steps), color="#17568f", linewidth=2, label="jumps")
axis.plot(
    years, slope.predict(np.column_stack([years, ramps])), "--", color="#e08a2e", linewidth=2, label="changes of slope"
)
axis.set(xlabel="year", ylabel="flow, 10⁸ m³", title="The flow of the Nile, with jumps or with changes of slope")
axis.legend()
plt.show()

# %%
# How sure is the year?
# ---------------------
# It is proved that no other single jump fits better. Which years fit nearly as well?

print(level.prove())
for one in level.alternatives(tolerance=0.1).supports:
    print(f"{starts[one.numbers[0]]}: objective {one.excess:+.1%}")

# %%
# Would the criterion also find a jump if there is none? In random order, the values are the same, but there is no
# level that changes at a certain time:

test = ht.permutation_test(ht.SparseLinearRegression(), steps, flow, n_permutations=49, random_state=0)
print(test)

# %%
# With the l1 norm instead of the number of jumps, this is the trend filter of Kim and others (2009), *SIAM Review*
# 51(2). It shrinks the jump:

from sklearn.linear_model import LassoCV

lasso = LassoCV(cv=5).fit(steps, flow)
print(f"jumps {starts[lasso.coef_ != 0]}, by {lasso.coef_[lasso.coef_ != 0].round()}")

# %%
# What to conclude, and what not
# ------------------------------
# The level fell once, by about a quarter, and 1899 is the best year for the jump; the loss with the years from 1897
# to 1901 is within 10 %. By the same criterion, a jump describes these data better than a line with knots: the two
# chosen knots, 1898 and 1899, only imitate a jump with slopes. Do not conclude *why*: the dam and the rainfall
# changed together, and the series cannot tell them apart. The criterion assumes independent, normal errors. Flows
# of neighbouring years are slightly correlated. In series with strong correlation, this leads to too many jumps;
# then model the correlation, too. The permutation test only tests whether the order of the years matters at all,
# not whether there was exactly one jump.
