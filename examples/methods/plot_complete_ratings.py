"""
Complete a table of ratings
===========================

Each person rates a few films. How would they rate the others? The table is large and mostly empty, so it is stored as a
sparse array: entries that are not stored are missing, and the completed table is never formed.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse

import hardthresh as ht

# %%
# Simulate ratings of 400 films by 1,000 people with three tastes. Some films are better and some more popular than
# others, and ratings are 1 to 5 stars in steps of a half.

rng = np.random.default_rng(0)
n_people, n_films = 1000, 400
taste, character = rng.standard_normal((n_people, 3)), rng.standard_normal((n_films, 3))
opinion = 3.3 + 0.4 * rng.standard_normal(n_films) + 0.3 * rng.standard_normal((n_people, 1))
opinion = opinion + 0.45 * taste @ character.T
stars = np.clip(np.round(2 * (opinion + 0.4 * rng.standard_normal(opinion.shape))) / 2, 1, 5)

popularity = rng.gamma(2.0, size=n_films)
seen = rng.random(stars.shape) < np.minimum(0.9, 0.12 * popularity / popularity.mean())
people, films = np.nonzero(seen)
hidden = rng.random(people.size) < 0.1  # to evaluate the answer
ratings = sparse.coo_array((stars[people, films][~hidden], (people[~hidden], films[~hidden])), shape=stars.shape)
print(f"{ratings.nnz} ratings, {ratings.nnz / stars.size:.1%} of the table")

# %%
# Cross-validation over the ratings chooses the rank.

model = ht.LowRankImputerCV(cv=3, missing="unstored", standardize=False).fit(ratings)
print(f"rank {model.rank_}, ridge {model.alpha_}")

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.errorbar(model.candidates_, -model.mean_scores_, model.standard_errors_, marker="o")
ax.axvline(model.best_rank_, color="0.6", linestyle="--")
ax.set(xlabel="rank", ylabel="squared error of held-out ratings")
plt.show()

# %%
# Compare the errors on the hidden ratings with those of the mean of each film, which is rank 0:

truth = stars[people[hidden], films[hidden]]
for name, imputer in {
    "mean of the film": ht.LowRankImputer(rank=0, missing="unstored").fit(ratings),
    f"rank {model.rank_}": model,
}.items():
    error = imputer.predict_entries(people[hidden], films[hidden]) - truth
    print(f"{name}: off by {np.sqrt(np.mean(error**2)):.2f} stars")

# %%
# What should person 7 see next? Only that person's row is computed.

unseen = np.setdiff1d(np.arange(n_films), films[people == 7])
guess = model.predict_entries(np.full(unseen.size, 7), unseen)
for film in unseen[np.argsort(-guess)[:5]]:
    print(f"film {film}: true opinion {opinion[7, film]:.1f} stars")

# %%
# A new person does not require a new fit: a few ratings determine the coordinates of a row in the known directions.

liked = np.argsort(-character[:, 0])[:8]
newcomer = sparse.coo_array((np.full(8, 5.0), (np.zeros(8, dtype=int), liked)), shape=(1, n_films))
row = model.transform(newcomer)[0]
print(f"correlation of the completed row with the first taste: {np.corrcoef(row, character[:, 0])[0, 1]:.2f}")
