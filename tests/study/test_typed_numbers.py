"""Texts that people type for numbers, and what a message says about them."""

import pytest

from hardthresh.core.errors import InvalidInputError
from hardthresh.study import Attribute, Terms

ZINC = Attribute("zinc", unit="mg/kg", units={"%": 10_000.0})
PULSE = Attribute("pulse", unit="/min")
PH = Attribute("pH")


@pytest.mark.parametrize(
    ("attribute", "typed", "message"),
    [
        (PH, "6.6x", "pH has no unit, got '6.6x'; write the number alone"),
        (ZINC, "5 g", "zinc is in mg/kg, %, got '5 g'"),
        (ZINC, "2026-11-28", "that looks like a date"),
        (ZINC, "28.11.2026 12:30", "that looks like a date"),
        (ZINC, "1 000", "write 1000"),
        (ZINC, "1_000 mg/kg", "write 1000 mg/kg"),
        (ZINC, "1 000 %", "write 1000 %"),
        (ZINC, "-1'234'567", "write -1234567"),
        (ZINC, "1,234,567.5", "write 1234567.5"),
        (ZINC, "1 000,5", "write 1000.5"),
        (ZINC, "2026-11-28T10:00", "that looks like a date"),
        (ZINC, "1/2", "give one number, a fraction with a decimal point, such as 0.5"),
        (ZINC, "1,23e3", "write a point, not a comma"),
        (ZINC, "6,4", "write a point, not a comma: 6.4"),
        (ZINC, "0,125 mg/kg", "write a point, not a comma: 0.125 mg/kg"),
        (ZINC, "1,200", "write a point, not a comma: 1.200, or if thousands were meant 1200"),
        (ZINC, "1.000,5", "write a point, not a comma"),
        (ZINC, "<5", "below the detection limit as missing, or by a rule fixed beforehand, as half the limit"),
        (ZINC, "> 900", "above the limit of the instrument as missing, or by a rule fixed beforehand"),
        (ZINC, "trace", "zinc must be a number, or missing; got 'trace'"),
    ],
)
def test_a_text_that_is_no_number_is_refused_with_advice(attribute, typed, message):
    with pytest.raises(InvalidInputError) as refused:
        attribute.parse(typed)
    assert str(refused.value).endswith(message)


def test_units_that_look_like_a_part_of_a_number_are_units():
    assert PULSE.parse("72/min") == PULSE.parse("72 /min") == PULSE.parse(72)
    assert ZINC.parse("1.5%") == 15_000.0


@pytest.mark.parametrize("entry", ["[attributes.a]\nprice = 0.0", "[attributes.a]\npanel = 'p'\n[panels.p]\nprice = 0"])
def test_what_is_free_needs_a_small_price(entry):
    text = f"n_nonzero_coefs = 1\nbudget_per_example = 1\n[target]\nname = 'y'\n{entry}\n"
    with pytest.raises(InvalidInputError, match=r"must be more than 0, got 0.*very small price, such as 0\.01"):
        Terms.parse(text)
    assert Terms.parse(text.replace("= 0.0", "= 0.01").replace("= 0\n", "= 0.01\n")).cost_model.price.tolist() == [0.01]
