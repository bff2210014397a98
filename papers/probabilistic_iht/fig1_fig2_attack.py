"""Figures 1 and 2: one perturbation of K pixels for all digits, towards a class or away from the right one.

MNIST, read from the folder that ``HARDTHRESH_DATA`` names, and torch are needed. Two classifiers are trained in the
run, the 784-128-10 of the specification and a small convolutional one; the attack sees 5,000 of their training images
and is measured on 3,000 others. Quick has the targets 0, 3, 5 and 8 and two or three budgets, full all ten targets and
four. What a network learns differs between machines: numbers are good to some hundredths.
"""

from __future__ import annotations

from functools import lru_cache
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

TRAINING, EPOCHS, ATTACKED, TESTED, BATCH, LIMIT = 20_000, 4, 5000, 3000, 500, 100
BUDGETS, TARGETS = [5, 25, 50, 100], list(range(10))
QUICK_BUDGETS, QUICK_TARGETS = {"dense": [5, 25, 100], "cnn": [25, 100]}, [0, 3, 5, 8]
SHOWN, SHOWN_K, SHOWN_TARGET = 8, 25, 5
NAMES = {"tanh": "tanh, as in the paper", "pixel": "pixels, clipped"}
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


@lru_cache(maxsize=2)
def classifier(network: str, seed: int) -> Any:
    """Train a network, with Adam on batches of 64."""
    try:
        torch, data = imported("torch"), images()
    except MissingDependencyError as error:  # the other items of the paper go on, as where data are missing
        raise DatasetError(f"The classifier cannot be trained: {error}") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = {"dense": dense, "cnn": convolutional}[network](torch.nn)
    X, y = torch.as_tensor(data["X_train"][:TRAINING]), torch.as_tensor(data["y_train"][:TRAINING])
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


def run(network: str, space: str, K: int, target: int | None, loss: str, seed: int) -> dict[str, Any]:
    """Find one perturbation, and measure it on test images."""
    from hardthresh.attacks import universal_perturbation

    data, net = images(), classifier(network, seed)
    published = ProbabilisticIHT(variant="paper", batch=FixedBatch(BATCH), **PUBLISHED)
    found = universal_perturbation(
        net, data["X_train"][:ATTACKED], data["y_train"][:ATTACKED], K, target=target, space=space, loss=loss,
        solver=published, max_iter=LIMIT, seed=seed,
    )  # fmt: skip
    tested = found.evaluate(net, data["X_test"][:TESTED], data["y_test"][:TESTED])
    result = {
        "before": tested.accuracy_before,
        "after": tested.accuracy_after,
        "rate": tested.target_rate,
        "changed": tested.n_changed,
        "accepted": float(np.sum(found.result.history["accepted"])),
        "outside": float(np.maximum(-np.min(tested.images), np.max(tested.images) - 1.0)),
        "pictures": [],
    }
    if (K, target) == (SHOWN_K, SHOWN_TARGET):
        fooled = (tested.predicted_before == tested.labels) & (tested.predicted_after == target)
        rows = np.flatnonzero(fooled & (tested.labels != target))[:SHOWN]
        pairs = [np.round(np.asarray(part)[rows], 2) for part in (tested.originals, tested.images)]
        result["pictures"] = [[pair.tolist(), other.tolist()] for pair, other in zip(*pairs, strict=True)]
    return result


def example(network: str, space: str, K: int, target: int | None, loss: str, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    square = np.eye(28).tolist()
    pictures = [[square, square]] * SHOWN if (K, target) == (SHOWN_K, SHOWN_TARGET) else []
    numbers = {"before": 0.94, "after": 0.5, "rate": 0.4, "changed": K, "accepted": 50.0, "outside": 0.0}
    return {**numbers, "pictures": pictures}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each network, space, budget and target; without a target for each loss."""
    targets = [(target, "label") for target in (TARGETS if full else QUICK_TARGETS)]
    found = []
    for network in NETWORKS:
        for space in NAMES:
            for K in BUDGETS if full else QUICK_BUDGETS[network]:
                for target, loss in [*targets, (None, "label"), (None, "top2")]:
                    given = {"network": network, "space": space, "K": K, "target": target, "loss": loss, "seed": seed}
                    towards = loss if target is None else f"target={target}"
                    found.append(Cell(f"{network} {space} K={K} {towards}", run, given))
    return found


def targeted(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the runs towards a class."""
    return [row for row in pick(rows, **wanted) if row["target"] is not None]


def untargeted(rows: list[Row], loss: str, **wanted: Any) -> float:
    """Return the accuracy that a run away from the right class leaves."""
    [row] = pick(rows, target=None, loss=loss, **wanted)
    return float(row["after"])


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the accuracy and the share of the target over targets, and the accuracy without a target."""
    numbers: dict[str, list[float]] = {}
    for network in NETWORKS:
        own = pick(rows, network=network)
        numbers[f"{network} clean accuracy"] = [own[0]["before"]]
        after: dict[str, dict[int, float]] = {space: {} for space in NAMES}
        for space in NAMES:
            for K in BUDGETS if full else QUICK_BUDGETS[network]:
                found, key = targeted(own, space=space, K=K), f"{network} {space} K={K}"
                accuracy, rate = [row["after"] for row in found], [row["rate"] for row in found]
                numbers[key] = [
                    float(np.mean(accuracy)), float(np.std(accuracy)), min(accuracy), float(np.mean(rate)), max(rate),
                ]  # fmt: skip
                after[space][K] = float(np.mean(accuracy))
                numbers[f"{key} untargeted"] = [untargeted(own, loss, space=space, K=K) for loss in ("label", "top2")]
        numbers[f"{network} rise with K"] = [float(np.max(np.diff([*after[space].values()]))) for space in NAMES]
        numbers[f"{network} pixel under tanh, K=25"] = [after["tanh"][25] - after["pixel"][25]]
        label_loss, top2 = numbers[f"{network} pixel K=25 untargeted"]
        numbers[f"{network} label under top2, pixel, K=25"] = [top2 - label_loss]
        accepted = [targeted(own, space=space) for space in NAMES]
        numbers[f"{network} accepted"] = [float(np.mean([row["accepted"] for row in found])) for found in accepted]
    numbers["most over budget"] = [float(max(row["changed"] - row["K"] for row in rows))]
    numbers["most outside"] = [max(row["outside"] for row in rows)]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw accuracy and share of the target over K, and some digits before and after."""
    return {"fig1_fig2_attack": curves(rows, full), "fig1_fig2_attack_pictures": pictures(rows)}


def curves(rows: list[Row], full: bool) -> Figure:
    """Draw Figure 1: for each network and space the accuracy, and the share taken for the target."""
    figure, panels = new_figure(4, 2, "Figure 1: one perturbation of K pixels for all images", height=3.2)
    left = iter(panels)
    for network, its_name in NETWORKS.items():
        budgets = BUDGETS if full else QUICK_BUDGETS[network]
        for space in NAMES:
            own = pick(rows, network=network, space=space)
            for field, what in (("after", "accuracy"), ("rate", "taken for the target")):
                panel, found = next(left), [targeted(own, K=K) for K in budgets]
                values = np.array([[row[field] for row in runs] for runs in found])
                panel.errorbar(
                    budgets, values.mean(axis=1), values.std(axis=1), label="targets: mean, deviation", capsize=3,
                    linewidth=1.6, markersize=5, **LINES[0],
                )  # fmt: skip
                best = values.min(axis=1) if field == "after" else values.max(axis=1)
                panel.plot(budgets, best, label="best target", linewidth=1.6, markersize=5, **LINES[1])
                for line, loss in ((2, "label"), (3, "top2")):
                    if field == "after":
                        free = [untargeted(own, loss, K=K) for K in budgets]
                        text = f"untargeted, {'label' if loss == 'label' else 'top two (the code)'}"
                        panel.plot(budgets, free, label=text, linewidth=1.6, markersize=5, **LINES[line])
                panel.axhline(own[0]["before"] if field == "after" else 0.1, color=MUTED, linewidth=0.8)
                panel.set_ylim(0.0, 1.02)
                label(panel, f"{its_name}, {space}: {what}", "K", "share of test images")
    shared_legend(figure)
    remark(figure, "the space of the paper is tanh; horizontal line: accuracy without a perturbation, or a tenth")
    return figure


def pictures(rows: list[Row]) -> Figure:
    """Draw Figure 2: digits as they are, and below them with the perturbation."""
    figure, panels = new_figure(4, 1, f"Figure 2: {SHOWN_K} pixels that make digits a {SHOWN_TARGET}", height=2.3)
    figure.set_figwidth(8.0)
    pairs = [(network, space) for network in NETWORKS for space in NAMES]
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
