"""Idle nodes and what the idle function says of them, made by hand."""

import json
from collections.abc import Mapping
from typing import Any

from cluster_contract.idle import IdleFunctionSettings
from rehearsal.idle_expectation import IdleExpectation, IdleNode
from rehearsal.idle_story import IdleStory


def settings(
    groups: Mapping[str, Any], *, namespace: str | None = None, max_stops: int = 100, **policy: Any
) -> IdleFunctionSettings:
    """Return the function's settings of a cluster.

    Args:
        groups: Its node groups, each with what of its policy differs.
        namespace: Where its nodes' metrics are. Default: - nothing is said of it.
        max_stops: How many nodes one run stops at most.
        **policy: What of its policy is not usual.
    """
    policies = [policy, *({**policy, **group.get("policy", {})} for group in groups.values())]
    signals = [signal for one in policies for signal in one.get("signals", ())]
    told = {
        "cluster": "pod",
        "signals": signals,
        "policies": [
            {**one, "signals": [signals.index(each) for each in one.get("signals", ())]} for one in policies
        ],
        "groups": {name: {**group, "policy": number} for number, (name, group) in enumerate(groups.items(), start=1)},
        "max_stops": max_stops,
        **({} if namespace is None else {"namespace": namespace}),
    }
    return IdleFunctionSettings.from_environment({"CLUSTER_IDLE_SETTINGS": json.dumps(told)})


def node(
    id: str, node_group: str = "workers", *, reserved: bool = False, instance_type: str = "g5.xlarge"
) -> IdleNode:
    """Return a node.

    Args:
        id: Its id.
        node_group: Its node group.
        reserved: Whether it runs in a reservation.
        instance_type: Its type.
    """
    return IdleNode(id=id, instance_type=instance_type, node_group=node_group, reserved=reserved)


def summary(nodes: Mapping[str, IdleNode], verdicts: Mapping[str, str], breaker: str | None = None) -> dict[str, Any]:
    """Return what the function says of nodes in one run.

    Args:
        nodes: The nodes, by id.
        verdicts: What it says of which; `stopped` is `stop`, and done.
        breaker: Why it does nothing. Default: - nothing keeps it.
    """
    return {
        "breaker": breaker,
        "nodes": [
            {
                "instance_id": one,
                "node_group": nodes[one].node_group if one in nodes else "",
                "verdict": "stop" if verdict == "stopped" else verdict,
                "reason": f"{one} of {nodes[one].node_group if one in nodes else 'no group'} is {verdict}",
                "stopped": verdict == "stopped",
            }
            for one, verdict in verdicts.items()
        ],
    }


def story(
    told: IdleFunctionSettings,
    nodes: Mapping[IdleNode, str],
    runs: Mapping[int, str],
    breaker: Mapping[int, str] | None = None,
) -> IdleStory:
    """Return a story.

    Args:
        told: The function's settings.
        nodes: The nodes, and what each reported.
        runs: What the function said of them, in their order, by the minutes after the first run: a word a node, `-`
            for nothing.
        breaker: Why it did nothing, likewise. Default: - nothing kept it.
    """
    found = IdleStory(IdleExpectation(told, list(nodes)), reported={one.id: what for one, what in nodes.items()})
    by_id = {one.id: one for one in nodes}
    for minutes, words in sorted(runs.items()):
        verdicts = {one: word for one, word in zip(by_id, words.split(), strict=True) if word != "-"}
        found.add(minutes, summary(by_id, verdicts, (breaker or {}).get(minutes)))
    return found
