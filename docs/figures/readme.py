"""Write the output and the numbers of the README: ``python -m docs.figures.readme``, in the root of the project.

The output is that of its first Python code. The numbers are those of docs/guide/prediction_*.csv and speed_numbers.inc,
which docs/figures/prediction.py and speed.py write from the results of the benchmarks. Nothing else is measured.
"""

import csv
import io
import re
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "guide"
METHODS = {  # the rows of the table, and the name of each in the tables of numbers and of classes
    "**hardthresh**": ("hardthresh", "hardthresh"),
    "lasso": ("lasso", "l1 logistic"),
    "relaxed lasso": ("relaxed lasso", "relaxed l1 logistic"),
    "elastic net": ("elastic net", ""),
    "OMP": ("OMP", ""),
    "abess, cross-validated": ("abess CV", "abess CV"),
    "abess, GIC": ("abess GIC", "abess GIC"),
    "ridge (all features)": ("ridge", "ridge"),
    "random forest (all features)": ("random forest", "random forest"),
}


def wrap(text: str) -> str:
    """Return text in lines of 120 characters."""
    return "\n".join(textwrap.wrap(" ".join(text.split()), 120, break_on_hyphens=False))


def rows(name: str) -> dict[str, dict[str, str]]:
    """Return a table of the guide, by the first cell of each row."""
    with (GUIDE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return {row[""]: row for row in csv.DictReader(file)}


def output() -> str:
    """Return what the first code of the README prints."""
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {})
    return f"```text\n{printed.getvalue().rstrip()}\n```"


def predictions() -> str:
    """Return the table of held-out losses and numbers of features."""
    tables = [rows(f"prediction_{name}") for name in ("simulated", "regressions", "classes")]
    number = [table["hardthresh"]["number"] for table in tables]
    lines = [f"| loss, features | {number[0]} simulated | {number[1]} real, numbers | {number[2]} real, two classes |"]
    lines.append("|---|---|---|---|")
    for title, (regressor, classifier) in METHODS.items():
        found = [table.get(name) for table, name in zip(tables, (regressor, regressor, classifier), strict=True)]
        lines.append(f"| {title} | {' | '.join(loss_and_features(row) if row else '' for row in found)} |")
    return "\n".join(lines)


def loss_and_features(row: dict[str, str]) -> str:
    """Return the mean loss, or relative risk, and the mean number of features."""
    loss = row.get("mean loss") or row["mean risk"]
    return f"{float(loss):.2f}, {float(row['features']):,.0f}"


def losses() -> str:
    """Return on how many tables another package predicts better, and how many features the models have."""
    goals = {goal: row["measured"] for goal, row in rows("prediction_goals_reporting").items()}
    close = "best, or within one standard error of the best sparse package"
    fewer = "features, of those of the lasso"
    return wrap(
        f"""On {goals[f"real sets: {close}"]} of the real tables and {goals[f"simulated cells: {close}"]} of the
        simulated ones, no other sparse method predicts better than `hardthresh` by more than one standard
        error; on the rest, one does. Its models have {goals[f"real sets: {fewer}"]} and
        {goals[f"simulated cells: {fewer}"]} of the features of
        the lasso. Where there is nothing to find, {goals["nothing to find: models without a feature"]} of its models
        are empty."""
    )


def speed() -> str:
    """Return how long abess takes beside the default, with the range, and how often the default is as good."""
    text = (GUIDE / "speed_numbers.inc").read_text(encoding="utf-8")
    numbers = dict(re.findall(r"^\.\. \|(\w+)\| replace:: (.*)$", text, re.MULTILINE))
    small = list(rows("speed_goals")["100x200, abess / ours: minimize; estimator"].values())[3].split("; ")
    return wrap(
        f"""For a given k on one thread, abess takes {numbers["fixed_faster"]} times the CPU time of `hardthresh` for
        numbers, and {numbers["logistic_faster"]} times for two classes (median and range). The objective of
        `hardthresh` is at least as good on {numbers["fixed_as_good"]} tables of numbers and
        {numbers["logistic_as_good"]} of classes. On tables of 100 x 200 abess is faster: it takes
        {small[0]} times the time of `minimize`, and {small[1]} times
        that of the estimator, which also checks its input."""
    )


SECTIONS = {"output": output, "predictions": predictions, "losses": losses, "speed": speed}


def section(name: str) -> str:
    """Return a written section of the README as it stands."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, name
    return found.group(1).rstrip("\n")


def main() -> None:
    """Write each section anew."""
    for name, write in SECTIONS.items():
        before, _, rest = README.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
        after = rest.partition("<!-- end -->")[2]
        README.write_text(f"{before}<!-- {name} -->\n{write()}\n<!-- end -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
