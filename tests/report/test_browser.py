"""The report in a real browser: headless Chromium, with no way to any network."""

import re
import shutil
import subprocess
from html import escape

import numpy as np
import pytest

from hardthresh import (
    SparseCoxRegressionCV,
    SparseLinearRegressionCV,
    SparseLogisticRegressionCV,
    SparseNegativeBinomialRegressionCV,
    SparseOrdinalRegressionCV,
    SparseQuantileRegressionCV,
    compare,
)
from hardthresh.report import write_comparison, write_report
from levels import at, only_at
from patience import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --allow-file-access-from-files
    --proxy-server=127.0.0.1:9 --virtual-time-budget=5000 --enable-logging=stderr --v=0
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian package chromium)")


@pytest.fixture
def browse(tmp_path):
    """Opens a page; returns what the browser prints, and the messages of its console."""

    def browse(page, *flags):
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}", *flags, page.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return run.stdout, re.findall(r"CONSOLE.*\] (.*)", run.stderr)

    return browse


@pytest.fixture
def report(classifier, tmp_path):
    return write_report(classifier, tmp_path / "report.html", data_summary={"n": 62, "d": 200}, command="make demo")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, *at("pairs", [600])])
def test_it_renders_without_a_complaint(browse, report, tmp_path, width):
    picture = tmp_path / "report.png"
    _, console = browse(report, f"--screenshot={picture}", f"--window-size={width},5000")
    assert console == []
    pixels = pytest.importorskip("matplotlib.image").imread(picture)[..., :3]
    assert pixels.shape[1] == width
    dark, coloured = pixels.max(axis=2) < 0.4, pixels.max(axis=2) - pixels.min(axis=2) > 0.3
    assert dark.mean() > 0.005  # words
    assert coloured.mean() > 0.002  # charts
    rows = dark.any(axis=1).nonzero()[0]
    assert rows[-1] > 3000  # down to the end of a long page


MEASURE = """
<!doctype html><body><iframe id="page" src="{page}" width="{width}" height="900"></iframe><pre id="found"></pre>
<script>
onload = () => {{
  const page = document.getElementById("page").contentDocument, found = [];
  if (page.documentElement.scrollWidth > {width}) found.push("the page is wider than the screen");
  for (const text of page.querySelectorAll("svg text")) {{
    const box = text.getBoundingClientRect();
    if (box.width && (box.left < 0 || box.right > {width})) found.push("cut off: " + text.textContent);
    if (box.height && box.height < 9) found.push("too small to read: " + text.textContent);
    const chart = text.ownerSVGElement.getBoundingClientRect(), slack = 2;
    if (box.width && (box.top < chart.top - slack || box.bottom > chart.bottom + slack || box.left < chart.left - slack
        || box.right > chart.right + slack)) found.push("leaves its chart: " + text.textContent);
  }}
  for (const tile of page.querySelectorAll(".tiles > div")) {{
    const room = tile.getBoundingClientRect();
    for (const line of tile.children) {{
      const range = page.createRange();
      range.selectNodeContents(line);
      const text = range.getBoundingClientRect();
      if (text.left < room.left || text.right > room.right) found.push("leaves its tile: " + line.textContent);
    }}
  }}
  found.push([...page.querySelectorAll("svg")].filter(chart => chart.getBoundingClientRect().width).length + " charts");
  document.getElementById("found").textContent = found.join("\\n");
}};
</script>
"""


@pytest.fixture
def measure(browse, tmp_path):
    """Shows a page on a screen of some width; returns how many charts there are, and what is wrong."""

    def measure(page, width):
        frame = tmp_path / "frame.html"
        frame.write_text(MEASURE.format(page=escape(page.as_uri()), width=width), encoding="utf-8")
        shown, console = browse(frame, "--dump-dom", "--window-size=1300,1000")
        assert console == []
        return re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)[1].splitlines()

    return measure


@only_at("pairs")
@pytest.mark.parametrize("width", [400, *at("pairs", [1200])])
def test_nothing_is_cut_off_or_too_small(measure, report, width):
    assert measure(report, width) == ["10 charts"]


LONG = "probability of a class whose name is long"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 6))
U = X[:, 0] - X[:, 1]
FAMILIES = {
    "outputs": (SparseLinearRegressionCV, np.column_stack([U, X[:, 2], -U]) + RNG.standard_normal((150, 3))),
    "classes": (
        SparseLogisticRegressionCV,
        np.array([LONG, "b", "c"])[np.digitize(U + RNG.logistic(size=150), [-1, 1])],
    ),
    "ordered": (SparseOrdinalRegressionCV, np.digitize(U + RNG.logistic(size=150), [-1, 1])),
    "times": (SparseCoxRegressionCV, np.column_stack([RNG.exponential(np.exp(-U)), RNG.random(150) < 0.7])),
    "quantiles": (SparseQuantileRegressionCV, U + RNG.standard_normal(150)),
    "counts": (SparseNegativeBinomialRegressionCV, RNG.negative_binomial(2, 2 / (2 + np.exp(0.5 * U)))),
}


@only_at("pairs")
@pytest.mark.parametrize(
    ("family", "width"), [("classes", 400), *at("pairs", [(one, w) for one in FAMILIES for w in (400, 1200)])]
)
def test_nothing_leaves_the_charts_of_a_family(measure, tmp_path, family, width):
    kind, y = FAMILIES[family]
    model = kind(n_nonzero_coefs=range(7), cv=3).fit(X, y)
    assert model.support_.size
    page = write_report(model, tmp_path / "report.html")
    assert [line for line in measure(page, width) if not line.endswith(" charts")] == []


@only_at("pairs")
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize(("mean", "error"), [(0.12345, 0.00078), (123456.7, 5321.0), (123456.7, 0.00078), (3e-7, 2e-9)])
def test_scores_stay_in_their_tiles(measure, build, tmp_path, width, mean, error):
    model = build(12, 123456)
    model.mean_scores_, model.standard_errors_ = np.array([mean, 0.9 * mean, 0.8 * mean]), np.full(3, error)
    page = write_report(model, tmp_path / "report.html")
    assert measure(page, width) == ["4 charts"]


@only_at("pairs")
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("loss", [0.12345, 123456.7, 3e-07])
def test_the_scores_of_an_average_stay_in_their_tiles_and_table(measure, build_grid, tmp_path, width, loss):
    model = build_grid(12, parts=[(5, 0.1, 0.6), (2, 1e-7, 0.4)])
    model.held_out_scores_["log_loss"] = loss
    page = write_report(model, tmp_path / "report.html")
    assert measure(page, width) == ["5 charts"]


@only_at("pairs")
def test_the_measurement_detects_overflow(measure, report):
    text = report.read_text(encoding="utf-8")
    report.write_text(
        text.replace("svg { display: block; width: 100%;", "svg { display: block; width: 300%;"), encoding="utf-8"
    )
    assert "the page is wider than the screen" in measure(report, 400)


DRIVE = """
<!doctype html><body><iframe id="page" src="{page}" width="800" height="900"></iframe><pre id="found"></pre>
<script>
onload = () => {{
  const page = document.getElementById("page").contentDocument, found = [];
  const slider = page.querySelector("input[type=range]"), output = page.querySelector("output");
  const seen = () => [...page.querySelectorAll(".model")].filter(model => model.getBoundingClientRect().height);
  found.push(slider.getAttribute("aria-label"), slider.getBoundingClientRect().width > 100);
  slider.focus();
  found.push(page.activeElement === slider);
  for (const step of ["stepDown", "stepDown", "stepUp"]) {{
    slider[step]();
    slider.dispatchEvent(new Event("input"));
    const shown = seen().map(model => model.dataset.says).join(" | ");
    found.push(shown + " = " + slider.getAttribute("aria-valuetext") + " = " + output.textContent);
  }}
  document.getElementById("found").textContent = found.join("\\n");
}};
</script>
"""


@only_at("pairs")
def test_the_slider_shows_one_model_at_a_time_and_announces_it(browse, report, classifier, tmp_path):
    frame = tmp_path / "frame.html"
    frame.write_text(DRIVE.format(page=escape(report.as_uri())), encoding="utf-8")
    page, console = browse(frame, "--dump-dom", "--window-size=1300,1000")
    assert console == []
    found = re.search(r'<pre id="found">(.*?)</pre>', page, re.DOTALL)[1].splitlines()
    assert found[:3] == ["Number of features, k", "true", "true"]
    place = classifier.best_n_nonzero_coefs_
    for step, moved in zip(found[3:], (-1, -1, 1), strict=True):
        place += moved
        shown, announced, written = step.split(" = ")
        assert shown == announced == written
        assert shown.startswith(f"{place} feature")


@only_at("pairs")
def test_dark_screens_get_dark_colours(browse, report, tmp_path):
    picture = tmp_path / "dark.png"
    browse(report, f"--screenshot={picture}", "--window-size=1200,5000", "--force-dark-mode")
    pixels = pytest.importorskip("matplotlib.image").imread(picture)[..., :3]
    assert np.median(pixels) < 0.2
    assert (pixels.min(axis=2) > 0.8).mean() > 0.003  # words
    coloured = pixels.max(axis=2) - pixels.min(axis=2) > 0.3
    assert coloured.mean() > 0.002  # charts


@only_at("pairs")
def test_the_report_can_be_printed(browse, report, tmp_path):
    paper = tmp_path / "report.pdf"
    _, console = browse(report, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert console == []
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) <= 12


@only_at("pairs")
def test_the_console_is_heard(browse, tmp_path):
    """These tests can fail: a page with an error in a script is noticed."""
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><script>nobody()</script>", encoding="utf-8")
    (message,) = browse(page, "--dump-dom")[1]
    assert "nobody is not defined" in message


@only_at("pairs")
def test_the_report_itself_forbids_loading(browse, report):
    text = report.read_text(encoding="utf-8")
    report.write_text(
        text.replace("</main>", '<img src="https://example.org/x.png"><script>1</script></main>'), encoding="utf-8"
    )
    console = browse(report, "--dump-dom")[1]
    assert len(console) == 2
    assert all("Content Security Policy" in message for message in console)


@only_at("pairs")
@pytest.mark.parametrize("width", [300, 900])
def test_a_table_that_goes_on_has_a_shadow_at_its_side(browse, build, tmp_path, width):
    page, picture = tmp_path / "table.html", tmp_path / "table.png"
    [style] = re.findall(r"<style>.*?</style>", write_report(build(2, 9), page).read_text(encoding="utf-8"), re.DOTALL)
    table = f'<table style="width: {width}px"><tr><td>1</td><td>2</td></tr></table>'
    box = f'<div style="width: 300px; height: 90px"><div class="scroll" style="margin: 0">{table}</div></div>'
    page.write_text(f"{style}{box}", encoding="utf-8")
    browse(page, f"--screenshot={picture}", "--window-size=500,200")
    row = pytest.importorskip("matplotlib.image").imread(picture)[3, :300, :3].min(axis=1)  # above the numbers
    assert (row[296] < 0.8) == (width > 300)
    assert row[3] > 0.99  # nothing is to the left of the first column


@only_at("pairs")
@pytest.mark.parametrize("width", [400, *at("pairs", [1200])])
def test_nothing_of_a_comparison_is_cut_off_or_too_small(measure, tmp_path, width):
    entrants = ["hardthresh", "lasso", "omp", "ridge"]
    found = compare(
        X, U + RNG.standard_normal(150), entrants=entrants, folds=3, feature_names=[*map(str, range(5)), LONG]
    )
    assert measure(write_comparison(found, tmp_path / "comparison.html"), width) == ["1 charts"]
