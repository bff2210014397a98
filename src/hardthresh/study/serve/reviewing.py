"""The pages about what was answered: the list, corrections, and examples that are withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hardthresh.core.errors import InvalidInputError
from hardthresh.report.page import capitalized

from ..errors import QuestionBack
from ..outcomes import Record
from ..question import Question
from ..reading import same_subject
from ..records import Receipt
from ..study import Study
from .fields import Field, blank_fields, confirmed_of, doubted, filled_fields, typed_fields
from .refusals import Refused
from .site import Site, first, request_about, to

_SHOWN = 50
"""Answers on a page; more are found by their number or subject. Arbitrary: a page that loads at once on a phone."""


class Reviewing:
    """The views of answers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._thread = site.thread

    async def answers(self, request: Request) -> Response:
        """List what was answered, the latest first."""
        self._site.session(request)
        find = request.query_params.get("find", "").strip()
        records = await self._site.records()
        found = [
            record
            for record in records.values()
            if record.state != "open"
            and (not find or find == str(record.number) or same_subject(find, record.subject or ""))
        ]
        found.sort(key=lambda record: record.event, reverse=True)
        return self._site.page(request, "answers.html", records=found[:_SHOWN], count=len(found), find=find[:100])

    async def correct(self, request: Request) -> Response:
        """Correct values of a question."""
        who, number, form, reason = await request_about(self._site, request)
        record = await self.record(number)
        before = self._record_fields(record)
        fields = typed_fields(before, form)
        changed = {
            field.attribute.name: field.value
            for field, old in zip(fields, before, strict=True)
            if (field.content, field.missing) != (old.content, old.missing) and field.told
        }
        subject = first(form, "subject").strip() or record.subject
        error = ""
        if not reason:
            error = "Say why you correct it: the reason is kept with the correction."
        elif not changed and subject == record.subject and not any(field.error for field in fields):
            error = "Nothing was changed."
        typed: dict[str, Any] = {"reason": reason, "subject": subject or ""}
        if error or any(field.error for field in fields):
            return self.show(request, record, None, fields=fields, error=error, **typed, status=422)

        def correct(study: Study) -> Receipt:
            return study.correct(
                number,
                changed,
                who,
                reason=reason,
                confirmed=confirmed_of(fields),
                subject=None if subject == record.subject else subject,
                key=first(form, "key"),
            )

        try:
            await self._thread(correct)
        except QuestionBack as back:
            return self.show(request, record, None, fields=doubted(fields, back), **typed, status=409)
        except InvalidInputError as refused:
            error = f"{capitalized(str(refused))}."
            return self.show(request, record, None, fields=fields, error=error, **typed, status=422)
        self._site.session(request).notice = f"Question {number} was corrected."
        return to(f"/question/{number}")

    async def withdraw(self, request: Request) -> Response:
        """Take an example out of what is learned from."""
        who, number, form, reason = await request_about(self._site, request)
        if not reason:
            record = await self.record(number)
            said = "Say why you withdraw it: the reason is kept."
            return self.show(request, record, None, withdraw_error=said, status=422)
        await self._thread(lambda study: study.withdraw(number, who, reason=reason, key=first(form, "key")))
        self._site.session(request).notice = f"Question {number} was withdrawn; nothing is learned from it any more."
        return to("/answers")

    async def record(self, number: int) -> Record:
        """Return what is known of a question."""
        records = await self._site.records()
        if number not in records:
            raise Refused(404, "NoSuchQuestion", f"question {number} was not asked yet")
        return records[number]

    def _record_fields(self, record: Record) -> tuple[Field, ...]:
        names = [attribute.name for attribute in (*record.attributes, self._thread.terms.target)]
        return filled_fields(
            blank_fields(self._thread.terms, [name for name in names if name in record.values]), record.values
        )

    def show(
        self,
        request: Request,
        record: Record,
        question: Question | None,
        *,
        fields: Sequence[Field] | None = None,
        error: str = "",
        reason: str = "",
        subject: str | None = None,
        withdraw_error: str = "",
        closed: bool = False,
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
            subject=(record.subject or "") if subject is None else subject,
            withdraw_error=withdraw_error,
            closed=closed,
        )


def _is_found(record: Record, find: str) -> bool:
    """Return whether a search for a number or a subject finds a question; a search for nothing finds all."""
    return not find or find == str(record.number) or same_subject(find, record.subject or "")
