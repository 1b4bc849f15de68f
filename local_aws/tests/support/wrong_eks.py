"""EKS templates that a linter passes and EKS refuses: the words of EKS, and the rule of a synth, if there is one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Wrong:
    """A wrong template.

    Attributes:
        name: What is wrong.
        change: Makes the legal template wrong.
        refusal: What EKS says.
        rule: The rule by which a synth refuses it. Empty: only the deployment does.
    """

    name: str
    change: Change
    refusal: str
    rule: str


def _group(**properties: Any) -> Change:
    return lambda resources: resources["Nodes"]["Properties"].update(properties)


def _launch(**data: Any) -> Change:
    return lambda resources: resources["Launch"]["Properties"]["LaunchTemplateData"].update(data)


def _cluster(**properties: Any) -> Change:
    return lambda resources: resources["Cluster"]["Properties"].update(properties)


def _network(**properties: Any) -> Change:
    return lambda resources: resources["Cluster"]["Properties"]["ResourcesVpcConfig"].update(properties)


def _both(*changes: Change) -> Change:
    return lambda resources: [change(resources) for change in changes]


def _in_a_subnet(resources: dict[str, Any]) -> None:
    interfaces = resources["Launch"]["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]
    interfaces[0]["SubnetId"] = resources["Nodes"]["Properties"]["Subnets"][0]


def _without_types(resources: dict[str, Any]) -> None:
    del resources["Nodes"]["Properties"]["InstanceTypes"]
    resources["Nodes"]["Properties"]["CapacityType"] = "CAPACITY_BLOCK"


def _own_image(**more: Any) -> Change:
    def change(resources: dict[str, Any]) -> None:
        _launch(ImageId="ami-0a1b2c3d4e5f67890")(resources)
        del resources["Nodes"]["Properties"]["AmiType"]
        _group(**more)(resources)

    return change


_SIZES = {"MinSize": 0, "DesiredSize": 0, "MaxSize": 4}
_WEIGHED = {"ScoringStrategy": {"Type": "MostAllocated", "Resources": [{"Name": "example.com/gpu", "Weight": 1}]}}
_OVERRIDE = {"NodeMonitoringCondition": "AcceleratedHardwareReady", "RepairAction": "Replace"}

WRONG: tuple[Wrong, ...] = (
    Wrong(
        "an instance profile in the launch template",
        _launch(IamInstanceProfile={"Name": "nodes"}),
        "Launch template should not specify an instance profile",
        "",
    ),
    Wrong(
        "a subnet in the launch template",
        _in_a_subnet,
        "Launch template should not specify subnet in network interface",
        "",
    ),
    Wrong(
        "a shutdown behaviour in the launch template",
        _launch(InstanceInitiatedShutdownBehavior="terminate"),
        "Launch template should not specify shutdown or hibernation behavior",
        "",
    ),
    Wrong(
        "types in two places",
        _launch(InstanceType="p4de.24xlarge"),
        "Cannot specify instance types in launch template and API request",
        "",
    ),
    Wrong(
        "a disk size beside a launch template",
        _group(DiskSize=100),
        "Disk size must be specified within the launch template",
        "",
    ),
    Wrong(
        "remote access beside a launch template",
        _group(RemoteAccess={"Ec2SshKey": "key"}),
        "Remote access configuration cannot be specified with a launch template",
        "",
    ),
    Wrong(
        "user data that is one shell script",
        _launch(UserData={"Fn::Base64": "#!/bin/bash\necho"}),
        "User data was not in the MIME multipart format",
        "",
    ),
    Wrong(
        "a type of image beside an image",
        _own_image(AmiType="AL2023_x86_64_NVIDIA"),
        "You cannot specify the field amiType when using custom AMIs",
        "",
    ),
    Wrong(
        "a warm pool of an own image",
        _own_image(WarmPoolConfig={"Enabled": True}),
        "Warm pools do not support custom AMIs",
        "",
    ),
    Wrong(
        "a market in the launch template of On-Demand nodes",
        _launch(InstanceMarketOptions={"MarketType": "spot"}),
        "Launch template should not specify instance market options",
        "",
    ),
    Wrong(
        "a Capacity Block without its reservation",
        _both(_without_types, _launch(InstanceType="p4de.24xlarge")),
        "A launch template with the market type capacity-block",
        "",
    ),
    Wrong(
        "a least size above the desired one",
        _group(ScalingConfig={**_SIZES, "MinSize": 1}),
        "Minimum capacity 1 can't be greater than desired size 0",
        "eksSizes",
    ),
    Wrong(
        "an image without drivers",
        _group(AmiType="AL2023_x86_64_STANDARD"),
        "AL2023_x86_64_STANDARD AMI type is not supported for instance types p4de.24xlarge",
        "eksDrivers",
    ),
    Wrong(
        "half of a repair override",
        _group(NodeRepairConfig={"Enabled": True, "NodeRepairConfigOverrides": [_OVERRIDE]}),
        "All values must be specified in nodeRepairConfigOverrides",
        "",
    ),
    Wrong(
        "an API that is neither private nor public",
        _network(EndpointPrivateAccess=False),
        "Private and public endpoint access cannot both be false",
        "",
    ),
    Wrong(
        "a resource that EKS cannot weigh",
        _cluster(KubeSchedulerConfig={"NodeResourcesFit": _WEIGHED}),
        "Resource example.com/gpu is not supported in scoringStrategy.resources",
        "",
    ),
    Wrong(
        "access entries beside a ConfigMap",
        _cluster(AccessConfig={"AuthenticationMode": "CONFIG_MAP"}),
        "authentication mode must be set to one of [API, API_AND_CONFIG_MAP]",
        "",
    ),
    Wrong(
        "one zone",
        _network(SubnetIds=[{"Ref": "Second"}]),
        "Subnets specified must be in at least two different AZs",
        "",
    ),
)
