"""What Auto Scaling launches where: into reservations and blocks as the group says, and beside them if it may."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capacity_templates import ZONE, block, given, group_of, launch_of, mixed, only, reserved, segments, spot
from given_capacity import BLOCK, GIVEN, IN_A_GROUP, LATER, given_capacity
from local_aws import LocalAws
from local_aws_scene import Stacks, Template, interface

HOUR = timedelta(hours=1)
EXCEEDED = (
    "The requested reservation does not have sufficient compatible and available capacity for this request. {} "
    "Launching EC2 instance failed."
)


@pytest.fixture(autouse=True)
def capacity(aws: LocalAws, stacks: Stacks) -> Iterator[None]:
    """What the groups find there; it goes after their stacks."""
    with given_capacity(aws):
        yield
        stacks.clean_up()


def _made(stacks: Stacks, template: Template) -> str:
    """Return the name of the group of a new stack, which is empty."""
    group_of(template).pop("DesiredCapacity", None)
    group_of(template)["MaxSize"] = "9"
    name = stacks.create(template)
    assert stacks.reasons(name) == {}
    return stacks.physical_ids(name)["Nodes"]


def _scale(aws: LocalAws, group: str, size: int) -> None:
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=size)


def _described(aws: LocalAws, group: str) -> dict[str, Any]:
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    described: dict[str, Any] = answer["AutoScalingGroups"][0]
    return described


def _nodes(aws: LocalAws, group: str) -> list[dict[str, Any]]:
    ids = [instance["InstanceId"] for instance in _described(aws, group)["Instances"]]
    answer = aws.client("ec2").describe_instances(InstanceIds=ids) if ids else {"Reservations": []}
    return [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]


def _places(aws: LocalAws, group: str) -> dict[str | None, int]:
    """Return how many of a group's nodes run in which reservation."""
    return dict(Counter(node.get("CapacityReservationId") for node in _nodes(aws, group)))


def _last_message(aws: LocalAws, group: str) -> str:
    answer = aws.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=1)
    return str(answer["Activities"][0].get("StatusMessage"))


def _preferring(preference: str, **target: Any) -> Template:
    template = given(GIVEN)
    said = {"CapacityReservationPreference": preference}
    group_of(template)["CapacityReservationSpecification"] = said | (
        {"CapacityReservationTarget": target} if target else {}
    )
    return template


def _targeting(template: Template, reservation_id: str) -> Template:
    launch_of(template)["CapacityReservationSpecification"] = {
        "CapacityReservationTarget": {"CapacityReservationId": reservation_id}
    }
    return template


def test_a_group_that_takes_reservations_only_stays_short_when_they_are_full(aws: LocalAws, stacks: Stacks) -> None:
    group = _made(stacks, reserved())
    _scale(aws, group, 3)
    assert sum(_places(aws, group).values()) == 2
    assert None not in _places(aws, group)
    assert _last_message(aws, group) == EXCEEDED.format("It took 2 of 3 instances.")


def test_a_group_that_takes_reservations_first_goes_on_with_on_demand(aws: LocalAws, stacks: Stacks) -> None:
    template = _preferring("capacity-reservations-first", CapacityReservationIds=[GIVEN])
    group = _made(stacks, template)
    _scale(aws, group, 3)
    assert _places(aws, group) == {GIVEN: 2, None: 1}
    assert "Failed" not in {
        activity["StatusCode"]
        for activity in aws.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)[
            "Activities"
        ]
    }


@pytest.mark.parametrize(
    ("template", "places"),
    [
        (_targeting(_preferring("none"), GIVEN), {None: 1}),
        (_targeting(_preferring("default"), GIVEN), {GIVEN: 1}),
        (_targeting(_preferring("capacity-reservations-only"), GIVEN), {GIVEN: 1}),
        (_targeting(given(IN_A_GROUP), GIVEN), {IN_A_GROUP: 1}),
        (_preferring("default"), {None: 1}),
        (_preferring("default", CapacityReservationIds=[GIVEN]), {None: 1}),
    ],
    ids=[
        "none",
        "the template's target",
        "only, with the template's target",
        "the group's target before the template's",
        "a targeted reservation that no launch template targets",
        "a target that the preference leaves to the template",
    ],
)
def test_what_the_group_says_goes_before_what_its_template_says(
    aws: LocalAws, stacks: Stacks, template: Template, places: dict[str | None, int]
) -> None:
    group = _made(stacks, template)
    _scale(aws, group, 1)
    assert _places(aws, group) == places


def test_segments_are_filled_in_their_order_and_emptied_against_it(aws: LocalAws, stacks: Stacks) -> None:
    group = _made(stacks, segments([GIVEN, BLOCK]))
    _scale(aws, group, 7)
    assert _places(aws, group) == {GIVEN: 2, BLOCK: 4, None: 1}
    lifecycles = Counter(node.get("InstanceLifecycle") for node in _nodes(aws, group))
    assert lifecycles == {"capacity-block": 4, None: 3}
    _scale(aws, group, 3)
    assert _places(aws, group) == {GIVEN: 2, BLOCK: 1}


def test_segments_without_on_demand_stay_short(aws: LocalAws, stacks: Stacks) -> None:
    group = _made(stacks, segments([BLOCK, GIVEN], ["capacity-block", "on-demand-capacity-reservation"]))
    _scale(aws, group, 7)
    assert _places(aws, group) == {BLOCK: 4, GIVEN: 2}
    assert _last_message(aws, group) == EXCEEDED.format("It took 2 of 3 instances.")


def test_segments_go_before_the_market_of_the_launch_template(aws: LocalAws, stacks: Stacks) -> None:
    template = segments([GIVEN, BLOCK], ["on-demand-capacity-reservation", "on-demand"])
    launch_of(template)["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    _targeting(template, BLOCK)
    group = _made(stacks, template)
    _scale(aws, group, 3)
    assert _places(aws, group) == {GIVEN: 2, None: 1}


def test_a_block_serves_its_group_from_its_start_until_aws_clears_it(aws: LocalAws, stacks: Stacks) -> None:
    group = _made(stacks, block(LATER))
    _scale(aws, group, 2)
    assert _nodes(aws, group) == []
    message = f"Your Capacity Block reservation {LATER} is not active yet. Launching EC2 instance failed."
    assert _last_message(aws, group) == message

    now = datetime.now(UTC)
    aws.put_capacity_block(LATER, start=now - HOUR, end=now + 9 * HOUR)
    assert _places(aws, group) == {LATER: 2}

    aws.put_capacity_block(LATER, start=now - HOUR, end=now + HOUR / 3)
    assert _nodes(aws, group) == []
    assert _last_message(aws, group) == EXCEEDED.format(f"The Capacity Block {LATER} is about to end.")


def test_each_type_of_a_mixed_group_comes_from_the_template_of_its_layout(aws: LocalAws, stacks: Stacks) -> None:
    template = spot(SpotMaxPrice="31.5")
    resources, overrides = template["Resources"], group_of(template)["MixedInstancesPolicy"]["LaunchTemplate"]
    resources["Second"] = json.loads(json.dumps(resources["Launch"]))
    second = resources["Second"]["Properties"]["LaunchTemplateData"]
    second |= {"InstanceType": "g6e.48xlarge", "NetworkInterfaces": [interface(0, 0, "interface")]}
    overrides["Overrides"].append(
        {
            "InstanceType": "g6e.48xlarge",
            "LaunchTemplateSpecification": {
                "LaunchTemplateId": {"Ref": "Second"},
                "Version": {"Fn::GetAtt": ["Second", "LatestVersionNumber"]},
            },
        }
    )
    group = _made(stacks, template)
    aws.set_capacity("p4de.24xlarge", ZONE, available=1)
    _scale(aws, group, 2)
    aws.set_capacity("p4de.24xlarge", ZONE, available=None)
    nodes = _nodes(aws, group)
    assert {node["InstanceType"]: len(node["NetworkInterfaces"]) for node in nodes} == {
        "p4de.24xlarge": 5,
        "g6e.48xlarge": 1,
    }
    assert {node["InstanceLifecycle"] for node in nodes} == {"spot"}
    described = _described(aws, group)
    assert described["CapacityRebalance"] is True
    policy = described["MixedInstancesPolicy"]
    assert policy["InstancesDistribution"] == {
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
        "SpotMaxPrice": "31.5",
    }
    named = [
        override.get("LaunchTemplateSpecification", {}).get("LaunchTemplateId")
        for override in policy["LaunchTemplate"]["Overrides"]
    ]
    assert named[0] is None
    assert named[1] != policy["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateId"]


def test_a_mixed_group_whose_second_template_names_a_market_is_refused(stacks: Stacks) -> None:
    template = mixed(given(GIVEN))
    resources, policy = template["Resources"], group_of(template)["MixedInstancesPolicy"]["LaunchTemplate"]
    resources["Second"] = json.loads(json.dumps(resources["Launch"]))
    resources["Second"]["Properties"]["LaunchTemplateData"]["InstanceMarketOptions"] = {"MarketType": "spot"}
    policy["Overrides"][0]["LaunchTemplateSpecification"] = {"LaunchTemplateId": {"Ref": "Second"}, "Version": "1"}
    reasons = stacks.reasons(stacks.create(template))
    assert "Incompatible launch template" in reasons["Nodes"]


def test_a_segment_passes_over_a_type_that_is_not_sold_in_a_way(aws: LocalAws, stacks: Stacks) -> None:
    template = segments([BLOCK], ["capacity-block", "on-demand"])
    resources, policy = template["Resources"], group_of(template)["MixedInstancesPolicy"]["LaunchTemplate"]
    resources["Second"] = json.loads(json.dumps(resources["Launch"]))
    data = resources["Second"]["Properties"]["LaunchTemplateData"]
    data["NetworkInterfaces"] = [{**data["NetworkInterfaces"][0], "InterfaceType": "interface"}]
    second = {"LaunchTemplateId": {"Ref": "Second"}, "Version": "1"}
    # There are no Capacity Blocks of m5.
    policy["Overrides"].insert(0, {"InstanceType": "m5.24xlarge", "LaunchTemplateSpecification": second})
    group = _made(stacks, template)
    _scale(aws, group, 5)
    bought = Counter((node["InstanceType"], node.get("CapacityReservationId")) for node in _nodes(aws, group))
    assert bought == {("p4de.24xlarge", BLOCK): 4, ("m5.24xlarge", None): 1}


def test_a_group_changes_from_a_reservation_to_a_block_in_place(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(reserved())
    before = stacks.physical_ids(name)
    stacks.update(name, block(BLOCK))
    assert stacks.reasons(name) == {}
    after = stacks.physical_ids(name)
    assert after["Nodes"] == before["Nodes"]
    _scale(aws, after["Nodes"], 0)
    _scale(aws, after["Nodes"], 2)
    assert _places(aws, after["Nodes"]) == {BLOCK: 2}
    cancelled = aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[before["Reserved"]])
    assert cancelled["CapacityReservations"][0]["State"] == "cancelled"


def test_a_reservation_grows_in_place_and_is_replaced_when_it_moves(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(reserved())
    before = stacks.physical_ids(name)["Reserved"]
    stacks.update(name, reserved(InstanceCount=4, EndDateType="limited", EndDate="2099-01-01T00:00:00Z"))
    assert stacks.reasons(name) == {}
    described = aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[before])
    (reservation,) = described["CapacityReservations"]
    assert (reservation["TotalInstanceCount"], reservation["EndDateType"]) == (4, "limited")
    stacks.update(name, reserved(Tenancy="default"))
    assert stacks.physical_ids(name)["Reserved"] != before
    group = _described(aws, stacks.physical_ids(name)["Nodes"])
    assert group["CapacityReservationSpecification"] == only(stacks.physical_ids(name)["Reserved"])
