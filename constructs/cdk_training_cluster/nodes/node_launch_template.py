"""The launch template of the nodes of one layout."""

from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.acknowledgements import default_child
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.nodes.layouts import LaunchLayout
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.type_rules import IMAGE_AT_LAUNCH

_ROOT_GIB, _NEURON_ROOT_GIB = 200, 512

_USUAL_ROOT_DEVICE = "/dev/xvda"

# Containers reach the metadata service through one hop more than the node itself.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html
_METADATA_HOPS = 2


def make_launch_template(
    scope: Construct,
    id: str,
    *,
    node_group: NodeGroup,
    layout: LaunchLayout,
    instance_type: InstanceTypeInfo,
    network: ClusterNetwork,
    instance_profile: iam.IInstanceProfile,
    user_data: ec2.UserData,
    placement_group: str | None = None,
    encryption_key: kms.IKey | None = None,
) -> ec2.LaunchTemplate:
    """Make the launch template of the nodes of one layout.

    Args:
        scope: The parent construct.
        id: The construct's id.
        node_group: What the nodes are.
        layout: What the types that are launched from it have in common.
        instance_type: The first of these types.
        network: Where the nodes live.
        instance_profile: The profile that carries the nodes' role.
        user_data: What sets a node up.
        placement_group: The placement group, where there is no Auto Scaling group to name it. Default: - none.
        encryption_key: The KMS key that encrypts the root volume. Default: - AWS's own, or the account's default.

    Raises:
        ValueError: Only a launch would find the image's id, and a Spot Fleet does not look.
    """
    template = ec2.LaunchTemplate(
        scope,
        id,
        machine_image=_image(node_group, layout),
        instance_type=ec2.InstanceType(instance_type.name),
        instance_profile=instance_profile,
        user_data=user_data,
        require_imdsv2=True,
        http_put_response_hop_limit=_METADATA_HOPS,
        block_devices=[
            ec2.BlockDevice(
                device_name=_root_device_name(node_group, instance_type),
                volume=ec2.BlockDeviceVolume.ebs(
                    root_volume_gib(node_group, instance_type),
                    volume_type=ec2.EbsDeviceVolumeType.GP3,
                    encrypted=True,
                    kms_key=encryption_key,
                    delete_on_termination=True,
                ),
            )
        ],
    )
    # A rule says so of CDK's own such images, before anything is made.
    is_fleet = node_group.capacity.owned_by_spot_fleet
    if is_fleet and (template.image_id or "").startswith("resolve:ssm:"):
        raise ValueError(f"node group {node_group.name!r}: {IMAGE_AT_LAUNCH}")
    # ec2.LaunchTemplate knows one interface only, and nothing of reservations. Groups stand on each interface,
    # since EC2 refuses them at the top beside interfaces; the subnet is left to the Auto Scaling group. A Spot Fleet
    # could name it in its overrides only, as the instance's, which EC2 refuses beside interfaces.
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html (SubnetId)
    subnet = {"SubnetId": network.node_subnet.subnet_id} if is_fleet else {}
    added: dict[str, Any] = {
        "NetworkInterfaces": [
            {
                # Card 0 is the default, and older Spot requests take no number of a card.
                # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html
                **({} if is_fleet and interface.card == 0 else {"NetworkCardIndex": interface.card}),
                "DeviceIndex": interface.device,
                "InterfaceType": interface.interface_type,
                "Groups": [network.security_group.security_group_id],
                "DeleteOnTermination": True,
                **subnet,
            }
            for interface in layout.interfaces
        ],
        **node_group.capacity.launch_template_data,
    }
    if placement_group is not None:
        added["Placement"] = {"GroupName": placement_group}
    for name, value in added.items():
        default_child(template).add_property_override(f"LaunchTemplateData.{name}", value)
    return template


def root_volume_gib(node_group: NodeGroup, info: InstanceTypeInfo) -> int:
    """Return the size of the root volume of a group's nodes, in GiB.

    Args:
        node_group: The group.
        info: The type of its nodes.
    """
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/setup/pytorch/update-dlami.html
    return node_group.root_volume_gib or (_NEURON_ROOT_GIB if info.has_neuron_devices else _ROOT_GIB)


def _image(node_group: NodeGroup, layout: LaunchLayout) -> ec2.IMachineImage:
    if node_group.machine_image is not None:
        return node_group.machine_image
    if layout.image is None:
        raise TypeError(f"no image for {node_group.name}")  # a rule has said so before
    return ec2.MachineImage.from_ssm_parameter(layout.image.parameter_name)


def _root_device_name(node_group: NodeGroup, info: InstanceTypeInfo) -> str:
    # Most images that users build are AWS's with something added, or one of AWS's by its id.
    public = public_image(info)
    usual = _USUAL_ROOT_DEVICE if public is None else public.root_device_name
    return node_group.root_device_name or usual
