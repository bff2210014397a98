"""What every test may rely on: no display, repeatable hypothesis runs, and the real data where there is some."""

import gc
import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest

from levels import mark_slow, thinned

os.environ["MPLBACKEND"] = "agg"

hypothesis.settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("house")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Any:
    """Collect of each test what its level asks for, unless single calls were asked for."""
    found = yield
    one_by_one = any("[" in argument for argument in collector.config.args)
    if one_by_one or not isinstance(found, list):
        return found
    tests = thinned(found)
    mark_slow(tests)
    return tests


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what lives as long as the process: the modules and the tests."""
    gc.freeze()


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports without drawing their charts, which takes most of the time and adds no words."""

    def chart(name: str, draw: object, height: int) -> dict[str, str]:
        return dict.fromkeys(WIDTHS, "<svg></svg>")

    from hardthresh.report.page import WIDTHS

    for page in ("report.html", "report.comparison", "study.closing"):
        monkeypatch.setattr(f"hardthresh.{page}.chart", chart)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that ``HARDTHRESH_DATA`` names, with the larger real data sets."""
    folder = os.environ.get("HARDTHRESH_DATA")
    if folder is None:
        pytest.skip("HARDTHRESH_DATA names no folder of data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def shelf_folder() -> Path:
    """Where the larger data sets are, or would be."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    return Path(os.environ.get("HARDTHRESH_DATA") or beside).expanduser().resolve()


@pytest.fixture(scope="session")
def specs(shelf_folder: Path) -> Path:
    """The specifications, with their generators and golden files."""
    folder = shelf_folder.parent / "specs"
    if not (folder / "generators.py").is_file():
        pytest.skip("the specifications lie beside the local mirror of the data sets, and there is none")
    return folder


@pytest.fixture(scope="session")
def generators(specs: Path) -> SimpleNamespace:
    """The generators that the published numbers were measured with."""
    return SimpleNamespace(**runpy.run_path(str(specs / "generators.py")))
