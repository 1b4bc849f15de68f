"""The idle stop's story in order: what nodes report, and when the function runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
import time_machine

from idle_stories import node, settings, summary
from rehearsal.idle_expectation import IdleExpectation, IdleNode
from rehearsal.idle_run import tell_idle_story
from rehearsal.idle_story import IdleStory

_WORKERS = [node(f"i-{place}") for place in (1, 2, 3)]
_EXTRAS = [node("i-4", "zextras"), node("i-5", "zextras")]


@dataclass
class FakeAws:
    """Takes what is reported, and the time."""

    launched: dict[str, datetime] = field(default_factory=dict)
    clock: list[timedelta] = field(default_factory=list)
    points: dict[tuple[str, str, str], list[tuple[datetime, float]]] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    samples: set[tuple[str, float]] = field(default_factory=set)

    def set_launch_time(self, launch_time: datetime, *instance_ids: str) -> None:
        self.launched = dict.fromkeys(instance_ids, launch_time)

    def set_clock(self, later: timedelta) -> None:
        self.clock.append(later)

    def client(self, service: str) -> "FakeAws":
        assert service == "cloudwatch"
        return self

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803 (boto3's)
        self.requests.append(len(MetricData))
        for point in MetricData:
            (dimension,) = point["Dimensions"]
            assert dimension["Name"] == "InstanceId"
            series = self.points.setdefault((dimension["Value"], Namespace, point["MetricName"]), [])
            series.append((point["Timestamp"], point["StatisticValues"]["Maximum"]))
            self.samples.add((dimension["Value"], point["StatisticValues"]["SampleCount"]))

    def add_instance_metric(self, metric: str, instance_id: str, points: list[tuple[datetime, float]]) -> None:
        self.points[instance_id, "AWS/EC2", metric] = list(points)


def _tell(
    nodes: list[IdleNode],
    groups: Mapping[str, Any],
    say: Callable[[int, str], str] = lambda minutes, _: "warn" if minutes else "busy",
    *,
    preloads: bool = False,
    **policy: Any,
) -> tuple[IdleStory, FakeAws]:
    """Tell a story in which the function says of each node what `say` says of it."""
    aws, by_id = FakeAws(), {one.id: one for one in nodes}

    def function(event: object, *, later: timedelta) -> dict[str, Any]:
        assert event == {"action": "tick"}
        assert aws.clock[-1] == later
        said = summary(by_id, {one: say(round(later.total_seconds() / 60), one) for one in by_id})
        for stopped in [told["instance_id"] for told in said["nodes"] if told["stopped"]]:
            del by_id[stopped]
        return said

    expectation = IdleExpectation(replace(settings(groups, **policy), preloads=preloads), nodes)
    return tell_idle_story(cast("Any", aws), cast("Any", function), expectation), aws


def _minutes(story: IdleStory) -> list[int]:
    return [tick["minutes_later"] for tick in story.ticks]


@pytest.mark.parametrize(
    ("nodes", "groups", "policy", "minutes"),
    [
        (_WORKERS, {"workers": {}}, {}, [0, 70, 95, 100]),
        (_WORKERS, {"workers": {}}, {"window": 1800, "warning": 900}, [0, 40, 50, 55]),
        (_WORKERS, {"workers": {"policy": {"window": 7200}}}, {}, [0, 130, 155, 160]),
        (_WORKERS, {"workers": {"policy": {"warning": 1021}}}, {}, [0, 70, 85, 90]),
        (_WORKERS, {"workers": {"policy": {"dry_run": True}}}, {}, [0, 70, 95, 100]),
        (_WORKERS, {"workers": {"policy": {"off": True}}}, {}, [0]),
        ([node("i-1", reserved=True)], {"workers": {}}, {}, [0, 70]),
        ([*_WORKERS, *_EXTRAS], {"workers": {}, "zextras": {"policy": {"warning": 600}}}, {}, [0, 10, 70, 95, 100]),
        ([*_WORKERS[:1], *_EXTRAS[:1]], {"workers": {"policy": {"off": True}}, "zextras": {}}, {}, [0, 70, 95, 100]),
    ],
    ids=["usual", "short", "own window", "odd warning", "dry run", "off", "reserved", "two groups", "one is off"],
)
def test_the_function_runs_when_it_has_something_new_to_say(
    nodes: list[IdleNode], groups: dict[str, Any], policy: dict[str, Any], minutes: list[int]
) -> None:
    story, aws = _tell(nodes, groups, **policy)
    assert _minutes(story) == minutes
    assert aws.clock[-1] == timedelta()


def test_the_story_begins_when_restored_data_sets_keep_nodes_no_more() -> None:
    story, aws = _tell(
        _WORKERS, {"workers": {}}, lambda minutes, _: "busy" if minutes < 40 else "warn", preloads=True
    )
    assert (_minutes(story)[0], aws.clock[0], aws.clock[-1]) == (0, timedelta(minutes=30), timedelta())


def test_what_has_to_wait_is_looked_at_five_minutes_later() -> None:
    ends = {"i-1": 100, "i-2": 105, "i-3": 110}

    def say(minutes: int, one: str) -> str:
        if minutes < 70:
            return "busy"
        return "warn" if minutes < 100 else "stopped" if minutes == ends[one] else "deferred"

    story, _ = _tell(_WORKERS, {"workers": {"policy": {"scope": "node"}}}, say, max_stops=1)
    assert _minutes(story) == [0, 30, 70, 95, 100, 105, 110]


def test_a_function_that_puts_everything_off_for_ever_is_not_waited_for() -> None:
    story, _ = _tell(_WORKERS, {"workers": {}}, lambda *_: "deferred")
    assert _minutes(story) == [0, 5, 70, 95, 100]


def test_one_node_works_one_is_silent_and_the_others_are_idle() -> None:
    now = datetime(2026, 11, 21, 19, 32, 7, tzinfo=UTC)
    with time_machine.travel(now, tick=False):
        story, aws = _tell([*_EXTRAS, *_WORKERS], {"workers": {}, "zextras": {}})
    assert story.reported == {"i-1": "busy", "i-2": "silent", "i-3": "idle", "i-4": "idle", "i-5": "idle"}
    of = {
        one: aws.points[one, "CdkTrainingCluster/Nodes/pod", "nvidia_smi_utilization_gpu"] for one in story.reported
    }
    before = {one: [(when, value) for when, value in points if when <= now] for one, points in of.items()}
    assert {one: {value for _, value in points} for one, points in before.items()} == {
        **{"i-1": {87.0}, "i-2": set()},
        **{one: {0.0} for one in ("i-3", "i-4", "i-5")},
    }
    for one, points in of.items():
        times = [when for when, _ in points]
        assert times == sorted(set(times))
        assert {later - earlier for earlier, later in pairwise(times)} == {timedelta(minutes=5)}
        assert times[-1] > now + timedelta(minutes=100)
        assert {value for when, value in points if when > now} == {0.0}
        assert one == "i-2" or times[0] < now - timedelta(minutes=95)


@pytest.mark.parametrize(
    ("nodes", "reported"),
    [
        (_WORKERS[:1], {"i-1": "busy"}),
        (_WORKERS[:2], {"i-1": "busy", "i-2": "idle"}),
        (
            [node("i-1", instance_type="vt1.3xlarge"), *_WORKERS[1:]],
            {"i-1": "silent", "i-2": "silent", "i-3": "idle"},
        ),
    ],
)
def test_a_few_nodes_share_the_parts(nodes: list[IdleNode], reported: dict[str, str]) -> None:
    story, _ = _tell(nodes, {"workers": {}})
    assert story.reported == reported


def test_a_node_that_tokenises_works_on_its_cpus_alone_and_is_seen_where_the_policy_looks_there() -> None:
    nodes = [node(f"i-{place}", instance_type="g5.48xlarge") for place in range(4)]
    story, aws = _tell(
        nodes,
        {"workers": {"policy": {"signals": [{"kind": "cpu", "below": 0.5}, {"kind": "network"}]}}},
    )
    assert list(story.reported.values()) == ["busy", "silent", "preparing", "idle"]
    busiest = {
        metric: max(value for _, value in points) for (one, _, metric), points in aws.points.items() if one == "i-2"
    }
    assert busiest == {
        "nvidia_smi_utilization_gpu": 0.0,
        "cpu_usage_active": pytest.approx(100 / 192),
        "NetworkIn": 0.0,
        "NetworkOut": 0.0,
    }
    # Each of eight GPUs, and all CPUs together, five times in each period.
    assert aws.samples == {(f"i-{place}", count) for place in range(4) for count in (5, 40)}
    assert list(_tell(nodes, {"workers": {}})[0].reported.values()) == ["busy", "silent", "idle", "idle"]


def test_every_signal_of_a_policy_says_idle_and_only_utilization_says_busy() -> None:
    signals = [
        {"kind": "network", "below": 1048576},
        {"kind": "gpu_memory", "below": 2048},
        {"kind": "heartbeat"},
        {"kind": "session"},
        {"kind": "metric", "namespace": "CWAgent", "metric": "mem_used_percent", "statistic": "Maximum", "below": 20},
    ]
    _, aws = _tell(_WORKERS[:1], {"workers": {"policy": {"signals": signals}}}, namespace="Others")
    busiest = {
        (namespace, metric): max(v for _, v in points) for (_, namespace, metric), points in aws.points.items()
    }
    assert busiest == {
        ("Others", "nvidia_smi_utilization_gpu"): 87.0,
        ("Others", "nvidia_smi_memory_used"): 0.0,
        ("AWS/EC2", "NetworkIn"): 0.0,
        ("AWS/EC2", "NetworkOut"): 0.0,
        ("CWAgent", "mem_used_percent"): 0.0,
    }


def test_no_request_has_more_points_than_cloudwatch_takes() -> None:
    _, aws = _tell([node(f"i-{place}") for place in range(40)], {"workers": {}})
    assert max(aws.requests) == 1000
    assert len(aws.requests) > 1
