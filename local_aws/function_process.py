"""The process in which deployed functions run: it imports their runtime's packages once, and forks for each call.

It is run as a script, by an interpreter that starts with neither the project nor the site's .pth files on its path,
and imports nothing of the project's. So functions see their zip and, in place of the runtime and its layer, the
installed boto3 and Powertools.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, time
from typing import IO, Any

_RUNTIME = ("boto3", "botocore", "aws_lambda_powertools")


class _Context:
    """The context of an invocation: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html."""

    aws_request_id = "00000000-0000-4000-8000-000000000000"

    def __init__(self, call: Mapping[str, Any]) -> None:
        self._ends = monotonic() + call["timeout"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.memory_limit_in_mb = int(os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
        self.invoked_function_arn = call["arn"]

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - monotonic()) * 1000)


def main() -> None:
    """Take calls from standard input, a socket, until the process ends that makes them."""
    sys.path.append(sys.argv[1])
    for name in _RUNTIME:
        importlib.import_module(name)
    # The first client imports what the others use too.
    session = importlib.import_module("boto3.session").Session("-", "-", region_name="us-east-1")
    session.client("sts")
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as control:
        while True:
            byte, sockets, _, _ = socket.recv_fds(control, 1, 1)
            _forget_ended()
            if not byte:
                return
            with socket.socket(fileno=sockets[0]) as asked:
                if os.fork() == 0:
                    _answer(asked)
                    os._exit(0)


def _forget_ended() -> None:
    """Take note of the calls that have ended; each has said itself how."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(asked: socket.socket) -> None:
    """Run a call in a process of its own, and say how that ended."""
    with asked.makefile("rb") as file:
        call = json.load(file)
    with TemporaryFile() as output, TemporaryFile() as result:
        process = os.fork()
        if process == 0:
            asked.close()
            _run(call, output, result)
        _, status = os.waitpid(process, 0)
        output.seek(0)
        result.seek(0)
        answer = {
            "output": output.read().decode(errors="replace"),
            "outcome": result.read().decode(),
            "status": os.waitstatus_to_exitcode(status),
        }
    asked.sendall(json.dumps(answer).encode())


def _run(call: Mapping[str, Any], output: IO[bytes], result: IO[bytes]) -> None:
    """Run a call in this process, and end it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, call["timeout"])  # which ends the process, whatever it does
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    os.chdir(call["code"])
    os.environ.clear()
    os.environ.update(call["variables"])
    sys.path.insert(0, call["code"])
    _forget_replaced(call["code"])
    context = _Context(call)
    if call["later"]:
        importlib.import_module("time_machine").travel(time() + call["later"], tick=True).start()
    module, name = call["handler"].rsplit(".", 1)
    try:
        said = json.dumps({"result": getattr(importlib.import_module(module), name)(call["event"], context)})
    except Exception as error:
        sys.stdout.flush()
        traceback.print_exc()
        said = json.dumps({"error": {"errorMessage": str(error), "errorType": type(error).__name__}})
    sys.stdout.flush()
    result.write(said.encode())
    result.flush()
    os._exit(0)


def _forget_replaced(code: str) -> None:
    """Let a function's zip bring its own packages in place of the runtime's."""
    own = {file.stem for file in Path(code).iterdir()}
    for name in list(sys.modules):
        if name.partition(".")[0] in own.intersection(_RUNTIME):
            del sys.modules[name]


if __name__ == "__main__":
    main()
