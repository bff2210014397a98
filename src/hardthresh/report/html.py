"""A self-contained HTML report about a fitted model, without scripts or external resources."""

from __future__ import annotations

import datetime
import platform
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.metadata import version
from math import exp, isnan
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hardthresh import __version__
from hardthresh.core.errors import HardThreshError, plural
from hardthresh.core.files import write_file
from hardthresh.core.numbers import choices, mean_and_error, number, signed
from hardthresh.core.printed import one_line
from hardthresh.estimators import words
from hardthresh.estimators.facts import Facts, read
from hardthresh.estimators.linear.summary import CAUTION
from hardthresh.estimators.run_facts import has_loss_of_run, progress
from hardthresh.estimators.selectors.stability import StabilitySelection

from .page import chart, check_installed, environment, part
from .plots import style
from .plots.alternatives import alternatives_height, plot_alternatives
from .plots.choice import plot_criterion, plot_cv
from .plots.features import MARKERS, coefficients_height, plot_coefficients, plot_correlations, plot_path
from .plots.run import plot_convergence
from .plots.stability import plot_stability, stability_height
from .rows import RowChart, charts_of_calibration, charts_of_paths, charts_of_rows
from .slider import positions

SUMMARY = {
    "source": "source",
    "target": "target",
    "outputs": "outputs",
    "n": "rows (examples)",
    "d": "columns (features)",
    "classes": "classes",
    "dtype": "type of the numbers",
    "missing": "missing values",
    "strata": "strata",
}
"""Labels of the known keys of a data summary, in the order of the report."""

_ALTERNATIVES = 20
"""Most sets that a report searches for: the picture of so many is legible on a telephone."""


def write_report(
    estimator: Any,
    path: str | PathLike[str],
    *,
    data_summary: Mapping[str, object] | None = None,
    command: str | None = None,
    date: datetime.date | None = None,
    certificate: Any = None,
    summary: Any = None,
    alternatives: Any = None,
) -> Path:
    """Write a self-contained HTML report about a fitted model and its reliability.

    The file has no external resources, so that it can be mailed, archived and printed. It contains the chosen features
    with their coefficients, the cost of removing each and its best substitute; other sets of features that fit nearly
    as well; the scores of predictions of held-out rows, with and without features; charts of the predictions; the curve
    of the cross-validation or of the criterion; the path over k; the convergence of the run; the certificate; the data
    summary; and the command. Each part has a paragraph on how to read it. A slider shows the models of all k; without
    scripts, the chosen model is shown. Equal input gives an equal file.

    Parameters
    ----------
    estimator : fitted estimator
        A model that chooses features, with any loss and any number of outputs. If its k was given, the report says why
        the parts about k are absent. Or a `StabilitySelection` of such a model: the report is about the model that was
        fitted to all rows, with a part on the inclusion frequencies.
    path : path-like
        The path to write to; an existing file is replaced, in one step.
    data_summary : mapping, optional
        Facts about the data to show. Known keys: ``"source"``, ``"target"``, ``"n"`` (rows), ``"d"`` (columns),
        ``"classes"`` (a mapping from class to number of rows), ``"dtype"``, ``"missing"`` (number of missing values);
        any other key is shown under its own name.
    command : str, optional
        The command that fitted the model.
    date : datetime.date, optional
        The date of the report. Default: today.
    certificate : ModelCertificate, optional
        The result of ``estimator.certificate(X, y)``, for a loaded model. Default: ``estimator.certificate()``.
    summary : Summary, optional
        The result of ``estimator.summary(X, y)``, for a loaded model. Default: ``estimator.summary()``.
    alternatives : Alternatives, optional
        The result of ``estimator.alternatives(X, y)``, for a loaded model, or with another tolerance. Default:
        ``estimator.alternatives(most=20)``.

    Returns
    -------
    pathlib.Path
        Path of the report.

    Raises
    ------
    MissingDependencyError
        If jinja2 or matplotlib is not installed.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    InvalidInputError
        If it does not choose features, or learned from attributes that it bought.
    OSError
        If the file cannot be written; its ``filename`` is `path`.

    Notes
    -----
    Cost: that of ``estimator.certificate()`` and ``estimator.summary()``, some tens of data passes; that of
    ``estimator.alternatives(most=20)``, about twenty more, or twenty for each feature with losses other than the
    squared one; and one or two seconds for the charts.

    Examples
    --------
    >>> import tempfile
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import write_report
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(model, f"{folder}/report.html", data_summary={"n": 62, "d": 2000})
    ...     "3 of 2,000 features" in report.read_text(encoding="utf-8")
    True
    """
    page = render(
        estimator,
        data_summary=dict(data_summary or {}),
        command=command,
        date=datetime.date.today() if date is None else date,
        certificate=certificate,
        summary=summary,
        alternatives=alternatives,
    )
    write_file(path, page.encode(errors="replace"))  # a lone surrogate in a name becomes "?"
    return Path(path)


def render(
    estimator: Any,
    *,
    data_summary: Mapping[str, object],
    command: str | None,
    date: datetime.date,
    certificate: Any = None,
    summary: Any = None,
    alternatives: Any = None,
) -> str:
    """Return the report as the text of an HTML page."""
    check_installed()
    selection = estimator if isinstance(estimator, StabilitySelection) else None
    if selection is not None:
        check_is_fitted(selection)
        estimator = selection.estimator_
    facts = read(estimator)
    target = data_summary.get("target")
    certificate, no_certificate = (certificate, "") if certificate is not None else _asked(estimator.certificate)
    summary, no_summary = (summary, "") if summary is not None else _asked(estimator.summary)
    no_alternatives = ""
    if alternatives is None and facts.features:
        alternatives, no_alternatives = _asked(lambda: estimator.alternatives(most=_ALTERNATIVES))
    charts = {"convergence": chart("convergence", lambda ax: plot_convergence(estimator, ax), height=250)}
    calibrations: list[RowChart] = []
    paths: list[RowChart] = []
    if selection is not None:
        height = round(72 * stability_height(selection))
        charts["stability"] = chart("stability", lambda ax: plot_stability(selection, ax), height=height)
    if alternatives is not None:
        height = round(72 * alternatives_height(alternatives))
        charts["alternatives"] = chart("alternatives", lambda ax: plot_alternatives(alternatives, ax), height=height)
    if facts.features:
        height = round(72 * coefficients_height(len(facts.features)))
        charts["coefficients"] = chart("coefficients", lambda ax: plot_coefficients(estimator, ax), height=height)
    if facts.cross_validation is not None:
        charts["cv"] = chart("cv", lambda ax: plot_cv(estimator, ax), height=330)
        calibrations = charts_of_calibration(estimator, facts)
    elif facts.path is not None:
        values, k = facts.criterion_values, facts.path.k
        charts["criterion"] = chart(
            "criterion", lambda ax: plot_criterion(k, values, ax, name=facts.criterion), height=300
        )
    if facts.path is not None:
        charts["path"] = chart("path", lambda ax: plot_path(estimator, ax), height=340)
        paths = charts_of_paths(estimator, facts)
    if summary is not None and len(summary.correlations.rows) > 1:
        found = summary.correlations
        charts["correlations"] = chart(
            "correlations",
            lambda ax: plot_correlations(found.values, found.rows, ax, columns=found.columns),
            height=120 + 34 * len(found.rows),
        )
    rows = getattr(estimator, "_held_out_rows", None) or (summary and summary.rows)
    row_charts = charts_of_rows(estimator, rows, facts) if rows is not None and facts.features else []
    several = [*row_charts, *calibrations, *paths]
    charts |= {one.name: chart(one.name, one.draw, height=one.height) for one in several}
    models = positions(facts, estimator._loss, summary and summary.path)
    script = part("slider.js")
    page = environment(sized=number if facts.outputs else signed, known=_known)
    text: str = page.get_template("report.html.jinja").render(
        model=estimator,
        loss=estimator._loss,
        settings=re.sub(r" at 0x[0-9a-f]+", "", str(estimator)),
        facts=facts,
        cv=facts.cross_validation,
        words=words,
        plural=plural,
        chosen_by=words.chosen_by(facts),
        validating='criterion="cv"' if facts.kind.endswith("CV") else f"{facts.kind}CV",
        odds=exp(min(abs(facts.features[0].effect), 700.0)) if facts.features and facts.multiplies else None,
        history=progress(estimator),
        same_loss=has_loss_of_run(estimator),
        target=None if target is None else one_line(str(target)),
        certificate=certificate,
        no_certificate=no_certificate.rstrip("."),
        worth=None if summary is None else summary.worth,
        about=summary.subject if summary is not None else "",
        unknown=summary.unknown if summary is not None else "",
        fit_scores={} if summary is None else summary.scores,
        no_summary=no_summary.rstrip("."),
        alternatives=alternatives,
        no_alternatives=no_alternatives.rstrip("."),
        caution=CAUTION,
        row_charts=row_charts,
        calibrations=calibrations,
        paths=paths,
        rows_are="held out" if rows is not None and rows.held_out else "those of the fit",
        models=models,
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        stationary=certificate is not None and certificate.is_stationary(),
        examined=certificate is not None and certificate.examined,
        swap=certificate is not None and certificate.swap_optimal,
        substitutes_compared=summary is not None and len(summary.correlations.columns) > len(summary.correlations.rows),
        choices=choices(facts.n_features, words.columns(facts.features)) if facts.unit == "feature" else None,
        charts=charts,
        mean_and_error=mean_and_error,
        shown=style.SHOWN,
        labelled=len(MARKERS),
        selection=selection,
        statement=None if selection is None else selection.statement(),
        summary=summary_rows(facts, data_summary),
        command=command,
        versions=versions(),
        date=date.isoformat(),
    )
    return text


def summary_rows(facts: Facts, data_summary: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the data summary as pairs of label and text."""
    return data_rows({"d": facts.n_features, **({"classes": facts.classes} if facts.classes else {}), **data_summary})


def data_rows(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return facts about data as pairs of label and text, in the order of `SUMMARY`."""
    order = [*(key for key in SUMMARY if key in given), *(key for key in given if key not in SUMMARY)]
    return [(SUMMARY.get(key, one_line(key)), _words(given[key])) for key in order]


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_words(count)}" for key, count in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _known(x: float) -> str:
    """Return a number, or a dash for NaN."""
    return "–" if isnan(x) else number(x)


def versions() -> list[tuple[str, str]]:
    """Return the versions of the packages that computed the model."""
    packages = [(name, version(name)) for name in ("numpy", "scipy", "scikit-learn")]
    return [("hardthresh", __version__), *packages, ("Python", platform.python_version())]


def _asked(question: Callable[[], Any]) -> tuple[Any, str]:
    """Return what an estimator answers, or None with the reason."""
    try:
        return question(), ""
    except HardThreshError as error:
        return None, str(error)
