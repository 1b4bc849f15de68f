"""Data sets and checkpoints, rehearsed: how far the function said it was, and which object became which file."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cluster_contract.hydration import DatasetProgress, HydrationProgress, HydrationStep

_ENDS = (HydrationStep.DONE, HydrationStep.FAILED)

Contents = Mapping[str, str | None]
"""SHA-256 digests of contents by paths; None where a file has no contents on the file system."""


@dataclass(kw_only=True)
class HydrationStory:
    """What the hydration function said, and what there was then.

    Attributes:
        preloaded: The directories on the nodes whose contents have to be there.
        ticks: How far the function said it was, run by run.
        objects: What lies in S3 for each of these directories.
        files: What lies on the file system below it.
        ready: The directories that `wait-for-dataset` found ready.
    """

    preloaded: tuple[str, ...]
    ticks: list[HydrationProgress] = field(default_factory=list)
    objects: dict[str, Contents] = field(default_factory=dict)
    files: dict[str, Contents] = field(default_factory=dict)
    ready: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the last run left nothing to do."""
        last = self._last
        return bool(last) and all(one.step in _ENDS for one in last.values())

    @property
    def _last(self) -> Mapping[str, DatasetProgress]:
        return self.ticks[-1].datasets if self.ticks else {}

    def differences(self) -> Iterator[str]:
        """Say what has not become of the objects what has to."""
        for directory in self.preloaded:
            said, wanted = self._last.get(directory), self.objects[directory]
            if said is None:
                yield f"hydration: the function says nothing of {directory}"
            elif said.step is not HydrationStep.DONE:
                yield f"hydration: {directory} is {said.step} after {len(self.ticks)} runs: {said.reason}"
            elif (said.restored_files, said.failed_files) != (len(wanted), 0):
                yield f"hydration: {directory} has {said.restored_files} of {len(wanted)} files, the function says"
            if directory not in self.ready:
                yield f"hydration: wait-for-dataset does not find {directory} ready"
            if not wanted:
                yield f"hydration: there are no objects for {directory}"
            yield from _unlike(f"hydration: {directory}", wanted, self.files[directory])

    def results(self) -> dict[str, Any]:
        """Return what is written down."""
        return {
            "ticks": [{name: asdict(one) for name, one in tick.datasets.items()} for tick in self.ticks],
            "objects": self.objects,
            "files": self.files,
            "ready": list(self.ready),
        }


@dataclass(kw_only=True)
class CheckpointStory:
    """A checkpoint that was written on a node, came to the bucket, was lost on the file system and restored.

    Attributes:
        written: What was written.
        exported: What came to the bucket.
        restored: What was restored from it.
        said: What the checkpoint function found.
        status: The exit status of the command that restored it.
        words: What that command said.
    """

    written: Contents
    exported: Contents
    restored: Contents
    said: Mapping[str, Any]
    status: int
    words: str

    def differences(self) -> Iterator[str]:
        """Say what became of the checkpoint that must not."""
        if self.status:
            yield f"checkpoint: training-cluster checkpoints restore ended with {self.status}: {self.words}"
        yield from _unlike("checkpoint, exported", self.written, self.exported)
        yield from _unlike("checkpoint, restored", self.written, self.restored)
        if self.said.get("complete_checkpoints") != 1:
            yield f"checkpoint: the function counts {self.said.get('complete_checkpoints')} complete ones, not 1"

    def results(self) -> dict[str, Any]:
        """Return what is written down."""
        return asdict(self)


def lost(before: Mapping[str, Contents], after: Mapping[str, Contents]) -> Iterator[str]:
    """Say which contents are there no longer, or otherwise.

    Args:
        before: What there was, by the bucket or directory that it was in.
        after: What there is.
    """
    for place, contents in before.items():
        yield from _unlike(f"after both stacks were destroyed: {place}", contents, after.get(place, {}))


def _unlike(place: str, wanted: Contents, found: Contents) -> Iterator[str]:
    for path, digest in wanted.items():
        if path not in found:
            yield f"{place}: {path} is absent"
        elif found[path] != digest:
            yield f"{place}: {path} has {'no' if found[path] is None else 'other'} contents"
    for path in found.keys() - wanted.keys():
        yield f"{place}: {path} was never there"
