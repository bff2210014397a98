"""A self-contained HTML page about a comparison of methods, without scripts or external resources."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from hardthresh.comparison import MethodComparison
from hardthresh.comparison.entries import Entry
from hardthresh.comparison.result import stability_words
from hardthresh.core.errors import plural
from hardthresh.core.files import write_file
from hardthresh.core.numbers import percent
from hardthresh.core.printed import one_line

from .html import data_rows
from .page import chart, check_installed, environment
from .plots.comparison import loss_words, plot_comparison
from .plots.style import check_drawn

_METHODS, _FEATURES = 4, 20
"""Most methods, and features, in the table of chosen features: so many are legible on a telephone."""

_HEADLINES = {
    "nothing predicts": "No method predicts better than no features",
    "lost": "Another method predicts better: {recommended}",
    "won": "No other method predicts as well as {recommended}",
    "undecided": "Use {recommended}; other methods may predict as well",
    "no comparison": "There is nothing to compare",
}


def write_comparison(
    comparison: MethodComparison,
    path: str | PathLike[str],
    *,
    data_summary: Mapping[str, object] | None = None,
    command: str | None = None,
    date: datetime.date | None = None,
) -> Path:
    """Write a self-contained HTML report about a comparison of methods.

    It contains the recommended method; the held-out losses against the numbers of features; the table of losses,
    differences, features and seconds; the features that the best sparse methods chose, with the share of the folds;
    what was run; and the limitations of the comparison. Equal input gives an equal file.

    Parameters
    ----------
    comparison : MethodComparison
        What `hardthresh.compare` returned.
    path : path-like
        The path to write to; an existing file is replaced, in one step.
    data_summary : mapping, optional
        Facts about the data to show, as for `write_report`.
    command : str, optional
        The command that compared the methods.
    date : datetime.date, optional
        The date of the page. Default: today.

    Returns
    -------
    pathlib.Path
        Path of the page.

    Raises
    ------
    MissingDependencyError
        If jinja2 or matplotlib is not installed.
    InvalidInputError
        If it is not a comparison.
    OSError
        If the file cannot be written; its ``filename`` is `path`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import write_comparison
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> found = ht.compare(X, X[:, 2] + rng.standard_normal(60), entrants=["hardthresh", "ridge"], folds=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_comparison(found, f"{folder}/comparison.html")
    ...     "hardthresh" in page.read_text(encoding="utf-8")
    True
    """
    check_drawn(comparison, MethodComparison, "a comparison of methods, which hardthresh.compare returns")
    check_installed()
    target = (data_summary or {}).get("target")
    shown = [entry for entry in comparison.ranked if not entry.uses_all and entry.frequencies][:_METHODS]
    text: str = (
        environment()
        .get_template("comparison.html.jinja")
        .render(
            found=comparison,
            verdict=comparison.verdict,
            headline=_HEADLINES[comparison.verdict.kind].format(recommended=comparison.verdict.recommended),
            target=None if target is None else one_line(str(target)),
            chart=chart("comparison", lambda ax: plot_comparison(comparison, ax), height=400),
            losses=", ".join(map(loss_words, comparison.ranked)),
            header=[title for title in comparison.header if title != "method"],
            stabilities=[(entry, stability_words(entry.stability)) for entry in shown if entry.stability is not None],
            shown=shown,
            features=_features(comparison, shown),
            left_over=max(0, len({j for entry in shown for j in entry.frequencies}) - _FEATURES),
            summary=data_rows({"n": len(comparison.target.y), "d": comparison.n_features, **(data_summary or {})}),
            command=command,
            plural=plural,
            date=(datetime.date.today() if date is None else date).isoformat(),
        )
    )
    write_file(path, text.encode(errors="replace"))  # a lone surrogate in a name becomes "?"
    return Path(path)


def _features(comparison: MethodComparison, shown: list[Entry]) -> list[tuple[str, list[str]]]:
    """Return the features that methods chose most often, with the share of folds of each method."""
    shares = [entry.frequencies for entry in shown]
    every = {j for found in shares for j in found}
    order = sorted(every, key=lambda j: (-sum(found.get(j, 0.0) for found in shares), j))[:_FEATURES]
    return [
        (one_line(comparison.names[j]), [percent(found[j]) if j in found else "–" for found in shares]) for j in order
    ]
