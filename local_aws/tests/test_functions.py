"""Running a deployed function's own code: its zip and its environment, and nothing of this process."""

import os
import zipfile
from pathlib import Path

import pytest

from local_aws.functions import DeployedFunction, FunctionFailedError

_HANDLER = """
import os

def handler(event, context):
    if event.get("hang"):
        import threading
        threading.Event().wait()
    if event.get("fail"):
        raise RuntimeError("no capacity for this")
    if event.get("exit"):
        os._exit(3)
    import boto3, aws_lambda_powertools
    print("before:", [name for name in ("mark", "LEFT") if hasattr(boto3, name) or name in os.environ])
    boto3.mark = os.environ["LEFT"] = "a call"
    try:
        import cdk_training_cluster
    except ImportError:
        library = None
    else:
        library = cdk_training_cluster.__file__
    return {"environment": dict(os.environ), "library": library, "boto3": boto3.__file__}
"""


_CONFIGURATION = {
    "FunctionName": "ticker",
    "Handler": "pack.handler.handler",
    "MemorySize": 256,
    "Timeout": 60,
    "FunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:ticker",
    "Environment": {"Variables": {"SETTINGS": "{}"}},
}


_ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://localhost:1",
    "PATH": os.environ["PATH"],
    "HOME": "/somewhere",
}


@pytest.fixture
def code(tmp_path: Path) -> bytes:
    archive = tmp_path / "code.zip"
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr("pack/__init__.py", "")
        code.writestr("pack/handler.py", _HANDLER)
    return archive.read_bytes()


@pytest.fixture
def function(code: bytes, tmp_path: Path) -> DeployedFunction:
    return DeployedFunction(_CONFIGURATION, code, tmp_path, _ENVIRONMENT)


def test_it_sees_its_own_environment_and_nothing_of_this_one(function: DeployedFunction) -> None:
    answer = function({})
    assert answer["environment"]["SETTINGS"] == "{}"
    assert answer["environment"]["AWS_LAMBDA_FUNCTION_NAME"] == "ticker"
    assert answer["environment"]["AWS_ENDPOINT_URL"] == "http://localhost:1"
    assert {"PATH", "HOME", "VIRTUAL_ENV", "PYTHONPATH"}.isdisjoint(answer["environment"])
    assert answer["library"] is None


def test_a_failure_is_told_with_what_the_function_said(function: DeployedFunction) -> None:
    with pytest.raises(FunctionFailedError, match="no capacity for this"):
        function({"fail": True})


def test_a_function_that_runs_longer_than_its_timeout_is_ended(code: bytes, tmp_path: Path) -> None:
    function = DeployedFunction({**_CONFIGURATION, "Timeout": 1}, code, tmp_path, _ENVIRONMENT)
    outcome = function.run({"hang": True})
    assert outcome.error == {"errorMessage": "Task timed out after 1.00 seconds", "errorType": "Sandbox.Timedout"}
    assert (tmp_path / "ticker" / "log.jsonl").read_text().endswith("Task timed out after 1.00 seconds\n")


def test_a_call_leaves_nothing_to_the_next(function: DeployedFunction) -> None:
    assert [function.run({}).output for _ in range(2)] == ["before: []\n"] * 2


@pytest.mark.usefixtures("code")
def test_a_function_may_bring_its_own_packages(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "code.zip", "a") as archive:
        archive.writestr("boto3.py", "")
    function = DeployedFunction(_CONFIGURATION, (tmp_path / "code.zip").read_bytes(), tmp_path, _ENVIRONMENT)
    assert Path(function({})["boto3"]).parent.parent == tmp_path / "ticker"


def test_a_process_that_ends_is_told_with_its_exit_status(function: DeployedFunction) -> None:
    outcome = function.run({"exit": True})
    assert outcome.error == {"errorMessage": "ticker ended with exit status 3", "errorType": "Runtime.ExitError"}
