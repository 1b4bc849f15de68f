"""The server process: moto's services behind one WSGI application that never answers with a 5xx."""

import argparse
import io
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

from rehearsal.local_aws import settings

# moto reads its settings while it is imported, so they are made first.
os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"  # a managed policy that AWS lacks is refused
os.environ["AWS_DEFAULT_REGION"] = settings.REGION
os.environ["AWS_ACCESS_KEY_ID"] = settings.ACCESS_KEY_ID
os.environ["AWS_SECRET_ACCESS_KEY"] = settings.SECRET_ACCESS_KEY
os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull

from moto.core.model import OperationModel
from moto.core.request import determine_request_protocol
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from rehearsal.local_aws import control, install
from rehearsal.local_aws.loopback import only_loopback
from rehearsal.local_aws.refusal import Refusal

logger = logging.getLogger("local_aws")

_BOTO_NAMES = {"awslambda": "lambda", "s3bucket_path": "s3"}


class LocalAwsApplication:
    """Answers AWS requests through moto, control requests itself, and failures of moto as AWS-shaped errors.

    An unhandled error would be an HTTP 500, which costs every SDK its retries (45 s in the CDK CLI) and
    hides the reason; it becomes a 400 with the action's name instead.
    """

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        if path.startswith("/rehearsal/"):
            return _control(path.removeprefix("/rehearsal/"), environ, start_response)
        action, started = _action(environ), time.monotonic()
        answer = _Answer()
        try:
            body = list(self._moto(environ, answer))
            if answer.is_unknown_path():
                raise NotImplementedError(f"no such path: {path}")  # noqa: TRY301 - told like moto's own failures
        except Exception as error:
            logger.exception("%s failed inside the local AWS", action)
            answer = _Answer()
            body = self._failure(environ, action, error, answer)
        logger.info("%s %s %.0f ms", action, answer.line.split()[0], (time.monotonic() - started) * 1000)
        start_response(answer.line, answer.headers)
        return body

    def _failure(self, environ: WSGIEnvironment, action: str, error: Exception, answer: "_Answer") -> list[bytes]:
        text = f"the local AWS cannot do {action}: {type(error).__name__}: {error}"
        try:
            service = self._moto.get_application(environ).service
            model = get_service_model(_BOTO_NAMES.get(service, service))
            protocol = determine_request_protocol(model, environ.get("CONTENT_TYPE", ""))
            serializer = get_serializer_class(model.service_name, protocol)(OperationModel({}, model))
            serialized = serializer.serialize(Refusal("LocalAwsFailure", text))
            headers, body = serialized["headers"], serialized["body"]
        except Exception:  # a service whose model moto cannot find either
            logger.exception("no model to say it with")
            headers, body = {"Content-Type": "text/plain"}, text
        encoded = body if isinstance(body, bytes) else str(body).encode()
        answer("400 Bad Request", [(name, str(value)) for name, value in headers.items()])
        return [encoded]


class _Answer:
    """A status line and headers, held back until it is clear that the answer can be given."""

    def __init__(self) -> None:
        self.line = ""
        self.headers: list[tuple[str, str]] = []

    def __call__(self, line: str, headers: list[tuple[str, str]], *_: Any) -> Callable[[bytes], object]:
        """Take the place of WSGI's start_response."""
        self.line, self.headers = line, headers
        return lambda _: None

    def is_unknown_path(self) -> bool:
        """Tell whether this is Flask's page for a path that moto does not serve, which no SDK can read."""
        kind = next((value for name, value in self.headers if name.lower() == "content-type"), "")
        return self.line.startswith("404") and kind.startswith("text/html")


def _action(environ: WSGIEnvironment) -> str:
    """Name the operation that a request asks for, as well as its headers and form tell."""
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return str(target).rpartition(".")[2]
    if str(environ.get("CONTENT_TYPE", "")).startswith("application/x-www-form-urlencoded"):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        actions = parse_qs(body.decode(errors="replace")).get("Action")
        if actions:
            return str(actions[0])
    return f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"


def _control(name: str, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    """Answer a control request: those that a rehearsal or a test steers the local AWS with."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    try:
        request: Mapping[str, Any] = json.loads(environ["wsgi.input"].read(length) or b"{}")
        status, answer = "200 OK", control.CONTROLS[name](request)
    except KeyError as error:
        status, answer = "400 Bad Request", {"error": f"unknown control or missing key {error}"}
    except (TypeError, ValueError) as error:
        status, answer = "400 Bad Request", {"error": str(error)}
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc] # moto's modules are untyped here
    """The application logs requests itself, by their operation."""

    def log_request(self, *_: object) -> None:
        """Log nothing."""


def _end_with_parent() -> None:
    """End this process when the one that started it closes our standard input."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve on a free port of localhost and announce it as one line of JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--region", default=settings.REGION, help="the region that images are prepared in")
    parser.add_argument("--account", default=settings.ACCOUNT, help="the account that every request is for")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("botocore", "werkzeug", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    sys.addaudithook(only_loopback)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing needs to be tidied up

    server = make_server(
        "127.0.0.1",
        arguments.port,
        LocalAwsApplication(),
        threaded=True,
        request_handler=_QuietHandler,
    )
    os.environ["MOTO_PORT"] = str(server.port)
    os.environ["MOTO_ACCOUNT_ID"] = arguments.account
    endpoint_url = f"http://{settings.HOST}:{server.port}"
    install.install(endpoint_url=endpoint_url, account=arguments.account, region=arguments.region)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(json.dumps({"port": server.port}), flush=True)
    server.serve_forever()
