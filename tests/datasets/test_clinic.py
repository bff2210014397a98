"""The invented clinic: the same patients for the same seed, with the correlations and effects that it promises."""

import sys

import numpy as np
import pytest

from hardthresh.core.errors import InvalidInputError, MissingDependencyError
from hardthresh.datasets import make_clinic
from hardthresh.limited import CostModel


def test_the_same_seed_makes_the_same_patients():
    a, b, other = make_clinic(50, seed=3), make_clinic(50, seed=3), make_clinic(50, seed=4)
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    assert not np.any(a.X == other.X)


def test_everything_has_a_name_a_panel_and_a_price():
    clinic = make_clinic(20)
    assert clinic.X.shape == (20, 51)
    assert len(set(clinic.feature_names)) == len(clinic.panels) == 51
    assert set(clinic.panels) == set(clinic.prices)
    cost_model = CostModel.of(51, costs=clinic.prices, panels=clinic.panels, budget=60.0)
    assert cost_model.cost(np.arange(51)) == sum(clinic.prices.values())
    assert list(clinic.to_pandas().columns) == clinic.feature_names


def test_a_data_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="to_pandas needs pandas, which is not installed"):
        make_clinic(20).to_pandas()


def test_correlations_and_effects_are_as_promised():
    clinic = make_clinic(20000)
    correlation = np.corrcoef(clinic.X.T)
    where = clinic.feature_names.index
    assert correlation[where("glucose"), where("HbA1c")] == pytest.approx(0.6, abs=0.02)
    assert correlation[where("glucose"), where("T3")] == pytest.approx(0.1, abs=0.03)
    X = np.column_stack([clinic.X, np.ones(20000)])
    coef, (rss,), *_ = np.linalg.lstsq(X, clinic.y)
    np.testing.assert_allclose(coef[:-1] * clinic.X.std(axis=0), clinic.coef * clinic.X.std(axis=0), atol=0.15)
    assert np.sqrt(rss / 20000) == pytest.approx(3.0, rel=0.02)
    assert np.std(clinic.X @ clinic.coef) == pytest.approx(6.4, rel=0.05)
    exact = make_clinic(500, noise=0.0)
    assert np.ptp(exact.y - exact.X @ exact.coef) < 1e-9


@pytest.mark.parametrize("settings", [{"n_patients": 0}, {"n_patients": 2.5}, {"noise": -1.0}, {"noise": np.nan}])
def test_arguments_out_of_range(settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        make_clinic(**settings)
