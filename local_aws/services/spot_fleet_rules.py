"""What EC2 refuses of a Spot Fleet request, and the pools that a legal one launches from.

The codes are EC2's (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html); messages are
EC2's where a public report of one exists, and say the same in plain words elsewhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.exceptions import InvalidParameterValueErrorTagSpotFleetRequest
from moto.iam.models import iam_backends

from local_aws.launch_facts import Ec2Refusal
from local_aws.refusal import Refusal
from local_aws.services import launches

_NOT_CARRIED_OUT = frozenset(
    {
        "InstancePoolsToUseCount",
        "LaunchSpecifications",
        "LoadBalancersConfig",
        "OnDemandAllocationStrategy",
        "OnDemandMaxTotalPrice",
        "OnDemandTargetCapacity",
        "SpotMaxTotalPrice",
        "TargetCapacityUnitType",
        "TerminateInstancesWithExpiration",
        "ValidFrom",
        "ValidUntil",
    }
)
_OVERRIDES_CARRIED_OUT = frozenset({"InstanceType", "SpotPrice", "SubnetId"})


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One way for a fleet to launch: a template's data with an override on top, and where to."""

    data: Mapping[str, Any]
    subnet_id: str | None
    template_id: str
    template_version: int

    def __str__(self) -> str:
        """Name the pool as the fleet's history does."""
        return f"{self.data.get('InstanceType')}, {self.data.get('ImageId')}, Linux/UNIX"


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidSpotFleetRequestConfig", message)


def pools(ec2: Any, config: Mapping[str, Any]) -> Iterator[Pool]:
    """Yield a fleet's pools, in the order that its request names them: there are no Spot prices here.

    Args:
        ec2: moto's EC2 backend of the region.
        config: The request, as SpotFleetRequestConfigData.
    """
    for each in config["LaunchTemplateConfigs"]:
        specification = each.get("LaunchTemplateSpecification")
        if not specification:
            # https://github.com/awsdocs/aws-cloudformation-user-guide/pull/163
            raise _invalid("At least one LaunchTemplateConfig does not have LaunchTemplateSpecification.")
        template, version = launches.launch_template_data(ec2, specification)
        for override in each.get("Overrides") or [{}]:
            unknown = sorted(set(override) - _OVERRIDES_CARRIED_OUT)
            if unknown:
                raise NotImplementedError(f"{', '.join(unknown)} in an override of a Spot Fleet")
            # An override's subnet is one of the instance: EC2 has refused it beside interfaces, as in any launch.
            # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html (SubnetId)
            changed = {key: override[key] for key in ("InstanceType", "SubnetId") if override.get(key)}
            data = {**version.data, **changed}
            (own, *_) = [interface.get("SubnetId") for interface in data.get("NetworkInterfaces") or []] or [None]
            yield Pool(
                data=data,
                subnet_id=data.get("SubnetId") or own,
                template_id=template.id,
                template_version=version.number,
            )


def check(ec2: Any, config: Mapping[str, Any]) -> None:
    """Raise what EC2 answers to a request that it refuses.

    Raises:
        Refusal: with EC2's error code.
        NotImplementedError: for what the local AWS does not support.
    """
    unknown = sorted(_NOT_CARRIED_OUT & set(config))
    if unknown:
        raise NotImplementedError(f"{', '.join(unknown)} in a Spot Fleet")
    _check_request(config)
    _check_role(ec2, config)
    check_pools(ec2, config)


def _check_request(config: Mapping[str, Any]) -> None:
    if config.get("Type", "maintain") != "maintain":
        raise NotImplementedError(f"a Spot Fleet of the type {config['Type']}")
    if int(config["TargetCapacity"]) < 0:
        raise _invalid(f"Parameter: SpotFleetRequestConfig.TargetCapacity is invalid: {config['TargetCapacity']}.")
    for specification in config.get("TagSpecifications") or []:
        if specification["ResourceType"] != "spot-fleet-request":
            raise InvalidParameterValueErrorTagSpotFleetRequest(specification["ResourceType"])


def role_of(ec2: Any, arn: str) -> Any:
    """Return the IAM role of a fleet if Spot Fleet may assume it, or None."""
    for role in iam_backends[ec2.account_id][ec2.partition].roles.values():
        if role.arn == arn and "spotfleet.amazonaws.com" in str(role.assume_role_policy_document):
            return role
    return None


def _check_role(ec2: Any, config: Mapping[str, Any]) -> None:
    """Refuse a role that Spot Fleet cannot assume.

    The message is quoted in https://docs.aws.amazon.com/batch/latest/userguide/troubleshooting.html.
    """
    if role_of(ec2, config["IamFleetRole"]) is None:
        raise _invalid("Parameter: SpotFleetRequestConfig.IamFleetRole is invalid.")


def check_pools(ec2: Any, config: Mapping[str, Any]) -> None:
    """Refuse launch templates that a Spot Fleet cannot launch from.

    Raises:
        Refusal: InvalidSpotFleetRequestConfig, with EC2's message about the launch.
    """
    for pool in pools(ec2, config):
        _check_template(pool.data)
        try:
            launches.check(ec2, as_spot(pool.data, config), pool.subnet_id)
        except Ec2Refusal as refusal:
            raise _invalid(f"{pool}: {refusal.message}") from refusal


def _check_template(data: Mapping[str, Any]) -> None:
    if str(data.get("ImageId", "")).startswith("resolve:ssm:"):
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html (ImageId)
        raise _invalid(
            "EC2 Fleet and Spot Fleet do not support specifying a Systems Manager parameter. If the launch template "
            f"will be used by an EC2 Fleet or Spot Fleet, you must specify the AMI ID; got {data['ImageId']}."
        )
    if data.get("InstanceMarketOptions"):
        raise _invalid(
            "The launch template must not have InstanceMarketOptions when it is used by a Spot Fleet: the fleet "
            "itself requests Spot Instances."
        )
    if any(interface.get("NetworkInterfaceId") for interface in data.get("NetworkInterfaces") or []):
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateConfig.html
        raise _invalid("You cannot specify a network interface ID in a Spot Fleet.")


def as_spot(data: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return launch data with the market that a fleet launches on, and what its request says of it."""
    options = {"InstanceInterruptionBehavior": config.get("InstanceInterruptionBehavior", "terminate")}
    if config.get("SpotPrice"):
        options["MaxPrice"] = config["SpotPrice"]
    return {**data, "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}
