"""The nodes of one group: a launch template and the Auto Scaling group that runs it."""

from collections.abc import Sequence

import jsii
from aws_cdk import Annotations, CfnAutoScalingScheduledAction, CfnUpdatePolicy, Duration, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.acknowledgements import acknowledge, default_child
from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.network import ClusterNetwork, NetworkInterface, network_interfaces
from cdk_training_cluster.nodes.bootstrap import Mount, NodeBootstrap
from cdk_training_cluster.nodes.images import PublicImage, public_image
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.node_metrics import utilization_metric
from cdk_training_cluster.nodes.rules import node_group_problems
from cdk_training_cluster.tags import NODE_GROUP_TAG

_ROOT_GIB, _NEURON_ROOT_GIB = 200, 512

_ABOVE_DEFAULT = 150

_USUAL_ROOT_DEVICE = "/dev/xvda"

# Containers reach the metadata service through one hop more than the node itself.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html
_METADATA_HOPS = 2


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class NodeFleet(Construct):
    """Make the nodes of one group. `TrainingCluster.node_group(name)` returns it.

    The group is made with no nodes: a deployment must not wait for capacity, or EC2's lack of it would roll the
    stack back. The power function brings the group to its size afterwards, and a later deployment leaves the
    size as it finds it.

    Resources: `AWS::EC2::LaunchTemplate`, `AWS::AutoScaling::AutoScalingGroup`, and with `Placement.CLUSTER` an
    `AWS::EC2::PlacementGroup`, which is named on the Auto Scaling group.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-templates.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        network: ClusterNetwork,
        node_group: NodeGroup,
        role: iam.IRole,
        instance_profile: iam.IInstanceProfile,
        mount: Mount | None = None,
        instance_type_facts: Sequence[InstanceTypeInfo] = (),
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
            mount: The file system to mount. Default: - none.
            instance_type_facts: Facts about types that the catalog does not have. Default: - none.

        Raises:
            ValueError: EC2 would refuse the group; every reason, a line each.
        """
        super().__init__(scope, id)
        problems = node_group_problems(node_group, instance_type_facts)
        if problems:
            raise ValueError("\n".join(problems))
        self.node_group = node_group
        self.cluster_name = cluster_name
        self.instance_type = instance_type_info(node_group.instance_types[0], instance_type_facts)
        efa = self.instance_type.supports_efa if node_group.efa is None else node_group.efa
        self.network_interfaces: tuple[NetworkInterface, ...] = network_interfaces(
            self.instance_type, efa=efa, layout=node_group.interface_layout
        )
        self.role = role
        self._connections = network.connections
        Tags.of(self).add(NODE_GROUP_TAG, node_group.name)
        # Above the name that ec2.LaunchTemplate gives its instances: the path of the construct.
        Tags.of(self).add("Name", f"{cluster_name}/{node_group.name}", priority=_ABOVE_DEFAULT)
        bootstrap = self._make_bootstrap(efa, mount)
        self.launch_template = self._make_launch_template(network, instance_profile, bootstrap.user_data)
        self.placement_group = self._make_placement_group()
        self.auto_scaling_group = self._make_auto_scaling_group(network)
        self.auto_scaling_group_name = self.auto_scaling_group.ref

    @property
    def connections(self) -> ec2.Connections:
        """What the nodes let in and out."""
        return self._connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The instance role, for `bucket.grant_read(fleet)` and the like."""
        return self.role.grant_principal

    @property
    def efa_interfaces(self) -> int:
        """How many Elastic Fabric Adapters each node has."""
        return sum(interface.interface_type != "interface" for interface in self.network_interfaces)

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

    def _make_bootstrap(self, efa: bool, mount: Mount | None) -> NodeBootstrap:
        group = self.node_group
        try:
            return NodeBootstrap(
                self,
                "Bootstrap",
                cluster_name=self.cluster_name,
                node_group=group.name,
                role=self.role,
                instance_type=self.instance_type,
                efa=efa,
                mount=mount,
                environment=group.environment,
                scripts_before=group.scripts_before,
                scripts_after=group.scripts_after,
            )
        except ValueError as error:
            lines = str(error).splitlines()
            raise ValueError("\n".join(f"node group {group.name!r}: {line}" for line in lines)) from error

    def _make_launch_template(
        self, network: ClusterNetwork, instance_profile: iam.IInstanceProfile, user_data: ec2.UserData
    ) -> ec2.LaunchTemplate:
        image, root_device_name = self._image()
        template = ec2.LaunchTemplate(
            self,
            "LaunchTemplate",
            machine_image=image,
            instance_type=ec2.InstanceType(self.instance_type.name),
            instance_profile=instance_profile,
            user_data=user_data,
            require_imdsv2=True,
            http_put_response_hop_limit=_METADATA_HOPS,
            block_devices=[
                ec2.BlockDevice(
                    device_name=root_device_name,
                    volume=ec2.BlockDeviceVolume.ebs(
                        self.node_group.root_volume_gib or self._usual_root_volume_gib(),
                        volume_type=ec2.EbsDeviceVolumeType.GP3,
                        encrypted=True,
                        delete_on_termination=True,
                    ),
                )
            ],
        )
        # ec2.LaunchTemplate knows one interface only. Groups stand on each interface, since EC2 refuses them at
        # the top beside interfaces; the subnet is left to the Auto Scaling group.
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
        default_child(template).add_property_override(
            "LaunchTemplateData.NetworkInterfaces",
            [
                {
                    "NetworkCardIndex": interface.card,
                    "DeviceIndex": interface.device,
                    "InterfaceType": interface.interface_type,
                    "Groups": [network.security_group.security_group_id],
                    "DeleteOnTermination": True,
                }
                for interface in self.network_interfaces
            ],
        )
        return template

    def _usual_root_volume_gib(self) -> int:
        # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/setup/pytorch/update-dlami.html
        return _NEURON_ROOT_GIB if self.instance_type.has_neuron_devices else _ROOT_GIB

    def _image(self) -> tuple[ec2.IMachineImage, str]:
        own, public = self.node_group.machine_image, public_image(self.instance_type)
        if own is not None:
            # Most images of people's own are AWS's with something added, or one of AWS's by its id.
            usual = _USUAL_ROOT_DEVICE if public is None else public.root_device_name
            return own, self.node_group.root_device_name or usual
        if not isinstance(public, PublicImage):
            raise TypeError(f"no image for {self.instance_type.name}")  # node_group_problems has said so before
        Annotations.of(self).add_warning_v2(
            "cdk-training-cluster:latestImage",
            f"node group {self.node_group.name!r} takes the newest image of {public.parameter_name}: a later "
            "deployment may move drivers under a running fleet. Pin the image you have tested with machine_image.",
        )
        return ec2.MachineImage.from_ssm_parameter(public.parameter_name), public.root_device_name

    def _make_placement_group(self) -> ec2.CfnPlacementGroup | None:
        if self.node_group.placement is Placement.NONE:
            return None
        group = ec2.CfnPlacementGroup(self, "PlacementGroup", strategy=Placement.CLUSTER.value)
        # Tags are create-only here: a tag that an app adds to all it has would replace the group.
        group.add_property_deletion_override("Tags")
        return group

    def _make_auto_scaling_group(self, network: ClusterNetwork) -> autoscaling.CfnAutoScalingGroup:
        group = autoscaling.CfnAutoScalingGroup(
            self,
            "AutoScalingGroup",
            min_size="0",
            max_size=str(self.node_group.count),
            vpc_zone_identifier=[network.node_subnet.subnet_id],
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=self.launch_template.launch_template_id,
                version=self.launch_template.latest_version_number,
            ),
            placement_group=self.placement_group.ref if self.placement_group is not None else None,
        )
        # The subnet alone is no way out: without this, nodes could start, and bill, while the NAT gateway is made.
        group.node.add_dependency(*network.way_out)
        # Health replacement is left on: a node whose checks fail has ended its gang's job already, and the job starts
        # again from its checkpoint only when the gang is whole.
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/health-checks-overview.html
        #
        # Without the policy, any deployment that touches the group would set its sizes anew and wake a stopped
        # cluster.
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-updatepolicy.html
        group.cfn_options.update_policy = CfnUpdatePolicy(
            auto_scaling_scheduled_action=CfnAutoScalingScheduledAction(ignore_unmodified_group_size_properties=True)
        )
        acknowledge(
            group,
            "AwsSolutions-AS3",
            "A training node joins and leaves with its gang: the power function reports what is missing and why, "
            "once, instead of a message for every launch.",
        )
        return group
