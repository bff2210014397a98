"""Serving a study on this machine or, by TLS, on a network."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from hardthresh.core.errors import InvalidInputError
from hardthresh.report.optional import import_optional

from .access import Access, check_token, new_token
from .study_thread import StudyThread

_WAITING = 128  # connections that the system keeps until they are accepted; the usual number
_GOODBYE = 5  # seconds for requests that have begun when the server is stopped; they take milliseconds


_PRINT = partial(print, flush=True)


@dataclass(frozen=True)
class Endpoint:
    """Where a study is served.

    Attributes
    ----------
    host : str
        The name or address to listen at.
    port : int
        The port; 0 for any that is free.
    certificate, key : path or None
        Files of a certificate and its key (PEM), for TLS.
    names : sequence of str
        Further names of this machine that browsers may use.
    allow_plain : bool
        Whether it may be served to a network without TLS, as behind a proxy that has it.
    """

    host: str = "127.0.0.1"
    port: int = 8123
    certificate: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    names: Sequence[str] = ()
    allow_plain: bool = False

    def check(self) -> None:
        """Raise InvalidInputError if a study must not, or cannot, be served there."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidInputError("TLS needs both a certificate and its key; give both files, or none")
        for path in (self.certificate, self.key):
            if path is not None and not Path(path).is_file():
                raise InvalidInputError(f"there is no file {path} for TLS")
        if self.certificate is not None and self.key is not None:
            _check_certificate(self.certificate, self.key)
        if not 0 <= self.port <= 65535:
            raise InvalidInputError(f"a port is a number from 0 to 65535; got {self.port}")
        if not (self.is_local or self.secure or self.allow_plain):
            raise InvalidInputError(
                f"{self.host} can be reached from the network, and without TLS everybody there can read the token and "
                "the values; give a certificate and its key, or serve at 127.0.0.1 and use a tunnel (ssh -L)"
            )

    @property
    def secure(self) -> bool:
        """Whether it is served by TLS."""
        return self.certificate is not None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @property
    def is_every_address(self) -> bool:
        """Whether it listens at all addresses of this machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def hosts(self) -> set[str]:
        """Return the names by which browsers may reach it."""
        local = {"127.0.0.1", "localhost", "::1"} if self.is_local or self.is_every_address else set()
        own = {socket.gethostname(), socket.getfqdn()} if self.is_every_address else {self.host}
        return {name.lower().rstrip(".") for name in (*local, *own, *self.names)}

    def url(self, port: int) -> str:
        """Return the address to open."""
        name = next(iter(self.names), socket.getfqdn() if self.is_every_address else self.host)
        return f"http{'s' if self.secure else ''}://{f'[{name}]' if ':' in name else name}:{port}/"


def run(
    path: str | PathLike[str],
    host: str = "127.0.0.1",
    port: int = 8123,
    certificate: str | PathLike[str] | None = None,
    key: str | PathLike[str] | None = None,
    token: str | None = None,
    *,
    names: Sequence[str] = (),
    allow_plain: bool = False,
    announce: Callable[[str], object] = _PRINT,
) -> None:
    """Serve a study as a page and an API, until it is interrupted.

    Parameters
    ----------
    path : path
        The file of the study.
    host : str
        The name or address to listen at; by default only this machine can reach it.
    port : int
        The port, 0 to 65535; 0 is any that is free.
    certificate, key : path, optional
        Files of a certificate and its key (PEM), for TLS.
    token : str, optional
        What has to be known to use it: at least 16 letters, digits and ``-._~``, and 6 different ones. It has to be
        random, since guesses are not slowed down. Default: a random one of 256 bits.
    names : sequence of str
        Further names of this machine that browsers may use.
    allow_plain : bool
        Whether it may be served to a network without TLS, as behind a proxy that has it.
    announce : callable
        Is given the address with the token, once requests are answered.

    Raises
    ------
    InvalidInputError
        If there is no study in the file, the port is taken, the token is easily guessed, or the address can be reached
        from a network and there is no TLS.
    MissingDependencyError
        If what the extra "serve" installs is not there.
    """
    for package in ("jinja2", "starlette", "uvicorn"):
        import_optional(package, "serving a study needs", extra="serve")
    import uvicorn

    from .app import application
    from .connections import LimitedServer
    from .security import LONGEST_HEADERS

    endpoint = Endpoint(host, port, certificate, key, tuple(names), allow_plain)
    endpoint.check()
    if token is not None:
        check_token(token)
    secret = token or new_token()
    with StudyThread(path) as thread, _listening(endpoint) as listener:
        app = application(
            thread, Access(secret), endpoint.hosts(), any_address=endpoint.is_every_address, secure=endpoint.secure
        )
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # it would write the token
            server_header=False,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            h11_max_incomplete_event_size=LONGEST_HEADERS,
            timeout_graceful_shutdown=_GOODBYE,
            proxy_headers=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        announce(f"{endpoint.url(listener.getsockname()[1])}?token={secret}")
        LimitedServer(config).run(sockets=[listener])


def _check_certificate(certificate: str | PathLike[str], key: str | PathLike[str]) -> None:
    """Raise InvalidInputError if a certificate cannot be used with a key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:  # such as ssl.SSLError
        if getattr(error, "reason", None) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"):
            problem = f"the key {key} belongs to another certificate than {certificate}"
        else:
            problem = f"{certificate} is no certificate, or {key} is no key without a passphrase"
        raise InvalidInputError(
            f"TLS cannot be used: {problem} ({error}); give PEM files, the certificate first, and the key as "
            "`openssl pkey -in KEY -out PLAIN` writes it"
        ) from error


def _listening(endpoint: Endpoint) -> socket.socket:
    """Return a socket that is bound to an endpoint.

    Its protocol is given by number, or asyncio would not switch off the delay of small packets (Nagle's algorithm) on
    its connections, which is 40 milliseconds for each request.
    """
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # elsewhere it would let two programs have one port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_WAITING)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InvalidInputError(
            f"cannot listen at {endpoint.host}, port {endpoint.port}: {error.strerror or error}; choose another port "
            "or host"
        ) from error
    return listener
