"""``hardthresh stability``: the options of fit, and how often half-samples choose each feature."""

import csv as csv_module
from inspect import signature
from typing import get_args

import numpy as np
import polars as pl
import pytest

import hardthresh as ht
from hardthresh.cli.fit import fit
from hardthresh.cli.sharing import with_options_of
from hardthresh.cli.stability import OF_FOLDS, OF_THE_CHOICE_OF_K, stability
from levels import only_at

COLUMNS = ("a", "b", "height, cm", "d", "e")


def rows_of(path):
    with path.open(newline="") as file:
        return {row["feature"]: row for row in csv_module.DictReader(file)}


def test_it_prints_what_the_selector_finds(done, csv, table, folder):
    text = done("stability", csv, "--target", "y", "--drop", "ill", "--k", 3, "--pairs", 10, "--out", "f.csv")
    X = table.select(COLUMNS).to_numpy()
    found = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=3), n_pairs=10).fit(
        X, table["y"].to_numpy()
    )
    assert f"{len(found.support_)} features in at least 75 % of 20 half-samples" in text
    assert str(found.statement()) in " ".join(text.split())
    rows = rows_of(folder / "f.csv")
    assert rows.keys() == set(COLUMNS)
    for name, inclusion, pair in zip(COLUMNS, found.inclusion_frequencies_, found.pair_frequencies_, strict=True):
        assert float(rows[name]["inclusion_frequency"]) == inclusion
        assert float(rows[name]["pair_frequency"]) == pair
        assert rows[name]["selected"] == str(inclusion >= 0.75)
    assert [*rows][:2] in (["b", "height, cm"], ["height, cm", "b"])


def test_the_model_is_set_as_that_of_fit(done, csv, table, folder):
    options = ("--target", "ill", "--drop", "y", "--k", 1, "--alpha", 0.5, "--always-include", "a", "--seed", 3)
    done("stability", csv, *options, "--pairs", 4, "--threshold", 0.6, "--out", "f.csv", "-q")
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.5, always_include=[0], random_state=3)
    found = ht.StabilitySelection(model, n_pairs=4, random_state=3)
    found.fit(table.select(COLUMNS).to_numpy(), table["ill"].to_numpy())
    rows = rows_of(folder / "f.csv")
    assert [float(rows[name]["inclusion_frequency"]) for name in COLUMNS] == found.inclusion_frequencies_.tolist()


@only_at("pairs")
def test_other_losses_and_their_settings(done, folder):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 4))
    pl.DataFrame(
        {f"x{j}": x[:, j] for j in range(4)}
        | {"t": rng.exponential(np.exp(-3 * x[:, 2])), "e": rng.integers(0, 2, 80), "w": rng.integers(1, 3, 80)}
    ).write_csv(folder / "times.csv")
    text = done("stability", "times.csv", "--time", "t", "--event", "e", "--weight", "w", "--k", 1, "--pairs", 5)
    assert "x2" in text
    done("stability", "times.csv", "--target", "t", "--drop", "e,w", "--loss", "quantile", "--quantile", 0.9, "--k", 1,
         "--pairs", 2, "-q")  # fmt: skip


@only_at("pairs")
def test_the_report_names_the_columns_and_the_command(done, csv, folder):
    text = done("stability", csv, "--target", "y", "--drop", "ill", "--k", 2, "--pairs", 3, "--report", "r.html")
    assert "Report: r.html" in text
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "How stable is the choice?" in page
    assert "height, cm" in page
    assert "hardthresh stability" in page


def test_categories_are_features(done, folder, table):
    table.with_columns(city=pl.Series(["Bonn", "Rome", "Oslo"] * 20)).write_csv(folder / "cities.csv")
    done("stability", "cities.csv", "--target", "y", "--drop", "ill", "--categorical", "city", "--k", 2, "--pairs", 3,
         "--out", "f.csv", "-q")  # fmt: skip
    assert "city" in rows_of(folder / "f.csv")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--k", 9), "--k must be between 0 and the number of features to choose from (5), got 9"),
        (("--k", 2, "--alpha", "0.1,1"), "--alpha 0.1,1 has several ridges"),
        (("--k", 2, "--threshold", 0.5), "threshold must be a finite number > 0.5 and <= 1, got 0.5"),
        (("--k", 2, "--bound", "best"), "--bound must be one of 'unimodal', 'worst_case'; got 'best'"),
        (("--k", 2, "--out", "f.json"), "the name of f.json must end in .csv"),
        (("--k", 2, "--strata", "a"), "--strata is for --loss cox"),
    ],
)
def test_what_cannot_be_is_refused(refused, csv, options, said):
    assert said in refused("stability", csv, "--target", "y", "--drop", "ill", *options)


def test_options_of_fit_are_those_of_stability():
    own, theirs = signature(stability).parameters, signature(fit, eval_str=True).parameters
    assert {name for name in theirs if name not in own} == OF_THE_CHOICE_OF_K | OF_FOLDS
    loss, option = get_args(own["loss"].annotation)
    assert (loss, option.help, own["loss"].default) == (str, get_args(theirs["loss"].annotation)[1].help, "auto")
    assert get_args(own["seed"].annotation)[1].help == "Seed of the half-samples."


def test_shared_options_come_between_those_of_a_command():
    def other(data: str, first: int = 1, second: int = 2): ...

    @with_options_of(other, without={"second"})
    def command(data: str, *, third: int = 3, **options: int): ...

    assert [*signature(command).parameters] == ["data", "first", "third"]
    assert command.__annotations__ == {"data": str, "first": int, "third": int}


def test_a_saved_selection_is_shown_and_predicts_nothing(done, refused, csv, table, folder):
    X = table.select(COLUMNS).to_numpy()
    found = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=2), n_pairs=5).fit(X, table["y"].to_numpy())
    ht.save(found, folder / "selection.json")
    text = done("show", "selection.json")
    assert "2 features in at least 80 % of 10 half-samples" in text
    assert "feature 1" in text
    assert "does not hold a fitted model" in refused("predict", "selection.json", csv)
