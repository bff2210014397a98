"""Check with mypy and pyright what type checkers tell users: the programs of tests/typing, and every fitted attribute.

``make typing`` runs it. The second program is written here, from the docstrings of the estimators: it reads each
attribute that one of them documents, so that an attribute that type checkers do not know is an error.
"""

import subprocess
import sys
from collections.abc import Iterator
from inspect import isclass
from pathlib import Path
from tempfile import TemporaryDirectory

from numpydoc.docscrape import ClassDoc

import hardthresh

PROGRAMS = Path(__file__).parent / "typing"


def estimators() -> list[type]:
    """Return the public estimators."""
    public = (getattr(hardthresh, name) for name in hardthresh.__all__)
    return [value for value in public if isclass(value) and hasattr(value, "fit")]


def fitted_attributes(estimator: type) -> list[str]:
    """Return the attributes that the docstring of an estimator lists."""
    names = [name for entry in ClassDoc(estimator)["Attributes"] for name in entry.name.split(", ")]
    return [name for name in names if name != "..."]


def program() -> Iterator[str]:
    """Yield the lines of a program that reads each documented attribute."""
    yield "import hardthresh\n"
    for estimator in estimators():
        yield f"\ndef read_{estimator.__name__}(model: hardthresh.{estimator.__name__}) -> None:"
        yield from (f"    print(model.{name})" for name in fitted_attributes(estimator))


def main(pyright: list[str]) -> int:
    """Run both type checkers, and return 0 if they agree with the programs.

    Parameters
    ----------
    pyright : list of str
        The command that runs pyright; without one only mypy runs.
    """
    with TemporaryDirectory() as folder:
        reads = Path(folder) / "attributes.py"
        reads.write_text("\n".join(program()) + "\n", encoding="utf-8")
        files = [*map(str, sorted(PROGRAMS.glob("*.py"))), str(reads)]
        commands = [[sys.executable, "-m", "mypy", "--strict", *files]]
        if pyright:
            commands.append([*pyright, "--pythonpath", sys.executable, *files])
        return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
