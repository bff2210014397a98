"""Draw the picture of the page "Can I believe it?" from its own examples: ``python -m docs.figures.believe``.

Writes docs/_static/believe.png; half a minute on one core.
"""

import doctest
from pathlib import Path

from matplotlib import pyplot as plt

from hardthresh.report import plot_alternatives, plot_criterion, plot_gap, plot_stability

DOCS = Path(__file__).parents[1]


def examples() -> dict:
    """Run the examples of the page, and return what they define."""
    text = (DOCS / "guide" / "believe.rst").read_text(encoding="utf-8")
    names: dict = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, "believe.rst", "single"), names)
    return names


def draw(path: Path) -> None:
    """Draw the criterion, the proof, the alternatives and the half-samples of the page."""
    names = examples()
    _, axes = plt.subplots(2, 2, figsize=(13.0, 10.0), height_ratios=(3, 4), layout="constrained")
    plot_criterion(names["model"].candidates_, names["model"].criterion_path_, axes[0, 0])
    plot_gap(names["proof"], axes[0, 1])
    plot_alternatives(names["found"], axes[1, 0])
    plot_stability(names["stability"], axes[1, 1])
    plt.savefig(path, dpi=100)


if __name__ == "__main__":
    draw(DOCS / "_static" / "believe.png")
