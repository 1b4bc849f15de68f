"""The function that makes reservations in placement groups: when it runs, and what it may do."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack, Tags
from aws_cdk.assertions import Template

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup, Placement, TrainingCluster
from deployed_cluster import publish
from fake_service import ACCOUNT, REGION
from local_aws import LocalAws
from policy_evaluator import Call, is_allowed, role_statements, unused
from reservation_scene import CLUSTER, END, STACK, ReservationScene, properties, tagged
from synthesis import ZONE, new_stack

RESERVED = "Custom::CapacityReservation"
RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)
LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:reservations"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=QUEUE),
]
STANDARD_TAGS = {
    "Name": "pod/workers",
    "cdk-training-cluster:cluster": "pod",
    "cdk-training-cluster:node-group": "workers",
}
OWN = {"aws:ResourceTag/cdk-training-cluster:stack": "pod-cluster"}


def _cluster(stack: Stack, *groups: NodeGroup) -> None:
    TrainingCluster(stack, "Cluster", cluster_name=CLUSTER, availability_zone=ZONE, node_groups=groups)


def template(*groups: NodeGroup) -> dict[str, Any]:
    stack = new_stack()
    _cluster(stack, *groups)
    return dict(Template.from_stack(stack).to_json())


def group(name: str, capacity: Capacity = RESERVATION, **settings: Any) -> NodeGroup:
    return NodeGroup(name, **{"instance_types": ["p5.48xlarge"], "count": 2, "capacity": capacity, **settings})


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return template(group("workers"), group("more"), group("plain", Capacity.on_demand()))


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}


def of_function(template: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
    ((name, one),) = (
        each for each in of_type(template, kind).items() if each[0].startswith("ClusterReservationFunction")
    )
    return name, one


def test_one_function_makes_all_reservations_of_a_cluster(made: dict[str, Any]) -> None:
    name, _ = of_function(made, "AWS::Lambda::Function")
    reservations = of_type(made, RESERVED)
    assert len(reservations) == 2
    assert {one["Properties"]["ServiceToken"]["Fn::GetAtt"][0] for one in reservations.values()} == {name}


@pytest.mark.parametrize(
    "groups", [[group("plain", Capacity.on_demand())], [group("alone", placement=Placement.NONE)]]
)
def test_there_is_none_where_nothing_is_reserved_in_a_placement_group(groups: list[NodeGroup]) -> None:
    without = template(*groups)
    assert of_type(without, RESERVED) == {}
    assert not [name for name in without["Resources"] if name.startswith("ClusterReservationFunction")]


def test_an_event_that_lambda_still_delivers_is_one_that_cloudformation_still_waits_for(made: dict[str, Any]) -> None:
    _, function = of_function(made, "AWS::Lambda::Function")
    _, config = of_function(made, "AWS::Lambda::EventInvokeConfig")
    longest = config["Properties"]["MaximumEventAgeInSeconds"] + function["Properties"]["Timeout"]
    assert {longest < int(one["Properties"]["ServiceTimeout"]) for one in of_type(made, RESERVED).values()} == {True}
    # A minute passes before the first retry and two before the second:
    # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
    assert config["Properties"]["MaximumRetryAttempts"] == 2
    assert 60 + 120 + 2 * function["Properties"]["Timeout"] < config["Properties"]["MaximumEventAgeInSeconds"]
    # Two requests never run beside each other.
    assert function["Properties"]["ReservedConcurrentExecutions"] == 1


def _tags(stack: Stack) -> dict[str, str]:
    (one,) = of_type(dict(Template.from_stack(stack).to_json()), RESERVED).values()
    (specification,) = one["Properties"]["TagSpecifications"]
    assert specification["ResourceType"] == "capacity-reservation"
    return {tag["Key"]: tag["Value"] for tag in specification["Tags"]}


def test_a_reservation_has_the_tags_that_cloudformation_puts_on_no_custom_resource() -> None:
    stack = new_stack()
    stack.tags.set_tag("team", "vision")
    _cluster(stack, group("workers"))
    Tags.of(stack.node.root).add("project", "atlas")
    Tags.of(stack.node.find_child("Cluster")).add("owner", "speech")
    Tags.of(stack).add("reserved", "yes", include_resource_types=["AWS::EC2::CapacityReservation"])
    Tags.of(stack).add("volume", "yes", include_resource_types=["AWS::EC2::Volume"])
    # What the functions find it by is no one else's to change.
    Tags.of(stack).add("cdk-training-cluster:node-group", "other", priority=900)
    tags = _tags(stack)
    assert tags == {**STANDARD_TAGS, "team": "vision", "project": "atlas", "owner": "speech", "reserved": "yes"}


def test_a_tag_that_is_removed_is_not_on_the_reservation() -> None:
    stack = new_stack()
    _cluster(stack, group("workers"))
    Tags.of(stack.node.root).add("project", "atlas")
    Tags.of(stack).remove("project", priority=900)
    assert _tags(stack) == STANDARD_TAGS


def test_what_a_cancellation_needs_goes_after_it(made: dict[str, Any]) -> None:
    for one in of_type(made, RESERVED).values():
        kinds = {made["Resources"][name]["Type"] for name in one["DependsOn"]}
        assert {"AWS::IAM::Role", "AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Logs::LogGroup"} <= kinds
        # The placement group goes after the reservation, and the nodes before it.
        assert "PlacementGroup" in str(one["Properties"]["PlacementGroupArn"])
        assert one.get("DeletionPolicy", "Delete") == one.get("UpdateReplacePolicy", "Delete") == "Delete"
    groups = of_type(made, "AWS::AutoScaling::AutoScalingGroup").values()
    named = str([one["Properties"].get("CapacityReservationSpecification") for one in groups])
    assert {name in named for name in of_type(made, RESERVED)} == {True}


@pytest.fixture(scope="module")
def statements(made: dict[str, Any]) -> list[dict[str, Any]]:
    _, function = of_function(made, "AWS::Lambda::Function")
    values = {
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::AccountId": ACCOUNT,
        "AWS::StackId": STACK,
        "AWS::StackName": "pod-cluster",
        f"{of_function(made, 'AWS::Logs::LogGroup')[0]}.Arn": f"{LOGS}:*",
        f"{of_function(made, 'AWS::SQS::Queue')[0]}.Arn": QUEUE,
    }
    return role_statements(made, function["Properties"]["Role"]["Fn::GetAtt"][0], values)


def test_all_that_the_function_does_is_allowed_and_nothing_else(statements: list[dict[str, Any]]) -> None:
    scene = ReservationScene()
    scene.create()
    scene.ec2.made["cr-00000000000000001"].tags["cdk-training-cluster:cluster"] = "old"
    ends = tagged(team="vision", EndDateType="limited", EndDate=END)
    scene.update(ends)
    scene.now += timedelta(days=365)
    scene.roll_back(tagged(project="atlas", EndDateType="limited", EndDate="2027-01-01T00:00:00Z"), ends)
    scene.update(properties(AvailabilityZone="us-east-1d"))
    scene.delete("cr-00000000000000001")
    scene.delete()
    calls = [*LAMBDA_CALLS, *scene.ec2.calls, *scene.stack.calls]
    assert {call.action for call in scene.ec2.calls + scene.stack.calls} == {
        "cloudformation:DescribeStackResource",
        "cloudformation:DescribeStacks",
        "ec2:CancelCapacityReservation",
        "ec2:CreateCapacityReservation",
        "ec2:CreateTags",
        "ec2:DeleteTags",
        "ec2:DescribeCapacityReservations",
        "ec2:ModifyCapacityReservation",
    }
    assert [call for call in calls if not is_allowed(statements, call)] == []
    assert unused(statements, calls) == []


_ARN = f"arn:aws:ec2:{REGION}:{ACCOUNT}:capacity-reservation/cr-1"
_ASKED = {
    "aws:RequestTag/cdk-training-cluster:cluster": CLUSTER,
    "aws:RequestTag/cdk-training-cluster:stack": "pod-cluster",
}
_OTHER_STACK = {"aws:ResourceTag/cdk-training-cluster:stack": "other-cluster"}

DENIED: dict[str, Callable[[], Call]] = {
    "to cancel what another stack made": lambda: Call(
        action="ec2:CancelCapacityReservation", resource=_ARN, context=_OTHER_STACK
    ),
    "to cancel what carries the cluster's tag alone": lambda: Call(
        action="ec2:CancelCapacityReservation",
        resource=_ARN,
        context={"aws:ResourceTag/cdk-training-cluster:cluster": CLUSTER},
    ),
    "to change what another stack made": lambda: Call(
        action="ec2:ModifyCapacityReservation", resource=_ARN, context=_OTHER_STACK
    ),
    "to make one without tags": lambda: Call(action="ec2:CreateCapacityReservation", resource=_ARN),
    "to make one for another cluster": lambda: Call(
        action="ec2:CreateCapacityReservation",
        resource=_ARN,
        context={**_ASKED, "aws:RequestTag/cdk-training-cluster:cluster": "other"},
    ),
    "to take another stack's reservation over": lambda: Call(
        action="ec2:CreateTags",
        resource=_ARN,
        context={**_OTHER_STACK, **_ASKED, "aws:TagKeys": ["cdk-training-cluster:stack"]},
    ),
    "to tag one while something else is made": lambda: Call(
        action="ec2:CreateTags", resource=_ARN, context={**_ASKED, "ec2:CreateAction": "RunInstances"}
    ),
    "to write tags on what another stack made": lambda: Call(
        action="ec2:CreateTags", resource=_ARN, context={**_OTHER_STACK, "aws:TagKeys": ["team"]}
    ),
    "to remove tags of what another stack made": lambda: Call(
        action="ec2:DeleteTags", resource=_ARN, context={**_OTHER_STACK, "aws:TagKeys": ["team"]}
    ),
    "to remove a tag by which a reservation is found": lambda: Call(
        action="ec2:DeleteTags",
        resource=_ARN,
        context={**OWN, "aws:TagKeys": ["team", "cdk-training-cluster:stack"]},
    ),
    "to remove all tags at once": lambda: Call(action="ec2:DeleteTags", resource=_ARN, context=OWN),
    "to tag instances": lambda: Call(
        action="ec2:CreateTags",
        resource=f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1",
        context={**_ASKED, "ec2:CreateAction": "CreateCapacityReservation"},
    ),
    "to describe other stacks": lambda: Call(
        action="cloudformation:DescribeStackResource", resource=STACK.replace("pod-cluster", "other")
    ),
}


@pytest.mark.parametrize("call", DENIED.values(), ids=DENIED)
def test_it_may_not(call: Callable[[], Call], statements: list[dict[str, Any]]) -> None:
    assert not is_allowed(statements, call())


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws") / "log.txt") as made:
        yield made


def _deploy(aws: LocalAws, directory: Path, **more: Any) -> str:
    """Create or update the stack, and return its status."""
    # The assets are uploaded, and so have to be staged.
    app = App(outdir=str(directory), post_cli_context={"aws:cdk:disable-asset-staging": False})
    stack = Stack(app, "pod-cluster", env=Environment(account="123456789012", region=REGION))
    _cluster(stack, group("workers", **more))
    app.synth()
    publish(aws, directory, "pod-cluster")
    template = json.loads((directory / "pod-cluster.template.json").read_text())
    # Nothing is bootstrapped here.
    del template["Rules"], template["Parameters"]["BootstrapVersion"]
    cloudformation = aws.client("cloudformation")
    exists = any(stack["StackName"] == "pod-cluster" for stack in cloudformation.describe_stacks()["Stacks"])
    call = cloudformation.update_stack if exists else cloudformation.create_stack
    call(
        StackName="pod-cluster",
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    )
    return str(cloudformation.describe_stacks(StackName="pod-cluster")["Stacks"][0]["StackStatus"])


def test_a_reservation_leaves_its_placement_group_and_comes_back(aws: LocalAws, tmp_path: Path) -> None:
    assert _deploy(aws, tmp_path / "1") == "CREATE_COMPLETE"
    for number, placement in enumerate((Placement.NONE, Placement.CLUSTER), 2):
        assert _deploy(aws, tmp_path / str(number), placement=placement) == "UPDATE_COMPLETE"
        (made,) = _active(aws)
        assert ("PlacementGroupArn" in made) == (placement is Placement.CLUSTER)
    aws.client("cloudformation").delete_stack(StackName="pod-cluster")
    assert _active(aws) == []


def _active(aws: LocalAws) -> list[dict[str, Any]]:
    found = aws.client("ec2").describe_capacity_reservations(Filters=[{"Name": "state", "Values": ["active"]}])
    listed: list[dict[str, Any]] = found["CapacityReservations"]
    return listed


def _reservations(aws: LocalAws) -> dict[str, int]:
    return {each["InstanceType"]: each["TotalInstanceCount"] for each in _active(aws)}


def test_a_stack_creates_changes_replaces_rolls_back_and_cancels_its_reservation(
    aws: LocalAws, tmp_path: Path
) -> None:
    assert _deploy(aws, tmp_path / "1") == "CREATE_COMPLETE"
    assert _reservations(aws) == {"p5.48xlarge": 2}
    (made,) = _active(aws)
    assert made["PlacementGroupArn"].startswith(f"arn:aws:ec2:{REGION}:123456789012:placement-group/")
    assert _deploy(aws, tmp_path / "2", count=3) == "UPDATE_COMPLETE"
    assert _reservations(aws) == {"p5.48xlarge": 3}
    assert _deploy(aws, tmp_path / "3", count=3, instance_types=["p4d.24xlarge"]) == "UPDATE_COMPLETE"
    assert _reservations(aws) == {"p4d.24xlarge": 3}
    aws.set_capacity("p5.48xlarge", "us-east-1b", available=0)
    assert _deploy(aws, tmp_path / "4", count=3) == "UPDATE_ROLLBACK_COMPLETE"
    assert _reservations(aws) == {"p4d.24xlarge": 3}
    events = aws.client("cloudformation").describe_stack_events(StackName="pod-cluster")["StackEvents"]
    reasons = [event.get("ResourceStatusReason", "") for event in events if event["ResourceType"] == RESERVED]
    assert any(
        "EC2 does not have the capacity to reserve 3 p5.48xlarge in us-east-1b" in reason for reason in reasons
    )
    aws.client("cloudformation").delete_stack(StackName="pod-cluster")
    assert _reservations(aws) == {}
