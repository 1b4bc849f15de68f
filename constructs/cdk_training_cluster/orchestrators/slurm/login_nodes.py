"""The nodes that users of a cluster's Slurm log in to."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.core.acknowledgements import default_child
from cdk_training_cluster.instance_types import InstanceTypeInfo, NetworkCard
from cdk_training_cluster.nodes.bootstrap import NodeBootstrap
from cdk_training_cluster.nodes.images import pcs_image
from cdk_training_cluster.orchestrators.slurm.rules import LOGIN_GROUP
from cdk_training_cluster.orchestrators.slurm.settings import LoginNodes
from cluster_contract.tags import CLUSTER_TAG


def make_login_group(
    base: ClusterBase,
    shared: SharedParts,
    slurm: pcs.CfnCluster,
    login: LoginNodes,
    *,
    scripts_after: Sequence[Path],
) -> pcs.CfnComputeNodeGroup:
    """Make the compute node group of the login nodes, which is in no queue.

    Args:
        base: What the training cluster has.
        shared: What its nodes share.
        slurm: The cluster of AWS PCS.
        login: What the nodes are.
        scripts_after: Files to run as root when a node is set up.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/working-with_login-nodes_compute-node-groups.html
    """
    scope = Construct(base.scope, "Login")
    info, image = _type_of(login), pcs_image(login.architecture)
    bootstrap = NodeBootstrap(
        scope,
        "Bootstrap",
        cluster_name=base.cluster_name,
        node_group=LOGIN_GROUP,
        role=shared.role,
        job_role=shared.job_role,
        instance_type=info,
        mount=base.mount,
        scripts_after=scripts_after,
    )
    user_data = ec2.MultipartUserData()
    user_data.add_part(
        ec2.MultipartBody.from_raw_body(
            content_type='text/x-shellscript; charset="utf-8"', body=bootstrap.user_data.render()
        )
    )
    volume = ec2.BlockDeviceVolume.ebs(
        login.root_volume_gib,
        volume_type=ec2.EbsDeviceVolumeType.GP3,
        encrypted=True,
        kms_key=base.encryption_key,
        delete_on_termination=True,
    )
    template = ec2.LaunchTemplate(
        scope,
        "LaunchTemplate",
        machine_image=login.machine_image or ec2.MachineImage.from_ssm_parameter(image.parameter_name),
        user_data=user_data,
        require_imdsv2=True,
        block_devices=[ec2.BlockDevice(device_name=image.root_device_name, volume=volume)],
    )
    # An EfaSecurityGroup is no ec2.ISecurityGroup, and PCS wants groups on each interface.
    # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_networking_sg.html
    interface = {
        "DeviceIndex": 0,
        "Groups": [base.network.security_group.security_group_id],
        "DeleteOnTermination": True,
    }
    default_child(template).add_property_override("LaunchTemplateData.NetworkInterfaces", [interface])
    Tags.of(scope).add("Name", f"{base.cluster_name}/{LOGIN_GROUP}", priority=_ABOVE_DEFAULT)
    # The functions take what has the cluster's tag for nodes of it, and would report that it idles.
    Tags.of(template).remove(CLUSTER_TAG, priority=_ABOVE_DEFAULT)
    group = pcs.CfnComputeNodeGroup(
        scope,
        "ComputeNodeGroup",
        name=LOGIN_GROUP,
        cluster_id=slurm.attr_id,
        subnet_ids=[base.network.node_subnet.subnet_id],
        iam_instance_profile_arn=shared.instance_profile.instance_profile_arn,
        custom_launch_template=pcs.CfnComputeNodeGroup.CustomLaunchTemplateProperty(
            template_id=template.launch_template_id, version=template.latest_version_number
        ),
        instance_configs=[pcs.CfnComputeNodeGroup.InstanceConfigProperty(instance_type=info.name)],
        scaling_configuration=pcs.CfnComputeNodeGroup.ScalingConfigurationProperty(
            min_instance_count=login.count, max_instance_count=login.count
        ),
        purchase_option="ONDEMAND",
    )
    group.node.add_dependency(*base.network.way_out)
    if base.file_system is not None:
        group.node.add_dependency(*base.file_system.access_rules)
    return group


_ABOVE_DEFAULT = 200


def _type_of(login: LoginNodes) -> InstanceTypeInfo:
    """Return what set-up needs to know of a type without accelerators, which the catalog does not have."""
    card = NetworkCard(index=0, maximum_interfaces=None, interface_types=("interface",), baseline_gbps=1)
    return InstanceTypeInfo(
        name=login.instance_type, vcpus=1, memory_mib=1, architectures=(login.architecture,), network_cards=(card,)
    )
