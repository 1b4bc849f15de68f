"""Lets nodes work, be silent and idle on the local AWS, and runs the deployed idle function on that."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster_contract.idle import Policy, SignalKind
from cluster_contract.metrics import NODE_METRICS
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.idle_expectation import Fate, IdleExpectation, IdleNode
from rehearsal.idle_story import IdleStory

_PERIOD = timedelta(minutes=5)
_NOW = timedelta()
_HOUR = timedelta(hours=1)
_BUSY_PERCENT = 87.0
_LOOKS = 5
"""How often a node's agent looks at its accelerators and CPUs in a period."""

_EC2 = "AWS/EC2"

# Longer ago than any grace and window together.
_LAUNCHED_BEFORE = timedelta(days=3)
# A window is full of idle periods when the one after the last work has begun.
_TO_FILL = 2 * _PERIOD
# The function keeps all nodes for 15 minutes after data sets were restored, which they were a moment ago.
_RESTORED_BEFORE = timedelta(minutes=30)

# PutMetricData takes as many points at a time.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
_MOST_POINTS = 1000

_Span = tuple[datetime, datetime]


def tell_idle_story(aws: LocalAws, function: DeployedFunction, expectation: IdleExpectation) -> IdleStory:
    """Let nodes work, be silent and idle for an hour, and then all be idle until the function is done with them.

    The function runs only when it can say something new: a run of every five minutes would say the same in between.
    While something is due and has to wait, since a run stops so many nodes at the most, it does run every five.

    Args:
        aws: The local AWS.
        function: The deployed function.
        expectation: What has to become of the nodes.
    """
    begin = _RESTORED_BEFORE if expectation.preloads else _NOW
    story, now = IdleStory(expectation, reported=_parts(expectation)), datetime.now(UTC) + begin
    aws.set_launch_time(now - _LAUNCHED_BEFORE, *story.reported)
    times = _times(story)
    # Each run brings at least one of the nodes that are stopped together further.
    more = len(list(expectation.units()))
    _report(aws, story, (now, now + times[-1] + more * _PERIOD + _TO_FILL))
    while times:
        later = times.pop(0)
        aws.set_clock(begin + later)
        story.add(round(later.total_seconds() / 60), function({"action": "tick"}, later=begin + later))
        if _is_waiting(story) and more and later + _PERIOD not in times:
            times.insert(0, later + _PERIOD)
            more -= 1
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


def _parts(expectation: IdleExpectation) -> dict[str, str]:
    """Let one node work, one be silent, one tokenise, and the others be idle; a node that is alone works."""
    nodes = expectation.nodes
    parts = ["busy", "silent", "preparing"][: max(1, len(nodes) - 1)]
    told = dict(zip((node.id for node in nodes), [*parts, *["idle"] * len(nodes)], strict=False))
    for node in nodes:
        if not node.utilization:
            told[node.id] = "silent"
        elif told[node.id] == "preparing" and all(
            signal.kind is not SignalKind.CPU for signal in expectation.policy(node).signals
        ):
            told[node.id] = "idle"
    return told


def _times(story: IdleStory) -> list[timedelta]:
    """Return when the function has something new to say: when a window is full, and when a warning is over."""
    times = {_NOW}
    for unit in story.expectation.units():
        policy, fate = story.expectation.policy(unit[0]), story.expectation.fate(unit[0])
        is_idle = all(story.reported[node.id] == "idle" for node in unit)
        idle = _NOW if is_idle else _up(policy.window) + _TO_FILL
        if fate is not Fate.KEEP:
            times.add(idle)
        if fate in (Fate.STOPPED, Fate.DRY_RUN):
            due = idle + _up(policy.warning)
            # Of those that were at work, a run right before the time that the warning names.
            times |= {due} if is_idle else {due - _PERIOD, due}
    return sorted(times)


def _up(time: timedelta) -> timedelta:
    """Return a time as a schedule that ticks every five minutes sees it."""
    return -(-time // _PERIOD) * _PERIOD


def _is_waiting(story: IdleStory) -> bool:
    """Say whether the last run left something to the next one."""
    return any(node["verdict"] == "deferred" for node in story.ticks[-1]["nodes"])


def _report(aws: LocalAws, story: IdleStory, idle: _Span) -> None:
    """Write what nodes report: each its part for an hour, or as far back as the function looks, and then nothing new.

    Args:
        aws: The local AWS.
        story: What each node reports at first.
        idle: From when to when all are idle.
    """
    data: dict[str, list[dict[str, Any]]] = {}
    start, end = idle
    for node in story.expectation.nodes:
        if node.utilization is None:
            continue
        policy, part = story.expectation.policy(node), story.reported[node.id]
        before = max(_HOUR, policy.window + policy.warning + _TO_FILL)
        for namespace, metric in _metrics(node, policy, story.expectation.namespace):
            periods = [] if part == "silent" and namespace != _EC2 else _periods(start - before, start)
            told = [(moment, _work(node, part).get(metric, 0.0)) for moment in periods]
            told += [(moment, 0.0) for moment in _periods(start, end)]
            if namespace == _EC2:
                aws.add_instance_metric(metric, node.id, told)
            else:
                data.setdefault(namespace, []).extend(_data(node, metric, told))
    for namespace, points in data.items():
        for first in range(0, len(points), _MOST_POINTS):
            some = points[first : first + _MOST_POINTS]
            aws.client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=some)


def _work(node: IdleNode, part: str) -> Mapping[str, float]:
    """Return what a node's part shows in, by metric: tokenising is one process on one vCPU."""
    if part == "busy":
        return {str(node.utilization): _BUSY_PERCENT}
    return {NODE_METRICS.cpu_usage: 100 / node.vcpus} if part == "preparing" else {}


def _metrics(node: IdleNode, policy: Policy, namespace: str) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of what has to be low on an idle node; no heartbeat and no session are low enough."""
    yield namespace, str(node.utilization)
    for signal in policy.signals:
        if signal.kind is SignalKind.CPU:
            yield namespace, NODE_METRICS.cpu_usage
        elif signal.kind is SignalKind.NETWORK:
            yield from ((_EC2, "NetworkIn"), (_EC2, "NetworkOut"))
        elif signal.kind is SignalKind.GPU_MEMORY:
            yield namespace, NODE_METRICS.gpu_memory_used
        elif signal.kind is SignalKind.METRIC:
            yield signal.namespace or namespace, signal.metric


def _data(node: IdleNode, metric: str, told: Iterable[tuple[datetime, float]]) -> Iterator[dict[str, Any]]:
    """Yield what the agent has sent of each period: a sample of each accelerator, or of all CPUs, at each look."""
    count = _LOOKS * (1 if metric == NODE_METRICS.cpu_usage else node.accelerators)
    for moment, value in told:
        yield {
            "MetricName": metric,
            "Dimensions": [{"Name": NODE_METRICS.instance_id_dimension, "Value": node.id}],
            "Timestamp": moment,
            "StatisticValues": {"SampleCount": count, "Sum": value * count, "Minimum": value, "Maximum": value},
        }


def _periods(start: datetime, end: datetime) -> list[datetime]:
    """Return the start of each period after the first time and up to the second."""
    first, last = (int(moment.timestamp() // _PERIOD.total_seconds()) for moment in (start, end))
    return [datetime.fromtimestamp(period * _PERIOD.total_seconds(), tz=UTC) for period in range(first + 1, last + 1)]
