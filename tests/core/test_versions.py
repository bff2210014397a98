"""What `show_versions` prints."""

import platform
import re
import tomllib
from pathlib import Path

import hardthresh as ht
from hardthresh.core import versions


def printed(capsys):
    """The lines by their names."""
    ht.show_versions()
    return dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())


def test_it_says_which_code_runs_on_what(monkeypatch, capsys):
    monkeypatch.setattr(versions, "describe_kernel", lambda: "NumPy, because of a test")
    lines = printed(capsys)
    assert lines["hardthresh"] == ht.__version__
    assert lines["kernel"] == "NumPy, because of a test"
    assert lines["Python"].startswith(platform.python_version())
    assert int(lines["threads"]) >= 1
    assert re.fullmatch(r"\w+ .*, threads: \d+", lines["BLAS"])


def test_it_leaves_out_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(versions, "OPTIONAL", ("a-package-that-nobody-has", "numpydoc"))
    lines = printed(capsys)
    assert {*versions.REQUIRED, "numpydoc"} <= lines.keys()
    assert "a-package-that-nobody-has" not in lines


def test_it_knows_what_an_installation_may_depend_on():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tools = {"docs", "test", "peers", "bench", "compare", "field", "release"}
    extras = [line for extra, lines in project["optional-dependencies"].items() if extra not in tools for line in lines]
    needed = {re.match(r"[\w-]+", line)[0] for line in [*project["dependencies"], *extras]}
    assert needed <= {*versions.REQUIRED, *versions.OPTIONAL}
