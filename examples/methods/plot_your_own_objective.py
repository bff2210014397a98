"""
A function of your own
======================

An objective is a class with a shape and a method that returns value and gradient; everything else has a default. This
example defines the log-cosh loss, which is quadratic near zero and linear far away, and fits data in which every tenth
target is wrong.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import BaseObjective, Evaluation
from hardthresh.objectives import LinearModel


@dataclass(frozen=True)
class LogCosh(BaseObjective):
    """The mean over rows of log(cosh(x w - y)), a smooth robust loss."""

    X: np.ndarray
    y: np.ndarray
    lower_bound: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.X.shape[1:]

    def predict(self, w: np.ndarray) -> np.ndarray:
        return self.X @ w

    def value(self, w: np.ndarray, prediction: np.ndarray | None = None) -> float:
        residual = (self.predict(w) if prediction is None else prediction) - self.y
        return float(np.mean(np.logaddexp(residual, -residual) - np.log(2)))

    def evaluate(self, w: np.ndarray, prediction: np.ndarray | None = None) -> Evaluation:
        prediction = self.predict(w) if prediction is None else prediction
        gradient = self.X.T @ np.tanh(prediction - self.y) / len(self.y)
        return Evaluation(w, self.value(w, prediction), gradient, prediction)


# %%
# The signal is 5-sparse, and one target in ten is an outlier.

rng = np.random.default_rng(1)
X = rng.standard_normal((200, 500))
truth = np.zeros(500)
truth[:5] = [2.0, -1.5, 1.0, -1.0, 0.75]
y = X @ truth + 0.1 * rng.standard_normal(200)
y[::10] += 30 * rng.standard_normal(20)

robust = ht.minimize(LogCosh(X, y), Sparsity(5))
squares = ht.minimize(LinearModel(X, y, loss="squared"), Sparsity(5))
print(robust.message)

# %%
# The robust loss finds the signal; least squares fits the wrong targets.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
shown = np.union1d(np.flatnonzero(squares.w), np.arange(5))
position = np.arange(len(shown))
for offset, (name, w) in enumerate({"truth": truth, "log-cosh": robust.w, "least squares": squares.w}.items()):
    ax.bar(position + 0.27 * (offset - 1), w[shown], 0.25, label=name)
ax.set(xlabel="feature", ylabel="coefficient", xticks=position, xticklabels=shown)
ax.axhline(0, color="0.4", linewidth=0.8)
ax.legend()
plt.show()
