"""The outermost layer: it refuses foreign hosts and origins and long bodies, and adds headers to every answer."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import Refused, is_api

LONGEST_BODY = 256 * 1024
"""Bytes; a form with a thousand attributes takes a tenth of it."""
LONGEST_HEADERS = 16 * 1024  # bytes, with the address; browsers send less than 2,000
PATIENCE = 30.0  # seconds for a body to arrive; arbitrary: a slow telephone needs one
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SAFE = ("GET", "HEAD")


class SecurityMiddleware:
    """A layer around the application.

    Parameters
    ----------
    app : ASGI application
        The application that is protected.
    hosts : collection of str
        The names of this server, in lower case. A page of another name that points to this machine (DNS rebinding) is
        refused.
    any_address : bool
        Whether it may also be reached by any number (IP address), as where it listens on all of them. A page cannot
        take a number for its name unless it comes from there.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], any_address: bool = False) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # of the lifespan; there are no web sockets
            await self._app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception:
            if not started:
                await PlainTextResponse("Internal Server Error", 500)(scope, receive, send_with_headers)
            raise  # so that the server writes it to its log

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            _check_length(scope)
            self._check_host(headers.get("host", ""))
            if scope["method"] not in SAFE:
                check_origin(headers)
            body = await _body(headers, receive)
        except Refused as refused:
            await answer_refused(refused, scope["path"])(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _check_host(self, host: str) -> None:
        name = hostname(host)
        if name in self._hosts or (self._any_address and is_address(name)):
            return
        raise Refused(
            421,
            "ForeignHost",
            f"this server is not called {host[:100]!r}; use the address that it printed at its start",
        )


def hostname(host: str) -> str:
    """Return the name in a header Host, without its port and the brackets of IPv6; nothing if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _network_location(origin: str) -> str | None:
    """Return the name and the port in a header Origin; None if it is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def is_address(name: str) -> bool:
    """Return whether a name is a number (IP address)."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(headers: Headers) -> None:
    """Raise if a page of another origin made the browser send a request that may change something.

    Browsers give the origin of our own forms as "null", because our pages send no referrer; then the form's token
    decides, and Sec-Fetch-Site in all browsers since 2023.
    """
    origin, site = headers.get("origin", "null"), headers.get("sec-fetch-site", "same-origin")
    same = origin == "null" or _network_location(origin) == headers.get("host")
    if not same or site not in ("same-origin", "none"):
        raise Refused(403, "ForeignOrigin", "a page of another site sent this request, so it was not carried out")


def _check_length(scope: Scope) -> None:
    """Raise if the address and the headers of a request are too long."""
    length = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    if length + sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEADERS:
        raise Refused(431, "HeadersTooLong", f"the address and the headers may have {LONGEST_HEADERS:,} bytes together")


async def _body(headers: Headers, receive: Receive) -> bytes:
    """Return the whole body of a request."""
    too_long = Refused(413, "TooLong", f"a request may have at most {LONGEST_BODY:,} bytes; send less at a time")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > LONGEST_BODY:
        raise too_long
    parts, size = [], 0
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":  # what has arrived may look whole
                    raise Refused(400, "Incomplete", "the connection ended before the request was complete")
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                if size > LONGEST_BODY:
                    raise too_long
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, "TooSlow", f"the request did not arrive within {PATIENCE:g} seconds") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives a body that was read before, and then what follows."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def answer_refused(refused: Refused, path: str) -> Response:
    """Return the answer to a request that goes no further."""
    refusal = refused.refusal
    kind: Any = JSONResponse if is_api(path) else PlainTextResponse
    content = refusal.as_json() if kind is JSONResponse else refusal.message
    found: Response = kind(content, status_code=refusal.status, headers=dict(refusal.headers))
    return found
