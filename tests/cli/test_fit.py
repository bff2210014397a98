"""``hardthresh fit``: the right model, and one line for whatever is wrong."""

import json

import numpy as np
import polars
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import hardthresh as ht
from hardthresh import losses
from hardthresh.cli.task import models
from hardthresh.core.numbers import signed
from hardthresh.core.registry import lookup
from hardthresh.storage import load_notes
from levels import at_most, in_turn, turn


@pytest.fixture
def fitted(done, csv):
    """Fit with some options on the CSV file; returns the model and what was printed."""

    def go(*args: object):
        text = done("fit", csv, *args, "--out", "model.json")
        return ht.load("model.json"), text

    return go


REGRESSION = ("--target", "y", "--drop", "ill")
CLASSES = ("--target", "ill", "--drop", "y")


def features(table):
    return table.select("a", "b", "height, cm", "d", "e").to_numpy()


def test_a_number_of_features(fitted, table):
    model, text = fitted(*REGRESSION, "--k", 2)
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=0).fit(features(table), table["y"].to_numpy())
    assert type(model) is ht.SparseLinearRegression
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.feature_names_in_[model.support_].tolist() == ["b", "height, cm"]
    assert text.startswith("2 of 5 features chosen to predict y\ntable.csv: 60 rows\n")
    assert "\nnot validated: add --cv 5\n" in text
    assert "height, cm" in text
    assert "proved: no exchange" in text
    assert "Converged" in text
    assert text.endswith("Model: model.json\n")


def test_the_number_by_cross_validation(fitted, table):
    model, text = fitted(*CLASSES, "--cv", 4, "--seed", 3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    alone = ht.SparseLogisticRegressionCV(cv=folds, random_state=3)
    alone.fit(features(table), table["ill"].to_numpy().astype(str))
    np.testing.assert_array_equal(model.scores_, alone.scores_)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert " of 5 features chosen to predict ill: yes against no\n" in text
    for part in ("table.csv: 60 rows (no: ", "in folds", "How many features?", "no features", "best single model"):
        assert part in text
    assert "not validated" not in text


def test_scores_on_held_out_rows_are_printed_beside_those_without_features(fitted, table):
    model, text = fitted(*CLASSES)
    rows = {line[:35].strip(): line[35:].split() for line in text.splitlines()}
    scores, share = model.held_out_scores_, np.mean(table["ill"].to_numpy() == "yes")
    assert rows["log loss"] == [
        f"{scores['log_loss']:.3g}",
        f"{-share * np.log(share) - (1 - share) * np.log(1 - share):.3g}",
    ]
    assert rows["area under the ROC curve"] == [f"{scores['roc_auc']:.3g}", "0.5"]
    assert rows["accuracy"] == [f"{100 * scores['accuracy']:.0f}", "%", f"{100 * max(share, 1 - share):.0f}", "%"]
    assert rows["calibration slope (best is 1)"] == [f"{scores['calibration_slope']:.3g}", "–"]
    model, text = fitted(*REGRESSION)
    rows = {line[:35].strip(): line[35:].split() for line in text.splitlines()}
    assert "explain" not in text
    assert rows["R²"] == [f"{model.held_out_scores_['r2']:.3g}", "0"]
    assert rows["mean squared error"][1] == f"{np.var(table['y'].to_numpy()):.3g}"


def test_one_number_is_cross_validated_on_request(fitted):
    model, text = fitted(*REGRESSION, "--k", 2, "--cv", 4)
    assert type(model) is ht.SparseLinearRegressionCV
    assert (model.candidates_.tolist(), model.cv.n_splits, model.averaging_) == ([2], 4, "none")
    assert text.startswith("2 of 5 features chosen to predict y\ntable.csv")
    assert "Held-out rows" in text
    assert "  none " in text
    assert "No other number than 2 was compared." in text
    assert "not validated" not in text


@pytest.fixture
def coins(table, csv):
    """The table with a target that no column has to do with."""
    table.with_columns(ill=polars.Series(np.random.default_rng(5).choice(["no", "yes"], 60))).write_csv(csv)
    return csv


NOTHING = "No number of features predicts better than none\n"


@pytest.mark.filterwarnings("always")
def test_a_coin_flip_has_no_features(run, coins):
    result = run("fit", coins, *CLASSES, "--out", "model.json", "--report", "r.html")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{NOTHING}With ")
    assert "the best number, the held-out log loss is 0." in result.stdout
    assert "; without any it is 0." in " ".join(result.stdout.split())
    assert "The model has no features: it predicts the same for every row." in " ".join(result.stdout.split())
    assert result.stderr.startswith("warning: no number of features predicts ")
    assert "Held-out rows" not in result.stdout
    assert "worse by more than one standard error" not in " ".join(result.stdout.split())
    model = ht.load("model.json")
    assert not model.found_
    assert not model.coef_.any()


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
def test_a_given_number_of_features_that_predict_nothing_is_said_too(done, coins):
    text = " ".join(done("fit", coins, *CLASSES, "--k", 2, "--cv", 5).split())
    assert text.startswith(NOTHING.strip() + " With 2 features the held-out log loss is ")
    assert "The model has features nevertheless, because 0 was not compared." in text


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
def test_an_unclear_gain_is_not_called_better_than_fewer_features(done, folder):
    rng = np.random.default_rng(0)
    columns = {f"f{j}": column for j, column in enumerate(rng.standard_normal((80, 15)).T)}
    polars.DataFrame(columns | {"y": np.where(rng.random(80) < 0.5, "heads", "tails")}).write_csv(folder / "lucky.csv")
    text = " ".join(done("fit", "lucky.csv", "--target", "y").split())
    assert "1 is best, but not clearly better than none (permutation test: p = 0." in text
    assert "worse by more than one standard error" not in text


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
def test_all_columns_on_request_leave_nothing_to_choose(done, csv):
    text = " ".join(done("fit", csv, *REGRESSION, "--always-include", 'a,b,"height, cm",d,e').split())
    assert text.startswith("Every feature is in the model on request, to predict y No other feature could be chosen.")
    assert "without any" not in text
    assert "The line │ is the score with only the features on request." in text


@pytest.mark.parametrize(
    ("args", "alphas", "averaging"),
    [
        ([], "auto", "auto"),
        (["--alpha", "0.5"], 0.5, "auto"),
        (["--alpha", "0.1,1", "--averaging", "stacking"], [0.1, 1.0], "stacking"),
        (["--averaging", "none"], "auto", "none"),
        (["--k", "2", "--cv", "5"], "auto", "none"),
        (["--k", "2", "--cv", "5", "--averaging", "exponential"], "auto", "exponential"),
    ],
)
def test_ridges_and_averaging_arrive(fitted, args, alphas, averaging):
    model, _ = fitted(*REGRESSION, *args)
    assert (model.alphas, model.averaging) == (alphas, averaging)


def test_the_ridge_of_a_given_number_is_that_of_the_estimator_or_the_one_given(fitted):
    assert fitted(*REGRESSION, "--k", 2)[0].alpha is None
    assert fitted(*REGRESSION, "--k", 2, "--alpha", 0.5)[0].alpha == 0.5


LOSSES = sorted({loss for loss, _ in models()} & set(losses.pointwise_losses()))


@pytest.fixture
def of_loss(done, table, folder):
    """Fits a table whose target suits a loss, and returns the loss, the model and what was printed."""

    def fit(loss, *args):
        rng, X, known = np.random.default_rng(0), features(table), lookup("loss", loss)()
        noise = 1.0 if loss == "negative_binomial" else 0.1  # its counts vary more than Poisson counts
        table.with_columns(y=known.example_target(1.5 * X[:, 1] - X[:, 2], rng, noise)).write_csv(folder / "table.csv")
        text = done("fit", "table.csv", *REGRESSION, "--loss", loss, "--out", "model.json", *args)
        return known, ht.load("model.json"), " ".join(text.split())

    return fit


@at_most(3)
@in_turn("loss,k", LOSSES, [2, "1-5"])
def test_every_registered_loss(of_loss, done, loss, k):
    """A loss that has estimators is a word for ``--loss``, and says what its coefficients mean."""
    known, model, text = of_loss(loss, "--k", k)
    assert type(model._loss) is type(known)
    assert {1, 2} <= set(model.support_.tolist())
    changed = "decision value, which is positive for" if known.classifies else "target"
    assert f"A coefficient is the change of the {'log' if known.multiplies else changed}" in text
    assert done("predict", "model.json", "table.csv").count("\n") == 61


@pytest.mark.parametrize("loss", turn(LOSSES, "the report of a loss"))
def test_a_report_says_what_a_coefficient_of_every_loss_means(of_loss, folder, loss):
    known, _, _ = of_loss(loss, "--k", 2, "--report", "r.html")
    page = " ".join((folder / "r.html").read_text(encoding="utf-8").split())
    if known.multiplies:
        assert f"multiplies {known.multiplies} " in page
    else:
        assert ("speak for" if known.classifies else "raises the prediction by") in page


def test_a_model_without_features(fitted, table):
    model, text = fitted(*REGRESSION, "--k", 0, "--report", "r.html")
    assert model.support_.size == 0
    assert model.intercept_ == pytest.approx(np.mean(table["y"].to_numpy()))
    assert text.startswith("0 of 5 features chosen to predict y\n")


def test_folds_of_a_regression_are_shuffled(fitted):
    model, _ = fitted(*REGRESSION, "--k", "1-5")
    assert vars(model.cv) == vars(KFold(5, shuffle=True, random_state=0))


@pytest.mark.parametrize(
    ("k", "candidates"), [("auto", [0, 1, 2, 3, 4, 5]), ("2-4", [2, 3, 4]), ("5,1", [1, 5]), ("3-3", [3])]
)
def test_numbers_to_compare(fitted, k, candidates):
    assert fitted(*REGRESSION, "--k", k)[0].candidates_.tolist() == candidates


def test_a_criterion_in_the_place_of_folds(fitted, table):
    X, y = features(table), table["y"].to_numpy()
    model, text = fitted(
        *REGRESSION, "--criterion", "ebic", "--ebic-gamma", 0.5, "--alpha", "0,0.1", "--report", "r.html"
    )
    settings = {"criterion": "ebic", "ebic_gamma": 0.5, "alphas": [0.0, 0.1]}
    np.testing.assert_array_equal(model.coef_, ht.SparseLinearRegressionCV(**settings).fit(X, y).coef_)
    assert f"k = {model.best_n_nonzero_coefs_}, the number of features that was chosen by EBIC\n" in text
    assert "not validated: leave --criterion out" in text
    assert "On the rows of the fit: R²" in text
    model, text = fitted(*REGRESSION, "--criterion", "gic", "--n-features-original", 40)
    assert (model.criterion, model.n_features_original) == ("gic", 40)


def test_a_criterion_takes_the_values_of_options_about_folds_that_need_none(fitted):
    """As the estimators do."""
    for options in (("--averaging", "none"), ("--averaging", "auto", "--rule", "best")):
        model, text = fitted(*REGRESSION, "--criterion", "bic", *options)
        assert model.criterion == "bic"
        assert "by BIC" in text


def test_a_search_for_the_number(fitted):
    model, text = fitted(*REGRESSION, "--criterion", "bic", "--k", "search", "--max-k", 4)
    assert (model.n_nonzero_coefs, model.max_nonzero_coefs) == ("search", 4)
    assert "was chosen by BIC (searched, not all tried)" in text
    model, text = fitted(*REGRESSION, "--k", "search")
    assert model.n_nonzero_coefs == "search"
    assert model.grid_scores_.shape[0] == model.candidates_.size


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--criterion", "mdl"], "--criterion must be one of 'cv', 'ebic', 'bic', 'aic', 'gic'; got 'mdl'"),
        (["--criterion", "bic", "--cv", 3], "--cv is about folds, and --criterion bic fits none; leave it out"),
        (["--criterion", "bic", "--rule", "one-se"], "--rule is about folds"),
        (["--criterion", "bic", "--averaging", "stacking"], "--averaging is about folds"),
        (["--ebic-gamma", 0.5], "--ebic-gamma is for --criterion ebic, not for cv"),
        (["--criterion", "aic", "--n-features-original", 9], "--n-features-original is for --criterion ebic and gic"),
        (["--max-k", 3], "--max-k is the largest number that --k search tries"),
        (["--criterion", "bic", "--loss", "huber"], "the Huber loss has no likelihood"),
    ],
)
def test_options_of_a_criterion_that_do_not_go_together(refused, csv, args, message):
    assert message in refused("fit", csv, *REGRESSION, *args)


@pytest.mark.filterwarnings("always")
def test_a_best_number_at_the_end_of_the_range_is_warned_of(run, csv):
    warned = run("fit", csv, *REGRESSION, "--k", "1-2").stderr
    assert warned == (
        "warning: the best mean score is that of the largest number of features compared, 2: a larger one may predict "
        "better; compare up to 4, for example\n"
    )


def test_every_option_arrives(fitted):
    options = (
        "--k 1-2 --loss logistic --alpha 0.5 --positive --no-standardize --no-intercept --max-iter 77 --rule one-se"
    )
    more = ("--scoring", "accuracy", "--seed", 5, "--always-include", 'a,"height, cm"')
    model, _ = fitted(*CLASSES, *options.split(), *more)
    settings = model.get_params()
    assert settings["alphas"] == 0.5
    assert settings["always_include"] == [0, 2]
    assert settings["positive"]
    assert not settings["standardize"]
    assert not settings["fit_intercept"]
    assert (settings["max_iter"], settings["random_state"]) == (77, 5)
    assert (settings["rule"], settings["scoring"]) == ("one_standard_error", "accuracy")
    assert not settings["verbose"]


def test_always_included_features_are_marked(fitted):
    _, text = fitted(*REGRESSION, "--k", "1-4", "--always-include", "e")
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(" e ")] == ["always"]


def test_weights_and_offsets_arrive(done, table, csv):
    rng = np.random.default_rng(1)
    weight, offset = rng.integers(0, 3, 60), rng.standard_normal(60)
    table.with_columns(w=polars.Series(weight), o=polars.Series(offset)).write_csv(csv)
    done("fit", csv, *REGRESSION, "--k", 2, "--weight", "w", "--offset", "o", "--out", "model.json")
    alone = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=0)
    alone.fit(features(table), table["y"].to_numpy(), sample_weight=weight, offset=offset)
    np.testing.assert_array_equal(ht.load("model.json").coef_, alone.coef_)


@pytest.mark.parametrize(("positive", "rest"), [("yes", "no"), ("no", "(yes)")])
def test_the_positive_class_is_the_one_predicted(fitted, positive, rest):
    model, text = fitted(*CLASSES, "--k", 2, "--positive-class", positive)
    assert model.classes_.tolist() == [rest, positive]
    assert f"chosen to predict ill: {positive} against {rest}" in text


@pytest.mark.parametrize(("positive", "rest"), [("zebra", "other"), ("ape", "(other)"), ("cat", "(other)")])
def test_one_class_against_the_rest(done, table, csv, positive, rest):
    names = np.array(["ape", "cat", "zebra"])[np.digitize(table["b"].to_numpy(), [-0.5, 0.5])]
    table.with_columns(animal=polars.Series(names)).write_csv(csv)
    done("fit", csv, "--target", "animal", "--drop", "ill,y", "--k", 1, "--positive-class", positive, "--out", "m.json")
    assert ht.load("m.json").classes_.tolist() == [rest, positive]


def test_labels_that_are_numbers_stay_whole(done, table, csv):
    table.with_columns(label=(polars.col("b") > 0).cast(polars.Float64) * 2 - 1).write_csv(csv)
    done("fit", csv, "--target", "label", "--drop", "ill,y", "--k", 1, "--out", "m.json")
    assert ht.load("m.json").classes_.tolist() == [-1, 1]


def test_numbers_that_may_be_classes_are_pointed_out(run, table, csv):
    table.with_columns(label=polars.col("b").round().cast(polars.Int64)).write_csv(csv)
    result = run("fit", csv, "--target", "label", "--drop", "ill,y", "--k", 1)
    assert result.exit_code == 0
    [note] = result.stderr.splitlines()
    assert note.startswith("note: the ")
    assert note.endswith("numbers in 'label' are treated as amounts (least squares); for classes, add --classes")


def test_whole_numbers_that_may_be_counts_are_pointed_out(run, done, table, csv):
    few = (polars.col("b").abs() * 3).floor().cast(polars.Int64)
    done_by_loss = ("fit", csv, "--target", "label", "--drop", "ill,y", "--k", 1, "--loss")
    for counts, classes in ((few, "for classes, add --classes; "), (polars.int_range(60), "")):
        table.with_columns(label=counts).write_csv(csv)
        [note] = run(*done_by_loss[:-1]).stderr.splitlines()
        assert note.endswith(f"'label' are treated as amounts (least squares); {classes}for counts, add --loss poisson")
        assert run(*done_by_loss, "poisson").stderr == ""


def test_the_row_and_column_of_a_target_out_of_range_are_named(refused, done, table, csv):
    amounts = np.arange(1.0, 61.0)
    amounts[5] = 0.0
    weights = np.where(amounts == 0, 0, 1)
    table.with_columns(cost=polars.Series(amounts), w=polars.Series(weights)).write_csv(csv)
    gamma = ("fit", csv, "--target", "cost", "--drop", "ill,y", "--k", 1, "--loss", "gamma")
    assert "--loss gamma needs finite numbers > 0, but the target 'cost' is 0 in row 6" in refused(*gamma)
    done(*gamma, "--weight", "w")


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.SearchRangeWarning")
def test_the_smallest_number_compared_is_not_called_better_than_fewer(done, csv):
    smallest = done("fit", csv, *REGRESSION, "--k", "3-4")
    assert "3 is best; no smaller number was compared." in smallest
    assert "no smaller number was compared" not in done("fit", csv, *REGRESSION, "--k", "2-4")


def test_the_notes_say_where_the_model_comes_from(fitted, csv):
    fitted(*CLASSES, "--k", 2)
    notes = load_notes("model.json")
    assert notes["command"] == f"hardthresh fit {csv} --target ill --drop y --k 2 --out model.json"
    assert notes["data"]["classes"].keys() == {"no", "yes"}
    assert {**notes["data"], "classes": None} == {
        "source": "table.csv",
        "target": "ill",
        "n": 60,
        "d": 5,
        "dtype": "float64",
        "missing": 0,
        "classes": None,
    }


def test_the_report_shows_the_command(done, csv, folder):
    done("fit", csv, *CLASSES, "--k", "1-5", "--report", "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"hardthresh fit {csv} --target ill --drop y --k 1-5 --report report.html" in page


def test_quiet_prints_nothing(run, csv):
    result = run("fit", csv, *REGRESSION, "--k", 2, "--quiet", "--out", "model.json")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.SearchRangeWarning")
def test_the_same_command_gives_the_same_file(done, csv, folder):
    written = []
    for _ in range(2):
        done("fit", csv, *CLASSES, "--k", "1-2", "--out", "model.json")
        document = json.loads((folder / "model.json").read_text())
        document["notes"].pop("seconds")
        document["object"]["fitted"]["history_"]["columns"].pop("seconds")
        written.append(document)
    assert written[0] == written[1]


def test_features_of_no_use_need_no_cross_validation_to_be_left_out(fitted):
    model, text = fitted(*REGRESSION, "--k", 5, "--positive")
    assert (model.coef_ >= 0).all()
    assert f"{len(model.support_)} of 5 features" in text


# --- what is refused ---


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--target", "y"], "has 1 column without numbers: ill ("),
        (["--target", "tumor"], "has no column 'tumor' for the target; there are: a, b"),
        ([*REGRESSION, "--k", "50"], "--k must be between 0 and the number of features to choose from (5), got 50"),
        ([*REGRESSION, "--k", "5", "--always-include", "a"], "the number of features to choose from (4), got 5"),
        (
            [*REGRESSION, "--k", "few"],
            "--k must be auto, search, a number such as 10, a range 1-20 or a list 2,5,10; got 'few'",
        ),
        ([*REGRESSION, "--k", "5-2"], "--k must be auto"),
        ([*REGRESSION, "--k", "-3"], "--k must be auto"),
        ([*REGRESSION, "--loss", "poisson"], "--loss poisson needs finite numbers >= 0, but the target 'y' is -"),
        ([*CLASSES, "--loss", "squared"], "the target 'ill' holds texts (no, yes)"),
        (
            [*REGRESSION, "--loss", "logistic"],
            "the target 'y' holds amounts (60 different numbers); use --loss squared",
        ),
        ([*REGRESSION, "--loss", "tau"], "--loss must be one of 'auto', "),
        (
            [*CLASSES, "--loss", "poisson", "--positive-class", "yes"],
            "--positive-class is for classes; the poisson loss",
        ),
        ([*REGRESSION, "--k", "6-9"], "the number of features to choose from (5), got 6"),
        ([*REGRESSION, "--scoring", "accuracy"], "scoring='accuracy' does not fit this SparseLinearRegressionCV: "),
        ([*CLASSES, "--scoring", "neg_mean_gamma_deviance"], "does not fit this SparseLogisticRegressionCV: "),
        ([*REGRESSION, "--scoring", "accuarcy", "--k", "2"], "no scorer 'accuarcy'; did you mean 'accuracy'"),
        ([*CLASSES, "--positive-class", "maybe"], "the target 'ill' has no class 'maybe'; there are: no, yes"),
        ([*REGRESSION, "--rule", "worst"], "--rule must be one of 'best', 'one-se'; got 'worst'"),
        ([*REGRESSION, "--averaging", "all"], "--averaging must be one of 'auto', 'none', "),
        ([*REGRESSION, "--alpha", "much"], "--alpha must be auto, a number >= 0 such as 0.1, or a list"),
        ([*REGRESSION, "--alpha=-1"], "or a list 0.01,0.1,1; got '-1'"),
        ([*REGRESSION, "--alpha", "0.1,inf"], "got '0.1,inf'"),
        (
            [*REGRESSION, "--k", "2", "--alpha", "0.1,1"],
            "several ridges, which only a choice of k compares: add --cv 5",
        ),
        ([*REGRESSION, "--cv", "61"], "the table has 60 rows, too few for 61 folds"),
        ([*CLASSES, "--cv", "50"], "too few for 50 folds; use fewer with --cv"),
        ([*REGRESSION, "--always-include", "f"], "has no column 'f'; "),
        ([*REGRESSION, "--out", "model.pkl"], "the name of model.pkl must end in .json"),
        ([*REGRESSION, "--report", "report.pdf"], "the name of report.pdf must end in .html"),
        ([*REGRESSION, "--out", "no/model.json"], "there is no folder no to write model.json in"),
        ([*REGRESSION, "--weight", "a"], "sample_weight must be non-negative"),
        ([*REGRESSION, "--scoring", "accuarcy"], "no scorer 'accuarcy'; did you mean 'accuracy'"),
    ],
)
def test_wrong_settings_are_one_line(refused, csv, args, said):
    assert said in refused("fit", csv, *args)


def test_two_numbers_that_are_not_whole_are_amounts(run, done, broken):
    path = broken("a,b,y", *(f"{i},{i * i % 7},{0.5 + (i * i % 7 > 2)}" for i in range(30)))
    result = run("fit", path, "--target", "y", "--k", 1)
    assert result.exit_code == 0
    [note] = result.stderr.splitlines()
    assert note.endswith("0.5 and 1.5 in 'y' are treated as amounts (least squares); for classes, add --loss logistic")
    done("fit", path, "--target", "y", "--k", 1, "--loss", "logistic", "--out", "model.json")
    assert ht.load("model.json").classes_.tolist() == ["0.5", "1.5"]


def test_two_rows(done, broken):
    assert "1 of 1 features" in done("fit", broken("a,y", "1,0.5", "2,2.5"), "--target", "y", "--k", 1)


def test_one_bad_cell_in_a_target_of_numbers(refused, broken):
    path = broken("a,y", *(f"{i},{'oops' if i == 5 else i / 2}" for i in range(60)))
    line = refused("fit", path, "--target", "y")
    assert line == "the target 'y' holds numbers, but row 6: 'oops' is not a number; correct or remove it"


def test_a_range_ends_at_the_number_of_features(run, csv):
    result = run("fit", csv, *REGRESSION, "--k", "1-20", "--out", "model.json")
    assert result.exit_code == 0
    assert result.stderr == "note: --k 1-20 ends at 5, the number of features to choose from\n"
    assert ht.load("model.json").candidates_.tolist() == [1, 2, 3, 4, 5]


def test_options_without_effect_are_told(run, csv):
    result = run("fit", csv, *REGRESSION, "--k", 2, "--scoring", "r2", "--averaging", "none", "--rule", "one-se")
    assert result.exit_code == 0
    notes = [f"note: --{option} has no effect with one k" for option in ("scoring", "rule", "averaging")]
    assert result.stderr.splitlines() == notes
    result = run("fit", csv, *REGRESSION, "--k", 2, "--scoring", "r2", "--cv", 5, "--rule", "one-se")
    assert result.stderr.splitlines() == notes[1:2]


def test_features_with_names_are_not_counted(done, csv):
    assert "counted from 0" not in done("fit", csv, *REGRESSION, "--k", 2)


def test_columns_are_named_in_errors_too(refused, csv, table):
    table.with_columns(flat=polars.lit(1.0)).write_csv(csv)
    message = refused("fit", csv, *REGRESSION, "--k", 2, "--always-include", "flat")
    assert message.startswith("always_include names flat, which is constant")


@pytest.mark.filterwarnings("always")
def test_constant_columns_are_named(run, csv, table):
    table.with_columns(flat=polars.lit(1.0)).write_csv(csv)
    result = run("fit", csv, *REGRESSION, "--k", 2)
    assert result.stderr == "warning: 1 constant column ('flat') carries no information and cannot be chosen\n"


def test_the_heading_of_the_chart_is_whole(done, csv):
    assert "held-out log loss ± standard error (lower is better)\n" in done("fit", csv, *CLASSES)


def test_one_class_is_refused(refused, broken):
    path = broken("a,y", "1,yes", "2,yes")
    assert refused("fit", path, "--target", "y") == (
        "the target 'y' has only one value, 'yes'; there is nothing to predict"
    )


def test_many_classes_are_refused_where_the_model_takes_two(refused, broken, monkeypatch):
    monkeypatch.setattr("hardthresh.cli.task.takes_many_classes", lambda loss: False)
    line = refused("fit", broken("a,y", "1,ape", "2,cat", "3,dog"), "--target", "y")
    assert line.startswith("the target 'y' has 3 classes (ape, cat, dog), and the model of the logistic loss takes two")


@pytest.mark.slow
@pytest.mark.parametrize("choice", [("--k", 1), ("--k", "0-2", "--cv", 3)])
def test_the_coefficients_of_each_class_are_shown(done, table, csv, choice):
    names = np.array(["ape", "cat", "dog"])[np.digitize(table["b"].to_numpy(), [-0.5, 0.5])]
    table.with_columns(animal=polars.Series(names)).write_csv(csv)
    text = done("fit", csv, "--target", "animal", "--drop", "ill,y", *choice, "--out", "m.json")
    model = ht.load("m.json")
    assert "chosen to predict animal: ape, cat or dog\n" in text
    [header] = [line for line in text.splitlines() if line.split()[:1] == ["feature"]]
    assert header.split()[:4] == ["feature", "ape", "cat", "dog"]
    rows = {line.split()[0]: line.split()[1:4] for line in text.splitlines() if len(line.split()) >= 4}
    assert rows["b"] == [signed(float(value)) for value in model.coef_[:, 1]]
    assert rows["(intercept)"] == [signed(float(value)) for value in model.intercept_]
    assert "Exchanges:" in text


def test_holes_are_refused(refused, broken):
    line = refused("fit", broken("a,b,y", "1,2,3", "2,,4", "3,4,5"), "--target", "y")
    assert line.endswith(
        "has 1 missing value in 1 column, the first in column 'b', row 2; impute (--impute of fit, compare and "
        "stability) or remove these first"
    )


def test_a_file_that_cannot_be_written_is_refused(refused, csv, folder):
    (folder / "model.json").mkdir()
    assert refused("fit", csv, *REGRESSION, "--k", 2, "--out", "model.json") == "model.json is a folder"


# --- real data ---


@at_most(1)
@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.SearchRangeWarning")
@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        (
            "golub_leukemia.npz",
            ("--k", 4),
            ["4 of 7,129 features chosen to predict y: class 1 against class 0", "_at "],
        ),
        (
            "colon_alon.npz",
            ("--k", "1-4", "--cv", 3),
            [" of 2,000 features chosen to predict y: class 1 against class 0", "How many features?"],
        ),
        ("riboflavin.npz", ("--k", 6), ["6 of 4,088 features chosen to predict y\n", "_at ", "Exchanges: "]),
        (
            "news20.npz",
            ("--positive-class", "rec.autos", "--k", 4),
            ["4 of 130,107 features chosen to predict y_train: rec.autos against other", " car ", " cars "],
        ),
    ],
)
def test_real_data_fit_by_one_line(done, data_folder, name, args, said):
    text = done("fit", data_folder / name, *args, "--out", "model.json")
    for part in said:
        assert part in text
    assert "Converged" in text
    predictions = done(
        "predict", "model.json", data_folder / name, *(["--x-key", "test"] if name == "news20.npz" else [])
    )
    assert len(predictions.splitlines()) > 60


def test_a_feature_that_an_average_leaves_out_is_named(done, tmp_path):
    """Its predictions lose less than 1 % of the noise without it; all folds choose it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    y = X @ [1.0, 1.0, 0.12, 0.0] + 2.0 * rng.standard_normal(2000)
    polars.DataFrame({**{f"x{j}": X[:, j] for j in range(4)}, "y": y}).write_csv(tmp_path / "rows.csv")
    said = " ".join(done("fit", tmp_path / "rows.csv", "--target", "y", "--cv", 5).split())
    assert "without x2 and x3, which its predictions hardly need" in said
    assert "averages of fits, each without one fold, that keep the feature." in said
    assert "choose no other feature" not in said
