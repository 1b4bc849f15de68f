"""The instance metadata service of a node, as its second version answers: with tokens that expire."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeMetadataService:
    """What the service says, and what it was asked.

    Attributes:
        forgets: Whether each token is good for one question only.
    """

    def __init__(self) -> None:
        self.documents: dict[str, str] = {"instance-life-cycle": "on-demand"}
        self.token = 0
        self.tokens_given = 0
        self.failing = False
        self.forgets = False
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                service.tokens_given += 1
                self._answer(200, f"token-{service.token}")

            def do_GET(self) -> None:
                path = self.path.removeprefix("/latest/meta-data/")
                service.asked.append(path)
                if service.failing:
                    self._answer(503, "")
                elif self.headers.get("X-aws-ec2-metadata-token") != f"token-{service.token}":
                    self._answer(401, "")
                else:
                    service.token += service.forgets
                    found = service.documents.get(path)
                    self._answer(404 if found is None else 200, found or "")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def expire_tokens(self) -> None:
        """Refuse the tokens that were given."""
        self.token += 1

    @contextmanager
    def running(self) -> Iterator["FakeMetadataService"]:
        """Answer until the end."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
