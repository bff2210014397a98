"""What is left out of the fast tests is the product, and no value in it."""

from itertools import product

import pytest

import levels

SOLVERS, LOSSES, SHAPES = list("abcde"), [1, 2], ["tall", "wide", "square"]


@pytest.fixture
def level(monkeypatch):
    return lambda name: monkeypatch.setattr(levels, "LEVEL", name)


@pytest.mark.parametrize("solvers", [SOLVERS, SOLVERS[:1], SOLVERS * 4])
def test_values_take_turns(level, solvers):
    level("fast")
    rows = levels.in_turn("solver,loss,shape", solvers, LOSSES, SHAPES).args[1]
    assert len(rows) == max(len(solvers), 6)
    assert {row[0] for row in rows} == set(solvers)
    assert {row[1:] for row in rows} == set(product(LOSSES, SHAPES))
    for name in ("pairs", "all"):
        level(name)
        assert levels.in_turn("solver,loss,shape", solvers, LOSSES, SHAPES).args[1] == [
            *product(solvers, LOSSES, SHAPES)
        ]


def test_every_value_has_its_turn_in_some_test(level):
    level("fast")
    turns = [levels.turn(LOSSES, f"test_{number}") for number in range(20)]
    assert sorted(set(map(tuple, turns))) == [(1,), (2,)]
    assert levels.turn(LOSSES, "test_7") == turns[7]
    assert levels.turn([], "test_7") == []
    level("pairs")
    assert levels.turn(LOSSES, "test_7") == LOSSES


def test_parameters_keep_their_names(level):
    level("fast")
    named = [pytest.param("x", id="first"), pytest.param("y", id="second")]
    [one, other] = levels.in_turn("solver,loss", named, LOSSES).args[1]
    assert (one.id, one.values) == ("first-1", ("x", 1))
    assert (other.id, other.values) == ("second-2", ("y", 2))


def test_a_level_has_the_tests_of_those_below(level):
    counts = []
    for name in levels.LEVELS:
        level(name)
        tests = [levels.only_at(least)(print) for least in levels.LEVELS]
        counts.append(len([test for test in tests if test is not None]))
        assert len(levels.at("pairs", "abc")) == (0 if name == "fast" else 3)
    assert counts == [1, 2, 3]


def test_hypothesis_draws_fewer_examples(level):
    level("fast")
    assert (levels.draws(100).max_examples, levels.draws(4).max_examples) == (15, 4)
    level("pairs")
    assert levels.draws(100).max_examples == 100
