"""The server process: moto's services behind one WSGI application that never answers with a 5xx."""

import argparse
import http
import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from local_aws import defaults

# moto reads its settings while it is imported, so they are made first.
os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"  # a managed policy that AWS lacks is refused
# The default quota: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
os.environ["MOTO_LAMBDA_CONCURRENCY_QUOTA"] = "1000"
os.environ["AWS_DEFAULT_REGION"] = defaults.REGION
os.environ["AWS_ACCESS_KEY_ID"] = defaults.ACCESS_KEY_ID
os.environ["AWS_SECRET_ACCESS_KEY"] = defaults.SECRET_ACCESS_KEY
os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull

from moto.core.exceptions import ServiceException
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from local_aws import calls, control, errors, faults, install, texts
from local_aws.cloudformation.resources import custom
from local_aws.loopback import only_loopback
from local_aws.services import pcs, prices

logger = logging.getLogger("local_aws")

# The services that moto lacks, by how the header X-Amz-Target begins: boto3's name of each, and what answers.
_OWN_SERVICES: Mapping[str, tuple[str, Callable[[calls.Call, str], Mapping[str, Any]]]] = {
    "AWSPriceListService.": ("pricing", prices.get_products),
    pcs.TARGET: ("pcs", pcs.answer),
}


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
        if path == custom.PATH:
            return custom.ANSWERS(environ, start_response)
        if path.startswith("/local-aws/"):
            return _control(path.removeprefix("/local-aws/"), environ, start_response)
        call, started = calls.read(environ, self._service), time.monotonic()
        calls.RECORD.add(call)
        fault = faults.FAULTS.strike(call)
        answer = _Answer()
        body: list[bytes] = []
        if fault is not None and fault.code is not None:
            body = _refuse(answer, call, fault.code, fault.message, fault.status)
        elif fault is None or fault.lost != "request":
            body = self._answered(environ, call, answer)
        said = answer.line.split()[0] if answer.line else "-"
        logger.info("%s %s %.0f ms", call.operation, said, (time.monotonic() - started) * 1000)
        if fault is not None and fault.lost is not None:
            raise faults.close(environ)
        call.status = int(said)
        start_response(answer.line, answer.headers)
        return body

    def _service(self, environ: WSGIEnvironment) -> str:
        for start, (name, _) in _OWN_SERVICES.items():
            if str(environ.get("HTTP_X_AMZ_TARGET")).startswith(start):
                return name
        try:
            return str(self._moto.get_application(environ).service)
        except Exception:  # moto takes headers for granted; the request fails again, and that error is answered
            return "unknown"

    def _answered(self, environ: WSGIEnvironment, call: calls.Call, answer: "_Answer") -> list[bytes]:
        refused = texts.refusal(call)
        if refused is not None:
            return _refuse(answer, call, *refused, None)
        try:
            for name, answering in _OWN_SERVICES.values():
                if call.service == name:
                    return _own(call, answering, environ, answer)
            body = list(self._moto(environ, answer))
            # An answer to HEAD has no body that could say what is missing: it is the thing itself.
            if answer.is_unknown_path() and environ["REQUEST_METHOD"] != "HEAD":
                raise NotImplementedError(f"no such path: {environ.get('PATH_INFO', '')}")  # noqa: TRY301 - told like moto's own failures
        except Exception as error:
            logger.exception("%s failed inside the local AWS", call.operation)
            text = f"the local AWS cannot do {call.operation}: {type(error).__name__}: {error}"
            return _refuse(answer, call, "LocalAwsFailure", text, 400)
        return body


def _own(
    call: calls.Call,
    answering: Callable[[calls.Call, str], Mapping[str, Any]],
    environ: WSGIEnvironment,
    answer: "_Answer",
) -> list[bytes]:
    """Answer a request to a service that moto lacks; the region is the one that it is signed for."""
    region = environ["HTTP_AUTHORIZATION"].split("Credential=")[1].split("/")[2]
    try:
        found = answering(call, region)
    except ServiceException as refusal:
        return _refuse(answer, call, str(refusal.code), str(refusal.message), None)
    answer("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
    return [json.dumps(found).encode()]


def _refuse(answer: "_Answer", call: calls.Call, code: str, message: str, status: int | None) -> list[bytes]:
    """Answer with an error in the words of the call's service."""
    try:
        error = errors.answer(call.service, call.environ.get("CONTENT_TYPE", ""), code, message, status)
    except Exception:  # a service whose model moto cannot find either
        logger.exception("no model to say it with")
        error = errors.ErrorAnswer(status or 400, [("Content-Type", "text/plain")], message.encode())
    answer(f"{error.status} {http.HTTPStatus(error.status).phrase}", error.headers)
    return [error.body]


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
    return [json.dumps(answer, default=calls.as_text).encode()]


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
    parser.add_argument("--region", default=defaults.REGION, help="the region that images are prepared in")
    parser.add_argument("--account", default=defaults.ACCOUNT, help="the account that every request is for")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    parser.add_argument("--workspace", type=Path, help="where functions are unpacked; without, a new directory")
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
    endpoint_url = f"http://{defaults.HOST}:{server.port}"
    install.install(
        endpoint_url=endpoint_url,
        account=arguments.account,
        region=arguments.region,
        workspace=arguments.workspace or Path(tempfile.mkdtemp(prefix="local-aws-functions-")),
    )
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(json.dumps({"port": server.port}), flush=True)
    server.serve_forever()
