"""The synthesized policy against the calls that the function was seen to make."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster.power import ClusterPower, PowerGroup
from fake_dynamodb import TABLE
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from power_scene import CLUSTER, TOPIC, Scene
from synthesis import new_stack

LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:power"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
# What Lambda does in the function's name.
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=QUEUE),
]


@cache
def synthesize(life: str) -> list[dict[str, Any]]:
    """Return the statements of the function's role in a cluster that lives so."""
    groups, _ = LIVES[life]
    stack = new_stack()
    ClusterPower(stack, "Power", cluster_name=CLUSTER, groups=groups, alert_topic=sns.Topic(stack, "Alerts"))
    template = Template.from_stack(stack).to_json()
    ids = {resource["Type"]: name for name, resource in template["Resources"].items()}
    [function] = [one for one in template["Resources"].values() if one["Type"] == "AWS::Lambda::Function"]
    return role_statements(
        template,
        function["Properties"]["Role"]["Fn::GetAtt"][0],
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            ids["AWS::SNS::Topic"]: TOPIC,
            f"{ids['AWS::DynamoDB::Table']}.Arn": TABLE_ARN,
            f"{ids['AWS::Logs::LogGroup']}.Arn": f"{LOGS}:*",
            f"{ids['AWS::SQS::Queue']}.Arn": QUEUE,
        },
    )


def live_with_groups(scene: Scene) -> None:
    """Do all that is done with Auto Scaling groups: start, lack nodes, tell people, stop, start.

    Once its nodes stay when it is stopped.
    """
    group = scene.add(capacity=3)
    scene.minute(12)
    group.capacity, group.suspended = 8, "It failed for 24 hours"
    scene.minute(12)
    group.hooked = True
    scene.order("stop")
    scene.minute(12)
    group.hooked = False
    scene.minute()
    scene.order("start")
    scene.minute()


def live_with_terminations(scene: Scene) -> None:
    """Do all that is done with a group that loses single nodes."""
    live_with_groups(scene)
    [group] = scene.auto_scaling.groups.values()
    scene.minute(2)
    ids = [name for name, _ in group.nodes[:2]]
    scene.order("terminate", node_groups=["workers"], instance_ids=ids)
    scene.minute(2)


def live_with_a_warm_pool(scene: Scene) -> None:
    """Do all that is done with a warm pool when a deployment has changed the launch template."""
    scene.counts["warm"] = 8
    scene.details["warm"] = {"warm_pool": True}
    group = scene.add("warm", version=1, warm={"i-1": 1})
    group.version = 2
    scene.minute(2)


def live_with_a_fleet(scene: Scene) -> None:
    """Do all that is done with a Spot Fleet."""
    fleet = scene.add_fleet("extras", capacity=1)
    scene.minute(3)
    fleet.capacity = 8
    scene.minute(2)
    fleet.deploy()
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    scene.add("extras", name="what-it-was-before", desired=1, in_service=1)
    scene.minute(2)


def live_with_a_block(scene: Scene) -> None:
    """Do all that is done with a Capacity Block."""
    scene.counts["pod"] = 8
    block = scene.add_block(scene.add("pod", capacity=3), starts=timedelta(minutes=2), bought=3)
    scene.minute(5)
    assert block.ends is not None
    scene.now = block.ends - timedelta(minutes=60)
    scene.minute(2)
    scene.now = block.ends - timedelta(minutes=40)
    scene.minute(2)
    block.state = "expired"
    scene.minute()


def live_with_a_release(scene: Scene) -> None:
    """Do all that is done with a reservation that is released."""
    scene.counts["held"] = 8
    reservation = scene.add_reservation(scene.add("held"))
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    reservation.capacity = 7
    scene.order("start")
    scene.minute(2)


def live_with_a_reservation(scene: Scene) -> None:
    """Do all that is done with a reservation that is kept."""
    scene.counts["kept"] = 8
    reservation = scene.add_reservation(scene.add("kept"), release=False)
    scene.minute(2)
    scene.minute(12)
    scene.order("stop")
    scene.minute(2)
    reservation.ends = scene.now + timedelta(hours=2)
    scene.minute(2)


def live_with_blocks_among_others(scene: Scene) -> None:
    """Do all that is done with a group of which some nodes run in a Capacity Block."""
    scene.counts["any"] = 8
    scene.add("any")
    scene.details["any"] = {"blocks": ("cr-any",)}
    ends = scene.now + timedelta(minutes=62)
    scene.ec2.add_reservation("cr-any", 4, starts=scene.now, ends=ends, is_block=True, others=4)
    scene.minute(4)


LIVES: dict[str, tuple[dict[str, PowerGroup], list[Callable[[Scene], None]]]] = {
    "groups": ({"workers": PowerGroup(count=8)}, [live_with_groups]),
    "terminations": ({"workers": PowerGroup(count=8, terminates_nodes=True)}, [live_with_terminations]),
    "a warm pool": (
        {"workers": PowerGroup(count=8), "warm": PowerGroup(count=8, warm_pool=True)},
        [live_with_groups, live_with_a_warm_pool],
    ),
    "a fleet": ({"extras": PowerGroup(count=4, spot_fleet_id="sfr-extras")}, [live_with_a_fleet]),
    "a block": (
        {"workers": PowerGroup(count=8), "pod": PowerGroup(count=8, capacity_block="cr-pod")},
        [live_with_groups, live_with_a_block],
    ),
    "a release": (
        {
            "workers": PowerGroup(count=8),
            "held": PowerGroup(count=8, capacity_reservation_id="cr-held", released=True),
        },
        [live_with_groups, live_with_a_release],
    ),
    "a reservation": (
        {"workers": PowerGroup(count=8), "kept": PowerGroup(count=8, capacity_reservation_id="cr-kept")},
        [live_with_groups, live_with_a_reservation],
    ),
    "blocks among others": (
        {"workers": PowerGroup(count=8), "any": PowerGroup(count=8, capacity_blocks=["cr-any"])},
        [live_with_groups, live_with_blocks_among_others],
    ),
    "everything": (
        {
            "workers": PowerGroup(count=8, terminates_nodes=True),
            "extras": PowerGroup(count=4, spot_fleet_id="sfr-extras"),
            "pod": PowerGroup(count=8, capacity_block="cr-pod"),
            "held": PowerGroup(count=8, capacity_reservation_id="cr-held", released=True),
        },
        [live_with_terminations, live_with_a_fleet, live_with_a_block, live_with_a_release],
    ),
}


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest) -> tuple[list[dict[str, Any]], list[Call]]:
    """The statements for some node groups, and everything the function does in its life with them."""
    _, parts = LIVES[request.param]
    calls = list(LAMBDA_CALLS)
    for part in parts:
        scene = Scene(counts={"workers": 8} if part in (live_with_groups, live_with_terminations) else {})
        part(scene)
        calls += scene.calls
    return synthesize(request.param), calls


@pytest.fixture(scope="module")
def statements() -> list[dict[str, Any]]:
    return synthesize("everything")


def test_the_scenes_make_every_kind_of_call() -> None:
    scene = Scene()
    for part in (live_with_terminations, live_with_a_fleet, live_with_a_block, live_with_a_release):
        part(scene)

    assert {call.action for call in scene.calls} == {
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "autoscaling:ResumeProcesses",
        "autoscaling:SetDesiredCapacity",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "ec2:CreateTags",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeSpotFleetInstances",
        "ec2:DescribeSpotFleetRequestHistory",
        "ec2:DescribeSpotFleetRequests",
        "ec2:ModifyCapacityReservation",
        "ec2:ModifySpotFleetRequest",
        "sns:Publish",
    }


def test_everything_the_function_does_is_allowed(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert [call for call in calls if not is_allowed(statements, call)] == []


def test_nothing_is_allowed_that_the_function_does_not_do(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert unused(statements, calls) == []


def test_only_what_the_node_groups_need_is_allowed() -> None:
    services = {
        name: {action.split(":")[0] for one in synthesize(name) for action in _actions(one)} for name in LIVES
    }

    assert [
        name
        for name in LIVES
        if any("autoscaling:TerminateInstanceInAutoScalingGroup" in _actions(one) for one in synthesize(name))
    ] == ["terminations", "everything"]
    assert services["groups"] == {"autoscaling", "dynamodb", "logs", "sns", "sqs"}
    assert services["a fleet"] == {"autoscaling", "dynamodb", "ec2", "logs", "sns", "sqs"}
    fleet = {action for one in synthesize("a fleet") for action in _actions(one)}
    assert {action for action in fleet if action.startswith("autoscaling:")} == {
        "autoscaling:DescribeAutoScalingGroups",
    }
    assert services["everything"] == {"autoscaling", "dynamodb", "ec2", "logs", "sns", "sqs"}


FLEET = f"arn:aws:ec2:{REGION}:{ACCOUNT}:spot-fleet-request/sfr-1"
RESERVATION = f"arn:aws:ec2:{REGION}:{ACCOUNT}:capacity-reservation/cr-1"
POWER_KEYS = ["cdk-training-cluster:power"]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:ModifySpotFleetRequest", FLEET),
        ("ec2:CreateTags", FLEET),
        ("ec2:ModifyCapacityReservation", RESERVATION),
    ],
)
def test_what_ec2_keeps_for_another_cluster_cannot_be_written(
    statements: list[dict[str, Any]], action: str, resource: str
) -> None:
    allowed = {
        cluster: is_allowed(
            statements,
            Call(
                action=action,
                resource=resource,
                context={"aws:TagKeys": POWER_KEYS}
                | ({"aws:ResourceTag/cdk-training-cluster:cluster": cluster} if cluster else {}),
            ),
        )
        for cluster in (CLUSTER, "other-pod", "")
    }

    assert allowed == {CLUSTER: True, "other-pod": False, "": False}


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:CreateTags", RESERVATION),
        ("ec2:CreateTags", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
        ("ec2:ModifySpotFleetRequest", FLEET.replace(ACCOUNT, "999999999999")),
        ("ec2:ModifySpotFleetRequest", FLEET.replace(REGION, "eu-west-1")),
        ("ec2:CancelSpotFleetRequests", FLEET),
        ("ec2:ModifyCapacityReservation", RESERVATION.replace(ACCOUNT, "999999999999")),
        ("ec2:CancelCapacityReservation", RESERVATION),
    ],
)
def test_nothing_else_of_ec2_can_be_written(statements: list[dict[str, Any]], action: str, resource: str) -> None:
    context: dict[str, str | list[str]] = {
        "aws:ResourceTag/cdk-training-cluster:cluster": CLUSTER,
        "aws:TagKeys": POWER_KEYS,
    }

    assert not is_allowed(statements, Call(action=action, resource=resource, context=context))


def _actions(statement: dict[str, Any]) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else list(actions)


@pytest.mark.parametrize(
    "action",
    [
        "autoscaling:ResumeProcesses",
        "autoscaling:SetDesiredCapacity",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
        "autoscaling:CreateOrUpdateTags",
    ],
)
def test_another_clusters_group_cannot_be_written(statements: list[dict[str, Any]], action: str) -> None:
    scene = Scene()
    own, foreign = scene.add(), scene.auto_scaling.add("other", cluster="other-pod", node_group="workers")
    untagged = scene.auto_scaling.add("plain", cluster=CLUSTER, node_group="workers")
    untagged.tags.clear()

    allowed = {
        group.name: is_allowed(
            statements,
            Call(
                action=action,
                resource=group.arn,
                context={f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}
                | {"aws:TagKeys": ["cdk-training-cluster:power"]},
            ),
        )
        for group in (own, foreign, untagged)
    }

    assert allowed == {"workers-asg": True, "other": False, "plain": False}


@pytest.mark.parametrize(
    "keys",
    [["cdk-training-cluster:cluster"], ["cdk-training-cluster:power", "Owner"]],
    ids=["the tag that decides about permissions", "a foreign tag beside an own one"],
)
def test_no_other_tag_can_be_written(statements: list[dict[str, Any]], keys: list[str]) -> None:
    group, fleet = Scene().add(), Scene().add_fleet()
    context: dict[str, str | list[str]] = {f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}

    for action, resource in (("autoscaling:CreateOrUpdateTags", group.arn), ("ec2:CreateTags", fleet.arn)):
        assert is_allowed(
            statements, Call(action=action, resource=resource, context=context | {"aws:TagKeys": POWER_KEYS})
        )
        assert not is_allowed(
            statements, Call(action=action, resource=resource, context=context | {"aws:TagKeys": keys})
        )


def test_a_group_of_another_account_or_region_cannot_be_written(statements: list[dict[str, Any]]) -> None:
    group = Scene().add()
    context = {f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}

    for there in (group.arn.replace(ACCOUNT, "999999999999"), group.arn.replace(REGION, "eu-west-1")):
        assert not is_allowed(
            statements, Call(action="autoscaling:SetDesiredCapacity", resource=there, context=context)
        )


def test_no_other_log_topic_table_or_part_of_it_can_be_written(statements: list[dict[str, Any]]) -> None:
    for call in (
        Call(action="sns:Publish", resource=f"{TOPIC}-other"),
        Call(action="logs:PutLogEvents", resource=LOGS.replace("power", "other") + ":log-stream:1"),
        Call(
            action="dynamodb:PutItem",
            resource=f"{TABLE_ARN}-other",
            context={"dynamodb:LeadingKeys": ["power#base-pod"]},
        ),
        Call(action="dynamodb:PutItem", resource=TABLE_ARN, context={"dynamodb:LeadingKeys": ["power#other-pod"]}),
        Call(action="dynamodb:GetItem", resource=TABLE_ARN, context={"dynamodb:LeadingKeys": ["power#other-pod"]}),
        Call(
            action="dynamodb:PutItem",
            resource=TABLE_ARN,
            context={"dynamodb:LeadingKeys": ["power#base-pod", "idle#base-pod"]},
        ),
        Call(action="dynamodb:DeleteTable", resource=TABLE_ARN),
        Call(action="dynamodb:Scan", resource=TABLE_ARN),
    ):
        assert not is_allowed(statements, call)
