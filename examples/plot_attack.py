"""
An attack on a classifier
=========================

*How many broken pixels does it take until my classifier of digits fails on most images?*

The data are the digits of scikit-learn, 1,797 images of 8 x 8 pixels, and the model is a small torch network. A
*universal* perturbation changes the same few pixels in every image, as dirt on a lens does. Use it to test your own
models.
"""

import numpy as np
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from hardthresh.attacks import universal_perturbation

digits = load_digits()
X, y = (digits.images / 16).astype(np.float32), digits.target
train, test = slice(0, 1200), slice(1200, None)


def fit_network(images, labels, epochs=40):
    torch.manual_seed(0)
    layers = torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    network = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    images, labels = torch.as_tensor(images), torch.as_tensor(labels)
    for _ in range(epochs):
        for some in torch.randperm(len(labels)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(images[some]), labels[some]).backward()
            optimiser.step()
    return network


network = fit_network(X[train], y[train])

# %%
# The worst pixels
# ----------------
# The search uses the training images, and the evaluation uses 597 others. For comparison, the same number of pixels
# are made black or white at random places; the result is the mean of 100 draws.

numbers = [1, 2, 3, 5, 8]
attacks = [universal_perturbation(network, X[train], y[train], k=k, seed=0) for k in numbers]
worst = [attack.evaluate(network, X[test], y[test]).accuracy_after for attack in attacks]

rng = np.random.default_rng(0)


def accuracy_with_random_pixels(k):
    images = X[test].reshape(-1, 64).copy()
    images[:, rng.choice(64, k, replace=False)] = rng.integers(0, 2, k)
    with torch.no_grad():
        predicted = network(torch.as_tensor(images.reshape(-1, 8, 8))).argmax(1).numpy()
    return np.mean(predicted == y[test])


chance = [np.mean([accuracy_with_random_pixels(k) for _ in range(100)]) for k in numbers]
before = attacks[0].evaluate(network, X[test], y[test]).accuracy_before
print(f"accuracy {before:.2f}; with the worst {numbers[3]} pixels {worst[3]:.2f}, with random ones {chance[3]:.2f}")

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axis.plot([0, *numbers], [before, *chance], "s--", color="#e08a2e", label="random pixels")
axis.plot([0, *numbers], [before, *worst], "o-", color="#17568f", label="the worst pixels that were found")
axis.axhline(0.1, color="#5a6675", linestyle=":", label="guessing")
axis.set(xlabel="changed pixels of 64", ylabel="accuracy", ylim=(0, 1), title="Accuracy on new images")
axis.legend()
plt.show()

# %%
# What it looks like
# ------------------

attacked = attacks[3].evaluate(network, X[test], y[test]).images
figure, axes = plt.subplots(2, 8, figsize=(8, 2.8), layout="constrained")
for row, images in zip(axes, (X[test], np.asarray(attacked)), strict=True):
    classes = network(torch.as_tensor(images[:8])).argmax(1)
    for axis, image, name in zip(row, images, classes, strict=False):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axis.set_xlabel(f"taken for {name}")
        axis.set(xticks=[], yticks=[])
figure.suptitle("Digits of the test, and the same with five pixels changed")
plt.show()

# %%
# Does a defence help?
# --------------------
# The network is trained again on images in which 15 % of the pixels are black or white. The perturbation of the
# first network is now less harmful. But the perturbation that is made for the new network is the one that counts:

noisy = np.concatenate([X[train]] * 4)
broken = rng.random(noisy.shape) < 0.15
noisy[broken] = rng.integers(0, 2, broken.sum())
defended = fit_network(noisy, np.concatenate([y[train]] * 4), epochs=10)
own = universal_perturbation(defended, X[train], y[train], k=5, seed=0)
for name, attack in (("of the first network", attacks[3]), ("of its own", own)):
    print(f"five pixels {name}: accuracy {attack.evaluate(defended, X[test], y[test]).accuracy_after:.2f}")

# %%
# What to conclude, and what not
# ------------------------------
# Random damage says little about the worst case: a few pixels in the right places break this network, which
# survives as many random ones. Evaluate a defence with an attack on the defended model. The accuracies are upper
# bounds on the worst case: the search is a heuristic, a stronger perturbation may exist, and finding none would not
# prove a model robust. The network is small, the images are coarse, and pixels may become black or white. For other
# images, budgets and ranges see :doc:`/guide/robustness`.
