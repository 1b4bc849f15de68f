"""What `make live` asks AWS: what it may refuse, each in a stack of its own, so that a refusal settles no other.

Left out is what needs a launch, a day, or a HyperPod or PCS cluster: docs/first-deploy.md lists it as not settled.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from aws_cdk import App, Environment, Fn, RemovalPolicy, Stack, Tags
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from cdk_training_cluster import Capacity, ClusterNetwork, NodeGroup
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.functions import make_alert_topic
from cdk_training_cluster.guardrails.health.node_health import REPAIR_GRACE_SECONDS
from cdk_training_cluster.guardrails.money.cost_budget import has_cost_budgets
from cdk_training_cluster.nodes import NodeFleet
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.storage.buckets import kept_bucket
from cdk_training_cluster.storage.exported_checkpoints import lifecycle_rules
from cdk_training_cluster_file import ClusterFile
from cluster_contract.tags import CLUSTER_TAG
from rehearsal.live_reports import REPORTS, REPORTS_ASKS, make_reporting_role

# More than one of AWS's documents allows, fewer than another.
_NOTIFICATIONS = 6
# Of nothing: its group is emptied before it is deployed.
_ANY_RESERVATION = "cr-0a1b2c3d4e5f67890"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a question's stack may use.

    Attributes:
        stack: The stack.
        network: The foundation's network.
        cluster: The cluster file.
    """

    stack: Stack
    network: ClusterNetwork
    cluster: ClusterFile

    def fleet(self, group: NodeGroup) -> NodeFleet:
        """Make the nodes' part of a group as the library makes it, with no nodes.

        Args:
            group: The group.
        """
        role = make_node_role(self.stack)
        return NodeFleet(
            self.stack,
            "Nodes",
            cluster_name=self.cluster.name,
            network=self.network,
            node_group=group,
            role=role,
            instance_profile=iam.InstanceProfile(self.stack, "Profile", role=role),
        )

    def group(self, name: str) -> NodeGroup:
        """Return a group of the cluster file.

        Args:
            name: Its name.
        """
        settings = next(each for each in self.cluster.node_groups if each.name == name)
        return settings.to_node_group(self.cluster.region)


def _interfaces(scene: Scene) -> None:
    scene.fleet(scene.group("p5"))


def _spot_fleet(scene: Scene) -> None:
    scene.fleet(scene.group("extras"))


def _reservation(scene: Scene) -> None:
    scene.fleet(scene.group("held"))


def _reservation_property(scene: Scene) -> None:
    group = ec2.CfnPlacementGroup(scene.stack, "Together", strategy="cluster")
    arn = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Name}"
    held = scene.group("held")
    end = held.capacity.end_time
    ec2.CfnCapacityReservation(
        scene.stack,
        "Held",
        instance_type=held.instance_types[0],
        instance_platform="Linux/UNIX",
        instance_count=1,
        availability_zone=scene.network.availability_zone,
        instance_match_criteria="targeted",
        placement_group_arn=Fn.sub(arn, {"Name": group.ref}),
        end_date_type="unlimited" if end is None else "limited",
        end_date=None if end is None else f"{end:%Y-%m-%dT%H:%M:%SZ}",
    )


def _grace(scene: Scene) -> None:
    scene.fleet(scene.group("plain")).auto_scaling_group.health_check_grace_period = REPAIR_GRACE_SECONDS


def _default_target(scene: Scene) -> None:
    bought = Capacity.prioritized(reservations=[_ANY_RESERVATION])
    plain = scene.group("plain")
    fleet = scene.fleet(NodeGroup("segments", instance_types=plain.instance_types, count=1, capacity=bought))
    assert fleet.reservation_group is not None  # noqa: S101 - prioritized capacity has one
    fleet.reservation_group.resources = None


def _budget(scene: Scene) -> None:
    made, topic = budgets.CfnBudget, make_alert_topic(scene.stack, None, budgets=True)
    made(
        scene.stack,
        "Bill",
        budget=made.BudgetDataProperty(
            budget_type="COST", time_unit="MONTHLY", budget_limit=made.SpendProperty(amount=1_000_000, unit="USD")
        ),
        notifications_with_subscribers=[
            made.NotificationWithSubscribersProperty(
                notification=made.NotificationProperty(
                    notification_type="ACTUAL", comparison_operator="GREATER_THAN", threshold=100 * (1 + number)
                ),
                subscribers=[made.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)],
            )
            for number in range(_NOTIFICATIONS)
        ],
    ).node.add_dependency(topic)


def _lifecycle(scene: Scene) -> None:
    month = to_duration(timedelta(days=30))
    bucket = kept_bucket(scene.stack, "Bucket", lifecycle_rules=lifecycle_rules(3, month, month))
    bucket.apply_removal_policy(RemovalPolicy.DESTROY)
    if bucket.policy is not None:
        bucket.policy.apply_removal_policy(RemovalPolicy.DESTROY)


_QUESTIONS: Mapping[str, tuple[str, Callable[[Scene], None]]] = {
    "p5": ("Does an Auto Scaling group take the 33 interfaces of a p5.48xlarge?", _interfaces),
    "spot-fleet": (
        "Does a Spot Fleet take interfaces with their own subnet and no subnet of the instance?",
        _spot_fleet,
    ),
    "reservation": ("Does EC2 reserve a g4dn.xlarge in a placement group, as the library asks for it?", _reservation),
    "reservation-property": (
        "Does CloudFormation take PlacementGroupArn of AWS::EC2::CapacityReservation, whose pattern no ARN matches?",
        _reservation_property,
    ),
    "grace": ("Does an Auto Scaling group take a health check grace period of a year?", _grace),
    "default-target": (
        "Does an Auto Scaling group with distribution segments take the preference default with a target?",
        _default_target,
    ),
    "budget": (f"Does an AWS budget take {_NOTIFICATIONS} notifications?", _budget),
    REPORTS: (REPORTS_ASKS, lambda scene: make_reporting_role(scene.stack, scene.cluster.name)),
    "lifecycle": ("Does S3 take three lifecycle rules of a whole bucket that expire objects?", _lifecycle),
}


def make_questions(app: App, cluster: ClusterFile, network: ClusterNetwork) -> None:
    """Make a stack for each question.

    Args:
        app: The app.
        cluster: The cluster file.
        network: The foundation's network.
    """
    for name, asks in questions(cluster).items():
        stack = Stack(
            app,
            stack_name(cluster, name),
            description=asks,
            env=Environment(account=cluster.account, region=cluster.region),
        )
        stack.node.set_context("@aws-cdk/core:defaultCrossStackReferences", "strong")
        _QUESTIONS[name][1](Scene(stack=stack, network=network, cluster=cluster))
        Tags.of(stack).add(CLUSTER_TAG, cluster.name)


def questions(cluster: ClusterFile) -> Mapping[str, str]:
    """Return what is asked, by a short name.

    Args:
        cluster: The cluster file.
    """
    # CloudFormation refuses the whole template elsewhere.
    without = () if has_cost_budgets(cluster.region) else ("budget",)
    return {name: asks for name, (asks, _) in _QUESTIONS.items() if name not in without}


def stack_name(cluster: ClusterFile, question: str) -> str:
    """Return the name of a question's stack.

    Args:
        cluster: The cluster file.
        question: The question's short name.
    """
    return f"{cluster.name}-{question}"
