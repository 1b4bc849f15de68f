"""Namespaces a team, what their pods may ask for, and which of them go first."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster, Team
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object

PRIORITIES: Mapping[str, tuple[int, str]] = {
    "urgent": (3000, "Preempts the jobs of its team that are not urgent."),
    "normal": (2000, "What a job has that says nothing."),
    "background": (1000, "Runs on what no other job needs, and is preempted first: keep checkpoints."),
}
"""The priorities of jobs, the highest first, each with its value and what it is for."""

TEAM_LABEL = {"cdk-training-cluster/team": "true"}
"""The label of the namespaces of teams."""

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
"""What names the queue of a job with Volcano."""

_MILLI, _MEBI = "m", "Mi"


def total(wanted: KubernetesCluster, nodes: Mapping[str, int]) -> dict[str, str]:
    """Return what some nodes of each group offer together, by the resource's name.

    Args:
        wanted: The cluster.
        nodes: How many nodes, by group.
    """
    sums: Counter[str] = Counter()
    for group in wanted.groups:
        for name, quantity in group.of_nodes(nodes[group.name]).items():
            sums[name] += number(quantity)
    return {name: written(name, amount) for name, amount in sums.items()}


def number(quantity: str) -> int:
    """Return the number of a quantity, whose unit its resource says.

    Args:
        quantity: Such as `4000m`, `8192Mi` or `8`.
    """
    return int(quantity.removesuffix(_MILLI).removesuffix(_MEBI))


def written(name: str, amount: int) -> str:
    """Return a quantity of a resource with its unit.

    Args:
        name: The resource.
        amount: Thousandths of CPUs, MiB of memory and huge pages, or whole devices.
    """
    if name == "cpu":
        return f"{amount}{_MILLI}"
    return f"{amount}{_MEBI}" if name == "memory" or name.startswith("hugepages-") else str(amount)


def namespaces(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return a namespace for each team.

    Args:
        wanted: The cluster.
    """
    made = [an_object("Namespace", team.namespace, labels=TEAM_LABEL) for team in wanted.teams]
    if wanted.settings.queues == "volcano":
        # The queue of pods that name none: https://github.com/volcano-sh/volcano/pull/2268
        for each, team in zip(made, wanted.teams, strict=True):
            each["metadata"]["annotations"] = {QUEUE_ANNOTATION: team.name}
    return made


def limits(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return what the pods of each team may ask for: together, and one of them.

    Args:
        wanted: The cluster.
    """
    return [each for team in wanted.teams for each in (_quota(wanted, team), _range(wanted, team))]


def _quota(wanted: KubernetesCluster, team: Team) -> Object:
    # Of extended resources a quota knows requests alone.
    # https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources
    most = total(wanted, wanted.usable(team))
    return an_object(
        "ResourceQuota",
        "nodes",
        namespace=team.namespace,
        spec={"hard": {f"requests.{name}": amount for name, amount in most.items()}},
    )


def _range(wanted: KubernetesCluster, team: Team) -> Object:
    """Return defaults, without which the quota refuses a pod that asks for nothing, and one node as the most."""
    cpu = max(number(each.whole_node["cpu"]) for each in wanted.groups)
    memory = max(number(each.whole_node["memory"]) for each in wanted.groups)
    limit = {
        "type": "Container",
        "defaultRequest": {"cpu": "1", "memory": "4Gi"},
        "default": {"memory": "4Gi"},
        "max": {"memory": written("memory", memory), "cpu": written("cpu", cpu)},
    }
    return an_object("LimitRange", "containers", namespace=team.namespace, spec={"limits": [limit]})


def priorities(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return the priorities of pods, and with Kueue those of jobs.

    Args:
        wanted: The cluster.
    """
    made = [
        an_object(
            "PriorityClass",
            name,
            api="scheduling.k8s.io/v1",
            value=value,
            globalDefault=False,
            # With Kueue jobs give way as a whole, and pods of one that was admitted never push another's away.
            preemptionPolicy="Never" if wanted.settings.queues == "kueue" else "PreemptLowerPriority",
            description=about,
        )
        for name, (value, about) in PRIORITIES.items()
    ]
    if wanted.settings.queues == "kueue":
        made += [
            an_object("WorkloadPriorityClass", name, api="kueue.x-k8s.io/v1beta2", value=value, description=about)
            for name, (value, about) in PRIORITIES.items()
        ]
    return made
