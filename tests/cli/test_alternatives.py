"""``hardthresh alternatives``."""

import json

import numpy as np
import polars
import pytest

import hardthresh as ht

FIT = ["--k", "2", "--out", "model.json", "-q"]


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


def test_bad_settings_are_refused(refused, done, csv):
    done("fit", csv, "--target", "y", "--drop", "ill", *FIT)
    assert "tolerance must be" in refused("alternatives", "model.json", csv, "--tolerance", "0")
    assert "is the model, which would be lost" in refused("alternatives", "model.json", csv, "--out", "model.json")
