"""Figures 1 and 2: one perturbation of K pixels for all digits, towards a class or away from the right one.

MNIST, read from the folder that ``HARDTHRESH_DATA`` names, and torch are needed. Two classifiers are trained in the
run, the 784-128-10 of the specification and a small convolutional one. Quick has the size of the specification: 20,000
images for training, of which the attack sees 5,000, and 3,000 others to measure; one or two targets, and two or three
budgets. Full has the size of the paper, for the dense network: 60,000 images for training and for the attack, and the
10,000 test images; two targets, and four budgets. What a network learns differs between machines: numbers are good to
some hundredths.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, MUTED, label, new_figure, remark, shared_legend

from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets.files import DatasetError, local_folders
from hardthresh.objectives.sources import imported
from hardthresh.solvers import FixedBatch, ProbabilisticIHT

from ._common import PUBLISHED

EPOCHS, BATCH, LIMIT = 4, 500, 100
RANDOM_STARTS, RANDOM_LIMIT = 20, 40
SIZES = {"part": (20_000, 5000, 3000), "all": (60_000, 60_000, 10_000)}
"""Images for training, for the attack and for the measurement: of the specification, and of the paper."""

BUDGETS = [5, 25, 50, 100]
QUICK_BUDGETS = {"dense": [5, 25, 100], "cnn": [25, 100]}
TARGETS = {"dense": [0, 5], "cnn": [5]}
SMALL_K = 5
SHOWN, SHOWN_K, SHOWN_TARGET = 8, 25, 5
NAMES = {"tanh-paper": "tanh, as in the paper", "pixel": "pixels, clipped"}
NETWORKS = {"dense": "784-128-10", "cnn": "two convolutions"}


@lru_cache(maxsize=1)
def images() -> dict[str, Any]:
    """Return MNIST, with grey values from 0 to 1."""
    for folder in local_folders():
        if (folder / "mnist.npz").is_file():
            with np.load(folder / "mnist.npz", allow_pickle=False) as arrays:
                parts = {name: arrays[name] for name in ("X_train", "y_train", "X_test", "y_test")}
            for name in ("X_train", "X_test"):
                parts[name] = parts[name].reshape(-1, 28, 28).astype(np.float32) / 255.0
            return {name: np.asarray(part, dtype=np.int64 if "y" in name else None) for name, part in parts.items()}
    raise DatasetError("mnist.npz is in no folder of data sets; set HARDTHRESH_DATA to one that has it.")


def drawn(part: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some training or test images with their classes: with seed 0 the first ones, as in the specification."""
    X, y = images()[f"X_{part}"], images()[f"y_{part}"]
    rows = np.random.default_rng(seed).permutation(len(X))[:count] if seed else slice(count)
    return X[rows], y[rows]


@lru_cache(maxsize=2)
def classifier(network: str, size: str, seed: int) -> Any:
    """Train a network, with Adam on batches of 64."""
    try:
        torch, (X, y) = imported("torch"), drawn("train", SIZES[size][0], seed)
    except MissingDependencyError as error:  # the other items of the paper go on, as where data are missing
        raise DatasetError(f"The classifier cannot be trained: {error}") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = {"dense": dense, "cnn": convolutional}[network](torch.nn)
    X, y = torch.as_tensor(X), torch.as_tensor(y)
    optimiser, rng = torch.optim.Adam(net.parameters()), np.random.default_rng(seed)
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(X)), len(X) // 64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimiser.step()
    return net.eval()


def dense(nn: Any) -> Any:
    """Return the network of the specification, untrained."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def convolutional(nn: Any) -> Any:
    """Return two convolutions of 5 x 5 with stride 2, of 8 and 16 channels, and a linear layer, untrained."""
    layers = nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU()
    return nn.Sequential(nn.Unflatten(1, (1, 28)), *layers, nn.Flatten(), nn.Linear(256, 10))


def published() -> ProbabilisticIHT:
    """Return the paper's method, whose batches are of one size."""
    return ProbabilisticIHT(variant="paper", batch=FixedBatch(BATCH), **PUBLISHED)


def run(
    network: str, size: str, space: str, K: int, target: int | None, loss: str, search: str, seed: int
) -> dict[str, Any]:
    """Find one perturbation, with the paper's method or our greedy search, and measure it on test images."""
    from hardthresh.attacks import universal_perturbation

    _, attacked, tested_on = SIZES[size]
    net, (X, y) = classifier(network, size, seed), drawn("train", attacked, seed)
    found = universal_perturbation(
        net, X, y, K, target=target, space=space, loss=loss, starts=1, max_iter=LIMIT, seed=seed,
        solver=published() if search == "published" else None,
    )  # fmt: skip
    tested = found.evaluate(net, *drawn("test", tested_on, seed))
    result = {
        "before": tested.accuracy_before,
        "after": tested.accuracy_after,
        "rate": tested.target_rate,
        "rate_before": float(np.mean(tested.predicted_before == target)),
        "misled": 1.0 - found.accuracy_after if target is None else found.target_rate,
        "changed": tested.n_changed,
        "accepted": float(np.sum(found.result.history["accepted"])) if search == "published" else 0.0,
        "pictures": [],
    }
    if (K, target, search) == (SHOWN_K, SHOWN_TARGET, "published"):
        fooled = (tested.predicted_before == tested.labels) & (tested.predicted_after == target)
        rows = np.flatnonzero(fooled & (tested.labels != target))[:SHOWN]
        pairs = [np.round(np.asarray(part)[rows], 2) for part in (tested.originals, tested.images)]
        result["pictures"] = [[pair.tolist(), other.tolist()] for pair, other in zip(*pairs, strict=True)]
    return result


def random_starts(network: str, size: str, K: int, seed: int) -> dict[str, Any]:
    """Return the strongest of several runs of the paper's method without a target, in pixels, from random starts."""
    from hardthresh.attacks import Attack
    from hardthresh.constraints import Sparsity
    from hardthresh.solvers import minimize

    _, attacked, _ = SIZES[size]
    torch, net = imported("torch"), classifier(network, size, seed)
    X, y = (torch.as_tensor(part) for part in drawn("train", attacked, seed))
    f, rng, misled = Attack(net, X, y, chunk=1000), np.random.default_rng((seed, K)), 0.0
    for start in range(RANDOM_STARTS):
        w = np.zeros(f.shape, dtype=np.float32)
        w[rng.choice(w.size, K, replace=False)] = rng.uniform(-1.0, 1.0, K)
        found = minimize(f, Sparsity(K), published(), torch.as_tensor(w), seed=seed + start, max_iter=RANDOM_LIMIT)
        with torch.no_grad():
            wrong = net(f.perturbed(X, found.w)).argmax(1) != y
        misled = max(misled, float(wrong.double().mean()))
    return {"misled": misled}


def example(**arguments: Any) -> dict[str, Any]:
    """Return what `run` or `random_starts` could have returned, at once."""
    if "space" not in arguments:
        return {"misled": 0.1}
    square, K = np.eye(28).tolist(), arguments["K"]
    shown = (K, arguments["target"], arguments["search"]) == (SHOWN_K, SHOWN_TARGET, "published")
    numbers = {"before": 0.94, "after": 0.5, "rate": 0.4, "rate_before": 0.1, "misled": 0.5}
    more = {"changed": K, "accepted": 50.0}
    return {**numbers, **more, "pictures": [[square, square]] * SHOWN if shown else []}


def attacks(full: bool) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `run`, without the seed."""
    size = "all" if full else "part"
    for network in ["dense"] if full else NETWORKS:
        towards = [(target, "label") for target in TARGETS[network]]
        for space in NAMES:
            for K in BUDGETS if full else QUICK_BUDGETS[network]:
                compared = (space, K) == ("pixel", SHOWN_K)
                without = [(None, "label"), (None, "top2")] if compared else [(None, "label")]
                for target, loss in towards + without:
                    yield {
                        "network": network, "size": size, "space": space, "K": K, "target": target, "loss": loss,
                        "search": "published",
                    }  # fmt: skip
    if not full:
        common = {"network": "dense", "size": "part", "loss": "label"}
        for target in TARGETS["dense"]:
            yield {**common, "space": "tanh", "K": SHOWN_K, "target": target, "search": "published"}
            yield {**common, "space": "pixel", "K": SHOWN_K, "target": target, "search": "greedy"}
        for K in (SMALL_K, SHOWN_K):
            yield {**common, "space": "pixel", "K": K, "target": None, "search": "greedy"}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each attack, and for small budgets without a target one of random starts."""
    found = []
    for given in attacks(full):
        towards = given["loss"] if given["target"] is None else f"target={given['target']}"
        words = given["network"], given["size"], given["space"], f"K={given['K']}", towards, given["search"]
        found.append(Cell(" ".join(words), run, {**given, "seed": seed}))
    if not full:
        given = {"network": "dense", "size": "part", "K": SMALL_K, "seed": seed}
        found.append(Cell(f"dense part K={SMALL_K} random starts", random_starts, given))
    return found


def budgets_of(rows: list[Row]) -> list[int]:
    """Return the budgets of some runs, in increasing order."""
    return sorted({row["K"] for row in rows})


def targeted(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the runs towards a class, with the paper's method."""
    return [row for row in pick(rows, **{"search": "published", **wanted}) if row["target"] is not None]


def accuracy(rows: list[Row], **wanted: Any) -> float:
    """Return the mean accuracy that runs towards a class leave."""
    return float(np.mean([row["after"] for row in targeted(rows, **wanted)]))


def taken(rows: list[Row], **wanted: Any) -> float:
    """Return the mean share of images that runs towards a class move to it."""
    return float(np.mean([row["rate"] for row in targeted(rows, **wanted)]))


def untargeted(rows: list[Row], loss: str = "label", **wanted: Any) -> float:
    """Return the accuracy that a run away from the right class leaves."""
    [row] = pick(rows, target=None, loss=loss, **{"search": "published", **wanted})
    return float(row["after"])


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the accuracy and the share of the target over targets, the accuracy without a target, and the claims."""
    measured = [row for row in rows if "space" in row]
    numbers: dict[str, list[float]] = {}
    for network in ["dense"] if full else NETWORKS:
        own = pick(measured, network=network, search="published")
        numbers[f"{network} clean accuracy"] = [own[0]["before"]]
        for space in NAMES:
            for K in budgets_of(pick(own, space=space)):
                found, key = targeted(own, space=space, K=K), f"{network} {space} K={K}"
                left, rate = [row["after"] for row in found], [row["rate"] for row in found]
                numbers[key] = [
                    float(np.mean(left)), float(np.std(left)), min(left), float(np.mean(rate)), max(rate),
                ]  # fmt: skip
                losses = [row["loss"] for row in pick(own, space=space, K=K, target=None)]
                numbers[f"{key} untargeted"] = [untargeted(own, loss, space=space, K=K) for loss in losses]
        accepted = [targeted(own, space=space) for space in NAMES]
        numbers[f"{network} accepted"] = [float(np.mean([row["accepted"] for row in found])) for found in accepted]
    if not full:
        numbers |= {key: [number] for key, number in claimed(rows, measured).items()}
    return numbers


def claimed(rows: list[Row], measured: list[Row]) -> dict[str, float]:
    """Return the numbers of the claims."""
    numbers: dict[str, float] = {}
    for network in NETWORKS:
        own, paper = pick(measured, network=network), {"space": "tanh-paper"}
        budgets, clean = QUICK_BUDGETS[network], own[0]["before"]
        most = budgets[-1]
        for less, more in pairwise(budgets):
            over = f"K={more} over K={less}"
            numbers[f"{network} accuracy, {over}"] = accuracy(own, K=more, **paper) / accuracy(own, K=less, **paper)
            numbers[f"{network} taken, {over}"] = taken(own, K=more, **paper) / taken(own, K=less, **paper)
        numbers[f"{network} accuracy over clean, K={most}"] = accuracy(own, K=most, **paper) / clean
        numbers[f"{network} untargeted over clean, K={most}"] = untargeted(own, K=most, **paper) / clean
        numbers[f"{network} untargeted over targeted, K={most}"] = untargeted(own, K=most, **paper) / accuracy(
            own, K=most, **paper
        )
        shown, other = (pick(own, K=K, target=SHOWN_TARGET, search="published", **paper)[0] for K in (SHOWN_K, most))
        numbers[f"{network} taken for a five over before, K=25"] = shown["rate"] / other["rate_before"]
        pixels = {"space": "pixel", "K": SHOWN_K}
        numbers[f"{network} pixel over tanh-paper, K=25"] = accuracy(own, **pixels) / accuracy(own, K=SHOWN_K, **paper)
        numbers[f"{network} label over top two, pixel, K=25"] = untargeted(own, "label", **pixels) / untargeted(
            own, "top2", **pixels
        )
    own = pick(measured, network="dense")
    numbers["dense tanh over tanh-paper, K=25"] = accuracy(own, space="tanh", K=SHOWN_K) / accuracy(
        own, space="tanh-paper", K=SHOWN_K
    )
    greedy = {"space": "pixel", "search": "greedy"}
    numbers["dense greedy untargeted over targeted, K=25"] = untargeted(own, K=SHOWN_K, **greedy) / accuracy(
        own, K=SHOWN_K, **greedy
    )
    numbers["dense greedy over published, untargeted, K=25"] = untargeted(own, K=SHOWN_K, **greedy) / untargeted(
        own, K=SHOWN_K, space="pixel"
    )
    [ours] = pick(own, target=None, K=SMALL_K, **greedy)
    [other] = [row for row in rows if "space" not in row]
    numbers["dense greedy over 20 random starts, K=5"] = ours["misled"] / other["misled"]
    numbers["most over budget"] = float(max(row["changed"] - row["K"] for row in measured))
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw accuracy and share of the target over K, and some digits before and after."""
    own = pick([row for row in rows if "space" in row], search="published")
    networks = ["dense"] if full else list(NETWORKS)
    return {"fig1_fig2_attack": curves(own, networks), "fig1_fig2_attack_pictures": pictures(own, networks)}


def curves(rows: list[Row], networks: list[str]) -> Figure:
    """Draw Figure 1: for each network and space the accuracy, and the share taken for the target."""
    figure, panels = new_figure(
        2 * len(networks), 2, "Figure 1: one perturbation of K pixels for all images", height=3.2
    )
    left = iter(panels)
    for network in networks:
        for space in NAMES:
            own = pick(rows, network=network, space=space)
            budgets = budgets_of(own)
            for field, what in (("after", "accuracy"), ("rate", "taken for the target")):
                panel, found = next(left), [targeted(own, K=K) for K in budgets]
                values = np.array([[row[field] for row in runs] for runs in found])
                panel.errorbar(
                    budgets, values.mean(axis=1), values.std(axis=1), label="targets: mean, deviation", capsize=3,
                    linewidth=1.6, markersize=5, **LINES[0],
                )  # fmt: skip
                best = values.min(axis=1) if field == "after" else values.max(axis=1)
                panel.plot(budgets, best, label="best target", linewidth=1.6, markersize=5, **LINES[1])
                if field == "after":
                    free = [untargeted(own, K=K) for K in budgets]
                    panel.plot(budgets, free, label="untargeted", linewidth=1.6, markersize=5, **LINES[2])
                panel.axhline(own[0]["before"] if field == "after" else 0.1, color=MUTED, linewidth=0.8)
                panel.set_ylim(0.0, 1.02)
                label(panel, f"{NETWORKS[network]}, {NAMES[space]}: {what}", "K", "share of test images")
    shared_legend(figure)
    remark(figure, "the space of the paper is tanh; horizontal line: accuracy without a perturbation, or a tenth")
    return figure


def pictures(rows: list[Row], networks: list[str]) -> Figure:
    """Draw Figure 2: digits as they are, and below them with the perturbation."""
    pairs = [(network, space) for network in networks for space in NAMES]
    figure, panels = new_figure(
        len(pairs), 1, f"Figure 2: {SHOWN_K} pixels that make digits a {SHOWN_TARGET}", height=2.3
    )
    figure.set_figwidth(8.0)
    for panel, (network, space) in zip(panels, pairs, strict=True):
        [row] = pick(rows, network=network, space=space, K=SHOWN_K, target=SHOWN_TARGET)
        shown = np.array(row["pictures"] or [np.zeros((2, 28, 28))])
        lines = [np.hstack(np.pad(shown[:, which], ((0, 0), (1, 1), (1, 1)))) for which in (0, 1)]
        panel.imshow(np.vstack(lines), cmap="gray_r", vmin=0, vmax=1)
        panel.grid(False)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.spines[:].set_visible(False)
        label(panel, f"{NETWORKS[network]}, {NAMES[space]}: as they are, and perturbed", "", "")
    return figure


ITEM = Item("Figures 1 and 2: one sparse perturbation for all digits", cells, summarise, draw, example)
