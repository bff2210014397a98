"""The example of an engine on Ray keeps the protocol, with the bits of one process. Skipped without Ray."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hardthresh import SparseLinearRegression, SparseLogisticRegression
from hardthresh.designs import Serial, from_arrays

ray = pytest.importorskip("ray", reason="ray is not installed, and no extra installs it: pip install ray")


@pytest.fixture(scope="module")
def engine_class():
    folder = Path(__file__).parents[2] / "examples" / "engines"
    sys.path.insert(0, str(folder))
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": ":".join(sys.path)}})
    try:
        from ray_engine import RayEngine

        yield RayEngine
    finally:
        ray.shutdown()
        sys.path.remove(str(folder))


@pytest.mark.parametrize("model", [SparseLinearRegression, SparseLogisticRegression])
@pytest.mark.parametrize("leaf_size", [1, 8])
def test_a_fit_on_ray_has_the_bits_of_one_process(engine_class, model, leaf_size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 300)).astype(np.float32)
    y = X[:, [3, 50]] @ [1.0, -1.0] + rng.standard_normal(3000)
    y = y > 0 if model is SparseLogisticRegression else y
    blocks = from_arrays(X, y, rows=200)
    ours = model(n_nonzero_coefs=2).fit(engine_class(blocks, leaf_size))
    theirs = model(n_nonzero_coefs=2).fit(Serial(blocks))
    assert ours.coef_.tobytes() == theirs.coef_.tobytes()
    assert ours.history_["readings"][-1] == theirs.history_["readings"][-1]
