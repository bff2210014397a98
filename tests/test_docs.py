"""The documentation says what there is, and what it says runs. (The snippets of docs/ run as doctests.)"""

import ast
import csv
import inspect
import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest

import hardthresh

ROOT = Path(__file__).parent.parent
REFERENCE = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("api.rst", "api_contracts.rst"))
ROOMS = [name for name in hardthresh.__all__ if inspect.ismodule(getattr(hardthresh, name))]


def test_every_room_is_in_the_reference():
    """The build makes the pages of a room from its ``__all__`` and warns of each name that is missing in the end."""
    listed = re.findall(r"^   hardthresh\.(\w+)$", REFERENCE, re.MULTILINE)
    assert sorted(listed) == sorted(ROOMS)


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^   ~hardthresh\.(\w+\.\w+)$", REFERENCE, re.MULTILINE)
    homes = hardthresh._HOME | dict.fromkeys(hardthresh.estimators.__all__, "estimators")
    assert {f"{room}.{name}" for name, room in homes.items()} <= set(listed)
    assert repeated(listed) == []


def test_the_start_page_says_who_needs_which_class():
    """A `CV` version needs no row of its own, where the table says that these exist."""
    page = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    table = page[page.index("Which class do I need?") : page.index("Coming from another package")]
    classes = [*hardthresh.estimators.__all__, *(name for name, room in hardthresh._HOME.items() if room == "limited")]
    twins = {f"{name}CV" for name in classes}
    missing = [name for name in classes if name not in twins and f".{name}`" not in table]
    assert missing == []


def test_the_guide_describes_each_page_where_the_sidebar_has_it():
    """The list of a section and the toctree with its title as caption name the same pages in the same order."""
    index = (ROOT / "docs" / "guide" / "index.rst").read_text(encoding="utf-8")
    sections = re.findall(r"(?ms)^([A-Z][^\n]*)\n-+\n(.*?)(?=^\.\. toctree|^[A-Z][^\n]*\n--)", index)
    described = {title: re.findall(r"^\* :doc:`(\w+)`: \w", text, re.MULTILINE) for title, text in sections}
    trees = re.findall(r"^   :caption: (.+)\n((?:\n|   \w+\n?)+)", index, re.MULTILINE)
    assert described == {caption: pages.split() for caption, pages in trees}
    pages = {path.stem for path in (ROOT / "docs" / "guide").glob("*.rst")} - {"index"}
    assert pages == {page for pages in described.values() for page in pages}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_exists_and_says_what_it_is(room):
    module = import_module(f"hardthresh.{room}")
    assert module.__doc__
    assert [name for name in module.__all__ if not inspect.getdoc(getattr(module, name))] == []


def texts_of(*rooms):
    """All texts in the files of some rooms; what an f-string fills in is NUL."""
    for path in (path for room in rooms for path in (ROOT / "src" / "hardthresh" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def has_in_order(text, parts):
    at = 0
    for part in parts:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return True


@pytest.mark.slow
def test_the_messages_of_tables_in_blocks_are_those_of_the_code():
    """Section 9 of scale.md, as the guide has it: "..." stands for what a message fills in."""
    page = (ROOT / "docs" / "guide" / "larger_than_memory.rst").read_text(encoding="utf-8")
    failures = page[page.index("When something fails") :]
    messages = re.findall(r"^   \* - ``(.+)``$", failures, re.MULTILINE)
    code = [*texts_of("designs", "estimators", "selection")]
    assert len(messages) > 15
    assert [text for text in messages if not any(has_in_order(one, text.split("...")) for one in code)] == []


CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", CHANGELOG, re.MULTILINE | re.DOTALL)
TABLES = [text for _, text in SECTIONS if text.startswith("| ")]


def repeated(texts):
    return sorted(text for text in set(texts) if texts.count(text) > 1)


@pytest.mark.parametrize(("section", "text"), [section for section in SECTIONS if section[1] not in TABLES])
def test_the_changelog_has_one_bullet_for_each_thing(section, text):
    """A merge of two versions of the list may keep both wordings of a bullet, or cut one short."""
    first, *bullets = (" ".join(bullet.split()) for bullet in re.split(r"^- ", text, flags=re.MULTILINE))
    assert first == ""
    next_word = r"\W*\w+" if section == "Fixed" else ""  # a class may have several faults
    subjects = (re.match(r"[^`.:,]*`[^`]+`( and `[^`]+`)?" + next_word, bullet) for bullet in bullets)
    assert repeated([subject.group() for subject in subjects if subject]) == []
    assert [bullet for bullet in bullets if not bullet.endswith(".") or re.search(r"\. [a-z]", bullet)] == []


@pytest.mark.parametrize("table", TABLES)
def test_the_changelog_renames_each_name_once(table):
    old, new = zip(*re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE), strict=True)
    assert repeated(old) == repeated(new) == []


README = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "figures" / "readme.py")))
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.parametrize("section", [name for name in README.SECTIONS if name != "output"])
def test_the_readme_has_the_numbers_of_the_benchmarks(section):
    assert README.section(section) == README.SECTIONS[section]()


@pytest.mark.slow
def test_the_readme_shows_what_its_code_prints():
    shown, printed = README.section("output"), README.output()
    assert NUMBER.sub("", shown) == NUMBER.sub("", printed)
    np.testing.assert_allclose(*(list(map(float, NUMBER.findall(text))) for text in (shown, printed)), rtol=0.02)


DOCS = ROOT / "docs"
PAPERS = [path.stem.removeprefix("paper_items_") for path in sorted(DOCS.glob("paper_items_*.csv"))]
POINTER = re.compile(r"(?::(\w+):)?(`{1,2})~?(.+?)\2")


def is_there(role, pointer, keys):
    """Whether there is a page, a public or private name, a test, a row of the experiments, or a file."""
    if role == "doc":
        return (DOCS / f"{pointer.removeprefix('/')}.rst").is_file()
    if "::" in pointer:
        file, name = pointer.split("::")
        return re.search(rf"^ *def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE) is not None
    if ": " in pointer:
        item, key = pointer.split(": ", 1)
        return key in keys.get(item, ())
    if pointer.startswith("hardthresh."):
        try:
            return resolve_name(pointer) is not None
        except (ImportError, AttributeError):
            return False
    return (ROOT / pointer).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_what_the_table_of_a_paper_names_exists(paper):
    """Each item has a verdict, where it is, and the rows of the experiments, tests or figures that show it."""
    keys = {}
    for file in ("claims", "digits"):
        path = ROOT / "papers" / paper / f"{file}.toml"
        for item, rows in (tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}).items():
            if isinstance(rows, list):
                keys.setdefault(item, set()).update(row["key"] for row in rows if isinstance(row, dict))
    with (DOCS / f"paper_items_{paper}.csv").open(encoding="utf-8", newline="") as table:
        items = [*csv.DictReader(table)]
    for item in items:
        assert item["verdict"] in {"works", "partly", "missing", "no data"}, item
        assert item["verdict"] != "works" or (item["where"] and item["shown by"]), item
    cells = [cell for item in items for cell in (item["where"], item["shown by"])]
    missing = [text for cell in cells for role, _, text in POINTER.findall(cell) if not is_there(role, text, keys)]
    assert missing == []
