"""What is left out of the fast tests is the product, and no value in it."""

import runpy
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

import levels

pytest_plugins = ["pytester"]
SOLVERS, LOSSES, SHAPES = list("abcde"), [1, 2], ["tall", "wide", "square"]


@pytest.fixture
def level(monkeypatch):
    return lambda name: monkeypatch.setattr(levels, "LEVEL", name)


@pytest.mark.parametrize("solvers", [SOLVERS, SOLVERS[:1], SOLVERS * 4])
def test_values_take_turns(level, solvers):
    level("fast")
    rows = levels.in_turn("solver,loss,shape", solvers, LOSSES, SHAPES).args[1]
    assert len(rows) == max(len(solvers), 3)
    assert [set(values) for values in zip(*rows, strict=True)] == [set(solvers), set(LOSSES), set(SHAPES)]
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


def test_rows_cover_all_meetings(level):
    rows = list(product(SOLVERS, LOSSES, SHAPES))
    kept = levels.covering(rows, set)
    assert kept == [row for row in rows if row in kept]
    assert len(kept) == len(SOLVERS)
    assert set().union(*kept) == {*SOLVERS, *LOSSES, *SHAPES}
    pairs = levels.covering(rows, lambda row: {row[:2], row[1:], row[::2]})
    assert len(SOLVERS) * len(SHAPES) <= len(pairs) < len(rows)
    assert {row[::2] for row in pairs} == set(product(SOLVERS, SHAPES))


@pytest.fixture
def calls(pytester):
    """Return how the calls of a test in a file of its own are thinned."""
    pytester.makeini("[pytest]\nmarkers =\n    at_most: calls\n    slow_beyond: calls\n    slow: a test")

    def collect(marker=""):
        return pytester.getitems(f"""
            import pytest

            {marker}
            @pytest.mark.parametrize("solver, loss", [("a", 1), ("a", 2), ("b", 1), ("b", 2)])
            @pytest.mark.parametrize("shape", ["tall", "wide", "square"])
            @pytest.mark.parametrize("kind", ["dense", "sparse"])
            def test_it(solver, loss, shape, kind):
                pass
        """)

    return collect


def test_each_row_of_each_decorator_is_kept(level, calls):
    tests = calls()
    levels.mark_slow(tests)
    assert all(test.get_closest_marker("slow") is None for test in tests)
    level("pairs")
    assert levels.thinned(tests) == tests
    level("fast")
    kept = [test.callspec.params for test in levels.thinned(tests)]
    assert {(one["solver"], one["loss"]) for one in kept} == set(product("ab", [1, 2]))
    assert {one["shape"] for one in kept} == {"tall", "wide", "square"}
    assert {one["kind"] for one in kept} == {"dense", "sparse"}
    assert len(kept) == 4
    assert levels.thinned(tests[:1]) == tests[:1]


def test_a_marked_test_has_few_calls(level, calls):
    tests = calls("@pytest.mark.at_most(2)")
    level("fast")
    kept = levels.thinned(tests)
    assert len(kept) == 2
    assert kept == levels.thinned(tests)
    assert set(kept) < set(tests)
    level("all")
    assert levels.thinned(tests) == tests


def test_all_but_a_few_calls_are_slow(calls):
    tests = calls("@pytest.mark.slow_beyond(5)")
    levels.mark_slow(tests)
    assert len(tests) == 24
    assert len([test for test in tests if test.get_closest_marker("slow") is None]) == 5


def test_values_are_spread_evenly():
    assert levels.spread(range(10), 3, 0) == [0, 3, 6]
    assert levels.spread(range(10), 3, 5) == [1, 5, 8]
    assert levels.spread(range(10), 30, 5) == range(10)


def test_the_slow_examples_exist():
    """An example that is renamed would be quick again without a word."""
    root = Path(__file__).parents[1]
    slow = runpy.run_path(str(root / "conftest.py"))["SLOW"]
    names = {name for name in slow if not name.endswith(".rst")}
    assert slow - names <= {path.name for path in (root / "docs").rglob("*.rst")}
    for name in names:
        module, _, thing = name.rpartition(".")
        assert hasattr(import_module(module), thing), name


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
    assert (levels.draws(100).max_examples, levels.draws(4).max_examples) == (10, 4)
    level("pairs")
    assert levels.draws(100).max_examples == 100
