"""``hardthresh prove``, and how the rows of a saved model are read again."""

import numpy as np
import polars
import pytest

import hardthresh as ht
from hardthresh.certificates import Proof
from hardthresh.solvers import BranchAndBound
from levels import at_most

FIT = ["--k", "2", "--out", "model.json", "-q"]


@pytest.fixture
def hard(folder):
    """Rows whose search takes more than one iteration."""
    rng = np.random.default_rng(27)
    X = rng.standard_normal((40, 25))
    y = X[:, :6].sum(axis=1) + 3.0 * rng.standard_normal(40)
    polars.DataFrame({f"x{j}": X[:, j] for j in range(25)} | {"y": y}).write_csv(folder / "hard.csv")
    return folder / "hard.csv"


def in_words(text):
    return " ".join(text.split())


def test_a_model_is_proved_on_its_rows(done, csv):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    printed = in_words(done("prove", "model.json", csv))
    assert printed.startswith("Proved to 1e-9 relative: no set of this size has an objective below ")
    assert "the search is complete." in printed


def test_ctrl_c_keeps_what_was_proved_and_the_search_goes_on(run, hard, folder, monkeypatch):
    run("fit", hard, "--target", "y", "--k", "6", "--out", "model.json", "-q")
    advance, iterations = BranchAndBound.advance, iter(range(2))

    def stopped(self, objective, constraint, state):
        if next(iterations, None) is None:
            raise KeyboardInterrupt
        return advance(self, objective, constraint, state)

    with monkeypatch.context() as patched:
        patched.setattr(BranchAndBound, "advance", stopped)
        result = run("prove", "model.json", hard, "--out", "proof.json")
    assert result.exit_code == 1
    printed = in_words(result.stdout)
    assert "no set of this size has an objective below" in printed or "Nothing is proved" in printed
    assert "interrupted at iteration 2" in printed
    assert "Proof: proof.json" in printed
    part = ht.load(folder / "proof.json")
    assert isinstance(part, Proof)
    assert not part.proved
    again = run("prove", "model.json", hard, "--resume", "proof.json")
    assert again.exit_code == 0
    assert "Proved to 1e-9 relative" in again.stdout
    nodes = int(in_words(again.stdout).split(" nodes in ")[0].split()[-1].replace(",", ""))
    assert nodes > part.n_nodes


@at_most(4)
@pytest.mark.parametrize(
    "options",
    [
        ["--target", "y", "--drop", "ill", "--weight", "w", "--offset", "o"],
        ["--target", "ill", "--drop", "y,w,o"],
        ["--target", "level", "--order", "low,mid,high", "--drop", "y,ill,w,o"],
        ["--target", "count", "--loss", "poisson", "--exposure", "w", "--alpha", "0.1", "--drop", "y,ill,o,level"],
        ["--time", "w", "--event", "seen", "--strata", "group", "--alpha", "0.1", "--drop", "y,ill,o,level,count"],
        ["--target", "y", "--categorical", "group,level", "--drop", "ill,w,o"],
        ["--target", "y", "--target", "o", "--drop", "ill,w,level,group"],
    ],
    ids=lambda options: options[1] if len(options) > 1 else "",
)
def test_rows_are_read_as_fit_read_them(done, run, table, csv, options):
    """The objective of the model on them is that of the fit."""
    rng = np.random.default_rng(0)
    table = table.with_columns(
        w=rng.random(60) + 0.5,
        o=polars.Series(rng.standard_normal(60)),
        level=np.array(["low", "mid", "high"])[rng.integers(0, 3, 60)],
        count=rng.poisson(2.0, 60),
        seen=rng.integers(0, 2, 60),
        group=np.array(["a", "b"])[rng.integers(0, 2, 60)],
    )
    keep = [c for c in table.columns if c not in ("level", "group") or c in " ".join(options)]
    table.select(keep).write_csv(csv)
    names = [name for option in options for name in option.split(",")]
    drop = ["level", "group", "count", "seen", "w", "o"]
    unused = [name for name in drop if name in keep and name not in names]
    if unused:
        options = [
            option + "," + ",".join(unused) if place and options[place - 1] == "--drop" else option
            for place, option in enumerate(options)
        ]
    done("fit", csv, *options, *FIT)
    result = run("prove", "model.json", csv, "--out", "proof.json")
    assert result.exit_code in (0, 1)
    assert ht.load("proof.json").value == pytest.approx(ht.load("model.json").objective_, rel=1e-9)


def test_missing_values_are_filled_in_as_for_the_fit(done, run, table, csv):
    values = table["a"].to_list()
    values[3] = None
    table.with_columns(a=polars.Series(values)).write_csv(csv)
    done("fit", csv, "--target", "y", "--drop", "ill", "--impute", *FIT)
    run("prove", "model.json", csv, "--out", "proof.json")
    assert ht.load("proof.json").value == pytest.approx(ht.load("model.json")[-1].objective_, rel=1e-9)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of the comparison in Python
def test_columns_are_matched_by_name_and_other_rows_are_said_to_be_others(done, run, table, csv, folder):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    table.select(reversed(table.columns)).head(50).write_csv(folder / "other.csv")
    result = run("prove", "model.json", "other.csv", "--out", "proof.json")
    assert "warning: the model was fitted to 60 rows, and other.csv has 50" in in_words(result.stderr)
    X = table.head(50).select("a", "b", "height, cm", "d", "e").to_numpy()
    direct = ht.load(folder / "model.json").prove(X, table.head(50)["y"].to_numpy())
    assert ht.load("proof.json").value == pytest.approx(direct.value, rel=1e-9)


def test_what_fit_did_not_write_is_refused(refused, done, csv, table, folder):
    ht.save(ht.SparseLinearRegression(n_nonzero_coefs=1).fit(table.select("a", "b"), table["y"]), folder / "own.json")
    assert refused("prove", "own.json", csv) == (
        "own.json was not written by hardthresh fit --out, so its target is not known; ask the model in Python, with "
        "its rows"
    )
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    assert refused("prove", "model.json", csv, "--resume", "own.json").startswith("--resume own.json does not hold a")
    assert "is the model, which would be lost" in refused("prove", "model.json", csv, "--out", "model.json")
    assert "time_limit must be" in refused("prove", "model.json", csv, "--time-limit", "0")
