"""``hardthresh predict``."""

import csv as csv_module
import io
import re
import warnings

import numpy as np
import polars
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import hardthresh as ht
from levels import only_at


def rows(text: str) -> list[list[str]]:
    return list(csv_module.reader(io.StringIO(text, newline="")))


@pytest.fixture
def classifier(done, csv):
    """A saved model of two named columns."""
    done("fit", csv, "--target", "ill", "--drop", "y", "--k", "2", "--out", "model.json")
    return ht.load("model.json")


@pytest.fixture
def regression(done, csv):
    done("fit", csv, "--target", "y", "--drop", "ill", "--k", "2", "--out", "model.json")
    return ht.load("model.json")


def expected(model, table):
    X = table.select(model.feature_names_in_.tolist()).to_numpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return model.predict(X), model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else None


def test_classes_come_with_probabilities(done, classifier, csv, table):
    head, *body = rows(done("predict", "model.json", csv))
    classes, probabilities = expected(classifier, table)
    assert head == ["prediction", "probability of yes"]
    assert [row[0] for row in body] == classes.tolist()
    np.testing.assert_allclose([float(row[1]) for row in body], probabilities, rtol=1e-12)


def test_numbers_come_alone(done, regression, csv, table):
    head, *body = rows(done("predict", "model.json", csv))
    assert head == ["prediction"]
    np.testing.assert_allclose([float(row[0]) for row in body], expected(regression, table)[0], rtol=1e-12)


def test_columns_are_matched_by_name_and_only_the_chosen_are_needed(done, regression, csv, table, folder):
    whole = done("predict", "model.json", csv)
    other = table.select("height, cm", text=polars.lit("x"), holes=polars.lit(None), b="b")
    other.write_parquet(folder / "other.parquet")
    assert done("predict", "model.json", "other.parquet") == whole


def test_a_missing_column_is_named(refused, regression, table, folder):
    table.rename({"b": "B"}).write_csv(folder / "other.csv")
    line = refused("predict", "model.json", "other.csv")
    assert line == "other.csv lacks 1 column that the model needs: b; did you mean 'B'?"


def test_a_hole_in_a_chosen_column_is_refused(refused, regression, table, folder):
    table.with_columns(b=polars.Series([None, *table["b"][1:]])).write_csv(folder / "other.csv")
    line = refused("predict", "model.json", "other.csv")
    assert (
        line == "other.csv has 1 missing value in 1 column, the first in column 'b', row 1; impute (--impute of fit, "
        "compare and stability) or remove these first"
    )


def test_texts_in_a_chosen_column_are_refused(refused, regression, table, folder):
    table.with_columns(b=polars.lit("x")).write_csv(folder / "other.csv")
    line = refused("predict", "model.json", "other.csv")
    assert line == "other.csv has 1 column without numbers: b (row 1: 'x'); the model needs them as numbers"


def test_to_a_file(run, regression, csv, folder):
    result = run("predict", "model.json", csv, "--out", "new.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "60 predictions written to new.csv\n"
    assert (folder / "new.csv").read_text() == run("predict", "model.json", csv).stdout


def test_an_offset_is_added(done, table, folder, csv):
    table.with_columns(exposure=polars.lit(100.0)).write_csv(csv)
    done("fit", csv, "--target", "y", "--drop", "ill", "--k", "2", "--offset", "exposure", "--out", "model.json")
    with_offset = [float(row[0]) for row in rows(done("predict", "model.json", csv, "--offset", "exposure"))[1:]]
    without = [float(row[0]) for row in rows(done("predict", "model.json", csv))[1:]]
    np.testing.assert_allclose(np.subtract(with_offset, without), 100.0)


def test_leaving_the_offset_out_is_said(done, run, table, csv):
    table.with_columns(exposure=polars.lit(100.0)).write_csv(csv)
    done("fit", csv, "--target", "y", "--drop", "ill", "--k", "2", "--offset", "exposure", "--out", "model.json")
    assert run("predict", "model.json", csv).stderr == (
        "warning: the model was fitted with the offset 'exposure', which these predictions leave out; add --offset\n"
    )
    assert run("predict", "model.json", csv, "--offset", "exposure").stderr == ""


@pytest.fixture
def unnamed(done, folder, table):
    """A saved model of columns without names, and the file it comes from."""
    X = table.select("a", "b", "height, cm", "d", "e").to_numpy()
    np.savez(folder / "train.npz", X=X, y=table["y"].to_numpy())
    done("fit", "train.npz", "--k", "2", "--out", "model.json")
    return X


def test_columns_without_names_are_matched_by_position(done, unnamed, folder):
    np.save(folder / "new.npy", unnamed[:7])
    assert rows(done("predict", "model.json", "new.npy")) == rows(done("predict", "model.json", "train.npz"))[:8]


def test_another_number_of_columns_is_refused(refused, unnamed, folder):
    np.save(folder / "new.npy", unnamed[:, :4])
    line = refused("predict", "model.json", "new.npy")
    assert line.startswith("new.npy has 4 feature columns; the model was fitted on 5 and matches them by position")


def test_a_named_model_reads_an_unnamed_file_by_position_and_says_so(run, regression, folder, table):
    np.save(folder / "new.npy", table.select(regression.feature_names_in_.tolist()).to_numpy())
    result = run("predict", "model.json", "new.npy")
    assert result.stderr == "note: new.npy has no column names; its columns are matched by position\n"
    np.testing.assert_allclose([float(row[0]) for row in rows(result.stdout)[1:]], expected(regression, table)[0])


def test_a_libsvm_file_may_end_early(done, folder):
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.where(rng.random((80, 12)) < 0.4, rng.standard_normal((80, 12)), 0.0))
    y = X.toarray()[:, 2] * 3 - X.toarray()[:, 4]
    dump_svmlight_file(X, y, str(folder / "train.svm"), zero_based=False)
    done("fit", "train.svm", "--k", "2", "--out", "model.json")
    dump_svmlight_file(X[:, :6], y, str(folder / "short.svm"), zero_based=False)
    assert done("predict", "model.json", "short.svm") == done("predict", "model.json", "train.svm")


def test_a_file_that_is_no_model_is_refused(refused, csv, folder):
    ht.save([1, 2], folder / "list.json")
    assert refused("predict", "list.json", csv) == "list.json does not hold a fitted model, but [1, 2]"


def test_outputs_are_checked_first(refused, csv):
    assert (
        refused("predict", "model.json", csv, "--out", "new.txt") == "the name of new.txt must end in .csv or .parquet"
    )


@pytest.mark.parametrize("classify", [False, True])
def test_models_that_bought_their_attributes_predict(done, refused, folder, classify):
    rng = np.random.default_rng(0)
    table = polars.DataFrame(rng.standard_normal((400, 6)), schema=list("abcdef"))
    y = 2 * table["b"].to_numpy() - table["e"].to_numpy()
    estimator = ht.LimitedAttributeLogisticRegression if classify else ht.LimitedAttributeRegression
    model = estimator(n_nonzero_coefs=2, n_observed=5).fit(table, y > 0 if classify else y)
    ht.save(model, folder / "model.json")
    table.write_csv(folder / "all.csv")
    table.select("e", "b").write_csv(folder / "few.csv")
    head, *body = rows(done("predict", "model.json", "all.csv"))
    assert rows(done("predict", "model.json", "few.csv")) == [head, *body]
    numbers = np.array([float(row[-1]) for row in body])
    np.testing.assert_allclose(numbers, model.predict_proba(table)[:, 1] if classify else model.predict(table))
    assert "without an offset" in refused("predict", "model.json", "all.csv", "--offset", "a")
    assert "needs b, e" in done("show", "model.json")


# --- which row is which ---


@pytest.fixture
def patients(table, folder):
    """The table with a column of ids that only look like numbers, missing values and formulas, in no order."""
    ids = [f"{(7 * i) % 60:04d}" for i in range(60)]
    ids[:7] = ["NA", "", "1e3", " 007 ", 'a,"b"', "None", "2024-01-05"]
    table.insert_column(2, polars.Series("patient", ids)).write_csv(folder / "patients.csv")
    return ids


def test_a_column_of_ids_is_no_feature_and_is_carried_through(done, patients, csv):
    done("fit", "patients.csv", "--target", "ill", "--drop", "y", "--id", "patient", "--k", "2", "--out", "model.json")
    assert "patient" not in ht.load("model.json").feature_names_in_
    plain = rows(done("predict", "model.json", csv))
    head, *body = rows(done("predict", "model.json", "patients.csv", "--id", "patient"))
    assert head == ["patient", "prediction", "probability of yes"]
    assert [row[0] for row in body] == patients
    assert [row[1:] for row in body] == plain[1:]
    assert rows(done("predict", "model.json", "patients.csv")) == plain


@only_at("pairs")
def test_ids_are_in_no_file_that_fit_writes(done, table, folder):
    names = polars.Series("patient", [f"patient-{i}" for i in range(60)])
    table.insert_column(2, names).write_csv(folder / "patients.csv")
    files = ("--out", "model.json", "--report", "report.html")
    done("fit", "patients.csv", "--target", "y", "--drop", "ill", "--id", "patient", "--k", "1-4", "--cv", "3", *files)
    for name in ("model.json", "report.html"):
        assert "patient-" not in (folder / name).read_text(encoding="utf-8")
    assert "The first row has the number 0" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_row_names_are_carried_through(done, regression, table, folder, name):
    names = [f"r{i:02d}" for i in range(60)]
    with_names = table.insert_column(0, polars.Series("", names))
    with_names.write_csv(folder / name) if name == "x.csv" else with_names.write_parquet(folder / name)
    head, *body = rows(done("predict", "model.json", name))
    assert (head, [row[0] for row in body]) == (["", "prediction"], names)
    head, *body = rows(done("predict", "model.json", name, "--id", "ill"))
    assert (head, [row[0] for row in body]) == (["ill", "prediction"], table["ill"].to_list())


def test_ids_of_other_files(done, refused, regression, table, folder):
    ids = polars.Series("id", [3 * i - 5 for i in range(60)])
    table.with_columns(ids).write_parquet(folder / "x.parquet")
    X = table.select("a", "b", "height, cm", "d", "e").to_numpy()
    np.savez(folder / "x.npz", X=X, id=ids.to_numpy())
    np.save(folder / "x.npy", X)
    np.save(folder / "id.npy", ids.to_numpy())
    first = rows(done("predict", "model.json", "x.parquet", "--id", "id"))
    assert [row[0] for row in first] == ["id", *map(str, ids)]
    assert rows(done("predict", "model.json", "x.npz", "--id", "id")) == first
    assert rows(done("predict", "model.json", "x.npy", "--id", "id.npy")) == first
    dump_svmlight_file(X, ids.to_numpy(), str(folder / "x.svm"), zero_based=False)
    assert "leave out --id id" in refused("predict", "model.json", "x.svm", "--id", "id")


def test_an_unknown_id_is_named(refused, regression, patients):
    line = refused("predict", "model.json", "patients.csv", "--id", "patients")
    assert line == "patients.csv has no column 'patients' for the id; did you mean 'patient'?"


def test_ids_of_the_wrong_number_are_refused(refused, regression, table, folder):
    np.save(folder / "x.npy", table.select("a", "b", "height, cm", "d", "e").to_numpy())
    np.save(folder / "id.npy", np.arange(59))
    assert "needs one entry for each of its 60 rows" in refused("predict", "model.json", "x.npy", "--id", "id.npy")


# --- what a spreadsheet makes of it ---

FORMULAS = ["=1+1", "+49 171 1", "-5-3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x"]
HARMLESS = ["-5", "+1e3", "-", "+", "=", "'", "'a", "a=1", "", "2024-01-05", " =1"]


def test_texts_that_a_spreadsheet_would_run_are_escaped(done, regression, table, folder):
    texts = FORMULAS + HARMLESS
    small = table.head(len(texts)).with_columns(polars.Series("=id", texts))
    small.write_parquet(folder / "x.parquet")  # a CSV file could not tell "" from nothing
    head, *body = rows(done("predict", "model.json", "x.parquet", "--id", "=id"))
    assert head == ["'=id", "prediction"]
    assert [row[0] for row in body] == ["'" + text for text in FORMULAS] + HARMLESS
    assert all(float(row[1]) < 0 for row in body if row[1].startswith("-"))  # numbers stay as they are
    assert any(row[1].startswith("-") for row in body)


def test_escaped_texts_can_be_told_from_all_others(done, regression, table, folder):
    texts = FORMULAS + HARMLESS
    table.head(len(texts)).with_columns(polars.Series("id", texts)).write_parquet(folder / "x.parquet")
    _, *body = rows(done("predict", "model.json", "x.parquet", "--id", "id"))
    assert [re.sub(r"^'(?='*[=+\-@\t\r].)", "", row[0], flags=re.DOTALL) for row in body] == texts


def test_texts_are_left_alone_on_request(done, regression, table, folder):
    texts = FORMULAS + HARMLESS
    table.head(len(texts)).with_columns(polars.Series("=id", texts)).write_parquet(folder / "x.parquet")
    head, *body = rows(done("predict", "model.json", "x.parquet", "--id", "=id", "--verbatim"))
    assert (head[0], [row[0] for row in body]) == ("=id", texts)


def test_labels_are_escaped_too(done, table, folder):
    table.with_columns(polars.col("ill").replace("yes", "=2")).write_csv(folder / "labels.csv")
    done("fit", "labels.csv", "--target", "ill", "--drop", "y", "--k", "2", "--out", "model.json")
    head, *body = rows(done("predict", "model.json", "labels.csv"))
    assert head == ["prediction", "probability of no"]
    assert {row[0] for row in body} == {"'=2", "no"}


def test_lone_surrogates_in_labels_are_replaced(run, classifier, csv, folder):
    classifier.classes_ = np.array(["\udcffno", "yes"])
    ht.save(classifier, folder / "model.json")
    assert run("predict", "model.json", csv, "--out", "new.csv").exit_code == 0
    assert {row[0] for row in rows((folder / "new.csv").read_text(encoding="utf-8"))[1:]} == {"?no", "yes"}
