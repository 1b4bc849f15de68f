"""Spot Fleets: what they launch, keep, replace and give up, and what their history tells of it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks
from spot_scene import FLEET_TYPES, ZONE, fleet_config, spot_fleet

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SHORT = (
    "We currently do not have sufficient g6e.48xlarge capacity in the Availability Zone you requested (us-east-1b)."
)


@pytest.fixture(autouse=True)
def as_before(aws: LocalAws) -> Iterator[None]:
    yield
    for kind in FLEET_TYPES:
        aws.set_capacity(kind, ZONE, available=None)


@pytest.fixture
def stack(stacks: Stacks) -> str:
    """A stack with an empty fleet."""
    name = stacks.create(spot_fleet())
    assert stacks.reasons(name) == {}
    return name


@pytest.fixture
def fleet(stacks: Stacks, stack: str) -> str:
    """The id of an empty fleet."""
    return stacks.physical_ids(stack)["Fleet"]


def _described(aws: LocalAws, fleet: str) -> dict[str, Any]:
    (request,) = aws.client("ec2").describe_spot_fleet_requests(SpotFleetRequestIds=[fleet])[
        "SpotFleetRequestConfigs"
    ]
    described: dict[str, Any] = request
    return described


def _target(aws: LocalAws, fleet: str, target: int, **more: Any) -> None:
    aws.client("ec2").modify_spot_fleet_request(SpotFleetRequestId=fleet, TargetCapacity=target, **more)


def _members(aws: LocalAws, fleet: str) -> list[str]:
    answer = aws.client("ec2").describe_spot_fleet_instances(SpotFleetRequestId=fleet)
    return [instance["InstanceId"] for instance in answer["ActiveInstances"]]


def _instances(aws: LocalAws, fleet: str) -> list[dict[str, Any]]:
    reservations = aws.client("ec2").describe_instances(InstanceIds=_members(aws, fleet))["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]


def _history(aws: LocalAws, fleet: str, **more: Any) -> list[tuple[str, str, str]]:
    answer = aws.client("ec2").describe_spot_fleet_request_history(
        SpotFleetRequestId=fleet, StartTime=LONG_AGO, **more
    )
    return [
        (
            record["EventType"],
            record["EventInformation"]["EventSubType"],
            record["EventInformation"].get("EventDescription", ""),
        )
        for record in answer["HistoryRecords"]
    ]


def test_a_member_is_a_spot_instance_with_its_templates_interfaces_and_tags(aws: LocalAws, fleet: str) -> None:
    _target(aws, fleet, 2)
    first, second = _instances(aws, fleet)
    assert {first["InstanceType"], second["InstanceType"]} == {FLEET_TYPES[0]}
    assert first["InstanceLifecycle"] == "spot"
    assert [interface["InterfaceType"] for interface in first["NetworkInterfaces"]] == ["interface", "efa-only"]
    (config,) = _described(aws, fleet)["SpotFleetRequestConfig"]["LaunchTemplateConfigs"]
    assert {tag["Key"]: tag["Value"] for tag in first["Tags"]} == {
        "part": "node",
        "aws:ec2spot:fleet-request-id": fleet,
        "aws:ec2launchtemplate:id": config["LaunchTemplateSpecification"]["LaunchTemplateId"],
        "aws:ec2launchtemplate:version": "1",
    }
    launched = _history(aws, fleet, EventType="instanceChange")
    assert [event[:2] for event in launched] == [("instanceChange", "launched")] * 2
    assert '"instanceType":"g5.48xlarge"' in launched[0][2]


def test_a_member_cannot_be_stopped(aws: LocalAws, fleet: str) -> None:
    _target(aws, fleet, 1)
    (member,) = _instances(aws, fleet)
    shown = aws.client("ec2").describe_spot_fleet_instances(SpotFleetRequestId=fleet)["ActiveInstances"]
    assert shown[0]["SpotInstanceRequestId"] == member["SpotInstanceRequestId"]
    with pytest.raises(ClientError, match="because it is in a fleet, which does not support stop") as refusal:
        aws.client("ec2").stop_instances(InstanceIds=[member["InstanceId"]])
    assert refusal.value.response["Error"]["Code"] == "UnsupportedOperation"


def test_what_is_gone_is_replaced_at_the_next_look(aws: LocalAws, fleet: str) -> None:
    _target(aws, fleet, 2)
    kept, gone = _members(aws, fleet)
    aws.client("ec2").terminate_instances(InstanceIds=[gone])
    now = _members(aws, fleet)
    assert len(now) == 2
    assert kept in now
    assert gone not in now
    assert ("instanceChange", "terminated", "") in _history(aws, fleet)


@pytest.mark.parametrize(("policy", "left"), [("noTermination", 3), ("default", 1)])
def test_a_lower_target_terminates_by_the_policy_that_is_sent_with_it(
    aws: LocalAws, fleet: str, policy: str, left: int
) -> None:
    _target(aws, fleet, 3)
    before = _members(aws, fleet)
    _target(aws, fleet, 1, ExcessCapacityTerminationPolicy=policy)
    assert _members(aws, fleet) == before[:left]
    assert _described(aws, fleet)["ActivityStatus"] == "fulfilled"


def test_missing_capacity_leaves_a_fleet_short_with_an_error_in_its_history(aws: LocalAws, fleet: str) -> None:
    aws.set_capacity(FLEET_TYPES[0], ZONE, available=1)
    aws.set_capacity(FLEET_TYPES[1], ZONE, available=1)
    _target(aws, fleet, 4)
    assert {instance["InstanceType"] for instance in _instances(aws, fleet)} == set(FLEET_TYPES)
    described = _described(aws, fleet)
    assert (described["SpotFleetRequestState"], described["ActivityStatus"]) == ("active", "error")
    kind, event, description = _history(aws, fleet, EventType="error")[-1]
    assert (kind, event) == ("error", "spotFleetRequestConfigurationInvalid")
    assert description.startswith("g6e.48xlarge, ami-")
    assert SHORT in description
    aws.set_capacity(FLEET_TYPES[1], ZONE, available=None)
    assert len(_members(aws, fleet)) == 4
    assert _described(aws, fleet)["ActivityStatus"] == "fulfilled"


def test_a_role_without_permissions_launches_nothing_and_the_history_says_so(aws: LocalAws, stacks: Stacks) -> None:
    template = spot_fleet(target=1)
    del template["Resources"]["FleetRole"]["Properties"]["ManagedPolicyArns"]
    fleet = stacks.physical_ids(stacks.create(template))["Fleet"]
    assert _members(aws, fleet) == []
    assert _history(aws, fleet, EventType="error")[0][1] == "iamFleetRoleInvalid"


def test_a_cancelled_fleet_is_not_modified(aws: LocalAws, fleet: str) -> None:
    _target(aws, fleet, 2)
    members = _members(aws, fleet)
    (item,) = aws.client("ec2").cancel_spot_fleet_requests(SpotFleetRequestIds=[fleet], TerminateInstances=False)[
        "SuccessfulFleetRequests"
    ]
    assert (item["PreviousSpotFleetRequestState"], item["CurrentSpotFleetRequestState"]) == (
        "active",
        "cancelled_running",
    )
    assert _members(aws, fleet) == members
    with pytest.raises(ClientError, match=r"\(FleetNotInModifiableState\)"):
        _target(aws, fleet, 0)
    aws.client("ec2").terminate_instances(InstanceIds=members)
    assert _described(aws, fleet)["SpotFleetRequestState"] == "cancelled"


def test_an_unknown_fleet_is_told(aws: LocalAws) -> None:
    ec2, unknown = aws.client("ec2"), "sfr-00000000-0000-4000-8000-000000000000"
    with pytest.raises(ClientError, match=r"\(InvalidSpotFleetRequestId\.NotFound\)"):
        ec2.describe_spot_fleet_requests(SpotFleetRequestIds=[unknown])
    answer = ec2.cancel_spot_fleet_requests(SpotFleetRequestIds=[unknown], TerminateInstances=True)
    assert answer["UnsuccessfulFleetRequests"][0]["Error"]["Code"] == "fleetRequestIdDoesNotExist"


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "another service's spelling",
        {"AllocationStrategy": "price-capacity-optimized"},
        "InvalidParameterValue",
        r"Value \(price-capacity-optimized\) for parameter AllocationStrategy is invalid\.",
    ),
    (
        "another fleet's type",
        {"Type": "instant"},
        "LocalAwsFailure",
        "a Spot Fleet of the type instant",
    ),
    ("less than nothing", {"TargetCapacity": -1}, "InvalidSpotFleetRequestConfig", "TargetCapacity is invalid: -1"),
    (
        "no launch template",
        {"LaunchTemplateConfigs": [{"Overrides": [{"InstanceType": FLEET_TYPES[0]}]}]},
        "InvalidSpotFleetRequestConfig",
        "At least one LaunchTemplateConfig does not have LaunchTemplateSpecification",
    ),
    ("On-Demand", {"OnDemandTargetCapacity": 1}, "LocalAwsFailure", "OnDemandTargetCapacity in a Spot Fleet"),
]


@pytest.mark.parametrize(("change", "code", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_wrong_request_is_refused(aws: LocalAws, fleet: str, change: dict[str, Any], code: str, words: str) -> None:
    shown = _described(aws, fleet)["SpotFleetRequestConfig"]
    asked = ("AllocationStrategy", "IamFleetRole", "LaunchTemplateConfigs", "TargetCapacity", "Type")
    config = {name: shown[name] for name in asked} | change
    with pytest.raises(ClientError, match=rf"\({code}\).*{words}"):
        aws.client("ec2").request_spot_fleet(SpotFleetRequestConfig=config)


def test_a_target_below_zero_or_a_wrong_template_leaves_the_fleet_as_it_is(aws: LocalAws, fleet: str) -> None:
    with pytest.raises(ClientError, match=r"Value \(-1\) for TargetCapacity is invalid"):
        _target(aws, fleet, -1)
    (config,) = _described(aws, fleet)["SpotFleetRequestConfig"]["LaunchTemplateConfigs"]
    config["Overrides"][0]["InstanceType"] = "hpc6id.32xlarge"
    with pytest.raises(ClientError, match=r"\(InvalidSpotFleetRequestConfig\)"):
        _target(aws, fleet, 1, LaunchTemplateConfigs=[config])
    described = _described(aws, fleet)
    assert described["SpotFleetRequestState"] == "active"
    assert described["SpotFleetRequestConfig"]["TargetCapacity"] == 0


# CloudFormation


def test_an_update_keeps_the_fleet_and_sends_the_templates_target_again(
    aws: LocalAws, stacks: Stacks, stack: str, fleet: str
) -> None:
    _target(aws, fleet, 2)
    members = _members(aws, fleet)
    template = spot_fleet()
    template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]["UserData"] = {"Fn::Base64": "#!/bin/sh"}
    stacks.update(stack, template)
    assert stacks.reasons(stack) == {}
    assert stacks.physical_ids(stack)["Fleet"] == fleet
    config = _described(aws, fleet)["SpotFleetRequestConfig"]
    assert config["TargetCapacity"] == 0
    assert config["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["Version"] == "2"
    assert _members(aws, fleet) == members


def test_a_change_of_a_nested_create_only_property_replaces_the_fleet(
    aws: LocalAws, stacks: Stacks, stack: str, fleet: str
) -> None:
    _target(aws, fleet, 1)
    template = spot_fleet()
    fleet_config(template)["AllocationStrategy"] = "capacityOptimized"
    stacks.update(stack, template)
    assert stacks.status(stack) == "UPDATE_COMPLETE"
    after = stacks.physical_ids(stack)["Fleet"]
    assert after != fleet
    assert _described(aws, after)["SpotFleetRequestState"] == "active"
    assert _described(aws, fleet)["SpotFleetRequestState"] == "cancelled"
    assert _members(aws, fleet) == []
