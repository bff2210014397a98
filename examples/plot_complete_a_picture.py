"""
Complete an image
=================

Half the pixels of a photograph are lost. This example fills them in by a matrix of low rank: rows and columns of a
picture resemble one another, so that a few dozen directions represent most of it.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image
from sklearn.impute import KNNImputer

import hardthresh as ht

photograph = load_sample_image("china.jpg").mean(axis=2) / 255
rng = np.random.default_rng(0)
lost = rng.random(photograph.shape) < 0.5
damaged = np.where(lost, np.nan, photograph)
print(f"{photograph.shape[0]} x {photograph.shape[1]} pixels, {lost.mean():.0%} of them lost")

# %%
# The rank is chosen by hiding some of the remaining pixels. All columns have the same unit, so they are not scaled.

model = ht.LowRankImputerCV(rank=[0, 4, 8, 16, 24], alpha=0.02, cv=4, standardize=False)
completed = model.fit_transform(damaged).clip(0, 1)
for rank, score in zip(model.candidates_, model.mean_scores_, strict=True):
    print(f"rank {rank:2d}: error on hidden pixels {np.sqrt(-score):.3f}")

# %%
# How good is the result? Compare its signal-to-noise ratio in decibels with that of nearest neighbours among the rows:


def decibels(image):
    return -10 * np.log10(np.mean((image - photograph) ** 2))


neighbours = KNNImputer().fit_transform(damaged)

fig, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
shown = {
    "the photograph": photograph,
    "half of its pixels": damaged,
    f"nearest neighbours: {decibels(neighbours):.1f} dB": neighbours,
    f"rank {model.rank_}: {decibels(completed):.1f} dB": completed,
}
for ax, (title, image) in zip(axes.flat, shown.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()

# %%
# A photograph is not a matrix of low rank: leaves and water have details in every direction. Nearest neighbours, which
# use any similar row, are as good or better here, and methods that use neighbouring pixels are better still. The
# low-rank model takes less memory than the picture:

print(f"{model.U_.size + model.V_.size} numbers instead of {photograph.size}")
