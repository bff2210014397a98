"""Build what is published, check it, and install it into empty environments from a folder of wheels.

``make release-check`` runs it. It builds the source distribution, and from it, not from the checkout, the wheel with
the kernel and the wheel of Python alone; checks their contents and their sizes; and installs each with ``pip install
--no-index --find-links``, with the newest and with the oldest supported versions of the dependencies. Each row shows
how long the package takes to import. Tests of the source distribution run in the first of these environments.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent

MAX_BYTES = {"abi3": 2_400_000, "none": 2_250_000, "sdist": 4_250_000}
"""A fifth more than there was in November 2026 (1,996,954, 1,875,412 and 3,550,000 bytes): a file that does not belong
there is seen, and growth is decided on."""
MAX_FILES = {"abi3": 670, "none": 670, "sdist": 1590}
"""The same, for the number of files (558, 558 and 1,322)."""

REQUIRED = ("hardthresh/py.typed", "hardthresh/datasets/data/colon.npz", "hardthresh/report/report.html.jinja")
"""Files of a wheel besides modules, without which a part of the package fails, or its types are not read."""

IN_SDIST = ("pyproject.toml", "hatch_build.py", "LICENSE", "CHANGELOG.md", "conftest.py", "src/hardthresh/_kernel.c")
NOT_IN_SDIST = (".ci", ".github", "benchmarks/results", "recipe")

SDIST_TESTS = ("tests/losses", "tests/core/test_registry.py")
"""Tests that are soon done, and need only `TEST_TOOLS`."""
TEST_TOOLS = ("pytest", "hypothesis", "array-api-strict")

TRIAL = """
from time import process_time

started = process_time()
import hardthresh as ht

imported = process_time()
ht.SparseLogisticRegression
loaded = process_time()
import sys
from importlib.metadata import version
from hardthresh.core.compiled import describe_kernel
from hardthresh.datasets import load_colon

assert ht.__file__.startswith(sys.prefix), ht.__file__
assert ht.__version__ == sys.argv[1], ht.__version__
assert describe_kernel().startswith("compiled") == (sys.argv[2] == "abi3"), describe_kernel()
colon = load_colon()
model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
assert model.converged_ and (model.coef_ != 0).sum() == 3
print(", ".join(f"{name} {version(name)}" for name in sys.argv[3:]), end="; ")
print(f"import {1e3 * (imported - started):.0f} ms, with an estimator {1e3 * (loaded - started):.0f} ms of CPU time")
"""


@dataclass(frozen=True, slots=True)
class Built:
    """What was built."""

    version: str
    sdist: Path
    wheels: dict[str, Path]
    """From "abi3" and "none" to a wheel."""
    source: Path
    """The folder of the unpacked source distribution."""


def run(*command: str | Path, **options: object) -> str:
    """Run a command, and return what it prints; raise an error that shows it if the command fails."""
    done = subprocess.run(
        [*map(str, command)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nrelease-check: this failed: {' '.join(map(str, command))}")
    return done.stdout


def succeeds(*command: str | Path) -> bool:
    """Return whether a command succeeds; what it prints is dropped."""
    return not subprocess.run([*map(str, command)], capture_output=True, check=False).returncode


def build(folder: Path) -> Built:
    """Build the source distribution, and both wheels from its contents."""
    tool = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    run(*tool, folder, "--sdist", ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    run(*tool, folder, "--wheel", source)
    run(*tool, folder, "--wheel", source, env={**os.environ, "CC": "false"})
    wheels = {path.stem.split("-")[3]: path for path in folder.glob("*.whl")}
    if {*wheels} != {"abi3", "none"}:
        raise SystemExit(f"release-check: a wheel with the kernel and one without were expected, not {[*wheels]}")
    return Built(sdist.name.removesuffix(".tar.gz").split("-")[1], sdist, wheels, source)


def check_contents(built: Built) -> None:
    """Check metadata, the files that there have to be, and sizes."""
    run(sys.executable, "-m", "twine", "check", "--strict", built.sdist, *built.wheels.values())
    run(Path(sys.executable).with_name("check-wheel-contents"), *built.wheels.values())
    for kind, wheel in built.wheels.items():
        names = zipfile.ZipFile(wheel).namelist()
        check_budget(kind, wheel, names)
        check_names(wheel, names, REQUIRED, ("hardthresh/_kernel.c", *(["hardthresh/_kernel"] * (kind == "none"))))
        foreign = {name for name in names if not re.match(r"hardthresh(-[\d.]+\w*\.dist-info)?/", name)}
        if foreign:
            raise SystemExit(f"release-check: {wheel.name} has files outside of the package: {sorted(foreign)}")
    names = [str(path.relative_to(built.source)) for path in built.source.rglob("*") if path.is_file()]
    check_budget("sdist", built.sdist, names)
    check_names(built.sdist, names, IN_SDIST, NOT_IN_SDIST)


def check_budget(kind: str, path: Path, names: list[str]) -> None:
    """Check the size of a file, and how many files are in it."""
    size, count = path.stat().st_size, len(names)
    print(f"{path.name}: {size:,} of {MAX_BYTES[kind]:,} bytes, {count:,} of {MAX_FILES[kind]:,} files")
    if size > MAX_BYTES[kind] or count > MAX_FILES[kind]:
        raise SystemExit(f"release-check: {path.name} is over the budget in {Path(__file__).name}")


def check_names(path: Path, names: list[str], required: tuple[str, ...], unwanted: tuple[str, ...]) -> None:
    """Check that files are there, and that none begins with the name of what does not belong there."""
    missing = [name for name in required if name not in names]
    extra = [name for name in names if name.startswith(unwanted)]
    if missing or extra:
        raise SystemExit(f"release-check: {path.name} lacks {missing}, and has {extra}")


def floors() -> list[str]:
    """Return the oldest versions that pyproject.toml promises, as requirements."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return [name.replace(">=", "==") for name in tomllib.load(file)["project"]["dependencies"]]


class Installer:
    """Installs wheels from a folder into empty environments.

    Parameters
    ----------
    folder : Path
        For the environments, and the wheels of the dependencies.
    built : Built
        What is installed.
    """

    def __init__(self, folder: Path, built: Built) -> None:
        self.folder, self.built = folder, built

    def install(self, python: str, kind: str, age: str) -> Path | None:
        """Return the Python of a new environment, or None where the oldest versions have no wheels for that Python.

        Where the oldest version itself has none, the latest of its patch releases stands in for it.
        """
        name = f"{Path(python).name}-{kind}-{age}"
        wheels, home = self.folder / f"wheels-{name}", self.folder / name
        run(python, "-m", "venv", home)
        pip = (home / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
        wheels.mkdir()
        fetch = (*pip, "download", "--quiet", "--only-binary=:all:", "--dest", wheels)
        if age == "oldest":  # SciPy has wheels of 1.14.1 for Python 3.13, and none of 1.14.0
            wanted = [floor if succeeds(*fetch, "--no-deps", floor) else f"{floor}.*" for floor in floors()]
            if not succeeds(*fetch, self.built.wheels[kind], *wanted):
                return None  # a mistake of another kind stops the run with the newest versions
        else:
            run(*fetch, self.built.wheels[kind])
        run(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, f"hardthresh=={self.built.version}")
        shutil.rmtree(wheels)
        return home / "bin" / "python"

    def trial(self, python: str, kind: str, age: str) -> Path | None:
        """Install, fit a model, run the command, and print a row of the table; return the Python of the environment."""
        installed = self.install(python, kind, age)
        version = run(python, "-c", "import platform; print(platform.python_version())").strip()
        row = f"Python {version:<7} {kind:<5} {age:<7}"
        if installed is None:
            print(f"{row} these versions have no wheels for it", flush=True)
            return None
        names = [name.partition("==")[0] for name in floors()]
        found = run(installed, "-c", TRIAL, self.built.version, kind, *names, cwd=self.folder)
        run(installed, "-m", "pip", "check")
        print(f"{row} works: {found.strip()}", flush=True)
        return installed


def run_tests(python: Path, source: Path) -> None:
    """Run a part of the tests of the source distribution with the installed wheel."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TEST_TOOLS)
    shutil.rmtree(source / "src")  # so that what is tested is what is installed
    print(run(python, "-m", "pytest", "--quiet", *SDIST_TESTS, cwd=source).splitlines()[-1])


def main() -> None:
    """Build, check and install."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="the interpreters; default: this one")
    parser.add_argument("--quick", action="store_true", help="leave out the oldest versions, which .ci/run tests")
    parser.add_argument("--keep", type=Path, help="where to leave what was built")
    settings = parser.parse_args()
    with TemporaryDirectory() as folder:
        built = build(Path(folder))
        check_contents(built)
        if settings.keep:
            settings.keep.mkdir(parents=True, exist_ok=True)
            for path in (built.sdist, *built.wheels.values()):
                shutil.copy(path, settings.keep)
        installer, tested = Installer(Path(folder), built), False
        for python in settings.pythons:
            for kind in built.wheels:
                for age in ("newest",) if settings.quick else ("newest", "oldest"):
                    installed = installer.trial(python, kind, age)
                    if installed and not tested:
                        run_tests(installed, built.source)
                        tested = True


if __name__ == "__main__":
    main()
