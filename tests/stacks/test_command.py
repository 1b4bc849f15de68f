"""The `training-cluster` command, as people and pipelines use it."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_stacks import command
from cdk_training_cluster_stacks.cluster_file import schema_text
from cdk_training_cluster_stacks.commands import training_cluster

CLUSTERS = Path(__file__).parents[2] / "clusters"

RUN = CliRunner(env={"COLUMNS": "120"})


def test_the_schema_is_printed_as_it_is_kept() -> None:
    result = RUN.invoke(training_cluster, ["schema"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, schema_text(), "")


def test_a_right_file_is_shown() -> None:
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "base-pod.yaml")])
    assert result.exit_code == 0
    (row,) = (line.split() for line in result.stdout.splitlines() if "p4de" in line)
    assert " ".join(row) == "workers 8 p4de.24xlarge 8 x A100, 80 GiB 4, 400 Gbps cluster"
    assert "FSx for Lustre of 4,800 GiB at 250 MB/s/TiB, mounted at /fsx\n" in result.stdout
    assert "  s3://(made by the foundation)/tokens/ appears at /fsx/data\n" in result.stdout
    warnings = [line for line in result.stdout.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert "cdk-training-cluster:noAlerts" in warnings[0]
    assert "cdk-training-cluster:latestImage" in warnings[1]


def test_a_node_without_accelerators_and_a_named_bucket_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "cpu.yaml"
    file.write_text(
        "name: cpu\navailability_zone: us-east-2a\nfile_system: {}\n"
        "datasets: [{file_system_path: /, bucket: corpus}]\n"
        "node_groups: [{name: prep, instance_types: [hpc7a.96xlarge], count: 2, image: ami-0a1b2c3d, "
        "efa: false}]\nalerts: {emails: [ops@example.com]}\n"
    )
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert result.exit_code == 0
    (row,) = (line.split() for line in result.stdout.splitlines() if "hpc7a" in line)
    assert " ".join(row) == "prep 2 hpc7a.96xlarge none none cluster"
    assert "  s3://corpus/ appears at /fsx\n" in result.stdout
    assert "warning" not in result.stdout


def test_a_wrong_file_gets_all_problems_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: pod\navailability_zone: us-east-1\nnode_groups: []\n")
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        f"error: {file}:2: availability_zone: must be the name of an Availability Zone, such as us-east-1b, "
        'got "us-east-1"',
        f"error: {file}:3: node_groups: must hold at least 1, such as node_groups: "
        "[{name: workers, instance_types: [p5.48xlarge], count: 8, image: latest}], got []",
    ]


def test_what_only_the_constructs_know_is_a_sentence_too(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "name: pod\navailability_zone: us-east-1b\n"
        "node_groups: [{name: workers, instance_types: [p9.48xlarge], count: 1, image: ami-0a1b2c3d}]\n"
        "instance_type_facts: [{name: p9.48xlarge, vcpus: 1, memory_mib: 1, architectures: [x86_64], "
        "maximum_efa_interfaces: 1, network_cards: "
        "[{index: 0, maximum_interfaces: 1, interface_types: [interface, efa-only], baseline_gbps: 1}]}]\n"
    )
    result = RUN.invoke(training_cluster, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("error: node group 'workers': instance type p9.48xlarge: network card 0 has room")


def test_a_missing_file_is_a_sentence() -> None:
    result = RUN.invoke(training_cluster, ["check", str(CLUSTERS / "bas-pod.yaml")])
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {CLUSTERS}/bas-pod.yaml: there is no such file; did you mean {CLUSTERS}/base-pod.yaml?\n"
    )


@pytest.mark.parametrize("arguments", [["check"], ["chekc"], ["schema", "more"], ["--verison"]])
def test_misuse_has_status_2(arguments: list[str]) -> None:
    result = RUN.invoke(training_cluster, arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert "Traceback" not in result.stderr


def test_the_version_is_that_of_the_package() -> None:
    result = RUN.invoke(training_cluster, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("training-cluster 0.")


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)  # Python's own mark for a module that is not there
    with pytest.raises(SystemExit) as end:
        command.app()
    assert end.value.code == "error: typer not found; run: pip install 'cdk-training-cluster[cli]'"
