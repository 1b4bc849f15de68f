"""What holds whichever nodes are ordered to go, in whatever runs are interrupted, overlap or fail."""

import contextlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from power_scene import Scene
from termination_scene import TERMINATE, LambdaEndedError, asked, end_run, living

COUNT = 8
Event = Callable[[Scene, list[str]], object]


positions = st.lists(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=COUNT, unique=True)


def terminate(numbers: list[int]) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:
        terminate_named([nodes[number] for number in numbers])(scene, nodes)

    return event


def terminate_named(names: list[str]) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:  # noqa: ARG001 (events have one form)
        scene.order("terminate", node_groups=["workers"], instance_ids=names)

    return event


def between_two_looks(what: Event) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", lambda: play(scene, nodes, [what]))

    return event


def fault(operation: str) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:  # noqa: ARG001 (events have one form)
        scene.fail_next(operation, "InternalFailure", owner="workers-asg")

    return event


def end_before(number: int) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:
        scene.auto_scaling.before_next(TERMINATE, nodes[number], end_run)

    return event


def stay(**how: object) -> Event:
    def event(scene: Scene, nodes: list[str]) -> None:  # noqa: ARG001 (events have one form)
        for attribute, value in how.items():
            setattr(scene.auto_scaling.groups["workers-asg"], attribute, value)

    return event


ticks: st.SearchStrategy[Event] = st.just(lambda scene, _: scene.minute())
orders = st.builds(terminate, positions)
events = st.one_of(
    ticks,
    orders,
    st.builds(between_two_looks, orders | ticks),
    st.builds(end_before, st.integers(min_value=0, max_value=COUNT - 1)),
    st.builds(fault, st.sampled_from((TERMINATE, "DescribeAutoScalingGroups", "PutItem"))),
    st.builds(stay, hooked=st.booleans()),
    st.builds(stay, protected=st.integers(min_value=0, max_value=2)),
)


def play(scene: Scene, nodes: list[str], happening: list[Event]) -> None:
    for event in happening:
        with contextlib.suppress(PartialFailureError, LambdaEndedError):
            event(scene, nodes)


def new_scene() -> tuple[Scene, FakeGroup, list[str]]:
    scene = Scene(counts={"workers": COUNT})
    group = scene.add()
    scene.minute(2)
    return scene, group, living(group)


@given(st.lists(events, max_size=15))
@settings(deadline=None)
def test_no_node_goes_that_was_not_named_and_none_comes_back(happening: list[Event]) -> None:
    scene, group, nodes = new_scene()

    play(scene, nodes, happening)
    play(scene, nodes, [lambda scene, _: scene.minute()] * 3)

    gone = set(nodes) - set(living(group))
    assert gone <= set(asked(scene))
    assert group.desired == COUNT - len(gone)
    assert set(living(group)) <= set(nodes)


@given(st.lists(events, max_size=10), positions)
@settings(deadline=None)
def test_an_order_that_is_given_again_takes_all_it_names_in_the_end(
    happening: list[Event], numbers: list[int]
) -> None:
    scene, group, nodes = new_scene()
    play(scene, nodes, happening)
    group.protected = 0
    play(scene, nodes, [lambda scene, _: scene.minute()])
    there = [name for name, _ in group.nodes if name in [nodes[number] for number in numbers]]

    # Each fault and each interruption ends one run at most.
    again: list[Event] = [terminate_named(there), lambda scene, _: scene.minute(2)]
    play(scene, nodes, again * (len(happening) + 1 if there else 0))

    assert not set(there) & set(living(group))
