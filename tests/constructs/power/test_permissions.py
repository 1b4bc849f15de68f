"""The synthesized policy against the calls that the function was seen to make."""

from typing import Any

import pytest
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster.power import ClusterPower
from fake_auto_scaling import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from power_scene import CLUSTER, TOPIC, Scene
from synthesis import new_stack

LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:power"
LOG_CALLS = [
    Call(action=action, resource=f"{LOGS}:log-stream:1") for action in ("logs:CreateLogStream", "logs:PutLogEvents")
]


@pytest.fixture(scope="module")
def statements() -> list[dict[str, Any]]:
    stack = new_stack()
    ClusterPower(stack, "Power", cluster_name=CLUSTER, counts={"workers": 8}, alert_topic=sns.Topic(stack, "Alerts"))
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
            f"{ids['AWS::Logs::LogGroup']}.Arn": f"{LOGS}:*",
        },
    )


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    """Everything the function does in its life: it starts, lacks nodes, tells people, is stopped and started.

    Once its nodes stay when it is stopped.
    """
    scene = Scene()
    group = scene.add(capacity=3)
    scene.minute(3)
    group.capacity = 8
    scene.minute(2)
    group.hooked = True
    scene.order("stop")
    scene.minute(12)
    group.hooked = False
    scene.minute()
    scene.order("start")
    scene.minute()
    return [*scene.auto_scaling.calls, *scene.sns.calls, *LOG_CALLS]


def test_the_scene_makes_every_kind_of_call(calls: list[Call]) -> None:
    assert {call.action for call in calls} == {
        "autoscaling:CreateOrUpdateTags",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "autoscaling:SetDesiredCapacity",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sns:Publish",
    }


def test_everything_the_function_does_is_allowed(statements: list[dict[str, Any]], calls: list[Call]) -> None:
    assert [call for call in calls if not is_allowed(statements, call)] == []


def test_nothing_is_allowed_that_the_function_does_not_do(
    statements: list[dict[str, Any]], calls: list[Call]
) -> None:
    assert unused(statements, calls) == []


@pytest.mark.parametrize("action", ["autoscaling:SetDesiredCapacity", "autoscaling:CreateOrUpdateTags"])
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
                | {"aws:TagKeys": ["cdk-training-cluster:power-size"]},
            ),
        )
        for group in (own, foreign, untagged)
    }

    assert allowed == {"workers-asg": True, "other": False, "plain": False}


@pytest.mark.parametrize(
    "keys",
    [["cdk-training-cluster:cluster"], ["cdk-training-cluster:power-size", "Owner"]],
    ids=["the tag that decides about permissions", "a foreign tag beside an own one"],
)
def test_no_other_tag_can_be_written(statements: list[dict[str, Any]], keys: list[str]) -> None:
    group = Scene().add()
    context: dict[str, str | list[str]] = {f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}

    assert not is_allowed(
        statements,
        Call(action="autoscaling:CreateOrUpdateTags", resource=group.arn, context=context | {"aws:TagKeys": keys}),
    )


def test_a_group_of_another_account_or_region_cannot_be_written(statements: list[dict[str, Any]]) -> None:
    group = Scene().add()
    context = {f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}

    for there in (group.arn.replace(ACCOUNT, "999999999999"), group.arn.replace(REGION, "eu-west-1")):
        assert not is_allowed(
            statements, Call(action="autoscaling:SetDesiredCapacity", resource=there, context=context)
        )


def test_no_other_log_and_no_other_topic_can_be_written(statements: list[dict[str, Any]]) -> None:
    for call in (
        Call(action="sns:Publish", resource=f"{TOPIC}-other"),
        Call(action="logs:PutLogEvents", resource=LOGS.replace("power", "other") + ":log-stream:1"),
    ):
        assert not is_allowed(statements, call)
