"""The synthesized policy of the idle function against the calls that it was seen to make."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cdk_training_cluster import IdlePolicy, IdleSignal
from cdk_training_cluster.guardrails import IdleGroup
from cluster_contract.idle import Policy, Signal, SignalKind
from fake_service import ACCOUNT, REGION
from idle_policies import FAILED_EVENTS, idle_statements
from idle_scene import CLUSTER, POWER, TOPIC, IdleScene
from policy_evaluator import Call, is_allowed, unused

LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:idle"
# What Lambda does in the function's name.
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=FAILED_EVENTS),
]
TAG = "aws:ResourceTag/cdk-training-cluster:cluster"
IDLE_KEYS = ["cdk-training-cluster:idle-note"]
_SESSION = Policy(signals=(Signal(kind=SignalKind.SESSION),))


def live_alone(scene: IdleScene) -> None:
    """Do all that is done with instances that nothing owns: warn, take it back, warn, stop."""
    node = scene.add()
    spot = scene.add(raw={"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-1"})
    scene.ec2.spot_requests["sir-1"] = {"Type": "one-time"}
    scene.tick()
    node.load = 50
    scene.ticks(10)
    node.load = 0
    scene.ticks(100)
    assert node.id in scene.stopped
    assert spot.id not in scene.stopped


def live_with_a_group(scene: IdleScene) -> None:
    """Do all that is done with node groups of Auto Scaling groups."""
    nodes = scene.add_group()
    scene.tick()
    nodes[0].load = 50
    scene.ticks(10)
    nodes[0].load = 0
    scene.ticks(100)
    assert {node.id for node in nodes} <= scene.stopped


def live_with_a_fleet(scene: IdleScene) -> None:
    """Do all that is done with node groups of Spot Fleets."""
    nodes = scene.add_fleet()
    scene.tick()
    nodes[0].load = 50
    scene.ticks(10)
    nodes[0].load = 0
    scene.ticks(100)
    assert {node.id for node in nodes} <= scene.stopped


LIVES: dict[str, tuple[dict[str, IdleGroup], IdlePolicy | None, list[Callable[[IdleScene], None]]]] = {
    "instances alone": ({}, None, [live_alone]),
    "a session keeps a node": ({}, IdlePolicy(signals=[IdleSignal.session()]), [live_alone]),
    "a group": ({"workers": IdleGroup()}, None, [live_alone, live_with_a_group]),
    "a fleet": ({"extras": IdleGroup(spot_fleet_id="sfr-extras")}, None, [live_alone, live_with_a_fleet]),
    "everything": (
        {"workers": IdleGroup(), "extras": IdleGroup(spot_fleet_id="sfr-extras")},
        IdlePolicy(signals=[IdleSignal.session()]),
        [live_alone, live_with_a_group, live_with_a_fleet],
    ),
}


def statements_of(name: str) -> list[dict[str, Any]]:
    groups, policy, _ = LIVES[name]
    return idle_statements(
        CLUSTER,
        groups,
        topic=TOPIC,
        power=POWER,
        logs=LOGS,
        account=ACCOUNT,
        policy=policy,
        preloads=name == "everything",
    )


def calls_of(name: str) -> list[Call]:
    _, policy, parts = LIVES[name]
    calls = list(LAMBDA_CALLS)
    for part in parts:
        scene = IdleScene(policy=_SESSION if policy else Policy())
        scene.ssm.progress = "{}" if name == "everything" else None
        part(scene)
        calls += scene.calls
    return calls


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest) -> tuple[list[dict[str, Any]], list[Call]]:
    """The statements for a cluster, and everything the function does in its life."""
    return statements_of(request.param), calls_of(request.param)


@pytest.fixture(scope="module")
def everything() -> tuple[list[dict[str, Any]], list[Call]]:
    return statements_of("everything"), calls_of("everything")


def test_the_lives_make_every_kind_of_call(everything: tuple[list[dict[str, Any]], list[Call]]) -> None:
    assert {call.action for call in everything[1]} == {
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:DeleteTags",
        "autoscaling:DescribeAutoScalingGroups",
        "cloudwatch:GetMetricData",
        "dynamodb:BatchWriteItem",
        "dynamodb:Query",
        "ec2:CreateTags",
        "ec2:DeleteTags",
        "ec2:DescribeInstances",
        "ec2:DescribeSpotFleetInstances",
        "ec2:DescribeSpotFleetRequests",
        "ec2:DescribeSpotInstanceRequests",
        "ec2:StopInstances",
        "lambda:InvokeFunction",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sns:GetTopicAttributes",
        "sns:Publish",
        "sqs:SendMessage",
        "ssm:DescribeSessions",
        "ssm:GetParameter",
    }


def test_everything_the_function_does_is_allowed(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert [call for call in calls if not is_allowed(statements, call)] == []


def test_nothing_is_allowed_that_the_function_does_not_do(life: tuple[list[dict[str, Any]], list[Call]]) -> None:
    statements, calls = life

    assert unused(statements, calls) == []


@pytest.mark.parametrize("cluster", ["other-pod", None])
def test_no_write_reaches_what_is_not_the_clusters(
    everything: tuple[list[dict[str, Any]], list[Call]], cluster: str | None
) -> None:
    statements, calls = everything
    writes = [call for call in calls if call.context and not call.action.startswith("dynamodb:")]
    foreign = [
        replace(
            call,
            context={key: value for key, value in call.context.items() if key != TAG}
            | ({TAG: cluster} if cluster else {}),
        )
        for call in writes
    ]

    assert {call.action for call in writes} == {
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:DeleteTags",
        "ec2:CreateTags",
        "ec2:DeleteTags",
        "ec2:StopInstances",
    }
    assert [call for call in foreign if is_allowed(statements, call)] == []


INSTANCE = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"
GROUP = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/workers-asg"


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:TerminateInstances", INSTANCE),
        ("ec2:StartInstances", INSTANCE),
        ("ec2:RebootInstances", INSTANCE),
        ("ec2:ModifyInstanceAttribute", INSTANCE),
        ("ec2:StopInstances", INSTANCE.replace(ACCOUNT, "999999999999")),
        ("ec2:StopInstances", INSTANCE.replace(REGION, "eu-west-1")),
        ("ec2:CreateTags", INSTANCE.replace("instance/i", "volume/vol")),
        ("autoscaling:SetDesiredCapacity", GROUP),
        ("autoscaling:TerminateInstanceInAutoScalingGroup", GROUP),
        ("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:other"),
        ("sns:GetTopicAttributes", f"{TOPIC}-other"),
        ("sns:Publish", f"{TOPIC}-other"),
    ],
)
def test_nothing_else_can_be_written(
    everything: tuple[list[dict[str, Any]], list[Call]], action: str, resource: str
) -> None:
    context: dict[str, str | list[str]] = {TAG: CLUSTER, "aws:TagKeys": IDLE_KEYS}

    assert not is_allowed(everything[0], Call(action=action, resource=resource, context=context))


@pytest.mark.parametrize("tag", ["aws:autoscaling:groupName", "aws:ec2spot:fleet-request-id", "aws:ec2:fleet-id"])
def test_no_member_of_a_group_or_fleet_can_be_stopped(
    everything: tuple[list[dict[str, Any]], list[Call]], tag: str
) -> None:
    alone = Call(action="ec2:StopInstances", resource=INSTANCE, context={TAG: CLUSTER})
    member = replace(alone, context={TAG: CLUSTER, f"aws:ResourceTag/{tag}": "workers-asg"})

    assert is_allowed(everything[0], alone)
    assert not is_allowed(everything[0], member)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:CreateTags", INSTANCE),
        ("ec2:DeleteTags", INSTANCE),
        ("autoscaling:CreateOrUpdateTags", GROUP),
        ("autoscaling:DeleteTags", GROUP),
    ],
)
def test_no_tag_but_its_own_can_be_written_or_taken_away(
    everything: tuple[list[dict[str, Any]], list[Call]], action: str, resource: str
) -> None:
    allowed = {
        name: is_allowed(
            everything[0],
            Call(action=action, resource=resource, context={TAG: CLUSTER} | ({"aws:TagKeys": keys} if keys else {})),
        )
        for name, keys in {
            "own": IDLE_KEYS,
            "the tag that permissions rest on": ["cdk-training-cluster:cluster"],
            "another one beside its own": [*IDLE_KEYS, "Owner"],
            # Without keys, EC2 takes every tag away.
            "all of them": [],
        }.items()
    }

    assert allowed == {
        "own": True,
        "the tag that permissions rest on": False,
        "another one beside its own": False,
        "all of them": False,
    }
