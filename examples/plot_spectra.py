"""
Which wavelengths tell the fat of meat?
=======================================

*A spectrometer measures the absorbance of meat at 100 wavelengths. A cheap sensor has room for a few. Which ones, and
how much accuracy do they cost?*

The Tecator data have the near-infrared spectra of 215 samples of minced meat, from 850 to 1,048 nm in steps of 2 nm,
and their fat content by chemical analysis. They are not part of the package: ``fetch_tecator`` finds them in the folder
that ``HARDTHRESH_DATA`` names, or downloads them. Without them, this page simulates spectra by Beer's law, and its
first line says so.
"""

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import DatasetError, fetch_tecator


def simulate_spectra(n_samples=215):
    """Mixtures of water, fat and protein, whose bands add up; the path of the light differs from sample to sample."""
    rng = np.random.default_rng(0)
    fat = rng.uniform(1, 50, n_samples)
    protein = 22 - 0.2 * fat + rng.normal(0, 1, n_samples)
    shares = np.column_stack([100 - fat - protein, fat, protein]) / 100
    centres, widths = np.array([[970.0], [930.0], [910.0]]), np.array([[35.0], [14.0], [25.0]])
    bands = np.exp(-(((wavelengths - centres) / widths) ** 2) / 2)
    path = rng.uniform(0.8, 1.3, (n_samples, 1))
    noise = 2e-3 * rng.standard_normal((n_samples, wavelengths.size))
    return 2 + path * (shares @ bands + 0.5) + noise, fat


wavelengths = np.arange(850, 1050, 2)
try:
    spectra, fat = fetch_tecator(return_X_y=True)
    print("spectra of 215 samples of meat")
except DatasetError:
    spectra, fat = simulate_spectra()
    print("SIMULATED spectra: the data of Tecator are not on this machine")

# %%
# Spectra differ by their level and their contrast, which depend on how the sample scatters light rather than on fat.
# Each spectrum is centred and divided by its own standard deviation, the *standard normal variate*.

scaled = (spectra - spectra.mean(axis=1, keepdims=True)) / spectra.std(axis=1, keepdims=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(fat))
train, test = order[:150], order[150:]

# %%
# How many wavelengths?
# ---------------------
# The figure shows the error on 65 held-out samples for each number of wavelengths. For comparison, it shows the
# error of partial least squares, the usual method, which uses all 100 wavelengths and chooses its number of
# components by cross-validation.

from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV


def error(model):
    return np.sqrt(np.mean((model.predict(scaled[test]).ravel() - fat[test]) ** 2))


numbers = [1, 2, 3, 4, 6, 8, 12, 16]
models = [ht.SparseLinearRegression(n_nonzero_coefs=k).fit(scaled[train], fat[train]) for k in numbers]
search = GridSearchCV(PLSRegression(), {"n_components": range(2, 21)}, scoring="neg_mean_squared_error")
usual = search.fit(scaled[train], fat[train])

figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axis.plot(numbers, [error(model) for model in models], "o-", color="#17568f", label="chosen wavelengths")
axis.axhline(error(usual), color="#e08a2e", linestyle="--", label="partial least squares, all 100")
axis.set(xlabel="wavelengths", ylabel="error, % of fat", ylim=(0, None), title="Error on new samples")
axis.legend()
plt.show()

# %%
# Which ones?
# -----------
# With few wavelengths, the best set can be proved optimal: no other pair fits these 150 samples better.

pair = models[1]
print("fat is predicted from", wavelengths[pair.support_], "nm, error", round(error(pair), 2), "%")
print(pair.prove())

# %%
# But neighbouring wavelengths measure almost the same. These are the pairs that fit at most 10 % worse:

found = pair.alternatives(tolerance=0.1)
print([tuple(wavelengths[list(one.numbers)].tolist()) for one in found.supports[:12]])

figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
colours = plt.get_cmap("viridis")(fat / fat.max())
for spectrum, colour in zip(scaled[::6], colours[::6], strict=True):
    axis.plot(wavelengths, spectrum, color=colour, linewidth=0.8)
for wavelength in wavelengths[pair.support_]:
    axis.axvline(wavelength, color="#1b2430", linestyle="--")
axis.set(xlabel="wavelength, nm", ylabel="scaled absorbance", title="Spectra by fat, and the two chosen wavelengths")
figure.colorbar(plt.cm.ScalarMappable(plt.Normalize(0, fat.max()), "viridis"), ax=axis, label="fat, %")
plt.show()

# %%
# What to conclude, and what not
# ------------------------------
# Two wavelengths are nearly as accurate as all hundred: a cheap sensor is possible. The proof says that no other
# pair is better *on these samples*. The alternatives show that a sensor a few nanometres off would be nearly as
# good, so choose among them by the cost of the filters. Two things are not shown. First, the scaling used the whole
# spectrum, which a sensor of two wavelengths does not measure: a device needs a third and fourth channel for level
# and contrast, or another correction, which must be tested in the same way. Second, 65 samples of one instrument
# and one kind of meat do not show how well the sensor works elsewhere.
