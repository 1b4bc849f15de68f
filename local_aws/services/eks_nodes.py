"""The nodes of an EKS node group: an Auto Scaling group and a launch template, which EKS makes of the user's.

https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
"""

import uuid
from collections.abc import Mapping
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.models import iam_backends
from moto.utilities.utils import get_partition

from local_aws.refusal import Refusal
from local_aws.services import launches
from local_aws.services.eks_rules import (
    INVALID,
    check_image,
    check_node_group,
    check_repair,
    check_sizes,
    check_warm_image,
)
from local_aws.services.group_rules import check_group
from local_aws.services.images import EKS_IMAGES

_SIZES = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
_USUAL_TYPE = "t3.medium"
_USUAL_IMAGE = "AL2023_x86_64_STANDARD"


def make(params: Mapping[str, Any], cluster: Mapping[str, Any], account: str, region: str) -> dict[str, Any]:
    """Make a node group's Auto Scaling group, and return the group as EKS describes it.

    Args:
        params: The request.
        cluster: The cluster.
        account: The account.
        region: The region.

    Raises:
        Refusal: EKS, Auto Scaling or EC2 refuses it.
    """
    ec2 = ec2_backends[account][region]
    launch = _launch_of(params.get("launchTemplate"), ec2)
    check_node_group(params, launch)
    sizes = params.get("scalingConfig") or _SIZES
    if sizes.keys() != _SIZES.keys():
        # https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html
        raise Refusal(INVALID, "All or none of minSize, maxSize and desiredSize must be specified in scalingConfig")
    check_sizes(sizes)
    types = params.get("instanceTypes") or [(launch or {}).get("InstanceType") or _USUAL_TYPE]
    custom = bool((launch or {}).get("ImageId"))
    image = "CUSTOM" if custom else params.get("amiType", _USUAL_IMAGE)
    if not custom:
        check_image(image, types, [name for name in types if _is_accelerated(name)])
    described = {
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "clusterName": cluster["name"],
        "amiType": image,
        "capacityType": params.get("capacityType", "ON_DEMAND"),
        "instanceTypes": list(types),
        "scalingConfig": sizes,
        "version": params.get("version", cluster["version"]),
        "resources": {"autoScalingGroups": [{"name": f"eks-{params['nodegroupName']}-{uuid.uuid4()}"}]},
    }
    _make_group(described, {**_default_launch(cluster, launch), **(launch or {})}, account, region)
    return described


def check_change(described: Mapping[str, Any]) -> None:
    """Refuse what UpdateNodegroupConfig refuses.

    Args:
        described: The node group as it is to be.

    Raises:
        Refusal: EKS refuses it.
    """
    check_sizes(described["scalingConfig"])
    check_repair(described.get("nodeRepairConfig") or {})
    if described["amiType"] == "CUSTOM":
        check_warm_image(described)


def resize(described: Mapping[str, Any], account: str, region: str) -> None:
    """Bring a node group's Auto Scaling group to its sizes.

    Args:
        described: The node group.
        account: The account.
        region: The region.
    """
    group, sizes = _group_of(described, account, region), described["scalingConfig"]
    group.min_size, group.max_size = sizes["minSize"], sizes["maxSize"]
    group.set_desired_capacity(sizes["desiredSize"])


def replace(described: dict[str, Any], params: Mapping[str, Any], account: str, region: str) -> None:
    """Replace a node group's nodes by such of another launch template or image.

    Args:
        described: The node group.
        params: The request.
        account: The account.
        region: The region.

    Raises:
        Refusal: EKS, Auto Scaling or EC2 refuses it.
    """
    ec2, group = ec2_backends[account][region], _group_of(described, account, region)
    if described["capacityType"] == "CAPACITY_BLOCK" and described["scalingConfig"]["desiredSize"]:
        raise Refusal(INVALID, "Desired size must be 0 to update a node group with Capacity Blocks")
    wanted = {
        **described,
        **{key: params[key] for key in ("launchTemplate", "version", "releaseVersion") if key in params},
    }
    launch = _launch_of(wanted.get("launchTemplate"), ec2)
    asked = {key: value for key, value in wanted.items() if key not in {"amiType", "instanceTypes"}}
    custom = bool((launch or {}).get("ImageId"))
    check_node_group({**asked, "version": None} if custom else asked, launch)
    described.update(wanted)
    if launch is not None:
        template = ec2.launch_templates[group.eks_template]
        template.create_version(_data(described, launch, account, region), "by EKS")
        group._set_launch_configuration(None, *_specification(described, template))
    size = group.desired_capacity
    group.set_desired_capacity(0)
    group.set_desired_capacity(size)


def remove(described: Mapping[str, Any], account: str, region: str) -> None:
    """Delete a node group's Auto Scaling group, its nodes and the launch template.

    Args:
        described: The node group.
        account: The account.
        region: The region.
    """
    group = _group_of(described, account, region)
    group.min_size = 0
    group.set_desired_capacity(0)
    ec2_backends[account][region].delete_launch_template(None, group.eks_template)
    autoscaling_backends[account][region].delete_auto_scaling_group(group.name)
    _drop_profile(described["nodeRole"], account, region)


def _make_group(described: Mapping[str, Any], launch: Mapping[str, Any], account: str, region: str) -> None:
    ec2, backend = ec2_backends[account][region], autoscaling_backends[account][region]
    name = described["resources"]["autoScalingGroups"][0]["name"]
    template = ec2.create_launch_template(
        f"eks-{uuid.uuid4()}", "by EKS", _data(described, launch, account, region), {"LaunchTemplate": {}}
    )
    own, mixed = _specification(described, template)
    tags = {
        "eks:cluster-name": described["clusterName"],
        "eks:nodegroup-name": described["nodegroupName"],
    }
    group = backend.create_auto_scaling_group(
        name=name,
        availability_zones=[],
        desired_capacity=0,
        max_size=described["scalingConfig"]["maxSize"],
        min_size=0,
        instance_id=None,
        launch_config_name=None,
        launch_template=own or {},
        mixed_instances_policy=mixed,
        vpc_zone_identifier=",".join(described["subnets"]),
        default_cooldown=None,
        health_check_period=None,
        health_check_type=None,
        load_balancers=[],
        target_group_arns=[],
        placement_group=None,
        termination_policies=["OldestLaunchTemplate", "OldestInstance"],
        tags=[
            {"Key": key, "Value": text, "PropagateAtLaunch": True, "ResourceId": name} for key, text in tags.items()
        ],
        capacity_rebalance=described["capacityType"] == "SPOT",
    )
    group.eks_template = template.id
    try:
        check_group(group)
    except Exception:  # whatever refuses the group, it must not stay; the refusal goes on
        del backend.autoscaling_groups[name]
        raise
    resize(described, account, region)


def _specification(
    described: Mapping[str, Any], template: Any
) -> tuple[dict[str, str] | None, dict[str, Any] | None]:
    own = {"LaunchTemplateId": template.id, "Version": str(template.latest_version().number)}
    if described["capacityType"] == "CAPACITY_BLOCK":
        return own, None
    spot = described["capacityType"] == "SPOT"
    policy = {
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0 if spot else 100,
            **({"SpotAllocationStrategy": "price-capacity-optimized"} if spot else {}),
        },
        "LaunchTemplate": {
            "LaunchTemplateSpecification": own,
            "Overrides": [{"InstanceType": name} for name in described["instanceTypes"]],
        },
    }
    return None, policy


def _data(described: Mapping[str, Any], launch: Mapping[str, Any], account: str, region: str) -> dict[str, Any]:
    image = {} if launch.get("ImageId") else {"ImageId": EKS_IMAGES[described["amiType"]]}
    profile = _profile(described["nodeRole"], account, region)
    return {**launch, **image, "IamInstanceProfile": {"Arn": profile}}


def _profile(role_arn: str, account: str, region: str) -> str:
    """Return the instance profile that EKS makes for a node role."""
    iam = iam_backends[account][get_partition(region)]
    role = next(each for each in iam.roles.values() if each.arn == role_arn)
    name = f"eks-{role.id}"
    if name not in iam.instance_profiles:
        iam.create_instance_profile(name, "/", [role.name], [])
    return str(iam.instance_profiles[name].arn)


def _drop_profile(role_arn: str, account: str, region: str) -> None:
    """Delete the instance profile that EKS made for a node role, with the last node group of the role."""
    iam, ec2 = iam_backends[account][get_partition(region)], ec2_backends[account][region]
    profile = _profile(role_arn, account, region)
    templates = [each.latest_version().data for each in ec2.launch_templates.values()]
    if all((data.get("IamInstanceProfile") or {}).get("Arn") != profile for data in templates):
        name = profile.rpartition("/")[2]
        role = next(each for each in iam.roles.values() if each.arn == role_arn)
        iam.remove_role_from_instance_profile(name, role.name)
        iam.delete_instance_profile(name)


def _default_launch(cluster: Mapping[str, Any], launch: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the one interface, in the cluster security group, of nodes whose template says nothing of interfaces."""
    if launch and (launch.get("NetworkInterfaces") or launch.get("SecurityGroupIds")):
        return {}
    groups = [cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]]
    return {"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": groups, "DeleteOnTermination": True}]}


def _launch_of(named: Mapping[str, str] | None, ec2: Any) -> dict[str, Any] | None:
    if not named:
        return None
    known = {"id": "LaunchTemplateId", "name": "LaunchTemplateName", "version": "Version"}
    try:
        _, version = launches.launch_template_data(ec2, {known[key]: value for key, value in named.items()})
    except ServiceException as refusal:
        raise Refusal("InvalidRequestException", f"Ec2LaunchTemplateNotFound: {refusal.message}") from refusal
    return dict(version.data)


def _is_accelerated(name: str) -> bool:
    facts = INSTANCE_TYPES.get(name, {})
    return any(key in facts for key in ("GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo"))


def _group_of(described: Mapping[str, Any], account: str, region: str) -> Any:
    name = described["resources"]["autoScalingGroups"][0]["name"]
    return autoscaling_backends[account][region].autoscaling_groups[name]
