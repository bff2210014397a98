"""
Complete a picture
==================

*Half of the pixels of a photograph are lost. Can the others tell what was there?*

The picture is one of the photographs in scikit-learn, in grey and at half its resolution. Its rows and columns
resemble one another, so a low-rank matrix, a sum of a few dozen outer products, represents most of it.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image
from sklearn.impute import KNNImputer

import hardthresh as ht

photograph = load_sample_image("china.jpg")[::2, ::2].mean(axis=2) / 255
lost = np.random.default_rng(0).random(photograph.shape) < 0.5
damaged = np.where(lost, np.nan, photograph)
print(f"{photograph.shape[0]} x {photograph.shape[1]} pixels, {lost.mean():.0%} of them lost")

# %%
# The rank is chosen by hiding some of the remaining pixels. All columns have the same unit, so they are not scaled.

model = ht.LowRankImputerCV(rank=[0, 4, 8, 16, 24], alpha=0.02, cv=4, standardize=False)
completed = model.fit_transform(damaged).clip(0, 1)
for rank, score in zip(model.candidates_, model.mean_scores_, strict=True):
    print(f"rank {rank:2d}: error on hidden pixels {np.sqrt(-score):.3f}")

# %%
# How good is the result?
# -----------------------
# We compare the low rank with two other methods: the mean of the most similar rows for each row, and linear
# interpolation between the nearest remaining pixels for each lost pixel. The measure is the signal-to-noise ratio
# in decibels on the lost pixels; 6 dB more means half the error.


def decibels(image):
    return -10 * np.log10(np.mean((image - photograph)[lost] ** 2))


rows = KNNImputer().fit_transform(damaged)
places = np.indices(photograph.shape)
between = griddata(places[:, ~lost].T, photograph[~lost], tuple(places), method="linear", fill_value=0.5)

fig, axes = plt.subplots(3, 2, figsize=(8, 8.6), layout="constrained")
shown = {
    "the photograph": photograph,
    "half of its pixels": damaged,
    f"rank {model.rank_}: {decibels(completed):.1f} dB": completed,
    f"similar rows: {decibels(rows):.1f} dB": rows,
    f"neighbouring pixels: {decibels(between):.1f} dB": between,
    "error of the low-rank picture": 0.5 + (completed - photograph),
}
for ax, (title, image) in zip(axes.flat, shown.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()

# %%
# The low-rank model takes less memory than the picture:

print(f"{model.U_.size + model.V_.size} numbers instead of {photograph.size}")

# %%
# What to conclude, and what not
# ------------------------------
# A low rank recovers the composition of the picture from half of its pixels, and its rank was chosen without any
# knowledge about pictures. This is also its limit: it does not know which pixels are neighbours, nor that similar
# rows are near one another. Leaves and roofs have details in every direction, and stripes appear where the picture
# should be smooth. Both other methods are better here, and methods made for images are even better. Use a low rank
# for tables whose rows and columns have no order, such as ratings
# (:ref:`sphx_glr_auto_examples_methods_plot_complete_ratings.py`) or measurements.
