"""Debian's Prometheus, with recorded answers of exporters to scrape; tests skip where it is not at hand."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from max_seconds import MAX_SECONDS

# For what Prometheus scrapes and records each second, however busy the machine is.
_PATIENCE_SECONDS = 300
_FETCHED = Path(__file__).parents[2] / "build/prometheus/usr/bin"


def program(name: str) -> str:
    """Return the path of `prometheus`, `promtool` or `amtool`; skip the test where there is none.

    Args:
        name: The program.
    """
    found = shutil.which(name) or shutil.which(name, path=str(_FETCHED))
    if found is None:
        pytest.skip(reason=f"there is no {name}: `make test-prometheus` fetches Debian's package")
    return found


def run(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one of the programs.

    Args:
        name: The program.
        *arguments: What it is given.
        cwd: Where it runs.
    """
    return subprocess.run(
        [program(name), *arguments], cwd=cwd, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )


@contextmanager
def exporter(recorded: Path) -> Iterator[str]:
    """Serve an exporter's recorded answer, whose counters grow with each request; yield its address.

    Args:
        recorded: The file.
    """
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = _later(recorded.read_text(), next(numbers)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _later(text: str, requests: int) -> str:
    counters = {
        line.split()[2] for line in text.splitlines() if line.startswith("# TYPE") and line.endswith("counter")
    }
    lines = [line.rpartition(" ") for line in text.splitlines()]
    return "".join(
        f"{series} {float(value) + requests * 1000}\n"
        if series.partition("{")[0] in counters
        else f"{series} {value}\n"
        for series, _, value in lines
    )


class Server:
    """A Prometheus of this machine."""

    def __init__(self, address: str) -> None:
        """Take its address.

        Args:
            address: Host and port.
        """
        self.address = address

    def get(self, path: str, **parameters: str) -> Any:
        """Ask its API; None while it does not answer.

        Args:
            path: Below `/api/v1/`.
            **parameters: Of the request.
        """
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return None

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that a query finds.

        Args:
            expression: The query.
        """
        found = self.get("query", query=expression)
        return [] if found is None else list(found["result"])

    def wait_for(self, *expressions: str) -> list[str]:
        """Wait until queries find something; return those that never do.

        Args:
            *expressions: The queries.
        """
        waiting, end = list(expressions), time.monotonic() + _PATIENCE_SECONDS
        while waiting and time.monotonic() < end:
            waiting = [each for each in waiting if not self.query(each)]
            if waiting:
                time.sleep(0.2)
        return waiting


@contextmanager
def prometheus(directory: Path, configuration: Mapping[str, Any], *flags: str) -> Iterator[Server]:
    """Run a Prometheus, and end it.

    Args:
        directory: An empty directory.
        configuration: Its configuration.
        *flags: More flags.
    """
    directory.mkdir()
    (directory / "prometheus.yml").write_text(json.dumps(configuration))
    # Prometheus takes a free port itself: one that is chosen here another process may take meanwhile.
    arguments = ["--config.file=prometheus.yml", "--web.listen-address=127.0.0.1:0", *flags]
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen([program("prometheus"), *arguments], cwd=directory, env=environment, stderr=log) as process,
    ):
        try:
            yield Server(_address(process, directory / "log"))
        finally:
            process.terminate()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    while process.poll() is None:
        if found := re.search(r'msg="Listening on" address=(\S+)', log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(log.read_text())
