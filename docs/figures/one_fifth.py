"""Print the two tables of the page on the constant 1/5 that count failures: ``python -m docs.figures.one_fifth``.

The runs are those of ``hardthresh reproduce sparse_polyak/one_fifth`` with the seeds 0 to 9. The command itself prints
only numbers over all designs. Two minutes on one core.
"""

from papers.sparse_polyak.one_fifth import DESIGNS, GOALS, SCALES, run

NAMES = dict(
    zip(
        DESIGNS,
        ("autoregressive, 0.5", "autoregressive, 0.9", "unequal scales", "one factor", "few rows"),
        strict=True,
    )
)
SHOWN = [scale for scale in sorted(SCALES) if scale != 1.5]
TABLES = {
    ("exact", "left"): "Exact target: the goal is not reached (least squares / logistic)",
    ("zero", "above"): "Target 0: f does not settle",
}
SEEDS = range(10)


def failures(model, design, target, field):
    """Return for each c on how many seeds what is left of the gap, or its swing, is above the goal."""
    counts = [0 for _ in SCALES]
    for seed in SEEDS:
        numbers = run(model, design, target, seed)[field]
        counts = [count + (number > GOALS[model]) for count, number in zip(counts, numbers, strict=True)]
    return dict(zip(SCALES, counts, strict=True))


def main():
    """Print the tables, one line for each design."""
    for (target, field), title in TABLES.items():
        print(f"{title}\nc = {', '.join(f'{scale:g}' for scale in SHOWN)}")
        for design, name in NAMES.items():
            linear, logistic = (failures(model, design, target, field) for model in GOALS)
            print(f"{name}: " + ", ".join(f"{linear[scale]} / {logistic[scale]}" for scale in SHOWN))


if __name__ == "__main__":
    main()
