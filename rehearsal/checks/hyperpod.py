"""The instance groups of HyperPod: how many nodes of which type there are, and which partition has them."""

from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.checks.owners import counts
from rehearsal.templates import of_type


def _said(deployment: Deployment) -> Facts:
    count = counts(deployment)
    return {
        group["InstanceGroupName"]: {
            "count_running": count[group["InstanceGroupName"]],
            "instance_type": group["InstanceType"],
            "partition": next(iter(group.get("SlurmConfig", {}).get("PartitionNames", [])), None),
        }
        for cluster in of_type(deployment.resources, "AWS::SageMaker::Cluster")
        for group in cluster.properties["InstanceGroups"]
        if group["InstanceGroupName"] in count
    }


INSTANCE_GROUPS = Check(
    "instance group",
    _said,
    lambda deployment: {
        group["name"]: group for group in deployment.found["node_groups"] if group.get("on_hyperpod")
    },
)
