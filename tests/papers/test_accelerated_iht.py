"""*IHT dies hard* (Khanna and Kyrillidis 2018): its experiments in small, and what they read off a run."""

from importlib import import_module
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest
from papers.accelerated_iht._data import correlated_split

from hardthresh.cli.reproduce import load_runner
from hardthresh.datasets.files import DatasetError
from levels import only_at

PAPERS = Path(__file__).resolve().parents[2] / "papers"


@pytest.fixture(scope="module")
def scripts():
    load_runner(PAPERS)
    return lambda name: import_module(f"papers.accelerated_iht.{name}")


SMALL = {
    "fig1_toy": {"limit": 30},
    "fig2_gaussian": {"m": 40, "n": 90, "planted": 3, "k": 3, "limit": 30},
    "fig3_correlated": {"limit": 30},
    "momentum_study": {"limit": 30},
    "figs5to7_completion": {"height": 24, "width": 30, "rank": 2, "limit": 8, "snapshot": 4},
    "table1_tumours": {"limit": 3, "kind": "twin"},
}
FIRST_OF_EACH = {  # cells of one kind return the same fields
    "fig1_toy": lambda cell: cell.arguments["what"],
    "fig2_gaussian": lambda cell: cell.arguments["method"],
    "fig3_correlated": lambda cell: cell.arguments["method"],
    "momentum_study": lambda cell: (cell.arguments["name"], cell.arguments["method"]),
    "figs5to7_completion": lambda cell: cell.arguments["method"],
    "table1_tumours": lambda cell: (cell.arguments["what"], cell.arguments["method"]),
}


@only_at("pairs")
@pytest.mark.parametrize("name", SMALL)
def test_a_made_up_result_has_the_fields_of_a_real_one(scripts, name):
    item = scripts(name).ITEM
    seen = set()
    for cell in item.cells(False, 0):
        kind = FIRST_OF_EACH[name](cell)
        if kind in seen:
            continue
        seen.add(kind)
        small = {key: value for key, value in SMALL[name].items() if key in cell.arguments}
        if cell.arguments.get("what") == "law":
            small = {}  # the rate is that of 400 iterations
        real = cell.function(**(cell.arguments | small))
        made_up = item.example(**(cell.arguments | small))
        assert real.keys() == made_up.keys(), kind
        for field, value in made_up.items():
            assert isinstance(value, str) == isinstance(real[field], str), (kind, field)


def test_the_first_iteration_at_a_level(scripts):
    first = scripts("_common").first
    assert first([1.0, 0.5, 0.6, 0.1], [1.0, 0.55, 0.2, 0.05]) == [0, 1, 3, inf]
    assert first([1.0, inf, 0.1], [0.5]) == [2]


def test_the_largest_eigenvalue_without_a_decomposition(scripts, monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 80))
    dense = scripts("_common").lipschitz(X)
    monkeypatch.setattr(scripts("_common"), "DENSE", 0)
    assert scripts("_common").lipschitz(X) == pytest.approx(dense, rel=1e-6)


def test_pictures_survive_a_cell(scripts):
    images = scripts("_images")
    image = np.random.default_rng(0).integers(0, 256, (5, 7))
    np.testing.assert_array_equal(images.unpacked(images.packed(image), 5, 7), image)
    assert images.unpacked(images.packed(np.array([[-3.0, 300.0, np.nan]])), 1, 3).tolist() == [[0, 255, 0]]
    assert images.psnr(image + 255.0, image) == pytest.approx(0.0)


def test_the_image_has_the_rank_and_the_mask_of_the_specification(scripts):
    truth, observed = scripts("_images").low_rank_image("china.jpg", 128, 192, 15)
    assert np.linalg.matrix_rank(truth) == 15
    assert observed.mean() == pytest.approx(0.35, abs=0.01)
    np.testing.assert_array_equal(observed, np.random.default_rng(1).random((128, 192)) < 0.35)
    assert not np.array_equal(scripts("_images").low_rank_image("china.jpg", 128, 192, 15, seed=1)[1], observed)


@pytest.mark.parametrize(("script", "name"), [("_images", "kodim05.png"), ("table1_tumours", "vandevijver295.npz")])
def test_data_that_are_missing_are_named(scripts, monkeypatch, tmp_path, script, name):
    monkeypatch.setenv("HARDTHRESH_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=f"{name}.*HARDTHRESH_DATA"):
        scripts(script)._find(name)


def test_measures_of_a_perfect_fit_and_of_nothing(scripts):
    judge = scripts("fig3_correlated").judge
    drawn = correlated_split(seed=0)
    X, y = drawn.X, drawn.X @ drawn.coef + 1e-9 * drawn.y
    right = judge(X, y, X, y, drawn.coef, drawn.coef)
    assert right["r2"] == pytest.approx(1.0)
    assert right["auc"] == 1.0
    nothing = judge(X, y, X, y - y.mean(), drawn.coef, np.zeros(200))
    assert nothing["r2"] == pytest.approx(0.0)
    assert nothing["auc"] == 0.5
    assert right["loglik"] > nothing["loglik"]


def test_groups_of_the_synthetic_twin_share_five_columns_with_the_next(scripts):
    X, y, groups = scripts("table1_tumours").data("twin", 0)
    assert X.shape == (295, 1000)
    assert set(y) == {0.0, 1.0}
    assert all(len(np.intersect1d(a, b)) == 5 for a, b in pairwise(groups))


def test_a_design_that_is_drawn_in_blocks_is_the_one_that_is_drawn_at_once(scripts, monkeypatch):
    monkeypatch.setattr(scripts("_data"), "ROWS", 7)
    drawn = scripts("_data").gaussian_design(40, 90, 3, dtype=np.float32, seed=5)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 90), dtype=np.float32) / np.sqrt(np.float32(40))
    np.testing.assert_array_equal(drawn.X, X)
    assert drawn.X.dtype == np.float32
    assert drawn.X.flags.f_contiguous
