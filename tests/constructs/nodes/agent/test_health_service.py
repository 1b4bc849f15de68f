"""How much of the watchdog the users of a node can take: its socket is open to all of them."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import connections, health_service
from max_seconds import MAX_SECONDS

# A preface and settings, and headers that end the stream 1.
_ASKS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + bytes([0, 0, 0, 1, 5, 0, 0, 0, 1])

Connect = Callable[[], socket.socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to the service, whose socket's address stays below the 108 bytes that it may have."""
    opened: list[socket.socket] = []

    def opens() -> socket.socket:
        one = socket.socket(socket.AF_UNIX)
        opened.append(one)
        one.settimeout(MAX_SECONDS)
        one.connect(str(path))
        return one

    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        path = Path(directory, "nvhcd.sock")
        health_service.serve(path, lambda: {"fail_count": 0, "failed_checks": []})
        yield opens
        for one in opened:
            one.close()


def _answer(connection: socket.socket) -> bytes:
    """Return what the service answers; nothing where it closes the connection."""
    said = b""
    try:
        connection.sendall(_ASKS)
        while b"grpc-status" not in said and (more := connection.recv(4096)):
            said += more
    except (BrokenPipeError, ConnectionResetError):
        return b""
    return said


def test_idle_connections_take_a_few_threads_and_others_are_closed(
    monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS_OF_A_USER", 3)
    before = threading.active_count()
    kept = [connect() for _ in range(3)]
    assert all(b'"fail_count": 0' in _answer(one) for one in kept)
    assert [_answer(connect()) for _ in range(20)] == [b""] * 20
    assert threading.active_count() <= before + 3
    # One that ends makes room; the service learns of that in a thread of its own.
    kept.pop().close()
    for _ in range(1000):
        if _answer(connect()):
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("no connection is answered after one has ended")


def test_idle_connections_of_many_users_make_room(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    """One user has the numbers of many, where /etc/subuid gives them."""
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS", 3)
    oldest, *others = [connect() for _ in range(4)]
    assert all(b'"fail_count": 0' in _answer(one) for one in reversed(others))
    assert not _answer(oldest)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to connect as other users")
@pytest.mark.parametrize("takers", [[1], range(1, 20)], ids=["one user", "a user who acts as many"])
def test_no_user_keeps_the_service_from_another(
    monkeypatch: pytest.MonkeyPatch, connect: Connect, takers: Sequence[int]
) -> None:
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS_OF_A_USER", 2)
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS", 8)

    def connect_as(user: int) -> socket.socket:
        os.seteuid(user)
        try:
            return connect()
        finally:
            os.seteuid(0)

    taken = [connect_as(user) for user in takers for _ in range(3)]
    assert _answer(connect_as(50))
    assert _answer(connect())
    assert sum(bool(_answer(one)) for one in taken) <= 8
