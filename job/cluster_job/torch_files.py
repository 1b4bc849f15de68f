"""The files of a checkpoint as torch.distributed.checkpoint writes them, with a digest of each."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.futures import Future

from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.digests import DigestStream


class _FileSystem(FileSystem):  # type: ignore[misc] # torch is not there when types are checked
    """Files with digests; `.metadata` is copied where it cannot be renamed: on Mountpoint for Amazon S3."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:  # noqa: ANN401 - torch's own
        """Open a file; take the digest of one that is written."""
        with super().create_stream(path, mode) as raw:
            if mode != "wb":
                yield raw
                return
            stream = DigestStream(raw)
            yield stream
            self.digests[Path(path).name] = stream.digest

    def rename(self, path: Any, new_path: Any) -> None:  # noqa: ANN401 - torch's own
        """Rename a file, or copy it."""
        self.digests[Path(new_path).name] = self.digests.pop(Path(path).name)
        try:
            super().rename(path, new_path)
        except OSError:
            shutil.copyfile(path, new_path)


class _Written(list):  # type: ignore[type-arg] # torch's own results
    """The results of one rank, which torch sends to the first, with the digests of the files."""

    digests: dict[str, str]


class CommittingWriter(dcp.FileSystemWriter):  # type: ignore[misc]
    """Writes a checkpoint, and marks it as whole when the files of all ranks are durable.

    Args:
        folder: The run's checkpoints.
        checkpoint: What is written.
    """

    def __init__(self, folder: CheckpointFolder, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.path, sync_files=True)
        self.fs = _FileSystem()
        self._folder = folder
        self._checkpoint = checkpoint
        self._made_by = os.getpid()

    def write_data(self, plan: Any, planner: Any) -> "Future[list[Any]]":  # noqa: ANN401 - torch's own
        """Write this rank's files.

        Args:
            plan: What to write.
            planner: What knows the data.
        """
        if os.getpid() != self._made_by:
            _leave_out_torchs_checksums()
        written = _Written(super().write_data(plan, planner).wait())
        written.digests = self.fs.digests
        results: Future[list[Any]] = Future()
        results.set_result(written)
        return results

    def finish(self, metadata: Any, results: Any) -> None:  # noqa: ANN401 - torch's own
        """Write what was saved where, then the marker; torch calls it on one rank when all have written.

        Args:
            metadata: What was saved.
            results: What each rank has written.
        """
        super().finish(metadata, results)
        digests = dict(self.fs.digests)
        for each in results:
            digests |= each.digests
        self._folder.commit(self._checkpoint, digests, digests)


def _leave_out_torchs_checksums() -> None:
    """Let a process that only writes checkpoints compute no checksums that nobody compares.

    torch ignores those of its archives when it reads them: https://github.com/pytorch/pytorch/issues/28858.
    """
    options = getattr(torch.serialization, "set_crc32_options", None)
    if options is not None:
        options(False)
