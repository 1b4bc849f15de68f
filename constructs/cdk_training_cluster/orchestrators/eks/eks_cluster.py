"""A training cluster whose jobs run on Kubernetes."""

from typing import Unpack

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.aws_eks_v2 import CfnCluster
from constructs import Construct

from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.training_cluster import TrainingCluster
from cdk_training_cluster.orchestrators.eks.eks_orchestrator import EksOrchestrator
from cdk_training_cluster.orchestrators.eks.settings import EksSettings
from cdk_training_cluster.validation.kinds import checked


class EksTrainingCluster(TrainingCluster):
    """Make a training cluster on Amazon EKS: a `TrainingCluster` whose nodes are EKS managed node groups.

    Nodes join an EKS cluster with EKS's own images, or yours. Idle stop, schedules, budgets and operators set the
    size of a managed node group as they set that of an Auto Scaling group. What Kubernetes itself needs beside EKS's
    add-ons, device plugins above all, is in the folder that `training-cluster manifests` writes.

    Resources: what `TrainingCluster` makes, with an `AWS::EKS::Nodegroup` for each node group in place of an Auto
    Scaling group, an `AWS::EKS::Cluster`, two system nodes, an `AWS::EKS::Addon` for each add-on, an
    `AWS::EKS::AccessEntry` for each administrator, an `AWS::EKS::PodIdentityAssociation` for each namespace of jobs,
    and an `AWS::Logs::LogGroup` for what the control plane logs. No custom resource.

    Attributes:
        add_on_roles: The IAM roles of add-ons, by the add-on's name, for `bucket.grant_read_write(…)` and the like.
        admin_role: The role that administers Kubernetes. None: `EksSettings.admins` names who does.
        api_connections: Who reaches the Kubernetes API within the VPC: its nodes, and what
            `api_connections.allow_default_port_from(bastion)` lets in.
        eks_cluster: The EKS cluster.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/machine-learning-on-eks.html
    """

    @checked
    def __init__(
        self, scope: Construct, id: str, *, eks: EksSettings, **arguments: Unpack[TrainingClusterArguments]
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            eks: What the EKS cluster is like.
            **arguments: What `TrainingCluster` takes.

        Raises:
            ValueError: What `TrainingCluster` refuses, or EKS; every reason, a line each.
        """
        orchestrator = EksOrchestrator(eks)
        super().__init__(scope, id, _orchestrator=orchestrator, **arguments)
        control = orchestrator.control_plane
        self.eks_cluster: CfnCluster = control.cluster
        self.api_connections: ec2.Connections = control.api_connections
        self.admin_role: iam.Role | None = control.admin_role
        self.add_on_roles: dict[str, iam.Role] = control.add_on_roles
