"""What the hydration function, the nodes and the command pass to each other."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cluster_contract.hydration import (
    DatasetProgress,
    FileFailure,
    HydrationAction,
    HydrationAnswer,
    HydrationProgress,
    HydrationRequest,
    HydrationStep,
    parse_answer,
    parse_progress,
)

_NOW = datetime(2026, 11, 22, 20, tzinfo=UTC)


def test_a_request_has_all_fields() -> None:
    request = HydrationRequest(
        action=HydrationAction.RESTORE, run="r", directory="/fsx/data", mount_point="/fsx", patterns=("*.bin",)
    )
    assert json.loads(base64.b64decode(request.to_parameter())) == {
        "action": "restore",
        "run": "r",
        "directory": "/fsx/data",
        "mount_point": "/fsx",
        "shard": 0,
        "shards": 1,
        "seconds": 240,
        "patterns": ["*.bin"],
        "max_bytes": None,
        "reason": "",
    }


_ANSWER = {"run": "r", "shard": 1, "shards": 4, "files": 9, "bytes": 90, "restored_files": 3, "restored_bytes": 30}


def test_the_last_line_of_the_output_is_the_answer() -> None:
    failure = {"path": "/fsx/data/a", "error": "No space left on device"}
    output = "counting\n" + json.dumps(_ANSWER | {"failures": [failure], "failed_files": 1, "newer": True}) + "\n"
    assert parse_answer(output) == HydrationAnswer(
        run="r",
        shard=1,
        shards=4,
        files=9,
        bytes=90,
        restored_files=3,
        restored_bytes=30,
        failed_files=1,
        failures=(FileFailure(path="/fsx/data/a", error="No space left on device"),),
    )


_FAILURE = {"path": "/fsx/data/\ud800", "error": "gone"}


@pytest.mark.parametrize(
    "output",
    [
        *("", "Killed\n", "{}", json.dumps(_ANSWER) + "\nKilled", json.dumps(_ANSWER)[:-4]),
        pytest.param("[" * 23_000, id="nested deeply"),
        pytest.param(json.dumps(_ANSWER | {"failures": [_FAILURE]}), id="half a character"),
        pytest.param(json.dumps(_ANSWER | {"bytes": 10**40}), id="more than the state table takes"),
        pytest.param(json.dumps(_ANSWER | {"files": -1}), id="fewer than none"),
    ],
)
def test_an_output_without_an_answer_is_refused(output: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # of two kinds, none shown to people
        parse_answer(output)


def test_progress_is_read_as_it_was_written_and_fits_into_a_parameter() -> None:
    one = DatasetProgress(step=HydrationStep.RESTORING, since=_NOW, files=4, bytes=8, counted=True, restored_bytes=2)
    failed = replace(one, step=HydrationStep.FAILED, reason="{{{ssm:parameter}}} has failed")
    progress = HydrationProgress(time=_NOW, datasets={"/fsx/data": one, "/fsx/failed": failed})
    assert "{{" not in progress.to_parameter()
    assert parse_progress(progress.to_parameter()) == progress
    assert one.percent == 25
    assert parse_progress("{}") is None
    long = HydrationProgress(time=_NOW, datasets={f"/fsx/{'x' * 1500}{number}": one for number in range(8)})
    assert len(long.to_parameter()) <= 4096
    assert list((parse_progress(long.to_parameter()) or progress).datasets) == list(long.datasets)[:2]
