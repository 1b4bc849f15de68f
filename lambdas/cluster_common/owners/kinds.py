"""What differs between the kinds of owners, for decisions and messages."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from cluster_contract.owners import OwnerKind

RETRY_EVERY = timedelta(minutes=10)
"""How often an Auto Scaling group that is short of nodes is asked for them."""


@dataclass(frozen=True, kw_only=True)
class OwnerTraits:
    """What decisions have to know of a service that owns nodes, and how messages name it.

    Attributes:
        key: Its kind.
        service: Who launches and terminates the nodes.
        noun: What one owner is called.
        history: Where one can read what it did.
        role: The role that it launches nodes with.
        more_capacity: How one gets capacity that EC2 does not have at the moment.
        retries: What is done about nodes that EC2 could not launch.
        instance_tags: The tags, which only the service can set, by which an instance names its owner: their values,
            with a slash between them, are the owner's name or id.
        emptied: What the size zero does to it and its nodes: the end of a sentence.
        tries: What the service itself does about nodes that EC2 could not launch, where an operator sized it.
            Default: - what `retries` says.
        holds_deployments: Whether CloudFormation waits for its nodes: its size is lowered while EC2 lacks some.
        reset_by_deployments: Whether a deployment sets its size to 0 and leaves its nodes.
        absent: What `absence` returns, with `$noun` for what an owner is called and `$id` for what the settings name.
        size: What messages call the number that the functions set.
        while_updated: What its service refuses while it is given a size. Empty: nothing.
        idle_remedy: Of one whose scheduler owns the size: what ends nodes that it keeps idle.
        keeps_jobs: Of one whose nodes run their jobs to the end whatever its size is: how an operator ends the jobs.
        launch_time: How long its nodes may take to launch, where that is longer than the cluster's setting allows.
        preparing: The states of nodes that are on their way into service by themselves, and how long after its launch
            a node may have one.
        is_on_ec2: Whether its nodes are instances of the account, which EC2 describes.
        reboots: Whether a node can be taken out of service, rebooted and put back; if not, the node itself takes no
            job while it is faulty, and another one replaces it.
        own_repair: What is done about its faulty nodes instead, where the health function leaves them alone: a
            sentence without its full stop. Empty: the health function repairs them.
        tag_command: Returns the command that writes a tag on it, of its name, a key, a value and the region.
            Default: - `aws ec2 create-tags` takes its id, beside those of instances.
    """

    key: OwnerKind
    service: str
    noun: str
    history: str
    role: str
    more_capacity: str
    retries: str
    instance_tags: tuple[str, ...]
    emptied: str
    tries: str = ""
    holds_deployments: bool = False
    reset_by_deployments: bool = False
    absent: str = "$noun $id: a deployment is under way, or it was deleted"
    size: str = "desired capacity"
    while_updated: str = ""
    idle_remedy: str = ""
    keeps_jobs: str = ""
    launch_time: timedelta = timedelta(0)
    preparing: Mapping[str, timedelta] = field(default_factory=dict)
    is_on_ec2: bool = True
    reboots: bool = False
    own_repair: str = ""
    tag_command: Callable[[str, str, str, str], str] | None = None

    @property
    def terminates_nodes(self) -> bool:
        """Whether single nodes can be terminated; if not, it chooses itself which it terminates."""
        return self.key.terminates_nodes

    def absence(self, owner_id: str) -> str:
        """Return what is missing where a node group has no owner, and why that may be: the end of a sentence."""
        return self.absent.replace("$noun", self.noun).replace("$id", owner_id)

    def owner_named_by(self, tags: Mapping[str, str]) -> str:
        """Return the name or id of the owner that an instance's tags name. Empty: none of this kind."""
        found = [tags.get(key, "") for key in self.instance_tags]
        return "/".join(found) if all(found) else ""


def _tag_auto_scaling_group(name: str, key: str, value: str, region: str) -> str:
    tag = {
        "ResourceId": name,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": False,
    }
    # Operators paste the command into a shell, and a name may hold any character.
    argument = shlex.quote(json.dumps([tag], separators=(",", ":")))
    return f"aws autoscaling create-or-update-tags --region {region} --tags {argument}"


def _tag_by_arn(service: str, read: str, written: str, region: str) -> str:
    """Return the command that writes a tag on what another command finds the ARN of."""
    arn, (verb, _, tags) = f'"$(aws {service} {read} --region {region} --output text)"', written.partition(" ")
    return f"aws {service} {verb} --region {region} --resource-arn {arn} {tags}"


def _tag_compute_node_group(name: str, key: str, value: str, region: str) -> str:
    cluster, _, group = name.partition("/")
    ids = f"--cluster-identifier {shlex.quote(cluster)} --compute-node-group-identifier {shlex.quote(group)}"
    read = f"get-compute-node-group {ids} --query computeNodeGroup.arn"
    return _tag_by_arn("pcs", read, f"tag-resource --tags {key}={value}", region)


def _tag_nodegroup(name: str, key: str, value: str, region: str) -> str:
    cluster, _, group = name.partition("/")
    ids = f"--cluster-name {shlex.quote(cluster)} --nodegroup-name {shlex.quote(group)}"
    read = f"describe-nodegroup {ids} --query nodegroup.nodegroupArn"
    return _tag_by_arn("eks", read, f"tag-resource --tags {key}={value}", region)


def _tag_hyperpod_cluster(name: str, key: str, value: str, region: str) -> str:
    cluster, _, group = name.partition("/")
    read = f"describe-cluster --cluster-name {shlex.quote(cluster)} --query ClusterArn"
    return _tag_by_arn("sagemaker", read, f"add-tags --tags Key={key}/{group},Value={value}", region)


def _tag_compute_environment(name: str, key: str, value: str, region: str) -> str:
    query = "--query 'computeEnvironments[0].computeEnvironmentArn'"
    read = f"describe-compute-environments --compute-environments {shlex.quote(name)} {query}"
    return _tag_by_arn("batch", read, f"tag-resource --tags {key}={value}", region)


_RELEASED = "their capacity goes back to EC2, so a later start may have to wait for capacity"

AUTO_SCALING_GROUP = OwnerTraits(
    key=OwnerKind.AUTO_SCALING_GROUP,
    service="Auto Scaling",
    noun="Auto Scaling group",
    history="activity history",
    role="AWSServiceRoleForAutoScaling",
    more_capacity="get the capacity beforehand with a capacity reservation or in another Availability Zone",
    retries=f"The power function asks for them again every {RETRY_EVERY.seconds // 60} minutes.",
    tries="Auto Scaling asks for them again, for about a day.",
    holds_deployments=True,
    absent="group: a deployment is under way, or failed",
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
    instance_tags=("aws:autoscaling:groupName",),
    emptied="is scaled to zero; data on the nodes' disks is lost, except on nodes that return to a warm pool; "
    f"{_RELEASED}",
    # Nodes are set up and verified there; the hook ends the wait after half an hour.
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
    preparing={"Pending:Wait": timedelta.max},
    reboots=True,
    tag_command=_tag_auto_scaling_group,
)
SPOT_FLEET = OwnerTraits(
    key=OwnerKind.SPOT_FLEET,
    service="the Spot Fleet",
    noun="Spot Fleet request",
    history="history",
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-fleet-prerequisites.html
    role="AWSServiceRoleForEC2SpotFleet",
    more_capacity="name more instance types, or buy the nodes in another way",
    retries="The Spot Fleet asks for them again.",
    reset_by_deployments=True,
    absent="Spot Fleet request $id that launches nodes: a deployment is under way, or the request was cancelled",
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-spot-fleet.html
    instance_tags=("aws:ec2spot:fleet-request-id",),
    size="target",
    emptied=f"gets the target capacity 0; data on the nodes' disks is lost; {_RELEASED}",
)

PCS_COMPUTE_NODE_GROUP = OwnerTraits(
    key=OwnerKind.PCS_COMPUTE_NODE_GROUP,
    service="AWS PCS",
    noun="PCS compute node group",
    history="scheduler log and the errorInfo",
    # https://docs.aws.amazon.com/pcs/latest/userguide/service-linked-roles.html
    role="AWSServiceRoleForPCS",
    more_capacity="get the capacity beforehand with a capacity reservation",
    retries="AWS PCS asks for them again.",
    # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_compute-instances.html
    instance_tags=("aws:pcs:cluster-id", "aws:pcs:compute-node-group-id"),
    size="maximum instance count",
    # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_clusters_update.html
    while_updated="Until it is ACTIVE again, in minutes, AWS PCS refuses a deployment that changes the cluster",
    # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_cng_update.html
    emptied="gets the maximum instance count 0; AWS PCS terminates its nodes, and jobs that run on them fail and "
    f"return to their queues; data on the nodes' disks is lost; {_RELEASED}",
    idle_remedy="lower its scaleDownIdleTimeInSeconds, end the job that holds the nodes, or stop the node group",
    tag_command=_tag_compute_node_group,
)
EKS_NODEGROUP = OwnerTraits(
    key=OwnerKind.EKS_NODEGROUP,
    service="Amazon EKS",
    noun="EKS managed node group",
    history="activity history of the Auto Scaling group underneath, and the health issues,",
    role=AUTO_SCALING_GROUP.role,
    more_capacity=AUTO_SCALING_GROUP.more_capacity,
    retries="Auto Scaling asks for them again.",
    tries=AUTO_SCALING_GROUP.tries,
    # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
    instance_tags=("eks:cluster-name", "eks:nodegroup-name"),
    size="desired size",
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html
    emptied="gets the desired size 0; its Pods are evicted at once, whatever their disruption budgets say; data on "
    f"the nodes' disks is lost; {_RELEASED}",
    # https://docs.aws.amazon.com/eks/latest/userguide/node-health.html
    own_repair="Amazon EKS repairs it itself, by node auto repair with the actions of the same table of faults",
    tag_command=_tag_nodegroup,
)
HYPERPOD_INSTANCE_GROUP = OwnerTraits(
    key=OwnerKind.HYPERPOD_INSTANCE_GROUP,
    service="SageMaker HyperPod",
    noun="HyperPod instance group",
    history="events (aws sagemaker list-cluster-events)",
    role="AWSServiceRoleForSageMakerHyperPod",
    more_capacity="get the capacity beforehand with a training plan",
    retries="HyperPod asks for them again where its node provisioning mode is Continuous.",
    instance_tags=(),
    size="instance count",
    # A node runs its lifecycle scripts before it is Running, and its deep health checks take one to two hours. Of an
    # update of software, which an operator orders, AWS states no time.
    # https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
    launch_time=timedelta(minutes=30),
    preparing={"DeepHealthCheckInProgress": timedelta(hours=3), "SystemUpdating": timedelta.max},
    # https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-scale-down.html
    emptied=f"gets the instance count 0; data on the nodes' disks is lost; {_RELEASED}",
    is_on_ec2=False,
    # https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-node-recovery.html
    own_repair="SageMaker HyperPod reboots or replaces it itself, by its own health checks",
    tag_command=_tag_hyperpod_cluster,
)
BATCH_COMPUTE_ENVIRONMENT = OwnerTraits(
    key=OwnerKind.BATCH_COMPUTE_ENVIRONMENT,
    service="AWS Batch",
    noun="Batch compute environment",
    history="status reason, and the status reasons of its jobs,",
    role="AWSServiceRoleForBatch",
    more_capacity="get the capacity beforehand with a capacity reservation",
    retries="AWS Batch asks for them again while jobs wait.",
    # AWS Batch documents no tag that names the environment: its nodes are found by the tags of the launch template.
    instance_tags=(),
    size="maximum vCPUs",
    # https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateComputeEnvironment.html
    emptied="is disabled: its jobs that run go on to their end, and are billed until then; AWS Batch starts no other "
    f"job and terminates idle nodes; data on the nodes' disks is lost; {_RELEASED}",
    idle_remedy="lower its minimum vCPUs or scale-down delay, end the job that holds the nodes, or stop the group",
    keeps_jobs="aws batch terminate-job",
    # https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
    own_repair="AWS Batch launches and terminates its nodes itself, and tries a failed job again on others as the "
    "job's retry strategy says",
    tag_command=_tag_compute_environment,
)

OWNER_KINDS: Mapping[str, OwnerTraits] = {
    kind.key: kind
    for kind in (
        AUTO_SCALING_GROUP,
        SPOT_FLEET,
        PCS_COMPUTE_NODE_GROUP,
        EKS_NODEGROUP,
        HYPERPOD_INSTANCE_GROUP,
        BATCH_COMPUTE_ENVIRONMENT,
    )
}
"""The kinds of owners that the functions deal with, by their keys."""
