"""What all pages share: templates, sessions, forms and answers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from hardthresh.core.errors import plural
from hardthresh.core.numbers import number, percent, signed

from ..outcomes import Record, Records
from ..reading import LONGEST_NAME
from .access import Access, Session
from .bodies import LARGEST_NUMBER, form_of
from .fields import NOT_MEASURED, Form
from .refusals import Refusal, Refused
from .study_thread import StudyThread

_OURS = re.compile(r"/[a-z0-9/-]*")


class SignInFirst(Exception):
    """Raised where a page needs a person who has signed in."""


@dataclass
class Site:
    """The pages of a study, without their routes.

    Attributes
    ----------
    thread : StudyThread
        The study.
    access : Access
        Who may use it.
    secure : bool
        Whether it is served by TLS, so that cookies need it.
    """

    thread: StudyThread
    access: Access
    secure: bool

    def __post_init__(self) -> None:
        self._records = Records(self.thread.terms)
        self.environment = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            loader=PackageLoader(__package__),
        )
        self.environment.filters |= {
            "number": number,
            "signed": signed,
            "percent": percent,
            "time": _time,
        }
        self.environment.globals |= {
            "terms": self.thread.terms,
            "plural": plural,
            "LONGEST_NAME": LONGEST_NAME,
            "NOT_MEASURED": NOT_MEASURED,
            "study_id": sha256(self.thread.identity.encode()).hexdigest()[:12],
        }
        self.cookie = f"hardthresh-{self.environment.globals['study_id']}"  # browsers send cookies to every port

    async def records(self) -> Mapping[int, Record]:
        """Return what became of each question that was asked, by number."""
        return await self.thread(lambda study: self._records.after(study.events(after=self._records.event)))

    def name_of(self, request: Request) -> str:
        """Return the name of the browser's session, which may not be open."""
        return str(request.cookies.get(self.cookie, ""))

    def session(self, request: Request) -> Session:
        """Return the session of the person who asks."""
        session = self.access.session(self.name_of(request))
        if session is None or not session.who:
            raise SignInFirst
        return session

    async def form(self, request: Request) -> dict[str, list[str]]:
        """Return a form that was made for this session."""
        form = await form_of(request)
        self.access.check_form_token(self.name_of(request), form.get("form_token", [""])[0])
        return form

    def page(self, request: Request, template: str, status: int = 200, /, **context: Any) -> Response:
        """Return a page; it does not name the study to those who have not shown the token."""
        name = self.name_of(request) or self.access.new_name()
        session = self.access.session(name)
        notice, saved = (session.notice, session.saved) if session else ("", None)
        if session:
            session.notice, session.saved = "", None
        text = self.environment.get_template(template).render(
            title=(self.thread.terms.title if session else "") or "Study",
            who=session.who if session else "",
            notice=notice,
            saved=saved,
            path=request.url.path,
            form_token=self.access.form_token(name),
            key=secrets.token_hex(16),
            **context,
        )
        answer = HTMLResponse(text, status)
        if name != self.name_of(request):
            self.remember(request, answer, name)
        return answer

    def remember(self, request: Request, answer: Response, name: str) -> None:
        """Give the browser the name of its session.

        A proxy says by the header X-Forwarded-Proto that it has TLS. From anybody else the header only has the effect
        that their own browser keeps the cookie to TLS.
        """
        secure = self.secure or request.headers.get("x-forwarded-proto", "").lower() == "https"
        answer.set_cookie(self.cookie, name, httponly=True, samesite="strict", secure=secure)

    def refused(self, request: Request, refusal: Refusal) -> Response:
        """Return the page that says why a request was refused."""
        answer = self.page(request, "refused.html", refusal.status, message=refusal.message, error=refusal.error)
        answer.headers.update(refusal.headers)
        return answer


async def request_about(site: Site, request: Request) -> tuple[str, int, Form, str]:
    """Return the person, the question, the form and the reason of a request about a question."""
    session, number, form = site.session(request), number_of(request), await site.form(request)
    return session.who, number, form, first(form, "reason").strip()


def first(form: Form, name: str) -> str:
    """Return the first value of a field, or nothing."""
    return form.get(name, [""])[0]


def number_of(request: Request) -> int:
    """Return the number of the question in the path."""
    text = str(request.path_params["number"])
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= LARGEST_NUMBER):
        raise Refused(404, "NoSuchQuestion", f"there is no question {text[:40]!r}")
    return int(text)


def _time(at: str) -> Markup:
    """Return a time, which the script of the pages shows as that of the reader's place."""
    return Markup('<time datetime="{}">{} {} UTC</time>').format(at, at[:10], at[11:16])


def to(path: str, **query: str) -> Response:
    """Return what sends a browser to another page of ours."""
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


def our_path(given: str) -> str:
    """Return a path if it is one of our pages, else that of the start page."""
    return given if _OURS.fullmatch(given) and not given.startswith("//") else "/"


def static(name: str) -> str:
    """Return the text of a file that pages load."""
    return resources.files(__package__).joinpath("static", name).read_text("utf-8")
