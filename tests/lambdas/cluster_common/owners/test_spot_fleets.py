from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.kinds import SPOT_FLEET
from cluster_common.owners.named_owners import Named
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_contract.owners import OwnerSettings
from fake_ec2 import FakeEc2

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)


def owner(fake: FakeEc2, *names: str) -> SpotFleets:
    names = names or ("extras",)
    owners = {name: OwnerSettings.spot_fleet(f"sfr-{name}") for name in names}
    named = Named(cluster="base-pod", owners=owners, now=NOW, counts=dict.fromkeys(names, 4))
    return SpotFleets(cast("EC2Client", fake), named)


def deploy(fake: FakeEc2, name: str = "extras", **settings: Any) -> None:
    fake.add_fleet(f"sfr-{name}", cluster="base-pod", node_group=name, **settings)


def read_one(fake: FakeEc2) -> OwnedGroup:
    [group] = owner(fake).read().groups
    return group


def test_a_request_is_read_as_ec2_describes_it() -> None:
    fake = FakeEc2()
    deploy(fake, target=3, alive=3, unhealthy=1, tags={"cdk-training-cluster:power": "running"})

    group = read_one(fake)

    assert (group.name, group.node_group, group.owner) == ("sfr-extras", "extras", SPOT_FLEET)
    assert (group.minimum, group.desired, group.maximum) == (0, 3, 4)
    assert (group.in_service, group.out_of_service, group.alive) == (2, ("unhealthy",), 3)
    assert (group.instance_types, group.zones, group.keeps_excess) == (("p4de.24xlarge",), (), True)


@pytest.mark.parametrize(
    ("state", "busy", "deleting"),
    [
        ("active", False, False),
        ("submitted", True, False),
        ("modifying", True, False),
        ("cancelled_running", False, True),
        ("cancelled_terminating", False, True),
    ],
)
def test_the_state_of_a_request_is_read(state: str, busy: bool, deleting: bool) -> None:
    fake = FakeEc2()
    deploy(fake, state=state)

    group = read_one(fake)

    assert (group.busy, group.deleting) == (busy, deleting)


@pytest.mark.parametrize("state", ["cancelled", "failed"])
def test_a_request_that_is_gone_is_not_there(state: str) -> None:
    fake = FakeEc2()
    deploy(fake, state=state)

    assert owner(fake).read().groups == []


def test_a_request_that_does_not_exist_hides_no_other() -> None:
    fake = FakeEc2()
    for name in ("a", "c"):
        deploy(fake, name)

    assert [group.node_group for group in owner(fake, "a", "b", "c").read().groups] == ["a", "c"]


def test_requests_and_nodes_are_read_page_by_page() -> None:
    fake = FakeEc2()
    for name in "abcde":
        deploy(fake, name, alive=3)

    groups = owner(fake, *"abcde").read().groups

    assert [(group.node_group, group.in_service) for group in groups] == [(name, 3) for name in "abcde"]


def test_another_clusters_request_is_never_read() -> None:
    fake = FakeEc2()
    fake.add_fleet("sfr-extras", cluster="other-pod", node_group="extras")

    assert owner(fake).read().groups == []
    assert "DescribeSpotFleetInstances" not in [name for name, _ in fake.requests]


def test_a_request_whose_nodes_cannot_be_read_keeps_no_other_waiting() -> None:
    fake = FakeEc2()
    for name in "ab":
        deploy(fake, name)
    fake.fail_next("DescribeSpotFleetInstances", "RequestLimitExceeded", group="sfr-a")

    reading = owner(fake, "a", "b").read()

    assert [group.node_group for group in reading.groups] == ["b"]
    assert list(reading.unread) == ["a"]


def test_a_request_is_read_again_until_it_is_gone() -> None:
    fake = FakeEc2()
    deploy(fake, target=3)
    group = read_one(fake)
    fake.requests.clear()

    assert owner(fake).describe(group) == group
    fake.fleets["sfr-extras"].state = "modifying"
    assert owner(fake).describe(group) == replace(group, busy=True)
    fake.fleets.clear()
    assert owner(fake).describe(group) is None


@pytest.mark.parametrize(
    ("before", "alive", "policy", "size", "modification"),
    [
        pytest.param(0, 0, "noTermination", 4, (4, "noTermination"), id="a start"),
        pytest.param(0, 4, "noTermination", 4, (4, "noTermination"), id="a start over nodes that lived on"),
        pytest.param(4, 4, "noTermination", 0, (0, "default"), id="a stop"),
        pytest.param(4, 2, "noTermination", 0, (0, "default"), id="a stop while nodes launch"),
        pytest.param(4, 4, "noTermination", 2, (2, "default"), id="fewer"),
        pytest.param(2, 3, "default", 2, (2, "default"), id="still getting fewer"),
        pytest.param(2, 2, "default", 2, (2, "noTermination"), id="fewer now"),
        pytest.param(0, 2, "noTermination", 0, (0, "default"), id="stopped, and a deploy let nodes live on"),
        pytest.param(0, 0, "noTermination", 0, (0, "default"), id="stopped from the start"),
        pytest.param(0, 0, "default", 0, (0, "default"), id="stopped"),
        pytest.param(4, 4, "noTermination", 4, (4, "noTermination"), id="as it should be"),
        pytest.param(4, 5, "noTermination", 4, (4, "noTermination"), id="one beside its replacement"),
        pytest.param(4, 4, "", 4, (4, "noTermination"), id="as it should be, and it does not say whether nodes stay"),
        pytest.param(4, 4, "", 0, (0, "default"), id="a stop, and it does not say whether nodes stay"),
    ],
)
def test_nodes_stay_while_it_runs_and_go_when_it_is_made_smaller(
    before: int, alive: int, policy: str, size: int, modification: tuple[int, str]
) -> None:
    fake = FakeEc2()
    deploy(fake, target=before, alive=alive, policy=policy)

    owner(fake).set_size(read_one(fake), size)

    assert fake.fleets["sfr-extras"].modification == modification


def test_a_request_that_takes_no_target_is_busy() -> None:
    fake = FakeEc2()
    deploy(fake)
    group = read_one(fake)
    fake.fleets["sfr-extras"].state = "modifying"

    with pytest.raises(OwnerBusyError):
        owner(fake).set_size(group, 4)


def test_tags_are_written_on_the_request() -> None:
    fake = FakeEc2()
    deploy(fake)

    owner(fake).tag(read_one(fake), {"cdk-training-cluster:power-size": "4"})

    assert fake.requests[-1] == (
        "CreateTags",
        {"Resources": ["sfr-extras"], "Tags": [{"Key": "cdk-training-cluster:power-size", "Value": "4"}]},
    )


def _event(minutes: int, kind: str, subtype: str, description: str) -> dict[str, Any]:
    event = {"EventSubType": subtype, "EventDescription": description}
    return {"Timestamp": NOW - timedelta(minutes=minutes), "EventType": kind, "EventInformation": event}


HISTORY = [
    _event(9, "fleetRequestChange", "progress", "capacityUnitsRequested: 4.0"),
    _event(8, "instanceChange", "launched", '{"instanceType":"p4de.24xlarge"}'),
    _event(7, "error", "spotFleetRequestConfigurationInvalid", "p4de,\n  no capacity"),
    _event(6, "information", "launchSpecUnusable", "below the Spot price"),
    _event(5, "information", "registerWithLoadBalancersFailed", "no"),
    _event(4, "instanceChange", "terminated", "i-1"),
    _event(3, "error", "allLaunchSpecsTemporarilyBlacklisted", "Several attempts"),
]


def test_the_history_tells_launches_and_what_kept_nodes_from_launching_newest_first() -> None:
    fake = FakeEc2()
    deploy(fake)
    fake.fleets["sfr-extras"].history = HISTORY

    activities = owner(fake).read_activities(read_one(fake), None)

    assert [(one.launch, one.failed, one.finished, one.message) for one in activities] == [
        (True, True, True, "launchSpecUnusable: below the Spot price"),
        (True, True, True, "spotFleetRequestConfigurationInvalid: p4de, no capacity"),
        (True, False, True, 'launched: {"instanceType":"p4de.24xlarge"}'),
    ]


def test_that_ec2_pauses_is_told_where_it_says_nothing_else() -> None:
    fake = FakeEc2()
    deploy(fake)
    fake.fleets["sfr-extras"].history = [HISTORY[1], HISTORY[6]]

    activities = owner(fake).read_activities(read_one(fake), None)

    assert [one.message for one in activities if one.failed] == [
        "allLaunchSpecsTemporarilyBlacklisted: Several attempts"
    ]


@pytest.mark.parametrize(
    ("since", "start"),
    [
        (NOW - timedelta(hours=1), NOW - timedelta(hours=1)),
        (NOW - timedelta(days=30), NOW - timedelta(hours=48)),
        (None, NOW - timedelta(hours=48)),
    ],
)
def test_the_history_is_read_since_the_request_was_sized_and_as_far_as_ec2_keeps_it(
    since: datetime | None, start: datetime
) -> None:
    fake = FakeEc2()
    deploy(fake)

    owner(fake).read_activities(read_one(fake), since)

    assert fake.requests[-1][1]["StartTime"] == start


def test_a_single_node_of_a_request_is_never_said_to_be_terminated() -> None:
    fake = FakeEc2()
    deploy(fake)
    group, message = read_one(fake), "chooses itself which nodes of sfr-extras it terminates, and not i-1"

    with pytest.raises(NotImplementedError, match=message):
        owner(fake).terminate(group, "i-1")
