"""Connections that send nothing are closed, and one address has only some of them: others must get through."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 128  # at once; arbitrary: more than a ward has browsers and instruments
OF_ONE_ADDRESS = CONNECTIONS // 2  # except this machine, where a proxy or a tunnel has those of all
PATIENCE = 10.0  # seconds for the headers of a request; arbitrary: they are one or two packets


class Connection(H11Protocol):
    """A connection of uvicorn with a time limit for the first request and for headers, which uvicorn lacks."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close a connection of an address that has too many, and one that sends no request."""
        super().connection_made(transport)
        address = _address(self)
        same = sum(_address(other) == address for other in self.connections)
        if same > OF_ONE_ADDRESS and not _is_this_machine(address):
            transport.close()
        else:
            self._expect_request()

    def on_response_complete(self) -> None:
        """Close the connection also if the next request does not arrive whole."""
        super().on_response_complete()
        self._expect_request()

    def _expect_request(self) -> None:
        self.loop.call_later(PATIENCE, self._close_without_request, self.cycle)

    def _close_without_request(self, last: Any) -> None:
        """Close the connection if its last request is still the same, and was answered."""
        if self.cycle is last and (last is None or last.response_complete):
            self.transport.close()


def _address(connection: Any) -> str:
    return connection.client[0] if connection.client else ""


def _is_this_machine(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
