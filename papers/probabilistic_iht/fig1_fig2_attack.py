"""Figures 1 and 2: one perturbation of K pixels for all digits, towards a class or away from the right one.

MNIST, read from the folder that ``HARDTHRESH_DATA`` names, and torch are needed. The classifier, 784-128-10, is trained
in the run; the attack sees 5,000 of its training images and is measured on 3,000 others. Quick has the targets 0, 3, 5
and 8 and three budgets, full all ten targets and four. What a network learns differs between machines: numbers are good
to some hundredths.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, MUTED, label, legend, new_figure, remark

from hardthresh.core.errors import MissingDependencyError
from hardthresh.datasets.files import DatasetError, local_folders
from hardthresh.objectives.sources import imported
from hardthresh.solvers import ProbabilisticIHT
from hardthresh.solvers.batches import Fixed

from ._common import PUBLISHED

TRAINING, EPOCHS, ATTACKED, TESTED, BATCH, LIMIT = 20_000, 4, 5000, 3000, 500, 100
BUDGETS, QUICK_BUDGETS, TARGETS, QUICK_TARGETS = [5, 25, 50, 100], [5, 25, 100], list(range(10)), [0, 3, 5, 8]
SHOWN, SHOWN_K, SHOWN_TARGET = 8, 25, 5
NAMES = {"tanh": "tanh, as in the paper", "pixel": "pixels, clipped"}


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


@lru_cache(maxsize=1)
def classifier(seed: int) -> Any:
    """Train the network, with Adam on batches of 64."""
    try:
        torch, data = imported("torch"), images()
    except MissingDependencyError as error:  # the other items of the paper go on, as where data are missing
        raise DatasetError(f"The classifier cannot be trained: {error}") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    net = torch.nn.Sequential(torch.nn.Flatten(), *layers)
    X, y = torch.as_tensor(data["X_train"][:TRAINING]), torch.as_tensor(data["y_train"][:TRAINING])
    optimiser, rng = torch.optim.Adam(net.parameters()), np.random.default_rng(seed)
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(X)), len(X) // 64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimiser.step()
    return net.eval()


def run(space: str, K: int, target: int | None, loss: str, seed: int) -> dict[str, Any]:
    """Find one perturbation, and measure it on test images."""
    from hardthresh.attacks import universal_perturbation

    data, net = images(), classifier(seed)
    published = ProbabilisticIHT(variant="paper", batch=Fixed(BATCH), **PUBLISHED)
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


def example(space: str, K: int, target: int | None, loss: str, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    square = np.eye(28).tolist()
    pictures = [[square, square]] * SHOWN if (K, target) == (SHOWN_K, SHOWN_TARGET) else []
    numbers = {"before": 0.94, "after": 0.5, "rate": 0.4, "changed": K, "accepted": 50.0, "outside": 0.0}
    return {**numbers, "pictures": pictures}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each space, budget and target; without a target for each loss."""
    found = []
    for space in NAMES:
        for K in BUDGETS if full else QUICK_BUDGETS:
            for target in TARGETS if full else QUICK_TARGETS:
                given = {"space": space, "K": K, "target": target, "loss": "label", "seed": seed}
                found.append(Cell(f"{space} K={K} target={target}", run, given))
            for loss in ("label", "top2"):
                given = {"space": space, "K": K, "target": None, "loss": loss, "seed": seed}
                found.append(Cell(f"{space} K={K} {loss}", run, given))
    return found


def targeted(rows: list[Row], space: str, K: int) -> list[Row]:
    """Return the runs towards a class."""
    return [row for row in pick(rows, space=space, K=K) if row["target"] is not None]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the accuracy and the share of the target over targets, and the accuracy without a target."""
    numbers = {"clean accuracy": [rows[0]["before"]]}
    budgets = BUDGETS if full else QUICK_BUDGETS
    after: dict[str, list[float]] = {}
    for space in NAMES:
        for K in budgets:
            found = targeted(rows, space, K)
            accuracy, rate = [row["after"] for row in found], [row["rate"] for row in found]
            numbers[f"{space} K={K}"] = [
                float(np.mean(accuracy)), float(np.std(accuracy)), min(accuracy), float(np.mean(rate)), max(rate),
            ]  # fmt: skip
            after.setdefault(space, []).append(float(np.mean(accuracy)))
            losses = [pick(rows, space=space, K=K, target=None, loss=loss)[0]["after"] for loss in ("label", "top2")]
            numbers[f"{space} K={K} untargeted"] = losses
    numbers["rise with K"] = [float(np.max(np.diff(after[space]))) for space in NAMES]
    numbers["pixel under tanh, K=25"] = [after["tanh"][1] - after["pixel"][1]]
    numbers["label under top2, pixel, K=25"] = [float(np.diff(numbers["pixel K=25 untargeted"])[0])]
    numbers["most over budget"] = [float(max(row["changed"] - row["K"] for row in rows))]
    numbers["most outside"] = [max(row["outside"] for row in rows)]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw accuracy and share of the target over K, and some digits before and after."""
    figure, panels = new_figure(2, 2, "Figure 1: one perturbation of K pixels for all images", height=3.6)
    budgets = BUDGETS if full else QUICK_BUDGETS
    for place, (space, name) in enumerate(NAMES.items()):
        for column, (field, what) in enumerate((("after", "accuracy"), ("rate", "taken for the target"))):
            panel, found = panels[2 * place + column], [targeted(rows, space, K) for K in budgets]
            values = np.array([[row[field] for row in runs] for runs in found])
            panel.errorbar(
                budgets, values.mean(axis=1), values.std(axis=1), label="targets: mean, deviation", capsize=3,
                linewidth=1.6, markersize=5, **LINES[0],
            )  # fmt: skip
            best = values.min(axis=1) if field == "after" else values.max(axis=1)
            panel.plot(budgets, best, label="best target", linewidth=1.6, markersize=5, **LINES[1])
            for line, loss in ((2, "label"), (3, "top2")):
                if field == "after":
                    free = [pick(rows, space=space, K=K, target=None, loss=loss)[0]["after"] for K in budgets]
                    text = f"untargeted, {'label' if loss == 'label' else 'top two (the code)'}"
                    panel.plot(budgets, free, label=text, linewidth=1.6, markersize=5, **LINES[line])
            panel.axhline(rows[0]["before"] if field == "after" else 0.1, color=MUTED, linewidth=0.8)
            panel.set_ylim(0.0, 1.02)
            label(panel, f"{name}: {what}", "K", "share of test images")
            legend(panel)
    remark(figure, "horizontal line: accuracy without a perturbation, or a tenth")
    shown = {space: pick(rows, space=space, K=SHOWN_K, target=SHOWN_TARGET)[0]["pictures"] for space in NAMES}
    again, panels = new_figure(4, 1, f"Figure 2: {SHOWN_K} pixels that make digits a {SHOWN_TARGET}", height=1.5)
    again.set_figwidth(9.0)
    for place, space in enumerate(NAMES):
        for which, text in enumerate(("as they are", "perturbed")):
            panel = panels[2 * place + which]
            pictures = [pair[which] for pair in shown[space]] or [np.zeros((28, 28)).tolist()]
            panel.imshow(
                np.hstack([np.pad(np.array(picture), 1) for picture in pictures]), cmap="gray_r", vmin=0, vmax=1
            )
            panel.grid(False)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.spines[:].set_visible(False)
            label(panel, f"{NAMES[space]}: {text}", "", "")
    return {"fig1_fig2_attack": figure, "fig1_fig2_attack_pictures": again}


ITEM = Item("Figures 1 and 2: one sparse perturbation for all digits", cells, summarise, draw, example)
