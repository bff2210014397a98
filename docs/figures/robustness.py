"""Draw the picture of the page on robustness: ``python -m docs.figures.robustness`` writes docs/_static/robustness.png.

The digits of scikit-learn, and the small network of that page. Needs torch; a few seconds on one core.
"""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

import hardthresh as ht
from hardthresh.report import plot_perturbation

STATIC = Path(__file__).parents[1] / "_static"


def train(images, labels, epochs=40):
    """Return a network of 64-64-10 units, trained on images."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    X, y = torch.as_tensor(images), torch.as_tensor(labels)
    for _ in range(epochs):
        for some in torch.randperm(len(y)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(X[some]), y[some]).backward()
            optimiser.step()
    return net


def draw():
    """The digits with ten pixels of their 64 perturbed."""
    digits = load_digits()
    X, y = (digits.images / 16).astype(np.float32), digits.target
    net = train(X[:1200], y[:1200])
    attack = ht.attacks.universal_perturbation(net, X[:1200], y[:1200], k=10, target=5, seed=0)
    plot_perturbation(attack.evaluate(net, X[1200:], y[1200:])).savefig(STATIC / "robustness.png", dpi=110)


if __name__ == "__main__":
    draw()
