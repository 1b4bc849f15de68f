"""A node that was late by seconds: it stays in its round unless others have begun another without it."""

from datetime import timedelta
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_job.rounds import Round


class _Late:
    """Torch's handler on node a, whose round 3 with b is complete, as far as `Round` asks it."""

    def __init__(self) -> None:
        self.state: Any = SimpleNamespace(
            round=3, complete=True, participants={"a": 0, "b": 1}, wait_list=set(), last_heartbeats={"a": 0, "b": 0}
        )
        self.is_dirty = False
        self._settings = SimpleNamespace(keep_alive_interval=timedelta(hours=1))
        self._this_node, self._state_holder, self._heartbeat_lock = "a", self, Lock()

    def mark_dirty(self) -> None:
        self.is_dirty = True


@pytest.mark.parametrize(
    ("state", "is_over", "participants"),
    [
        ({}, False, {"a", "b"}),
        ({"participants": {"b": 1}}, False, {"a", "b"}),  # b saw that a was late
        ({"participants": {}, "round": 4, "complete": False}, False, {"a"}),  # all were late
        ({"participants": {"c": 0}, "round": 4, "complete": False}, True, {"c"}),  # and c came then
        ({"participants": {"c": 0}, "round": 4}, True, {"c"}),
        ({"participants": {}, "round": 5, "complete": False}, True, set()),  # c came and went
        ({"participants": {"c": 0}, "round": 0}, True, {"c"}),  # the table has lost the state
    ],
)
def test_a_late_node_comes_back_until_others_have_begun_another_round(
    state: dict[str, Any], is_over: bool, participants: set[str]
) -> None:
    handler = _Late()
    round_ = Round(handler, 0)
    vars(handler.state).update({"last_heartbeats": {}, **state} if state else {})
    assert round_.is_over() is is_over
    assert handler.state.participants.keys() == participants
    assert handler.is_dirty is ("a" in handler.state.last_heartbeats and bool(state))
    if not is_over:
        assert (handler.state.round, handler.state.complete) == (3, True)
        handler.state.participants = {}  # another node wrote first
        assert not round_.is_over()
        assert bool(handler.state.participants) is not bool(state), "each node tries once in an interval"
