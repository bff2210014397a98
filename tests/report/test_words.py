"""The sentences that the command line and the report share."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from hardthresh import SparseLinearRegressionCV
from hardthresh.estimators import words
from hardthresh.estimators.facts import read
from hardthresh.report import write_report

PARTS = [(5, 0.1, 0.7), (2, 0.1, 0.3)]


def test_the_headline_names_the_target_and_the_classes(build):
    assert words.headline(read(build(8, 2000)), "the tissue") == (
        "8 of 2,000 features chosen to predict the tissue: tumour against normal"
    )
    assert words.headline(read(build(1, 20, classes=None))) == "1 of 20 features chosen to predict the target"
    assert words.headline(read(build(3, 20, classes=("0", "1")))).endswith(": class 1 against class 0")


def test_features_on_request_were_not_chosen(build_grid, regression):
    assert words.headline(read(regression)) == "2 of 30 features chosen to predict the target, with 1 more on request"
    model = build_grid(2, found=False)
    model.always_include = model.support_.tolist()
    facts = read(model)
    assert words.headline(facts) == "No number of features predicts better than the 2 on request alone"
    assert "; with only those on request it is 0.7" in words.nothing_found(facts)
    assert words.nothing_found(facts).endswith("The model has only the features on request.")


@pytest.mark.parametrize("name", ["Poisson", "Tweedie", "gamma"])
def test_deviances_are_spelt_like_their_distributions(build_grid, name):
    key = f"mean_{name.lower()}_deviance"
    assert words.fit_score(key, 0.5) == f"mean {name} deviance 0.5"
    model = build_grid(4)
    model.scorer_name_ = f"neg_{key}"
    assert read(model).cross_validation.measure == f"mean {name} deviance"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (PARTS, ["the average of 2 models with 2 to 5 features"]),
        ([(5, 0.1, 0.7), (5, 1.0, 0.3)], ["the average of 2 models with 5 features"]),
        ([(5, 0.1, 1.0)], []),
        ([], []),
    ],
)
def test_an_average_is_said_to_be_one(build_grid, parts, said):
    assert words.qualifications(read(build_grid(parts=parts))) == said


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ((28,), "feature 28"),
        ((27, 29), "feature 27 and feature 29"),
        (range(10, 18), "feature 10, feature 11, feature 12, feature 13, feature 14 and 3 more"),
    ],
)
def test_what_an_average_leaves_out_is_named(build_grid, more, named):
    model = build_grid(2, parts=[(5, 0.1, 0.5), (5, 1.0, 0.5, np.array(more))])
    assert not {*model.support_.tolist()} & {*more}
    said = words.qualifications(read(model))
    assert said == [f"the average of 2 models with 5 features, without {named}, which its predictions hardly need"]


@pytest.fixture(scope="module")
def trees():
    """A model of categories, of which "kind" has a rare level that one fold lacks, and "soil" means little."""
    rng = np.random.default_rng(0)
    kind, soil = np.repeat(["ash", "birch", "cedar", "elm"], [29, 25, 25, 1]), rng.choice(["clay", "sand", "silt"], 80)
    numbers = rng.standard_normal((80, 2))
    y = (kind == "ash") * 3.0 - (kind == "elm") * 40.0 + 2 * numbers[:, 0] + 0.05 * (soil == "clay")
    X = pd.DataFrame(numbers, columns=["x", "z"]).assign(kind=pd.Categorical(kind), soil=pd.Categorical(soil))
    model = SparseLinearRegressionCV(n_nonzero_coefs=[3], cv=KFold(4, shuffle=True, random_state=0), averaging="none")
    return model.fit(X, y + 0.5 * rng.standard_normal(80))


@pytest.mark.slow
def test_the_levels_of_a_category_are_one_feature_in_folds_too(trees, tmp_path):
    facts = read(trees)
    levels = [feature for feature in facts.features if feature.column == "kind"]
    assert len(levels) > 1
    assert {feature.level_of for feature in levels} == {2}
    whole = {feature.name: feature.share for feature in words.by_column(facts.features)}
    assert set(whole) == set(trees.get_feature_names_out())
    assert whole["kind"] == 1.0 > min(feature.share for feature in levels)
    n_seldom = sum(share < 0.5 for share in whole.values())
    assert words.qualifications(facts) == ([f"{n_seldom} of 3 is in fewer than half of the folds"] if n_seldom else [])
    page = write_report(trees, tmp_path / "r.html").read_text(encoding="utf-8")
    cards = dict(re.findall(r"<dt>(.+?)</dt>\s*<dd class=\"value\">(.+?)</dd>", page))
    assert cards["Features in the model"] == "3 of 4"
    n_always = list(whole.values()).count(1.0)
    assert cards["Chosen in every fold"] == f"{n_always} of 3"
    assert f"{n_always} of the 3 were" in page or f"all {n_always} were" in page


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([0.0, 0.0, 0.4, 1.0], ["2 of 4 are in no fold"]),
        ([0.0, 1.0, 0.5, 1.0], ["1 of 4 is in no fold"]),
        ([0.4, 0.2, 0.5, 1.0], ["2 of 4 are in fewer than half of the folds"]),
        ([0.5, 0.5, 0.5, 1.0], []),
    ],
)
def test_features_that_folds_seldom_choose_are_counted(build_grid, shares, said):
    model = build_grid(4)
    model.selection_frequency_[model.support_] = shares
    assert words.qualifications(read(model)) == said
    model.always_include = model.support_.tolist()
    assert words.qualifications(read(model)) == []


def test_nothing_is_found_with_its_numbers(build_grid):
    text = "With 2 features, the best number, the held-out log loss is 0.72"
    assert words.nothing_found(read(build_grid(2, found=False, first=2))).startswith(text)
    assert words.nothing_found(read(build_grid(2, found=False, first=2))).endswith(
        "The model has features nevertheless, because 0 was not compared."
    )
    model = build_grid(0, found=False)
    assert "(permutation test: p = 0.31)" in words.nothing_found(read(model))
    model.null_p_value_ = np.nan
    assert "permutation" not in words.nothing_found(read(model))
    assert words.nothing_found(read(build_grid())) == ""


def test_the_ridges_of_the_curve_and_of_the_models(build_grid):
    best = "The ridge of each k is its best of 3 from 0 to 1; that of the"
    assert words.ridges(read(build_grid()).cross_validation) == f"{best} chosen k is 0.1."
    assert words.ridges(read(build_grid(parts=PARTS)).cross_validation) == (
        f"{best} best single model is 0.1; the averaged models have the ridge 0.1."
    )
    model = build_grid()
    model.alphas_, model.grid_scores_ = np.array([0.1]), model.grid_scores_[:, 1:2]
    assert words.ridges(read(model).cross_validation) == "The ridge is 0.1."


def test_an_average_may_score_worse_than_its_best_model(build_grid):
    assert "may score worse" in words.average_may_lose(read(build_grid(parts=PARTS)).cross_validation)
    assert words.average_may_lose(read(build_grid()).cross_validation) == ""


def test_exact_predictions_are_compared_with_the_folds_without_features(build_grid):
    model = build_grid()  # its models without features have a mean log loss of 0.7
    for d2, without in ((1.0, "0.7"), (1.0 - 2**-50, "0.7"), (0.75, "4 × 10⁻³⁰")):
        model.held_out_scores_ = {"log_loss": 1e-30, "d2": d2}
        assert words.score_cells(read(model).cross_validation.held_out[0]) == ("log loss", "1 × 10⁻³⁰", without)
    model.held_out_scores_ = {"log_loss": 1e-30, "d2": 1.0}
    model.scorer_name_ = "roc_auc"  # then the scores of the folds are no losses
    assert words.score_cells(read(model).cross_validation.held_out[0])[2] == "–"


def test_scores_without_a_value_are_a_dash(build_grid):
    model = build_grid()
    model.held_out_scores_ = {"mean_poisson_deviance": 1.5, "d2": 0.25, "calibration_slope": np.nan}
    cells = [words.score_cells(score) for score in read(model).cross_validation.held_out]
    assert cells == [
        ("mean Poisson deviance", "1.5", "2"),
        ("share of deviance (D²)", "0.25", "0"),
        ("calibration slope (best is 1)", "–", "–"),
    ]
