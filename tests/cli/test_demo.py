"""``hardthresh demo``."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import hardthresh as ht
from hardthresh.datasets import load_colon
from levels import only_at

pytestmark = pytest.mark.filterwarnings("default")


@only_at("pairs")
def test_the_demo_prints_a_model_and_writes_a_report(done, folder):
    text = done("demo", "--out", "model.json")
    for part in ("Which few of 2,000 genes", "in folds", "How many features?", "chosen", "Certificate", "Converged"):
        assert part in text
    page = (folder / "hardthresh-demo.html").read_text(encoding="utf-8")
    model = ht.load(folder / "model.json")
    assert 1 <= len(model.support_) <= 40
    for name in model.feature_names_in_[model.support_]:
        assert name in text
        assert name in page
    assert "hardthresh demo --out model.json" in page


@only_at("pairs")
def test_the_demo_chooses_what_the_same_folds_choose_in_python(done):
    """The picture of the README is drawn by these lines: it shows the features of the demo."""
    done("demo", "--out", "model.json")
    colon, folds = load_colon(as_frame=True), StratifiedKFold(10, shuffle=True, random_state=0)
    alone = ht.SparseLogisticRegressionCV(cv=folds).fit(np.log2(colon.data), colon.target_names[colon.target])
    np.testing.assert_allclose(ht.load("model.json").coef_, alone.coef_, rtol=1e-9)


def test_a_folder_that_does_not_exist_is_refused_before_any_work(refused):
    assert refused("demo", "--report", "no/here.html") == "there is no folder no to write here.html in"
