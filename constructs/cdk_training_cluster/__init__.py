"""AWS CDK constructs for GPU and Trainium training clusters.

`TrainingCluster` composes everything; the parts stand alone too. Names that are not listed here are not public.
"""

from cdk_training_cluster.capacity import UNTIL_CANCELLED, Capacity, OnIdle, UntilCancelled
from cdk_training_cluster.guardrails import (
    BillingAlarms,
    Budget,
    CheckpointWatch,
    ClusterSpend,
    CostBudget,
    DatasetHydration,
    IdleGroup,
    IdleStop,
    OnExceed,
    ResumeDocument,
    SpendGroup,
    WeeklyCostReport,
)
from cdk_training_cluster.instance_types import (
    Accelerator,
    AcceleratorKind,
    InstanceTypeInfo,
    NetworkCard,
    instance_type_info,
)
from cdk_training_cluster.network import ClusterNetwork, EfaSecurityGroup, InterfaceLayout, NetworkInterface
from cdk_training_cluster.nodes import (
    GpuSharing,
    IdlePolicy,
    IdleScope,
    IdleSignal,
    NodeFleet,
    NodeGroup,
    Placement,
    Schedule,
    ScheduleEnd,
    SharingMethod,
    WarmPool,
)
from cdk_training_cluster.observability.prometheus import ClusterPrometheus, Observability
from cdk_training_cluster.orchestrators.batch import BatchJob, BatchQueue, BatchSettings, BatchTrainingQueue
from cdk_training_cluster.orchestrators.eks import EksSettings, EksTrainingCluster, SystemNodes
from cdk_training_cluster.orchestrators.hyperpod.hyperpod_cluster import HyperPodCluster
from cdk_training_cluster.orchestrators.hyperpod.settings import (
    DeepHealthCheck,
    HyperPodEngine,
    HyperPodSettings,
    NodeRecovery,
)
from cdk_training_cluster.orchestrators.slurm import (
    LoginNodes,
    Preemption,
    SlurmCluster,
    SlurmNodes,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)
from cdk_training_cluster.power import ClusterPower
from cdk_training_cluster.state import ClusterState
from cdk_training_cluster.storage import (
    CheckpointStore,
    Dataset,
    DatasetEvent,
    ExportedCheckpoints,
    ExpressCheckpoints,
    TrainingFileSystem,
    choose_storage,
)
from cdk_training_cluster.training_cluster import TrainingCluster

__all__ = [
    "UNTIL_CANCELLED",
    "Accelerator",
    "AcceleratorKind",
    "BatchJob",
    "BatchQueue",
    "BatchSettings",
    "BatchTrainingQueue",
    "BillingAlarms",
    "Budget",
    "Capacity",
    "CheckpointStore",
    "CheckpointWatch",
    "ClusterNetwork",
    "ClusterPower",
    "ClusterPrometheus",
    "ClusterSpend",
    "ClusterState",
    "CostBudget",
    "Dataset",
    "DatasetEvent",
    "DatasetHydration",
    "DeepHealthCheck",
    "EfaSecurityGroup",
    "EksSettings",
    "EksTrainingCluster",
    "ExportedCheckpoints",
    "ExpressCheckpoints",
    "GpuSharing",
    "HyperPodCluster",
    "HyperPodEngine",
    "HyperPodSettings",
    "IdleGroup",
    "IdlePolicy",
    "IdleScope",
    "IdleSignal",
    "IdleStop",
    "InstanceTypeInfo",
    "InterfaceLayout",
    "LoginNodes",
    "NetworkCard",
    "NetworkInterface",
    "NodeFleet",
    "NodeGroup",
    "NodeRecovery",
    "Observability",
    "OnExceed",
    "OnIdle",
    "Placement",
    "Preemption",
    "ResumeDocument",
    "Schedule",
    "ScheduleEnd",
    "SharingMethod",
    "SlurmCluster",
    "SlurmNodes",
    "SlurmQueue",
    "SlurmSettings",
    "SlurmSize",
    "SlurmVersion",
    "SpendGroup",
    "SystemNodes",
    "TrainingCluster",
    "TrainingFileSystem",
    "UntilCancelled",
    "WarmPool",
    "WeeklyCostReport",
    "choose_storage",
    "instance_type_info",
]
