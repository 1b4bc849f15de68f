"""What a node tells of accelerators that only a command of the node group's own can measure."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import NodeGroup, Placement, TrainingCluster, instance_type_info
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor, agent_configuration
from cdk_training_cluster.nodes.bootstrap.asset import SCRIPTS
from cdk_training_cluster.nodes.bootstrap.scripts.utilization_statsd import read, utilization
from cdk_training_cluster.nodes.utilization import COMMANDS, utilization_command
from cluster_contract.metrics import NODE_METRICS
from examples import PROJECT
from max_seconds import MAX_SECONDS
from node_sandbox import UBUNTU, NodeSandbox
from synthesis import ZONE, new_stack

MakeNode = Callable[..., NodeSandbox]
_OWN = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d"})


@pytest.mark.parametrize(
    ("text", "percents"),
    [
        ("0\n100\n", [0, 100]),
        (" 42.5 %\n\n7%", [42.5, 7]),
        ("0\n", None),
        ("0\n0\n0\n", None),
        ("", None),
        ("0\nN/A\n", None),
        ("0\nnan\n", None),
        ("0\n101\n", None),
        ("-1\n0\n", None),
    ],
)
def test_only_a_percentage_of_every_accelerator_says_anything(text: str, percents: list[float] | None) -> None:
    assert utilization(text, 2) == percents


@pytest.mark.parametrize(
    ("command", "percents", "said"),
    [
        ("echo 3; echo 4", [3, 4], ""),
        ("echo 3; echo 4; exit 1", [], "got exit status 1 and '3\\n4'"),
        ("no-such-command", [], "got exit status 127"),
        ("echo 3; sleep 600 & sleep 600", [], "no answer in 0.5 seconds"),
    ],
)
def test_a_command_that_fails_or_hangs_proves_nothing(
    capsys: pytest.CaptureFixture[str], command: str, percents: list[float], said: str
) -> None:
    assert read(command, 2, 0.5) == percents
    complained = capsys.readouterr().err
    assert said in complained
    assert bool(complained) == bool(said)


def test_the_agent_gets_a_value_for_each_accelerator(tmp_path: Path) -> None:
    command = tmp_path / "command"
    command.write_text("seq 1 8\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(MAX_SECONDS)
        port = str(agent.getsockname()[1])
        arguments = [str(command), "8", "30", port, NODE_METRICS.accelerator_utilization, "Cluster:a,NodeGroup:b"]
        with subprocess.Popen([sys.executable, "-IS", SCRIPTS / "utilization_statsd.py", *arguments]) as process:
            try:
                said = [agent.recv(1000).decode() for _ in range(8)]
            finally:
                process.send_signal(signal.SIGTERM)
    assert said == [
        f"accelerator_utilization:{number}.0|h|#Cluster:a,NodeGroup:b,accelerator:{number - 1}"
        for number in range(1, 9)
    ]


def test_a_node_runs_its_groups_command_as_a_service(make_node: MakeNode) -> None:
    command = "hl-smi '%s' \"$HOME\" 100%"
    node = make_node(
        vendor=AcceleratorVendor.COMMAND, os_release=UBUNTU, UTILIZATION_COMMAND=command, ACCELERATORS="8"
    )
    assert node.bootstrap().returncode == 0
    assert node.read("opt/cdk-training-cluster/utilization-command") == f"{command}\n"
    unit = node.read("etc/systemd/system/cdk-training-cluster-utilization.service")
    assert (
        "ExecStart=/usr/bin/env python3 -IS /opt/cdk-training-cluster/scripts/utilization_statsd.py "
        "/opt/cdk-training-cluster/utilization-command 8 30 8125 accelerator_utilization "
        "Cluster:llama,NodeGroup:workers\n"
    ) in unit
    assert "systemctl restart cdk-training-cluster-utilization.service" in node.calls
    configuration = agent_configuration(
        AcceleratorVendor.COMMAND, namespace="CdkTrainingCluster/Nodes/llama", cluster="llama", node_group="workers"
    )
    assert configuration is not None
    assert json.loads(node.read("opt/cdk-training-cluster/agent.json")) == configuration
    statsd = configuration["metrics"]["metrics_collected"]["statsd"]
    assert statsd["drop_original_metrics"] == [NODE_METRICS.accelerator_utilization]


def _group(instance_type: str, **settings: Any) -> NodeGroup:
    return NodeGroup("a", instance_types=[instance_type], count=1, machine_image=_OWN, **settings)


@pytest.mark.parametrize(
    ("instance_type", "given", "command"),
    [
        ("dl1.24xlarge", None, COMMANDS["Habana"]),
        ("dl1.24xlarge", "/opt/percent", "/opt/percent"),
        ("vt1.3xlarge", None, None),
        ("vt1.3xlarge", "/opt/percent", "/opt/percent"),
        ("p5.48xlarge", None, None),
        ("trn1.32xlarge", None, None),
        ("hpc7a.96xlarge", None, None),
    ],
)
def test_gaudi_is_measured_by_itself_and_others_where_a_command_says_how(
    instance_type: str, given: str | None, command: str | None
) -> None:
    group = _group(instance_type, utilization_command=given)
    assert utilization_command(group, instance_type_info(instance_type)) == command


def test_a_command_is_one_line_of_text() -> None:
    with pytest.raises(ValueError, match="utilization_command must be a command of one line in ASCII, got"):
        _group("vt1.3xlarge", utilization_command="one\ntwo")


def test_the_idle_function_judges_nodes_that_only_a_command_measures() -> None:
    cluster = TrainingCluster(
        new_stack(),
        "Cluster",
        availability_zone=ZONE,
        node_groups=[_group("vt1.3xlarge", utilization_command="/opt/percent", placement=Placement.NONE)],
    )
    user_data = cluster.node_group("a").launch_templates[0].user_data
    assert user_data is not None
    assert "UTILIZATION_COMMAND='/opt/percent'\nACCELERATORS='1'" in user_data.render()


def test_the_example_for_vt1_reports_the_busiest_part_of_its_cards(tmp_path: Path) -> None:
    """`xrmadm` answers as the document of XRM shows it, with blanks in the names."""
    (tmp_path / "usr/local/bin").mkdir(parents=True)
    environment = {"ROOT": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.defpath}"}
    subprocess.run(["bash", PROJECT / "clusters/scripts/vt1.sh"], env=environment, check=True, timeout=MAX_SECONDS)
    loads = {"device_0": ["0", "250000"], "device_1": ["0", "0"], "device_2": ["0", "0"], "device_3": ["0", "500000"]}
    data: dict[str, object] = {"deviceNumber": "4"}
    for device, used in loads.items():
        parts = {f"cu_{n}": {"usedLoad     ": f"{load} of 1000000"} for n, load in enumerate(used)}
        data[device] = {"dsaName    ": "xilinx_u30_gen3x4_base_1", **parts}
    answer = tmp_path / "answer"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/xrmadm").write_text(f"#!/bin/bash\ncat {answer}\n")
    (tmp_path / "bin/xrmadm").chmod(0o755)
    command = tmp_path / "usr/local/bin/vt1-utilization"

    def said(response: object) -> tuple[int, list[str]]:
        answer.write_text(json.dumps({"response": response}))
        found = subprocess.run([command], env=environment, capture_output=True, text=True, check=False)
        return found.returncode, found.stdout.split()

    assert said({"status": "ok", "data": data}) == (0, ["25.0", "50.0"])
    assert said({"status": "failed", "data": {}})[0] != 0
    del data["device_2"]
    assert said({"status": "ok", "data": data})[0] != 0
