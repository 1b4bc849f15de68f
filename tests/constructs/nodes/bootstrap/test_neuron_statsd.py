"""What the reader on a Neuron node makes of neuron-monitor's reports."""

import ast
import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.asset import SCRIPTS
from cdk_training_cluster.nodes.bootstrap.scripts.neuron_statsd import utilization
from cluster_contract.metrics import NODE_METRICS
from max_seconds import MAX_SECONDS

SCRIPT = SCRIPTS / "neuron_statsd.py"


def _report(*runtimes: dict[str, Any], **hardware: Any) -> dict[str, Any]:
    return {
        "neuron_runtime_data": list(runtimes),
        "neuron_hardware_info": {
            "neuron_device_count": 2,
            "neuroncore_per_device_count": 2,
            "logical_neuroncore_config": 2,
            "error": "",
            **hardware,
        },
    }


def _runtime(cores: dict[str, float], *, error: str = "", counters_error: str = "") -> dict[str, Any]:
    in_use = {core: {"neuroncore_utilization": percent, "flops": 1} for core, percent in cores.items()}
    return {
        "pid": 1,
        "error": error,
        "report": {"neuroncore_counters": {"neuroncores_in_use": in_use, "error": counters_error}},
    }


@pytest.mark.parametrize(
    ("report", "cores"),
    [
        (_report(), {0: 0, 1: 0, 2: 0, 3: 0}),
        (_report(_runtime({"0": 42.5, "3": 100})), {0: 42.5, 1: 0, 2: 0, 3: 100}),
        (_report(_runtime({"0": 10}), _runtime({"1": 20, "0": 30})), {0: 30, 1: 20, 2: 0, 3: 0}),
    ],
)
def test_a_core_that_no_process_holds_is_idle(report: dict[str, Any], cores: dict[int, float]) -> None:
    assert utilization(report, 2) == cores


def test_a_report_that_was_captured_on_an_idle_node_says_so() -> None:
    # neuron-monitor's first report on an idle trn1.2xlarge, as published in the tests of the project all-smi.
    captured = (
        '{"neuron_runtime_data":[],"system_data":{"memory_info":{"period":0.00047258,"memory_total_bytes":33110204416,'
        '"memory_used_bytes":1284890624,"swap_total_bytes":0,"swap_used_bytes":0,"error":""}},"neuron_hardware_info":'
        '{"neuron_device_type":"trainium","neuron_device_version":"v2","neuroncore_version":"v2","neuron_device_count"'
        ':1,"neuron_device_memory_size":34359738368,"neuroncore_per_device_count":2,"logical_neuroncore_config":1,'
        '"error":""}}'
    )
    assert utilization(json.loads(captured), 1) == {0: 0, 1: 0}


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"neuron_hardware_info": None, "neuron_runtime_data": None},
        _report(error="the driver is not running"),
        {**_report(), "neuron_runtime_data": None},
        {"neuron_hardware_info": _report()["neuron_hardware_info"]},
        _report(neuron_device_count=0),
        _report(neuron_device_count=1),
        _report(neuroncore_per_device_count=0),
        _report(_runtime({"0": 1}, error="the process cannot be read")),
        _report(_runtime({"0": 1}, counters_error="timeout")),
        _report({"pid": 1, "error": "", "report": None}),
        _report({"pid": 1, "error": "", "report": {"neuroncore_counters": {"error": ""}}}),
        _report({"report": {"neuroncore_counters": {"neuroncores_in_use": {"0": {"flops": 1}}}}}),
    ],
)
def test_what_could_not_be_seen_is_not_idle(report: dict[str, Any]) -> None:
    assert utilization(report, 2) is None


def test_every_core_is_sent_to_the_agent_with_the_node_s_dimensions() -> None:
    reports = [_report(_runtime({"1": 87.25})), _report(error="broken"), _report()]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(MAX_SECONDS)
        subprocess.run(
            [
                *(sys.executable, str(SCRIPT), str(agent.getsockname()[1])),
                *(NODE_METRICS.neuron_core_utilization, "Cluster:llama,NodeGroup:workers", "2"),
            ],
            input="\n".join(json.dumps(report) for report in reports) + "\n\n",
            text=True,
            check=True,
        )
        received = [agent.recv(1024).decode() for _ in range(8)]
        agent.setblocking(False)
        with pytest.raises(BlockingIOError):
            agent.recv(1024)
    assert received == [
        # Histograms: the agent keeps both reports of a minute, of a gauge only the second.
        f"neuroncore_utilization:{percent}|h|#Cluster:llama,NodeGroup:workers,core:{core}"
        for report in (["0.0", "87.25", "0.0", "0.0"], ["0.0"] * 4)
        for core, percent in enumerate(report)
    ]


def test_the_oldest_python_of_the_images_can_read_it() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
