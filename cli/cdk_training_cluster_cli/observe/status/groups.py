"""The node groups: how many nodes each has and should have, why, and the capacity that is reserved for it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from cdk_training_cluster_cli.core.output import Table
from cdk_training_cluster_cli.observe.ages import moment, moment_text, span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cluster_contract.state import PowerState


class NodeGroups(Part[Mapping[str, Any]]):
    """What the power function says."""

    key = "node_groups"
    title = "Node groups"

    def ask(self, cluster: Deployed) -> Mapping[str, Any] | None:
        """Ask the power function."""
        return cluster.ask("power")

    def values(self, answer: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as for Part
        """Return what is said of each group, and what could not be read."""
        return {"groups": answer["node_groups"], "failures": answer.get("failures", [])}

    def lines(self, answer: Mapping[str, Any], moment: Moment) -> Iterator[Item]:
        """Yield the groups, who gave those that do not run their state, and their reservations."""
        groups = answer["node_groups"]
        yield Table(
            title="",
            headings=("Group", "Nodes", "State", "Now"),
            rows=tuple(
                (one["node_group"], f"{one['in_service']} of {one['wanted']}", one["state"] or "new", _reason(one))
                for one in groups
            ),
        )
        for one in groups:
            yield from _state(one)
            yield from _schedule(one)
            yield from (_reservation(one["node_group"], each, moment.now) for each in one.get("reservations", ()))
        yield from (f"unknown: {failure}" for failure in answer.get("failures", ()))


def _reason(group: Mapping[str, Any]) -> str:
    """Return why a group is as it is, without the group's name, which stands before it."""
    name, reason = group["node_group"], str(group["reason"])
    return reason.removeprefix(f"{name}: ").removeprefix(f"{name} ")


def _state(group: Mapping[str, Any]) -> Iterator[str]:
    if group["state"] in (PowerState.STOPPED, PowerState.LIMITED):
        since = group.get("ordered_at") or group.get("since")
        yield f"{group['node_group']}: {group['state']} by {group['by']} since {since}: {group['why']}."


def _schedule(group: Mapping[str, Any]) -> Iterator[str]:
    schedule = group.get("schedule")
    if schedule:
        at = f" at {schedule['next_edge']}" if schedule["next_edge"] else ""
        following = f"; {schedule['then']}{at}" if schedule["then"] else ""
        yield f"{group['node_group']}: schedule {schedule['words']}: {schedule['now']}{following}"


def _reservation(group: str, one: Mapping[str, Any], now: datetime) -> str:
    used = "" if one["used"] is None else f"{one['used']} of "
    starts, ends = moment(one["starts"]), moment(one["ends"])
    parts = [f"{group}: {one['id']} is {one['state']}, {used}{one['instances']} instances used"]
    if not used:
        parts = [f"{group}: {one['id']} is {one['state']}, with {one['instances']} instances"]
    if starts and starts > now:
        parts.append(f"starts in {span(starts - now)} ({moment_text(starts)})")
    if ends:
        parts.append(
            f"ends in {span(ends - now)} ({moment_text(ends)})" if ends > now else f"ended {moment_text(ends)}"
        )
    return ", ".join(parts)
