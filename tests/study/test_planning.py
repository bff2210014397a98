"""A plan simulates the study of the terms, and says when not to do it."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import make_clinic
from hardthresh.limited import ArraySource, learn
from hardthresh.study import PlannedSize, Terms, plan, progress
from hardthresh.study.advice import HOPELESS, advice
from hardthresh.study.intervals import Interval, mean_interval, share_interval
from hardthresh.study.population import Guess, OldTable, most_columns, prediction_limit
from hardthresh.study.simulation import simulate

D = 16


def terms(budget=6, s=2, more="", target="", attributes=""):
    names = "".join(f"[attributes.a{j}]\n" for j in range(D))
    return Terms.parse(
        f"n_nonzero_coefs = {s}\nbudget_per_example = {budget}\n{more}\n[target]\nname = 'y'\n{target}\n"
        f"{names}{attributes}"
    )


def old_table(n=300, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    table = pd.DataFrame(X, columns=[f"a{j}" for j in range(D)])
    return table.assign(y=X[:, 3] - X[:, 11] + noise * rng.standard_normal(n))


@pytest.mark.slow
def test_more_examples_cost_more_and_find_more():
    sizes = plan(terms(), examples=[60, 400], r2=0.5, repeats=8).sizes
    assert all(5 * size.examples < size.cost <= size.cost_high <= 6 * size.examples for size in sizes)
    assert sizes[0].all_found.value < sizes[1].all_found.value
    assert sizes[1].error < sizes[0].error
    assert sizes[1].best == pytest.approx(0.5, abs=0.05)
    assert [size.complete_rows for size in sizes] == [int(size.cost / D) for size in sizes]


def test_a_simulated_study_is_the_study_of_the_learner():
    wanted = terms()
    draw = Guess(wanted, 2, 0.9, 0.8, 0.5, 0.0).draw(500, np.random.default_rng(0))
    source = ArraySource(draw.X, draw.y, cost_model=wanted.cost_model, shuffle=False)
    result = learn(wanted.algorithm, source)
    assert result.support.tolist() == draw.right.tolist()
    assert np.mean((draw.y_new - draw.best) ** 2) == pytest.approx(0.1, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["", "kind = 'class'"])
def test_a_study_in_a_file_learns_as_its_simulation(begin, target):
    planned = terms(more="examples = 150", target=target)
    study = begin(terms=planned.text)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, D))
    y = X[:, 3] - X[:, 11] + 0.5 * rng.standard_normal(150)
    y = (y > 0).astype(float) if target else y
    for row, answer in zip(X, y, strict=True):
        [question] = study.ask("ann")
        values = {name: row[planned.columns.index(name)] for name in question.needed[:-1]}
        study.tell(question.number, {**values, "y": planned.target.format(answer) if target else answer}, "ann")
    real = study.learned()
    simulated, _ = simulate(planned.algorithm, planned.cost_model, X, y, length=150)
    for name in ("questions", "values", "target", "batch", "money"):
        np.testing.assert_array_equal(getattr(real, name), getattr(simulated, name))
    np.testing.assert_allclose(real.prediction, simulated.prediction, atol=1e-12)
    assert real.chosen[-1].tolist() == simulated.chosen[-1].tolist() == [3, 11]
    assert progress(real).errors[0].model.value == pytest.approx(progress(simulated).errors[0].model.value)


def test_the_same_seed_is_the_same_plan_and_another_one_is_not():
    plans = [plan(terms(), examples=60, repeats=3, seed=seed).to_dict() for seed in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.slow
def test_the_search_ends_where_enough_studies_find_what_is_right():
    found = plan(terms(more="examples = 90"), r2=0.95, repeats=4)
    assert found.needed_examples in [size.examples for size in found.sizes]
    assert found.allowed_examples == 90
    assert any(size.examples == 90 for size in found.sizes)
    enough = next(size for size in found.sizes if size.examples == found.needed_examples)
    assert f": {enough.all_found} of those simulated did." in found.advice[0]
    for size in found.sizes:
        if size.examples >= found.needed_examples:
            assert size.all_found.value >= 0.8
    assert str(found.needed_examples) in found.advice[0].replace(",", "")


@pytest.mark.slow
def test_a_budget_that_is_too_small_is_said():
    found = plan(terms(more="total_budget = 600.0"), examples=[60, 800], r2=0.3, repeats=4)
    assert found.allowed_examples == int(np.interp(600.0, [size.cost for size in found.sizes], [60, 800]))


@pytest.mark.parametrize(
    ("needed", "allowed", "said"),
    [
        (None, 40, "The terms allow about 40 examples, and 100 were not enough: they allow too few."),
        (None, 100, "100 examples, with which 50 % (15 % to 85 %) of the studies find all right columns: they allow"),
        (None, 201, "The terms allow about 201 examples. This number was not simulated: plan with it to know whether"),
        (200, 40, "about 40 examples, and 100 were not enough: they allow too few."),
        (200, 150, "The terms allow about 150 examples. This number was not simulated"),
        (200, 200, "The terms allow about 200."),
        (100, 99, "The terms allow about 99 examples. This number was not simulated"),
    ],
)
def test_only_what_was_simulated_is_called_too_few(needed, allowed, said):
    sizes = [size_of(n, found=4 if needed and n >= needed else 2) for n in (100, 200)]
    assert said in advice(terms(), sizes, 0.8, needed, allowed, ())[0][0]


def size_of(n, *, found=4, complete_found=4, error=0.6, complete_error=0.6, advantage=0.0, best=0.5):
    """Return a size of a plan with four studies."""
    return PlannedSize(
        examples=n,
        cost=6.0 * n,
        cost_high=6.0 * n,
        error=error,
        error_high=error,
        best=best,
        all_found=share_interval(found, 4),
        found=mean_interval(np.full(4, found / 4)),
        no_model=share_interval(0, 4),
        complete_rows=6 * n // D,
        complete_error=complete_error,
        complete_all_found=share_interval(complete_found, 4),
        advantage=Interval(advantage, advantage - 0.01, advantage + 0.01),
    )


@pytest.mark.parametrize(
    ("size", "recommendation"),
    [
        ({"found": 0, "complete_found": 0, "error": 1.03, "complete_error": 1.57, "advantage": 0.54}, "neither"),
        ({"found": 0, "complete_found": 0, "error": 0.96, "complete_error": 0.98, "advantage": 0.02}, "neither"),
        ({"found": 4, "complete_found": 4, "error": 0.97, "complete_error": 0.97, "best": 0.97}, "neither"),
        ({"found": 4, "complete_found": 0, "error": 0.96, "complete_error": 1.20, "advantage": 0.24}, "adaptive"),
        ({"found": 0, "complete_found": 0, "error": 0.70, "complete_error": 1.20, "advantage": 0.50}, "adaptive"),
        ({"found": 0, "complete_found": 0, "error": 1.03, "complete_error": 0.80, "advantage": -0.23}, "complete"),
        ({"found": 0, "complete_found": 4, "error": 1.03, "complete_error": 0.60, "advantage": -0.43}, "complete"),
        ({"found": 4, "complete_found": 4}, "either"),
    ],
)
def test_nothing_is_recommended_that_predicts_worse_than_no_attributes(size, recommendation):
    needed = 100 if size["found"] == 4 else None
    said, found = advice(terms(), [size_of(100, **size)], 0.8, needed, None, ())
    assert found == recommendation
    assert ("The adaptive study is the better use" in said[-1]) == (recommendation == "adaptive")
    assert ("do not do an adaptive study" in said[-1]) == (recommendation == "complete")


def test_what_may_help_follows_from_the_terms():
    sizes = [size_of(100, found=0, complete_found=0, error=1.0, complete_error=1.0)]
    said, _ = advice(terms(), sizes, 0.8, None, 300, ())
    assert "Do neither yet" in said[-1]
    assert "What may help: fewer attributes; more examples, of which the terms allow about 300; more" in said[-1]
    assert "6 buys the 16 attributes in 3 parts." in said[-1]
    said, recommendation = advice(terms(budget=D), sizes, 0.8, None, 90, ())
    assert recommendation == "neither"
    assert said[-1].endswith("What may help: more examples than the terms allow.")


def test_the_money_that_the_terms_allow_decides():
    sizes = [
        size_of(100, found=0, complete_found=0, error=1.0, complete_error=1.0),
        size_of(800, found=4, complete_found=0, complete_error=0.9, advantage=0.3),
    ]
    assert advice(terms(), sizes, 0.8, 800, None, ())[1] == "adaptive"
    assert advice(terms(), sizes, 0.8, 800, 100, ())[1] == "neither"


def test_many_attributes_and_few_examples_are_not_worth_a_study():
    found = plan(terms(s=4, attributes="".join(f"[attributes.b{j}]\n" for j in range(84))), examples=100, repeats=4)
    assert min(found.sizes[0].error, found.sizes[0].complete_error) > HOPELESS
    assert found.recommendation == found.to_dict()["recommendation"] == "neither"
    assert "Do neither yet" in str(found).replace("\n", " ")


def test_a_budget_for_everything_is_a_table():
    found = plan(terms(budget=D), examples=100, repeats=3)
    assert found.recommendation == "complete"
    assert "buys all attributes" in str(found)


def test_sums_of_money_have_no_rounding_errors():
    text = terms().text.replace("budget_per_example = 6", "budget_per_example = 0.6")
    cheap = re.sub(r"(\[attributes.*\])", r"\1\nprice = 0.1", text)
    for size in plan(Terms.parse(cheap), examples=[60, 61, 70], repeats=3).to_dict()["sizes"]:
        assert [size["cost"], size["cost_high"]] == [round(size[name], 3) for name in ("cost", "cost_high")]


@pytest.mark.slow
def test_complete_rows_are_advised_where_they_find_the_same_for_less():
    found = plan(terms(), examples=[60, 300], r2=0.8, repeats=6)
    assert found.sizes[0].complete_all_found.value >= 0.8 > found.sizes[0].all_found.value
    assert found.recommendation == "complete"
    assert "If an example may be measured completely, do not do an adaptive study" in " ".join(found.advice)


def test_attributes_that_say_nothing_are_not_worth_a_study():
    assert "even the best model has" in " ".join(plan(terms(), examples=100, r2=0.02, repeats=3).advice)


@pytest.mark.slow
def test_an_old_table_shows_what_is_right_and_its_incomplete_rows_are_left_out():
    table = old_table()
    table.loc[7, "a5"] = np.nan
    table["a6"] = 1.0
    found = plan(terms(), table=table, examples=[150, 300], repeats=3)
    assert "right is what the whole table chooses: a3, a11" in found.assumptions
    assert "299 complete rows of the table (incomplete and left out: 1)" in found.assumptions[0]
    assert "Leave out what does not vary: a6" in " ".join(found.advice)
    assert found.sizes[0].best == pytest.approx(0.25 / 2.25, rel=0.4)


def test_the_held_out_rows_of_a_table_are_not_learned_from():
    population = OldTable.of(terms(), old_table())
    for n in (100, 5000):
        draw = population.draw(n, np.random.default_rng(1))
        assert len(draw.y) == n
        assert not set(draw.y) & set(draw.y_new)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"r2": 0.0}, "r2 must be a finite number > 0"),
        ({"auc": 0.8}, "auc is a guess for a target that is one of two classes, and y is a number: give r2 instead"),
        ({"share": 0.5}, "share is a guess for a target that is one of two classes"),
        ({"correlation": 1.0}, "correlation must be"),
        ({"needed": 3}, "needed must be between 1 and the number of columns that a prediction may need"),
        ({"needed": ["a33"]}, "there is no attribute 'a33'; did you mean 'a3'"),
        ({"needed": ["a3", "y"]}, "needed must name attributes, and 'y' is the target"),
        ({"needed": ["a1", "a2", "a3"]}, "names attributes with 3 columns, but n_nonzero_coefs = 2"),
        ({"needed": []}, "needed must name attributes"),
        ({"needed": "a3"}, "needed must be an integer"),
        ({"examples": []}, "examples is empty"),
        ({"examples": [1]}, "examples must be >= 2"),
        ({"repeats": 1}, "repeats must be >= 2"),
        ({"wanted": 1.0}, "wanted must be"),
        ({"table": [[1.0]]}, "table must be a data frame"),
        ({"table": old_table().drop(columns="a3")}, "has no column 'a3'"),
        ({"table": old_table(40)}, "40 of 40 rows"),
        ({"table": old_table().assign(a3=np.nan)}, "0 of 300 rows .* only such rows can be used, and 50 or more"),
        ({"table": old_table().assign(a3="high")}, "row 0 of the table: a3 must be a number"),
        ({"table": old_table().assign(y=1.0)}, "y is 1.0 in every row"),
        ({"table": old_table(), "needed": 1}, r"give a table or a guess \(needed\), not both"),
        ({"table": old_table(), "r2": 0.5, "correlation": 0.1}, r"guess \(r2, correlation\), not both"),
    ],
)
def test_wrong_guesses_and_tables_are_named(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        plan(terms(), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"auc": 0.5}, "auc must be"),
        ({"share": 1.0}, "share must be"),
        ({"r2": 0.5}, "r2 is a guess for a target that is a number, and y is one of two classes: give auc and share"),
    ],
)
def test_wrong_guesses_of_classes_are_named(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        plan(terms(target="kind = 'class'"), **settings)


def test_levels_are_drawn_as_the_model_has_them():
    kinds = "[attributes.b]\nkind='yes/no'\n[attributes.o]\nkind='ordered'\nlevels=['x','y','z']\n"
    kinds += "[attributes.c]\nkind='category'\nlevels=['x','y','z']\n"
    guess = Guess(terms(attributes=kinds), 2, 0.5, 0.8, 0.5, 0.3)
    X = guess.draw(3000, np.random.default_rng(0)).X
    assert X.shape == (3000, D + 4)
    assert [np.unique(X[:, j]).tolist() for j in range(D, D + 4)] == [[0, 1], [0, 1, 2], [0, 1], [0, 1]]
    assert np.mean(X[:, D:], axis=0) == pytest.approx([1 / 2, 1, 1 / 3, 1 / 3], abs=0.05)
    assert np.max(X[:, -2] + X[:, -1]) == 1
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize(("auc", "share"), [(0.8, 0.5), (0.7, 0.1)])
def test_classes_have_the_auc_and_the_share_that_were_guessed(auc, share):
    from sklearn.metrics import roc_auc_score

    guess = Guess(terms(target="kind = 'class'"), 2, 0.5, auc, share, 0.0)
    draw = guess.draw(20_000, np.random.default_rng(0))
    best = guess._logit[0] * _signal(draw) + guess._logit[1]
    assert np.mean(draw.y) == pytest.approx(share, abs=0.015)
    assert roc_auc_score(draw.y, best) == pytest.approx(auc, abs=0.015)


def _signal(draw):
    """The standardised sum of both right columns with the signs that fit the targets."""
    x = draw.X[:, draw.right]
    signal = x @ np.sign([np.cov(column, draw.y)[0, 1] for column in x.T])
    return (signal - signal.mean()) / signal.std()


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (1, "1 column has an effect; it is drawn anew for each study"),
        (2, "2 columns have equal effects; they are drawn anew for each study"),
        (["a1"], "a1 has an effect of random sign"),
        (["a1", "a2"], "a1, a2 have equal effects of random sign"),
    ],
)
def test_one_needed_column_is_in_the_singular(needed, said):
    assert Guess(terms(), needed).assumptions[0].startswith(said)


def test_classes_are_planned_with_the_log_loss():
    found = plan(terms(target="kind = 'class'"), examples=400, auc=0.9, repeats=4)
    assert "mean log loss" in str(found)
    assert found.sizes[0].best < found.sizes[0].error < 1.0
    assert found.theorem is None


def test_the_theorem_is_shown_where_prices_are_equal():
    assert plan(terms(), examples=60, needed=1, repeats=2).theorem.examples > 1e6
    nothing = plan(terms(), examples=60, needed=2, repeats=2)
    assert "promises nothing for these terms" in str(nothing)
    assert json.loads(json.dumps(nothing.to_dict(), allow_nan=False))["theorem_examples"] is None


def test_dear_panels_limit_what_can_be_right():
    more = "[panels.scan]\nprice = 5.0\n[attributes.b1]\npanel = 'scan'\n[attributes.b2]\npanel = 'scan'\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dear = terms(attributes=more, more="prediction_budget = 2.0")
    guess = Guess(dear, 2, 0.5, 0.8, 0.5, 0.0)
    for seed in range(20):
        right = guess.draw(2, np.random.default_rng(seed)).right
        assert right.size == 2
        assert dear.cost_model.cost(right) <= prediction_limit(dear) == 2.0
    with pytest.raises(InvalidInputError, match="cost 5, and a prediction may cost 2"):
        plan(dear, needed=["b1"])


def test_as_many_columns_have_an_effect_as_is_said():
    prices = {"scan": 3.0, "blood": 2.0, "urine": 2.0}
    panels = "".join(f"[panels.{name}]\nprice = {price}\n" for name, price in prices.items())
    names = {"s": "scan", "b1": "blood", "b2": "blood", "u1": "urine", "u2": "urine"}
    text = "n_nonzero_coefs = 4\nbudget_per_example = 8\nprediction_budget = 4\n[target]\nname = 'y'\n" + panels
    dear = Terms.parse(text + "".join(f"[attributes.{name}]\npanel = '{panel}'\n" for name, panel in names.items()))
    assert most_columns(dear) == 4  # blood and urine
    for needed in range(1, 5):
        guess = Guess(dear, needed, 0.5, 0.8, 0.5, 0.0)
        assert guess.assumptions[0].startswith(f"{needed} column")
        drawn = [guess.draw(2, np.random.default_rng(seed)).right for seed in range(20)]
        assert {right.size for right in drawn} == {needed}
        assert all(dear.cost_model.cost(right) <= 4.0 for right in drawn)
        assert (0 in np.concatenate(drawn)) == (needed == 1)  # the scan is one column, and leaves no money for others
    cheap = Terms.parse(dear.text.replace("prediction_budget = 4", "prediction_budget = 3"))
    assert plan(cheap, examples=60, repeats=2).assumptions[0].startswith("2 columns")
    with pytest.raises(InvalidInputError, match=r"number of columns that a prediction may need and buy \(2\), got 3"):
        plan(cheap, needed=3)


def test_the_clinic_in_a_plan():
    clinic = make_clinic(400)
    table = clinic.to_pandas().assign(stay=clinic.y)
    alone = {name for name in clinic.prices if clinic.panels.count(name) == 1}
    text = "n_nonzero_coefs = 7\nbudget_per_example = 100\ncurrency = 'EUR'\n[target]\nname = 'stay'\n"
    text += "".join(f"[panels.'{name}']\nprice = {p}\n" for name, p in clinic.prices.items() if name not in alone)
    for name, panel in zip(clinic.feature_names, clinic.panels, strict=True):
        price = f"price = {clinic.prices[panel]}" if panel in alone else f"panel = '{panel}'"
        text += f"[attributes.'{name}']\n{price}\n"
    found = plan(Terms.parse(text), table=table, examples=200, repeats=2)
    assert found.sizes[0].cost <= 200 * 100
    assert "in EUR" in str(found)
