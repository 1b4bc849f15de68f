"""The answer to CloudFormation, which asks for the removal when the stack goes.

It is always SUCCESS: alarms that stay cost cents and are told of, a stack that cannot be deleted blocks people.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-responses.html
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.request import Request, urlopen

from aws_lambda_powertools import Logger

_ATTEMPTS = 3
_SECONDS = 10
_MAX_REASON = 1000


def answer(event: Mapping[str, Any], remove: Callable[[], Sequence[str]], logger: Logger) -> None:
    """Remove what the function made if the resource is deleted, and answer CloudFormation.

    Args:
        event: CloudFormation's request.
        remove: Removes everything and returns what was left.
        logger: Where what was left is written.
    """
    left: Sequence[str] = ()
    if event["RequestType"] == "Delete":
        try:
            left = remove()
        except Exception as error:  # nothing may keep the answer back
            logger.exception("the billing alarms could not be removed")
            left = [f"{type(error).__name__}: {error}"]
    if left:
        logger.error(f"left behind: {'; '.join(left)}")
    _send(
        str(event["ResponseURL"]),
        {
            "Status": "SUCCESS",
            "Reason": "; ".join(left)[:_MAX_REASON],
            # Another id would have CloudFormation delete what the old one stands for.
            "PhysicalResourceId": event.get("PhysicalResourceId", "billing-alarms"),
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        },
        logger,
    )


def _send(url: str, response: Mapping[str, str], logger: Logger) -> None:
    # The address is signed for a request without a content type.
    request = Request(url, json.dumps(response).encode(), {"Content-Type": ""}, method="PUT")  # noqa: S310 - CloudFormation's own
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with urlopen(request, timeout=_SECONDS):  # noqa: S310 - see above
                return
        except OSError:
            logger.exception("CloudFormation could not be answered", extra={"attempt": attempt})
