"""A learner that is stored and loaded again and again is told from one that never was by nothing."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.limited import AdaptiveHybrid, CostModel, Hybrid, Learner, LogisticHybrid
from levels import reaches

PLAIN = CostModel.of(9, 4)
LAB = CostModel.of(9, costs={"a": 2.0, "b": 1.0, "c": 0.7}, panels=list("abcabcabc"), budget=3.0)


def bits(value):
    """Every number of a state, with its type and shape."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [bits(part) for part in value]
    names = getattr(type(value), "__dataclass_fields__", None)
    return {name: bits(getattr(value, name)) for name in names} if names else value


@pytest.mark.slow
@pytest.mark.usefixtures("no_disk")
@pytest.mark.filterwarnings("ignore:.* attributes are in panels for more:UserWarning")
@pytest.mark.parametrize(
    ("algorithm", "cost_model"),
    [
        (AdaptiveHybrid(n_nonzero_coefs=2), LAB),
        (LogisticHybrid(n_nonzero_coefs=2), PLAIN),
        (Hybrid(0.1, 2, 3, 1, 2, n_nonzero_coefs=2), PLAIN),
    ],
    ids=["adaptive, priced", "logistic", "published"],
)
def test_stored_at_every_stage(tmp_path, algorithm, cost_model):
    rng = np.random.default_rng(3)
    stored = Learner.of(algorithm, cost_model, length=60)
    never = Learner.of(algorithm, cost_model, length=60)
    partial = 0
    for step in range(45):
        questions = never.questions(3)
        example, indices = questions[step % len(questions)]
        assert [(i, j.tolist()) for i, j in stored.questions(3)] == [(i, j.tolist()) for i, j in questions]
        x, y = rng.standard_normal(indices.size), float(rng.integers(0, 2))
        for learner in (stored, never):
            if step % 7 == 3:
                learner.skip(example, paid=step % 2 == 0)
            else:
                learner.tell(example, x, y)
        partial += never.answers is not None and bool(never.answers.answered.any())
        if reaches("pairs") or step % 6 == 0:
            ht.save(stored, tmp_path / "learner.json")
            stored = ht.load(tmp_path / "learner.json")
        assert bits(stored) == bits(never)
    assert 5 < partial < 45
    assert bits(stored.final_state()) == bits(never.final_state())
