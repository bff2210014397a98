"""
A signature of survival
=======================

*Which few measurements at the start of a trial tell who will stay without progression, and do the treatments count
among them?*

The package contains the AIDS Clinical Trials Group Study 175 (Hammer et al., 1996), with 2,139 patients with HIV. 521
of them had an event: a fall of the CD4 count by half, AIDS or death. The others were *censored*: their observation
ended before an event. There are 16 measurements before the treatment, and three columns for the treatments; the
reference is zidovudine alone.
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import load_actg175
from hardthresh.report import plot_cv, plot_survival

trial = load_actg175(as_frame=True)
rng = np.random.default_rng(0)
test = rng.permutation(len(trial.data)) < 700
X, y = trial.data[~test], trial.target[~test]
X_test, y_test = trial.data[test], trial.target[test]
print(f"{len(X):,} patients for the fit, {y.event.sum()} events; {len(X_test)} others for the test")

# %%
# How many measurements?
# ----------------------
# Cross-validation compares Cox models with 0 to 12 columns by their held-out partial likelihood.

model = ht.SparseCoxRegressionCV(n_nonzero_coefs=range(13), cv=5, averaging="none", random_state=0).fit(X, y)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
plot_cv(model, axis)
figure.suptitle("Held-out likelihood for each number of columns")
plt.show()

# %%
# Which ones?
# -----------
# A hazard ratio says how many times more frequent events are if a binary column is 1 instead of 0, or if another
# column is larger by one standard deviation. ``cd40`` and ``cd80`` are counts of CD4 and CD8 cells at the start,
# ``karnof`` is the Karnofsky score of fitness, ``z30`` zidovudine in the month before, ``symptom`` symptoms of HIV,
# ``drugs`` a history of injecting drugs; ``zdv_ddi``, ``zdv_zal`` and ``ddi`` are the three treatments.

for name, coefficient, spread in zip(X.columns, model.coef_, X.std(), strict=True):
    if coefficient:
        step = 1.0 if X[name].isin([0, 1]).all() else spread
        print(f"{name:8} hazard ratio {np.exp(coefficient * step):.2f}")

# %%
# How well does it tell patients apart?
# -------------------------------------
# The test patients are divided into three equal groups by their predicted risk. Steps show the observed survival,
# dashed lines the predicted survival. The score is the concordance: the share of pairs in which the patient with
# the higher predicted risk has the event first; .5 is guessing.

print(f"concordance {model.score(X_test, y_test):.2f} on patients of the test")
everything = ht.SparseCoxRegression(n_nonzero_coefs=X.shape[1]).fit(X, y)
print(f"with all {X.shape[1]} columns {everything.score(X_test, y_test):.2f}")

times = np.linspace(30, 1100, 60)
predicted = model.predict_survival_function(X_test, times=times)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
plot_survival(y_test.time, y_test.event, model.predict(X_test), axis, times=times, survival=predicted)
axis.set_xlabel("days")
figure.suptitle("Patients of the test by predicted risk")
plt.show()

# %%
# Would other patients lead to the same columns? The output shows the share of 40 half-samples that choose each
# column:

same_number = ht.SparseCoxRegression(n_nonzero_coefs=model.n_nonzero_coefs_)
half = ht.StabilitySelection(same_number, n_pairs=20, random_state=0).fit(X, y)
for name, share in sorted(zip(X.columns, half.inclusion_frequencies_, strict=True), key=lambda pair: -pair[1])[:12]:
    print(f"{name:8} {share:.2f}{'' if name in model.get_feature_names_out() else '  (not in the model)'}")

# %%
# What to conclude, and what not
# ------------------------------
# A low CD4 count at the start, symptoms, and treatment with zidovudine alone are associated with earlier events. A
# model with nine columns ranks new patients as well as one with all nineteen. The number nine is uncertain: the
# curve is flat from eight on, and CD4 alone gives half of the gain. The treatments were assigned at random, so
# their hazard ratios estimate effects of the treatment. Those of the other columns are only associations, and
# nobody should act on that of ``drugs``. The concordance is far from 1: many patients with a high risk have no
# event for years, so do not use the score for decisions on single patients. The hazard ratios are estimated from
# the same patients as the choice of the columns, so they are too far from 1 on average; ``model.inference(X, y,
# kind="split")`` gives intervals without this bias (:doc:`/guide/believe`). Cox's model is described in
# :doc:`/guide/survival`.
