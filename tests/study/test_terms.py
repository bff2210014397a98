"""Terms are read from TOML, or refused with the entry that is wrong; typed values become numbers in one unit."""

import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.study import Terms

CLINIC = """
title = "Days in hospital"
n_nonzero_coefs = 2
budget_per_example = 8.0
[target]
name = "stay"
unit = "days"
[panels.blood]
price = 3.0
[attributes.creatinine]
unit = "umol/l"
units = { "mg/dl" = 88.42 }
range = [30, 300]
possible = [1, 5000]
panel = "blood"
[attributes.children]
kind = "integer"
[attributes.smoker]
kind = "yes/no"
[attributes.pain]
kind = "ordered"
levels = ["none", "mild", "severe"]
panel = "blood"
[attributes.ward]
kind = "category"
levels = ["A", "B", "C"]
price = 2.0
"""
TERMS = Terms.parse(CLINIC)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("creatinine", 80, 80.0),
        ("creatinine", " 80 ", 80.0),
        ("creatinine", "8e1 umol/l", 80.0),
        ("creatinine", "2 mg/dl", 176.84),
        ("creatinine", None, None),
        ("creatinine", "Missing", None),
        ("children", "3", 3.0),
        ("smoker", "Yes", 1.0),
        ("smoker", False, 0.0),
        ("smoker", 1, 1.0),
        ("pain", "severe", 2.0),
        ("ward", "b", 1.0),
        ("stay", "4 days", 4.0),
    ],
)
def test_typed_values(name, typed, value):
    assert TERMS.attribute(name).parse(typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("creatinine", "80 mmol/l", "creatinine is in umol/l, mg/dl"),
        ("creatinine", "8,0", "write a point, not a comma"),
        ("creatinine", "high", "must be a number"),
        ("creatinine", "nan", "must be a number"),
        ("creatinine", float("nan"), "finite number"),
        ("creatinine", "1e999", "finite number"),
        ("creatinine", 10**400, "finite number"),
        ("creatinine", True, "must be a number"),
        ("creatinine", [80], "must be a number"),
        ("creatinine", 0.5, "not possible: it must be from 1 to 5000"),
        ("creatinine", "٣", "must be a number"),
        ("creatinine", "1" * 100_000 + "x\ny", "at most 200 printable characters"),
        ("creatinine", "8\n0", "at most 200 printable characters"),
        ("ward", "A" * 201, "at most 200 printable characters"),
        ("children", 1.5, "whole number"),
        ("smoker", "maybe", "must be yes or no"),
        ("pain", "2", "must be one of none, mild, severe"),
        ("ward", "'; DROP TABLE events; --", "must be one of A, B, C"),
    ],
)
def test_values_that_are_refused(name, typed, message):
    with pytest.raises(InvalidInputError, match=message):
        TERMS.attribute(name).parse(typed)


def test_attributes_become_columns_and_panels():
    assert TERMS.columns == ["creatinine", "children", "smoker", "pain", "ward=B", "ward=C"]
    model = TERMS.cost_model
    assert model.cost([0, 3]) == 3.0
    assert model.cost([4, 5]) == 2.0
    assert model.whole_panels([4]).tolist() == [4, 5]
    assert TERMS.attribute("ward").encode(2.0) == [0.0, 1.0]
    assert TERMS.attribute("ward").encode(0.0) == [0.0, 0.0]
    assert [attribute.name for attribute in TERMS.attributes_at([0, 5])] == ["creatinine", "ward"]


@pytest.mark.parametrize(("name", "value"), [("creatinine", 80.0), ("smoker", 1.0), ("pain", 2.0), ("stay", 4.5)])
def test_what_is_shown_can_be_typed(name, value):
    attribute = TERMS.attribute(name)
    assert attribute.parse(attribute.format(value)) == value
    assert attribute.parse(attribute.format(None)) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_nonzero_coefs = 2", "n_nonzero_coefs = 0", "n_nonzero_coefs must be >= 1"),
        ("n_nonzero_coefs = 2", "n_nonzero = 2", "did you mean 'n_nonzero_coefs'"),
        ("n_nonzero_coefs = 2", "", "need n_nonzero_coefs"),
        ("budget_per_example = 8.0", "budget_per_example = 2.5", "'blood' costs 3, more than the budget"),
        ("budget_per_example = 8.0", "budget_per_example = inf", "budget_per_example must be"),
        ("budget_per_example = 8.0", "budget_per_example = 8\ntotal_budget = 5", "total_budget is 5, less than"),
        ('panel = "blood"', 'panel = "blod"', "did you mean 'blood'"),
        ("[panels.blood]", "[panels.smoker]\nprice = 1\n[panels.blood]", "'smoker' is both a panel"),
        ("[panels.blood]", "[panels.urine]\nprice = 1\n[panels.blood]", "panel 'urine' has no attributes"),
        ("price = 3.0", "price = -3.0", "price of panel 'blood'"),
        ("range = [30, 300]", "range = [300, 30]", "must increase"),
        ("possible = [1, 5000]", "possible = [40, 5000]", "must lie within what is possible"),
        ('unit = "umol/l"', "", "give its own unit too"),
        ('kind = "ordered"', 'kind = "number"', "must have levels if"),
        ('kind = "yes/no"', 'kind = "yes"', "must be one of number, integer"),
        ('kind = "yes/no"', 'kind = "yes/no"\nrange = [0, 1]', "cannot have 'range'"),
        ('levels = ["A", "B", "C"]', 'levels = ["A", "a"]', "must differ"),
        ("[attributes.children]", "[attributes.stay]", "both an attribute and the target"),
        ("[attributes.children]", '[attributes."a=b"]', "has no '='"),
        ("[attributes.children]", '[attributes."a,b"]', "no comma"),
        ("[attributes.children]", "[attributes.Smoker]", "'Smoker' and 'smoker' look alike"),
        ("[attributes.children]", "[attributes.subject]", "a column of the export"),
        ("[attributes.ward]", "[attributes.state]", "'state' is the name of a column of the export"),
        (
            "[attributes.smoker]",
            '[attributes.Ward]\nkind = "category"\nlevels = ["x", "y"]\n[attributes.smoker]',
            "and 'ward' look alike",
        ),
        (
            "[panels.blood]",
            "[panels.Blood]\nprice = 1\n[panels.blood]",
            "'Blood' and 'blood' look alike: rename a panel",
        ),
        ('levels = ["A", "B", "C"]', 'levels = ["None", "Missing"]', "must differ from each other and from 'missing'"),
        ('name = "stay"\nunit = "days"', 'name = "a=b,c"\nkind = "class"', "name of the target has no '='"),
        ('name = "stay"', 'name = " stay"', "no blanks at its ends"),
        ("budget_per_example = 8.0", "budget_per_example = 8\nhold_hours = 1e12", "hold_hours must be .* <= 1e\\+06"),
        ('"mg/dl" = 88.42', '"umol/l" = 2.0', "has the unit 'umol/l' among its other units"),
        ('name = "stay"', 'name = "stay"\nkind = "count"', "kind of the target must be number or class"),
        ("[target]", "[target", "not TOML"),
    ],
)
def test_terms_that_are_refused(old, new, message):
    text = CLINIC.replace(old, new, 1)
    assert text != CLINIC
    with pytest.raises(InvalidInputError, match=message):
        Terms.parse(text)


def test_names_are_the_same_however_their_accents_are_composed():
    text = CLINIC.replace('"C"]', '"Re\u0301a"]').replace("[panels.blood]", '[panels."he\u0301matologie"]')
    text = text.replace('"blood"', '"h\u00e9matologie"').replace("attributes.children", 'attributes."a\u0302ge"')
    terms = Terms.parse(text)
    assert [*terms.panels] == ["h\u00e9matologie"]
    assert terms.attribute("\u00e2ge").name == "\u00e2ge"
    assert terms.attribute("ward").parse("re\u0301a") == terms.attribute("ward").parse("r\u00e9a") == 2.0
    with pytest.raises(InvalidInputError, match="look alike"):
        Terms.parse(text.replace("attributes.smoker", 'attributes."\u00e2ge"'))


def test_a_file_of_terms_is_named_in_its_errors(tmp_path):
    path = tmp_path / "terms.toml"
    path.write_text(CLINIC.replace('"Days in hospital"', "3"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"terms\.toml: title must be"):
        Terms.read(path)
    path.write_text("\ufeff" + CLINIC, encoding="utf-8")  # as Notepad writes it
    assert Terms.read(path).columns == TERMS.columns
    path.write_bytes(b"\xff")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        Terms.read(path)


def test_two_classes():
    terms = Terms.parse(CLINIC.replace('unit = "days"', 'kind = "class"\nlevels = ["home", "died"]'))
    assert terms.is_class
    assert terms.target.parse("Died") == 1.0
    assert terms.target.format(0.0) == "home"
    assert type(terms.estimator).__name__ == "LimitedAttributeLogisticRegression"
