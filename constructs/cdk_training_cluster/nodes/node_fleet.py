"""The nodes of one group: how they are launched, what is reserved for them, and who runs them."""

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import CfnResource, Duration, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_resourcegroups as resourcegroups
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.encryption import allow
from cdk_training_cluster.functions import make_alert_topic
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork, NetworkInterface
from cdk_training_cluster.nodes.bootstrap import Collector, Mount
from cdk_training_cluster.nodes.fleet import Fleet
from cdk_training_cluster.nodes.fleet_owners import AutoScaling, FleetOwners, MadeOwner
from cdk_training_cluster.nodes.fleet_warnings import fleet_warnings, moving_images, warn_of_moving_images
from cdk_training_cluster.nodes.idle_policy import IdlePolicy
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.layouts import LaunchLayout, launch_layouts
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.node_launch_template import make_launch_template
from cdk_training_cluster.nodes.node_metrics import utilization_metric
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reservation_function import ReservationFunction
from cdk_training_cluster.nodes.reserved import Reserved, make_reserved
from cdk_training_cluster.nodes.rules import NodeGroupContext, check_node_group, node_group_warnings
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.templates.checks import check_templates
from cluster_contract.owners import OwnerSettings
from cluster_contract.tags import NODE_GROUP_TAG

_ABOVE_DEFAULT = 150


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class NodeFleet(Fleet):
    """Make the nodes of one group. `TrainingCluster.node_group(name)` returns it.

    The group is made with no nodes: a deployment must not wait for capacity, or EC2's lack of it would roll the
    stack back. The power function brings the group to its size afterwards, and a later deployment leaves the
    size as it finds it.

    Resources: an `AWS::EC2::LaunchTemplate` for each layout of network interfaces among the types, an
    `AWS::AutoScaling::AutoScalingGroup` (with `Capacity.spot_fleet()` an `AWS::EC2::SpotFleet` instead, or what the
    cluster's orchestrator launches nodes with), with
    `Placement.CLUSTER` an `AWS::EC2::PlacementGroup`, what the capacity reserves, and with a warm pool an
    `AWS::AutoScaling::WarmPool` and an `AWS::AutoScaling::LifecycleHook`.

    Attributes:
        node_group: The settings.
        cluster_name: The cluster's name.
        instance_types: The facts about the types, in the order of the settings.
        instance_type: The facts about the first type.
        network_interfaces: The interfaces of the first type.
        network: Where the nodes live.
        role: The instance role.
        job_role: The role of jobs.
        instance_profile: The profile that carries the role.
        encryption_key: The KMS key that encrypts the root volumes. None: none is given.
        mount: The file system that the nodes mount. None: they mount none.
        moving_images: The parameters of the images that a later deployment may change.
        efa_interfaces: How many Elastic Fabric Adapters each node of the first type has.
        launch_templates: One for each layout of network interfaces among the types, the first type's first; none
            where an orchestrator takes none.
        placement_group: The placement group that was made. None: none was.
        placement_group_name: The placement group that the nodes go into, made here or not. None: they go into none.
        capacity_reservation: The resource of the reservation that was made: an `AWS::EC2::CapacityReservation`, or in
            a placement group a `Custom::CapacityReservation`. None: none was.
        reservation_group: The resource group of reservations that was made. None: none was.
        reports_efa_traffic: Whether its agents report what goes over EFA, because its idle policy uses that.
        reservation_id: The reservation, made or existing, that all the nodes are launched into. None: there is none.
        owner: What launches the nodes and replaces them: the Auto Scaling group, the Spot Fleet, or a resource of the
            cluster's orchestrator.
        owner_settings: What the functions have to know of it. None: an Auto Scaling group, found by its tags.
        size_permissions: What whoever gives the owner a size must be allowed beside the action that does.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-templates.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: ClusterName,
        network: ClusterNetwork,
        node_group: NodeGroup,
        role: iam.IRole,
        instance_profile: iam.IInstanceProfile,
        job_role: iam.IRole | None = None,
        mount: Mount | None = None,
        environment: Mapping[str, str] | None = None,
        instance_type_facts: Sequence[InstanceTypeInfo] = (),
        idle_policy: IdlePolicy | None = None,
        encryption_key: kms.IKey | None = None,
        collector: Collector | None = None,
        runs_table: str | None = None,
        _checked: NodeGroupContext | None = None,
        _owners: FleetOwners | None = None,
        _reservations: ReservationFunction | None = None,
    ) -> None:
        """Make the nodes.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster's name, for tags and metrics.
            network: Where the nodes live.
            node_group: What they are.
            role: The instance role; it is given what the nodes' own scripts need.
            instance_profile: The profile that carries the role.
            job_role: The role of jobs, which `grant_principal` returns. Default: - the instance role.
            mount: The file system to mount. Default: - none.
            environment: Environment variables of the whole cluster; the group's own go first. Default: - none.
            instance_type_facts: Facts about types that the catalog does not have. Default: - none.
            idle_policy: When they are idle; they report what it measures. Default: - as `node_group` says.
            encryption_key: The KMS key that encrypts their root volumes. Default: - AWS's own, or the account's
                default.
            collector: Where the nodes' metrics for Prometheus go. Default: - nowhere.
            runs_table: The name of the DynamoDB table in which nodes of a run find each other. Default: - none.
            _checked: What `TrainingCluster` has checked already: the group with what holds for it. Default: - it is
                checked here.
            _owners: What makes the owner of the nodes. Default: - an Auto Scaling group or a Spot Fleet is made.
            _reservations: What makes a reservation in a placement group. Default: - a function is made, with a topic
                for its alarms, where there is to be one.

        Raises:
            ValueError: EC2 would refuse the group; every reason, a line each.
        """
        super().__init__(scope, id)
        nodes = _checked or check_node_group(node_group, instance_type_facts, network.availability_zone)
        self._environment, self._collector, self._runs_table = environment or {}, collector, runs_table
        self.node_group: NodeGroup = node_group
        self.cluster_name: str = cluster_name
        self.network: ClusterNetwork = network
        self.role: iam.IRole = role
        self.job_role: iam.IRole = job_role or role
        self.instance_profile: iam.IInstanceProfile = instance_profile
        self.encryption_key: kms.IKey | None = encryption_key
        self.mount: Mount | None = mount
        self.instance_types: tuple[InstanceTypeInfo, ...] = tuple(nodes.infos)
        self.instance_type: InstanceTypeInfo = self.instance_types[0]
        policy = idle_policy or node_group.idle_policy
        self.reports_efa_traffic: bool = policy is not None and not policy.is_off and policy.has_signal("efa")
        self._connections = network.connections
        owners = _owners or AutoScaling()
        serves = owners.serves_job_role and self.job_role is not role
        self._job_role_of_users = self.job_role if serves else None
        allow(self, encryption_key, *owners.key_users(node_group))
        self._tag()
        for rule, sentence in node_group_warnings(nodes).items():
            warn(self, rule, sentence)
        self.placement_group: ec2.CfnPlacementGroup | None = self._make_placement_group()
        dialect = owners.dialect(node_group)
        reserved = make_reserved(
            self,
            node_group=node_group,
            availability_zone=network.availability_zone,
            placement_group=self.placement_group,
            tags=self.identifying_tags,
            reservations=lambda: _reservations or self._make_reservation_function(),
        )
        self.capacity_reservation: CfnResource | None = reserved.reservation
        self.reservation_group: resourcegroups.CfnGroup | None = reserved.resource_group
        self.reservation_id: str | None = reserved.reservation_id
        layouts = launch_layouts(node_group, self.instance_types, nodes.orchestrator)
        self.network_interfaces: tuple[NetworkInterface, ...] = next(iter(layouts)).interfaces
        launches = [] if dialect is None else self._make_launches(layouts, owners, dialect, reserved)
        images = layouts if dialect is not None and dialect.image else ()
        for rule, sentence in fleet_warnings(nodes, images, mount):
            warn(self, rule, sentence)
        self.moving_images: tuple[str, ...] = moving_images(images)
        if _checked is None:  # TrainingCluster warns of all its groups together
            warn_of_moving_images(self, {node_group.name: self.moving_images})
        self.launch_templates: tuple[ec2.LaunchTemplate, ...] = tuple(launch.template for launch in launches)
        made: MadeOwner = owners.make_owner(self, launches, reserved)
        self.owner: CfnResource = made.resource
        self.owner_settings: OwnerSettings | None = made.settings
        self.size_permissions: tuple[iam.PolicyStatement, ...] = made.size_permissions
        # The subnet alone is no way out: without this, nodes could start, and bill, while the NAT gateway is made.
        self.owner.node.add_dependency(*network.way_out)
        check_templates(self)

    @property
    def connections(self) -> ec2.Connections:
        """What the nodes let in and out."""
        return self._connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The jobs' role, for `bucket.grant_read(fleet)` and the like."""
        return self.job_role.grant_principal

    @property
    def launch_template(self) -> ec2.LaunchTemplate:
        """The launch template of the first type.

        Raises:
            ValueError: The nodes are launched from none.
        """
        if not self.launch_templates:
            raise ValueError(f"node group {self.node_group.name!r} is launched from no launch template; use owner")
        return self.launch_templates[0]

    @property
    def auto_scaling_group(self) -> autoscaling.CfnAutoScalingGroup:
        """The Auto Scaling group that runs the nodes.

        Raises:
            ValueError: Something else runs them.
        """
        if isinstance(self.owner, autoscaling.CfnAutoScalingGroup):
            return self.owner
        raise ValueError(self._owned_otherwise("Auto Scaling group"))

    @property
    def auto_scaling_group_name(self) -> str:
        """The Auto Scaling group's name.

        Raises:
            ValueError: Something else runs the nodes.
        """
        return self.auto_scaling_group.ref

    @property
    def spot_fleet(self) -> ec2.CfnSpotFleet:
        """The Spot Fleet that runs the nodes.

        Raises:
            ValueError: Something else runs them.
        """
        if isinstance(self.owner, ec2.CfnSpotFleet):
            return self.owner
        raise ValueError(self._owned_otherwise("Spot Fleet"))

    @property
    def spot_fleet_id(self) -> str | None:
        """The id of the Spot Fleet request that runs the nodes. None: something else runs them."""
        return self.owner.ref if isinstance(self.owner, ec2.CfnSpotFleet) else None

    def metric_gpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how busy the group's accelerators are, in percent: GPUs, or NeuronCores on Neuron nodes.

        Args:
            statistic: `Average` is over devices and time, `Maximum` the busiest device. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return utilization_metric(
            self.cluster_name,
            self.node_group.name,
            neuron=self.instance_type.has_neuron_devices,
            statistic=statistic,
            period=period,
        )

    def _tag(self) -> None:
        Tags.of(self).add(NODE_GROUP_TAG, self.node_group.name)
        # Above the name that ec2.LaunchTemplate gives its instances: the path of the construct.
        Tags.of(self).add("Name", f"{self.cluster_name}/{self.node_group.name}", priority=_ABOVE_DEFAULT)

    def _owned_otherwise(self, wanted: str) -> str:
        return (
            f"node group {self.node_group.name!r} has no {wanted}: its nodes are launched by an "
            f"{self.owner.cfn_resource_type}; use owner"
        )

    def _make_launches(
        self,
        layouts: Mapping[LaunchLayout, tuple[InstanceTypeInfo, ...]],
        owners: FleetOwners,
        dialect: LaunchTemplateDialect,
        reserved: Reserved,
    ) -> list[Launch]:
        setup = owners.node_setup(self)
        return [
            Launch(
                template=make_launch_template(
                    self,
                    f"LaunchTemplate{_suffix(number)}",
                    dialect=dialect,
                    node_group=self.node_group,
                    layout=layout,
                    instance_type=types[0],
                    network=self.network,
                    instance_profile=self.instance_profile,
                    user_data=self.make_bootstrap(f"Bootstrap{_suffix(number)}", layout, types, setup).user_data,
                    more_user_data=setup.user_data_parts,
                    security_groups=owners.security_groups(self),
                    placement_group=self.placement_group_name,
                    reserved=reserved,
                    encryption_key=self.encryption_key,
                ),
                instance_types=types,
            )
            for number, (layout, types) in enumerate(layouts.items())
        ]

    def _make_reservation_function(self) -> ReservationFunction:
        return ReservationFunction(
            self,
            "ReservationFunction",
            cluster_name=self.cluster_name,
            alert_topic=make_alert_topic(self, self.encryption_key, budgets=False),
            encryption_key=self.encryption_key,
        )

    def _make_placement_group(self) -> ec2.CfnPlacementGroup | None:
        group = self.node_group
        if group.capacity.placement_group is not None or group.chosen_placement is Placement.NONE:
            return None
        made = ec2.CfnPlacementGroup(self, "PlacementGroup", strategy=Placement.CLUSTER.value)
        # Tags are create-only here: a tag that an app adds to all it has would replace the group.
        made.add_property_deletion_override("Tags")
        return made


def _suffix(number: int) -> str:
    """Return the end of the id of the first, second, … construct of a kind; the first has none."""
    return str(number + 1) if number else ""
