"""The application: pages and API of one study, behind the security middleware."""

from __future__ import annotations

from collections.abc import Collection
from sqlite3 import OperationalError

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hardthresh.core.errors import HardThreshError
from hardthresh.report.page import part

from . import api, pages
from .access import Access
from .refusals import Refusal, Refused, is_api, refusal_of
from .security import SecurityMiddleware
from .site import SignInFirst, Site, static, to
from .study_thread import StudyThread

_HANDLED = (HardThreshError, HTTPException, OperationalError, Refused, SignInFirst)
_FILES = {"study.css": "text/css", "study.js": "text/javascript", "icon.svg": "image/svg+xml"}


def application(
    thread: StudyThread, access: Access, hosts: Collection[str], *, any_address: bool = False, secure: bool = False
) -> ASGIApp:
    """Return the application, to be run by a server of ASGI.

    Parameters
    ----------
    thread : StudyThread
        The study.
    access : Access
        Who may use it.
    hosts : collection of str
        The names of the server, in lower case.
    any_address : bool
        Whether it may also be reached by any number (IP address).
    secure : bool
        Whether it is served by TLS.

    Returns
    -------
    ASGI application
    """
    site = Site(thread, access, secure)

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, SignInFirst):
            is_page = request.method == "GET" and request.url.path != "/"
            return to("/sign-in", next=request.url.path) if is_page else to("/sign-in")
        refusal = _not_routed(error) if isinstance(error, HTTPException) else refusal_of(error)
        if refusal is None:
            raise error
        if is_api(request.url.path):
            return JSONResponse(api.finite(refusal.as_json()), refusal.status, headers=dict(refusal.headers))
        return site.refused(request, refusal)

    routes = [*api.routes(thread, access), *pages.routes(site), Route("/static/{name}", _static)]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(_HANDLED, refuse))
    return SecurityMiddleware(app, hosts, any_address)


def _not_routed(error: HTTPException) -> Refusal:
    if error.status_code == 404:
        return Refusal(404, "NotFound", "there is no such page")
    return Refusal(error.status_code, "NotAllowed", "this cannot be done here", headers=error.headers or {})


async def _static(request: Request) -> Response:
    """Return a file that pages load; the style of reports is that of the pages too."""
    name = request.path_params["name"]
    if name == "report.css":
        style = part("style.html.jinja").strip().removeprefix("<style>").removesuffix("</style>")
        return Response(style, media_type="text/css")
    if name not in _FILES:
        raise HTTPException(404)
    return Response(static(name), media_type=_FILES[name])
