"""Nodes that restore data sets run no job, and are not idle: as long as the hydration function says so."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.hydration import DatasetProgress, HydrationProgress, HydrationStep
from idle_scene import IdleScene, verdicts


def _say(scene: IdleScene, step: HydrationStep, *, for_minutes: int = 0, minutes_ago: int = 0) -> None:
    """Have the hydration function write how far the data set is."""
    since = scene.now - timedelta(minutes=for_minutes)
    found = HydrationProgress(
        time=scene.now - timedelta(minutes=minutes_ago),
        datasets={"/fsx/data": DatasetProgress(step=step, since=since)},
    )
    scene.ssm.progress = found.to_parameter()


@pytest.mark.parametrize(
    ("step", "said", "verdict"),
    [
        (HydrationStep.RESTORING, {"for_minutes": 600}, "keep"),
        (HydrationStep.FINISHING, {"for_minutes": 20}, "keep"),
        (HydrationStep.RESTORING, {"for_minutes": 600, "minutes_ago": 15}, "keep"),
        (HydrationStep.RESTORING, {"for_minutes": 600, "minutes_ago": 16}, "warn"),
        (HydrationStep.WAITING, {"for_minutes": 15}, "keep"),
        (HydrationStep.WAITING, {"for_minutes": 16}, "warn"),
        (HydrationStep.DONE, {"for_minutes": 15, "minutes_ago": 15}, "keep"),
        (HydrationStep.DONE, {"for_minutes": 16}, "warn"),
        (HydrationStep.LINKING, {}, "warn"),
        (HydrationStep.IMPORTING, {}, "warn"),
        (HydrationStep.FAILED, {}, "warn"),
    ],
)
def test_nodes_are_kept_while_they_restore_data_sets(step: HydrationStep, said: dict[str, Any], verdict: str) -> None:
    scene = IdleScene()
    scene.add_group()
    _say(scene, step, **said)
    found = scene.run()
    assert set(verdicts(found)) == {verdict}
    if verdict == "keep":
        (one, *_), reason = found, "of workers runs while data sets are restored: /fsx/data"
        assert found[one]["reason"] == f"{one} {reason}"


def test_a_load_of_hours_ends_without_a_warning_where_the_job_starts_then() -> None:
    scene = IdleScene()
    nodes = scene.add_group()
    for _ in range(24):
        _say(scene, HydrationStep.RESTORING)
        scene.tick()
    _say(scene, HydrationStep.DONE)
    scene.tick()
    for node in nodes:
        node.load = 95
    scene.ticks(60)
    assert (scene.subjects(), scene.stopped) == ([], set())


def test_a_job_that_does_not_start_after_the_load_costs_no_more_than_the_warning_s_time() -> None:
    scene = IdleScene()
    nodes = scene.add_group()
    _say(scene, HydrationStep.DONE)
    scene.ticks(60)
    assert scene.stopped == {node.id for node in nodes}


@pytest.mark.parametrize("value", ["[1]", "no JSON", None])
def test_nothing_is_stopped_while_the_progress_cannot_be_read(value: str | None) -> None:
    scene = IdleScene()
    scene.add_group()
    scene.ssm.progress = value or "{}"
    if value is None:
        scene.ssm.fail_next("GetParameter", "ThrottlingException")
    with pytest.raises(PartialFailureError, match="the progress of its data sets could not be read"):
        scene.run()
    assert scene.subjects() == []


def test_a_parameter_that_the_hydration_function_has_not_written_keeps_no_node() -> None:
    scene = IdleScene()
    scene.add_group()
    scene.ssm.progress = "{}"
    assert set(verdicts(scene.run())) == {"warn"}
