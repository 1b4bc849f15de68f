"""The settings of Kubernetes on Amazon EKS in a cluster file."""

from typing import Unpack

from constructs import Construct
from pydantic import Field

from cdk_training_cluster import EksSettings as Eks
from cdk_training_cluster import SystemNodes, TrainingCluster
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.orchestrators.eks.add_ons import add_ons_without_policy
from cdk_training_cluster.orchestrators.eks.settings import DEFAULT_VERSION, LOG_TYPES, LogType
from cdk_training_cluster.validation.rule import refuse
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.kubernetes import KubernetesSettings
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel


class SystemNodeSettings(Settings, ModelOf[SystemNodes]):
    """The nodes that add-ons and operators run on, around the clock."""

    instance_type: str = "m7i.large"
    """Their EC2 type, without accelerators."""

    count: int = 2
    """How many there are: 1 to 100."""


class EksSettings(OrchestratorModel, ModelOf[Eks], names={"kubernetes": "job_namespaces"}):
    """Kubernetes on Amazon EKS."""

    control_plane_zone: str | None = Field(default=None, examples=["us-east-1a"])
    """A second Availability Zone for the control plane, in which a small subnet is made. Either this or
    control_plane_subnet_id."""

    control_plane_subnet_id: str | None = Field(default=None, examples=["subnet-0a1b2c3d4e5f67891"])
    """An existing subnet of the VPC in a second zone, for the control plane. Either this or control_plane_zone."""

    kubernetes_version: str = DEFAULT_VERSION
    """The minor version of Kubernetes. The next one replaces the nodes."""

    private_access_cidrs: tuple[str, ...] = Field(default=(), examples=[["10.8.0.0/16"]])
    """The IPv4 ranges of the VPC, and of networks that a VPN or peering joins to it, from which the Kubernetes API is
    reached. Left out: only the cluster's nodes reach it there."""

    public_access_cidrs: tuple[str, ...] = Field(default=(), examples=[["203.0.113.0/24"]])
    """The IPv4 ranges from which the Kubernetes API is reached over the internet. Left out: it is private."""

    admins: tuple[str, ...] = Field(default=(), examples=[["arn:aws:iam::111122223333:role/ml-platform"]])
    """The ARNs of the IAM roles and users that administer the cluster. Left out: a role is made for it."""

    add_ons: tuple[str, ...] = Field(default=(), examples=[["cert-manager"]])
    """Add-ons of EKS beside those that every cluster has."""

    add_on_versions: dict[str, str] = Field(default={}, examples=[{"coredns": "v1.12.4-eksbuild.1"}])
    """The versions of add-ons, by name. Left out: the one that EKS recommends when it is made."""

    add_on_policies: dict[str, tuple[str, ...]] = Field(
        default={}, examples=[{"external-dns": ["arn:aws:iam::111122223333:policy/external-dns"]}]
    )
    """The ARNs of IAM policies for the roles of add-ons, by name: external-dns and aws-mountpoint-s3-csi-driver need
    some. Left out: add-ons may do what AWS's own policies for them allow."""

    release_version: str | None = Field(default=None, examples=["1.36.0-20260818"])
    """The release of EKS's images for node groups with image latest; another one replaces the nodes. Left out: the
    newest when a group is made, which the group keeps."""

    system_nodes: SystemNodeSettings = SystemNodeSettings()
    """Where add-ons and operators run."""

    logs: tuple[LogType, ...] = LOG_TYPES
    """What the control plane logs to CloudWatch."""

    node_repair: Flag = True
    """Whether EKS reboots or replaces nodes that its monitoring agent reports as broken. A change takes effect with a
    node group's next start."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """What is installed on the cluster and how teams share it; `training-cluster manifests` writes it."""

    def to_eks(self) -> Eks:
        """Return the settings as the construct takes them."""
        return self.for_constructs(job_namespaces=[*self.kubernetes.namespaces().values()])

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it.

        Raises:
            SettingsError: The settings contradict each other; every reason, a line each.
        """
        missing = [each for each in add_ons_without_policy(self.add_ons) if not self.add_on_policies.get(each)]
        refuse(
            {
                "add_on_policies": [
                    f"is required for {name}, whose role may do nothing without: add its IAM policies, such as "
                    f"add_on_policies: {{{name}: [arn:aws:iam::111122223333:policy/{name}]}}, or leave it out of "
                    "add_ons"
                    for name in missing
                ]
            }
        )
        from cdk_training_cluster.orchestrators.eks.eks_orchestrator import EksOrchestrator  # noqa: PLC0415 - only for its clusters

        return EksOrchestrator(self.to_eks())

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster."""
        from cdk_training_cluster import EksTrainingCluster  # noqa: PLC0415 - only for its clusters

        return EksTrainingCluster(scope, id, eks=self.to_eks(), **arguments)
