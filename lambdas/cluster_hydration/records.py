"""What is remembered of each data set between two runs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from cluster_contract.codec import Open
from cluster_contract.hydration import COMMAND_SECONDS, FileFailure, HydratedDataset, HydrationAction, HydrationStep

DELIVERY_SECONDS = 60
"""For how long Systems Manager tries to start a command; at least 30."""

# Nothing of a command can run when both are over. The rest is for clocks that differ.
_LIVES = timedelta(seconds=DELIVERY_SECONDS + COMMAND_SECONDS + 60)

# How often what is hydrated is compared with the link: the state outlives the stack that made it.
_COMPARES = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Command(Open):
    """What a node was asked, and may still work at.

    Attributes:
        action: What to do.
        instance: The node.
        begun: When it was written down, right before it was sent.
        shard: Which shard.
        id: The id of the SSM command. None: the run that was about to send it has not said whether it did.
    """

    action: HydrationAction
    instance: str
    begun: datetime
    shard: int = 0
    id: str | None = None

    def may_run(self, now: datetime) -> bool:
        """Say whether it can be running for all that is known.

        Args:
            now: The time.
        """
        return now < self.begun + _LIVES


@dataclass(frozen=True, kw_only=True)
class Shard(Open):
    """What a node last said of a shard; the fields are those of `HydrationAnswer`."""

    files: int = 0
    bytes: int = 0
    restored_files: int = 0
    restored_bytes: int = 0
    failed_files: int = 0
    copying: bool = False
    counted: bool = False
    finished: bool = False
    shortage: str | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetState(Open):
    """How far a data set is.

    Attributes:
        step: The step.
        since: When the step began.
        run: The id of the run, which nodes get with their command.
        began: When the run began.
        settings: What the run was begun for, as `fingerprint` says.
        ordered: Whether an operator began the run.
        again: Whether an operator has ordered a new run.
        link: The link that the run is for, and what it shows. None: it has not come to it.
        compared: When the link was last compared with that, since the run ended.
        import_task: The import task that the function has asked for.
        imports: How many it has asked for.
        shards: How many shards there are. 0: none yet.
        alone: Whether one node restores all, since the space does not suffice for a part for each of several.
        answers: What is known of each shard, by its number.
        looked: What the last look has seen so far. None: nothing yet.
        commands: What nodes may be working at.
        failures: The first files that could not be restored.
        selected: All shards together, when all were first counted. None: they are not counted yet.
        worked: For how many seconds nodes had worked at the run until they last stopped.
        working_since: Since when nodes work at it. None: no node does.
        passes: How often a last look has found more to restore.
        failing_since: Since when no command has succeeded. None: the last one did.
        avoided: Nodes that get no commands, and until when.
        progressed: When anything was last restored or counted.
        measured: When `measured_bytes` were there.
        measured_bytes: How many bytes had their contents then.
        bytes_per_second: How fast contents come.
        reason: Why it has failed.
        recovers: Whether it goes on when FSx's link to the bucket is mended, without an order.
        awaits_node: Whether it goes on when a node can do what those that there were could not.
        begun: Whether a node has taken the markers of earlier runs away, or cannot.
        marked: Whether a node has told waiting jobs that it has failed.
        notice: What the topic's subscribers are to be notified of: a name of `messages.NOTICES`.
        claimed: When a run was last about to notify them.
        release_at: When FSx is asked next to release files.
        release_task: The task that released files last.
    """

    step: HydrationStep
    since: datetime
    run: str
    began: datetime
    settings: str
    ordered: bool = False
    again: bool = False
    link: str | None = None
    compared: datetime | None = None
    import_task: str | None = None
    imports: int = 0
    shards: int = 0
    alone: bool = False
    answers: Mapping[str, Shard] = field(default_factory=dict)
    looked: Shard | None = None
    commands: tuple[Command, ...] = ()
    failures: tuple[FileFailure, ...] = ()
    selected: Shard | None = None
    worked: int = 0
    working_since: datetime | None = None
    passes: int = 0
    failing_since: datetime | None = None
    avoided: Mapping[str, datetime] = field(default_factory=dict)
    progressed: datetime
    measured: datetime
    measured_bytes: int = 0
    bytes_per_second: int | None = None
    reason: str | None = None
    recovers: bool = False
    awaits_node: bool = False
    begun: bool = False
    marked: bool = False
    notice: str | None = None
    claimed: datetime | None = None
    release_at: datetime | None = None
    release_task: str | None = None

    @property
    def unfinished(self) -> tuple[int, ...]:
        """The shards of which something is left that can be restored."""
        ended = {number for number, shard in self.answers.items() if shard.finished or shard.shortage}
        return tuple(number for number in range(self.shards) if str(number) not in ended)

    @property
    def total(self) -> Shard:
        """All shards together."""
        shards = self.answers.values()
        return Shard(
            files=sum(one.files for one in shards),
            bytes=sum(one.bytes for one in shards),
            restored_files=sum(one.restored_files for one in shards),
            restored_bytes=sum(one.restored_bytes for one in shards),
            failed_files=sum(one.failed_files for one in shards),
            copying=any(one.copying for one in shards),
            counted=len(shards) == self.shards > 0 and all(one.counted for one in shards),
            finished=len(shards) == self.shards > 0 and all(one.finished for one in shards),
            shortage=next((one.shortage for one in shards if one.shortage), None),
        )

    @property
    def found(self) -> Shard:
        """What is known of all files: what the last look has seen, or all shards together until it has ended."""
        return self.looked if self.step is HydrationStep.DONE and self.looked else self.total

    def at_work(self, now: datetime) -> timedelta:
        """Return for how long nodes have worked at the run; time without nodes does not count.

        Args:
            now: The time.
        """
        return timedelta(seconds=self.worked) + (now - self.working_since if self.working_since else timedelta(0))

    def clocked(self, now: datetime) -> Self:
        """Return the state with the time of the nodes' work and the first complete count.

        Args:
            now: The time.
        """
        works = bool(self.commands) and self.step in (HydrationStep.RESTORING, HydrationStep.FINISHING)
        total = self.total
        return replace(
            self,
            selected=self.selected or (total if total.counted else None),
            worked=self.worked if works else int(self.at_work(now).total_seconds()),
            working_since=(self.working_since or now) if works else None,
        )

    def compares(self, now: datetime) -> bool:
        """Say whether it is time to compare the link with the one that it was hydrated through.

        Args:
            now: The time.
        """
        return self.step is HydrationStep.DONE and now - (self.compared or self.since) >= _COMPARES

    def rests(self, dataset: HydratedDataset, file_system: str, now: datetime) -> bool:
        """Say whether there is nothing to do for now.

        Args:
            dataset: The data set's settings.
            file_system: The file system's id.
            now: The time.
        """
        ended = self.step is HydrationStep.DONE or (
            self.step is HydrationStep.FAILED and self.marked and not self.recovers
        )
        due = dataset.release_after is not None and (self.release_at is None or now >= self.release_at)
        due = due or (dataset.preload and self.compares(now))
        asked = self.again or self.settings != fingerprint(dataset, file_system)
        return ended and not (due or asked or self.commands or self.notice)


def fingerprint(dataset: HydratedDataset, file_system: str) -> str:
    """Return a text that differs between settings of which each needs a run of its own.

    Args:
        dataset: The data set's settings.
        file_system: The file system's id.
    """
    said = [file_system, dataset.path, dataset.preload, dataset.patterns, dataset.max_gib, dataset.source]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
