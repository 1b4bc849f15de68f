"""Queues of Volcano: one a team, with its own nodes and what it may borrow."""

from collections.abc import Sequence

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object
from cdk_training_cluster_manifests.kubernetes.quotas import total

# Volcano's own, with queues that are measured in resources instead of weights, and full nodes first.
# https://volcano.sh/en/docs/queue_resource_management/
SCHEDULER = """\
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: capacity
  - name: binpack
    arguments:
      binpack.resources: nvidia.com/gpu, aws.amazon.com/neuron
      binpack.resources.nvidia.com/gpu: 10
      binpack.resources.aws.amazon.com/neuron: 10
"""


def volcano_queues(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return the queues.

    Args:
        wanted: The cluster.
    """
    return [
        an_object(
            "Queue",
            team.name,
            api="scheduling.volcano.sh/v1beta1",
            spec={
                "reclaimable": True,
                "deserved": total(wanted, team.nodes),
                "capability": total(wanted, wanted.usable(team)),
            },
        )
        for team in wanted.teams
    ]
