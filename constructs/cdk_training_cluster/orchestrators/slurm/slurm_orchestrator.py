"""What Slurm on AWS PCS adds to a cluster: the controller, compute node groups, queues and login nodes."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator, Output, own_nodes
from cdk_training_cluster.core.encryption import KeyUser
from cdk_training_cluster.nodes import launch_dialect
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.fleet_owners import MadeOwner
from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import (
    NodeGroupConfiguration,
    SlurmConfiguration,
    slurm_configuration,
)
from cdk_training_cluster.orchestrators.slurm.log_delivery import deliver_logs
from cdk_training_cluster.orchestrators.slurm.login_nodes import make_login_group
from cdk_training_cluster.orchestrators.slurm.node_scripts import NodeFacts, install_script, pcs_commands
from cdk_training_cluster.orchestrators.slurm.rules import SLURM_RULES, SlurmContext, controller_size
from cdk_training_cluster.orchestrators.slurm.settings import SlurmSettings
from cdk_training_cluster.validation.rule import Level, Problem, broken
from cluster_contract.owners import OwnerKind, OwnerSettings
from cluster_contract.tags import COUNT_TAG

ROLE_PATH = "/aws-pcs/"
"""PCS takes roles of this path only.

https://docs.aws.amazon.com/pcs/latest/userguide/security-instance-profiles.html
"""

_HOME = Path(__file__).parent / "scripts/home.sh"


class SlurmOrchestrator(Orchestrator):
    """Make what Slurm on AWS PCS adds to one cluster.

    Attributes:
        slurm: The settings.
        pcs_cluster: The cluster of AWS PCS, once it is made.
        queues: Its queues, by name, once they are made.
    """

    pcs_cluster: pcs.CfnCluster
    serves_job_role: bool = True

    def __init__(self, slurm: SlurmSettings) -> None:
        """Take the settings.

        Args:
            slurm: The settings.
        """
        self.slurm = slurm
        self.queues: dict[str, pcs.CfnQueue] = {}
        self._groups: dict[str, pcs.CfnComputeNodeGroup] = {}
        self._configuration: SlurmConfiguration | None = None
        self._written = TemporaryDirectory()

    @property
    def kind(self) -> OrchestratorKind:
        """Slurm."""
        return OrchestratorKind.SLURM

    def problems(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what is wrong with the settings, by themselves and beside the node groups."""
        yield from broken(SLURM_RULES, SlurmContext(slurm=self.slurm, cluster=together))

    def warnings(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what is allowed and will surprise."""
        yield from broken(SLURM_RULES, SlurmContext(slurm=self.slurm, cluster=together), level=Level.WARNING)

    def make_role(self, base: ClusterBase) -> iam.Role:
        """Make the nodes' role, with which they join the cluster of AWS PCS."""
        role = make_node_role(base.scope, path=ROLE_PATH)
        # The policy that AWS asks for: it names no resource.
        role.add_to_policy(iam.PolicyStatement(actions=["pcs:RegisterComputeNodeGroupInstance"], resources=["*"]))
        return role

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:  # noqa: ARG002 - it has none
        """Make the cluster of AWS PCS and the delivery of its logs."""
        made = self._configuration = slurm_configuration(self.slurm, together)
        network = base.network
        accounting = pcs.CfnCluster.AccountingProperty(
            mode="STANDARD" if self.slurm.accounting else "NONE",
            default_purge_time_in_days=self.slurm.accounting_days,
        )
        self.pcs_cluster = pcs.CfnCluster(
            base.scope,
            "Slurm",
            size=controller_size(self.slurm, together).value,
            scheduler=pcs.CfnCluster.SchedulerProperty(type="SLURM", version=made.version),
            # The controller's network interface: among the members of this group all traffic is allowed.
            # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_networking_sg.html
            networking=pcs.CfnCluster.NetworkingProperty(
                subnet_ids=[network.node_subnet.subnet_id],
                security_group_ids=[network.security_group.security_group_id],
            ),
            slurm_configuration=pcs.CfnCluster.SlurmConfigurationProperty(
                accounting=accounting,
                scale_down_idle_time_in_seconds=made.scale_down_idle_seconds,
                slurm_custom_settings=[
                    pcs.CfnCluster.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in made.settings.items()
                ],
                cgroup_custom_settings=[
                    pcs.CfnCluster.CgroupCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in made.cgroup_settings.items()
                ],
            ),
        )
        deliver_logs(base.scope, self.pcs_cluster, encryption_key=base.encryption_key)

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect:  # noqa: ARG002 - the same for all
        """Return what launch templates for AWS PCS say."""
        return launch_dialect.PCS

    def key_users(self, node_group: NodeGroup) -> Sequence[KeyUser]:
        """Return what uses the key of encrypted root volumes to launch nodes."""
        return (KeyUser.PCS, KeyUser.SPOT) if node_group.capacity.uses_spot else (KeyUser.PCS,)

    def node_setup(self, fleet: Fleet) -> NodeSetup:
        """Return what differs in the set-up of nodes: what verifies them for jobs, and homes on the file system."""
        # Partitions of GPUs are made before anything opens a GPU, and what Slurm runs is there before slurmd starts.
        # https://docs.aws.amazon.com/pcs/latest/userguide/mig-configuration.html
        install = Path(self._written.name, fleet.node_group.name, "slurm.sh")
        install.parent.mkdir()
        install.write_text(install_script(self._node_facts(fleet)), encoding="utf-8")
        return NodeSetup(scripts_before=[install], scripts_after=[] if fleet.mount is None else [_HOME])

    def _node_facts(self, fleet: Fleet) -> NodeFacts:
        info, sharing = fleet.instance_type, fleet.node_group.gpu_sharing
        profiles = {} if sharing is None else sharing.partitions_of(info)
        return NodeFacts(
            slurm_bin=pcs_commands(self.slurm.version.value),
            mps=sharing is not None and sharing.method is SharingMethod.MPS,
            mig_profiles=tuple(profile for profile, count in profiles.items() for _ in range(count)),
        )

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002 - the template names what is reserved
        """Make a node group's compute node group."""
        group, made = fleet.node_group, self._configured(fleet.node_group.name)
        capacity = group.capacity
        idle = made.scale_down_idle_seconds
        owner = pcs.CfnComputeNodeGroup(
            fleet,
            "ComputeNodeGroup",
            name=group.name,
            cluster_id=self.pcs_cluster.attr_id,
            subnet_ids=[fleet.network.node_subnet.subnet_id],
            iam_instance_profile_arn=fleet.instance_profile.instance_profile_arn,
            custom_launch_template=pcs.CfnComputeNodeGroup.CustomLaunchTemplateProperty(
                template_id=launches[0].template.launch_template_id,
                version=launches[0].template.latest_version_number,
            ),
            instance_configs=[
                pcs.CfnComputeNodeGroup.InstanceConfigProperty(instance_type=name) for name in group.instance_types
            ],
            # No node is launched before there is a job, or before the power function sets the least: a deployment
            # waits for no capacity, and a later one takes no node from a job.
            scaling_configuration=pcs.CfnComputeNodeGroup.ScalingConfigurationProperty(
                min_instance_count=0, max_instance_count=group.count
            ),
            purchase_option=_purchase_option(group),
            spot_options=_spot_options() if capacity.uses_spot else None,
            slurm_configuration=pcs.CfnComputeNodeGroup.SlurmConfigurationProperty(
                scale_down_idle_time_in_seconds=idle,
                slurm_custom_settings=[
                    pcs.CfnComputeNodeGroup.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in made.settings.items()
                ],
                gres_custom_settings=None if made.gres.from_pcs else list(made.gres.records),
            ),
        )
        Tags.of(owner).add(COUNT_TAG, str(group.count))
        self._groups[group.name] = owner
        settings = OwnerSettings(
            kind=OwnerKind.PCS_COMPUTE_NODE_GROUP,
            id=f"{self.pcs_cluster.attr_id}/{owner.attr_id}",
            scheduler_sized=not made.fixed,
        )
        return MadeOwner(resource=owner, settings=settings)

    def make_rest(self, base: ClusterBase, shared: SharedParts, fleets: Mapping[str, NodeFleet]) -> None:  # noqa: ARG002 - queues name owners
        """Make the queues and the login nodes."""
        for queue in self._made.queues:
            self.queues[queue.name] = pcs.CfnQueue(
                base.scope,
                f"Queue{queue.name}",
                name=queue.name,
                cluster_id=self.pcs_cluster.attr_id,
                compute_node_group_configurations=[
                    pcs.CfnQueue.ComputeNodeGroupConfigurationProperty(
                        compute_node_group_id=self._groups[name].attr_id
                    )
                    for name in queue.node_groups
                ],
                slurm_configuration=pcs.CfnQueue.SlurmConfigurationProperty(
                    slurm_custom_settings=[
                        pcs.CfnQueue.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                        for name, value in queue.settings.items()
                    ]
                ),
            )
        if self.slurm.login.count:
            home = [_HOME] if base.file_system else []
            make_login_group(base, shared, self.pcs_cluster, self.slurm.login, scripts_after=home)

    def hourly_units(self) -> Mapping[str, Decimal]:
        """Return what is billed by the hour whether or not nodes run; PCS manages login nodes like others."""
        size, login = self.pcs_cluster.size.lower(), self.slurm.login
        units = {f"aws-pcs-controller-{size}": Decimal(1)}
        if self.slurm.accounting:
            units[f"aws-pcs-accounting-{size}"] = Decimal(1)
        if login.count:
            units |= {"aws-pcs-node": Decimal(login.count)}
            units |= own_nodes(login.instance_type, login.count, volume_gib=login.root_volume_gib)
        return units

    def node_units(self, fleet: NodeFleet) -> Mapping[str, Decimal]:  # noqa: ARG002 - the same for all
        """Return that AWS PCS bills the management of each node.

        Source: https://aws.amazon.com/pcs/pricing/
        """
        return {"aws-pcs-node": Decimal(1)}

    def describe(self) -> Iterator[str]:
        """Yield the version of Slurm, the controller's size and the queues."""
        yield f"Slurm {self.slurm.version.value} on AWS PCS, controller size {self.pcs_cluster.size}"
        for queue in self._made.queues:
            yield f"queue {queue.name}: {', '.join(queue.node_groups)}"

    def outputs(self, cluster_name: str) -> Iterator[Output]:  # noqa: ARG002 - the resource says it
        """Yield what a user needs to find the cluster."""
        yield Output(name="SlurmClusterId", value=self.pcs_cluster.attr_id, description="The cluster of AWS PCS")

    @property
    def _made(self) -> SlurmConfiguration:
        if self._configuration is None:
            raise TypeError("the cluster of AWS PCS is made first")
        return self._configuration

    def _configured(self, name: str) -> NodeGroupConfiguration:
        return next(each for each in self._made.node_groups if each.name == name)


def _purchase_option(group: NodeGroup) -> str:
    """Return how PCS buys: https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateComputeNodeGroup.html."""
    if group.capacity.block_id is not None:
        return "CAPACITY_BLOCK"
    return "SPOT" if group.capacity.uses_spot else "ONDEMAND"


def _spot_options() -> pcs.CfnComputeNodeGroup.SpotOptionsProperty:
    return pcs.CfnComputeNodeGroup.SpotOptionsProperty(allocation_strategy="price-capacity-optimized")
