"""``hardthresh fit --impute`` fills in missing values, and ``predict`` does the same to new rows."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import hardthresh as ht
from hardthresh.cli.imputing import columns_read
from hardthresh.storage import load_notes


@pytest.fixture
def gaps(folder):
    """y depends on b, of which a fifth is missing, and on whether c is."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((100, 4))
    y = 2 * X[:, 1] + 3 * (np.arange(100) % 4 == 0) + 0.1 * rng.standard_normal(100)
    table = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcd")} | {"y": y})
    row = pl.int_range(pl.len())
    table = table.with_columns(
        b=pl.when(row % 5 == 1).then(None).otherwise("b"), c=pl.when(row % 4 == 0).then(None).otherwise("c")
    )
    table.write_csv(folder / "gaps.csv")
    return table


def test_missing_values_are_filled_in_and_marked(done, run, gaps):
    text = done("fit", "gaps.csv", "--target", "y", "--impute", "--k", 2, "--out", "m.json", "--report", "r.html")
    assert text.startswith("2 of 6 features chosen to predict y")
    assert "missingindicator_c" in text
    page = Path("r.html").read_text(encoding="utf-8")
    assert "its training data" not in page  # the report knows the rows, and what each feature is worth to the model
    assert load_notes("m.json")["data"]["missing"] == 45
    assert "missingindicator_c" in done("show", "m.json")
    X = gaps.drop("y").to_numpy()
    imputer = SimpleImputer(add_indicator=True)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=0)
    pipeline = make_pipeline(imputer, model).fit(X, gaps["y"].to_numpy())
    loaded = ht.load("m.json")
    np.testing.assert_array_equal(loaded.predict(gaps.drop("y")), pipeline.predict(X))
    new = pl.DataFrame({"c": [None, 1.0, 0.0], "b": [0.0, None, 1.0]})  # the two columns that the model uses
    new.write_csv("new.csv")
    lines = done("predict", "m.json", "new.csv").splitlines()
    rows = np.array([[0.0, 0.0, np.nan, 0.0], [0.0, np.nan, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(np.array(lines[1:], dtype=float), pipeline.predict(rows), rtol=1e-12)


def test_missing_values_are_refused_with_advice(refused, gaps):
    assert refused("fit", "gaps.csv", "--target", "y").endswith(
        "impute (--impute of fit, compare and stability) or remove these first"
    )
    gaps.with_columns(a=pl.lit(np.inf)).write_csv("gaps.csv")
    line = refused("fit", "gaps.csv", "--target", "y", "--impute")
    assert "100 infinite values" in line
    assert line.endswith("; --impute fills in missing values only, so correct or remove these first")


def test_a_sparse_matrix_has_nothing_to_fill_in(refused, folder):
    (folder / "t.svm").write_text("1 1:2\n-1 2:1\n", encoding="utf-8")
    assert refused("fit", "t.svm", "--impute").startswith("--impute is for dense tables; leave it out, since zeros")


# with categories


@pytest.fixture
def shops(gaps, folder):
    """The same with a colour on which y depends, a tenth of them missing; and another column of categories."""
    row = pl.int_range(pl.len())
    colour = pl.when(row % 10 == 3).then(None).when(row % 3 == 0).then(pl.lit("red")).otherwise(pl.lit("blue"))
    kind = pl.when(row % 2 == 0).then(pl.lit("new")).otherwise(pl.lit("old"))
    table = gaps.with_columns(colour=colour, kind=kind).select("colour", "a", "b", "c", "d", "kind", "y")
    table = table.with_columns(
        y=pl.col("y") + 2 * pl.col("colour").is_null() - (pl.col("colour") == "red").fill_null(False)
    )
    table.write_csv(folder / "shops.csv")
    return table


OPTIONS = ("--target", "y", "--impute", "--categorical", "colour,kind")


@pytest.mark.slow
@pytest.mark.parametrize("validated", [[], ["--cv", "3", "--averaging", "none", "--alpha", "0"]])
def test_categories_go_with_numbers_that_are_filled_in(run, done, shops, validated):
    result = run("fit", "shops.csv", *OPTIONS, "--k", 3, *validated, "--out", "m.json", "--report", "r.html")
    assert result.exit_code == 0, result.output
    assert "note: 10 missing values of 'colour' became its level 'missing'" in result.stderr
    assert result.stdout.startswith("3 of 8 features chosen to predict y\n")
    for shown in (result.stdout, done("show", "m.json")):
        assert "colour=missing" in shown
        assert "missingindicator_c" in shown
    assert load_notes("m.json")["data"]["missing"] == 55

    X = shops.drop("y").with_columns(pl.col("colour").fill_null("missing").cast(pl.Categorical))
    X = X.with_columns(pl.col("kind").cast(pl.Categorical))
    parts = [
        ("numbers", SimpleImputer(add_indicator=True), ["a", "b", "c", "d"]),
        ("categories", "passthrough", ["colour", "kind"]),
    ]
    columns = ColumnTransformer(parts, verbose_feature_names_out=False).set_output(transform="polars")
    expected = make_pipeline(columns, ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(X, shops["y"].to_numpy())
    loaded = ht.load("m.json")
    np.testing.assert_allclose(loaded.predict(X), expected.predict(X), rtol=1e-12)
    np.testing.assert_allclose(loaded.predict(X.to_pandas()), expected.predict(X), rtol=1e-12)
    lines = done("predict", "m.json", "shops.csv").splitlines()
    np.testing.assert_allclose(np.array(lines[1:], dtype=float), expected.predict(X), rtol=1e-12)


def test_only_the_columns_that_are_read_are_needed(done, refused, shops):
    done("fit", "shops.csv", *OPTIONS, "--k", 3, "--out", "m.json")
    whole = done("predict", "m.json", "shops.csv")
    assert columns_read(ht.load("m.json")) == ([0, 2, 3], frozenset({0}))
    shops.select("c", "colour", "b").write_csv("few.csv")
    assert done("predict", "m.json", "few.csv") == whole
    shops.select("c", "colour").write_csv("few.csv")
    assert refused("predict", "m.json", "few.csv").startswith("few.csv lacks 1 column that the model needs: b")
    shops.with_columns(colour=pl.lit("pink")).write_csv("few.csv")
    assert refused("predict", "m.json", "few.csv").startswith("column 'colour' has the level 'pink' in row")


def test_a_missing_category_is_a_new_level_if_none_was_missing(run, done, shops):
    shops.filter(pl.col("colour").is_not_null()).write_csv("whole.csv")
    done("fit", "whole.csv", *OPTIONS, "--k", 3, "--out", "m.json")
    result = run("predict", "m.json", "shops.csv")
    assert result.exit_code == 2
    assert "column 'colour' has the level 'missing' in row 4, which was not in the fit" in result.stderr


def test_all_columns_may_be_categories(done, shops):
    shops.select("colour", "kind", "y").write_csv("t.csv")
    text = done("fit", "t.csv", *OPTIONS, "--k", 1, "--out", "m.json")
    assert text.startswith("1 of 2 features chosen to predict y\n")
    assert len(done("predict", "m.json", "t.csv").splitlines()) == 101
