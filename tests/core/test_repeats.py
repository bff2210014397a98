"""Names that must not occur twice."""

import json

import pytest

from hardthresh.core.repeats import first_repeat, without_repeats


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return super().__eq__(other)


def test_the_first_repeated_name_is_found_in_one_pass():
    names = [Counted(f"name {number}") for number in range(500)]
    assert first_repeat(names) is None
    assert first_repeat([*names, Counted("name 499"), Counted("name 0")]) == "name 499"
    assert Counted.compared < 500  # each name with each would be 124,750


def test_json_without_repeats_is_what_python_reads_and_else_an_error():
    text = '{"a": {"b": 1}, "b": [2]}'
    assert json.loads(text, object_pairs_hook=without_repeats) == json.loads(text)
    with pytest.raises(ValueError, match="'b' is given twice"):
        json.loads('{"a": {"b": 1, "c": 2, "b": 3}}', object_pairs_hook=without_repeats)
