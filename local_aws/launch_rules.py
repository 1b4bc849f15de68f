"""The rules by which EC2 refuses a launch: pure functions over launch data, facts about the type, and context.

Facts about instance types are DescribeInstanceTypes' own, so these rules know nothing of the library's
catalog. Codes are EC2's (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html);
messages are EC2's where a public report of one exists, and say the same in plain words elsewhere.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from local_aws import capacity_rules, interface_rules
from local_aws.launch_facts import Ec2Refusal, Launch, LaunchContext, insufficient_addresses, type_of

_USER_DATA_LIMIT = 16384


def check_launch(data: Mapping[str, Any], type_facts: Mapping[str, Any] | None, context: LaunchContext) -> None:
    """Raise what EC2 answers to a launch that it would refuse; return if it would launch.

    Raises:
        Ec2Refusal: with EC2's error code and message, for the first rule that is broken.
    """
    launch = Launch(data, type_facts, context)
    for rule in RULES:
        rule(launch)


def the_type_exists(launch: Launch) -> None:
    """Refuse a type that EC2 does not know.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    if not launch.instance_type:
        raise Ec2Refusal("MissingParameter", "The request must contain the parameter InstanceType")
    if launch.type_facts is None:
        raise Ec2Refusal("InvalidParameterValue", f"Invalid value '{launch.instance_type}' for InstanceType.")


def the_image_exists(launch: Launch) -> None:
    """Refuse an image that is not there.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    image = launch.data.get("ImageId")
    if not image:
        raise Ec2Refusal("MissingParameter", "The request must contain the parameter ImageId")
    if not re.fullmatch(r"ami-[0-9a-z]+", image):
        raise Ec2Refusal("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')
    if image not in launch.context.image_architectures:
        raise Ec2Refusal("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")


def the_image_fits_the_type(launch: Launch) -> None:
    """Refuse an image of another architecture.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ComponentsAMIs.html
    """
    image = launch.context.image_architectures[launch.data["ImageId"]]
    supported = launch.facts["ProcessorInfo"]["SupportedArchitectures"]
    if image not in supported:
        raise Ec2Refusal(
            "InvalidParameterValue",
            f"The architecture '{','.join(supported)}' of the specified instance type does not match the "
            f"architecture '{image}' of the specified AMI. Specify an instance type and an AMI that have "
            "matching architectures, and try again.",
        )


def the_root_volume_holds_the_image(launch: Launch) -> None:
    """Refuse a root volume that is smaller than the image's snapshot.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html
    """
    device, needed = launch.context.image_volumes.get(str(launch.data.get("ImageId")), ("", 0))
    for mapping in launch.data.get("BlockDeviceMappings") or []:
        size = (mapping.get("Ebs") or {}).get("VolumeSize")
        if mapping.get("DeviceName") == device and size is not None and int(size) < needed:
            raise Ec2Refusal(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size}GB is smaller than snapshot of {launch.data['ImageId']}, "
                f"expect size >= {needed}GB",
            )


def user_data_is_small(launch: Launch) -> None:
    """Refuse user data that is not base64, or more than 16 KB raw.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
    """
    encoded = launch.data.get("UserData")
    if not encoded:
        return
    try:
        raw = base64.b64decode(str(encoded), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Ec2Refusal("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from error
    if len(raw) > _USER_DATA_LIMIT:
        raise Ec2Refusal("InvalidParameterValue", f"User data is limited to {_USER_DATA_LIMIT} bytes")


def every_security_group_exists(launch: Launch) -> None:
    """Refuse a security group that is not there, or is in another VPC than the subnet.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    groups = list(launch.data.get("SecurityGroupIds") or [])
    for interface in launch.interfaces:
        groups += interface.get("Groups") or []
    for group in groups:
        vpc = launch.context.security_group_vpcs.get(group)
        if vpc is None:
            raise Ec2Refusal("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        if launch.context.subnet_vpc is not None and vpc != launch.context.subnet_vpc:
            raise Ec2Refusal(
                "InvalidParameter",
                f"Security group {group} and subnet {launch.context.subnet_id} belong to different networks.",
            )


def the_placement_group_exists_and_fits(launch: Launch) -> None:
    """Refuse a placement group that is not there, or has a strategy that the type lacks.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html
    """
    name = (launch.data.get("Placement") or {}).get("GroupName")
    if not name:
        return
    strategy = launch.context.placement_groups.get(name)
    if strategy is None:
        raise Ec2Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if strategy not in launch.facts["PlacementGroupInfo"]["SupportedStrategies"]:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            f"{strategy.capitalize()} placement groups are not supported by the '{launch.instance_type}' instance "
            "type. Specify a supported instance type or change the placement group strategy, and try again.",
        )


def the_instance_profile_exists(launch: Launch) -> None:
    """Refuse an instance profile that is not there.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/iam-roles-for-amazon-ec2.html
    """
    profile = launch.data.get("IamInstanceProfile") or {}
    for kind in ("Name", "Arn"):
        wanted = profile.get(kind)
        if wanted and wanted not in launch.context.instance_profiles:
            raise Ec2Refusal(
                "InvalidParameterValue",
                f"Value ({wanted}) for parameter iamInstanceProfile.{kind.lower()} is invalid. "
                f"Invalid IAM Instance Profile {'name' if kind == 'Name' else 'ARN'}",
            )


def the_market_is_sold_for_the_type(launch: Launch) -> None:
    """Refuse a market that the type is not sold on.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
    """
    market = (launch.data.get("InstanceMarketOptions") or {}).get("MarketType", "on-demand")
    if market not in launch.facts["SupportedUsageClasses"]:
        raise Ec2Refusal(
            "UnsupportedOperation",
            f"The instance type '{launch.instance_type}' does not support the market type '{market}'; it supports "
            f"{', '.join(sorted(launch.facts['SupportedUsageClasses']))}.",
        )


def the_subnet_has_room(launch: Launch) -> None:
    """Refuse a launch into a subnet with too few free addresses; `efa-only` needs none.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    needed = sum(type_of(interface) != "efa-only" for interface in launch.interfaces) or 1
    free = launch.context.free_addresses
    if free is not None and needed > free:
        raise insufficient_addresses(str(launch.context.subnet_id))


RULES: tuple[Callable[[Launch], None], ...] = (
    the_type_exists,
    the_image_exists,
    the_image_fits_the_type,
    the_root_volume_holds_the_image,
    user_data_is_small,
    interface_rules.groups_and_subnet_are_said_once,
    interface_rules.the_primary_interface_is_there,
    interface_rules.the_primary_interface_has_an_address,
    interface_rules.every_device_index_is_unique,
    interface_rules.every_network_card_exists,
    interface_rules.no_card_has_too_many_interfaces,
    interface_rules.efa_fits_the_type,
    interface_rules.every_card_takes_its_interface,
    interface_rules.several_interfaces_get_no_public_address,
    every_security_group_exists,
    the_placement_group_exists_and_fits,
    the_instance_profile_exists,
    the_market_is_sold_for_the_type,
    *capacity_rules.RULES,
    the_subnet_has_room,
)
