"""`cluster-node credentials`: gives every user of the node the credentials of the jobs' role.

Root alone reaches the instance metadata service, and with it the credentials of the nodes' role. AWS's SDKs ask the
address in `AWS_CONTAINER_CREDENTIALS_FULL_URI` first.

Sources: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html and
https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
"""

from __future__ import annotations

import argparse
import errno
import http.server
import json
import socket
import struct
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from datetime import datetime, timezone
from http import HTTPStatus
from pathlib import Path
from typing import Any

from .connections import LimitedServer
from .metadata import Metadata
from .node_facts import instance_id, settings
from .programs import Answer, ask

_STS_SECONDS = 30
_CONNECTION_SECONDS = 5
# The longest session of a role that is taken with the credentials of another role.
_SESSION_SECONDS = 3600
_PAUSE_SECONDS = 5
_MOST_SECONDS_BETWEEN_ATTEMPTS = 60
# https://man7.org/linux/man-pages/man7/sock_diag.7.html
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ALL_STATES, _NO_COOKIE = 4, 20, 1, 0xFFFFFFFF, b"\xff" * 8
_SOCKETS = Path("/proc/net")


class JobCredentials:
    """The credentials of the jobs' role. They are renewed after half of their time, and never given after its end."""

    def __init__(self, assume_role: Callable[[], Answer], *, clock: Callable[[], float] = time.time) -> None:
        """Hold none yet.

        Args:
            assume_role: What asks STS, and returns its answer as JSON.
            clock: The time of day, since the credentials' end is one. Default: - the machine's.
        """
        self._assume_role, self._clock = assume_role, clock
        self._held: dict[str, str] = {}
        self._expires, self._renew_at = 0.0, 0.0
        self._pause, self._trouble = _PAUSE_SECONDS, "AWS STS was not asked yet"

    def turn(self) -> None:
        """Renew the credentials if it is time; after a failure try again soon."""
        if self._clock() < self._renew_at:
            return
        answer = self._assume_role()
        now = self._clock()
        trouble = answer.trouble or self._take(answer.text)
        if not trouble:
            self._pause = _PAUSE_SECONDS
            self._renew_at = now + max(_PAUSE_SECONDS, (self._expires - now) / 2)
            return
        self._trouble = trouble
        self._renew_at, self._pause = now + self._pause, min(self._pause * 2, _MOST_SECONDS_BETWEEN_ATTEMPTS)
        sys.stderr.write(f"cluster-node credentials: the jobs' role was not assumed: {trouble}\n")

    def answer(self) -> tuple[HTTPStatus, dict[str, str]]:
        """Return what an SDK gets: credentials that are valid, or the reason why there are none."""
        if self._clock() < self._expires:
            return HTTPStatus.OK, self._held
        message = f"this node has no credentials of the jobs' role, and asks AWS STS again: {self._trouble}"
        return HTTPStatus.SERVICE_UNAVAILABLE, {"code": "NoCredentials", "message": message}

    def _take(self, answer: str) -> str:
        """Hold what STS gave, and return what is wrong with it: in words of our own, since it may hold a secret."""
        try:
            given = json.loads(answer)
            end = datetime.fromisoformat(given["Expiration"].replace("Z", "+00:00"))
            # The second version of the AWS CLI writes an offset, which not every SDK reads.
            text = f"{end.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            keys = {"AccessKeyId": given["AccessKeyId"], "SecretAccessKey": given["SecretAccessKey"]}
            self._held, self._expires = {**keys, "Token": given["SessionToken"], "Expiration": text}, end.timestamp()
        except (ValueError, KeyError, TypeError, AttributeError):
            return "the answer of AWS STS holds no credentials"
        return ""


class _Server(LimitedServer, http.server.HTTPServer):
    def user_of(self, request: Any, client_address: Any) -> int:  # noqa: ANN401, ARG002 - as inherited
        """Return the user whose socket has the other end; -1: the kernel does not say."""
        try:
            return _asked_user(client_address, self.server_address)
        except OSError:
            # A kernel without the module for it.
            return _listed_user(client_address, self.server_address)


def _asked_user(client: tuple[str, int], server: Any) -> int:  # noqa: ANN401 - an address of socketserver
    """Ask the kernel for one socket: to read the list of all takes seconds if a user has opened 100,000.

    Raises:
        OSError: The kernel answers no such question.
    """
    ports = struct.pack("!HH", client[1], server[1])
    ends = b"".join(socket.inet_aton(address).ljust(16, b"\0") for address in (client[0], server[0]))
    wanted = struct.pack("=4BI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + ports + ends + bytes(4)
    wanted += _NO_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(struct.pack("=IHHII", 16 + len(wanted), _BY_FAMILY, _REQUEST, 0, 0) + wanted)
        answer = kernel.recv(8192)
    if struct.unpack_from("=H", answer, 4)[0] != _BY_FAMILY:
        error = -struct.unpack_from("=i", answer, 16)[0]
        if error == errno.ENOENT:
            return -1
        raise OSError(error, "the kernel does not say whose a socket is")
    # A socket that listens at the client's port has no other end.
    return int(struct.unpack_from("=I", answer, 80)[0]) if answer[20:24] == ports else -1


def _listed_user(client: tuple[str, int], server: Any) -> int:  # noqa: ANN401 - an address of socketserver
    """Look for a socket in the list of all: https://docs.kernel.org/networking/proc_net_tcp.html."""
    ends = [_in_proc(*address) for address in (client, server)]
    # A client with a socket of IPv6 reaches an address of IPv4, too.
    for name, before in (("tcp", ""), ("tcp6", _in_words(bytes(10) + b"\xff\xff"))):
        wanted = [before + end for end in ends]
        for line in (_SOCKETS / name).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[1:3] == wanted:
                return int(fields[7])
    return -1


def _in_words(address: bytes) -> str:
    """Return the bytes of an address as the kernel prints them, in words of the machine's own order."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(address) // 4}I", address))


def _in_proc(host: str, port: int) -> str:
    return f"{_in_words(socket.inet_aton(host))}:{port:04X}"


def serve(url: str, credentials: JobCredentials) -> str:
    """Answer at an address, beside this thread; return the address, with the port that it got.

    A web page or a proxy that is led to the address by another name gets nothing.

    Args:
        url: The address, on this machine. Port 0: any.
        credentials: The credentials.
    """
    asked = urllib.parse.urlsplit(url)

    def is_for(host: str | None) -> bool:
        # The Common Runtime of Mountpoint and s3torchconnector leaves the port out.
        return host in {asked.hostname, f"{asked.hostname}:{server.server_port}"}

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = _CONNECTION_SECONDS

        def do_GET(self) -> None:
            if self.path != asked.path or not is_for(self.headers.get("Host")) or "X-Forwarded-For" in self.headers:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            status, document = credentials.answer()
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server((asked.hostname, asked.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{asked.hostname}:{server.server_port}{asked.path}"


def main(arguments: list[str]) -> int:
    """Serve credentials until the service is stopped."""
    parser = argparse.ArgumentParser(
        prog="cluster-node credentials",
        description="Give every user of this node the credentials of the jobs' role, as its service does.",
    )
    parser.add_argument("--role", required=True, metavar="ARN", help="the jobs' role")
    parser.add_argument("--url", required=True, help="where AWS's SDKs ask, such as http://127.0.0.1:301/job-role")
    given = parser.parse_args(arguments)
    credentials = JobCredentials(lambda: _assume(given.role))
    serve(given.url, credentials)
    while True:
        credentials.turn()
        time.sleep(_PAUSE_SECONDS)


def _assume(role: str) -> Answer:
    try:
        name = instance_id() or Metadata().get("instance-id") or "node"
    except OSError as error:
        return Answer(None, "", str(error))
    command = ("--role-arn", role, "--role-session-name", name, "--duration-seconds", str(_SESSION_SECONDS))
    aws = ("aws", "--region", settings().get("REGION", ""), "--output", "json", "--query", "Credentials")
    # The first version of the AWS CLI asks the endpoint of us-east-1 otherwise.
    return ask((*aws, "sts", "assume-role", *command), _STS_SECONDS, {"AWS_STS_REGIONAL_ENDPOINTS": "regional"})
