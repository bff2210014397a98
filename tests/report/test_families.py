"""What the report shows of models of each family: several outputs, three classes, ordered classes, times, quantiles."""

import re
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.choice_facts import cross_validation
from hardthresh.estimators.facts import read
from hardthresh.report import plot_calibration, plot_confusion, plot_path, write_report
from hardthresh.report.rows import OUTPUTS, charts_of_paths, charts_of_rows

pytestmark = pytest.mark.usefixtures("no_charts")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((120, 5)) * np.array([1.0, 2.0, 0.5, 1.0, 1.0])
U = X[:, 0] - 0.5 * X[:, 1]
OUTPUT = np.column_stack([U, X[:, 2] - U]) + 0.3 * RNG.standard_normal((120, 2))
LEVEL = np.searchsorted([-1, 1], U + RNG.logistic(size=120))
CLASSES = np.array(["ash", "birch", "cedar"])[np.argmax(np.stack([U, X[:, 2], -U], 1) + RNG.gumbel(size=(120, 3)), 1)]
TIME = np.column_stack([RNG.exponential(np.exp(-U)), RNG.random(120) < 0.8])
FAMILIES = {
    "outputs": (ht.SparseLinearRegressionCV, OUTPUT, {}),
    "classes": (ht.SparseLogisticRegressionCV, CLASSES, {}),
    "ordered": (ht.SparseOrdinalRegressionCV, LEVEL, {}),
    "times": (ht.SparseCoxRegressionCV, TIME, {}),
    "quantiles": (ht.SparseQuantileRegressionCV, OUTPUT[:, 0], {"quantile": 0.9}),
    "decisions": (ht.SparseLinearSVCCV, np.where(LEVEL > 0, "well", "ill"), {}),
}


@cache
def fitted(family):
    cls, y, settings = FAMILIES[family]
    return cls(n_nonzero_coefs=range(6), cv=3, averaging="none", **settings).fit(X, y)


@cache
def page(family, folder):
    return write_report(fitted(family), folder / f"{family}.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("families")


@pytest.fixture
def ax():
    return Figure(figsize=(7, 4)).subplots()


# paths


@pytest.mark.slow
@pytest.mark.parametrize("family", ["outputs", "classes"])
@pytest.mark.parametrize("output", [0, 1])
def test_the_path_of_an_output_has_its_coefficients(family, output, ax):
    model = fitted(family)
    plot_path(model, ax, output=output)
    expected = model.coefs_path_[:, output] * model.scale_
    drawn = {line.get_gid().split(":")[0]: line.get_ydata() for line in ax.lines if ":" in str(line.get_gid())}
    assert drawn.keys() >= {f"feature {j}" for j in model.support_}
    for name, values in drawn.items():
        assert_allclose(np.nan_to_num(values), expected[:, int(name.split()[1])])
    named = ["ash", "birch"] if family == "classes" else ["output 0", "output 1"]
    assert ax.get_ylabel().split("\n")[0] == f"coefficient for {named[output]}"


def test_the_path_of_all_outputs_has_the_length_of_their_coefficients(ax):
    model = fitted("outputs")
    plot_path(model, ax)
    (line,) = [line for line in ax.lines if str(line.get_gid()).startswith(f"feature {model.support_[0]}:")]
    expected = np.linalg.norm(model.coefs_path_ * model.scale_, axis=1)[:, model.support_[0]]
    assert_allclose(np.nan_to_num(line.get_ydata()), expected)


def test_an_output_that_is_not_there_is_refused(ax):
    with pytest.raises(InvalidInputError, match=r"output must be .* the last output"):
        plot_path(fitted("outputs"), ax, output=2)
    with pytest.raises(InvalidInputError, match=r"output must be .* the last output"):
        plot_calibration(fitted("classes"), ax, output=3)
    with pytest.raises(InvalidInputError, match="has coefficients of one output; leave output=0 out"):
        plot_path(fitted("quantiles"), ax, output=0)


# calibration


@pytest.mark.parametrize(
    ("family", "label"),
    [
        ("outputs", "predicted output 1"),
        ("classes", "predicted probability of birch"),
        ("ordered", "predicted probability of a class above 1"),
    ],
)
def test_the_calibration_of_each_output(family, label, ax):
    model = fitted(family)
    plot_calibration(model, ax, output=1)
    bins = model.calibration_[1]
    points = np.concatenate([dots.get_offsets() for dots in ax.collections])
    assert_allclose(points, bins[bins[:, 2] > 0][:, :2])
    assert ax.get_xlabel() == label


def test_decision_values_are_compared_with_the_mean_of_targets_of_1_and_minus_1(ax):
    model = fitted("decisions")
    plot_calibration(model, ax)
    assert ax.get_xlabel() == "predicted decision value, cut at -1 and 1"
    assert ax.get_ylabel() == "mean of -1 for ill, 1 for well,\nof held-out rows"
    assert -1 <= np.nanmin(model.calibration_[:, :2]) < 0


@pytest.mark.parametrize("family", ["decisions", "ordered"])
def test_the_accuracy_without_features_is_the_share_of_the_largest_class(family):
    _, y, _ = FAMILIES[family]
    scores = {score.key: score for score in cross_validation(fitted(family)).held_out}
    largest = np.unique(y, return_counts=True)[1].max() / len(y)
    assert scores["accuracy"].without == pytest.approx(largest)


@pytest.mark.slow
def test_quantiles_and_hazards_have_no_calibration(ax):
    for family in ("quantiles", "times"):
        with pytest.raises(
            InvalidInputError, match=r"no calibration: .* not quantiles or hazards.* plot_coverage draws"
        ):
            plot_calibration(fitted(family), ax)


# rows


def test_no_chart_of_a_linear_svc_is_about_probabilities():
    model = fitted("decisions")
    captions = [chart.caption for chart in charts_of_rows(model, model._held_out_rows, read(model))]
    assert not any("probab" in caption for caption in captions)
    threshold = "Each point is a threshold of the decision value, which is positive for well."
    assert [threshold in caption for caption in captions] == [True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_confusion_matrix_says_that_its_rows_are_weighted(class_weight):
    _, y, _ = FAMILIES["decisions"]
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2, class_weight=class_weight).fit(X, y)
    (confusion,) = [one for one in charts_of_rows(model, model.summary().rows, read(model)) if one.name == "confusion"]
    counted = "Weighted rows" if class_weight else "Rows"
    assert confusion.caption == f"{counted} of each class, by the class that the model predicts."
    (tip, *_) = [patch.get_gid() for patch in drawn(confusion).patches]
    assert ("weighted rows" in tip) == (class_weight is not None)


def drawn(chart):
    axes = Figure(figsize=(7, 4)).subplots()
    chart.draw(axes)
    return axes


def test_each_output_has_its_residuals_and_its_means():
    model = ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, OUTPUT)
    summary, facts = model.summary(), read(model)
    charts = charts_of_rows(model, summary.rows, facts)
    assert [one.name for one in charts] == ["residuals-0", "observed-0", "residuals-1", "observed-1"]
    predicted = model.predict(X)
    for c, chart in enumerate(charts[::2]):
        points = drawn(chart).lines[1]
        order = np.argsort(points.get_xdata())
        assert_allclose(np.sort(predicted[:, c]), points.get_xdata()[order])
        assert_allclose((OUTPUT - predicted)[np.argsort(predicted[:, c]), c], points.get_ydata()[order])
        assert chart.caption.startswith(f"Output {c}. ")


def test_outputs_beyond_the_first_have_no_charts():
    Y = np.column_stack([U + RNG.standard_normal(120) for _ in range(OUTPUTS + 2)])
    model = ht.SparseLinearRegression(n_nonzero_coefs="auto").fit(X, Y)
    charts = charts_of_rows(model, model.summary().rows, read(model))
    assert len(charts) == 2 * OUTPUTS
    assert len(charts_of_paths(model, read(model))) == OUTPUTS


def test_whole_dots_and_bars_are_drawn():
    charts = {}
    for kind, y in ((ht.SparseQuantileRegression, OUTPUT[:, 0]), (ht.SparsePoissonRegression, RNG.poisson(np.exp(U)))):
        model = kind(n_nonzero_coefs=2).fit(X, y)
        charts |= {one.name: one for one in charts_of_rows(model, model.summary().rows, read(model))}
    low, high = drawn(charts["coverage"]).get_ylim()
    assert low < -0.01
    assert high > 1.01
    axes = drawn(charts["rootogram"])
    assert axes.get_ylim()[0] < min(bar.get_y() for bar in axes.patches) - 0.01


# words


def test_the_accuracy_without_features_is_the_share_of_the_most_frequent_class():
    for family, y in (("ordered", LEVEL), ("classes", CLASSES)):
        scores = {score.key: score for score in cross_validation(fitted(family)).held_out}
        assert_allclose(scores["accuracy"].without, np.max(np.unique(y, return_counts=True)[1]) / len(y))


def sentences_of_convergence(model, folder):
    text = write_report(model, folder / "convergence.html").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.search(r"Did the search finish\?</h2>(.*?)</p>", text, re.DOTALL)[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "y"),
    [
        (ht.SparseNegativeBinomialRegression, np.floor(np.exp(1 + U + RNG.standard_normal(120)))),
        (ht.SparseHuberRegression, OUTPUT[:, 0] + RNG.standard_t(1.5, 120)),
        (ht.SparseQuantileRegression, OUTPUT[:, 0]),
    ],
)
def test_objectives_with_different_losses_are_not_compared(cls, y, folder):
    model = cls(n_nonzero_coefs=2).fit(X, y)
    said = sentences_of_convergence(model, folder)
    first, last = model.history_["value"][[0, -1]]
    assert abs(last - model.objective_) > 1e-3 * last
    assert f"the objective of the last search went from {first:.3g} to {last:.3g}. " in said
    assert f"model, {model.objective_:.3g}, does not compare with these" in said


@pytest.mark.slow
def test_an_objective_without_a_parameter_is_that_of_the_search(folder):
    model = ht.SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, LEVEL)
    said = sentences_of_convergence(model, folder)
    assert said.endswith(f"the objective went from {model.history_['value'][0]:.3g} to {model.objective_:.3g}.")


@pytest.mark.slow
def test_a_higher_concordance_is_better(folder):
    model = ht.SparseCoxRegressionCV(n_nonzero_coefs=range(6), cv=3, averaging="exponential", alphas=[0.01, 0.1])
    model.fit(X, TIME)
    assert len(model.models_) > 1
    text = write_report(model, folder / "average.html").read_text(encoding="utf-8")
    note = re.search(r"Cross-validated concordance.*?note\">(.*?)</dd>", text, re.DOTALL)[1]
    assert note.endswith("higher is better")
    assert "R² is the share" not in text


@pytest.mark.slow
def test_sizes_have_no_sign_and_standard_errors_are_those_of_the_summary(folder):
    model = fitted("classes")
    text = re.sub(r"\s+", " ", page("classes", folder))
    worth = model.summary().worth[int(model.support_[0])]
    assert ", ".join(f"{error:.3g}" for error in worth.standard_errors) in text
    feature = model.summary().facts.features[0]
    assert f">{feature.effect:.3g}</td>" in text
    assert "effects per standard deviation on ash, birch, cedar." in text


@pytest.mark.slow
@pytest.mark.parametrize("family", ["outputs", "quantiles"])
def test_standard_errors_and_substitutes_have_columns_where_they_are_known(family, folder):
    text = page(family, folder)
    known = not fitted(family).summary().unknown
    assert (re.search(r"<th[^>]*>Standard errors?, after selection</th>", text) is not None) == known
    assert (">Closest substitute</th>" in text) == known
    assert ("No standard errors and substitutes</b>: a loss with a kink has no second derivatives." in text) != known


@pytest.mark.parametrize(("width", "angle"), [(10, 0), (2.5, 40)])
def test_names_are_tilted_where_they_do_not_fit_below_their_columns(width, angle):
    names = np.array(["deciduous", "birch", "cedar"])
    axes = Figure(figsize=(width, 4)).subplots()
    plot_confusion(names, names, axes)
    assert_array_equal([label.get_rotation() for label in axes.get_xticklabels()], angle)
