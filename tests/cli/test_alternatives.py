"""``hardthresh alternatives``."""

import json

import numpy as np
import polars
import pytest

import hardthresh as ht

FIT = ["--k", "2", "--out", "model.json", "-q"]


@pytest.mark.slow
def test_the_sets_are_those_of_the_model(done, csv, table, folder):
    table = table.with_columns(y=polars.Series(np.random.default_rng(1).standard_normal(60)))
    table.write_csv(csv)  # of noise there is more than one set
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    printed = done("alternatives", "model.json", csv, "--tolerance", "0.9", "--most", "4", "--out", "sets.json")
    found = json.loads((folder / "sets.json").read_text())
    X = table.select("a", "b", "height, cm", "d", "e")
    again = ht.load(folder / "model.json").alternatives(X, table["y"], tolerance=0.9, most=4)
    assert [one["numbers"] for one in found["supports"]] == [list(one.numbers) for one in again.supports]
    assert [one["value"] for one in found["supports"]] == pytest.approx([one.value for one in again.supports], rel=1e-9)
    assert len(found["supports"]) > 1
    assert set(again.own) <= set("abde") | {"height, cm"}
    for name in again.own:
        assert name in printed
    assert "Sets: sets.json" in printed
    assert found["complete"] is False


def test_a_time_limit_proves_that_there_are_no_other_sets(done, csv, folder):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    printed = done("alternatives", "model.json", csv, "--tolerance", "0.9", "--time-limit", "60", "--out", "sets.json")
    assert "Proved by branch and bound" in printed
    assert json.loads((folder / "sets.json").read_text())["complete"] is True


def test_bad_settings_are_refused(refused, done, csv):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    assert "tolerance must be" in refused("alternatives", "model.json", csv, "--tolerance", "0")
    assert "time_limit must be" in refused("alternatives", "model.json", csv, "--time-limit", "-1")
    assert "is the model, which would be lost" in refused("alternatives", "model.json", csv, "--out", "model.json")


def test_a_word_is_for_no_time_limit(done, refused, csv, folder):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    done("alternatives", "model.json", csv, "--time-limit", "none", "--out", "sets.json")
    assert json.loads((folder / "sets.json").read_text())["complete"] is True
    done("prove", "model.json", csv, "--time-limit", "none")
    assert "none for no limit" in refused("prove", "model.json", csv, "--time-limit", "inf")
