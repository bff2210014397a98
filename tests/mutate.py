"""Apply the mutants of ``mutants.toml`` one by one to a copy of the checkout, and report those that the tests miss.

    python tests/mutate.py                      # all of them
    python tests/mutate.py pursuit "working set"  # those whose name contains one of these
    python tests/mutate.py --check              # only whether each can still be applied
    python tests/mutate.py --reproduce          # whether the experiments of the papers notice those that name one

A mutant is a small deliberate mistake. The tests that it names are run first, at the level ``pairs``, and, if they all
pass, all tests of the level ``fast``, slow ones too. With ``--reproduce`` the item of a paper that it names is run as
by ``hardthresh reproduce --check``, and has to find a row that is not ok. The exit status is 1 if a mutant survives, or
cannot be applied because its text is not there exactly once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "_build", "auto_examples", "generated")


@dataclass(frozen=True)
class Mutant:
    """A deliberate mistake: a text of the package, its replacement, and the tests that are run first.

    Where it is one that an experiment of the papers has to notice, `item` names that, as "paper/item".
    """

    name: str
    room: str
    old: str
    new: str
    tests: tuple[str, ...]
    item: str | None = None

    def place(self, root: Path) -> Path:
        """Return the file that has the text, which is there once in the package."""
        texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "src").rglob("*.py"))}
        places = [path for path, text in texts.items() for _ in range(text.count(self.old))]
        if len(places) != 1:
            raise LookupError(f"{self.name}: its text is {len(places)} times in the package; it has to be there once")
        return places[0]

    @contextmanager
    def applied(self, root: Path) -> Iterator[None]:
        """Apply the mutant, and undo it afterwards."""
        path = self.place(root)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")


def mutants() -> list[Mutant]:
    """Return the mutants of the table."""
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in table["mutant"]]


def first_failure(root: Path, tests: Sequence[str], workers: str, level: str) -> str | None:
    """Return the test that fails first at a level in a copy of the checkout, or None if none does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", workers, *tests]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "HARDTHRESH_TESTS": level}
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"pytest ended with status {run.returncode}"


def first_wrong_row(root: Path, item: str) -> str | None:
    """Return the first row of an item of the papers that is not ok in a copy of the checkout, or None if all are."""
    out = root / "reproduced"
    code = "from hardthresh.cli import main; main()"
    command = [sys.executable, "-c", code, "reproduce", item, "--check", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((out / item).glob("results*.json"))]
    wrong = [row for result in results for row in result["rows"] if row["ok"] is False]
    if not wrong:
        raise RuntimeError(f"{item} ended with status {run.returncode}: {run.stderr.splitlines()[-1:]}")
    kinds = Counter(row["kind"] for row in wrong)
    counts = ", ".join(f"{number} of kind {kind}" for kind, number in kinds.items())
    return f"{item}: {counts}, such as {wrong[0]['what']!r}"


def detected_by(root: Path, one: Mutant, reproduce: bool, named_only: bool, workers: str) -> str | None:
    """Return the row or the test that notices a mutant that was applied; None if it survives."""
    if reproduce:
        assert one.item is not None
        return first_wrong_row(root, one.item)
    failure = first_failure(root, one.tests, "0", "pairs")
    return first_failure(root, (), workers, "fast") if failure is None and not named_only else failure


def main() -> int:
    """Run the chosen mutants, and print whether each was killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names; default all")
    parser.add_argument("--check", action="store_true", help="only check that each can be applied")
    parser.add_argument("--named-only", action="store_true", help="do not run all tests when the named ones pass")
    parser.add_argument("--reproduce", action="store_true", help="run the item that a mutant names, and no tests")
    parser.add_argument("--workers", default="auto", help="processes for all tests")
    asked = parser.parse_args()
    chosen = [one for one in mutants() if not asked.names or any(name in one.name for name in asked.names)]
    if asked.reproduce:
        chosen = [one for one in chosen if one.item is not None]
    lost = []
    for one in chosen:
        try:
            one.place(ROOT)
        except LookupError as error:
            lost.append(str(error))
    print(*lost, sep="\n", end="\n" if lost else "")
    if lost or asked.check:
        print(f"{len(chosen) - len(lost)} of {len(chosen)} can be applied")
        return int(bool(lost))
    killed: Counter[str] = Counter()
    survivors = []
    with TemporaryDirectory() as folder:
        root = Path(folder) / "checkout"
        shutil.copytree(ROOT, root, ignore=LEFT_OUT, symlinks=True)
        named = sorted({test for one in chosen for test in one.tests})
        items = sorted({one.item for one in chosen if one.item is not None})
        found = (first_wrong_row(root, item) for item in items)
        failure = (
            next(filter(None, found), None) if asked.reproduce else first_failure(root, named, asked.workers, "pairs")
        )
        if failure:
            print(f"without any mutant: {failure}")
            return 1
        for one in chosen:
            began = monotonic()
            with one.applied(root):
                failure = detected_by(root, one, asked.reproduce, asked.named_only, asked.workers)
            print(f"{one.room}: {one.name}: {failure or 'SURVIVED'} ({monotonic() - began:.0f} s)", flush=True)
            if failure is None:
                survivors.append(one)
            else:
                killed[one.room] += 1
    print(f"killed {killed.total()} of {len(chosen)}: {', '.join(f'{room} {n}' for room, n in killed.items())}")
    for one in survivors:
        print(f"survived: {one.room}: {one.name}")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
