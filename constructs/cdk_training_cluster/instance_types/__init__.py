"""Facts about EC2 instance types, as data: what a type has, never what its name suggests."""

from cdk_training_cluster.instance_types.catalog import (
    all_instance_types,
    instance_type_info,
    instance_type_names,
)
from cdk_training_cluster.instance_types.model import (
    Accelerator,
    AcceleratorKind,
    InstanceTypeInfo,
    NetworkCard,
)

__all__ = [
    "Accelerator",
    "AcceleratorKind",
    "InstanceTypeInfo",
    "NetworkCard",
    "all_instance_types",
    "instance_type_info",
    "instance_type_names",
]
