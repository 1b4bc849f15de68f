"""The README's examples run as they are written."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import (
    Capacity,
    ClusterNetwork,
    Dataset,
    InterfaceLayout,
    NodeGroup,
    Placement,
    TrainingCluster,
    TrainingFileSystem,
)
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor, agent_configuration
from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cluster_contract.idle import IdleMetric
from cluster_contract.power import PowerMetric
from cluster_power.commands import parse_command
from cluster_power.settings import GroupSettings, Settings
from examples import PROJECT, run_app, templates
from power_scene import caller_of

_README = (PROJECT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", _README, re.DOTALL | re.MULTILINE)


def _surroundings() -> dict[str, Any]:
    """What the shorter examples take for granted."""
    stack = Stack(App(), "Readme", env=Environment(region="us-east-1"))
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0a1b2c3d", availability_zones=["us-east-1b"])
    return {
        "stack": stack,
        "vpc": vpc,
        "subnet": ec2.Subnet.from_subnet_attributes(
            stack, "Subnet", subnet_id="subnet-0a1b2c3d", availability_zone="us-east-1b"
        ),
        "network": ClusterNetwork(stack, "ReadmeNetwork", availability_zone="us-east-1b"),
        "corpus": s3.Bucket.from_bucket_name(stack, "Corpus", "my-training-corpus"),
        "operators": iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal()),
        "on_call": iam.Role(stack, "OnCall", assumed_by=iam.AccountRootPrincipal()),
        "cluster": TrainingCluster(
            stack,
            "Cluster",
            availability_zone="us-east-1b",
            node_groups=[NodeGroup(name="workers", instance_types=["p5.48xlarge"], count=8)],
        ),
        "ec2": ec2,
        **{
            name.__name__: name
            for name in (
                Capacity,
                ClusterNetwork,
                Dataset,
                InterfaceLayout,
                NodeGroup,
                Placement,
                TrainingFileSystem,
            )
        },
    }


@pytest.mark.parametrize("block", _blocks("python"))
def test_a_python_example_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), _surroundings())  # noqa: S102  # the README is ours


def test_the_first_example_is_short() -> None:
    first = _blocks("python")[0]
    assert "TrainingCluster(" in first
    assert len([line for line in first.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("block", _blocks("yaml"))
def test_a_cluster_file_is_right(block: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(block)
    name = read_cluster_file(file).name
    ended = run_app(file, tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert set(templates(tmp_path / "out")) == {f"{name}-foundation", f"{name}-cluster"}


@pytest.mark.parametrize("payload", re.findall(r'\{"action".*?\}', _README))
def test_the_power_function_takes_the_payloads(payload: str) -> None:
    settings = Settings(
        cluster="llama", groups={"workers": GroupSettings(count=8)}, launch_grace=timedelta(minutes=10)
    )
    assert parse_command(json.loads(payload), settings, caller_of(json.loads(payload))).node_groups == ("workers",)


@pytest.mark.parametrize("command", re.findall(r"(?:`|\$ )make ([a-z]+)", _README))
def test_a_make_target_that_is_named_exists(command: str) -> None:
    assert re.search(rf"^{command}:", (PROJECT / "Makefile").read_text(), re.MULTILINE)


def test_what_watching_costs_counts_every_series_and_alarm(tmp_path: Path) -> None:
    # Without data sets and checkpoints, whose functions the sentences below the table add.
    assert run_app("clusters/dev-box.yaml", tmp_path).returncode == 0
    made = templates(tmp_path)["dev-box-cluster"]["Resources"].values()
    alarms = [each["Properties"] for each in made if each["Type"] == "AWS::CloudWatch::Alarm"]
    metrics = sum(sum("MetricStat" in one for one in alarm.get("Metrics", ())) or 1 for alarm in alarms)
    assert f"| {metrics} metrics of {len(alarms)} alarms at $0.10 | {metrics / 10:.2f} |" in _README
    by_group = 3  # missing, surplus and running nodes
    series = len(PowerMetric) + by_group + len(IdleMetric)
    assert f"| {series} series at $0.30 (the first 10,000) | {series * 0.3:.2f} |" in _README
    agent = agent_configuration(AcceleratorVendor.NVIDIA, cluster="llama", node_group="workers")
    assert agent is not None
    collected = agent["metrics"]["metrics_collected"]
    shared = 2 * len(collected["nvidia_gpu"]["measurement"])
    own = sum(len(each["measurement"]) for each in collected.values())
    costs = f"{shared * 0.3:.2f}, and {own * 0.3:.2f} a node"
    assert f"| metrics of the nodes | {shared} series, and {own} a node, at $0.30 | {costs} |" in _README


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", _README))))
def test_a_link_leads_somewhere(target: str) -> None:
    assert (PROJECT / target).exists()
