"""A plan simulates the study of the terms, and says when not to do it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.datasets import make_clinic
from hardthresh.limited import ArraySource, learn
from hardthresh.study import Terms, plan, progress
from hardthresh.study.population import Guess, OldTable, prediction_limit
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
    found = plan(terms(more="total_budget = 600.0"), examples=[100, 800], r2=0.3, repeats=4)
    assert found.allowed_examples == int(np.interp(600.0, [size.cost for size in found.sizes], [100, 800]))
    assert "they allow too few" in found.advice[0]


def test_a_budget_for_everything_is_a_table():
    found = plan(terms(budget=D), examples=100, repeats=3)
    assert found.complete_is_better
    assert "buys all attributes" in str(found)


@pytest.mark.slow
def test_complete_rows_are_advised_where_they_find_the_same_for_less():
    found = plan(terms(), examples=[60, 300], r2=0.8, repeats=6)
    assert found.sizes[0].complete_all_found.value >= 0.8 > found.sizes[0].all_found.value
    assert found.complete_is_better
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
        ({"auc": 0.5}, "auc must be"),
        ({"correlation": 1.0}, "correlation must be"),
        ({"share": 1.0}, "share must be"),
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
        ({"table": old_table().assign(a3="high")}, "row 0 of the table: a3 must be a number"),
        ({"table": old_table().assign(y=1.0)}, "y is 1.0 in every row"),
        ({"table": old_table(), "needed": 1}, "not both"),
    ],
)
def test_wrong_guesses_and_tables_are_named(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        plan(terms(), **settings)


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
