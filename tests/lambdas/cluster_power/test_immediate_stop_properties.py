"""What holds whatever state a group is in, and whatever fails, when it is stopped at once or not at all."""

import contextlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from immediate_stop_scene import stop_now
from power_scene import Scene
from termination_scene import LambdaEndedError, end_before

ASG = "workers-asg"
Event = Callable[[Scene], object]

operations = st.sampled_from(("DescribeAutoScalingGroups", "SetDesiredCapacity", "PutItem"))
codes = st.sampled_from(("ScalingActivityInProgress", "Throttling", "AccessDenied"))


def fault(operation: str, code: str) -> Event:
    return lambda scene: scene.fail_next(operation, code, owner=ASG)


def ended(operation: str) -> Event:
    return lambda scene: end_before(scene, operation)


def stay(**how: int) -> Event:
    def event(scene: Scene) -> None:
        for attribute, value in how.items():
            setattr(scene.auto_scaling.groups[ASG], attribute, value)

    return event


def count(size: int) -> Event:
    def event(scene: Scene) -> None:
        scene.counts["workers"] = size

    return event


def order(action: str) -> Event:
    return lambda scene: scene.order(action, by="ana", reason="because")


hindrances = st.builds(fault, operations, codes) | st.builds(ended, operations)
events = st.one_of(
    st.just(lambda scene: scene.minute()),
    st.builds(lambda size: stay(desired=size), st.integers(0, 8)),
    st.builds(lambda size: stay(minimum=size), st.integers(0, 2)),
    st.builds(count, st.integers(1, 9)),
    st.builds(order, st.sampled_from(("start", "stop"))),
    hindrances,
)


def play(scene: Scene, happening: list[Event]) -> Scene:
    for event in happening:
        with contextlib.suppress(PartialFailureError, LambdaEndedError):
            event(scene)
    return scene


def new_scene(happening: list[Event]) -> Scene:
    scene = Scene()
    scene.add()
    return play(scene, [lambda scene: scene.minute(), *happening])


def seen(scene: Scene) -> tuple[int, int, tuple[object, ...]]:
    group = scene.auto_scaling.groups[ASG]
    return group.desired, group.in_service, scene.record(group).ordered[:-1]


@given(st.lists(events, max_size=8), st.lists(hindrances, max_size=3))
@settings(deadline=None)
def test_a_stop_that_was_not_carried_out_at_once_is_as_if_it_had_never_been(
    before: list[Event], hindering: list[Event]
) -> None:
    scene, unordered = new_scene(before), new_scene(before)
    play(scene, [*hindering, stop_now])
    if not scene.auto_scaling.groups[ASG].desired:
        return

    # The last ones are after all that fails or ends was used up.
    ticks: list[Event] = [stay(minimum=0)] + [lambda scene: scene.minute()] * 15

    assert seen(play(scene, ticks)) == seen(play(unordered, ticks))
