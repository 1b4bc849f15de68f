"""The synthesized policy of the spend function against the calls that it was seen to make."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import Budget, ClusterPower, ClusterSpend, ClusterState, OnExceed, SpendGroup
from cdk_training_cluster.guardrails.power import PowerGroup
from cluster_contract.owners import OwnerSettings
from cluster_contract.spend import SpendGroupSettings
from fake_dynamodb import TABLE
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from spend_scene import CLUSTER, POWER, START, TOPIC, SpendScene
from synthesis import new_stack

LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:spend"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
# What Lambda does in the function's name.
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=QUEUE),
    # An alert topic takes messages in the function's name.
    Call(action="sns:Publish", resource=TOPIC),
]
_LOOKS = {
    *("dynamodb:PutItem", "dynamodb:Query", "ec2:DescribeInstances", "ec2:DescribeSpotPriceHistory"),
    "pricing:GetProducts",
}


def statements(groups: dict[str, SpendGroup], on_exceed: OnExceed) -> list[dict[str, Any]]:
    """Return the statements of the function's role."""
    stack = new_stack()
    topic, state = sns.Topic(stack, "Alerts"), ClusterState(stack, "State")
    power = ClusterPower(
        stack, "Power", cluster_name=CLUSTER, groups={"workers": PowerGroup(count=1)}, alert_topic=topic, state=state
    )
    budget = Budget(monthly_usd=100, on_exceed=on_exceed)
    ClusterSpend(
        stack,
        "Spend",
        cluster_name=CLUSTER,
        budget=budget,
        alert_topic=topic,
        node_groups=groups,
        power=power,
        state=state,
    )
    template = Template.from_stack(stack).to_json()
    of_type = {(one["Type"], name.startswith("Spend")): name for name, one in template["Resources"].items()}
    function = template["Resources"][of_type["AWS::Lambda::Function", True]]["Properties"]
    invoked = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{POWER}:budget"
    aliases = {
        name: invoked if one["Properties"]["Name"] == "budget" else ""
        for name, one in template["Resources"].items()
        if one["Type"] == "AWS::Lambda::Alias"
    }
    return role_statements(
        template,
        function["Role"]["Fn::GetAtt"][0],
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            of_type["AWS::SNS::Topic", False]: TOPIC,
            f"{of_type['AWS::DynamoDB::Table', False]}.Arn": TABLE_ARN,
            f"{of_type['AWS::Logs::LogGroup', True]}.Arn": f"{LOGS}:*",
            f"{of_type['AWS::SQS::Queue', True]}.Arn": QUEUE,
            **aliases,
        },
    )


def count(scene: SpendScene) -> None:
    """Do all that is done where nothing is exceeded."""
    scene.add_spot()
    scene.add()
    scene.tick(0)
    scene.tick()


def count_reservations(scene: SpendScene) -> None:
    """Do all that is done with reservations."""
    scene.groups["workers"] = SpendGroupSettings(reservations=("cr-1",))
    scene.ec2.add_reservation("cr-1", 1, starts=START)
    count(scene)


def stop(scene: SpendScene) -> None:
    """Do all that is done where the budget is exceeded."""
    scene.details |= {"monthly_usd": 1.0, "on_exceed": OnExceed.STOP}
    scene.deploy()
    count(scene)
    scene.tick(60)
    scene.tick(30)
    assert scene.ordered


def stop_fleet(scene: SpendScene) -> None:
    """Do all that is done with a Spot Fleet then."""
    scene.details |= {"monthly_usd": 1.0, "on_exceed": OnExceed.STOP}
    scene.groups = {"extras": SpendGroupSettings(owner=OwnerSettings.spot_fleet("sfr-extras"))}
    scene.power.now = scene.now
    scene.power.add_fleet("extras")
    scene.ec2.add_fleet("sfr-extras", cluster=CLUSTER, node_group="extras")
    scene.power.minute(3)
    count(scene)
    scene.tick(60)
    scene.tick(30)
    assert scene.ordered


LIVES: dict[str, tuple[dict[str, SpendGroup], OnExceed, Callable[[SpendScene], None], set[str]]] = {
    "notify": ({"workers": SpendGroup()}, OnExceed.NOTIFY, count, set()),
    "reservations": (
        {"workers": SpendGroup(reservations=["cr-1"])},
        OnExceed.NOTIFY,
        count_reservations,
        {"ec2:DescribeCapacityReservations"},
    ),
    "stop": (
        {"workers": SpendGroup()},
        OnExceed.STOP,
        stop,
        {"autoscaling:DescribeAutoScalingGroups", "lambda:InvokeFunction"},
    ),
    "stop a fleet": (
        {"extras": SpendGroup(spot_fleet_id="sfr-extras")},
        OnExceed.STOP,
        stop_fleet,
        {"ec2:DescribeSpotFleetInstances", "ec2:DescribeSpotFleetRequests", "lambda:InvokeFunction"},
    ),
}


@pytest.mark.parametrize("life", LIVES)
def test_all_that_the_function_does_is_allowed_and_nothing_else(life: str) -> None:
    groups, on_exceed, live, more = LIVES[life]
    allowed, scene = statements(groups, on_exceed), SpendScene()
    live(scene)
    calls = [*LAMBDA_CALLS, *scene.calls]
    assert {call.action for call in scene.calls} - {"sns:Publish"} == _LOOKS | more
    assert [call for call in calls if not is_allowed(allowed, call)] == []
    # The table's items are read in queries, and one by one by no function but others of the same table.
    assert set(unused(allowed, calls)) <= {f"dynamodb:GetItem on {TABLE_ARN}"}


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("dynamodb:PutItem", TABLE_ARN, {"dynamodb:LeadingKeys": [f"power#{CLUSTER}"]}),
        ("dynamodb:Query", TABLE_ARN, {"dynamodb:LeadingKeys": ["spend#other"]}),
        ("dynamodb:DeleteItem", TABLE_ARN, {"dynamodb:LeadingKeys": [f"spend#{CLUSTER}"]}),
        ("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{POWER}:operate", {}),
        ("ec2:StopInstances", "*", {}),
        ("pricing:GetProducts", "*", {"aws:RequestedRegion": "eu-central-1"}),
    ],
)
def test_nothing_else_can_be_reached(action: str, resource: str, context: dict[str, Any]) -> None:
    allowed = statements({"workers": SpendGroup()}, OnExceed.STOP)
    assert not is_allowed(allowed, Call(action=action, resource=resource, context=context))


def test_a_kind_of_charge_that_there_is_not_is_refused() -> None:
    stack = new_stack()
    with pytest.raises(
        ValueError, match=r"^fixed takes the kinds on-demand, .*, guardrails, orchestrator, got disks$"
    ):
        ClusterSpend(
            stack,
            "Spend",
            cluster_name=CLUSTER,
            budget=Budget(monthly_usd=100),
            alert_topic=sns.Topic(stack, "Alerts"),
            fixed={"disks": {"ebs-gp3": 1.0}},
        )


def test_a_budget_that_acts_needs_the_power_function() -> None:
    stack = new_stack()
    with pytest.raises(ValueError, match=r"^power is required beside a budget with on_exceed 'stop' and node_groups"):
        ClusterSpend(
            stack,
            "Spend",
            cluster_name=CLUSTER,
            budget=Budget(monthly_usd=100, on_exceed=OnExceed.STOP),
            alert_topic=sns.Topic(stack, "Alerts"),
            node_groups={"workers": SpendGroup()},
        )
