"""``hardthresh reproduce``: a tiny paper is run, stopped, resumed, and found wrong."""

import json
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from levels import at_most, only_at

PAPERS = Path(__file__).parents[2] / "papers"
SOURCE = Path(__file__).parents[2] / "src"

EXPECTED = """
title = "A tiny paper"

[[squares]]
key = "sum"
what = "sum of the squares"
expected = "30"
equals = 30

[[squares]]
key = "sum"
what = "more with --full"
expected = "> 300"
low = 300
mode = "full"
"""

SQUARES = '''
"""One cell for each number. Every computation leaves a mark, and the file `trap` stops the third."""

import os
import signal
from math import inf, nan
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from papers.runner import Cell, Item, pick


def press():
    """Ctrl-C within a run of `minimize`, which ends there and returns a result like any other."""

    def callback(state):
        if state.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    f = LinearModel(np.eye(4), np.ones(4))
    return {"value": minimize(f, Sparsity(2), IHT(), max_iter=9, tol=0.0, callback=callback).value}


def square(number):
    with open("computed.txt", "a") as file:
        print(number, file=file)
    if number == 3 and Path("trap").exists():
        if Path("trap").read_text() == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if Path("trap").read_text() == "interrupt":
            raise KeyboardInterrupt
        if Path("trap").read_text() == "press Ctrl-C":
            return press()
        raise RuntimeError("the trap")
    return {"value": number**2}


def cells(full, seed):
    return [Cell(f"number {i}", square, {"number": i + seed}) for i in range(1, 11 if full else 5)]


def summarise(rows, full):
    numbers = {"sum": sum(row["value"] for row in rows), "second": pick(rows, number=rows[1]["number"])[0]["value"]}
    return numbers | ({"late": inf, "strange": [1.0, nan]} if Path("strange").exists() else {})


def draw(rows, full):
    figure = Figure()
    figure.suptitle("Sums of squares")
    figure.subplots().plot([row["number"] for row in rows], [row["value"] for row in rows])
    return {"squares": figure}


ITEM = Item("Sums of squares", cells, summarise, draw, lambda number: {"value": number})
'''


@pytest.fixture(autouse=True)
def tiny(folder, monkeypatch):
    """A folder with one paper of one item, where the command looks for it."""
    monkeypatch.delenv("COLUMNS", raising=False)  # tables are as wide as in a file, whatever the terminal
    shutil.copytree(PAPERS / "runner", folder / "papers" / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "papers" / "tiny").mkdir()
    (folder / "papers" / "tiny" / "digits.toml").write_text(EXPECTED)
    (folder / "papers" / "tiny" / "squares.py").write_text(SQUARES)
    (folder / "papers" / "tiny" / "_helper.py").write_text("raise AssertionError('helpers are no items')")


@pytest.fixture
def computed(folder):
    """The numbers that were squared since this was last asked."""

    def read() -> list[int]:
        path = folder / "computed.txt"
        numbers = [int(line) for line in path.read_text().split()] if path.exists() else []
        path.unlink(missing_ok=True)
        return numbers

    return read


@pytest.mark.parametrize("what", [[], ["list"]])
def test_the_list_has_papers_and_items(done, what):
    text = done("reproduce", *what)
    assert "A tiny paper" in text
    assert "tiny/squares" in text
    assert "Sums of squares" in text
    assert "_helper" not in text


@pytest.mark.slow
@pytest.mark.parametrize("what", ["tiny", "tiny/squares"])
def test_a_run_writes_numbers_and_figures(done, folder, computed, what):
    text = done("reproduce", what, "--out", "results")
    assert "sum of the squares" in text
    assert "yes" in text
    assert "with --full" not in text
    assert computed() == [1, 2, 3, 4]
    item = folder / "results" / "tiny" / "squares"
    assert (item / "squares.png").read_bytes().startswith(b"\x89PNG")
    assert len([*(item / "cells").iterdir()]) == 4
    results = json.loads((item / "results.json").read_text())
    assert results["numbers"] == {"sum": 30, "second": 4}
    [row] = results["rows"]
    wanted = {"key": "sum", "what": "sum of the squares", "expected": "30", "got": [30]}
    assert row == {"kind": "digits", **wanted, "ok": True}


def test_progress_is_a_line_for_each_cell(run, computed):
    result = run("reproduce", "tiny")
    lines = result.stderr.splitlines()
    assert lines[0] == "tiny/squares: 0 of 4 cells: number 1"
    assert lines[-1] == "tiny/squares: 4 of 4 cells"


def test_a_second_run_computes_nothing(done, computed):
    first = done("reproduce", "tiny")
    assert len(computed()) == 4
    assert done("reproduce", "tiny") == first
    assert computed() == []


@only_at("pairs")
def test_other_arguments_are_other_cells(run, computed):
    run("reproduce", "tiny")
    computed()
    run("reproduce", "tiny", "--seed", "1")
    assert computed() == [2, 3, 4, 5]
    run("reproduce", "tiny", "--full")
    assert computed() == [*range(5, 11)]  # 1 to 4 are those of the first run


def test_other_code_computes_everything_again(run, computed, folder):
    run("reproduce", "tiny")
    assert len(computed()) == 4
    script = next(folder.glob("papers/tiny/squares.py"))
    script.write_text(script.read_text() + "\n# a change\n")
    run("reproduce", "tiny")
    assert len(computed()) == 4


@only_at("pairs")
def test_an_error_of_a_cell_is_a_failed_row_and_loses_only_that_cell(run, done, folder, computed):
    """The table and results.json say what is wrong and where, in place of the rows of an earlier run."""
    done("reproduce", "tiny")
    computed()
    script = folder / "papers" / "tiny" / "squares.py"
    script.write_text(script.read_text() + "\n# a change, so that the cells are computed again\n")
    (folder / "trap").write_text("raise")
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    line_number = 1 + script.read_text().splitlines().index('        raise RuntimeError("the trap")')
    where = f"number 3, tiny/squares.py, line {line_number}, in square"
    assert where in result.stdout
    [row] = json.loads((folder / "reproduced/tiny/squares/results.json").read_text())["rows"]
    wanted = {"kind": "error", "key": "error", "what": where, "expected": "no error", "got": [], "ok": False}
    assert row == wanted | {"error": "RuntimeError: the trap"}
    [line] = [line for line in result.stdout.splitlines() if where in line]
    assert line.removeprefix(where).split() == ["no", "error", "RuntimeError:", "the", "trap", "NO"]
    assert "Traceback" in (folder / "reproduced/tiny/squares/error.txt").read_text()
    assert computed() == [1, 2, 3]
    (folder / "trap").unlink()
    done("reproduce", "tiny")
    assert computed() == [3, 4]
    assert not (folder / "reproduced/tiny/squares/error.txt").exists()


@at_most(2)
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (SQUARES.replace("cells(full, seed):", "cells(full, seed):\n    1 / 0"), "ZeroDivisionError: division by zero"),
        (SQUARES.replace("def draw(rows, full):", "def draw(rows, full):\n    {}['x']"), "KeyError: 'x'"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("ITEM = ", "SyntaxError: invalid syntax (another.py, line 1)"),
        ("from hardthresh.constraints import Sparsity\nSparsity(-1)", "InvalidInputError: k must be"),
        ("raise SystemError", "SystemError"),
    ],
    ids=["cells", "draw", "import", "syntax", "of hardthresh", "without a message"],
)
def test_an_error_of_one_item_leaves_the_others(run, folder, broken, said):
    (folder / "papers" / "tiny" / "another.py").write_text(broken)
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    assert "sum of the squares" in result.stdout
    [line] = [line for line in result.stdout.splitlines() if said in line]
    assert "another.py, line " in line
    assert line.split()[-1] == "NO"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("ITEM = ", "SyntaxError: invalid syntax (another.py, line 1)"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("ITEMS = []", "AttributeError: module 'papers.tiny.another' has no attribute 'ITEM'"),
    ],
    ids=["syntax", "import", "no item"],
)
@pytest.mark.parametrize("columns", ["80", "160"])
def test_the_list_goes_on_after_an_item_that_cannot_be_imported(run, folder, monkeypatch, broken, said, columns):
    monkeypatch.setenv("COLUMNS", columns)
    (folder / "papers" / "tiny" / "another.py").write_text(broken)
    result = run("reproduce")
    assert result.exit_code == 1
    assert f"cannot be imported: {said}" in " ".join(result.stdout.split())
    assert "Sums of squares" in result.stdout


def test_an_error_with_another_seed_is_not_of_the_first(done, run, folder):
    done("reproduce", "tiny")
    (folder / "trap").write_text("raise")
    assert run("reproduce", "tiny", "--seed", "2").exit_code == 1
    item = folder / "reproduced" / "tiny" / "squares"
    assert [row["ok"] for row in json.loads((item / "results.json").read_text())["rows"]] == [True]
    assert [row["ok"] for row in json.loads((item / "results-seed2.json").read_text())["rows"]] == [False]
    assert not (item / "error.txt").exists()
    assert (item / "error-seed2.txt").exists()


def test_an_interrupt_before_the_first_cell_says_the_same(run, folder):
    run("reproduce", "tiny")
    (folder / "papers" / "tiny" / "squares.py").write_text("raise KeyboardInterrupt")
    result = run("reproduce", "tiny")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "interrupted; run the same command to continue"


def test_an_interrupted_run_says_how_to_go_on(run, folder):
    (folder / "trap").write_text("interrupt")
    result = run("reproduce", "tiny")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "interrupted; run the same command to continue"


def alone(folder):
    """Run the tiny paper in a process of its own."""
    code = (
        f"import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"sys.path.insert(0, {str(SOURCE)!r}); from hardthresh.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "reproduce", "tiny"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@only_at("pairs")
def test_ctrl_c_in_a_run_that_survives_it_keeps_nothing_of_the_cell(done, folder, computed):
    """`minimize` returns a truncated run then: its numbers would be in the table for ever."""
    (folder / "trap").write_text("press Ctrl-C")
    stopped = alone(folder)
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr.splitlines()[-1] == "interrupted; run the same command to continue"
    assert computed() == [1, 2, 3]
    assert len([*(folder / "reproduced/tiny/squares/cells").iterdir()]) == 2
    (folder / "trap").unlink()
    assert "yes" in done("reproduce", "tiny")
    assert computed() == [3, 4]


@only_at("pairs")
def test_a_killed_process_loses_only_its_cell(done, folder, computed):
    (folder / "trap").write_text("kill")
    assert alone(folder).returncode == -signal.SIGKILL
    assert computed() == [1, 2, 3]
    (folder / "trap").unlink()
    done("reproduce", "tiny")
    assert computed() == [3, 4]


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("content", ["", '{"settings": {', "[]", '{"settings": {"seed": 0}, "result": {"value": 7}}'])
def test_a_corrupt_cell_is_computed_again(done, folder, computed, content):
    first = done("reproduce", "tiny")
    computed()
    [cell] = (folder / "reproduced" / "tiny" / "squares" / "cells").glob("number_2-*.json")
    cell.write_text(content)
    assert done("reproduce", "tiny") == first
    assert computed() == [2]


def test_a_number_that_is_not_as_expected_is_exit_code_1(run, folder):
    path = folder / "papers" / "tiny" / "digits.toml"
    path.write_text(EXPECTED.replace("equals = 30", "equals = 31"))
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    assert "NO" in result.stdout
    assert json.loads((folder / "reproduced/tiny/squares/results.json").read_text())["rows"][0]["ok"] is False


def test_not_reached_and_not_a_number_are_distinguished(run, folder):
    (folder / "strange").write_text("")
    result = run("reproduce", "tiny")
    assert result.exit_code == 1  # nothing is expected of the key `strange`, and yet NaN is not ok
    [line] = [line for line in result.stdout.splitlines() if line.startswith("strange")]
    assert line.split() == ["strange", "a", "number", "1", "/", "nan", "NO"]
    results = json.loads(
        (folder / "reproduced/tiny/squares/results.json").read_text(),
        parse_constant=lambda name: pytest.fail(f"{name} is not JSON"),
    )
    assert results["numbers"]["late"] == "not reached"
    assert results["numbers"]["strange"] == [1.0, "not a number"]
    assert results["rows"][-1]["got"] == [1.0, "not a number"]
    assert [row["ok"] for row in results["rows"]] == [True, False]


def test_nan_where_a_number_was_expected_is_not_ok(run, folder):
    path = folder / "papers" / "tiny" / "digits.toml"
    (folder / "strange").write_text("")
    path.write_text(EXPECTED + '[[squares]]\nkey = "strange"\nexpected = "1 / 2"\nequals = [1, 2]\nwithin = 9\n')
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    [line] = [line for line in result.stdout.splitlines() if line.startswith("strange")]
    assert line.split()[-1] == "NO"


def test_a_row_that_cannot_be_read_is_refused_before_anything_runs(refused, folder, computed):
    path = folder / "papers" / "tiny" / "digits.toml"
    path.write_text(EXPECTED.replace("equals = 30", "high = inf"))
    said = refused("reproduce", "tiny")
    place = str(Path("papers", "tiny", "digits.toml"))
    assert said.startswith(f"{place}, [[squares]]: the row 'sum' has a number without a bound")
    assert computed() == []


def test_rows_of_the_full_mode(run):
    result = run("reproduce", "tiny", "--full")  # the sum of ten squares is 385, so the first row is wrong
    assert result.exit_code == 1
    assert [line.split()[-1] for line in result.stdout.splitlines() if "sum" in line or "more" in line] == ["NO", "yes"]


def test_digits_are_about_the_first_seed(done, run, folder):
    """Nothing is expected of another seed: what came out is shown and kept, but the run is not a success."""
    done("reproduce", "tiny")
    item = folder / "reproduced" / "tiny" / "squares"
    first = (item / "results.json").read_text()
    result = run("reproduce", "tiny", "--seed", "5")
    assert result.exit_code == 2
    [said] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert said.startswith("error: nothing was checked: claims.toml and digits.toml have no row about --seed 5 of ")
    lines = result.stdout.splitlines()
    assert lines[0] == "tiny/squares --seed 5: nothing is expected of data sets with this seed"
    assert [line.split() for line in lines[2:4]] == [["sum", "nothing", "230", "-"], ["second", "nothing", "49", "-"]]
    assert (item / "results.json").read_text() == first
    other = json.loads((item / "results-seed5.json").read_text())
    assert (other["seed"], other["rows"], other["numbers"]) == (5, [], {"sum": 230, "second": 49})
    assert (item / "squares.png").exists()
    assert (item / "squares-seed5.png").exists()


CLAIM = """
check = ["squares"]

[[squares]]
key = "growth"
claim = "The last square is several times the first"
source = "Theorem 0"
low = 2
verdict = "varies"
reason = "the numbers are greater"
"""


@pytest.fixture
def claimed(folder):
    """A claim whose number is (number + 3)^2 / number^2: 16, 6.25, 4, ... and 1.69 with the seed 9."""
    script = folder / "papers" / "tiny" / "squares.py"
    growth = '{"growth": rows[3]["value"] / rows[0]["value"], "sum": sum('
    script.write_text(script.read_text().replace('{"sum": sum(', growth))
    path = folder / "papers" / "tiny" / "claims.toml"
    path.write_text(CLAIM)
    return path


@only_at("pairs")
def test_the_spread_of_ten_seeds_is_measured_and_kept(claimed, done, run, folder):
    measured = done("reproduce", "tiny", "--seeds", "10", "--keep-spread")
    [line] = [line for line in measured.splitlines() if line.rstrip().endswith(" varies")]
    assert line.split()[-7:] == ["1.69", "2.405", "16", "7", "of", "10", "varies"]
    spread = tomllib.loads((folder / "papers" / "tiny" / "spread.toml").read_text())
    assert spread == {"squares": {"growth": pytest.approx([(n + 3) ** 2 / n**2 for n in range(1, 11)], rel=1e-5)}}
    assert "Theorem 0" in done("reproduce", "tiny", "--seed", "12")  # every seed has claims, only 0 has digits


def test_a_claim_that_was_not_measured_is_not_ok(claimed, run):
    result = run("reproduce", "tiny", "--seed", "3")
    assert result.exit_code == 1
    assert "at least 2: not measured" in result.stdout


LONG = "the sum of the squares of the first four numbers, as in the table of the appendix, with every data set"


def test_tables_are_read_in_eighty_columns(claimed, run, folder, monkeypatch):
    """The texts of a row are below one another, over the whole width, and nothing is cut off."""
    monkeypatch.setenv("COLUMNS", "80")
    path = folder / "papers" / "tiny" / "digits.toml"
    path.write_text(EXPECTED.replace("sum of the squares", LONG))
    result = run("reproduce", "tiny", "--seeds", "2")
    text = " ".join(result.stdout.split())
    assert f"yes {LONG} got: 30 expected: 30" in text
    assert "The last square is several times the first (Theorem 0) 6.25 to 16, median 11.12 at least 2: varies" in text
    assert result.stdout.splitlines()[-1].split()[:7] == ["total", "0", "of", "2", "1", "of", "1"]
    lines = [*result.stdout.splitlines(), *run("reproduce").stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    assert not any("\N{HORIZONTAL ELLIPSIS}" in line for line in lines)


@only_at("pairs")
def test_a_verdict_against_the_numbers_is_refused(claimed, run, refused):
    claimed.write_text(CLAIM.replace('"varies"', '"holds"'))
    result = run("reproduce", "tiny", "--seeds", "10", "--keep-spread")
    assert result.exit_code == 2
    said = (
        f"error: {Path('papers', 'tiny', 'claims.toml')}, [[squares]]: the row 'growth' has the verdict 'holds', "
        "but it is true on 7 of 10 seeds: 'varies'"
    )
    assert result.stderr.splitlines()[-1] == said
    assert not claimed.with_name("spread.toml").exists()
    claimed.with_name("spread.toml").write_text(f"[squares]\ngrowth = {[1.5, *range(3, 12)]}")
    assert refused("reproduce", "tiny").endswith("it is true on 9 of 10 seeds: 'varies'")  # before anything is computed


@only_at("pairs")
def test_a_spread_is_kept_only_if_every_seed_has_its_numbers(claimed, done, run, folder):
    done("reproduce", "tiny", "--seeds", "10", "--keep-spread")
    before = claimed.with_name("spread.toml").read_text()
    (folder / "trap").write_text("raise")
    result = run("reproduce", "tiny", "--seeds", "10", "--keep-spread", "--out", "fresh")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("of 10 seeds have the number 'growth'; none is kept")
    assert claimed.with_name("spread.toml").read_text() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[squares", "cannot be read"),
        (CLAIM.replace("[[squares]]", "[[sqares]]"), "has a table 'sqares', and tiny has no such item"),
    ],
)
def test_a_file_of_claims_that_is_wrong_is_named(claimed, refused, content, said):
    claimed.write_text(content)
    message = refused("reproduce", "tiny")
    assert said in message
    assert "claims.toml" in message


@only_at("pairs")
def test_the_check_runs_its_items_with_the_first_seed_and_a_new_one(claimed, done, computed, folder):
    shutil.copy(folder / "papers" / "tiny" / "squares.py", folder / "papers" / "tiny" / "long.py")
    done("reproduce", "tiny/squares", "--seeds", "10", "--keep-spread")
    computed()
    text = done("reproduce", "--check", "--out", "fresh")
    assert computed() == [1, 2, 3, 4, 11, 12, 13, 14]
    assert "tiny/squares --seed 10" in text
    assert "long" not in text


def test_a_row_that_cannot_fail_is_not_ok(run, folder):
    (folder / "papers" / "tiny" / "digits.toml").write_text(EXPECTED.replace("equals = 30", "low = -1\nhigh = 1000"))
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    assert "this row cannot fail" in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep-spread"], "--keep-spread needs --seeds 10"),
        (["--keep-spread", "--seeds", "10", "--full"], "--keep-spread needs --seeds 10"),
        (["--check", "--full"], "--check chooses the size and the seeds"),
        (["--check", "--seed", "3"], "--check chooses the size and the seeds"),
        (["--check"], "--check does not run tiny"),
    ],
)
def test_options_that_exclude_each_other(refused, options, said):
    assert refused("reproduce", "tiny", *options).startswith(said)


@pytest.mark.parametrize("options", [["--full"], ["--seed", "1"], ["--seeds", "10", "--keep-spread"]])
def test_options_without_an_item(refused, options):
    assert refused("reproduce", *options).startswith("say which items to run")


def test_an_item_of_which_nothing_is_expected_checks_nothing(run, folder):
    (folder / "papers" / "tiny" / "digits.toml").write_text('title = "A tiny paper"\n')
    result = run("reproduce", "tiny")
    assert result.exit_code == 2
    assert "nothing was checked: claims.toml and digits.toml have no row about tiny; " in result.stderr


@only_at("pairs")
def test_all_runs_the_items_of_all_papers_and_counts_their_rows(done, run, folder):
    shutil.copytree(folder / "papers" / "tiny", folder / "papers" / "small")
    shutil.copy(folder / "papers" / "tiny" / "squares.py", folder / "papers" / "tiny" / "again.py")
    (folder / "papers" / "tiny" / "digits.toml").write_text(
        EXPECTED + '[[again]]\nkey = "sum"\nexpected = "30"\nequals = 30\n'
        '[[again]]\nkey = "second"\nexpected = "4"\nequals = 4\n'
    )
    summary = done("reproduce", "all").splitlines()[-5:]
    assert " ".join(summary[0].split()) == "item claims ok of digits ok of rows ok of seconds"
    counts = [line.split()[:7] for line in summary[1:]]
    assert counts == [
        ["small/squares", "0", "0", "1", "1", "1", "1"],
        ["tiny/squares", "0", "0", "1", "1", "1", "1"],
        ["tiny/again", "0", "0", "2", "2", "2", "2"],
        ["total", "0", "0", "4", "4", "4", "4"],
    ]
    text = (folder / "papers" / "small" / "digits.toml").read_text()
    (folder / "papers" / "small" / "digits.toml").write_text(text.replace("equals = 30", "equals = 31"))
    (folder / "papers" / "tiny" / "again.py").write_text("1 / 0")
    result = run("reproduce", "all")
    assert result.exit_code == 1
    counts = [[line.split()[0], *line.split()[5:7]] for line in result.stdout.splitlines()[-4:]]
    assert counts == [
        ["small/squares", "0", "1"],
        ["tiny/squares", "1", "1"],
        ["tiny/again", "0", "1"],
        ["total", "1", "3"],
    ]


def test_one_item_has_no_summary(done):
    assert "total" not in done("reproduce", "tiny/squares")


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Sums of squares (quick run)"),
        (["--full"], "Sums of squares (full size)"),
        (["--seed", "3"], "Sums of squares (quick run, seed 3)"),
    ],
)
def test_a_figure_says_how_large_its_run_was(run, monkeypatch, arguments, said):
    titles = []
    savefig = Figure.savefig
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda figure, *rest, **more: titles.append(figure.get_suptitle()) or savefig(figure, *rest, **more),
    )
    run("reproduce", "tiny", *arguments)
    assert [title.replace("\N{NO-BREAK SPACE}", " ") for title in titles] == [said]


@only_at("pairs")
def test_a_long_title_stays_inside_the_figure(run, folder, monkeypatch):
    """What the size of the run adds to it must not be cut off at the edges."""
    script = folder / "papers" / "tiny" / "squares.py"
    script.write_text(script.read_text().replace('"Sums of squares"', '"Sums of squares, " + "and so on, " * 12'))
    inside = []
    savefig = Figure.savefig

    def look(figure, *rest, **more):
        savefig(figure, *rest, **more)
        figure.draw_without_rendering()
        title = figure._suptitle.get_window_extent()
        inside.append(title.x0 >= 0 and title.x1 <= figure.bbox.width)

    monkeypatch.setattr(Figure, "savefig", look)
    run("reproduce", "tiny", "--seed", "3")
    assert inside == [True]


@pytest.mark.filterwarnings("default")
def test_a_warning_says_which_cell_it_is_about(run, folder):
    script = folder / "papers" / "tiny" / "squares.py"
    script.write_text(
        script.read_text().replace(
            '    return {"value": number**2}', '    np.exp(710.0 * (number == 3))\n    return {"value": number**2}'
        )
    )
    result = run("reproduce", "tiny")
    [line] = [line for line in result.stderr.splitlines() if line.startswith("warning")]
    assert line.startswith("warning: number 3: overflow encountered in exp")
    assert "diverges" in line


def test_missing_data_stop_only_their_item(run, folder):
    script = "from hardthresh.datasets import DatasetError\n" + SQUARES.replace(
        'raise RuntimeError("the trap")', 'raise DatasetError("no such file here")'
    )
    (folder / "papers" / "tiny" / "another.py").write_text(script)
    (folder / "papers" / "tiny" / "squares.py").write_text(SQUARES.replace('Path("trap").exists()', "False"))
    (folder / "trap").write_text("raise")
    result = run("reproduce", "tiny")
    assert result.exit_code == 1
    assert "warning: tiny/another was not run: no such file here" in result.stderr
    assert "sum of the squares" in result.stdout


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("tny", "there is no paper 'tny'; did you mean 'tiny'? There is: tiny."),
        ("tiny/square", "there is no item of tiny 'square'; did you mean 'squares'? There is: squares."),
        ("tiny/_helper", "there is no item of tiny '_helper'; there is: squares."),
        ("runner", "there is no paper 'runner'; there is: tiny."),
    ],
)
def test_a_typo_says_what_there_is(refused, what, said):
    assert refused("reproduce", what) == said


@pytest.mark.parametrize("folders", [(), ("papers",)])
def test_without_the_experiments_it_says_where_they_are(refused, folder, folders):
    shutil.rmtree(folder / "papers")
    for name in folders:
        (folder / name).mkdir()
    said = refused("reproduce", "tiny")
    assert said.startswith("there are no experiments in papers: they come with the repository")
    assert "--papers" in said


def test_the_folder_may_have_another_name(done, folder):
    (folder / "papers").rename(folder / "experiments")
    assert "sum of the squares" in done("reproduce", "tiny", "--papers", "experiments")


def test_out_must_not_be_a_file(refused, folder):
    (folder / "results").write_text("")
    assert refused("reproduce", "tiny", "--out", "results") == "results is a file; --out must be a folder"


@pytest.mark.parametrize("file", ["results", "results/tiny", "results/tiny/squares"])
def test_results_that_cannot_be_written_are_noticed_before_the_work(refused, folder, computed, file):
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("")
    out = "results/deeper" if file == "results" else "results"
    item = str(Path(out, "tiny", "squares"))
    assert refused("reproduce", "tiny", "--out", out).startswith(f"results cannot be written into {item}: ")
    assert computed() == []


def test_a_write_protected_folder_is_noticed_before_the_work(refused, computed, monkeypatch):
    def protected(*arguments, **settings):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", protected)  # the command imports the runner after this
    item = str(Path("results", "tiny", "squares"))
    said = f"results cannot be written into {item}: Permission denied; name another folder with --out"
    assert refused("reproduce", "tiny", "--out", "results") == said
    assert computed() == []


def test_without_matplotlib_it_says_what_to_install(monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert refused("reproduce") == "the figures need matplotlib: install hardthresh[plot]"
