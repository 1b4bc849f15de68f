"""The story of a node that reports an Xid: a right one has no differences, and each wrong thing is one."""

from typing import Any

import pytest

from rehearsal.repair_run import ACTED, REPORTED, RepairStory


def story(*, acts: bool = True, **changes: Any) -> RepairStory:
    past = [{"end": "returned"}, {"end": "replaced"}] if acts else []
    states = {**dict(ACTED if acts else REPORTED), **changes.pop("states", {})}
    right = {"reboots": int(acts), "running": 2, "table": {"past": past}, **changes}
    return RepairStory(acts=acts, node="i-1", node_group="workers", size=2, states=states, **right)


@pytest.mark.parametrize("acts", [True, False])
def test_a_right_one_is_nothing_to_say(acts: bool) -> None:
    assert list(story(acts=acts).differences()) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"states": {"a minute later": "Standby"}}, "health, a minute later: i-1 is Standby, not InService"),
        ({"reboots": 0}, "health: i-1 was rebooted 0 times, not 1"),
        ({"acts": False, "reboots": 1}, "health: i-1 was rebooted 1 times, not 0"),
        ({"running": 1}, "health: 1 nodes of workers run, not 2"),
        ({"table": {"past": []}}, "health: the state table has the repairs [], and under way: None"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], difference: str) -> None:
    assert list(story(**changes).differences()) == [difference]
