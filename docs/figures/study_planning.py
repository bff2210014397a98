"""Draw the picture, and measure the table, of the page on planning: ``python -m docs.figures.study_planning``.

They go to docs/_static/study_plan.png and docs/guide/study_plan.csv. About a minute on one core.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

from hardthresh.core.numbers import percent
from hardthresh.datasets import make_clinic
from hardthresh.report import plot_plan, plot_progress
from hardthresh.study import Terms, plan, progress
from hardthresh.study.simulation import simulate

DOCS = Path(__file__).parents[1]
SIZES = [75, 150, 300, 600, 1200, 2400]


def clinic_terms():
    """The terms of a study of all panels of the clinic: 100 euros for each patient, 7 columns."""
    clinic = make_clinic(1)
    alone = {panel for panel in clinic.prices if clinic.panels.count(panel) == 1}
    lines = ["n_nonzero_coefs = 7", "budget_per_example = 100.0", 'currency = "EUR"', "[target]", 'name = "stay"']
    for panel, price in clinic.prices.items():
        lines += [] if panel in alone else [f"[panels.'{panel}']", f"price = {price}"]
    for name, panel in zip(clinic.feature_names, clinic.panels, strict=True):
        price = f"price = {clinic.prices[panel]}" if panel in alone else f"panel = '{panel}'"
        lines += [f"[attributes.'{name}']", price]
    return Terms.parse("\n".join(lines))


def write_table(found):
    """Write a row for each number of examples."""
    with (DOCS / "guide" / "study_plan.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["examples", "cost", "error", "all found", "found", "complete rows", "their error", "all found in them"]
        )
        for size in found.sizes:
            writer.writerow(
                [
                    f"{size.examples:,}",
                    f"{size.cost:,.0f}",
                    percent(size.error),
                    size.all_found,
                    percent(size.found.value),
                    f"{size.complete_rows:,}",
                    percent(size.complete_error),
                    size.complete_all_found,
                ]
            )


def main():
    """Simulate the plan, and one study of 1,000 patients."""
    terms = clinic_terms()
    found = plan(terms, examples=SIZES)
    print(found)
    write_table(found)
    clinic = make_clinic(1000)
    columns = tuple(terms.columns)
    learned, _ = simulate(terms.algorithm, terms.cost_model, clinic.X, clinic.y, length=1000, columns=columns)
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained")
    plot_plan(found, axes[0])
    plot_progress(progress(learned), axes[1])
    print(progress(learned))
    figure.savefig(DOCS / "_static" / "study_plan.png", dpi=110)


if __name__ == "__main__":
    main()
