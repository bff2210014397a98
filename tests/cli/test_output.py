"""Outputs of the commands: saved before anything is printed, in one step, and never over an input."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import hardthresh as ht
from hardthresh.cli import terminal
from levels import at, at_most, only_at

MODEL = ["--target", "y", "--drop", "ill", "--k", "2"]
FULL = Path("/dev/full")

on_posix = pytest.mark.skipif(os.name != "posix", reason="pipes and limits of files are those of POSIX")
with_full_device = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@contextmanager
def files_no_larger_than(size):
    """Make every write beyond some bytes of a file fail, as on a disc that is full."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def model(done, csv):
    """A saved model of two named columns."""
    done("fit", csv, *MODEL, "--out", "model.json")
    return Path("model.json")


@pytest.fixture
def process(folder):
    """Run a command as a process of its own; its streams are as given."""

    def go(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        command = [sys.executable, "-m", "hardthresh.cli", *map(str, args)]
        return subprocess.run(command, cwd=folder, stdout=stdout, stderr=stderr, text=True, encoding="utf-8")

    return go


@pytest.fixture
def closed_pipe():
    """The writing end of a pipe that nobody reads, as after ``| head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


# --- saved before anything is printed ---


@only_at("pairs")
@on_posix
def test_fit_saves_its_work_when_the_reader_has_left(process, csv, folder, closed_pipe):
    ended = process("fit", csv, *MODEL, "--out", "m.json", "--report", "r.html", stdout=closed_pipe)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ht.load(folder / "m.json").support_.tolist() == [1, 2]
    assert (folder / "r.html").read_text(encoding="utf-8").endswith("</html>")


@on_posix
def test_a_broken_pipe_does_not_end_a_command(monkeypatch):
    """The demo says what it is about to do, and every command has notes."""
    for stream, write in (
        ("stdout", terminal.write_stdout),
        ("stderr", terminal.write_stderr),
        ("stdout", terminal.Terminal().print),
    ):
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w") as closed:
            monkeypatch.setattr(sys, stream, closed)
            for _ in range(2):
                write("Which few of 2,000 genes tell tumour from normal tissue?")


@only_at("pairs")
@on_posix
def test_warnings_that_cannot_be_written_do_not_end_a_fit(process, csv, folder, closed_pipe):
    args = ["fit", csv, "--target", "y", "--drop", "ill", "--k", "3", "--cv", "3", "--max-iter", "1", "--alpha", "0"]
    ended = process(*args, "--out", "m.json", stdout=closed_pipe, stderr=closed_pipe)
    assert ended.returncode == 0
    assert not ht.load(folder / "m.json").converged_


@only_at("pairs")
@on_posix
def test_predict_succeeds_when_the_reader_has_left(process, model, csv, closed_pipe):
    ended = process("predict", model, csv, stdout=closed_pipe)
    assert (ended.returncode, ended.stderr) == (0, "")


@only_at("pairs")
@with_full_device
@pytest.mark.parametrize("command", ["fit", *at("pairs", ["predict"])])
def test_a_full_disc_behind_standard_output_is_an_error_after_saving(process, model, csv, folder, command):
    args = {"fit": [csv, *MODEL, "--out", "m.json"], "predict": [model, csv]}[command]
    with FULL.open("w") as full:
        ended = process(command, *args, stdout=full)
    assert (ended.returncode, ended.stderr) == (2, "error: standard output: No space left on device\n")
    assert command != "fit" or ht.load(folder / "m.json").converged_


# --- in one step ---


@pytest.mark.slow
@at_most(2)
@on_posix
@pytest.mark.parametrize("out", ["model.json", "report.html", "predictions.csv"])
def test_a_full_disc_is_one_line_and_the_old_file_is_whole(refused, run, model, csv, folder, out):
    path = folder / out
    if out != "model.json":
        path.write_text("old")
    before = path.read_bytes()
    args = {
        "model.json": ["fit", csv, *MODEL, "-q", "--out", out],
        "report.html": ["fit", csv, *MODEL, "-q", "--report", out],
        "predictions.csv": ["predict", model, csv, "--out", out],
    }[out]
    run(*args[:-1], f"first-{out}")  # what is imported late may write files of its own, such as compiled modules
    with files_no_larger_than(500):
        assert refused(*args) == f"{out}: File too large"
    assert path.read_bytes() == before
    assert not [*folder.glob(".*")]


@pytest.mark.slow
@on_posix
def test_a_model_that_cannot_be_saved_is_printed(run, csv, folder):
    with files_no_larger_than(500):
        result = run("fit", csv, *MODEL, "--out", "m.json", "--report", "r.html")
    assert result.exit_code == 2
    assert "2 of 5 features chosen to predict y" in result.stdout
    assert "Model: m.json" not in result.stdout
    assert result.stderr == "error: m.json: File too large; r.html: File too large\n"


# --- never over an input ---


def test_predictions_do_not_replace_their_input(refused, model, csv):
    before = csv.read_bytes()
    said = "--out table.csv is the file of data, which would be lost; choose another name"
    assert refused("predict", model, csv, "--out", "table.csv") == said
    assert csv.read_bytes() == before


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_links_to_the_input_are_recognised(refused, model, csv, folder, link):
    getattr(folder / "other.csv", link)(csv)
    assert "is the file of data" in refused("predict", model, csv, "--out", "other.csv")


def test_predictions_do_not_replace_their_model(refused, model, csv, folder):
    model.rename("model.csv")
    said = "--out model.csv is the model, which would be lost; choose another name"
    assert refused("predict", "model.csv", csv, "--out", "model.csv") == said


@pytest.mark.parametrize(("option", "name"), [("--out", "table.json"), ("--report", "table.html")])
def test_a_fit_does_not_replace_its_data(refused, csv, folder, option, name):
    csv.rename(folder / name)
    args = ["fit", name, "--format", "csv", *MODEL, option, name]
    assert refused(*args) == f"{option} {name} is the file of data, which would be lost; choose another name"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"precious": 1}', "not written by hardthresh"),
        ('{"format": "hardthresh"', "damaged"),
        ('{"format": "hardthresh", "format_version": 99}', "has format version 99"),
    ],
)
def test_fit_does_not_replace_a_file_that_is_not_a_model(refused, csv, folder, content, said):
    (folder / "precious.json").write_text(content)
    line = refused("fit", csv, *MODEL, "--out", "precious.json")
    assert line.startswith(f"precious.json: {said}")
    assert line.endswith("; choose another name, or remove this file first")
    assert (folder / "precious.json").read_text() == content


def test_fit_replaces_a_model_and_an_empty_file(done, csv, folder):
    for content in ("", json.dumps({"format": "hardthresh", "format_version": 1, "notes": {}})):
        (folder / "m.json").write_text(content)
        done("fit", csv, *MODEL, "--out", "m.json")
        assert ht.load(folder / "m.json").support_.tolist() == [1, 2]


@on_posix
def test_a_pipe_is_written_to(done, model, csv, folder):
    os.mkfifo(folder / "pipe.csv")
    with subprocess.Popen(["cat", "pipe.csv"], cwd=folder, stdout=subprocess.PIPE, text=True) as reader:
        done("predict", model, csv, "--out", "pipe.csv")
        text, _ = reader.communicate()
    assert text == done("predict", model, csv)
