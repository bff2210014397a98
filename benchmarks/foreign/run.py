"""Run scikit-learn's own tests of OMP and logistic regression on our models, and compare with what is expected.

    python benchmarks/foreign/run.py                   # both files: five minutes
    python benchmarks/foreign/run.py test_omp          # five seconds
    python benchmarks/foreign/run.py --table benchmarks/results/scikit_learn_tests.md

The tests are those of the installed scikit-learn, unchanged; they import the classes of `adapters` in the place of its
own. ``expected.toml`` lists every test that differs, with the reason. The run fails if a test fails that is not in the
list, and if one of the list passes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FILES = ("test_omp", "test_logistic")


@dataclass(frozen=True)
class Outcome:
    """What came of one test: "passed", "failed" or "skipped", and whether it called a model of ours."""

    file: str
    function: str
    case: str
    result: str
    ours: bool = True

    @property
    def name(self) -> str:
        """The name of the test, with its parameters."""
        return f"{self.function}[{self.case}]" if self.case else self.function

    def matches(self, entry: str) -> bool:
        """Whether an entry of the list is about this test: by its name, and a pattern of parameters if it has one."""
        function, _, cases = entry.partition("[")
        return self.function == function and (not cases or fnmatchcase(self.case, cases.removesuffix("]")))


class Substitution:
    """A plugin of pytest: the tests import our classes, and their outcomes are kept."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def pytest_configure(self) -> None:
        """Put our classes in the place of scikit-learn's."""
        import adapters
        import sklearn.linear_model

        self.called, self.module = adapters.called, sklearn.linear_model
        self.theirs = {name: getattr(self.module, name) for name in adapters.SUBSTITUTES}
        for name, ours in adapters.SUBSTITUTES.items():
            setattr(self.module, name, ours)

    def pytest_collection_finish(self) -> None:
        """Put scikit-learn's back, now that the tests have imported ours: what scikit-learn itself calls is its own."""
        for name, theirs in self.theirs.items():
            setattr(self.module, name, theirs)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Forget what earlier tests called."""
        self.called.clear()
        self.file = item.path.stem

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the outcome of the test itself, or that of its preparation if it did not get further."""
        if report.when == "call" or not report.passed:
            function, _, case = report.nodeid.rpartition("::")[2].partition("[")
            ours = bool(self.called) or report.failed  # a test that asks for what our classes lack fails before a call
            self.outcomes.append(Outcome(self.file, function, case.removesuffix("]"), report.outcome, ours))


def run(files: tuple[str, ...]) -> list[Outcome]:
    """Return the outcomes of all tests of files of scikit-learn."""
    import pytest

    plugin = Substitution()
    modules = [f"sklearn.linear_model.tests.{file}" for file in files]
    alone = ["-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist"]  # not the configuration of this project
    pytest.main([*alone, "--quiet", "--tb=no", "--no-summary", "--pyargs", *modules], plugins=[plugin])
    return plugin.outcomes


def judge(outcomes: list[Outcome], expected: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield what is not as expected."""
    for outcome in outcomes:
        explained = any(outcome.matches(entry) for entry in expected.get(outcome.file, {}))
        if outcome.result == "failed" and not explained:
            yield f"{outcome.file}: {outcome.name} fails, and no entry says why"
        elif outcome.result == "passed" and explained:
            yield f"{outcome.file}: {outcome.name} passes, but is listed as different"
    for file in {outcome.file for outcome in outcomes}:
        for entry in expected.get(file, {}):
            if not any(outcome.file == file and outcome.matches(entry) for outcome in outcomes):
                yield f"{file}: {entry} is listed, but there is no such test"


def table(outcomes: list[Outcome], expected: Mapping[str, Mapping[str, str]], reasons: Mapping[str, str]) -> str:
    """Return a line for each test function: how many of its cases pass, and why the others differ."""
    lines = ["| test | passes | differs | skipped | why it differs |", "|---|--:|--:|--:|---|"]
    functions: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        functions.setdefault((outcome.file, outcome.function), []).append(outcome)
    for (file, function), cases in functions.items():
        counts = Counter(case.result for case in cases)
        entries = expected.get(file, {}).items()
        found = {reasons.get(why, why) for entry, why in entries for case in cases if case.matches(entry)}
        why = "; ".join(sorted(found)) if any(case.ours for case in cases) else "calls nothing of ours"
        shown = [str(counts[result] or "") for result in ("passed", "failed", "skipped")]
        lines.append(f"| {file}.{function} | {' | '.join(shown)} | {why} |")
    return "\n".join(lines) + "\n"


def totals(outcomes: list[Outcome]) -> str:
    """Return the sums, of the tests that call a model of ours."""
    lines = []
    for file in dict.fromkeys(outcome.file for outcome in outcomes):
        ours = Counter(outcome.result for outcome in outcomes if outcome.file == file and outcome.ours)
        others = sum(outcome.file == file and not outcome.ours for outcome in outcomes)
        lines.append(
            f"{file}: {ours['passed']} of {ours['passed'] + ours['failed']} tests that call our models pass, and "
            f"{ours['failed']} differ; {others} others call none or are skipped"
        )
    return "\n".join(lines)


def main() -> int:
    """Run, print, and return 1 if something is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help=f"which files; default: {', '.join(FILES)}")
    parser.add_argument("--table", metavar="FILE", help="where to write a table of all tests in Markdown")
    settings = parser.parse_args()
    import sklearn

    content = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
    if not sklearn.__version__.startswith(f"{content['scikit_learn']}."):
        print(f"expected.toml is for scikit-learn {content['scikit_learn']}, and {sklearn.__version__} is installed")
        return 2
    expected = {file: content.get(file, {}) for file in FILES}
    outcomes = run(tuple(settings.files) or FILES)
    written = f"{totals(outcomes)}\n\n{table(outcomes, expected, content['reasons'])}"
    print(written)
    if settings.table:
        Path(settings.table).write_text(written, encoding="utf-8")
    problems = list(judge(outcomes, expected))
    print(*problems, sep="\n")
    return 1 if problems or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
