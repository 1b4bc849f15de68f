"""The calls that reach the local AWS: which operation each asks for, and a record of them."""

import io
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, unquote_plus
from wsgiref.types import WSGIEnvironment

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model

# A session of tests makes fewer; a record without an end would be the server's whole memory.
_MOST = 10_000
# moto's names of services that boto3 calls otherwise.
_BOTO_NAMES = {"awslambda": "lambda", "s3bucket_path": "s3", "servicequotas": "service-quotas"}
# Their bodies are objects, not parameters, but for tags and rules of lifecycles.
_UNREAD = frozenset({"s3"})
# What of a request its parameters are read from.
_KEPT = frozenset(
    {
        *("CONTENT_TYPE", "HTTP_HOST", "PATH_INFO", "QUERY_STRING", "RAW_URI", "REQUEST_METHOD"),
        *("SERVER_NAME", "SERVER_PORT", "wsgi.url_scheme"),
    }
)
_FORM = "application/x-www-form-urlencoded"


@dataclass(kw_only=True)
class Call:
    """One request.

    Attributes:
        service: The service's name in boto3, such as "ec2"; what moto calls it if boto3 has none.
        operation: The operation's name, such as "StopInstances"; the method and the path if there is no such one.
        environ: What WSGI says of the request, as far as parameters are read from it.
        body: The body, unless it is an object's.
        status: The HTTP status of the answer; None as long as there is none, and if it was lost.
    """

    service: str
    operation: str
    environ: Mapping[str, Any] = field(repr=False)
    body: bytes = field(repr=False)
    status: int | None = None

    @property
    def text(self) -> str:
        """The path and the body, decoded: what a fault may look for."""
        body = self.body.decode(errors="replace")
        if str(self.environ.get("CONTENT_TYPE", "")).startswith(_FORM):
            body = unquote_plus(body)
        return f"{self.environ.get('PATH_INFO', '')}\n{body}"

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters as boto3 spells them, read by the service's model; none where that fails."""
        try:
            return self._parsed()
        except Exception:  # each way of not knowing a service, an operation or a protocol has its own exception
            return {}

    def _parsed(self) -> Mapping[str, Any]:
        model = get_service_model(self.service)
        operation = model.operation_model(self.operation)
        body = {"wsgi.input": io.BytesIO(self.body), "CONTENT_LENGTH": str(len(self.body))}
        request = Request({**self.environ, **body})
        _, in_path = get_service_router(self.service).match(request)
        protocol = determine_request_protocol(model, request.content_type)
        parsed: Mapping[str, Any] = PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": self.body,
                "url_path": request.path,
                "url_params": in_path,
            }
        )
        return parsed


def read(environ: WSGIEnvironment, service_of: Callable[[WSGIEnvironment], str]) -> Call:
    """Read what a request asks for, and leave it to be read again.

    Args:
        environ: The request.
        service_of: Tells moto's name of the service that it is for.
    """
    service = service_of(environ)
    service = _BOTO_NAMES.get(service, service)
    body = b""
    is_read = service not in _UNREAD or {"tagging", "lifecycle"} & {*environ.get("QUERY_STRING", "").partition("=")}
    if is_read and environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
    kept = {name: value for name, value in environ.items() if name in _KEPT or name.startswith("HTTP_X_AMZ_")}
    return Call(service=service, operation=_operation(environ, service, body), environ=kept, body=body)


def _operation(environ: WSGIEnvironment, service: str, body: bytes) -> str:
    path = str(environ.get("PATH_INFO", ""))
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return str(target).rpartition(".")[2]
    if str(environ.get("CONTENT_TYPE", "")).startswith(_FORM):
        actions = parse_qs(body.decode(errors="replace")).get("Action")
        if actions:
            return actions[0]
    _, _, of_rpc = path.partition("/operation/")
    if environ.get("HTTP_SMITHY_PROTOCOL") and of_rpc:
        return of_rpc
    try:
        return str(get_service_router(service).match(Request(environ))[0].name)
    except Exception:  # a service that botocore has no model of, or a path that its model has not
        return f"{environ['REQUEST_METHOD']} {path}"


def as_text(value: object) -> str:
    """Return a parameter that JSON has no place for, for `json.dumps`."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class Record:
    """The calls since it was last emptied."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=_MOST)
        self._lock = Lock()

    def add(self, call: Call) -> None:
        """Take a call in."""
        with self._lock:
            self._calls.append(call)

    def forget(self) -> None:
        """Empty the record."""
        with self._lock:
            self._calls.clear()

    def listed(self) -> list[dict[str, Any]]:
        """List the calls, oldest first."""
        with self._lock:
            calls = list(self._calls)
        return [
            {
                "service": call.service,
                "operation": call.operation,
                "parameters": call.parameters(),
                "status": call.status,
            }
            for call in calls
        ]


RECORD = Record()
