"""The answer to CloudFormation, which asks for the removal when the stack goes.

It is always SUCCESS: alarms that stay cost cents, and a message names them; a stack that stays costs more.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

from aws_lambda_powertools import Logger

_ATTEMPTS = 3
_ATTEMPT_SECONDS = 10
_TELLING_SECONDS = 20
# What is left for the message and the answer, when the removal takes too long.
_LAST_SECONDS = _TELLING_SECONDS + _ATTEMPTS * _ATTEMPT_SECONDS + 10

# A response has at most 4096 bytes, and JSON writes other than ASCII characters with up to twelve of them.
_MAX_REASON = 1000


def answer(
    event: Mapping[str, Any],
    *,
    remove: Callable[[], None],
    tell: Callable[[Sequence[str]], None],
    seconds: float,
    logger: Logger,
) -> None:
    """Remove what the function made if the resource is deleted, and answer CloudFormation in time.

    Args:
        event: CloudFormation's request.
        remove: Removes everything, or raises what says what was left.
        tell: Sends a message about what was left.
        seconds: How long the function may still run.
        logger: Where what was left is written.
    """
    left: list[str] = []
    if event["RequestType"] == "Delete":
        _within(seconds - _LAST_SECONDS, "the billing alarms", remove, left)
    if left:
        logger.error(f"left behind: {'; '.join(left)}")
        _within(_TELLING_SECONDS, "the message about them", lambda: tell(tuple(left)), left)
    _send(
        str(event["ResponseURL"]),
        {
            "Status": "SUCCESS",
            "Reason": "; ".join(left).encode("ascii", "replace").decode()[:_MAX_REASON],
            # Another id would have CloudFormation delete what the old one stands for.
            "PhysicalResourceId": event.get("PhysicalResourceId", "billing-alarms"),
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        },
        logger,
    )


def _within(seconds: float, what: str, work: Callable[[], None], left: list[str]) -> None:
    """Do some work for so long, whatever it hangs on; add what became of it to what was left, unless it succeeded."""

    def do() -> None:
        try:
            work()
        except Exception as error:  # nothing may keep the answer back
            left.append(f"{what}: {type(error).__name__}: {error}")

    worker = Thread(target=do, daemon=True)
    worker.start()
    worker.join(max(seconds, 0))
    if worker.is_alive():
        left.append(f"{what}: it took too long")


def _send(url: str, response: Mapping[str, str], logger: Logger) -> None:
    # The address is signed for a request without a content type.
    request = Request(url, json.dumps(response).encode(), {"Content-Type": ""}, method="PUT")  # noqa: S310 - CloudFormation's own
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with urlopen(request, timeout=_ATTEMPT_SECONDS):  # noqa: S310 - see above
                return
        except OSError:
            logger.exception("CloudFormation could not be answered", extra={"attempt": attempt})
