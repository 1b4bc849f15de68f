"""The cluster file: a training cluster in one YAML file, its errors in plain words, and its JSON Schema."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_training_cluster_file.capacity import CapacitySettings
    from cdk_training_cluster_file.idle import IdleSettings, NodeGroupIdleSettings
    from cdk_training_cluster_file.instance_type_facts import InstanceTypeFacts
    from cdk_training_cluster_file.model import (
        AlertSettings,
        ClusterFile,
        DatasetSettings,
        FileSystemSettings,
        NetworkSettings,
    )
    from cdk_training_cluster_file.node_group import NodeGroupSettings
    from cdk_training_cluster_file.past_ends import has_past_end, refuse_past_ends, warn_of_past_ends
    from cdk_training_cluster_file.reading import cluster_file_in, read_cluster_file, with_places
    from cdk_training_cluster_file.schema import json_schema, schema_text
else:
    # Imported on first use: the constructs start Node.js, and commands that only need errors or regions do without.
    _MODULES = {
        "AlertSettings": "model",
        "CapacitySettings": "capacity",
        "ClusterFile": "model",
        "DatasetSettings": "model",
        "FileSystemSettings": "model",
        "IdleSettings": "idle",
        "InstanceTypeFacts": "instance_type_facts",
        "NetworkSettings": "model",
        "NodeGroupIdleSettings": "idle",
        "NodeGroupSettings": "node_group",
        "cluster_file_in": "reading",
        "has_past_end": "past_ends",
        "json_schema": "schema",
        "read_cluster_file": "reading",
        "refuse_past_ends": "past_ends",
        "schema_text": "schema",
        "warn_of_past_ends": "past_ends",
        "with_places": "reading",
    }

    def __getattr__(name: str) -> object:
        """Return a public name of a module of this package."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "AlertSettings",
    "CapacitySettings",
    "ClusterFile",
    "DatasetSettings",
    "FileSystemSettings",
    "IdleSettings",
    "InstanceTypeFacts",
    "NetworkSettings",
    "NodeGroupIdleSettings",
    "NodeGroupSettings",
    "cluster_file_in",
    "has_past_end",
    "json_schema",
    "read_cluster_file",
    "refuse_past_ends",
    "schema_text",
    "warn_of_past_ends",
    "with_places",
]
