"""The connections of the server: how many there are, and how long each may keep the server waiting."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from .security import HEADERS

CONNECTIONS = 128  # at once; arbitrary: more than a ward has browsers and instruments
PATIENCE = 10.0  # seconds for the handshake and the headers of a request; arbitrary: they are a few packets
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # no more files or buffers can be had
_PAUSE = 0.1  # seconds before the next is accepted if the system has no more files; arbitrary: a page still loads

_LOGGER = logging.getLogger("uvicorn.error")


class Connection(H11Protocol):
    """A connection of uvicorn with a time limit for the handshake of TLS and for headers, which uvicorn lacks.

    Parameters
    ----------
    accepted : socket
        What was accepted.
    address : str
        Where it comes from.
    server : LimitedServer
        The server, whose `server_state` it belongs to.

    Attributes
    ----------
    since : float
        When it was accepted, or when its last request was answered, in the time of the loop.
    """

    def __init__(self, accepted: socket.socket, address: str, server: Server) -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self._accepted = accepted
        self.address = address
        self.since = self.loop.time()
        self.connections.add(self)  # uvicorn adds it only after the handshake
        self._expect_request()

    @property
    def is_open(self) -> bool:
        """Whether the handshake is over, and it was handed to uvicorn."""
        return self.transport is not None

    @property
    def waits(self) -> bool:
        """Whether it waits for its client: for the handshake, a whole request, or until an answer was read."""
        if not self.is_open or self.cycle is None:
            return True
        return self.flow.write_paused or self.cycle.more_body or self.cycle.response_complete

    def end(self) -> None:
        """Close it at once, in whatever state it is."""
        self.connections.discard(self)
        if self.is_open:
            self.transport.abort()
        else:
            with suppress(OSError):  # it is closed already
                self._accepted.shutdown(socket.SHUT_RDWR)

    def on_response_complete(self) -> None:
        """Close the connection also if the next request does not arrive whole."""
        self.since = self.loop.time()
        super().on_response_complete()
        self._expect_request()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with the headers of all answers; within an answer, only close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = {**HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
            answer = h11.Response(status_code=400, reason=b"Bad Request", headers=[*headers.items()])
            for event in (answer, h11.Data(data=msg.encode()), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_request(self) -> None:
        self.loop.call_later(PATIENCE, self._close_without_request, self.cycle)

    def _close_without_request(self, last: Any) -> None:
        """Close the connection if its last request is still the same, and was answered."""
        if last is None:
            if not self.cycle:
                self.end()
        elif self.cycle is last and last.response_complete:
            self.transport.close()  # after the answer was read


class LimitedServer(Server):
    """A server of uvicorn that limits its connections as soon as they are accepted.

    If there are `CONNECTIONS`, a new one takes the place of one that waits for its client: of the address that has
    most connections, the one that has waited for longest. So an address that opens many loses its own, and
    people behind one proxy can have all as long as nobody else needs them. Uvicorn accepts as many as the system can
    hold, and sees a connection only after the handshake of TLS.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets=[])
        for listener in sockets or ():
            listener.setblocking(False)
            self._start(self._accept_all(listener))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end those that are open once they are answered."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in [*self.server_state.connections]:
            if isinstance(connection, Connection) and not connection.is_open:  # it was accepted a moment ago
                connection.end()
        await super().shutdown(sockets)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept_all(self, listener: socket.socket) -> None:
        try:
            while True:
                await self._accept(listener)
                await asyncio.sleep(0)  # however many wait to be accepted, others are answered meanwhile
        finally:
            self.should_exit = True  # after an unforeseen error, it would run on and accept nothing

    async def _accept(self, listener: socket.socket) -> None:
        """Accept the next connection, or refuse it if there are too many, none of which waits for its client."""
        try:
            accepted, address = await asyncio.get_running_loop().sock_accept(listener)
        except OSError as error:
            _LOGGER.warning("cannot accept a connection: %s", error)
            if error.errno in _EXHAUSTED:
                self._make_room()
            await asyncio.sleep(_PAUSE)
            return
        if len(self.server_state.connections) < CONNECTIONS or self._make_room():
            self._start(self._open(Connection(accepted, address[0], self), accepted))
        else:
            accepted.close()

    def _make_room(self) -> bool:
        """End a connection that waits for its client; return whether there was one."""
        connections = [connection for connection in self.server_state.connections if isinstance(connection, Connection)]
        count = Counter(connection.address for connection in connections)
        waiting = [connection for connection in connections if connection.waits]
        for connection in sorted(waiting, key=lambda one: (-count[one.address], one.since))[:1]:
            connection.end()
        return bool(waiting)

    async def _open(self, connection: Connection, accepted: socket.socket) -> None:
        """Hand a connection to uvicorn, after the handshake if there is TLS."""
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):  # the handshake failed, or took too long
                await loop.connect_accepted_socket(lambda: connection, accepted, ssl=self.config.ssl)
        finally:
            if not connection.is_open:
                self.server_state.connections.discard(connection)
