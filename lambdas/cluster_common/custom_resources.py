"""Answers to CloudFormation, which asks functions for custom resources.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.request import Request, urlopen

from aws_lambda_powertools import Logger

ANSWER_ATTEMPTS = 3
ANSWER_ATTEMPT_SECONDS = 10

# A response has at most 4096 bytes, and JSON writes other than ASCII characters with up to twelve of them.
_MAX_REASON = 1000


def send_answer(
    event: Mapping[str, Any], logger: Logger, *, succeeded: bool, physical_id: str, reason: str = ""
) -> bool:
    """Answer a request of CloudFormation's, and return whether it has the answer.

    Args:
        event: The request.
        logger: Where failed attempts are written.
        succeeded: Whether what was asked for is done.
        physical_id: The id of the physical resource; another one than the request's replaces the resource.
        reason: What CloudFormation shows beside the status. Default: - nothing.
    """
    response = {
        "Status": "SUCCESS" if succeeded else "FAILED",
        "Reason": reason.encode("ascii", "replace").decode()[:_MAX_REASON],
        "PhysicalResourceId": physical_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    # The address is signed for a request without a content type.
    request = Request(  # noqa: S310 - CloudFormation's own
        str(event["ResponseURL"]), json.dumps(response).encode(), {"Content-Type": ""}, method="PUT"
    )
    for attempt in range(1, ANSWER_ATTEMPTS + 1):
        try:
            with urlopen(request, timeout=ANSWER_ATTEMPT_SECONDS):  # noqa: S310 - see above
                return True
        except OSError:
            logger.exception("CloudFormation could not be answered", extra={"attempt": attempt})
    return False
