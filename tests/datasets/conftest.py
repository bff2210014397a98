"""The larger data sets, and a server on this machine in the place of the archives."""

from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest


@pytest.fixture
def mirror(shelf_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local mirror, set as ``HARDTHRESH_DATA``."""
    if not (shelf_folder / "golub_leukemia.npz").is_file():
        pytest.skip("no local mirror of the data sets: HARDTHRESH_DATA names no folder that has them")
    monkeypatch.setenv("HARDTHRESH_DATA", str(shelf_folder))
    return shelf_folder


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty cache of somebody who has no files and has set no address."""
    monkeypatch.delenv("HARDTHRESH_DATA", raising=False)
    monkeypatch.delenv("HARDTHRESH_DATA_URL", raising=False)
    monkeypatch.setenv("HARDTHRESH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; below /truncated the second half of a file is missing, and below /silent no answer comes."""

    def __init__(self, *arguments: object, closing: Event, directory: str) -> None:
        self.closing = closing
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        kind, _, rest = self.path.removeprefix("/").partition("/")
        if kind == "silent":
            self.closing.wait(timeout=60)
        elif kind == "truncated":
            content = Path(self.translate_path("/" + rest)).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
        else:
            super().do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """A function that serves a folder over HTTP until the test ends, and returns the address."""
    closing, running = Event(), []

    def start(folder: Path) -> str:
        http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, closing=closing, directory=str(folder)))
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        running.append((http, thread))
        return f"http://127.0.0.1:{http.server_port}"

    yield start
    closing.set()
    for http, thread in running:
        http.shutdown()
        http.server_close()
        thread.join()
