"""Error messages show values as users wrote them: no NumPy types, no addresses, no names of internal classes."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import hardthresh as ht
from hardthresh import baselines, constraints, datasets, diagnostics, limited, objectives, selection, solvers, steps
from hardthresh.cli import reading
from hardthresh.core import LowerBound, MaxIter, lookup
from hardthresh.core.errors import format_value

X = np.random.default_rng(0).standard_normal((30, 4))
Y = X[:, 0] + X[:, 1]
ILL = Y > 0
INTEGER, REAL, TEXT, YES = np.int64(-3), np.float64(-0.5), np.str_("tau"), np.True_
NAMES = np.array(["age", "sex", "age", "bmi"])


class Thing:
    """What a user passes by mistake."""


def fit(estimator, *data, **more):
    return estimator.fit(*(data or (X, Y)), **more)


BAD = {
    # estimators
    "unknown parameter": lambda: ht.SparseLinearRegression(k=3),
    "unknown parameter, CV": lambda: ht.SparseLogisticRegressionCV(k=3),
    "unknown parameter, limited": lambda: ht.LimitedAttributeRegression(k=3),
    "positional parameter": lambda: ht.SparseLinearRegression(3),
    "fit without y": lambda: ht.SparseLinearRegression().fit(X),
    "fit without y, CV": lambda: ht.SparseLinearRegressionCV().fit(X),
    "fit with groups": lambda: ht.SparseLogisticRegression().fit(X, ILL, groups=[1, 2]),
    "fit with weights, limited": lambda: ht.LimitedAttributeRegression().fit(X, Y, sample_weight=Y),
    "start without a number": lambda: ht.LimitedAttributeRegression().start(),
    "certificate": lambda: ht.SparseLinearRegression().certificate(1, 2, 3, 4, 5, 6),
    "alpha": lambda: fit(ht.SparseLinearRegression(alpha=REAL)),
    "alpha, an object": lambda: fit(ht.SparseLinearRegression(alpha=Thing())),
    "tol": lambda: fit(ht.SparseLinearRegression(tol=REAL)),
    "tol, a text": lambda: fit(ht.SparseLinearRegression(tol=TEXT)),
    "max_iter": lambda: fit(ht.SparseLinearRegression(max_iter=REAL)),
    "n_nonzero_coefs": lambda: fit(ht.SparseLinearRegression(n_nonzero_coefs=REAL)),
    "n_nonzero_coefs, one of several": lambda: fit(ht.SparseLinearRegressionCV(n_nonzero_coefs=[1, REAL])),
    "n_nonzero_coefs, a text": lambda: fit(ht.SparseLinearRegressionCV(n_nonzero_coefs=TEXT)),
    "fit_intercept": lambda: fit(ht.SparseLinearRegression(fit_intercept=INTEGER)),
    "solver, a name": lambda: fit(ht.SparseLinearRegression(solver=TEXT)),
    "solver, an object": lambda: fit(ht.SparseLinearRegression(solver=Thing())),
    "solver, a function": lambda: fit(ht.SparseLinearRegression(solver=lambda: 0)),
    "solver, a class": lambda: fit(ht.SparseLinearRegression(solver=solvers.IHT)),
    "always_include, a name": lambda: fit(ht.SparseLinearRegression(always_include=NAMES)),
    "always_include, a number": lambda: fit(ht.SparseLinearRegression(always_include=[REAL])),
    "always_include, an object": lambda: fit(ht.SparseLinearRegression(always_include=Thing())),
    "groups": lambda: fit(ht.SparseLinearRegression(groups=TEXT)),
    "groups, a missing label": lambda: fit(ht.SparseLinearRegression(groups=[1, 2, np.float64("nan"), 3])),
    "groups, a mapping": lambda: fit(ht.SparseLinearRegression(groups={np.int64(7): "a"})),
    "rule": lambda: fit(ht.SparseLinearRegressionCV(rule=TEXT)),
    "cv": lambda: fit(ht.LowRankImputerCV(cv=TEXT), X),
    "cv, an object": lambda: fit(ht.LowRankImputerCV(cv=Thing()), X),
    "rank": lambda: fit(ht.LowRankRegression(rank=REAL)),
    "rank of an imputer": lambda: fit(ht.LowRankImputer(rank=REAL), X),
    "rank of an imputer, several": lambda: fit(ht.LowRankImputerCV(rank=[1, REAL]), X),
    "rank of an imputer, a text": lambda: fit(ht.LowRankImputer(rank=TEXT), X),
    "missing": lambda: fit(ht.LowRankImputer(missing=TEXT), X),
    "n_edges": lambda: fit(ht.SparseGaussianGraphicalModel(n_edges=REAL), X),
    "n_edges, a text": lambda: fit(ht.SparseGaussianGraphicalModel(n_edges=TEXT), X),
    "n_edges, several": lambda: fit(ht.SparseGaussianGraphicalModelCV(n_edges=[1, REAL]), X),
    "covariance": lambda: fit(ht.SparseGaussianGraphicalModel(covariance=TEXT), X),
    "strategy": lambda: fit(ht.LimitedAttributeRegression(strategy=TEXT)),
    "strategy, an object": lambda: fit(ht.LimitedAttributeRegression(strategy=Thing())),
    "limited n_nonzero_coefs": lambda: fit(ht.LimitedAttributeRegression(n_nonzero_coefs=REAL)),
    "n_observed": lambda: fit(ht.LimitedAttributeRegression(n_nonzero_coefs=1, n_observed=REAL)),
    "budget": lambda: fit(ht.LimitedAttributeRegression(n_nonzero_coefs=1, costs=[1, 2, 3, 4], budget=REAL)),
    "costs": lambda: fit(ht.LimitedAttributeRegression(n_nonzero_coefs=1, costs=[TEXT] * 4, budget=9)),
    "panels": lambda: fit(ht.LimitedAttributeRegression(panels=NAMES, costs={}, budget=9)),
    "panel too dear": lambda: fit(ht.LimitedAttributeRegression(panels=NAMES, costs=[1, 9, 1, 1], budget=5)),
    "no source": lambda: ht.LimitedAttributeRegression().fit_source(Thing()),
    "classes": lambda: ht.LimitedAttributeLogisticRegression().partial_fit(X, ILL, classes=[TEXT, "b"]),
    # sources
    "names of attributes": lambda: limited.ArraySource(X, Y, n_observed=2, feature_names=NAMES),
    "a row that is none": lambda: limited.RowSource([Thing()], n_features=4, n_observed=2).draw(1),
    "ask": lambda: limited.CallbackSource(Thing(), n_features=4, n_observed=2),
    # the pieces
    "k": lambda: constraints.Sparsity(REAL),
    "free": lambda: constraints.Sparsity(1, free=[REAL]),
    "bounds": lambda: constraints.Sparsity(1, lower=np.ones(3)),
    "k of groups": lambda: constraints.GroupSparsity([1, 2], REAL),
    "weights of groups": lambda: constraints.GroupSparsity(NAMES[:2], 1, weights={TEXT: 1.0}),
    "a weight": lambda: constraints.GroupSparsity(NAMES[:2], 1, weights={"age": REAL, "sex": 1.0}),
    "overlapping groups": lambda: constraints.OverlappingGroupSparsity([[REAL]], 1),
    "r": lambda: constraints.Rank(REAL),
    "method": lambda: constraints.Rank(1, method=TEXT),
    "k of edges": lambda: constraints.EdgeSparsity(REAL),
    "loss": lambda: objectives.LinearModel(X, Y, loss=TEXT),
    "shape": lambda: objectives.MatrixRegression(X, Y, shape=REAL),
    "function": lambda: objectives.Function(Thing(), 3),
    "shape of a function": lambda: objectives.Function(lambda w: 0.0, REAL),
    "fixed step": lambda: steps.Fixed(REAL),
    "Polyak": lambda: steps.SparsePolyak(target=np.float64("nan")),
    "window": lambda: steps.BarzilaiBorwein(window=INTEGER),
    "kind of step": lambda: steps.BarzilaiBorwein(kind=TEXT),
    "first step": lambda: steps.Backtracking(first=REAL),
    "limit": lambda: MaxIter(INTEGER),
    "name in the registry": lambda: lookup("loss", TEXT),
    "constraint": lambda: ht.minimize(objectives.LinearModel(X, Y), Thing()),
    "constraint, a class": lambda: ht.minimize(objectives.LinearModel(X, Y), constraints.Sparsity),
    "solver of minimize": lambda: ht.minimize(objectives.LinearModel(X, Y), constraints.Sparsity(1), Thing()),
    "tol of minimize": lambda: ht.minimize(objectives.LinearModel(X, Y), constraints.Sparsity(1), tol=REAL),
    "stop": lambda: ht.minimize(objectives.LinearModel(X, Y), constraints.Sparsity(1), stop=Thing()),
    "stop, a class": lambda: ht.minimize(objectives.LinearModel(X, Y), constraints.Sparsity(1), stop=LowerBound),
    "budgets": lambda: list(selection.path(objectives.LinearModel(X, Y), constraints.Sparsity, INTEGER)),
    "radius": lambda: baselines.L1Ball(REAL),
    "variant": lambda: baselines.FrankWolfe(variant=TEXT),
    "factor": lambda: diagnostics.restricted_condition(
        objectives.LinearModel(X, Y), constraints.Sparsity(1), factor=REAL
    ),
    "momentum": lambda: diagnostics.momentum_range(REAL, np.float64(1)),
    "gradient norm": lambda: diagnostics.sparse_polyak_guarantee(1, 1, REAL, k=1, k_star=1),
    "theorem": lambda: diagnostics.sparse_polyak_guarantee(1, 1, 1, k=1, k_star=1, theorem=TEXT),
    "eigenvalues": lambda: diagnostics.statistical_constants("logistic", n=9, d=9, k=1, eigenvalues=REAL),
    "size": lambda: diagnostics.restricted_bounds(objectives.LinearModel(X, Y), INTEGER),
    "states": lambda: diagnostics.model_accuracy(
        *(objectives.LinearModel(X, Y), constraints.Sparsity(1), solvers.ProbabilisticIHT(), [Thing(), Thing()]),
        **{"kappa_g": 1, "kappa_f": 1, "epsilon_f": 1},
    ),
    "delta": lambda: diagnostics.l1_phase_transition(REAL),
    "simulator": lambda: datasets.make_sparse_regression(10, 5, INTEGER),
    "model of a simulator": lambda: datasets.make_sparse_regression(10, 5, 2, model=TEXT),
    "kind of graph": lambda: datasets.make_graphical_model(10, 5, graph=TEXT),
    "data set": lambda: datasets.fetch(TEXT),
}
INTERNAL = sorted(
    {
        name
        for file in Path(ht.__file__).parent.rglob("*.py")
        for name in re.findall(r"^ *class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if re.search("[a-z][A-Z]|^_", name)
    }
    - {name for room in ht.__all__ for name in [room, *getattr(getattr(ht, room), "__all__", [])]}
)
"""The classes of the package that no `__all__` names, without those called by an English word."""


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_messages_show_what_users_wrote(bad):
    with pytest.raises((ValueError, TypeError)) as caught:
        bad()
    message = str(caught.value)
    assert not re.search(r"\bnp\.|numpy\.| at 0x", message), message
    assert not re.search(rf"\b({'|'.join(INTERNAL)})\b", message), message


def test_values_are_formatted_as_plain_python():
    shown = {
        "'tau'": np.str_("tau"),
        "0.1": np.float32(0.1),
        "nan": np.float64("nan"),
        "-3": np.int8(-3),
        "True": np.True_,
        "[1, 'a', (2.5,)]": [np.int64(1), np.str_("a"), (np.float64(2.5),)],
        "{'a': 1}": {np.str_("a"): np.int64(1)},
        "the class IHT; write IHT(...)": solvers.IHT,
        "an instance of Thing": Thing(),
        "the function fit": fit,
        "None": None,
    }
    assert {text: format_value(value) for text, value in shown.items()} == {text: text for text in shown}


def test_long_values_are_cut():
    assert len(format_value(list(range(10_000)))) < 200
    assert len(format_value("x" * 10_000)) < 300


# --- columns and rows without names -----------------------------------------------------------------------------------


def changed(place, value):
    table = X.copy()
    table[place] = value
    return table


def sparse_far():
    table = X.copy()
    table[:, 2] = 1e8 + 1e-3 * table[:, 2]
    return sp.csr_array(table)


UNNAMED = {
    "constant column": lambda: fit(ht.SparseLinearRegression(), changed((slice(None), 2), 1.0), Y),
    "constant columns": lambda: fit(ht.SparseLinearRegression(), changed((slice(None), [1, 2]), 1.0), Y),
    "constant column, low rank": lambda: fit(ht.LowRankRegression(), changed((slice(None), 2), 1.0), Y),
    "far from zero": lambda: fit(ht.SparseLinearRegression(), sparse_far(), Y),
    "tiny": lambda: fit(ht.SparseLinearRegression(), X * [1, 1e-200, 1, 1], Y),
    "constant and included": lambda: fit(
        ht.SparseLinearRegression(always_include=[2]), changed((slice(None), 2), 1.0), Y
    ),
    "included, out of range": lambda: fit(ht.SparseLinearRegression(always_include=[4])),
    "label missing": lambda: fit(ht.SparseLinearRegression(groups=["a", None, "b", "b"])),
    "label not hashable": lambda: fit(ht.SparseLinearRegression(groups=["a", ["b"], "b", "b"])),
    "labels of some": lambda: fit(ht.SparseLinearRegression(groups={0: "a"})),
    "labels of too many": lambda: fit(ht.SparseLinearRegression(groups=dict.fromkeys(range(5), "a"))),
    "certificate": lambda: warnings.warn(str(fit(ht.SparseLinearRegression()).certificate()), stacklevel=2),
    "constant column of a graph": lambda: fit(ht.SparseGaussianGraphicalModel(2), changed((slice(None), 2), 1.0)),
    "copies in a graph": lambda: fit(ht.SparseGaussianGraphicalModel(2, alpha=0), changed((slice(None), 2), X[:, 1])),
    "infinity in a table with gaps": lambda: fit(ht.LowRankImputer(), changed((3, 2), np.inf)),
    "text in a table with gaps": lambda: fit(ht.LowRankImputer(), np.array([["1", "2"], ["3", "x"]])),
    "infinity in a sparse table": lambda: fit(
        ht.LowRankImputer(missing="unstored"), sp.csr_array(changed((3, 2), np.inf))
    ),
    "empty column": lambda: fit(ht.LowRankImputer(1), changed((slice(None), 2), np.nan)),
    "row of an outlier": lambda: fit(ht.LowRankImputer(1, alpha=0.0), changed((7, slice(None)), 1e3)),
    "overflow": lambda: objectives.LinearModel(X * [1, 1e200, 1, 1], Y).hessian_diag(
        objectives.LinearModel(X * [1, 1e200, 1, 1], Y).evaluate(np.zeros(4))
    ),
    "zero column of a graph": lambda: objectives.GraphicalModel(changed((slice(None), 2), 0.0)),
    "file of numbers": lambda: reading.check(reading.Data("x.npy", changed((3, 2), np.nan))),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", UNNAMED.values(), ids=UNNAMED)
def test_messages_say_that_columns_and_rows_are_counted_from_zero(bad):
    with np.errstate(all="ignore"), pytest.raises((ValueError, TypeError, UserWarning)) as caught:
        bad()
    message = str(caught.value)
    assert re.search(r"\b(feature|column|row)s? \d", message), message
    assert "counted from 0" in message


def warned_fits():
    X = np.random.default_rng(0).standard_normal((40, 6))
    y = X @ np.arange(6.0)
    constant = np.column_stack([X, np.ones(40)])
    return {
        "fit": lambda: ht.SparseLinearRegression(n_nonzero_coefs=2).fit(constant, y),
        "cv": lambda: ht.SparseLinearRegressionCV(n_nonzero_coefs=[1, 2], cv=3).fit(X, y),
        "low rank cv": lambda: ht.LowRankRegressionCV(rank=[1, 2], cv=3).fit(X, X @ np.diag(np.arange(6.0))),
        "grid": lambda: GridSearchCV(ht.SparseLinearRegression(), {"n_nonzero_coefs": [2]}, cv=2).fit(constant, y),
        "limited": lambda: ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=4).fit(X[:8], y[:8]),
        "imputer": lambda: ht.LowRankImputer(rank=1).fit(np.column_stack([X, np.full(40, np.nan)])),
        "classes": lambda: ht.SparseLogisticRegression(n_nonzero_coefs=2, alpha=0).fit(X, X[:, 0] > 0),
    }


@pytest.mark.parametrize("name", warned_fits())
def test_a_warning_names_the_line_that_called_the_library(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warned_fits()[name]()
    assert {warning.filename for warning in caught} == {__file__}
