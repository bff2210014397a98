"""``hardthresh show``."""

import numpy as np

import hardthresh as ht
from hardthresh.solvers import IHT
from hardthresh.storage import save


def test_show_prints_what_fit_printed(done, csv):
    args = ["fit", csv, "--target", "ill", "--drop", "y", "--k", "1-5", "--cv", "3", "--out", "model.json"]
    printed = done(*args)
    assert printed == done("show", "model.json") + "Model: model.json\n"


def test_separated_classes_are_said_whatever_the_ridge(done, csv, table):
    table.with_columns(ill=table["b"] > 0.5).write_csv(csv)
    args = ["fit", csv, "--target", "ill", "--drop", "y", "--k", 1, "--alpha", "5", "--out", "model.json"]
    for printed in (done(*args), done("show", "model.json")):
        assert "separate the classes perfectly" in printed
    table.with_columns(ill=table["b"] + table["a"] > 0.5).write_csv(csv)
    assert "separate" not in done(*args)


def test_durations_and_uncertain_scores_are_written_for_people(done, csv):
    done("fit", csv, "--target", "y", "--drop", "ill", "--k", "1-5", "--out", "model.json")
    model = ht.load("model.json")
    means, error = -np.array([9.0, 0.12345, 0.2, 0.3, 0.4]), 0.00078 * np.array([-1.0, 1.0])
    model.grid_scores_ = means[:, None, None] + np.broadcast_to(error, (5, len(model.alphas_), 2))
    save(model, "model.json", notes={"seconds": 139.7})
    printed = done("show", "model.json")
    assert "(2 min 20 s in total)" in printed
    assert " 0.12345 ± 0.00078 " in printed


def test_a_model_saved_in_python_is_shown_too(done, table, folder):
    X = table.select("a", "b", "d").to_numpy()
    save(ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, table["y"].to_numpy()), folder / "model.json")
    text = done("show", "model.json")
    assert "1 of 3 features" in text
    assert "Features are counted from 0." in " ".join(text.split())
    assert "None: this model does not carry its training data" in text


def test_other_objects_are_shown_as_they_are(done, folder):
    save(IHT(), folder / "solver.json")
    assert done("show", "solver.json").startswith("IHT(step=Backtracking(")


def test_a_missing_model_says_so(refused):
    assert refused("show", "model.json") == "model.json: cannot be read, No such file or directory"


def test_another_file_says_so(refused, csv):
    assert refused("show", csv) == (
        f"{csv}: not written by hardthresh; the file of a model is what save, or fit --out, writes"
    )


def test_a_selection_by_knockoffs_says_what_its_level_means(done, folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    y = X[:, :8].sum(axis=1) + rng.standard_normal(100)
    selector = ht.Knockoffs(ht.SparseLinearRegression(n_nonzero_coefs=8), fdr=0.2, random_state=1).fit(X, y)
    ht.save(selector, folder / "selector.json")
    shown = " ".join(done("show", "selector.json").split())
    assert shown == " ".join(selector.statement().split())
    assert "at the false discovery rate 0.2" in shown
