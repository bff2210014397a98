"""The runner of the experiments, and the experiments that come with it."""

import json
import re
import signal
import tomllib
from importlib import import_module
from math import inf, nan
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from hardthresh.cli.reproduce import load_runner
from hardthresh.core.errors import InvalidInputError
from levels import at, at_most, only_at

PAPERS = Path(__file__).parents[2] / "papers"


@pytest.fixture
def runner():
    return load_runner(PAPERS)


def rows(runner, **fields):
    return runner.digits.digits([{"key": "n", "expected": "5", **fields}])


# --- expectations ---


@pytest.mark.parametrize(
    ("fields", "right", "wrong"),
    [
        ({"equals": 5}, [5], [5.5, inf]),
        ({"equals": 5, "within": 1}, [4, 6], [3.9, 6.1]),
        ({"equals": -5, "relative": 0.2}, [-4, -6], [-3.9, -6.1, 5]),
        ({"equals": inf, "within": 1}, [inf], [1e9, -inf]),
        ({"low": 4}, [4, inf], [3, -inf]),
        ({"high": 6}, [6, -inf], [7, inf]),
        ({"low": 4, "high": 6}, [4, 6], [3, 7]),
    ],
)
def test_bounds(runner, fields, right, wrong):
    [row] = rows(runner, **fields)
    assert all(row.judge({"n": number})["ok"] for number in right)
    assert not any(row.judge({"n": number})["ok"] for number in [*wrong, nan])


def test_a_number_that_is_not_there_is_not_ok(runner):
    [row] = rows(runner, low=0)
    assert row.judge({"m": 1.0}) == {"key": "n", "what": "n", "expected": "5", "got": [], "ok": False}


@pytest.mark.parametrize(
    ("mode", "applies"),
    [
        ("both", [True, False, True, False]),
        ("quick", [True, False, False, False]),
        ("full", [False, False, True, False]),
    ],
)
def test_digits_are_those_of_the_first_seed(runner, mode, applies):
    [row] = rows(runner, equals=5, mode=mode)
    assert [row.applies(full, seed) for full in (False, True) for seed in (0, 1)] == applies


def test_digits_may_be_those_of_one_kernel(runner, monkeypatch):
    every, mine, other = (
        *rows(runner, equals=5),
        *rows(runner, equals=5, kernel="A"),
        *rows(runner, equals=6, kernel="B"),
    )
    monkeypatch.setattr(runner.digits, "blas_kernel", lambda: "A")
    assert [row.applies(False, 0) for row in (every, mine, other)] == [True, True, False]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "no bound"),
        ({"within": 1}, "a margin without equals"),
        ({"low": 1, "within": 1}, "a margin without equals"),
        ({"high": inf}, "a number without a bound"),
        ({"high": [inf]}, "a number without a bound"),
        ({"high": [1, inf]}, "a number without a bound"),
        ({"low": [0, -inf], "high": [1, inf]}, "a number without a bound"),
        ({"low": 2, "high": 1}, "a lower bound 2 above its upper bound 1"),
        ({"low": [0, 0], "high": [1, 1, 1]}, "lists of different lengths: 2 of low, 3 of high"),
        ({"equals": [1, 2, 3], "within": [1, 2]}, "lists of different lengths: 3 of equals, 2 of within"),
        ({"equals": []}, r"equals = \[\]"),
        ({"equals": nan}, "equals = nan; it must be a number"),
        ({"equals": "5"}, "equals = '5'; it must be a number"),
        ({"equals": [1, True]}, r"equals = \[1, True\]; it must be a number"),
        ({"equals": 5, "within": -1}, "within = -1; it must be finite and at least 0"),
        ({"equals": 5, "within": inf}, "within = inf; it must be finite and at least 0"),
        ({"equals": 5, "low": 4}, "more bounds than equals"),
        ({"equals": 5, "within": 1, "relative": 0.1}, "more bounds than equals"),
        ({"equals": 5, "mode": "fast"}, "mode = 'fast'"),
        ({"low": 0.1, "high": [1, 1.1]}, "bounds from 0.1 to 1.1 and no reason"),
        ({"equals": 5, "kernel": 1}, "kernel = 1, which is no text"),
        ({"equals": 5, "seed": 0}, "an unknown field 'seed'"),
        ({"equals": 5, "tolerance": 1}, "an unknown field 'tolerance'"),
        ({"equals": 5, "expected": 5}, "expected = 5, which is no text"),
    ],
)
def test_a_row_that_could_not_fail_or_is_not_clear_is_refused(runner, fields, problem):
    with pytest.raises(InvalidInputError, match=rf"digits\.toml: the row 'n' has {problem}"):
        rows(runner, **fields)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"expected": "5", "equals": 5}, "the row 'without a key' has no 'key'"),
        ({"key": "n", "equals": 5}, "the row 'n' has no 'expected'"),
    ],
)
def test_a_row_without_a_field_that_it_needs_is_refused(runner, row, said):
    with pytest.raises(InvalidInputError, match=said):
        runner.digits.digits([row])


def test_two_rows_about_the_same_are_refused(runner):
    """One of them is a copy whose key was not changed."""
    row = {"key": "n", "expected": "5", "equals": 5}
    with pytest.raises(InvalidInputError, match=r"^here: there are two rows 'n' with mode 'both'"):
        runner.digits.digits([row, {**row, "equals": 6, "mode": "both"}], "here")
    apart = [row, {**row, "mode": "full"}, {**row, "kernel": "A"}, {**row, "kernel": "B"}, {**row, "key": "m"}]
    assert len(runner.digits.digits(apart)) == 5
    claim = {"key": "n", "claim": "It is small", "source": "Theorem 1", "high": 2, "verdict": "holds"}
    with pytest.raises(InvalidInputError, match=r"^there: there are two rows 'n' with verdict 'holds'; "):
        runner.claims.claims([claim, {**claim, "high": 3}], {}, "there")
    assert len(runner.claims.claims([claim, {**claim, "high": 1, "verdict": "contradicted"}], {})) == 2


def test_a_message_names_the_file_and_the_item(runner, tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "item.py").write_text("")
    library = runner.Library(tmp_path)
    for name, read in (("claims", library.claims), ("digits", library.digits)):
        path = tmp_path / "paper" / f"{name}.toml"
        path.write_text('[[item]]\nkey = "n"\n')
        with pytest.raises(InvalidInputError, match=re.escape(f"{path}, [[item]]: the row 'n' has no")):
            read("paper", "item")


def test_a_table_in_place_of_rows_is_refused(runner):
    with pytest.raises(InvalidInputError, match=r"rows are written \[\[item\]\]"):
        runner.digits.digits({"key": "n", "expected": "5", "equals": 5})


def test_a_row_may_be_about_several_numbers(runner):
    [row] = rows(runner, equals=[1, 2, inf], within=1)
    assert row.judge({"n": [2, 1, inf]})["ok"]
    for wrong in ([2, 1, 400], [1, 2], [1, 2, inf, inf], [3, 2, inf], 1):
        assert not row.judge({"n": wrong})["ok"]
    [row] = rows(runner, low=0, high=[1, 2])
    assert row.judge({"n": [0, 2]})["ok"]
    assert not row.judge({"n": [2, 0]})["ok"]


def test_numbers_are_written_as_in_the_specification(runner):
    assert runner.show.in_words([27.0, 0.123456, inf]) == "27 / 0.1235 / -"
    assert runner.show.in_words([nan, -inf]) == "nan / -inf"
    assert runner.show.in_words([]) == "missing"


# --- claims ---


def claim(runner, spread=(1.0,) * 10, **fields):
    row = {"key": "n", "claim": "It is small", "source": "Theorem 1", "high": 2, "verdict": "holds", **fields}
    return runner.claims.claims([row], {"n": spread})[0]


@pytest.mark.parametrize(
    ("numbers", "count", "interval"),
    [
        ([2.0, 4.0, 3.0], False, (1.0, 8.0)),  # a ratio of 2 on either side
        ([10, 11, 10], True, (9, 12.1)),  # a ratio of 1.1, and at least 1
        ([7, 7], True, (6, 8)),
        ([1.0, 1.0], False, (1.0 / 1.01, 1.01)),  # a share is no count: at least 1 %
        ([-1.5, 2.0], False, (-5.0, 5.5)),  # of both signs: a difference
        ([0, 3], True, (-3, 6)),
        ([2.0, inf, 4.0], False, (1.0, inf)),
        ([inf, inf], False, (inf, inf)),
    ],
)
def test_the_range_of_the_seeds_is_widened_by_its_length(runner, numbers, count, interval):
    assert runner.claims.widened(numbers, count) == pytest.approx(interval)


def test_a_claim_that_holds_must_be_true_and_within_the_spread(runner):
    row = claim(runner, spread=(1.0, 1.9) * 5)
    assert row.accepted == pytest.approx((1 / 1.9, 2.0))
    assert [row.judge({"n": number})["ok"] for number in (0.5, 0.6, 2.0, 2.1, nan)] == [False, True, True, False, False]
    assert not row.judge({})["ok"]
    assert not row.judge({"n": [1.0, 1.0]})["ok"]


def test_a_contradicted_claim_must_stay_false(runner):
    row = claim(runner, spread=(3.0, 4.0) * 5, verdict="contradicted", reason="the proof is loose")
    assert [row.judge({"n": number})["ok"] for number in (1.9, 2.3, 5.3, 5.4)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("verdict", "ok"),
    [
        ("holds", [True, True, False, False]),  # the inequality alone: at most 2
        ("varies", [False, True, True, False]),  # the range 1 to 3 of the quick runs, widened: 1/3 to 9
        ("contradicted", [False, False, True, True]),
    ],
)
def test_at_full_size_the_inequality_decides(runner, verdict, ok):
    spread = {"holds": (1.0, 1.5), "varies": (1.0, 3.0), "contradicted": (2.5, 3.0)}[verdict]
    row = runner.claims.ClaimAtFullSize(claim(runner, spread=spread * 5, verdict=verdict, reason="a reason"))
    assert [row.judge({"n": number})["ok"] for number in (0.1, 2.0, 8.0, 100.0)] == ok
    assert not row.judge({"n": nan})["ok"]
    assert not row.judge({})["ok"]


def test_at_full_size_digits_replace_the_claim_that_they_measure(runner):
    library = runner.Library(PAPERS)
    for seed in (0, 1):
        rows = runner.rows_about(library, "limited_attributes", "robustness", True, seed)
        claims = {row.key for row, kind in rows.items() if kind == "claim"}
        measured = {row.key for row in library.digits("limited_attributes", "robustness") if row.applies(True, 0)}
        assert claims, "no claim is left"
        assert measured
        assert not claims & measured


@pytest.mark.parametrize(
    ("spread", "fields", "problem"),
    [
        ((1.0,) * 10, {"verdict": "true"}, "verdict = 'true'"),
        (
            (1.0,) * 10,
            {"verdict": "contradicted"},
            "the verdict 'contradicted', but it is true on 10 of 10 seeds: 'holds'",
        ),
        ((1.0,) * 9 + (3.0,), {}, "the verdict 'holds', but it is true on 9 of 10 seeds: 'varies'"),
        ((1.5,) * 9 + (2.1,), {"verdict": "varies"}, "the verdict 'varies' and no reason"),
        ((0.1,) * 9 + (0.6,), {}, "bounds from 0.0167 to 2 and no reason"),
        ((1.0,) * 3, {}, "the numbers of 3 seeds in spread.toml; it needs 10"),
        ((nan,) * 10, {}, "a number that is not a number"),
        ((), {"high": inf}, "no bound"),
        ((), {"high": "2"}, "high = '2'; it must be a number"),
        ((), {"low": 3}, "a lower bound 3 above its upper bound 2"),
        ((), {"limit": 3}, "an unknown field 'limit'"),
        ((), {"count": 1}, "count = 1; it must be true or false"),
        ((), {"source": ""}, "source = '', which is no text"),
    ],
)
def test_a_claim_that_is_not_clear_is_refused(runner, spread, fields, problem):
    with pytest.raises(InvalidInputError, match=rf"claims\.toml: the row 'n' has {problem}"):
        claim(runner, spread, **fields)


def test_the_spread_is_read_as_it_was_written(runner):
    spread = {"item": {'a "key" = 1': [1.0, 2.5, inf, 1 / 3], "b": [3]}}
    assert tomllib.loads(runner.claims.write_spread(spread)) == spread


# --- rows that cannot fail ---

CURVES = {"slow": [8.0, 4.0, 2.0, 1.0, 0.5], "fast": [8.0, 2.0, 0.5, 0.1, 0.02]}


def powerless(runner, summarise, judges):
    """Return the keys of the rows that cannot fail, of two methods with a curve each."""
    cells = [runner.Cell(method, None, {"method": method, "limit": 4}) for method in CURVES]
    rows = [{**cell.arguments, "curve": CURVES[cell.name], "name": "text", "hits": 3} for cell in cells]
    item = runner.Item("", None, lambda rows, full: summarise({row["method"]: row for row in rows}), None, None)
    numbers = item.summarise(rows, False)
    assert all(judge.judge(numbers)["ok"] for judge in judges)
    return [judge.key for judge in runner.power.cannot_fail(item, cells, rows, False, judges)]


def test_numbers_that_depend_on_the_runs_can_fail(runner):
    """A count of iterations, a ratio of two methods, and a single number."""

    def summarise(rows):
        below = {name: next((t for t, f in enumerate(row["curve"]) if f <= 1.0), inf) for name, row in rows.items()}
        return {"count": below["slow"], "ratio": below["slow"] / below["fast"], "hits": rows["fast"]["hits"]}

    judges = [row for key, n in (("count", 3), ("ratio", 1.5), ("hits", 3)) for row in rows(runner, key=key, equals=n)]
    assert powerless(runner, summarise, judges) == []


def test_constants_and_limits_cannot_fail(runner):
    """A constant, the length of a run up to its limit, an argument of the cells, and NaN by which all rows fail."""

    def summarise(rows):
        row = rows["fast"]
        own = float(np.divide(row["curve"][-1], row["curve"][-1]))
        return {"one": 1.0, "length": len(row["curve"]) - 1, "limit": row["limit"], "own": own}

    limits = {"one": {"equals": 1}, "length": {"high": 4}, "limit": {"equals": 4}, "own": {"equals": 1}}
    judges = [row for key, bounds in limits.items() for row in rows(runner, key=key, **bounds)]
    assert powerless(runner, summarise, judges) == [*limits]


def test_a_reason_allows_wider_bounds_that_still_can_fail(runner):
    reason = {"reason": "rounding"}
    bounds = {
        "n": {"low": 2, "high": 25, **reason},
        "m": {"low": 0.01, "high": 900, **reason},
        "k": {"low": 5, "high": 20},
    }
    judges = [row for key, fields in bounds.items() for row in rows(runner, key=key, **fields)]
    assert powerless(runner, lambda rows: dict.fromkeys(bounds, rows["fast"]["curve"][0]), judges) == ["m"]


# --- cells ---


def cell(runner, **arguments):
    return runner.Cell("a / name", lambda **given: {"answer": np.arange(3) / 3, "none": None}, arguments)


def test_a_result_is_the_same_when_it_is_read_again(runner, tmp_path):
    store = runner.cells.Store(tmp_path, "code")
    wanted = cell(runner, shape=(2, 3))
    assert store.read(wanted) is None
    row = store.compute(wanted)
    assert row == store.read(wanted) == {"shape": (2, 3), "answer": [0.0, 1 / 3, 2 / 3], "none": None}
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["a_name"]


def test_arguments_and_code_are_in_the_key(runner, tmp_path):
    runner.cells.Store(tmp_path, "code").compute(cell(runner, d=1))
    for code, d in (("other code", 1), ("code", 2)):
        assert runner.cells.Store(tmp_path, code).read(cell(runner, d=d)) is None
    assert runner.cells.Store(tmp_path, "code").read(cell(runner, d=1)) is not None


def test_a_cell_is_computed_again_with_another_kernel(runner, tmp_path, monkeypatch):
    runner.cells.Store(tmp_path, "code").compute(cell(runner, d=1))
    monkeypatch.setattr(runner.cells, "blas_kernel", lambda: "another")
    assert runner.cells.Store(tmp_path, "code").read(cell(runner, d=1)) is None


def test_a_digest_knows_every_change_of_the_code(runner, tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "notes.txt").write_text("anything")
    before = runner.cells.digest(tmp_path)
    (tmp_path / "notes.txt").write_text("something else")
    assert runner.cells.digest(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2")
    changed = runner.cells.digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({before, changed, runner.cells.digest(tmp_path), runner.cells.digest(tmp_path / "b.py")}) == 4


@pytest.mark.slow
def test_items_are_scripts_of_their_own(runner):
    """The hash of a cell has the script of its item and the helpers: an item must not import another one."""
    library = runner.Library(PAPERS)
    for paper in library.papers():
        for name in library.items(paper):
            for path in library.code(paper, name):
                imported = set(
                    re.findall(rf"^from (?:\.|papers\.{paper}\.)(\w+)", path.read_text(encoding="utf-8"), re.M)
                )
                assert all(module.startswith("_") for module in imported), path


def test_a_result_that_cannot_be_kept_is_an_error(runner, tmp_path):
    wrong = runner.Cell("wrong", lambda: {"answer": object()})
    with pytest.raises(TypeError, match="got object"):
        runner.cells.Store(tmp_path, "code").compute(wrong)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("swallow", [False, True])
def test_an_interrupted_cell_leaves_no_file(runner, tmp_path, swallow):
    """Neither where the interrupt ends the cell's function, nor where something in it catches everything."""

    def function():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pytest.fail("`minimize` would make a result of this")
        except BaseException:
            if not swallow:
                raise
        return {"answer": 1}

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a run in the background has not
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.cells.Store(tmp_path, "code").compute(runner.Cell("cut", function))
        assert [*tmp_path.iterdir()] == []
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_cell_may_be_computed_in_a_thread_where_no_signal_comes(runner, tmp_path):
    rows = []
    thread = Thread(target=lambda: rows.append(runner.cells.Store(tmp_path, "code").compute(cell(runner, d=1))))
    thread.start()
    thread.join()
    assert rows[0]["d"] == 1


# --- the experiments that come with the repository ---


def test_expected_rows_belong_to_items(runner):
    library = runner.Library(PAPERS)
    for paper in library.papers():
        assert {*library._toml(paper, "digits")} <= {"title", *library.items(paper)}
        assert {*library._toml(paper, "claims")} <= {"check", *library.items(paper)}
        assert {*library.quick_check(paper)} <= {*library.items(paper)}
        for name in library.items(paper):
            claims = library.claims(paper, name)
            assert claims or library.digits(paper, name), f"{paper}/{name} checks nothing"
            assert {*library._toml(paper, "spread").get(name, {})} == {claim.key for claim in claims}, f"{paper}/{name}"


@only_at("pairs")
@pytest.mark.parametrize("full", [False, True])
def test_cells_have_names_and_keys_of_their_own(runner, tmp_path, full):
    library = runner.Library(PAPERS)
    store = runner.cells.Store(tmp_path, "code")
    for paper in library.papers():
        for name in library.items(paper):
            cells = library.item(paper, name).cells(full, 0)
            assert len({store._path(cell) for cell in cells}) == len(cells) > 0


def drawn(cells):
    """The settings of the cells that draw something, one for each seed of a list of them."""
    found = set()
    for cell in cells:
        lists = [name for name, value in cell.arguments.items() if "seed" in name and isinstance(value, list)]
        settings = {name: value for name, value in cell.arguments.items() if name not in lists}
        for name in lists:
            found |= {(cell.function, json.dumps(settings, sort_keys=True), seed) for seed in cell.arguments[name]}
        if not lists and any("seed" in name for name in settings):
            found.add((cell.function, json.dumps(settings, sort_keys=True), None))
    return found


@only_at("pairs")
@pytest.mark.parametrize("full", [False, True])
def test_no_seed_draws_the_data_of_the_next(runner, full):
    """Only cells without a seed, such as an example of a paper, are in both."""
    library = runner.Library(PAPERS)
    for paper in library.papers():
        for name in library.items(paper):
            item = library.item(paper, name)
            here, following = (drawn(item.cells(full, seed)) for seed in (0, 1))
            assert here, f"{paper}/{name} draws nothing"
            assert not here & following, f"{paper}/{name}"


def made_up(item, full, seed):
    """Rows as a run would have them, with made-up results: they have been written and read like real ones."""
    return [
        cell.arguments | json.loads(json.dumps(item.example(**cell.arguments), allow_nan=True))
        for cell in item.cells(full, seed)
    ]


@only_at("pairs")
@pytest.mark.parametrize("full", [False, *at("pairs", [True])])
def test_items_report_exactly_the_expected_numbers(runner, full):
    """No row that misses its number, and no number that nothing checks."""
    library = runner.Library(PAPERS)
    checked = 0
    for paper in library.papers():
        for name in library.items(paper):
            item = library.item(paper, name)
            if full and not item.has_full_size(seed=0):
                continue
            for seed in (0, *at("pairs", [1])):
                numbers = item.summarise(made_up(item, full, seed), full)
                applying = [*runner.rows_about(library, paper, name, full, seed)]
                where = f"{paper}/{name}, full = {full}, seed {seed}"
                if full:  # that of some items is another experiment, without the numbers of their claims
                    claims = {claim.key for claim in library.claims(paper, name)} - numbers.keys()
                    applying = [row for row in applying if row.key not in claims]
                wanted = {row.key for row in applying}
                assert wanted <= numbers.keys(), f"{where}: rows without a number"
                if seed == 0:
                    assert numbers.keys() <= wanted, f"{where}: numbers without a row"
                for row in applying:
                    length = len(row.bounds) if isinstance(row, runner.digits.Digits) else 1
                    assert len(row.judge(numbers)["got"]) == length, f"{where}: {row.key}"
                    checked += 1
    assert checked > 50


@only_at("pairs")
@pytest.mark.parametrize("full", [False, True])
def test_every_figure_can_be_drawn_and_read(runner, full):
    library = runner.Library(PAPERS)
    for paper in library.papers():
        for name in library.items(paper):
            item = library.item(paper, name)
            for stem, figure in item.draw(made_up(item, full, 0), full).items():
                assert stem.startswith(name)
                assert figure.get_suptitle()
                for panel in figure.axes:
                    assert panel.get_title(), f"{paper}/{name}: a panel without a title"
                    assert panel.images or (panel.lines and panel.get_xlabel() and panel.get_ylabel())
                figure.canvas.draw()


@pytest.mark.parametrize("name", ["fig1_rate_invariance", "fig2_fixed_step", "fig2_target", "algorithm2"])
def test_a_made_up_result_has_the_fields_of_a_real_one(runner, name):
    item = runner.Library(PAPERS).item("sparse_polyak", name)
    cell = item.cells(False, 0)[0]
    small = cell.arguments | {"d": 40, "s": 4, "s_star": 2, "limit": 30}
    real, example = cell.function(**small), item.example(**small)
    assert real.keys() == example.keys()
    for field, number in (("value", 31), ("error", 31), ("step", 30)):
        assert len(real[field]) == len(example[field]) == number


def test_a_made_up_race_has_the_fields_of_a_real_one(runner):
    runner.Library(PAPERS).item("sparse_polyak", "fig3_musk")
    real = import_module("papers.sparse_polyak._real")
    rng = np.random.default_rng(0)
    problem = real.subset(rng.standard_normal((130, 25)), rng.standard_normal(130), 0, True, "squared")
    assert real.race(problem, real.SOLVERS["SP5"]()).keys() == real.example("SP5", 0).keys()
    assert real.search(problem, [0.1, 0.2], 3).keys() == real.example("fixed", 0).keys()


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", ["fig2_fixed_step", "fig2_target", "algorithm2"])
def test_an_item_from_its_cells_to_its_figure(runner, name):
    """The experiment in small: its numbers are those that are expected, and the figure can be drawn."""
    library = runner.Library(PAPERS)
    item = library.item("sparse_polyak", name)
    small = {"d": 40, "s": 4, "s_star": 2, "limit": 120}
    rows = [cell.arguments | small | cell.function(**(cell.arguments | small)) for cell in item.cells(False, 0)]
    numbers = item.summarise(rows, False)
    assert numbers.keys() == {row.key for row in runner.rows_about(library, "sparse_polyak", name, False, 0)}
    [(stem, figure)] = item.draw(rows, False).items()
    assert stem == name
    assert all(panel.get_title() and panel.get_xlabel() and panel.lines for panel in figure.axes)


def test_mutants_name_items_that_the_check_runs(runner):
    library = runner.Library(PAPERS)
    mutants = tomllib.loads((PAPERS.parent / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    named = {mutant["item"] for mutant in mutants if "item" in mutant}
    assert named <= {f"{paper}/{item}" for paper in library.papers() for item in library.quick_check(paper)}
    assert {item.partition("/")[0] for item in named} == {*library.papers()}


def test_the_first_iteration_at_a_level(runner):
    runner.Library(PAPERS).item("sparse_polyak", "matrix")
    common = import_module("papers.sparse_polyak._common")
    assert common.first([1.0, 0.5, 0.6, 0.1], [1.0, 0.55, 0.2, 0.05]) == [0, 1, 3, inf]
    assert common.gaps({"value": [5.0, 3.0, 1.0, 0.5], "f_star": 1.0}).tolist() == [1.0, 0.5, 0.0, -0.125]


def test_a_run_on_real_data_is_read_at_a_number_of_passes(runner):
    runner.Library(PAPERS).item("sparse_polyak", "fig3_musk")
    real = import_module("papers.sparse_polyak._real")
    row = {"passes": [0.5, 1.5, 30.0], "best": [1.0, 0.5, 0.1]}
    assert [real.at(row, passes) for passes in (0, 1, 1.5, 29, 30, 200)] == [1.0, 1.0, 0.5, 0.5, 0.1, 0.1]
    assert real.medians([row], best=row["best"]) == [0.5, 0.1, 0.1]
