"""What EKS refuses of clusters, node groups and add-ons, with its codes.

Messages are the service's where a public report of one exists, and say the same in plain words elsewhere.
https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from local_aws.refusal import Refusal

INVALID, BAD_REQUEST, IN_USE, MISSING = (
    "InvalidParameterException",
    "InvalidRequestException",
    "ResourceInUseException",
    "ResourceNotFoundException",
)

# https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html after 26 November 2026, when 1.31 ends
_VERSIONS = tuple(f"1.{minor}" for minor in range(32, 37))
# https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
_WEIGHED = frozenset({"cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"})
_TWO_ZONES = 2
# https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html, by ids: names differ by account
_WITHOUT_CONTROL_PLANE = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
_MOST_MINORS_BEHIND = 3
# Conditions and their reasons that AWS documents as such; on all others EKS never acts.
# https://docs.aws.amazon.com/eks/latest/userguide/node-health-nma.html
_XIDS = (13, 31, 48, 63, 64, 74, 79, 94, 95, 119, 120, 121, 140)
_REASONS: Mapping[str, tuple[str, ...]] = {
    "AcceleratedHardwareReady": (
        *(f"NvidiaXID{code}Error" for code in _XIDS),
        *("DCGMDiagnosticFailure", "DCGMError", "FabricManagerNotRunning"),
        *("NvidiaDoubleBitError", "NvidiaNVLinkError"),
        *("NeuronDMAError", "NeuronHBMUncorrectableError", "NeuronNCUncorrectableError"),
        "NeuronSRAMUncorrectableError",
    ),
    "ContainerRuntimeReady": ("PodStuckTerminating",),
    "KernelReady": ("ForkFailedOutOfPIDs",),
    "NetworkingReady": (
        *("IPAMDNotReady", "IPAMDNotRunning", "InterfaceNotRunning", "InterfaceNotUp", "MissingLoopbackInterface"),
    ),
}
_MIME = ("mime-version:", "content-type: multipart/")
_GPU_IMAGES = ("NVIDIA", "GPU", "NEURON")


def check_cluster(params: Mapping[str, Any], ec2: Any) -> None:
    """Refuse a cluster.

    Args:
        params: The request.
        ec2: EC2's backend, of which the subnets are.

    Raises:
        Refusal: EKS refuses it.
    """
    if params.get("version", _VERSIONS[-1]) not in _VERSIONS:
        raise Refusal(INVALID, f"unsupported Kubernetes version {params['version']}")
    network = params["resourcesVpcConfig"]
    subnets = [ec2.get_subnet(each) for each in network.get("subnetIds") or []]
    if len({subnet.availability_zone for subnet in subnets}) < _TWO_ZONES:
        # https://github.com/hashicorp/terraform-provider-aws/issues/9500
        raise Refusal(INVALID, "Subnets specified must be in at least two different AZs")
    _check_zones(params["name"], subnets, ec2)
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise Refusal(INVALID, "Subnets specified must belong to the same VPC")
    public = network.get("endpointPublicAccess", True)
    if not public and not network.get("endpointPrivateAccess", False):
        raise Refusal(INVALID, "Private and public endpoint access cannot both be false")
    if not public and network.get("publicAccessCidrs"):
        raise Refusal(INVALID, "Public access CIDRs can only be set when public access is enabled")
    check_scheduler(params.get("kubeSchedulerConfig") or {})


def _check_zones(cluster: str, subnets: Iterable[Any], ec2: Any) -> None:
    """Refuse subnets in zones where EKS places no control plane.

    https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html and, of the sentence,
    https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html#ICE
    """
    taken = sorted(
        {each.availability_zone for each in subnets if each.availability_zone_id in _WITHOUT_CONTROL_PLANE}
    )
    if taken:
        every = ec2.describe_availability_zones()
        valid = ", ".join(sorted(zone.name for zone in every if zone.zone_id not in _WITHOUT_CONTROL_PLANE))
        raise Refusal(
            "UnsupportedAvailabilityZoneException",
            f"Cannot create cluster '{cluster}' because {', '.join(taken)}, the targeted availability zone, does not "
            "currently have sufficient capacity to support the cluster. Retry and choose from these availability "
            f"zones: {valid}",
        )


def check_scheduler(config: Mapping[str, Any]) -> None:
    """Refuse a scheduler's configuration.

    Args:
        config: The configuration.

    Raises:
        Refusal: It weighs a resource that EKS cannot weigh.
    """
    strategy = (config.get("nodeResourcesFit") or {}).get("scoringStrategy") or {}
    for resource in strategy.get("resources") or []:
        if resource["name"] not in _WEIGHED:
            raise Refusal(INVALID, f"Resource {resource['name']} is not supported in scoringStrategy.resources")


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Refuse sizes that do not fit into each other.

    Args:
        sizes: The scaling configuration.

    Raises:
        Refusal: They do not.
    """
    least, most, wanted = sizes["minSize"], sizes["maxSize"], sizes["desiredSize"]
    if least > wanted:
        # https://github.com/terraform-aws-modules/terraform-aws-eks/issues/3306
        raise Refusal(INVALID, f"Minimum capacity {least} can't be greater than desired size {wanted}")
    if wanted > most:
        raise Refusal(INVALID, f"desired capacity {wanted} can't be greater than max size {most}")


def minor(version: str) -> int:
    """Return the minor version of Kubernetes that a text says.

    Args:
        version: Such as `1.35`.
    """
    return int(version.partition(".")[2])


def check_skew(groups: Iterable[Mapping[str, Any]], version: str, wanted: str) -> None:
    """Refuse a version of the control plane that is too far ahead of nodes.

    Args:
        groups: The node groups.
        version: The control plane's version.
        wanted: The version that it is to have.

    Raises:
        Refusal: EKS refuses it.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    """
    late = [
        each["nodegroupName"]
        for each in groups
        if each["amiType"] != "CUSTOM" and minor(wanted) - minor(each["version"]) > _MOST_MINORS_BEHIND
    ]
    if late:
        # https://github.com/hashicorp/terraform-provider-aws/issues/19478
        raise Refusal(
            INVALID,
            f"Nodegroups {', '.join(late)} must be updated to match cluster version {version} before updating "
            "cluster version",
        )


def check_node_group(params: Mapping[str, Any], launch: Mapping[str, Any] | None) -> None:
    """Refuse a node group.

    Args:
        params: The request.
        launch: The data of its launch template. None: it has none.

    Raises:
        Refusal: EKS refuses it.
    """
    for code, message in (*_template_problems(params, launch or {}), *_market_problems(params, launch or {})):
        raise Refusal(code, message)
    check_repair(params.get("nodeRepairConfig") or {})


def check_repair(repair: Mapping[str, Any]) -> None:
    """Refuse a configuration of node repair.

    Args:
        repair: The configuration.

    Raises:
        Refusal: EKS refuses it.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_NodeRepairConfig.html
    """
    for limit in ("maxUnhealthyNodeThreshold", "maxParallelNodesRepaired"):
        if f"{limit}Count" in repair and f"{limit}Percentage" in repair:
            raise Refusal(INVALID, f"Only one of {limit}Count and {limit}Percentage can be specified")
    for override in repair.get("nodeRepairConfigOverrides") or []:
        if len(override) < len(
            ("nodeMonitoringCondition", "nodeUnhealthyReason", "minRepairWaitTimeMins", "repairAction")
        ):
            raise Refusal(INVALID, "All values must be specified in nodeRepairConfigOverrides")
        condition, reason = override["nodeMonitoringCondition"], override["nodeUnhealthyReason"]
        if reason not in _REASONS.get(condition, ()):
            # No document says that EKS checks them; it might.
            raise Refusal(INVALID, f"Invalid nodeUnhealthyReason {reason} for nodeMonitoringCondition {condition}")


def check_warm_image(params: Mapping[str, Any]) -> None:
    """Refuse a warm pool of a node group with an image of its own.

    Args:
        params: The node group.

    Raises:
        Refusal: EKS refuses it.
    """
    if (params.get("warmPoolConfig") or {}).get("enabled"):
        raise Refusal(INVALID, "Warm pools do not support custom AMIs.")


def _template_problems(params: Mapping[str, Any], launch: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if launch.get("IamInstanceProfile"):
        # https://github.com/terraform-aws-modules/terraform-aws-eks/issues/2007
        yield (
            INVALID,
            "Launch template should not specify an instance profile. The noderole in your request will be used to "
            "construct an instance profile.",
        )
    if launch.get("InstanceInitiatedShutdownBehavior") or launch.get("HibernationOptions"):
        yield INVALID, "Launch template should not specify shutdown or hibernation behavior."
    if any(interface.get("SubnetId") for interface in launch.get("NetworkInterfaces") or []):
        yield INVALID, "Launch template should not specify subnet in network interface."
    if launch and params.get("diskSize"):
        yield INVALID, "Disk size must be specified within the launch template."
    if launch and params.get("remoteAccess"):
        yield INVALID, "Remote access configuration cannot be specified with a launch template."
    if launch.get("InstanceType") and params.get("instanceTypes"):
        # https://github.com/terraform-aws-modules/terraform-aws-eks/issues/1386
        yield BAD_REQUEST, "Cannot specify instance types in launch template and API request"
    if launch.get("ImageId"):
        for name in ("amiType", "releaseVersion", "version"):
            if params.get(name):
                yield INVALID, f"You cannot specify the field {name} when using custom AMIs."
        check_warm_image(params)
    elif launch.get("UserData") and not _is_mime(launch["UserData"]):
        # https://github.com/terraform-aws-modules/terraform-aws-eks/issues/1875
        yield BAD_REQUEST, "Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME multipart format."


def _market_problems(params: Mapping[str, Any], launch: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    market = (launch.get("InstanceMarketOptions") or {}).get("MarketType")
    kind = params.get("capacityType", "ON_DEMAND")
    if kind != "CAPACITY_BLOCK":
        if market is not None:
            yield INVALID, "Launch template should not specify instance market options"
        return
    target = (launch.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    if market != "capacity-block" or not target.get("CapacityReservationId") or not launch.get("InstanceType"):
        yield (
            INVALID,
            "A launch template with the market type capacity-block, a capacity reservation target and an instance "
            "type is required for the capacity type CAPACITY_BLOCK",
        )


def _is_mime(user_data: object) -> bool:
    try:
        text = base64.b64decode(str(user_data), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    start = text.lstrip().lower()[:200]
    return all(header in start for header in _MIME)


def check_image(ami_type: str, types: Sequence[str], accelerated: Sequence[str]) -> None:
    """Refuse an image without drivers for accelerated types.

    Args:
        ami_type: The type of the image.
        types: The instance types.
        accelerated: Those with accelerators.

    Raises:
        Refusal: The image does not fit.
    """
    if accelerated and not any(word in ami_type for word in _GPU_IMAGES):
        raise Refusal(INVALID, f"{ami_type} AMI type is not supported for instance types {', '.join(types)}")
