"""What holds of blocks, fleets and released reservations, whatever happens in whatever order."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from cluster_power.reservations import Reservation
from cluster_power.windows import Phase, find_phase
from drawn_examples import examples
from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from fake_spot_fleets import FakeFleet
from power_scene import Scene

MINUTE = timedelta(minutes=1)
DOWN = 40 * MINUTE
NAMES = ("extras", "held", "kept", "pod")
Event = Callable[[Scene], object]

names = st.sampled_from(NAMES)


def new_scene() -> Scene:
    """Return a cluster of all of them, with a block of three hours that starts in a few minutes."""
    scene = Scene(counts={"extras": 4, "held": 3, "kept": 3, "pod": 8})
    scene.add_block(scene.add("pod"), starts=3 * MINUTE, lasts=180 * MINUTE)
    scene.add_reservation(scene.add("held"))
    scene.add_reservation(scene.add("kept"), release=False, ends=scene.now + 26 * 60 * MINUTE)
    scene.add_fleet("extras")
    return scene


def block(scene: Scene) -> FakeReservation:
    return scene.ec2.reservations["cr-pod"]


def owner(scene: Scene, name: str) -> FakeGroup | FakeFleet:
    if name == "extras":
        return scene.ec2.fleets[scene.details["extras"]["spot_fleet"]]
    return scene.auto_scaling.groups[f"{name}-asg"]


def is_open(scene: Scene) -> bool:
    found = block(scene)
    assert found.starts is not None
    assert found.ends is not None
    return found.state == "active" and found.starts <= scene.now < found.ends - DOWN


def phase(scene: Scene) -> Phase:
    found = block(scene)
    seen = Reservation(
        id=found.id, state=found.state, instances=found.instances, starts=found.starts, ends=found.ends
    )
    return find_phase(seen, now=scene.now, ends_early=30 * MINUTE)


def later(minutes: int) -> Event:
    def event(scene: Scene) -> None:
        scene.pass_time(minutes * MINUTE)
        scene.order()

    return event


def order(action: str, name: str) -> Event:
    return lambda scene: scene.order(action, node_groups=[name], by="ana", reason="because")


def operator_sizes(name: str, size: int) -> Event:
    return lambda scene: setattr(owner(scene, name), "desired", size)


def deploy(name: str, count: int) -> Event:
    """Deploy another count, and with it all that CloudFormation writes again."""

    def event(scene: Scene) -> None:
        scene.counts[name] = count
        found = owner(scene, name)
        if isinstance(found, FakeFleet):
            found.deploy()
            return
        found.maximum = count
        found.desired = min(found.desired, count)
        if name == "held" and scene.ec2.reservations["cr-held"].used <= count:
            scene.ec2.reservations["cr-held"].bought = count

    return event


def extend(minutes: int) -> Event:
    def event(scene: Scene) -> None:
        found = block(scene)
        if found.ends is not None and found.state in ("active", "scheduled"):
            found.ends += minutes * MINUTE

    return event


def change(what: str, attribute: str, value: Any) -> Event:
    """Let EC2 change a reservation or a fleet."""

    def event(scene: Scene) -> None:
        setattr(scene.ec2.reservations.get(what) or scene.ec2.fleets.get(what), attribute, value)

    return event


def replace_fleet(price: int) -> Event:
    """Deploy another price, for which CloudFormation makes another request."""

    def event(scene: Scene) -> None:
        old = scene.ec2.fleets[scene.details["extras"]["spot_fleet"]]
        fleet = f"sfr-{len(scene.ec2.fleets)}-{price}"
        scene.add_fleet("extras", id=fleet)
        old.state, old.alive = "cancelled_terminating", 0

    return event


def fault(operation: str) -> Event:
    def event(scene: Scene) -> None:
        service = scene.auto_scaling if "Desired" in operation or "Update" in operation else scene.ec2
        service.fail_next(operation, "InternalFailure")

    return event


ticks = st.builds(later, st.sampled_from((1, 1, 1, 5, 30, 70)))
deploys = st.builds(deploy, names, st.integers(min_value=1, max_value=8))
orders = st.builds(order, st.sampled_from(("start", "stop", "status")), names)
changes = st.one_of(
    st.builds(extend, st.sampled_from((60, 600))),
    st.builds(change, st.just("cr-pod"), st.just("bought"), st.integers(min_value=4, max_value=8)),
    st.builds(replace_fleet, st.integers(1, 3)),
    st.builds(change, st.just("cr-held"), st.just("capacity"), st.integers(min_value=0, max_value=8)),
    st.builds(change, st.just("sfr-extras"), st.just("capacity"), st.integers(min_value=0, max_value=8)),
)
endings = st.builds(
    change, st.just("cr-pod"), st.just("state"), st.sampled_from(("payment-failed", "cancelled", "a new state"))
)
operators = st.builds(operator_sizes, names, st.integers(min_value=1, max_value=3))
faults = st.builds(
    fault,
    st.sampled_from(
        (
            *("DescribeCapacityReservations", "DescribeSpotFleetRequests", "DescribeSpotFleetInstances"),
            *("ModifySpotFleetRequest", "CreateTags", "ModifyCapacityReservation", "SetDesiredCapacity"),
            "CreateOrUpdateTags",
        )
    ),
)
events = st.one_of(ticks, orders, deploys, changes, operators)


def play(scene: Scene, happening: list[Event]) -> None:
    for event in happening:
        with contextlib.suppress(PartialFailureError):
            event(scene)


def sizes_that_were_set(scene: Scene, event: Event) -> list[int]:
    """Return the sizes that the function gave the group in the block while something happened."""
    before = len(scene.auto_scaling.requests)
    play(scene, [event])
    return [
        parameters["DesiredCapacity"]
        for operation, parameters in scene.auto_scaling.requests[before:]
        if operation == "SetDesiredCapacity" and parameters["AutoScalingGroupName"] == "pod-asg"
    ]


@given(st.lists(events | endings | faults, max_size=20))
def test_no_node_is_asked_for_outside_its_window(happening: list[Event]) -> None:
    scene = new_scene()
    for event in happening:
        if any(sizes_that_were_set(scene, event)):
            assert is_open(scene)


@given(st.lists(events | faults, max_size=15))
def test_no_node_lives_when_ec2_begins_to_terminate(happening: list[Event]) -> None:
    scene = new_scene()
    play(scene, happening)
    ends = block(scene).ends
    assert ends is not None
    if scene.now >= ends - DOWN - 5 * MINUTE:
        return
    scene.now = ends - DOWN - 5 * MINUTE
    play(scene, [later(1)] * 14)  # Until a minute before EC2 terminates what is left; faults are used up by then.

    assert scene.now == ends - 31 * MINUTE
    assert owner(scene, "pod").alive == 0


@given(st.lists(events | endings | faults, max_size=15))
def test_a_second_tick_has_nothing_to_do(happening: list[Event]) -> None:
    scene = new_scene()
    play(scene, happening)
    scene.ec2.reservations["cr-held"].capacity = 1000  # What EC2 does not have is asked for again and again.
    play(scene, [lambda scene: scene.minute()] * 12)  # Until faults are used up and nodes have launched.
    for fake in (scene.auto_scaling, scene.ec2):
        fake.calls.clear()
    scene.sns.messages.clear()

    scene.order()

    assert scene.auto_scaling.writes + scene.ec2.writes == []
    assert scene.sns.messages == []


@given(st.lists(events, max_size=10), names, st.integers(min_value=1, max_value=3), st.integers(1, 4))
def test_a_tick_never_fights_an_operator(before: list[Event], name: str, size: int, ticks: int) -> None:
    scene = new_scene()
    play(scene, before)
    play(scene, [lambda scene: scene.minute()] * 4)
    was = phase(scene)
    operator_sizes(name, size)(scene)

    play(scene, [lambda scene: scene.minute()] * ticks)

    # The end of a block is stronger than anybody.
    if name != "pod" or (phase(scene) is was and was is not Phase.OVER):
        assert owner(scene, name).desired == size


@given(st.lists(events, max_size=10), st.lists(ticks | deploys | changes | faults, max_size=10))
def test_a_stopped_cluster_stays_stopped_and_releases_its_reservation(
    before: list[Event], after: list[Event]
) -> None:
    scene = new_scene()
    play(scene, before)
    play(scene, [lambda scene: scene.minute()] * 2)
    scene.order("stop", by="ana", reason="weekend")

    play(scene, [*after, *[lambda scene: scene.minute()] * 12])

    assert {name: (owner(scene, name).desired, owner(scene, name).alive) for name in NAMES} == dict.fromkeys(
        NAMES, (0, 0)
    )
    assert scene.ec2.reservations["cr-held"].bought == 1


@given(st.lists(events | faults, max_size=15))
def test_a_group_that_runs_is_never_larger_than_its_reservation(happening: list[Event]) -> None:
    scene = new_scene()
    for event in happening:
        before = len(scene.auto_scaling.requests)
        play(scene, [event])
        reserved = scene.ec2.reservations["cr-held"].bought
        for operation, parameters in scene.auto_scaling.requests[before:]:
            if operation == "SetDesiredCapacity" and parameters["AutoScalingGroupName"] == "held-asg":
                assert parameters["DesiredCapacity"] <= reserved


@given(st.lists(events | endings | faults, max_size=12))
@examples(20)
def test_the_same_happening_leads_to_the_same_calls_and_words(happening: list[Event]) -> None:
    scenes = [new_scene(), new_scene()]
    for scene in scenes:
        play(scene, happening)

    first, second = scenes
    assert (first.auto_scaling.requests, first.ec2.requests) == (second.auto_scaling.requests, second.ec2.requests)
    assert first.sns.messages == second.sns.messages


START = datetime(2026, 11, 2, tzinfo=UTC)
seconds = st.integers(min_value=-100_000, max_value=400_000).map(lambda number: timedelta(seconds=number))
ORDER = [Phase.BEFORE, Phase.OPEN, Phase.CLOSING, Phase.OVER]


@given(st.lists(seconds, min_size=2, max_size=6), seconds, st.integers(0, 90), st.integers(0, 90))
def test_the_phases_of_a_block_follow_each_other(
    moments: list[timedelta], lasts: timedelta, early: int, notice: int
) -> None:
    found = Reservation(id="cr-1", state="active", instances=8, starts=START, ends=START + lasts)

    phases = [
        find_phase(found, now=START + moment, ends_early=early * MINUTE, notice=notice * MINUTE)
        for moment in sorted(moments)
    ]

    assert phases == sorted(phases, key=ORDER.index)
