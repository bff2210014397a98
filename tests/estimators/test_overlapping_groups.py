"""Groups of columns that may overlap, given as lists of columns."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from levels import at_most

D, N = 14, 120
PATHWAYS = {
    "growth": [0, 1, 2, 3],
    "repair": [3, 4, 5],
    "signal": [5, 6],
    "immune": [7, 8, 9],
    "stress": [1, 9, 10],
    "energy": [10, 11, 12, 13],
}
NAMES = list(PATHWAYS)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D)) + 0.5 * RNG.standard_normal((N, 1))
MEAN = X[:, [3, 4, 5, 6]] @ [1.0, -1.0, 0.5, 0.8]
Y = MEAN + RNG.standard_normal(N)


def best_mean_square(k, X=X, Y=Y, always=()):
    """The least mean square of the errors with k groups, an intercept and some other columns, of all choices."""

    def of(names):
        columns = sorted({*always, *(j for name in names for j in PATHWAYS[name])})
        A = np.column_stack([np.ones(len(Y)), X[:, columns]])
        return np.mean((Y - A @ np.linalg.lstsq(A, Y)[0]) ** 2)

    return min((of(names), names) for names in combinations(NAMES, k))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_groups_are_the_best_ones(k):
    model = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=k).fit(X, Y)
    value, names = best_mean_square(k)
    assert 2 * model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.groups_ == names
    assert model.n_nonzero_groups_ == k
    assert model.support_.tolist() == sorted({j for name in names for j in PATHWAYS[name]})
    outside = np.setdiff1d(np.arange(D), model.support_)
    assert not model.coef_[outside].any()


def test_shared_columns_are_what_makes_two_groups_enough():
    """The signal is in columns 3 to 6, which "repair" and "signal" cover, and both have column 5."""
    model = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(X, Y)
    assert model.groups_ == ("repair", "signal")
    shared = set(PATHWAYS["repair"]) & set(PATHWAYS["signal"])
    assert shared <= set(model.support_)


@pytest.mark.parametrize("make", [list, np.array, set, frozenset, tuple], ids=lambda make: make.__name__)
def test_lists_of_any_kind(make):
    """Tuples are labels, of which one for each column is needed."""
    groups = [make(group) for group in PATHWAYS.values()]
    if make is tuple:
        with pytest.raises(InvalidInputError, match="groups has 6 labels, but X has 14 columns"):
            ht.SparseLinearRegression(groups=groups, n_nonzero_groups=2).fit(X, Y)
        return
    model = ht.SparseLinearRegression(groups=groups, n_nonzero_groups=2).fit(X, Y)
    assert model.groups_ == (1, 2)


def test_disjoint_lists_are_labels():
    labels = np.repeat(np.arange(7), 2)
    lists = [[2 * g, 2 * g + 1] for g in range(7)]
    models = [ht.SparseLinearRegression(groups=groups, n_nonzero_groups=3).fit(X, Y) for groups in (labels, lists)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)
    assert models[0].groups_ == models[1].groups_


def test_columns_by_name_with_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :6], columns=list("abcdef"))
    colour = pandas.Categorical(np.array(["red", "green", "blue"])[np.arange(N) % 3])
    frame["colour"] = colour
    y = 2.0 * (colour == "red") + X[:, 1] + 0.3 * RNG.standard_normal(N)
    groups = {"first": ["a", "b"], "paint": ["colour", "c"], "rest": ["d", "e", "f"]}
    model = ht.SparseLinearRegression(groups=groups, n_nonzero_groups=2).fit(frame, y)
    assert model.groups_ == ("first", "paint")
    chosen = [name.partition("=")[0] for name in model.encoded_feature_names_[model.support_]]
    assert set(chosen) == {"a", "b", "c", "colour"}


@pytest.mark.parametrize("always", [[12], [0, 5]])
def test_always_included_columns_are_not_counted(always):
    model = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=1, always_include=always).fit(X, Y)
    assert set(always) <= set(model.support_)
    assert 2 * model.objective_ == pytest.approx(best_mean_square(1, always=always)[0], rel=1e-9)


def test_weights_and_sparse_data():
    weights = RNG.integers(0, 3, N)
    dense = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(X, Y, sample_weight=weights)
    repeated = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights)
    )
    np.testing.assert_allclose(dense.coef_, repeated.coef_, rtol=1e-7, atol=1e-12)
    sparse = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(csr_array(X), Y, sample_weight=weights)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ht.SparseLinearRegressionCV, Y),
        (ht.SparseLogisticRegressionCV, np.where(2 * MEAN + RNG.logistic(size=N) > 0, "ill", "well")),
        (ht.SparsePoissonRegressionCV, RNG.poisson(np.exp(0.5 * MEAN))),
    ],
)
def test_cross_validation(model, y):
    fitted = model(groups=PATHWAYS, cv=3).fit(X, y)
    assert fitted.averaging_ == "none"
    assert fitted.found_
    assert fitted.best_n_nonzero_groups_ >= fitted.n_nonzero_groups_ == len(fitted.groups_)
    assert {"repair", "signal"} <= set(fitted.groups_)
    without_cv = getattr(ht, model.__name__.removesuffix("CV"))
    single = without_cv(groups=PATHWAYS, n_nonzero_groups=fitted.n_nonzero_groups_, alpha=fitted.alpha_).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, single.coef_, rtol=1e-5)
    for k, coef in zip(fitted.candidates_, fitted.coefs_path_.reshape(-1, D), strict=True):
        used = set(np.flatnonzero(coef))
        covers = (set().union(*(PATHWAYS[name] for name in names)) for names in combinations(NAMES, int(k)))
        assert any(used <= cover for cover in covers)


def test_averages_are_refused():
    with pytest.raises(InvalidInputError, match='averaging="stacking" has no number of groups if these overlap'):
        ht.SparseLinearRegressionCV(groups=PATHWAYS, averaging="stacking").fit(X, Y)


def test_the_number_of_groups_by_a_criterion():
    model = ht.SparseLinearRegression(groups=PATHWAYS).fit(X, Y)
    assert model.best_n_nonzero_groups_ == 2
    assert model.groups_ == ("repair", "signal")


def test_the_certificate_ranks_exchanges_of_groups(tmp_path):
    model = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(X, Y)
    certificate = model.certificate()
    assert certificate.swap_optimal
    assert certificate.fitted
    assert certificate.unit == "group"
    assert not certificate.exact
    assert "no exchange of one chosen group for another is better (closest: " in str(certificate)
    ht.save(model, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    assert loaded.groups_ == model.groups_
    again = loaded.certificate(X, Y)
    assert again.fitted
    assert again.swap.decrease == pytest.approx(certificate.swap.decrease)
    others = loaded.set_params(n_nonzero_groups=2)
    others.groups_, others.coef_ = ("growth", "energy"), np.zeros(D)
    others.support_ = np.array(sorted({*PATHWAYS["growth"], *PATHWAYS["energy"]}))
    worse = others.certificate(X, Y)
    assert not worse.swap_optimal
    assert worse.added_name in ("repair", "signal", "immune")


def test_the_summary_has_the_groups():
    model = ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=2).fit(X, Y)
    assert len(model.summary().worth) == len(model.support_)


def test_columns_in_no_group_stay_out():
    groups = {name: columns for name, columns in PATHWAYS.items() if name != "growth"}
    with pytest.warns(UserWarning, match=r"2 ungrouped columns \(features 0, 2, counted from 0\) are in no group and"):
        model = ht.SparseLinearRegression(groups=groups, n_nonzero_groups=5).fit(X, Y)
    assert model.support_.tolist() == [1, *range(3, D)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": [0, 1], "b": 2}, r"groups mixes lists of columns with labels: groups\['b'\] is 2; give a list of col"),
        ({"a": [0, 1], "b": []}, r"groups\['b'\] is empty; leave it out"),
        ({"a": [0, 99]}, r"groups\['a'\] names column 99; X has 14 columns, counted from 0"),
        ({"a": [0, "age"]}, r"groups\['a'\] names the unknown column 'age'; X has no column names"),
        ({"a": [0, 0]}, r"groups\['a'\] names a column twice, \[0, 0\]; name it once"),
        ({"a": [0.5]}, r"groups\['a'\] takes names and indices, got 0.5"),
        ({None: [0]}, r"a name in groups is missing \(None\); give every group one"),
        ([[0, 1], [2], 3], r"groups mixes lists of columns with labels: groups\[2\] is 3"),
    ],
)
@pytest.mark.parametrize("model", [ht.SparseLinearRegression, ht.SparseLinearRegressionCV])
def test_bad_lists_are_refused(model, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        model(groups=groups, n_nonzero_groups=1).fit(X, Y)


def test_more_groups_than_there_are_is_refused():
    with pytest.raises(InvalidInputError, match=r"n_nonzero_groups must be .*\(6\)"):
        ht.SparseLinearRegression(groups=PATHWAYS, n_nonzero_groups=7).fit(X, Y)
