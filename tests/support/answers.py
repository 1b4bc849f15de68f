"""A server that takes the answers of custom resources' functions, where CloudFormation has S3."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import cast


class Answers(HTTPServer):
    """Stands where CloudFormation's signed address points.

    Attributes:
        taken: The answers, with their content types.
        refusals: How many answers it refuses first.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.taken: list[tuple[str | None, dict[str, str]]] = []
        self.refusals = 0

    @property
    def address(self) -> str:
        """The address, as it is in a request."""
        return f"http://127.0.0.1:{self.server_port}/?signature=1"


class _Answer(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        server = cast("Answers", self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.refusals -= 1
        if server.refusals < 0:
            server.taken.append((self.headers["Content-Type"], json.loads(body)))
        self.send_response(503 if server.refusals >= 0 else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def answering() -> Iterator[Answers]:
    """Take answers while the context lasts."""
    with Answers() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
