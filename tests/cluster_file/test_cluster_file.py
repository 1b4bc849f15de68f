"""What a cluster file says, read back, and the schema that editors know it by."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from cdk_training_cluster import Capacity, OnIdle
from cdk_training_cluster.instance_types import AcceleratorKind, InstanceTypeInfo
from cdk_training_cluster_file import ClusterFile, InstanceTypeFacts, json_schema, read_cluster_file, schema_text
from cdk_training_cluster_file.capacity import CALLS
from cdk_training_cluster_file.problems import ClusterFileError
from cluster_files import problems

CLUSTERS = Path(__file__).parents[2] / "clusters"
EXAMPLES = sorted(CLUSTERS.glob("*.yaml"))

SCHEMA = jsonschema.Draft202012Validator(json_schema())

SMALLEST = """\
name: pod
availability_zone: us-east-1b
node_groups:
  - name: workers
    instance_types: [p5.48xlarge]
    count: 8
    image: latest
"""

EVERYTHING = """\
name: llama-pod
availability_zone: us-west-2-lax-1a
account: "111122223333"
network:
  vpc_id: vpc-0a1b2c3d4e5f67890
  subnet_id: subnet-0a1b2c3d
  availability_zone: us-west-2-lax-1a
file_system: {storage_capacity_gib: 4800, throughput_mbps_per_tib: 500, mount_point: /mnt/lustre}
datasets:
  - {file_system_path: /a, prefix: tokens/, bucket: my-bucket}
  - {file_system_path: /b, prefix: tokens/}
  - {file_system_path: /c/d, prefix: other}
node_groups:
  - &gpu
    name: gpu
    instance_types: [p5.48xlarge]
    count: 8
    image: ami-0a1b2c3d4e5f67890
    capacity: {reservation: {end: 2026-12-24T18:00:00+01:00, on_idle: release, instance_platform: Ubuntu Pro}}
    placement: cluster
    warm_pool: {size: 2}
    efa: true
    interface_layout: bandwidth_optimised
    root_volume_gib: 500
    root_device_name: /dev/sda1
    environment: {NCCL_DEBUG: WARN, NCCL_ALGO: on}
    scripts_before: [first.sh]
    scripts_after: [last.sh]
  - <<: *gpu
    name: box
    instance_types: [p9.48xlarge]
    count: 1
    capacity: {on_demand: {}}
    placement: none
    warm_pool: {size: 1}
    efa: false
instance_type_facts:
  - name: p9.48xlarge
    vcpus: 192
    memory_mib: 2097152
    architectures: [x86_64]
    network_cards:
      - {index: 0, interface_types: [interface, efa-only], baseline_gbps: 100}
      - {index: 1, maximum_interfaces: 2, interface_types: [efa-only], baseline_gbps: 400}
    accelerators: [{kind: gpu, manufacturer: NVIDIA, name: X1, count: 8, memory_mib: 294912}]
    usage_classes: [on-demand]
    placement_strategies: [cluster]
    maximum_efa_interfaces: 2
alerts: {emails: [ml-platform@example.com]}
tags: {team: ml, "cost:center": "42"}
termination_protection: false
"""


def test_paths_and_prefixes_are_told_apart_whichever_way_they_end(tmp_path: Path) -> None:
    text = f"{SMALLEST}file_system: {{}}\ndatasets:\n  - {{file_system_path: /data/, prefix: tokens}}\n"
    (dataset,) = read(tmp_path, text).datasets
    assert (dataset.file_system_path, dataset.prefix) == ("/data", "tokens/")


def test_a_file_that_is_nested_too_deeply_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileError, match="is nested too deeply to be a cluster file"):
        read(tmp_path, "name: " + "[" * 3000)


def test_what_is_left_out_has_the_documented_default(tmp_path: Path) -> None:
    cluster = read(tmp_path, SMALLEST)
    group = cluster.node_groups[0]
    assert cluster.termination_protection is True
    assert cluster.network is None
    assert cluster.file_system is None
    assert cluster.datasets == ()
    assert group.capacity.call == "on_demand"
    assert group.interface_layout == "ip_optimised"
    assert (group.placement, group.warm_pool, group.efa, group.root_volume_gib, group.environment) == (
        *(None, None, None, None),
        {},
    )


def test_a_file_system_without_settings_has_the_smallest_size(tmp_path: Path) -> None:
    files = read(tmp_path, f"{SMALLEST}file_system: {{}}\n").file_system
    assert files is not None
    assert (files.to_settings().describe(), files.mount_point) == ("1,200 GiB at 250 MB/s/TiB", "/fsx")


def test_every_setting_is_read(tmp_path: Path) -> None:
    for script in ("first.sh", "last.sh"):
        (tmp_path / script).write_text("true\n")
    cluster = read(tmp_path, EVERYTHING)
    gpu, box = cluster.node_groups
    assert cluster.region == "us-west-2"
    assert (cluster.foundation_stack_name, cluster.cluster_stack_name) == (
        "llama-pod-foundation",
        "llama-pod-cluster",
    )
    assert gpu.environment == {"NCCL_DEBUG": "WARN", "NCCL_ALGO": "on"}
    assert gpu.scripts_before == (str(tmp_path / "first.sh"),)
    assert gpu.capacity.to_capacity() == Capacity.reservation(
        end=datetime(2026, 12, 24, 17, tzinfo=UTC), on_idle=OnIdle.RELEASE, instance_platform="Ubuntu Pro"
    )
    assert gpu.warm_pool is not None
    assert gpu.warm_pool.size == 2
    assert box.capacity.to_capacity() == Capacity.on_demand()
    assert (box.count, box.image, box.efa) == (1, "ami-0a1b2c3d4e5f67890", False)
    assert cluster.instance_type_facts[0].to_info().efa_cards == (0, 1)


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1b", "us-east-1"),
        ("ap-southeast-7a", "ap-southeast-7"),
        ("us-gov-west-1a", "us-gov-west-1"),
        ("eusc-de-east-1a", "eusc-de-east-1"),
        ("us-east-1-bos-1a", "us-east-1"),
    ],
)
def test_the_region_follows_from_the_zone(tmp_path: Path, zone: str, region: str) -> None:
    assert read(tmp_path, SMALLEST.replace("us-east-1b", zone)).region == region


def test_an_empty_prefix_and_bare_directories_are_fine(tmp_path: Path) -> None:
    text = f"{SMALLEST}file_system: {{}}\ndatasets: [{{file_system_path: /, prefix: ''}}]\n"
    assert read(tmp_path, text).datasets[0].prefix == ""


def test_the_facts_of_a_type_are_those_that_the_constructs_take() -> None:
    named = set(InstanceTypeFacts.model_fields)
    assert named == {field for field in InstanceTypeInfo.__dataclass_fields__ if field != "source"}
    kinds = json_schema()["$defs"]["AcceleratorFacts"]["properties"]["kind"]["enum"]
    assert kinds == [kind.value for kind in AcceleratorKind]


def test_nothing_changes_after_reading(tmp_path: Path) -> None:
    cluster = read(tmp_path, SMALLEST)
    with pytest.raises(ValidationError):
        cluster.name = "other"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_right(example: Path) -> None:
    cluster = read_cluster_file(example)
    assert cluster.name == example.stem
    assert example.read_text().startswith("# yaml-language-server: $schema=cluster.schema.json\n")
    SCHEMA.validate(yaml.safe_load(example.read_text()))


def test_the_examples_show_every_way_to_buy_but_two() -> None:
    """A reservation that exists already is in a comment of p5-reservation, and a training plan in one of hyperpod."""
    shown = {group.capacity.call for example in EXAMPLES for group in read_cluster_file(example).node_groups}
    assert set(CALLS) - shown == {"from_reservation", "training_plan"}


def test_the_committed_schema_is_current() -> None:
    assert (CLUSTERS / "cluster.schema.json").read_text() == schema_text(), "run: make schema"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_setting_is_described_where_editors_show_it() -> None:
    schema = json_schema()
    for definition in (schema, *schema["$defs"].values()):
        for name, setting in definition["properties"].items():
            assert setting["description"].endswith("."), name
        assert definition["additionalProperties"] is False


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("name", "Pod"),
        ("availability_zone", "us-east-1"),
        ("node_group", []),
        ("node_groups", []),
        ("node_groups.0.count", "8"),
        ("node_groups.0.image", "newest"),
        ("node_groups.0.capacity", "spt"),
        ("node_groups.0.capacity", "reservation"),
        ("node_groups.0.capacity", ["spot"]),
        ("node_groups.0.capacity", {}),
        ("node_groups.0.capacity", {"spot": {}, "spot_fleet": {}}),
        ("node_groups.0.capacity", {"spt": {}}),
        ("node_groups.0.capacity", {"spot": None}),
        ("node_groups.0.capacity", {"on_demand": {"end": "until_cancelled"}}),
        ("node_groups.0.capacity", {"spot": {"max_price": "1"}}),
        ("node_groups.0.capacity", {"spot_fleet": {"max_price": True}}),
        ("node_groups.0.capacity", {"reservation": {}}),
        ("node_groups.0.capacity", {"reservation": {"end": "2026-12-24T18:00:00"}}),
        ("node_groups.0.capacity", {"reservation": {"end": "until_cancelled", "on_idle": "stop"}}),
        ("node_groups.0.capacity", {"reservation": {"end": "until_cancelled", "instance_platform": "Windows"}}),
        ("node_groups.0.capacity", {"from_reservation": {}}),
        ("node_groups.0.capacity", {"from_reservation": {"id": "cr-0a1b2c"}}),
        ("node_groups.0.capacity", {"from_reservation": {"id": "cr-0a1b2c3d", "placement_group": ""}}),
        ("node_groups.0.capacity", {"capacity_block": {"id": "cb-0a1b2c3d"}}),
        ("node_groups.0.capacity", {"capacity_block": {"id": "cr-0a1b2c3d", "instance_count": 0}}),
        ("node_groups.0.capacity", {"prioritized": {}}),
        ("node_groups.0.capacity", {"prioritized": {"on_demand": True}}),
        ("node_groups.0.capacity", {"prioritized": {"reservations": []}}),
        ("node_groups.0.capacity", {"prioritized": {"capacity_blocks": ["cr-1"]}}),
        ("node_groups.0.placement", None),
        ("node_groups.0.warm_pool", {}),
        ("node_groups.0.warm_pool", 2),
        ("node_groups.0.environment", {"1X": "a"}),
        ("node_groups.0.environment", {"X": 1}),
        ("node_groups.0.efa", None),
        ("node_groups.0.idle", {"max_stops": 1}),
        ("node_groups.0.idle", {"signals": {"session": "yes"}}),
        ("idle", None),
        ("idle", "off"),
        ("file_system", None),
        ("file_system", {"existing": {"file_system_id": "fs-0a1b2c3d", "mount_name": "fsx"}, "storage_type": "SSD"}),
        ("datasets.0.file_system_path", "data"),
        ("alerts.emails.0", "me"),
        ("tags", {"aws:x": "a"}),
    ],
)
def test_editors_mark_what_reading_refuses(tmp_path: Path, where: str, value: object) -> None:
    document = yaml.safe_load(f"{SMALLEST}file_system: {{}}\ndatasets: [{{}}]\nalerts: {{emails: [x]}}\n")
    document["datasets"][0]["file_system_path"] = "/data"
    document["alerts"]["emails"][0] = "ml-platform@example.com"
    assert SCHEMA.is_valid(document)
    put(document, where, value)
    assert not SCHEMA.is_valid(document)
    with pytest.raises(ClusterFileError):
        read(tmp_path, json.dumps(document))  # JSON is YAML


# Of each number what is just taken, and what is just refused.
NUMBERS: dict[str, tuple[list[float], list[float]]] = {
    "node_groups.0.count": ([1], [0, -2]),
    "node_groups.0.root_volume_gib": ([8, 65_536], [7, 65_537]),
    "node_groups.0.warm_pool.size": ([1, 8], [0, 9]),
    "node_groups.0.capacity.spot.max_price": ([0.001], [0, 0.0009]),
    "node_groups.0.capacity.spot_fleet.max_price": ([0.000001], [0, -1]),
    "file_system.storage_capacity_gib": ([1200, 2400], [0, 1300, 3600]),
    "file_system.throughput_mbps_per_tib": ([125, 250, 500, 1000], [200]),
    "idle.window_minutes": ([15, 720], [10, 62, 725]),
    "idle.warning_minutes": ([10, 60], [9, 661]),
    "idle.grace_minutes": ([0, 1440], [-1, 1441]),
    "idle.utilization_below_percent": ([0.1, 50], [0, 50.1]),
    "idle.coverage": ([0.5, 1], [0.49, 1.01]),
    "idle.max_stops": ([1], [0]),
    "idle.max_unknown_share": ([0.01, 1], [0, 1.01]),
    "idle.signals.host_vcpus": ([0.1], [0]),
    "idle.signals.host_mib_per_second": ([0.1, 1e99], [0, 1e100]),
    "idle.signals.network_mib_per_second": ([0.1, 1e99], [0, 1e100]),
    "idle.signals.efa_mib_per_second": ([0.1, 1e99], [0, 1e100]),
    "idle.signals.gpu_memory_mib": ([0.1], [0]),
    "budget.monthly_usd": ([0.01], [0]),
    "budget.thresholds.0": ([0.1, 1000], [0.09, 1001]),
    "budget.forecast_thresholds.0": ([0.1, 1000], [0.09, 1001]),
    "budget.warning_minutes": ([10, 660], [9, 661]),
    "budget.max_usd_per_hour": ([0.01], [0]),
}


@pytest.mark.parametrize("where", NUMBERS)
def test_a_number_is_taken_up_to_its_limits(tmp_path: Path, where: str) -> None:
    for legal, values in zip((True, False), NUMBERS[where], strict=True):
        for value in values:
            document = yaml.safe_load(f"{SMALLEST}file_system: {{}}\nidle: {{warning_minutes: 10}}\n")
            document["budget"] = {"monthly_usd": 1, "thresholds": [50], "forecast_thresholds": [50]}
            put(document, where, value)
            found = problems(tmp_path, yaml.safe_dump(document), legal=True)
            assert (found == []) is legal, (value, found)
            assert legal or [".".join(re.findall(r"\w+", said.split(": ")[1])) for said in found] == [where]


@pytest.mark.parametrize("tag", ["équipe", "données 7", "チーム", "𠮷", "cost:center"])
def test_editors_take_the_tags_that_reading_takes(tmp_path: Path, tag: str) -> None:
    assert read(tmp_path, f"{SMALLEST}tags: {{{tag}: {tag}}}\n").tags == {tag: tag}
    ((key, value),) = json_schema()["properties"]["tags"]["patternProperties"].items()
    # Editors read a pattern as JavaScript does, and not as Python.
    takes = "const [tag, ...all] = process.argv.slice(1); console.log(all.every(p => RegExp(p, 'u').test(tag)))"
    node = subprocess.run(["node", "-e", takes, tag, key, value["pattern"]], capture_output=True, check=True)
    assert node.stdout == b"true\n"


def put(document: Any, where: str, value: object) -> None:
    *parents, last = (int(part) if part.isdigit() else part for part in where.split("."))
    for part in parents:
        document = document.setdefault(part, {}) if isinstance(document, dict) else document[part]
    document[last] = value


def read(directory: Path, text: str) -> ClusterFile:
    (directory / "cluster.yaml").write_text(text)
    return read_cluster_file("cluster.yaml", relative_to=directory)
