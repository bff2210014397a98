"""Connections of strangers, with and without TLS: they end, and others get through."""

import queue
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

import pytest
from serve_helpers import TOKEN

from hardthresh.study.serve import connections, run
from hardthresh.study.serve.security import HEADERS
from levels import only_at
from patience import PATIENCE

both = pytest.mark.parametrize("tls", [True, False])


@pytest.fixture
def serve(path, certificate, monkeypatch):
    """Serves the study in a thread, with this time limit and number of connections."""
    with ExitStack() as ends:

        def serve(tls, patience=10 * PATIENCE, most=connections.CONNECTIONS):
            started, printed = [], queue.SimpleQueue()

            class Recorded(connections.LimitedServer):
                def __init__(self, config):
                    super().__init__(config)
                    started.append(self)

            monkeypatch.setattr(connections, "PATIENCE", patience)
            monkeypatch.setattr(connections, "CONNECTIONS", most)
            monkeypatch.setattr(connections, "LimitedServer", Recorded)
            settings = {"port": 0, "token": TOKEN, "announce": printed.put, **(certificate if tls else {})}
            thread = threading.Thread(target=run, args=(path,), kwargs=settings)
            thread.start()
            ends.callback(thread.join)
            url = urlsplit(printed.get(timeout=PATIENCE))
            ends.callback(lambda: setattr(started[0], "should_exit", True))
            return Client(url, certificate if tls else None, ends, started[0])

        yield serve


class Client:
    """Opens connections to a server."""

    def __init__(self, url, certificate, ends, server=None):
        self.host, self.server, self._url, self._ends = url.netloc, server, url, ends
        self._context = certificate and ssl.create_default_context(cafile=certificate["certificate"])

    def connect(self, sent=None, source="127.0.0.1"):
        """Return a connection; with nothing to send, it does not even begin the handshake of TLS."""
        address = self._url.hostname, self._url.port
        found = socket.create_connection(address, timeout=PATIENCE, source_address=(source, 0))
        self._ends.callback(found.close)
        if sent is None:
            return found
        if self._context:
            found = self._context.wrap_socket(found, server_hostname="localhost")
            self._ends.callback(found.close)
        found.sendall(sent)
        return found

    def get(self, path="/sign-in", headers=()):
        """Return the bytes of a request, after which the server closes the connection."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.host}", "Connection: close", *headers, "", ""]
        return "\r\n".join(lines).encode()

    def status(self):
        """Return the status of an answer to a new connection."""
        with self.connect(self.get()) as connection:
            return status(connection)


def rest(connection):
    """Return what comes until the server ends the connection."""
    with connection.makefile("rb") as answers:
        return answers.read()


def status(connection):
    """Return the status of the answer on a connection that ends afterwards."""
    return int(rest(connection).split(maxsplit=2)[1])


REFUSED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@both
def test_a_connection_without_a_whole_request_is_closed(serve, tls):
    client = serve(tls, patience=0.1)
    for sent in (None, b"", b"GET /sign-in HTTP/1.1\r\nHost: loc", REFUSED + b"GET"):
        expected = (sent or b"").count(REFUSED)
        assert rest(client.connect(sent)).count(b"HTTP/1.1 421") == expected  # and then the end


SLOW = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nwho"


@both
@pytest.mark.parametrize("sent", [None, b"", b"GET / HTTP/1.1\r\nHost: loc", SLOW])
def test_who_keeps_the_server_waiting_makes_room_for_others(serve, tls, sent):
    client = serve(tls, most=4)
    idle = [client.connect(sent) for _ in range(9)]
    assert client.status() == 200
    assert [rest(one) for one in idle[:5]] == [b""] * 5  # those that waited for longest
    assert len(client.server.server_state.connections) <= 4


def test_who_does_not_read_answers_makes_room_for_others(serve):
    client = serve(tls=False, most=2)
    for _ in range(4):
        unread = client.connect(b"")
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        with suppress(ConnectionError):  # it may be ended already
            unread.sendall(f"GET /static/report.css HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode() * 1000)
    assert client.status() == 200


def test_an_address_takes_connections_from_itself(serve):
    client = serve(tls=False, most=4)
    try:
        other = client.connect(b"GET", source="127.0.0.2")
    except OSError:
        pytest.skip("this system has one address of its own")
    for _ in range(9):
        client.connect()
    assert client.status() == 200
    other.sendall(client.get()[3:])
    assert status(other) == 200


def test_a_connection_that_is_answered_is_not_ended(serve, path):
    client = serve(tls=False, most=1)
    with closing(sqlite3.connect(path, isolation_level=None)) as study:
        study.execute("BEGIN EXCLUSIVE")  # until the end of which the answer takes
        first = client.connect(client.get("/api/status", [f"Authorization: Bearer {TOKEN}"]))
        until(lambda: [one.waits for one in client.server.server_state.connections] == [False])
        assert rest(client.connect()) == b""
    assert status(first) == 200


def until(condition):
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@both
def test_what_is_not_http_has_the_headers_of_all_answers(serve, tls):
    answer = rest(serve(tls).connect(b"\0\r\n\r\n")).decode()
    assert answer.startswith("HTTP/1.1 400 ")
    for name, value in HEADERS.items():
        assert f"{name}: {value}\r\n".lower() in answer.lower()


def test_a_body_that_is_not_http_after_the_answer_only_ends_the_connection(serve, capsys):
    client = serve(tls=False)
    connection = client.connect(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert connection.recv(12) == b"HTTP/1.1 421"
    connection.sendall(b"no length of a chunk\r\n")
    assert b"HTTP/1.1" not in rest(connection)
    assert capsys.readouterr().err == "WARNING:  Invalid HTTP request received.\n"


FEW_FILES = """
import resource, sys
from hardthresh.study.serve import run
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
run(sys.argv[1], port=0, **eval(sys.argv[2]))
"""


@only_at("pairs")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on open files")
@both
def test_a_process_with_few_files_answers_while_a_stranger_opens_many(path, certificate, tls):
    command = [sys.executable, "-c", FEW_FILES, str(path), repr(certificate if tls else {})]
    with ExitStack() as ends:
        server = ends.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        ends.callback(server.terminate)
        client = Client(urlsplit(server.stdout.readline().strip()), certificate if tls else None, ends)
        for _ in range(27):
            for _ in range(10):
                client.connect()
            assert client.status() == 200
        server.terminate()
        assert server.communicate()[1] == ""
