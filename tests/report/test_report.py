"""The report says what is so, all of it, in one file that loads nothing."""

import builtins
import datetime
import pickle
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import hardthresh
from hardthresh import SparseCoxRegression, SparseLinearRegression, SparseLinearRegressionCV, SparseLogisticRegression
from hardthresh.core.errors import MissingDependencyError
from hardthresh.core.numbers import signed
from hardthresh.report import write_report
from levels import at, only_at

DAY = datetime.date(2026, 1, 31)
DATA = {
    "source": "colon.csv",
    "n": 62,
    "d": 200,
    "classes": {"normal": 22, "tumour": 40},
    "dtype": "float64",
    "missing": 0,
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$x_1^{$ \\frac",
    "{{ 7 * 7 }} {% raw %}",
    "基因 表达",
    "Größe µg/ℓ & 'more'",
    "turned \u202e round\nand broken",
    "long" * 80,
]
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """What is in a page: its words, its elements, and whether every element that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words, self.errors = [], [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        if not {"style", "script"} & {*self.open}:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def drawn_report(tmp_path):
    """Writes a report and returns its page."""

    def write(estimator, **options):
        path = write_report(estimator, tmp_path / "report.html", date=DAY, **options)
        page = Page(path.read_text(encoding="utf-8"))
        assert (page.open, page.errors) == ([], [])
        return page

    return write


@pytest.fixture(scope="module")
def drawn_classifier(classifier, tmp_path_factory):
    """The file of a report with charts, which takes a second."""
    path = tmp_path_factory.mktemp("drawn") / "report.html"
    return write_report(
        classifier, path, date=DAY, data_summary=DATA, command="hardthresh fit colon.csv --target tissue"
    )


@pytest.fixture
def report(drawn_report, no_charts):
    """Does the same without drawing the charts."""
    return drawn_report


def source(tmp_path):
    return (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_cross_validated_classifier_is_told_in_full(classifier, drawn_classifier):
    page = Page(drawn_classifier.read_text(encoding="utf-8"))
    assert (page.open, page.errors) == ([], [])
    assert page.text.startswith(f"{classifier.n_nonzero_coefs_} of 200 features chosen to predict the target: tumour")
    parts = len(classifier.models_)
    for sentence in [
        "tumour against normal",
        f"The average of {parts} models with ",
        "Cross-validated log loss",
        "a model without features reaches 0.65",
        "How well does it predict?",
        f"area under the ROC curve {classifier.held_out_scores_['roc_auc']:.3g} 0.5",
        "accuracy",
        "65 %",
        "no features: 0.65",
        f"About the search for the best single model, of {classifier.best_n_nonzero_coefs_} feature",
        "The averaged models",
        f"{parts - 10} more",
        "How reliable is this?",
        "smallest within one standard error",
        "no p-value or confidence interval",
        "What it does not prove.",
        classifier.stop_reason_,
        "hardthresh fit colon.csv --target tissue",
        "normal: 22, tumour: 40",
        f"hardthresh {hardthresh.__version__}",
        np.__version__,
        "2026-01-31",
    ]:
        assert sentence in page.text, sentence
    assert {"features", "howmany", "path", "convergence", "certificate", "data", "again"} <= {
        attributes["id"] for attributes in page.all("h2")
    }


@only_at("pairs")
def test_the_table_has_every_chosen_feature_with_its_numbers(classifier, report):
    page = report(classifier)
    row = {name: np.flatnonzero(classifier.feature_names_in_ == name)[0] for name in classifier.get_feature_names_out()}
    assert len(row) == classifier.n_nonzero_coefs_
    for name, j in row.items():
        unit = classifier.coef_[0, j]
        told = re.search(rf"{name} ([+−][\d.]+(?: × 10[⁻⁰-⁹]+)?) ([+−][\d.]+) (\d+) %", page.text)
        assert told, name
        effect = float(told[2].replace("−", "-"))
        assert effect == pytest.approx(unit * classifier.scale_[j], rel=5e-3)
        assert int(told[3]) == round(100 * classifier.selection_frequency_[j])


@pytest.mark.slow
def test_the_certificate_is_told_word_for_word(classifier, report):
    page = report(classifier)
    for line in str(classifier.certificate()).splitlines():
        assert line.partition(": ")[2] in page.text


@only_at("pairs")
def test_what_is_proved_is_not_said_to_be_unproved(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    y = X[:, 0] - X[:, 5] + rng.standard_normal(400)
    for rows, proved in ((400, True), (13, False)):
        model = hardthresh.SparseLinearRegression(n_nonzero_coefs=2, alpha=1e-3).fit(X[:rows], y[:rows])
        assert model.certificate().proved == proved
        text = report(model).text
        assert ("What it does not prove. That this is the best choice" in text) != proved
        assert ("What it does not prove. That the same features" in text) == proved
        assert "The lower bound is a number that the objective is not below" in text
        assert ("A lower bound proves that no other choice of so many features fits better." in text) == proved
        assert ("hardthresh prove tries to." in text) != proved


def test_a_better_exchange_is_not_hidden(build, report):
    class Certificate:
        swap_optimal, examined, proved, gap = False, True, False, None

        def is_stationary(self):
            return True

        def __str__(self):
            return "Exchanges: a for b would lower the objective."

    model = build(3, 9)
    model.certificate = Certificate
    page = report(model)
    assert "a single exchange would improve it" in page.text
    assert "a better choice exists" in page.text
    assert "supports the choice" not in page.text


def test_no_better_exchange_is_no_proof(regression, report):
    assert regression.certificate().swap_optimal
    page = report(regression)
    assert "supports the choice if the features carry different information" in page.text
    assert "exchanging two or more at once may still improve the fit" in page.text
    assert "strong evidence" not in page.text


@only_at("pairs")
@pytest.mark.parametrize(("k", "kind"), [*at("pairs", [(1, "scroll")]), (40, "scroll"), (41, "scroll long")])
def test_up_to_forty_rows_a_picture_of_the_page_has_the_whole_table(build, tmp_path, k, kind):
    text = write_report(build(k, 100), tmp_path / "report.html").read_text(encoding="utf-8")
    assert f'<div class="{kind}" tabindex' in text
    [css] = re.findall(r"^\.scroll {(.*)}", text, re.MULTILINE)
    assert "height" not in css


def test_without_cross_validation_the_report_says_why_parts_are_absent(regression, report):
    page = report(regression, data_summary={"target": "blood pressure"})
    assert page.text.startswith("2 of 30 features chosen to predict blood pressure, with 1 more on request")
    assert "Not validated: how well these features predict new rows was not measured." in page.text
    assert "How well does it predict?" not in page.text
    assert "The number of features was given (2), so there is no curve over k" in page.text
    assert "Only one k was fitted, so there is no path." in page.text
    assert "SparseLinearRegressionCV" in page.text
    assert "Share of folds" not in page.text
    assert re.search(r"feature 7\s+on request", page.text)
    assert "1 of them on request" in page.text
    assert page.all("script") == []
    assert len(page.all("figure")) == 5  # coefficients, residuals, their quantiles, correlations, convergence


def test_columns_that_were_not_standardised_have_no_second_coefficient(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    page = report(SparseLinearRegression(n_nonzero_coefs=1, standardize=False).fit(X, 2 * X[:, 1]))
    assert "er standard deviation" not in page.text
    assert "One unit more of feature 1" in page.text


@only_at("pairs")
def test_features_without_names_are_said_to_be_counted_from_zero(report, regression, classifier):
    assert "Features are counted from 0." in report(regression).text
    assert "counted from 0" not in report(classifier).text


def test_no_feature(build, report):
    page = report(build(0, 100))
    assert page.text.startswith("0 of 100 features chosen to predict the target: tumour against normal")
    assert "The model has no features" in page.text


def test_one_feature(build, report):
    page = report(build(1, 100, classes=None, cv=False))
    assert page.text.startswith("1 of 100 features chosen to predict the target")


@only_at("pairs")
def test_of_many_features_the_chart_shows_forty_and_the_table_all(build, drawn_report, tmp_path):
    page = drawn_report(build(200, 2000, classes=(0, 1)))
    assert "200 of 2,000 features chosen to predict the target: class 1 against class 0" in page.text
    assert "the 40 largest; 160 smaller are not drawn" in page.text
    assert "The 40 largest of 200 are drawn; the table has all." in page.text
    assert len([a for a in page.all("th") if a.get("scope") == "row" and "class" not in a]) >= 200
    assert len(source(tmp_path)) < 1_000_000


def test_hostile_names_stay_names(build, report, tmp_path):
    model = build(8, 8, names=HOSTILE, classes=("<b>no</b>", "$yes$"))
    page = report(model, data_summary={"<i>": "<u>"}, command="<s>")
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"img", "b>no<", "i>", "u", "s"})
    assert page.all("script") == [{}]  # that of the slider
    for name in HOSTILE[:6]:
        assert name in page.text
    assert "turned round and broken" in page.text
    assert "\u202e" not in source(tmp_path)
    assert "{{ 7 * 7 }}" in page.text


def test_lone_surrogates_are_replaced(build, report):
    names = ["a\ud800b", *"cdefgh"]
    model = build(7, 7, names=names, classes=("no", "\udcffyes"))
    summary = {"source": "x\udcff.csv", "target": "t\ud800", "classes": {"\udcffyes": 3}, "\ud800": "\ud800"}
    page = report(model, data_summary=summary, command="hardthresh fit x\udcff.csv")
    assert "hardthresh fit x?.csv" in page.text
    assert "a b" in page.text


@only_at("pairs")
@pytest.mark.parametrize("model", ["classifier", "regression"])
def test_the_report_loads_nothing_from_the_network(regression, drawn_report, drawn_classifier, tmp_path, model):
    if model == "regression":
        drawn_report(regression, data_summary=DATA)
    text = drawn_classifier.read_text(encoding="utf-8") if model == "classifier" else source(tmp_path)
    page = Page(text)
    assert re.findall(r"https?:|//\w|@import|\bftp:", text.replace("<!doctype html>", "")) == []
    assert {tag for tag, _ in page.elements}.isdisjoint({"iframe", "object", "embed", "img", "video", "audio"})
    assert all("src" not in attributes for attributes in page.all("script"))
    links = [
        value
        for _, attributes in page.elements
        for key, value in attributes.items()
        if key in ("src", "href", "xlink:href")
    ]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


@pytest.mark.slow
def test_links_inside_the_page_lead_somewhere_and_no_name_is_used_twice(drawn_classifier):
    text = drawn_classifier.read_text(encoding="utf-8")
    page = Page(text)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len({*names})
    wanted = [
        v[1:] for _, a in page.elements for k, v in a.items() if k in ("href", "xlink:href") and v.startswith("#")
    ]
    wanted += re.findall(r"url\(#([^)]*)\)", text)
    wanted += [attributes["aria-labelledby"] for attributes in page.all("section")]
    assert {*wanted} <= {*names}


@only_at("pairs")
def test_the_report_is_accessible_to_screen_readers(classifier, report):
    """What a screen reader needs: a language, a title, headers of tables, words for each chart."""
    page = report(classifier, data_summary=DATA)
    assert page.all("html") == [{"lang": "en-GB"}]
    assert all(attributes["scope"] in ("row", "col") for attributes in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    charts = [attributes for attributes in page.all("div") if attributes.get("role") == "img"]
    assert len(charts) == len(page.all("figure")) == 10
    assert all(len(attributes["aria-label"]) > 60 for attributes in charts)


@only_at("pairs")
def test_equal_input_gives_an_equal_file(classifier, drawn_report, tmp_path):
    import matplotlib

    drawn_report(classifier, data_summary=DATA)
    first = source(tmp_path)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        drawn_report(classifier, data_summary=DATA)
    assert source(tmp_path) == first


@only_at("pairs")
def test_writing_leaves_matplotlib_as_it_was(regression, drawn_report):
    import matplotlib
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    drawn_report(regression)
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


def test_a_model_without_its_data_has_no_certificate(build, report):
    assert "There is no certificate: this model does not carry its training data." in report(build(2, 9)).text


@pytest.mark.slow
def test_the_certificate_of_a_loaded_model_can_be_given(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30)) * rng.lognormal(size=30)
    y = 3.0 * X[:, 4] - 2.0 * X[:, 20] + rng.standard_normal(80)
    again = pickle.loads(pickle.dumps(SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)))
    text = report(again).text
    assert "There is no certificate: this model does not carry its training data" in text
    assert "give them again, as in certificate(X, y)" in text
    page = report(again, certificate=again.certificate(X, y))
    for line in str(again.certificate(X, y)).splitlines():
        assert line.partition(": ")[2] in page.text


def test_a_run_that_was_cut_short_is_said_to_be(build, report):
    model = build(2, 9)
    model.converged_, model.stop_reason_ = False, "the limit of iterations was reached; raise max_iter"
    page = report(model)
    assert "cut short" in page.text
    assert "No: the limit of iterations was reached" in page.text


@pytest.mark.slow
@pytest.mark.parametrize(("share", "doubt"), [(0.2, True), (0.8, False)])
def test_an_unstable_choice_is_said_to_be(build, report, share, doubt):
    model = build(2, 9)
    model.selection_frequency_[model.support_] = share
    assert ("one of several lists" in report(model).text) == doubt


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* constant column", "ignore:the best mean score")
@pytest.mark.parametrize(
    ("kind", "numbers", "options", "note"),
    [
        (SparseLinearRegression, 3, {}, "of at most 3, which was given"),
        (SparseLinearRegressionCV, [3, 4], {"averaging": "none"}, "of at most 3, which cross-validation chose"),
    ],
)
def test_a_model_of_fewer_features_than_it_may_use(report, kind, numbers, options, note):
    X = np.random.default_rng(0).standard_normal((40, 5))
    X[:, 2:] = 1.0
    text = report(kind(n_nonzero_coefs=numbers, **options).fit(X, X[:, 0] + X[:, 1])).text
    assert "2 of 5 features" in text
    assert note in text


def test_nothing_found_is_the_headline_with_its_numbers(build_grid, report):
    page = report(build_grid(0, found=False))
    assert page.text.startswith("No number of features predicts better than none")
    for sentence in [
        "With 1 feature, the best number, the held-out log loss is 0.710 ± 0.029; without any it is 0.7000 ± 0.0029"
        " (permutation test: p = 0.31). The model has no features: it predicts the same for every row.",
        "no number predicts clearly better",
        "Here no k is clearly better than none (permutation test: p = 0.31).",
        "with 1 feature, the best number; mean of 3 folds",
        "if no feature had to do with the target, scores like these would come up with probability 0.31",
    ]:
        assert sentence in page.text, sentence
    assert "How well does it predict?" not in page.text
    assert "optimistic" not in page.text.partition("About the search")[0]
    assert "economical choice" not in page.text
    assert len(page.all("figure")) == 3


def test_an_average_and_what_is_unstable_in_it_are_in_the_headline(build_grid, report):
    parts = [(5, 0.1, 0.6), (2, 0.1, 0.3), (6, 1.0, 0.1)]
    model = build_grid(4, parts=parts)
    model.selection_frequency_[model.support_] = [0.0, 0.0, 0.0, 1.0]
    page = report(model)
    assert "The average of 3 models with 2 to 6 features; 3 of 4 are in no fold." in page.text
    assert "of the average, over all held-out rows; without features 0.7; lower is better" in page.text
    assert "the averaged models have ridges of 0.1 to 1." in page.text
    assert "may score worse than the best single model" in page.text
    assert "optimistic, most with few rows" in page.text
    for k, ridge, weight in [("5", "0.1", "60 %"), ("2", "0.1", "30 %"), ("6", "1", "10 %")]:
        assert f"{k} {ridge} {weight}" in page.text


@pytest.mark.slow
def test_a_negative_weight_of_the_model_without_features_is_shown_and_said_why(build_grid, report):
    page = report(build_grid(4, parts=[(5, 0.1, 0.8), (2, 0.1, 0.3), (0, 0.0, -0.1)]))
    for row in ("5 0.1 80 %", "2 0.1 30 %", "0 0 −10 %"):
        assert row in page.text
    assert "together more than 100 %" in page.text
    assert not any("width: -" in of.get("style", "") for _, of in page.elements)
    assert "more than 100 %" not in report(build_grid(4, parts=[(5, 0.1, 0.7), (2, 0.1, 0.3)])).text


def test_a_model_of_all_columns_on_request_is_not_the_empty_one(build_grid, report):
    model = build_grid(30, found=False)
    model.always_include = list(range(30))
    page = report(model)
    assert page.text.startswith("Every feature is in the model on request")
    assert "No other feature could be chosen" in page.text
    for wrong in ("better than none", "has no features", "without any", "the best number"):
        assert wrong not in page.text, wrong


def test_the_table_of_held_out_scores_has_those_without_features(build_grid, report):
    text = report(build_grid()).text
    for row in [
        "log loss 0.35 0.7",
        "share of deviance (D²) 0.5 0",
        "area under the ROC curve 0.875 0.5",
        "accuracy 90 % 65 %",
        "calibration slope (best is 1) 0.8 –",
        "calibration intercept (best is 0) −0.1 –",
    ]:
        assert row in text, row
    assert "gets a higher prediction than one of normal" in text


@pytest.mark.slow
def test_a_range_that_was_extended_is_said_to_be(build_grid, report):
    model = build_grid()
    for model.range_extended_ in (True, False):
        assert ("The range of k was extended to 6" in report(model).text) == model.range_extended_


def test_k_chosen_by_a_criterion_was_not_given(build, report):
    model = build(2, 9, cv=False)
    model.criterion_path_, model.criterion = np.zeros(4), "ebic"
    assert "The number of features was chosen by EBIC (2), so there is no curve over k" in report(model).text


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "price"), [("ebic", "grows with"), ("bic", "does not account for")])
def test_what_a_criterion_pays_for_is_said(criterion, price, report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    model = hardthresh.SparseLinearRegressionCV(criterion=criterion).fit(X, X[:, 2] + rng.standard_normal(60))
    text = " ".join(report(model).text.split())
    assert f"The number of features was chosen by {criterion.upper()} (" in text
    assert f"a price for each feature, which {price} the number of features to choose from" in text
    assert 'hardthresh fit without --criterion , or criterion="cv" in Python, measures it' in text
    assert 'criterion="cv" measures that' in text
    assert "CVCV" not in text


@only_at("pairs")
def test_no_output_says_that_features_explain(classifier, regression, build_grid, report):
    for model in (classifier, regression, build_grid(0, found=False)):
        assert "explain" not in report(model).text.lower()


@only_at("pairs")
def test_perfect_separation_is_a_warning(build, report):
    model = build(2, 9)
    assert "perfectly separated" not in report(model).text
    for model.separated_ in (True, False):
        assert ("perfectly separated" in report(model).text) == model.separated_


@pytest.mark.slow
def test_each_class_of_several_has_a_column(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.gumbel(size=(90, 3)), axis=1)]
    model = SparseLogisticRegression(n_nonzero_coefs=3).fit(X, y)
    page = report(model)
    assert page.text.startswith("3 of 8 features chosen to predict the target: a, b or c")
    assert "Per standard deviation a b c" in page.text
    feature = model.summary().facts.features[0]
    assert " ".join(map(signed, feature.outputs)) in page.text
    assert "Rows of each class, by the class that the model predicts." in page.text


@pytest.mark.slow
def test_censored_times_have_curves_of_survival(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    time, censored = rng.exponential(np.exp(-X[:, 2])), rng.exponential(2.0, 90)
    page = report(SparseCoxRegression().fit(X, np.column_stack([np.minimum(time, censored), time <= censored])))
    assert "concordance" in page.text
    assert "Steps: observed (Kaplan-Meier). Dashed: the mean curve of the model." in page.text
    assert "multiplies the hazard by" in page.text
    assert re.search(r"\d \+ ", page.text)  # a row of the slider without the event
    assert "all strata together" not in page.text


def test_the_survival_of_strata_is_said_to_be_of_all_together(report):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    times = np.column_stack([rng.exponential(np.exp(-X[:, 2])), np.ones(90)])
    model = SparseCoxRegression(n_nonzero_coefs=1).fit(X, times, strata=np.arange(90) % 2)
    page = report(model)
    assert "Rows of all strata together, although their hazards differ." in page.text
    assert "How the chosen features and their substitutes correlate" not in page.text


def test_chosen_features_that_are_compared_with_no_substitutes_are_said_to_be_alone(report):
    X = np.random.default_rng(0).standard_normal((60, 2))
    page = report(SparseLinearRegression(n_nonzero_coefs=2).fit(X, X[:, 0] + X[:, 1]))
    assert "How the chosen features correlate" in page.text
    assert "substitutes correlate" not in page.text


def test_an_unfitted_model_is_refused(report):
    with pytest.raises(NotFittedError):
        report(SparseLinearRegression())


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, classifier, report, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    original = builtins.__import__

    def missing(name, *rest, **options):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"{package}.*hardthresh\[report\]"):
        report(classifier)
