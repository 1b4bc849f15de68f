"""What SageMaker HyperPod adds to a cluster.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sagemaker-cluster.html
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from aws_cdk import Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator, Output, own_nodes
from cdk_training_cluster.core.acknowledgements import ignore_lint, warn
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import Mount
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.fleet_owners import MadeOwner
from cdk_training_cluster.nodes.job_role import make_job_role
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.layouts import launch_layouts
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.hyperpod.caller_permissions import (
    eks_statements,
    image_statements,
    key_statements,
)
from cdk_training_cluster.orchestrators.hyperpod.execution_role import make_execution_role
from cdk_training_cluster.orchestrators.hyperpod.instance_types import sagemaker_name
from cdk_training_cluster.orchestrators.hyperpod.lifecycle import make_lifecycle
from cdk_training_cluster.orchestrators.hyperpod.rules import CONTROLLER, HYPERPOD_RULES, LOGIN, HyperPodContext
from cdk_training_cluster.orchestrators.hyperpod.settings import HyperPodOrchestration, HyperPodSettings, NodeRecovery
from cdk_training_cluster.orchestrators.job_pods import give_pods_role
from cdk_training_cluster.prices.watching import sum_units
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.rule import Level, Problem, broken
from cluster_contract.owners import OwnerKind, OwnerSettings

_PRICES: Final = (
    "SageMaker bills HyperPod's nodes at prices of its own, which the price book does not have: plan shows them as "
    "unknown. Ask AWS with plan --live, or look them up at https://aws.amazon.com/sagemaker/ai/pricing/ and state "
    "them with --price ml.p5.48xlarge=USD. A budget's spend function asks the AWS Price List; where that has none, "
    "state them in the budget's prices."
)
_CLUSTER_NAME: Final = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class HyperPodOrchestrator(Orchestrator):
    """Launch nodes as instance groups of a SageMaker HyperPod cluster.

    Attributes:
        settings: What the user says of the cluster.
        cluster: The HyperPod cluster, once it is made.
        governance: Its task governance. None: it has none.
    """

    def __init__(self, settings: HyperPodSettings) -> None:
        self.settings = settings
        self.cluster: sagemaker.CfnCluster
        self.governance: sagemaker.CfnClusterSchedulerConfig | None = None
        self._groups: list[dict[str, Any]] = []

    @property
    def kind(self) -> OrchestratorKind:
        """HyperPod on Slurm or on EKS."""
        return self.settings.orchestrator.kind

    def problems(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what is wrong with HyperPod's settings, by themselves and beside the node groups."""
        yield from broken(HYPERPOD_RULES, HyperPodContext(hyperpod=self.settings, cluster=together))

    def warnings(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what of HyperPod will surprise."""
        context = HyperPodContext(hyperpod=self.settings, cluster=together)
        yield from broken(HYPERPOD_RULES, context, level=Level.WARNING)
        yield Problem(setting=("hyperpod",), message=_PRICES, rule="hyperpodPrices")

    def make_role(self, base: ClusterBase) -> iam.Role:
        """Make the execution role."""
        return make_execution_role(base.scope, self.settings.orchestrator, cluster_name=base.cluster_name)

    def make_job_role(self, base: ClusterBase, role: iam.Role) -> iam.Role:
        """Make the role of jobs' pods on EKS; on Slurm jobs have the execution role."""
        arn = self.settings.eks_cluster_arn
        return role if arn is None else make_job_role(base.scope, eks_cluster_arn=arn)

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect | None:  # noqa: ARG002 - all groups alike
        """Return None: HyperPod takes no launch template."""
        return None

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:  # noqa: ARG002 - as the base
        """Make the HyperPod cluster; its node groups join its list as they are made."""
        name = base.cluster_name
        if is_unknown(name) or not _CLUSTER_NAME.fullmatch(name):
            raise ValueError(
                "cluster_name must be known when the template is made and be at most 63 letters, digits and hyphens "
                f"between them for HyperPod, got {shown(name)}: give one"
            )
        if base.file_system is not None and any(each.preload for each in base.file_system.datasets):
            warn(
                base.scope,
                "hyperpodPreload",
                "preload sends commands to EC2 instances, and HyperPod's nodes are none of the account's: data sets "
                "are loaded when they are first read. Leave preload out.",
            )
        if base.encryption_key is not None:
            for statement in key_statements(base.encryption_key):
                shared.role.add_to_policy(statement)
        if self.settings.eks_cluster_arn is not None:
            give_pods_role(
                base.scope,
                shared.job_role,
                eks_cluster=Fn.select(1, Fn.split(":cluster/", self.settings.eks_cluster_arn)),
                namespaces=self.settings.job_namespaces,
            )
        self._groups = list(self._slurm_groups(base, shared.role))
        on_slurm = self.settings.orchestrator is HyperPodOrchestration.SLURM
        percent = self.settings.tiered_storage_percent
        properties = {
            "ClusterName": name,
            # Without it, one node that cannot be had or set up rolls a whole update back.
            # https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-scaling-slurm.html
            "NodeProvisioningMode": "Continuous",
            "NodeRecovery": self.settings.node_recovery.value,
            # Slurm is what there is without an orchestrator. With continuous provisioning its configuration is always
            # merged, and a strategy is refused.
            **({} if on_slurm else {"Orchestrator": {"Eks": {"ClusterArn": self.settings.eks_cluster_arn}}}),
            "VpcConfig": {
                "SecurityGroupIds": [
                    *(group.security_group_id for group in base.network.connections.security_groups),
                    *(() if self.settings.eks_security_group_id is None else (self.settings.eks_security_group_id,)),
                ],
                "Subnets": [base.network.node_subnet.subnet_id],
            },
            "InstanceGroups": self._groups,
            **(
                {}
                if percent is None
                else {"TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": percent}}
            ),
        }
        self.cluster = sagemaker.CfnCluster(base.scope, "HyperPod")
        for key, value in properties.items():
            self.cluster.add_property_override(key, value)
        # SageMaker launches the controller at once, and makes network interfaces with the role's own policy.
        # https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
        self.cluster.node.add_dependency(shared.role)
        # CDK names the role itself beside its policy, though a reference says as much: cfn-lint W3005.
        ignore_lint(self.cluster, "W3005")

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002
        """Add the group to the HyperPod cluster."""
        group = fleet.node_group
        layout = next(iter(launch_layouts(group, fleet.instance_types, self.kind)))
        set_up = fleet.make_bootstrap("Bootstrap", layout, fleet.instance_types, NodeSetup(mounts=False))
        lifecycle = make_lifecycle(
            fleet,
            cluster_name=fleet.cluster_name,
            node_group=group.name,
            set_up=set_up.user_data.render(),
            role=fleet.role,
            orchestration=self.settings.orchestrator,
        )
        plan = group.capacity.training_plan_arn
        image = None if group.machine_image is None else group.machine_image.get_image(fleet).image_id
        checks = [each.value for each in self.settings.deep_health_checks]
        self._groups.append(
            {
                "InstanceGroupName": group.name,
                "InstanceType": sagemaker_name(group.instance_types[0]),
                # CloudFormation sends the counts of all groups with any change of the cluster: a smaller one would
                # end nodes that train. With continuous provisioning no deployment waits for them.
                "InstanceCount": group.count,
                "ExecutionRole": fleet.role.role_arn,
                "LifeCycleConfig": lifecycle,
                **self._slurm("Compute", PartitionNames=[self.settings.partition_of(group.name)]),
                **self._storage(fleet.mount, fleet.encryption_key),
                **({"ImageId": image} if image else {}),
                **({"OnStartDeepHealthChecks": checks} if checks else {}),
                **({"TrainingPlanArn": plan} if plan else {}),
                **({"CapacityRequirements": {"Spot": {}}} if group.capacity.uses_spot else {}),
            }
        )
        self.cluster.add_property_override("InstanceGroups", self._groups)
        owner = f"{fleet.cluster_name}/{group.name}"
        settings = OwnerSettings(kind=OwnerKind.HYPERPOD_INSTANCE_GROUP, id=owner)
        return MadeOwner(
            resource=self.cluster,
            settings=settings,
            size_permissions=tuple(self._caller_statements(fleet.encryption_key, image)),
        )

    def make_rest(self, base: ClusterBase, shared: SharedParts, fleets: Mapping[str, NodeFleet]) -> None:  # noqa: ARG002 - as the base
        """Make task governance."""
        classes = self.settings.priority_classes
        if classes:
            weights = sorted(classes.items(), key=lambda each: (-each[1], each[0]))
            self.governance = sagemaker.CfnClusterSchedulerConfig(
                base.scope,
                "TaskGovernance",
                name=f"{base.cluster_name[:56]}-policy",
                cluster_arn=self.cluster.attr_cluster_arn,
                scheduler_config=sagemaker.CfnClusterSchedulerConfig.SchedulerConfigProperty(
                    fair_share="Enabled",
                    priority_classes=[
                        sagemaker.CfnClusterSchedulerConfig.PriorityClassProperty(name=name, weight=weight)
                        for name, weight in weights
                    ],
                ),
            )

    def price_name(self, instance_type: str) -> str:
        """Return the name that SageMaker sells a type under, at a price of its own."""
        return sagemaker_name(instance_type)

    def hourly_units(self) -> Mapping[str, Decimal]:
        """Return that Slurm's own nodes run around the clock."""
        return sum_units(own_nodes(each, 1) for each in self._own_types.values())

    def describe(self) -> Iterator[str]:
        """Yield Slurm's own nodes, and what HyperPod does with broken ones."""
        yield from (f"{name}: 1 x {instance_type}" for name, instance_type in self._own_types.items())
        automatic = self.settings.node_recovery is NodeRecovery.AUTOMATIC
        yield "HyperPod reboots or replaces broken nodes" if automatic else "HyperPod repairs no broken nodes"

    def outputs(self, cluster_name: str) -> Iterator[Output]:
        """Yield the HyperPod cluster's ARN."""
        yield Output(
            name="HyperPodClusterArn",
            value=self.cluster.attr_cluster_arn,
            description=f"The HyperPod cluster {cluster_name}",
        )

    def _slurm_groups(self, base: ClusterBase, role: iam.IRole) -> Iterator[dict[str, Any]]:
        """Yield Slurm's own instance groups, which run as long as the cluster is there."""
        for name, instance_type in self._own_types.items():
            yield {
                "InstanceGroupName": name,
                "InstanceType": instance_type,
                "InstanceCount": 1,
                "ExecutionRole": role.role_arn,
                **self._slurm(name.capitalize()),
                **self._storage(base.mount, base.encryption_key),
            }

    @property
    def _own_types(self) -> Mapping[str, str]:
        """The types of Slurm's own nodes, by what they are."""
        if self.settings.orchestrator is not HyperPodOrchestration.SLURM:
            return {}
        types = {CONTROLLER: self.settings.controller_type, LOGIN: self.settings.login_type}
        return {name: each for name, each in types.items() if each is not None}

    def _slurm(self, node_type: str, **more: Sequence[str]) -> dict[str, Any]:
        """Return what Slurm has to know of an instance group."""
        on_slurm = self.settings.orchestrator is HyperPodOrchestration.SLURM
        return {"SlurmConfig": {"NodeType": node_type, **more}} if on_slurm else {}

    def _storage(self, mount: Mount | None, key: kms.IKey | None) -> dict[str, Any]:
        """Return the file system that HyperPod mounts, which on EKS a CSI driver does, and the root volume's key."""
        configs: list[dict[str, Any]] = []
        if mount is not None and self.settings.orchestrator is HyperPodOrchestration.SLURM:
            place = {"DnsName": mount.dns_name, "MountName": mount.mount_name, "MountPath": mount.mount_point}
            configs.append({"FsxLustreConfig": place})
        if key is not None:
            configs.append({"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": key.key_arn}})
        return {"InstanceStorageConfigs": configs} if configs else {}

    def _caller_statements(self, key: kms.IKey | None, image: str | None) -> Iterator[iam.PolicyStatement]:
        if self.settings.eks_cluster_arn is not None:
            yield from eks_statements(self.settings.eks_cluster_arn)
        if key is not None:
            yield from key_statements(key)
        if image is not None:
            yield from image_statements(image)
