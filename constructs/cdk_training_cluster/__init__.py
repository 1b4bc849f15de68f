"""AWS CDK constructs for GPU and Trainium training clusters.

`TrainingCluster` composes everything; the parts stand alone too. Names that are not listed here are not public.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cdk_training_cluster.capacity import UNTIL_CANCELLED, Capacity, OnIdle, UntilCancelled
from cdk_training_cluster.cluster.training_cluster import TrainingCluster
from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.functions import FunctionArguments, GuardrailArguments
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
from cdk_training_cluster.guardrails.health import HealthPolicy, NodeHealth
from cdk_training_cluster.guardrails.power import ClusterPower
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
from cdk_training_cluster.orchestrators.batch import BatchJob, BatchQueue, BatchSettings
from cdk_training_cluster.orchestrators.eks import EksSettings, SystemNodes
from cdk_training_cluster.orchestrators.hyperpod import (
    DeepHealthCheck,
    HyperPodOrchestration,
    HyperPodSettings,
    NodeRecovery,
)
from cdk_training_cluster.orchestrators.slurm import (
    LoginNodes,
    Preemption,
    SlurmNodes,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)
from cdk_training_cluster.storage import (
    CheckpointStore,
    Dataset,
    DatasetEvent,
    ExportedCheckpoints,
    ExpressCheckpoints,
    TrainingFileSystem,
    choose_storage,
)

if TYPE_CHECKING:
    from cdk_training_cluster.orchestrators.batch.batch_training_queue import BatchTrainingQueue
    from cdk_training_cluster.orchestrators.eks.eks_cluster import EksTrainingCluster
    from cdk_training_cluster.orchestrators.hyperpod.hyperpod_cluster import HyperPodCluster
    from cdk_training_cluster.orchestrators.slurm.slurm_cluster import SlurmCluster
else:
    # Imported when they are asked for: each needs a module of aws-cdk-lib that other clusters do without.
    _OF_ORCHESTRATORS = {
        "BatchTrainingQueue": "batch.batch_training_queue",
        "EksTrainingCluster": "eks.eks_cluster",
        "HyperPodCluster": "hyperpod.hyperpod_cluster",
        "SlurmCluster": "slurm.slurm_cluster",
    }

    def __getattr__(name: str) -> object:
        """Return the construct of an orchestrator; Python asks here for a name that is not there yet."""
        if name not in _OF_ORCHESTRATORS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        return getattr(import_module(f"{__name__}.orchestrators.{_OF_ORCHESTRATORS[name]}"), name)

    def __dir__() -> list[str]:
        """Return the names of the package, those of the orchestrators' constructs too."""
        return [*globals(), *_OF_ORCHESTRATORS]


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
    "FunctionArguments",
    "GpuSharing",
    "GuardrailArguments",
    "HealthPolicy",
    "HyperPodCluster",
    "HyperPodOrchestration",
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
    "NodeHealth",
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
