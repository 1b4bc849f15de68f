"""The function that makes reservations in placement groups, which CloudFormation's own resource cannot."""

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import (
    Aws,
    CfnResource,
    CfnTag,
    CustomResource,
    Duration,
    IResolvable,
    IStableAnyProducer,
    ITaggable,
    Lazy,
    Stack,
    TagManager,
    TagType,
)
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge, default_child, ignore_lint
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.functions import RESERVATIONS, ClusterFunction, ClusterPermissions
from cluster_contract.codec import encode
from cluster_contract.reservations import RESOURCE_TYPE, ReservationFunctionSettings
from cluster_contract.tags import CLUSTER_TAG, STACK_TAG

# As long as Lambda runs a function: a reservation may be pending for minutes.
_TIMEOUT_MINUTES = 15
_MAX_EVENT_AGE_MINUTES = 35
# An event that Lambda still delivers is one that CloudFormation still waits for: nothing is bought after it gave up.
_ANSWER_MINUTES = 60
_RETRIES = 2
_TAGS = "cdk-training-cluster:*"


class ReservationFunction(Construct):
    """Make the function that CloudFormation asks for reservations in placement groups.

    The schema that AWS publishes of `AWS::EC2::CapacityReservation` has a pattern for `PlacementGroupArn` that no ARN
    matches; EC2's CreateCapacityReservation takes the ARN. The function makes, changes and cancels what the stack's
    custom resources say, and no other reservation. It runs when a deployment changes one of them.

    Lambda may deliver a request twice or late, and an answer may be lost: the token of the request to EC2 is the
    id of CloudFormation's request, tags on each reservation say which resource it is of, and nothing is bought for a
    resource that CloudFormation no longer waits for.

    Resources: what `ClusterFunction` makes, and a `Custom::CapacityReservation` for each reservation.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html and
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        alert_topic: sns.ITopic,
        powertools_layer: lambda_.ILayerVersion | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the function.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster it works for.
            alert_topic: What its alarms notify.
            powertools_layer: As for `ClusterFunction`. Default: - AWS's public one.
            encryption_key: As for `ClusterFunction`. Default: - keys that AWS owns.
        """
        super().__init__(scope, id)
        self._made = ClusterFunction(
            self,
            "Function",
            package="cluster_reservations",
            called="the reservation function",
            description=f"Makes the capacity reservations of {cluster_name} in placement groups",
            cluster_name=cluster_name,
            settings=encode(ReservationFunctionSettings(cluster=cluster_name)),
            alert_topic=alert_topic,
            timeout=Duration.minutes(_TIMEOUT_MINUTES),
            max_event_age=Duration.minutes(_MAX_EVENT_AGE_MINUTES),
            retries=_RETRIES,
            powertools_layer=powertools_layer,
            encryption_key=encryption_key,
        )
        _grant(self._made.role, cluster_name)

    def reserve(
        self, scope: Construct, id: str, properties: Mapping[str, object], tags: Sequence[CfnTag]
    ) -> CfnResource:
        """Make a reservation, and return its resource, whose `Ref` is the reservation's id.

        Args:
            scope: The parent construct.
            id: The construct's id.
            properties: What is reserved, by the names of CreateCapacityReservation.
            tags: The tags of the reservation, beside those of the stack and those that `Tags.of` adds.
        """
        tagged = _Tagged(scope, id, tags)
        custom = CustomResource(
            tagged,
            "Resource",
            service_token=self._made.function.function_arn,
            service_timeout=Duration.minutes(_ANSWER_MINUTES),
            resource_type=RESOURCE_TYPE,
            properties={**properties, "TagSpecifications": tagged.specifications},
        )
        resource = default_child(custom)
        # What a cancellation needs, its permissions and its log group, is deleted after it.
        custom.node.add_dependency(self._made)
        # CDK names the function in DependsOn beside the reference to it: cfn-lint W3005.
        ignore_lint(resource, "W3005")
        return resource


@jsii.implements(ITaggable)
class _Tagged(Construct):
    """Collects the tags of a reservation: CDK and CloudFormation put none on a custom resource."""

    def __init__(self, scope: Construct, id: str, tags: Sequence[CfnTag]) -> None:
        super().__init__(scope, id)
        self._tags = TagManager(TagType.STANDARD, "AWS::EC2::CapacityReservation")
        self._own = {tag.key: tag.value for tag in tags}

    @property
    def tags(self) -> TagManager:
        """The tags that `Tags.of` adds."""
        return self._tags

    @property
    def specifications(self) -> IResolvable:
        """The reservation's `TagSpecifications`, known when all tags are."""
        return Lazy.any(_Specifications(self))

    def all_tags(self) -> dict[str, str]:
        """Return the tags by key: the stack's, those of `Tags.of`, and the reservation's own, which win."""
        return {**Stack.of(self).tags.tag_values(), **self._tags.tag_values(), **self._own}


@jsii.implements(IStableAnyProducer)
class _Specifications:
    def __init__(self, tagged: _Tagged) -> None:
        self._tagged = tagged

    def produce(self) -> list[dict[str, object]]:
        """Return the reservation's `TagSpecifications`."""
        tags = [{"Key": key, "Value": value} for key, value in sorted(self._tagged.all_tags().items())]
        return [{"ResourceType": "capacity-reservation", "Tags": tags}]


def _grant(role: iam.Role, cluster_name: str) -> None:
    """Let the function make reservations for its stack, and change and cancel those alone.

    The tag with the stack's name stays when a cluster is renamed, unlike that with the cluster's.

    Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
    """
    permissions = ClusterPermissions(role, cluster_name=cluster_name, tag_key=CLUSTER_TAG, own_tags=_TAGS)
    permissions.read(["ec2:DescribeCapacityReservations"])
    own = {STACK_TAG: Aws.STACK_NAME}
    permissions.write(["ec2:CancelCapacityReservation", "ec2:ModifyCapacityReservation"], RESERVATIONS, tagged=own)
    permissions.write(["ec2:CreateTags"], RESERVATIONS, tagged=own)
    arn = f"arn:{HERE.partition}:{RESERVATIONS.format(account=f'{HERE.region}:{HERE.account_id}')}"
    # The tags by which the reservation is found stay. DeleteTags without a key would remove every tag.
    removable = {
        "StringEquals": {f"aws:ResourceTag/{STACK_TAG}": Aws.STACK_NAME},
        "ForAllValues:StringNotLike": {"aws:TagKeys": [_TAGS]},
        "Null": {"aws:TagKeys": "false"},
    }
    role.add_to_policy(iam.PolicyStatement(actions=["ec2:DeleteTags"], resources=[arn], conditions=removable))
    asked = {f"aws:RequestTag/{CLUSTER_TAG}": cluster_name, f"aws:RequestTag/{STACK_TAG}": Aws.STACK_NAME}
    for action, conditions in (
        ("ec2:CreateCapacityReservation", asked),
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/supported-iam-actions-tagging.html
        ("ec2:CreateTags", {**asked, "ec2:CreateAction": "CreateCapacityReservation"}),
    ):
        role.add_to_policy(
            iam.PolicyStatement(actions=[action], resources=[arn], conditions={"StringEquals": conditions})
        )
    # The document names no other resource of the action; EC2 may look at the placement group all the same.
    place = HERE.arn("ec2", "placement-group/*")
    role.add_to_policy(iam.PolicyStatement(actions=["ec2:CreateCapacityReservation"], resources=[place]))
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:placement-group/*]",
        "EC2 makes a reservation in a placement group; the reservation itself must carry the stack's tag.",
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"],
            resources=[Aws.STACK_ID],
        )
    )
