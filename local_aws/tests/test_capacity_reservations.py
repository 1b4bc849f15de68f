"""Capacity Reservations and Capacity Blocks as EC2 keeps them: what they take, who runs in them, when they end."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import X86_IMAGE

TYPE, ZONE = "p5.48xlarge", "us-east-1b"
BLOCK = "cr-0123456789abcdef0"
HOUR = timedelta(hours=1)


class Scene:
    """Makes reservations and instances, and takes away what a test leaves."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws, self.ec2 = aws, aws.client("ec2")
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.image = aws.client("ssm").get_parameter(Name=X86_IMAGE)["Parameter"]["Value"]
        subnets = self.ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [ZONE]}])["Subnets"]
        self.subnet = next(subnet["SubnetId"] for subnet in subnets if subnet["DefaultForAz"])
        self._reserved: list[str] = []
        self._running: list[str] = []

    def reserve(self, count: int = 1, **more: Any) -> str:
        settings = {"InstanceMatchCriteria": "targeted", "AvailabilityZone": ZONE, **more}
        answer = self.ec2.create_capacity_reservation(
            InstanceType=TYPE, InstancePlatform="Linux/UNIX", InstanceCount=count, **settings
        )
        reservation_id: str = answer["CapacityReservation"]["CapacityReservationId"]
        self._reserved.append(reservation_id)
        return reservation_id

    def block(self, start: timedelta = -HOUR, end: timedelta = HOUR, instance_type: str = TYPE) -> None:
        start_at, end_at = self.now + start, self.now + end
        self.aws.put_capacity_block(
            BLOCK, start=start_at, end=end_at, instance_type=instance_type, instance_count=2, availability_zone=ZONE
        )

    def launch(
        self, reservation_id: str | None = None, count: int = 1, *, instance_type: str = TYPE, **more: Any
    ) -> list[dict[str, Any]]:
        if reservation_id:
            target = {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}}
            more = {"CapacityReservationSpecification": target, **more}
        answer = self.ec2.run_instances(
            ImageId=self.image,
            InstanceType=instance_type,
            SubnetId=self.subnet,
            MinCount=count,
            MaxCount=count,
            **more,
        )
        self._running += [instance["InstanceId"] for instance in answer["Instances"]]
        instances: list[dict[str, Any]] = answer["Instances"]
        return instances

    def launch_into_block(self, instance_type: str = TYPE) -> list[dict[str, Any]]:
        market = {"MarketType": "capacity-block"}
        return self.launch(BLOCK, instance_type=instance_type, InstanceMarketOptions=market)

    def described(self, reservation_id: str) -> dict[str, Any]:
        answer = self.ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
        described: dict[str, Any] = answer["CapacityReservations"][0]
        return described

    def counts(self, reservation_id: str) -> tuple[int, int]:
        described = self.described(reservation_id)
        return described["TotalInstanceCount"], described["AvailableInstanceCount"]

    def instance(self, instance_id: str) -> dict[str, Any]:
        instances = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
        instance: dict[str, Any] = instances[0]
        return instance

    def clean_up(self) -> None:
        self.aws.clear_faults()
        if self._running:
            self.ec2.terminate_instances(InstanceIds=self._running)
        for reservation_id in self._reserved:
            if self.described(reservation_id)["State"] == "active":
                self.ec2.cancel_capacity_reservation(CapacityReservationId=reservation_id)
        blocks = self.ec2.describe_capacity_reservations()["CapacityReservations"]
        for block in blocks:
            if block["ReservationType"] == "capacity-block":
                self.aws.remove_capacity_block(block["CapacityReservationId"])
        self.aws.set_capacity(TYPE, ZONE, available=None)


@pytest.fixture
def scene(aws: LocalAws) -> Iterator[Scene]:
    made = Scene(aws)
    yield made
    made.clean_up()


def test_a_reservation_is_described_with_all_that_it_was_made_with(scene: Scene) -> None:
    group = scene.ec2.create_placement_group(GroupName="close", Strategy="cluster")["PlacementGroup"]
    tags = [{"Key": "cluster", "Value": "llama"}]
    named = scene.reserve(
        3,
        PlacementGroupArn=group["GroupArn"],
        EndDateType="limited",
        EndDate=scene.now + HOUR,
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
    )
    described = scene.described(named)
    assert described["CapacityReservationArn"] == f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{named}"
    assert described["EndDate"] == scene.now + HOUR
    assert described["Tags"] == tags
    assert {
        name: described.get(name)
        for name in (
            "AvailabilityZone",
            "EndDateType",
            "InstanceMatchCriteria",
            "InstancePlatform",
            "InstanceType",
            "PlacementGroupArn",
            "ReservationType",
            "State",
            "Tenancy",
        )
    } == {
        "AvailabilityZone": ZONE,
        "EndDateType": "limited",
        "InstanceMatchCriteria": "targeted",
        "InstancePlatform": "Linux/UNIX",
        "InstanceType": TYPE,
        "PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/close",
        "ReservationType": "default",
        "State": "active",
        "Tenancy": "default",
    }
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        scene.ec2.delete_placement_group(GroupName="close")
    scene.ec2.cancel_capacity_reservation(CapacityReservationId=named)
    scene.ec2.delete_placement_group(GroupName="close")
    assert scene.described(named)["State"] == "cancelled"


@pytest.mark.parametrize(
    ("strategy", "name", "code"),
    [
        ("spread", "close", "Capacity Reservations can be created in cluster placement groups only"),
        ("cluster", "no", "InvalidPlacementGroup.Unknown"),
    ],
)
def test_a_reservation_is_made_in_a_cluster_placement_group_that_is_there(
    scene: Scene, strategy: str, name: str, code: str
) -> None:
    scene.ec2.create_placement_group(GroupName="close", Strategy=strategy)
    arn = f"arn:aws:ec2:us-east-1:123456789012:placement-group/{name}"
    with pytest.raises(ClientError, match=code):
        scene.reserve(1, PlacementGroupArn=arn)
    scene.ec2.delete_placement_group(GroupName="close")


def test_requests_with_one_token_make_one_reservation(scene: Scene) -> None:
    made = scene.reserve(1, ClientToken="one")
    assert scene.reserve(1, ClientToken="one") == made
    assert scene.reserve(1, ClientToken="two") != made
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        scene.reserve(2, ClientToken="one")


def test_reservations_are_found_by_filters_and_page_by_page(scene: Scene) -> None:
    first, second = scene.reserve(1), scene.reserve(1, InstanceMatchCriteria="open")
    scene.ec2.create_tags(Resources=[first], Tags=[{"Key": "own", "Value": "yes"}, {"Key": "old", "Value": "yes"}])
    scene.ec2.delete_tags(Resources=[first], Tags=[{"Key": "old"}])

    def found(**filters: str) -> list[str]:
        conditions = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
        pages = scene.ec2.get_paginator("describe_capacity_reservations").paginate(
            Filters=[*conditions, {"Name": "state", "Values": ["active"]}], PaginationConfig={"PageSize": 1}
        )
        return [one["CapacityReservationId"] for page in pages for one in page["CapacityReservations"]]

    assert found() == [first, second]
    assert scene.described(first)["Tags"] == [{"Key": "own", "Value": "yes"}]
    with pytest.raises(ClientError, match="The filter 'tag:own' is invalid"):
        found(**{"tag:own": "yes"})
    assert found(instance_match_criteria="open", availability_zone=ZONE) == [second]
    with pytest.raises(ClientError, match="The filter 'colour' is invalid"):
        found(colour="blue")


@pytest.mark.parametrize(
    ("reservation_id", "code"),
    [
        ("cr-0fffffffffffffff0", "InvalidCapacityReservationId.NotFound"),
        ("cr-workers", "InvalidCapacityReservationId.Malformed"),
    ],
)
def test_an_id_of_nothing_is_an_error(scene: Scene, reservation_id: str, code: str) -> None:
    for ask in (
        lambda: scene.described(reservation_id),
        lambda: scene.ec2.modify_capacity_reservation(CapacityReservationId=reservation_id, InstanceCount=1),
        lambda: scene.ec2.cancel_capacity_reservation(CapacityReservationId=reservation_id),
    ):
        with pytest.raises(ClientError) as refused:
            ask()
        assert refused.value.response["Error"]["Code"] == code


def test_a_new_reservation_is_found_by_no_request_for_as_long_as_a_test_says(scene: Scene) -> None:
    scene.aws.hide_new_reservations(5)
    named = scene.reserve(1)
    for ask in (
        lambda: scene.described(named),
        lambda: scene.ec2.create_tags(Resources=[named], Tags=[{"Key": "own", "Value": "yes"}]),
        lambda: scene.ec2.modify_capacity_reservation(CapacityReservationId=named, InstanceCount=2),
        lambda: scene.ec2.cancel_capacity_reservation(CapacityReservationId=named),
    ):
        with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
            ask()
    listed = scene.ec2.describe_capacity_reservations()["CapacityReservations"]
    assert named not in [one["CapacityReservationId"] for one in listed]
    assert scene.counts(named) == (1, 1)


def test_a_reservation_takes_its_capacity_out_of_what_ec2_has(scene: Scene) -> None:
    scene.aws.set_capacity(TYPE, ZONE, available=3)
    named = scene.reserve(2)
    with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
        scene.reserve(2)
    scene.launch()
    with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
        scene.launch()
    with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
        scene.ec2.modify_capacity_reservation(CapacityReservationId=named, InstanceCount=3)
    assert {one["CapacityReservationId"] for one in scene.launch(named, 2)} == {named}


def test_a_reservation_takes_so_many_instances_and_gets_their_places_back(scene: Scene) -> None:
    named = scene.reserve(2)
    first, second = (instance["InstanceId"] for instance in scene.launch(named, 2))
    assert scene.counts(named) == (2, 0)
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        scene.launch(named)
    scene.ec2.terminate_instances(InstanceIds=[first])
    assert scene.counts(named) == (2, 1)
    scene.ec2.stop_instances(InstanceIds=[second])
    assert scene.counts(named) == (2, 2)
    scene.launch(named, 2)
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        scene.ec2.start_instances(InstanceIds=[second])


def test_a_reservation_changes_its_size_and_end_but_not_below_what_runs_in_it(scene: Scene) -> None:
    named, modify = scene.reserve(2), scene.ec2.modify_capacity_reservation
    scene.launch(named, 2)
    modify(CapacityReservationId=named, InstanceCount=4, EndDateType="limited", EndDate=scene.now + HOUR)
    assert (scene.counts(named), scene.described(named)["EndDate"]) == ((4, 2), scene.now + HOUR)
    modify(CapacityReservationId=named, InstanceCount=2)
    assert (scene.counts(named), scene.described(named)["EndDate"]) == ((2, 0), scene.now + HOUR)
    with pytest.raises(ClientError, match=f"1 is an invalid value for InstanceCount. 2 instances .* in {named}"):
        modify(CapacityReservationId=named, InstanceCount=1)
    with pytest.raises(ClientError, match="cannot be changed while instances are running in it"):
        modify(CapacityReservationId=named, InstanceMatchCriteria="open")
    modify(CapacityReservationId=named, EndDateType="unlimited")
    assert "EndDate" not in scene.described(named)


def test_a_cancelled_reservation_lets_its_instances_run_on_and_never_comes_back(scene: Scene) -> None:
    named = scene.reserve()
    (instance,) = scene.launch(named)
    scene.ec2.cancel_capacity_reservation(CapacityReservationId=named)
    assert "CapacityReservationId" not in scene.instance(instance["InstanceId"])
    for action in (scene.ec2.modify_capacity_reservation, scene.ec2.cancel_capacity_reservation):
        with pytest.raises(ClientError, match=f"IncorrectState.*{named} is cancelled"):
            action(CapacityReservationId=named)
    with pytest.raises(ClientError, match=f"ReservationCapacityExceeded.*{named} is cancelled"):
        scene.launch(named)


def test_an_open_reservation_is_used_by_any_instance_that_fits(scene: Scene) -> None:
    named = scene.reserve(1, InstanceMatchCriteria="open")
    (unwilling,) = scene.launch(CapacityReservationSpecification={"CapacityReservationPreference": "none"})
    (inside,) = scene.launch()
    (outside,) = scene.launch()
    assert [one.get("CapacityReservationId") for one in (unwilling, inside, outside)] == [None, named, None]


def test_a_group_of_reservations_is_filled_before_on_demand_capacity_is_used(scene: Scene) -> None:
    groups, ids = scene.aws.client("resource-groups"), [scene.reserve(), scene.reserve()]
    generic = [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}]
    made = groups.create_group(
        Name="pool",
        Configuration=[
            {"Type": "AWS::EC2::CapacityReservationPool"},
            {"Type": "AWS::ResourceGroups::Generic", "Parameters": generic},
        ],
    )["Group"]
    arns = [scene.described(one)["CapacityReservationArn"] for one in ids]
    groups.group_resources(Group="pool", ResourceArns=arns)
    listed = groups.list_group_resources(Group=made["GroupArn"])["Resources"]
    assert [resource["Identifier"]["ResourceArn"] for resource in listed] == arns
    target = {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": made["GroupArn"]}}
    launched = scene.launch(count=3, CapacityReservationSpecification=target)
    assert [one.get("CapacityReservationId") for one in launched] == [*ids, None]
    only = target | {"CapacityReservationPreference": "capacity-reservations-only"}
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        scene.launch(CapacityReservationSpecification=only)
    groups.delete_group(GroupName="pool")


@pytest.mark.parametrize(
    ("start", "end", "state"),
    [(HOUR, 2 * HOUR, "scheduled"), (-HOUR, HOUR, "active"), (-2 * HOUR, -HOUR, "expired")],
)
def test_a_block_is_in_the_state_that_its_times_say(
    scene: Scene, start: timedelta, end: timedelta, state: str
) -> None:
    scene.block(start, end)
    described = scene.described(BLOCK)
    assert (described["State"], described["ReservationType"]) == (state, "capacity-block")
    assert (described["StartDate"], described["EndDate"]) == (scene.now + start, scene.now + end)


def test_a_block_is_extended_and_ends_for_its_instances_half_an_hour_early(scene: Scene) -> None:
    scene.block(end=HOUR)
    (launched,) = scene.launch_into_block()
    scene.aws.put_capacity_block(BLOCK, start=scene.now - HOUR, end=scene.now + 9 * HOUR)
    assert scene.described(BLOCK)["EndDate"] == scene.now + 9 * HOUR
    assert scene.instance(launched["InstanceId"])["State"]["Name"] == "running"
    scene.aws.put_capacity_block(BLOCK, start=scene.now - HOUR, end=scene.now + timedelta(minutes=29))
    assert scene.instance(launched["InstanceId"])["State"]["Name"] == "terminated"
    with pytest.raises(ClientError, match=f"ReservationCapacityExceeded.*{BLOCK} is about to end"):
        scene.launch_into_block()


@pytest.mark.parametrize(("minutes", "launches"), [(90, True), (59, False)])
def test_an_ultraserver_is_cleared_an_hour_early(scene: Scene, minutes: int, launches: bool) -> None:
    ultra = "trn2u.48xlarge"
    scene.block(end=timedelta(minutes=minutes), instance_type=ultra)
    if launches:
        assert len(scene.launch_into_block(instance_type=ultra)) == 1
    else:
        with pytest.raises(ClientError, match=f"{BLOCK} is about to end"):
            scene.launch_into_block(instance_type=ultra)


def test_a_block_is_neither_modified_nor_cancelled(scene: Scene) -> None:
    scene.block()
    for action in (scene.ec2.modify_capacity_reservation, scene.ec2.cancel_capacity_reservation):
        with pytest.raises(ClientError, match="You can't modify or cancel a Capacity Block"):
            action(CapacityReservationId=BLOCK)
