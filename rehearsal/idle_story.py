"""Idle stop, rehearsed: nodes report an hour of use, and the deployed function decides what becomes of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.metrics import NODE_METRICS
from rehearsal.functions import DeployedFunction
from rehearsal.local_aws import LocalAws

_PERIOD = timedelta(minutes=5)
_NOW = timedelta()
_MOST_TICKS = 20
_BUSY_PERCENT = 87.0

# PutMetricData takes as many points at a time.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
_MOST_POINTS = 1000

# What becomes of a node that is idle for long enough: stopped, or left for a reason that does not go away.
_FINAL = frozenset({"keep", "managed", "reserved", "unstoppable"})


@dataclass
class IdleStory:
    """What was reported, and what the function made of it.

    Attributes:
        reported: What each node was given to report in the first hour, by its id.
        ticks: How many minutes after the first each run was, and what it said of each node.
        stopped: The ids of the nodes that it stopped.
    """

    reported: dict[str, str] = field(default_factory=dict)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)

    @property
    def last(self) -> dict[str, dict[str, Any]]:
        """The last that was said of each node, by its id."""
        return {node["instance_id"]: node for tick in self.ticks for node in tick["nodes"]}

    def results(self) -> dict[str, Any]:
        """Return it as it is written down."""
        return {"reported": self.reported, "ticks": self.ticks, "stopped": sorted(self.stopped)}

    def differences(self) -> list[str]:
        """Say what the function should have done otherwise, a sentence each."""
        first = {node["instance_id"]: node["verdict"] for node in self.ticks[0]["nodes"]}
        wanted = {"busy": {"busy", "keep"}, "silent": {"unknown", "keep"}}
        found = [
            f"idle stop: {one} reported {what} and was called {first.get(one, 'nothing')}"
            for one, what in self.reported.items()
            if what in wanted and first.get(one) not in wanted[what]
        ]
        found += [
            f"idle stop: {one} was stopped in the first hour, in which a node of the cluster worked"
            for one, verdict in first.items()
            if verdict == "stop"
        ]
        return found + [
            f"idle stop: {one} was idle to the end and was called {node['verdict']}: {node['reason']}"
            for one, node in self.last.items()
            if one not in self.stopped and node["verdict"] not in _FINAL
        ]


def tell_idle_story(
    aws: LocalAws, function: DeployedFunction, policy: Mapping[str, Any], nodes: Mapping[str, str]
) -> IdleStory:
    """Let nodes work, be silent and idle for an hour, and then all be idle until the function is done with them.

    Args:
        aws: The local AWS.
        function: The deployed function.
        policy: The cluster's policy, as the function has it.
        nodes: The instance types of the nodes, by id.
    """
    story, now = IdleStory(), datetime.now(UTC)
    window, warning = (timedelta(seconds=policy[key]) for key in ("window", "warning"))
    quiet = window + 2 * _PERIOD
    aws.set_launch_time(now - timedelta(days=1), *nodes)
    # One of each, and the others idle; a node that is alone works.
    parts = ["busy", "silent"][: max(1, len(nodes) - 1)] if len(nodes) > 1 else ["busy"]
    story.reported = dict(zip(sorted(nodes), [*parts, *["idle"] * len(nodes)], strict=False))
    values = {"busy": _BUSY_PERCENT, "idle": 0.0}
    for one, what in story.reported.items():
        if what in values:
            _report(aws, one, nodes[one], values[what], (now - timedelta(hours=1) - window, now))
    _tick(aws, function, _NOW, story)
    end = quiet + 3 * warning
    for one in nodes:
        _report(aws, one, nodes[one], 0.0, (now, now + end))
    later, step = quiet, max(_PERIOD, warning // 3)
    while later <= end and len(story.ticks) < _MOST_TICKS:
        _tick(aws, function, later, story)
        left = [node for node in story.ticks[-1]["nodes"] if node["instance_id"] not in story.stopped]
        if all(node["verdict"] in _FINAL for node in left):
            break
        later += step
    aws.set_clock(_NOW)
    return story


def resume(aws: LocalAws, document: str) -> dict[str, Any]:
    """Start every stopped node group again as people do, by the runbook; return how that ended."""
    ssm = aws.client("ssm")
    execution = ssm.start_automation_execution(DocumentName=document)["AutomationExecutionId"]
    told: dict[str, Any] = ssm.get_automation_execution(AutomationExecutionId=execution)["AutomationExecution"]
    return {
        "document": document,
        "status": told["AutomationExecutionStatus"],
        "message": told.get("FailureMessage", ""),
    }


def idle_policy(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster's policy, as a deployed function has it in its environment."""
    settings = json.loads(configuration["Environment"]["Variables"]["CLUSTER_IDLE_SETTINGS"])
    policy: dict[str, Any] = settings["policy"]
    return policy


def _tick(aws: LocalAws, function: Callable[..., Any], later: timedelta, story: IdleStory) -> None:
    aws.set_clock(later)
    summary = function({"action": "tick"}, later=later)
    minutes = round(later.total_seconds() / 60)
    story.ticks.append({"minutes_later": minutes, "breaker": summary["breaker"], "nodes": summary["nodes"]})
    story.stopped |= {node["instance_id"] for node in summary["nodes"] if node["stopped"]}


def _report(
    aws: LocalAws, instance: str, instance_type: str, value: float, between: tuple[datetime, datetime]
) -> None:
    neuron = instance_type_info(instance_type).has_neuron_devices
    start, end = between
    moment = datetime.fromtimestamp(start.timestamp() // 300 * 300, tz=UTC) + _PERIOD
    data = []
    while moment <= end:
        data.append(
            {
                "MetricName": NODE_METRICS.neuron_core_utilization if neuron else NODE_METRICS.gpu_utilization,
                "Dimensions": [{"Name": NODE_METRICS.instance_id_dimension, "Value": instance}],
                "Timestamp": moment,
                "Value": value,
            }
        )
        moment += _PERIOD
    for some in _batches(data):
        aws.client("cloudwatch").put_metric_data(Namespace=NODE_METRICS.namespace, MetricData=some)


def _batches(data: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [list(data[start : start + _MOST_POINTS]) for start in range(0, len(data), _MOST_POINTS)]
