"""The stories of data: right ones have no differences, and each wrong thing is one."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cluster_contract.hydration import DatasetProgress, HydrationProgress, HydrationStep
from rehearsal.hydration_story import CheckpointStory, HydrationStory, lost

_NOW = datetime(2026, 11, 22, tzinfo=UTC)
_WHOLE = {"one": "1" * 64, "two": "2" * 64}


def _hydration(**changes: Any) -> HydrationStory:
    said = {"step": HydrationStep.DONE, "since": _NOW, "restored_files": 2, **changes.pop("said", {})}
    given = {"objects": {"/fsx/data": _WHOLE}, "files": {"/fsx/data": _WHOLE}, "ready": ("/fsx/data",), **changes}
    progress = HydrationProgress(time=_NOW, datasets={"/fsx/data": DatasetProgress(**said)})
    return HydrationStory(preloaded=("/fsx/data",), ticks=[progress], **given)


def _checkpoint(**changes: Any) -> CheckpointStory:
    same = dict.fromkeys(("written", "exported", "restored"), _WHOLE)
    return CheckpointStory(**{**same, "said": {"complete_checkpoints": 1}, "status": 0, "words": "", **changes})


def test_right_ones_are_nothing_to_say() -> None:
    released = {"place": {"one": None}}
    stories = (_hydration().differences(), _checkpoint().differences(), lost(released, released))
    assert [list(one) for one in stories] == [[], [], []]


@pytest.mark.parametrize(
    ("story", "difference"),
    [
        (
            _hydration(said={"step": HydrationStep.FAILED, "reason": "access denied"}),
            "hydration: /fsx/data is failed after 1 runs: access denied",
        ),
        (
            _hydration(said={"restored_files": 1}),
            "hydration: /fsx/data has 1 of 2 files, the function says",
        ),
        (_hydration(ready=()), "hydration: wait-for-dataset does not find /fsx/data ready"),
        (_hydration(files={"/fsx/data": {**_WHOLE, "one": None}}), "hydration: /fsx/data: one has no contents"),
        (_hydration(files={"/fsx/data": {**_WHOLE, "one": "3"}}), "hydration: /fsx/data: one has other contents"),
        (_hydration(files={"/fsx/data": {"one": "1" * 64}}), "hydration: /fsx/data: two is absent"),
        (_hydration(files={"/fsx/data": {**_WHOLE, "x": "3"}}), "hydration: /fsx/data: x was never there"),
        (_checkpoint(exported={"one": "1" * 64}), "checkpoint, exported: two is absent"),
        (_checkpoint(restored={**_WHOLE, "two": "3"}), "checkpoint, restored: two has other contents"),
        (_checkpoint(said={}), "checkpoint: the function counts None complete ones, not 1"),
        (
            _checkpoint(status=1, words="one differs"),
            "checkpoint: training-cluster checkpoints restore ended with 1: one differs",
        ),
    ],
)
def test_what_is_wrong_is_told(story: HydrationStory | CheckpointStory, difference: str) -> None:
    assert list(story.differences()) == [difference]


def test_what_is_gone_at_the_end_is_told() -> None:
    assert list(lost({"s3://made/": _WHOLE}, {})) == [
        "after both stacks were destroyed: s3://made/: one is absent",
        "after both stacks were destroyed: s3://made/: two is absent",
    ]
