"""Draw the picture and measure the table of the page on robustness: ``python -m docs.figures.robustness``.

Writes docs/_static/robustness.png and docs/guide/robustness_searches.csv. The digits of scikit-learn, and the small
network of that page. Needs torch; a minute on one core.
"""

import csv
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.report import plot_perturbation
from hardthresh.solvers import NormTest, ProbabilisticIHT

DOCS = Path(__file__).parents[1]
RANDOM_STARTS = 20


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


def draw(net, X, y):
    """Draw digits with ten pixels of their 64 perturbed."""
    attack = ht.attacks.universal_perturbation(net, X[:1200], y[:1200], k=10, target=5, seed=0)
    plot_perturbation(attack.evaluate(net, X[1200:], y[1200:])).savefig(DOCS / "_static" / "robustness.png", dpi=110)


def misled(net, X, y, k, target, **options):
    """Return the share of images that a search misleads, or moves to the target."""
    found = ht.attacks.universal_perturbation(net, X, y, k=k, target=target, seed=0, **options)
    return 1.0 - found.accuracy_after if target is None else found.target_rate


def best_of_random_starts(net, X, y, k, target):
    """Return that share for the strongest of the paper's searches from random perturbations of k pixels."""
    images, labels, rng, shares = torch.as_tensor(X), torch.as_tensor(y), np.random.default_rng(0), []
    f = ht.attacks.Attack(net.eval(), images, labels, target=target)
    for seed in range(RANDOM_STARTS):
        w = torch.zeros(images[0].numel())
        w[rng.choice(w.numel(), k, replace=False)] = torch.as_tensor(rng.uniform(-1.0, 1.0, k).astype(np.float32))
        run = ht.minimize(f, Sparsity(k), ProbabilisticIHT(variant="paper"), w, seed=seed, max_iter=100)
        predicted = net(f.perturbed(images, run.w)).argmax(1)
        shares.append(float((predicted != labels if target is None else predicted == target).double().mean()))
    return max(shares)


def measure(net, X, y):
    """Write the table of searches."""
    paper, ours = ProbabilisticIHT(variant="paper"), ProbabilisticIHT(batch=NormTest(500))
    with (DOCS / "guide" / "robustness_searches.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        searches = "default", "greedy alone", "one by steps", "one as in the paper", "20 random starts"
        table.writerow(["k", "target", *searches])
        for target in (None, 5):
            for k in (1, 3, 5, 10, 25):
                given = net, X, y, k, target
                shares = [misled(*given), misled(*given, starts=1), misled(*given, solver=ours)]
                shares += [misled(*given, solver=paper), best_of_random_starts(*given)]
                written = [f"{share:.3f}".removeprefix("0") for share in shares]
                table.writerow([k, "none" if target is None else target, *written])


if __name__ == "__main__":
    digits = load_digits()
    images, classes = (digits.images / 16).astype(np.float32), digits.target
    network = train(images[:1200], classes[:1200])
    draw(network, images, classes)
    measure(network, images[:1200], classes[:1200])
