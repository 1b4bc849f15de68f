"""The power function where an item of the table holds whatever DynamoDB takes: it ends no run of the function."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from drawn_examples import examples
from power_scene import PART, Scene

WHOLE = {
    "state": "running",
    "by": "ana",
    "reason": "monday",
    "since": "2026-11-02T07:00:00Z",
    "owners": {
        "workers-asg": {
            "size": 8,
            "since": "2026-11-02T07:00:00Z",
            "gone": "2026-11-02T07:00:00Z",
            "told": ["problem/quota"],
            "terminated": {"at": "2026-11-02T07:59:30Z", "text": "why", "ids": ["i-1"]},
            "desired": {"sizes": [7, 8], "at": "2026-11-02T07:59:30Z", "goal": 8},
        }
    },
}
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10)
    | st.sampled_from((10**37, 2**31 - 1))
    | st.text("ab:", max_size=3)
    | st.sampled_from(("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"))
    | st.binary(max_size=2)
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner), max_leaves=3
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to everything in an item."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([here] if here else []), *(path for key, one in below for path in paths(one, (*here, key)))]


@pytest.mark.parametrize("action", ["tick", "stop", "status"])
@given(path=st.sampled_from(paths(WHOLE)), value=values, of_stack=st.booleans())
@examples(20)
def test_any_value_at_any_place_is_read_or_reported(
    action: str, path: tuple[Any, ...], value: object, of_stack: bool
) -> None:
    scene = Scene()
    group = scene.add(desired=8)
    item = copy.deepcopy(WHOLE)
    place: Any = item
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    stack = {"stack": value} if of_stack and value is not None else {}
    scene.dynamodb.change(PART, "workers", **item, **stack, version=1)

    failure = ""
    try:
        scene.order(action)
    except PartialFailureError as error:
        failure = str(error)

    if failure:
        assert "does not hold what the power function writes" in failure
        assert group.desired == 8
    assert action != "stop" or group.desired == 0


def test_a_new_group_waits_for_the_item_that_cannot_be_read_and_names_it() -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    scene.add("workers")
    scene.dynamodb.change(PART, "eval", state="x", version=1)
    with pytest.raises(PartialFailureError, match="the item eval"):
        scene.minute()

    assert scene.order("status")["workers"]["reason"] == "workers is new, and starts once eval can be read"


def test_an_item_that_no_node_group_of_the_file_has_fails_no_run_and_is_rewritten() -> None:
    scene = Scene()
    scene.auto_scaling.add("stray", cluster="base-pod", node_group="")
    scene.dynamodb.change(PART, "stray", state="x", version=1)

    scene.minute()

    assert "state" not in scene.dynamodb.values(PART, "stray")


def test_what_could_not_be_read_is_not_taken_for_gone() -> None:
    scene = Scene(counts={})
    scene.add_fleet("extras")
    scene.auto_scaling.add("left-asg", cluster="base-pod", node_group="left")
    scene.dynamodb.change(PART, "left", owners={"left-asg": {}}, version=1)
    scene.minute()
    scene.fail_next("DescribeAutoScalingGroups", "Throttling")

    with pytest.raises(PartialFailureError):
        scene.minute()

    assert "expires" not in scene.dynamodb.values(PART, "left")
