"""Access to a served study: the token, and the sessions of browsers."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from math import ceil

from hardthresh.core.errors import InvalidInputError, format_value

from .refusals import Refused

SHORTEST_TOKEN = 16
"""Characters of a token that somebody chose. If they are random hexadecimal digits, 10^5 guesses a second, many
more than one processor core refuses, take 3 million years on average."""
FEWEST_CHARACTERS = 6
"""Different characters of such a token; of 16 random hexadecimal digits, 1 in 30,000 has fewer."""
WRONG_TOKENS, WINDOW = 10, 60.0
"""Wrong tokens of one address after which it is told to wait, and within how many seconds; arbitrary: nobody mistypes
that often. It is a hint to programs: the right token is admitted all the same."""
ADDRESSES = 10_000  # whose wrong tokens are remembered; arbitrary: a megabyte
SESSIONS = 1_000  # that are open at once; arbitrary: more than a ward has browsers
LONGEST_SESSION = 12 * 3600.0  # seconds since it was last used; a shift


@dataclass
class Session:
    """A browser that somebody has signed in with.

    Attributes
    ----------
    who : str
        The name of the person.
    used : float
        When it was used last.
    notice : str
        What the next page says at its top, once.
    saved : int or None
        The question whose values were saved, so that the next page forgets the draft of them.
    """

    who: str
    used: float
    notice: str = ""
    saved: int | None = None


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


def check_token(token: str) -> None:
    """Raise if a token that somebody chose is too short, repeats itself, or cannot be part of a URL and a header."""
    wrong = next(
        (letter for letter in token if not (letter.isascii() and (letter.isalnum() or letter in "-._~"))), None
    )
    if wrong is not None:
        problem = f"may only have the characters A-Z a-z 0-9 - . _ ~, and this one has {format_value(wrong)}"
    elif len(token) < SHORTEST_TOKEN:
        problem = f"needs at least {SHORTEST_TOKEN} characters, and this one has {len(token)}"
    elif len(set(token)) < FEWEST_CHARACTERS:
        problem = f"needs at least {FEWEST_CHARACTERS} different characters, and this one has {len(set(token))}"
    else:
        return
    raise InvalidInputError(f"a token {problem}; leave it out, and a random one is made")


class Access:
    """The token, and the sessions that were opened with it.

    Parameters
    ----------
    token : str
        What has to be known.
    clock : callable
        Returns seconds.
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token.encode()
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._wrong: dict[str, list[float]] = {}
        self._sessions: dict[str, Session] = {}

    def check(self, given: str, address: str) -> None:
        """Raise unless the token is the right one, which is admitted whatever else came from its address.

        Behind a proxy all have one address, so the wrong tokens of somebody else must not lock anybody out. So guesses
        are not slowed down, and only a random token keeps strangers out. Comparing takes equally long wherever the
        tokens differ.
        """
        if hmac.compare_digest(sha256(given.encode("utf-8", "replace")).digest(), sha256(self._token).digest()):
            return
        now = self._clock()
        wrong = [at for at in self._wrong.pop(address, []) if at > now - WINDOW]
        if len(wrong) >= WRONG_TOKENS:
            self._wrong[address] = wrong
            wait = ceil(wrong[-WRONG_TOKENS] + WINDOW - now)
            raise Refused(
                429,
                "TooManyWrongTokens",
                f"{WRONG_TOKENS} wrong tokens came from this address within a minute; wait {wait} seconds",
                {"Retry-After": str(wait)},
            )
        if len(self._wrong) >= ADDRESSES:
            self._wrong.pop(next(iter(self._wrong)))
        self._wrong[address] = [*wrong, now]
        raise Refused(
            401,
            "WrongToken",
            "this is not the token that was printed when the study was served; copy all of it",
            {"WWW-Authenticate": "Bearer"},
        )

    def sign_in(self, who: str) -> str:
        """Return the name of a new session."""
        if len(self._sessions) >= SESSIONS:
            del self._sessions[min(self._sessions, key=lambda name: self._sessions[name].used)]
        name = self.new_name()
        self._sessions[name] = Session(who, self._clock())
        return name

    def sign_out(self, name: str) -> None:
        """End a session."""
        self._sessions.pop(name, None)

    def session(self, name: str) -> Session | None:
        """Return an open session; None if there is none of this name, or it was not used for long."""
        session, now = self._sessions.get(name), self._clock()
        if session is None:
            return None
        if session.used < now - LONGEST_SESSION:
            del self._sessions[name]
            return None
        session.used = now
        return session

    @staticmethod
    def new_name() -> str:
        """Return a random name for a session, or for a browser that has none yet."""
        return secrets.token_urlsafe(24)

    def form_token(self, name: str) -> str:
        """Return what the forms of a session carry, which no other site can know."""
        return hmac.new(self._secret, name.encode(), sha256).hexdigest()

    def check_form_token(self, name: str, given: str) -> None:
        """Raise unless a form was made for this session."""
        if not (name and hmac.compare_digest(self.form_token(name).encode(), given.encode("utf-8", "replace"))):
            raise Refused(
                403, "ForeignForm", "this form does not belong to your session; open the page again, and repeat it"
            )
