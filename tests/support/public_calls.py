"""Every public call of the library, with settings that are right; the calls themselves are found by reflection."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

import cdk_training_cluster as library
from cdk_training_cluster import (
    Budget,
    ClusterNetwork,
    ClusterPower,
    Dataset,
    InstanceTypeInfo,
    NodeGroup,
    TrainingCluster,
    TrainingFileSystem,
    instance_type_info,
)
from cdk_training_cluster.guardrails.power.power_group import PowerGroup
from cdk_training_cluster.nodes.idle_policy import default_idle_policy
from checkpoint_scene import exported_checkpoints
from hydrated_files import hydrated_file_system
from synthesis import ZONE

ID = "cr-0a1b2c3d4e5f67890"


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield what users call: constructs, settings, and the static calls of classes that make themselves."""
    for name in library.__all__:
        found = getattr(library, name)
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            if dataclasses.is_dataclass(found) or issubclass(found, Construct):
                yield name, found
            statics = [each for each, value in vars(found).items() if isinstance(value, staticmethod | classmethod)]
            yield from ((f"{name}.{each}", getattr(found, each)) for each in statics if not each.startswith("_"))


# Made by the library alone; their settings are nothing that a user gives.
NOT_CALLED = {"Capacity", "GpuSharing", "IdleSignal", "NetworkInterface", "IdleGroup.of", "SpendGroup.of"}


def parameters(call: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the settings of a call, without the scope and the id of a construct."""
    target = call.__init__ if inspect.isclass(call) else call
    given = inspect.signature(target).parameters
    skipped = {"self", "scope", "id"} if takes_a_scope(call) else {"self"}
    return {
        name: each
        for name, each in given.items()
        if name not in skipped and each.kind is not inspect.Parameter.VAR_KEYWORD
    }


def takes_a_scope(call: Callable[..., Any]) -> bool:
    """Tell whether a call makes a construct."""
    target = call.__init__ if inspect.isclass(call) else call
    return {"scope", "id"} <= set(inspect.signature(target).parameters)


def _cluster(stack: Stack) -> TrainingCluster:
    return TrainingCluster(stack, "Whole", availability_zone=ZONE, node_groups=[_group()], cluster_name="whole")


def _group() -> NodeGroup:
    return NodeGroup("workers", instance_types=["g5.xlarge"], count=1)


def _spot_fleet() -> NodeGroup:
    return NodeGroup("extras", instance_types=["g5.xlarge"], count=1, capacity=library.Capacity.spot_fleet())


def _fleet(stack: Stack) -> dict[str, Any]:
    cluster = _cluster(stack)
    fleet = cluster.node_group("workers")
    profile = next(each for each in cluster.node.find_all() if each.node.id == "InstanceProfile")
    return {
        "cluster_name": "pod",
        "network": cluster.network,
        "node_group": fleet.node_group,
        "role": cluster.role,
        "instance_profile": profile,
    }


def _file_system_of_any_link(stack: Stack) -> TrainingFileSystem:
    """Return a file system that one directory may be linked to again and again, as no other call asks for."""

    class _OfAnyLink(TrainingFileSystem):
        def add_dataset(self, dataset: Dataset) -> None:
            """Link nothing."""

    return _OfAnyLink(stack, "Files", network=ClusterNetwork(stack, "FilesNet", availability_zone=ZONE))


def _power(stack: Stack) -> ClusterPower:
    return _cluster(stack).power


def _facts(cls: type) -> dict[str, Any]:
    info = instance_type_info("p5.48xlarge")
    found: Any = {"Accelerator": info.accelerators[0], "NetworkCard": info.network_cards[0]}.get(cls.__name__, info)
    return {each.name: getattr(found, each.name) for each in dataclasses.fields(found)}


RIGHT: Mapping[str, Callable[[Stack], dict[str, Any]]] = {
    "Accelerator": lambda _: _facts(library.Accelerator),
    "BillingAlarms": lambda stack: {
        "budget": Budget(monthly_usd=1),
        "name": "pod",
        "alert_topic": sns.Topic(stack, "T"),
    },
    "Budget": lambda _: {"monthly_usd": 20_000},
    "CostBudget": lambda stack: {
        "budget": Budget(monthly_usd=1),
        "cluster_name": "pod",
        "alert_topic": sns.Topic(stack, "T"),
    },
    "ClusterPrometheus": lambda stack: {
        "cluster_name": "pod",
        "observability": library.Observability(),
        "alert_topic": sns.Topic(stack, "T"),
    },
    "Observability": lambda _: {},
    "Observability.prometheus": lambda _: {},
    "HealthPolicy": lambda _: {},
    "NodeHealth": lambda stack: {
        "cluster_name": "health",
        # A group of Auto Scaling takes one hook, and so one function.
        "fleets": [library.NodeFleet(stack, "Fleet", **{**_fleet(stack), "node_group": _spot_fleet()})],
        "alert_topic": sns.Topic(stack, "T"),
    },
    "HyperPodCluster": lambda _: {"availability_zone": ZONE, "node_groups": [_group()]},
    "HyperPodSettings": lambda _: {},
    "Capacity.on_demand": lambda _: {},
    "Capacity.reservation": lambda _: {"end": datetime(2030, 1, 1, tzinfo=UTC)},
    "Capacity.from_reservation": lambda _: {"capacity_reservation_id": ID},
    "Capacity.capacity_block": lambda _: {"capacity_reservation_id": ID},
    "Capacity.training_plan": lambda _: {"arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama"},
    "Capacity.spot": lambda _: {},
    "Capacity.spot_fleet": lambda _: {},
    "Capacity.prioritized": lambda _: {"reservations": [ID]},
    "BatchJob": lambda _: {"name": "train", "image": "image", "command": ["run"]},
    "BatchJob.torchrun": lambda _: {"name": "train", "image": "image", "script": "/fsx/train.py"},
    "BatchJob.nccl_test": lambda _: {"image": "image"},
    "BatchQueue": lambda _: {"name": "main"},
    "BatchSettings": lambda _: {},
    "BatchTrainingQueue": lambda _: {"availability_zone": ZONE, "node_groups": [_group()]},
    "EksSettings": lambda _: {"control_plane_zone": "us-east-1a"},
    "EksTrainingCluster": lambda _: {
        "availability_zone": ZONE,
        "node_groups": [_group()],
        "eks": library.EksSettings(control_plane_zone="us-east-1a"),
    },
    "SystemNodes": lambda _: {},
    "LoginNodes": lambda _: {},
    "SlurmCluster": lambda _: {"availability_zone": ZONE, "node_groups": [_group()]},
    "SlurmNodes": lambda _: {},
    "SlurmQueue": lambda _: {"name": "train"},
    "SlurmSettings": lambda _: {},
    "CheckpointStore": lambda _: {},
    "CheckpointWatch": lambda stack: {
        "cluster_name": "pod",
        "checkpoints": exported_checkpoints(stack),
        "alert_topic": sns.Topic(stack, "T"),
    },
    "ClusterNetwork": lambda _: {"availability_zone": ZONE},
    "ClusterNetwork.from_subnet": lambda stack: {
        "vpc": (network := ClusterNetwork(stack, "Net", availability_zone=ZONE)).vpc,
        "subnet": network.node_subnet,
    },
    "ClusterPower": lambda stack: {
        "cluster_name": "pod",
        "groups": {"workers": PowerGroup.of(_cluster(stack).node_group("workers"), default_idle_policy())},
        "alert_topic": sns.Topic(stack, "T"),
    },
    "ClusterSpend": lambda stack: {
        "cluster_name": "pod",
        "budget": Budget(monthly_usd=1),
        "alert_topic": sns.Topic(stack, "T"),
    },
    "ClusterState": lambda _: {},
    "WeeklyCostReport": lambda stack: {"cluster_name": "pod", "alert_topic": sns.Topic(stack, "T")},
    "Dataset": lambda stack: {
        "bucket": s3.Bucket.from_bucket_name(stack, "B", "bucket"),
        "file_system_path": "/data",
    },
    "DatasetHydration": lambda stack: {
        "cluster_name": "pod",
        "alert_topic": sns.Topic(stack, "T"),
        "file_system": hydrated_file_system(stack),
    },
    "EfaSecurityGroup": lambda stack: {"vpc": ClusterNetwork(stack, "Net", availability_zone=ZONE).vpc},
    "ExportedCheckpoints": lambda stack: {"file_system": _file_system_of_any_link(stack)},
    "ExpressCheckpoints": lambda stack: {"network": ClusterNetwork(stack, "Net", availability_zone=ZONE)},
    "IdleGroup": lambda _: {},
    "GpuSharing.mig": lambda _: {"profiles": "1g.10gb"},
    "GpuSharing.mps": lambda _: {"replicas": 2},
    "GpuSharing.time_slicing": lambda _: {"replicas": 2},
    "IdlePolicy": lambda _: {},
    "IdlePolicy.off": lambda _: {},
    **{
        f"IdleSignal.{each}": lambda _: {}
        for each in ("host", "network", "efa", "gpu_memory", "heartbeat", "session")
    },
    "IdleSignal.metric": lambda _: {"namespace": "n", "name": "m", "statistic": "Sum", "below": 1},
    "IdleStop": lambda stack: {"cluster_name": "pod", "alert_topic": sns.Topic(stack, "T")},
    "InstanceTypeInfo": lambda _: _facts(InstanceTypeInfo),
    "NetworkCard": lambda _: _facts(library.NetworkCard),
    "NodeFleet": _fleet,
    "NodeGroup": lambda _: {"name": "workers", "instance_types": ["g5.xlarge"], "count": 1},
    "ResumeDocument": lambda stack: {"cluster_name": "pod", "node_groups": ["workers"], "power": _power(stack)},
    "Schedule": lambda _: {"windows": ["daily 08:00-20:00 UTC"]},
    "SpendGroup": lambda _: {},
    "TrainingCluster": lambda _: {"availability_zone": ZONE, "node_groups": [_group()]},
    "TrainingFileSystem.from_attributes": lambda stack: {
        "network": (network := ClusterNetwork(stack, "Net", availability_zone=ZONE)),
        "file_system_id": "fs-0a1b2c3d4e5f67890",
        "mount_name": "abcdefgh",
        "security_group": network.security_group.security_group,
    },
    "TrainingFileSystem": lambda stack: {"network": ClusterNetwork(stack, "Net", availability_zone=ZONE)},
    "WarmPool": lambda _: {"size": 1},
    "choose_storage": lambda _: {"dataset_gib": 1200, "gbps": 1.0, "nodes": 1},
    "instance_type_info": lambda _: {"name": "g5.xlarge"},
}
"""Settings that are right, by call."""


def called(call: Callable[..., Any], stack: Stack, given: Mapping[str, Any], id: str) -> Any:
    """Make a call.

    Args:
        call: The call.
        stack: Where a construct is made.
        given: Its settings.
        id: The id of a construct.
    """
    return call(stack, id, **given) if takes_a_scope(call) else call(**given)
