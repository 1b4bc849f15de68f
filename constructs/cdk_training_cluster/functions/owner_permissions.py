"""What functions may do with what owns nodes, by the kind of owner."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from aws_cdk import Fn
from aws_cdk import aws_iam as iam

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE, in_this_region
from cdk_training_cluster.functions.owned_group import OwnedGroup
from cdk_training_cluster.functions.permissions import AUTO_SCALING_GROUPS, INSTANCES, SPOT_FLEETS, ClusterPermissions
from cluster_contract.owners import OwnerKind


@dataclass(frozen=True, kw_only=True)
class OwnerActions:
    """The actions on one kind of owner.

    Attributes:
        resources: The ARN of one, as `ClusterPermissions.write` takes it.
        reads: Those that read it and its nodes.
        history: Those that read what it did.
        sizes: Those that give it a size.
        terminates: Those that terminate single nodes.
        tags: Those that write its tags.
        untags: Those that take tags away.
        tag_suffix: What follows the keys of tags that a function writes.
        lists_nodes: Whether it alone lists its nodes, because they are no instances of the account.
        passed_to: The service that gets the role of its nodes with a size. Default: - none.
        validates: What that service asks EC2 about in the name of the function, in a request for a size; it looks at
            the instance profile as well.
        tag_underneath: The tag with its cluster's name on the Auto Scaling groups underneath, which have no other of
            its tags. Default: - none is underneath.
        repairs: Those that repair its nodes, by what they change. Default: - the service repairs them.
        repair_ends: Those that end repairs that began while the health policy let the function act.
        own_repair: What the service does about faulty nodes instead: a clause.
    """

    resources: str
    reads: tuple[str, ...]
    sizes: tuple[str, ...]
    tags: tuple[str, ...]
    untags: tuple[str, ...]
    history: tuple[str, ...] = ()
    terminates: tuple[str, ...] = ()
    tag_suffix: str = ""
    lists_nodes: bool = False
    passed_to: str = ""
    validates: tuple[str, ...] = ()
    tag_underneath: str = ""
    repairs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    repair_ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own_repair: str = ""


_RESUME, _TERMINATE = "autoscaling:ResumeProcesses", "autoscaling:TerminateInstanceInAutoScalingGroup"

# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
OWNER_ACTIONS: Mapping[OwnerKind, OwnerActions] = {
    OwnerKind.AUTO_SCALING_GROUP: OwnerActions(
        resources=AUTO_SCALING_GROUPS,
        reads=("autoscaling:DescribeAutoScalingGroups",),
        history=("autoscaling:DescribeScalingActivities",),
        sizes=(_RESUME, "autoscaling:SetDesiredCapacity"),
        terminates=(_TERMINATE,),
        tags=("autoscaling:CreateOrUpdateTags",),
        untags=("autoscaling:DeleteTags",),
        repairs={
            AUTO_SCALING_GROUPS: ("autoscaling:EnterStandby", "autoscaling:ExitStandby", _TERMINATE),
            INSTANCES: ("ec2:RebootInstances",),
        },
        repair_ends={AUTO_SCALING_GROUPS: ("autoscaling:ExitStandby", _TERMINATE)},
    ),
    OwnerKind.SPOT_FLEET: OwnerActions(
        resources=SPOT_FLEETS,
        reads=("ec2:DescribeSpotFleetInstances", "ec2:DescribeSpotFleetRequests"),
        history=("ec2:DescribeSpotFleetRequestHistory",),
        sizes=("ec2:ModifySpotFleetRequest",),
        tags=("ec2:CreateTags",),
        untags=("ec2:DeleteTags",),
        repairs={INSTANCES: ("ec2:TerminateInstances",)},
    ),
    OwnerKind.PCS_COMPUTE_NODE_GROUP: OwnerActions(
        resources="pcs:{account}:cluster/*",
        reads=("pcs:GetComputeNodeGroup", "pcs:ListTagsForResource", "ec2:DescribeInstances"),
        sizes=("pcs:UpdateComputeNodeGroup",),
        tags=("pcs:TagResource",),
        untags=("pcs:UntagResource",),
        passed_to="ec2.amazonaws.com",
        # https://docs.aws.amazon.com/pcs/latest/userguide/security-min-permissions.html
        validates=(
            *("ec2:CreateFleet", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes"),
            *("ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups"),
            *("ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:RunInstances"),
        ),
        # AWS PCS takes a reboot for a failure, and replaces the node.
        repairs={INSTANCES: ("ec2:TerminateInstances",)},
    ),
    OwnerKind.EKS_NODEGROUP: OwnerActions(
        resources="eks:{account}:nodegroup/*",
        reads=("autoscaling:DescribeAutoScalingGroups", "eks:DescribeNodegroup"),
        history=("autoscaling:DescribeScalingActivities",),
        sizes=("eks:UpdateNodegroupConfig",),
        tags=("eks:TagResource",),
        untags=("eks:UntagResource",),
        tag_underneath="eks:cluster-name",
        # https://docs.aws.amazon.com/eks/latest/userguide/node-health.html
        own_repair="EKS repairs them itself, with node_repair",
    ),
    OwnerKind.HYPERPOD_INSTANCE_GROUP: OwnerActions(
        resources="sagemaker:{account}:cluster/*",
        reads=("sagemaker:DescribeCluster", "sagemaker:ListClusterNodes", "sagemaker:ListTags"),
        history=("sagemaker:ListClusterEvents",),
        sizes=("sagemaker:UpdateCluster",),
        terminates=("sagemaker:BatchDeleteClusterNodes",),
        tags=("sagemaker:AddTags",),
        untags=("sagemaker:DeleteTags",),
        # An instance group has no tags: those of the cluster name it.
        tag_suffix="/*",
        lists_nodes=True,
        passed_to="sagemaker.amazonaws.com",
        # https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-resiliency-slurm-auto-resume.html
        own_repair="HyperPod repairs them itself, with node_recovery",
    ),
    OwnerKind.BATCH_COMPUTE_ENVIRONMENT: OwnerActions(
        resources="batch:{account}:compute-environment/*",
        reads=("batch:DescribeComputeEnvironments", "ec2:DescribeInstances", "ec2:DescribeInstanceTypes"),
        sizes=("batch:UpdateComputeEnvironment",),
        tags=("batch:TagResource",),
        untags=("batch:UntagResource",),
        # https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
        own_repair="AWS Batch tries jobs again on other nodes, with attempts",
    ),
}


class OwnerPermissions:
    """The permissions on what owns the nodes of some node groups, and no more."""

    def __init__(self, groups: Collection[OwnedGroup], *, also: Collection[OwnerKind] = ()) -> None:
        """Find out which kinds of owners there are.

        Args:
            groups: The node groups.
            also: Kinds that are read although no node group has one.
        """
        self._groups = groups
        self._read_kinds = {*also, *(group.owner_kind for group in groups)}
        # In the order of the enum, so that templates do not change with the order of node groups.
        own = {group.owner_kind for group in groups}
        self._kinds = [kind for kind in OwnerKind if kind in own]

    def reads(self, *, history: bool = False, nodes_only: bool = False) -> Iterator[str]:
        """Yield the actions that read the owners.

        Args:
            history: Whether also those that read what they did.
            nodes_only: Whether only nodes are read that EC2 does not describe.
        """
        for kind in OwnerKind:
            if kind in self._read_kinds and (OWNER_ACTIONS[kind].lists_nodes or not nodes_only):
                yield from OWNER_ACTIONS[kind].reads
            if kind in self._kinds and history:
                yield from OWNER_ACTIONS[kind].history

    def grant_sizes(self, permissions: ClusterPermissions, *, terminates: Collection[OwnerKind]) -> None:
        """Let a role give sizes, and terminate single nodes.

        Args:
            permissions: The role's permissions.
            terminates: The kinds of owners of which single nodes may be terminated.
        """
        for kind in self._kinds:
            actions = OWNER_ACTIONS[kind]
            single = actions.terminates if kind in terminates else ()
            permissions.write([*actions.sizes, *single], actions.resources)
            if actions.tag_underneath:
                single = (_TERMINATE,) if kind in terminates else ()
                owners = [group.owner_settings for group in self._groups if group.owner_kind is kind]
                clusters = [Fn.select(0, Fn.split("/", owner.id)) for owner in owners if owner]
                tagged = {actions.tag_underneath: clusters[0] if len(clusters) == 1 else clusters}
                permissions.write([_RESUME, *single], AUTO_SCALING_GROUPS, tagged=tagged)

    def grant_roles(self, role: iam.Role, passed: Mapping[OwnerKind, Collection[iam.IRole]]) -> None:
        """Let a role pass on the roles of nodes where a service asks for that with each size.

        Args:
            role: The function's role.
            passed: The roles of nodes, by the kind of their owner.
        """
        for kind in self._kinds:
            actions = OWNER_ACTIONS[kind]
            arns = sorted({each.role_arn for each in passed.get(kind, ())})
            if actions.passed_to and arns:
                service = {"StringEquals": {"iam:PassedToService": actions.passed_to}}
                role.add_to_policy(iam.PolicyStatement(actions=["iam:PassRole"], resources=arns, conditions=service))
            if actions.validates:
                role.add_to_policy(
                    iam.PolicyStatement(actions=list(actions.validates), resources=["*"], conditions=in_this_region())
                )
                # IAM is global, and its calls count as those of us-east-1: no condition on the stack's Region holds.
                # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion
                profiles = f"arn:{HERE.partition}:iam::{HERE.account_id}:instance-profile/*"
                role.add_to_policy(iam.PolicyStatement(actions=["iam:GetInstanceProfile"], resources=[profiles]))
                with_launches = {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}}
                role.add_to_policy(
                    iam.PolicyStatement(actions=["ec2:CreateTags"], resources=["*"], conditions=with_launches)
                )
                reason = "AWS PCS checks with these actions, in the function's name, that it can launch nodes."
                acknowledge(role, "AwsSolutions-IAM5[Resource::*]", reason)
                named = "arn:<AWS::Partition>:iam::<AWS::AccountId>:instance-profile/*"
                acknowledge(role, f"AwsSolutions-IAM5[Resource::{named}]", reason)

    def grant_tags(self, permissions: ClusterPermissions, *, untags: bool = False) -> None:
        """Let a role write its own tags on the owners, and take them away."""
        for kind in self._kinds:
            actions = OWNER_ACTIONS[kind]
            written = [*actions.tags, *(actions.untags if untags else ())]
            permissions.write(written, actions.resources, own_tags_only=True, tag_suffix=actions.tag_suffix)
