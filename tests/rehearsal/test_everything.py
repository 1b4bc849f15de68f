"""A cluster file with nearly everything that one can hold, rehearsed as a user does it."""

from pathlib import Path
from typing import Any

import pytest

from rehearsing import rehearse

_VPC, _SUBNET, _BUCKET = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "my-training-data"
_GIVEN, _BLOCK = "cr-0a1b2c3d4e5f67890", "cr-0b1b2c3d4e5f67890"
_FIRST, _SECOND = "cr-0c1b2c3d4e5f67890", "cr-0d1b2c3d4e5f67890"
_FILE = f"""
name: everything
availability_zone: eu-west-1b
account: "111122223333"
network: {{vpc_id: {_VPC}, subnet_id: {_SUBNET}, availability_zone: eu-west-1b}}
file_system:
  storage_capacity_gib: 38400
  throughput_mbps_per_tib: 125
  efa_enabled: true
  metadata_iops: 12000
  log_level: ERROR_ONLY
  weekly_maintenance_start_time: "7:03:30"
  mount_point: /shared
datasets:
  - {{bucket: {_BUCKET}, prefix: tokens/, file_system_path: /data/tokens}}
  - {{bucket: {_BUCKET}, prefix: images/, file_system_path: /data/images}}
  - {{prefix: made/, file_system_path: /data/made}}
checkpoints: {{exported: {{file_system_path: /runs, keep_versions: 5, expire_after_days: 90}}}}
observability: {{prometheus: {{interval_seconds: 60, retention_days: 90}}}}
health: {{act: true, max_repairs: 5}}
tags: {{team: ml-platform, cost-centre: "42"}}
alerts: {{emails: [ml-platform@example.com]}}
budget:
  monthly_usd: 5000
  thresholds: [33.3, 100]
  services: [AmazonEC2]
  linked_accounts: ["222233334444"]
  weekly_report: true
  prices: {{p5.48xlarge: 60, p6-b300.48xlarge: 150, trn1.32xlarge: 24}}  # AWS lists none in this region
node_groups:
  - name: workers
    instance_types: [p6-b300.48xlarge]
    count: 2
    image: ami-0a1b2c3d4e5f67890
    root_device_name: /dev/sda1
    interface_layout: bandwidth_optimised
    root_volume_gib: 500
    environment: {{NCCL_DEBUG: WARN}}
    warm_pool: {{size: 2}}
    idle:
      window_minutes: 120
      warning_minutes: 15
      signals:
        {{network_mib_per_second: 1, efa_mib_per_second: 1, gpu_memory_mib: 2048, heartbeat: true, session: true}}
  - name: helpers
    instance_types: [dl1.24xlarge]
    count: 1
    image: ami-0fedcba9876543210
    placement: none
    efa: false
    utilization_command: /opt/percent
  - name: reserved
    instance_types: [p5.48xlarge]
    count: 3
    image: ami-0b1b2c3d4e5f67890
    capacity: {{reservation: {{end: "2199-12-31T23:00:00Z", on_idle: release, instance_platform: Ubuntu Pro}}}}
  - name: given
    instance_types: [trn1.32xlarge]
    count: 2
    image: latest
    capacity: {{from_reservation: {{id: {_GIVEN}, placement_group: theirs, instance_count: 4}}}}
  - name: block
    instance_types: [p6e-gb200.36xlarge]
    count: 9
    image: latest
    capacity: {{capacity_block: {{id: {_BLOCK}, instance_count: 18}}}}
  - name: spot
    instance_types: [g6e.48xlarge, g5.xlarge]
    count: 2
    image: latest
    capacity: {{spot: {{max_price: 9.5}}}}
    idle: {{scope: node, window_minutes: 15, warning_minutes: 10}}
  - name: fleet
    instance_types: [g5.xlarge, g5g.xlarge]
    count: 2
    image: latest
    capacity: spot_fleet
    idle: {{dry_run: true}}
  - name: in-turn
    instance_types: [p4d.24xlarge]
    count: 3
    image: latest
    capacity: {{prioritized: {{reservations: [{_FIRST}], capacity_blocks: [{_SECOND}]}}}}
"""


@pytest.mark.sweep("rehearse CLUSTER=clusters/base-pod.yaml")
def test_a_file_with_everything_is_rehearsed(tmp_path: Path) -> None:
    file = tmp_path / "everything.yaml"
    file.write_text(_FILE)
    ended, results = rehearse(file, tmp_path)
    assert (results["status"], results["error"], results["differences"]) == ("passed", None, []), ended.stdout
    assert ended.returncode == 0
    assert "Everything is as the cluster file says." in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    _says_what_ran(results)
    _says_what_became_of_idle_nodes(results)
    _says_what_was_kept_and_what_was_not_touched(results)


def _says_what_ran(results: dict[str, Any]) -> None:
    groups = {group["name"]: group for group in results["node_groups"]}
    helpers, workers = groups["helpers"], groups["workers"]
    assert workers["instance_type"] == "p6-b300.48xlarge"
    assert workers["count_running"] == 2
    assert (workers["network_interfaces"], workers["efa_interfaces"]) == (33, 16)
    assert workers["placement_group"].startswith("everything-cluster-")
    assert workers["market"] == "on-demand"
    assert helpers["instance_type"] == "dl1.24xlarge"
    assert (helpers["network_interfaces"], helpers["efa_interfaces"]) == (1, 0)
    assert helpers["placement_group"] is None
    assert workers["warm_pool"]["size"] == 2
    _says_what_was_bought(groups)
    assert {name: stack["status"] for name, stack in results["stacks"].items()} == {
        "everything-foundation": "CREATE_COMPLETE",
        "everything-cluster": "CREATE_COMPLETE",
    }
    assert results["resources"]["AWS::FSx::DataRepositoryAssociation"] == 4
    assert results["resources"]["AWS::SNS::Subscription"] == 1
    assert results["file_system"]["storage_capacity_gib"] == 38400
    assert results["file_system"]["subnet_ids"] == [_SUBNET]
    assert [(link["file_system_path"], link["objects"]) for link in results["datasets"]] == [
        *(("/data/images", 24), ("/data/made", 24), ("/data/tokens", 24), ("/runs", 0)),
    ]
    assert results["checkpoint"]["restored"] == results["checkpoint"]["written"]
    assert results["second_deployment"]["changed"] == []


def _says_what_was_bought(groups: dict[str, Any]) -> None:
    made = groups["reserved"]["reservation"]
    assert (made["instances"], made["ends"], made["platform"]) == (3, "2199-12-31T23:00:00+00:00", "Ubuntu Pro")
    assert made["placement_group"] == groups["reserved"]["placement_group"]
    assert groups["given"]["placement_group"] == "theirs"
    assert groups["fleet"]["spot_fleet"].startswith("sfr-")
    assert groups["fleet"]["auto_scaling_group"] is None
    bought = {name: group["bought_from"] for name, group in groups.items()}
    assert bought == {
        "workers": {"on-demand": 2},
        "helpers": {"on-demand": 1},
        "reserved": {made["id"]: 3},
        "given": {_GIVEN: 2},
        "block": {_BLOCK: 9},
        "spot": {"spot": 2},
        "fleet": {"spot": 2},
        "in-turn": {_FIRST: 1, _SECOND: 1, "on-demand": 1},
    }


def _says_what_became_of_idle_nodes(results: dict[str, Any]) -> None:
    idle = results["idle"]
    fates = {
        group["name"]: {idle["wanted"][one] for one in group["instance_ids"]} for group in results["node_groups"]
    }
    assert fates == {
        "workers": {"stopped"},
        "helpers": {"stopped"},
        "reserved": {"stopped"},
        "given": {"reserved"},
        "block": {"reserved"},
        "spot": {"stopped"},
        "fleet": {"dry run"},
        "in-turn": {"stopped"},
    }
    running = {group["name"]: group["count_running"] for group in results["node_groups"]}
    left = {name: count for name, count in running.items() if fates[name] != {"stopped"}}
    assert idle["sizes"] == idle["sizes_after_deploy"] == {**dict.fromkeys(running, 0), **left}
    assert idle["resumed"]["status"] == "Success"


def _says_what_was_kept_and_what_was_not_touched(results: dict[str, Any]) -> None:
    kept, untouched = results["kept"], results["untouched"]
    assert kept["file systems"] == [results["file_system"]["id"]]
    assert len(kept["buckets"]) == 2
    assert len(kept["security groups"]) == 2
    assert not any(kept[kind] for kind in ("VPCs", "subnets", "NAT gateways", "addresses", "nodes", "volumes"))
    assert _VPC in untouched["VPCs"]
    assert _SUBNET in untouched["subnets"]
    assert untouched["buckets"] == [_BUCKET]
    assert untouched["capacity reservations"] == sorted([_GIVEN, _BLOCK, _FIRST, _SECOND])
    assert kept["capacity reservations"] == kept["Spot Fleets"] == kept["reservation groups"] == []
    assert len(untouched["NAT gateways"]) == 1
