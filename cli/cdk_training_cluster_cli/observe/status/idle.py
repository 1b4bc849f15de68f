"""Which nodes are idle, since when, and what keeps the idle function from stopping them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from cdk_training_cluster_cli.observe.ages import moment, short_span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part

_WORDS = {"grace": "new", "keep": "kept", "warn": "idle", "stop": "idle and due"}
# Of nodes with these verdicts a word says enough.
_PLAIN = ("busy", "grace", "keep", "managed")


class IdleClock(Part[Mapping[str, Any]]):
    """What the idle function says."""

    key = "idle"
    title = "Idle stop"

    def ask(self, cluster: Deployed) -> Mapping[str, Any] | None:
        """Ask the idle function."""
        return cluster.ask("idle")

    def notes(self, answer: Mapping[str, Any], now: datetime) -> Mapping[str, str]:
        """Return whether each node works, and for how long it has not."""
        return {one["instance_id"]: _note(one, now) for one in answer["nodes"]}

    def lines(self, answer: Mapping[str, Any], moment: Moment) -> Iterator[Item]:  # noqa: ARG002 - as for Part
        """Yield how many nodes have which verdict, and the reasons of those of which a word says too little."""
        counts = ", ".join(f"{count} {_WORDS.get(each, each)}" for each, count in answer["verdicts"].items())
        yield f"Nodes: {counts or 'none'}."
        if answer["dry_run"]:
            yield "It only reports what it would stop (dry run)."
        if answer["breaker"]:
            yield answer["breaker"]
        told = [one for one in answer["nodes"] if one["verdict"] not in _PLAIN]
        nodes: dict[tuple[str, str], list[str]] = {}
        for one in told:
            nodes.setdefault((one["node_group"] or "no node group", _reason(one)), []).append(one["instance_id"])
        for (group, why), ids in nodes.items():
            more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
            yield f"{group}, {ids[0]}{more}: {why}"


def _reason(node: Mapping[str, Any]) -> str:
    """Return a reason without the node that it begins with, so that nodes of one group have one."""
    return str(node["reason"]).removeprefix(f"{node['instance_id']} ").removeprefix(f"of {node['node_group']} ")


def _note(node: Mapping[str, Any], now: datetime) -> str:
    since = moment(node["idle_since"])
    if since is not None:
        return f"idle {short_span(now - since)}"
    verdict = str(node["verdict"])
    return _WORDS.get(verdict, verdict)
