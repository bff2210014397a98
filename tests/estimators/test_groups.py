"""Features chosen by whole groups, with any labels in any order."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from hardthresh import (
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    load,
    save,
)
from hardthresh.constraints import GroupSparsity
from hardthresh.estimators.facts import read

D, LABELS = 24, [f"gene {j % 8}" for j in range(24)]
TRUE = ("gene 2", "gene 5")


def data(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * rng.uniform(0.1, 10, D) + 3
    signal = sum(X[:, j] / X[:, j].std() for j in range(D) if LABELS[j] in TRUE)
    return X, signal + 0.3 * rng.standard_normal(n)


def columns_of(*labels):
    return [j for j in range(D) if LABELS[j] in labels]


@pytest.mark.parametrize("model", [SparseLinearRegression, SparseLogisticRegression])
def test_interleaved_groups_are_found_whole(model):
    X, y = data()
    target = y if model is SparseLinearRegression else y > np.median(y)
    fitted = model(groups=LABELS, n_nonzero_groups=2).fit(X, target)
    assert fitted.groups_ == TRUE
    assert fitted.n_nonzero_groups_ == 2
    np.testing.assert_array_equal(fitted.support_, columns_of(*TRUE))
    assert fitted.converged_
    assert not hasattr(fitted, "n_nonzero_coefs_")
    np.testing.assert_array_equal(fitted.get_support(indices=True), fitted.support_)


def test_coefficients_are_least_squares_on_the_groups():
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    fitted = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    A = np.column_stack([X[np.ix_(rows, fitted.support_)], np.ones(rows.size)])
    best = np.linalg.lstsq(A, y[rows])[0]
    np.testing.assert_allclose(fitted.coef_[fitted.support_], best[:-1], rtol=1e-6)
    np.testing.assert_allclose(fitted.intercept_, best[-1], rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_permuted_columns_give_the_permuted_answer(seed):
    X, y = data()
    order = np.random.default_rng(seed).permutation(D)
    one = SparseLinearRegression(groups=LABELS, n_nonzero_groups=3).fit(X, y)
    other = SparseLinearRegression(groups=[LABELS[j] for j in order], n_nonzero_groups=3).fit(X[:, order], y)
    np.testing.assert_allclose(other.coef_, one.coef_[order], rtol=1e-7, atol=1e-10)
    assert set(other.groups_) == set(one.groups_)


def test_labels_of_any_kind_mean_the_same():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    kinds = [
        np.array(LABELS),
        tuple(LABELS),
        pd.Categorical(LABELS),
        pd.Series(LABELS),
        pd.Series(LABELS, index=frame.columns).sample(frac=1.0, random_state=0),
        dict(zip(frame.columns, LABELS, strict=True)),
        [int(label[-1]) for label in LABELS],
        np.array([int(label[-1]) for label in LABELS]),
        [("gene", label[-1]) for label in LABELS],
    ]
    for groups in kinds:
        fitted = SparseLinearRegression(groups=groups, n_nonzero_groups=2).fit(frame, y)
        np.testing.assert_array_equal(fitted.support_, columns_of(*TRUE))
    by_index = SparseLinearRegression(groups=dict(enumerate(LABELS)), n_nonzero_groups=2).fit(X, y)
    assert by_index.groups_ == TRUE


def test_a_series_names_its_columns():
    X, y = data()
    names = [f"c{j}" for j in range(D)]
    frame, labels = pd.DataFrame(X, columns=names), pd.Series(LABELS, index=names)
    fitted = SparseLinearRegression(groups=labels.drop(["c0", "c3"]), n_nonzero_groups=2, always_include=["c3", 0])
    np.testing.assert_array_equal(fitted.fit(frame, y).support_, sorted([0, 3, *columns_of(*TRUE)]))
    assert fitted.groups_ == TRUE
    by_index = SparseLinearRegression(groups=pd.Series(LABELS)[::-1], n_nonzero_groups=2).fit(X, y)
    assert by_index.groups_ == TRUE
    for wrong, X_, message in [
        (labels.rename({"c4": "c04"}), frame, "unknown column 'c04'"),
        (labels.drop("c4"), frame, "no label for column 'c4'"),
        (labels.rename({"c4": "c5"}), frame, "a column twice"),
        (labels, X, "unknown column 'c0'; X has no column names"),
    ]:
        with pytest.raises(ValueError, match=message):
            SparseLinearRegression(groups=wrong, n_nonzero_groups=2).fit(X_, y)


def test_a_budget_is_changed_without_reading_labels_again():
    X, y = data()
    problem, *_ = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y)._training
    other = problem.with_budget(5).constraint
    assert other == GroupSparsity((*LABELS, None), 5, free=(D,))
    assert other._grouping is problem.constraint._grouping
    with pytest.raises(ValueError, match="k must be"):
        problem.with_budget(-1)


def test_singletons_are_plain_sparsity():
    X, y = data()
    one = SparseLinearRegression(n_nonzero_coefs=4).fit(X, y)
    other = SparseLinearRegression(groups=range(D), n_nonzero_groups=4).fit(X, y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)


def test_always_included_columns_are_in_no_group():
    X, y = data()
    groups = [None if j in (0, 2) else label for j, label in enumerate(LABELS)]
    fitted = SparseLinearRegression(groups=groups, n_nonzero_groups=1, always_include=[0, 2]).fit(X, y)
    assert fitted.groups_ == ("gene 5",)
    np.testing.assert_array_equal(fitted.support_, sorted([0, 2, *columns_of("gene 5")]))


def test_no_groups_at_all():
    X, y = data()
    assert SparseLinearRegression(groups=LABELS, n_nonzero_groups=0).fit(X, y).groups_ == ()


def test_sparse_and_single_precision_data():
    X, y = data()
    sparse = np.where(np.random.default_rng(2).random(X.shape) < 0.5, X, 0.0)
    y = y + sparse[:, columns_of("gene 7")].sum(axis=1)
    settings = {"groups": LABELS, "n_nonzero_groups": 3}
    one = SparseLinearRegression(**settings).fit(sparse, y)
    other = SparseLinearRegression(**settings).fit(csr_array(sparse), y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
    single = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == np.float32


def test_settings_without_sense_of_the_intercept_and_the_scale():
    X, y = data()
    plain = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2, fit_intercept=False, standardize=False)
    assert plain.fit(X, y).intercept_ == 0.0
    assert len(plain.groups_) == 2


def test_a_constant_column_of_a_chosen_group_is_not_chosen():
    X, y = data()
    X[:, columns_of("gene 2")[0]] = 1.0
    with pytest.warns(UserWarning, match="constant"):
        fitted = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y)
    assert fitted.groups_ == TRUE
    assert columns_of("gene 2")[0] not in fitted.support_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": LABELS[:-1]}, "23 labels, but X has 24 columns"),
        ({"groups": [*LABELS[:-1], None]}, "column 23 .* is missing"),
        ({"groups": [*LABELS[:-1], float("nan")]}, "column 23 .* is missing"),
        ({"groups": [*LABELS[:-1], [1]]}, "hashable"),
        ({"groups": "gene"}, "must be a list"),
        ({"groups": 3}, "must be a list"),
        ({"groups": {0: "a"}}, r"no label for column 1 \(counted from 0\)"),
        ({"groups": dict.fromkeys(range(25), "a")}, "unknown column 24"),
        ({"groups": LABELS, "n_nonzero_groups": 9}, r"number of groups \(8\), got 9"),
        ({"groups": LABELS, "n_nonzero_groups": -1}, r"number of groups \(8\), got -1"),
        ({"groups": LABELS, "n_nonzero_groups": 1.5}, "n_nonzero_groups must be"),
        ({"groups": LABELS, "n_nonzero_coefs": 2}, "n_nonzero_groups"),
        ({"groups": LABELS, "positive": True}, "positive=True does not go together with groups"),
        ({"n_nonzero_groups": 2}, "needs groups"),
    ],
)
@pytest.mark.parametrize("model", [SparseLinearRegression, SparseLogisticRegressionCV])
def test_wrong_settings_are_refused(model, settings, message):
    X, y = data()
    if model is SparseLogisticRegressionCV and settings.get("n_nonzero_groups") == -1:
        message = "group"
    with pytest.raises(ValueError, match=message):
        model(**settings).fit(X, y > y.mean())


@pytest.mark.slow
@pytest.mark.parametrize("model", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_cross_validation_chooses_the_number_of_groups(model):
    X, y = data()
    target = y if model is SparseLinearRegressionCV else y > np.median(y)
    fitted = model(groups=LABELS, n_nonzero_groups=4, rule="one_standard_error", cv=3).fit(X, target)
    np.testing.assert_array_equal(fitted.candidates_, [0, 1, 2, 3, 4])
    assert fitted.n_nonzero_groups_ == fitted.best_n_nonzero_groups_ == 2
    assert fitted.groups_ == TRUE
    assert fitted.coefs_path_.shape == (5, D)
    assert set(np.flatnonzero(fitted.selection_frequency_ == 1)) == set(columns_of(*TRUE))
    alone = model.__bases__[1](groups=LABELS, n_nonzero_groups=2, alpha=fitted.alpha_).fit(X, target)
    np.testing.assert_array_equal(alone.coef_, fitted.coef_)


@pytest.mark.filterwarnings("ignore:.* constant column")
@pytest.mark.parametrize("model", [SparseLinearRegression, SparseLogisticRegressionCV])
def test_groups_of_constant_columns_are_not_counted(model):
    X, y = data()
    X[:, [j for j in range(D) if LABELS[j] not in TRUE]] = 1.0
    chooses = model is SparseLogisticRegressionCV
    settings = {"groups": LABELS, "n_nonzero_groups": [4] if chooses else 4}
    fitted = model(**settings).fit(X, y > np.median(y) if chooses else y)
    assert fitted.groups_ == TRUE
    assert fitted.n_nonzero_groups_ == 2
    assert not chooses or fitted.best_n_nonzero_groups_ == 4


def test_a_refit_without_groups_forgets_them():
    X, y = data()
    model = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y)
    model.set_params(groups=None, n_nonzero_groups=None, n_nonzero_coefs=3).fit(X, y)
    assert model.n_nonzero_coefs_ == 3
    assert not hasattr(model, "groups_")
    assert not hasattr(model, "n_nonzero_groups_")


def test_a_warm_start_leads_to_the_same_model():
    X, y = data()
    model = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2, warm_start=True).fit(X, y)
    before = model.coef_
    np.testing.assert_allclose(model.fit(X, y).coef_, before, rtol=1e-8)


@pytest.mark.slow
def test_the_certificate_speaks_of_groups():
    X, y = data()
    model = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y)
    certificate = model.certificate()
    assert certificate.swap_optimal
    assert certificate.exact
    assert "proved: no exchange of one chosen group for another" in str(certificate)
    assert certificate.removed_name in TRUE
    rival = [
        SparseLinearRegression(groups=LABELS, n_nonzero_groups=0, always_include=columns_of(kept, other)).fit(X, y)
        for kept in TRUE
        for other in sorted(set(LABELS) - set(TRUE))
    ]
    best = min(other.objective_ for other in rival)
    np.testing.assert_allclose(certificate.swap.decrease, model.objective_ - best, rtol=1e-6)
    logistic = SparseLogisticRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y > np.median(y)).certificate()
    assert logistic.swap_optimal
    assert not logistic.exact


def test_a_stored_model_knows_its_groups(tmp_path):
    X, y = data()
    model = SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.groups_ == TRUE
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_reports_count_groups():
    X, y = data()
    facts = read(SparseLinearRegression(groups=LABELS, n_nonzero_groups=2).fit(X, y))
    assert (facts.unit, facts.budget, len(facts.features)) == ("group", 2, 6)
    chosen = read(SparseLinearRegressionCV(groups=LABELS, n_nonzero_groups=3, cv=3).fit(X, y))
    assert chosen.cross_validation.unit == "group"
