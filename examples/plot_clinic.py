"""
A clinic that buys values
=========================

*A full examination of a patient costs 218. We want to predict the days in hospital from a few values, and cannot
examine all patients in full to learn which. What do we measure, and what does a prediction cost?*

The patients of ``make_clinic`` are simulated and its prices are invented: no study with the price of each value is
freely available. The 51 values come in 13 panels, such as a blood count, and 7 values of 6 panels have an effect.
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import make_clinic
from hardthresh.report import plot_learning_curve

clinic = make_clinic(4000)
X = clinic.to_pandas()
print(f"{len(clinic.prices)} panels: {clinic.prices}")

# %%
# Learn within a budget
# ---------------------
# About half of the full price may be spent on each patient of the study, and at most 75 on each later prediction.
# The model chooses the panels, patient by patient. It never sees values that it is not allowed to buy.

terms = {"n_nonzero_coefs": 7, "costs": clinic.prices, "panels": clinic.panels, "budget": 110.0}
model = ht.LimitedAttributeRegression(**terms, prediction_budget=75.0).fit(X, clinic.y)
spent = model.budget_
print(
    f"{spent.examples:,} patients, {spent.money / spent.examples:.0f} each on average, at most {spent.per_example:.0f}"
)
print(f"a prediction costs {spent.per_prediction:.0f} and needs", ", ".join(model.required_features_))

# %%
# Each patient is predicted before the model learns from them, so the curve is an unbiased estimate of the error at
# each time. The dotted line is the noise, which no model can predict.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
plot_learning_curve(model, axis)
axis.axhline(clinic.noise**2, color="#1b2430", linestyle=":")
figure.suptitle("Error after each patient")
plt.show()

# %%
# What is a cheaper prediction worth?
# -----------------------------------
# This is the same study with other limits for a prediction. (The ``UserWarning`` says that with the two lowest
# limits, panels that cost more than the limit cannot be explored and are not bought.) The errors are those on 4,000
# patients who come later. The dashed line is least squares on the complete table, which would have cost 218 for
# each patient of the study.

later = make_clinic(4000, seed=1)
X_later = later.to_pandas()


def error(model):
    return np.mean((model.predict(X_later) - later.y) ** 2)


limits = [15.0, 25.0, 40.0, 55.0, 75.0]
models = [ht.LimitedAttributeRegression(**terms, prediction_budget=limit).fit(X, clinic.y) for limit in limits]
prices = [one.budget_.per_prediction for one in models]
complete = ht.SparseLinearRegression(n_nonzero_coefs=7).fit(X, clinic.y)
print(f"error {error(models[-1]):.2f}, and {error(complete):.2f} with the complete table")

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axis.plot(prices, [error(one) for one in models], "o-", color="#17568f", label="learned within the budget")
axis.axhline(error(complete), color="#e08a2e", linestyle="--", label="learned from complete examinations")
axis.set(xlabel="price of a prediction", ylabel="mean squared error", ylim=(0, None), title="What accuracy costs")
axis.legend()
plt.show()

for price, one in zip(prices, models, strict=True):
    print(f"{price:3.0f}: {', '.join(one.required_features_)}")

# %%
# What to conclude, and what not
# ------------------------------
# Half of the money was enough to learn the model that complete examinations give, and a prediction costs less than
# a third of a full examination. The curve shows how much accuracy each cheaper option loses, so a clinic can
# choose. If a budget excludes a panel, a correlated value replaces it, as glucose replaces HbA1c: a value that is
# bought may have no effect. These patients follow a linear model with independent noise, the same for the whole
# study, and exactly seven values have an effect. None of this holds for real patients. First test the purchase on a
# complete table of an earlier study. :doc:`/guide/limited` describes patients who do not come, journals, and two
# classes.
