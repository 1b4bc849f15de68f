"""What the power function's log says of commands and acts, for `training-cluster events`."""

from contextlib import suppress

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.events import EVENT_FIELD
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene({"workers": 8})


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str | None, ...]]:
    found = [vars(record) for record in caplog.records if EVENT_FIELD in vars(record)]
    caplog.clear()
    return [tuple(one.get(key) for key in (EVENT_FIELD, "action", "node_group", "by", "why")) for one in found]


def test_sizes_that_were_set_and_commands_are_events_and_questions_are_none(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    scene.add()
    scene.minute(2)
    assert events(caplog) == [("act", None, "workers", "cluster_power", "first start after the deployment")]
    scene.order("status")
    assert events(caplog) == []
    scene.order("stop", reason="the weekend")
    assert events(caplog) == [("command", "stop", "workers", "an operator in request 1111", "the weekend")]


def test_a_size_that_could_not_be_set_is_no_event(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "AccessDenied")
    with suppress(PartialFailureError):
        scene.minute()
    assert events(caplog) == []
