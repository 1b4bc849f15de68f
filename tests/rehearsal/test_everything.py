"""A cluster file with nearly everything that one can hold, rehearsed as a user does it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from examples import PROJECT

_VPC, _SUBNET, _BUCKET = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "my-training-data"
_FILE = f"""
name: everything
availability_zone: eu-west-1b
account: "111122223333"
network: {{vpc_id: {_VPC}, subnet_id: {_SUBNET}, availability_zone: eu-west-1b}}
file_system: {{storage_capacity_gib: 2400, throughput_mbps_per_tib: 125, mount_point: /shared}}
datasets:
  - {{bucket: {_BUCKET}, prefix: tokens/, file_system_path: /data/tokens}}
  - {{bucket: {_BUCKET}, prefix: images/, file_system_path: /data/images}}
  - {{prefix: made/, file_system_path: /data/made}}
tags: {{team: ml-platform, cost-centre: "42"}}
alerts: {{emails: [ml-platform@example.com]}}
node_groups:
  - name: workers
    instance_types: [p6-b300.48xlarge]
    count: 2
    image: ami-0a1b2c3d4e5f67890
    root_device_name: /dev/sda1
    interface_layout: bandwidth_optimised
    root_volume_gib: 500
    environment: {{NCCL_DEBUG: WARN}}
  - name: helpers
    instance_types: [dl1.24xlarge]
    count: 1
    image: ami-0fedcba9876543210
    placement: none
    efa: false
"""


def _rehearse(directory: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    file = directory / "everything.yaml"
    file.write_text(_FILE)
    ended = subprocess.run(
        [sys.executable, "-m", "rehearsal", "--cluster", str(file), "--build", str(directory)],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return ended, json.loads((directory / "rehearsal.json").read_text())


def test_a_file_with_everything_is_rehearsed(tmp_path: Path) -> None:
    ended, results = _rehearse(tmp_path)
    assert (results["status"], results["error"], results["differences"]) == ("passed", None, []), ended.stdout
    assert ended.returncode == 0
    assert "Everything is as the cluster file says." in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    _says_what_ran(results)
    _says_what_was_kept_and_what_was_not_touched(results)


def _says_what_ran(results: dict[str, Any]) -> None:
    helpers, workers = results["node_groups"]
    assert workers["name"] == "workers"
    assert workers["instance_type"] == "p6-b300.48xlarge"
    assert workers["count_running"] == 2
    assert (workers["network_interfaces"], workers["efa_interfaces"]) == (33, 16)
    assert workers["placement_group"].startswith("everything-cluster-")
    assert workers["market"] == "on-demand"
    assert helpers["instance_type"] == "dl1.24xlarge"
    assert (helpers["network_interfaces"], helpers["efa_interfaces"]) == (1, 0)
    assert helpers["placement_group"] is None
    assert {name: stack["status"] for name, stack in results["stacks"].items()} == {
        "everything-foundation": "CREATE_COMPLETE",
        "everything-cluster": "CREATE_COMPLETE",
    }
    assert results["resources"]["AWS::FSx::DataRepositoryAssociation"] == 3
    assert results["resources"]["AWS::SNS::Subscription"] == 1
    assert results["file_system"]["storage_capacity_gib"] == 2400
    assert results["file_system"]["subnet_ids"] == [_SUBNET]
    assert [(link["file_system_path"], link["objects"]) for link in results["datasets"]] == [
        *(("/data/images", 3), ("/data/made", 3), ("/data/tokens", 3)),
    ]
    assert results["second_deployment"]["changed"] == []


def _says_what_was_kept_and_what_was_not_touched(results: dict[str, Any]) -> None:
    kept, untouched = results["kept"], results["untouched"]
    assert kept["file systems"] == [results["file_system"]["id"]]
    assert len(kept["buckets"]) == 1
    assert len(kept["security groups"]) == 2
    assert not any(kept[kind] for kind in ("VPCs", "subnets", "NAT gateways", "addresses", "nodes", "volumes"))
    assert _VPC in untouched["VPCs"]
    assert _SUBNET in untouched["subnets"]
    assert untouched["buckets"] == [_BUCKET]
    assert len(untouched["NAT gateways"]) == 1
