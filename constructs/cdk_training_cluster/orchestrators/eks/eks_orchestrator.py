"""What Amazon EKS adds to a training cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from decimal import Decimal

from aws_cdk import aws_iam as iam

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator, Output, own_nodes
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.nodes import NodeGroup, launch_dialect
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.fleet_owners import MadeOwner
from cdk_training_cluster.nodes.job_role import make_job_role
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.eks.add_ons import FSX_CSI, chosen_add_ons
from cdk_training_cluster.orchestrators.eks.control_plane import (
    NODE_POLICIES,
    SYSTEM_VOLUME_GIB,
    EksControlPlane,
    add_managed_policies,
)
from cdk_training_cluster.orchestrators.eks.fixed_tags import keep_fixed_tags
from cdk_training_cluster.orchestrators.eks.node_groups import (
    GPU_ACCESS,
    make_managed_node_group,
    node_config,
    nodeadm_takes_disks,
    owner_options,
)
from cdk_training_cluster.orchestrators.eks.rules import EKS_RULES, EksContext
from cdk_training_cluster.orchestrators.eks.settings import SUPPORT_ENDS, EksSettings
from cdk_training_cluster.orchestrators.job_pods import give_pods_role
from cdk_training_cluster.storage import TrainingFileSystem
from cdk_training_cluster.validation.rule import Problem, broken
from cluster_contract.owners import OwnerKind, OwnerSettings


class EksOrchestrator(Orchestrator):
    """Make an EKS cluster, and launch its nodes with managed node groups.

    Attributes:
        settings: What the EKS cluster is like.
        control_plane: The EKS cluster.
    """

    control_plane: EksControlPlane

    def __init__(self, settings: EksSettings) -> None:
        """Take the settings.

        Args:
            settings: What the EKS cluster is like.
        """
        self.settings: EksSettings = settings

    @property
    def kind(self) -> OrchestratorKind:
        """Amazon EKS."""
        return OrchestratorKind.EKS

    def problems(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what EKS refuses."""
        yield from broken(EKS_RULES, EksContext(settings=self.settings, together=together))

    def make_role(self, base: ClusterBase) -> iam.Role:
        """Make the nodes' role, with what joins nodes to the cluster and pulls images."""
        role = super().make_role(base)
        add_managed_policies(role, *NODE_POLICIES)
        return role

    def make_job_role(self, base: ClusterBase, role: iam.Role) -> iam.Role:  # noqa: ARG002 - pods do not get it from nodes
        """Make the role of jobs' pods."""
        return make_job_role(base.scope, eks_cluster_arn=HERE.arn("eks", f"cluster/{base.cluster_name}"))

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:  # noqa: ARG002 - it is for all
        """Make the control plane, the system nodes and the add-ons."""
        files = base.file_system
        self.control_plane = EksControlPlane(
            base.scope,
            "Eks",
            cluster_name=base.cluster_name,
            network=base.network,
            settings=self.settings,
            encryption_key=base.encryption_key,
        )
        add_ons = chosen_add_ons(self.settings.add_ons, file_system=files is not None)
        self.control_plane.make_add_ons(add_ons)
        give_pods_role(
            base.scope,
            shared.job_role,
            eks_cluster=self.control_plane.cluster.ref,
            namespaces=self.settings.job_namespaces,
        )
        if files is not None:
            self._let_look_at(files)

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect:
        """Return what the group's launch templates say: without an image EKS takes its own."""
        if node_group.machine_image is not None:
            return launch_dialect.EKS
        return replace(launch_dialect.EKS, image=False)

    def security_groups(self, fleet: Fleet) -> Sequence[str]:  # noqa: ARG002 - the same for all
        """Return the cluster security group, which EKS adds to no template that names groups.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-security-groups
        """
        return (self.control_plane.cluster.attr_cluster_security_group_id,)

    def node_setup(self, fleet: Fleet) -> NodeSetup:
        """Return what joins a node to the cluster, and what limits its pods to their GPUs."""
        group, info = fleet.node_group, fleet.instance_type
        part = node_config(self.control_plane.cluster, group, info)
        # It starts after the script, and ends before the kubelet where the disks are in use already.
        return NodeSetup(
            scripts_before=[GPU_ACCESS] if info.has_nvidia_gpus else (),
            user_data_parts=() if part is None else (part,),
            joins_disks=not nodeadm_takes_disks(group, info),
        )

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002 - the template names it
        """Make the managed node group, with no nodes."""
        group = make_managed_node_group(fleet, self.control_plane.cluster, self.settings, launches[0].template)
        keep_fixed_tags(group)
        group.node.add_dependency(*self.control_plane.before_nodes)
        options = owner_options(fleet.node_group, fleet.instance_type, self.settings)
        # It refers to itself as <cluster>/<node group>.
        owner = OwnerSettings(kind=OwnerKind.EKS_NODEGROUP, id=group.ref, options=options)
        return MadeOwner(resource=group, settings=owner)

    def hourly_units(self) -> Mapping[str, Decimal]:
        """Return that the control plane and the system nodes run around the clock; extended support has a start.

        Source: https://aws.amazon.com/eks/pricing/
        """
        nodes = self.settings.system_nodes
        return {
            "eks-control-plane": Decimal(1),
            **dict.fromkeys(self.billing_starts(), Decimal(1)),
            **own_nodes(nodes.instance_type, nodes.count, volume_gib=SYSTEM_VOLUME_GIB),
        }

    def billing_starts(self) -> Mapping[str, datetime]:
        """Return when standard support of the Kubernetes version ends, from when on EKS bills extended support.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/enable-extended-support.html
        """
        ends = SUPPORT_ENDS.get(self.settings.kubernetes_version)
        return {} if ends is None else {"eks-extended-support": datetime.combine(ends[0], time(), UTC)}

    def describe(self) -> Iterator[str]:
        """Yield what EKS does with broken nodes."""
        yield "EKS reboots or replaces broken nodes" if self.settings.node_repair else "EKS repairs no broken nodes"

    def outputs(self, cluster_name: str) -> Iterator[Output]:
        """Yield the command that lets kubectl into the cluster."""
        role = self.control_plane.admin_role
        as_whom = "" if role is None else f" --role-arn {role.role_arn}"
        yield Output(
            name="KubeconfigCommand",
            value=f"aws eks update-kubeconfig --region {HERE.region} --name {cluster_name}{as_whom}",
            description="Lets kubectl into the EKS cluster",
        )

    def _let_look_at(self, files: TrainingFileSystem) -> None:
        # Nothing else: a claim of a pod could make file systems, which are billed by the hour.
        # https://github.com/kubernetes-sigs/aws-fsx-csi-driver/blob/master/docs/README.md
        self.control_plane.add_on_roles[FSX_CSI].add_to_policy(
            iam.PolicyStatement(
                actions=["fsx:DescribeFileSystems"],
                resources=[HERE.arn("fsx", f"file-system/{files.file_system_id}")],
            )
        )
