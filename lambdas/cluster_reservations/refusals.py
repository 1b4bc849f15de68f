"""Why EC2 makes, changes or cancels no reservation, in one sentence with what to do about it."""

import re

from botocore.exceptions import ClientError

from cluster_common.errors import error_code, error_text
from cluster_reservations.requests import Terms

# EC2 answers with status 500 where it has no capacity. These codes are certain all the same:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_NO_CAPACITY = re.compile(r"Insufficient\w*Capacity\w*")
_NO_QUOTA = re.compile(r"(?!Tag)\w*LimitExceeded")
# Too many requests, which is neither an answer nor a limit of instances.
_BUSY = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled"})
_SERVER_ERROR = 500


class RefusedError(Exception):
    """Say why CloudFormation's request cannot be met."""


def cancel_command(reservation: str) -> str:
    """Return what an operator runs to cancel a reservation."""
    return f"run: aws ec2 cancel-capacity-reservation --capacity-reservation-id {reservation}"


def is_certain(error: ClientError) -> bool:
    """Say whether an error proves that EC2 did nothing: then there is no use in asking again."""
    code = error_code(error)
    if code in _BUSY:
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status < _SERVER_ERROR or _NO_CAPACITY.fullmatch(code) is not None


def explain(error: ClientError, terms: Terms, what: str) -> RefusedError:
    """Return why EC2 refused to make or raise a reservation.

    Args:
        error: EC2's answer.
        terms: What was asked for.
        what: What EC2 did not do, such as `reserve 8 p5.48xlarge in us-east-1b`.
    """
    code, group = error_code(error), f"node group {terms.node_group}"
    if _NO_CAPACITY.fullmatch(code):
        together = " in one placement group" if "PlacementGroupArn" in terms.fixed else ""
        sentence = (
            f"{group}: EC2 does not have the capacity to {what}{together} now. Deploy again later, lower count, use "
            "another Availability Zone, or buy a Capacity Block instead"
        )
    elif _NO_QUOTA.fullmatch(code):
        sentence = (
            f"{group}: the account's EC2 quota does not allow to {what}. Ask for more in Service Quotas (EC2, the "
            "quota of the type's family), or lower count"
        )
    else:
        sentence = f"{group}: EC2 refused to {what}"
    return RefusedError(f"{sentence}. AWS says: {error_text(error)}")
