"""The API for instruments and programs: JSON over HTTP, with the token of the study as a bearer token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hardthresh.core.errors import InvalidInputError

from ..predicting import NO_MODEL, predict, predictor
from ..question import Question
from ..study import Study
from ..summaries import model_summary, status_summary
from .access import Access
from .bodies import REQUIRED, Fields, address_of, json_of
from .openapi import document
from .refusals import UNPROCESSABLE, Refused
from .study_thread import StudyThread

Work = Callable[[Study], Any]


def bearer(request: Request, access: Access) -> None:
    """Raise unless a request has the token of the study."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given:
        raise Refused(
            401,
            "NoToken",
            "send the token that was printed when the study was served, as 'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )
    access.check(given.strip(), address_of(request))


def routes(thread: StudyThread, access: Access) -> list[Route]:
    """Return the routes below /api, and that of the document which describes them."""

    def get(path: str, read: Callable[[Study, Request], Any]) -> Route:
        async def answer(request: Request) -> Response:
            bearer(request, access)
            return JSONResponse(finite(await thread(lambda study: read(study, request))))

        return Route(path, answer, methods=["GET"])

    def post(path: str, read: Callable[[Fields, dict[str, str]], Work]) -> Route:
        async def answer(request: Request) -> Response:
            bearer(request, access)
            fields = Fields(await json_of(request))
            work = read(fields, key_of(request))
            fields.finish()
            return JSONResponse(finite(await thread(work)))

        return Route(path, answer, methods=["POST"])

    async def describe(request: Request) -> Response:
        bearer(request, access)
        return JSONResponse(document(thread.terms))

    return [
        get("/api/status", lambda study, _: status_summary(study)),
        get("/api/model", lambda study, _: model_summary(study)),
        get("/api/questions", _open_questions),
        post("/api/ask", _ask),
        post("/api/tell", _tell),
        post("/api/skip", _skip),
        post("/api/give-back", _give_back),
        post("/api/correct", _correct),
        post("/api/withdraw", _withdraw),
        post("/api/predict", _predict),
        Route("/openapi.json", describe, methods=["GET"]),
    ]


def key_of(request: Request) -> dict[str, str]:
    """Return the key that makes a repeated request harmless, if there is one, as an argument of the study."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return {}
    if not (1 <= len(key) <= 64 and key.isascii() and key.isprintable()):
        raise Refused(
            UNPROCESSABLE, "InvalidInputError", "Idempotency-Key must have 1 to 64 printable ASCII characters"
        )
    return {"key": key}


def finite(found: Any) -> Any:
    """Return an answer with null where a number is not finite, which JSON does not have."""
    if isinstance(found, float):
        return found if isfinite(found) else None
    if isinstance(found, dict):
        return {name: finite(value) for name, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [finite(value) for value in found]
    return found


def _open_questions(study: Study, request: Request) -> dict[str, Any]:
    who = request.query_params.get("who")
    questions = [question for question in study.status().open if who is None or question.holder == who]
    return _described(questions)


def _described(questions: Iterable[Question]) -> dict[str, Any]:
    return {"questions": [question.described() for question in questions]}


def _ask(fields: Fields, key: dict[str, str]) -> Work:
    who, count = fields.text("who", REQUIRED), fields.integer("count", 1)
    return lambda study: _described(study.ask(who, count, **key))


def _tell(fields: Fields, key: dict[str, str]) -> Work:
    who, number, values = fields.text("who", REQUIRED), fields.integer("question"), fields.values("values")
    confirmed, subject = fields.texts("confirmed"), fields.text("subject")
    return lambda study: study.tell(number, values, who, confirmed=confirmed, subject=subject, **key).to_dict()


def _skip(fields: Fields, key: dict[str, str]) -> Work:
    who, number = fields.text("who", REQUIRED), fields.integer("question")
    bought, reason = fields.texts("bought"), fields.text("reason", "")
    return lambda study: study.skip(number, who, bought=bought, reason=reason, **key).to_dict()


def _give_back(fields: Fields, key: dict[str, str]) -> Work:
    who, number, reason = fields.text("who", REQUIRED), fields.integer("question"), fields.text("reason", "")
    return lambda study: study.give_back(number, who, reason=reason, **key).to_dict()


def _correct(fields: Fields, key: dict[str, str]) -> Work:
    who, number, values = fields.text("who", REQUIRED), fields.integer("question"), fields.values("values")
    more = {"reason": fields.text("reason", REQUIRED), "confirmed": fields.texts("confirmed")}
    more |= {"subject": fields.text("subject")}
    return lambda study: study.correct(number, values, who, **more, **key).to_dict()


def _withdraw(fields: Fields, key: dict[str, str]) -> Work:
    who, number, reason = fields.text("who", REQUIRED), fields.integer("question"), fields.text("reason", REQUIRED)
    return lambda study: study.withdraw(number, who, reason=reason, **key).to_dict()


def _predict(fields: Fields, key: dict[str, str]) -> Work:
    values = fields.values("values")

    def work(study: Study) -> dict[str, Any]:
        model = predictor(study)
        if model is None:
            raise InvalidInputError(NO_MODEL)
        return predict(study.terms, model, values).to_dict(study.terms)

    return work
