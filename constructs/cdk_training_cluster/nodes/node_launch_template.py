"""The launch template of the nodes of one layout."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import default_child
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect, UserDataForm
from cdk_training_cluster.nodes.layouts import LaunchLayout
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules.type_rules import IMAGE_AT_LAUNCH

_ROOT_GIB, _NEURON_ROOT_GIB = 200, 512

_USUAL_ROOT_DEVICE = "/dev/xvda"


def make_launch_template(
    scope: Construct,
    id: str,
    *,
    dialect: LaunchTemplateDialect,
    node_group: NodeGroup,
    layout: LaunchLayout,
    instance_type: InstanceTypeInfo,
    network: ClusterNetwork,
    instance_profile: iam.IInstanceProfile,
    user_data: ec2.UserData,
    more_user_data: Sequence[ec2.MultipartBody] = (),
    security_groups: Sequence[str] = (),
    placement_group: str | None = None,
    reserved: Reserved,
    encryption_key: kms.IKey | None = None,
) -> ec2.LaunchTemplate:
    """Make the launch template of the nodes of one layout.

    Args:
        scope: The parent construct.
        id: The construct's id.
        dialect: What the service that launches the nodes takes.
        node_group: What the nodes are.
        layout: What the types that are launched from it have in common.
        instance_type: The first of these types.
        network: Where the nodes live.
        instance_profile: The profile that carries the nodes' role.
        user_data: What sets a node up.
        more_user_data: Parts that stand before it in multi-part user data. Default: - none.
        security_groups: The ids of security groups beside the network's own. Default: - none.
        placement_group: The placement group of the nodes. Default: - none.
        reserved: What is reserved for them.
        encryption_key: The KMS key that encrypts the root volume. Default: - AWS's own, or the account's default.

    Raises:
        ValueError: Only a launch would find the image's id, and the service does not look.
    """
    names_type = dialect.instance_type or node_group.capacity.block_id is not None
    template = ec2.LaunchTemplate(
        scope,
        id,
        machine_image=_image(node_group, layout) if dialect.image else None,
        instance_type=ec2.InstanceType(instance_type.name) if names_type else None,
        instance_profile=instance_profile if dialect.instance_profile else None,
        user_data=_user_data(dialect, user_data, more_user_data),
        require_imdsv2=True,
        http_put_response_hop_limit=dialect.metadata_hops,
        block_devices=[
            ec2.BlockDevice(
                device_name=_root_device_name(node_group, instance_type, dialect),
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
    if not dialect.resolves_image and (template.image_id or "").startswith("resolve:ssm:"):
        raise ValueError(f"node group {node_group.name!r}: {IMAGE_AT_LAUNCH}")
    # ec2.LaunchTemplate knows one interface only, and nothing of reservations. Groups stand on each interface,
    # since EC2 refuses them at the top beside interfaces.
    subnet = {"SubnetId": network.node_subnet.subnet_id} if dialect.subnet else {}
    added: dict[str, Any] = {
        "NetworkInterfaces": [
            {
                **({"NetworkCardIndex": interface.card} if dialect.first_card or interface.card else {}),
                "DeviceIndex": interface.device,
                "InterfaceType": interface.interface_type,
                "Groups": [network.security_group.security_group_id, *security_groups],
                "DeleteOnTermination": True,
                **subnet,
            }
            for interface in layout.interfaces
        ],
        **_reservation(dialect, reserved),
        **node_group.capacity.launch_template_data,
    }
    if placement_group is not None and dialect.placement_group:
        added["Placement"] = {"GroupName": placement_group}
    for name, value in added.items():
        default_child(template).add_property_override(f"LaunchTemplateData.{name}", value)
    return template


def _user_data(
    dialect: LaunchTemplateDialect, script: ec2.UserData, more: Sequence[ec2.MultipartBody]
) -> ec2.UserData:
    if dialect.user_data is UserDataForm.SHELL:
        return script
    archive = ec2.MultipartUserData()
    for part in more:
        archive.add_part(part)
    # As plain text: encoded, a script would take a third more of the 16 KiB that user data has.
    archive.add_part(
        ec2.MultipartBody.from_raw_body(content_type='text/x-shellscript; charset="utf-8"', body=script.render())
    )
    return archive


def _reservation(dialect: LaunchTemplateDialect, reserved: Reserved) -> Mapping[str, Any]:
    if not dialect.reservation:
        return {}
    if reserved.reservation_id is not None:
        target = {"CapacityReservationId": reserved.reservation_id}
    elif reserved.resource_group is not None:
        target = {"CapacityReservationResourceGroupArn": reserved.resource_group.attr_arn}
    else:
        return {}
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}


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


def _root_device_name(node_group: NodeGroup, info: InstanceTypeInfo, dialect: LaunchTemplateDialect) -> str:
    # Most images that users build are AWS's with something added, or one of AWS's by its id.
    public = public_image(info)
    usual = _USUAL_ROOT_DEVICE if public is None else public.root_device_name
    return node_group.root_device_name or dialect.root_device_name or usual
