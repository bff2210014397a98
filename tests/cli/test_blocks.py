"""Tables that commands read some rows at a time: the models and predictions of the whole, and what is refused."""

import csv
import re

import numpy as np
import polars
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import PredefinedSplit

import hardthresh as ht
from hardthresh.cli import block_predictions
from hardthresh.cli.blocks import IN_MEMORY
from hardthresh.storage import load_notes
from levels import at_most, only_at, slow_beyond

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

N, D = 5000, 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32)
Y = 2.0 * X[:, 1] - X[:, 6] + 0.5 * RNG.standard_normal(N)
ILL = np.where(Y + RNG.logistic(size=N) > 0, "yes", "no")
WEIGHT, OFFSET = RNG.random(N), RNG.standard_normal(N)
COLUMNS = {f"x{j}": X[:, j] for j in range(D)} | {"w": WEIGHT, "known": OFFSET, "y": Y, "ill": ILL}
TABLE = polars.DataFrame(COLUMNS | {"name": [f"row {i}" for i in range(N)]})
FEATURES = [f"x{j}" for j in range(D)]
NOT_FEATURES = ("--drop", "w,known,ill,name")


@pytest.fixture
def parts(folder):
    """The table in a folder of Parquet files of several row groups."""
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, N, 2000)):
        TABLE[start : start + 2000].write_parquet(folder / "parts" / f"{number}.parquet", row_group_size=700)
    return folder / "parts"


def test_the_model_of_a_folder_is_that_of_the_rows(parts, run, folder):
    result = run("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    assert result.exit_code == 0, result.output
    model = ht.load(folder / "m.json")
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.support_, [1, 6])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-5)
    assert model.feature_names_in_.tolist() == FEATURES
    text = " ".join(result.stdout.split())
    assert text.startswith("2 of 8 features chosen to predict y parts: 5,000 rows")
    assert f"R² {alone.score(X, Y):.3g}" in text
    readings, nbytes = re.search(r"in total; (\d+) readings, ([\d.]+ [kM]B), with those of the score", text).groups()
    assert int(readings) >= 2  # that of the products of all columns, and that of the score
    assert nbytes.endswith("kB")
    assert load_notes(folder / "m.json")["read"] == f"{readings} readings, {nbytes}"


def test_the_index_of_pandas_is_no_feature(done, folder):
    """Also where columns are dropped: the files of a shuffled frame have its index as a column."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=FEATURES).assign(y=Y, w=WEIGHT)
    frame.sample(frac=1, random_state=0).to_parquet(folder / "shuffled.parquet")
    done("fit", "shuffled.parquet", "--blocks", "--target", "y", "--drop", "w", "--k", 2, "--out", "m.json")
    assert ht.load(folder / "m.json").feature_names_in_.tolist() == FEATURES


def test_weights_and_offsets_are_columns(parts, done, folder):
    options = ("--target", "y", "--weight", "w", "--offset", "known", "--drop", "ill,name", "--k", 2)
    done("fit", parts, "--blocks", *options, "--out", "m.json")
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y, sample_weight=WEIGHT, offset=OFFSET)
    np.testing.assert_allclose(ht.load(folder / "m.json").coef_, alone.coef_, rtol=1e-4)
    assert not np.allclose(alone.coef_, ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y).coef_, rtol=1e-3)


@only_at("pairs")
def test_more_than_two_classes_are_chosen_by_folds_or_a_criterion(run, done, folder):
    """A criterion chooses for more columns than folds of classes can have in blocks."""
    drawn = 2.0 * X[:, :3] + np.random.default_rng(1).gumbel(size=(N, 3))
    classes = np.array(["ant", "bee", "cat"])[np.argmax(drawn, axis=1)]
    table = TABLE.select(FEATURES).with_columns(polars.Series("kind", classes)).head(300)
    table.write_parquet(folder / "kinds.parquet", row_group_size=150)
    text = " ".join(
        done("fit", "kinds.parquet", "--blocks", "--target", "kind", "--alpha", 0.1, "--out", "m.json").split()
    )
    assert "Held-out rows this model without features log loss" in text
    assert isinstance(ht.load(folder / "m.json"), ht.SparseLogisticRegressionCV)
    wide = table.with_columns(
        **{f"noise {j}": np.random.default_rng(j).random(300) for j in range(257 - len(FEATURES))}
    )
    wide.write_parquet(folder / "wide.parquet", row_group_size=150)
    result = run("fit", "wide.parquet", "--blocks", "--target", "kind", "--alpha", 0.1, "--out", "m.json")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "--criterion ebic chooses the number of features of more than two classes with 257 columns" in text
    assert "not validated: folds of more than two classes in blocks are for 256 columns" in text
    result = run("fit", "kinds.parquet", "--blocks", "--target", "kind", "--criterion", "ebic", "--out", "m.json")
    assert "not validated: leave --criterion out" in " ".join(result.output.split())
    found = ht.load(folder / "m.json")
    alone = ht.SparseLogisticRegression(n_nonzero_coefs=found.support_.size).fit(X[:300].astype(float), classes[:300])
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-5)


@pytest.mark.slow
def test_several_targets_are_columns_or_a_matrix(parts, run, done, refused, folder):
    """Those of Parquet by name, and an array with a row of them; folds choose, or a criterion if that is asked for."""
    y = np.column_stack([Y, WEIGHT])
    options = ("--target", "y", "--target", "w", "--drop", "known,ill,name", "--out", "m.json")
    text = " ".join(done("fit", parts, "--blocks", *options).split())
    assert "chosen to predict y, w: 2 outputs" in text
    assert "Held-out rows this model without features mean squared error" in text
    assert isinstance(ht.load(folder / "m.json"), ht.SparseLinearRegressionCV)
    result = run("fit", parts, "--blocks", *options, "--criterion", "ebic")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "not validated: leave --criterion out" in text
    model, alone = ht.load(folder / "m.json"), ht.SparseLinearRegression().fit(X.astype(float), y)
    assert model.output_names_.tolist() == ["y", "w"]
    np.testing.assert_array_equal(model.support_, alone.support_)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
    share = 1.0 - np.sum((y - alone.predict(X)) ** 2) / np.sum((y - y.mean(axis=0)) ** 2)
    assert f"R² {share:.3g}" in text
    done("predict", "m.json", parts, "--blocks", "--out", "p.csv")
    with (folder / "p.csv").open() as file:
        assert next(csv.reader(file)) == ["prediction of y", "prediction of w"]
    for name, part in (("X", X), ("y", y), ("column", y[:, :1])):
        np.save(folder / f"{name}.npy", part)
    done("fit", "X.npy", "--blocks", "--target", "y.npy", "--k", 2, "--out", "m.json")
    np.testing.assert_allclose(ht.load(folder / "m.json").coef_, alone.coef_, atol=1e-5)
    done("fit", "X.npy", "--blocks", "--target", "column.npy", "--k", 2, "--out", "m.json")
    one = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y)
    np.testing.assert_allclose(ht.load(folder / "m.json").coef_, one.coef_[None], atol=1e-5)
    said = refused("fit", "X.npy", "--blocks", "--target", "y.npy", "--target", "column.npy")
    assert "give one array of shape (rows, targets), with one --target" in said


@only_at("pairs")
def test_classes_and_a_criterion(parts, run, folder):
    result = run(
        "fit", parts, "--blocks", "--target", "ill", "--drop", "w,known,y,name", "--criterion", "bic", "--out", "m.json"
    )
    assert result.exit_code == 0, result.output
    model = ht.load(folder / "m.json")
    alone = ht.SparseLogisticRegression(criterion="bic").fit(X, ILL)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.support_, alone.support_)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-3)
    assert "accuracy" in result.stdout
    assert "chosen to predict ill: yes against no" in result.stdout


def test_truths_are_classes_by_name(run, folder):
    """As of rows in memory: False and True, which the saved model prints too, and no numbers 0.0 and 1.0."""
    TABLE.select(FEATURES).with_columns(ill=ILL == "yes").write_parquet(folder / "t.parquet", row_group_size=700)
    printed = []
    for how in ([], ["--blocks"]):
        result = run("fit", "t.parquet", *how, "--target", "ill", "--k", 2, "--out", "m.json")
        printed.append(" ".join(result.stdout.split()).partition("t.parquet")[0])
        assert ht.load(folder / "m.json").classes_.tolist() == [False, True]
    assert printed == ["2 of 8 features chosen to predict ill: True against False "] * 2
    from_blocks = run("predict", "m.json", "t.parquet", "--blocks").stdout
    assert from_blocks.splitlines()[0] == "prediction,probability of True"
    assert {line.split(",")[0] for line in from_blocks.splitlines()[1:]} == {"True", "False"}


def npy(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", Y)
    return "X.npy", ("--target", "y.npy")


def shards(folder):
    (folder / "shards").mkdir()
    for number, start in enumerate(range(0, N, 1500)):
        rows = slice(start, start + 1500)
        np.savez(folder / "shards" / f"{number}.npz", X=X[rows], y=Y[rows])
    return "shards", ()


def libsvm(folder):
    dump_svmlight_file(X.astype(float), Y, str(folder / "t.svm"), zero_based=False)
    return "t.svm", ()


def hdf5(folder):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(folder / "t.h5", "w") as file:
        file["spectra"], file["y"] = X, Y
    return "t.h5", ("--target", "y", "--x-key", "spectra")


def zarr(folder):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    group = zarr.open_group(str(folder / "t.zarr"), mode="w")
    for name, array in (("X", X), ("y", Y)):
        group.create_array(name, shape=array.shape, chunks=(1000, *array.shape[1:]), dtype=array.dtype)[:] = array
    return "t.zarr", ("--target", "y", "--x-key", "X")


@pytest.mark.slow
@at_most(4)
@pytest.mark.parametrize("make", [npy, shards, libsvm, hdf5, zarr])
def test_other_files_give_the_same_model_and_predictions(make, done, folder):
    data, options = make(folder)
    done("fit", data, "--blocks", *options, "--k", 2, "--quiet", "--out", "m.json")
    model = ht.load(folder / "m.json")
    np.testing.assert_allclose(model.coef_, ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y).coef_, rtol=1e-4)
    options = ("--x-key", options[-1]) if "--x-key" in options else ()
    lines = done("predict", "m.json", data, "--blocks", *options).splitlines()
    assert lines[0] == "prediction"
    np.testing.assert_allclose(np.array(lines[1:], dtype=float), model.predict(X), rtol=1e-4, atol=1e-5)


def test_predictions_in_parts_are_those_of_the_whole(parts, run, done, folder, monkeypatch):
    TABLE.write_parquet(folder / "all.parquet")
    done("fit", "all.parquet", "--target", "ill", "--drop", "w,known,y,name", "--k", 2, "--out", "m.json")
    done("predict", "m.json", "all.parquet", "--id", "name", "--out", "whole.csv")
    monkeypatch.setattr(block_predictions, "ROWS", 300)
    result = run("predict", "m.json", parts, "--blocks", "--id", "name", "--out", "parts.csv")
    assert result.stderr == "5,000 predictions written to parts.csv\n"
    whole, in_parts = (
        list(csv.reader((folder / name).read_text().splitlines())) for name in ("whole.csv", "parts.csv")
    )
    assert [row[:2] for row in in_parts] == [row[:2] for row in whole]
    np.testing.assert_allclose([float(row[2]) for row in in_parts[1:]], [float(row[2]) for row in whole[1:]], rtol=1e-6)


def test_a_warning_about_all_parts_is_printed_once(parts, run, monkeypatch):
    assert (
        run(
            "fit",
            parts,
            "--blocks",
            "--target",
            "y",
            "--offset",
            "known",
            "--drop",
            "w,ill,name",
            "--k",
            2,
            "--out",
            "m.json",
        ).exit_code
        == 0
    )
    monkeypatch.setattr(block_predictions, "ROWS", 300)
    result = run("predict", "m.json", parts, "--blocks", "--out", "p.csv")
    assert result.stderr.count("which these predictions leave out; add --offset") == 1
    assert run("predict", "m.json", parts, "--blocks", "--offset", "known", "--out", "p.csv").stderr.startswith("5,000")


def test_the_place_of_a_missing_value_counts_all_rows(parts, done, refused, folder):
    done("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    holes = TABLE.with_columns(x6=polars.when(polars.int_range(N) == 4321).then(None).otherwise(polars.col("x6")))
    for number, start in enumerate(range(0, N, 2000)):  # in place of the files, each of which is a block
        holes[start : start + 2000].write_parquet(parts / f"{number}.parquet")
    said = refused("predict", "m.json", parts, "--blocks", "--out", "p.csv")
    assert said.startswith(f"{parts} has a missing or infinite value in column 'x6', row 4322;")
    assert not (folder / "p.csv").exists()
    assert "column 'x6', block " in refused("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2)


def test_folds_are_a_column_or_drawn(parts, run, done, folder):
    options = ("--target", "y", "--k", "1-3", "--averaging", "none", "--quiet", "--out")
    fold = np.arange(N) % 4
    for number, start in enumerate(range(0, N, 2000)):
        rows = slice(start, start + 2000)
        frame = TABLE[rows].with_columns(part=polars.Series(fold[rows]))
        frame.write_parquet(parts / f"{number}.parquet")
    done("fit", parts, "--blocks", *NOT_FEATURES, "--fold", "part", *options, "given.json")
    done("fit", parts, "--blocks", "--drop", "w,known,ill,name,part", "--cv", 3, *options, "drawn.json")
    alone = ht.SparseLinearRegressionCV(n_nonzero_coefs=[1, 2, 3], cv=PredefinedSplit(fold), averaging="none").fit(X, Y)
    given, drawn = (ht.load(folder / name) for name in ("given.json", "drawn.json"))
    np.testing.assert_allclose(given.scores_.mean(axis=-1), alone.scores_.mean(axis=-1), rtol=1e-4)
    assert (given.n_nonzero_coefs_, drawn.n_nonzero_coefs_) == (2, 2)
    assert drawn.scores_.shape[-1] == 3
    result = run("fit", parts, "--blocks", "--drop", "w,known,ill,name,part", "--target", "y", "--out", "default.json")
    assert result.exit_code == 0, result.output
    assert type(ht.load(folder / "default.json")) is ht.SparseLinearRegressionCV
    assert "Held-out rows" in result.stdout


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(
    ("options", "drop"),
    [
        (("--offset", "known"), "w,y,name"),
        (("--always-include", "x2"), "w,known,y,name"),
        (("--positive",), "w,known,y,name"),
    ],
    ids=["offset", "always included", "positive"],
)
def test_two_classes_are_compared_on_held_out_rows(options, drop, parts, run, folder):
    """By default, as in memory: no option of the model leaves the choice to a criterion."""
    result = run("fit", parts, "--blocks", "--target", "ill", "--drop", drop, *options, "--out", "m.json")
    assert result.exit_code == 0, result.output
    assert "--criterion" not in result.stderr
    assert "Held-out rows" in result.stdout
    model = ht.load(folder / "m.json")
    assert type(model) is ht.SparseLogisticRegressionCV
    assert model.scores_.shape[-1] == 5
    positive, always = "--positive" in options, "--always-include" in options
    assert bool(np.all(model.coef_ >= 0)) == positive
    expected = {1} if positive else {1, 2, 6} if always else {1, 6}
    assert expected <= set(model.support_.tolist())


NUMBERS = {
    "poisson": (np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 1])), ()),
    "gamma": (np.random.default_rng(0).gamma(2.0, np.exp(0.5 * X[:, 1])), ()),
    "huber": (Y, ("--delta", 1)),
    "negative_binomial": (np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 1])), ("--dispersion", 0.5)),
}


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("loss", NUMBERS)
def test_numbers_of_other_losses_are_compared_on_held_out_rows(loss, run, folder):
    """As in memory; the amounts of the gamma loss are above 0, as the numbers that stand for them in checks."""
    y, options = NUMBERS[loss]
    TABLE.select(FEATURES).with_columns(y=y.astype(float)).write_parquet(folder / "t.parquet", row_group_size=700)
    result = run("fit", "t.parquet", "--blocks", "--target", "y", "--loss", loss, *options, "--out", "m.json")
    assert result.exit_code == 0, result.output
    assert "Held-out rows" in result.stdout
    assert "criterion" not in result.stderr
    model = ht.load(folder / "m.json")
    assert type(model).__name__.endswith("CV")
    assert 1 in model.support_


def test_without_folds_over_blocks_a_criterion_chooses(parts, run, refused, folder):
    """Where folds cannot, as for more than two classes, or do not, as an option says."""
    options = (parts, "--blocks", "--target", "y", *NOT_FEATURES)
    result = run("fit", *options, "--criterion", "ebic", "--out", "m.json")
    assert result.exit_code == 0, result.output
    assert "note" not in result.stderr
    model = ht.load(folder / "m.json")
    assert (type(model), model.support_.tolist()) == (ht.SparseLinearRegression, [1, 6])
    assert refused("fit", *options, "--alpha", "0.1,1", "--criterion", "bic").startswith("several ridges are compared")


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("loss", "setting"), [("huber", "delta"), ("negative_binomial", "dispersion")])
def test_a_parameter_that_is_estimated_is_not_validated_over_blocks(loss, setting, run, folder):
    rng = np.random.default_rng(0)
    y = rng.poisson(rng.gamma(2.0, 0.5 * np.exp(0.5 * X[:, 1]))).astype(float)
    TABLE.select(FEATURES).with_columns(y=y).write_parquet(folder / "t.parquet", row_group_size=700)
    said = run("fit", "t.parquet", "--blocks", "--target", "y", "--loss", loss).stderr
    assert f"criterion ebic chooses the number of features of a model that estimates {setting}\n" in said


def test_more_classes_than_a_model_takes_are_said_with_what_to_do(refused, folder):
    classes = np.array(["ant", "bee", "cat"])[np.arange(N) % 3]
    TABLE.select(FEATURES).with_columns(kind=classes, w=WEIGHT).write_parquet(folder / "t.parquet")
    fit = ("fit", "t.parquet", "--blocks", "--target", "kind", "--k", 2)
    remedy = "write a column that is 1 for one class and 0 for the others, and predict that"
    assert refused(*fit, "--loss", "squared_hinge") == (
        "the target 'kind' has 3 classes (ant, bee, cat), and the model of the squared_hinge loss takes two: " + remedy
    )
    assert refused(*fit, "--offset", "w") == (
        "a model of 3 classes has a linear predictor for each of them, and --offset is one number for each row: leave "
        f"--offset out, or {remedy}"
    )
    several = ("--target", "x0", "--target", "x1", "--offset", "w", "--drop", "kind")
    assert refused("fit", "t.parquet", "--blocks", *several).endswith("one number for each row: leave --offset out")


def test_texts_are_no_numbers_of_a_loss(parts, refused):
    said = refused("fit", parts, "--blocks", "--target", "ill", "--loss", "poisson", "--drop", "w,known,y,name")
    assert said == "the target 'ill' holds texts (no, yes); use --loss logistic for classes"


def test_a_file_that_is_cut_off_is_one_line(done, refused, folder):
    npy(folder)
    (folder / "X.npy").write_bytes((folder / "X.npy").read_bytes()[:-1000])
    said = refused("fit", "X.npy", "--blocks", "--target", "y.npy", "--k", 2)
    assert re.search(r"X.npy ends at byte [\d,]+; rows 4,968..4,999 are missing", said)


def test_a_saved_model_is_asked_about_its_blocks(parts, done):
    done("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    assert "x1 " in done("alternatives", "m.json", parts)
    assert done("prove", "m.json", parts).startswith("Proved to 1e-9 relative")


@only_at("pairs")
def test_halves_of_a_folder_are_those_of_its_blocks(parts, run, refused, folder):
    options = ("--blocks", "--target", "ill", "--drop", "w,known,y,name", "--k", 2, "--pairs", 5, "--seed", 3)
    result = run("stability", parts, *options, "--out", "f.csv")
    assert result.exit_code == 0, result.output
    table = ht.from_parquet(parts, target="ill", features=FEATURES)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2)
    found = ht.StabilitySelection(model, n_pairs=5, random_state=3).fit(table)
    with (folder / "f.csv").open(newline="") as file:
        rows = {row["feature"]: float(row["inclusion_frequency"]) for row in csv.DictReader(file)}
    assert rows == dict(zip(FEATURES, found.inclusion_frequencies_, strict=True))
    text = " ".join(result.stdout.split())
    assert str(found.statement()) in text
    assert re.search(r"parts: [3-6] readings, [\d.]+ kB", text)
    assert "No such option" in refused("stability", parts, *options, "--fold", "w")
    assert "--impute needs all rows in memory" in refused("stability", parts, *options, "--impute")


@pytest.mark.slow
def test_a_report_of_blocks(parts, done, folder):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--report", "r.html")
    assert "of the table" in (folder / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", IN_MEMORY)
def test_what_needs_all_rows_in_memory_is_refused(option, parts, refused):
    given = {
        "impute": ("--impute",),
        "time": ("--time", "w", "--event", "y"),
    }.get(option, (f"--{option.replace('_', '-')}", "w"))
    target = () if option == "time" else ("--target", "y")
    said = refused("fit", parts, "--blocks", *target, *given)
    assert said == f"--{option.replace('_', '-')} needs all rows in memory, unlike --blocks: {IN_MEMORY[option]}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "y", "--target", "ill", "--drop", "name"), "without numbers: 'ill' (large_string); encode them"),
        (
            ("--target", "y", "--target", "w", "--drop", "ill,name", "--loss", "poisson"),
            "several targets are for --loss squared, not for poisson",
        ),
        ((), "add --target COLUMN, the column to predict; parts has x0, x1"),
        (("--target", "z"), "no column 'z'"),
        (("--target", "y", "--drop", "nmae"), "has no column 'nmae' to drop; did you mean 'name'?"),
        (("--target", "y"), "'ill' (large_string), 'name' (large_string); encode them, or leave them out with --drop"),
        (("--target", "y", "--format", "csv"), "'csv' is not read in blocks, only parquet, npy, hdf5"),
        (
            ("--target", "y", "--loss", "quantile", *NOT_FEATURES, "--k", 2),
            "SparseQuantileRegression is not fitted to tables",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, said, parts, refused):
    assert said in refused("fit", parts.name, "--blocks", *options)


def test_kinds_of_files_that_are_no_blocks(refused, folder, csv):
    assert "'csv' is not read in blocks" in refused("fit", csv, "--blocks", "--target", "y")
    assert refused("fit", "none.parquet", "--blocks", "--target", "y") == "there is no file none.parquet"
    (folder / "empty").mkdir()
    assert "has no .parquet or .npz files, and is no Zarr array" in refused("fit", "empty", "--blocks", "--target", "y")
    (folder / "t.parquet").write_text("a,b\n1,2\n")
    assert refused("fit", "t.parquet", "--blocks", "--target", "y") == "t.parquet is no Parquet file"
    assert refused("fit", csv, "--target", "y", "--fold", "a") == (
        "--fold is for tables that are read with --blocks; leave it out"
    )
    npy(folder)
    assert refused("fit", "X.npy", "--blocks", "--target", "z.npy").startswith("there is no file z.npy for the target")
    data, _ = shards(folder)
    assert "the weight of shards such as shards is 'sample_weight', got 'w'" in refused(
        "fit", data, "--blocks", "--weight", "w"
    )


def test_a_target_of_one_value_in_the_rows_that_were_looked_at(refused, folder):
    TABLE.with_columns(y=polars.lit(1.0)).write_parquet(folder / "t.parquet")
    said = refused("fit", "t.parquet", "--blocks", "--target", "y", *NOT_FEATURES)
    assert said.startswith(
        "the target 'y' has only one value, '1.0', in the 5,000 rows that were looked at; if it has others"
    )


@pytest.mark.parametrize(("free", "said"), [(1000, True), (10**12, False)])
def test_a_large_file_has_a_hint(free, said, csv, run, parts, monkeypatch):
    monkeypatch.setattr("hardthresh.cli.block_training.free_memory", lambda: free)
    result = run("fit", csv, "--target", "y", "--drop", "ill", "--k", 2)
    assert ("of memory are free; written as Parquet, --blocks reads it in parts" in result.stderr) is said
    result = run("fit", parts / "0.parquet", "--target", "y", *NOT_FEATURES, "--k", 2)
    assert ("of memory are free; --blocks reads it in parts" in result.stderr) is said
    quiet = run("fit", csv, "--target", "y", "--drop", "ill", "--k", 2, "--quiet", "--out", "m.json")
    assert quiet.stderr == ""


@pytest.fixture(scope="module")
def scheduler():
    """The address of the scheduler of a cluster."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False),
    ):
        yield cluster.scheduler_address


@pytest.mark.slow
def test_workers_of_a_cluster_give_the_same_bits(parts, done, folder, scheduler):
    options = ("--target", "y", *NOT_FEATURES, "--k", 2, "--quiet", "--out")
    done("fit", parts, "--blocks", *options, "here.json")
    done("fit", parts, "--dask", scheduler, *options, "there.json")
    here, there = (ht.load(folder / name) for name in ("here.json", "there.json"))
    assert here.coef_.tobytes() == there.coef_.tobytes()


@pytest.mark.slow
def test_workers_of_a_cluster_read_the_rows_of_predictions(parts, run, done, folder, scheduler, monkeypatch):
    """In their order, which is that of the files; parts without rows have none."""
    options = ("--target", "ill", "--drop", "w,y,known,name", "--k", 2, "--quiet", "--out")
    done("fit", parts, "--blocks", *options, "m.json")
    TABLE[:0].write_parquet(parts / "01.parquet")
    monkeypatch.setattr(block_predictions, "ROWS", 300)
    done("predict", "m.json", parts, "--blocks", "--id", "name", "--out", "here.csv")
    monkeypatch.setattr(block_predictions, "_rows", read_by(block_predictions._rows, readers := set()))
    result = run("predict", "m.json", parts, "--dask", scheduler, "--id", "name", "--out", "there.csv")
    assert result.stderr.endswith(" seconds\n5,000 predictions written to there.csv\n")  # to connect
    assert (folder / "there.csv").read_bytes() == (folder / "here.csv").read_bytes()
    assert readers == {"DaskEngine"}


def read_by(rows, readers):
    """Return a function that reads rows, and notes the kind of the engine."""

    def noted(engine, number):
        readers.add(type(engine).__name__)
        return rows(engine, number)

    return noted


@pytest.mark.slow
def test_predictions_in_parquet_are_those_in_csv(parts, done, folder, monkeypatch):
    """Texts are not escaped there: no spreadsheet runs them. Each part is a row group."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    done("fit", parts, "--blocks", "--target", "ill", "--drop", "w,known,y,name", "--k", 2, "--out", "m.json")
    for number in range(3):
        table = polars.read_parquet(parts / f"{number}.parquet")
        table.with_columns(name="=" + polars.col("name")).write_parquet(parts / f"{number}.parquet")
    monkeypatch.setattr(block_predictions, "ROWS", 900)
    for name in ("p.csv", "p.parquet"):
        done("predict", "m.json", parts, "--blocks", "--id", "name", "--out", name)
    found, texts = polars.read_parquet(folder / "p.parquet"), polars.read_csv(folder / "p.csv")
    assert found.columns == texts.columns == ["name", "prediction", "probability of yes"]
    assert found["name"].to_list() == [text.removeprefix("'") for text in texts["name"]]
    assert found["name"][0] == "=row 0"
    assert found["prediction"].to_list() == texts["prediction"].to_list()
    assert found["probability of yes"].to_list() == texts["probability of yes"].to_list()
    assert parquet.ParquetFile(folder / "p.parquet").num_row_groups > 3


def test_a_table_without_rows_has_no_predictions_in_parquet(parts, done, refused, folder):
    done("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    TABLE[:0].write_parquet(folder / "none.parquet")
    said = refused("predict", "m.json", "none.parquet", "--blocks", "--out", "p.parquet")
    assert said == "there are no rows to predict"
    assert not (folder / "p.parquet").exists()


def test_a_scheduler_that_does_not_answer(parts, done, run, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")

    def nobody(**where):
        raise OSError(f"Timed out trying to connect to {where['address']}")

    monkeypatch.setattr(distributed, "Client", nobody)
    done("fit", parts, "--blocks", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    said = "--dask tcp://127.0.0.1:1: no scheduler of Dask answers (Timed out trying to connect to tcp://127.0.0.1:1)"
    note = "note: connecting to tcp://127.0.0.1:1, for at most 30 seconds"
    fit = ("fit", parts, "--dask", "tcp://127.0.0.1:1", "--target", "y", *NOT_FEATURES)
    for command in (("predict", "m.json", parts, "--dask", "tcp://127.0.0.1:1", "--out", "p.csv"), fit):
        assert run(*command).stderr.splitlines() == [note, f"error: {said}"]
    assert run(*fit, "--quiet").stderr.splitlines() == [f"error: {said}"]


@slow_beyond(4)
@pytest.mark.parametrize(
    "ids",
    [
        polars.Series([1, None, 2**53 + 1, 2**53], dtype=polars.Int64),
        polars.Series([True, None, False, True]),
        polars.Series(["007", None, "NA", ""]),
        polars.Series(["a", None, "b", "a"], dtype=polars.Categorical),
        polars.Series([0.1, None, 1e300, 2.0]),
        polars.Series([0, None, 1500, 10**18]).cast(polars.Datetime("ns")),
    ],
    ids=["integers", "booleans", "texts", "categories", "floats", "times"],
)
def test_ids_are_written_as_those_of_the_whole(ids, done, folder):
    TABLE[:200].write_parquet(folder / "all.parquet")
    done("fit", "all.parquet", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    TABLE[:4].with_columns(key=ids).write_parquet(folder / "new.parquet")
    done("predict", "m.json", "new.parquet", "--id", "key", "--out", "whole.csv")
    done("predict", "m.json", "new.parquet", "--blocks", "--id", "key", "--out", "parts.csv")
    whole, in_parts = (
        [row[0] for row in csv.reader((folder / name).read_text().splitlines())] for name in ("whole.csv", "parts.csv")
    )
    assert in_parts == whole
    assert whole[2] == ""


IDS = {
    "integers": np.arange(4) + 2**53,
    "floats": np.array([0.1, 2.0, 1e300, -1.0]),
    "singles": np.array([0.1, 2.0, 1e30, -1.0], dtype=np.float32),
    "truths": np.array([True, False, True, True]),
    "texts": np.array(["007", "NA", "", "é"]),
    "bytes": np.array([b"007", b"NA", b"", b"b"]),
    "a column": np.arange(4)[:, None],
    "dates": np.array(["2026-01-01", "2026-01-02", "NaT", "2026-01-04"], dtype="M8[D]"),
}


def file_of(kind, ids):
    """Write rows with ids beside them; returns the file, the name of the ids, and the options that find the rows."""
    if kind == "npy":
        np.save("new.npy", X[:4])
        np.save("key.npy", ids)
        return "new.npy", "key.npy", ()
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py", reason="h5py is not installed")
        if ids.dtype.kind == "M":
            pytest.skip("HDF5 has no dates")
        with h5py.File("new.h5", "w") as file:
            file["X"] = X[:4]
            file["key"] = ids.astype(object) if ids.dtype.kind == "U" else ids  # texts of any length
        return "new.h5", "key", ()
    package = pytest.importorskip("zarr", reason="zarr is not installed")
    group = package.open_group("new.zarr", mode="w", zarr_format=2)  # whose types of texts and dates have not changed
    group["X"] = X[:4]
    group["key"] = ids
    return "new.zarr", "key", ("--x-key", "X")


@at_most(7)
@pytest.mark.parametrize("kind", ["npy", "hdf5", "zarr"])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_of_arrays_are_written_as_those_in_memory(kind, ids, done, folder):
    done("fit", npy(folder)[0], "--blocks", "--target", "y.npy", "--k", 2, "--out", "m.json")
    np.savez("whole.npz", X=X[:4], key=ids)
    whole = done("predict", "m.json", "whole.npz", "--id", "key")
    path, name, options = file_of(kind, ids)
    assert done("predict", "m.json", path, *options, "--blocks", "--id", name) == whole


def test_ids_that_do_not_fit_are_refused_by_their_name(done, refused, folder):
    done("fit", npy(folder)[0], "--blocks", "--target", "y.npy", "--k", 2, "--out", "m.json")
    np.save("short.npy", np.arange(3))
    np.save("two.npy", np.arange(2 * N).reshape(N, 2))
    predict = ("predict", "m.json", "X.npy", "--blocks", "--id")
    assert refused(*predict, "short.npy") == (
        "X.npy has 5,000 rows, the id 'short.npy' has shape (3,): one entry for each row is needed"
    )
    assert "the id 'two.npy' of X.npy has 2 entries for each row; one is needed" in refused(*predict, "two.npy")
    assert refused(*predict, "none.npy").startswith("there is no file none.npy for the id")
    shards(folder)
    assert refused("predict", "m.json", "shards", "--blocks", "--id", "key") == (
        "the id of shards such as shards is not read, got 'key'; leave it out"
    )


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_table_without_rows_is_refused(name, done, run, folder):
    TABLE[:200].write_parquet(folder / "all.parquet")
    done("fit", "all.parquet", "--target", "y", *NOT_FEATURES, "--k", 2, "--out", "m.json")
    TABLE[:0].write_parquet(folder / "new.parquet")
    result = run("predict", "m.json", "new.parquet", "--blocks", "--out", name)
    assert result.exit_code != 0
    assert "there are no rows to predict" in result.output
    assert not (folder / name).exists()
