"""A check of preflight: what AWS is asked, and what its answer means. No check changes anything or costs anything."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any

from cdk_training_cluster_cli.core.aws_errors import explained

if TYPE_CHECKING:
    import boto3
    from botocore.exceptions import ClientError

_AT_A_TIME = 8
# https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html, and the names that services use beside these.
_DENIED = re.compile(r"AccessDenied|Unauthorized|AuthorizationError|Forbidden|^403$")
_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")
# Where an operation needs a permission of another name:
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
_ACTIONS = {"s3:HeadBucket": "s3:ListBucket", "s3:ListDirectoryBuckets": "s3express:ListAllMyDirectoryBuckets"}


class Outcome(StrEnum):
    """What a check has found."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an answer of AWS means.

    Attributes:
        outcome: Whether it is as the cluster needs it.
        said: One sentence, without a full stop: who, what, value.
        mend: The command, or the change of the cluster file, that mends it. Empty: nothing is to be mended.
    """

    outcome: Outcome
    said: str
    mend: str = ""


def passed(said: str) -> Verdict:
    """Return that something is as the cluster needs it."""
    return Verdict(outcome=Outcome.PASS, said=said)


def failed(said: str, mend: str) -> Verdict:
    """Return that something is not as the cluster needs it, and what mends it."""
    return Verdict(outcome=Outcome.FAIL, said=said, mend=mend)


def unknown(said: str, mend: str = "") -> Verdict:
    """Return that it is not known whether something is as the cluster needs it."""
    return Verdict(outcome=Outcome.UNKNOWN, said=said, mend=mend)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A check's name and verdict."""

    name: str
    outcome: Outcome
    said: str
    mend: str


@dataclass(kw_only=True)
class Aws:
    """AWS as the user's credentials reach it.

    Attributes:
        session: The user's credentials.
        region: The cluster's region.
        account: The account of the credentials.
        caller: The ARN of the caller, as STS tells it.
    """

    session: "boto3.Session"
    region: str
    account: str
    caller: str
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    # Sessions are not safe among threads; clients are:
    # https://boto3.amazonaws.com/v1/documentation/api/latest/guide/session.html
    _lock: Any = field(default_factory=Lock)

    @property
    def partition(self) -> str:
        """The partition of the account's ARNs."""
        return self.caller.split(":")[1]

    def client(self, service: str, region: str | None = None) -> Any:  # noqa: ANN401 - a client of any service
        """Return a client.

        Args:
            service: The service's name in boto3.
            region: The region. Default: - the cluster's
        """
        key = service, region or self.region
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self.session.client(key[0], region_name=key[1])  # type: ignore[call-overload]
        return self._clients[key]

    def action(self, operation: str) -> str:
        """Return the permission that an operation needs which was asked for.

        Args:
            operation: The operation's name in the API.
        """
        with self._lock:
            models = [client.meta.service_model for client in self._clients.values()]
        service = next((each.signing_name for each in models if operation in each.operation_names), "")
        return _ACTIONS.get(f"{service}:{operation}", f"{service}:{operation}")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to find out before a deployment.

    Attributes:
        name: What is checked.
        ask: Asks AWS.
        judge: Says what the answer means.
    """

    name: str
    ask: Callable[[Aws], Any]
    judge: Callable[[Any], Verdict]

    def line(self, aws: Aws) -> Line:
        """Return what is found; what AWS does not answer is unknown.

        Args:
            aws: AWS.
        """
        verdict = self._verdict(aws)
        return Line(name=self.name, outcome=verdict.outcome, said=verdict.said, mend=verdict.mend)

    def _verdict(self, aws: Aws) -> Verdict:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow

        try:
            answer = self.ask(aws)
        except ClientError as error:
            return _refused(error, aws)
        except BotoCoreError as error:
            return unknown(explained(error) or "")
        return self.judge(answer)


def _refused(error: "ClientError", aws: Aws) -> Verdict:
    code, message = str(error.response["Error"]["Code"]), str(error.response["Error"].get("Message", ""))
    if _DENIED.search(code):
        named = _ACTION.search(message)
        action = named[1] if named else aws.action(error.operation_name)
        return unknown(f"AWS denies {action} ({code})", f"allow {action} for your credentials")
    return unknown(explained(error) or code)


def found(call: Callable[[], Any], *absent: str) -> Any:  # noqa: ANN401 - any answer
    """Return the answer of a call, or None where AWS says that there is no such thing.

    Args:
        call: The call.
        absent: The error codes that say so.

    Raises:
        ClientError: AWS refuses for another reason.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 - slow

    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] not in absent:
            raise
        return None


def run_checks(checks: Sequence[Check], aws: Aws, advance: Callable[[], object] = lambda: None) -> list[Line]:
    """Return a line for each check, in their order.

    Args:
        checks: The checks.
        aws: AWS.
        advance: Is called after each line.
    """
    lines = []
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
        for line in pool.map(lambda check: check.line(aws), checks):
            lines.append(line)
            advance()
    return lines


def exit_status(lines: Sequence[Line]) -> int:
    """Return 0 where all has passed, 1 where something has failed, 3 where only something is unknown.

    Args:
        lines: What was found.
    """
    outcomes = {line.outcome for line in lines}
    return 1 if Outcome.FAIL in outcomes else 3 if Outcome.UNKNOWN in outcomes else 0


def tags_of(resource: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tags of something that AWS describes.

    Args:
        resource: Its description.
    """
    return {each["Key"]: each["Value"] for each in resource.get("Tags") or ()}
