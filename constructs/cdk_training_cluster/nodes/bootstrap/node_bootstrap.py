"""What a node does when it first starts."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, TypeAlias, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IConstruct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE, in_this_region
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import scripts_asset, sha256_of
from cdk_training_cluster.nodes.bootstrap.collector import Collector
from cdk_training_cluster.nodes.bootstrap.environment import node_environment, warn_about_environment
from cdk_training_cluster.nodes.bootstrap.user_data import render_user_data
from cdk_training_cluster.nodes.job_role import let_write_metrics
from cdk_training_cluster.nodes.utilization import accelerator_count
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.metrics import NODE_METRICS, node_namespace
from cluster_contract.tags import CLUSTER_TAG

# What is safe unquoted in a metric's dimension, a StatsD tag and a systemd unit alike.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
_HOOK_NAME = re.compile(r"[A-Za-z0-9_/-]{1,255}")

# The characters that need no escape in /etc/fstab and in the name of a systemd mount unit.
_MOUNT_POINT = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
# What the node itself lives in. Below /opt there is room for more, such as /opt/ml.
# https://refspecs.linuxfoundation.org/FHS_3.0/fhs/index.html
_SYSTEM = re.compile(r"/opt|/(?:bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|root|run|sbin|sys|tmp|usr|var)(?:/.*)?")


_GROUPS_AS_NAG_SAYS = (
    "arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:autoScalingGroup:*:autoScalingGroupName/*"
)
_GROUPS_REASON = (
    "A node cannot receive its group's name, since the group refers to its template; the condition on the cluster's "
    "tag limits whose actions it completes."
)


def _mountable(setting: str, value: object) -> Iterator[str]:
    if is_unknown(value):
        return
    if not isinstance(value, str) or not _MOUNT_POINT.fullmatch(value):
        yield (
            f"{setting} must be an absolute path below / of letters, digits, '.', '_' and '-', such as '/fsx', got "
            f"{shown(value)}"
        )
    elif _SYSTEM.fullmatch(value):
        yield (
            f"{setting} must not be a directory of the operating system, got {shown(value)}: the file system would "
            "hide what is in it; give a directory of its own, such as /fsx"
        )


MountPoint: TypeAlias = Annotated[str, _mountable]
"""A directory of a node that a file system can be mounted at."""


@checked
@dataclass(frozen=True, kw_only=True)
class Mount:
    """Say which FSx for Lustre file system a node mounts, and where.

    Attributes:
        dns_name: The file system's DNS name.
        mount_name: The file system's mount name.
        mount_point: The directory on the node. Default: - `/fsx`.
        efa: Whether the file system has EFA. Default: - no.

    Raises:
        ValueError: The mount point is not a plain absolute path below `/`, or one of the operating system's.
    """

    dns_name: str
    mount_name: str
    mount_point: MountPoint = "/fsx"
    efa: bool = False


# FSx supports EFA on instances of Nitro v4 and later that have it, but for the family trn2:
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/configure-efa-clients.html
# Those of an earlier Nitro: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-nitro-instances.html
_LUSTRE_OVER_TCP = re.compile(r"(p3dn|p4de?|g4dn|g5|dl1|inf1|trn2|trn2n|trn2u|c5n|m5d?n|m5zn|r5d?n|i3en)\..*")


def reaches_lustre(instance_type: InstanceTypeInfo) -> bool:
    """Tell whether nodes of a type reach a file system through their Elastic Fabric Adapters.

    Args:
        instance_type: The facts about the type.
    """
    return instance_type.supports_efa and not _LUSTRE_OVER_TCP.fullmatch(instance_type.name)


# How many interfaces AWS's set-up of a client uses, by how a type's name starts, and the connections of all clients
# that a file system takes, one for each interface:
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/configure-efa-clients.html
_LUSTRE_INTERFACES = {"p6-b300.": 16, "p5": 8, "p6": 8}
MAX_LUSTRE_INTERFACES = 1024


def lustre_interfaces(instance_type: InstanceTypeInfo) -> int:
    """Return through how many Elastic Fabric Adapters a node of a type reaches a file system; 0: over TCP.

    Args:
        instance_type: The facts about the type.
    """
    if not reaches_lustre(instance_type):
        return 0
    others = 2 if len(instance_type.network_cards) > 1 else 1
    used = next(
        (count for start, count in _LUSTRE_INTERFACES.items() if instance_type.name.startswith(start)), others
    )
    return min(used, instance_type.maximum_efa_interfaces)


class NodeBootstrap(Construct):
    """Make the scripts that set a node up, and the user data that fetches and runs them.

    In this order: Ubuntu's own updates pause, the program `cluster-node`, the jobs' role, the user's scripts before,
    limits, kernel hold, local NVMe, EFA check, Lustre client, mount, environment, CloudWatch agent, Neuron reader,
    collector for Prometheus, the user's scripts after, updates resume, and the node is verified. The first step that
    fails ends it: the node stays up, and its console output, `/var/lib/cdk-training-cluster/bootstrap.json`, the log
    `/var/log/cdk-training-cluster.log` and the metric `NODE_METRICS.bootstrap_failed` say which. Running it again,
    `bash /opt/cdk-training-cluster/scripts/bootstrap.sh`, changes nothing that is right already. The collector is
    the exception: a node starts without it, and `NODE_METRICS.collector_failed` says so.

    Where a lifecycle hook waits for the nodes, a node completes its action when it is set up and verified, and again
    whenever it has started anew: then local NVMe is there and the file system mounted. One that failed its
    verification by a fault that another instance would not have asks to be replaced, unless three of its group were
    within a day. Of another, and of one whose set-up failed, the hook gets no answer; what becomes of it is for the
    hook to say when its time is up. A node that failed its verification is set up: it is ready, and answers, once it
    passes at a later boot or at `systemctl restart cdk-training-cluster-boot`.

    Resources: S3 assets, and statements in the role's policy: reading these assets, writing metrics to the
    library's namespace, and with a hook, finding the node's own group and completing actions in groups that
    carry the cluster's tag.

    Attributes:
        user_data: For the launch template. Nothing can be added: it ends by handing over to the scripts.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        node_group: str,
        role: iam.IGrantable,
        job_role: iam.IRole | None = None,
        instance_type: InstanceTypeInfo,
        efa: bool = False,
        efa_traffic: bool = False,
        mount: Mount | None = None,
        environment: Mapping[str, str] | None = None,
        scripts_before: Sequence[str | PathLike[str]] = (),
        scripts_after: Sequence[str | PathLike[str]] = (),
        launch_hook: str | None = None,
        joins_disks: bool = True,
        collector: Collector | None = None,
        runs_table: str | None = None,
        node_hour_usd: float | None = None,
        expected: str = "",
        utilization_command: str | None = None,
    ) -> None:
        """Make the scripts and the user data.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The value of the metrics' dimension `Cluster`.
            node_group: The value of the metrics' dimension `NodeGroup`.
            role: The instance role; it is given what the scripts need.
            job_role: The role that users of the nodes get credentials of, while root alone reaches those of the
                instance role. Default: - every user reaches the instance role's.
            instance_type: The facts about the nodes' type; its accelerators decide what is measured.
            efa: Whether the nodes have Elastic Fabric Adapters: then a node whose image has no driver for
                them fails, where it would train over TCP and say nothing. Default: - no.
            efa_traffic: Whether the nodes report what goes over them. Default: - no.
            mount: The file system to mount. Default: - none.
            environment: Variables of every login shell and service. Default: - `DEFAULT_ENVIRONMENT` only.
            scripts_before: Files to run as root before anything else, in this order. Default: - none.
            scripts_after: Files to run as root after everything else, in this order. Default: - none.
            launch_hook: The name of the group's launching lifecycle hook, which waits for a node to be set up;
                the group carries the cluster's tag. Default: - none waits.
            joins_disks: Whether a node's local NVMe disks become one file system; no: another program on it takes
                them. Default: - they do.
            collector: Where the nodes' metrics for Prometheus go. Default: - nowhere.
            runs_table: The name of the DynamoDB table in which nodes of a run find each other. Default: - none.
            node_hour_usd: What a node costs an hour, in USD, for jobs to count. Default: - that is not known.
            expected: What the nodes verify themselves against, as `expected_nodes` returns it. Default: - they are
                not verified.
            utilization_command: What prints how busy each accelerator is, where neither NVIDIA nor AWS makes them.
                Default: - that is not measured.

        Raises:
            ValueError: A name, a variable or a script is not usable; every reason, a line each.
        """
        super().__init__(scope, id)
        _check(cluster_name, node_group, scripts_before, scripts_after, launch_hook)
        given = dict(environment or {})
        variables = node_environment(given)
        warn_about_environment(self, given)
        scripts = scripts_asset(
            self,
            "Scripts",
            _vendor(instance_type, utilization_command),
            efa_traffic=efa_traffic,
            neuron_devices=instance_type.neuron_device_count,
            collector_seconds=None if collector is None else collector.interval_seconds,
        )
        before = self._script_assets("ScriptBefore", scripts_before)
        after = self._script_assets("ScriptAfter", scripts_after)
        self._assets = [scripts.asset, *before, *after]
        self.user_data: ec2.UserData = ec2.UserData.custom(
            render_user_data(
                {
                    "CLUSTER": cluster_name,
                    "NODE_GROUP": node_group,
                    "REGION": HERE.region,
                    "URL_SUFFIX": HERE.url_suffix,
                    "SCRIPTS": scripts.asset.s3_object_url,
                    "SCRIPTS_SHA256": scripts.sha256,
                    "EFA": "yes" if efa else "",
                    "MOUNT_SOURCE": f"{mount.dns_name}@tcp:/{mount.mount_name}" if mount else "",
                    "MOUNT_POINT": mount.mount_point if mount else "",
                    **({"MOUNT_EFA": "yes"} if mount and mount.efa and efa and reaches_lustre(instance_type) else {}),
                    "METRIC_NAMESPACE": node_namespace(cluster_name),
                    "FAILURE_METRIC": failure_metric(cluster_name, node_group),
                    **_collector_settings(collector, cluster_name, node_group),
                    "ENVIRONMENT": [f"{name}={value}" for name, value in variables.items()],
                    "SCRIPTS_BEFORE": _sources(before, scripts_before),
                    "SCRIPTS_AFTER": _sources(after, scripts_after),
                    "LAUNCH_HOOK": launch_hook or "",
                    **({"EXPECTED": expected} if expected else {}),
                    **({} if joins_disks else {"DISKS_TAKEN": "yes"}),
                    **_utilization_settings(utilization_command, instance_type),
                    **({"RUNS_TABLE": runs_table} if runs_table else {}),
                    **({} if job_role is None else {"JOB_ROLE": job_role.role_arn}),
                    **({"NODE_HOUR_USD": f"{node_hour_usd:g}"} if node_hour_usd else {}),
                }
            )
        )
        principal = role.grant_principal
        principal.add_to_principal_policy(self._reading_of_assets())
        let_write_metrics(principal, node_namespace(cluster_name))
        if launch_hook is not None:
            let_nodes_complete_actions(principal, cluster_name)

    def _reading_of_assets(self) -> iam.PolicyStatement:
        assets = (asset.bucket.arn_for_objects(asset.s3_object_key) for asset in self._assets)
        return iam.PolicyStatement(actions=["s3:GetObject"], resources=list(dict.fromkeys(assets)))

    def _script_assets(self, prefix: str, paths: Sequence[str | PathLike[str]]) -> list[s3_assets.Asset]:
        return [
            s3_assets.Asset(self, f"{prefix}{number}", path=fspath(path))
            for number, path in enumerate(paths, start=1)
        ]


def let_nodes_complete_actions(principal: iam.IPrincipal, cluster_name: str) -> None:
    """Let nodes tell Auto Scaling that they are set up, or may be terminated.

    Args:
        principal: Their role.
        cluster_name: The value of the tag on their groups.

    Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html
    """
    principal.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["autoscaling:DescribeAutoScalingInstances"],
            resources=["*"],
            conditions=in_this_region(),
        )
    )
    principal.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["autoscaling:CompleteLifecycleAction"],
            resources=[HERE.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")],
            conditions={"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}},
        )
    )
    # An imported role is a construct too, though none of this language's class.
    if Construct.is_construct(principal):
        acknowledge(
            cast("IConstruct", principal), f"AwsSolutions-IAM5[Resource::{_GROUPS_AS_NAG_SAYS}]", _GROUPS_REASON
        )


def _collector_settings(collector: Collector | None, cluster_name: str, node_group: str) -> dict[str, str]:
    if collector is None:
        return {}
    failure = failure_metric(cluster_name, node_group, NODE_METRICS.collector_failed)
    return {"REMOTE_WRITE_URL": collector.remote_write_url, "COLLECTOR_FAILURE_METRIC": failure}


def failure_metric(cluster_name: str, node_group: str, metric: str = NODE_METRICS.bootstrap_failed) -> str:
    """Return the data of the metric that a node writes when it fails, for `aws cloudwatch put-metric-data`.

    Args:
        cluster_name: The cluster's name.
        node_group: The node group's name.
        metric: The metric's name. Default: - that of a node that could not be set up.
    """
    values = {NODE_METRICS.cluster_dimension: cluster_name, NODE_METRICS.node_group_dimension: node_group}
    return json.dumps(
        [
            {
                "MetricName": metric,
                "Dimensions": [{"Name": name, "Value": values[name]} for name in dimensions],
                "Value": 1,
            }
            for dimensions in NODE_METRICS.shared_series
        ],
        separators=(",", ":"),
    )


def _vendor(info: InstanceTypeInfo, utilization_command: str | None) -> AcceleratorVendor:
    if info.has_neuron_devices:
        return AcceleratorVendor.NEURON
    if info.has_nvidia_gpus:
        return AcceleratorVendor.NVIDIA
    return AcceleratorVendor.COMMAND if utilization_command else AcceleratorVendor.OTHER


def _utilization_settings(command: str | None, info: InstanceTypeInfo) -> dict[str, str]:
    return {"UTILIZATION_COMMAND": command, "ACCELERATORS": str(accelerator_count(info))} if command else {}


def _sources(assets: Sequence[s3_assets.Asset], paths: Sequence[str | PathLike[str]]) -> list[str]:
    return [
        f"{asset.s3_object_url} {sha256_of(Path(path))} {Path(path).name}"
        for asset, path in zip(assets, paths, strict=True)
    ]


def _check(
    cluster_name: str,
    node_group: str,
    scripts_before: Sequence[str | PathLike[str]],
    scripts_after: Sequence[str | PathLike[str]],
    launch_hook: str | None,
) -> None:
    problems = []
    for setting, name in (("cluster_name", cluster_name), ("node_group", node_group)):
        if not is_unknown(name) and not _NAME.fullmatch(name):
            problems.append(
                f"{setting} must be letters, digits, '.', '_' and '-' and start with a letter or digit, got "
                f"{shown(name)}"
            )
    for setting, paths in (("scripts_before", scripts_before), ("scripts_after", scripts_after)):
        if isinstance(paths, str):
            problems.append(f"{setting} must be a list of files, got {shown(paths)}")
            continue
        problems += [
            f"{setting} must name files that exist, got {shown(path)}" for path in paths if not Path(path).is_file()
        ]
    if launch_hook is not None and not is_unknown(launch_hook) and not _HOOK_NAME.fullmatch(launch_hook):
        problems.append(
            "launch_hook must be a lifecycle hook's name of 1 to 255 letters, digits, '-', '_' and '/', got "
            f"{launch_hook!r}"
        )
    if problems:
        raise ValueError("\n".join(problems))
