"""The pages on which people are asked, and type in what they measured."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from hardthresh.core.errors import InvalidInputError
from hardthresh.report.page import capitalized

from ..attributes import Attribute
from ..errors import QuestionBack
from ..outcomes import Record
from ..question import Question
from ..records import Receipt
from ..study import Study
from .bodies import address_of
from .fields import Field, Form, blank_fields, confirmed_of, doubted, typed_fields, values_of
from .reviewing import Reviewing
from .site import Site, first, number_of, request_about, to


class Measuring:
    """The views of questions."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._thread = site.thread
        self._reviewing = Reviewing(site)

    async def start(self, request: Request) -> Response:
        """Show the open questions of the person; with the token of the study, admit a browser first.

        A token in a link or picture of another site is not looked at.
        """
        if "token" in request.query_params:
            if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                return to("/sign-in")
            self._site.access.check(request.query_params["token"], address_of(request))
            answer = to("/sign-in")
            self._site.remember(request, answer, self._site.access.sign_in(""))
            return answer
        session = self._site.session(request)
        status = await self._thread(Study.status)
        return self._site.page(
            request,
            "start.html",
            status=status,
            mine=[question for question in status.open if question.holder == session.who],
            others=[question for question in status.open if question.holder not in (None, session.who)],
            error="",
        )

    async def ask(self, request: Request) -> Response:
        """Give the person another question."""
        session, form = self._site.session(request), await self._site.form(request)
        count = first(form, "count")
        wanted = int(count) if count.isascii() and count.isdecimal() and len(count) < 5 else 0
        questions = await self._thread(lambda study: study.ask(session.who, wanted, key=first(form, "key")))
        if len(questions) < wanted:
            session.notice = "There is no further question now: the next ones depend on those that are open."
            return to("/")
        return to(f"/question/{questions[-1].number}")

    async def question(self, request: Request) -> Response:
        """Show the form of a question, or take what was typed into it."""
        session, number = self._site.session(request), number_of(request)
        record = await self._reviewing.record(number)
        status = await self._thread(Study.status)
        question = next((question for question in status.open if question.number == number), None)
        if request.method == "POST":
            return await self._tell(request, session.who, record, question)
        if question is None or question.holder != session.who or "correct" in request.query_params:
            return self._reviewing.show(request, record, question, closed=status.closed)
        return self._show_question(request, question, blank_fields(self._thread.terms, question.needed))

    async def _tell(self, request: Request, who: str, record: Record, question: Question | None) -> Response:
        form = await self._site.form(request)
        # also what was told before: a form that is sent twice says the same twice
        fields = typed_fields(blank_fields(self._thread.terms, _names(form, record, self._thread.terms.target)), form)
        subject = first(form, "subject").strip()

        def tell(study: Study) -> Receipt:
            return study.tell(
                record.number,
                values_of(fields),
                who,
                confirmed=confirmed_of(fields),
                subject=subject or None,
                key=first(form, "key"),
            )

        if question and question.holder == who:
            try:
                if any(field.error for field in fields):
                    return self._show_question(request, question, fields, subject=subject, status=422)
                if not values_of(fields):
                    error = f"{'No value' if subject else 'Nothing'} was typed yet."
                    return self._show_question(request, question, fields, subject=subject, error=error, status=422)
                receipt = await self._thread(tell)
            except QuestionBack as back:
                return self._show_question(request, question, doubted(fields, back), subject=subject, status=409)
            except InvalidInputError as error:
                said = f"{capitalized(str(error))}."
                return self._show_question(request, question, fields, subject=subject, error=said, status=422)
        else:
            receipt = await self._thread(tell)  # a repeated request has its old reply, others say who has it now
        return self._thank(request, receipt)

    def _thank(self, request: Request, receipt: Receipt) -> Response:
        session = self._site.session(request)
        session.saved = receipt.number
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
        terms = self._thread.terms
        # browsers do not send a choice that was not made, so a form that comes back may lack fields
        known = {field.attribute.name: field for field in blank_fields(terms, question.needed)}
        known |= {field.attribute.name: field for field in fields if field.attribute.name in known}
        fields = [*known.values()]
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
        who, number, form, reason = await request_about(self._site, request)
        bought = form.get("bought", [])
        await self._thread(lambda study: study.skip(number, who, bought=bought, reason=reason, key=first(form, "key")))
        self._site.session(request).notice = f"Question {number} was skipped; another example takes its place."
        return to("/")

    async def give_back(self, request: Request) -> Response:
        """Let another person have the question."""
        who, number, form, reason = await request_about(self._site, request)
        await self._thread(lambda study: study.give_back(number, who, reason=reason, key=first(form, "key")))
        self._site.session(request).notice = f"Question {number} was given back; whoever asks next will have it."
        return to("/")


def _names(form: Form, record: Record, target: Attribute) -> list[str]:
    """Return what a form has fields for, of what a question is about."""
    names = [attribute.name for attribute in (*record.attributes, target)]
    return [name for name in names if f"value:{name}" in form or f"missing:{name}" in form]
