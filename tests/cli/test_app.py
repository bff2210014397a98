"""The command as a whole: help, version, missing extras, bugs, interrupts."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hardthresh
from hardthresh.cli import main
from hardthresh.cli.app import app
from hardthresh.core.compiled import describe_kernel
from levels import at, only_at

COMMANDS = ["fit", "predict", "show", "demo", "reproduce", "convert-journal", "list"]


def test_help_names_every_command(done):
    text = done("--help")
    assert all(re.search(rf"\b{command}\b", text) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(done, command):
    assert "Usage: hardthresh" in done(command, "--help") or command == "list"


def test_without_a_command_there_is_help(done):
    assert done() == done("--help")


def test_version(done):
    assert done("--version") == f"hardthresh {hardthresh.__version__}\nkernel: {describe_kernel()}\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fti"], "No such command 'fti'"),
        (["fit"], "Missing argument 'DATA'"),
        (["fit", "x.csv", "--taregt", "y"], "No such option"),
        (["fit", "x.csv", "--cv", "many"], "Invalid value for '--cv'"),
        (["fit", "x.csv", "--cv", "1"], "Invalid value for '--cv'"),
    ],
)
def test_wrong_usage_is_one_line(refused, args, said):
    assert said in refused(*args)


def test_main_leaves_with_the_exit_code(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["show", "nowhere.json"])
    assert leaving.value.code == 2
    assert capsys.readouterr().err == "error: nowhere.json: cannot be read, No such file or directory\n"


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as leaving:
        main([])
    assert leaving.value.code == 1
    assert capsys.readouterr().err == "error: the command line needs typer: install hardthresh[cli]\n"


def test_without_polars_it_says_what_to_install(monkeypatch, refused, csv):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert refused("fit", csv, "--target", "y") == "reading csv files needs polars: install hardthresh[cli]"


def test_a_bug_is_not_hidden(monkeypatch, csv):
    def bug(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("hardthresh.cli.learning.learn", bug)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        CliRunner().invoke(app, ["fit", str(csv), "--target", "y", "--drop", "ill"], catch_exceptions=False)


def test_an_interrupt_is_one_line(monkeypatch, run, csv):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardthresh.cli.learning.learn", interrupt)
    result = run("fit", csv, "--target", "y", "--drop", "ill")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; nothing more was saved\n"


def script() -> list[str]:
    path = Path(sysconfig.get_path("scripts")) / "hardthresh"
    if not path.exists():
        pytest.skip("the script is not installed in this environment")
    return [str(path)]


@pytest.mark.slow
@pytest.mark.parametrize("command", [script, *at("pairs", [lambda: [sys.executable, "-m", "hardthresh.cli"]])])
def test_as_a_process(command, csv, folder):
    args = ["fit", "table.csv", "--target", "y", "--k", "3", "--alpha", "0", "--max-iter", "1", "--drop", "ill"]
    ended = subprocess.run([*command(), *args], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert "3 of 5 features chosen to predict y" in ended.stdout
    assert "NOT converged" in ended.stdout
    [warning] = ended.stderr.splitlines()
    assert warning.startswith("warning: SparseLinearRegression: reached 1 iterations")


@only_at("pairs")
def test_a_terminal_without_our_signs_is_no_reason_to_stop(csv, folder):
    command = [
        sys.executable,
        "-m",
        "hardthresh.cli",
        "fit",
        "table.csv",
        "--target",
        "y",
        "--drop",
        "ill",
    ]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, cwd=folder, capture_output=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.isascii()


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom hardthresh.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print({'scipy', 'sklearn', 'polars', 'matplotlib'} & {*sys.modules})"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert ended.stdout.splitlines()[-1] == "set()"
