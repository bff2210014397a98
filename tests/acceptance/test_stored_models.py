"""Check 26, for files: a stored model of every kind is the same model to the last bit.

The rest of it is where its fixtures are: exports in `tests/estimators/test_export.py`, the command line in
`tests/cli/test_models.py`, and the path of nearly collinear columns in `tests/selection/test_path.py`.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hardthresh as ht
from acceptance.fits import MODELS, drawn, fitted, theta


@pytest.mark.parametrize("name", MODELS)
def test_check_26_a_stored_model_is_the_same_to_the_last_bit(name, tmp_path):
    X, _, offset = drawn(name)
    model = fitted(name, 3, alpha=0.1)
    ht.save(model, tmp_path / "model.json")
    again = ht.load(tmp_path / "model.json")
    assert_array_equal(theta(again), theta(model))
    assert again.objective_ == model.objective_
    for method in ("predict", "decision_function", "predict_proba", "predict_survival_function"):
        if hasattr(model, method):
            assert_array_equal(getattr(again, method)(X, offset=offset), getattr(model, method)(X, offset=offset))
    assert np.isfinite(theta(model)).all()
