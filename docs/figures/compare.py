"""Compare the methods on the colon data, for docs/guide/compare.rst: ``python -m docs.figures.compare``."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import hardthresh as ht
from hardthresh.comparison import MethodComparison
from hardthresh.datasets import load_colon
from hardthresh.report import plot_comparison

DOCS = Path(__file__).parents[1]


def compared() -> MethodComparison:
    """Return the comparison of the page: logarithms of 2,000 intensities of 62 tissues."""
    colon = load_colon()
    names = tuple(map(str, colon.feature_names))
    return ht.compare(np.log2(colon.data), colon.target, folds=5, feature_names=names)


if __name__ == "__main__":
    found = compared()
    (DOCS / "guide" / "compare_output.txt").write_text(f"{found}\n", encoding="utf-8")
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    plot_comparison(found, figure.subplots())
    figure.savefig(DOCS / "_static" / "compare.png", dpi=110)
