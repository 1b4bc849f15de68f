"""HyperPod's task governance, whose add-on brings Kueue and makes a namespace and queues for each team's quota."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes

# https://github.com/aws/sagemaker-hyperpod-cli/blob/v3.9.0/src/sagemaker/hyperpod/cli/constants/command_constants.py
_QUEUE_SUFFIX, _PRIORITY_SUFFIX = "-localqueue", "-priority"


@dataclass(frozen=True, kw_only=True)
class Governance:
    """What task governance is told.

    Attributes:
        priority_classes: The weights of its priority classes, by name.
    """

    priority_classes: Mapping[str, int]

    @property
    def lowest_priority(self) -> str:
        """The priority of jobs that preempt no others.

        Source: https://github.com/aws-samples/awsome-distributed-training/tree/main/1.architectures/7.sagemaker-hyperpod-eks/task-governance
        """
        return min(self.priority_classes, key=lambda name: self.priority_classes[name]) + _PRIORITY_SUFFIX

    def queue(self, namespace: str) -> str:
        """Return the queue in the namespace of a team.

        Args:
            namespace: The namespace.
        """
        return f"{namespace}{_QUEUE_SUFFIX}"


def quota_command(
    cluster_name: str,
    region: str,
    team: str,
    nodes: Mapping[str, int],
    groups: Mapping[str, GroupNodes],
    *,
    borrow: bool,
) -> str:
    """Return the command that makes the quota of a team, and with it its namespace and queues.

    Args:
        cluster_name: The name of the HyperPod cluster.
        region: Its region.
        team: The team.
        nodes: How many nodes of each group are its own.
        groups: The groups, by name.
        borrow: Whether its jobs may use what others leave idle.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateComputeQuota.html
    """
    counts: Counter[str] = Counter()
    for name, count in nodes.items():
        counts[f"ml.{groups[name].info.name}"] += count
    quota = {
        "ComputeQuotaResources": [{"InstanceType": each, "Count": count} for each, count in sorted(counts.items())],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow" if borrow else "Lend"},
        "PreemptTeamTasks": "LowerPriority",
    }
    arn = (
        f'"$(aws sagemaker describe-cluster --region {region} --cluster-name {cluster_name} --query ClusterArn '
        '--output text)"'
    )
    return (
        f"aws sagemaker create-compute-quota --region {region} --name {team} --cluster-arn {arn} "
        f"--compute-quota-target TeamName={team} --compute-quota-config {shlex.quote(json.dumps(quota))}"
    )
