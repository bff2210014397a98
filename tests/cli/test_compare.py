"""``hardthresh compare``: the options of fit, a table, a page and files of numbers."""

import csv as csv_module
import json

import pytest

import hardthresh as ht
from hardthresh.comparison import contest
from levels import only_at

FAST = ("--entrants", "hardthresh,ridge", "--folds", 3)


def test_it_prints_what_compare_finds_and_writes_files(done, csv, table, folder):
    text = done("compare", csv, "--target", "y", "--drop", "ill", *FAST, "--report", "c.html", "--out", "c.json")
    X = table.select("a", "b", "height, cm", "d", "e")
    found = ht.compare(X, table["y"].to_numpy(), entrants=["hardthresh", "ridge"], folds=3)
    numbers = json.loads((folder / "c.json").read_text())
    for entry in numbers["entrants"]:
        assert entry["losses"] == pytest.approx(found[entry["method"]].losses)
    assert "2 methods compared on 60 rows and 5 features: numbers" in text
    assert " ".join(found.verdict.sentences[-1].split()) in " ".join(text.split())
    page = (folder / "c.html").read_text()
    for words in (
        *found.verdict.sentences,
        "height, cm",
        "hardthresh compare",
        "RidgeCV",
        "What the numbers do not say",
    ):
        assert words in page
    assert "://" not in page


@only_at("pairs")
def test_classes_and_categories_and_a_file_of_the_table(done, csv, folder):
    done("compare", csv, "--target", "ill", "--drop", "y", *FAST, "--out", "c.csv", "-q")
    with (folder / "c.csv").open(newline="") as file:
        rows = [*csv_module.DictReader(file)]
    assert {row["method"] for row in rows} == {"hardthresh", "ridge"}
    assert all(0.0 <= float(row["accuracy"]) <= 1.0 for row in rows)
    assert "--set" not in done("compare", "--help")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "y", "--entrants", "laso"), "unknown entrant 'laso'; known: hardthresh"),
        (("--target", "y", "--loss", "huber"), "no other package is compared for the huber loss; --loss is one of"),
        (("--target", "y", "--target", "a"), "no other package is compared for several targets"),
        (("--target", "y", "--out", "c.txt"), "must end in .json or .csv"),
        (("--target", "y", "--time-limit", "soon"), "--time-limit must be a finite number"),
        (("--target", "y", "--folds", "50", "--entrants", "ridge"), "too few for 50 outer folds"),
        (("--target", "no"), "'no'"),
    ],
)
def test_wrong_options_are_refused(refused, csv, options, message):
    assert message in refused("compare", csv, *options, "--drop", "ill")


def test_an_interrupt_prints_what_is_complete_and_exits_with_130(run, csv, folder, monkeypatch):
    rounds = []
    original = contest._Contest._round

    def interrupted(self, *args):
        rounds.append(0)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(contest._Contest, "_round", interrupted)
    result = run("compare", csv, "--target", "y", "--drop", "ill", *FAST, "--report", "c.html")
    assert result.exit_code == 130
    assert "(2 of 3 were done)" in " ".join(result.stdout.split())
    assert "Ended early" in (folder / "c.html").read_text()


def test_missing_numbers_are_filled_in_on_request(refused, done, broken):
    path = broken("a,b,y", *(f"{i},{'' if i == 4 else i % 5},{i + i % 3}" for i in range(30)))
    assert "impute (--impute of fit, compare and stability)" in refused("compare", path, "--target", "y", *FAST)
    assert "2 methods compared" in done("compare", path, "--target", "y", *FAST, "--impute")


def test_numbers_replace_numbers_but_neither_a_model_nor_a_proof(refused, done, csv, folder):
    done("fit", csv, "--target", "y", "--drop", "ill", "--k", 2, "--out", "model.json", "-q")
    model = (folder / "model.json").read_bytes()
    rows = (csv, "--target", "y", "--drop", "ill")
    for command in (("compare", *rows), ("alternatives", "model2.json", csv)):
        (folder / "model2.json").write_bytes(model)
        line = refused(*command, "--out", "model.json")
        assert line.startswith(
            "--out model.json holds a saved model or proof, which would be lost; choose another name"
        )
    assert (folder / "model.json").read_bytes() == model
    for name in ("c.json", "c.csv"):
        (folder / name).write_text("old")
        done("compare", *rows, *FAST, "--out", name, "-q")
        assert "hardthresh" in (folder / name).read_text()
    line = refused("prove", "model.json", csv, "--out", "c.json")
    assert line.endswith("choose another name, or remove this file first")
    for _ in range(2):
        done("prove", "model.json", csv, "--out", "proof.json")
    assert "holds a saved model or proof" in refused("compare", *rows, "--out", "proof.json")
