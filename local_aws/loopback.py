"""The server never leaves this machine: a connection or a look-up of another host is refused where it starts.

moto would deliver, say, an SNS notification to an HTTPS subscriber. An audit hook sees every socket of the
process, whichever library opens it: https://docs.python.org/3/library/audit_events.html
"""

import ipaddress
from typing import Any

_NAMES = frozenset({"localhost", "ip6-localhost", ""})


class OffLimitsError(OSError):
    """The process tried to reach another machine."""


def only_loopback(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse sockets and look-ups that are not local; give it to `sys.addaudithook`."""
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = arguments[0]
    else:
        return
    if host is not None and not _is_local(host.decode() if isinstance(host, bytes) else str(host)):
        raise OffLimitsError(f"the local AWS never leaves this machine, and {host} is not on it")


def _is_local(host: str) -> bool:
    if host in _NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
