"""Queues of Kueue: a flavour a node group, a queue a team, and idle nodes for whichever team has work."""

from collections.abc import Sequence

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster, Team
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object, plain
from cdk_training_cluster_manifests.kubernetes.quotas import number, written

_API = "kueue.x-k8s.io/v1beta2"

LOCAL_QUEUE = "jobs"
"""The queue in a team's namespace."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""What names the queue of a job."""

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""What names the priority of a job."""


def job_labels(wanted: KubernetesCluster, team: Team, priority: str) -> dict[str, str]:
    """Return the labels that put a job into its team's queue.

    Args:
        wanted: The cluster.
        team: The team.
        priority: The priority. Task governance has its own ones, and the job gets the lowest of them.
    """
    governance = wanted.governance
    if governance is not None:
        return {QUEUE_LABEL: governance.queue(team.namespace), PRIORITY_LABEL: governance.lowest_priority}
    return {QUEUE_LABEL: LOCAL_QUEUE, PRIORITY_LABEL: priority}


def kueue_queues(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return flavours, and a queue for each team.

    Args:
        wanted: The cluster.
    """
    flavors = [
        an_object(
            "ResourceFlavor",
            each.name,
            api=_API,
            spec={"nodeLabels": dict(each.node_selector), "tolerations": each.tolerations},
        )
        for each in wanted.groups
    ]
    cohort = an_object("Cohort", wanted.name, api=_API, spec={})
    queues = [each for team in wanted.teams for each in (_cluster_queue(wanted, team), _local_queue(team))]
    return [*flavors, cohort, *queues]


def _cluster_queue(wanted: KubernetesCluster, team: Team) -> Object:
    # Every flavour has every covered resource, in the same order; what a group lacks is 0 there.
    # https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#resource-groups
    covered = list(dict.fromkeys(name for each in wanted.groups for name in each.of_nodes(1)))
    flavors = [
        {
            "name": each.name,
            "resources": [
                _amount(name, each.of_nodes(team.nodes[each.name]), borrow=team.borrow) for name in covered
            ],
        }
        for each in wanted.groups
    ]
    return an_object(
        "ClusterQueue",
        team.name,
        api=_API,
        spec=plain(
            {
                "cohortName": wanted.name,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}},
                "queueingStrategy": "BestEffortFIFO",
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                # Teams borrow in proportion to what is their own.
                "fairSharing": {"weight": str(max(1, sum(team.nodes.values())))},
                "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
            }
        ),
    )


def _amount(name: str, offered: object, *, borrow: bool) -> Object:
    amount = number(offered[name]) if isinstance(offered, dict) and name in offered else 0
    limit = {} if borrow else {"borrowingLimit": written(name, 0)}
    return {"name": name, "nominalQuota": written(name, amount), **limit}


def _local_queue(team: Team) -> Object:
    return an_object("LocalQueue", LOCAL_QUEUE, api=_API, namespace=team.namespace, spec={"clusterQueue": team.name})
