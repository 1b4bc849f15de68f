"""What the cluster file says there must be, held against what there is."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster_stacks.cluster_file import ClusterFile
from rehearsal.node_group_expectation import node_group_differences

_UP = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def deployed_differences(cluster: ClusterFile, found: Mapping[str, Any]) -> list[str]:
    """Say where a deployed cluster differs from its file, a sentence each.

    Args:
        cluster: The file.
        found: What was read back: `stacks`, `node_groups`, `file_system`, `datasets`.
    """
    differences = []
    for name in (cluster.foundation_stack_name, cluster.cluster_stack_name):
        status = found["stacks"].get(name, {}).get("status", "absent")
        if status not in _UP:
            differences.append(f"stack {name} is {status}")
    differences += node_group_differences(cluster, found["node_groups"])
    differences += _file_system(cluster, found["file_system"])
    differences += _datasets(cluster, found["datasets"])
    return differences


def _file_system(cluster: ClusterFile, found: Mapping[str, Any] | None) -> list[str]:
    wanted = cluster.file_system
    if wanted is None:
        return [] if found is None else [f"file system {found['id']} is not in the file"]
    if found is None:
        return ["the file system is absent"]
    expected = {
        "lifecycle": "AVAILABLE",
        "type": "LUSTRE",
        "deployment_type": "PERSISTENT_2",
        "data_compression": "LZ4",
        "storage_capacity_gib": wanted.storage_capacity_gib,
        "throughput_mbps_per_tib": wanted.throughput_mbps_per_tib,
    }
    return [
        f"file system: {key} is {found[key]!r}, the file says {value!r}"
        for key, value in expected.items()
        if found[key] != value
    ]


def _datasets(cluster: ClusterFile, found: Sequence[Mapping[str, Any]]) -> list[str]:
    by_path = {link["file_system_path"]: link for link in found}
    wanted = {settings.file_system_path: settings for settings in cluster.datasets}
    differences = [f"dataset {path} is not in the file" for path in by_path if path not in wanted]
    for path, settings in wanted.items():
        link = by_path.get(path)
        if link is None:
            differences.append(f"dataset {path} is absent")
            continue
        address = link["data_repository_path"]
        bucket, _, prefix = address.removeprefix("s3://").partition("/")
        if prefix != settings.prefix or (settings.bucket is not None and bucket != settings.bucket):
            differences.append(f"dataset {path} shows {address}, the file says {settings.prefix!r} of its bucket")
        if link["lifecycle"] != "AVAILABLE":
            differences.append(f"dataset {path} is {link['lifecycle']}")
        if not link["objects"]:
            differences.append(f"dataset {path} shows no object")
    return differences
