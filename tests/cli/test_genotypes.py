"""``hardthresh fit x.bed --phenotypes people.csv``: section 6 of scale.md."""

import numpy as np
import polars
import pytest

import hardthresh as ht
from hardthresh.storage import load_notes
from plink_files import draw, filled, write

FIT = ("--phenotypes", "people.csv", "--id", "IID", "--target", "bmi")
N = 90


def named(X, model):
    """Columns with the names that a model knows."""
    return polars.DataFrame(X, schema=model.feature_names_in_.tolist())


@pytest.fixture
def people():
    """People in another order than the samples, with one who was not genotyped."""
    rng = np.random.default_rng(0)
    copies = filled(draw(N, 40))
    age, sex = rng.integers(20, 80, N), rng.integers(0, 2, N)
    bmi = 20 + 0.1 * age + 3 * copies[:, 7] - 4 * copies[:, 31] + 0.3 * rng.standard_normal(N)
    frame = polars.DataFrame({"IID": [f"I{i}" for i in range(N)], "age": age, "sex": sex, "bmi": bmi})
    more = polars.DataFrame({"IID": ["X1"], "age": [30], "sex": [1], "bmi": [25.0]}, schema=frame.schema)
    return polars.concat([frame, more])[rng.permutation(N + 1)]


@pytest.fixture
def bed(folder, people):
    """The file of genotypes beside the table of people."""
    people.write_csv(folder / "people.csv")
    return write(folder / "x.bed", draw(N, 40), names=True)


def test_the_table_is_joined_by_id(done, run, bed, people, folder):
    """The fit is that of the rows of the samples, in their order, with the covariates beside the chosen variants."""
    result = run("fit", bed, *FIT, "--covariates", "age,sex", "--k", 2, "--out", "model.json")
    assert result.exit_code == 0, result.output
    assert "note: 1 row left out: its id is not in" in result.stderr
    assert "2 of 42 features chosen to predict bmi, with 2 more on request" in result.stdout
    model = ht.load("model.json")
    assert model.feature_names_in_[model.support_].tolist() == ["age", "sex", "rs7_A", "rs31_A"]
    own = people.filter(polars.col("IID") != "X1").sort(polars.col("IID").str.slice(1).cast(int))
    X = np.column_stack([own["age"], own["sex"], filled(draw(N, 40))])
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2, always_include=[0, 1]).fit(X, own["bmi"].to_numpy())
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-8)
    assert load_notes("model.json")["data"]["means"] == pytest.approx(
        {"rs7_A": np.nanmean(draw(N, 40)[:, 7]), "rs31_A": np.nanmean(draw(N, 40)[:, 31])}
    )


def test_people_without_a_value_are_left_out_with_a_count(run, bed, people, folder):
    own = people.with_columns(
        bmi=polars.when(polars.col("IID").is_in(["I3", "I4"])).then(None).otherwise(polars.col("bmi")),
        age=polars.when(polars.col("IID") == "I5").then(None).otherwise(polars.col("age")),
    ).filter(~polars.col("IID").is_in(["I0", "I1", "I2", "X1"]))
    own.write_csv(folder / "people.csv")
    result = run("fit", bed, *FIT, "--covariates", "age", "--k", 2, "--out", "model.json")
    assert result.exit_code == 0, result.output
    notes = [line for line in result.stderr.splitlines() if "left out" in line]
    assert notes == [
        "note: 3 samples left out: no row of people.csv has its id",
        "note: 2 samples left out: without a value of 'bmi'",
        "note: 1 sample left out: without a value of 'age'",
    ]
    assert load_notes("model.json")["data"]["n"] == N - 6


@pytest.mark.parametrize("criterion", [("--criterion", "ebic"), ("--cv", 3, "--k", "1-4")])
def test_the_number_of_variants_is_chosen(done, bed, criterion):
    done("fit", bed, *FIT, "--covariates", "age", *criterion, "--averaging", "none", "--out", "model.json")
    model = ht.load("model.json")
    assert {"rs7_A", "rs31_A"} <= set(model.feature_names_in_[model.support_])


def test_cases_and_controls(done, bed, people, folder):
    """Texts are classes, as in any table."""
    high = people["bmi"] > people["bmi"].median()
    people.with_columns(bmi=polars.Series(np.where(high, "case", "control"))).write_csv(folder / "people.csv")
    text = done("fit", bed, *FIT, "--k", 1, "--out", "model.json")
    assert "bmi: control against case" in text
    assert type(ht.load("model.json")) is ht.SparseLogisticRegression


def test_predictions_for_other_samples(done, bed, people, folder):
    """Missing genotypes count as in the fit; the output has the ids of the samples."""
    done("fit", bed, *FIT, "--covariates", "age", "--k", 2, "--out", "model.json")
    copies = draw(7, 40, seed=1, missing=0.4)
    new = write(folder / "new.bed", copies, names=True)
    polars.DataFrame({"IID": [f"I{i}" for i in range(7)][::-1], "age": range(7)}).write_csv(folder / "new.csv")
    lines = done("predict", "model.json", new, "--phenotypes", "new.csv", "--id", "IID").splitlines()
    assert lines[0] == "IID,prediction"
    assert [line.split(",")[0] for line in lines[1:]] == [f"I{i}" for i in range(7)]
    model, means = ht.load("model.json"), np.nanmean(draw(N, 40), axis=0)
    X = np.column_stack([np.arange(7)[::-1], np.where(np.isnan(copies), means, copies)])
    np.testing.assert_allclose(
        [float(line.split(",")[1]) for line in lines[1:]], model.predict(named(X, model)), rtol=1e-9
    )


def test_predictions_without_covariates_need_no_table(done, bed, folder):
    done("fit", bed, *FIT, "--k", 2, "--out", "model.json")
    lines = done("predict", "model.json", bed).splitlines()
    model = ht.load("model.json")
    expected = model.predict(named(filled(draw(N, 40)), model))
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], expected, rtol=1e-9)


def test_a_model_is_asked_about_its_samples_again(done, bed):
    """`prove` reads the table and the file as `fit` did."""
    done("fit", bed, *FIT, "--covariates", "age", "--k", 1, "--out", "model.json")
    assert "rs31_A" in done("alternatives", "model.json", bed)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda frame: frame.with_columns(IID=polars.lit("F") + polars.col("IID")),
            FIT,
            r"no id in the column 'IID' of people.csv, such as 'F\w+', is a sample of .*x.fam, such as 'I0'; ",
        ),
        (
            lambda frame: polars.concat([frame, frame[:1]]),
            FIT,
            r"the column 'IID' of people.csv has the id '\w+' in rows 1 and 92; each sample needs one of its own",
        ),
        (None, FIT[:2] + FIT[4:], r"add --id COLUMN, the column of people.csv with the sample ids of x.bed"),
        (None, ("--target", "bmi"), r"x.bed has no column to predict; add --phenotypes TABLE --id COLUMN --target"),
        (None, (*FIT, "--covariates", "agee"), r"people.csv lacks 1 column .*: agee; did you mean 'age'\?"),
        (None, (*FIT[:3], "iid", *FIT[4:]), r"people.csv has no column 'iid' for the id of samples; there are: "),
        (None, (*FIT, "--impute"), r"--impute is for tables; missing genotypes"),
        (None, (*FIT, "--drop", "age"), r"--drop is for tables"),
        (
            lambda frame: frame.with_columns(bmi=polars.lit(None)),
            FIT,
            r"no sample of .*x.fam is left: .*90 samples left out: without a value of 'bmi'",
        ),
        (None, ("--phenotypes", "x.bed", *FIT[2:]), r"--phenotypes takes a table whose columns have names"),
        (None, ("--phenotypes", "none.csv", *FIT[2:]), r"there is no file none.csv"),
    ],
)
def test_what_is_refused(refused, bed, people, folder, change, options, message):
    if change is not None:
        change(people).write_csv(folder / "people.csv")
    import re

    assert re.search(message, refused("fit", bed, *options, "--k", 1))


def test_files_that_are_refused(refused, bed, folder):
    fam = (folder / "x.fam").read_text()
    (folder / "x.fam").write_text(fam.replace("I4 ", "I3 "))
    assert "x.fam has the id 'I3' in lines 4 and 5; each sample" in refused("fit", bed, *FIT, "--k", 1)
    (folder / "x.fam").unlink()
    assert refused("fit", bed, *FIT, "--k", 1).startswith(f"there is no {folder / 'x.fam'}, which names the samples of")
    assert refused("fit", "people.csv", *FIT, "--k", 1).startswith("--phenotypes and --covariates are for a .bed file")
