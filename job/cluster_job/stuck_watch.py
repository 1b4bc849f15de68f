"""What says where this process stands while its step is overdue, and ends it where the others wait for it.

Each rank writes its sign into the table of the runs every 5 seconds, of about 1 KB, and reads one item; rank 0 reads
all signs. With 512 ranks that is 102 writes and 102 reads a second, and 64 read units for rank 0's query, and only
while the run does no step. Clocks of two machines are not compared: a sign counts while it changes.
"""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from cluster_job.drain import JOB_FOLDER
from cluster_job.environment import Environment, Launcher
from cluster_job.flight_recorder import Collectives
from cluster_job.hang_watch import HangProbe, keep_stacks, say
from cluster_job.hangs import HUNG_EXIT_CODE, STUCK_EXIT_CODE
from cluster_job.motion import Motion
from cluster_job.records import Items, decoded, encoded
from cluster_job.stuck import END_SHARE, GRACE_SECONDS, LOOK_SHARE, Sign, StepLimit, Stuck, find_stuck

SIGNS = "waits#"
"""How the keys start below which ranks say where they stand."""

GRACE_VARIABLE = "TRAINING_CLUSTER_HANG_SECONDS"
"""The variable by which `cluster-run` tells the processes the grace."""

_VERDICT = "stuck"
_LIVE_LOOKS = 4
_GROUPS = 24  # a sign stays below 1 KB


@dataclass(frozen=True, kw_only=True)
class HangSettings:
    """What is done about a rank that is stuck.

    Attributes:
        grace: What a step may take more than the longest of the last ones, in seconds. 0: nobody looks.
        ends: Whether processes end: `cluster-run` starts them again.
    """

    grace: float = GRACE_SECONDS
    ends: bool = False

    @property
    def look_seconds(self) -> float:
        """How often a process looks."""
        return self.grace * LOOK_SHARE or GRACE_SECONDS * LOOK_SHARE

    @classmethod
    def of(cls, variables: Mapping[str, str], environment: Environment) -> "HangSettings":
        """Return the settings of this process.

        Args:
            variables: The environment variables.
            environment: The process's place.
        """
        return cls(
            grace=float(variables.get(GRACE_VARIABLE) or GRACE_SECONDS),
            ends=environment.launcher is Launcher.TORCHRUN and bool(variables.get(JOB_FOLDER)),
        )


@dataclass(kw_only=True)
class _Overdue:
    """What is known since the step is overdue."""

    told_before: bytes | None
    """The verdict of an earlier time."""

    motion: Motion
    collectives: Collectives
    since: float
    moved: float
    began: float
    told: float | None = None
    said: bool = False


class StuckWatch:
    """Watches one process."""

    def __init__(
        self, run: str, environment: Environment, node: HangProbe, ranks: Items | None, settings: HangSettings
    ) -> None:
        """Watch a process.

        Args:
            run: The run's name.
            environment: The process's place.
            node: What is read of its node.
            ranks: Where the run's ranks say where they stand. None: they cannot, and nothing is known.
            settings: What is done.
        """
        self._run, self._environment, self._node = run, environment, node
        self._ranks, self._settings = ranks, settings
        self._limit = StepLimit(settings.grace)
        self._id, self._beat = uuid.uuid4().hex[:8], 0
        self._overdue: _Overdue | None = None
        self._seen: dict[int, tuple[str, float]] = {}

    def add(self, seconds: float) -> None:
        """Add a step.

        Args:
            seconds: How long it took.
        """
        self._limit.add(seconds)

    def look(self, silent: float, *, step: int, at_work: bool, rank: int, world_size: int) -> Stuck | None:
        """Look at this process; on rank 0 return the ranks that the run waits for, when they are first known.

        Args:
            silent: For how many seconds the process has done no step.
            step: Its last step.
            at_work: Whether it evaluates or writes a checkpoint.
            rank: Its number.
            world_size: How many there are.
        """
        limit = self._limit.seconds
        if not self._settings.grace or limit is None or silent < limit or self._ranks is None or world_size < 2:  # noqa: PLR2004
            self._overdue, self._seen = None, {}
            return None
        motion, collectives = self._node.motion(), self._node.collectives()
        known = self._known(self._ranks, motion, collectives)
        self._beat += 1
        sign = Sign(
            rank=rank,
            node=self._environment.node,
            world=world_size,
            beat=f"{self._id}-{self._beat}",
            silent=round(silent, 1),
            step=step,
            counts=dict(list(collectives.counts.items())[:_GROUPS]),
            collective=collectives.last,
            where=motion.where,
            in_torch=motion.in_torch,
            still=round(motion.at - known.moved, 1),
            counts_still=round(motion.at - known.began, 1),
            at_work=at_work,
            in_kernel=motion.in_kernel,
        )
        self._ranks.put(f"{SIGNS}{rank:05}", encoded(asdict(sign)))
        found = self._judge(self._ranks, sign, motion.at) if rank == 0 else None
        self._obey(self._ranks, rank, motion.at)
        return found

    def _known(self, ranks: Items, motion: Motion, collectives: Collectives) -> _Overdue:
        known = self._overdue
        if known is None:
            found = ranks.read(_VERDICT)
            known = self._overdue = _Overdue(
                told_before=None if found is None else found.value,
                motion=motion,
                collectives=collectives,
                since=motion.at,
                moved=motion.at,
                began=motion.at,
            )
        if collectives.counts != known.collectives.counts:
            known.began = known.moved = motion.at
        if motion.moved_since(known.motion):
            known.moved = motion.at
        known.motion, known.collectives = motion, collectives
        return known

    def _judge(self, ranks: Items, own: Sign, now: float) -> Stuck | None:
        """Return the ranks that are stuck when that is first known, and tell them when they are to end."""
        known, signs = self._overdue, self._live(ranks, own, now)
        stuck = find_stuck(signs, own.world, self._settings.grace)
        if stuck is None or known is None or known.told is not None:
            return None
        if stuck.ends and self._settings.ends:
            ranks.put(_VERDICT, encoded({"ranks": stuck.ranks, "world": own.world, "beat": own.beat}))
            say(f"{stuck.sentence}; cluster-run starts the ranks again")
            return stuck
        if known.said:
            return None
        known.said = True
        say(stuck.sentence)
        return stuck

    def _live(self, ranks: Items, own: Sign, now: float) -> list[Sign]:
        """Return the signs of this world that change from look to look."""
        found = [own]
        for value in ranks.list(SIGNS).values():
            item = decoded(value)
            rank, beat = item["rank"], item["beat"]
            if item["world"] != own.world or rank == own.rank:
                continue
            before = self._seen.get(rank)
            # What lies there at the first look may be of an earlier process.
            if before is None:
                changed = now if self._overdue is not None and self._overdue.since < now else float("-inf")
            else:
                changed = now if before[0] != beat else before[1]
            self._seen[rank] = (beat, changed)
            if now - changed <= _LIVE_LOOKS * self._settings.look_seconds:
                found.append(Sign(**item))
        return found

    def _obey(self, ranks: Items, rank: int, now: float) -> None:
        """End this process where the run waits for it, or where the one that it waits for does not end."""
        known = self._overdue
        if known is None or not self._settings.ends:
            return
        found = ranks.read(_VERDICT)
        if found is None or found.value == known.told_before:
            return
        known.told = now if known.told is None else known.told
        said = f"rank {rank} on {self._environment.node} ends"
        if rank in decoded(found.value)["ranks"]:
            said += f" with status {STUCK_EXIT_CODE}, since the other ranks wait for it"
            keep_stacks(self._node, self._run, rank, said)
            self._node.end(STUCK_EXIT_CODE)
        elif now - known.told >= END_SHARE * self._settings.grace:
            said += f" with status {HUNG_EXIT_CODE}, since the rank that it waits for has not ended"
            keep_stacks(self._node, self._run, rank, said)
            self._node.end(HUNG_EXIT_CODE)
