"""Sparse Gaussian graphical models: the graph, the likelihood on it, units, folds, and wrong input."""

import json
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

import hardthresh as ht
from graphs import f1_of_graphs
from hardthresh.constraints import EdgeSparsity
from hardthresh.core.errors import InvalidInputError, MissingDependencyError, SearchRangeWarning
from hardthresh.datasets import make_graphical_model
from hardthresh.estimators import SparseGaussianGraphicalModel, SparseGaussianGraphicalModelCV
from hardthresh.estimators.graph import covariance_selection
from hardthresh.estimators.graph.covariance_selection import most_likely_precision, positive_definite
from hardthresh.objectives import GraphicalModel
from levels import at_most, only_at


def data(n=120, p=12, graph="random", seed=10):
    """A graph whose columns have unequal units and means."""
    problem = make_graphical_model(n, p, graph=graph, seed=seed)
    return problem.X * np.geomspace(0.1, 30.0, p) + np.linspace(-5.0, 5.0, p), problem


def graph_of(precision):
    return {tuple(edge) for edge in np.argwhere(np.triu(precision, 1)).tolist()}


# --- what is fitted --------------------------------------------------------------------------------------------------


def test_a_chain_is_found():
    X, problem = data(300, 20, "chain")
    model = SparseGaussianGraphicalModel(n_edges=19).fit(X)
    assert graph_of(model.precision_) == {(i, i + 1) for i in range(19)}
    assert model.n_edges_ == 19
    assert model.converged_
    assert model.positive_definite_adjustment_ == 0.0
    assert model.history_["value"][-1] == model.objective_
    assert model.history_["value"].size == model.n_iter_ + 1
    assert_allclose(model.location_, X.mean(axis=0))
    partial = {(edge["i"], edge["j"]): edge["partial_correlation"] for edge in model.edges_}
    true = np.sqrt(np.diag(problem.precision))
    for (i, j), value in partial.items():
        assert value == pytest.approx(-problem.precision[i, j] / true[i] / true[j], abs=0.15)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_matrices_are_symmetric_definite_and_inverse(refit, standardize):
    X, _ = data()
    X = X if standardize else X / X.std(axis=0)
    model = SparseGaussianGraphicalModel(15, refit=refit, standardize=standardize).fit(X)
    assert_array_equal(model.precision_, model.precision_.T)
    assert_array_equal(model.covariance_, model.covariance_.T)
    assert np.linalg.eigvalsh(model.precision_)[0] > 0
    assert_allclose(model.precision_ @ model.covariance_, np.eye(12), atol=1e-9)
    assert np.count_nonzero(np.triu(model.precision_, 1)) == 15
    assert_array_equal(model.get_precision(), model.precision_)


def test_without_a_refit_it_is_the_minimiser():
    X, _ = data()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    f = GraphicalModel(Z, l2=0.01)
    run = ht.minimize(f, EdgeSparsity(12 + 2 * 15))
    model = SparseGaussianGraphicalModel(15, refit=False).fit(X)
    scale = X.std(axis=0)
    assert_allclose(model.precision_ * scale[:, None] * scale, run.w, rtol=1e-6, atol=1e-8)
    assert model.objective_ == pytest.approx(run.value, rel=1e-10)


def test_the_refit_maximises_the_likelihood_on_the_graph():
    """The covariance agrees with the sample wherever there is an edge, but for the ridge."""
    X, _ = data()
    S = np.cov(X.T, bias=True)
    scale = np.sqrt(np.diag(S))
    for alpha in (0.0, 0.1):
        model = SparseGaussianGraphicalModel(15, alpha=alpha).fit(X)
        unit = model.precision_ * scale[:, None] * scale
        gap = (model.covariance_ - S) / scale[:, None] / scale - alpha * unit
        assert_allclose(gap[unit != 0], 0.0, atol=2e-4)
        assert graph_of(unit) == graph_of(SparseGaussianGraphicalModel(15, alpha=alpha, refit=False).fit(X).precision_)
        assert model.alpha_ == alpha


def test_all_edges_are_the_inverse_of_the_covariance():
    X, _ = data(200, 6)
    model = SparseGaussianGraphicalModel(15, alpha=0.0).fit(X)
    assert_allclose(model.covariance_, np.cov(X.T, bias=True), rtol=1e-3, atol=1e-3)
    none = SparseGaussianGraphicalModel(0, alpha=0.0).fit(X)
    assert_allclose(none.covariance_, np.diag(X.var(axis=0)), rtol=1e-6)
    assert none.edges_.size == 0


def test_scores_are_those_of_scikit_learn():
    X, _ = data()
    model = SparseGaussianGraphicalModel(15).fit(X)
    centred = X - model.location_
    forms = np.sum((centred @ model.precision_) * centred, axis=1)
    expected = 0.5 * (np.linalg.slogdet(model.precision_)[1] - forms.mean() - 12 * np.log(2 * np.pi))
    assert model.score(X) == pytest.approx(expected)
    assert_allclose(model.mahalanobis(X), forms)
    assert model.error_norm(model.covariance_) == pytest.approx(0.0, abs=1e-12)


def test_units_and_the_order_of_columns_do_not_matter():
    X, _ = data()
    model = SparseGaussianGraphicalModel(15).fit(X)
    scale = np.geomspace(1e-6, 1e6, 12)
    scaled = SparseGaussianGraphicalModel(15).fit(X * scale + 3.0)
    assert_allclose(scaled.precision_ * scale[:, None] * scale, model.precision_, rtol=1e-5, atol=1e-8)
    order = np.random.default_rng(0).permutation(12)
    permuted = SparseGaussianGraphicalModel(15).fit(X[:, order])
    assert_allclose(permuted.precision_, model.precision_[np.ix_(order, order)], rtol=1e-5, atol=1e-8)
    doubled = SparseGaussianGraphicalModel(15).fit(np.vstack([X, X]))
    assert_allclose(doubled.precision_, model.precision_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", [10, 20, 77])
def test_the_order_of_rows_does_not_matter(seed):
    X = np.random.default_rng(seed).standard_normal((30, 8))
    forwards, backwards = (SparseGaussianGraphicalModel(n_edges=14).fit(rows) for rows in (X, X[::-1]))
    assert graph_of(forwards.precision_) == graph_of(backwards.precision_)
    assert_allclose(forwards.precision_, backwards.precision_, rtol=0, atol=1e-5 * np.abs(forwards.precision_).max())


def test_a_precomputed_covariance_gives_the_same_model():
    for n in (120, 8):
        X, _ = data(n)
        model = SparseGaussianGraphicalModel(8).fit(X)
        S = np.cov(X.T, bias=True)
        other = SparseGaussianGraphicalModel(8, covariance="precomputed").fit(S)
        assert_allclose(other.precision_, model.precision_, rtol=1e-4, atol=1e-6)
        assert_array_equal(other.location_, np.zeros(12))
        assert other.score(X - X.mean(axis=0)) == pytest.approx(model.score(X), rel=1e-5)


def test_float32_stays_float32():
    X, _ = data(200)
    model = SparseGaussianGraphicalModel(15).fit(X.astype(np.float32))
    assert {a.dtype for a in (model.precision_, model.covariance_, model.location_)} == {np.dtype(np.float32)}
    exact = SparseGaussianGraphicalModel(15).fit(X)
    assert graph_of(model.precision_) == graph_of(exact.precision_)
    assert_allclose(model.precision_, exact.precision_, rtol=1e-2, atol=1e-3)


def test_a_warm_start_starts_where_the_last_fit_ended():
    X, _ = data()
    model = SparseGaussianGraphicalModel(15, warm_start=True, refit=False).fit(X)
    first, precision = model.history_["value"], model.precision_
    again = model.fit(X)
    assert again.history_["value"][0] == pytest.approx(first[-1], rel=1e-9)
    assert_allclose(again.precision_, precision, rtol=1e-6, atol=1e-9)
    other_columns = model.set_params(n_edges=4).fit(X[:, :6])  # from scratch
    assert_array_equal(other_columns.precision_, SparseGaussianGraphicalModel(4, refit=False).fit(X[:, :6]).precision_)


@pytest.mark.parametrize("solver", ["iht", "probabilistic", ht.solvers.HardThresholdingPursuit(exchanges=0)])
def test_any_solver_will_do(solver):
    X, problem = data(400, 10, "chain")
    model = SparseGaussianGraphicalModel(9, solver=solver, tol=1e-6).fit(X)
    assert f1_of_graphs(model.precision_, problem.precision) == 1.0


# --- names and tables ------------------------------------------------------------------------------------------------


def test_edges_have_the_names_of_the_columns():
    X, _ = data()
    names = [f"gene {j}" for j in range(12)]
    model = SparseGaussianGraphicalModel(10).fit(pd.DataFrame(X, columns=names))
    assert model.feature_names_in_.tolist() == names
    table = pd.DataFrame(model.edges_)
    assert list(table) == ["i", "j", "first", "second", "partial_correlation"]
    assert (table["first"] == [names[i] for i in table["i"]]).all()
    assert (table["second"] == [names[j] for j in table["j"]]).all()
    assert all(abs(a) >= abs(b) for a, b in pairwise(table["partial_correlation"]))
    plain = SparseGaussianGraphicalModel(10).fit(X)
    assert plain.edges_["first"][0] == f"x{plain.edges_['i'][0]}"
    with pytest.raises(AttributeError, match="before it is fitted"):
        _ = SparseGaussianGraphicalModel().edges_


@pytest.mark.slow
def test_the_graph_for_networkx():
    pytest.importorskip("networkx", reason="networkx is not installed")
    X, _ = data()
    model = SparseGaussianGraphicalModel(10).fit(pd.DataFrame(X, columns=list("abcdefghijkl")))
    graph = model.to_networkx()
    assert list(graph) == list("abcdefghijkl")
    assert graph.number_of_edges() == 10
    edge = model.edges_[0]
    kept = graph.edges[edge["first"], edge["second"]]
    assert kept == {"partial_correlation": edge["partial_correlation"], "weight": abs(edge["partial_correlation"])}
    with pytest.raises(NotFittedError):
        SparseGaussianGraphicalModel().to_networkx()


def test_networkx_may_be_missing(monkeypatch):
    X, _ = data()
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match="pip install networkx"):
        SparseGaussianGraphicalModel(10).fit(X).to_networkx()


@pytest.mark.slow
def test_a_stored_model_comes_back(tmp_path):
    X, _ = data()
    model = SparseGaussianGraphicalModelCV(range(8, 12), cv=3).fit(pd.DataFrame(X, columns=list("abcdefghijkl")))
    ht.save(model, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    assert_array_equal(loaded.precision_, model.precision_)
    assert loaded.edges_.tolist() == model.edges_.tolist()
    assert loaded.score(pd.DataFrame(X, columns=list("abcdefghijkl"))) == model.score(
        pd.DataFrame(X, columns=list("abcdefghijkl"))
    )


# --- positive definite -----------------------------------------------------------------------------------------------


def scarce():
    """More edges than so few rows can tell: the minimiser of the pseudo-likelihood is indefinite."""
    return make_graphical_model(15, 30, graph="random", seed=10).X


@pytest.mark.slow
def test_an_indefinite_minimiser_is_made_definite_and_said():
    X = scarce()
    run = ht.minimize(GraphicalModel((X - X.mean(axis=0)) / X.std(axis=0), l2=0.01), EdgeSparsity(30 + 120))
    assert np.linalg.eigvalsh(run.w)[0] < 0
    with pytest.warns(UserWarning, match="not positive definite, so its entries off the diagonal were multiplied by 0"):
        shrunk = SparseGaussianGraphicalModel(60, refit=False).fit(X)
    refitted = SparseGaussianGraphicalModel(60).fit(X)
    for model in (shrunk, refitted):
        assert np.linalg.eigvalsh(model.precision_)[0] > 0
        assert model.n_edges_ == 60
        assert 0.0 < model.positive_definite_adjustment_ < 1.0
    new = make_graphical_model(1000, 30, graph="random", seed=99).X
    assert refitted.score(new) > shrunk.score(new)
    assert graph_of(refitted.precision_) == graph_of(shrunk.precision_)


def test_the_share_that_is_kept_has_the_largest_likelihood():
    rng = np.random.default_rng(0)
    W = np.eye(6) + 0.9 * (np.ones((6, 6)) - np.eye(6)) * np.where(rng.random((6, 6)) < 0.5, -1, 1)
    W = np.tril(W, -1) + np.tril(W, -1).T + np.diag(np.arange(1.0, 7.0))
    S = np.cov(rng.standard_normal((20, 6)).T)
    definite, kept = positive_definite(W, S)
    assert 0 < kept < 1

    def likelihood(c):
        matrix = np.diag(np.diag(W)) + c * (W - np.diag(np.diag(W)))
        if np.linalg.eigvalsh(matrix)[0] <= 0:
            return -np.inf
        return np.linalg.slogdet(matrix)[1] - np.sum(S * matrix)

    grid = [likelihood(c) for c in np.linspace(0, 1, 401)]
    assert likelihood(kept) >= max(grid) - 1e-5
    assert_allclose(np.diag(definite), np.diag(W))
    same, kept = positive_definite(np.eye(6), S)
    assert kept == 1.0
    assert_array_equal(same, np.eye(6))


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("dense", [True, False])
def test_covariance_selection_is_where_any_other_method_ends(alpha, dense, monkeypatch):
    """Restricted to a graph, the likelihood is convex."""
    monkeypatch.setattr(covariance_selection, "_SMALL", 0)
    monkeypatch.setattr(covariance_selection, "_CHUNK", 100)
    rng = np.random.default_rng(1)
    p = 5 if dense else 25
    S = np.cov(rng.standard_normal((60, p)).T)
    start = EdgeSparsity(p * p if dense else p + 2 * 6).project(S - np.diag(np.diag(S))).point + np.eye(p) * 9.0
    W, reached = most_likely_precision(S, start, alpha, 1e-12)
    assert reached
    assert_array_equal(W, W.T)
    i, j = np.nonzero(np.triu(start))

    def loss(v):
        M = np.zeros((p, p))
        M[i, j] = M[j, i] = v
        sign, determinant = np.linalg.slogdet(M)
        if sign <= 0 or np.linalg.eigvalsh(M)[0] <= 0:
            return 1e6, np.zeros_like(v)
        G = S - np.linalg.inv(M) + alpha * M
        G = G[i, j] * np.where(i == j, 1.0, 2.0)
        return -determinant + np.sum(S * M) + alpha / 2 * np.sum(M * M), G

    other = minimize(loss, start[i, j], jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-9})
    assert loss(W[i, j])[0] <= other.fun + 1e-9
    assert_allclose(W[i, j], other.x, rtol=1e-3, atol=1e-4)


# --- how many edges --------------------------------------------------------------------------------------------------
@only_at("pairs")
def test_cross_validation_finds_the_number_of_edges():
    X, problem = data(400, 20, "chain")
    model = SparseGaussianGraphicalModelCV().fit(X)
    assert abs(model.n_edges_ - 19) <= 2
    assert f1_of_graphs(model.precision_, problem.precision) >= 0.95
    assert model.scores_.shape == (model.candidates_.size, 5)
    assert model.candidates_.tolist() == sorted(set(model.candidates_.tolist()))
    best = model.candidates_[np.argmax(model.mean_scores_)]
    assert model.n_edges_ == best
    assert model.one_standard_error_ <= best
    modest = SparseGaussianGraphicalModelCV(rule="one_standard_error").fit(X)
    assert modest.n_edges_ == modest.one_standard_error_ == model.one_standard_error_


@only_at("pairs")
def test_a_score_is_that_of_the_fold_by_hand():
    X, _ = data(90)
    folds = KFold(3)
    model = SparseGaussianGraphicalModelCV([5, 10], alpha=0.02, cv=folds).fit(X)
    for row, n_edges in enumerate((5, 10)):
        for fold, (train, test) in enumerate(folds.split(X)):
            one = SparseGaussianGraphicalModel(n_edges, alpha=0.02).fit(X[train])
            assert model.scores_[row, fold] == pytest.approx(one.score(X[test]), rel=1e-3)
    assert model.alpha_ == 0.02


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize(("criterion", "gamma"), [("ebic", 0.5), ("ebic", 1.0), ("bic", 0.5), ("aic", 0.5)])
def test_an_information_criterion_by_hand(criterion, gamma):
    """The extended BIC of Foygel and Drton, from the density of the rows."""
    X, n, p = make_graphical_model(200, 10, graph="chain").X, 200, 10
    model = SparseGaussianGraphicalModelCV([0, 5, 9, 15], criterion=criterion, ebic_gamma=gamma).fit(X)
    price = {"ebic": np.log(n) + 4 * gamma * np.log(p), "bic": np.log(n), "aic": 2.0}[criterion]
    expected = []
    for n_edges in (0, 5, 9, 15):
        fit = SparseGaussianGraphicalModel(n_edges).fit(X)
        density = multivariate_normal(fit.location_, fit.covariance_)
        expected.append(-2 * density.logpdf(X).sum() + price * n_edges)
    assert_allclose(model.criterion_path_, expected, rtol=1e-5)  # the tolerance of fits that are compared is 1e-6
    assert_array_equal(model.candidates_, [0, 5, 9, 15])
    assert model.best_n_edges_ == model.candidates_[np.argmin(expected)]


@pytest.mark.slow
def test_the_extended_bic_finds_the_number_of_edges():
    for seed in range(3):
        X = make_graphical_model(300, 20, graph="chain", seed=seed).X
        model, bic = (SparseGaussianGraphicalModelCV(criterion=name).fit(X) for name in ("ebic", "bic"))
        assert all(abs(i - j) == 1 for i, j in model.edges_[["i", "j"]])
        assert model.best_n_edges_ == model.n_edges_ == 19 <= bic.n_edges_


@pytest.mark.slow
def test_nothing_is_left_of_folds_or_of_a_criterion():
    X = make_graphical_model(100, 6, graph="chain").X
    model = SparseGaussianGraphicalModelCV([2, 5, 8], cv=3).fit(X)
    model.set_params(criterion="ebic", cv=5).fit(X)
    assert (
        not {"scores_", "mean_scores_", "standard_errors_", "one_standard_error_", "scorer_name_"} & vars(model).keys()
    )
    model.set_params(criterion="cv").fit(X)
    assert model.scores_.shape == (3, 5)
    assert not hasattr(model, "criterion_path_")


def test_a_model_of_before_was_chosen_by_folds(tmp_path):
    ht.save(SparseGaussianGraphicalModelCV([3]), tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert document["object"]["version"] == 2
    document["object"]["version"] = 1
    for name in ("criterion", "ebic_gamma"):
        del document["object"]["parameters"][name]
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert ht.load(tmp_path / "x.json").criterion == "cv"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 3}, "cv=3 is about folds"),
        ({"rule": "one_standard_error"}, "rule='one_standard_error' is about folds"),
        ({"refit": False}, 'criterion="ebic" compares likelihoods; take refit=True'),
        ({"ebic_gamma": 2.0}, "ebic_gamma must be"),
        ({"criterion": "gic"}, "criterion must be one of 'cv', 'ebic', 'bic', 'aic'; got 'gic'"),
    ],
)
def test_settings_that_do_not_go_with_a_criterion_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseGaussianGraphicalModelCV(**{"criterion": "ebic", **settings}).fit(make_graphical_model(50, 5).X)
    with pytest.raises(InvalidInputError, match="groups is for folds"):
        SparseGaussianGraphicalModelCV(criterion="ebic").fit(make_graphical_model(50, 5).X, groups=np.arange(50))


@only_at("pairs")
def test_the_ridge_is_chosen_along_with_the_edges():
    few, many = SparseGaussianGraphicalModelCV().fit(scarce()), SparseGaussianGraphicalModelCV().fit(data(1000, 10)[0])
    assert few.alpha_ > many.alpha_


@pytest.mark.slow
def test_folds_side_by_side_are_folds_one_by_one():
    X, _ = data(60, 8)
    one = SparseGaussianGraphicalModelCV([2, 6, 9], cv=3).fit(X)
    two = SparseGaussianGraphicalModelCV([2, 6, 9], cv=3, n_jobs=2).fit(X)
    assert_allclose(two.scores_, one.scores_, rtol=1e-9)


def test_scikit_learn_may_search_too():
    X, _ = data(90, 8)
    search = GridSearchCV(SparseGaussianGraphicalModel(), {"n_edges": [0, 4, 8]}, cv=3).fit(X)
    assert search.best_params_["n_edges"] > 0


@only_at("pairs")
def test_the_validation_elbow_is_at_the_truth():
    """The training objective falls with every edge; the validation objective has its minimum at the true graph."""
    problem = make_graphical_model(250, 40, graph="chain", seed=10)
    mean, scale = problem.X.mean(axis=0), problem.X.std(axis=0)
    train = GraphicalModel((problem.X - mean) / scale)
    fresh = GraphicalModel((make_graphical_model(2000, 40, graph="chain", seed=99).X - mean) / scale)
    budgets = (80, 118, 200, 280)
    runs = [ht.minimize(train, EdgeSparsity(K)) for K in budgets]
    assert all(one.value > two.value for one, two in pairwise(runs))
    assert budgets[int(np.argmin([fresh.value(run.w) for run in runs]))] == 118


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize(("p", "n"), [(30, 150), (30, 300)])
def test_the_graph_is_better_than_the_lasso_of_as_many_edges(p, n):
    ours, theirs = [], []
    for seed in (10, 11, 12):
        problem = make_graphical_model(n, p, graph="random", seed=seed)
        E, S = len(problem.edges), np.corrcoef(problem.X.T)
        ours.append(f1_of_graphs(SparseGaussianGraphicalModel(E).fit(problem.X).precision_, problem.precision))
        low, high = 1e-3, 1.0
        for _ in range(25):
            middle = np.sqrt(low * high)
            precision = graphical_lasso(S, middle, max_iter=300, tol=1e-3)[1]
            count = np.count_nonzero(np.triu(precision, 1))
            low, high = (middle, high) if count > E else (low, middle)
            if count == E:
                break
        theirs.append(f1_of_graphs(precision, problem.precision))
    assert np.mean(ours) > np.mean(theirs)


# --- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_edges": -1}, r"n_edges must be between 0 and the number of pairs of columns \(66\), got -1"),
        ({"n_edges": 67}, r"n_edges must be between 0 and the number of pairs of columns \(66\), got 67"),
        ({"n_edges": 2.5}, "n_edges must be an integer, got 2.5"),
        ({"n_edges": True}, "n_edges must be an integer, got True"),
        ({"n_edges": "cv"}, "n_edges must be an integer or None, got 'cv'; SparseGaussianGraphicalModelCV chooses it"),
        ({"n_edges": [3, 5]}, r"got \[3, 5\]; SparseGaussianGraphicalModelCV chooses it by cross-validation"),
        ({"n_edges": np.array(5)}, r"n_edges must be .* got array\(5\)"),
        ({"alpha": -1.0}, "alpha"),
        ({"tol": 0.0}, "tol"),
        ({"refit": 1}, "refit must be True or False"),
        ({"standardize": "yes"}, "standardize"),
        ({"covariance": "given"}, 'covariance must be "empirical" or "precomputed"'),
        ({"solver": "newton"}, "unknown solver"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    X, _ = data(30)
    with pytest.raises(InvalidInputError, match=message):
        SparseGaussianGraphicalModel(**{"n_edges": 5, **settings}).fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_edges": "many"}, "n_edges must be a number or numbers of edges to compare, got 'many'"),
        ({"n_edges": []}, "n_edges is empty"),
        ({"n_edges": [3, 99]}, r"columns \(66\), got 99"),
        ({"cv": [(np.arange(15), np.arange(15, 30)), ([3], [4])]}, "fold 1 of cv has one row to train"),
        ({"cv": []}, "no folds"),
        ({"rule": "worst"}, "rule must be"),
    ],
)
def test_wrong_settings_of_the_comparison_are_refused(settings, message):
    X, _ = data(30)
    with pytest.raises(InvalidInputError, match=message):
        SparseGaussianGraphicalModelCV(**settings).fit(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X: np.where(np.arange(12) == 3, 7.25, X),
            r"feature 3 \(counted from 0\) has the same value in every row",
        ),
        (lambda X: np.where(X[4, 5] == X, np.nan, X), "NaN"),
        (lambda X: np.where(X[4, 5] == X, np.inf, X), "infinity"),
        (lambda X: X[:1], "minimum of 2"),
        (lambda X: X * 1e-200, "rescale"),
    ],
)
def test_wrong_data_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SparseGaussianGraphicalModel(5).fit(change(data(30)[0]))


def test_a_constant_column_is_called_by_its_name():
    X = pd.DataFrame(data(30)[0], columns=list("abcdefghijkl")).assign(d=1.0)
    with pytest.raises(InvalidInputError, match="d has the same value in every row, so it has no precision"):
        SparseGaussianGraphicalModel(5).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_is_refused_however_its_mean_is_rounded(dtype):
    for n, value in ((13, -7.25), (1000, 0.1), (20_003, 3e7)):
        X = np.random.default_rng(n).standard_normal((n, 3)).astype(dtype)
        X[:, 2] = value
        with pytest.raises(ValueError, match=r"feature 2 \(counted from 0\) has the same value in every row"):
            SparseGaussianGraphicalModel(n_edges=1).fit(X)


def test_a_column_that_is_constant_in_a_fold_is_called_that():
    X, _ = data(30)
    X[:15, 3] = 1.0
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(15), np.arange(15, 30))]
    with pytest.raises(
        InvalidInputError, match=r"rows that fold 1 of cv trains on, feature 3 \(.*\) has the same value"
    ):
        SparseGaussianGraphicalModelCV([3], cv=folds).fit(X)
    assert SparseGaussianGraphicalModelCV([3], cv=folds[:1]).fit(X).best_n_edges_ == 3


def test_columns_of_one_name_are_refused():
    X = pd.DataFrame(data(30)[0], columns=list("abcdefghijka"))
    with pytest.raises(InvalidInputError, match="more than one column of X is called 'a'; rename them"):
        SparseGaussianGraphicalModel(5).fit(X)


def test_methods_need_a_fitted_model():
    X, _ = data(30)
    model = SparseGaussianGraphicalModel(5)
    for ask in (
        lambda: model.score(X),
        lambda: model.mahalanobis(X),
        lambda: model.get_precision(),
        lambda: model.error_norm(np.eye(12)),
    ):
        with pytest.raises(NotFittedError):
            ask()
    model.fit(X)
    assert model.mahalanobis(X).shape == (30,)
    assert model.error_norm(model.covariance_) == 0.0
    assert isinstance(model.score(X), float)


def test_copies_of_a_column_need_a_ridge():
    X, _ = data(40)
    X[:, 7] = 3.0 - 2.0 * X[:, 2]
    with pytest.raises(InvalidInputError, match=r"feature 2 \(.*\) and feature 7 \(.*\) are copies"):
        SparseGaussianGraphicalModel(5, alpha=0.0).fit(X)
    model = SparseGaussianGraphicalModel(5).fit(X)
    assert model.edges_[["i", "j"]][0].item() == (2, 7)
    assert model.edges_["partial_correlation"][0] < -0.9
    assert np.isfinite(model.precision_).all()


def test_one_column():
    X = data(30)[0][:, :1]
    for one in (SparseGaussianGraphicalModelCV(), SparseGaussianGraphicalModel(0), SparseGaussianGraphicalModel()):
        model = one.set_params(alpha=0.0).fit(X)
        assert_allclose(model.covariance_, [[X.var()]])
    with pytest.raises(InvalidInputError, match=r"number of pairs of columns \(0\), got 1"):
        SparseGaussianGraphicalModel(1).fit(X)


@pytest.mark.parametrize("n", [2, 5])
def test_far_fewer_rows_than_columns(n):
    X = make_graphical_model(n, 20, graph="chain", seed=1).X
    model = SparseGaussianGraphicalModel(10).fit(X)
    assert np.linalg.eigvalsh(model.precision_)[0] > 0
    assert model.n_edges_ <= 10


def asymmetric():
    S = np.eye(3)
    S[0, 1] = 0.5
    return S


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((3, 2)), "square"),
        (asymmetric(), r"entry \(0, 1\) is 0.5 and \(1, 0\) is 0"),
        (np.diag([1.0, -1.0, 2.0]), r"feature 1 \(counted from 0\) has no positive variance"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "no negative eigenvalue"),
        (np.ones((2, 2)), "copies"),
    ],
)
def test_arguments_other_than_covariances_are_refused(S, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseGaussianGraphicalModel(1, covariance="precomputed", alpha=0.0).fit(S)


def test_a_fit_that_did_not_converge_says_so():
    X, _ = data(40)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = SparseGaussianGraphicalModel(20, max_iter=1).fit(X)
    assert not model.converged_
    assert "raise max_iter" in model.stop_reason_


def test_a_likelihood_without_a_maximum_says_so():
    X = make_graphical_model(3, 6, graph="chain", seed=1).X
    with pytest.warns(ConvergenceWarning):
        model = SparseGaussianGraphicalModel(15, alpha=0.0, max_iter=30).fit(X)
    assert not model.converged_
    assert np.isfinite(model.precision_).all()


# --- the best number of edges, or the best ridge, at an end of those compared ----------------------------------------


@only_at("pairs")
def test_a_best_number_of_edges_at_an_end_of_the_range_is_warned_of():
    X = make_graphical_model(300, 20, graph="chain").X
    for counts, message in (
        ([0, 10], "largest number of edges compared, 10: .* up to 20"),
        ([60, 90], "smallest .*, 60: "),
    ):
        with pytest.warns(SearchRangeWarning, match=message):
            SparseGaussianGraphicalModelCV(counts).fit(X)


@only_at("pairs")
@pytest.mark.filterwarnings("error::hardthresh.core.errors.SearchRangeWarning")
def test_a_search_that_ends_by_itself_is_not_warned_of():
    assert SparseGaussianGraphicalModelCV().fit(make_graphical_model(300, 20, graph="chain").X).best_n_edges_ == 19
    assert SparseGaussianGraphicalModelCV([0, 1]).fit(data(300, 2, "chain")[0]).best_n_edges_ == 1, "all pairs"


@only_at("pairs")
def test_a_best_ridge_that_is_the_largest_compared_is_warned_of():
    X = make_graphical_model(10, 30, graph="chain").X
    with pytest.warns(SearchRangeWarning, match=r"largest ridge compared, 0.3: .* alpha=0.6,"):
        model = SparseGaussianGraphicalModelCV().fit(X)
    larger = SparseGaussianGraphicalModelCV(alpha=0.6).fit(X)
    assert larger.mean_scores_.max() > model.mean_scores_.max(), "the advice of the warning helps here"
