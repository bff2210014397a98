"""The pages: what to measure next, answers and their corrections, the state of the study, and predictions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hardthresh.core.errors import InvalidInputError

from ..attributes import Attribute
from ..chosen import ChosenColumn
from ..errors import QuestionBack
from ..predicting import Predictor, predict, predictor
from ..reading import checked_name
from ..records import Receipt
from ..state import Question
from ..study import Study
from .chart import learning_curve
from .facts import latest_progress
from .fields import (
    Field,
    Form,
    blank_fields,
    confirmed_of,
    doubted,
    filled_fields,
    typed_fields,
    values_of,
)
from .reading import LARGEST_NUMBER
from .records import Record
from .refusals import Refused
from .site import Site, our_path, to

_SHOWN = 50
"""Answers on a page; more are found by their number or subject. Arbitrary: a page that loads at once on a phone."""

_ROWS = 40  # of the table beside the learning curve, at least half of them; arbitrary

View = Callable[[Request], Awaitable[Response]]


def routes(site: Site) -> list[Route]:
    """Return the routes of all pages."""
    pages = Pages(site)
    number = "/question/{number}"
    return [
        Route("/", pages.start, methods=["GET"]),
        Route("/sign-in", pages.sign_in, methods=["GET", "POST"]),
        Route("/sign-out", pages.sign_out, methods=["POST"]),
        Route("/ask", pages.ask, methods=["POST"]),
        Route(number, pages.question, methods=["GET", "POST"]),
        Route(f"{number}/skip", pages.skip, methods=["POST"]),
        Route(f"{number}/give-back", pages.give_back, methods=["POST"]),
        Route(f"{number}/correct", pages.correct, methods=["POST"]),
        Route(f"{number}/withdraw", pages.withdraw, methods=["POST"]),
        Route("/answers", pages.answers, methods=["GET"]),
        Route("/study", pages.study, methods=["GET"]),
        Route("/predict", pages.predict, methods=["GET", "POST"]),
    ]


class Pages:
    """The views of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._desk = site.desk

    # --- who ---

    async def start(self, request: Request) -> Response:
        """Show the open questions of the person; with the token of the study, admit a browser first."""
        if "token" in request.query_params:
            self._site.access.check(request.query_params["token"], _address(request))
            answer = to("/sign-in")
            self._site.remember(answer, self._site.access.sign_in(""))
            return answer
        session = self._site.session(request)
        status = await self._desk(Study.status)
        return self._site.page(
            request,
            "start.html",
            status=status,
            mine=[question for question in status.open if question.holder == session.who],
            others=[question for question in status.open if question.holder not in (None, session.who)],
            error="",
        )

    async def sign_in(self, request: Request) -> Response:
        """Ask for the name of the person, and for the token where the browser was not admitted by it."""
        name = self._site.name_of(request)
        admitted = self._site.access.session(name) is not None
        if request.method == "GET":
            next_path = our_path(request.query_params.get("next", "/"))
            return self._site.page(request, "sign_in.html", admitted=admitted, error="", typed="", next=next_path)
        form = await self._site.form(request)
        typed, next_path = _first(form, "who"), our_path(_first(form, "next"))
        if not admitted:
            try:
                self._site.access.check(_first(form, "token").strip(), _address(request))
            except Refused as refused:
                return _with_headers(
                    self._site.page(
                        request,
                        "sign_in.html",
                        refused.refusal.status,
                        admitted=False,
                        error=f"{refused}.",
                        typed=typed,
                        next=next_path,
                    ),
                    refused,
                )
        try:
            who = checked_name("your name", typed)
        except InvalidInputError as error:
            context = {"admitted": admitted, "error": f"{error}.", "typed": typed, "next": next_path}
            return self._site.page(request, "sign_in.html", 422, **context)
        self._site.access.sign_out(name)
        answer = to(next_path)
        self._site.remember(answer, self._site.access.sign_in(who))
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        await self._site.form(request)
        self._site.access.sign_out(self._site.name_of(request))
        answer = to("/sign-in")
        answer.delete_cookie(self._site.cookie)
        return answer

    # --- what to measure ---

    async def ask(self, request: Request) -> Response:
        """Give the person another question."""
        session, form = self._site.session(request), await self._site.form(request)
        count = _first(form, "count")
        wanted = int(count) if count.isascii() and count.isdecimal() and len(count) < 5 else 0
        questions = await self._desk(lambda study: study.ask(session.who, wanted, key=_first(form, "key")))
        if len(questions) < wanted:
            session.notice = "There is no further question now: the next ones depend on those that are open."
            return to("/")
        return to(f"/question/{questions[-1].number}")

    async def question(self, request: Request) -> Response:
        """Show the form of a question, or take what was typed into it."""
        session, number = self._site.session(request), _number(request)
        record = await self._record(number)
        status = await self._desk(Study.status)
        question = next((question for question in status.open if question.number == number), None)
        if request.method == "POST":
            return await self._tell(request, session.who, record, question)
        if question is None or question.holder != session.who or "correct" in request.query_params:
            return self._show_record(request, record, question)
        return self._show_question(request, question, blank_fields(self._desk.terms, question.needed))

    async def _tell(self, request: Request, who: str, record: Record, question: Question | None) -> Response:
        form = await self._site.form(request)
        # also what was told before: a form that is sent twice says the same twice
        fields = typed_fields(blank_fields(self._desk.terms, _names(form, record, self._desk.terms.target)), form)
        subject = _first(form, "subject").strip()

        def tell(study: Study) -> Receipt:
            return study.tell(
                record.number,
                values_of(fields),
                who,
                confirmed=confirmed_of(fields),
                subject=subject or None,
                key=_first(form, "key"),
            )

        if question and question.holder == who:
            try:
                if any(field.error for field in fields):
                    return self._show_question(request, question, fields, subject=subject, status=422)
                if not (values_of(fields) or subject):
                    error = "Nothing was typed yet."
                    return self._show_question(request, question, fields, error=error, status=422)
                receipt = await self._desk(tell)
            except QuestionBack as back:
                return self._show_question(request, question, doubted(fields, back), subject=subject, status=409)
            except InvalidInputError as error:
                said = f"{str(error)[:1].upper()}{str(error)[1:]}."
                return self._show_question(request, question, fields, subject=subject, error=said, status=422)
        else:
            receipt = await self._desk(tell)  # a repeated request has its old reply, others say who has it now
        return self._thank(request, receipt)

    def _thank(self, request: Request, receipt: Receipt) -> Response:
        session = self._site.session(request)
        if not receipt.complete:
            session.notice = f"Saved. Still needed: {', '.join(receipt.needed)}."
            return to(f"/question/{receipt.number}")
        session.notice = f"Question {receipt.number} is complete."
        if not receipt.learned:
            session.notice += " As something could not be measured, the study learns nothing from it."
        return to("/")

    def _show_question(
        self,
        request: Request,
        question: Question,
        fields: Sequence[Field],
        *,
        subject: str = "",
        error: str = "",
        status: int = 200,
    ) -> Response:
        terms = self._desk.terms
        fields = [field for field in fields if field.attribute.name in question.needed]
        known = {field.attribute.name: field for field in fields}
        panels = [
            (panel, terms.panels.get(panel), [known[one.name] for one in members if one.name in known])
            for panel, members in question.panels
        ]
        told = [(terms.attribute(name), value) for name, value in question.values.items()]
        return self._site.page(
            request,
            "question.html",
            status,
            question=question,
            panels=[panel for panel in panels if panel[2]],
            target=known.get(terms.target.name),
            fields=fields,
            told=told,
            subject=subject,
            error=error,
        )

    async def skip(self, request: Request) -> Response:
        """Report that the example is not there."""
        who, number, form, reason = await self._request_about(request)
        bought = form.get("bought", [])
        await self._desk(lambda study: study.skip(number, who, bought=bought, reason=reason, key=_first(form, "key")))
        self._site.session(request).notice = f"Question {number} was skipped; another example takes its place."
        return to("/")

    async def give_back(self, request: Request) -> Response:
        """Let another person have the question."""
        who, number, form, reason = await self._request_about(request)
        await self._desk(lambda study: study.give_back(number, who, reason=reason, key=_first(form, "key")))
        self._site.session(request).notice = f"Question {number} was given back; whoever asks next will have it."
        return to("/")

    async def _request_about(self, request: Request) -> tuple[str, int, Form, str]:
        session, number, form = self._site.session(request), _number(request), await self._site.form(request)
        return session.who, number, form, _first(form, "reason").strip()

    # --- answers ---

    async def answers(self, request: Request) -> Response:
        """List what was answered, the latest first."""
        self._site.session(request)
        find = request.query_params.get("find", "").strip()
        records = await self._desk(self._site.records.latest)
        found = [
            record
            for record in records.values()
            if record.state != "open" and (not find or find in (str(record.number), record.subject))
        ]
        found.sort(key=lambda record: record.at, reverse=True)
        return self._site.page(request, "answers.html", records=found[:_SHOWN], count=len(found), find=find[:100])

    async def correct(self, request: Request) -> Response:
        """Correct values of a question."""
        who, number, form, reason = await self._request_about(request)
        record = await self._record(number)
        before = self._record_fields(record)
        fields = typed_fields(before, form)
        changed = {
            field.attribute.name: field.value
            for field, old in zip(fields, before, strict=True)
            if (field.content, field.missing) != (old.content, old.missing) and field.told
        }
        error = ""
        if not reason:
            error = "Say why you correct it: the reason is kept with the correction."
        elif not changed and not any(field.error for field in fields):
            error = "Nothing was changed."
        if error or any(field.error for field in fields):
            return self._show_record(request, record, None, fields=fields, error=error, reason=reason, status=422)
        confirmed = confirmed_of(fields)
        try:
            await self._desk(
                lambda study: study.correct(
                    number, changed, who, reason=reason, confirmed=confirmed, key=_first(form, "key")
                )
            )
        except QuestionBack as back:
            fields = doubted(fields, back)
            return self._show_record(request, record, None, fields=fields, reason=reason, status=409)
        self._site.session(request).notice = f"Question {number} was corrected."
        return to(f"/question/{number}")

    async def withdraw(self, request: Request) -> Response:
        """Take an example out of what is learned from."""
        who, number, form, reason = await self._request_about(request)
        if not reason:
            record = await self._record(number)
            said = "Say why you withdraw it: the reason is kept."
            return self._show_record(request, record, None, withdraw_error=said, status=422)
        await self._desk(lambda study: study.withdraw(number, who, reason=reason, key=_first(form, "key")))
        self._site.session(request).notice = f"Question {number} was withdrawn; nothing is learned from it any more."
        return to("/answers")

    async def _record(self, number: int) -> Record:
        records = await self._desk(self._site.records.latest)
        if number not in records:
            raise Refused(404, "NoSuchQuestion", f"question {number} was not asked yet")
        return records[number]

    def _record_fields(self, record: Record) -> tuple[Field, ...]:
        names = [attribute.name for attribute in (*record.attributes, self._desk.terms.target)]
        return filled_fields(
            blank_fields(self._desk.terms, [name for name in names if name in record.values]), record.values
        )

    def _show_record(
        self,
        request: Request,
        record: Record,
        question: Question | None,
        *,
        fields: Sequence[Field] | None = None,
        error: str = "",
        reason: str = "",
        withdraw_error: str = "",
        status: int = 200,
    ) -> Response:
        return self._site.page(
            request,
            "record.html",
            status,
            record=record,
            question=question,
            fields=self._record_fields(record) if fields is None else fields,
            error=error,
            reason=reason,
            withdraw_error=withdraw_error,
        )

    # --- the study ---

    async def study(self, request: Request) -> Response:
        """Show the state of the study, the learning curve, and the model as it stands."""
        self._site.session(request)
        status, (progress, drift), model = await self._desk(
            lambda study: (study.status(), latest_progress(study), predictor(study))
        )
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
        model = await self._desk(predictor)
        needed = () if model is None else [attribute.name for attribute in model.attributes]
        fields = blank_fields(self._desk.terms, needed)
        if request.method == "GET" or model is None:
            return self._show_prediction(request, model, fields)
        fields = typed_fields(fields, await self._site.form(request))
        if any(field.error for field in fields):
            return self._show_prediction(request, model, fields, status=422)
        try:
            found = predict(self._desk.terms, model, values_of(fields))
        except InvalidInputError as error:
            said = f"{str(error)[:1].upper()}{str(error)[1:]}."
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


def _names(form: Form, record: Record, target: Attribute) -> list[str]:
    """Return what a form has fields for, of what a question is about."""
    names = [attribute.name for attribute in (*record.attributes, target)]
    return [name for name in names if f"value:{name}" in form or f"missing:{name}" in form]


def _verdict(column: ChosenColumn) -> str:
    """Return in a few words whether the model needs a column."""
    if column.p != column.p:
        return "too few examples to say"
    return "looks needed" if column.looks_needed else "may not be needed"


def _first(form: Form, name: str) -> str:
    return form.get(name, [""])[0]


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _number(request: Request) -> int:
    """Return the number of the question in the path."""
    text = str(request.path_params["number"])
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= LARGEST_NUMBER):
        raise Refused(404, "NoSuchQuestion", f"there is no question {text[:40]!r}")
    return int(text)


def _with_headers(answer: Response, refused: Refused) -> Response:
    answer.headers.update(refused.refusal.headers)
    return answer
