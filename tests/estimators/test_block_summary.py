"""What `summary`, `inference` and `prove` say of models fitted to blocks: what they say of the same rows in memory."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone

import hardthresh as ht
from hardthresh.certificates import unit_effects
from hardthresh.constraints import Sparsity
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.objectives import blocked_model
from hardthresh.report import write_report
from hardthresh.solvers import IHT
from levels import at_most, in_turn, only_at

N, D = 2400, 30
CLASSES = np.array(["well", "ill"])
KINDS = {
    "squared": (ht.SparseLinearRegression, lambda u, rng: u + rng.standard_normal(N)),
    "logistic": (ht.SparseLogisticRegression, lambda u, rng: CLASSES[(u + rng.logistic(size=N) > 0).astype(int)]),
    "svc": (ht.SparseLinearSVC, lambda u, rng: CLASSES[(u + rng.logistic(size=N) > 0).astype(int)]),
    "poisson": (ht.SparsePoissonRegression, lambda u, rng: rng.poisson(np.exp(0.3 * u)).astype(float)),
    "gamma": (ht.SparseGammaRegression, lambda u, rng: np.exp(0.3 * u) * rng.gamma(3.0, size=N)),
    "tweedie": (
        ht.SparseTweedieRegression,
        lambda u, rng: np.exp(0.3 * u) * rng.poisson(1.5, N) * rng.gamma(3.0, size=N),
    ),
    "counts": (
        partial(ht.SparseNegativeBinomialRegression, dispersion=0.5),
        lambda u, rng: rng.poisson(np.exp(0.3 * u) * rng.gamma(2.0, 0.5, N)).astype(float),
    ),
    "huber": (partial(ht.SparseHuberRegression, delta=1.5), lambda u, rng: u + rng.standard_t(2.0, N)),
}


def data(d=D):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((N, d))
    X[:, 1:] = 0.7 * X[:, :-1] + 0.7 * X[:, 1:]
    return 2.0 + X, X[:, [3, 9, 20]] @ [1.0, -0.6, 0.4], rng


def records(found):
    """The numbers of a summary, with the words that may differ left out."""
    every = found.to_dict()
    for name in ("reason", "gap"):  # there is no lower bound over blocks
        del every[name]
    return every


def assert_alike(one, other, name):
    """Numbers agree to what two runs of a solver leave of them, and words are the same."""
    assert one == (pytest.approx(other, rel=1e-4, abs=1e-7) if isinstance(other, float) else other), name


@pytest.mark.slow
@at_most(1)
@in_turn("kind,weighted", list(KINDS), [False, True])
def test_it_is_that_in_memory(kind, weighted):
    model, targets = KINDS[kind]
    X, u, rng = data()
    y, weight = targets(u, rng), rng.integers(0, 3, N).astype(float) if weighted else None
    settings = {"n_nonzero_coefs": 4, "always_include": [2], "alpha": 0.01}
    blocked = model(**settings).fit(from_arrays(X, y, weight, rows=300)).summary()
    plain = model(**settings).fit(X, y, weight).summary()
    theirs, ours = records(plain), records(blocked)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if name != "features":
            assert_alike(ours[name], value, name)
    for one, other in zip(ours["features"], theirs["features"], strict=True):
        for name, value in other.items():
            assert_alike(one[name], value, name)
    assert blocked.correlations.columns == plain.correlations.columns
    np.testing.assert_allclose(blocked.correlations.values, plain.correlations.values, atol=1e-7)
    assert blocked.rows is None


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_all_substitutes_that_are_not_in_the_working_set_share_a_reading(loss):
    rng = np.random.default_rng(5)
    X, chosen = rng.standard_normal((1500, 90)), [1, 7, 12, 20]
    X[:, 30:60] = X[:, :30] + 0.3 * X[:, 30:60]
    u = X[:, chosen].sum(axis=1)
    y = u + rng.standard_normal(1500) if loss == "squared" else (u + rng.logistic(size=1500) > 0).astype(float)
    model = blocked_model(Serial(from_arrays(X, y, rows=300)), loss, l2=0.01)
    support = np.array([*chosen, 90])
    w = model.zeros()
    w[support] = ht.minimize(model.columns(support), Sparsity(0, free=range(5))).w
    before = model.readings
    effects = unit_effects(model, Sparsity(4, free=(90,)), w)
    assert [effect.substitute for effect in effects] == [31, 37, 42, 50]
    assert not np.isin([31, 37, 42, 50], chosen).any()
    assert model.readings <= before + 3  # one at the point, one for all rows of the Hessian, one for the substitutes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_few_readings_and_none_the_second_time(kind):
    model, targets = KINDS[kind]
    X, u, rng = data(400)
    fitted = model(n_nonzero_coefs=4).fit(from_arrays(X, targets(u, rng), rows=300))
    with logged_readings() as log:
        fitted.summary()
    assert 1 <= log.readings <= 2
    with logged_readings() as log:
        fitted.summary()
    assert log.readings == 0


def test_it_is_about_other_blocks_too():
    X, u, rng = data()
    y = u + rng.standard_normal(N)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, y)
    there, here = model.summary(from_arrays(X[:1200], y[:1200], rows=300)), model.summary(X[:1200], y[:1200])
    assert there.objective == pytest.approx(here.objective)
    assert there.n_rows == 1200
    for j, worth in here.worth.items():
        assert there.worth[j].standard_error == pytest.approx(worth.standard_error, rel=1e-6)


@only_at("pairs")
def test_a_comparison_of_numbers_and_a_report_do_without_predictions_of_rows(tmp_path):
    X, u, rng = data()
    y = u + rng.standard_normal(N)
    model = ht.SparseLinearRegression(criterion="ebic").fit(from_arrays(X, y, rows=300))
    assert model.summary().path is None
    for source in (model, ht.SparseLinearRegressionCV(random_state=0).fit(from_arrays(X, y, rows=300))):
        assert {3, 9, 20} <= set(source.summary().worth)
        write_report(source, tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "Cost of leaving it out" in text
        assert "Chart of the residuals" not in text


GROUPS = {
    "apart": {"groups": np.arange(D) // 3, "n_nonzero_groups": 2},
    "always": {"groups": np.arange(D) // 3, "n_nonzero_groups": 2, "always_include": [0, 1, 2]},
    "overlapping": {"groups": [[j, j + 1, j + 2] for j in range(0, D - 2, 2)] + [[D - 1]], "n_nonzero_groups": 2},
    "by a criterion": {"groups": np.arange(D) // 3},
}


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_groups_are_summed_up_certified_and_given_intervals_as_in_memory(kind, groups):
    model, targets = KINDS[kind]
    X, u, rng = data()
    y, model = targets(u, rng), model(alpha=0.01, **GROUPS[groups])
    blocked, plain = clone(model).fit(from_arrays(X, y, rows=300)), clone(model).fit(X, y)
    assert blocked.groups_ == plain.groups_
    np.testing.assert_allclose(blocked.coef_, plain.coef_, rtol=1e-5, atol=1e-7)
    theirs, ours = records(plain.summary()), records(blocked.summary())
    for name in theirs.keys() - {"features"}:
        assert_alike(ours[name], theirs[name], name)
    for one, other in zip(ours["features"], theirs["features"], strict=True):
        for name, value in other.items():
            assert_alike(one[name], value, name)
    found, expected = blocked.certificate(), plain.certificate()
    assert found.value == pytest.approx(expected.value, rel=1e-7)
    assert [found.fitted, found.removed_name, found.added_name] == [
        expected.fitted,
        expected.removed_name,
        expected.added_name,
    ]
    for robust in (False, True):
        found, expected = (each.inference(robust=robust).intervals for each in (blocked, plain))
        for one, other in zip(found, expected, strict=True):
            assert one.feature == other.feature
            assert (one.lower, one.upper) == (
                pytest.approx(other.lower, rel=1e-4),
                pytest.approx(other.upper, rel=1e-4),
            )


WEIGHTS = {
    "none": lambda rng: None,
    "whole": lambda rng: rng.integers(0, 3, N).astype(float),
    "shares": lambda rng: rng.uniform(0.1, 0.9, N),
}


@pytest.mark.slow
@at_most(3)
@in_turn("kind,weights,robust", list(KINDS), list(WEIGHTS), [False, True])
def test_intervals_are_those_in_memory(kind, weights, robust):
    """Model-based ones need no reading, and robust ones one of the chosen columns."""
    model, targets = KINDS[kind]
    X, u, rng = data()
    y, weight = targets(u, rng), WEIGHTS[weights](rng)
    table, settings = from_arrays(X, y, weight, rows=1200), {"n_nonzero_coefs": 4, "alpha": 0.01}
    blocked, plain = model(**settings).fit(table), model(**settings).fit(X, y, weight)
    if kind == "svc" and not robust:
        with pytest.raises(CapabilityError, match="use robust=True"):
            blocked.inference()
        return
    with logged_readings() as log:
        ours = blocked.inference(robust=robust)
    assert log.readings == int(robust)
    theirs = plain.inference(robust=robust)
    assert (
        ours.weights
        == theirs.weights
        == {"none": "", "whole": "frequency"}.get(weights, "sampling" if robust else "precision")
    )
    for name in ("n_estimated", "degrees_of_freedom", "shrunk", "robust"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for one, other in zip(ours.intervals, theirs.intervals, strict=True):
        assert one.feature == other.feature
        assert one.coefficient == pytest.approx(other.coefficient, rel=1e-5)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-5)
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-4)


def test_a_row_that_alone_determines_a_coefficient_has_no_robust_error():
    X, u, rng = data()
    X[:, 5] = 0.0
    X[7, 5], y = 1.0, u + rng.standard_normal(N)
    settings = {"n_nonzero_coefs": 3, "always_include": [5]}
    errors = [
        [interval.standard_error for interval in model.inference(robust=True).intervals]
        for model in (
            ht.SparseLinearRegression(**settings).fit(from_arrays(X, y, rows=300)),
            ht.SparseLinearRegression(**settings).fit(X, y),
        )
    ]
    np.testing.assert_allclose(*errors, rtol=1e-6)
    assert np.isnan(errors[0]).sum() == 1


def test_intervals_are_about_other_blocks_too_and_what_needs_rows_says_so():
    X, u, rng = data()
    y = u + rng.standard_normal(N)
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, y)
    table = from_arrays(X[:1200], y[:1200], rows=300)
    ours, theirs = model.inference(table), model.inference(X[:1200], y[:1200])
    for one, other in zip(ours.intervals, theirs.intervals, strict=True):
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-6)
    with pytest.raises(CapabilityError, match="groups of rows need rows in memory"):
        model.inference(table, groups=np.zeros(1200))


@pytest.mark.slow
def test_class_weights_are_those_of_the_blocks_that_it_is_about_and_no_part_of_the_score():
    X, u, rng = data()
    y = CLASSES[(u + rng.logistic(size=N) > 3).astype(int)]
    model = ht.SparseLogisticRegression(n_nonzero_coefs=3, class_weight="balanced").fit(X, y)
    table = from_arrays(X[:1200], y[:1200], rows=300)
    there, here = model.summary(table), model.summary(X[:1200], y[:1200])
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert there.objective != pytest.approx(model.set_params(class_weight=None).summary(table).objective, rel=1e-4)
    model.set_params(class_weight="balanced")
    assert model.score(table) == pytest.approx(model.score(X[:1200], y[:1200]), abs=1e-12)
    with pytest.raises(InvalidInputError, match=r"y has the classes \['well'\], the model's are \['ill', 'well'\]"):
        model.summary(from_arrays(X, np.full(N, "well"), rows=300))


@pytest.mark.slow
def test_separated_classes_have_intervals_of_the_ridge():
    X, u, _ = data()
    model = ht.SparseLogisticRegression(n_nonzero_coefs=3, alpha=0.01).fit(
        from_arrays(X, CLASSES[(u > u.mean()).astype(int)], rows=300)
    )
    assert model.inference().shrunk


@pytest.mark.slow
@pytest.mark.parametrize(("d", "readings"), [(D, 0), (300, 1)])
def test_a_proof_is_that_in_memory(d, readings):
    """The products of all columns are enough, and those of few columns are known."""
    X, u, rng = data(d)
    y = u + rng.standard_normal(N)
    settings = {"n_nonzero_coefs": 3, "alpha": 0.01, "always_include": [2]}
    blocked = ht.SparseLinearRegression(**settings).fit(from_arrays(X, y, rows=300))
    with logged_readings() as log:
        ours = blocked.prove(time_limit=None)
    assert log.readings == readings
    theirs = ht.SparseLinearRegression(**settings).fit(X, y).prove(time_limit=None)
    assert ours.proved
    assert theirs.proved
    assert ours.value == pytest.approx(theirs.value, rel=1e-12)
    assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-8)


@pytest.mark.filterwarnings("ignore:.*the limit of iterations was reached")
def test_a_better_set_is_found_and_proved_over_blocks():
    X, u, rng = data()
    table = from_arrays(X, u + rng.standard_normal(N), rows=300)
    poor = ht.SparseLinearRegression(n_nonzero_coefs=3, solver=IHT(), max_iter=1).fit(table)
    found = poor.prove(time_limit=None)
    assert found.found_better
    best = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(table)
    np.testing.assert_allclose(found.coef, best.coef_, atol=1e-7)
    assert found.intercept == pytest.approx(best.intercept_, abs=1e-7)


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [("logistic", {}, "searches are for least squares"), ("squared", {"positive": True}, "searches take no bounds")],
)
def test_what_is_not_proved_over_blocks_says_why(kind, settings, why):
    model, targets = KINDS[kind]
    X, u, rng = data()
    fitted = model(n_nonzero_coefs=3, **settings).fit(from_arrays(X, targets(u, rng), rows=300))
    with pytest.raises(CapabilityError, match=f"prove is not for this model of a table in blocks, since {why}"):
        fitted.prove()


def test_the_products_of_very_many_columns_are_not_computed_for_a_proof(monkeypatch):
    monkeypatch.setattr("hardthresh.estimators.linear.blocked_problem._MOST_PRODUCTS", D)
    X, u, rng = data()
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(from_arrays(X, u + rng.standard_normal(N), rows=300))
    with pytest.raises(CapabilityError, match=f"there are more than {D} coordinates"):
        model.prove()


@only_at("pairs")
def test_all_of_it_has_the_same_bits_on_any_engine():
    """Check 4 of scale.md."""
    X, u, rng = data()
    y, model = (u + rng.logistic(size=N) > 0).astype(int), ht.SparseLogisticRegression(n_nonzero_coefs=3)
    blocks = from_arrays(X, y, rows=300)
    given = [(Serial(blocks),), (Threads(blocks, 3),)]
    if find_spec("dask"):
        da = import_module("dask.array")
        given.append((da.from_array(X, chunks=(300, -1)), da.from_array(y, chunks=300)))
    found = []
    for table in given:
        fitted = clone(model).fit(*table)
        said = [fitted.summary(), fitted.inference(robust=True), fitted.inference(*table, robust=True)]
        found.append([repr(one.to_dict()) for one in said])
    assert found[0][1] == found[0][2]
    assert all(one == found[0] for one in found)
