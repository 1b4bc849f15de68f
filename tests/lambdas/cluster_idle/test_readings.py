"""What is asked of CloudWatch, and what becomes of its answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger

from cluster_common.failures import Failures
from cluster_contract.idle import IdleFunctionSettings, Policy, Signal, SignalKind
from cluster_idle.evidence import Evidence
from cluster_idle.instances import Instance, Owner
from cluster_idle.readings import MetricReader
from fake_metric_data import CURRENT, GPU, IDLE, FakeMetricData, Result, result
from fake_service import refusal
from idle_function_settings import Group, idle_settings

NOW = datetime(2026, 11, 2, 12, 2, tzinfo=UTC)
LAUNCHED = datetime(2026, 11, 1, tzinfo=UTC)
BUSY = [(CURRENT - timedelta(minutes=5), 80.0)]


def nodes(count: int, node_group: str = "", instance_type: str = "p5.48xlarge") -> list[Instance]:
    return [
        Instance(
            id=f"i-{node_group}{number}",
            instance_type=instance_type,
            launched=LAUNCHED,
            owner=Owner.itself(f"i-{node_group}{number}"),
            node_group=node_group,
        )
        for number in range(count)
    ]


def read(
    client: FakeMetricData,
    instances: Sequence[Instance],
    settings: IdleFunctionSettings | None = None,
    sessions: set[str] | None = None,
    failures: Failures | None = None,
) -> dict[str, Evidence]:
    failures = Failures(Logger(service="test")) if failures is None else failures
    reader = MetricReader(cast("Any", client), settings or idle_settings(), failures, NOW)
    return reader.read(instances, sessions)


def metrics(client: FakeMetricData) -> list[tuple[str, str, str]]:
    """Return what was asked: namespace, metric and statistic."""
    return [
        (stat["Metric"]["Namespace"], stat["Metric"]["MetricName"], stat["Stat"])
        for request in client.queries
        for stat in (query["MetricStat"] for query in request)
    ]


def test_maximum_and_number_of_samples_are_asked_for() -> None:
    client = FakeMetricData()

    found = read(client, nodes(1))

    assert found["i-0"].state.value == "idle"
    assert [request for _, request in client.requests] == [
        {
            "MetricDataQueries": [
                {
                    "Id": name,
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "CdkTrainingCluster/Nodes/base-pod",
                            "MetricName": "nvidia_smi_utilization_gpu",
                            "Dimensions": [{"Name": "InstanceId", "Value": "i-0"}],
                        },
                        "Period": 300,
                        "Stat": statistic,
                    },
                }
                for name, statistic in (("q0", "Maximum"), ("q1", "SampleCount"))
            ],
            # The window, the warning and one more period, from the start of a period on.
            "StartTime": datetime(2026, 11, 2, 10, 25, tzinfo=UTC),
            "EndTime": NOW,
            "ScanBy": "TimestampDescending",
        }
    ]


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [2]), (249, [498]), (250, [500]), (251, [500, 2]), (750, [500, 500, 500])]
)
def test_five_hundred_queries_go_into_a_request(count: int, sizes: list[int]) -> None:
    client = FakeMetricData()

    assert len(read(client, nodes(count))) == count
    assert [len(queries) for queries in client.queries] == sizes
    assert all(len({query["Id"] for query in queries}) == len(queries) for queries in client.queries)


def test_the_queries_of_one_node_stay_in_one_request() -> None:
    policy = Policy(signals=(Signal(kind=SignalKind.NETWORK, below=1), Signal(kind=SignalKind.CPU, below=1)))
    client = FakeMetricData()

    read(client, nodes(130), idle_settings(policy=policy))

    assert [len(queries) for queries in client.queries] == [500, 150]
    policy = Policy(signals=(Signal(kind=SignalKind.HEARTBEAT),))
    client = FakeMetricData()
    read(client, nodes(200), idle_settings(policy=policy))
    assert [len(queries) for queries in client.queries] == [498, 102]


@pytest.mark.parametrize(
    ("hours", "most"),
    [
        # 12 periods an hour, 7 of the warning and the current one: 500 times 200 is within 100,800.
        (16, 500),
        (24, 340),
    ],
)
def test_no_request_has_more_points_than_cloudwatch_gives(hours: int, most: int) -> None:
    policy = Policy(window=timedelta(hours=hours))
    points = policy.span // timedelta(minutes=5) + 1
    client = FakeMetricData()

    read(client, nodes(700), idle_settings(policy=policy))

    sizes = [len(queries) for queries in client.queries]
    assert sizes[0] == most
    assert sum(sizes) == 2 * 700
    assert all(size * points <= 100_800 for size in sizes)


def test_groups_that_look_back_equally_far_share_requests_and_others_do_not() -> None:
    settings = idle_settings(
        cluster="base-pod",
        groups={
            "lab": Group(policy=Policy(window=timedelta(hours=2))),
            "same": Group(policy=Policy(below=20)),
        },
    )
    client = FakeMetricData()

    read(client, [*nodes(2, "lab"), *nodes(3, "same"), *nodes(4)], settings)

    assert [(len(request["MetricDataQueries"]), request["StartTime"].hour) for _, request in client.requests] == [
        (4, 9),
        (14, 10),
    ]


def test_each_signal_has_its_metrics() -> None:
    signals = (
        Signal(kind=SignalKind.CPU, below=1),
        Signal(kind=SignalKind.NETWORK, below=1),
        Signal(kind=SignalKind.GPU_MEMORY, below=1),
        Signal(kind=SignalKind.HEARTBEAT),
        Signal(kind=SignalKind.SESSION),
        Signal(kind=SignalKind.METRIC, below=1, namespace="Mine", metric="tokens", statistic="Average"),
        Signal(kind=SignalKind.METRIC, below=1, metric="efa_rx_bytes", statistic="Sum"),
    )
    client = FakeMetricData()

    read(client, nodes(1), idle_settings(namespace="Llama", policy=Policy(signals=signals)), set())

    assert metrics(client) == [
        ("Llama", "nvidia_smi_utilization_gpu", "Maximum"),
        ("Llama", "nvidia_smi_utilization_gpu", "SampleCount"),
        ("AWS/EC2", "CPUUtilization", "Average"),
        ("AWS/EC2", "NetworkIn", "Sum"),
        ("AWS/EC2", "NetworkOut", "Sum"),
        ("Llama", "nvidia_smi_memory_used", "Maximum"),
        ("CdkTrainingCluster/Jobs/base-pod", "JobHeartbeat", "SampleCount"),
        ("Mine", "tokens", "Average"),
        ("Llama", "efa_rx_bytes", "Sum"),
    ]


@pytest.mark.parametrize(
    ("busy", "reason"),
    [
        ("nvidia_smi_utilization_gpu", "its utilization was 80 % at 11:55 UTC"),
        ("NetworkIn", "its network traffic was 80 bytes in 5 minutes at 11:55 UTC"),
        ("NetworkOut", "its network traffic was 80 bytes in 5 minutes at 11:55 UTC"),
        ("JobHeartbeat", "its job gave a heartbeat at 11:55 UTC"),
    ],
)
def test_each_answer_goes_to_its_node_and_its_signal(busy: str, reason: str) -> None:
    signals = (Signal(kind=SignalKind.NETWORK, below=0.1), Signal(kind=SignalKind.HEARTBEAT))

    def answer(one: str, metric: str) -> Result:
        if (one, metric) == ("i-1", busy):
            return BUSY, "Complete"
        return ([] if metric == "JobHeartbeat" else IDLE), "Complete"

    found = read(FakeMetricData(answer), nodes(3), idle_settings(policy=Policy(signals=signals)))

    assert [one.state.value for one in found.values()] == ["idle", "busy", "idle"]
    assert found["i-1"].reason == reason


@pytest.mark.parametrize(
    ("sessions", "states"),
    [(set(), ["idle", "idle"]), ({"i-1", "i-9"}, ["idle", "busy"]), (None, ["unknown", "unknown"])],
)
def test_sessions_count_where_the_policy_asks(sessions: set[str] | None, states: list[str]) -> None:
    settings = idle_settings(policy=Policy(signals=(Signal(kind=SignalKind.SESSION),)))

    assert [one.state.value for one in read(FakeMetricData(), nodes(2), settings, sessions).values()] == states
    assert [one.state.value for one in read(FakeMetricData(), nodes(2), None, sessions).values()] == ["idle", "idle"]


def test_pages_are_put_together() -> None:
    client = FakeMetricData()
    client.pages = [
        [result("q0", IDLE[:4], "PartialData"), result("q1", IDLE)],
        [result("q0", IDLE[4:8], "PartialData")],
        [result("q0", IDLE[8:], "Complete")],
    ]

    found = read(client, nodes(2, instance_type="trn1.32xlarge"))

    assert [one.state.value for one in found.values()] == ["idle", "idle"]
    assert [request.get("NextToken") for _, request in client.requests] == [None, "1", "2"]
    assert len({str({**request, "NextToken": ""}) for _, request in client.requests}) == 1


@pytest.mark.parametrize(
    ("pages", "status"),
    [
        ([[("Complete", 6)], [("PartialData", 6)]], "PartialData"),
        ([[("PartialData", 12)], []], "PartialData"),
        ([[("Forbidden", 0)]], "Forbidden"),
        ([[("InternalError", 12)]], "InternalError"),
        ([[]], "no result"),
    ],
)
def test_what_is_not_complete_in_the_end_is_not_evidence(pages: list[list[tuple[str, int]]], status: str) -> None:
    client = FakeMetricData()
    client.pages = [[result("q0", IDLE[:count], each) for each, count in page] for page in pages]

    found = read(client, nodes(1))["i-0"]

    assert (found.state.value, found.was_known) == ("unknown", True)
    assert found.reason == f"CloudWatch returned no complete data for its utilization ({status})"


def test_work_on_any_page_is_work() -> None:
    client = FakeMetricData()
    client.pages = [[result("q0", IDLE, "PartialData")], [result("q0", [(CURRENT - timedelta(hours=1), 99.0)])]]

    assert read(client, nodes(1))["i-0"].state.value == "busy"


def test_a_request_that_fails_leaves_only_its_own_nodes_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    client = FakeMetricData()
    original = client.get_metric_data

    def get_metric_data(**parameters: Any) -> dict[str, Any]:
        if len(client.requests) == 1:
            client.requests.append(("GetMetricData", parameters))
            raise refusal("GetMetricData", "ThrottlingException", "Rate exceeded")
        return original(**parameters)

    client.get_metric_data = get_metric_data  # type: ignore[method-assign]  # the second request is refused
    failures = Failures(Logger(service="readings"))

    found = read(client, nodes(1200, instance_type="trn1.32xlarge"), failures=failures)

    states = [one.state.value for one in found.values()]
    assert states == ["idle"] * 500 + ["unknown"] * 500 + ["idle"] * 200
    assert found["i-500"].reason == "CloudWatch could not be read (ThrottlingException)"
    assert found["i-500"].was_known
    assert failures
    assert (
        "500 instances: their metrics could not be read (ThrottlingException: Rate exceeded)"
        in capsys.readouterr().out
    )


def test_a_page_that_fails_leaves_no_node_idle_on_half_of_the_points() -> None:
    client = FakeMetricData()
    client.pages = [[result("q0", IDLE), result("q1", IDLE)], []]
    client.fail_next("GetMetricData", "InternalServiceFault")

    assert [one.state.value for one in read(client, nodes(2)).values()] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("instance_type", "metric"),
    [
        ("p5.48xlarge", "nvidia_smi_utilization_gpu"),
        ("trn1.32xlarge", "neuroncore_utilization"),
    ],
)
def test_neuron_types_are_asked_for_their_neuron_cores(instance_type: str, metric: str) -> None:
    client = FakeMetricData()

    read(client, nodes(1, instance_type=instance_type))

    # A Neuron node reports all of its cores or none.
    statistics = ["Maximum", "SampleCount"] if metric == GPU else ["Maximum"]
    assert metrics(client) == [("CdkTrainingCluster/Nodes/base-pod", metric, statistic) for statistic in statistics]


@pytest.mark.parametrize(
    ("node_group", "reason"),
    [
        # EC2 rounds one of 192 vCPUs, or 0.52 %, down to 0; the agent of a node group's nodes does not.
        ("workers", "its CPU use was 1.00 vCPUs at 11:55 UTC"),
        ("", "its utilization has been below 5 % for 60 minutes"),
    ],
)
def test_cpu_use_of_a_node_groups_nodes_is_what_their_agent_reports(node_group: str, reason: str) -> None:

    def answer(_: str, metric: str) -> Result:
        return [(when, 100 / 192 if metric == "cpu_usage_active" else 0.0) for when, _ in IDLE], "Complete"

    policy, client = Policy(signals=(Signal(kind=SignalKind.CPU, below=0.5),)), FakeMetricData(answer)
    settings = idle_settings(policy=policy, groups={"workers": Group(policy=policy)})
    (found,) = read(client, [replace(node, vcpus=192) for node in nodes(1, node_group)], settings).values()

    ours = [
        ("CdkTrainingCluster/Nodes/base-pod", "cpu_usage_active", statistic) for statistic in ("Average", "Maximum")
    ]
    assert (found.reason, metrics(client)[2:]) == (
        reason,
        ours if node_group else [("AWS/EC2", "CPUUtilization", "Average")],
    )


def test_samples_that_another_node_adds_do_not_make_busy_cpus_idle() -> None:
    policy, client = Policy(signals=(Signal(kind=SignalKind.CPU, below=0.5),)), FakeMetricData()
    settings = idle_settings(policy=policy, groups={"workers": Group(policy=policy)})
    # Beside five samples of 25 % of 192 vCPUs, a job has put one of -125 %: their average is 0.
    values = {"q0": 0.0, "q1": 40.0, "q2": 0.0, "q3": 25.0}
    client.pages = [[result(query, [(when, value) for when, _ in IDLE]) for query, value in values.items()]]

    (found,) = read(client, [replace(node, vcpus=192) for node in nodes(1, "workers")], settings).values()

    assert found.reason == "its CPU use was 8.00 vCPUs at 11:55 UTC"


@pytest.mark.parametrize(
    ("vcpus", "percent", "reason"),
    [
        # One process that tokenises, on one of many vCPUs or of few, and what a node does that is not used.
        (192, 0.52, "its CPU use was 1.00 vCPUs at 11:55 UTC"),
        (4, 25.0, "its CPU use was 1.00 vCPUs at 11:55 UTC"),
        (192, 0.13, "its utilization has been below 5 % for 60 minutes"),
        (4, 6.0, "its utilization has been below 5 % for 60 minutes"),
        (0, 0.0, "nothing was read of its cpu"),
    ],
)
def test_cpu_use_is_counted_in_vcpus(vcpus: int, percent: float, reason: str) -> None:
    def answer(_: str, metric: str) -> Result:
        return [(when, percent if metric == "CPUUtilization" else 0.0) for when, _ in IDLE], "Complete"

    policy = Policy(signals=(Signal(kind=SignalKind.CPU, below=0.5),))
    (node,) = nodes(1)
    found = read(FakeMetricData(answer), [replace(node, vcpus=vcpus)], idle_settings(policy=policy))

    assert found["i-0"].reason == reason


def test_the_settings_say_how_many_gpus_a_new_type_has() -> None:
    newer = nodes(1, instance_type="p9.48xlarge")

    states = [
        read(FakeMetricData(), newer, idle_settings(gpus=gpus))["i-0"].state.value
        for gpus in ({}, {"p9.48xlarge": 8}, {"p9.48xlarge": 16})
    ]

    assert states == ["unknown", "idle", "unknown"]
