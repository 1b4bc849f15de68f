"""The values of a cluster that exist before its orchestrator and its guardrails, and that its parts are made of."""

from dataclasses import dataclass

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import Mount
from cdk_training_cluster.observability.prometheus import ClusterPrometheus
from cdk_training_cluster.storage import CheckpointStore, TrainingFileSystem


@dataclass(frozen=True, kw_only=True)
class ClusterBase:
    """Hold what a cluster has before its orchestrator makes anything.

    Attributes:
        scope: The cluster's construct, the scope of its parts.
        cluster_name: The cluster's name.
        network: Where the nodes live.
        file_system: The file system that the nodes mount. None: there is none.
        encryption_key: The KMS key that encrypts what is made. None: none is given.
        checkpoints: Where training keeps its checkpoints. None: nowhere.
    """

    scope: Construct
    cluster_name: str
    network: ClusterNetwork
    file_system: TrainingFileSystem | None
    encryption_key: kms.IKey | None
    checkpoints: CheckpointStore | None

    @property
    def mount(self) -> Mount | None:
        """The file system that nodes mount, and where. None: there is no file system."""
        files = self.file_system
        if files is None:
            return None
        return Mount(
            dns_name=files.dns_name,
            mount_name=files.mount_name,
            mount_point=files.mount_point,
            efa=files.efa_enabled,
        )


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    """Hold what the nodes of all groups share.

    Attributes:
        role: The nodes' role.
        job_role: The jobs' role, which may be that of the nodes.
        instance_profile: The profile that carries the nodes' role.
        alert_topic: Where alarms and functions report.
        prometheus: The workspace of Prometheus that the nodes write to. None: there is none.
        runs_table: The table in which nodes of a run find each other.
    """

    role: iam.Role
    job_role: iam.Role
    instance_profile: iam.InstanceProfile
    alert_topic: sns.ITopic
    prometheus: ClusterPrometheus | None
    runs_table: dynamodb.Table
