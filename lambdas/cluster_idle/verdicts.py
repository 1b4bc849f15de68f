"""What is decided about an instance."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.instances import Instance, Owner
from cluster_idle.reminders import Reminder


class IdleVerdict(StrEnum):
    """What is to be done with an instance."""

    STOP = "stop"
    """It is idle, the warning was sent in time, and it is stopped now."""

    WARN = "warn"
    """It is idle: a warning is sent, or was."""

    BUSY = "busy"
    """It works, or belongs to nodes of which one does."""

    UNKNOWN = "unknown"
    """Too little is known to say whether it works: it keeps running, and an alarm counts it."""

    GRACE = "grace"
    """It was launched a moment ago."""

    KEEP = "keep"
    """A tag or its policy keeps it running."""

    RESERVED = "reserved"
    """It is idle, and stopping it would save nothing: what it runs in is billed all the same."""

    MANAGED = "managed"
    """Another service owns it."""

    UNSTOPPABLE = "unstoppable"
    """It is idle, and EC2 cannot stop it."""

    DEFERRED = "deferred"
    """It is idle and due, and has to wait for a later run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleFinding:
    """What is decided about one instance, and why.

    Attributes:
        instance: The instance.
        verdict: What is to be done.
        reason: Why, in one sentence.
        evidence: What is known of it. None: it was not looked at.
        unit: The nodes that it is stopped together with, by the name of their group, or by its own id.
        for_others: Whether it stays only for the sake of the nodes that it is stopped together with.
    """

    instance: Instance
    verdict: IdleVerdict
    reason: str
    unit: str
    evidence: Evidence | None = None
    for_others: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether the instance itself is proven idle."""
        return self.evidence is not None and self.evidence.state is EvidenceState.IDLE

    @property
    def is_busy(self) -> bool:
        """Whether the instance itself works."""
        return self.evidence is not None and self.evidence.state is EvidenceState.BUSY


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Nodes that are idle and are stopped together: those of a group, or one by itself.

    Attributes:
        name: The node group's name, or the instance's id.
        instances: Its nodes, sorted by id.
        others: The ids of the other nodes of the group, which are idle and not stopped.
        targets: What carries the note of the warning: what owns its nodes, or the one node itself.
        idle_since: Since when all of them are proven idle.
        idle_description: What they did to be called idle: the end of a sentence.
        stop_at: When they are stopped.
        dry_run: Whether nothing is stopped.
        warned: Whether a warning was sent that still counts.
        reported: Whether a message said that a dry run would have stopped it.
        renew: Whether the warning is recorded anew, since no metric is read of so long ago.
        refused: Whether AWS or the power function refused to stop it within the last day.
        waits: Whether it waits for nodes that came lately, in place of others, to be judged.
    """

    name: str
    instances: tuple[Instance, ...]
    targets: tuple[Owner, ...]
    idle_since: datetime
    idle_description: str
    stop_at: datetime
    others: tuple[str, ...] = ()
    dry_run: bool = False
    warned: bool = False
    reported: bool = False
    renew: bool = False
    refused: bool = False
    waits: bool = False

    def is_due(self, now: datetime) -> bool:
        """Say whether its time to be stopped has come, after a warning."""
        return self.warned and self.stop_at <= now

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its nodes."""
        return tuple(instance.id for instance in self.instances)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What follows from one reading of the cluster.

    Attributes:
        findings: One an instance, in the order of their ids.
        warn: What a warning is sent of now.
        stop: What is stopped now, the longest idle first.
        renew: What was warned of long ago and has been idle ever since.
        void: The names of what was warned of and works again, is kept, or has been gone for long.
        clear: What carries the note of a warning that is void.
        breaker: Why nothing is done at all. None: nothing keeps it from being done.
        reminders: What keeps nodes without an end that is clear.
    """

    findings: tuple[IdleFinding, ...]
    warn: tuple[Unit, ...] = ()
    stop: tuple[Unit, ...] = ()
    renew: tuple[Unit, ...] = ()
    void: tuple[str, ...] = ()
    clear: tuple[Owner, ...] = ()
    breaker: str | None = None
    reminders: tuple[Reminder, ...] = ()
