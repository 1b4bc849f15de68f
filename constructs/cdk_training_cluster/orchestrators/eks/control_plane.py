"""The EKS cluster: control plane, who may use it, system nodes and add-ons."""

import re
from collections.abc import Mapping, Sequence

from aws_cdk import CfnResource, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge, ignore_lint
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import launch_dialect
from cdk_training_cluster.orchestrators.eks.add_ons import AddOn
from cdk_training_cluster.orchestrators.eks.fixed_tags import keep_fixed_tags
from cdk_training_cluster.orchestrators.eks.scheduling import packing_scheduler
from cdk_training_cluster.orchestrators.eks.settings import LOG_TYPES, EksSettings
from cdk_training_cluster.validation.checks import is_unknown, shown
from cluster_contract.tags import CLUSTER_TAG

SERVICE_RANGE = "172.20.0.0/16"
"""Where Kubernetes gives services their addresses; said, because nodes with an image of their own have to be told.

Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
"""

# https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")

SYSTEM_VOLUME_GIB = 50

_SYSTEM_TAG = "cdk-training-cluster:system-nodes-of"
_ABOVE_THE_CLUSTER = 300


class EksControlPlane(Construct):
    """Make the EKS cluster that runs a training cluster's jobs, without its GPU nodes.

    The Kubernetes API takes EKS access entries alone, and knows no creator. Pods are packed onto nodes that are in
    use, accelerators first. With `encryption_key` Kubernetes' objects are encrypted with it; a key that is given or
    changed later would need another cluster, and CloudFormation refuses the deployment because of the cluster's name.

    Resources: `AWS::EKS::Cluster`, `Nodegroup` (the system nodes, with an `AWS::EC2::LaunchTemplate`), an `Addon` for
    each add-on, an `AccessEntry` for each administrator, `AWS::Logs::LogGroup`, `AWS::IAM::Role`s, and with
    `control_plane_zone` an `AWS::EC2::Subnet`.

    Attributes:
        cluster: The cluster.
        admin_role: The role that administers the cluster. None: `admins` names who does.
        api_connections: Who reaches the Kubernetes API within the VPC.
        add_on_roles: The roles of add-ons that call AWS, by the add-on's name: `bucket.grant_read(…)` and the like.
        node_role: The role of system nodes.
        before_nodes: What must be there before nodes join.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        network: ClusterNetwork,
        settings: EksSettings,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The EKS cluster's name.
            network: Where the nodes live.
            settings: What it is like.
            encryption_key: The KMS key that encrypts Kubernetes' objects, logs and system nodes' volumes. Default: -
                keys that AWS owns.

        Raises:
            ValueError: EKS takes no such name, or the control plane has no subnet in a second zone.
        """
        super().__init__(scope, id)
        if not is_unknown(cluster_name) and not _NAME.fullmatch(cluster_name):
            raise ValueError(
                "cluster_name must be letters, digits, '-' and '_' and start with a letter or digit on EKS, got "
                f"{shown(cluster_name)}"
            )
        self._settings, self._network, self._key = settings, network, encryption_key
        self._name = cluster_name
        self.cluster: eks.CfnCluster = self._make_cluster(self._make_log_group())
        self.admin_role: iam.Role | None = None if settings.admins else self._make_admin_role()
        self.api_connections: ec2.Connections = self._make_api_connections()
        self._let_in([*settings.admins] or [self.admin_role.role_arn] if self.admin_role else settings.admins)
        self.add_on_roles: dict[str, iam.Role] = {}
        self.node_role: iam.Role = self._make_node_role()
        self.before_nodes: list[CfnResource] = []

    def make_add_ons(self, add_ons: Mapping[str, AddOn]) -> None:
        """Make the add-ons, and the system nodes between those that nodes need and those that need nodes.

        Args:
            add_ons: The add-ons by name.
        """
        early = {name: add_on for name, add_on in add_ons.items() if add_on.runs_on_every_node}
        self.before_nodes += [self._make_add_on(name, add_on) for name, add_on in early.items()]
        system = self._make_system_nodes()
        keep_fixed_tags(system)
        system.node.add_dependency(*self.before_nodes, *self._network.way_out)
        for name, add_on in add_ons.items():
            if name not in early:
                self._make_add_on(name, add_on).node.add_dependency(system)

    def _make_log_group(self) -> logs.LogGroup:
        # EKS writes to the group of this name, and would make one that keeps everything for ever.
        # https://docs.aws.amazon.com/eks/latest/userguide/control-plane-logs.html
        allow(self, self._key, KeyUser.LOGS)
        return logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/eks/{self._name}/cluster",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=self._key,
        )

    def _make_cluster(self, log_group: logs.LogGroup) -> eks.CfnCluster:
        given, made = self._settings, eks.CfnCluster
        role = self._make_role(
            "Role", "eks.amazonaws.com", "The control plane of an EKS cluster", "AmazonEKSClusterPolicy"
        )
        cluster = made(
            self,
            "Cluster",
            name=self._name,
            version=given.kubernetes_version,
            role_arn=role.role_arn,
            resources_vpc_config=made.ResourcesVpcConfigProperty(
                subnet_ids=[self._network.node_subnet.subnet_id, self._control_plane_subnet_id()],
                endpoint_private_access=True,
                endpoint_public_access=bool(given.public_access_cidrs),
                public_access_cidrs=[*given.public_access_cidrs] or None,
            ),
            access_config=made.AccessConfigProperty(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=False
            ),
            # Add-ons take their place, with versions and roles that the template says.
            bootstrap_self_managed_addons=False,
            kubernetes_network_config=made.KubernetesNetworkConfigProperty(
                ip_family="ipv4", service_ipv4_cidr=SERVICE_RANGE
            ),
            kube_scheduler_config=packing_scheduler(),
            logging=made.LoggingProperty(
                cluster_logging=made.ClusterLoggingProperty(
                    enabled_types=[made.LoggingTypeConfigProperty(type=each) for each in given.logs]
                )
            ),
            encryption_config=None
            if self._key is None
            else [
                made.EncryptionConfigProperty(
                    provider=made.ProviderProperty(key_arn=self._key.key_arn), resources=["secrets"]
                )
            ],
        )
        cluster.node.add_dependency(log_group)
        if given.public_access_cidrs:
            acknowledge(cluster, "AwsSolutions-EKS1", "The API is reached from public_access_cidrs alone.")
        if set(given.logs) != set(LOG_TYPES):
            acknowledge(cluster, "AwsSolutions-EKS2", "The user left log types out.")
        return cluster

    def _control_plane_subnet_id(self) -> str:
        if self._settings.control_plane_subnet_id is not None:
            return self._settings.control_plane_subnet_id
        if self._network.spare_range is None:
            raise ValueError(
                "control_plane_subnet_id is required in a VPC that exists, in place of control_plane_zone: name a "
                "subnet of the VPC in another zone than the nodes'"
            )
        # Without a route out: EKS puts network interfaces of its own there, and nothing else lives in it.
        # https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
        subnet = ec2.CfnSubnet(
            self,
            "ControlPlaneSubnet",
            vpc_id=self._network.vpc.vpc_id,
            cidr_block=self._network.spare_range,
            availability_zone=self._settings.control_plane_zone,
            map_public_ip_on_launch=False,
        )
        reason = "The user names the second zone of the control plane."
        ignore_lint(subnet, "W3010")
        acknowledge(subnet, "CloudFormation-Validate::W3010", reason)
        return subnet.ref

    def _make_api_connections(self) -> ec2.Connections:
        # EKS lets in the members of this group alone, which nodes are: anything else in the VPC needs a rule.
        # https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html#private-access
        group = ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroup", self.cluster.attr_cluster_security_group_id
        )
        api = ec2.Connections(security_groups=[group], default_port=ec2.Port.tcp(443))
        for each in self._settings.private_access_cidrs:
            api.allow_default_port_from(ec2.Peer.ipv4(each), "To the Kubernetes API")
        return api

    def _make_admin_role(self) -> iam.Role:
        role = iam.Role(
            self,
            "AdminRole",
            assumed_by=iam.AccountRootPrincipal(),
            description="Administers Kubernetes on an EKS cluster",
        )
        role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[self.cluster.attr_arn]))
        return role

    def _let_in(self, principals: Sequence[str]) -> None:
        made = eks.CfnAccessEntry
        for number, principal in enumerate(principals):
            made(
                self,
                f"Admin{number + 1}",
                cluster_name=self.cluster.ref,
                principal_arn=principal,
                access_policies=[
                    made.AccessPolicyProperty(
                        access_scope=made.AccessScopeProperty(type="cluster"),
                        # https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
                        policy_arn=f"arn:{HERE.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                    )
                ],
            )

    def _make_node_role(self) -> iam.Role:
        return self._make_role("NodeRole", "ec2.amazonaws.com", "The system nodes of an EKS cluster", *NODE_POLICIES)

    def _make_system_nodes(self) -> eks.CfnNodegroup:
        given, made = self._settings.system_nodes, eks.CfnNodegroup
        template = ec2.LaunchTemplate(
            self,
            "SystemLaunchTemplate",
            require_imdsv2=True,
            http_put_response_hop_limit=launch_dialect.EKS.metadata_hops,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        SYSTEM_VOLUME_GIB,
                        volume_type=ec2.EbsDeviceVolumeType.GP3,
                        encrypted=True,
                        kms_key=self._key,
                        delete_on_termination=True,
                    ),
                )
            ],
        )
        # The functions take every instance with the cluster's tag for one of its nodes.
        Tags.of(template).remove(CLUSTER_TAG, priority=_ABOVE_THE_CLUSTER)
        Tags.of(template).add(_SYSTEM_TAG, self._name)
        architecture = ec2.InstanceType(given.instance_type).architecture
        is_arm = architecture is ec2.InstanceArchitecture.ARM_64
        return made(
            self,
            "SystemNodes",
            cluster_name=self.cluster.ref,
            node_role=self.node_role.role_arn,
            subnets=[self._network.node_subnet.subnet_id],
            ami_type="AL2023_ARM_64_STANDARD" if is_arm else "AL2023_x86_64_STANDARD",
            instance_types=[given.instance_type],
            launch_template=made.LaunchTemplateSpecificationProperty(
                id=template.launch_template_id, version=template.latest_version_number
            ),
            scaling_config=made.ScalingConfigProperty(
                min_size=given.count, desired_size=given.count, max_size=given.count
            ),
            # Said, or no deployment would ever update them, and EKS updates no control plane that is more than three
            # minor versions ahead of its nodes.
            # https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
            version=self._settings.kubernetes_version,
            release_version=self._settings.release_version,
            labels={"cdk-training-cluster/node-group": "system"},
            node_repair_config=made.NodeRepairConfigProperty(enabled=self._settings.node_repair),
        )

    def _make_add_on(self, name: str, add_on: AddOn) -> eks.CfnAddon:
        associations = None
        if add_on.service_account:
            role = self._make_role(
                f"{name}-role",
                "pods.eks.amazonaws.com",
                f"The EKS add-on {name}",
                *([add_on.policy] if add_on.policy else []),
            )
            for number, policy in enumerate(self._settings.add_on_policies.get(name, ())):
                role.add_managed_policy(
                    iam.ManagedPolicy.from_managed_policy_arn(role, f"Policy{number + 1}", policy)
                )
                acknowledge(role, f"AwsSolutions-IAM4[Policy::{policy}]", "The user names it for the add-on.")
            self.add_on_roles[name] = role
            associations = [
                eks.CfnAddon.PodIdentityAssociationProperty(
                    role_arn=role.role_arn, service_account=add_on.service_account
                )
            ]
        return eks.CfnAddon(
            self,
            name,
            cluster_name=self.cluster.ref,
            addon_name=name,
            addon_version=self._settings.add_on_versions.get(name),
            configuration_values=add_on.configuration,
            resolve_conflicts="OVERWRITE",
            pod_identity_associations=associations,
        )

    def _make_role(self, id: str, service: str, description: str, *policies: str) -> iam.Role:
        principal: iam.IPrincipal = iam.ServicePrincipal(service)
        if service.startswith("pods."):
            # https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html
            principal = iam.SessionTagsPrincipal(principal)
        role = iam.Role(self, id, assumed_by=principal, description=description)
        add_managed_policies(role, *policies)
        return role


# https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html
NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
"""What the role of every node needs."""


def add_managed_policies(role: iam.Role, *names: str) -> None:
    """Give a role AWS's own policies for EKS.

    Args:
        role: The role.
        names: The policies' names.
    """
    for name in names:
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(name))
        acknowledge(
            role,
            f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
            "EKS's own policy for the part, which AWS extends as the service needs more.",
        )
