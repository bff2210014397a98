"""The summary of a fitted linear model, which prints as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.certificates.gap import gap_sentence
from hardthresh.core.errors import plural
from hardthresh.core.frames import pandas_for_frames
from hardthresh.core.numbers import number, percent, signed, total
from hardthresh.core.printed import PrintedTable

from .. import words
from ..facts import Facts, Feature
from .rows import PathRows, Rows

if TYPE_CHECKING:
    import pandas

CAUTION = "after selection: not valid as intervals"
"""The label of standard errors, wherever they are printed."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What one chosen feature is worth to the model.

    Attributes
    ----------
    standard_error : float
        The standard error of its coefficient, as if the features had been given
        (`hardthresh.certificates.standard_errors`): **after selection, not valid for an interval**. NaN where there is
        none, and with several outputs.
    standard_errors : tuple of float
        With several outputs, those of its effect on each of them, which is per standard deviation.
    unit : str
        What leaves the model whole: its own name, or that of its group.
    drop_cost : float
        The rise of the objective when that leaves and the others are refitted; NaN for features on request.
    substitute : str or None
        The feature, or group, that replaces it best.
    substitute_cost : float
        The rise of the objective when that takes its place; NaN without a substitute.
    """

    standard_error: float
    unit: str
    drop_cost: float
    substitute: str | None
    substitute_cost: float
    standard_errors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Correlations of features.

    Attributes
    ----------
    rows, columns : tuple of str
        The names of the features.
    values : array, shape (n_rows, n_columns)
        Their correlations on the rows of a fit, with its weights; NaN for constant features.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray


_UNKNOWN = Worth(nan, "", nan, None, nan)


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """What was fitted to how many rows, how well, and what each chosen feature is worth; ``print`` shows it.

    Attributes
    ----------
    facts : Facts
        The facts about the model that do not need data, such as its `features`.
    n_rows : int
        The number of rows of positive weight.
    total_weight : float
        The sum of their weights.
    objective : float
        The value of the objective on these rows.
    scores : dict from str to float
        How well the model fits these rows: "d2", the share of the deviance of the model without chosen features that
        they remove ("r2" for least squares), and for classes the "accuracy". Too good for a prediction of new rows.
    dispersion : float or None
        The dispersion of the targets about the model (`hardthresh.certificates.standard_errors`), the residual variance
        for least squares; None for losses that have none.
    converged : bool
        Whether the fit converged.
    reason : str
        Why it stopped.
    worth : dict from int to Worth
        For each chosen feature, by its column. For an average of models, of the features of the best single model.
    rows : Rows or None
        The rows, with what the model predicts for them; None for a table in blocks.
    path : PathRows or None
        Some of them, with what each model of the path over k predicts; None for one given k.
    correlations : Correlations
        The correlations of the chosen features with each other and with their closest substitutes.
    subject : str
        What the objective, the scores, the dispersion and `worth` are about, if not the model itself.
    unknown : str
        Why no standard errors and substitutes are known; empty if they were computed.
    gap : float or None
        How far a lower bound of the objective of all sets of as many features is below that of these
        (`hardthresh.certificates.relative_gap`); None without a bound. A large gap says nothing against the model.
    """

    facts: Facts
    n_rows: int
    total_weight: float
    objective: float
    scores: dict[str, float]
    dispersion: float | None
    converged: bool
    reason: str
    worth: dict[int, Worth]
    rows: Rows | None
    path: PathRows | None
    correlations: Correlations
    subject: str = ""
    unknown: str = ""
    gap: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as numbers, words and lists, which `json` can write; None stands for NaN."""
        head: dict[str, Any] = {
            "model": self.facts.kind,
            "n_rows": self.n_rows,
            "total_weight": self.total_weight,
            "n_features": self.facts.n_features,
            "k": self.facts.budget,
            "k_counts": self.facts.unit,
            "k_chosen_by": "cross-validation" if self.facts.cross_validation else self.facts.criterion or "given",
            "objective": self.objective,
            "outputs": list(self.facts.outputs),
            **{f"training_{name}": value for name, value in self.scores.items()},
            "dispersion": self.dispersion,
            "converged": self.converged,
            "reason": self.reason,
            "gap": self.gap,
            "about": self.subject or "the model",
            "standard_errors": CAUTION,
            "features": [self._record(feature) for feature in self.facts.features],
        }
        return {key: _plain(value) for key, value in head.items()}

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each chosen feature, the largest effect first, as a pandas data frame.

        Effects on outputs and their standard errors are lists, for models of several outputs only, in the order of
        ``attrs["outputs"]``. The frame's ``attrs["standard_errors"]`` has the words that belong to standard errors.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        pandas = pandas_for_frames()
        names = list(self._record(Feature(0, "", 0.0, 0.0, None, False)))
        records = [self._record(feature) for feature in self.facts.features]
        left_out = [] if self.facts.outputs else ["outputs", "standard_errors"]
        frame = pandas.DataFrame(records, columns=names).set_index("feature").drop(columns=left_out)
        frame["level_of"] = frame["level_of"].astype("Int64")  # integers of which some are missing
        frame.attrs |= {"standard_errors": CAUTION} | (
            {"outputs": list(self.facts.outputs)} if self.facts.outputs else {}
        )
        return frame

    def __str__(self) -> str:
        return self._printed().to_text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._printed().to_html()

    def _printed(self) -> PrintedTable:
        header, rows, notes = self._table()
        return PrintedTable(self._head(), header, rows, notes, left=("feature", "group", "closest substitute"))

    def _record(self, feature: Feature) -> dict[str, Any]:
        worth = self.worth.get(feature.index, _UNKNOWN)
        record = asdict(feature) | asdict(worth)
        del record["index"], record["column"]
        return {"feature": record.pop("name")} | {key: _plain(value) for key, value in record.items()}

    def _head(self) -> list[str]:
        """Return the lines above the table."""
        facts = self.facts
        weight = "" if self.total_weight == self.n_rows else f" of total weight {total(self.total_weight)}"
        how = "on the rows of the fit, which flatters it"
        fit = ", ".join(words.fit_score(name, value) for name, value in self.scores.items())
        about = f" of {self.subject}" if self.subject else ""
        lines = [
            f"{facts.kind}: {words.headline(facts)}",
            *(f"{part}" for part in words.qualifications(facts)),
            f"{plural(self.n_rows, 'row')}{weight}, {plural(facts.n_features, 'column')}; "
            f"k = {facts.budget:,}, the number of {facts.unit}s that {words.chosen_by(facts)}",
            f"Objective{about}: {number(self.objective)}; {fit} {how}"
            + ("" if self.dispersion is None or isnan(self.dispersion) else f"; dispersion {number(self.dispersion)}"),
            words.held_out(facts),
            f"{'Converged' if self.converged else 'NOT converged'}: {self.reason}",
            gap_sentence(self.gap),
        ]
        return [line for line in lines if line]

    def _table(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the header, the rows and the notes below."""
        facts = self.facts
        scaled, shares = facts.per != "unit", any(feature.share is not None for feature in facts.features)
        grouped = any(worth.unit not in ("", facts.names[j]) for j, worth in self.worth.items())
        outputs, several = facts.listed_outputs, bool(facts.outputs)
        header = ["feature", *(["group"] if grouped else []), "size" if several else "coefficient"]
        errors = not several and not self.unknown
        substitutes = any(worth.substitute is not None for worth in self.worth.values())
        header += [*(["per SD"] if scaled else []), *outputs, *(["SE*"] if errors else []), "drop cost"]
        halves = any(feature.inclusion is not None for feature in facts.features)
        header += [*(["closest substitute", "its cost"] if substitutes else []), *(["in folds"] if shares else [])]
        header += ["in halves"] if halves else []
        rows, sized = [], number if several else signed
        for feature in facts.features:
            worth = self.worth.get(feature.index, _UNKNOWN)
            row = [feature.name, *([worth.unit or "–"] if grouped else []), sized(feature.coefficient)]
            row += [sized(feature.effect)] if scaled else []
            row += _with_errors(feature.outputs, worth.standard_errors) if outputs else []
            row += [_cell(worth.standard_error)] if errors else []
            row += ["on request" if feature.requested else _cell(worth.drop_cost)]
            row += [worth.substitute or "–", _cell(worth.substitute_cost)] if substitutes else []
            row += [percent(feature.share or 0.0)] if shares else []
            rows.append(row + ([percent(feature.inclusion or 0.0)] if halves else []))
        if not rows:
            return header, [], []
        unit, exchange = facts.unit, ", or its substitute takes its place" if substitutes else ""
        notes = [
            f"Size: the length of the coefficients of all {len(facts.outputs)} outputs together."
            + (f" ±: standard errors {CAUTION}; the same rows chose the features." if outputs else "")
            if several
            else f"No standard errors and substitutes: {self.unknown}."
            if self.unknown
            else f"* standard errors {CAUTION}; the same rows chose the features.",
            f"Costs: the rise of the objective when the {unit} leaves{exchange}, and all coefficients are refitted.",
            *([words.IN_HALVES] if halves else []),
        ]
        return header, rows, notes + ([f"SE and costs are of {self.subject}."] if self.subject else [])


def _with_errors(effects: Sequence[float], errors: Sequence[float]) -> list[str]:
    """Return effects on outputs with their standard errors, where these are known."""
    known = errors or [nan] * len(effects)
    return [
        signed(one) + ("" if isnan(error) else f" ± {number(error)}") for one, error in zip(effects, known, strict=True)
    ]


def _cell(value: float) -> str:
    return "–" if isnan(value) else number(value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
