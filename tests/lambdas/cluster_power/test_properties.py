"""What holds whatever happens: ticks, orders, operators, deploys, missing capacity and faults in any "
"order."""

import contextlib
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from drawn_examples import examples
from power_scene import Scene

GROUPS = ("eval", "workers")
OPERATIONS = ("DescribeScalingActivities", "SetDesiredCapacity", "CreateOrUpdateTags")
Event = Callable[[Scene], object]

names = st.sampled_from(GROUPS)
sizes = st.integers(min_value=0, max_value=8)


def operator_sizes(name: str, size: int) -> Event:
    def event(scene: Scene) -> None:
        group = scene.auto_scaling.groups[f"{name}-asg"]
        group.desired = min(size, group.maximum)

    return event


def deploy(name: str, count: int) -> Event:
    def event(scene: Scene) -> None:
        scene.counts[name] = max(1, count)
        group = scene.auto_scaling.groups[f"{name}-asg"]
        group.maximum = max(1, count)
        group.desired = min(group.desired, group.maximum)  # As Auto Scaling does when the maximum is lowered.

    return event


def capacity(name: str, size: int) -> Event:
    def event(scene: Scene) -> None:
        scene.auto_scaling.groups[f"{name}-asg"].capacity = size

    return event


def order(action: str, name: str) -> Event:
    def event(scene: Scene) -> None:
        scene.order(action, node_groups=[name], by="ana", reason="because")

    return event


def fault(operation: str, name: str) -> Event:
    def event(scene: Scene) -> None:
        scene.auto_scaling.fail_next(operation, "InternalFailure", group=f"{name}-asg")

    return event


def stay(name: str, **how: object) -> Event:
    def event(scene: Scene) -> None:
        group = scene.auto_scaling.groups[f"{name}-asg"]
        for attribute, value in how.items():
            setattr(group, attribute, value)

    return event


ticks = st.just(lambda scene: scene.minute())
deploys = st.builds(deploy, names, sizes)
events = st.one_of(
    ticks,
    deploys,
    st.builds(operator_sizes, names, sizes),
    st.builds(capacity, names, sizes),
    st.builds(order, st.sampled_from(("start", "stop", "status")), names),
)
stays = st.one_of(
    st.builds(stay, names, protected=sizes),
    st.builds(stay, names, hooked=st.booleans()),
    st.builds(stay, names, terminating_suspended=st.none() | st.just("why")),
    st.builds(stay, names, others=st.lists(st.sampled_from(("Standby", "Terminating", "Detaching")), max_size=2)),
)
faults = st.builds(fault, st.sampled_from(OPERATIONS), names)
read_faults = st.builds(fault, st.just("DescribeScalingActivities"), names)


def new_scene() -> Scene:
    scene = Scene(counts={"eval": 2, "workers": 8})
    for name in GROUPS:
        scene.add(name)
    return scene


def play(scene: Scene, happening: list[Event]) -> None:
    for event in happening:
        with contextlib.suppress(PartialFailureError):
            event(scene)


def sizes_of(scene: Scene) -> dict[str, int]:
    return {name: group.desired for name, group in scene.auto_scaling.groups.items()}


@given(st.lists(events | stays | faults, max_size=12))
def test_a_second_tick_has_nothing_to_do(happening: list[Event]) -> None:
    scene = new_scene()
    play(scene, happening)
    # Until nodes have launched, what lingers is told, and a fault for every write of that is used up.
    play(scene, [lambda scene: scene.minute()] * 24)
    scene.auto_scaling.calls.clear()
    scene.sns.messages.clear()

    scene.order()

    assert scene.auto_scaling.writes == []
    assert scene.sns.messages == []


@given(st.lists(events, max_size=10), names, sizes, st.lists(ticks, min_size=1, max_size=4))
def test_a_tick_never_fights_an_operator(before: list[Event], name: str, size: int, after: list[Event]) -> None:
    scene = new_scene()
    play(scene, before)
    play(scene, [lambda scene: scene.minute()] * 2)
    operator_sizes(name, size)(scene)
    chosen = sizes_of(scene)

    play(scene, after)

    assert sizes_of(scene) == chosen


@given(st.lists(events, max_size=10), st.lists(ticks | deploys | faults, max_size=10))
def test_a_stopped_cluster_stays_stopped_through_ticks_and_deploys(before: list[Event], after: list[Event]) -> None:
    scene = new_scene()
    play(scene, before)
    scene.order("stop", by="ana", reason="weekend")

    play(scene, [*after, lambda scene: scene.minute()])

    assert sizes_of(scene) == {"eval-asg": 0, "workers-asg": 0}


@given(st.lists(events, max_size=10), st.sampled_from(("start", "stop")), st.lists(faults, max_size=3))
def test_an_order_that_was_remembered_is_carried_out_whatever_fails_on_the_way(
    before: list[Event], action: str, breaking: list[Event]
) -> None:
    scene = new_scene()
    play(scene, before)
    play(scene, [*breaking, lambda scene: scene.order(action, by="bo", reason="last order")])
    recorded = {
        name
        for name, group in scene.auto_scaling.groups.items()
        if group.tags.get("cdk-training-cluster:power-reason") == "last order"
    }

    play(scene, [lambda scene: scene.minute()] * 8)

    for name in recorded:
        count = scene.counts[name.removesuffix("-asg")]
        assert scene.auto_scaling.groups[name].desired == (count if action == "start" else 0)


@given(st.lists(events | stays | read_faults, max_size=15))
def test_every_problem_begins_and_ends_in_turn(happening: list[Event]) -> None:
    scene = new_scene()
    play(scene, happening)
    for group in scene.auto_scaling.groups.values():
        group.capacity = 100
        group.protected, group.hooked, group.terminating_suspended, group.others = 0, False, None, []
    play(scene, [lambda scene: scene.minute()] * 10)

    for name in GROUPS:
        for began, ended in (
            (f"base-pod: nodes of {name} are missing", f"base-pod: no nodes of {name} are missing any more"),
            (f"base-pod: too many nodes of {name} run", f"base-pod: no longer too many nodes of {name} run"),
        ):
            told = [subject for subject in scene.subjects() if subject in (began, ended)]
            assert told == [began, ended] * (len(told) // 2)


@given(st.lists(events | stays | faults, max_size=15))
def test_a_group_is_never_called_complete_or_stopped_while_more_nodes_live_than_should(
    happening: list[Event],
) -> None:
    scene = new_scene()
    for event in happening:
        play(scene, [event])
        with contextlib.suppress(PartialFailureError):
            for name, told in scene.order("status").items():
                if scene.auto_scaling.groups[f"{name}-asg"].alive > told["desired"]:
                    assert told["decision"] != "keep"


@given(st.lists(events | stays | faults, max_size=15))
def test_nodes_that_live_beyond_the_grace_are_a_problem(happening: list[Event]) -> None:
    scene = new_scene()
    play(scene, happening)
    play(scene, [lambda scene: scene.minute()] * 30)  # Until faults are used up, and the grace after that.

    for name, told in scene.minute().items():
        group = scene.auto_scaling.groups[f"{name}-asg"]
        lowered = group.tags.get("cdk-training-cluster:power-desired", "").startswith(f"{group.desired} ")
        many = group.alive > (told["wanted"] if lowered else group.desired)
        if many:
            assert told["surplus"] > 0
            assert told["decision"] in {"surplus", "short", "held", "unclear", "blocked"}
            assert "still run" in told["reason"]


def die(name: str, number: int) -> Event:
    def event(scene: Scene) -> None:
        group = scene.auto_scaling.groups[f"{name}-asg"]
        group.in_service -= min(number, group.in_service)

    return event


def running(scene: Scene) -> dict[str, int]:
    return {name: scene.auto_scaling.groups[f"{name}-asg"].in_service for name in GROUPS}


@given(st.lists(ticks | st.builds(capacity, names, sizes) | st.builds(die, names, sizes) | faults, max_size=10))
@examples(15)
def test_a_shortage_ends_no_node_and_ends_itself(happening: list[Event]) -> None:
    scene = new_scene()
    for event in happening:
        play(scene, [event])
        before = running(scene)
        play(scene, [lambda scene: scene.minute()])
        assert all(running(scene)[name] >= before[name] for name in GROUPS)
    play(scene, [capacity(name, 8) for name in GROUPS] + [lambda scene: scene.minute()] * 40)

    assert running(scene) == scene.counts
