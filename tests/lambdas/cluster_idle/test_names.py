"""Names that the function shares with constructs and with the power function, which it does not import."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from aws_lambda_powertools import Logger

from cdk_training_cluster.instance_types import all_instance_types
from cluster_common.failures import Failures
from cluster_contract.aliases import Alias
from cluster_contract.metrics import NODE_METRICS
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_idle import readings
from cluster_idle.accelerators import gpu_count, is_measured
from cluster_idle.executor import MAX_TERMINATED
from cluster_idle.instances import Instance, Owner
from cluster_power.callers import Action, Caller
from cluster_power.commands import parse_command
from idle_function_settings import idle_settings

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def test_the_power_function_understands_the_orders() -> None:
    settings = PowerFunctionSettings(
        cluster="base-pod", groups={"workers": PowerGroupSettings(count=200)}, launch_grace=timedelta(minutes=10)
    )
    stop = {"action": "stop", "node_groups": ["workers"], "reason": "idle"}
    ids = [f"i-{number:017x}" for number in range(MAX_TERMINATED)]
    terminate = {**stop, "action": "terminate", "instance_ids": ids}

    idle = Caller(alias=Alias.IDLE, request_id="1")
    assert parse_command(stop, settings, idle).action is Action.STOP
    assert parse_command(terminate, settings, idle).instance_ids == tuple(ids)


def test_the_types_that_are_looked_at_are_those_whose_nodes_report() -> None:
    catalog = all_instance_types()

    assert [info.name for info in catalog if is_measured(info.name)] == [
        info.name for info in catalog if info.has_nvidia_gpus or info.has_neuron_devices
    ]


def test_the_numbers_of_gpus_are_those_of_the_catalog() -> None:
    with_gpus = [info for info in all_instance_types() if info.has_nvidia_gpus]

    assert {info.name: gpu_count(info.name, {}) for info in with_gpus} == {
        info.name: info.nvidia_gpu_count for info in with_gpus
    }


def test_every_type_of_the_catalog_is_asked_for_what_its_nodes_report() -> None:
    asked: dict[str, str] = {}

    class CloudWatch:
        def get_metric_data(self, **parameters: Any) -> dict[str, Any]:
            metrics = [query["MetricStat"]["Metric"] for query in parameters["MetricDataQueries"]]
            asked.update((metric["Dimensions"][0]["Value"], metric["MetricName"]) for metric in metrics)
            return {"MetricDataResults": []}

    catalog = all_instance_types()
    nodes = [
        Instance(
            id=info.name,
            instance_type=info.name,
            launched=NOW,
            owner=Owner.itself(info.name),
        )
        for info in catalog
    ]
    failures = Failures(Logger(service="test"))
    reader = readings.MetricReader(cast("Any", CloudWatch()), idle_settings(), failures, NOW)

    reader.read(nodes, None)

    assert asked == {
        info.name: NODE_METRICS.neuron_core_utilization
        if info.has_neuron_devices
        else NODE_METRICS.gpu_utilization
        if info.has_nvidia_gpus
        else NODE_METRICS.accelerator_utilization
        for info in catalog
    }
