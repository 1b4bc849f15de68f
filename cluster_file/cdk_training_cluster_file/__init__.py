"""The cluster file: a training cluster in one YAML file, its errors in plain words, and its JSON Schema."""

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
