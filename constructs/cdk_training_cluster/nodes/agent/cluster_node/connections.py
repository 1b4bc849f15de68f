"""A server that every user of the node may ask, and that no user can keep from others."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Any

_MAX_CONNECTIONS, _MAX_CONNECTIONS_OF_A_USER = 64, 16
_UNKNOWN = -1


class LimitedServer(socketserver.ThreadingMixIn, socketserver.BaseServer):
    """Answers in a thread for each connection, and closes those beyond what one user may have.

    One beyond what all users may have closes the oldest: a user may act as many, with the numbers of /etc/subuid.
    """

    daemon_threads = True
    # Clients of all users wait here; the kernel drops those beyond it, which come again after a second.
    request_queue_size = 128

    def __init__(self, address: Any, handler: type[socketserver.BaseRequestHandler]) -> None:  # noqa: ANN401 - as inherited
        """Listen.

        Args:
            address: Where.
            handler: What answers a connection.
        """
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[int, socket.socket]] = {}
        super().__init__(address, handler)

    def user_of(self, request: Any, client_address: Any) -> int:  # noqa: ANN401 - as inherited
        """Return the user whose connection it is; -1: the kernel does not say.

        Args:
            request: The connection.
            client_address: The address of its other end.

        Raises:
            OSError: The kernel cannot be asked.
        """
        raise NotImplementedError

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ANN401 - as inherited
        """Tell whether a connection is answered."""
        try:
            user = self.user_of(request, client_address)
        except OSError:
            # What is raised here ends the thread that accepts connections, and nothing starts it again.
            user = _UNKNOWN
        with self._lock:
            have = [each for each, _ in self._kept.values()]
            if have.count(user) >= _MAX_CONNECTIONS_OF_A_USER:
                return False
            if len(have) >= _MAX_CONNECTIONS:
                _, oldest = self._kept.pop(next(iter(self._kept)))
                with contextlib.suppress(OSError):
                    # Its thread reads the end, and closes it.
                    oldest.shutdown(socket.SHUT_RDWR)
            self._kept[request.fileno()] = user, request
        return True

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as inherited
        """End a connection, and make room for another."""
        with self._lock:
            self._kept.pop(request.fileno(), None)
        super().shutdown_request(request)
