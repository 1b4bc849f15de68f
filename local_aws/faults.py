"""Faults on order: the next requests of an operation are refused, or lost on their way.

A refusal comes from in front of the service, in the words of its own protocol, and the operation changes nothing.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from wsgiref.types import WSGIEnvironment

from local_aws.calls import Call


@dataclass(kw_only=True)
class Fault:
    """What befalls the requests of an operation.

    Attributes:
        operation: The operation's name.
        service: The service's name in boto3, where two have an operation of this name; None is any.
        match: Text that the path or the decoded body of the request has; None is any request.
        after: How many such requests pass first.
        times: How many it befalls then; None is all of them.
        code: The code of the error that is the answer; None if there is none.
        message: The error's message.
        status: The HTTP status; None is what the service's model says.
        lost: "request" or "answer" if the connection is closed without one, before or after the operation is done.
    """

    operation: str
    service: str | None = None
    match: str | None = None
    after: int = 0
    times: int | None = 1
    code: str | None = None
    message: str = ""
    status: int | None = None
    lost: str | None = None
    struck: int = 0

    def befalls(self, call: Call) -> bool:
        """Tell whether a call is one of those, and count it."""
        if call.operation != self.operation or self.service not in {None, call.service}:
            return False
        if self.match is not None and self.match not in call.text:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None and self.struck >= self.times:
            return False
        self.struck += 1
        return True


class Faults:
    """The faults that are ordered, the oldest first."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = Lock()

    def add(self, request: Mapping[str, Any]) -> None:
        """Order a fault, given its attributes."""
        fault = Fault(**request)
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> list[str]:
        """Take all orders back; return the operations of those that struck nothing."""
        with self._lock:
            idle = [fault.operation for fault in self._faults if not fault.struck]
            self._faults.clear()
        return idle

    def strike(self, call: Call) -> Fault | None:
        """Return what befalls a call, if anything does."""
        with self._lock:
            return next((fault for fault in self._faults if fault.befalls(call)), None)


def close(environ: WSGIEnvironment) -> ConnectionError:
    """Close the connection of a request that gets no answer; return what ends its handling in the server."""
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    return ConnectionAbortedError("the answer was lost on order")


FAULTS = Faults()
