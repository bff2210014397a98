"""The pages about the study as a whole: its state, and predictions by its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hardthresh.core.errors import InvalidInputError
from hardthresh.report.page import capitalized

from ..chosen import ChosenColumn
from ..drift import Drift
from ..predicting import Predictor, predict, predictor
from ..progress import Progress
from ..records import Status
from ..study import Study
from ..summaries import latest_progress
from .chart import learning_curve
from .fields import Field, blank_fields, typed_fields, values_of
from .site import Site

_ROWS = 40  # of the table beside the learning curve, at least half of them; arbitrary


def _present(study: Study) -> tuple[Status, tuple[Progress, Drift], Predictor | None]:
    """Return the state of a study, its progress and its model, which agree with each other."""
    with study.snapshot() as now:
        return now.status(), latest_progress(now), predictor(now)


class Overview:
    """The views of the study."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._thread = site.thread

    async def study(self, request: Request) -> Response:
        """Show the state of the study, the learning curve, and the model as it stands."""
        self._site.session(request)
        status, (progress, drift), model = await self._thread(_present)
        curve = progress.curve.to_dict()
        rows = [dict(zip(curve, row, strict=True)) for row in zip(*curve.values(), strict=True)]
        charts = {width: learning_curve(progress.curve, pixels) for width, pixels in (("wide", 760), ("narrow", 350))}
        said = {column.name: _verdict(column) for column in progress.chosen if column.now}
        context = {
            "status": status,
            "progress": progress,
            "model": model,
            "charts": charts,
            "said": said,
            "drift": drift,
        }
        return self._site.page(request, "study.html", rows=rows[:: -max(1, len(rows) // _ROWS)], **context)

    async def predict(self, request: Request) -> Response:
        """Predict the target of one example."""
        self._site.session(request)
        model = await self._thread(predictor)
        needed = () if model is None else [attribute.name for attribute in model.attributes]
        fields = blank_fields(self._thread.terms, needed)
        if request.method == "GET" or model is None:
            return self._show_prediction(request, model, fields)
        fields = typed_fields(fields, await self._site.form(request))
        if any(field.error for field in fields):
            return self._show_prediction(request, model, fields, status=422)
        try:
            found = predict(self._thread.terms, model, values_of(fields))
        except InvalidInputError as error:
            said = f"{capitalized(str(error))}."
            return self._show_prediction(request, model, fields, error=said, status=422)
        return self._show_prediction(request, model, fields, prediction=found)

    def _show_prediction(
        self,
        request: Request,
        model: Predictor | None,
        fields: Sequence[Field],
        *,
        status: int = 200,
        error: str = "",
        prediction: Any = None,
    ) -> Response:
        context = {"model": model, "fields": fields, "error": error, "prediction": prediction}
        return self._site.page(request, "predict.html", status, **context)


def _verdict(column: ChosenColumn) -> str:
    """Return in a few words whether the model needs a column."""
    if column.p != column.p:
        return "too few examples to say"
    return "looks needed" if column.looks_needed else "may not be needed"
