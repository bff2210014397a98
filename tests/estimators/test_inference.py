"""Intervals of coefficients: the formulas of textbooks, what a split uses, and how often it covers (check 20)."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone

import hardthresh as ht
from hardthresh.core.errors import CapabilityError, HardThreshError, InvalidInputError
from hardthresh.estimators.linear.summary import CAUTION
from hardthresh.selection.stability import complementary_pairs
from levels import only_at


def regression(n=80, seed=0, d=9):
    """Columns of several scales, and targets with more noise where the first signal is large."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(0.1, 10, d) + 3.0
    signal = (X[:, 2] - 3.0) / X[:, 2].std() - (X[:, 5] - 3.0) / X[:, 5].std()
    return X, signal + rng.standard_normal(n) * (0.3 + np.abs(signal))


def least_squares(X, y, weights=None):
    """Coefficients with an intercept, the inverse of the weighted products, residuals, and degrees of freedom."""
    A = np.column_stack([X, np.ones(len(y))])
    f = np.ones(len(y)) if weights is None else weights
    inverse = np.linalg.inv(A.T @ (f[:, None] * A))
    coef = inverse @ A.T @ (f * y)
    return A, coef, inverse, y - A @ coef, f.sum() - A.shape[1]


def assert_intervals(found, coef, errors, quantile):
    for one, b, error in zip(found.intervals, coef, errors, strict=False):
        assert one.coefficient == pytest.approx(b, rel=1e-6)
        assert one.standard_error == pytest.approx(error, rel=1e-6)
        assert (one.lower, one.upper) == pytest.approx((b - quantile * error, b + quantile * error), rel=1e-5)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_refit_intervals_of_least_squares_are_those_of_textbooks(level):
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    assert model.support_.tolist() == [2, 5]
    _, coef, inverse, rest, freedom = least_squares(X[:, model.support_], y)
    errors = np.sqrt(np.diag(inverse) * (rest @ rest) / freedom)
    for found in (model.inference(level=level), model.inference(X, y, level=level)):
        assert found.degrees_of_freedom == freedom
        assert_intervals(found, coef, errors, student(freedom).ppf(0.5 + level / 2))
        assert all(np.isnan(one.p_value) for one in found.intervals)


def test_robust_errors_are_those_of_white_with_residuals_over_one_less_leverage():
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    A, coef, inverse, rest, freedom = least_squares(X[:, [2, 5]], y)
    left = rest / (1 - np.sum(A @ inverse * A, axis=1))
    errors = np.sqrt(np.diag(inverse @ (A.T * left**2) @ A @ inverse))
    assert_intervals(model.inference(robust=True), coef, errors, student(freedom).ppf(0.975))


def test_groups_of_rows_are_summed():
    X, y = regression()
    groups = np.repeat(np.arange(16), 5)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    A, coef, inverse, rest, freedom = least_squares(X[:, [2, 5]], y)
    sums = np.stack([(A * rest[:, None])[groups == g].sum(axis=0) for g in range(16)])
    errors = np.sqrt(np.diag(inverse @ sums.T @ sums @ inverse) * 16 / 15 * 79 / freedom)
    found = model.inference(X, y, robust=True, groups=groups)
    assert_intervals(found, coef, errors, student(15).ppf(0.975))


def test_logistic_intervals_have_no_ridge_and_normal_quantiles():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6))
    y = (rng.logistic(size=300) < 2 * X[:, 1] - X[:, 4]).astype(int)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2, alpha=0.3).fit(X, y)
    A = np.column_stack([X[:, [1, 4]], np.ones(300)])
    coef = np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-A @ coef))
        hessian = A.T @ (A * (p * (1 - p))[:, None])
        coef = coef + np.linalg.solve(hessian, A.T @ (y - p))
    found = model.inference()
    assert not found.shrunk
    assert_intervals(found, coef, np.sqrt(np.diag(np.linalg.inv(hessian))), norm.ppf(0.975))
    assert found.degrees_of_freedom is None
    scores = A * (y - p)[:, None]
    inverse = np.linalg.inv(hessian)
    scores = scores / (1 - p * (1 - p) * np.sum(A @ inverse * A, axis=1))[:, None]
    spread = inverse @ scores.T @ scores @ inverse
    assert_intervals(model.inference(robust=True), coef, np.sqrt(np.diag(spread)), norm.ppf(0.975))


@pytest.mark.parametrize("robust", [False, True])
def test_a_weight_is_a_repetition_and_weight_zero_leaves_a_row_out(robust):
    X, y = regression()
    weights = np.random.default_rng(2).integers(0, 3, 80)
    repeated = np.repeat(np.arange(80), weights)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    one = model.fit(X, y, sample_weight=weights).inference(robust=robust)
    other = model.fit(X[repeated], y[repeated]).inference(robust=robust)
    for a, b in zip(one.intervals, other.intervals, strict=True):
        assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), rel=1e-8)


def test_a_split_estimates_on_the_rows_that_did_not_choose():
    X, y = regression(n=101)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=5).fit(X, y)
    found = model.inference(X, y, kind="split")
    assert (found.n_chosen, found.n_estimated) == (50, 51)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    [(first, _)] = complementary_pairs(101, 1, seed)
    chosen = clone(model).fit(X[first], y[first]).support_
    assert [one.index for one in found.intervals] == chosen.tolist()
    others = np.setdiff1d(np.arange(101), first)
    A, coef, inverse, rest, freedom = least_squares(X[np.ix_(others, chosen)], y[others])
    errors = np.sqrt(np.diag(inverse) * (rest @ rest) / freedom)
    assert_intervals(model.inference(X, y, kind="split", robust=False), coef, errors, student(freedom).ppf(0.975))
    left = rest / (1 - np.sum(A @ inverse * A, axis=1))
    errors = np.sqrt(np.diag(inverse @ (A.T * left**2) @ A @ inverse))
    assert found.robust
    assert_intervals(found, coef, errors, student(freedom).ppf(0.975))
    p_values = 2 * student(freedom).sf(np.abs(coef / errors))
    assert [one.p_value for one in found.intervals] == pytest.approx(p_values[:-1].tolist(), rel=1e-5)
    assert model.inference(X, y, kind="split", random_state=6).intervals != found.intervals


def test_halves_have_equal_shares_of_classes_and_events_and_whole_groups():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 5))
    rare = np.where(np.arange(90) < 4, "ill", "well")
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.1).fit(X, rare)
    for seed in range(5):  # a fit to a half without one of the classes would be an error
        assert len(model.inference(X, rare, kind="split", random_state=seed).intervals) == 1
    times = np.column_stack([rng.exponential(size=90), np.arange(90) < 6])
    survival = ht.SparseCoxRegression(n_nonzero_coefs=1).fit(X, times, strata=np.arange(90) % 2)
    again = survival.inference(X, times, strata=np.arange(90) % 2, kind="split", random_state=0)
    assert len(again.intervals) == 1
    groups = np.repeat(np.arange(9), 10)
    y = X[:, 0] + np.repeat(rng.standard_normal(9), 10)
    of_groups = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    found = of_groups.inference(X, y, kind="split", groups=groups)
    assert found.robust
    assert (found.n_chosen, found.n_estimated) == (40, 50)


def test_every_model_has_intervals_or_says_why_not(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    kink = case.name.startswith("quantile") and model.get_params().get("smoothing") is None
    if kink or case.name.startswith("linear_svc"):
        with pytest.raises(CapabilityError, match="kink" if kink else "no likelihood"):
            model.inference(X, y)
        return
    found = model.inference(X, y)
    assert {one.index for one in found.intervals} == set(
        np.flatnonzero(model._certified()[0].reshape(-1, X.shape[1]).any(axis=0))
    )
    for one in found.intervals:
        assert one.lower < one.coefficient < one.upper
    assert str(model.inference()) == str(found)


def test_several_outputs_have_intervals_each():
    X, y = regression()
    outputs = np.column_stack([y, -2 * y + np.random.default_rng(4).standard_normal(80)])
    found = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, outputs).inference()
    alone = [ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, outputs[:, c]).inference() for c in range(2)]
    for place, one in enumerate(found.intervals):
        same = alone[place % 2].intervals[place // 2]
        assert (one.lower, one.upper) == pytest.approx((same.lower, same.upper), rel=1e-6)
    assert {one.output for one in found.intervals} == {"output 0", "output 1"}


def test_check_20_the_words_belong_to_intervals_of_a_refit():
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    refit, split = model.inference(), model.inference(X, y, kind="split")
    assert CAUTION == "after selection: not valid as intervals"
    for shown in (str(refit), refit._repr_html_(), json.dumps(refit.to_dict())):
        assert CAUTION in shown
    assert "p_value" not in json.dumps(refit.to_dict())
    for shown in (str(split), split._repr_html_(), json.dumps(split.to_dict())):
        assert CAUTION not in shown
    pandas = pytest.importorskip("pandas")
    assert isinstance(refit.to_frame(), pandas.DataFrame)
    assert (CAUTION, "lower") in refit.to_frame().columns
    assert ("95 % interval", "lower") in split.to_frame().columns
    assert ("test", "p-value") in split.to_frame().columns


def test_a_row_that_alone_determines_a_coefficient_leaves_its_robust_error_unknown():
    X, y = regression()
    X[:, 3] = np.arange(80) == 7
    y[7] = 50.0
    found = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, y).inference(robust=True)
    others = np.delete(np.arange(80), 7)
    without = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X[np.ix_(others, [2, 5])], y[others])
    first, alone, last = (one.standard_error for one in found.intervals)
    assert np.isnan(alone)
    expected = [one.standard_error for one in without.inference(robust=True).intervals]
    assert [first, last] == pytest.approx(expected, rel=1e-8)


def test_a_split_says_what_its_intervals_need():
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    assert "valid\nfor the best linear predictor of these features" in str(model.inference(X, y, kind="split"))
    by_model = str(model.inference(X, y, kind="split", robust=False))
    assert "asymptotically valid\nif the model of these features is right" in by_model
    ordered = ht.SparseOrdinalRegression(n_nonzero_coefs=1).fit(X, np.digitize(y, [-1, 1]))
    found = ordered.inference(X, np.digitize(y, [-1, 1]), kind="split")
    assert not found.robust
    assert "if the model of these features is right" in str(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 constant column")  # where only the rows for the choice have the level
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_levels_that_only_one_half_has_count_as_none_of_the_others(alpha):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(11)
    levels = np.r_[["rare"] * 2, np.repeat(["a", "b", "c"], 40)]
    X = pandas.DataFrame({"c": pandas.Categorical(levels), "x": rng.standard_normal(122)})
    y = 3.0 * (levels == "a") - 3.0 * (levels == "b") + rng.standard_normal(122)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, alpha=alpha, categorical_features="from_dtype").fit(X, y)
    apart = 0
    for seed in range(8):
        found = model.inference(X, y, kind="split", random_state=seed)
        first = complementary_pairs(122, 1, np.random.RandomState(seed).randint(2**31 - 1))[0][0]
        second = np.setdiff1d(np.arange(122), first)
        seen = set(levels[first])
        assert found.unseen_levels == (() if "rare" in seen or "rare" not in levels[second] else ("c=rare",))
        apart += len(found.unseen_levels)
        if found.unseen_levels:
            assert "count as none of the others: c=rare." in str(found)
            names = [one.feature.removeprefix("c=") for one in found.intervals]
            if alpha == 0.0:  # with a ridge each level has a column, and they are dependent
                _, coef, *_ = least_squares(
                    np.stack([levels[second] == name for name in names], axis=1) * 1.0, y[second]
                )
                assert [one.coefficient for one in found.intervals] == pytest.approx(coef[:-1].tolist(), rel=1e-6)
    assert apart


def test_what_a_half_lacks_is_said_to_come_from_the_split():
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(np.arange(40) == 3, "ill", "well")
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match="in the 20 rows that choose the features: give more rows"):
        model.inference(X, y, kind="split", random_state=0)


def test_separated_classes_have_the_ridge_of_the_model_or_none():
    X = np.linspace(-1, 1, 40)[:, None]
    y = (X[:, 0] > 0).astype(int)
    found = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.1).fit(X, y).inference()
    assert found.shrunk
    assert "leave their bias out" in str(found)
    with pytest.warns(UserWarning, match="Growing without bound"):
        endless = ht.SparseLogisticRegression(n_nonzero_coefs=1, alpha=0.0).fit(X, y)
    with pytest.raises(HardThreshError, match="no finite estimates on these rows"):
        endless.inference()


def test_features_that_the_half_left_out_are_named():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 30))
    y = rng.standard_normal(60)
    model = ht.SparseLinearRegression(n_nonzero_coefs=4).fit(X, y)
    found = model.inference(X, y, kind="split", random_state=0)
    chosen = {one.feature for one in found.intervals}
    assert set(found.left_out) == {f"feature {j}" for j in model.support_} - chosen
    assert found.left_out
    assert found.left_out[0] in str(found)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kind": "naive"}, InvalidInputError, 'kind must be "refit" or "split"'),
        ({"level": 1.0}, InvalidInputError, "level must be"),
        ({"kind": "split"}, InvalidInputError, "fits again, on half of the rows; give X and y"),
        ({"groups": np.arange(80), "robust": False}, InvalidInputError, "groups need robust errors"),
        ({"groups": np.arange(80)}, InvalidInputError, "groups belong to data"),
    ],
)
def test_bad_settings_are_refused(settings, error, message):
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(*regression())
    with pytest.raises(error, match=message):
        model.inference(**settings)


def test_what_has_no_intervals_is_refused():
    X, y = regression()
    bounded = ht.SparseLinearRegression(n_nonzero_coefs=2, positive=True).fit(X, y)
    with pytest.raises(CapabilityError, match="may meet a bound"):
        bounded.inference()
    ordered = ht.SparseOrdinalRegression(n_nonzero_coefs=1).fit(X, np.digitize(y, [-1, 1]))
    with pytest.raises(CapabilityError, match="one prediction for each row"):
        ordered.inference(robust=True)
    with pytest.raises(InvalidInputError, match="a label for each row"):
        bounded.inference(X, y, robust=True, groups=np.arange(3))


def coverage_of_noise(runs):
    """The shares of intervals of 95 % that cover 0, for three columns chosen of 200 that are noise (n = 200)."""
    covered = {"refit": 0, "split": 0}
    for run in range(runs):
        rng = np.random.default_rng((20, run))
        X = rng.standard_normal((200, 200))
        y = rng.standard_normal(200)
        model = ht.SparseLinearRegression(n_nonzero_coefs=3, random_state=run).fit(X, y)
        for kind in covered:
            intervals = model.inference(X, y, kind=kind).intervals
            covered[kind] += sum(one.lower <= 0 <= one.upper for one in intervals)
    return {kind: count / (3 * runs) for kind, count in covered.items()}


@only_at("pairs")
def test_intervals_of_a_split_cover_where_the_model_is_wrong():
    """y = x^2 with x of a Gamma(3) distribution: the best line has slope 8, and errors that grow with x."""
    covered = {True: 0, False: 0}
    for run in range(100):
        rng = np.random.default_rng((20, run))
        x = rng.gamma(3.0, 1.0, 400)
        model = ht.SparseLinearRegression(n_nonzero_coefs=1, random_state=run).fit(x[:, None], x**2)
        for robust in covered:
            [one] = model.inference(x[:, None], x**2, kind="split", robust=None if robust else False).intervals
            covered[robust] += one.lower <= 8.0 <= one.upper
    assert covered[True] >= 75
    assert covered[False] < 55


@only_at("all")
def test_check_20_a_split_covers_and_a_refit_does_not():
    coverage = coverage_of_noise(200)
    assert 0.92 <= coverage["split"] <= 0.98
    assert coverage["refit"] < 0.05


def test_a_split_refuses_other_columns_than_those_of_the_fit():
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    with pytest.raises(ValueError, match=f"X has 5 features, but SparseLinearRegression is expecting {X.shape[1]}"):
        model.inference(X[:, :5], y, kind="split")
    pandas = pytest.importorskip("pandas")
    names = [f"x{j}" for j in range(X.shape[1])]
    model.fit(pandas.DataFrame(X, columns=names), y)
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- z"):
        model.inference(pandas.DataFrame(X, columns=["z", *names[1:]]), y, kind="split")
    with pytest.raises(InvalidInputError, match="feature_names_in_"):
        model.inference(pandas.DataFrame(X, columns=names)[names[::-1]], y, kind="split")


def test_a_split_of_too_few_rows_or_groups_is_refused():
    X, y = regression()
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    with pytest.raises(InvalidInputError, match=r'at least 4 rows, .* got 3; kind="refit" takes all rows'):
        model.inference(X[:3], y[:3], kind="split")
    weight = np.r_[np.ones(3), np.zeros(77)]  # rows of no weight count for nothing
    with pytest.raises(InvalidInputError, match=r"at least 4 rows, .* got 3"):
        model.inference(X, y, weight, kind="split")
    with pytest.raises(InvalidInputError, match=r"at least 2 groups, .* label 'ward'"):
        model.inference(X, y, kind="split", groups=["ward"] * 80)
    few = model.inference(X[:4], y[:4], kind="split", robust=False)
    assert "No standard errors: 2 rows are too few" in str(few)


@pytest.mark.parametrize(
    ("factor", "robust", "weights"),
    [
        (1.0, False, "frequency"),
        (2.3, False, "frequency"),
        (0.01, False, "precision"),
        (1.0, True, "frequency"),
        (2.3, True, "sampling"),
        (0.01, True, "sampling"),
    ],
)
def test_what_weights_are_taken_for_is_said_and_is_so(factor, robust, weights):
    """Frequencies count as rows; relative precisions and sampling weights have no scale."""
    X, y = regression()
    counts = np.random.default_rng(2).integers(1, 4, 80).astype(float)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    one, same, twice = (
        model.fit(X, y, sample_weight=weight).inference(robust=robust)
        for weight in (factor * counts, 0.5 * factor * counts, 2 * factor * counts)
    )
    assert one.weights == one.to_dict()["weights"] == weights
    assert {"frequency": "frequencies", "precision": "precisions", "sampling": "sampling weights"}[weights] in str(one)
    ratio = twice.intervals[0].standard_error / one.intervals[0].standard_error
    if weights != "frequency":
        assert same.intervals[0].standard_error == pytest.approx(one.intervals[0].standard_error, rel=1e-9)
        assert ratio == pytest.approx(1.0, rel=1e-9)
    elif not robust:  # n - 3 degrees of freedom of the residual variance
        n = factor * counts.sum()
        assert ratio == pytest.approx(np.sqrt((n - 3) / (2 * n - 3)), rel=1e-9)
    else:
        assert ratio == pytest.approx(np.sqrt(0.5), rel=0.1)
    unweighted = model.fit(X, y).inference(robust=robust)
    assert (unweighted.weights, unweighted.to_dict()["weights"]) == ("", None)
    assert "eights are" not in str(unweighted)


def test_relative_precisions_have_the_errors_of_weighted_least_squares():
    """Those of the rows and targets times the roots of their weights, as in statsmodels' WLS."""
    X, y = regression()
    weight = np.random.default_rng(3).uniform(0.001, 0.01, 80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y, sample_weight=weight)
    root = np.sqrt(weight)
    A = np.column_stack([X[:, model.support_], np.ones(80)]) * root[:, None]
    rest = y * root - A @ np.linalg.lstsq(A, y * root)[0]
    errors = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * (rest @ rest) / 77)
    assert [one.standard_error for one in model.inference().intervals] == pytest.approx(errors[:2].tolist(), rel=1e-8)


@pytest.mark.parametrize("factor", [0.1, 2.5])
def test_frequencies_are_so_if_the_caller_says_it(factor):
    """Each row counts f times, also where f is no whole number or their sum is less than the number of rows."""
    X, y = regression()
    f = factor * np.random.default_rng(2).integers(1, 4, 80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y, sample_weight=f)
    A, coef, inverse, rest, freedom = least_squares(X[:, model.support_], y, f)
    quantile = student(freedom).ppf(0.975)
    errors = np.sqrt(np.diag(inverse) * np.sum(f * rest**2) / freedom)
    found = model.inference(weights="frequency")
    assert_intervals(found, coef, errors, quantile)
    assert "Weights are frequencies: a weight of 2 is a row given twice." in str(found)
    left = rest / (1 - np.sum(A @ inverse * A, axis=1))
    errors = np.sqrt(np.diag(inverse @ (A.T * f * left**2) @ A @ inverse))
    found = model.inference(weights="frequency", robust=True)
    assert_intervals(found, coef, errors, quantile)
    assert (found.weights, found.weights_assumed) == ("frequency", False)


@pytest.mark.parametrize("weights", ["precision", "sampling"])
@pytest.mark.parametrize("kind", ["refit", "split"])
def test_the_scale_of_precisions_and_sampling_weights_makes_no_difference(weights, kind):
    """Also that of whole numbers, which "auto" takes for frequencies, and also in the quantiles."""
    X, y = regression()
    f = np.random.default_rng(2).integers(1, 4, 80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, random_state=0)
    found = [
        model.fit(X, y, scale * f).inference(X, y, scale * f, kind=kind, weights=weights) for scale in (0.1, 1.0, 5.0)
    ]
    assert [one.weights for one in found] == [weights] * 3
    assert [one.degrees_of_freedom for one in found] == [found[0].n_estimated - 3.0] * 3
    for other in found[1:]:
        for a, b in zip(found[0].intervals, other.intervals, strict=True):
            assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), rel=1e-8)
    assert found[0].robust is (kind == "split" or weights == "sampling")


def test_robust_errors_of_weights_without_a_scale_are_those_of_weighted_least_squares():
    """HC3 of the rows and targets times the roots of the weights, as in statsmodels' WLS."""
    X, y = regression()
    f = np.random.default_rng(2).integers(1, 4, 80).astype(float)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y, sample_weight=f)
    root = np.sqrt(f)[:, None]
    A, coef, _, rest, _ = least_squares(X[:, model.support_], y, f)
    B, inverse = root * A, np.linalg.inv((root * A).T @ (root * A))
    left = root[:, 0] * rest / (1 - np.sum(B @ inverse * B, axis=1))
    errors = np.sqrt(np.diag(inverse @ (B.T * left**2) @ B @ inverse))
    for weights in ("precision", "sampling"):
        assert_intervals(model.inference(weights=weights, robust=True), coef, errors, student(77).ppf(0.975))


def test_the_role_of_weights_is_said_to_be_assumed_unless_the_caller_gives_it():
    X, y = regression()
    f = np.random.default_rng(2).integers(1, 4, 80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y, sample_weight=f)
    assumed = model.inference()
    assert assumed.weights_assumed
    assert 'Weights are taken for frequencies: a weight of 2 is a row given twice; weights="precision"' in str(assumed)
    with pytest.raises(InvalidInputError, match=r'weights must be "auto", "frequency", .* got .counts.'):
        model.inference(weights="counts")
    with pytest.raises(InvalidInputError, match='weights="sampling" needs robust errors'):
        model.inference(weights="sampling", robust=False)
    unweighted = model.fit(X, y)
    assert unweighted.inference(weights="precision").intervals == unweighted.inference().intervals
    survival = ht.SparseCoxRegression(n_nonzero_coefs=1).fit(X, np.abs(y), sample_weight=f)
    assert survival.inference(X, np.abs(y), f, weights="precision").weights == "precision"
    with pytest.raises(CapabilityError, match="without groups and sampling weights"):
        survival.inference(weights="sampling")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_mean_the_same_in_single_precision(dtype):
    """Whole numbers are so, and normalised weights have the sum of the rows, up to the rounding of the data."""
    X, y = regression(400)
    f = np.random.default_rng(2).integers(1, 50, 400)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    for scale, robust, role in [(1.0, True, "frequency"), (0.1, True, "sampling"), (1.0, False, "frequency")]:
        assert model.fit(X.astype(dtype), y, scale * f).inference(robust=robust).weights == role
    for seed in range(6):
        f = np.random.default_rng(seed).uniform(0.5, 2.0, 400)
        assert model.fit(X.astype(dtype), y, f / f.mean()).inference(robust=False).weights == "frequency"
    assert model.fit(X.astype(dtype), y, np.full(400, 3.0)).inference(robust=True).weights == "frequency"
    assert model.fit(X.astype(dtype), y, np.ones(400)).inference(robust=True, weights="sampling").weights == ""
