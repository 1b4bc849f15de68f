"""The node's health for NVIDIA's Resiliency Extension: its service `nvhcd` on a Unix socket.

It is gRPC with one method and no stream, so that of HTTP/2 little is needed, and of the request nothing.

Sources: https://github.com/NVIDIA/nvidia-resiliency-ext/blob/main/docs/source/fault_tolerance/usage_guide.rst,
https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md and https://www.rfc-editor.org/rfc/rfc9113
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .connections import LimitedServer

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_SECONDS = 60
# A health check's request is a few bytes.
_MAX_FRAME = 2**14


def _field(name: str, value: str) -> bytes:
    """Return a header field that is not indexed: https://www.rfc-editor.org/rfc/rfc7541#section-6.2.2."""
    return b"\x00" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


_ANSWER = b"\x88" + _field("content-type", "application/grpc")  # 0x88: `:status: 200`
_TRAILERS = _field("grpc-status", "0")


def serve(path: Path, document: Callable[[], dict[str, object]]) -> None:
    """Answer on a socket that every user may ask, beside the watching.

    Args:
        path: The socket.
        document: What returns the watchdog's state, with `fail_count` and `failed_checks`.
    """

    class Handler(socketserver.StreamRequestHandler):
        timeout = _SECONDS

        def handle(self) -> None:
            with contextlib.suppress(OSError, struct.error):
                _converse(self.rfile.read, self.wfile.write, document)

    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    server = _Server(str(path), Handler)
    path.chmod(0o666)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class _Server(LimitedServer, socketserver.UnixStreamServer):
    def user_of(self, request: Any, client_address: object) -> int:  # noqa: ANN401, ARG002 - as inherited
        # https://man7.org/linux/man-pages/man7/unix.7.html
        size = struct.calcsize("3i")
        return int(struct.unpack("3i", request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def response(document: dict[str, object]) -> bytes:
    """Return a `HealthCheckResponse` in gRPC's framing.

    Args:
        document: The watchdog's state.
    """
    failing = bool(document["fail_count"])
    output = json.dumps({name: document[name] for name in ("fail_count", "failed_checks")}).encode()
    # success = 1, exit_code = 2, output = 3; zeros are left out: https://protobuf.dev/programming-guides/encoding/
    message = (b"\x10\x01" if failing else b"\x08\x01") + b"\x1a" + _varint(len(output)) + output
    return b"\x00" + struct.pack(">I", len(message)) + message


def _converse(
    read: Callable[[int], bytes], write: Callable[[bytes], object], document: Callable[[], dict[str, object]]
) -> None:
    if read(len(_PREFACE)) != _PREFACE:
        return
    write(_frame(_SETTINGS, 0, 0, b""))
    while True:
        head = read(9)
        if len(head) < 9:  # noqa: PLR2004 # a frame's head
            return
        length, kind, flags, stream = (
            int.from_bytes(head[:3], "big"),
            head[3],
            head[4],
            int.from_bytes(head[5:], "big"),
        )
        if length > _MAX_FRAME:
            return
        payload = read(length)
        if kind == _SETTINGS and not flags & _ACK:
            write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            write(_frame(_PING, _ACK, 0, payload))
        elif kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            write(
                _frame(_HEADERS, _END_HEADERS, stream, _ANSWER)
                + _frame(_DATA, 0, stream, response(document()))
                + _frame(_HEADERS, _END_HEADERS | _END_STREAM, stream, _TRAILERS)
            )


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:  # noqa: PLR2004 # seven bits a byte
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
