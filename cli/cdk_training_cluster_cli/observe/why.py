"""`training-cluster why`: why a node failed to start, was stopped or is missing, from all that knows of it."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.output import check_format, json_text, print_paragraph, terminal
from cdk_training_cluster_cli.core.times import parse_span
from cdk_training_cluster_cli.observe.ages import LONGEST, clock, moment_text
from cdk_training_cluster_cli.observe.console import console_output, failed_steps, no_instance, node_id
from cdk_training_cluster_cli.observe.deployed import Deployed, deployed, read_all
from cdk_training_cluster_cli.observe.history import Happening, activities, fleet_events, happening
from cdk_training_cluster_cli.observe.records import by_time, quoted, read_records
from cdk_training_cluster_cli.observe.status.nodes import NodeStatus, find_nodes, node_of
from cluster_contract.state import PowerState

_FORMATS = ("table", "json")
_NODE = re.compile(r"i-[0-9a-f]{8,17}")
# Each console is a request of its own.
_CONSOLES = 8
# Of what was tried again and again the last is enough.
_ACTIVITIES = 5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that says why.

    Attributes:
        source: What says it.
        text: What it says.
        time: When it happened. None: it is so now.
    """

    source: str
    text: str
    time: datetime | None = None


Asked = Mapping[str, Callable[[], Iterator[Finding]]]
"""What is asked, by what it is called where it cannot be read."""


def run(
    cluster: str, subject: str | None, *, since: str, region: str | None, profile: str | None, output: str
) -> None:
    """Show on standard output why a node or node group is as it is.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        subject: A node's id, or the name of a node group. None: every node group that lacks nodes.
        since: How far to look back, such as `24h`.
        region: The region. None: the file's, or the AWS configuration's.
        profile: The profile of the AWS configuration. None: the default one.
        output: How to show it: `table` or `json`.

    Raises:
        ValueError: A setting is not allowed, or the cluster, node or node group is not found.
        ClusterFileError: The file is wrong.
    """
    check_format(output, option="--output", formats=_FORMATS)
    length = parse_span("--since", since, most=LONGEST)
    asked = deployed(cluster, region=region, profile=profile, asker="why")
    findings: list[Finding] = []
    unknown: dict[str, str] = {}
    for each in short_groups(asked) if subject is None else [node_id(asked, subject)]:
        found, unread = find(asked, each, length)
        findings += found
        unknown |= unread
    if output == "json":
        said = [{**vars(one), "time": one.time and moment_text(one.time)} for one in findings]
        values = {"cluster": asked.name, "subject": subject, "findings": said, "unknown": unknown}
        sys.stdout.write(f"{json_text(values)}\n")
        return
    console = terminal()
    for one in findings:
        time = f"{clock(one.time)} " if one.time else ""
        print_paragraph(console, f"{time}{one.text}", first=f"{one.source}: ")
    if not findings:
        nothing = f"Nothing says anything of {subject} in the last {since}."
        print_paragraph(console, nothing if subject else f"No node group of {asked.name} lacks nodes.")
    for source, why in unknown.items():
        print_paragraph(console, f"unknown: {source}: {why}", style="yellow")


def short_groups(cluster: Deployed) -> list[str]:
    """Return the names of the node groups with fewer nodes in service than they should have.

    Args:
        cluster: The cluster.

    Raises:
        ValueError: The power function does not answer.
    """
    answer = cluster.ask("power") or {"node_groups": []}
    # An orchestrator that sizes a group by itself launches nodes for jobs alone.
    sized = [one for one in answer["node_groups"] if not one.get("scheduler_sized")]
    return list(dict.fromkeys(one["node_group"] for one in sized if one["in_service"] < one["wanted"]))


def find(cluster: Deployed, subject: str, since: timedelta) -> tuple[Sequence[Finding], Mapping[str, str]]:
    """Ask everything that may know, and return what it says, and why some of it cannot be asked.

    Args:
        cluster: The cluster.
        subject: A node's id, or the name of a node group.
        since: How far to look back.

    Raises:
        ValueError: There is no such node group.
    """
    sources = _of_node(cluster, subject, since) if _NODE.fullmatch(subject) else _of_group(cluster, subject, since)
    return read_all(sources)


def _of_node(cluster: Deployed, id: str, since: timedelta) -> Asked:
    return {
        "EC2": lambda: _instance(cluster, id),
        "the console": lambda: _console(cluster, id),
        "the idle function": lambda: _idle(cluster, id),
        "Auto Scaling": lambda: _last(activities(cluster, since), lambda one: id in one.what),
        "Spot Fleet": lambda: _last(_fleets(cluster, since), lambda one: id in one.what),
        "the functions' logs": lambda: _logged(cluster, id, since),
    }


def _of_group(cluster: Deployed, name: str, since: timedelta) -> Asked:
    try:
        answer = cluster.ask("power") or {"node_groups": []}
    except ValueError as error:
        # The function alone knows what owns the group's nodes.
        refused = partial(_refused, error)
        return {"the power function": refused, **_beside(cluster, name, since, ("Auto Scaling", "Spot Fleet"))}
    groups = [one for one in answer["node_groups"] if one["node_group"] == name]
    if not groups:
        known = ", ".join(dict.fromkeys(one["node_group"] for one in answer["node_groups"]))
        raise ValueError(
            f"why takes a node's id such as i-0123456789abcdef0, or a node group of {cluster.name} ({known}), got "
            f"{name!r}"
        )
    # Of other owners the power function alone says what their services report.
    named = {"auto_scaling_group": "Auto Scaling", "spot_fleet": "Spot Fleet"}
    owners = [owner for key, owner in named.items() if any(one.get(key) for one in groups)]
    if not any(one.get("owner_arn") for one in groups):
        owners = owners[:1] or ["Spot Fleet"]
    return {"the power function": lambda: _power(groups), **_beside(cluster, name, since, owners)}


def _refused(error: ValueError) -> Iterator[Finding]:
    raise error


def _beside(cluster: Deployed, name: str, since: timedelta, owners: Sequence[str]) -> Asked:
    """Return what knows of a group beside the power function."""

    def owned(owner: str) -> Iterator[Finding]:
        found = _fleets(cluster, since) if owner == "Spot Fleet" else activities(cluster, since)
        return _last(found, lambda one: one.node_group == name and one.failed)

    return {
        "the nodes": lambda: _bootstraps(cluster, name),
        **{owner: partial(owned, owner) for owner in owners},
        "the power function's log": lambda: _commands(cluster, name, since),
    }


def _instance(cluster: Deployed, id: str) -> Iterator[Finding]:
    """Yield what EC2 says of an instance, also for about an hour after it was terminated."""
    with plain_refusals(id, no_instance(cluster, id)):
        (found,) = cluster.client("ec2").describe_instances(InstanceIds=[id])["Reservations"]
    raw = found["Instances"][0]
    node = node_of(cluster, raw)
    yield Finding(source="EC2", text=_described(node))
    for reason in (raw.get("StateReason", {}).get("Message"), raw.get("StateTransitionReason")):
        if reason:
            yield Finding(source="EC2", text=str(reason))


def _described(node: NodeStatus) -> str:
    group = f" of {node.node_group}" if node.node_group else ""
    held = f" in {node.reservation}" if node.reservation else ""
    return (
        f"{node.id}{group}, {node.type}, {node.market}{held}, launched {moment_text(node.launched)}, is "
        f"{node.condition}"
    )


def _console(cluster: Deployed, id: str) -> Iterator[Finding]:
    for step in failed_steps(console_output(cluster, id)):
        yield Finding(source="console", text=step)


def _idle(cluster: Deployed, id: str) -> Iterator[Finding]:
    answer = cluster.ask("idle") or {"nodes": []}
    for one in answer["nodes"]:
        if one["instance_id"] == id:
            yield Finding(source="idle", text=str(one["reason"]))


def _fleets(cluster: Deployed, since: timedelta) -> Iterable[Happening]:
    """Return what Spot Fleets did, the newest first, as Auto Scaling lists it."""
    return reversed(list(fleet_events(cluster, since)))


def _last(newest_first: Iterable[Happening], concerns: Callable[[Happening], bool]) -> Iterator[Finding]:
    """Yield what owns the nodes did, or could not do; of what it said several times, the last."""
    last: dict[str, Happening] = {}
    for one in newest_first:
        if concerns(one):
            last.setdefault(one.what, one)
    for one in sorted(list(last.values())[:_ACTIVITIES], key=lambda one: one.time):
        yield Finding(source=one.source, text=f"{one.what} ({one.who})" if one.who else one.what, time=one.time)


def _logged(cluster: Deployed, id: str, since: timedelta) -> Iterator[Finding]:
    """Yield commands, acts and failures that name a node."""
    records = (
        record for kind in cluster.description.functions for record in read_records(cluster, kind, since, quoted(id))
    )
    for record in by_time(one for one in records if one.event is not None or one.is_error):
        told = happening(record)
        who = f" ({told.who})" if told.who else ""
        yield Finding(source=record.kind, text=f"{told.what}{who}", time=record.time)


def _power(groups: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    for one in groups:
        yield Finding(source="power", text=str(one["reason"]))
        if one["state"] in (PowerState.STOPPED, PowerState.LIMITED):
            text = f"{one['node_group']} is {one['state']} by {one['by']} since {one['ordered_at']}: {one['why']}"
            yield Finding(source="power", text=text)


def _bootstraps(cluster: Deployed, name: str) -> Iterator[Finding]:
    """Yield which nodes of a group could not be set up, the newest first, and what EC2 says of those in trouble."""
    nodes = [node for node in find_nodes(cluster) if node.node_group == name]
    for node in nodes:
        if node.condition not in ("running", "pending"):
            yield Finding(source="EC2", text=_described(node))
    for node in sorted(nodes, key=lambda node: node.launched, reverse=True)[:_CONSOLES]:
        for step in failed_steps(console_output(cluster, node.id)):
            yield Finding(source=f"console of {node.id}", text=step)


def _commands(cluster: Deployed, name: str, since: timedelta) -> Iterator[Finding]:
    """Yield the commands about a group and the sizes that the power function gave it."""
    records = (one for one in read_records(cluster, "power", since, quoted(name)) if one.event is not None)
    for told in map(happening, by_time(records)):
        if told.node_group == name:
            who = f" ({told.who})" if told.who else ""
            yield Finding(source="power", text=f"{told.what}{who}", time=told.time)
