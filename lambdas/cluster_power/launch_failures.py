"""Why a node could not be launched, in plain words, and what one can do about it.

Auto Scaling and Spot Fleets report a failed launch as text, sometimes with EC2's error code and sometimes with
its sentence only, so that each rule knows both.
Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html,
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html and
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EventInformation.html
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from cluster_common.owners.kinds import OwnerTraits


class ProblemKind(StrEnum):
    """What keeps nodes from running, or from going; the value is what the tag of a reported problem says."""

    NO_CAPACITY = "no-capacity"
    RESERVATION_FULL = "reservation-full"
    RESERVATION_ENDED = "reservation-ended"
    BLOCK = "capacity-block"
    BLOCK_TOO_SMALL = "capacity-block-too-small"
    MAX_PRICE = "max-price"
    QUOTA = "quota"
    NOT_OFFERED = "not-offered"
    DENIED = "denied"
    KEY = "encryption-key"
    TEMPLATE = "launch-template"
    SUSPENDED = "launching-suspended"
    SLOW = "slow"
    SURPLUS = "surplus"
    LEFT_BEHIND = "left-behind"
    EMPTIED = "emptied"
    RAISED = "raised"
    MIXED_VERSIONS = "mixed-versions"
    RECORD_LOST = "record-lost"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class LaunchFailure:
    """One way in which a launch fails.

    Attributes:
        kind: What keeps the nodes from running.
        pattern: What AWS's message holds.
        explanation: The cause and what one can do; `{types}`, `{code}`, `{retries}`, `{role}` and `{more_capacity}`
            are filled in.
        code: EC2's error code where the message has its sentence only. Default: - the message names none.
    """

    kind: ProblemKind
    pattern: re.Pattern[str]
    explanation: str
    code: str = ""

    def explain(self, message: str, instance_types: str, owner: OwnerTraits, *, retried: bool) -> str:
        """Return the cause in plain words, with AWS's own at the end.

        Args:
            message: What AWS says.
            instance_types: The types of the nodes.
            owner: What owns the nodes.
            retried: Whether the power function asks for the nodes again.
        """
        found = self.pattern.search(message)
        code = found[0] if found and " " not in found[0] else self.code
        text = self.explanation.format(
            types=instance_types,
            code=f" ({code})" if code else "",
            retries=owner.retries if retried or not owner.tries else owner.tries,
            role=owner.role,
            more_capacity=owner.more_capacity,
        )
        return f"{text} AWS says: {message}"


def find_launch_failure(message: str) -> LaunchFailure:
    """Return the first rule that knows a message; the last knows every message."""
    return next(failure for failure in LAUNCH_FAILURES if failure.pattern.search(message))


def instance_type_in(message: str) -> str | None:
    """Return the instance type that a message names, or None."""
    found = _INSTANCE_TYPE.search(message)
    return found[0] if found else None


def _rule(kind: ProblemKind, pattern: str, explanation: str, code: str = "") -> LaunchFailure:
    return LaunchFailure(kind=kind, pattern=re.compile(pattern, re.IGNORECASE), explanation=explanation, code=code)


_INSTANCE_TYPE = re.compile(
    r"\b[a-z][a-z0-9]*\d[a-z0-9-]*\.(?:metal(?:-\d+xl)?|nano|micro|small|medium|\d*x?large)\b"
)

LAUNCH_FAILURES = (
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/tutorial-lifecycle-hook-instance-metadata.html
    _rule(
        ProblemKind.OTHER,
        r"Lifecycle Action Completed with ABANDON Result",
        "a node failed its verification before it entered service, and Auto Scaling launches another in its place. "
        "The node's report and its console output say which check failed.",
    ),
    _rule(
        ProblemKind.RESERVATION_FULL,
        r"ReservationCapacityExceeded|reservation does not have sufficient .*capacity",
        "the capacity reservation has no room for more {types}{code}. {retries} Other instances run "
        "in it, or it holds fewer instances than the node group has nodes: raise it, or lower the count in the "
        "cluster's file.",
        code="ReservationCapacityExceeded",
    ),
    _rule(
        ProblemKind.NO_CAPACITY,
        r"InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientReservedInstanceCapacity"
        r"|UnfulfillableCapacity|do not have sufficient .*capacity|no Spot capacity available",
        "EC2 has no more {types} in this Availability Zone now{code}. {retries} Nodes that do run are "
        "billed while they wait for the others: if they are of no use alone, stop the group and start it "
        "later, or {more_capacity}.",
        code="InsufficientInstanceCapacity",
    ),
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html
    _rule(
        ProblemKind.MAX_PRICE,
        r"SpotMaxPriceTooLow|fleetProgressHalted|(?:below|lower than) the (?:minimum required )?Spot .*price"
        r"|price-too-low",
        "the most that the cluster's file pays (max_price) is less than {types} cost now{code}. {retries} "
        "Raise max_price, or leave it out: then it is the on-demand price.",
    ),
    _rule(
        ProblemKind.QUOTA,
        r"VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|spotInstanceCountLimitExceeded"
        r"|Max spot instance count exceeded|more vCPU capacity than your current vCPU limit"
        r"|more instances .* than your current instance limit",
        "the account's EC2 quota in this region does not allow so many {types}{code}. Ask for more in "
        "Service Quotas (EC2, the quota of the type's family), or lower the count in the cluster's file.",
    ),
    _rule(
        ProblemKind.NOT_OFFERED,
        r"not supported in (?:your|the) requested Availability Zone|Availability Zone is no longer supported",
        "EC2 does not offer {types} in this Availability Zone{code}. Choose another zone or another type.",
    ),
    _rule(
        ProblemKind.KEY,
        r"(?:Client\.)?InvalidKMSKey[.\w]*|Client\.InternalError|Client error on launch|KMS key",
        "a volume's encryption key could not be used{code}. Let the role {role} use "
        "the KMS key of the image or of the account's default for EBS, and see that the key is enabled.",
    ),
    _rule(
        ProblemKind.DENIED,
        r"UnauthorizedOperation|AccessDenied|not authorized to perform|iamFleetRoleInvalid",
        "AWS does not allow the launch{code}. Look for a service control policy or a permission boundary "
        "that denies ec2:RunInstances, ec2:CreateTags or iam:PassRole.",
    ),
    _rule(
        ProblemKind.TEMPLATE,
        r"InvalidFleetConfiguration|launch template|LaunchTemplate|InvalidAMIID[.\w]*|InvalidParameter\w*"
        r"|InvalidGroup[.\w]*|AttachmentLimitExceeded|currently not supported|not currently supported"
        r"|does not exist|is invalid|Placement groups may not be used|Unsupported"
        r"|spotFleetRequestConfigurationInvalid",
        "EC2 refuses what the launch template asks for{code}. Waiting does not help: correct the cluster's "
        "file and deploy again.",
    ),
    _rule(ProblemKind.OTHER, r"", "a launch failed{code}. {retries}"),
)
"""The first rule that fits is taken, so that the order matters; the last fits any message."""
