"""
Columns of categories
=====================

*My columns are categories with several levels. Which of these columns matter, not which of their levels?*

The data give class, sex, age and survival of the 2,201 persons on board the *Titanic*. They are counts of the report
of the British Board of Trade (1912), as in Dawson (1995), *Journal of Statistics Education* 3(3).
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import hardthresh as ht

table = """
1st  male   adult 118  57   2nd  male   adult 154 14   3rd  male   adult 387 75   crew male   adult 670 192
1st  female adult   4 140   2nd  female adult  13 80   3rd  female adult  89 76   crew female adult   3  20
1st  male   child   0   5   2nd  male   child   0 11   3rd  male   child  35 13
1st  female child   0   1   2nd  female child   0 13   3rd  female child  17 14
"""
columns = ["class", "sex", "age", "lost", "saved"]
groups = pd.DataFrame(np.array(table.split()).reshape(-1, 5), columns=columns).astype({"lost": int, "saved": int})
lost, saved = (groups.loc[groups.index.repeat(groups[fate])] for fate in ("lost", "saved"))
persons = pd.concat([lost, saved])[["class", "sex", "age"]]
survived = np.repeat([0, 1], [len(lost), len(saved)])
print(f"{len(persons):,} persons, {survived.mean():.0%} survived")

# %%
# One column is one feature
# -------------------------
# Columns of the type ``category`` are chosen as a whole, with all of their levels. An interaction is a column, too:
# each pair of levels is a level of the crossed column. That makes six candidates, with 24 levels.

for first, second in (("class", "sex"), ("class", "age"), ("sex", "age")):
    persons[f"{first} x {second}"] = persons[first] + ", " + persons[second]
persons = persons.astype("category")

for k in (1, 2, 3):
    model = ht.SparseLogisticRegression(n_nonzero_coefs=k).fit(persons, survived)
    print(k, list(model.get_feature_names_out()))

# %%
# How many?
# ---------
# Cross-validation compares numbers of columns on persons that were not used for the fit. The table is sorted, so
# its rows are shuffled.

from sklearn.model_selection import StratifiedKFold

folds = StratifiedKFold(10, shuffle=True, random_state=0)
model = ht.SparseLogisticRegressionCV(n_nonzero_coefs=range(7), cv=folds, averaging="none").fit(persons, survived)
for k, score in zip(model.candidates_, model.mean_scores_, strict=True):
    print(f"{k} columns: log loss {-score:.4f}")
print("chosen:", list(model.get_feature_names_out()))

# %%
# Does it fit? The figure compares the share of survivors in each of the fourteen groups with the probability of the
# model:

crossed = groups[["class", "sex", "age"]].copy()
for first, second in (("class", "sex"), ("class", "age"), ("sex", "age")):
    crossed[f"{first} x {second}"] = crossed[first] + ", " + crossed[second]
groups["share"] = groups.saved / (groups.saved + groups.lost)
groups["model"] = model.predict_proba(crossed.astype("category"))[:, 1]
groups["name"] = groups["class"] + " " + groups["sex"] + " " + groups["age"]
shown = groups.sort_values("share")

figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
size = 10 * np.sqrt(shown.lost + shown.saved)
axis.scatter(shown.share, shown.name, size, color="#17568f", label="observed (area: number of persons)", alpha=0.7)
axis.plot(shown.model, shown.name, "d", color="#e08a2e", markeredgecolor="#1b2430", label="model")
axis.set(xlabel="share that survived", title="Who survived, and what the model says")
axis.legend(loc="lower right")
plt.show()

# %%
# What to conclude, and what not
# ------------------------------
# Class and sex cannot be judged apart: the best single column is their combination. The third column, sex by age,
# hardly improves the score; two would do. Nearly all women of the first class survived, but only half of those of
# the third class; for men the class mattered less. A column with eight levels counts as one feature here because it
# is one decision. If each level should count as a feature, use indicators, as in
# :ref:`sphx_glr_auto_examples_plot_exposure.py`. The model describes these groups; it says nothing about why.
# Families travelled and died together, so persons are not independent, and differences between neighbouring scores
# are less certain than 2,201 rows suggest. Columns with many levels and few rows may be chosen by chance
# (:doc:`/guide/tables`).
