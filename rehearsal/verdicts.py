"""What a rehearsal makes of what it has seen: pure functions that say what is wrong, a sentence each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from cdk_training_cluster_file import ClusterFile
from rehearsal.inventory import KINDS, Inventory

BILLED = ("NAT gateways", "addresses", "nodes", "volumes", "capacity reservations")
"""What costs money by the hour whether it is used or not; the file system is kept on purpose."""

# What a kept file system lives in, is reached through, and is fed from.
_KEPT_WITH_DATA = (
    *("file systems", "VPCs", "subnets", "route tables", "internet gateways", "endpoints"),
    *("security groups", "log groups", "buckets"),
)


def changed_by_second_deployment(
    before: Mapping[str, Any], after: Mapping[str, Any], inventories: tuple[Inventory, Inventory], unchanged: int
) -> list[str]:
    """Say what a second deployment of the same file changed.

    Args:
        before: What was read back before it.
        after: What was read back after it.
        inventories: What there was before it, and after.
        unchanged: How many stacks the CDK CLI found nothing to change in.
    """
    differences = [f"a second deployment changed {key}" for key in before if before[key] != after.get(key)]
    stacks = len(before["stacks"])
    if unchanged != stacks:
        differences.append(f"a second deployment found {unchanged} stacks unchanged, not {stacks}")
    earlier, later = inventories
    differences += [f"a second deployment {verb} {name}" for verb, name in _changes(earlier, later)]
    return differences + [
        f"a second deployment added {_one(kind)} {name}" for kind in KINDS for name in _new(kind, later, earlier)
    ]


def stopped_and_resumed(
    before: Sequence[Mapping[str, Any]],
    stopped: Collection[str],
    sizes: Mapping[str, int],
    after_deploy: Mapping[str, int],
    resumed: Mapping[str, str],
) -> list[str]:
    """Say what is wrong with node groups that were stopped because they were idle, deployed again, and resumed.

    Args:
        before: The node groups as they were before.
        stopped: The ids of the nodes that the idle function says it stopped.
        sizes: How many nodes each group had then.
        after_deploy: How many it had after one more deployment.
        resumed: How the runbook ended.
    """
    differences = []
    for group in before:
        name, nodes = group["name"], set(group["instance_ids"])
        gone = len(nodes & set(stopped))
        if sizes.get(name) != len(nodes) - gone:
            differences.append(
                f"node group {name} has {sizes.get(name)} nodes after an idle stop of {gone} of its {len(nodes)}"
            )
    if after_deploy != sizes:
        differences.append(
            f"a deployment changed stopped node groups from {dict(sizes)} to {dict(after_deploy)} nodes"
        )
    if resumed["status"] != "Success":
        differences.append(f"the runbook {resumed['document']} ended with {resumed['status']}: {resumed['message']}")
    return differences


def cluster_destroyed(
    cluster: ClusterFile,
    deployed: Mapping[str, Any],
    left: Mapping[str, Any],
    inventories: tuple[Inventory, Inventory],
) -> list[str]:
    """Say what is wrong when the cluster stack is gone: all has to be as when the foundation stood alone.

    Args:
        cluster: The cluster file.
        deployed: What was read back before.
        left: What was read back after.
        inventories: What there was before the cluster stack was deployed, and after it was destroyed.
    """
    differences = []
    stacks = sorted(left["stacks"])
    if stacks != [cluster.foundation_stack_name]:
        differences.append(f"the stacks are {', '.join(stacks) or 'none'}, not {cluster.foundation_stack_name} alone")
    differences += [f"node group {group['name']} was left" for group in left["node_groups"]]
    for key, what in (("file_system", "the file system"), ("datasets", "its datasets")):
        if left[key] != deployed[key]:
            differences.append(f"{what} changed")
    before, after = inventories
    differences += [f"{name} was {verb}" for verb, name in _changes(before, after)]
    differences += [
        f"{_one(kind)} {name} was left{_bill(kind)}" for kind in KINDS for name in _new(kind, after, before)
    ]
    return [f"after the cluster stack was destroyed: {difference}" for difference in differences]


def foundation_destroyed(cluster: ClusterFile, theirs: Inventory, whole: Inventory, left: Inventory) -> list[str]:
    """Say what is wrong when both stacks are gone.

    The state table has to be there; with a file system that too, and all that it lives in and is fed from, unchanged.
    Nothing else is kept. What bills by the hour is gone either way, and what was there before the cluster is as it
    was.

    Args:
        cluster: The cluster file.
        theirs: What there was before the cluster was deployed at all.
        whole: What there was while the foundation stood alone.
        left: What there is now.
    """
    differences = [f"{name}, which the cluster did not make, was {verb}" for verb, name in _changes(theirs, left)]
    kept = ("state tables", *(_KEPT_WITH_DATA if cluster.file_system else ()))
    for kind in KINDS:
        made = _new(kind, whole, theirs)
        remaining = _new(kind, left, theirs)
        if kind not in kept:
            differences += [f"{_one(kind)} {name} was left{_bill(kind)}" for name in remaining]
            continue
        if not made and kind in _to_keep(cluster):
            differences.append(f"there were no {kind} to keep")
        for name in made:
            if name not in left[kind]:
                differences.append(f"{_one(kind)} {name} was not kept")
            elif _lasting(kind, whole[kind][name]) != _lasting(kind, left[kind][name]):
                differences.append(f"{_one(kind)} {name} was kept, but not as it was")
        differences += [f"{_one(kind)} {name} appeared" for name in remaining if name not in whole[kind]]
    return differences


def _to_keep(cluster: ClusterFile) -> Iterator[str]:
    """Name the kinds of which something has to be kept; if nothing of one was seen, the look was not a good one."""
    yield "state tables"
    if cluster.file_system is None:
        return
    yield from ("file systems", "security groups")
    if cluster.network is None:
        yield from ("VPCs", "subnets", "route tables", "internet gateways", "endpoints", "log groups")
    if any(dataset.bucket is None for dataset in cluster.datasets):
        yield "buckets"


def _new(kind: str, now: Inventory, before: Inventory) -> list[str]:
    return [name for name in now[kind] if name not in before[kind]]


def _changes(before: Inventory, after: Inventory) -> Iterator[tuple[str, str]]:
    """Yield what became of what was there: a verb, and the thing's kind and name."""
    for kind in KINDS:
        for name, content in before[kind].items():
            if name not in after[kind]:
                yield "removed", f"{_one(kind)} {name}"
            elif after[kind][name] != content:
                yield "changed", f"{_one(kind)} {name}"


def _lasting(kind: str, content: Any) -> Any:
    """Leave out of something what goes although the thing is kept: the way out through the NAT gateway."""
    if kind != "route tables":
        return content
    routes = [route for route in content["Routes"] if "NatGatewayId" not in route]
    return {**content, "Routes": routes}


def _one(kind: str) -> str:
    return "address" if kind == "addresses" else kind.removesuffix("s")


def _bill(kind: str) -> str:
    return " although it bills by the hour" if kind in BILLED else ""
