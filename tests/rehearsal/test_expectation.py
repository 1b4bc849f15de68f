"""The rehearsal's own eye: whatever differs from the cluster file is told."""

import copy
from typing import Any

import pytest

from cdk_training_cluster_stacks.cluster_file import ClusterFile, read_cluster_file
from examples import PROJECT
from rehearsal.expectation import deployed_differences


@pytest.fixture(scope="module")
def cluster() -> ClusterFile:
    return read_cluster_file(PROJECT / "clusters" / "base-pod.yaml")


def _as_the_file_says() -> dict[str, Any]:
    return {
        "stacks": {
            "base-pod-foundation": {"status": "CREATE_COMPLETE"},
            "base-pod-cluster": {"status": "UPDATE_COMPLETE"},
        },
        "node_groups": [
            {
                "name": "workers",
                "instance_type": "p4de.24xlarge",
                "count_running": 8,
                "network_interfaces": 5,
                "efa_interfaces": 4,
                "interfaces_by_type": {"p4de.24xlarge": [5, 4]},
                "placement_group": "pg-1",
                "market": "on-demand",
                "bought_from": {"on-demand": 8},
                "reservation": None,
                "spot_fleet": None,
                "warm_pool": None,
                "availability_zone": "us-east-1b",
            }
        ],
        "file_system": {
            "id": "fs-1",
            "lifecycle": "AVAILABLE",
            "type": "LUSTRE",
            "deployment_type": "PERSISTENT_2",
            "data_compression": "LZ4",
            "storage_capacity_gib": 4800,
            "throughput_mbps_per_tib": 250,
        },
        "datasets": [
            {
                "file_system_path": "/data",
                "data_repository_path": "s3://made/tokens/",
                "lifecycle": "AVAILABLE",
                "objects": 3,
            }
        ],
    }


def test_nothing_differs_where_all_is_as_the_file_says(cluster: ClusterFile) -> None:
    assert deployed_differences(cluster, _as_the_file_says()) == []


@pytest.mark.parametrize(
    ("place", "value", "difference"),
    [
        (
            ("stacks", "base-pod-cluster", "status"),
            "ROLLBACK_COMPLETE",
            "stack base-pod-cluster is ROLLBACK_COMPLETE",
        ),
        (
            ("node_groups", 0, "count_running"),
            7,
            "node group workers: count_running is 7, the file says 8",
        ),
        (
            ("node_groups", 0, "instance_type"),
            ["p4d.24xlarge", "p4de.24xlarge"],
            "node group workers: instance_type is ['p4d.24xlarge', 'p4de.24xlarge'], the file says 'p4de.24xlarge'",
        ),
        (
            ("node_groups", 0, "interfaces_by_type"),
            {"p4de.24xlarge": [5, 1]},
            "node group workers: p4de.24xlarge has 1 EFA interfaces, the file says 4",
        ),
        (
            ("node_groups", 0, "interfaces_by_type"),
            {"p4de.24xlarge": [1, 4]},
            "node group workers: p4de.24xlarge has 1 network interfaces, the file says 5",
        ),
        (
            ("node_groups", 0, "bought_from"),
            {"on-demand": 7, "cr-1": 1},
            "node group workers: bought_from is {'on-demand': 7, 'cr-1': 1}, the file says {'on-demand': 8}",
        ),
        (
            ("node_groups", 0, "reservation"),
            {"id": "cr-1"},
            "node group workers: reservation cr-1 is not in the file",
        ),
        (("node_groups", 0, "spot_fleet"), "sfr-1", "node group workers: spot_fleet is 'sfr-1', the file says None"),
        (
            ("node_groups", 0, "warm_pool"),
            {"size": 2, "states": {}},
            "node group workers: warm_pool is {'size': 2, 'states': {}}, the file says None",
        ),
        (("node_groups", 0, "market"), "spot", "node group workers: market is 'spot', the file says 'on-demand'"),
        (
            ("node_groups", 0, "availability_zone"),
            "us-east-1c",
            "node group workers: availability_zone is 'us-east-1c', the file says 'us-east-1b'",
        ),
        (
            ("node_groups", 0, "placement_group"),
            None,
            "node group workers: placement_group is None, the file says placement: cluster",
        ),
        (("node_groups",), [], "node group workers is absent"),
        (("file_system",), None, "the file system is absent"),
        (
            ("file_system", "storage_capacity_gib"),
            1200,
            "file system: storage_capacity_gib is 1200, the file says 4800",
        ),
        (("file_system", "lifecycle"), "CREATING", "file system: lifecycle is 'CREATING', the file says 'AVAILABLE'"),
        (("datasets",), [], "dataset /data is absent"),
        (
            ("datasets", 0, "data_repository_path"),
            "s3://made/",
            "dataset /data shows s3://made/, the file says 'tokens/' of its bucket",
        ),
        (("datasets", 0, "lifecycle"), "MISCONFIGURED", "dataset /data is MISCONFIGURED"),
        (("datasets", 0, "objects"), 0, "dataset /data shows no object"),
    ],
)
def test_a_difference_is_told(
    cluster: ClusterFile, place: tuple[str | int, ...], value: object, difference: str
) -> None:
    found = _as_the_file_says()
    target: Any = found
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = value
    assert deployed_differences(cluster, found) == [difference]


def test_what_the_file_does_not_name_is_told(cluster: ClusterFile) -> None:
    found = _as_the_file_says()
    found["node_groups"].append({**copy.deepcopy(found["node_groups"][0]), "name": "strangers"})
    found["datasets"].append({**found["datasets"][0], "file_system_path": "/more"})
    assert deployed_differences(cluster, found) == [
        "node group strangers is not in the file",
        "dataset /more is not in the file",
    ]
