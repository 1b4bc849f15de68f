"""The kinds of values that a cluster file is made of."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, StrictBool
from pydantic_core import PydanticCustomError

from cdk_training_cluster import nodes
from cdk_training_cluster.capacity.limits import FLEET_PRICE, LINUX_PLATFORMS, RESERVATION_ID, SPOT_PRICE
from cdk_training_cluster.network.cluster_network import IpRange
from cdk_training_cluster.nodes.node_group import UTILIZATION_COMMAND
from cdk_training_cluster.storage import file_system
from cdk_training_cluster.validation import LIMITS, bounds
from cdk_training_cluster_file.forms import Choice, Text, aws_id, in_the_library, limited, text_of, within
from cdk_training_cluster_file.regions import REGION

ClusterName = Annotated[
    str,
    Text(
        pattern=r"[a-z][a-z0-9-]*",
        must="be lower-case letters, digits and hyphens, with a letter first",
        longest=128 - len("-foundation"),
        because="the stack <name>-foundation has to fit CloudFormation's 128",
    ),
]
NodeGroupName = Annotated[
    str,
    Text(
        pattern=r"[a-z][a-z0-9-]*",
        must="be lower-case letters, digits and hyphens, with a letter first",
        longest=63,
    ),
]
# A zone's name is its region's name and a letter; a Local Zone's has a place and a number before the letter.
# https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html
AvailabilityZone = Annotated[
    str,
    Text(
        pattern=rf"{REGION}(?:-[a-z]+-[0-9]+)?[a-z]",
        must="be the name of an Availability Zone, such as us-east-1b",
    ),
]
RegionName = Annotated[str, Text(pattern=REGION, must="be the name of a region, such as us-west-2")]


def region_of(zone: str) -> str:
    """Return the region that an Availability Zone is in.

    Args:
        zone: The zone's name.
    """
    found = re.match(REGION, zone)
    if found is None:  # the pattern of a zone starts with the region's
        raise AssertionError(zone)
    return found[0]


AccountId = Annotated[
    str, Text(pattern=r"[0-9]{12}", must='be the 12 digits of an AWS account, in quotes: "111122223333"')
]
# What AWS reports a service's charges under is an open set; see Budget.
BilledService = Annotated[
    str,
    Text(
        pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*",
        must="be the name of a service in the billing metrics, such as AmazonEC2",
        longest=64,
    ),
]
# The sizes that a VPC made for a cluster can have; see ClusterNetwork.
VpcCidr = Annotated[
    str,
    Text(
        pattern=r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}/(?:1[6-9]|2[0-4])",
        must="be an IPv4 range from /16 to /24, such as 10.20.0.0/16",
    ),
    in_the_library(IpRange),
]
VpcId = Annotated[str, aws_id("vpc", "a VPC")]
SubnetId = Annotated[str, aws_id("subnet", "a subnet")]
SecurityGroupId = Annotated[str, aws_id("sg", "a security group")]
FileSystemId = Annotated[str, aws_id("fs", "a file system")]
# https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreFileSystemConfiguration.html
MountName = Annotated[
    str,
    Text(
        pattern=r"[A-Za-z0-9_-]{1,8}",
        must="be the mount name that aws fsx describe-file-systems shows, such as abcdefgh",
    ),
]
_RESERVATION_FORM = Text(
    pattern=RESERVATION_ID.pattern, must="be the id of a Capacity Reservation, such as cr-0a1b2c3d4e5f67890"
)


def _is_no_arn(text: str) -> str:
    if text.startswith("arn:"):
        name = text.rpartition("/")[2]
        near = name if re.fullmatch(_RESERVATION_FORM.pattern, name) else ""
        must = f"{_RESERVATION_FORM.must}, since only prioritized takes ARNs"
        raise PydanticCustomError("form", "must {must}", {"must": must, "near": near})
    return text


CapacityReservationId = Annotated[str, AfterValidator(_is_no_arn), _RESERVATION_FORM]
# A reservation that another account shares is known by its ARN in a resource group.
CapacityReservationIdOrArn = Annotated[
    str,
    Text(
        pattern=rf"(?:arn:[a-z-]+:ec2:[a-z0-9-]+:[0-9]{{12}}:capacity-reservation/)?{_RESERVATION_FORM.pattern}",
        must=f"{_RESERVATION_FORM.must}, or the ARN of one that another account shares",
    ),
]
PlacementGroupName = Annotated[str, limited("placementGroupName", must="be the name of a cluster placement group")]
InstancePlatform = Annotated[str, Choice(LINUX_PLATFORMS, "since nodes run Linux")]

UNTIL_CANCELLED = "until_cancelled"
"""The word for a reservation without an end."""


def _is_a_time(text: str) -> str:
    if text != UNTIL_CANCELLED:
        try:
            datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):  # of a year before 1 or after 9999 in UTC
            raise PydanticCustomError("form", "must be a date and time that exist") from None
    return text


_TIME = r"[0-9]{4}(?:-[0-9]{2}){2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
ReservationEnd = Annotated[
    str,
    Text(
        pattern=f"(?:{UNTIL_CANCELLED}|{_TIME})",
        must=f"be {UNTIL_CANCELLED} or a time with its offset from UTC, such as 2026-12-24T18:00:00Z or "
        "2026-12-24T18:00:00+01:00",
        words=(UNTIL_CANCELLED,),
    ),
    AfterValidator(_is_a_time),
]
UtilizationCommand = Annotated[str, text_of(UTILIZATION_COMMAND)]
LATEST = "latest"
"""The word for AWS's newest image that fits."""

Image = Annotated[
    str,
    Text(
        pattern=r"(?:latest|ami-[0-9a-f]{8}(?:[0-9a-f]{9})?)",
        must="be latest or the id of an image, such as ami-0a1b2c3d4e5f67890",
    ),
]
BucketName = Annotated[
    str,
    limited(
        "bucketName",
        must="be the name of a bucket: 3 to 63 lower-case letters, digits, hyphens and dots, without s3:// and "
        "without a path, and none that AWS reserves",
    ),
]
Prefix = Annotated[
    str,
    Text(
        pattern=r"(?!/|s3:)[^\x00-\x1f\x7f]*",
        must="be the start of keys, without the bucket and without a / in front, such as tokens/",
    ),
    # As FSx takes it: a prefix ends where a directory does.
    AfterValidator(lambda prefix: f"{prefix.rstrip('/')}/" if prefix else ""),
]


# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html
FileSystemPath = Annotated[
    str,
    Text(
        pattern=r"/(?:(?!\.{1,2}(?:/|$))[^/\s]+/?)*",
        must="be a path that starts with one /, such as /data",
        longest=LIMITS["fileSystemPath"].maximum,
    ),
    AfterValidator(lambda path: path.rstrip("/") or "/"),
]
MountPoint = Annotated[
    str,
    Text(
        pattern=r"(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+",
        must="be a directory's full path of letters, digits, dots, hyphens and underscores, such as /fsx",
    ),
    in_the_library(nodes.MountPoint),
]
InstanceTypeName = Annotated[
    str,
    Text(
        pattern=r"[a-z][a-z0-9-]*\.[a-z0-9-]+",
        must="be the name of an instance type, such as p5.48xlarge",
    ),
]
DeviceName = Annotated[
    str, Text(pattern=r"/dev/[a-z][a-z0-9]*", must="be a device's name, such as /dev/xvda or /dev/sda1")
]
VariableName = Annotated[
    str,
    Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        must="be the name of an environment variable: letters, digits and underscores, no digit first",
    ),
]
# The id that CDK shows, and that a user may copy, has the prefix too.
WarningId = Annotated[
    str,
    Text(
        pattern=r"(?:cdk-training-cluster:)?[a-z][A-Za-z0-9]*",
        must="be the name of a warning, such as latestImage",
    ),
    AfterValidator(lambda name: name.removeprefix("cdk-training-cluster:")),
]
Reason = Annotated[str, Text(pattern=r"[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*", must="be the reason, in one line")]
VariableValue = Annotated[str, Text(pattern=r"[^\x00-\x1f\x7f]*", must="be one line")]
ScriptName = Annotated[
    str,
    Text(
        pattern=r"(?!/)[^\x00-\x1f\x7f]*[^/\x00-\x1f\x7f]",
        must="be the path of a script, relative to this file, such as scripts/login.sh",
    ),
]
LayerArn = Annotated[
    str,
    Text(
        pattern=r"arn:[a-z0-9-]+:lambda:[a-z0-9-]+:[0-9]{12}:layer:[A-Za-z0-9_-]+:[0-9]+",
        must="be the ARN of a layer's version, such as arn:aws:lambda:us-east-1:111122223333:layer:powertools:1",
    ),
]
# https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html#key-id-key-ARN
KeyArn = Annotated[
    str,
    Text(
        pattern=r"arn:[a-z0-9-]+:kms:[a-z0-9-]+:[0-9]{12}:key/"
        r"(?:mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
        must="be the ARN of a KMS key, and no alias, such as "
        "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789",
    ),
]
# https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html
TopicArn = Annotated[
    str,
    Text(
        pattern=r"arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}",
        must="be the ARN of an SNS topic that is no FIFO topic, such as arn:aws:sns:us-east-1:111122223333:on-call",
    ),
]
Email = Annotated[str, limited("email", must="be an e-mail address, such as ml-platform@example.com")]
# The tags of all services: what SNS, FSx and IAM take, EC2 and Auto Scaling take too; queues take the fewest values.
TagKey = Annotated[
    str,
    limited(
        "fsxTagKey",
        "ec2TagKey",
        must="be letters, digits, spaces and . : / = + @ _ -, and start with neither aws: nor cdk-training-cluster:",
        before="(?!cdk-training-cluster:)",
    ),
]
TagValue = Annotated[
    str,
    limited(
        "sqsTagValue",
        must="be one or more letters, digits, spaces and . : / = + @ _ -, and not start with aws:",
        # Alarms and documents take no empty one.
        before="(?=.)",
    ),
]


# A number in quotes is text and `yes` is a word: in a file that buys GPUs nothing is guessed.
Flag = StrictBool
Count = Annotated[int, within(bounds.Whole(minimum=1))]
Whole = Annotated[int, within(bounds.Whole(minimum=0))]
FleetPrice = Annotated[float, within(FLEET_PRICE)]
SpotPrice = Annotated[float, within(SPOT_PRICE)]


DailyTime = Annotated[str, text_of(file_system.DAILY_TIME)]
WeeklyTime = Annotated[str, text_of(file_system.WEEKLY_TIME)]
RetentionDays = Annotated[int, within(file_system.RETENTION_DAYS)]
LogGroup = Annotated[
    str,
    Text(
        pattern=r"/aws/fsx[A-Za-z0-9_./#-]+",
        must="be the name of a log group that starts with /aws/fsx",
        longest=512,
    ),
]
