"""The reservation function under CloudFormation's engine, where answers are lost and EC2 refuses: nothing is billed
that no stack has."""

import io
import itertools
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cdk_training_cluster.functions import function_source
from cluster_contract.reservations import ReservationFunctionSettings
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from local_aws import LocalAws

_NUMBERS = itertools.count(1)
_TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
_ARN = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Place}"
_TYPE, _OTHER, _ZONE = "p5.48xlarge", "p4d.24xlarge", "us-east-1b"
# A resource that CloudFormation makes after the reservation, and that fails.
_WRONG = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": ""}, "DependsOn": "Reserved"}


@dataclass
class Scene:
    """A stack with a placement group and a reservation in it, and the function that makes it."""

    aws: LocalAws
    name: str
    arn: str = ""
    id: str = ""
    failing: bool = False
    others: frozenset[str] = frozenset()
    _properties: dict[str, Any] = field(default_factory=dict)

    def deploy_function(self) -> None:
        """Make the function, with the settings that its construct gives it."""
        self.others = frozenset(self.billed)
        source, packed = function_source("cluster_reservations"), io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in source.files:
                archive.write(source.root / file, file)
        trust = json.dumps({"Version": "2012-10-17", "Statement": [_TRUST]})
        role = self.aws.client("iam").create_role(RoleName=self.name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        variable = ReservationFunctionSettings.environment_variable
        functions = self.aws.client("lambda")
        self.arn = functions.create_function(
            FunctionName=self.name,
            Runtime="python3.13",
            Role=role,
            Timeout=900,
            Handler=source.handler,
            Code={"ZipFile": packed.getvalue()},
            Environment={"Variables": {variable: '{"cluster":"pod"}', "POWERTOOLS_SERVICE_NAME": "reservations"}},
        )["FunctionArn"]
        functions.put_function_concurrency(FunctionName=self.name, ReservedConcurrentExecutions=1)

    def deliver_once(self) -> None:
        """Have Lambda deliver each request once, so that a failed one gets no answer."""
        self.aws.client("lambda").put_function_event_invoke_config(FunctionName=self.name, MaximumRetryAttempts=0)

    def deploy(self, *, failing: bool = False, **changes: Any) -> str:
        """Create or update the stack, and return its status."""
        self._properties = {
            "ServiceToken": self.arn,
            "ServiceTimeout": 3600,
            "InstanceType": _TYPE,
            "InstanceCount": 2,
            "InstancePlatform": "Linux/UNIX",
            "AvailabilityZone": _ZONE,
            "InstanceMatchCriteria": "targeted",
            "Tenancy": "default",
            "EndDateType": "unlimited",
            "OnIdle": "keep",
            "PlacementGroupArn": {"Fn::Sub": _ARN},
            "TagSpecifications": [
                {
                    "ResourceType": "capacity-reservation",
                    "Tags": [{"Key": CLUSTER_TAG, "Value": "pod"}, {"Key": NODE_GROUP_TAG, "Value": "workers"}],
                }
            ],
            **changes,
        }
        resources = {
            "Place": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}},
            "Reserved": {"Type": "Custom::CapacityReservation", "Properties": self._properties},
            **({"Wrong": _WRONG} if failing else {}),
        }
        api, body = self.aws.client("cloudformation"), json.dumps({"Resources": resources})
        if self.id:
            api.update_stack(StackName=self.id, TemplateBody=body)
        else:
            self.id = api.create_stack(StackName=self.name, TemplateBody=body)["StackId"]
        return self.status

    def delete(self) -> str:
        """Delete the stack, and return its status."""
        self.aws.client("cloudformation").delete_stack(StackName=self.id)
        return self.status

    @property
    def status(self) -> str:
        """The stack's status."""
        found = self.aws.client("cloudformation").describe_stacks(StackName=self.id)["Stacks"]
        return str(found[0]["StackStatus"])

    @property
    def reasons(self) -> list[str]:
        """Why the reservation's resource has failed, the newest first."""
        events = self.aws.client("cloudformation").describe_stack_events(StackName=self.id)["StackEvents"]
        own = (event for event in events if event["LogicalResourceId"] == "Reserved")
        return [event["ResourceStatusReason"] for event in own if event.get("ResourceStatusReason")]

    @property
    def billed(self) -> dict[str, tuple[str, int]]:
        """The reservations that cost money, by id: type and count; those of before are others'."""
        active = [{"Name": "state", "Values": ["active"]}]
        found = self.aws.client("ec2").describe_capacity_reservations(Filters=active)["CapacityReservations"]
        return {
            one["CapacityReservationId"]: (one["InstanceType"], one["TotalInstanceCount"])
            for one in found
            if one["CapacityReservationId"] not in self.others
        }

    @property
    def known(self) -> str:
        """The reservation that the stack has."""
        found = self.aws.client("cloudformation").describe_stack_resource(
            StackName=self.id, LogicalResourceId="Reserved"
        )
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def clean_up(self) -> None:
        """Take away what a fault has left."""
        self.aws.clear_faults()
        self.aws.set_capacity(_TYPE, _ZONE, available=None)
        self.aws.set_capacity(_OTHER, _ZONE, available=None)
        if self.id:
            self.aws.client("cloudformation").delete_stack(StackName=self.id)
        self.aws.client("lambda").delete_function(FunctionName=self.name)
        self.aws.client("iam").delete_role(RoleName=self.name)
        assert self.billed == {}


@pytest.fixture
def scene(aws: LocalAws) -> Iterator[Scene]:
    made = Scene(aws, f"reserved-{next(_NUMBERS)}")
    made.deploy_function()
    yield made
    made.clean_up()


def test_a_reservation_lives_in_its_placement_group_and_goes_with_its_stack(scene: Scene) -> None:
    assert scene.deploy() == "CREATE_COMPLETE"
    first = scene.known
    assert scene.billed == {first: (_TYPE, 2)}
    (made,) = scene.aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[first])[
        "CapacityReservations"
    ]
    assert ":placement-group/" in made["PlacementGroupArn"]
    assert scene.deploy(InstanceCount=3, EndDateType="limited", EndDate="2099-01-01T00:00:00Z") == "UPDATE_COMPLETE"
    assert (scene.known, scene.billed) == (first, {first: (_TYPE, 3)})
    assert scene.deploy(InstanceType=_OTHER) == "UPDATE_COMPLETE"
    assert scene.billed == {scene.known: (_OTHER, 2)}
    # The placement group goes after the reservation, or EC2 would refuse to delete it.
    assert scene.delete() == "DELETE_COMPLETE"
    assert scene.billed == {}


def test_no_capacity_is_one_sentence_and_leaves_nothing(scene: Scene) -> None:
    scene.aws.set_capacity(_TYPE, _ZONE, available=1)
    assert scene.deploy() == "ROLLBACK_COMPLETE"
    (reason,) = [one for one in scene.reasons if "FAILED" in one]
    assert (
        "Message returned: node group workers: EC2 does not have the capacity to reserve 2 p5.48xlarge in us-east-1b "
        "in one placement group now. Deploy again later, lower count, use another Availability Zone, or buy a "
        "Capacity Block instead. AWS says: InsufficientInstanceCapacity: "
    ) in reason
    assert scene.billed == {}


def test_a_lost_answer_of_ec2_makes_one_reservation(scene: Scene) -> None:
    # Lambda delivers the request again, and the function finds what was made.
    scene.aws.lose("CreateCapacityReservation", times=None)
    assert scene.deploy() == "CREATE_COMPLETE"
    assert scene.billed == {scene.known: (_TYPE, 2)}


def test_a_reservation_that_cloudformation_gets_no_answer_of_is_cancelled_by_the_rollback(scene: Scene) -> None:
    scene.deliver_once()
    scene.aws.lose("CreateCapacityReservation", times=None)
    assert scene.deploy() == "ROLLBACK_COMPLETE"
    assert any("did not receive a response" in reason for reason in scene.reasons)
    assert scene.aws.calls("CancelCapacityReservation")
    assert scene.billed == {}


@pytest.mark.parametrize("change", [{"InstanceCount": 3}, {"InstanceType": _OTHER}], ids=["in place", "another"])
def test_a_deployment_that_fails_afterwards_ends_with_the_reservation_of_before(
    scene: Scene, change: dict[str, Any]
) -> None:
    scene.deploy()
    first = scene.known
    assert scene.deploy(failing=True, **change) == "UPDATE_ROLLBACK_COMPLETE"
    assert (scene.known, scene.billed) == (first, {first: (_TYPE, 2)})


def test_a_replacement_that_cloudformation_gets_no_answer_of_is_cancelled_by_the_rollback(scene: Scene) -> None:
    scene.deploy()
    first = scene.known
    scene.deliver_once()
    scene.aws.lose("CreateCapacityReservation", times=None)
    assert scene.deploy(InstanceType=_OTHER) == "UPDATE_ROLLBACK_COMPLETE"
    assert (scene.known, scene.billed) == (first, {first: (_TYPE, 2)})


def test_a_creation_that_fails_afterwards_is_cancelled(scene: Scene) -> None:
    assert scene.deploy(failing=True) == "ROLLBACK_COMPLETE"
    assert scene.billed == {}


def test_a_creation_is_cancelled_by_a_rollback_that_does_not_find_it_yet(scene: Scene) -> None:
    scene.aws.hide_new_reservations(4)
    assert scene.deploy(failing=True) == "ROLLBACK_COMPLETE"
    scene.aws.clear_faults()
    assert scene.billed == {}


def test_a_reservation_that_is_not_found_yet_is_changed(scene: Scene) -> None:
    scene.aws.hide_new_reservations(4)
    scene.deploy()
    assert scene.deploy(InstanceCount=3) == "UPDATE_COMPLETE"
    scene.aws.clear_faults()
    assert scene.billed == {scene.known: (_TYPE, 3)}


def test_a_refused_change_leaves_the_reservation_and_its_stack_as_they_were(scene: Scene) -> None:
    scene.deploy()
    first = scene.known
    scene.aws.set_capacity(_TYPE, _ZONE, available=0)
    scene.aws.set_capacity(_OTHER, _ZONE, available=0)
    for change in ({"InstanceCount": 9}, {"InstanceType": _OTHER}):
        assert scene.deploy(**change) == "UPDATE_ROLLBACK_COMPLETE"
        assert (scene.known, scene.billed) == (first, {first: (_TYPE, 2)})


def test_a_refused_cancellation_fails_the_deletion_with_the_command_and_can_be_repeated(scene: Scene) -> None:
    scene.deploy()
    named = scene.known
    scene.aws.fail("CancelCapacityReservation", "OperationNotPermitted", times=2)
    assert scene.delete() == "DELETE_FAILED"
    assert f"run: aws ec2 cancel-capacity-reservation --capacity-reservation-id {named}." in scene.reasons[0]
    assert scene.delete() == "DELETE_COMPLETE"
    assert scene.billed == {}


def test_one_that_an_operator_has_cancelled_is_deleted(scene: Scene) -> None:
    scene.deploy()
    scene.aws.client("ec2").cancel_capacity_reservation(CapacityReservationId=scene.known)
    assert scene.delete() == "DELETE_COMPLETE"


def test_a_late_delivery_of_a_creation_buys_nothing(scene: Scene) -> None:
    scene.deploy()
    named = scene.known
    event = {
        "RequestType": "Create",
        "RequestId": "late",
        "ResponseURL": "http://127.0.0.1:9/",
        "StackId": scene.id,
        "LogicalResourceId": "Reserved",
        "ResourceProperties": {
            **{name: str(value) for name, value in scene._properties.items()},
            "PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/other",
            "TagSpecifications": scene._properties["TagSpecifications"],
        },
    }
    answer = scene.aws.client("lambda").invoke(FunctionName=scene.name, Payload=json.dumps(event).encode())
    assert "FunctionError" in answer  # nobody takes its answer
    assert scene.billed == {named: (_TYPE, 2)}
