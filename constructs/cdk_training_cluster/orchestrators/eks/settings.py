"""The settings of the EKS cluster that runs a training cluster's jobs."""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal, TypeAlias

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.instance_types.catalog import instance_type_names
from cdk_training_cluster.orchestrators.eks.add_ons import ADD_ONS, HYPERPOD_ADD_ONS, Installed
from cdk_training_cluster.orchestrators.job_pods import DEFAULT_NAMESPACES, job_namespace
from cdk_training_cluster.validation.bounds import Form, Whole
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse

DEFAULT_VERSION = "1.36"
"""The newest, which AWS recommends for a new cluster.

Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

SUPPORT_ENDS: Mapping[str, tuple[date, date]] = {
    "1.32": (date(2026, 3, 23), date(2027, 3, 23)),
    "1.33": (date(2026, 7, 29), date(2027, 7, 29)),
    "1.34": (date(2026, 12, 2), date(2027, 12, 2)),
    "1.35": (date(2027, 3, 27), date(2028, 3, 27)),
}
"""When the standard and the extended support of each version end, as far as AWS says so. No older one is made.

Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html#kubernetes-release-calendar
"""


def support_problem(version: str, today: date) -> str | None:
    """Say that a version of Kubernetes is no longer supported, or costs more. None: neither is known of it.

    Args:
        version: The version.
        today: The day, in UTC.
    """
    if version not in SUPPORT_ENDS:
        return None
    standard, extended = SUPPORT_ENDS[version]
    if today >= extended:
        return (
            f"EKS has ended its support of Kubernetes {version} on {extended}, makes no such cluster, and updates "
            "existing control planes by itself"
        )
    if today >= standard:
        return (
            f"Kubernetes {version} is in extended support since {standard}, which EKS bills by the hour beside the "
            f"control plane until {extended}"
        )
    return None


LogType: TypeAlias = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
"""What a control plane can log: https://docs.aws.amazon.com/eks/latest/userguide/control-plane-logs.html"""

LOG_TYPES: tuple[LogType, ...] = ("api", "audit", "authenticator", "controllerManager", "scheduler")

PRINCIPAL = Form(
    pattern=re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+"),
    wanted="the ARN of an IAM role or user, such as 'arn:aws:iam::111122223333:role/ml-platform'",
)
POLICY = Form(
    pattern=re.compile(r"arn:aws[a-z-]*:iam::(aws|\d{12}):policy/.+"),
    wanted="the ARN of an IAM policy, such as 'arn:aws:iam::111122223333:policy/external-dns'",
)
ZONE = Form(
    pattern=re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+[a-z]"),
    wanted="the name of an Availability Zone, such as 'us-east-1a'",
)
SUBNET = Form(
    pattern=re.compile(r"subnet-[0-9a-f]{8,17}"), wanted="a subnet's id, such as 'subnet-0a1b2c3d4e5f67890'"
)
# The extended support of 1.31 ends on 26 November 2026.
VERSION = Form(
    pattern=re.compile(r"1\.(3[2-9]|[4-9]\d)"),
    wanted="a minor version of Kubernetes from 1.32 on, such as '1.36', because EKS makes no older cluster",
)
RELEASE = Form(
    pattern=re.compile(r"1\.\d\d\.\d+-\d{8}"), wanted="the release of an EKS image, such as '1.36.0-20260818'"
)
SYSTEM_COUNT = Whole(minimum=1, maximum=100)


_RANGES = {"public_access_cidrs": "203.0.113.0/24", "private_access_cidrs": "10.8.0.0/16"}


def _address_range(setting: str, value: object) -> Iterator[str]:
    if is_unknown(value):
        return
    try:
        ipaddress.IPv4Network(str(value))
    except ValueError:
        yield f"{setting} must hold IPv4 ranges, such as {_RANGES[setting]!r}, got {shown(value)} in it"


def _log_type(setting: str, value: object) -> Iterator[str]:
    if value not in LOG_TYPES and not is_unknown(value):
        yield f"{setting} must hold {', '.join(LOG_TYPES)}, got {shown(value)} in it"


def _add_on(setting: str, value: object) -> Iterator[str]:
    if value in HYPERPOD_ADD_ONS:
        yield f"{setting} must hold no add-on of HyperPod, got {shown(value)}: use HyperPodCluster for it"
    elif value not in ADD_ONS and not is_unknown(value):
        yield f"{setting} must hold {', '.join(ADD_ONS)}, got {shown(value)} in it"


def _system_type(setting: str, value: object) -> Iterator[str]:
    if is_unknown(value):
        return
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", value):
        yield f"{setting} must be an EC2 type, such as 'm7i.large', got {shown(value)}"
    elif value in instance_type_names() and instance_type_info(value).is_accelerated:
        yield (
            f"{setting} must be a type without accelerators, such as 'm7i.large', got {value!r}: system nodes run "
            "around the clock"
        )


@checked
@dataclass(frozen=True, kw_only=True)
class SystemNodes:
    """Say on which nodes add-ons and operators run: they need neither GPUs nor EFA, and run around the clock.

    Attributes:
        instance_type: The EC2 type. Default: - `m7i.large`.
        count: How many; a second one takes over while the first is replaced. Default: - 2.

    Raises:
        ValueError: The type has accelerators, or there is no node.
    """

    instance_type: Annotated[str, _system_type] = "m7i.large"
    count: Annotated[int, SYSTEM_COUNT] = 2


@checked
@dataclass(frozen=True, kw_only=True)
class EksSettings:
    """Say what the EKS cluster of an `EksTrainingCluster` is like.

    The Kubernetes API is reached from the cluster's own nodes, and from nowhere else unless `private_access_cidrs` or
    `public_access_cidrs` names where from. Who may use it is said by EKS access entries alone.

    Attributes:
        control_plane_zone: A second Availability Zone, in which a small subnet is made for the control plane alone:
            EKS demands subnets in two zones. Either this or `control_plane_subnet_id`.
        control_plane_subnet_id: An existing subnet of the cluster's VPC in another zone than the nodes'. Either this
            or `control_plane_zone`.
        kubernetes_version: The minor version of Kubernetes. The next one moves the control plane there, and then
            replaces the nodes; EKS takes one minor version at a time. Default: - 1.36.
        private_access_cidrs: The IPv4 ranges of the VPC, and of networks that a VPN or peering joins to it, from
            which the API is reached. Default: - none: only the cluster's nodes reach it, and what
            `EksTrainingCluster.api_connections` lets in.
        public_access_cidrs: The IPv4 ranges from which the API is reached over the internet. Default: - none: the
            API is private.
        admins: The ARNs of the IAM roles and users that administer the cluster. Default: - a role is made for it,
            `EksTrainingCluster.admin_role`, which the account's principals may assume as their own policies allow.
        add_ons: Add-ons beside those that every cluster has; see `ADD_ONS`. Default: - none.
        add_on_versions: The versions of add-ons, by name. Default: - the one that EKS recommends when the add-on is
            made; it stays until this setting changes it.
        add_on_policies: The ARNs of IAM policies for the roles of add-ons, by the add-on's name; external-dns and
            aws-mountpoint-s3-csi-driver do nothing without one. Default: - none: `EksTrainingCluster.add_on_roles`
            is given what they need.
        release_version: The release of EKS's images for all node groups that have none of their own, such as
            `1.36.0-20260818`; another one replaces the nodes. Default: - the newest when a group is made; the group
            keeps it.
        system_nodes: Where add-ons run. Default: - two `m7i.large`.
        logs: What the control plane logs to CloudWatch, for three months. Default: - all five types.
        job_namespaces: The Kubernetes namespaces of jobs, in which the pods of the service account `cluster-job` get
            the job role. Default: - `training`.
        node_repair: Whether EKS reboots or replaces nodes that its monitoring agent reports as broken. A change takes
            effect with a node group's next start. Default: - it does.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
    """

    control_plane_zone: Annotated[str, ZONE] | None = None
    control_plane_subnet_id: Annotated[str, SUBNET] | None = None
    kubernetes_version: Annotated[str, VERSION] = DEFAULT_VERSION
    private_access_cidrs: Sequence[Annotated[str, _address_range]] = ()
    public_access_cidrs: Sequence[Annotated[str, _address_range]] = ()
    admins: Sequence[Annotated[str, PRINCIPAL]] = ()
    add_ons: Sequence[Annotated[str, _add_on]] = ()
    add_on_versions: Mapping[Annotated[str, _add_on], str] = field(default_factory=dict)
    add_on_policies: Mapping[Annotated[str, _add_on], Sequence[Annotated[str, POLICY]]] = field(default_factory=dict)
    release_version: Annotated[str, RELEASE] | None = None
    system_nodes: SystemNodes = field(default_factory=SystemNodes)
    logs: Sequence[Annotated[str, _log_type]] = LOG_TYPES
    job_namespaces: Sequence[Annotated[str, job_namespace]] = DEFAULT_NAMESPACES
    node_repair: bool = True

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse(
            {
                "control_plane_zone": self._zone_problems(),
                "add_on_policies": self._policy_problems(),
                "release_version": self._release_problems(),
            }
        )

    def _zone_problems(self) -> Iterator[str]:
        if (self.control_plane_zone is None) == (self.control_plane_subnet_id is None):
            yield (
                "control_plane_zone is required, and goes without control_plane_subnet_id: EKS's control plane needs "
                "subnets in two zones; name a second zone of the region, such as 'us-east-1a', or with an existing "
                "VPC a subnet in one"
            )

    def _policy_problems(self) -> Iterator[str]:
        for name in self.add_on_policies:
            if is_unknown(name):
                continue
            add_on = ADD_ONS[name]
            if not add_on.service_account or (add_on.wanted is Installed.BY_CHOICE and name not in self.add_ons):
                yield (
                    f"add_on_policies must hold add-ons of the cluster that call AWS, got {name!r}: name it in "
                    "add_ons as well, or leave its policies out"
                )

    def _release_problems(self) -> Iterator[str]:
        release = self.release_version
        if release is None or is_unknown(release) or is_unknown(self.kubernetes_version):
            return
        if not release.startswith(f"{self.kubernetes_version}."):
            yield (
                f"release_version must be one of Kubernetes {self.kubernetes_version}, the cluster's "
                f"kubernetes_version, got {release!r}: EKS takes no other"
            )
