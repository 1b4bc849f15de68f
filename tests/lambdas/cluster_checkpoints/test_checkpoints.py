"""The checkpoint function: what counts as work without a new checkpoint, and what does not."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from checkpoint_scene import NOW, CheckpointScene
from cluster_checkpoints.work import work_since
from cluster_common.errors import PartialFailureError

_METRIC = '"MinutesOfWorkWithoutCheckpoint":[{}.0]'


def _ago(minutes: int) -> datetime:
    return NOW - timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("percent", "minutes", "at_risk"),
    [
        (lambda _: 100, 75, 75),
        (lambda _: 5, 75, 75),
        (lambda _: 4.9, 0, 0),
        (lambda _: None, 0, 0),
        # Work with a pause: what was idle, or not measured, is no work.
        (lambda start: 100 if start > _ago(30) or start < _ago(60) else 0, 45, 45),
        (lambda start: 100 if start > _ago(30) or start < _ago(60) else None, 45, 45),
        # Stopped a quarter of an hour ago and more: what would be lost is lost, and no one can save it now.
        (lambda start: 100 if start < _ago(20) else None, 60, 0),
        (lambda start: 100 if start < _ago(20) else 0, 60, 0),
        # A gap of one period is not a stop.
        (lambda start: 100 if start < _ago(10) else None, 70, 70),
    ],
)
def test_only_time_in_which_an_accelerator_worked_since_the_checkpoint_counts(
    percent: Callable[[datetime], float | None], minutes: int, at_risk: int, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = CheckpointScene()
    scene.save("step-1", 77)
    scene.cloudwatch.percent = percent
    report = scene.run()
    assert report["minutes_of_work_without_checkpoint"] == minutes
    assert _METRIC.format(at_risk) in capsys.readouterr().out


def test_an_unfinished_checkpoint_and_one_elsewhere_save_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = CheckpointScene()
    scene.cloudwatch.percent = lambda _: 90
    scene.save("step-1", 500)
    scene.save("step-2", 3, marker="unfinished")
    scene.bucket.objects["runs/step-1/eval.log"] = NOW
    scene.bucket.objects["other/step-3/.metadata"] = NOW
    report = scene.run()
    assert report == {
        "cluster": "pod",
        "newest_checkpoint": {"name": "step-1", "files": 3, "bytes": 30, "written": "2026-11-24T03:42:00Z"},
        "complete_checkpoints": 1,
        "accelerators_work": True,
        "minutes_of_work_without_checkpoint": 495,
    }
    assert '"MinutesSinceCheckpoint":[500.0]' in capsys.readouterr().out
    scene.save("step-2", 3, marker=".complete")
    assert scene.run()["minutes_of_work_without_checkpoint"] == 0


def test_without_any_checkpoint_the_work_of_a_day_and_more_counts_and_there_is_no_age(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = CheckpointScene()
    # One period of three.
    scene.cloudwatch.percent = lambda start: 90 if start.minute % 15 == 10 else 0
    report = scene.run()
    assert (report["newest_checkpoint"], report["minutes_of_work_without_checkpoint"]) == (None, 25 * 60 // 3)
    assert "MinutesSinceCheckpoint" not in capsys.readouterr().out
    assert len(scene.cloudwatch.calls) == 1


@pytest.mark.parametrize("status", ["PartialData", "InternalError", "Forbidden"])
def test_a_part_of_the_metrics_is_no_evidence(status: str, capsys: pytest.CaptureFixture[str]) -> None:
    scene = CheckpointScene()
    scene.cloudwatch.percent, scene.cloudwatch.status = lambda _: 0, status
    with pytest.raises(PartialFailureError, match=rf"no complete data .* q0 \({status}\), q1"):
        scene.run()
    assert "SuccessfulCheckpointTicks" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("bucket", "ListObjectsV2", "AccessDenied"),
        ("bucket", "ListObjectsV2", "NoSuchBucket"),
        ("bucket", "ListObjectsV2", "SlowDown"),
        ("cloudwatch", "GetMetricData", "InternalServiceFault"),
    ],
)
def test_what_cannot_be_read_is_no_success(
    service: str, operation: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = CheckpointScene()
    getattr(scene, service).fail_next(operation, code)
    with pytest.raises(ClientError, match=code):
        scene.run()
    assert "SuccessfulCheckpointTicks" not in capsys.readouterr().out
    assert scene.run()["cluster"] == "pod"


def test_a_period_is_counted_once_though_two_metrics_have_it() -> None:
    points = [(_ago(5), 90.0), (_ago(5), 80.0)]
    assert work_since(None, points, now=NOW, below=5).minutes == 5
