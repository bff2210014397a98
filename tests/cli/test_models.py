"""``hardthresh fit`` and ``predict`` for every loss, with categories, exposures and settings of its own."""

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import StratifiedKFold

import hardthresh as ht
from hardthresh.cli.settings import as_settings, own_settings, settings_of
from hardthresh.cli.task import models, takes_many_classes
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import signed
from hardthresh.core.registry import lookup
from hardthresh.losses import pointwise_losses
from hardthresh.storage import load_notes
from levels import at_most, only_at, slow_beyond

REPOSITORY = Path(__file__).parents[2]
POINTWISE = [loss for loss in pointwise_losses() if (loss, False) in models()]


@pytest.fixture
def shop(folder):
    """Counts that depend on x1, on the colour and on the hours; the colour is text."""
    rng = np.random.default_rng(0)
    n = 120
    colour = rng.choice(["red", "blue", "green, dark"], n)
    X, hours = rng.standard_normal((n, 4)), rng.uniform(0.5, 3.0, n)
    count = rng.poisson(np.exp(0.5 * X[:, 1] + np.where(colour == "red", 0.8, 0.0)) * hours)
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"colour": colour, "hours": hours, "count": count}
    table = pl.DataFrame(columns)
    table.write_csv(folder / "shop.csv")
    return table


@slow_beyond(5)
@at_most(6)
@pytest.mark.parametrize("loss", POINTWISE)
def test_every_registered_loss_is_fitted_and_predicts(done, folder, loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 4))
    y = lookup("loss", loss)().example_target(0.5 * X[:, 2], rng)
    if y.dtype.kind == "f" and set(np.unique(y)) <= {-1.0, 0.0, 1.0}:
        y = np.where(y > 0, "yes", "no")
    table = pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"y": y})
    table.write_csv(folder / "data.csv")
    text = done("fit", "data.csv", "--target", "y", "--loss", loss, "--k", 2, "--out", "m.json")
    assert "2 of 4 features chosen to predict y" in text
    model = ht.load("m.json")
    assert type(model) is models()[loss, False]
    lines = done("predict", "m.json", "data.csv").splitlines()
    assert len(lines) == 81
    first, expected = lines[1].split(",")[0], model.predict(table.drop("y"))[0]
    assert first == expected if y.dtype.kind == "U" else np.isclose(float(first), expected, rtol=1e-12)
    assert "chosen to predict" in done("show", "m.json")


def test_categories_are_text_in_the_file(done, shop):
    text = done("fit", "shop.csv", "--target", "count", "--loss", "poisson", "--exposure", "hours", "--categorical",
                "colour", "--k", 2, "--out", "m.json", "--report", "r.html")  # fmt: skip
    assert text.startswith("2 of 5 features chosen to predict count\n")
    assert "colour=red" in text
    model = ht.load("m.json")
    X = shop.select("x0", "x1", "x2", "x3", pl.col("colour").cast(pl.Categorical))
    offset = np.log(shop["hours"].to_numpy())
    alone = ht.SparsePoissonRegression(n_nonzero_coefs=2, random_state=0).fit(
        X, shop["count"].to_numpy(), offset=offset
    )
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.categorical_features == ["colour"]  # so that the settings in a report give the model again
    assert "categorical_features=[&#39;colour&#39;]" in Path("r.html").read_text(encoding="utf-8")
    assert load_notes("m.json")["data"]["exposure"] == "hours"
    shop.select("hours", "colour", "x1").write_csv("new.csv")  # the columns that the model uses
    lines = done("predict", "m.json", "new.csv", "--exposure", "hours").splitlines()
    np.testing.assert_allclose(np.array(lines[1:], dtype=float), alone.predict(X, offset=offset), rtol=1e-12)


def test_a_prediction_without_the_exposure_is_warned_of(run, done, shop):
    settings = ("--target", "count", "--loss", "poisson", "--drop", "colour", "--exposure", "hours", "--k", 1)
    done("fit", "shop.csv", *settings, "--out", "m.json")
    assert (
        "fitted with the exposure 'hours', which these predictions leave out; add --exp"
        in run("predict", "m.json", "shop.csv").stderr
    )


def test_lists_of_columns_may_be_given_again(done, folder):
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(["a", "b", "c"], 60) for name in ("site", "day", "code")}
    pl.DataFrame({"x": rng.standard_normal(60), "z": rng.standard_normal(60), **columns}).write_csv("t.csv")
    names = ("--categorical", "site", "--categorical", "day", "--drop", "code")
    text = done("fit", "t.csv", "--target", "z", *names, "--always-include", "site", "--always-include", "x", "--k", 0)
    assert "site=" in text
    assert "\n x " in text


def test_an_unknown_or_missing_category_is_refused(refused, done, shop):
    done("fit", "shop.csv", "--target", "count", "--categorical", "colour", "--k", 3, "--out", "m.json", "-q")
    shop.head(2).with_columns(colour=pl.Series(["red", "pink"])).write_csv("new.csv")
    assert refused("predict", "m.json", "new.csv").startswith(
        "column 'colour' has the level 'pink' in row 2, which was not in the fit"
    )
    shop.with_columns(colour=pl.when(pl.col("x0") > 1).then(None).otherwise("colour")).write_csv("shop.csv")
    line = refused("fit", "shop.csv", "--target", "count", "--categorical", "colour")
    assert "missing values in the categories 'colour', the first in row" in line
    assert "give them a level of their own (--impute of fit, compare and stability does)" in line


REFUSED = [
    (["--target", "count"], "add --categorical colour if they are categories, or leave them out by --drop colour"),
    (["--target", "count", "--categorical", "colr"], "has no column 'colr' for the categories; did you mean 'colour'?"),
    (["--target", "count", "--categorical", "count"], "--categorical count is not a feature"),
    (
        ["--target", "count", "--categorical", "colour,x0"],
        "the categories 'x0' of shop.csv have another level in each row; if they identify rows, add --id x0 in place",
    ),
    (
        ["--target", "count", "--exposure", "hours", "--drop", "colour"],
        "--exposure is for the logarithm of an expected",
    ),
    (["--target", "count", "--exposure", "x0", "--offset", "x1"], "--offset and --exposure are the same on another"),
    (["--target", "count", "--exposure", "x0", "--drop", "colour"], "the exposure 'x0' of shop.csv must be positive"),
    (["--time", "hours"], "--time and --event go together"),
    (["--time", "hours", "--event", "x0", "--target", "count"], "--time and --event are what to predict"),
    (
        ["--time", "hours", "--event", "x0", "--drop", "colour"],
        "the event 'x0' of shop.csv must be 1 where it happened and 0",
    ),
    (
        ["--time", "hours", "--event", "x0", "--loss", "poisson"],
        "--time and --event are for --loss cox, not for poisson",
    ),
    (
        ["--time", "hours", "--event", "x0", "--positive-class", "red"],
        "--positive-class is for classes without an order",
    ),
    (["--target", "count", "--strata", "colour"], "--strata is for --loss cox, with --time and --event; leave it out"),
    (["--target", "hours", "--loss", "cox"], "--loss cox needs --time COLUMN and --event COLUMN"),
    (["--target", "count", "--order", "a,b", "--loss", "poisson"], "--order is for --loss ordinal, not for poisson"),
    (["--target", "colour", "--order", "blue,red", "--drop", "hours"], "--order lacks the class 'green, dark' of the"),
    (
        ["--target", "hours", "--classes", "--loss", "poisson", "--drop", "colour"],
        "--classes is for classes; the poisson",
    ),
    (
        ["--target", "count", "--drop", "colour", "--loss", "poisson", "--class-weight", "balanced"],
        "--class-weight is for --loss logistic",
    ),
    (
        ["--target", "count", "--drop", "colour", "--loss", "squared", "--set", "colour"],
        "--set takes name=value, such as quantile=0.9",
    ),
    (
        ["--target", "count", "--drop", "colour", "--loss", "squared", "--set", "colour=1"],
        "the model of the loss squared has no setting",
    ),
    (["--target", "count", "--class-wait", "1"], "No such option: --class-wait"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_options_that_do_not_go_together_are_refused(refused, shop, options, message):
    assert message in refused("fit", "shop.csv", *options)


def test_settings_of_a_loss_are_options(done, shop):
    shop.with_columns(busy=pl.when(pl.col("count") > 2).then(pl.lit("yes")).otherwise(pl.lit("no"))).write_csv("s.csv")
    options = ("--target", "busy", "--drop", "colour,count", "--k", 2, "--out", "m.json")
    for given in (["--class-weight", "balanced"], ["--class-weight=balanced"], ["--set", "class_weight=balanced"]):
        done("fit", *given, "s.csv", *options)
        assert ht.load("m.json").class_weight == "balanced"
    done("fit", "s.csv", *options, "--class-weight", "none")
    assert ht.load("m.json").class_weight is None


def test_weights_of_classes_are_a_dict_of_json(done, refused, shop):
    busy = pl.when(pl.col("count") > 2).then(pl.lit("yes")).otherwise(pl.lit("no"))
    shop.with_columns(busy=busy, level=pl.col("count").clip(0, 2)).write_csv("s.csv")
    options = ("--drop", "colour,count", "--k", 2, "--alpha", 0.1, "--out", "m.json")
    done("fit", "s.csv", "--target", "busy", *options, "--drop", "colour,count,level", "--class-weight", '{"yes": 2}')
    assert ht.load("m.json").class_weight == {"yes": 2}
    weights = ("--class-weight", '{"0": 2, "1": 1, "2": 0.5}')
    done("fit", "s.csv", "--target", "level", "--drop", "colour,count,busy", *options[2:], "--classes", *weights)
    assert ht.load("m.json").class_weight == {0: 2, 1: 1, 2: 0.5}
    for text in ("{yes: 2}", "yes=2", "3", "ballanced"):
        line = refused("fit", "s.csv", "--target", "busy", *options, "--class-weight", text)
        form = """--class-weight takes balanced, none, or a dict as JSON, such as '{"no": 2, "yes": 1}'; got """
        assert line.startswith(f"{form}{text!r}")
        assert ("Expecting property name" in line) == text.startswith("{")
    line = refused("fit", "s.csv", "--target", "busy", "--drop", "colour,level", "--class-weight", '{"maybe": 2}')
    assert "class_weight names the class 'maybe', which y does not have" in line


def test_only_settings_are_rewritten():
    known = {"--target", "--k"}
    assert as_settings(["a.csv", "--k", "3", "--class-weight", "balanced"], known) == [
        *("a.csv", "--k", "3"),
        *("--set", "class_weight=balanced"),
    ]
    assert as_settings(["--unknown", "3", "--", "--class-weight"], known) == ["--unknown", "3", "--", "--class-weight"]


def test_values_of_settings_are_numbers_where_they_can_be(monkeypatch):
    own = {"tweedie": ("power", "levels", "kind", "start")}
    monkeypatch.setattr("hardthresh.cli.settings.own_settings", lambda: own)
    given = ["power=1.7", "levels=3", "kind=auto", "start=None"]
    assert settings_of(given, "tweedie") == {"power": 1.7, "levels": 3, "kind": "auto", "start": None}
    with pytest.raises(InvalidInputError, match="--power is for --loss tweedie, and the loss is squared"):
        settings_of(["power=1"], "squared")


def test_the_guide_lists_all_settings():
    guide = (REPOSITORY / "docs" / "guide" / "cli.rst").read_text(encoding="utf-8")
    options = {f"``--{name}``".replace("_", "-") for names in own_settings().values() for name in names}
    assert [option for option in sorted(options) if option not in guide] == []


def test_own_settings_come_from_the_signatures():
    assert own_settings()["logistic"] == ("class_weight",)
    assert own_settings()["squared"] == ()


@pytest.mark.parametrize("option", [["--classes"], ["--loss", "logistic"]])
def test_more_classes_than_two_are_taken_where_the_model_takes_them(run, shop, option):
    shop.with_columns(grade=(pl.col("x1") > 0.5).cast(int) + (pl.col("x1") > -0.5)).write_csv("s.csv")
    drop = ("--drop", "colour,count", "--k", 2)
    result = run("fit", "s.csv", "--target", "grade", *drop, *option, "--out", "m.json")
    if takes_many_classes("logistic"):
        assert result.exit_code == 0, result.output
        assert ht.load("m.json").classes_.tolist() == [0, 1, 2]
        head = run("predict", "m.json", "s.csv").stdout.partition("\n")[0]
        assert head == "prediction,probability of 0,probability of 1,probability of 2"
    else:
        assert "the model of the logistic loss takes two: add --positive-class VALUE" in result.stderr


# times and ordered classes


@pytest.fixture
def clinic(folder):
    """Times to an event that depend on x1 and x2, some of them censored, and a level of three that does, too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 4))
    u = 2 * X[:, 1] - X[:, 2]
    time, censored = rng.exponential(np.exp(-u)), rng.exponential(2.0, 160)
    level = np.array(["low", "mid", "high"])[np.searchsorted([-1, 1], u + rng.logistic(size=160))]
    columns = {f"x{j}": X[:, j] for j in range(4)}
    columns |= {"time": np.minimum(time, censored), "dead": (time <= censored).astype(int), "level": level}
    table = pl.DataFrame(columns)
    table.write_csv(folder / "clinic.csv")
    return table


def test_times_and_events_are_a_target(done, clinic):
    settings = ("--time", "time", "--event", "dead", "--drop", "level", "--k", 2, "--ties", "efron")
    text = done("fit", "clinic.csv", *settings, "--out", "m.json", "--report", "r.html")
    assert text.startswith("2 of 4 features chosen to predict time\n")
    assert "the change of the logarithm of the hazard" in text
    assert "(intercept)" not in text
    X, y = clinic.select("x0", "x1", "x2", "x3").to_numpy(), clinic.select("time", "dead").to_numpy()
    alone = ht.SparseCoxRegression(n_nonzero_coefs=2, ties="efron", random_state=0).fit(X, y)
    model = ht.load("m.json")
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert f"On the rows of the fit: concordance {alone.score(X, y):.3g}" in text
    lines = done("predict", "m.json", "clinic.csv").splitlines()
    np.testing.assert_allclose(np.array(lines[1:], dtype=float), alone.predict(X), rtol=1e-10)


def test_events_that_are_text_are_to_be_recoded(refused, clinic):
    dead = pl.when(pl.col("dead") == 1).then(pl.lit("dead")).otherwise(pl.lit("alive"))
    clinic.with_columns(dead=dead).write_csv("clinic.csv")
    first = "dead" if clinic["dead"][0] else "alive"
    assert refused("fit", "clinic.csv", "--time", "time", "--event", "dead", "--drop", "level") == (
        "the event 'dead' of clinic.csv must be 1 where it happened and 0 where it was not observed, but row 1 holds "
        f"the text '{first}'; recode it as 1 and 0"
    )


@at_most(1)
@pytest.mark.parametrize("validated", [[], ["--cv", "3"]])
def test_strata_may_be_text(done, clinic, validated):
    settings = ("--time", "time", "--event", "dead", "--strata", "level", "--k", 2, "--alpha", 0.01, *validated)
    done("fit", "clinic.csv", *settings, "--out", "m.json", "--report", "r.html")
    X, y = clinic.select("x0", "x1", "x2", "x3").to_numpy(), clinic.select("time", "dead").to_numpy()
    alone = (
        ht.SparseCoxRegressionCV(n_nonzero_coefs=[2], alphas=0.01, averaging="none", cv=3, random_state=0)
        if validated
        else ht.SparseCoxRegression(n_nonzero_coefs=2, alpha=0.01, random_state=0)
    ).fit(X, y, strata=clinic["level"].to_list())
    model = ht.load("m.json")
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert not np.allclose(model.coef_, ht.SparseCoxRegression(n_nonzero_coefs=2, alpha=0.01).fit(X, y).coef_)
    assert set(model.event_times_) == {"low", "mid", "high"}
    assert load_notes("m.json")["data"]["strata"] == "level"
    assert ">strata</th><td>level</td>" in Path("r.html").read_text(encoding="utf-8")
    assert len(done("predict", "m.json", "clinic.csv").splitlines()) == 161


@pytest.mark.slow
def test_folds_of_times_are_shuffled_and_have_the_same_share_of_events(done, refused, clinic):
    """Rows are often ordered in files: here by time, so that folds of neighbours would be of one time each."""
    clinic.sort("time").write_csv("clinic.csv")
    settings = ("fit", "clinic.csv", "--time", "time", "--event", "dead", "--drop", "level", "--k", "1-4", "--cv", 4)
    scores = {}
    for seed in (0, 7):
        done(*settings, "--seed", seed, "--out", "m.json")
        model = ht.load("m.json")
        assert vars(model.cv) == vars(StratifiedKFold(4, shuffle=True, random_state=seed))
        scores[seed] = model.scores_
    assert not np.array_equal(scores[0], scores[7])
    clinic.with_columns(dead=pl.Series([1, 1, 1] + [0] * (len(clinic) - 3))).write_csv("clinic.csv")
    assert refused(*settings).startswith("the table has 3 events, too few for 4 folds")


def test_a_row_without_a_stratum_is_refused(refused, clinic):
    clinic.with_columns(level=pl.when(pl.col("x0") > 0).then("level")).write_csv("clinic.csv")
    line = refused("fit", "clinic.csv", "--time", "time", "--event", "dead", "--strata", "level")
    assert line.startswith("the strata 'level' of clinic.csv is missing or infinite in ")


@only_at("pairs")
def test_check_26_times_of_a_real_data_set(done, data_folder):
    """Breast tumours: 272 patients, 1,554 genes; the times and the events are arrays of the file."""
    text = done("fit", data_folder / "nki272.npz", "--loss", "cox", "--time", "survival", "--event", "y", "--k", 5,
                "--alpha", 0.001, "--out", "m.json")  # fmt: skip
    assert text.startswith("5 of 1,554 features chosen to predict survival")
    assert "concordance 0." in text
    assert ht.load("m.json").support_.size == 5


def test_classes_have_the_order_that_is_given(done, clinic):
    settings = ("--drop", "time,dead", "--order", "low,mid,high", "--k", 2, "--out", "m.json")
    text = done("fit", "clinic.csv", "--target", "level", *settings)
    assert text.startswith("2 of 4 features chosen to predict level: low < mid < high\n")
    for part in (
        "(low | mid)",
        "(mid | high)",
        "the change of the logarithm of the odds of a higher class",
        "accuracy",
    ):
        assert part in " ".join(text.split())
    X = clinic.select("x0", "x1", "x2", "x3").to_numpy()
    y = clinic["level"].replace_strict({"low": 0, "mid": 1, "high": 2}).to_numpy()
    alone, model = ht.SparseOrdinalRegression(n_nonzero_coefs=2, random_state=0).fit(X, y), ht.load("m.json")
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.classes_.tolist() == ["low", "mid", "high"]
    assert list(load_notes("m.json")["data"]["classes"]) == ["low", "mid", "high"]
    lines = done("predict", "m.json", "clinic.csv").splitlines()
    assert lines[0] == "prediction,probability of low,probability of mid,probability of high"
    assert [line.split(",")[0] for line in lines[1:]] == np.array(["low", "mid", "high"])[alone.predict(X)].tolist()


def test_what_these_models_lack_is_said(refused, clinic):
    times = ("clinic.csv", "--time", "time", "--event", "dead", "--drop", "level")
    assert "the model of the cox loss has no intercept" in refused("fit", *times, "--k", 2, "--no-intercept")
    line = refused("fit", "clinic.csv", "--target", "level", "--loss", "ordinal", "--drop", "time,dead")
    assert line.endswith("are texts (high, low, mid); give their order with --order, from low to high")


def test_three_classes_are_shown_as_two_are(done, refused, folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    kind = np.array(["a", "b", "c"])[np.argmax(X[:, :3] * 1.5 + rng.gumbel(size=(120, 3)), axis=1)]
    pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"kind": kind}).write_csv("t.csv")
    text = done("fit", "t.csv", "--target", "kind", "--k", "1-4", "--cv", 3, "--out", "m.json")
    for part in ("to predict kind: a, b or c", "in folds", "Held-out rows", "balanced accuracy", "How many features?"):
        assert part in text
    model = ht.load("m.json")
    [row] = [line.split() for line in text.splitlines() if line.startswith(" x0 ")]
    assert row[1:4] == [signed(value) for value in model.coef_[:, 0]]
    given = done("fit", "t.csv", "--target", "kind", "--k", 1, "--always-include", "x3")
    assert given.startswith("1 of 4 features chosen to predict kind: a, b or c, with 1 more on request")
    assert "On the rows of the fit: D²" in given
    assert "not validated: add --cv 5" in given
    assert "a model of 3 classes has a linear predictor" in refused(
        "fit", "t.csv", "--target", "kind", "--offset", "x1"
    )


@pytest.fixture
def outputs(folder):
    """Two outputs that depend on x0 and x1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    Y = X[:, :2] @ np.array([[1.0, -1.0], [0.5, 2.0]]) + 0.3 * rng.standard_normal((90, 2))
    table = pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"gain, %": Y[:, 0], "loss": Y[:, 1]})
    table.write_csv(folder / "t.csv")
    return table


@pytest.mark.slow
@pytest.mark.parametrize("validated", [[], ["--cv", "3", "--averaging", "none", "--alpha", "0"]])
def test_several_targets_are_outputs_of_one_model(done, outputs, folder, validated):
    targets = ("--target", "gain, %", "--target", "loss")
    text = done("fit", "t.csv", *targets, "--k", 2, *validated, "--out", "m.json", "--report", "r.html")
    assert text.startswith("2 of 4 features chosen to predict gain, %, loss: 2 outputs\n")
    assert re.search(r"feature +gain, % +loss", text)
    X, Y = outputs.select("x0", "x1", "x2", "x3").to_numpy(), outputs.select("gain, %", "loss").to_numpy()
    alone, model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y), ht.load("m.json")
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-10)
    assert re.search(r"feature +gain, % +loss", done("show", "m.json"))
    head, *lines = csv.reader(done("predict", "m.json", "t.csv").splitlines())
    assert head == ["prediction of gain, %", "prediction of loss"]
    np.testing.assert_allclose(np.array(lines, dtype=float), alone.predict(X), rtol=1e-10)
    report = (folder / "r.html").read_text(encoding="utf-8")
    assert report.count(">gain, %</th>") == 1
    assert "Gain, %. " in report
    assert "output 0" not in report


@pytest.mark.slow
def test_many_outputs_are_printed_as_the_length_of_their_coefficients(done, outputs, folder):
    names = [f"y{c}" for c in range(7)]
    table = outputs.with_columns(**{name: pl.col("gain, %") * (c + 1) for c, name in enumerate(names)})
    table.drop("gain, %", "loss").write_csv(folder / "t.csv")
    text = done(
        "fit", "t.csv", *(f"--target={name}" for name in names), "--k", 1, "--report", "r.html", "--out", "m.json"
    )
    size = np.linalg.norm(ht.load(folder / "m.json").coef_, axis=0).max()
    assert re.search(rf"feature +size *\n.* x0 +{size:.3g}", text)
    assert "Size: the length of the coefficients of all 7 outputs together." in text
    assert ">y0</th>" not in (folder / "r.html").read_text(encoding="utf-8")


def test_outputs_of_a_model_without_names_are_counted(done, outputs):
    X, Y = outputs.select("x0", "x1", "x2", "x3"), outputs.select("gain, %", "loss").to_numpy()
    ht.save(ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y), "m.json")
    assert done("predict", "m.json", "t.csv").startswith("prediction of output 0,prediction of output 1\n")


SEVERAL = {
    "--loss poisson": "several targets are for --loss squared, not for poisson",
    "--offset x1": "a model of several outputs has a linear predictor for each of them, and --offset is one number",
    "--classes": "several targets are numbers; leave --order, --classes and --positive-class out",
    "--target loss": "--target names 'loss' twice",
    "--target none": "has no column 'none' for the target number 3",
}


@pytest.mark.parametrize("more", SEVERAL)
def test_what_several_targets_do_not_go_with(refused, outputs, more):
    line = refused("fit", "t.csv", "--target", "gain, %", "--target", "loss", *more.split())
    assert SEVERAL[more] in line


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("name", "loss", "several targets must all be numbers, but in 'name' row 1 holds the text 'a'; fit classes"),
        ("loss", "name", "several targets must all be numbers, but in 'name' row 1 holds the text 'a'; fit classes"),
    ],
)
def test_several_targets_are_numbers(refused, outputs, first, second, message):
    outputs.with_columns(name=pl.lit("a")).write_csv("t.csv")
    assert refused("fit", "t.csv", "--target", first, "--target", second).startswith(message)


def test_a_category_is_one_feature_of_a_model_of_three_classes(done, folder):
    rng = np.random.default_rng(0)
    site = rng.choice(["a", "b", "c", "d"], 120)
    pl.DataFrame({"x": rng.standard_normal(120), "site": site, "kind": np.where(site == "d", "a", site)}).write_csv(
        "t.csv"
    )
    text = done("fit", "t.csv", "--target", "kind", "--categorical", "site", "--k", 1, "--alpha", 0.1)
    assert text.startswith("1 of 2 features chosen to predict kind: a, b or c\n")


def test_a_coefficient_of_a_linear_svc_changes_its_decision(done, folder):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    ill = np.where(x + rng.standard_normal(60) > 0, "well", "ill")
    pl.DataFrame({"x": x, "z": rng.standard_normal(60), "state": ill}).write_csv("t.csv")
    text = " ".join(done("fit", "t.csv", "--target", "state", "--loss", "squared_hinge", "--k", 1).split())
    assert (
        "A coefficient is the change of the decision value, which is positive for well, when the feature grows" in text
    )
