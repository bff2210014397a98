"""The routes of the pages, and signing in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hardthresh.core.errors import InvalidInputError

from ..reading import checked_name
from .bodies import address_of
from .measuring import Measuring
from .overview import Overview
from .refusals import Refused
from .reviewing import Reviewing
from .site import Site, first, our_path, to


def routes(site: Site) -> list[Route]:
    """Return the routes of all pages."""
    signing_in, measuring, reviewing, overview = SigningIn(site), Measuring(site), Reviewing(site), Overview(site)
    number = "/question/{number}"
    return [
        Route("/", measuring.start, methods=["GET"]),
        Route("/sign-in", signing_in.sign_in, methods=["GET", "POST"]),
        Route("/sign-out", signing_in.sign_out, methods=["POST"]),
        Route("/ask", measuring.ask, methods=["POST"]),
        Route(number, measuring.question, methods=["GET", "POST"]),
        Route(f"{number}/skip", measuring.skip, methods=["POST"]),
        Route(f"{number}/give-back", measuring.give_back, methods=["POST"]),
        Route(f"{number}/correct", reviewing.correct, methods=["POST"]),
        Route(f"{number}/withdraw", reviewing.withdraw, methods=["POST"]),
        Route("/answers", reviewing.answers, methods=["GET"]),
        Route("/study", overview.study, methods=["GET"]),
        Route("/predict", overview.predict, methods=["GET", "POST"]),
    ]


class SigningIn:
    """The views of who somebody is."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def sign_in(self, request: Request) -> Response:
        """Ask for the name of the person, and for the token where the browser was not admitted by it."""
        name = self._site.name_of(request)
        admitted = self._site.access.session(name) is not None
        if request.method == "GET":
            next_path = our_path(request.query_params.get("next", "/"))
            return self._site.page(request, "sign_in.html", admitted=admitted, error="", typed="", next=next_path)
        form = await self._site.form(request)
        typed, next_path = first(form, "who"), our_path(first(form, "next"))
        if not admitted:
            try:
                self._site.access.check(first(form, "token").strip(), address_of(request))
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
        self._site.remember(request, answer, self._site.access.sign_in(who))
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        await self._site.form(request)
        self._site.access.sign_out(self._site.name_of(request))
        answer = to("/sign-in")
        answer.delete_cookie(self._site.cookie)
        return answer


def _with_headers(answer: Response, refused: Refused) -> Response:
    answer.headers.update(refused.refusal.headers)
    return answer
