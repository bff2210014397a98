"""``hardthresh demo``."""

import pytest

from hardthresh import load
from levels import only_at

pytestmark = pytest.mark.filterwarnings("default")


@only_at("pairs")
def test_the_demo_prints_a_model_and_writes_a_report(done, folder):
    text = done("demo", "--out", "model.json")
    for part in ("Which few of 2,000 genes", "in folds", "How many features?", "chosen", "Certificate", "Converged"):
        assert part in text
    page = (folder / "hardthresh-demo.html").read_text(encoding="utf-8")
    model = load(folder / "model.json")
    assert 1 <= len(model.support_) <= 20
    for name in model.feature_names_in_[model.support_]:
        assert name in text
        assert name in page
    assert "hardthresh demo --out model.json" in page


def test_a_folder_that_does_not_exist_is_refused_before_any_work(refused):
    assert refused("demo", "--report", "no/here.html") == "there is no folder no to write here.html in"
