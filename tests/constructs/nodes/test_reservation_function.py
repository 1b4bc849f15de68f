"""The function that reserves in placement groups: what its role may do, and a stack's life on the local AWS."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_kms as kms

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup, TrainingCluster
from deployed_cluster import publish
from local_aws import LocalAws
from local_aws.policies import Call, is_allowed
from policy_evaluator import role_statements

_ACCOUNT, _REGION = "123456789012", "us-east-1"
_RESERVATION = f"arn:aws:ec2:{_REGION}:{_ACCOUNT}:capacity-reservation/cr-1"
_PLACEMENT = f"arn:aws:ec2:{_REGION}:{_ACCOUNT}:placement-group/close"
_OURS, _THEIRS = "pod-cluster", "other-cluster"
_TAG = "cdk-training-cluster:stack"
_TYPE = "Custom::CapacityReservation"


def _stack(app: App, *, count: int = 2, type: str = "p5.48xlarge", groups: int = 1, key: bool = False) -> Stack:
    stack = Stack(app, _OURS, env=Environment(account=_ACCOUNT, region=_REGION))
    TrainingCluster(
        stack,
        "Cluster",
        cluster_name="pod",
        availability_zone="us-east-1b",
        encryption_key=kms.Key(stack, "Key") if key else None,
        node_groups=[
            NodeGroup(
                f"workers-{number}",
                instance_types=[type],
                count=count,
                capacity=Capacity.reservation(end=UNTIL_CANCELLED),
            )
            for number in range(groups)
        ],
    )
    return stack


def _template(**more: Any) -> dict[str, Any]:
    app = App()
    stack = _stack(app, **more)
    template: dict[str, Any] = app.synth().get_stack_by_name(stack.stack_name).template
    return template


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return _template(groups=2)


def test_one_function_reserves_for_all_groups_of_a_cluster(template: dict[str, Any]) -> None:
    made = [each for each in template["Resources"].values() if each["Type"] == _TYPE]
    tokens = {json.dumps(each["Properties"]["ServiceToken"]) for each in made}
    assert (len(made), len(tokens)) == (2, 1)
    function = json.loads(tokens.pop())["Fn::GetAtt"][0]
    assert template["Resources"][function]["Properties"]["Handler"] == "cluster_reservations.handler.handler"
    # The role's policy is there before the first request and until the last.
    (policy,) = (
        name
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::IAM::Policy" and "ReservationFunction" in name
    )
    assert all(policy in each["DependsOn"] for each in made)


def test_a_cluster_without_a_new_reservation_has_no_such_function() -> None:
    app = App()
    stack = Stack(app, "Plain", env=Environment(account=_ACCOUNT, region=_REGION))
    group = NodeGroup("workers", instance_types=["p5.48xlarge"], count=2)
    TrainingCluster(stack, "Cluster", availability_zone="us-east-1b", node_groups=[group])
    assert "cluster_reservations" not in json.dumps(app.synth().get_stack_by_name("Plain").template)


@pytest.mark.parametrize(
    ("action", "resource", "context", "allowed"),
    [
        ("ec2:DescribeCapacityReservations", "*", {"aws:RequestedRegion": _REGION}, True),
        ("ec2:CreateCapacityReservation", _RESERVATION, {f"aws:RequestTag/{_TAG}": _OURS}, True),
        ("ec2:CreateCapacityReservation", _RESERVATION, {f"aws:RequestTag/{_TAG}": _THEIRS}, False),
        ("ec2:CreateCapacityReservation", _RESERVATION, {}, False),
        ("ec2:CreateCapacityReservation", _PLACEMENT, {}, True),
        ("ec2:CreateTags", _RESERVATION, {"ec2:CreateAction": "CreateCapacityReservation"}, True),
        ("ec2:CreateTags", _RESERVATION, {"ec2:CreateAction": "RunInstances"}, False),
        ("ec2:CreateTags", _RESERVATION, {f"aws:ResourceTag/{_TAG}": _OURS}, True),
        ("ec2:ModifyCapacityReservation", _RESERVATION, {f"aws:ResourceTag/{_TAG}": _OURS}, True),
        ("ec2:ModifyCapacityReservation", _RESERVATION, {f"aws:ResourceTag/{_TAG}": _THEIRS}, False),
        ("ec2:CancelCapacityReservation", _RESERVATION, {f"aws:ResourceTag/{_TAG}": _OURS}, True),
        ("ec2:CancelCapacityReservation", _RESERVATION, {}, False),
        ("ec2:TerminateInstances", f"arn:aws:ec2:{_REGION}:{_ACCOUNT}:instance/i-1", {}, False),
    ],
)
def test_the_role_ends_at_the_reservations_of_its_stack(
    action: str, resource: str, context: dict[str, str | list[str]], allowed: bool, template: dict[str, Any]
) -> None:
    (role,) = (
        name
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::IAM::Role" and "ReservationFunction" in name
    )
    values = {
        "AWS::Partition": "aws",
        "AWS::Region": _REGION,
        "AWS::AccountId": _ACCOUNT,
        "AWS::StackName": _OURS,
        **{f"{name}.Arn": name for name in template["Resources"]},
    }
    statements = role_statements(template, role, values)
    assert is_allowed(statements, Call(action=action, resource=resource, context=context)) is allowed


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws") / "log.txt") as made:
        yield made


def _deploy(aws: LocalAws, directory: Path, **more: Any) -> str:
    """Create or update the stack, and return its status."""
    app = App(outdir=str(directory))
    _stack(app, **more)
    app.synth()
    publish(aws, directory, _OURS)
    template = json.loads((directory / f"{_OURS}.template.json").read_text())
    # Nothing is bootstrapped here.
    del template["Rules"], template["Parameters"]["BootstrapVersion"]
    cloudformation = aws.client("cloudformation")
    exists = any(stack["StackName"] == _OURS for stack in cloudformation.describe_stacks()["Stacks"])
    call = cloudformation.update_stack if exists else cloudformation.create_stack
    call(StackName=_OURS, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"])
    return str(cloudformation.describe_stacks(StackName=_OURS)["Stacks"][0]["StackStatus"])


def _reservations(aws: LocalAws) -> dict[str, int]:
    found = aws.client("ec2").describe_capacity_reservations(Filters=[{"Name": "state", "Values": ["active"]}])
    return {each["InstanceType"]: each["TotalInstanceCount"] for each in found["CapacityReservations"]}


def test_a_stack_creates_changes_replaces_rolls_back_and_cancels_its_reservation(
    aws: LocalAws, tmp_path: Path
) -> None:
    assert _deploy(aws, tmp_path / "1") == "CREATE_COMPLETE"
    assert _reservations(aws) == {"p5.48xlarge": 2}
    (made,) = aws.client("ec2").describe_capacity_reservations()["CapacityReservations"]
    assert made["PlacementGroupArn"].startswith(f"arn:aws:ec2:{_REGION}:{_ACCOUNT}:placement-group/")
    assert _deploy(aws, tmp_path / "2", count=3) == "UPDATE_COMPLETE"
    assert _reservations(aws) == {"p5.48xlarge": 3}
    assert _deploy(aws, tmp_path / "3", count=3, type="p4d.24xlarge") == "UPDATE_COMPLETE"
    assert _reservations(aws) == {"p4d.24xlarge": 3}
    aws.set_capacity("p5.48xlarge", "us-east-1b", available=0)
    assert _deploy(aws, tmp_path / "4", count=3) == "UPDATE_ROLLBACK_COMPLETE"
    assert _reservations(aws) == {"p4d.24xlarge": 3}
    events = aws.client("cloudformation").describe_stack_events(StackName=_OURS)["StackEvents"]
    reasons = [event.get("ResourceStatusReason", "") for event in events if event["ResourceType"] == _TYPE]
    assert any("EC2 does not reserve 3 p5.48xlarge in us-east-1b" in reason for reason in reasons)
    aws.client("cloudformation").delete_stack(StackName=_OURS)
    assert _reservations(aws) == {}
