"""The entry point of the reservation function: it answers each request of CloudFormation's.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-responses.html
"""

import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cluster_common import clients
from cluster_reservations.request import Request
from cluster_reservations.reservations import RefusedError, Reservations

logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)

# CloudFormation takes at most 4,096 bytes of an answer.
_LONGEST_REASON = 1_000
_TRIES = 4


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401, ARG001 - as Lambda calls it
    """Do what CloudFormation asks for, and answer at the address that it gives."""
    reservations = Reservations(ec2=clients.ec2(), now=datetime.now(UTC), pause=time.sleep)
    send(event["ResponseURL"], answer(event, reservations), pause=time.sleep)


def answer(event: Mapping[str, Any], reservations: Reservations) -> dict[str, Any]:
    """Return the answer to a request. Each request gets one: without it, CloudFormation waits until its time-out.

    Args:
        event: The request.
        reservations: The reservations of the custom resource.
    """
    said = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    # CloudFormation deletes by this id what a failed creation left; the tags find it.
    said["PhysicalResourceId"] = event.get("PhysicalResourceId") or f"none-{event['RequestId']}"
    try:
        said["PhysicalResourceId"] = reservations.apply(Request.of(event))
    except RefusedError as refusal:
        logger.warning("%s", refusal)
        return {**said, "Status": "FAILED", "Reason": str(refusal)[:_LONGEST_REASON]}
    except Exception as error:
        logger.exception("the request failed")
        reason = f"the reservation function failed with an internal error ({type(error).__name__}); see its log group"
        return {**said, "Status": "FAILED", "Reason": reason}
    logger.info("%s of %s: %s", event["RequestType"], event["LogicalResourceId"], said["PhysicalResourceId"])
    return {**said, "Status": "SUCCESS"}


def send(url: str, body: Mapping[str, Any], *, pause: Callable[[float], None]) -> None:
    """Send an answer; an error of the last try ends the invocation, and Lambda delivers the request again.

    Args:
        url: The signed address.
        body: The answer.
        pause: Waits for some seconds.
    """
    for attempt in range(1, _TRIES + 1):
        # The signature is for a request without a content type.
        request = urllib.request.Request(  # noqa: S310 - CloudFormation's own address
            url, data=json.dumps(body).encode(), headers={"Content-Type": ""}, method="PUT"
        )
        try:
            with urllib.request.urlopen(request, timeout=10):  # noqa: S310 - as above
                return
        except OSError:
            if attempt == _TRIES:
                raise
            pause(2.0**attempt)
