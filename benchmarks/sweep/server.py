"""The server process of the sweep: the few services that it calls, on localhost, with a delay as AWS has one.

moto itself cannot hold 10,000 instances of 33 interfaces: it takes five minutes to launch them, and three seconds to
write a page of 200. So the answers have the shape of EC2's and of the local AWS's, written by moto's own serializers
from botocore's models, but come ready made: pages are stamped out of one instance, series out of three.

An answer begins 40 ms after its request has arrived, or when it is written, if that takes longer. Writing a page of
200 instances takes about 25 ms of them. What is asked for under `/bench/` comes from the benchmark itself:

    POST /bench/fleet       {"size"}: puts a new fleet of so many instances in the account and forgets the old one
    GET /bench/account      {"requests": {operation: number}, "stopped", "warned", "slow"}: what was done to it;
                            `slow` is how many answers took longer to write than the delay
"""

import json
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from benchmarks.sweep.cloud import Answer, Cloud
from benchmarks.sweep.fleet import Fleet

DELAY_SECONDS = 0.04

# The one operation whose request is neither a form nor has a target.
_INVOKE = "Invoke"


class Server(ThreadingHTTPServer):
    """Serves one account on a free port of localhost.

    Args:
        delay: After how many seconds an answer begins.
    """

    daemon_threads = True

    def __init__(self, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay = delay
        self.slow = 0
        self.put_fleet(0)

    def put_fleet(self, size: int) -> None:
        """Put a new fleet in the account.

        Args:
            size: How many instances it has.
        """
        self.slow = 0
        self.cloud = Cloud(Fleet(size=size, now=datetime.now(UTC)))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        cloud = self.server.cloud
        account = {
            "requests": dict(sorted(cloud.requests.items())),
            "stopped": len(cloud.stopped),
            "warned": cloud.warned,
            "slow": self.server.slow,
        }
        self._send(Answer(body=json.dumps(account).encode(), content_type="application/json"))

    def do_POST(self) -> None:
        arrived = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/bench/fleet":
            self.server.put_fleet(json.loads(body)["size"])
            self._send(Answer(body=b"{}", content_type="application/json"))
            return
        answer = self._answer(body)
        left = arrived + self.server.delay - time.monotonic()
        if left < 0:
            self.server.slow += 1
        time.sleep(max(left, 0))
        self._send(answer)

    def _answer(self, body: bytes) -> Answer:
        # Authorization: AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, …
        service = self.headers["Authorization"].partition("Credential=")[2].split("/")[3]
        is_form = self.headers.get_content_type() == "application/x-www-form-urlencoded"
        form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
        operation = form.get("Action") or self.headers.get("X-Amz-Target", _INVOKE).rpartition(".")[2]
        try:
            return self.server.cloud.answer(service, operation, body, form)
        except Exception as error:  # the client gets the error: a closed connection would be tried again
            text = f"the sweep's server failed at {operation} of {service}: {type(error).__name__}: {error}"
            return Answer(body=text.encode(), content_type="text/plain", status=HTTPStatus.BAD_REQUEST)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _end_with_parent() -> None:
    """End this process when the one that started it closes our standard input."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve on a free port of localhost and announce it as one line of JSON on standard output."""
    server = Server(DELAY_SECONDS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
