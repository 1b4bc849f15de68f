"""Read the values of a deployed cluster that its Kubernetes folder needs."""

from collections.abc import Mapping

from cdk_training_cluster.orchestrators.eks.node_groups import NODE_GROUP_LABEL
from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_manifests.kubernetes.reading import known_values

_OUTPUTS: Mapping[str, str] = {"NodeSecurityGroupId": "NODE_SECURITY_GROUP_ID", "NodeSubnetId": "NODE_SUBNET_ID"}
"""The values that are outputs of the foundation's stack, by the name of the output."""


def deployed_values(cluster: ClusterFile, target: Target) -> Mapping[str, str]:
    """Return the values that the deployed cluster has: of its file system, network and Karpenter's nodes.

    Args:
        cluster: What the file says.
        target: The cluster, and the user's credentials.

    Raises:
        ValueError: A stack is not deployed, or AWS refuses.
    """
    name = cluster.foundation_stack_name
    missing = {
        "ValidationError": f"the stack {name} is not deployed in {cluster.region} with these credentials: "
        "deploy it first"
    }
    with plain_refusals(f"the stack {name}", missing):
        (stack,) = target.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}
    found = dict(known_values(cluster)) | {
        place: outputs[output] for output, place in _OUTPUTS.items() if output in outputs
    }
    identity = outputs.get("FileSystemId")
    if identity is not None:
        with plain_refusals(f"the file system {identity}", {}):
            (system,) = target.client("fsx").describe_file_systems(FileSystemIds=[identity])["FileSystems"]
        found |= {
            "FILE_SYSTEM_ID": identity,
            "FILE_SYSTEM_DNS_NAME": system["DNSName"],
            "FILE_SYSTEM_MOUNT_NAME": system["LustreConfiguration"]["MountName"],
        }
    if cluster.orchestrator.eks is not None and cluster.orchestrator.eks.kubernetes.karpenter:
        found |= _of_nodes(cluster, target)
    return found


def _of_nodes(cluster: ClusterFile, target: Target) -> Mapping[str, str]:
    """Return the role of the nodes and the security group of an EKS cluster; what is not one is left out."""
    name, eks = cluster.name, target.client("eks")
    missing = {
        "ResourceNotFoundException": f"the EKS cluster {name} is not deployed in {cluster.region} with these "
        "credentials: deploy it first"
    }
    with plain_refusals(f"the EKS cluster {name}", missing):
        network = eks.describe_cluster(name=name)["cluster"]["resourcesVpcConfig"]
        deployed = [
            eks.describe_nodegroup(clusterName=name, nodegroupName=each)["nodegroup"]
            for each in eks.list_nodegroups(clusterName=name)["nodegroups"]
        ]
    own = {group.name for group in cluster.node_groups}
    groups = [each for each in deployed if each.get("labels", {}).get(NODE_GROUP_LABEL) in own]
    found = {
        "NODE_ROLE_NAME": {each["nodeRole"].rpartition("/")[2] for each in groups},
        "CLUSTER_SECURITY_GROUP_ID": {network["clusterSecurityGroupId"]},
    }
    return {key: values.pop() for key, values in found.items() if len(values) == 1}
