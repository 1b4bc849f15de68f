"""A server that every user of the node may ask, and that no user can keep from others."""

from __future__ import annotations

import socketserver
import threading
from typing import Any

_MAX_CONNECTIONS, _MAX_CONNECTIONS_OF_A_USER = 64, 16


class LimitedServer(socketserver.ThreadingMixIn, socketserver.BaseServer):
    """Answers in a thread for each connection, and closes those beyond what one user and all users may have."""

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
        self._users: dict[int, int] = {}
        super().__init__(address, handler)

    def user_of(self, request: Any, client_address: Any) -> int:  # noqa: ANN401 - as inherited
        """Return the user whose connection it is.

        Args:
            request: The connection.
            client_address: The address of its other end.
        """
        raise NotImplementedError

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ANN401 - as inherited
        """Tell whether a connection is answered."""
        user = self.user_of(request, client_address)
        with self._lock:
            have = [*self._users.values()]
            if len(have) >= _MAX_CONNECTIONS or have.count(user) >= _MAX_CONNECTIONS_OF_A_USER:
                return False
            self._users[request.fileno()] = user
        return True

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as inherited
        """End a connection, and make room for another."""
        with self._lock:
            self._users.pop(request.fileno(), None)
        super().shutdown_request(request)
