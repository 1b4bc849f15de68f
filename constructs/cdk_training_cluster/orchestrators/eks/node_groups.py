"""The managed node groups of an EKS cluster: one for each node group, on the library's own launch templates."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes import NodeGroup
from cdk_training_cluster.nodes.fleet import Fleet
from cdk_training_cluster.orchestrators.eks.control_plane import SERVICE_RANGE
from cdk_training_cluster.orchestrators.eks.images import ami_type
from cdk_training_cluster.orchestrators.eks.rules import MAX_NODES
from cdk_training_cluster.orchestrators.eks.settings import EksSettings
from cluster_contract.eks import eks_options

NODE_GROUP_LABEL = "cdk-training-cluster/node-group"
"""The Kubernetes label of every node: the name of its node group, or `system`."""

SPOT_TAINT = "cdk-training-cluster/spot"
"""The key of the taint of Spot nodes: jobs that outlive an interruption tolerate it."""

GPU_ACCESS = Path(__file__).parent / "scripts" / "gpu_access.sh"
"""The script that lets a container use the GPUs that the device plugin mounts into it alone.

Images of EKS before v20260423 give all GPUs to each container with `NVIDIA_VISIBLE_DEVICES=all`. Later images ignore
this variable, which the device plugin sets by default. The settings of the script fit all images.

Source: https://github.com/awslabs/amazon-eks-ami/issues/2706
"""


def make_managed_node_group(
    fleet: Fleet, cluster: eks.CfnCluster, settings: EksSettings, template: ec2.LaunchTemplate
) -> eks.CfnNodegroup:
    """Make the managed node group of a node group, with no nodes.

    Args:
        fleet: The group's construct.
        cluster: The EKS cluster.
        settings: What that is like.
        template: The launch template.
    """
    group, info, made = fleet.node_group, fleet.instance_type, eks.CfnNodegroup
    own_image = group.machine_image is None
    return made(
        fleet,
        "NodeGroup",
        cluster_name=cluster.ref,
        node_role=fleet.role.role_arn,
        subnets=[fleet.network.node_subnet.subnet_id],
        capacity_type=capacity_type(group),
        # In one place: a Capacity Block's template has to name the type.
        instance_types=None if group.capacity.block_id else [*group.instance_types],
        ami_type=ami_type(info) if own_image else None,
        release_version=settings.release_version if own_image else None,
        version=settings.kubernetes_version if own_image else None,
        launch_template=made.LaunchTemplateSpecificationProperty(
            id=template.launch_template_id, version=template.latest_version_number
        ),
        # EKS makes a group with all sizes or none, and DesiredSize ends every node when an update sends it again. An
        # update of a size does (https://github.com/eksctl-io/eksctl/issues/3532), and whether one of labels, of the
        # repair or of the warm pool does no document says. So nothing that UpdateNodegroupConfig changes follows a
        # setting here: the power function sends these, with the group's count.
        # https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html
        scaling_config=made.ScalingConfigProperty(min_size=0, desired_size=0, max_size=MAX_NODES),
        labels=_fixed_labels(group, info),
        taints=[
            made.TaintProperty(key=key, value=value, effect="NO_SCHEDULE")
            for key, value in taints(group, info).items()
        ],
        # Reserved accelerators leave no room for a second set of nodes, and a gang that lost one node has ended:
        # a new launch template replaces all nodes at once, the old ones first.
        # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
        update_config=made.UpdateConfigProperty(max_unavailable_percentage=100, update_strategy="MINIMAL"),
    )


def owner_options(group: NodeGroup, info: InstanceTypeInfo, settings: EksSettings) -> tuple[str, ...]:
    """Return what the power function sends to a node group with its size.

    Args:
        group: The group.
        info: The facts about its first type.
        settings: What the EKS cluster is like.
    """
    return eks_options(
        repairs=settings.node_repair,
        nvidia=info.has_nvidia_gpus,
        warm_nodes=None if group.warm_pool is None else group.warm_pool.size,
        labels=_sharing_labels(group),
    )


def node_config(cluster: eks.CfnCluster, group: NodeGroup, info: InstanceTypeInfo) -> ec2.MultipartBody | None:
    """Return the part of the user data that nodeadm reads, which joins a node to the cluster. None: EKS's suffices.

    Args:
        cluster: The EKS cluster.
        group: The node group.
        info: The facts about its first type.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
    """
    spec = "".join(_spec(cluster, group, info))
    if not spec:
        return None
    body = f"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n{spec}"
    return ec2.MultipartBody.from_raw_body(content_type="application/node.eks.aws", body=body)


def _spec(cluster: eks.CfnCluster, group: NodeGroup, info: InstanceTypeInfo) -> Iterator[str]:
    if group.machine_image is not None:
        # EKS adds nothing to the user data of such nodes, and taints them only after they have joined.
        # https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-custom-ami
        tainted = ",".join(f"{key}={value}:NoSchedule" for key, value in taints(group, info).items())
        yield "  cluster:\n"
        yield f"    name: {cluster.ref}\n"
        yield f"    apiServerEndpoint: {cluster.attr_endpoint}\n"
        yield f"    certificateAuthority: {cluster.attr_certificate_authority_data}\n"
        yield f"    cidr: {SERVICE_RANGE}\n"
        if tainted:
            yield f"  kubelet:\n    flags:\n    - --register-with-taints={tainted}\n"
    if nodeadm_takes_disks(group, info):
        yield "  instance:\n    localStorage:\n      strategy: RAID0\n"


def nodeadm_takes_disks(group: NodeGroup, info: InstanceTypeInfo) -> bool:
    """Say whether nodeadm joins a node's local NVMe disks, for images of containers and their temporary files.

    Not beside a warm pool: a stop empties these disks and leaves nodeadm's record of them on the root volume, with
    which it makes no file system again, and the node would come back without Kubernetes.

    Args:
        group: The group.
        info: The facts about its first type.

    Source: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/system/local_disk.go
    """
    return info.instance_store_nvme and group.warm_pool is None


def capacity_type(group: NodeGroup) -> str:
    """Return what EKS calls the way in which a group is bought.

    Args:
        group: The group.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """
    if group.capacity.block_id is not None:
        return "CAPACITY_BLOCK"
    return "SPOT" if group.capacity.uses_spot else "ON_DEMAND"


def labels(group: NodeGroup, info: InstanceTypeInfo) -> Mapping[str, str]:
    """Return the Kubernetes labels of a group's nodes.

    Args:
        group: The group.
        info: The facts about its first type.
    """
    return {**_fixed_labels(group, info), **_sharing_labels(group)}


def _fixed_labels(group: NodeGroup, info: InstanceTypeInfo) -> Mapping[str, str]:
    # The second is what NVIDIA's device plugin looks for.
    # https://github.com/NVIDIA/k8s-device-plugin/blob/main/deployments/helm/nvidia-device-plugin/values.yaml
    accelerators = {"nvidia.com/gpu.present": "true"} if info.has_nvidia_gpus else {}
    return {NODE_GROUP_LABEL: group.name, **accelerators}


def _sharing_labels(group: NodeGroup) -> Mapping[str, str]:
    return {} if group.gpu_sharing is None else group.gpu_sharing.kubernetes_labels(group.name)


def taints(group: NodeGroup, info: InstanceTypeInfo) -> Mapping[str, str]:
    """Return the taints of a group's nodes, by key: pods that do not ask for accelerators stay off them.

    Args:
        group: The group.
        info: The facts about its first type.
    """
    found = {}
    if info.has_nvidia_gpus:
        found["nvidia.com/gpu"] = "present"
    if info.has_neuron_devices:
        found["aws.amazon.com/neuron"] = "present"
    if group.capacity.uses_spot:
        found[SPOT_TAINT] = "true"
    return found
